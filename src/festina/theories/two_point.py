"""Two points of a network are pulled apart or together by an encoder and a decoder that learn at rates of their own.

With the squared distances H in a layer, P in the output, X of the inputs, Y of the targets, and w = P − dy·Δy*
[vanrossem2024, eq. 7],

    dH/dt = −(X/τ_h) w,
    dP/dt = −w (H/τ_y + X P/(τ_h H)),
    dw/dt = −(3w − P + Y) H/(2τ_y) − X (P + w) w/(2τ_h H).

With α = X/(2τ_h), β = 1/(2τ_y), k = √(αβ), D = √Y, p = (P − w)/D, q = P − p²,

    A = H₀ − (τ_y/τ_h) X P₀/H₀,  B = √(τ_y X Y/τ_h),  g = βA/2,  s = √(g² + k²Y),  φ = atan2(kD, g)/2,  E = e^(−2st),
    ρ₀ = √(H₀/α),  n₀ = p₀/√(H₀β),  m₀² = q₀/(H₀β),  a = ρ₀ cos φ + n₀ sin φ,  b = n₀ cos φ − ρ₀ sin φ,
    N = E + k² [(a² + b² E)(1 − E)/(2s) + m₀² E (1 − e^(−2gt))/(2g)],
    ρ = (a cos φ − b sin φ E)/√N,  n = (a sin φ + b cos φ E)/√N,  m = m₀ e^(−(s+g)t)/√N,
    H = αρ²,  p = kρn,  q = k²ρ²m²,  P = p² + q,  w = P − pD,

and H → A/2 + √(A²/4 + B²) [vanrossem2024, eq. 10]. This is a two-layer linear network with one hidden unit, and
shares its integral with `UnbalancedModes`.

Convention: τ_h and τ_y are those of eq. 7. Gradient descent with rate lr has τ_h = τ_y = 2/lr per step, 2 in units of
t = lr × steps, and 1 there for the mean of the outputs: [vanrossem2024, eq. 17] forgets the average over two points.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .. import _two_point
from .._errors import BadInput
from .._noun import is_traced, real_array
from .._precision import in_double
from .._two_point import Curves

__all__ = []


def trajectory(
    ts: Any,
    *,
    distance0: Any,
    output0: Any,
    alignment0: Any,
    input_gap: Any,
    target_gap: Any,
    tau_h: Any,
    tau_y: Any,
) -> Curves:
    """H, P and w at times `ts`, as (distance, output, alignment): axes of the other numbers first, time last.

    `distance0`, `output0` and `alignment0` are H, P and w at time 0, `input_gap` and `target_gap` the squared distances
    X and Y. All are numbers, or arrays that broadcast against each other, with one entry for every pair of points.

    >>> pair = dict(distance0=1e-2, output0=1e-4, alignment0=-0.0099, input_gap=1.0, target_gap=1.0)
    >>> trajectory([0.0, 100.0], **pair, tau_h=2.0, tau_y=2.0).distance.round(6).tolist()
    [0.01, 1.0]
    """
    ts = _checked_times(ts)
    numbers = _two_point.checked(
        dict(
            distance0=distance0,
            output0=output0,
            alignment0=alignment0,
            input_gap=input_gap,
            target_gap=target_gap,
            tau_h=tau_h,
            tau_y=tau_y,
        )
    )
    curves = _trajectory(ts[None] if np.ndim(ts) == 0 else ts, numbers)
    return Curves(*(curve[..., 0] for curve in curves)) if np.ndim(ts) == 0 else curves


def final_distance(
    *,
    distance0: Any,
    output0: Any,
    alignment0: Any,
    input_gap: Any,
    target_gap: Any,
    tau_h: Any,
    tau_y: Any,
) -> Any:
    """The squared distance in the layer at the end of learning; arguments as for `trajectory`.

    0 where the two points merge: equal targets from a start with A ≤ 0, and the starts between those that pass
    through zero and those that turn before it, which end at the saddle.
    """
    return _final_distance(
        _two_point.checked(
            dict(
                distance0=distance0,
                output0=output0,
                alignment0=alignment0,
                input_gap=input_gap,
                target_gap=target_gap,
                tau_h=tau_h,
                tau_y=tau_y,
            )
        )
    )


@in_double
def _trajectory(ts, numbers):
    return _compiled_states(ts, **numbers)


@in_double
def _final_distance(numbers):
    return _compiled_final(**numbers)


_compiled_states = jax.jit(_two_point.states)
_compiled_final = jax.jit(_two_point.final_distance)


def _checked_times(ts: Any) -> Any:
    ts = real_array(ts, "ts", ndim=(0, 1))
    if not is_traced(ts) and np.any(ts < 0):
        raise BadInput(f"ts down to {np.min(ts):g}", "ts >= 0", "learning starts at time 0")
    return ts
