"""Hidden units in two halves whose outputs cancel at initialisation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .._foundation.arrays import RandomKey, Weights
from .._foundation.checks import positive
from .._foundation.errors import BadInput
from .._foundation.nouns import noun, settle
from ..nets.base import Net
from ..tasks.base import Task
from ._pieces import around_hidden, example_with, normal, shapes_around_hidden
from .base import Init


@noun
class Mirrored(Init):
    """One hidden layer in two halves that cancel: the output starts at zero; biases zero.

    Gaussian weights of standard deviation `first` into and `last` out of the first half of the units; the others
    are copies with negated outgoing weights. The tangent kernel is twice that of one half.
    """

    first: Any
    last: Any

    def __post_init__(self):
        settle(self, first=positive(self.first, "first"), last=positive(self.last, "last"))

    @classmethod
    def example(cls) -> tuple[Task, Net, Mirrored]:
        return example_with(cls(0.3, 0.2))

    def draw(self, key: RandomKey, net: Net, task: Task) -> Weights:
        (hidden, d_in), (d_out, _) = shapes_around_hidden(self, net, task)
        if hidden % 2:
            raise BadInput(
                f"Mirrored with hidden width {hidden}",
                "an even width: every unit has a copy of opposite sign",
                f"use hidden={hidden + 1}",
            )
        for_incoming, for_outgoing = jax.random.split(key)
        w = self.first * normal(for_incoming, (hidden // 2, d_in))
        a = self.last * normal(for_outgoing, (d_out, hidden // 2))
        return around_hidden(net, task, jnp.concatenate([w, w]), jnp.concatenate([a, -a], axis=1))
