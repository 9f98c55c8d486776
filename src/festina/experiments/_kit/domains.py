"""What the domains of a routing network share in its hidden layer: directions, signs and rotations of their modes."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from ..._foundation.arrays import AnyArray
from .routing import ITEMS, block, strengths

Hidden = Float[np.ndarray, "network domain hidden mode"]


def by_domain(encoded: Float[AnyArray, "*axes hidden input"]) -> Float[np.ndarray, "*axes domain hidden mode"]:
    """Hidden activity for all inputs, sorted by domain and by mode of the block."""
    encoded = np.asarray(encoded)
    right = np.linalg.svd(block())[2].T
    domains = encoded.shape[-1] // ITEMS
    return np.moveaxis(encoded.reshape(*encoded.shape[:-1], domains, ITEMS), -2, -3) @ right


def between_domains(
    encoded: Float[AnyArray, "*axes hidden input"],
) -> tuple[Float[np.ndarray, "*axes"], Float[np.ndarray, "*axes"]]:
    """Gram matrices between two domains over those within one: ratio of mean sizes, and of mean traces.

    Sizes measure whether domains use the same hidden directions, traces whether they use them for the same items.
    """
    activity = by_domain(encoded)
    grams = np.einsum("...ihk,...jhl->...ijkl", activity, activity)
    sizes, traces = np.linalg.norm(grams, axis=(-2, -1)), np.trace(grams, axis1=-2, axis2=-1)
    return _off_over_diagonal(sizes), _off_over_diagonal(traces)


def _off_over_diagonal(matrices: Float[np.ndarray, "*axes domain domain"]) -> Float[np.ndarray, "*axes"]:
    """Mean entry off the diagonal over mean entry on it."""
    within = np.trace(matrices, axis1=-2, axis2=-1)
    return (matrices.sum(axis=(-2, -1)) - within) / (matrices.shape[-1] - 1) / within


def rotations(activity: Hidden, pairs: Bool[np.ndarray, "network target source"]) -> dict[str, np.ndarray]:
    """How the hidden activity of one domain is rotated against that of another.

    `cosine` is that of each mode in two domains, `overlap` that of the spaces of two domains, `twist` the cosine of the
    rotation of the pair of equal modes, and `turned_error` the error on untrained pairs that rotations alone explain.
    """
    modes = strengths()
    unit = activity / np.linalg.norm(activity, axis=-2, keepdims=True)
    between = np.einsum("nihk,njhl->nijkl", unit, unit)
    bases = np.linalg.qr(activity)[0]
    overlap = np.linalg.norm(np.einsum("nihk,njhl->nijkl", bases, bases), axis=(-2, -1)) ** 2 / len(modes)
    left, _, right = np.linalg.svd(between[..., 2:, 2:])
    rotation = left @ right  # of the pair of modes s = 3, 3 between two domains, the nearest orthogonal matrix
    # The decoder of a domain fits the activity of that domain; another domain's is the same, rotated, as they overlap.
    turn = np.einsum("nokh,nihl->noikl", np.linalg.pinv(activity), activity)
    turned = np.sum(((np.eye(len(modes)) - turn) * modes[:, None]) ** 2, axis=(-2, -1)) / np.sum(modes**2)
    apart = ~np.eye(activity.shape[1], dtype=bool)
    return {
        "cosine": np.einsum("nijkk->nijk", between),
        "overlap": overlap[:, apart].mean(axis=1),
        "twist": (np.trace(rotation, axis1=-2, axis2=-1) / 2)[:, apart].mean(axis=1),
        "turned_error": np.sum(turned * ~pairs, axis=(1, 2)) / np.sum(~pairs, axis=(1, 2)),
    }
