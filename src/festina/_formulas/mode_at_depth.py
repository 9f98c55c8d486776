"""One mode of a balanced deep linear network, in closed form, at every depth.

In a chain of D balanced layers the strength a of a mode, their product, obeys [saxe2014, eq. 12]

    da/dt = D |a|^(2 − 2/D) (s − λ a),
    da/dt = a² (s − λ a)  at infinite depth, with time in units of τ/D.

Two depths have an explicit solution. With Φ(t, r) = (1 − e^(−rt))/r, which is t at r = 0,

    D = 1    a = a₀ e^(−λt) + s Φ(t, λ)               [saxe_slides, "Analytic learning trajectory"]
    D = 2    a = a₀ / (e^(−2st) + λ a₀ Φ(2t, s))      [jarvis2025, eq. 7]

Every deeper chain follows the two-layer curve after a change of time, which `depth_clock` computes. Without input
variance, λ = 0, a deep chain diverges at a finite time. By the symmetry (a, s) → (−a, −s) all formulas are for a₀ > 0.

Symbols: a, strength of the mode, the product of its layers; a₀, its initial value; s, singular value of Σʸˣ, any sign;
λ, input variance of the mode, never negative (`variance`); D, depth, an integer or math.inf; t, time, never negative.

Convention: τ = 1 and the loss is ½·mean ‖y − f(x)‖². Errata of the papers are in `festina.theories.aligned_modes`.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Bool, Float

from .._foundation.arrays import AnyArray
from .._foundation.program_memory import compiled
from .depth_clock import Clock, elapsed_time, growth, log_mean, saturating_time, two_layer_time

Grid: TypeAlias = Float[AnyArray, "*grid"]
Fact: TypeAlias = Bool[AnyArray, "*grid"]

_FAR = 500.0  # logarithm of a growth that is computed from its logarithm, before it overflows


def strength(
    t: ArrayLike, singular_value: ArrayLike, variance: ArrayLike, start: ArrayLike, depth: int | float
) -> Float[AnyArray, "*shape"]:
    """Strength a(t) of the mode. Infinite once a chain without input variance has blown up."""
    numbers = _as_floats(t, singular_value, variance, start)
    return (
        _shallow_strength(*numbers)
        if depth == 1
        else _deep_strength(*numbers, Clock.of(depth, numbers[0].dtype), depth == 2)
    )


@compiled
def _shallow_strength(t: Grid, s: Grid, variance: Grid, start: Grid) -> Grid:
    return start * jnp.exp(-variance * t) + s * saturating_time(t, variance)


@compiled(static_argnames="is_two_layers")
def _deep_strength(t: Grid, s: Grid, variance: Grid, start: Grid, clock: Clock, is_two_layers: bool) -> Grid:
    s = jnp.where(start < 0, -s, s)
    # At zero nothing moves, but the clock rate |a₀|^m has no derivative there.
    size = jnp.where(start == 0, 1.0, jnp.abs(start))
    w, elapsed = variance * size, clock.factor * size**clock.m * t
    # Without variance a deep chain blows up at m s T = 1; two layers only outgrow the dtype.
    limits = jnp.finfo(t.dtype)
    if is_two_layers:
        has_exploded = (variance == 0) & (s * elapsed + jnp.log(size) >= math.log(limits.max))
    else:
        has_exploded = (w == 0) & (clock.m * s * elapsed >= 1 - 8 * limits.eps)
    elapsed = jnp.where(has_exploded, 0.0, elapsed)
    theta = elapsed if is_two_layers else two_layer_time(elapsed, s, w, clock)
    is_far = s * theta > _FAR
    far = jnp.exp(-jnp.where(is_far, s * theta + jnp.log(size), 0.0))
    far = jnp.sign(start) / (far + variance * saturating_time(jnp.where(is_far, theta, 0.0), s))
    near = start * growth(jnp.where(is_far, 0.0, theta), s, w)
    moved = jnp.where(start == 0, start, jnp.where(is_far, far, near))
    return jnp.where(has_exploded & (start != 0), jnp.sign(start) * jnp.inf, moved)


def time_to(
    target: ArrayLike, singular_value: ArrayLike, variance: ArrayLike, start: ArrayLike, depth: int | float
) -> Float[AnyArray, "*shape"]:
    """Time at which the strength reaches `target`, infinite if it never does."""
    numbers = _as_floats(target, singular_value, variance, start)
    return _shallow_time_to(*numbers) if depth == 1 else _deep_time_to(*numbers, Clock.of(depth, numbers[0].dtype))


@compiled
def _shallow_time_to(target: Grid, s: Grid, variance: Grid, start: Grid) -> Grid:
    delta, is_ahead = _pace(target - start, s - variance * target)
    return _or_never(delta * log_mean(variance * delta), is_ahead, target == start)


@compiled
def _deep_time_to(target: Grid, s: Grid, variance: Grid, start: Grid, clock: Clock) -> Grid:
    s = jnp.where(start < 0, -s, s)
    size = jnp.where(start == 0, 1.0, jnp.abs(start))
    has_same_sign = target * jnp.sign(start) > 0
    end, w = jnp.where(has_same_sign, jnp.abs(target), size), variance * size
    ratio, largest = end / size, jnp.finfo(end.dtype).max
    # A ratio near 1 loses digits of ρ − 1; one that overflows or underflows still has a finite logarithm.
    is_near, is_number = jnp.abs(ratio - 1) < 0.5, (ratio > 1 / largest) & (ratio < largest)
    rise = jnp.where(is_near, (jnp.where(is_near, end, size) - size) / size, 0.0)
    log_rho = jnp.where(is_number, jnp.log(jnp.where(is_number, ratio, 1.0)), jnp.log(end) - jnp.log(size))
    log_rho = jnp.where(is_near, jnp.log1p(rise), log_rho)
    pull = s - variance * end
    delta, is_ahead = _pace(jnp.where(is_near, rise, jnp.minimum(ratio, largest) - 1), pull)
    lag = jnp.log1p(_pace(variance * (end - size), pull)[0])
    theta = _two_layer_time_to(log_rho, lag, delta, s)
    time = elapsed_time(theta, s, w, clock, (log_rho, lag)) / (clock.factor * size**clock.m)
    return _or_never(time, is_ahead & has_same_sign, target == start)


def _or_never(time: Grid, is_ahead: Fact, is_there: Fact) -> Grid:
    return jnp.where(is_ahead, time, jnp.where(is_there, 0.0, jnp.inf))


def escape_time(singular_value: float, start: Float[np.ndarray, "*grid"], depth: int) -> Float[np.ndarray, "*grid"]:
    """The time, to leading order in a small start, that a chain of D ≥ 3 layers spends near the saddle at zero.

    It is a₀^(2/D − 1)/((D − 2) s), at which a chain without input variance blows up [derived].
    """
    return start ** (2 / depth - 1) / ((depth - 2) * singular_value)


def approach_exponents(singular_values: Float[np.ndarray, " mode"]) -> Float[np.ndarray, " saddle"]:
    """The power of the initial strength a with which two layers come near the saddle of modes 1 … k, one for each k.

    It is (s_k − s_{k+1})/(s_k + s_{k+1}): mode k tends to its target as a⁻¹ e^(−2 s_k t) while mode k + 1 leaves zero
    as a e^(2 s_{k+1} t), and the distance is smallest where both are equal [derived].
    """
    return (singular_values[:-1] - singular_values[1:]) / (singular_values[:-1] + singular_values[1:])


def field(
    a: ArrayLike, singular_value: ArrayLike, variance: ArrayLike, depth: int | float
) -> Float[AnyArray, "*shape"]:
    """Speed da/dt of the mode."""
    a, s, variance = _as_floats(a, singular_value, variance)
    clock = Clock.of(depth, a.dtype)
    pull = clock.factor * (s - variance * a)
    return pull if depth == 1 else jnp.abs(a) ** (1 + clock.m) * pull


def _as_floats(*values: ArrayLike) -> tuple[Grid, ...]:
    dtype = jnp.result_type(float, *values)
    return tuple(jnp.broadcast_arrays(*(jnp.asarray(value, dtype) for value in values)))


def _pace(step: Grid, pull: Grid) -> tuple[Grid, Fact]:
    """The ratio step/pull where the pull has the sign of the step, else zero; and whether it has."""
    is_ahead = (pull != 0) & ((step == 0) | (jnp.sign(step) == jnp.sign(pull)))
    return jnp.where(is_ahead, step, 0.0) / jnp.where(is_ahead, pull, 1.0), is_ahead


def _two_layer_time_to(log_rho: Grid, lag: Grid, delta: Grid, s: Grid) -> Grid:
    """The inverse θ of `growth`, with delta = (ρ − 1)/(s − wρ) and lag = log(1 + w delta)."""
    # log(1 + s delta) loses the digits of a small ρ, and a large one overflows; log(ρ) + lag keeps them.
    is_far = (s * delta < -0.5) | (log_rho > _FAR)
    to_far = (log_rho + lag) / jnp.where(is_far, s, 1.0)
    return jnp.where(is_far, to_far, delta * log_mean(jnp.where(is_far, 0.0, s * delta)))
