"""Pictures of gates: every gate of a small task as a little grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .possible_gates import gates_of, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset


def draw_gates(axes: Axes, data: Dataset, size: Sequence[int], columns: int, colours: Sequence[str]) -> None:
    """Every gate as a little grid of contexts (rows) and items; below it a bar for the weight of the units with it."""
    from matplotlib.patches import Rectangle

    items, contexts = size
    kinds, weight = data[f"kind {label(size)}"].values, data[f"weight {label(size)}"].values
    order = np.argsort(kinds, kind="stable")
    across, down = items + 1.0, contexts + 1.6
    for place, number in enumerate(order):
        x, y = place % columns * across, -(place // columns) * down
        on = gates_of(np.array([number]), items * contexts)[0].reshape(contexts, items)
        for context, item in itertools.product(range(contexts), range(items)):
            face = colours[int(kinds[number])] if on[context, item] else "white"
            axes.add_patch(Rectangle((x + item, y - context), 1, 1, facecolor=face, edgecolor="0.6", lw=0.5))
        length = items * weight[number] / weight.max()
        axes.add_patch(Rectangle((x, y - contexts + 0.45), length, 0.3, facecolor="0.2", lw=0))
    rows = -(-len(order) // columns)
    axes.set(xlim=(-0.5, columns * across - 0.5), ylim=(-rows * down + 1.2, 1.5), aspect="equal")
    axes.set_axis_off()
