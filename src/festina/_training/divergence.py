"""What a diverging run reports: the largest stable rate, estimated."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Weights
from .._foundation.errors import Diverged
from .._foundation.program_memory import compiled
from .._setup.loss import gradient
from .._setup.setup import Setup
from .._setup.trajectory import Trajectory
from ..observables.base import View
from ..rules.base import Discrete, discrete, rate_of
from .loop import Failure, Run
from .preparation import prepared
from .sequence import Before

TRIAL_STEPS = 50_000  # of a slower run, after a divergence


def largest_stable_rate(setup: Setup, seed: int, view: View, weights: Weights, steps: int) -> float | None:
    """An estimate of the largest stable learning rate: 2 over the largest curvature at the end of a slower run.

    `steps` are those to the divergence. The rate is quartered until a run stays finite for twice their way, or for
    TRIAL_STEPS; the result is None if none of twelve such runs does. Where no curvature can be measured, or where it
    allows the rate that diverged, it is the rate of the slower run. `weights` have a seed axis.
    """
    view, diverged = view.with_seed({}), discrete(setup.rule)
    diverging = float(diverged.lr)
    begin = float(_curvature(view, jax.tree.map(lambda leaf: leaf[0], weights)))
    rate = min(diverging / 4, 1 / begin if begin > 0 and setup.rule.follows_gradient else np.inf)
    for _ in range(12):
        # In steps: a rule may have any clock, but the way that it goes is lr × steps.
        trial = round(min(2 * max(steps * diverging / rate, 1), TRIAL_STEPS))
        rule = dataclasses.replace(diverged, lr=rate)
        slower = setup.replace(rule=rule, times=[rule.time_of_steps(trial)])
        run = Run(slower, (seed,), (), view, weights)
        while run.is_going:
            run.block()
        if run.failure is None:
            end = jax.tree.map(lambda leaf: leaf[0], run.weights)
            curvature = float(_curvature(view, end)) if setup.rule.follows_gradient else 0.0
            # Without curvature (Adam, or a network whose units have died) the slower rate is all we know, and also
            # where the start, and not the end, is too steep for the rate that diverged.
            return 2 / curvature if curvature * diverging > 2 else rate
        rate /= 4
    return None


@compiled(effort="little")
def _curvature(view: View, weights: Weights) -> Float[AnyArray, ""]:
    """Largest eigenvalue of the Hessian by power iteration; the Hessian is never formed."""

    def slope(weights: Weights) -> Weights:
        return gradient(view.net, view.evidence)(weights, None)[1]

    def improve(_: object, state: tuple[Weights, AnyArray]) -> tuple[Weights, AnyArray]:
        direction, _ = state
        size = jnp.sqrt(sum(jnp.sum(d**2) for d in jax.tree.leaves(direction)))
        unit = jax.tree.map(lambda d: d / size, direction)
        image = jax.jvp(slope, (weights,), (unit,))[1]
        pairs = zip(jax.tree.leaves(unit), jax.tree.leaves(image), strict=True)
        return image, jnp.asarray(sum(jnp.sum(a * b) for a, b in pairs))

    first = jax.tree.map(lambda w: jax.random.normal(jax.random.key(0), w.shape, w.dtype), weights)
    return jax.lax.fori_loop(0, 100, improve, (first, jnp.zeros((), jax.tree.leaves(weights)[0].dtype)))[1]


def diverged(setup: Setup, seeds: tuple[int, ...], failure: Failure, finished: Trajectory, before: Before) -> Diverged:
    """The error of a run that left the finite numbers; `finished` is what was recorded until then."""
    seed = seeds[failure.seed]
    when = f"step {failure.step}" if failure.step is not None else f"time {failure.time:g}"
    seen = f"training diverged at {when} (seed {seed}), loss {failure.loss:.4g}"
    rate = None
    if isinstance(setup.rule, Discrete) and failure.step is not None:
        with jax.enable_x64(setup.precision == "float64"):
            view, weights = prepared(setup, seeds, (), before)
            weights = jax.tree.map(lambda leaf: leaf[failure.seed : failure.seed + 1], weights)
            rate = largest_stable_rate(setup, seed, view, weights, failure.step)
    if rate is None:
        do = "lower the learning rate, the tolerances or the initial weights"
        if not isinstance(setup.rule, Discrete) and setup.net.off_slope is not None:
            # Where units switch, the flow has kinks, which no step is short enough for.
            do = "raise rtol and atol of the flow, or use rules.GradientDescent(lr): a net whose units switch has kinks"
        error = Diverged(seen, "a run that stays finite", do)
    else:
        needed = f"lr below about {rate:.3g} (estimated from slower runs), not {rate_of(setup.rule):g}"
        error = Diverged(seen, needed, f"try lr = {0.5 * rate:.2g}")
    error.step, error.loss, error.seed, error.stable_rate = failure.step or 0, failure.loss, seed, rate
    error.trajectory = finished
    return error
