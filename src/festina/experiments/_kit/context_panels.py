"""Panels about items in contexts: singular values of the pathways, and samples on which ReLU units are active."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._figures.style import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

STRONGEST = 120  # number of units that are drawn, the strongest ones


def draw_singular_values(axes: Axes, data: Dataset) -> None:
    """Singular values for one context and for the other two contexts: `raw` on the target, and on the `residual`.

    The residual is what the best linear map leaves of the target.
    """
    modes = np.arange(data.sizes["mode"]) + 1
    for k, subset in enumerate(data.subset.values):
        for size, marker in ((1, "o"), (2, "x")):
            for target, offset in (("raw", -0.08), ("residual", 0.08)):
                values = data[target].sel(size=size, subset=subset).values
                where, learnable = modes + offset + 0.1 * (k - 1), values > 1e-9
                points = axes.scatter(
                    where[learnable], values[learnable], color=COLOURS[k], marker=marker, s=28, lw=1.2
                )
                if size == 1:
                    points.set_facecolor("none")
    axes.scatter([], [], marker="o", facecolors="none", edgecolors="0.3", s=28, label="one context")
    axes.scatter([], [], marker="x", color="0.3", s=28, label="the other two contexts")
    axes.annotate("on the target", (modes[2] + 0.4, float(data.raw.isel(mode=2).max())), va="center")
    axes.annotate("on the residual", (modes[0], float(data.residual.isel(mode=-2).min())), ha="left", va="bottom")
    axes.set(xlabel="mode", ylabel="singular value", title="singular values tie on the residual only", yscale="log")
    axes.legend(loc="upper right")


def draw_units(axes: Axes, data: Dataset, contexts: int) -> None:
    """For the strongest units at some epochs: the samples for which each unit is on, in the colour of the context."""
    from matplotlib.colors import ListedColormap

    count = min(STRONGEST, data.sizes["hidden"])
    blocks = []
    for epoch in data.shown.values:
        on = data.on.sel(shown=epoch).values[:count].T.astype(float)
        on = on.reshape(contexts, -1, count)
        order = np.lexsort([on.mean(axis=1).min(axis=0), on.mean(axis=1).argmin(axis=0)])
        tinted = on * (1 + np.arange(contexts))[:, None, None]
        blocks.append(tinted.reshape(-1, count)[:, order].T)
    gap = np.full((count, 2), np.nan)
    picture = np.concatenate([part for block in blocks for part in (block, gap)][:-1], axis=1)
    colours = ListedColormap(["#F2F2F2", *COLOURS[:contexts]])
    axes.imshow(picture, aspect="auto", cmap=colours, vmin=-0.5, vmax=contexts + 0.5, interpolation="nearest")
    samples = blocks[0].shape[1]
    middles = [k * (samples + 2) + (samples - 1) / 2 for k in range(len(blocks))]
    axes.set_xticks(middles, [f"{epoch:g}" for epoch in data.shown.values])
    axes.tick_params(length=0)
    axes.set(xlabel="items in contexts 1, 2, 3 (colours) at epoch", ylabel="strongest ReLU units, sorted", yticks=[])
    axes.set_title("samples on which each unit is active")
