"""Two-layer networks with unbalanced layers along a task's modes, and the border at which curves turn sigmoidal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float

from ... import Setup, inits, nets, rules, solve, tasks
from ...tasks.base import Task
from .labelled import labelled, table
from .training import simulate

if TYPE_CHECKING:
    from xarray import DataArray

BRACKET = (0.5, 2.0)  # where the border is looked for, in units of the predicted one
Curves = Float[np.ndarray, "time mode"]


class Modes(NamedTuple):
    """Two-layer networks along the modes of one task, with initial products w₁w₂ and imbalances w₂² − w₁² of choice."""

    task: Task
    bases: tuple[np.ndarray, ...]
    times: np.ndarray
    seed: int

    @classmethod
    def of(cls, s: np.ndarray, variances: np.ndarray, times: np.ndarray, seed: int) -> Modes:
        """Modes of these singular values and input variances, along random vectors: left, right and hidden ones."""
        rng = np.random.default_rng(seed)
        left, right, hidden = (np.linalg.qr(rng.normal(size=(len(s), len(s))))[0] for _ in range(3))
        cov_y = left * s**2 / variances @ left.T
        task = tasks.from_moments(left * s @ right.T, right * variances @ right.T, cov_y)
        return cls(task, (left, right, hidden), times, seed)

    def setup(self, products: np.ndarray | float, imbalance: np.ndarray, rate: float | None = None) -> Setup:
        """A network, trained by descent at this rate, or by flow."""
        shape = self.bases[0].shape[1]
        layers = along_modes(self.bases, np.broadcast_to(products, shape), np.broadcast_to(imbalance, shape))
        rule = rules.GradientFlow() if rate is None else rules.GradientDescent(rate)
        return Setup(self.task, nets.DeepLinear(shape), inits.Given(layers), rule, times=self.times)

    def trained(self, products: np.ndarray | float, imbalance: np.ndarray, rate: float) -> DataArray:
        """The strengths of the modes in training."""
        run = simulate(self.setup(products, imbalance, rate), [self.seed], "modes")
        return labelled(run, "modes", seed=0)

    def exact(self, products: np.ndarray | float, imbalance: np.ndarray) -> DataArray:
        """The strengths of the modes by the closed form."""
        return labelled(solve(self.setup(products, imbalance), "UnbalancedModes"), "modes")

    def border(self, predicted: np.ndarray, steps: int, *, sign: int = 1, rate: float | None = None) -> DataArray:
        """The imbalance from which on no learning speeds up, in training at a rate or by the closed form."""

        def curves(imbalance: np.ndarray) -> DataArray:
            return self.exact(0.0, imbalance) if rate is None else self.trained(0.0, imbalance, rate)

        return table(bisected_border(lambda c: curves(sign * c), predicted, steps), "mode")


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
    curves_of: Callable[[np.ndarray], DataArray], border: Float[np.ndarray, " mode"], steps: int
) -> Float[np.ndarray, " mode"]:
    """The imbalance from which on no mode's learning speeds up, mode by mode; all modes at once."""
    low, high = BRACKET[0] * border, BRACKET[1] * border
    for _ in range(steps):
        middle = (low + high) / 2
        sigmoidal = _speeds_up(curves_of(middle).values)
        low, high = np.where(sigmoidal, middle, low), np.where(sigmoidal, high, middle)
    return (low + high) / 2


def _speeds_up(curves: Curves) -> np.ndarray:
    """Whether each curve on an even grid is somewhere steeper than before, by more than rounding."""
    speed = np.diff(curves, axis=0)
    return (np.diff(speed, axis=0) > 1e-12 * np.abs(speed).max(axis=0)).any(axis=0)


def mean_slope(times: np.ndarray, values: Curves, shares: Curves) -> Float[np.ndarray, " mode"]:
    """Mean slope of `values` while `shares` go from 10 to 90 %, by least squares."""
    inside = (shares > 0.1) & (shares < 0.9)
    return np.array([np.polyfit(times[inside[:, k]], values[inside[:, k], k], 1)[0] for k in range(values.shape[1])])


def from_exponential(times: np.ndarray, shares: Curves, rates: ArrayLike) -> float:
    """Largest gap between curves from zero and exponentials of these rates."""
    return float(np.abs(shares + np.expm1(-np.outer(times, rates))).max())
