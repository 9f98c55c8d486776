"""Panels about competing gatings: epochs to a share of the loss, singular values, and the effect of removing data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._figures.style import COLOURS
from .gatings import (
    POINTS,
    TWIN,
)
from .item_contexts import EPOCHS
from .taking_away import TRIALS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

FRACTIONS = (0.5, 0.1, 0.01)


def draw_taking_away(axes: Axes, data: Dataset) -> None:
    """How often the first singular value of random data rises when an input, an output or a sample is removed."""
    share = 100 * data.raised.values
    axes.bar(data.taken.values, share, color=[COLOURS[5]] * 3 + [COLOURS[1]], width=0.6)
    for k, high in enumerate(share):
        axes.annotate(f"{high:.3g} %", (k, high), ha="center", va="bottom")
    axes.set(ylabel="first singular value raised (%)", ylim=(0, 1.2 * share.max()))
    axes.set_title(f"removing part of random data, {TRIALS} cases each")


def draw_times(axes: Axes, data: Dataset, colours: dict[str, str]) -> None:
    """Epochs to each fraction of the loss, one row for each gating, in the order of the last fraction."""
    when = data.epochs_to.values
    order = np.lexsort([when[:, 1], when[:, 2]])[::-1]
    markers = dict(zip(FRACTIONS, ("|", "x", "o"), strict=True))
    for k, (fraction, marker) in enumerate(markers.items()):
        for row, which in enumerate(order):
            colour = colours.get(str(data.candidate.values[which]), "0.45")
            axes.plot(when[which, k], row, marker, color=colour, ms=5, mew=1.5, ls="none")
        axes.plot([], [], marker, color="0.3", ms=5, mew=1.5, ls="none", label=f"{100 * fraction:g} %")
        axes.axvline(float(data.relu_epochs_to[k]), color="0.75", lw=3, zorder=0)
    axes.set_yticks(range(len(order)), [str(data.candidate.values[which]) for which in order], fontsize=8)
    axes.set(xlabel=EPOCHS, xlim=(0, None))
    axes.set_title("epochs to a share of the loss (grey: ReLU)")
    axes.legend(loc="upper right", handletextpad=0.2, frameon=True, framealpha=0.9)


def draw_values(axes: Axes, data: Dataset) -> None:
    """Singular values of what the common pathway leaves, largest first."""
    groups = {TWIN: (data.two_contexts.values.ravel(), COLOURS[1]), POINTS: (data.points.values, COLOURS[0])}
    for name, (given, colour) in groups.items():
        live = np.sort(given[given > 1e-9])[::-1]
        axes.plot(np.arange(len(live)) + 1, live, "o-", color=colour, ms=4, lw=1, label=name)
    axes.set(xlabel="mode of all pathways, strongest first", ylabel="singular value", ylim=(0, None))
    axes.set_title("what the common pathway leaves")
    axes.legend(loc="upper right")
