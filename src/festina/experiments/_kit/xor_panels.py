"""Panels about ReLU networks and two gatings of exclusive or, against the margin Δ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..._figures.style import COLOURS, predicted, trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset


def draw_losses(axes: Axes, data: Dataset, margin: float, colours: Mapping[str, str]) -> None:
    """Losses at one margin: both gatings, trained and predicted, and ReLU networks."""
    for name, colour in colours.items():
        losses = data.gated_loss.sel(margin=margin, gating=name)
        trained(axes, data.step, losses, colour=colour, label=f"{name} gates")
        predicted(axes, data.step, data.predicted_loss.sel(shown=margin, gating=name), colour=colour)
    # Drawn thin: as pale lines they would lie hidden below the gated networks.
    labels = ["ReLU", *[None] * (data.sizes["seed"] - 1)]
    axes.plot(data.step, data.relu_loss.sel(margin=margin).T, color=COLOURS[0], lw=1, label=labels)
    last = 1.6 * float(data.relu_steps.max())
    axes.set(xlabel="step", ylabel="loss", xlim=(0, last), title=f"Δ = {margin:g}")


def draw_mixture(axes: Axes, data: Dataset) -> None:
    """The share of the weight in units for one point, against the margin."""
    some = data.isel(margin=data.margin.values > 0)  # at Δ = 0 the signs of activities say nothing
    trained(axes, some.margin, some.one_point_share.T, colour=COLOURS[0])
    axes.plot(some.margin, some.one_point_share.mean("seed"), color=COLOURS[0], lw=1, marker="x", ms=5)
    axes.set(ylabel="weight in units for one point", title="from XoR gates to linear gates")


def draw_gain(axes: Axes, data: Dataset) -> None:
    """How many more steps ReLU networks need than the fastest gating, against the margin."""
    above = data.relu_steps.mean("seed") / data.gated_steps.mean("seed").min("gating") - 1
    axes.plot(data.margin, 100 * above, color=COLOURS[0], marker="x", lw=1, ms=5)
    axes.axhline(0, color="0.8", lw=0.8, zorder=0)
    axes.set(ylabel="ReLU steps above the fastest (%)", title="ReLU is within a few per cent of the fastest")


def draw_times(axes: Axes, data: Dataset, colours: Mapping[str, str]) -> None:
    for name, colour in colours.items():
        axes.plot(data.margin, data.gated_steps.sel(gating=name).mean("seed"), "o", ms=5, color=colour, alpha=0.5)
        expected = data.predicted_steps.sel(gating=name)
        live = np.isfinite(expected)
        predicted(axes, data.margin[live], expected[live], colour=colour, label=f"{name} gates")
    axes.plot(data.margin, data.relu_steps.mean("seed"), color=COLOURS[0], lw=1, marker="x", ms=5, label="ReLU")
    axes.set(ylabel="steps to loss 0.2", title="the fastest gates win", ylim=(0, 1.8 * float(data.relu_steps.max())))
    axes.legend(loc="upper right")
