"""Two scalar layers in series, of any balance, and a component of the last one that has no target.

    dw₁/dt = w₂ (s − λ w₁ w₂) − λ w₁ |u|²,      dw₂/dt = w₁ (s − λ w₁ w₂),      du/dt = −λ w₁² u,

and c = w₂² + |u|² − w₁² is conserved. Without u this is one mode of a two-layer linear network; with u it is a network
with one hidden unit and several outputs, where w₂ is the component along the target. It is the balanced solution of
`balanced_flow` for one input and one hidden unit, in a form that is stable for every c, 0 included, and for inputs
without variance.

Symbols: w₁ and w₂, the layers (`first` and `last`); u, the part of the last layer orthogonal to the target (`idle` is
|u|² at time 0); s, singular value of Σʸˣ; λ, input variance; c, balance; ρ = √(s² + (λc/2)²), `rate`; v₊ and v₋, the
eigenvectors of the linear part; k₊ and k₋, the start along them.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from .._foundation.arrays import Numbers
from .modes import ROUNDING

NEAR = 0.5  # below this the fraction for tanh(x/2) is exact to rounding, with its slope


class Basis(NamedTuple):
    """The eigenvectors v₊ = (smaller, larger) and v₋ = (−larger, smaller) of the linear part, and the start in them."""

    slope: Numbers  # λc/2
    rate: Numbers  # ρ
    gap: Numbers  # ρ − λc/2
    smaller: Numbers
    larger: Numbers
    learned: Numbers  # k₊
    forgotten: Numbers  # k₋


def weights(
    times: Numbers, singular_value: Numbers, variance: Numbers, first: Numbers, last: Numbers
) -> tuple[Numbers, Numbers]:
    """w₁ and w₂ at `times`, without u; all arguments broadcast against each other."""
    start = basis(singular_value, variance, first, last)
    lost = start.learned == 0
    fallen = jnp.exp(-jnp.where(lost, 1, 2) * start.rate * times)
    return _scaled(times, variance, start, jnp.where(lost, 1.0, fallen), fallen, 0.0)[:2]


def beside_idle(
    times: Numbers, singular_value: Numbers, variance: Numbers, first: Numbers, last: Numbers, idle: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """w₁, w₂ and u/u(0) at `times`; `idle` is |u(0)|². All arguments broadcast against each other.

    The fastest exponential is divided out of all three, so that nothing overflows: that of the learned part if there
    is one, otherwise that of the idle part; if there is neither, nothing grows. Two exponentials of time are enough.
    """
    start = basis(singular_value, variance, first, last, idle)
    slope, rate, lost = start.slope, start.rate, start.learned == 0
    carried = lost & (jnp.asarray(idle) > 0) & (slope >= 0)
    resting = lost & ~carried
    # The fastest rate is ρ; if k₊ = 0 it is the slope where that is positive and something idle grows with it, else 0.
    one = jnp.exp(-jnp.where(carried, 2 * slope, jnp.where(lost, rate, 2 * rate)) * times)
    falls = jnp.where(lost, jnp.maximum(-slope, 0.0), start.gap)
    other = jnp.exp(-jnp.where(carried, rate + slope, falls) * times)
    decay, fallen, kept = jnp.where(resting, 1.0, one), jnp.where(carried, other, one), jnp.where(carried, 1.0, other)
    # ∫e^(2 slope t) dt over e^(2 fastest t): the two decays differ by e^(2 slope t).
    grown = _integral(times, 2 * slope, kept * kept, decay)
    first, last, shrunk = _scaled(times, variance, start, decay, fallen, idle * grown)
    return first, last, kept * shrunk


def _scaled(
    times: Numbers, variance: Numbers, start: Basis, decay: Numbers, fallen: Numbers, idle: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """w₁, w₂ and one over their common denominator; `decay` is e^(−2 fastest t), `fallen` e^(−(ρ + fastest) t)."""
    _, rate, _, smaller, larger, learned, forgotten = start
    # Where something is learned, the fastest rate is ρ, and both are e^(−2ρt).
    up, down = learned**2, forgotten**2
    grown = _integral(times, 2 * rate, up + down * decay, up * decay + down * fallen * fallen)
    shrunk = 1 / jnp.sqrt(decay + variance * (grown + idle))
    first, last = learned * shrunk, forgotten * fallen * shrunk
    return smaller * first - larger * last, larger * first + smaller * last, shrunk


def basis(singular_value: Numbers, variance: Numbers, first: Numbers, last: Numbers, idle: Numbers = 0.0) -> Basis:
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


def _sum(terms: tuple[Numbers, Numbers], same: tuple[Numbers, Numbers]) -> Numbers:
    """The sum of `terms`; where these nearly cancel, that of `same`, terms with the same sum, if they are smaller."""
    direct, other = sum(terms), sum(same)
    size, other_size = (jnp.abs(pair[0]) + jnp.abs(pair[1]) for pair in (terms, same))
    return jnp.where((2 * jnp.abs(direct) >= size) | (size <= other_size), direct, other)


def mean_decay(exponent: Numbers) -> Numbers:
    """(1 − e^(−x))/x: the mean of e^(−y) over 0 < y < x; smooth at 0."""
    return _integral(1.0, exponent, 1.0, jnp.exp(-exponent))


def _integral(times: Numbers, rate: Numbers, more: Numbers, less: Numbers) -> Numbers:
    """(more − less)/rate, where less = more·e^(−rate t) up to rounding: the integral of such a decay."""
    exponent = rate * times
    near = jnp.abs(exponent) < NEAR
    # Where the difference would cancel: with the mean of both, and tanh(x/2)/(x/2) by Lambert's fraction.
    square = jnp.where(near, exponent * exponent / 4, 0.0)
    slowing = (10395 + square * (1260 + 21 * square)) / (10395 + square * (4725 + square * (210 + square)))
    # Slopes divide by the square of the rate. Its inverse is one division for all times.
    still = jnp.abs(rate) < jnp.finfo(jnp.result_type(float)).tiny ** 0.5
    return jnp.where(near, times * (more + less) / 2 * slowing, (more - less) * (1 / jnp.where(still, 1.0, rate)))


def field(singular_value: Numbers, variance: Numbers, first: Numbers, last: Numbers) -> tuple[Numbers, Numbers]:
    """dw₁/dt and dw₂/dt, without u."""
    error = singular_value - variance * first * last
    return last * error, first * error


def alignment_rate(size: Numbers, imbalance: Numbers) -> Numbers:
    """The rate ½(√(4r² + δ²) + δ) at which the cotangent of the angle between w and the target β* grows at late times.

    The network is the transpose of that with u: a linear neuron f(x) = a w·x on white inputs, with r = |β*| = `size`
    and δ = a² − |w|² = `imbalance`.
    """
    return ((4 * size**2 + imbalance**2) ** 0.5 + imbalance) / 2
