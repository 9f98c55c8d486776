"""Times that descent visits at a rate lr, and so at lr/2, lr/4, … as well: whole steps, none of them twice.

`Setup(…, until=…, points=…)` lays out an even grid of this kind by itself; these are for grids that are not even, and
for times that are needed before there is a setup.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def on_steps(times: Float[np.ndarray, " time"], lr: float) -> Float[np.ndarray, " step"]:
    """Given times, moved to the nearest whole steps of rate lr; times that fall on one step are merged."""
    return np.unique(np.round(times / lr)) * lr


def even(until: float, points: int, lr: float) -> Float[np.ndarray, " step"]:
    """At most `points` times from 0 to `until` at even distances, on whole steps."""
    return on_steps(np.linspace(0, until, points), lr)


def dense_at_start(until: float, points: int, lr: float) -> Float[np.ndarray, " step"]:
    """At most `points` times from 0 to `until` on whole steps: half of them even, half even in their logarithm.

    Unbalanced layers are fast, so that much of what they do falls into the first few steps.
    """
    early = np.geomspace(lr, until, points // 2)
    return on_steps(np.concatenate([early, np.linspace(0, until, points - points // 2)]), lr)
