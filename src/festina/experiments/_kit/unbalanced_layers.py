"""Two-layer networks with unbalanced layers along a task's modes, and the border at which curves turn sigmoidal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from ... import tasks
from ...tasks.base import Task

BRACKET = (0.5, 2.0)  # where the border is looked for, in units of the predicted one
Curves = Float[np.ndarray, "time mode"]


def task_of_modes(s: np.ndarray, variances: np.ndarray, seed: int) -> tuple[Task, tuple[np.ndarray, ...]]:
    """A task whose modes have these singular values and input variances; its random vectors, left, right and hidden."""
    rng = np.random.default_rng(seed)
    left, right, hidden = (np.linalg.qr(rng.normal(size=(len(s), len(s))))[0] for _ in range(3))
    cov_y = left * s**2 / variances @ left.T
    return tasks.from_moments(left * s @ right.T, right * variances @ right.T, cov_y), (left, right, hidden)


def along_modes(bases: tuple[np.ndarray, ...], products: np.ndarray, imbalance: np.ndarray) -> list[np.ndarray]:
    """Layers along the modes with w₁w₂ = products and w₂² − w₁² = imbalance; a negative sign sits in the last layer."""
    left, right, hidden = bases
    half = np.hypot(imbalance / 2, products)
    larger = np.sqrt(half + np.abs(imbalance) / 2)
    smaller = np.divide(np.abs(products), larger, out=np.zeros_like(larger), where=larger > 0)
    last = np.where(imbalance >= 0, larger, smaller) * np.where(products < 0, -1.0, 1.0)
    first = np.where(imbalance >= 0, smaller, larger)
    return [hidden * first @ right.T, left * last @ hidden.T]


def bisected_border(
    curves_of: Callable[[np.ndarray], Curves], border: Float[np.ndarray, " mode"], steps: int
) -> Float[np.ndarray, " mode"]:
    """The imbalance from which on no mode's learning speeds up, mode by mode; all modes at once."""
    low, high = BRACKET[0] * border, BRACKET[1] * border
    for _ in range(steps):
        middle = (low + high) / 2
        sigmoidal = _speeds_up(curves_of(middle))
        low, high = np.where(sigmoidal, middle, low), np.where(sigmoidal, high, middle)
    return (low + high) / 2


def _speeds_up(curves: Curves) -> np.ndarray:
    """Whether each curve on an even grid is somewhere steeper than before, by more than rounding."""
    speed = np.diff(curves, axis=0)
    return (np.diff(speed, axis=0) > 1e-12 * np.abs(speed).max(axis=0)).any(axis=0)
