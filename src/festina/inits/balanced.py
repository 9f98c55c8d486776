"""λ-balanced layers of a chosen map."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .._foundation import checks
from .._foundation.arrays import RandomKey, Weights
from .._foundation.checks import is_traced, real_array
from .._foundation.errors import BadInput
from .._foundation.nouns import noun, settle, static
from ..nets.base import Net
from ..tasks.base import Task
from ._pieces import (
    balanced_sizes,
    completed,
    example_with,
    one_for_each,
    one_or_several,
    orthogonal,
    refuse_impossible_balance,
    two_layer_width,
)
from .base import Init


@noun
class Balanced(Init):
    """Two linear layers with W2ᵀW2 − W1W1ᵀ = lam·I; positive `lam` makes the read-out layer the larger one.

    `scale` are the singular values of the starting map W2W1: one number, or one for each of the min(d_in,
    hidden, d_out). Its singular vectors are random, or with `aligned` those of the task's modes, in their order;
    the hidden basis is random. Hidden directions that the map does not use have √|lam| in the larger layer.
    lam > 0 needs hidden ≤ d_out and lam < 0 needs hidden ≤ d_in; where `lam` is traced, values that the
    shape does not allow give NaN. [domine2025, λ-balanced weights]
    """

    lam: Any
    scale: Any
    aligned: bool = static(default=False)

    def __post_init__(self):
        lam = real_array(self.lam, "lam", ndim=0)
        scale = one_or_several(self.scale, "scale")
        if not is_traced(scale) and np.any(np.asarray(scale) < 0):
            raise BadInput(
                f"scale = {np.min(scale):g}", "singular values >= 0", "give sizes; the signs are in the random vectors"
            )
        aligned = checks.truth(self.aligned, "aligned", "say whether to use the task's modes")
        settle(self, lam=lam if is_traced(lam) else float(lam), scale=scale, aligned=aligned)

    @classmethod
    def example(cls) -> tuple[Task, Net, Balanced]:
        return example_with(cls(0.5, [0.3, 0.2, 0.1, 0.0, 0.3, 1.0], aligned=True))

    def draw(self, key: RandomKey, net: Net, task: Task) -> Weights:
        hidden = two_layer_width(self, net, task)
        d_in, d_out = task.d_in, task.d_out
        if not is_traced(self.lam):
            refuse_impossible_balance(self.lam, d_in, hidden, d_out)
        values = f"singular values of the map {d_in}-{hidden}-{d_out}"
        do = "match the number of singular values: min(d_in, hidden, d_out)"
        scale = one_for_each(self.scale, "scale", min(d_in, hidden, d_out), values, do)
        last, first = balanced_sizes(scale, self.lam, d_in, hidden, d_out)
        for_left, for_right, for_hidden = jax.random.split(key, 3)
        if self.aligned:
            modes = task.modes()
            left, right = completed(for_left, modes.left), completed(for_right, modes.right)
        else:
            left, right = orthogonal(for_left, d_out), orthogonal(for_right, d_in)
        middle = orthogonal(for_hidden, hidden)
        into, out = min(d_in, hidden), min(d_out, hidden)
        return (
            (middle[:, :into] * first[:into]) @ right[:, :into].T,
            (left[:, :out] * last[:out]) @ middle[:, :out].T,
        )
