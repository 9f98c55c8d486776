"""Panels about routing networks from weights of many gains: errors, what domains share, and the published sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._figures.style import COLOURS, DASHES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset


def colour_of(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def draw_errors(axes: Axes, data: Dataset) -> None:
    error = data.error.sel(kind="untrained")
    for index, k in enumerate(data.pairs.values):
        values = error.sel(pairs=k)
        axes.fill_between(data.gain, values.min("seed"), values.max("seed"), color=colour_of(index), alpha=0.15, lw=0)
        axes.plot(data.gain, values.median("seed"), "o-", ms=4, color=colour_of(index), label=f"{k}")
    axes.plot(data.gain, data.lazy_error, color="0.1", lw=1.3, ls=DASHES, label="1, lazy limit")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="gain of the initial weights",
        ylabel="error of untrained pairs",
        title="networks from small weights generalise",
    )
    axes.legend(title="trained pairs", loc="lower right", ncols=2)


def draw_grams(axes: Axes, data: Dataset) -> None:
    for index, k in enumerate(data.pairs.values):
        axes.plot(data.gain, data.gram.sel(pairs=k).median("seed"), "o-", ms=4, color=colour_of(index), label=f"{k}")
    chance = np.sqrt(data.per_domain / data.hidden)
    axes.axhline(chance, color="0.5", lw=1, ls=":")
    axes.annotate("chance", (float(data.gain[0]), chance), (0, 3), textcoords="offset points")
    axes.set(
        xscale="log",
        ylim=(0, 1.05),
        xlabel="gain of the initial weights",
        ylabel="Gram ratio, between / within",
        title="from small weights domains share directions",
    )


def draw_published(axes: Axes, data: Dataset) -> None:
    error = data.sweep_error.sel(kind="untrained")
    for values, label, colour in ((error, "error", COLOURS[1]), (data.sweep_gram, "Gram ratio", COLOURS[0])):
        axes.plot(data.sweep, values, "o", ms=3.5, color=colour, alpha=0.35, mew=0)
        axes.plot(data.sweep, values.median("seed"), "-", color=colour, label=label)
    axes.set(
        xlabel="gain of the initial weights",
        ylabel="error, Gram ratio",
        title=f"published sweep: {data.shown} trained pairs, {data.epochs} epochs",
    )
    axes.legend(loc="upper center")


def draw_similarity(axes: Axes, data: Dataset, kind: str) -> None:
    similarity = data.similarity / np.abs(data.similarity).max()
    image = axes.imshow(similarity, cmap="PuOr", vmin=-1, vmax=1)
    centres = (np.arange(data.domains) + 0.5) * data.per_domain - 0.5
    axes.set_xticks(centres, np.arange(data.domains) + 1)
    axes.set_yticks(centres, np.arange(data.domains) + 1)
    title = f"similarity of encoded items, {kind} weights (gain {float(data.end):g})"
    axes.set(xlabel="items by input domain", ylabel="items by input domain", title=title)
    axes.figure.colorbar(image, ax=axes, shrink=0.85, label="inner product / largest")


def draw_both(axes: Axes, data: Dataset) -> None:
    for index, k in enumerate(data.pairs.values):
        chosen = data.sel(pairs=k, kind="untrained")
        axes.plot(
            chosen.gram.values.ravel(),
            chosen.error.values.ravel(),
            "o",
            ms=4,
            color=colour_of(index),
            alpha=0.5,
            mew=0,
            label=f"{k}",
        )
    axes.set(
        yscale="log",
        xlabel="Gram ratio, between / within domains",
        ylabel="error of untrained pairs",
        title="shared directions alone are not enough",
    )
    axes.legend(title="trained pairs", loc="lower left", ncols=2)
