"""The work of the deep-linear benchmarks: a λ-balanced two-layer linear network on a random task with white inputs.

Made with NumPy alone, so that nobody's start depends on festina.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Weights = tuple[np.ndarray, np.ndarray]


class Problem(NamedTuple):
    """Samples in rows, their moments, and the first weights (W₁, W₂)."""

    x: np.ndarray
    y: np.ndarray
    cov_yx: np.ndarray
    floor: float  # the lowest loss that a linear map can reach
    weights: Weights


def problem(width: int, samples: int, lam: float, scale: float) -> Problem:
    """`width` inputs, hidden units and outputs; the map starts with all singular values at `scale`."""
    random = np.random.default_rng(0)
    left, _, right = np.linalg.svd(random.standard_normal((samples, width)), full_matrices=False)
    x, y = np.sqrt(samples) * left @ right, random.standard_normal((samples, width))
    cov_yx = y.T @ x / samples
    floor = 0.5 * (np.sum(y**2) / samples - np.sum(cov_yx**2))
    into, hidden, out = (np.linalg.qr(random.standard_normal((width, width)))[0] for _ in range(3))
    both = np.hypot(lam, 2 * scale)
    weights = np.sqrt((both - lam) / 2) * hidden @ into.T, np.sqrt((both + lam) / 2) * out @ hidden.T
    return Problem(x, y, cov_yx, float(floor), weights)


def excess(cov_yx: np.ndarray, first: np.ndarray, last: np.ndarray) -> float:
    """Loss above the lowest possible one, white inputs."""
    return 0.5 * float(np.sum((cov_yx - last @ first) ** 2))
