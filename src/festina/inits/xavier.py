"""Independent weights, scaled by the fans of each matrix."""

from __future__ import annotations

import math
from typing import Any

import jax
from jaxtyping import Array

from .._foundation import checks
from .._foundation.arrays import RandomKey, Weights
from .._foundation.checks import positive
from .._foundation.nouns import noun, settle, static
from ..nets.base import Net
from ..tasks.base import Task
from ._pieces import Shape, example_with, map_layers, normal
from .base import Init


@noun
class Xavier(Init):
    """Independent weights of variance gain²·2/(fan_in + fan_out), Gaussian or "uniform"; biases zero [glorot2010].

    The fans of a matrix are its sides; those of a kernel are its channels times its length.
    """

    gain: Any = 1.0
    law: str = static(default="normal")

    def __post_init__(self):
        settle(self, gain=positive(self.gain, "gain"), law=checks.choice(self.law, "law", ("normal", "uniform")))

    @classmethod
    def example(cls) -> tuple[Task, Net, Xavier]:
        return example_with(cls(0.9, "uniform"))

    def draw(self, key: RandomKey, net: Net, task: Task) -> Weights:
        def layer(k: RandomKey, shape: Shape) -> Array:
            fans = (shape[0] + shape[1]) * math.prod(shape[2:])
            # A uniform number on [−1, 1] has variance 1/3.
            numbers = normal(k, shape) if self.law == "normal" else 3**0.5 * jax.random.uniform(k, shape, minval=-1)
            return self.gain * (2 / fans) ** 0.5 * numbers

        return map_layers(key, net, task, layer)
