"""What a network that has learned blobs in two contexts keeps of their two positions, layer by layer."""

from __future__ import annotations

import numpy as np

from ..gates.comparing import scaling
from . import _layers

CONTEXTS = 2


def measured(setup, seeds, positions, middle):
    """Losses, and what is left of both features in every layer, of one setting."""
    trajectory, weights = _layers.trained_with_weights(setup, seeds)
    before = _layers.activity(setup, _layers.first_weights(setup, seeds), setup.task.x)[0]
    after = _layers.activity(setup, weights, setup.task.x)[0]
    off, along, apart = _variances(after, positions)
    off_first, along_first, _ = _variances(before, positions)
    return {
        "loss": trajectory["loss"], "start": off_first / along_first, "collapse": off / along, "along": along,
        "apart": apart, **_plane(after[0, middle], positions),
    }  # fmt: skip


def _plane(hidden, positions):
    """Two dimensions of classical scaling; where the first only tells the contexts apart, the next two."""
    points = scaling(hidden, 3)
    first = points[:, 0].reshape(CONTEXTS, positions**2)
    begin = int(np.var(first.mean(axis=1)) > 0.9 * np.var(first))
    return {"layout": points[:, begin : begin + 2], "dimensions": np.arange(begin, begin + 2) + 1}


def _variances(hidden, positions):
    """Variance along the irrelevant feature, along the relevant one, and the squared distance of contexts, each
    (seed, layer); the last is that of the means of points with the same target.
    """
    grid = hidden.reshape(*hidden.shape[:2], CONTEXTS, positions, positions, -1)
    # With the relevant feature first in both contexts.
    grid = np.stack([grid[:, :, 0], np.swapaxes(grid[:, :, 1], 2, 3)], axis=2)
    off, along = (np.var(grid, axis=axis).sum(axis=-1).mean(axis=(2, 3)) for axis in (4, 3))
    lines = grid.mean(axis=4)
    return off, along, np.sum((lines[:, :, 0] - lines[:, :, 1]) ** 2, axis=-1).mean(axis=-1)
