"""Predictions of the squared distances between digits, by the two-point theory and without any theory.

The theory predicts a distance for every pair [vanrossem2024, eq. 10]. Predictions for single pairs need not fit
together; eq. 50 averages them over other images, with weights exp(−distance).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from ... import probe
from ...theories.two_point import final_distance
from .digit_structure import PAIRS, SHOWN, square, structured, weighted

AS_RUN, PRINTED, NORMALISED, ALONE = "eq. 50 as run", "eq. 50 as printed", "eq. 50 normalised", "eq. 10 alone"
IMAGES, CLASSES = "images", "classes"
PREDICTIONS = (AS_RUN, PRINTED, NORMALISED, ALONE, IMAGES, CLASSES)


def predict(
    x: Float[np.ndarray, "sample pixel"],
    digit: Int[np.ndarray, " sample"],
    distance0: Float[np.ndarray, "shown shown"],
    output0: Float[np.ndarray, " pair"],
    alignment0: Float[np.ndarray, " pair"],
    *,
    raw: Float[np.ndarray, "image pixel"],
    digits_of_raw: Int[np.ndarray, " image"],
    order: Int[np.ndarray, " shown"],
) -> dict[str, Float[np.ndarray, "shown shown"]]:
    """Every prediction for the digits that are shown.

    `x` and `digit` are those of the shown digits, with the normalised pixels that the network sees. `raw` are all
    images that eq. 50 as run sums over, and `order` the places of the shown digits among them.
    """
    pairwise = structured(x, digit, np.arange(SHOWN))
    squares = np.sum((x[:, None] - x) ** 2, axis=-1)
    first, second = PAIRS.T
    from_start = final_distance(
        distance0=distance0[first, second],
        output0=output0,
        alignment0=alignment0,
        input_gap=squares[first, second],
        target_gap=2.0 * (digit[first] != digit[second]),
        tau_h=1.0,
        tau_y=1.0,
    )
    return {
        AS_RUN: weighted(raw, digits_of_raw, order),
        PRINTED: probe.weighted(square(np.asarray(from_start))),
        NORMALISED: probe.weighted(pairwise, scale=None, normalised=True),
        ALONE: pairwise,
        IMAGES: squares,
        CLASSES: (digit[:, None] != digit).astype(float),
    }


def undecided(
    x: Float[np.ndarray, "image pixel"], digit: Int[np.ndarray, " image"], rows: Int[np.ndarray, " shown"]
) -> int:
    """How many weights of eq. 50 are neither 0 nor 1, to a part in 10⁹."""
    weights = np.exp(-structured(x, digit, rows))
    return int(np.sum((weights > 1e-9) & (weights < 1 - 1e-9)))
