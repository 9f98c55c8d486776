"""The six pairs of the four inputs of exclusive or, and a picture of their distances in a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._figures.style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray

PAIRS = ("00–10", "00–01", "00–11", "10–01", "10–11", "01–11")  # of tasks.xor(form="bits"), in their order
MERGING = ("00–11", "10–01")  # those of one target
OTHERS = tuple(pair for pair in PAIRS if pair not in MERGING)
APART = 0.24  # between the marks of two networks
THEORY: dict[str, Any] = dict(color=INK, marker="_", ls="", ms=11, mew=1.5)


def of_one_target(distance: DataArray) -> DataArray:
    """Distances of the two pairs of one target over the mean of the others."""
    return distance.sel(pair=list(MERGING)) / distance.sel(pair=list(OTHERS)).mean("pair")


def draw_pairs(
    axes: Axes,
    distance: DataArray,
    predicted: DataArray,
    looks: list[dict[str, Any]],
    before: tuple[DataArray, dict[str, Any]] | None = None,
) -> None:
    """Distances of networks, (network, pair), each with its look, and those that the theory predicts.

    Pairs of one target are shaded; `before` are distances before training, with one look for all.
    """
    places, middle = np.arange(len(PAIRS)), (len(distance) - 1) / 2
    for number, look in enumerate(looks):
        where = places + APART * (number - middle)
        axes.plot(where, distance[number], **look)
        axes.plot(where, predicted[number], **THEORY)
        if before:
            axes.plot(where, before[0][number], **before[1])
    first, last = (PAIRS.index(pair) for pair in MERGING)
    axes.axvspan(first - 0.5, last + 0.5, color="0.93", zorder=0)
    axes.margins(y=0.08)
    axes.set_xticks(places, PAIRS)
    axes.set(xlabel="pair of inputs", ylabel="distance", ylim=(0, None))
