"""Panels about the reversal of a learned task: escape times beside their law, and the flow that stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._figures.style import COLOURS, TIME, predicted, trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray, Dataset

PRECISIONS = ("float64", "float32")


def draw_law(axes: Axes, x: DataArray, y: DataArray, slope: float, colour: str, label: str, log: bool = False) -> None:
    """Escape times, and a line through the last of them with the slope that the law gives."""
    axes.plot(x, y, "o", color=colour, ms=5, mfc="none", label=label)
    scale = np.log(x) if log else x
    axes.plot(x, float(y[-1]) + slope * (scale - scale[-1]), color=colour, lw=1)
    if log:
        axes.set_xscale("log")


def draw_stuck(axes: Axes, data: Dataset) -> None:
    for k, name in enumerate(PRECISIONS):
        trained(axes, data.time, data.rounding_loss[k], colour=COLOURS[k], label=f"trained in {name}")
    trained(axes, data.time, data.shallow_loss, colour=COLOURS[2], label="shallow network, trained")
    predicted(axes, data.time, data.stuck_loss, colour=COLOURS[0], label="exact flow")
    axes.set(xlabel=TIME, ylabel="loss of the reversed task", title="learned to the end, then reversed")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right")
