"""Classical multidimensional scaling: points in few dimensions whose inner products are nearly given ones."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from .modes import FAINT, ROUNDING


def centred(products: Float[np.ndarray, "*axes sample sample"]) -> Float[np.ndarray, "*axes sample sample"]:
    """Inner products of activity around its mean over samples, from those of activity."""
    products = products - products.mean(axis=-1, keepdims=True)
    return products - products.mean(axis=-2, keepdims=True)


def principal_points(
    products: Float[np.ndarray, "*axes sample sample"], dimensions: int
) -> Float[np.ndarray, "*axes sample dimension"]:
    """The leading principal components of centred inner products.

    It is one eigenvalue problem, exact where `dimensions` suffice. Signs are fixed: the largest entry of each
    dimension is positive.
    """
    values, vectors = np.linalg.eigh(products)
    values, vectors = values[..., ::-1][..., :dimensions], vectors[..., ::-1][..., :dimensions]
    values = np.where(values > ROUNDING * values[..., :1], values, 0)
    points = vectors * np.sqrt(values)[..., None, :]
    large = np.abs(points) >= (1 - FAINT) * np.abs(points).max(axis=-2, keepdims=True)  # the first, of equal ones
    pivot = np.take_along_axis(points, np.argmax(large, axis=-2, keepdims=True), axis=-2)
    return np.where(pivot < 0, -points, points)


def on_axes_of_the_last(
    products: Float[np.ndarray, "time sample sample"], dimensions: int
) -> Float[np.ndarray, "time sample dimension"]:
    """Points that move without jumps: at every time laid onto those of the last time by a rotation (Procrustes)."""
    points = principal_points(products, dimensions)
    left, _, right = np.linalg.svd(np.swapaxes(points, -1, -2) @ points[-1])
    return points @ (left @ right)
