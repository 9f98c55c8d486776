"""What the two-point theory predicts for many points at once, from what it predicts for every pair of them alone."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from .._foundation.checks import positive, real_array, truth
from .._foundation.errors import BadInput


def weighted(
    distances: ArrayLike, *, scale: float | None = 1.0, normalised: bool = False
) -> Float[np.ndarray, "row row"]:
    """Squared distances between many points, each a sum over all pairs of points that are near its own two.

        Ĥ_ij = Σ_kl W_ik W_jl H_kl,      W_ij = exp(−H_ij/scale)                          [vanrossem2024, eq. 50]

    Args:
        distances: H, (row, row): the final distances that the theory has for each pair alone, such as `final_distance`
            of `probe.structure`; symmetric, not negative, 0 on the diagonal.
        scale: the squared distance over which points count as near. It is 1 in print, where H then depends on the unit
            of the inputs; None takes the median of H off the diagonal, which does not.
        normalised: divide by Σ_k W_ik Σ_l W_jl, so that Ĥ is a mean of distances, and set the diagonal to 0; in print
            it is a sum, which grows with the number of points, and points are at a distance from themselves.
    """
    H, normalised = real_array(distances, "distances", ndim=2), truth(normalised, "normalised")
    if H.shape[0] != H.shape[1] or H.shape[0] < 2:
        raise BadInput(
            f"distances of shape {H.shape}", "one row and one column for each of the points", "give H, square"
        )
    if np.min(H) < 0 or not np.allclose(H, H.T, rtol=0, atol=1e-6 * np.max(H)):
        raise BadInput(
            "distances that are below 0, or not the same both ways",
            "squared distances, symmetric",
            "give H of every pair, for example final_distance of probe.structure",
        )
    unit = np.median(H[~np.eye(len(H), dtype=bool)]) if scale is None else scale
    weights = np.exp(-H / positive(unit, "scale"))
    if not normalised:
        return weights @ H @ weights.T
    shares = weights / weights.sum(axis=1, keepdims=True)
    means = shares @ H @ shares.T
    np.fill_diagonal(means, 0.0)
    return means
