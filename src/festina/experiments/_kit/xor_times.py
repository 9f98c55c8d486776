"""Predicted times of two gatings of exclusive or, and the margins Δ at which both are equally strong or fast."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy import optimize

from ... import nets, tasks
from ...theories.aligned_modes import mode
from ...theories.disjoint_pathways import time_to_loss
from .xor import LEARNED, formulas, moments

# Starts a₀ of every pathway, and the margin at which both gatings are equally fast from there.
STARTS = {1e-10: 0.8499, 2e-8: 0.8601, 1e-6: 0.8729, 1e-4: 0.9027, 1e-2: 1.0048}

# Ten independent runs with the default numbers: for every margin the steps to loss 0.2 of ReLU (mean, sd) and of both
# gatings, and the share of the weight in units for one point.
INDEPENDENT = {
    0.0: (69.97, 0.40, np.inf, 68.63, np.nan),
    0.1: (68.74, 0.40, 510.0, 68.47, 1.00),
    0.2: (67.43, 0.41, 248.6, 67.98, 1.00),
    0.4: (65.42, 0.39, 122.0, 66.09, 1.00),
    0.5: (64.11, 0.39, 97.3, 64.78, 1.00),
    0.6: (62.65, 0.35, 81.0, 63.27, 0.99),
    0.7: (60.93, 0.34, 69.4, 61.62, 0.95),
    0.8: (58.51, 0.24, 60.79, 59.87, 0.76),
    0.85: (56.78, 0.19, 57.25, 58.97, 0.59),
    0.9: (54.72, 0.22, 54.12, 58.06, 0.41),
    1.0: (50.08, 0.35, 48.82, 56.22, 0.16),
    1.2: (41.97, 0.38, 40.91, 52.57, 0.03),
    1.4: (36.06, 0.31, 35.30, 49.08, 0.01),
    1.6: (31.31, 0.19, 31.12, 45.82, 0.00),
    2.0: (25.36, 0.15, 25.31, 40.13, 0.00),
}


def predicted_steps(
    numbers: Float[np.ndarray, "margin 2"], start: float, lr: float, *, stepwise: bool
) -> Float[np.ndarray, " margin"]:
    """Predicted steps to loss 0.2, with the finite step or by the flow; infinite where nothing can be learned.

    `numbers` are s and d of a pathway.
    """
    s, d = numbers.T
    live = s > 0
    steps = np.full(len(s), np.inf)
    s, d = s[live], d[live]
    steps[live] = time_to_loss(s, target=s / d, start=start, fraction=LEARNED, lr=lr if stepwise else None) / lr
    return steps


def predicted_loss(
    numbers: tuple[float | np.ndarray, float | np.ndarray], start: float, lr: float, steps: int
) -> Float[np.ndarray, " step"]:
    """The predicted loss at every step; time is that of the flow, slowed down by the finite step."""
    s, d = numbers
    times = np.arange(steps + 1) * np.log1p(lr * s) / s
    return 0.5 * (1 - np.asarray(mode(times, singular_value=s, variance=d, start=start)) * d / s) ** 2


def equal_strength(linear: nets.Gated, xor: nets.Gated) -> float:
    """The margin at which pathways of both gatings have the same s, by their moments."""
    return _root(lambda margin: moments(linear, margin)[0] - moments(xor, margin)[0], 0.1)


def equal_time(start: float) -> tuple[float, ...]:
    """Margins at which both gatings are equally fast: with equal starts, and with equally many units in all."""

    def lag(margin: float, share: float) -> float:
        linear, xor = (
            time_to_loss(s, target=s / d, start=a, fraction=LEARNED)
            for (s, d), a in ((formulas("linear", margin), start), (formulas("XoR", margin), share * start))
        )
        return float(linear - xor)

    return tuple(_root(lambda margin, share=share: lag(margin, share), 0.5) for share in (1.0, 0.5))


def alone_until() -> float:
    """The margin up to which a unit with weights along the input of a point is inactive on all other points."""

    def largest_overlap(margin: float) -> float:
        points = np.asarray(tasks.xor(margin).x)
        return np.max((points @ points.T)[~np.eye(len(points), dtype=bool)])

    return _root(largest_overlap, 1.0)


def _root(function: Callable[[float], float], low: float) -> float:
    """The margin between `low` and 2 at which a function of it is zero."""
    return float(optimize.root_scalar(function, bracket=(low, 2.0), xtol=1e-13).root)
