"""Gradient descent on batches."""

from __future__ import annotations

from .._foundation.arrays import Number, RandomKey, Weights
from .._foundation.checks import positive, whole
from .._foundation.nouns import noun, settle, static
from ._steps import first_order, next_rows, stepped_down
from .base import Discrete, Gradient, State


@noun
class SGD(Discrete):
    """W ← W − lr ∂loss/∂W on `batch` samples; each pass visits the samples in a new order.

    Samples that are left at the end of a pass, too few for a batch, are not used in that pass.
    """

    lr: Number
    batch: int = static()

    def __post_init__(self):
        settle(self, lr=positive(self.lr, "lr"), batch=whole(self.batch, "batch"))

    @classmethod
    def example(cls) -> SGD:
        return cls(0.1, batch=3)

    @property
    def full_batch(self) -> bool:
        return False

    def start(self, weights: Weights, samples: int | None, key: RandomKey) -> State:
        return first_order(self.batch, samples, key)

    def step(self, gradient: Gradient, weights: Weights, state: State) -> tuple[Weights, State, Number]:
        rows, state = next_rows(self.batch, state)
        loss, slope = gradient(weights, rows)
        return stepped_down(weights, slope, self.lr), state, loss
