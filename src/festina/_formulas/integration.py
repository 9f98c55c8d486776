"""Adaptive numerical integration by Diffrax, for gradient flow and for reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from .._foundation.arrays import AnyArray

Scalar: TypeAlias = float | int | Float[AnyArray, ""]
State = TypeVar("State")  # an array, or a pytree of arrays

MAX_STEPS = 1_000_000
FINE = 1e-14  # of the largest initial weight


def finest(start: object) -> Float[AnyArray, ""]:
    """An absolute tolerance far below the initial state (an array or a pytree), whose growth sets the time course."""
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(start)]
    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(leaf), initial=0.0) for leaf in leaves]))
    share = FINE * jnp.where(largest > 0, jnp.minimum(largest, 1.0), 1.0)
    return jnp.maximum(share, 1e3 * jnp.finfo(share.dtype).tiny)


class _FirstStep(diffrax.PIDController):
    """A controller that knows its first step; as `dt0` of Diffrax the step brings a check that calls Python.

    JAX keeps no program on disk that calls Python, so that every process would compile its integrations anew.
    """

    first: Scalar = 0.0

    def init(self, terms: Any, t0: Any, t1: Any, y0: Any, dt0: Any, args: Any, func: Any, error_order: Any) -> Any:
        return super().init(terms, t0, t1, y0, self.first, args, func, error_order)


def integrate(
    field: Callable[[State], State], start: State, duration: Scalar, first_step: Scalar, *, rtol: Scalar, atol: Scalar
) -> tuple[State, Float[AnyArray, ""], Bool[AnyArray, ""]]:
    """Follow dstate/dt = field(state) for `duration`.

    `first_step` is a guess (0: none); the solver corrects it. Returns the end state, a typical
    step (a guess for what follows) and whether the solver got there.
    """
    guess = jnp.where(first_step > 0, jnp.minimum(first_step, duration), 1e-2 * duration)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, state, args: field(state)),
        # Eighth order: near rounding it takes several times fewer steps than Tsit5.
        diffrax.Dopri8(),
        t0=0.0,
        t1=duration,
        dt0=None,
        y0=start,
        stepsize_controller=_FirstStep(rtol=rtol, atol=atol, first=guess),
        max_steps=MAX_STEPS,
        throw=False,
    )
    end = jax.tree.map(lambda leaf: leaf[0], solution.ys)
    taken = jnp.maximum(solution.stats["num_accepted_steps"], 1)
    return end, duration / taken, solution.result == diffrax.RESULTS.successful


def along(
    field: Callable[[State], State], start: State, times: Float[AnyArray, " time"], *, rtol: Scalar, atol: Scalar
) -> State:
    """The states at increasing `times` (the start is at time 0), time first; NaN past a failure."""

    def onward(
        carry: tuple[State, Float[AnyArray, ""], Bool[AnyArray, ""]], duration: Float[AnyArray, ""]
    ) -> tuple[tuple[State, Float[AnyArray, ""], Bool[AnyArray, ""]], State]:
        state, step, good = carry
        end, step, reached = integrate(field, state, duration, step, rtol=rtol, atol=atol)
        good = good & reached
        end = jax.tree.map(lambda leaf: jnp.where(good, leaf, jnp.nan), end)
        return (end, step, good), end

    gaps = jnp.diff(times, prepend=0.0)
    first = (start, jnp.zeros((), times.dtype), jnp.bool_(True))
    return jax.lax.scan(onward, first, gaps)[1]
