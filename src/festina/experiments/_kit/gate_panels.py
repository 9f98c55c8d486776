"""Panels about the gates of ReLU units in training: the samples on which units are active, and how these change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._figures.style import COLOURS
from .item_contexts import EPOCHS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

CONTEXTS, ITEMS = 3, 8
PAIRS = ("110", "101", "011")
FOLLOWED = (500, 1000, 2000, 8000)  # epochs at which the gates of some units are drawn
ROUNDING = 1e-16  # smaller errors are drawn as this one


def draw_switches(axes: Axes, mean: Dataset) -> None:
    """Share of the weight in three kinds of units: on for all samples at first; still so; gates changed since."""
    run_as, printed = mean.start.values
    for start, style in ((run_as, "-"), (printed, ":")):
        at = mean.sel(start=start)
        lines = {
            "in units active on all samples at first": at.began_all_on,
            "part of this still active on all samples": at.kept_all_on,
            "in units whose gates have changed": at.switched,
        }
        for k, (label, line) in enumerate(lines.items()):
            named = label if start == run_as else None
            axes.plot(mean.epoch, line, ls=style, color=COLOURS[k], lw=1.8, label=named)
    axes.plot([], [], ":", color="0.3", label=f"from weights of sd {printed:.0e}")
    axes.set(xlabel=EPOCHS, ylabel="share of the weight", title="units switch their gates", ylim=(-0.03, 1.03))
    axes.legend(loc="center right")


def draw_patterns(axes: Axes, mean: Dataset, every: int) -> None:
    """How many different patterns strong units have, and how many gates change between records."""
    run_as = mean.start.values[0]
    axes.plot(mean.epoch, mean.strong.sel(start=run_as), color=COLOURS[3], lw=2, label="strong units")
    axes.plot(mean.epoch, mean.distinct.sel(start=run_as), color=COLOURS[0], lw=2, label="their different patterns")
    axes.set(xlabel=EPOCHS, ylabel="number", title="nearly every unit gets gates of its own", ylim=(0, None))
    rate = axes.twinx()
    rate.plot(mean.interval, mean.flips, color=COLOURS[1], lw=1)
    rate.set_ylabel(f"share of gates that change, per {every} epochs", color=COLOURS[1])
    rate.set_ylim(0, None)
    rate.spines.right.set_visible(True)
    axes.legend(loc="center right")


def draw_errors(axes: Axes, mean: Dataset) -> None:
    """How far a network with constant gates, and a replay of the recorded gates, are from the ReLU network."""
    # At the start outputs are 0, and there is nothing to compare.
    compared = mean.epoch.values >= FOLLOWED[0]
    gaps = {
        "hidden layout: 1 − correlation": 1 - mean.geometry,
        "outputs, relative": mean.output_gap,
        "loss / first loss": mean.loss_gap,
        "replay, gates of every step": mean.replay_error,
    }
    for k, (label, gap) in enumerate(gaps.items()):
        high = np.maximum(gap[compared], ROUNDING)
        axes.plot(mean.epoch[compared], high, color=COLOURS[k], lw=1.8, label=label)
    axes.set(xlabel=EPOCHS, ylabel="distance from ReLU", title="what constant gates miss", yscale="log")
    axes.set_ylim(ROUNDING / 3, 3)
    axes.legend(loc="center right")


def draw_votes(axes: Axes, mean: Dataset) -> None:
    """Shares of the weight by majority vote: units for all contexts, for two contexts, and others."""
    known = ["111", *PAIRS]
    names = ["all contexts", *(f"contexts {a}, {b}" for a, b in ((1, 2), (1, 3), (2, 3)))]
    others = mean.majority.sum("vote") - mean.majority.sel(vote=known).sum("vote")
    parts = [*(mean.majority.sel(vote=vote) for vote in known), others]
    axes.stackplot(
        mean.epoch,
        parts,
        colors=[COLOURS[0], COLOURS[1], COLOURS[4], "#F3C5A0", "0.75"],
        labels=[*names, "others"],
        lw=0,
    )
    axes.set_title("contexts by majority vote over their items")


def draw_followed(axes: Axes, data: Dataset) -> None:
    """The gates of the same units, in the same order, at some epochs."""
    from matplotlib.colors import ListedColormap

    tint = np.repeat(1 + np.arange(CONTEXTS), ITEMS)
    blocks = [data.on.sel(shown=at).values * tint for at in data.shown.values]
    samples = CONTEXTS * ITEMS
    gap = np.full((len(blocks[0]), 2), np.nan)
    picture = np.concatenate([part for block in blocks for part in (block, gap)][:-1], axis=1)
    colours = ListedColormap(["#F2F2F2", *COLOURS[:CONTEXTS]])
    axes.imshow(picture, aspect="auto", cmap=colours, vmin=-0.5, vmax=CONTEXTS + 0.5, interpolation="nearest")
    axes.set_xticks(
        [k * (samples + 2) + (samples - 1) / 2 for k in range(len(blocks))], [f"{at:g}" for at in data.shown.values]
    )
    axes.tick_params(length=0)
    axes.set(xlabel="items in contexts 1, 2, 3 (colours) at epoch", yticks=[], title="the same units over time")
    axes.set_ylabel(f"the {len(blocks[0])} strongest units in the end")
