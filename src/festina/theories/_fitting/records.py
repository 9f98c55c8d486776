"""Reading trajectories, whoever recorded them: which seed, layer, mode or pair is meant, and from which record on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, PyTree

from ..._foundation.checks import real_array, whole
from ..._foundation.errors import BadInput, UnknownName, shown
from ..._setup.trajectory import Trajectory


@dataclasses.dataclass(frozen=True)
class FitRecord:
    """What is fitted: curves from the record `start` on, and the numbers that the theory takes as known."""

    times: Float[np.ndarray, " time"]  # those of the trajectory
    curves: Float[np.ndarray, "curve time"]
    known: PyTree  # numbers in units of time in which the record lasts from 0 to 1
    start: int = 0
    names: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of what was chosen: {"layer": …, "seed": …}
    for_answer: Any = None  # what the answer needs and the search does not

    @property
    def duration(self) -> float:
        """From the first time to the last."""
        return self.times[-1] - self.times[0]

    @property
    def ts(self) -> Float[np.ndarray, " time"]:
        """The times from 0 to 1."""
        return (self.times - self.times[0]) / self.duration


COARSE = 256  # records that share a program, at least


def padded(ts: Float[np.ndarray, " time"]) -> tuple[Float[np.ndarray, " more"], Float[np.ndarray, " more"]]:
    """Times, COARSE × 4ⁿ of them so that records of many lengths share a program, and which of them are real."""
    length = COARSE
    while length < len(ts):
        length *= 4
    more = (0, length - len(ts))
    return np.pad(ts, more, mode="edge"), np.pad(np.ones(len(ts)), more)


def lengthened(curves: Float[np.ndarray, "*curve time"], length: int) -> Float[np.ndarray, "*curve more"]:
    """Curves with zeros after their end."""
    return np.pad(curves, [(0, 0)] * (np.ndim(curves) - 1) + [(0, length - np.shape(curves)[-1])])


def seeded(trajectory: Trajectory, name: str) -> Float[np.ndarray, "seed time ..."]:
    """An observable with a leading axis of seeds, in float64."""
    values = np.asarray(trajectory[name], np.float64)
    return values if trajectory.axes[name][0] == "seed" else values[None]


def seeds_of(trajectory: Trajectory, name: str, count: int) -> list[int] | None:
    """The seeds of an observable that has `count` of them; None if it has no such axis."""
    if "seed" not in trajectory.axes[name]:
        return None
    return [int(seed) for seed in trajectory.coordinates.get("seed", np.arange(count))]


def seed_number(seed: object, seeds: list[int] | None, otherwise: str = "") -> int:
    """The number of a seed in the record; `otherwise` is the advice to a user who has chosen none."""
    if seeds is None:
        if seed is not None:
            raise BadInput(f"seed = {shown(seed)}, and a trajectory without seeds", "no seed", "leave it out")
        return 0
    if seed is None and len(seeds) == 1:
        return 0
    recorded = ", ".join(map(str, seeds))
    if seed is None:
        do = f"give seed={seeds[0]}{otherwise}"
        raise BadInput(f"a trajectory of {len(seeds)} seeds, and no seed", f"one of its seeds: {recorded}", do)
    number = whole(seed, "seed", least=0)
    if number not in seeds:
        raise BadInput(f"seed = {seed}", f"one of the recorded seeds: {recorded}", f"give seed={seeds[0]}")
    return seeds.index(number)


def numbered(which: object, names: Sequence[str], kind: str) -> int:
    """The number of a recorded layer, mode or pair, given by name or number."""
    if isinstance(which, str):
        if which not in names:
            raise UnknownName.among(f"recorded {kind}", which, names)
        return names.index(which)
    number = whole(which, kind, least=0)
    if number >= len(names):
        raise BadInput(f"{kind} = {number}", f"one of the {len(names)} recorded, counted from 0", f"choose: {names}")
    return number


def checked_times(times: object, start: object) -> tuple[Float[np.ndarray, " time"], int]:
    """Increasing times, at least four of them from the record `start` on."""
    known, first = real_array(times, "times", ndim=1), whole(start, "start", least=0)
    if len(known) - first < 4:
        raise BadInput(
            f"{max(len(known) - first, 0)} records from start = {first} on", "at least 4", "record more often"
        )
    if np.any(np.diff(known) <= 0):
        raise BadInput("times that do not increase", "increasing times", "sort the records by time")
    return known, first
