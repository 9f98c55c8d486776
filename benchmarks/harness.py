"""Workers that take turns, and claims about their speed.

Every contestant runs in a process of its own, started once and warmed up by one call, so that
compilation is not counted. Rounds are interleaved: each contestant runs once per round, one at a
time, so that all of them see the same machine.
"""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
MODES = ("one core", "default")
QUIET = 0.9  # of the cores a contestant should keep busy; below this, somebody else had them
TOLERANCE = 2e-3  # relative, between final losses: float32 rounding over thousands of epochs
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


@dataclasses.dataclass(frozen=True)
class Contestant:
    """`make` is "module:function"; the function takes `options` and returns what is timed.

    `units` is how many epochs (or calls) one turn does. `busy` is how many cores it keeps busy
    on a quiet machine with default threads; 0 if that is not known.
    """

    name: str
    make: str
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    units: float = 1
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    busy: int = 1


@dataclasses.dataclass(frozen=True)
class Claim:
    """`ours` is at least `least` times as fast as the fastest of `rivals`, or takes at most `most` times as long."""

    work: str
    ours: str
    rival: str
    rivals: tuple[str, ...]
    least: float | None = None
    most: float | None = None

    def row(self, medians: dict[str, float]) -> dict[str, Any]:
        present = {name: medians[name] for name in self.rivals if name in medians}
        row: dict[str, Any] = {"work": self.work, "rival": self.rival, "target": self._target(), "ratio": None, "reached": None}
        if not present:
            return row | {"rival": f"{self.rival}: not installed"}
        fastest = min(present, key=present.__getitem__)
        ours, theirs = medians[self.ours], present[fastest]
        row |= {"fastest": fastest, "ours_seconds": ours, "rival_seconds": theirs}
        if self.most is not None:
            return row | {"ratio": ours / theirs, "reached": ours / theirs <= self.most}
        return row | {"ratio": theirs / ours, "reached": None if self.least is None else theirs / ours >= self.least}

    def _target(self) -> str:
        if self.most is not None:
            return f"≤ {self.most:g}"
        return "" if self.least is None else f"≥ {self.least:g}"


class Worker:
    """A contestant's process; speaks JSON lines."""

    def __init__(self, contestant: Contestant, mode: str):
        self.contestant, self.mode = contestant, mode
        single = mode == "one core"
        self.busy = min(contestant.busy, 1 if single else len(CORES))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker"],
            env=os.environ | (ONE_THREAD if single else {}) | contestant.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        cores = CORES[-1:] if single else CORES
        job = {"make": contestant.make, "options": contestant.options, "cores": cores}
        self.answer = self.ask(job)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self.contestant.name} ended; its error is above")
        return json.loads(line)

    def turn(self) -> dict[str, Any]:
        answer = self.ask({})
        # On one core, CPU time is wall time without the other users of that core.
        seconds = answer["cpu"] if self.mode == "one core" else answer["wall"]
        share = answer["cpu"] / answer["wall"] / self.busy if self.busy else 1.0
        return {"seconds": seconds / self.contestant.units, "share": share, "losses": answer["losses"]}

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def compete(contestants: Iterable[Contestant], mode: str, rounds: int, patience: int) -> dict[str, Any]:
    """Median seconds per unit of every contestant that is installed, over `rounds` quiet rounds.

    A round in which a contestant did not get its cores is repeated, at most `patience` times in
    all; rounds that are still missing are then filled with the least disturbed ones.
    """
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(contestant, mode)) for contestant in contestants]
        present = [worker for worker in workers if "missing" not in worker.answer]
        played: list[dict[str, dict[str, Any]]] = []
        while len(played) < rounds + patience and sum(map(_quiet, played)) < rounds:
            if played and not _quiet(played[-1]):
                time.sleep(1)
            played.append({worker.contestant.name: worker.turn() for worker in present})
    kept = sorted(played, key=_least_share, reverse=True)[:rounds]
    _agree(kept[0])
    return {
        "mode": mode,
        "missing": [worker.contestant.name for worker in workers if "missing" in worker.answer],
        "medians": {name: statistics.median(turns[name]["seconds"] for turns in kept) for name in kept[0]},
        "rounds": [{name: (turn["seconds"], turn["share"]) for name, turn in turns.items()} for turns in played],
        "repeated": len(played) - rounds,
        # CPU time needs no quiet machine.
        "contended": 0 if mode == "one core" else sum(not _quiet(turns) for turns in kept),
    }


def _least_share(turns: dict[str, dict[str, Any]]) -> float:
    return min(1.0, min(turn["share"] for turn in turns.values()) / QUIET)


def _quiet(turns: dict[str, dict[str, Any]]) -> bool:
    return _least_share(turns) >= 1


def _agree(turns: dict[str, dict[str, Any]]) -> None:
    """Refuse a round whose contestants ended at different losses: they did different work."""
    listed = {name: turn["losses"] for name, turn in turns.items() if turn["losses"]}
    first, wanted = next(iter(listed.items()))
    for name, losses in listed.items():
        for ours, theirs in zip(wanted, losses, strict=False):
            if not abs(ours - theirs) <= TOLERANCE * abs(ours):
                raise RuntimeError(f"{first} ends at loss {ours:.6g}, {name} at {theirs:.6g}: not the same work")
