"""The two-point theory of one pair of points at many times, in plain numbers.

`flow.states` answers for all pairs, in all limits, with derivatives. JAX hands each call of it to another thread, which
takes longer than the arithmetic of one pair does. This module evaluates the same closed form, with the symbols of
`festina.theories.two_point`, for starts for which no sums cancel; all others are left to `states`.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from .flow import SHARP
from .pair import Curves, Pair, Start

LARGEST = 100.0  # by what a term may exceed the sum that it is part of: two digits of sixteen
RANGE = (1e-30, 1e30)  # numbers between these have products that float64 holds


def curves(ts: Float[np.ndarray, " time"], start: Start, pair: Pair) -> Curves | None:
    """H, P and w at `ts`, or None where `states` has to be used; numbers must be possible, and all but w positive."""
    (H0, P0, w0), (X, Y, τ_h, τ_y) = map(float, start), map(float, pair)
    sizes = H0, P0, X, Y, τ_h, τ_y
    if not RANGE[0] < min(sizes) <= max(sizes) < RANGE[1]:
        return None
    α, β, D = X / (2 * τ_h), 1 / (2 * τ_y), math.sqrt(Y)
    k = math.sqrt(α * β)
    p0 = min(max((P0 - w0) / D, -math.sqrt(P0)), math.sqrt(P0))
    q0 = P0 - p0 * p0
    q0 = q0 if q0 > SHARP * np.finfo(float).eps * P0 else 0.0
    ρ0, n0, m0_squared = math.sqrt(H0 / α), p0 / math.sqrt(H0 * β), q0 / (H0 * β)
    g = β / 2 * (H0 - τ_y / τ_h * X * P0 / H0)
    s = math.hypot(g, k * D)
    # cos φ and sin φ; the smaller of them would lose its digits as a cosine near π/2.
    longer = s + abs(g)
    small, large = k * D / math.sqrt(2 * s * longer), math.sqrt(longer / (2 * s))
    cos, sin = (small, large) if g < 0 else (large, small)
    a, b = ρ0 * cos + n0 * sin, n0 * cos - ρ0 * sin
    up, down, idle = (k * k * part for part in (a * a / (2 * s), b * b / (2 * s), m0_squared))
    carried = idle / (2 * g) if g else math.inf
    lost = max(
        up,
        down,
        abs(carried) if m0_squared else 0.0,
        (n0 * n0 + m0_squared) / (ρ0 * ρ0),
        abs(ρ0 / a) if a else math.inf,
    )
    if lost > LARGEST:
        return None
    F = 0.0
    with np.errstate(over="ignore", under="ignore"):
        E = np.exp(-2 * s * ts)
        decayed = 1 - E
        N = (up + down * E) * decayed + E
        # a cos φ − b sin φ E and a sin φ + b cos φ E, so that at time 0 nothing cancels.
        ρ = ρ0 * (cos * cos + sin * sin * E) + n0 * sin * cos * decayed
        n = n0 * (sin * sin + cos * cos * E) + ρ0 * sin * cos * decayed
        if m0_squared:
            F = np.exp(-2 * (s + g if g > 0 else (k * D) ** 2 / (s - g)) * ts)
            N += carried * (E - F)
        inverse = 1 / N
        H, p = ρ * ρ * (α * inverse), ρ * n * (k * inverse)
        q = β * m0_squared * H * F * inverse if m0_squared else 0.0
        curves = H, p * p + q, p * (p - D) + q
    for curve in curves:
        curve.setflags(write=False)  # read-only, as arrays from JAX are
    return Curves(*curves)
