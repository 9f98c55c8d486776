"""Differential equations integrated to the last digits, beside which closed forms are checked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float
from scipy.integrate import solve_ivp

EXACT = dict(method="DOP853", rtol=1e-12, atol=1e-15)


def integrated(
    speed: Callable[[float, np.ndarray], np.ndarray],
    start: np.ndarray,
    times: np.ndarray | Sequence[float],
    **options: float,
) -> Float[np.ndarray, " time *state"]:
    """States at given times; integrated from time to time, since between its own steps a solver interpolates."""
    states = [np.asarray(start, float)]
    for begin, end in itertools.pairwise(times):
        solution = solve_ivp(speed, (begin, end), states[-1].ravel(), **{**EXACT, **options})
        states.append(solution.y[:, -1].reshape(states[0].shape))
    return np.stack(states)
