"""Long simulations in parts: seeds that have been trained are kept on disk until the report is written."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path

import jax
import numpy as np

from ._errors import BadInput
from ._setup import Setup
from ._simulate import simulate
from ._spec import to_spec
from ._trajectory import Trajectory

PARTS_ON = {"cpu": 4}  # seeds in a part, by device

_folder: ContextVar[tuple[Path, str] | None] = ContextVar("folder", default=None)


@contextlib.contextmanager
def parts_kept_in(folder: Path | None, code: str) -> Iterator[None]:
    """Inside, parts are written to `folder`, and found there again by the same `code`."""
    token = _folder.set(None if folder is None else (folder, code))
    try:
        yield
    finally:
        _folder.reset(token)


def simulate_in_parts(
    setup: Setup, seeds: Sequence[int], observe: Iterable[str], part: int | None = None
) -> Trajectory:
    """`simulate` of `part` seeds at a time; an interrupted run goes on after the last part that was finished.

    Without `part` they are as many as a minute or so takes: a few on a CPU, a hundred on an accelerator.
    """
    names, kept = tuple(observe), _folder.get()
    part = part or PARTS_ON.get(jax.devices()[0].platform, 100)
    groups = [list(seeds[k : k + part]) for k in range(0, len(seeds), part)]
    return joined([_part(setup, group, names, kept) for group in groups])


def _part(setup: Setup, seeds: list[int], names: tuple[str, ...], kept: tuple[Path, str] | None) -> Trajectory:
    if kept is None:
        return simulate(setup, seeds, names)
    folder, code = kept
    work = json.dumps([to_spec(setup), seeds, names, code], sort_keys=True)
    path = folder / f"{hashlib.sha256(work.encode()).hexdigest()}.nc"
    with contextlib.suppress(BadInput):  # no such part, or one that was not finished
        return Trajectory.load(path)
    trained = simulate(setup, seeds, names)
    folder.mkdir(parents=True, exist_ok=True)
    trained.save(path)
    return trained


def joined(parts: Sequence[Trajectory]) -> Trajectory:
    """Trajectories of one setup, one after another along the seeds."""
    first = parts[0]
    values = {name: np.concatenate([part[name] for part in parts]) for name in first}
    seeds = np.concatenate([part.coordinates["seed"] for part in parts])
    facts = {"setup": first.provenance["setup"], "seconds": sum(part.provenance["seconds"] for part in parts)}
    provenance = {**first.provenance, **facts}
    return Trajectory(first.times, values, first.axes, first.source, provenance, {**first.coordinates, "seed": seeds})
