"""Rules: how weights change, and what a unit of time is.

Every rule owns its clock. Gradient flow runs in τ = 1; a rule that steps with rate lr
advances lr units of time per step, so its curves lie on those of the flow as lr → 0.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from ._errors import BadInput
from ._noun import is_traced, noun, positive, settle, static, whole
from ._setup import Discrete, Rule

__all__ = ["SGD", "Adam", "GradientDescent", "GradientFlow"]


@noun
class GradientFlow(Rule):
    """dW/dt = −∂loss/∂W, integrated adaptively to the stated tolerances.

    `atol` must lie far below the initial weights, whose growth decides the time course; None takes 1e-14 of the largest
    of them, and no more than 1e-14. In float32 `rtol` is raised to what that precision can hold.
    """

    rtol: Any = 1e-9
    atol: Any = None

    def __post_init__(self):
        atol = None if self.atol is None else positive(self.atol, "atol")
        settle(self, rtol=positive(self.rtol, "rtol"), atol=atol)

    def _finest(self, weights: Any) -> Any:
        """The absolute tolerance for a flow from these weights."""
        from ._integrate import finest

        return finest(weights) if self.atol is None else self.atol

    def on_clock(self, times: Any) -> Any:
        return times


@noun
class GradientDescent(Discrete):
    """W ← W − lr ∂loss/∂W on all samples."""

    lr: Any

    def __post_init__(self):
        settle(self, lr=positive(self.lr, "lr"))

    def step(self, gradient, weights, state):
        loss, slope = gradient(weights, None)
        return _descend(weights, slope, self.lr), state, loss


@noun
class SGD(Discrete):
    """W ← W − lr ∂loss/∂W on `batch` samples; each pass visits the samples in a new order.

    Samples that do not fill a last batch wait for a later pass.
    """

    lr: Any
    batch: int = static()
    full_batch: ClassVar[bool] = False

    def __post_init__(self):
        settle(self, lr=positive(self.lr, "lr"), batch=whole(self.batch, "batch"))

    def start(self, weights, samples, key):
        return _first_order(self.batch, samples, key)

    def step(self, gradient, weights, state):
        rows, state = _next_rows(self.batch, state)
        loss, slope = gradient(weights, rows)
        return _descend(weights, slope, self.lr), state, loss


def _first_order(batch: int, samples: int | None, key: Any) -> Any:
    """What is known of the passes before the first batch: the key of the next order, this order, how far it is used."""
    if samples is None or batch > samples:
        raise BadInput(
            f"batch = {batch} for a task with {samples or 'no'} samples",
            "at least as many samples as the batch",
            "use a smaller batch, or all samples at once",
        )
    return key, jax.random.permutation(key, samples), jnp.zeros((), jnp.int32)


def _next_rows(batch: int, state: Any) -> tuple[Any, Any]:
    """The samples of the next batch, and the state after it."""
    key, order, begin = state
    rows = jax.lax.dynamic_slice_in_dim(order, begin, batch)
    begin = begin + batch
    return rows, jax.lax.cond(begin + batch > order.shape[0], _reshuffled, lambda *s: s, key, order, begin)


def _reshuffled(key, order, begin):
    key = jax.random.split(key, 1)[0]
    return key, jax.random.permutation(key, order.shape[0]), jnp.zeros_like(begin)


@noun
class Adam(Discrete):
    """Adam [kingma2015, algorithm 1] on all samples, or on `batch` of them as `SGD` takes them.

    Time is lr × steps, a convention, not a flow.
    """

    lr: Any
    beta1: Any = 0.9
    beta2: Any = 0.999
    epsilon: Any = 1e-8
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

    @property
    def full_batch(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.batch is None

    def start(self, weights, samples, key):
        zeros = jax.tree.map(jnp.zeros_like, weights)
        order = None if self.batch is None else _first_order(self.batch, samples, key)
        return zeros, zeros, jnp.zeros((), jnp.int32), order

    def step(self, gradient, weights, state):
        mean, square, count, order = state
        rows, order = (None, None) if self.batch is None else _next_rows(self.batch, order)
        loss, slope = gradient(weights, rows)
        count = count + 1
        mean = jax.tree.map(lambda m, g: self.beta1 * m + (1 - self.beta1) * g, mean, slope)
        square = jax.tree.map(lambda v, g: self.beta2 * v + (1 - self.beta2) * g * g, square, slope)
        # Bias correction of both averages, which start at zero.
        mean_scale, square_scale = 1 / (1 - self.beta1**count), 1 / (1 - self.beta2**count)
        weights = jax.tree.map(
            lambda w, m, v: w - self.lr * mean_scale * m / (jnp.sqrt(square_scale * v) + self.epsilon),
            weights, mean, square,
        )  # fmt: skip
        return weights, (mean, square, count, order), loss


def _descend(weights, slope, lr):
    return jax.tree.map(lambda w, g: w - lr * g, weights, slope)
