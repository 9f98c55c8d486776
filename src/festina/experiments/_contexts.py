"""Items in contexts: gated networks for subsets of contexts, what ReLU units are on for, distances of loss curves.

The source descends the loss summed over the N samples; an epoch of it, at rate 10⁻³, is N·10⁻³ of time.
[jarvis2025, sections 4 and 5]
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import nets, tasks
from .._contest import time_to
from .._setup import Task

RATE = 1e-3  # of the source, on the summed loss
EPOCHS = "epochs at rate 10⁻³"


def subsets_of(sizes: int | Sequence[int], contexts: int) -> list[tuple[int, ...]]:
    """All subsets of the given sizes, small ones first."""
    listed = [sizes] if isinstance(sizes, int) else sizes
    return [subset for size in listed for subset in itertools.combinations(range(contexts), size)]


def gated(
    sizes: int | Sequence[int], *, contexts: int, items: int, width: Any, training: str = "joint"
) -> nets.Gated:
    """`Gated.contexts` with numbers for names: nets that differ in their gates alone then share compiled code."""
    common, other = np.broadcast_to(width, 2).tolist()
    others = [
        {"name": f"pathway {k + 1}", "on": {"context": subset}, "sees": tuple(range(items)), "width": other, "rank": 1}
        for k, subset in enumerate(subsets_of(sizes, contexts))
    ]
    return nets.Gated.pathways([{"name": "common", "width": common}, *others], training=training)


def left_by_linear(task: Task) -> Task:
    """The same task with what the best linear map leaves of its answers."""
    left = task.y - task.x @ np.linalg.lstsq(task.x, task.y, rcond=None)[0]
    return tasks.from_arrays(task.x, left, labels=task.labels)


def strengths(task: Task, sizes: int | Sequence[int], contexts: int, items: int) -> np.ndarray:
    """Singular values of every subset's moments with the items, (subset, mode)."""
    moments = gated(sizes, contexts=contexts, items=items, width=1).moments(task)
    return np.array([np.linalg.svd(cov, compute_uv=False) for cov in moments.cov_yx[1:]])


def floor(task: Task) -> float:
    """The least loss of a linear map."""
    return 0.5 * np.mean(np.sum(left_by_linear(task).y ** 2, axis=1))


def kinds_of_gates(contexts: int) -> list[str]:
    return [*(f"{count} of {contexts} contexts" for count in range(contexts, 0, -1)), "some items only", "off"]


def gate_shares(activity: np.ndarray, sizes: np.ndarray, contexts: int) -> np.ndarray:
    """The share of the weight in units that are on for whole contexts, by their number, or for some items only.

    Activity is (…, sample, hidden), samples sorted by context, sizes (…, hidden); shares are (…, kind).
    """
    on = (activity > 0).reshape(*activity.shape[:-2], contexts, -1, activity.shape[-1])
    on_for_all, on_for_some = on.all(axis=-2), on.any(axis=-2)
    split = (on_for_all != on_for_some).any(axis=-2)
    count = on_for_all.sum(axis=-2)
    kinds = [*(~split & (count == number) for number in range(contexts, 0, -1)), split, ~on_for_some.any(axis=-2)]
    total = sizes.sum(axis=-1)
    return np.stack([(sizes * kind).sum(axis=-1) / total for kind in kinds], axis=-1)


def times_to(times: np.ndarray, losses: np.ndarray, fraction: float) -> np.ndarray:
    """When each of the curves (…, time) falls to a fraction of its start; infinite if it never does."""
    return np.apply_along_axis(lambda loss: time_to(times, loss, fraction), -1, losses)


def largest_distance(losses: np.ndarray, others: np.ndarray) -> float:
    """Of curves of the same seeds, in units of the loss at the start; the largest over time, averaged over seeds."""
    return float(_gaps(losses, others).max(axis=-1).mean())


def mean_distance(losses: np.ndarray, others: np.ndarray) -> float:
    """The same, averaged over time as well."""
    return float(_gaps(losses, others).mean())


def _gaps(losses: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.abs(np.asarray(losses) - np.asarray(others)) / np.asarray(others)[..., :1]


def shifted_distance(epochs: np.ndarray, losses: np.ndarray, others: np.ndarray, furthest: int = 80) -> tuple[int, float]:
    """The shift in whole epochs of the first curves that brings them closest to the others, and the distance left."""

    def left(shift):
        moved = [np.interp(epochs - shift, epochs, loss) for loss in np.atleast_2d(losses)]
        return largest_distance(np.array(moved), np.atleast_2d(others))

    best = min(range(-furthest, furthest + 1), key=left)
    return best, left(best)
