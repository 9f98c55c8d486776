"""How far the tangent kernel of a 50–50–50 network has moved, on 100 samples: by traces, against forming it.

The kernel has 5,000 rows and columns, one per sample and output. Both start from weights and samples.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .harness import Claim, Contestant
from .linear_problem import Weights, problem
from .rivals import Call

UNIT = "distance"
TOLERANCE = 1e-10
WIDTH = 50
GIVEN = problem(WIDTH, samples=100, lam=1.0, scale=0.5)


def data() -> tuple[np.ndarray, Weights, Weights]:
    """Samples, and weights before and after."""
    random = np.random.default_rng(1)
    # Inputs of unequal variance, so that the covariance takes part.
    x = GIVEN.x * np.linspace(0.5, 2, WIDTH)
    first, last = (w + 0.1 * random.standard_normal(w.shape) for w in GIVEN.weights)
    return x, GIVEN.weights, (first, last)


def by_traces() -> Call:
    import jax

    from festina._formulas import tangent_kernel
    from festina._foundation.precision import in_double

    x, before, after = data()

    @in_double
    @jax.jit
    def distance(x, before, after):
        return tangent_kernel.distance(tangent_kernel.tangent(before), tangent_kernel.tangent(after), x.T @ x / len(x))

    return lambda: [distance(x, before, after)]


def by_forming() -> Call:
    x, before, after = data()
    outputs = np.eye(WIDTH)

    def kernel(weights: Weights) -> np.ndarray:
        first, last = weights
        h = x @ first.T
        return np.kron(outputs, h @ h.T) + np.kron(last @ last.T, x @ x.T)

    def go():
        one, other = kernel(before), kernel(after)
        return [1 - float(np.vdot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other)))]

    return go


def contestants(mode: str, folder: Path) -> list[Contestant]:
    return [
        Contestant("by traces", "benchmarks.kernel_distance:by_traces"),
        Contestant("by forming", "benchmarks.kernel_distance:by_forming"),
    ]


def claims(mode: str) -> list[Claim]:
    return [
        Claim(
            "kernel distance, 50–50–50, 100 samples",
            "by traces",
            "NumPy forming both kernels",
            ("by forming",),
            least=1000,
        )
    ]
