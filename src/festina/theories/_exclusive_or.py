"""Exclusive or with a margin Δ: the moments of the pathways of two gatings, their steps to a loss, and when both tie.

Both gatings solve `tasks.xor` with pathways that are never open together, so that each follows `DisjointPathways`.
"linear" has one pathway for each side of a plane, "XoR" one for each point [jarvis2025, appendix C].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy import optimize

from .aligned_modes import mode
from .disjoint_pathways import time_to_loss

GATINGS = {"linear": ((1, 2), (0, 3)), "XoR": ((0,), (1,), (2,), (3,))}  # the points that open each pathway
EQUAL = float(np.sqrt(2 / 3))  # the margin at which pathways of both have the same s


def pathway_moments(gating: str, margin: float) -> tuple[float, float]:
    """s and d of every pathway; d of XoR gates is corrected, since s² is printed."""
    if gating == "linear":
        return margin / 2, margin**2 / 2
    return float(np.sqrt(2 + margin**2)) / 4, (2 + margin**2) / 4


def steps_to_fraction(gating: str, margin: float, start: float, fraction: float, lr: float, *, finite: bool) -> float:
    """Steps until the loss has fallen to a fraction, with the finite step or by the flow; infinite if it never does."""
    s, d = pathway_moments(gating, margin)
    if s <= 0:
        return np.inf
    return float(time_to_loss(s, target=s / d, start=start, fraction=fraction, lr=lr if finite else None)) / lr


def loss_in_steps(gating: str, margin: float, start: float, lr: float, steps: int) -> Float[np.ndarray, " step"]:
    """The loss at every step; time is that of the flow, slowed down by the finite step."""
    s, d = pathway_moments(gating, margin)
    times = np.arange(steps + 1) * np.log1p(lr * s) / s
    return 0.5 * (1 - np.asarray(mode(times, singular_value=s, variance=d, start=start)) * d / s) ** 2


def equally_fast_at(start: float, fraction: float, *, share: float) -> float:
    """The margin at which both gatings reach a loss together.

    `share` is the initial strength of an XoR pathway relative to a linear one: 1 for equally many units per pathway,
    and 1/2 for equally many units in all.
    """

    def time(gating: str, margin: float, start: float) -> float:
        return steps_to_fraction(gating, margin, start, fraction, 1.0, finite=False)

    return margin_where_zero(lambda margin: time("linear", margin, start) - time("XoR", margin, share * start), 0.5)


def margin_where_zero(function: Callable[[float], float], low: float) -> float:
    """The margin between `low` and 2 at which a function of it is zero."""
    return float(optimize.root_scalar(function, bracket=(low, 2.0), xtol=1e-13).root)
