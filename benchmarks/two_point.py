"""The two-point theory at 6,000 times, against SciPy on the equations as printed, at default tolerances.

Two contestants are ours: `trajectory`, which checks its numbers at each call, and the form for many pairs, compiled.
The rivals are what research code calls: a stiff solver or one that finds out, told to record every epoch. Rates and
start are those of the source's default network of twenty layers. What is compared is the distance half way up.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from .harness import Claim, Contestant
from .rivals import Call

UNIT = "trajectory"
TOLERANCE = 0.02  # solvers at default tolerances
TIMES = np.arange(6000.0)
X, Y, TAU_H, TAU_Y = 1.0, 0.5, 1 / 6e-4, 1 / 0.04
START = (1.2e-3, 1e-4, 1e-4 - 1e-2 * Y**0.5)  # H, P and w, with the output along the target
SEEN = 1500


def numbers() -> dict[str, float]:
    names = ("distance0", "output0", "alignment0", "input_gap", "target_gap", "tau_h", "tau_y")
    return dict(zip(names, (*START, X, Y, TAU_H, TAU_Y), strict=True))


def trajectory() -> Call:
    from festina.theories.two_point import trajectory

    given = numbers()
    return lambda: [trajectory(TIMES, **given).distance[SEEN]]


def closed_form() -> Call:
    import jax

    from festina._formulas.two_points import flow
    from festina._formulas.two_points.pair import Pair, Start
    from festina._foundation.precision import in_double

    given = np.array(list(numbers().values()))  # one array: each argument of its own costs microseconds
    curves = in_double(jax.jit(lambda times, given: flow.states(times, Start(*given[:3]), Pair(*given[3:]))))
    return lambda: [curves(TIMES, given).distance[SEEN]]


def printed(eta_h: float, eta_y: float) -> Callable:
    """The equations as printed [vanrossem2024, eq. 7], in plain Python numbers."""

    def speed(_, state):
        H, P, w = state
        return [
            -X * eta_h * w,
            -w * (eta_y * H + X * eta_h * P / H),
            -(3 * w - P + Y) * eta_y * H / 2 - X * eta_h * (P + w) * w / (2 * H),
        ]

    return speed


def solver(method: str) -> Call:
    from scipy.integrate import solve_ivp

    speed = printed(1 / TAU_H, 1 / TAU_Y)
    return lambda: [solve_ivp(speed, (0, TIMES[-1]), START, method=method, t_eval=TIMES).y[0, SEEN]]


def contestants(mode: str, folder: Path) -> list[Contestant]:
    return [
        Contestant("closed form", "benchmarks.two_point:closed_form"),
        Contestant("trajectory", "benchmarks.two_point:trajectory"),
        *(Contestant(f"SciPy {name}", "benchmarks.two_point:solver", {"method": name}) for name in ("Radau", "LSODA")),
    ]


def claims(mode: str) -> list[Claim]:
    bare, whole = "two points at 6,000 times, closed form", "two points at 6,000 times, trajectory"
    return [
        Claim(work, ours, rival, (rival,), least=50 if rival == "SciPy Radau" else None)
        for work, ours in ((bare, "closed form"), (whole, "trajectory"))
        for rival in ("SciPy Radau", "SciPy LSODA")
    ]
