"""The gates of single ReLU units in training: how many change between records, and those of the strongest units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int8

from ... import Trajectory
from ..._figures.style import COLOURS
from ...gates.recording import unpacked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

CONTEXTS, ITEMS = 3, 8
STRONGEST = 120  # units whose gates are drawn


def flips(trained: Trajectory, samples: int) -> Float[np.ndarray, "seed interval"]:
    """The share of gates that differ from those of the record before, averaged over units by their weight."""
    packed, size = trained["gates"], trained["unit_size"][:, 1:]
    changed = np.bitwise_count(packed[:, 1:] ^ packed[:, :-1]).sum(axis=-1) / samples
    return np.sum(changed * size, axis=-1) / size.sum(axis=-1)


def followed(trained: Trajectory, instants: Sequence[int], samples: int) -> Int8[np.ndarray, "shown unit sample"]:
    """Gates of the units that are strongest in the end, sorted by the contexts that they are then on for."""
    strongest = np.argsort(-trained["unit_size"][0, -1])[:STRONGEST]
    on = unpacked(trained["gates"][0][instants][:, strongest], samples)
    part = on[-1].reshape(len(strongest), CONTEXTS, ITEMS).mean(axis=-1)
    votes = (part > 0.5) @ 2 ** np.arange(CONTEXTS)
    # Units with the same vote stand together, those for more contexts first; within a vote the more regular ones.
    order = np.lexsort([part.sum(axis=1), votes, -(part > 0.5).sum(axis=1)])
    return on[:, order].astype(np.int8)


def draw_followed(axes: Axes, data: Dataset) -> None:
    """The gates of the same units, in the same order, at some epochs."""
    blocks, samples = data.on.values.astype(float), data.sizes["sample"]
    gap = np.full((blocks.shape[1], 3), np.nan)
    picture = np.concatenate([part for block in blocks for part in (block, gap)][:-1], axis=1)
    axes.imshow(picture, aspect="auto", cmap="Greys", vmin=0, vmax=1.1, interpolation="nearest")
    starts = [k * (samples + 3) - 0.5 for k in range(len(blocks))]
    for first, epoch in zip(starts, data.shown.values, strict=True):
        axes.text(first, -2, f"epoch {epoch:g}", va="bottom", size=9)
        for context in range(1, CONTEXTS):
            axes.axvline(first + context * ITEMS, color=COLOURS[5], lw=1.2)
    places = [first + (context + 0.5) * ITEMS for first in starts for context in range(CONTEXTS)]
    axes.set_xticks(places, [f"{k + 1}" for _ in starts for k in range(CONTEXTS)])
    axes.tick_params(length=0)
    axes.set(xlabel="items in contexts 1, 2 and 3", ylabel=f"{len(picture)} strongest units", yticks=[])
    axes.set_title("Gates of the same units change during training", pad=16)
    axes.spines[:].set_visible(False)
