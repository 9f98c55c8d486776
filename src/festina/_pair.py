"""Two scalar layers in a row, of any balance, and a part of the last one that meets no target.

    dw₁/dt = w₂ (s − λ w₁ w₂) − λ w₁ |u|²,      dw₂/dt = w₁ (s − λ w₁ w₂),      du/dt = −λ w₁² u,

and c = w₂² + |u|² − w₁² is conserved. Without u this is one mode of a two-layer linear network; with it, a network
with one hidden unit and several outputs, seen along its target. It is the λ-balanced solution of `_riccati` for one
input and one hidden unit, in a form that is stable for every c, 0 included, and for inputs without variance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from ._linalg import ROUNDING

NEAR = 0.25  # below this the series of (1 − e^(−x))/x is exact to rounding, with its slope
TERMS = 14


class Basis(NamedTuple):
    """The eigenvectors of the linear part, (smaller, larger) and (−larger, smaller), and the start in them."""

    slope: Any  # λc/2
    rate: Any  # √(s² + (λc/2)²)
    gap: Any  # rate − slope
    smaller: Any
    larger: Any
    learned: Any
    forgotten: Any


def weights(times: Any, singular_value: Any, variance: Any, first: Any, last: Any) -> tuple[Any, Any]:
    """w₁ and w₂ at `times`, without u; all arguments broadcast against each other."""
    begun = basis(singular_value, variance, first, last)
    fastest = jnp.where(begun.learned == 0, 0.0, begun.rate)
    return _scaled(times, variance, begun, fastest, jnp.exp(-2 * fastest * times), 0.0)[:2]


def beside_idle(
    times: Any, singular_value: Any, variance: Any, first: Any, last: Any, idle: Any
) -> tuple[Any, Any, Any]:
    """w₁, w₂ and u/u(0) at `times`; `idle` is |u(0)|². All arguments broadcast against each other."""
    begun = basis(singular_value, variance, first, last, idle)
    slope, lost, carried = begun.slope, begun.learned == 0, (jnp.asarray(idle) > 0) & (begun.slope >= 0)
    fastest = jnp.where(lost, jnp.where(carried, slope, 0.0), begun.rate)
    falls = jnp.where(lost, jnp.where(carried, 0.0, jnp.maximum(-slope, 0.0)), begun.gap)
    kept, decay = jnp.exp(-falls * times), jnp.exp(-2 * fastest * times)
    # ∫e^(2 slope t) dt over e^(2 fastest t), for either sign of the slope: the two decays differ by e^(2 slope t).
    slower, faster = jnp.where(slope < 0, decay, kept**2), jnp.where(slope < 0, kept**2, decay)
    spent = times * _mean(2 * jnp.where(slope < 0, -slope, slope) * times, slower, slower - faster)
    first, last, norm = _scaled(times, variance, begun, fastest, decay, idle * spent)
    return first, last, kept / norm


def _scaled(times: Any, variance: Any, begun: Basis, fastest: Any, decay: Any, idle: Any) -> tuple[Any, Any, Any]:
    """w₁, w₂ and the common denominator, with e^(fastest t) divided out of all; `decay` is e^(−2 fastest t).

    So nothing overflows: the learned part grows fastest, then the idle one; where there is neither, nothing grows.
    """
    _, rate, _, smaller, larger, learned, forgotten = begun
    gone = jnp.exp(-2 * rate * times)
    spent = times * _mean(2 * rate * times, 1.0, 1 - gone)
    norm = jnp.sqrt(decay + variance * ((learned**2 + forgotten**2 * decay) * spent + idle))
    # Where something is learned, `fastest` is the rate itself.
    fallen = jnp.where(learned == 0, jnp.exp(-(rate + fastest) * times), gone)
    growing, falling = learned / norm, forgotten * fallen / norm
    return smaller * growing - larger * falling, larger * growing + smaller * falling, norm


def basis(singular_value: Any, variance: Any, first: Any, last: Any, idle: Any = 0.0) -> Basis:
    """The eigenvectors and the start in them; `learned` is exactly 0 for a start that never leaves the saddle."""
    first, last = jnp.asarray(first), jnp.asarray(last)
    total, difference = last + first, last - first  # c = their product: nothing cancels as it goes to 0
    slope = variance * (total * difference + idle) / 2
    # Where both vanish, the limit from s = 0: it has the right derivative with respect to the slope.
    still = (singular_value == 0) & (slope == 0)
    rate = jnp.where(still, slope, jnp.hypot(jnp.where(still, 1.0, singular_value), slope))
    falls = slope < 0
    longer = rate + jnp.where(falls, -slope, slope)
    gap = jnp.where(falls, longer, singular_value**2 / jnp.where(still, 1.0, longer))
    # Neither these nor their derivatives cancel, however far c is from 0.
    small = singular_value / jnp.sqrt(jnp.where(still, 1.0, 2 * rate * longer))
    large = jnp.sqrt(1 - small**2)
    smaller, larger = jnp.where(falls, large, small), jnp.where(falls, small, large)
    # Where a sum nearly cancels, as for opposite layers, sum and difference of the layers keep the digits.
    even = (smaller + larger) / 2
    odd = jnp.where(still, 0.5, slope / jnp.where(still, 1.0, 4 * rate * even))
    size = smaller * jnp.abs(first) + larger * jnp.abs(last)
    learned = _sum(smaller * first, larger * last, even * total + odd * difference)
    learned = jnp.where(jnp.abs(learned) > ROUNDING * size, learned, 0.0)
    forgotten = _sum(smaller * last, -larger * first, even * difference - odd * total)
    return Basis(slope, rate, gap, smaller, larger, learned, forgotten)


def _sum(one: Any, other: Any, same: Any) -> Any:
    """one + other, unless they nearly cancel: then `same`."""
    direct = one + other
    return jnp.where(2 * jnp.abs(direct) >= jnp.abs(one) + jnp.abs(other), direct, same)


def mean_decay(exponent: Any) -> Any:
    """(1 − e^(−x))/x: the mean of e^(−y) over 0 < y < x; smooth at 0."""
    return _mean(exponent, 1.0, -jnp.expm1(-exponent))


def _mean(exponent: Any, first: Any, spent: Any) -> Any:
    """The same for a decay from `first`, of which `spent` = first·(1 − e^(−x)) is gone, up to rounding."""
    near = jnp.abs(exponent) < NEAR
    small, series = jnp.where(near, exponent, 0.0), 1.0
    for term in range(TERMS, 1, -1):
        series = 1 - small * (series / term)
    return jnp.where(near, first * series, spent / jnp.where(near, 1.0, exponent))


def field(singular_value: Any, variance: Any, first: Any, last: Any) -> tuple[Any, Any]:
    """dw₁/dt and dw₂/dt, without u."""
    error = singular_value - variance * first * last
    return last * error, first * error
