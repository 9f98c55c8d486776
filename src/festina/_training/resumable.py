"""Long simulations in parts: seeds that have been trained are kept on disk until the report is written."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import jax
import numpy as np

from .._foundation.errors import BadInput
from .._setup.setup import Setup
from .._setup.spec import to_spec
from .._setup.trajectory import Trajectory
from .simulate import simulate

SEEDS_ON = {"cpu": 4}  # seeds in a part, by device
OTHERWISE = 100


@dataclasses.dataclass(frozen=True)
class Parts:
    """A folder in which trained parts wait for the report; a part is found again by the same work of the same code."""

    folder: Path
    code: str  # a fingerprint of the sources

    def path(self, setup: Setup, seeds: Sequence[int], names: Sequence[str]) -> Path:
        work = json.dumps([to_spec(setup), seeds, names, self.code], sort_keys=True)
        return self.folder / f"{hashlib.sha256(work.encode()).hexdigest()}.nc"


def simulate_in_parts(
    setup: Setup,
    seeds: Sequence[int],
    observe: Iterable[str],
    *,
    parts: Parts | None = None,
    size: int | None = None,
) -> Trajectory:
    """`simulate` of `size` seeds at a time; with `parts`, an interrupted run goes on after the last finished part.

    Without `size` a part has as many seeds as are trained in a minute or so: a few on a CPU, a hundred on an
    accelerator.
    """
    names, size = tuple(observe), size or SEEDS_ON.get(jax.devices()[0].platform, OTHERWISE)
    groups = [list(seeds[k : k + size]) for k in range(0, len(seeds), size)]
    return _joined([_part(setup, group, names, parts) for group in groups])


def _part(setup: Setup, seeds: list[int], names: tuple[str, ...], parts: Parts | None) -> Trajectory:
    if parts is None:
        return simulate(setup, seeds, names, interrupt="raise")
    path = parts.path(setup, seeds, names)
    with contextlib.suppress(BadInput):  # no such part, or one that was not finished
        return Trajectory.load(path)
    trained = simulate(setup, seeds, names, interrupt="raise")
    parts.folder.mkdir(parents=True, exist_ok=True)
    trained.save(path)
    return trained


def _joined(parts: Sequence[Trajectory]) -> Trajectory:
    """Trajectories of one setup, one after another along the seeds; weights are not kept with parts on disk."""
    first = parts[0]
    values = {name: np.concatenate([part[name] for part in parts]) for name in first}
    seeds = np.concatenate([part.coordinates["seed"] for part in parts])
    seconds = sum(part.provenance["seconds"] for part in parts)
    return Trajectory(
        first.times,
        values,
        first.axes,
        first.source,
        {**first.provenance, "seconds": seconds},
        {**first.coordinates, "seed": seeds},
        setup=first.setup,
    )
