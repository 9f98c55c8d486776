"""How often the first singular value of random data rises when an input, an output or a sample is removed."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

TAKEN = ("an input", "an output", "a sample,\npositive data", "a sample,\nsigned data")
TRIALS, SHAPE = 2000, (20, 8, 12)  # samples, inputs and outputs of random data


def raised(rng: np.random.Generator) -> Float[np.ndarray, " taken"]:
    """The share of random data sets in which each removal of TAKEN raises the first singular value of Σʸˣ."""
    n, d_in, d_out = SHAPE
    x, y = rng.normal(size=(TRIALS, n, d_in)), rng.normal(size=(TRIALS, n, d_out))

    def first(x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, " trial"]:
        return np.linalg.svd(np.swapaxes(y, 1, 2) @ x, compute_uv=False)[:, 0]

    def rises(x: np.ndarray, y: np.ndarray, fewer_x: np.ndarray, fewer_y: np.ndarray) -> float:
        return float(np.mean(first(fewer_x, fewer_y) > first(x, y) * (1 + 1e-12)))

    size = np.abs(x), np.abs(y)
    return np.array(
        [
            rises(x, y, x[..., 1:], y),
            rises(x, y, x, y[..., 1:]),
            rises(*size, size[0][:, 1:], size[1][:, 1:]),
            rises(x, y, x[:, 1:], y[:, 1:]),
        ]
    )
