"""Measures of pathways for sets of contexts: singular values, distances of losses, and the order of sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import Task
from ...gates.comparing import largest_distance, mean_distance
from . import item_contexts

if TYPE_CHECKING:
    from xarray import DataArray, Dataset


def broadest_strengths(task: Task, size: int, contexts: int, items: int) -> tuple[float, float]:
    """The broadest item mode's singular value for a set of contexts: on the target, and on the residual.

    The residual is what the common pathway leaves.
    """
    v = np.repeat([1.0, -1.0], items // 2) / np.sqrt(items)
    net = item_contexts.gated(size, contexts=contexts, items=items, width=1)
    raw, rest = (net.moments(t).cov_yx[1] for t in (task, item_contexts.left_by_linear(task)))
    return float(np.linalg.norm(raw @ v)), float(np.linalg.norm(rest @ v))


def distances_from_relu(losses: DataArray, relu: np.ndarray, count: int) -> list[float]:
    """Mean distance of the curves of every size from those of ReLU."""
    return [mean_distance(losses.sel(contexts=count, size=m).values, relu) for m in range(1, count)]


def furthest_from_one(ratios: np.ndarray) -> float:
    """The ratio that is furthest from 1, up or down."""
    return float(ratios[np.argmax(np.abs(np.log(ratios)))])


def pairs_out_of_order(times: np.ndarray, others: np.ndarray) -> int:
    signs, other_signs = (np.sign(np.subtract.outer(values, values)) for values in (times, others))
    return int(np.sum(np.triu(signs != other_signs, 1)))


def distance_of_fit(data: Dataset, kind: str) -> float:
    return largest_distance(data[f"{kind}_loss"].values, data.relu_loss.mean("seed").values)
