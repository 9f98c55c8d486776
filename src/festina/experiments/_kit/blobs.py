"""How much of a blob's two position features each layer keeps after a network has learned blobs in two contexts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..._setup.setup import Setup
from ...gates.comparing import scaling
from . import hidden_activity
from .labelled import table
from .training import simulate

if TYPE_CHECKING:
    from xarray import Dataset

CONTEXTS = 2


def measured(setup: Setup, seeds: Sequence[int], positions: int) -> Dataset:
    """Losses of one setting, and what is left of both features in every layer.

    `collapse` is the variance of the activity along the irrelevant feature over that along the relevant one, `start`
    the same before training, `apart` the squared distance of the contexts over the variance along the relevant feature,
    and `layout` the middle layer of the first seed in two dimensions.
    """
    import xarray

    trajectory = simulate(setup, seeds, "loss")
    before = hidden_activity.activity(setup, hidden_activity.first_weights(setup, seeds), setup.single_task.x)[0]
    after = hidden_activity.activity(setup, trajectory.weights, setup.single_task.x)[0]
    off, along, apart = _variances(after, positions)
    off_first, along_first, _ = _variances(before, positions)
    layout, dimensions = _plane(after[0, after.shape[1] // 2], positions)
    return xarray.Dataset(
        {
            "loss": table(trajectory["loss"], "seed", "record"),
            "start": table(off_first / along_first, "seed", "layer"),
            "collapse": table(off / along, "seed", "layer"),
            "apart": table(apart / along, "seed", "layer"),
            "layout": table(layout, "sample", "dimension"),
            "dimensions": table(dimensions, "dimension"),
        },
        coords={"seed": list(seeds)},
    )


def _plane(hidden: Float[np.ndarray, "sample unit"], positions: int) -> tuple[np.ndarray, np.ndarray]:
    """Two dimensions of classical scaling, and their numbers.

    They are the first and second, or the second and third where the first only separates the contexts.
    """
    points = scaling(hidden, 3)
    first = points[:, 0].reshape(CONTEXTS, positions**2)
    begin = int(np.var(first.mean(axis=1)) > 0.9 * np.var(first))
    return points[:, begin : begin + 2], np.arange(begin, begin + 2) + 1


def _variances(
    hidden: Float[np.ndarray, "seed layer sample unit"], positions: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Variances along the irrelevant and the relevant feature, and the squared distance of the contexts, (seed, layer).

    The last is the distance of the means of points with the same target.
    """
    grid = hidden.reshape(*hidden.shape[:2], CONTEXTS, positions, positions, -1)
    # With the relevant feature first in both contexts.
    grid = np.stack([grid[:, :, 0], np.swapaxes(grid[:, :, 1], 2, 3)], axis=2)
    off, along = (np.var(grid, axis=axis).sum(axis=-1).mean(axis=(2, 3)) for axis in (4, 3))
    lines = grid.mean(axis=4)
    return off, along, np.sum((lines[:, :, 0] - lines[:, :, 1]) ** 2, axis=-1).mean(axis=-1)
