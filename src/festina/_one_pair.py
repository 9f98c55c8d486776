"""The two-point theory of one pair of points at many times, in plain numbers.

`_two_point.states` answers for all pairs, in all limits, with derivatives. JAX hands each call of it to another thread,
which takes longer than the arithmetic of one pair does. This is the same closed form in the symbols of
`theories.two_point`, as it stands there, for starts in which sums do not cancel: others are left to `states`.
"""

from __future__ import annotations

import math

import numpy as np

from ._two_point import SHARP, Curves

LARGEST = 100.0  # by what a term may exceed the sum that it is part of: two digits of sixteen
RANGE = (1e-30, 1e30)  # of numbers whose products are numbers


def curves(
    ts: np.ndarray,
    distance0: float,
    output0: float,
    alignment0: float,
    input_gap: float,
    target_gap: float,
    tau_h: float,
    tau_y: float,
) -> Curves | None:
    """H, P and w at `ts`, or None where `states` should say; numbers must be possible, and all but w positive."""
    sizes = distance0, output0, input_gap, target_gap, tau_h, tau_y
    if not RANGE[0] < min(sizes) <= max(sizes) < RANGE[1]:
        return None
    α, β, D = input_gap / (2 * tau_h), 1 / (2 * tau_y), math.sqrt(target_gap)
    k = math.sqrt(α * β)
    p0 = min(max((output0 - alignment0) / D, -math.sqrt(output0)), math.sqrt(output0))
    q0 = output0 - p0 * p0
    q0 = q0 if q0 > SHARP * np.finfo(float).eps * output0 else 0.0
    ρ0, n0, m0 = math.sqrt(distance0 / α), p0 / math.sqrt(distance0 * β), q0 / (distance0 * β)  # the last is squared
    g = β / 2 * (distance0 - tau_y / tau_h * input_gap * output0 / distance0)
    s = math.hypot(g, k * D)
    # cos φ and sin φ; the smaller of them would lose its digits as a cosine near π/2.
    longer = s + abs(g)
    small, large = k * D / math.sqrt(2 * s * longer), math.sqrt(longer / (2 * s))
    cos, sin = (small, large) if g < 0 else (large, small)
    a, b = ρ0 * cos + n0 * sin, n0 * cos - ρ0 * sin
    up, down, idle = (k * k * part for part in (a * a / (2 * s), b * b / (2 * s), m0))
    carried = idle / (2 * g) if g else math.inf
    lost = max(up, down, abs(carried) if m0 else 0.0, (n0 * n0 + m0) / (ρ0 * ρ0), abs(ρ0 / a) if a else math.inf)
    if lost > LARGEST:
        return None
    with np.errstate(over="ignore", under="ignore"):
        E = np.exp(-2 * s * ts)
        gone = 1 - E
        N = (up + down * E) * gone + E
        # a cos φ − b sin φ E and a sin φ + b cos φ E, so that at time 0 nothing cancels.
        ρ = ρ0 * (cos * cos + sin * sin * E) + n0 * sin * cos * gone
        n = n0 * (sin * sin + cos * cos * E) + ρ0 * sin * cos * gone
        if m0:
            F = np.exp(-2 * (s + g if g > 0 else (k * D) ** 2 / (s - g)) * ts)
            N += carried * (E - F)
        one = 1 / N
        H, p = ρ * ρ * (α * one), ρ * n * (k * one)
        q = β * m0 * H * F * one if m0 else 0.0
        found = Curves(H, p * p + q, p * (p - D) + q)
    for curve in found:
        curve.setflags(write=False)  # as all that JAX makes
    return found
