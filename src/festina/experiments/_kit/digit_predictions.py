"""Predictions of the squared distances between digits, by the two-point theory and without any theory.

The theory predicts a distance for every pair, √(κXY) from small weights [vanrossem2024, eq. 11], with the squared
distances X of the images and Y of the targets; here κ = 1. Predictions for single pairs need not fit together; eq. 50
sums them over other images, with weights exp(−distance).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int, Real

from ... import probe
from ..._setup.trajectory import Trajectory
from ...theories.two_point import final_distance
from .digit_structure import PAIRS, SHOWN, Matrix, square

AS_RUN, PRINTED, NORMALISED, ALONE = "eq. 50 as run", "eq. 50 as printed", "eq. 50 normalised", "eq. 10 alone"
IMAGES, CLASSES = "images", "classes"
PIECE = 1000  # images whose distances are in memory at once
Images = Float[np.ndarray, "image pixel"]
Digits = Real[np.ndarray, " image"]  # which digit an image shows
Places = Int[np.ndarray, " row"]


def predictions(x: Images, digit: Digits, raw: Images, order: Places, run: Trajectory, layer: int) -> dict[str, Matrix]:
    """Every prediction for the images in `order`, whose pixels are normalised in `x`, as the network sees them.

    `raw` holds the raw pixels of all images that eq. 50 as run sums over. The theory starts from the distances before
    training, averaged over the networks of `run`.
    """
    x, shown = x[order], digit[order]
    distance0, output0, alignment0 = (
        np.asarray(run[name], float)[:, 0].mean(axis=0) for name in ("distance", "output_distance", "output_alignment")
    )
    pairwise = structured(x, shown, np.arange(SHOWN))
    squares = np.sum((x[:, None] - x) ** 2, axis=-1)
    first, second = PAIRS.T
    from_start = final_distance(
        distance0=distance0[layer],
        output0=output0,
        alignment0=alignment0,
        input_gap=squares[first, second],
        target_gap=2.0 * (shown[first] != shown[second]),
        tau_h=1.0,
        tau_y=1.0,
    )
    return {
        AS_RUN: summed_over_images(raw, digit[: len(raw)], order),
        PRINTED: probe.weighted(square(np.asarray(from_start))),
        NORMALISED: probe.weighted(pairwise, scale=None, normalised=True),
        ALONE: pairwise,
        IMAGES: squares,
        CLASSES: (shown[:, None] != shown).astype(float),
    }


def structured(x: Images, digit: Digits, rows: Places) -> Float[np.ndarray, "row image"]:
    """√(XY) of some images with all; the squared distance of the targets of two classes is Y = 2."""
    sizes = np.sum(x**2, axis=1)
    squares = np.maximum(sizes[rows][:, None] + sizes - 2 * x[rows] @ x.T, 0.0)
    return np.sqrt(2 * squares) * (digit[rows][:, None] != digit)


def summed_over_images(x: Images, digit: Digits, rows: Places) -> Matrix:
    """The prediction of [vanrossem2024, eq. 50] for some images, summed over all, from small weights."""
    weights = np.exp(-structured(x, digit, rows))
    parts = [np.arange(k, min(k + PIECE, len(x))) for k in range(0, len(x), PIECE)]
    return sum(weights[:, part] @ structured(x, digit, part) for part in parts) @ weights.T


def undecided(x: Images, digit: Digits, rows: Places) -> int:
    """How many weights of eq. 50 are neither 0 nor 1, to a part in 10⁹."""
    weights = np.exp(-structured(x, digit, rows))
    return int(np.sum((weights > 1e-9) & (weights < 1 - 1e-9)))
