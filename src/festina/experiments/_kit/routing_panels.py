"""Panels about a routing network: its loss, untrained pairs, speed, and what domains share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..._figures.style import COLOURS, DASHES, legend_of_kinds, predicted, trained
from . import routing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset


def trained_loss(data: Dataset, kind: str) -> Float[np.ndarray, "seed mark"]:
    """Loss of trained or untrained pairs in the slides' units."""
    chosen = data.error.sel(pairs=data.shown, kind=kind).values
    count = data.shown if kind == "trained" else data.domains - data.shown
    return chosen * routing.slides_units(data.domains, count) * data.power / 2


def draw_learning(axes: Axes, data: Dataset) -> None:
    others = (data.domains - data.shown) / data.shown
    for kind, factor, colour in (("trained", 1.0, COLOURS[0]), ("untrained", others, COLOURS[1])):
        trained(axes, data.mark, trained_loss(data, kind), colour=colour)
        predicted(axes, data.epoch, factor * data.law_loss, colour=colour)
    axes.set(
        xlabel=f"epochs (lr {data.lr:g} of the slides)",
        ylabel="loss (slides' units)",
        title=f"{data.shown} of {data.domains} pairs trained; start of the law fitted",
        ylim=(None, 1.15 * float(data.law_loss[0])),
    )
    legend_of_kinds(axes, loc="upper right")
    for height, (kind, colour) in zip((0.72, 0.64), (("trained", COLOURS[0]), ("untrained", COLOURS[1])), strict=True):
        axes.text(0.97, height, f"{kind} pairs", transform=axes.transAxes, ha="right", color=colour)


def draw_generalising(axes: Axes, data: Dataset) -> None:
    error = data.error.sel(kind="untrained").isel(mark=-1)
    for k, values in zip(data.pairs.values, error.values, strict=True):
        spread = np.linspace(-0.18, 0.18, len(values))
        axes.plot(k + spread, values, "o", ms=3.5, color=COLOURS[0], alpha=0.5, mew=0)
    axes.plot(data.pairs, error.median("seed"), "_", ms=22, mew=2, color="0.1", label="median")
    axes.axhline(1, color="0.5", lw=1, ls=":")
    axes.annotate("zero output", (float(data.pairs[-1]) + 0.35, 1), (0, 3), textcoords="offset points", ha="right")
    axes.set_xticks(
        data.pairs.values, [f"{k}\n{r:.2f}" for k, r in zip(data.pairs.values, data.runner_up.values, strict=True)]
    )
    axes.set(
        yscale="log",
        xlabel="trained pairs per domain\nsecond singular value / first",
        ylabel="error of untrained pairs",
        title=f"a few trained pairs are enough (gain {data.gain:g})",
    )
    axes.legend(loc="lower left")


def draw_sharing(axes: Axes, data: Dataset) -> None:
    labels = {
        "across": ("domains, one pair each", COLOURS[0]),
        "per": (f"pairs, {data.domains} domains", COLOURS[1]),
    }
    for name, (label, colour) in labels.items():
        axes.plot(data[name], data[f"{name}_training"], "o", ms=9, color=colour, alpha=0.45, mew=0, label=label)
        predicted(axes, data[name], data[f"{name}_law"], colour=colour)
    axes.set(
        xscale="log",
        yscale="log",
        ylim=(25, None),
        xlabel="number of domains, or of pairs per domain",
        ylabel="epochs until mode 1 is half learned",
        title="shared layers are faster (dots: training)",
    )
    ticks = sorted({*data.across.values} | {*data.per.values})
    axes.set_xticks(ticks, [f"{tick}" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks([50, 100, 200, 400], ["50", "100", "200", "400"])
    axes.legend(loc="lower left")


def draw_signs(axes: Axes, data: Dataset, pairs: int) -> None:
    shown = data.cosine.sel(pairs=pairs).isel(seed=0, mode=0)
    image = axes.imshow(shown, cmap="PuOr", vmin=-1, vmax=1)
    numbers = np.arange(data.domains)
    axes.set_xticks(numbers, numbers + 1)
    axes.set_yticks(numbers, numbers + 1)
    axes.set(xlabel="input domain", ylabel="input domain", title=f"mode 1 in the hidden layer, K = {pairs}")
    axes.figure.colorbar(image, ax=axes, shrink=0.85, label="cosine between domains")


def draw_explained(axes: Axes, data: Dataset) -> None:
    reach = 0.0
    for k, colour in ((1, COLOURS[0]), (2, COLOURS[1])):
        chosen = data.sel(pairs=k)
        measured = chosen.error.sel(kind="untrained").isel(mark=-1)
        axes.plot(chosen.turned_error, measured, "o", ms=6, color=colour, alpha=0.6, mew=0, label=f"K = {k}")
        reach = max(reach, float(measured.max()), float(chosen.turned_error.max()))
    axes.plot([0, 1.05 * reach], [0, 1.05 * reach], color="0.3", lw=1.3, ls=DASHES)
    axes.set(
        xlabel="error from rotations of the hidden subspace",
        ylabel="error of untrained pairs",
        title="rotations explain the error",
    )
    axes.legend(loc="upper left")
