"""Hidden units of equal balance."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .._foundation import checks
from .._foundation.arrays import RandomKey, Weights
from .._foundation.checks import positive
from .._foundation.nouns import noun, settle
from ..nets.base import Net
from ..tasks.base import Task
from ._pieces import around_hidden, example_with, normal, shapes_around_hidden, shared_out
from .base import Init


@noun
class SingleNeuron(Init):
    """One hidden layer whose units all have |a|² − |w|² = `delta` and |a||w| = `scale`²; biases zero.

    w are the incoming and a the outgoing weights of a unit: |w| = scale·α and |a| = scale/α with
    α² = (√(4 + (delta/scale²)²) − delta/scale²)/2. Directions are uniform on spheres, for one output a random
    sign. One unit is the single neuron of [kunin2024, minimal model].
    """

    scale: Any
    delta: Any

    def __post_init__(self):
        settle(self, scale=positive(self.scale, "scale"), delta=checks.number(self.delta, "delta"))

    @classmethod
    def example(cls) -> tuple[Task, Net, SingleNeuron]:
        return example_with(cls(0.3, -2))

    def draw(self, key: RandomKey, net: Net, task: Task) -> Weights:
        incoming, outgoing = shapes_around_hidden(self, net, task)
        to_size, from_size = shared_out(jnp.asarray(self.scale) ** 2, self.delta)
        for_incoming, for_outgoing = jax.random.split(key)
        w, a = normal(for_incoming, incoming), normal(for_outgoing, outgoing)
        w = from_size * w / jnp.linalg.norm(w, axis=1, keepdims=True)
        a = to_size * a / jnp.linalg.norm(a, axis=0, keepdims=True)
        return around_hidden(net, task, w, a)
