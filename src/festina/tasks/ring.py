"""Items on a ring, alike where they are near.

The similarity of P items depends on their distance alone, C_ij = c_{i−j}, so its eigenvalues are
η_k = Σ_d c_d cos(2πkd/P), and its vectors are those of Fourier, in pairs of one eigenvalue (sine and cosine)
[saxe_slides, "Analytic link"]. A Gaussian Markov prior of spread σ has η_k = 1/(μ_k + 1/σ²), with the eigenvalues
μ_k = 2 − 2cos(2πk/P) of the Laplacian of the ring.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from .._foundation.checks import positive, real_array, whole
from .._foundation.errors import BadInput
from ._recipe import recipe
from ._worlds import world
from .base import Task


@recipe
def ring(
    items: int = 8,
    spread: float | None = None,
    correlation: Sequence[float] | None = None,
    features: int | None = None,
    seed: int = 0,
) -> Task:
    """A ring of `items` whose features vary smoothly: neighbours differ by about 1, each is within `spread` of 0.

    `spread` is 1 unless given. In its place, `correlation` can give the similarity at distances 0 … items − 1 around
    the ring. `features` is the number of Gaussian features, drawn from `seed`. Without it there are infinitely many
    features, and the spectrum and its vectors are known exactly.
    """
    items = whole(items, "items", least=3)
    waves = np.arange(items) // 2 + np.arange(items) % 2  # 0, 1, 1, 2, 2, …: the cosine and sine of each wave
    if correlation is None:
        width = positive(1.0 if spread is None else spread, "spread", least=1e-50)
        values = 1 / (2 - 2 * np.cos(2 * np.pi * waves / items) + width**-2)
    elif spread is None:
        values = _circulant(real_array(correlation, "correlation", ndim=1), waves)
    else:
        raise BadInput("spread together with correlation", "one description of the similarity", "keep one")
    angles = 2 * np.pi * np.outer(np.arange(items), waves) / items
    vectors = np.where(np.arange(items) % 2 == 1, np.cos(angles), np.sin(angles))
    vectors[:, 0] = 1.0
    return world(values, vectors / np.linalg.norm(vectors, axis=0), features=features, seed=seed)


def _circulant(correlation: Float[np.ndarray, " item"], waves: Int[np.ndarray, " mode"]) -> Float[np.ndarray, " mode"]:
    """Eigenvalues of the circulant similarity; refuse what is not the similarity of a ring."""
    # Rounding in numbers that a user computed; far below any wrong entry that matters.
    items, close = len(waves), 1e-8 * np.abs(correlation).max(initial=0.0)
    if len(correlation) != items:
        raise BadInput(
            f"correlation has {len(correlation)} numbers",
            f"{items} numbers, one for each distance from 0 to items - 1",
            f"give all of them, or items={len(correlation)}",
        )
    if np.abs(correlation[1:] - correlation[:0:-1]).max() > close:
        raise BadInput(
            "correlation is not symmetric",
            "the same similarity at distances d and items - d: both ways round the ring are one",
            "make correlation[d] equal to correlation[items - d]",
        )
    values = np.cos(2 * np.pi * np.outer(waves, np.arange(items)) / items) @ correlation
    if values.min() < -close:
        raise BadInput(
            f"correlation has a negative eigenvalue, {values.min():.3g}",
            "the correlation of some features: a positive semidefinite similarity",
            "raise correlation[0], or let the similarity fall off more smoothly",
        )
    return np.maximum(values, 0.0)
