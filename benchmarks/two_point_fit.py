"""The rates of the two-point theory from 300 noisy records, against the fit that a notebook would hold.

The rival is that of [vanrossem2024] as run: the printed equations through a stiff solver at its default tolerances, 100
guesses of the rates with their ratio from the final level, and BFGS with finite differences from the best.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .harness import Claim, Contestant
from .rivals import Call
from .two_point import TAU_H, TAU_Y, X, Y, printed

UNIT = "fit"
TOLERANCE = 1e-2  # between the rates: the rival's solver misses the curves by 1e-4
TIMES = np.arange(0.0, 6000.0, 20.0)


def record() -> np.ndarray:
    """H, P and w of a network of 20 layers, with noise of 1 % after the start."""
    from festina.theories.two_point import trajectory

    start = dict(distance0=1.2e-3, output0=1e-4, alignment0=1e-4 - 0.009 * np.sqrt(Y), input_gap=X, target_gap=Y)
    curves = np.stack(trajectory(TIMES, **start, tau_h=TAU_H, tau_y=TAU_Y))
    noise = 0.01 * np.ptp(curves, axis=1, keepdims=True) * np.random.default_rng(0).standard_normal(curves.shape)
    noise[:, 0] = 0
    return np.concatenate([np.abs(curves + noise)[:2], (curves + noise)[2:]])


def closed_form() -> Call:
    from festina._verbs.fit.two_points import fit_two_point

    curves = record()
    return lambda: list(fit_two_point(TIMES, *curves, X, Y).rates)


def notebook() -> Call:
    from scipy.integrate import solve_ivp
    from scipy.optimize import minimize

    curves = record()

    def error(rates: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            found = solve_ivp(printed(*rates), (TIMES[0], TIMES[-1]), curves[:, 0], method="Radau", t_eval=TIMES)
        return float(np.sum((found.y - curves) ** 2)) if found.success else 1e6

    def go():
        ratio = curves[0, -1] ** 2 / (X * Y)
        guesses = [np.array([guess * ratio, guess]) for guess in np.logspace(-6, 2, 100)]
        return list(minimize(error, min(guesses, key=error), method="BFGS").x)

    return go


def contestants(mode: str, folder: Path) -> list[Contestant]:
    return [
        Contestant("closed form", "benchmarks.two_point_fit:closed_form"),
        Contestant("notebook", "benchmarks.two_point_fit:notebook"),
    ]


def claims(mode: str) -> list[Claim]:
    return [Claim("two-point fit, 300 records", "closed form", "guesses, Radau and BFGS", ("notebook",), least=20)]
