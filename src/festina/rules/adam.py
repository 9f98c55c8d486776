"""Adam."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp

from .._foundation.arrays import AnyArray, Number, RandomKey, Weights
from .._foundation.checks import is_traced, positive, whole
from .._foundation.errors import BadInput
from .._foundation.nouns import noun, settle, static
from ._steps import first_order, next_rows
from .base import Discrete, Gradient, State


@noun
class Adam(Discrete):
    """Adam [kingma2015, algorithm 1] on all samples, or on `batch` of them as `SGD` takes them.

    Time is lr × steps, a convention, not a flow.
    """

    lr: Number
    beta1: Number = 0.9
    beta2: Number = 0.999
    epsilon: Number = 1e-8
    batch: int | None = static(default=None)
    follows_gradient: ClassVar[bool] = False

    def __post_init__(self):
        settle(self, lr=positive(self.lr, "lr"), epsilon=positive(self.epsilon, "epsilon"))
        for name in ("beta1", "beta2"):
            settle(self, **{name: positive(getattr(self, name), name, zero=True)})
            if not is_traced(getattr(self, name)) and getattr(self, name) >= 1:
                raise BadInput(f"{name} = {getattr(self, name)}", f"0 <= {name} < 1", f"lower {name}")
        if self.batch is not None:
            settle(self, batch=whole(self.batch, "batch"))

    @classmethod
    def example(cls) -> Adam:
        return cls(0.1)

    @property
    def full_batch(self) -> bool:
        return self.batch is None

    def start(self, weights: Weights, samples: int | None, key: RandomKey) -> State:
        zeros = jax.tree.map(jnp.zeros_like, weights)
        order = None if self.batch is None else first_order(self.batch, samples, key)
        return zeros, zeros, jnp.zeros((), jnp.int32), order

    def step(self, gradient: Gradient, weights: Weights, state: State) -> tuple[Weights, State, Number]:
        mean, square, count, order = state
        rows, order = (None, None) if self.batch is None else next_rows(self.batch, order)
        loss, slope = gradient(weights, rows)
        count = count + 1
        mean = jax.tree.map(lambda m, g: self.beta1 * m + (1 - self.beta1) * g, mean, slope)
        square = jax.tree.map(lambda v, g: self.beta2 * v + (1 - self.beta2) * g * g, square, slope)
        # Bias correction of both averages, which start at zero.
        mean_scale, square_scale = 1 / (1 - self.beta1**count), 1 / (1 - self.beta2**count)

        def moved(w: AnyArray, m: AnyArray, v: AnyArray) -> AnyArray:
            return w - self.lr * mean_scale * m / (jnp.sqrt(square_scale * v) + self.epsilon)

        weights = jax.tree.map(moved, weights, mean, square)
        return weights, (mean, square, count, order), loss
