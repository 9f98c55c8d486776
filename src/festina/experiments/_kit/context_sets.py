"""Measures of pathways for sets of contexts: singular values, epochs to a share of the loss, and the order of sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ... import Task
from ..._figures.style import FAINT_GREY
from ..._foundation.errors import BadInput
from ...gates.comparing import times_to
from . import item_contexts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from xarray import DataArray, Dataset


def check_counts(contexts: Sequence[int], hidden: Sequence[int], width: int, items: int) -> None:
    """Refuse numbers of contexts and of units that do not belong together."""
    if sorted(set(contexts)) != list(contexts) or len(hidden) != len(contexts) or len(contexts) > 3:
        raise BadInput(
            f"contexts = {tuple(contexts)} and hidden = {tuple(hidden)}",
            "one to three numbers of contexts, rising, and as many of units",
            "give contexts=(4,), hidden=(500,)",
        )
    if width < items:
        raise BadInput(f"width = {width}", f"at least one unit for each of {items} items", f"give width={items}")


def broadest_strengths(task: Task, size: int, contexts: int, items: int) -> tuple[float, float]:
    """The broadest item mode's singular value for a set of contexts: on the target, and on the residual.

    The residual is what the shared pathway leaves.
    """
    v = np.repeat([1.0, -1.0], items // 2) / np.sqrt(items)
    net = item_contexts.gated(size, contexts=contexts, items=items, width=1)
    raw, rest = (net.moments(t).cov_yx[1] for t in (task, item_contexts.left_by_linear(task)))
    return float(np.linalg.norm(raw @ v)), float(np.linalg.norm(rest @ v))


def epochs_to(losses: DataArray, fraction: float) -> DataArray:
    """Epochs until losses have fallen to a fraction of their start, averaged over seeds; NaN if they never do."""
    import xarray

    when = xarray.apply_ufunc(
        lambda curves: times_to(losses.epoch.values, curves, fraction), losses, input_core_dims=[["epoch"]]
    )
    return when.where(np.isfinite(when)).mean("seed", skipna=False)


def pairs_out_of_order(times: np.ndarray, others: np.ndarray) -> int:
    """How many pairs the one list has in another order than the other."""
    signs, other_signs = (np.sign(np.subtract.outer(values, values)) for values in (times, others))
    return int(np.sum(np.triu(signs != other_signs, 1)))


def nearness(data: Dataset, losses: str) -> tuple[DataArray, DataArray]:
    """Mean distances from ReLU: those of other sizes over that of all contexts but one, and this over one context."""
    away = abs(data[losses] - data.relu_loss) / data.relu_loss.isel(epoch=0)
    away = away.mean(["seed", "epoch"])
    ends = away.sel(size=data.contexts - 1).drop_vars("size")
    return away.where(data["size"] < data.contexts - 1).min("size") / ends, ends / away.sel(size=1)


def dots(axes: Axes, x: ArrayLike, values: DataArray, colours: Mapping[int, str], *, hollow: bool = False) -> None:
    """Values for sets of every size, each in the colour of its size, on a faint line."""
    own = [colours[int(size)] for size in values["size"].values]
    axes.plot(x, values, color=FAINT_GREY, lw=1, zorder=0)
    axes.scatter(x, values, edgecolors=own, facecolors="white" if hollow else own, s=40)
