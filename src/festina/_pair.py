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

NEAR = 0.5  # below this the fraction for tanh(x/2) is exact to rounding, with its slope


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
    lost = begun.learned == 0
    fallen = jnp.exp(-jnp.where(lost, 1, 2) * begun.rate * times)
    return _scaled(times, variance, begun, jnp.where(lost, 1.0, fallen), fallen, 0.0)[:2]


def beside_idle(
    times: Any, singular_value: Any, variance: Any, first: Any, last: Any, idle: Any
) -> tuple[Any, Any, Any]:
    """w₁, w₂ and u/u(0) at `times`; `idle` is |u(0)|². All arguments broadcast against each other.

    With e^(fastest t) divided out of all, so that nothing overflows: the learned part grows fastest, then the idle
    one; where there is neither, nothing grows. Two exponentials of time do for all three.
    """
    begun = basis(singular_value, variance, first, last, idle)
    slope, rate, lost = begun.slope, begun.rate, begun.learned == 0
    carried = lost & (jnp.asarray(idle) > 0) & (slope >= 0)
    resting = lost & ~carried
    # `fastest` is the rate, or, of what is lost, the slope if there is something idle that it carries, or else 0.
    one = jnp.exp(-jnp.where(carried, 2 * slope, jnp.where(lost, rate, 2 * rate)) * times)
    falls = jnp.where(lost, jnp.maximum(-slope, 0.0), begun.gap)
    other = jnp.exp(-jnp.where(carried, rate + slope, falls) * times)
    decay, fallen, kept = jnp.where(resting, 1.0, one), jnp.where(carried, other, one), jnp.where(carried, 1.0, other)
    # ∫e^(2 slope t) dt over e^(2 fastest t): the two decays differ by e^(2 slope t).
    grown = _integral(times, 2 * slope, kept * kept, decay)
    first, last, shrunk = _scaled(times, variance, begun, decay, fallen, idle * grown)
    return first, last, kept * shrunk


def _scaled(times: Any, variance: Any, begun: Basis, decay: Any, fallen: Any, idle: Any) -> tuple[Any, Any, Any]:
    """w₁, w₂ and one over their common denominator; `decay` is e^(−2 fastest t), `fallen` e^(−(rate + fastest) t)."""
    _, rate, _, smaller, larger, learned, forgotten = begun
    # Where something is learned, `fastest` is the rate, and both are e^(−2 rate t).
    up, down = learned**2, forgotten**2
    grown = _integral(times, 2 * rate, up + down * decay, up * decay + down * fallen * fallen)
    shrunk = 1 / jnp.sqrt(decay + variance * (grown + idle))
    first, last = learned * shrunk, forgotten * fallen * shrunk
    return smaller * first - larger * last, larger * first + smaller * last, shrunk


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
    learned = _sum((smaller * first, larger * last), (even * total, odd * difference))
    learned = jnp.where(jnp.abs(learned) > ROUNDING * size, learned, 0.0)
    forgotten = _sum((smaller * last, -larger * first), (even * difference, -odd * total))
    return Basis(slope, rate, gap, smaller, larger, learned, forgotten)


def _sum(terms: tuple[Any, Any], same: tuple[Any, Any]) -> Any:
    """The sum of two terms, unless they nearly cancel: then of others with the same sum, if these are smaller."""
    direct, other = sum(terms), sum(same)
    size, other_size = (jnp.abs(one[0]) + jnp.abs(one[1]) for one in (terms, same))
    return jnp.where((2 * jnp.abs(direct) >= size) | (size <= other_size), direct, other)


def mean_decay(exponent: Any) -> Any:
    """(1 − e^(−x))/x: the mean of e^(−y) over 0 < y < x; smooth at 0."""
    return _integral(1.0, exponent, 1.0, jnp.exp(-exponent))


def _integral(times: Any, rate: Any, more: Any, less: Any) -> Any:
    """(more − less)/rate, where less = more·e^(−rate t) up to rounding: the integral of such a decay."""
    exponent = rate * times
    near = jnp.abs(exponent) < NEAR
    # Where the difference would cancel: with the mean of both, and tanh(x/2)/(x/2) by Lambert's fraction.
    square = jnp.where(near, exponent * exponent / 4, 0.0)
    slowing = (10395 + square * (1260 + 21 * square)) / (10395 + square * (4725 + square * (210 + square)))
    # Slopes divide by the square of the rate. Its inverse is one division for all times.
    still = jnp.abs(rate) < jnp.finfo(jnp.result_type(float)).tiny ** 0.5
    return jnp.where(near, times * (more + less) / 2 * slowing, (more - less) * (1 / jnp.where(still, 1.0, rate)))


def field(singular_value: Any, variance: Any, first: Any, last: Any) -> tuple[Any, Any]:
    """dw₁/dt and dw₂/dt, without u."""
    error = singular_value - variance * first * last
    return last * error, first * error
