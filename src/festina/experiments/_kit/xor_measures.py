"""Measures of losses on exclusive or: steps to loss 0.2, and distances of curves once they are shifted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..._formulas.curves import time_to_fraction
from .xor import LEARNED

if TYPE_CHECKING:
    from xarray import Dataset


def steps_to(losses: Float[np.ndarray, "*axes step"]) -> Float[np.ndarray, "*axes"]:
    """Steps until the loss has fallen to 0.2."""
    steps = np.arange(losses.shape[-1])
    return np.apply_along_axis(lambda loss: time_to_fraction(steps, loss, LEARNED), -1, losses)


def shifted_distances(data: Dataset) -> list[float]:
    """Largest distances of the mean ReLU curve from that of the fastest gating, both shifted to their loss of 0.2."""
    steps, distances = data.step.values, []
    for k in range(data.sizes["margin"]):
        times = data.gated_steps[k].mean("seed").values
        best = int(np.argmin(times))
        relu = aligned_mean(steps, data.relu_loss[k].values, data.relu_steps[k].values)
        other = aligned_mean(steps, data.gated_loss[k, best].values, data.gated_steps[k, best].values)
        distances.append(float(np.max(np.abs(relu - other)) / data.relu_loss[k].values[0, 0]))
    return distances


def aligned_mean(
    steps: np.ndarray, losses: Float[np.ndarray, "seed step"], reached: Float[np.ndarray, " seed"]
) -> np.ndarray:
    """The mean over seeds of the loss around the step at which each seed reaches 0.2."""
    around = np.linspace(-20, 15, 141)
    return np.mean([np.interp(around + at, steps, loss) for loss, at in zip(losses, reached, strict=True)], axis=0)
