"""Two gatings of exclusive or with a margin Δ, what is known of them, and what units of a ReLU network are on for."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import nets, tasks

GATINGS = {"linear": ((1, 2), (0, 3)), "XoR": ((0,), (1,), (2,), (3,))}  # the points that open each pathway
LEARNED = 0.4  # of the first loss: a loss of 0.2


def gated(gating: str, hidden: int) -> nets.Gated:
    """A gated network with `hidden` units in all."""
    points = GATINGS[gating]
    return nets.Gated.pathways([{"on": {"item": items}, "width": hidden // len(points)} for items in points])


def formulas(gating: str, margin: Any) -> tuple[Any, Any]:
    """s and d of each pathway [jarvis2025, appendix C]; d of XoR gates is corrected, printed is s²."""
    if gating == "linear":
        return margin / 2, margin**2 / 2
    return np.sqrt(2 + margin**2) / 4, (2 + margin**2) / 4


def moments(net: nets.Gated, margin: float) -> tuple[float, float]:
    """s and d of the first pathway, from the samples that it lets through; all have the same."""
    found = net.moments(tasks.xor(margin))
    _, values, right = np.linalg.svd(found.cov_yx[0], full_matrices=False)
    return values[0], right[0] @ found.cov_x[0, 0] @ right[0]


def one_point_share(activity: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The share of the weight that is in units which are on for one point; (…, sample, hidden) and (…, hidden)."""
    alone = (activity > 0).sum(axis=-2) == 1
    return (sizes * alone).sum(axis=-1) / sizes.sum(axis=-1)


def second_over_first(activity: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """A unit's second largest activity over its largest, averaged over units by size."""
    ordered = np.sort(activity, axis=-2)
    second, first = ordered[..., -2, :], ordered[..., -1, :]
    return (sizes * second / np.where(first > 0, first, 1.0)).sum(axis=-1) / sizes.sum(axis=-1)


def selectivity(activity: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """How much of a unit's activity is for one point, averaged over units by size; 1/4 if for all alike."""
    total = activity.sum(axis=-2)
    share = activity.max(axis=-2) / np.where(total > 0, total, 1.0)
    return (sizes * share).sum(axis=-1) / sizes.sum(axis=-1)
