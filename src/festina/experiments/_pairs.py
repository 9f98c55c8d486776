"""Runs of networks on a few points, one seed at a time, and what their distances say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._noun import positive
from .._setup import Discrete, Net, Setup, Task
from .._simulate import simulate
from .._trajectory import Trajectory
from ..inits import Xavier
from ..theories.two_point import final_distance

OBSERVED = ("loss", "distance", "output_distance", "output_alignment")


def evenly_recorded(task: Task, net: Net, gain: Any, rule: Discrete, steps: int, records: int) -> Setup:
    """Training from Xavier weights in float32, with as many records after the first, at even distances in steps."""
    times = np.linspace(0, steps, records + 1).round() * rule.lr
    return Setup(task, net, Xavier(positive(gain, "gain")), rule, times=times, precision="float32")


def each_alone(setups: Iterable[tuple[Setup, int]], observe: Any = OBSERVED) -> list[Trajectory]:
    """Every setup trained from its seed; where nets and samples are of one shape, one compiled program does for all."""
    return [simulate(setup, [seed], observe) for setup, seed in setups]


def foreseen(run: Trajectory, layer: int, rates: Any) -> np.ndarray:
    """The final distance of every pair [vanrossem2024, eq. 10] from the start of a run of one seed."""
    facts = run.provenance
    return final_distance(
        distance0=run["distance"][0, 0, layer].astype(float),
        output0=run["output_distance"][0, 0].astype(float),
        alignment0=run["output_alignment"][0, 0].astype(float),
        input_gap=np.asarray(facts["input_gap"]),
        target_gap=np.asarray(facts["target_gap"]),
        tau_h=1 / rates[0],
        tau_y=1 / rates[1],
    )


def correlation(one: Any, other: Any) -> float:
    """Pearson's r over all entries; NaN if one of them does not vary."""
    one, other = np.ravel(one), np.ravel(other)
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])
