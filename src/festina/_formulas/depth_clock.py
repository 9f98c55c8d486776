"""A change of time after which a mode of a deep linear network follows the two-layer curve [derived].

In a chain of D layers the strength a of a mode obeys da/dt = c |a|^(1+m) (s − λ a), with m = 1 − 2/D and c = D, or
m = c = 1 at infinite depth. With T = c |a₀|^m t, ρ = a/a₀ and w = λ |a₀|,

    ρ = 1 / (e^(−sθ) + w Φ(θ, s)),     dT = ρ^(−m) dθ,     Φ(θ, s) = (1 − e^(−sθ))/s,

so that T(θ) and its inverse are needed. With z = w ρ/s = a/a*, whose initial value is z₀,

    dT = z₀^m z^(−1−m) / (s (1 − z)) dz               [jarvis2025, A.1] at m = 0

splits into three zones, which join at z = 1/2 and z = 2 (for s < 0, at z = −1):

    saddle   s T = [ (1 − ρ^−m)/m + z₀ (ρ^(1−m) − 1)/(1−m) + z² ρ^−m K(1−m, z) ]
    target   s T = z₀^m [ −ln|1 − z| + ∫ (1 − z^(−1−m))/(1 − 1/z) d ln z ]
    far      w T = [ ρ^(−1−m) K(m, 1/z) ]
    K(k, x)  = ∫ u^k / (1 − x u) du over u from 0 to 1

each between its two ends. K and the integrals are Gauss sums, exact to rounding in their zone.
The saddle zone contains λ = 0 and the far zone s = 0, so neither limit is a special case.

Symbols: a, a₀, s, λ and D as in `mode_at_depth`; a* = s/λ, the target; T, time on the clock (`elapsed`); θ, time on the
two-layer curve (`theta`); ρ, growth since the start (`rho`); lag = sθ − ln ρ, the delay against exponential growth.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Bool, Float, Int
from scipy.special import roots_jacobi

from .._foundation.arrays import AnyArray, Number, Numbers

Grid: TypeAlias = Float[AnyArray, "*grid"]
Rule: TypeAlias = tuple[Float[AnyArray, " node"], Float[AnyArray, " node"]]  # nodes and weights of a Gauss sum

_NODES = 14  # in every use the nearest singularity makes the error 6^(−2 nodes) or less
_BISECTIONS = 24  # then Newton's method converges
_ITERATIONS = 30


class Clock(NamedTuple):
    """The clock dT = c |a₀|^m dt of a depth, with the Gauss rules of the kernels K(1−m, ·) and K(m, ·).

    These are numbers, not structure: all depths share one compilation.
    """

    factor: Number  # c
    m: Number
    saddle_rule: Rule
    far_rule: Rule

    @classmethod
    def of(cls, depth: int | float, dtype: np.dtype) -> Clock:
        if depth < 1:
            raise ValueError(f"depth must be 1, 2, 3, ... or math.inf, got {depth!r}")
        factor, m = (1.0, 1.0) if depth == math.inf else (float(depth), 1 - 2 / depth)
        numbers = cls(factor, m, _gauss_rule(1 - m), _gauss_rule(max(m, 0.0)))
        return jax.tree.map(lambda number: jnp.asarray(number, dtype), numbers)


def growth(theta: Grid, s: Grid, w: Grid) -> Grid:
    """The two-layer curve ρ(θ) = a/a₀."""
    # For s < 0 multiplied through by e^(sθ), so nothing overflows.
    forward = jnp.exp(-jnp.where(s < 0, 0.0, s) * theta)
    backward = jnp.exp(jnp.where(s < 0, s, 0.0) * theta)
    return backward / (forward + w * saturating_time(theta, jnp.where(s < 0, -s, s)))


def saturating_time(t: Numbers, rate: Numbers) -> Float[AnyArray, "*shape"]:
    """Φ(t, rate) = (1 − e^(−rate t))/rate, also at rate = 0."""
    x = rate * t
    is_small = jnp.abs(x) < 0.5
    small = jnp.where(is_small, x, 0.0)
    series = functools.reduce(lambda total, n: 1 - small / n * total, range(17, 1, -1), 1.0)
    safe_rate = jnp.where(is_small, 1.0, rate)
    # Not expm1: its derivative is expm1 + 1, which loses the digits of a small exponential.
    return jnp.where(is_small, t * series, (1 - jnp.exp(-safe_rate * t)) / safe_rate)


def log_mean(x: Grid) -> Grid:
    """log(1 + x)/x, also at x = 0."""
    is_small = jnp.abs(x) < 0.5
    small, large = jnp.where(is_small, x, 0.0), jnp.where(is_small, 1.0, x)
    return jnp.where(
        is_small, _gauss_sum(lambda u: 1 / (1 + small * u), _plain_rule(x.dtype)), jnp.log1p(large) / large
    )


def two_layer_time(elapsed: Grid, s: Grid, w: Grid, clock: Clock) -> Grid:
    """The inverse of `elapsed_time`: θ after the time T, with exact derivatives of every order."""

    def residual(theta: Grid) -> Grid:
        return elapsed_time(theta, s, w, clock) - elapsed

    def step(index: Int[AnyArray, ""], state: tuple[Grid, Grid, Grid]) -> tuple[Grid, Grid, Grid]:
        theta, lower, upper = state
        value = residual(theta)
        lower, upper = jnp.where(value < 0, theta, lower), jnp.where(value < 0, upper, theta)
        newton = theta - value * growth(theta, s, w) ** clock.m
        # The geometric mean first, as the bracket spans many decades.
        middle = jnp.sqrt(lower) * jnp.sqrt(upper)
        guess = jnp.where(index < _BISECTIONS, middle, newton)
        return jnp.clip(guess, lower, upper), lower, upper

    def solve(_: object, guess: Grid) -> Grid:
        return lax.fori_loop(0, _ITERATIONS, step, (guess, *_bracket(elapsed, s, w, clock.m)))[0]

    return lax.custom_root(residual, elapsed, solve, lambda slope, y: y / slope(jnp.ones_like(y)))


def _bracket(elapsed: Grid, s: Grid, w: Grid, m: Number) -> tuple[Grid, Grid]:
    """Bounds on θ: θ/T is the mean of ρ^m, which starts at 1 and is monotone."""
    drift = m * (s - w) * elapsed
    at_first_pull = jnp.where(drift < 1, 1 / (1 - drift), jnp.inf)
    at_target = jnp.where(s > w, (s / w) ** m, jnp.inf)
    bound = elapsed * jnp.minimum(at_first_pull, at_target)
    return jnp.minimum(elapsed, bound), jnp.maximum(elapsed, bound)


def elapsed_time(theta: Grid, s: Grid, w: Grid, clock: Clock, end: tuple[Grid, Grid] | None = None) -> Grid:
    """T(θ), the integral of ρ^(−m); `end` is ln ρ and the lag there, if they are known."""
    if end is None:
        rho = growth(theta, s, w)
        log_rho = jnp.log(jnp.maximum(rho, jnp.finfo(rho.dtype).tiny))
        lag = s * theta - log_rho
    else:
        log_rho, lag = end
    is_short = (jnp.abs(s) + w) * theta <= 1
    short = jnp.where(is_short, theta, 0.0)
    # Over a short path the zones would cancel; the mean of the integrand keeps all digits.
    directly = short * _gauss_sum(lambda u: growth(short * u, s, w) ** -clock.m, _plain_rule(short.dtype))
    long = _choose(~is_short, (log_rho, 1), (lag, 0), (s, 1), (w, 0))
    return jnp.where(is_short, directly, _elapsed_through_zones(clock, *long))


def _elapsed_through_zones(clock: Clock, end: Grid, lag: Grid, s: Grid, w: Grid) -> Grid:
    """T as a sum over the zones on the path of ln ρ from 0 to its end."""
    # The sum does not depend on where the zones join, so the borders need no derivative.
    target = lax.stop_gradient(jnp.log(jnp.abs(s)) - jnp.log(w))
    half_width = jnp.where(s > 0, math.log(2), 0.0)
    low, high = target - half_width, target + half_width
    is_in_saddle = jnp.minimum(end, 0.0) < low
    is_in_target = (s > 0) & (low <= end) & (end <= high)
    is_in_far = jnp.maximum(end, 0.0) > high
    # An empty zone computes with harmless numbers: no NaN enters its derivative.
    saddle = _choose(is_in_saddle, (jnp.minimum(0.0, low), 0), (jnp.minimum(end, low), 0), (s, 1), (w, 0))
    near = _choose(is_in_target, (jnp.clip(0.0, low, high), 0), (end, 0), (s, 1), (w, 1), (lag, 0))
    far = _choose(is_in_far, (jnp.maximum(0.0, high), 0), (jnp.maximum(end, high), 0), (s, 0), (w, 1))
    return _saddle_time(clock, *saddle) + _target_time(clock.m, *near) + _far_time(clock, *far)


def _choose(condition: Bool[AnyArray, "*grid"], *pairs: tuple[Grid, int | float]) -> list[Grid]:
    """The first of each pair where the condition holds, else the second."""
    return [jnp.where(condition, first, second) for first, second in pairs]


def _saddle_time(clock: Clock, first: Grid, last: Grid, s: Grid, w: Grid) -> Grid:
    """T from ln ρ = first to last, where |z| is small."""
    m, kernel = clock.m, functools.partial(_kernel, clock.saddle_rule)
    z, length = w / s * jnp.exp(first), last - first
    # The growth is applied in three factors: alone it may overflow although its product with the small z does not.
    part, decay = jnp.exp(length / 3), jnp.exp(-m * length)
    z_last = z * part * part * part
    powers = saturating_time(length, m) + z_last * decay * saturating_time(length, 1 - m)
    return jnp.exp(-m * first) / s * (powers + z_last**2 * decay * kernel(z_last) - z**2 * kernel(z))


def _far_time(clock: Clock, first: Grid, last: Grid, s: Grid, w: Grid) -> Grid:
    """T from ln ρ = first to last, where |z| is large."""
    m, kernel = clock.m, functools.partial(_kernel, clock.far_rule)
    x, length = s / w * jnp.exp(-first), last - first
    tail = jnp.exp(-(1 + m) * length) * kernel(x * jnp.exp(-length)) - kernel(x)
    return jnp.exp(-(1 + m) * first) / w * tail


def _target_time(m: Number, first: Grid, last: Grid, s: Grid, w: Grid, lag: Grid) -> Grid:
    """T from ln ρ = first to last, where z is between 1/2 and 2, or at the target z = 1."""
    z0 = w / s
    border, start = _choose(first != 0, (z0 * jnp.exp(first), 0.5), (z0, 0.5))
    # (1 − z)/(1 − z₀) = ρ e^(−sθ) = e^(−lag) exactly, so z = 1 is never rounded to.
    logarithm = jnp.log(jnp.abs((1 - border) / (1 - start))) + lag
    length = last - first

    def smooth(u: Number) -> Grid:
        log_z = jnp.log(z0) + first + length * u
        return saturating_time(1 + m, log_z) / saturating_time(1.0, log_z)

    return z0**m / s * (logarithm + length * _gauss_sum(smooth, _plain_rule(z0.dtype)))


def _kernel(rule: Rule, x: Grid) -> Grid:
    """K(k, x) for −1 <= x <= 1/2, by the Gauss rule of k."""
    return _gauss_sum(lambda u: 1 / (1 - x * u), rule)


def _gauss_sum(function: Callable[[Number], Grid], rule: Rule) -> Float[AnyArray, "*shape"]:
    """Integral of u^k function(u) over u from 0 to 1, by the Gauss rule of k."""
    return jax.vmap(lambda u, weight: weight * function(u))(*rule).sum(0)


def _plain_rule(dtype: np.dtype) -> Rule:
    """The Gauss rule of k = 0."""
    nodes, weights = _gauss_rule(0.0)
    return jnp.asarray(nodes, dtype), jnp.asarray(weights, dtype)


@functools.cache
def _gauss_rule(k: float) -> tuple[Float[np.ndarray, " node"], Float[np.ndarray, " node"]]:
    nodes, weights = roots_jacobi(_NODES, 0.0, k)
    return (1 + nodes) / 2, weights / 2 ** (1 + k)
