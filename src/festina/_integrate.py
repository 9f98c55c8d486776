"""Adaptive integration by Diffrax: gradient flow and reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp

MAX_STEPS = 1_000_000
FINE = 1e-14  # of the largest initial weight


def finest(start: Any) -> Any:
    """An absolute tolerance that is far below the start, whose growth decides the time course."""
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(start)]
    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(leaf), initial=0.0) for leaf in leaves]))
    share = FINE * jnp.where(largest > 0, jnp.minimum(largest, 1.0), 1.0)
    return jnp.maximum(share, 1e3 * jnp.finfo(share.dtype).tiny)


def integrate(
    field: Callable[[Any], Any], start: Any, duration: Any, first_step: Any, *, rtol: Any, atol: Any
) -> tuple[Any, Any, Any]:
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
        dt0=guess,
        y0=start,
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        max_steps=MAX_STEPS,
        throw=False,
    )
    end = jax.tree.map(lambda leaf: leaf[0], solution.ys)
    taken = jnp.maximum(solution.stats["num_accepted_steps"], 1)
    return end, duration / taken, solution.result == diffrax.RESULTS.successful


def along(field: Callable[[Any], Any], start: Any, times: Any, *, rtol: Any, atol: Any) -> Any:
    """The states at increasing `times` (the start is at time 0), time first; NaN past a failure."""

    def onward(carry, duration):
        state, step, good = carry
        end, step, reached = integrate(field, state, duration, step, rtol=rtol, atol=atol)
        good = good & reached
        end = jax.tree.map(lambda leaf: jnp.where(good, leaf, jnp.nan), end)
        return (end, step, good), end

    gaps = jnp.diff(times, prepend=0.0)
    first = (start, jnp.zeros((), times.dtype), jnp.bool_(True))
    return jax.lax.scan(onward, first, gaps)[1]
