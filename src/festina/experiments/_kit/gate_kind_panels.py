"""Panels about the kinds of gates: every gate of a small task, how many are possible, and those of ReLU units."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .item_contexts import EPOCHS
from .possible_gates import (
    KINDS,
    SOURCE,
    gates_of,
    label,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset


def draw_counts(axes: Axes, data: Dataset, colours: Mapping[str, str]) -> None:
    """The share of all gates that are of each kind, for every size."""
    below = np.zeros(data.sizes["size"])
    number = data.patterns.sum("kind").values
    for kind, colour in colours.items():
        high = data.patterns.sel(kind=kind).values / number
        axes.bar(data["size"], high, bottom=below, color=colour, width=0.6)
        below += high
    for k, (possible, of_all) in enumerate(zip(data.possible.values, number, strict=True)):
        axes.annotate(f"{possible} of {of_all}", (k, 1.02), ha="center", va="bottom", fontsize=9)
    axes.set(ylabel="share of all gates", xlabel="items × contexts", ylim=(0, 1.12))
    axes.set_title("how many gates are possible")


def draw_shares(axes: Axes, data: Dataset, colours: Mapping[str, str]) -> None:
    """The share of the weight of ReLU units in gates of each kind, over training."""
    possible = [colours[kind] for kind in KINDS[:-1]]
    axes.stackplot(data.epoch, data.source_share[:, :-1].T, colors=possible, lw=0)
    axes.set(xlabel=EPOCHS, ylabel="share of the weight", ylim=(0, 1), xlim=(0, float(data.epoch[-1])))
    axes.set_title(f"gates of ReLU units, {SOURCE[0]} items in {SOURCE[1]} contexts")


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
    possible, used = int((kinds < KINDS.index("impossible")).sum()), int(data.strong.sel(task=label(size)))
    axes.set_title(
        f"{items} items (across) in {contexts} contexts: {possible} of {len(kinds)} gates;\n"
        f"bars: weight of trained ReLU units; units that have grown show {used} gates"
    )
