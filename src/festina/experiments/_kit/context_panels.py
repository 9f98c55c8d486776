"""Panels about items in contexts: singular values of pathways, and the samples for which ReLU units are active."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._figures.panels import key
from ..._figures.style import DARK_GREY, LIGHT_GREY
from ..._setup.trajectory import Trajectory
from ...gates.reading import purity
from ...tasks.base import Task
from . import item_contexts
from .item_contexts import EPOCHS
from .labelled import table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray, Dataset

ALL, TWO_WHOLE, SOME = "all items of 3 contexts", "all items of 2", "some items only"
KINDS = (ALL, TWO_WHOLE, "all items of 1", SOME, "never")


def shares_of_units(relu: Trajectory, contexts: int) -> dict[str, DataArray]:
    """The share of the squared weights in units of each kind, and in units active on most items of two contexts."""
    units = purity(relu).isel(layer=0)
    kinds = [*(units.on_for[..., k] for k in range(contexts, 0, -1)), units.split, units.dead]
    for_two = [vote.count("1") == 2 for vote in units.vote.values]
    return {
        "share": table(np.stack(kinds, axis=-1), "seed", "epoch", "kind").assign_coords(kind=list(KINDS)),
        "majority": table(units.majority.values[..., for_two].sum(axis=-1), "seed", "epoch"),
    }


def paired_strengths(task: Task, contexts: int, items: int) -> DataArray:
    """Singular values of pathways, where entries of `subset` are one context (size 1) and all but this one."""
    one, others = (item_contexts.strengths(task, size, contexts, items) for size in (1, contexts - 1))
    array = table(np.stack([one, others[::-1]]), "size", "subset", "mode")
    return array.assign_coords(size=[1, contexts - 1])


def draw_singular_values(axes: Axes, data: Dataset) -> None:
    """Singular values for one context against those for the other two, on the target and on the residual."""
    for target, face in (("target", DARK_GREY), ("residual", "none")):
        pairs = data[target].stack(pathway=("subset", "mode"))
        learned = pairs.isel(pathway=pairs.values.min(axis=0) > 1e-9)
        axes.scatter(*learned, facecolors=face, edgecolors=DARK_GREY, s=26, label=f"on the {target}")
    axes.axline((0.1, 0.1), (0.2, 0.2), color=LIGHT_GREY, lw=0.9, zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="singular value, one context", ylabel="singular value, two others")
    ticks = (0.02, 0.05, 0.1, 0.2, 0.4)
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_title("Only the target tells the kinds apart")
    axes.legend(loc="lower right", handletextpad=0.2)


def draw_shares(axes: Axes, data: Dataset, two: str) -> None:
    """The share of the weight in units of each kind over time; what is for two contexts in the colour `two`."""
    curves = {kind: data.share.sel(kind=kind) for kind in (ALL, TWO_WHOLE, SOME)}
    looks = {ALL: (DARK_GREY, "-"), TWO_WHOLE: (two, "-"), "most items of 2": (two, ":"), SOME: (LIGHT_GREY, "-")}
    for name, (colour, style) in looks.items():
        axes.plot(data.epoch, curves.get(name, data.majority), color=colour, ls=style, lw=1.8, label=name)
    axes.set(xlabel=EPOCHS, ylabel="share of squared weights", title="Where ReLU units are active", ylim=(-0.02, 1.03))
    key(axes, kinds=(), marks=axes.get_lines())
