"""One mode of a balanced deep linear network, in closed form, at every depth.

A chain of D equal layers with product a learns by

    da/dt = D |a|^(2-2/D) (s - v a)                 [slides, "Analytic learning trajectory"]
    da/dt = a^2 (s - v a),  t in units of tau/D     depth infinity

The two explicit depths, with Phi(t, r) = (1 - e^(-r t)) / r, which is t at r = 0:

    D = 1    a = a0 e^(-vt) + s Phi(t, v)           [slides, "Analytic learning trajectory"]
    D = 2    a = a0 / (e^(-2st) + v a0 Phi(2t, s))  [jarvis2025, eq. 7]

Every deeper chain is the two-layer curve read on another clock [derived]. With m = 1 - 2/D
and c = D (m = c = 1 at infinity), T = c |a0|^m t, rho = a/a0 and w = v |a0|:

    rho = 1 / (e^(-s theta) + w Phi(theta, s)),     dT = rho^(-m) d theta

so T(theta) is needed, and its inverse. With z = w rho / s = a / a*, and z0 at the start,

    dT = z0^m z^(-1-m) / (s (1 - z)) dz             [jarvis2025, A.1] at m = 0

splits into three zones, which join at z = 1/2 and z = 2 (for s < 0, at z = -1):

    saddle   s T = [ (1 - rho^-m)/m + z0 (rho^(1-m) - 1)/(1-m) + z^2 rho^-m K(1-m, z) ]
    target   s T = z0^m [ -ln|1 - z| + integral (1 - z^(-1-m))/(1 - 1/z) d ln z ]
    far      w T = [ rho^(-1-m) K(m, 1/z) ]
    K(k, x)  = integral over u from 0 to 1 of u^k / (1 - x u)

each between its two ends. K and the integrals are Gauss sums, exact to rounding in their zone.
The saddle zone contains v = 0 and the far zone s = 0, so neither limit is a special case.

Corrected: at D = 1 the slides print e^(-t), which is e^(-v t). Their "Deep (D >= 3)" curve is
the limit of infinite depth and its exponent lacks s^2/v; at D = 10 the curve of D = 10 is meant.
[jarvis2025, eq. 7] needs a0 > 0; a balanced chain with a0 < 0 < s decays to the saddle at zero.
[jarvis2025, A.1] lets v move the end point only; it sets the time course too.

Symbols:
    a   strength of the mode, the product of the layers; a0 at the start, a* = s/v its target
    s   singular value of the input-output correlation, of any sign
    v   input variance of the mode, never negative
    D   depth, an integer or math.inf
    t   time, never negative

Convention:
    tau = 1, and the loss is the mean over samples of half the squared error. At infinite depth
    time is t' = D t. By the symmetry (a, s) -> (-a, -s) all formulas are for a0 > 0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Bool, Float
from scipy.special import roots_jacobi

Number = Float[Array, "..."]
Fact = Bool[Array, "..."]

_NODES = 14  # in every use the nearest singularity makes the error 6^(-2 nodes) or less
_BISECTIONS = 24  # then Newton's method converges
_ITERATIONS = 30
_FAR = 500.0  # logarithm of a growth that is computed from its logarithm, before it overflows


class Clock(NamedTuple):
    """The clock dT = factor |a0|^m dt of a depth, with the Gauss rules of the kernels K(1-m, .) and K(m, .).

    These are numbers, not structure: all depths share one compilation.
    """

    factor: Any
    m: Any
    saddle_rule: Any
    far_rule: Any

    @classmethod
    def of(cls, depth: int | float, dtype: Any) -> Clock:
        if depth < 1:
            raise ValueError(f"depth must be 1, 2, 3, ... or math.inf, got {depth!r}")
        factor, m = (1.0, 1.0) if depth == math.inf else (float(depth), 1 - 2 / depth)
        numbers = cls(factor, m, _gauss_rule(1 - m), _gauss_rule(max(m, 0.0)))
        return jax.tree.map(lambda number: jnp.asarray(number, dtype), numbers)


def strength(
    t: ArrayLike, singular_value: ArrayLike, variance: ArrayLike, start: ArrayLike, depth: int | float
) -> Number:
    """Strength a(t) of the mode. Infinite once a chain without input variance has blown up."""
    numbers = _as_floats(t, singular_value, variance, start)
    return (
        _shallow_strength(*numbers)
        if depth == 1
        else _deep_strength(*numbers, Clock.of(depth, numbers[0].dtype), depth == 2)
    )


@jax.jit
def _shallow_strength(t: Number, s: Number, v: Number, start: Number) -> Number:
    return start * jnp.exp(-v * t) + s * _saturating_time(t, v)


@functools.partial(jax.jit, static_argnames="is_two_layers")
def _deep_strength(t: Number, s: Number, v: Number, start: Number, clock: Clock, is_two_layers: bool) -> Number:
    s = jnp.where(start < 0, -s, s)
    # At zero nothing moves, but the clock rate |a0|^m has no derivative there.
    size = jnp.where(start == 0, 1.0, jnp.abs(start))
    w, elapsed = v * size, clock.factor * size**clock.m * t
    # Without variance a deep chain blows up at m s T = 1; two layers only outgrow the dtype.
    limits = jnp.finfo(t.dtype)
    if is_two_layers:
        has_exploded = (v == 0) & (s * elapsed + jnp.log(size) >= math.log(limits.max))
    else:
        has_exploded = (w == 0) & (clock.m * s * elapsed >= 1 - 8 * limits.eps)
    elapsed = jnp.where(has_exploded, 0.0, elapsed)
    theta = elapsed if is_two_layers else _two_layer_time(elapsed, s, w, clock)
    is_far = s * theta > _FAR
    far = jnp.exp(-jnp.where(is_far, s * theta + jnp.log(size), 0.0))
    far = jnp.sign(start) / (far + v * _saturating_time(jnp.where(is_far, theta, 0.0), s))
    near = start * _growth(jnp.where(is_far, 0.0, theta), s, w)
    moved = jnp.where(start == 0, start, jnp.where(is_far, far, near))
    return jnp.where(has_exploded & (start != 0), jnp.sign(start) * jnp.inf, moved)


def time_to(
    target: ArrayLike, singular_value: ArrayLike, variance: ArrayLike, start: ArrayLike, depth: int | float
) -> Number:
    """Time at which the strength reaches `target`, infinite if it never does."""
    numbers = _as_floats(target, singular_value, variance, start)
    return _shallow_time_to(*numbers) if depth == 1 else _deep_time_to(*numbers, Clock.of(depth, numbers[0].dtype))


@jax.jit
def _shallow_time_to(target: Number, s: Number, v: Number, start: Number) -> Number:
    delta, is_ahead = _pace(target - start, s - v * target)
    return _or_never(delta * _log_mean(v * delta), is_ahead, target == start)


@jax.jit
def _deep_time_to(target: Number, s: Number, v: Number, start: Number, clock: Clock) -> Number:
    s = jnp.where(start < 0, -s, s)
    size = jnp.where(start == 0, 1.0, jnp.abs(start))
    has_same_sign = target * jnp.sign(start) > 0
    end, w = jnp.where(has_same_sign, jnp.abs(target), size), v * size
    ratio, largest = end / size, jnp.finfo(end.dtype).max
    # Ratios that are no numbers have logarithms that are.
    is_number = (ratio > 1 / largest) & (ratio < largest)
    log_rho = jnp.where(is_number, jnp.log(jnp.where(is_number, ratio, 1.0)), jnp.log(end) - jnp.log(size))
    pull = s - v * end
    delta, is_ahead = _pace(jnp.minimum(ratio, largest) - 1, pull)
    lag = jnp.log1p(_pace(v * (end - size), pull)[0])
    theta = _two_layer_time_to(log_rho, lag, delta, s)
    time = _elapsed(theta, s, w, clock, (log_rho, lag)) / (clock.factor * size**clock.m)
    return _or_never(time, is_ahead & has_same_sign, target == start)


def _or_never(time: Number, is_ahead: Fact, is_there: Fact) -> Number:
    return jnp.where(is_ahead, time, jnp.where(is_there, 0.0, jnp.inf))


def field(a: ArrayLike, singular_value: ArrayLike, variance: ArrayLike, depth: int | float) -> Number:
    """Speed da/dt of the mode."""
    a, s, v = _as_floats(a, singular_value, variance)
    clock = Clock.of(depth, a.dtype)
    pull = clock.factor * (s - v * a)
    return pull if depth == 1 else jnp.abs(a) ** (1 + clock.m) * pull


def _as_floats(*values: ArrayLike) -> tuple[Number, ...]:
    dtype = jnp.result_type(float, *values)
    return tuple(jnp.broadcast_arrays(*(jnp.asarray(value, dtype) for value in values)))


def _growth(theta: Number, s: Number, w: Number) -> Number:
    """Two-layer curve rho(theta) = a / a0."""
    # For s < 0 multiplied through by e^(s theta), so nothing overflows.
    forward = jnp.exp(-jnp.where(s < 0, 0.0, s) * theta)
    backward = jnp.exp(jnp.where(s < 0, s, 0.0) * theta)
    return backward / (forward + w * _saturating_time(theta, jnp.where(s < 0, -s, s)))


def _saturating_time(t: Number | float, rate: Number | float) -> Number:
    """Phi(t, rate) = (1 - e^(-rate t)) / rate, also at rate = 0."""
    x = rate * t
    is_small = jnp.abs(x) < 0.5
    small = jnp.where(is_small, x, 0.0)
    series = functools.reduce(lambda total, n: 1 - small / n * total, range(17, 1, -1), 1.0)
    safe_rate = jnp.where(is_small, 1.0, rate)
    # Not expm1: its derivative is expm1 + 1, which loses the digits of a small exponential.
    return jnp.where(is_small, t * series, (1 - jnp.exp(-safe_rate * t)) / safe_rate)


def _pace(step: Number, pull: Number) -> tuple[Number, Fact]:
    """The ratio step / pull, and whether the pull leads along the step; zero where it does not."""
    is_ahead = (pull != 0) & ((step == 0) | (jnp.sign(step) == jnp.sign(pull)))
    return jnp.where(is_ahead, step, 0.0) / jnp.where(is_ahead, pull, 1.0), is_ahead


def _log_mean(x: Number) -> Number:
    """log(1 + x) / x, also at x = 0."""
    is_small = jnp.abs(x) < 0.5
    small, large = jnp.where(is_small, x, 0.0), jnp.where(is_small, 1.0, x)
    return jnp.where(
        is_small, _gauss_sum(lambda u: 1 / (1 + small * u), _plain_rule(x.dtype)), jnp.log1p(large) / large
    )


def _two_layer_time_to(log_rho: Number, lag: Number, delta: Number, s: Number) -> Number:
    """Inverse of `_growth`, with delta = (rho - 1) / (s - w rho) and lag = log(1 + w delta)."""
    # log(1 + s delta) loses the digits of a small rho, and a large one overflows; log(rho) + lag keeps them.
    is_far = (s * delta < -0.5) | (log_rho > _FAR)
    to_far = (log_rho + lag) / jnp.where(is_far, s, 1.0)
    return jnp.where(is_far, to_far, delta * _log_mean(jnp.where(is_far, 0.0, s * delta)))


def _two_layer_time(elapsed: Number, s: Number, w: Number, clock: Clock) -> Number:
    """Inverse of `_elapsed`: theta after the time T, with exact derivatives of every order."""

    def residual(theta):
        return _elapsed(theta, s, w, clock) - elapsed

    def step(index, state):
        theta, lower, upper = state
        value = residual(theta)
        lower, upper = jnp.where(value < 0, theta, lower), jnp.where(value < 0, upper, theta)
        newton = theta - value * _growth(theta, s, w) ** clock.m
        # The geometric mean first, as the bracket spans many decades.
        middle = jnp.sqrt(lower) * jnp.sqrt(upper)
        guess = jnp.where(index < _BISECTIONS, middle, newton)
        return jnp.clip(guess, lower, upper), lower, upper

    def solve(_, guess):
        return lax.fori_loop(0, _ITERATIONS, step, (guess, *_bracket(elapsed, s, w, clock.m)))[0]

    return lax.custom_root(residual, elapsed, solve, lambda slope, y: y / slope(jnp.ones_like(y)))


def _bracket(elapsed: Number, s: Number, w: Number, m: Number) -> tuple[Number, Number]:
    """Bounds on theta: theta / T is the mean of rho^m, which starts at 1 and is monotone."""
    drift = m * (s - w) * elapsed
    at_first_pull = jnp.where(drift < 1, 1 / (1 - drift), jnp.inf)
    at_target = jnp.where(s > w, (s / w) ** m, jnp.inf)
    bound = elapsed * jnp.minimum(at_first_pull, at_target)
    return jnp.minimum(elapsed, bound), jnp.maximum(elapsed, bound)


def _elapsed(theta: Number, s: Number, w: Number, clock: Clock, end: tuple[Number, Number] | None = None) -> Number:
    """T(theta), the integral of rho^(-m); `end` is log(rho) and s theta - log(rho) there, if they are known."""
    if end is None:
        rho = _growth(theta, s, w)
        log_rho = jnp.log(jnp.maximum(rho, jnp.finfo(rho.dtype).tiny))
        lag = s * theta - log_rho
    else:
        log_rho, lag = end
    is_short = (jnp.abs(s) + w) * theta <= 1
    short = jnp.where(is_short, theta, 0.0)
    # Over a short path the zones would cancel; the mean of the integrand keeps all digits.
    directly = short * _gauss_sum(lambda u: _growth(short * u, s, w) ** -clock.m, _plain_rule(short.dtype))
    long = _choose(~is_short, (log_rho, 1), (lag, 0), (s, 1), (w, 0))
    return jnp.where(is_short, directly, _elapsed_through_zones(clock, *long))


def _elapsed_through_zones(clock: Clock, end: Number, lag: Number, s: Number, w: Number) -> Number:
    """T as a sum over the zones on the path of log(rho) from 0 to its end."""
    # Where zones join does not change the sum, so it needs no derivative.
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


def _choose(condition: Fact, *pairs: tuple[Number, int | float]) -> list[Number]:
    """The first of each pair where the condition holds, else the second."""
    return [jnp.where(condition, first, second) for first, second in pairs]


def _saddle_time(clock: Clock, first: Number, last: Number, s: Number, w: Number) -> Number:
    """T from log(rho) = first to last, where |z| is small."""
    m, kernel = clock.m, functools.partial(_kernel, clock.saddle_rule)
    z, length = w / s * jnp.exp(first), last - first
    # In three parts: a power that the small z makes up for may itself be no number.
    part, decay = jnp.exp(length / 3), jnp.exp(-m * length)
    z_last = z * part * part * part
    powers = _saturating_time(length, m) + z_last * decay * _saturating_time(length, 1 - m)
    return jnp.exp(-m * first) / s * (powers + z_last**2 * decay * kernel(z_last) - z**2 * kernel(z))


def _far_time(clock: Clock, first: Number, last: Number, s: Number, w: Number) -> Number:
    """T from log(rho) = first to last, where |z| is large."""
    m, kernel = clock.m, functools.partial(_kernel, clock.far_rule)
    x, length = s / w * jnp.exp(-first), last - first
    tail = jnp.exp(-(1 + m) * length) * kernel(x * jnp.exp(-length)) - kernel(x)
    return jnp.exp(-(1 + m) * first) / w * tail


def _target_time(m: Number, first: Number, last: Number, s: Number, w: Number, lag: Number) -> Number:
    """T from log(rho) = first to last, where z is between 1/2 and 2, or at the target z = 1."""
    z0 = w / s
    border, start = _choose(first != 0, (z0 * jnp.exp(first), 0.5), (z0, 0.5))
    # (1 - z) / (1 - z0) = rho e^(-s theta) = e^(-lag) exactly, so z = 1 is never rounded to.
    logarithm = jnp.log(jnp.abs((1 - border) / (1 - start))) + lag
    length = last - first

    def smooth(u):
        log_z = jnp.log(z0) + first + length * u
        return _saturating_time(1 + m, log_z) / _saturating_time(1.0, log_z)

    return z0**m / s * (logarithm + length * _gauss_sum(smooth, _plain_rule(z0.dtype)))


def _kernel(rule: Any, x: Number) -> Number:
    """K(k, x) for -1 <= x <= 1/2, by the Gauss rule of k."""
    return _gauss_sum(lambda u: 1 / (1 - x * u), rule)


def _gauss_sum(function: Callable, rule: Any) -> Number:
    """Integral of u^k function(u) over u from 0 to 1, by the Gauss rule of k."""
    return jax.vmap(lambda u, weight: weight * function(u))(*rule).sum(0)


def _plain_rule(dtype: Any) -> Any:
    """The Gauss rule of k = 0."""
    return tuple(jnp.asarray(numbers, dtype) for numbers in _gauss_rule(0.0))


@functools.cache
def _gauss_rule(k: float) -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = roots_jacobi(_NODES, 0.0, k)
    return (1 + nodes) / 2, weights / 2 ** (1 + k)
