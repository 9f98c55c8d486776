"""Images of a blob whose horizontal or vertical position is asked for, by context.

Pixels lie on a square grid from −1 to 1; an image is exp(−|pixel − μ|²/2) divided by its sum, for centres μ on a grid
of `positions` × `positions`. The input is the image beside a one-hot context; the target is μ's first coordinate in
context 0 and its second in context 1, so that in each context one feature matters and the other does not
[vanrossem2024, section 4.3 and appendix B.3].
"""

from __future__ import annotations

import numpy as np

from .._foundation.checks import whole
from ._recipe import recipe
from .base import Task
from .own_data import from_arrays


@recipe
def blobs(positions: int = 30, pixels: int = 5) -> Task:
    """`positions`² blobs in two contexts; labels "context", "first" and "second" (the positions, counted from 0).

    Samples are sorted by context, then by the first position, then by the second.
    """
    positions, pixels = whole(positions, "positions", least=2), whole(pixels, "pixels", least=2)
    centres, grid = np.linspace(-1, 1, positions), np.linspace(-1, 1, pixels)
    first, second = (index.ravel() for index in np.indices((positions, positions)))
    rows, columns = (coordinate.ravel() for coordinate in np.meshgrid(grid, grid, indexing="ij"))
    squares = (rows - centres[first][:, None]) ** 2 + (columns - centres[second][:, None]) ** 2
    images = np.exp(-squares / 2)
    images /= images.sum(axis=1, keepdims=True)
    context = np.repeat([0, 1], len(images))
    return from_arrays(
        np.concatenate([np.tile(images, (2, 1)), np.eye(2)[context]], axis=1),
        np.concatenate([centres[first], centres[second]])[:, None],
        inputs=[*(f"pixel {r} {c}" for r in range(pixels) for c in range(pixels)), "context 1", "context 2"],
        features=("position",),
        labels={"context": context, "first": np.tile(first, 2), "second": np.tile(second, 2)},
    )
