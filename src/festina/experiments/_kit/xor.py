"""Exclusive or with a margin Δ: gated networks that solve it, their moments, and where ReLU units are active."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ... import nets, tasks
from ...theories._exclusive_or import GATINGS, margin_where_zero

LEARNED = 0.4  # of the first loss: a loss of 0.2
Activity = Float[np.ndarray, "*runs sample hidden"]
Sizes = Float[np.ndarray, "*runs hidden"]


def gated(gating: str, hidden: int) -> nets.Gated:
    """A gated network with `hidden` units in all."""
    points = GATINGS[gating]
    return nets.Gated.pathways([{"on": {"item": items}, "width": hidden // len(points)} for items in points])


def moments(net: nets.Gated, margin: float) -> tuple[float, float]:
    """s and d of the first pathway, from the samples that it lets through; all pathways have the same."""
    gated_moments = net.moments(tasks.xor(margin))
    _, values, right = np.linalg.svd(gated_moments.cov_yx[0], full_matrices=False)
    return values[0], right[0] @ gated_moments.cov_x[0, 0] @ right[0]


def alone_until() -> float:
    """The margin up to which a unit with weights along the input of a point is inactive on all other points."""

    def largest_overlap(margin: float) -> float:
        points = np.asarray(tasks.xor(margin).x)
        return np.max((points @ points.T)[~np.eye(len(points), dtype=bool)])

    return margin_where_zero(largest_overlap, 1.0)


def one_point_share(activity: Activity, sizes: Sizes) -> Float[np.ndarray, "*runs"]:
    """The share of the weight that is in units which are active for one point only."""
    alone = (activity > 0).sum(axis=-2) == 1
    return (sizes * alone).sum(axis=-1) / sizes.sum(axis=-1)


def second_over_first(activity: Activity, sizes: Sizes) -> Float[np.ndarray, "*runs"]:
    """A unit's second largest activity over its largest, averaged over units by size."""
    ordered = np.sort(activity, axis=-2)
    second, first = ordered[..., -2, :], ordered[..., -1, :]
    return (sizes * second / np.where(first > 0, first, 1.0)).sum(axis=-1) / sizes.sum(axis=-1)


def selectivity(activity: Activity, sizes: Sizes) -> Float[np.ndarray, "*runs"]:
    """The share of a unit's activity that is for one point, averaged over units by size; 1/4 if the same for all."""
    total = activity.sum(axis=-2)
    share = activity.max(axis=-2) / np.where(total > 0, total, 1.0)
    return (sizes * share).sum(axis=-1) / sizes.sum(axis=-1)
