"""Items in separate clusters, alike within and unrelated across.

The similarity is `within` between items of one cluster, 0 across clusters, and `noise` more on the diagonal. A cluster
of n items has the eigenvalue within·n + noise, whose vector is its indicator, and noise for its n − 1 contrasts
[saxe_slides, "Analytic link"]: large clusters are learned first, and what sets items of one cluster apart last.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import block_diag

from .._foundation.checks import positive
from .._foundation.errors import BadInput
from ._recipe import recipe
from ._worlds import contrasts_of, counts, world
from .base import Task


@recipe
def partition(
    sizes: int | Sequence[int] = (4, 2, 2),
    within: float = 0.8,
    noise: float = 0.2,
    features: int | None = None,
    seed: int = 0,
) -> Task:
    """Clusters of `sizes` items with similarity `within` each cluster, and `noise` of each item's own.

    `features` is the number of Gaussian features, drawn from `seed`. Without it there are infinitely many features, and
    the spectrum and its vectors are known exactly.
    """
    sizes = counts(sizes, "sizes")
    if not sizes:
        raise BadInput("sizes is empty", "at least one cluster", "give a list such as sizes=(4, 2, 2)")
    within, noise = positive(within, "within", zero=True), positive(noise, "noise", zero=True)
    values = [np.append(within * size + noise, np.full(size - 1, noise)) for size in sizes]
    vectors = [np.column_stack([np.full(size, size**-0.5), contrasts_of(size)]) for size in sizes]
    names = [f"cluster {cluster} item {i}" for cluster, size in enumerate(sizes) for i in range(size)]
    return world(np.concatenate(values), np.asarray(block_diag(*vectors)), features=features, seed=seed, items=names)
