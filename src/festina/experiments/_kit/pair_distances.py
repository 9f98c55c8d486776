"""Distances of pairs of points: networks that learn a few points, one seed at a time, and predicted distances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ..._foundation.checks import positive
from ..._setup.setup import Setup
from ..._setup.trajectory import Trajectory
from ...inits.xavier import Xavier
from ...nets.base import Net
from ...rules.base import Discrete
from ...tasks.base import Task
from ...theories.two_point import final_distance
from .training import simulate

OBSERVED = ("loss", "distance", "output_distance", "output_alignment")


def evenly_recorded(task: Task, net: Net, gain: float, rule: Discrete, steps: int, records: int) -> Setup:
    """Training from Xavier weights in float32, with `records` evenly spaced records after the first."""
    times = np.linspace(0, steps, records + 1).round() * rule.lr
    return Setup(task, net, Xavier(positive(gain, "gain")), rule, times=times, precision="float32")


def each_alone(setups: Iterable[tuple[Setup, int]], observe: Sequence[str] = OBSERVED) -> list[Trajectory]:
    """Every setup trained from its seed; setups of one shape share a compiled program."""
    return [simulate(setup, [seed], observe) for setup, seed in setups]


def foreseen(run: Trajectory, layer: int, rates: Sequence[float] | np.ndarray) -> Float[np.ndarray, " pair"]:
    """The final squared distance of every pair [vanrossem2024, eq. 10], from the start of a run of one seed.

    `rates` are η_h and η_y.
    """
    facts = run.provenance
    distance = final_distance(
        distance0=run["distance"][0, 0, layer].astype(float),
        output0=run["output_distance"][0, 0].astype(float),
        alignment0=run["output_alignment"][0, 0].astype(float),
        input_gap=np.asarray(facts["input_gap"]),
        target_gap=np.asarray(facts["target_gap"]),
        tau_h=1 / rates[0],
        tau_y=1 / rates[1],
    )
    return np.asarray(distance)


def correlation(first: ArrayLike, second: ArrayLike) -> float:
    """Pearson's r over all entries; NaN if one of the two does not vary."""
    first, second = np.ravel(first), np.ravel(second)
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])
