"""Items on a rectangular grid with free edges, alike where they are near.

A Gaussian Markov prior of spread σ has the similarity eigenvalues η = 1/(μ + 1/σ²), with the eigenvalues of the
Laplacian of the grid, μ_ij = 4 − 2cos(πi/rows) − 2cos(πj/columns), i < rows, j < columns. Its vectors are products of
the cosines cos(πi(r + ½)/rows) of the DCT-II [saxe_slides, "Analytic link"].
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from .._foundation.checks import positive, whole
from ._recipe import recipe
from ._worlds import world
from .base import Task


@recipe
def grid(rows: int = 3, columns: int = 4, spread: float = 1.0, features: int | None = None, seed: int = 0) -> Task:
    """A grid of items whose features vary smoothly: neighbours differ by about 1, each is within `spread` of 0.

    `features` is the number of Gaussian features, drawn from `seed`. Without it there are infinitely many features, and
    the spectrum and its vectors are known exactly.
    """
    rows, columns = whole(rows, "rows"), whole(columns, "columns")
    (down, down_vectors), (across, across_vectors) = _row(rows), _row(columns)
    values = 1 / (np.add.outer(down, across).ravel() + positive(spread, "spread", least=1e-50) ** -2)
    names = [f"row {row} column {column}" for row in range(rows) for column in range(columns)]
    return world(values, np.kron(down_vectors, across_vectors), features=features, seed=seed, items=names)


def _row(count: int) -> tuple[Float[np.ndarray, " mode"], Float[np.ndarray, "item mode"]]:
    """Eigenvalues and vectors of the Laplacian of a row of items."""
    waves = np.arange(count)
    vectors = np.cos(np.pi * np.outer(np.arange(count) + 0.5, waves) / count)
    return 2 - 2 * np.cos(np.pi * waves / count), vectors / np.linalg.norm(vectors, axis=0)
