"""Panels about competing gatings: epochs to shares of the initial loss, and singular values on the residual."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._figures.panels import key
from ..._figures.style import FAINT_GREY, INK
from .item_contexts import EPOCHS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray, Dataset

FRACTIONS = {0.5: "|", 0.1: "x", 0.01: "o"}  # of the first loss, with their markers


def draw_times(axes: Axes, data: Dataset, colours: Mapping[str, str]) -> None:
    """Epochs to each fraction of the loss, one row for each gating, in the order of the last fraction."""
    from matplotlib.lines import Line2D

    look: dict[str, Any] = dict(ls="none", ms=6, mew=1.5)
    rows = data.isel(candidate=np.lexsort(data.epochs_to.values[:, 1:].T)[::-1])
    for k, marker in enumerate(FRACTIONS.values()):
        for row, name in enumerate(rows.candidate.values):
            axes.plot(rows.epochs_to[row, k], row, marker, color=colours.get(str(name), INK), **look)
        axes.axvline(float(data.relu_epochs_to[k]), color=FAINT_GREY, lw=3, zorder=0)
    axes.set_yticks(range(rows.sizes["candidate"]), rows.candidate.values, fontsize=8)
    for label in axes.get_yticklabels():
        label.set_color(colours.get(label.get_text(), INK))
    axes.set(xlabel=EPOCHS, xlim=(0, None), title="Epochs to 50, 10 and 1 % of the initial loss")
    marks = [Line2D([], [], marker=m, color=INK, label=f"{100 * f:g} %", **look) for f, m in FRACTIONS.items()]
    key(axes, kinds=(), marks=marks)


def draw_values(axes: Axes, values: Mapping[str, DataArray], colours: Mapping[str, str]) -> None:
    """Singular values of all pathways of gatings, largest first."""
    for name, found in values.items():
        live = np.sort(found.values[found.values > 1e-9])[::-1]
        axes.plot(np.arange(len(live)) + 1, live, "o", color=colours[name], ms=4)
    axes.set(xlabel="mode of all pathways, strongest first", ylabel="singular value", ylim=(0, None))
    axes.set_title("Singular values on the residual")
