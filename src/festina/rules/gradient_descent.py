"""Gradient descent."""

from __future__ import annotations

from .._foundation.arrays import Number, Weights
from .._foundation.checks import positive
from .._foundation.nouns import noun, settle
from ._steps import stepped_down
from .base import Discrete, Gradient, State


@noun
class GradientDescent(Discrete):
    """W ← W − lr ∂loss/∂W on all samples."""

    lr: Number

    def __post_init__(self):
        settle(self, lr=positive(self.lr, "lr"))

    @classmethod
    def example(cls) -> GradientDescent:
        return cls(0.1)

    def step(self, gradient: Gradient, weights: Weights, state: State) -> tuple[Weights, State, Number]:
        loss, slope = gradient(weights, None)
        return stepped_down(weights, slope, self.lr), state, loss
