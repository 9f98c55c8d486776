"""Nonlinear least squares by the Levenberg-Marquardt method, inside compiled programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from .._foundation.arrays import AnyArray, Number

ROUNDS = 200
TOLERANCE = 1e-15  # of a step and of what it gains, where rounding ends the search


class Search(NamedTuple):
    """Where the search stands; several searches, each from a start of its own, have a leading axis."""

    x: Float[AnyArray, "*start parameter"]
    predicted: Float[AnyArray, "*start curve time"]  # or whatever `residuals` gives beside them
    cost: Float[AnyArray, "*start"]
    pull: Float[AnyArray, "*start parameter"]  # Jᵀr
    metric: Float[AnyArray, "*start parameter parameter"]  # JᵀJ
    damping: Float[AnyArray, "*start"]
    growth: Float[AnyArray, "*start"]
    rounds: Int[AnyArray, "*start"]
    done: Bool[AnyArray, "*start"]


Residuals = Callable[[Float[AnyArray, " parameter"]], tuple[Float[AnyArray, " residual"], Float[AnyArray, "..."]]]


def minimised(residuals: Residuals, start: Float[AnyArray, " parameter"], tolerance: Number) -> Search:
    """A least-squares minimum near `start`; `done` if it was reached.

    `residuals` returns the residuals and the prediction. All parameters have the same scale, so the damping matrix is a
    multiple of the identity. The damping falls after successful steps and rises, faster and faster, after failed ones;
    at a minimum no step succeeds, and the steps shrink to zero. `tolerance` is the relative size of a step, and of its
    gain, at which the search ends.
    """
    size = start.shape[-1]
    unit = jnp.eye(size)

    def improved(now: Search) -> Search:
        # The first round is a step of length zero from an infinite cost, so that `residuals` is compiled only once.
        first = now.rounds == 0
        step = -jnp.linalg.solve(jnp.where(first, unit, now.metric + now.damping * unit), now.pull)
        foreseen = jnp.sum(step * (now.damping * step - now.pull)) / 2
        x = now.x + step
        value, along, predicted = jax.linearize(residuals, x, has_aux=True)
        slopes = jax.vmap(along)(unit)  # (parameter, residual)
        cost, pull, metric = jnp.sum(value**2) / 2, slopes @ value, slopes @ slopes.T
        gained = now.cost - cost
        better = first | (gained > 0)  # never where the cost is NaN
        ratio = gained / jnp.where(foreseen > 0, foreseen, 1.0)
        small = jnp.linalg.norm(step) <= tolerance * jnp.linalg.norm(now.x)
        little = (jnp.abs(gained) <= tolerance * now.cost) & (foreseen <= tolerance * now.cost)
        lower = now.damping * jnp.maximum(1 / 3, 1 - (2 * ratio - 1) ** 3)
        initial = 1e-3 * jnp.max(jnp.diagonal(metric)) + jnp.finfo(cost.dtype).tiny

        def kept(new, old):
            return jnp.where(better, new, old)

        return Search(
            x=kept(x, now.x),
            predicted=kept(predicted, now.predicted),
            cost=kept(cost, now.cost),
            pull=kept(pull, now.pull),
            metric=kept(metric, now.metric),
            damping=jnp.where(first, initial, jnp.where(better, lower, now.damping * now.growth)),
            growth=kept(2.0, 2 * now.growth),
            rounds=now.rounds + 1,
            done=~first & (small | little),
        )

    shape = jax.eval_shape(residuals, start)[1]
    beginning = Search(
        x=start,
        predicted=jnp.zeros(shape.shape, shape.dtype),
        cost=jnp.asarray(jnp.inf),
        pull=jnp.zeros(size),
        metric=unit,
        damping=jnp.asarray(1.0),
        growth=jnp.asarray(2.0),
        rounds=jnp.asarray(0),
        done=jnp.asarray(False),
    )
    return jax.lax.while_loop(lambda now: ~now.done & (now.rounds < ROUNDS), improved, beginning)
