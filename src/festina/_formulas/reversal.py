"""What a balanced two-layer linear network (λ = 0) on white inputs keeps from one learned task when the next begins.

Its layers have learned the target P = U S Vᵀ. The number of modes of the next target P′ that are out of reach is the
number of eigenvalues −1 of the product of the orthogonal (polar) factors, (UVᵀ)ᵀ U′V′ᵀ. The reverse, P′ = −P, has none
within reach: every mode decays to the saddle at 0 along

    a(t) = −s e^(−2st)/(2 − e^(−2st))        [derived]

in the modes of the reverse, with s its singular value, inputs of variance 1.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from .._foundation.arrays import AnyArray

SAME = 1e-6  # how near to −1 an eigenvalue is −1


def modes_out_of_reach(learned: Float[AnyArray, "out in"], target: Float[AnyArray, "out in"]) -> int:
    """The number of modes of a target that a network which has learned another one can never learn."""

    def polar(matrix: Float[AnyArray, "out in"]) -> np.ndarray:
        left, _, right = np.linalg.svd(matrix)
        return left @ right

    return int(np.sum(np.abs(np.linalg.eigvals(polar(learned).T @ polar(target)) + 1) < SAME))


def unlearned(
    times: Float[np.ndarray, " time"], singular_values: Float[np.ndarray, " mode"]
) -> Float[np.ndarray, "time mode"]:
    """The strengths of the modes of the reversed task."""
    faded = np.exp(-2 * np.outer(times, singular_values))
    return -singular_values * faded / (2 - faded)
