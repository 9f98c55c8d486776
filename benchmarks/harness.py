"""Workers that take turns, and claims about their speed.

Every contestant runs in a process of its own, started once and warmed up by one call, so that
compilation is not counted. Rounds are interleaved: in each round every contestant has one turn, alone,
so that all of them see the same machine.
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
BUSY = 0.9  # of its cores is what an undisturbed contestant keeps busy: 1.8 of two
FOREIGN = 0.1  # cores that other processes may use before a turn counts as disturbed
TOLERANCE = 2e-3  # relative, between final losses: float32 rounding over thousands of epochs
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclasses.dataclass(frozen=True)
class Contestant:
    """`make` is "module:function"; the function takes `options` and returns what is timed.

    `units` is how many epochs (or other units) one call does. `cores` is how many it keeps busy on a
    quiet machine with default threads; 0 if that is not known.
    """

    name: str
    make: str
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    units: float = 1
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    cores: int = 0


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
        row: dict[str, Any] = {"work": self.work, "rival": self.rival, "target": self._target()}
        row |= {"ratio": None, "reached": None}
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
        self.cores = min(contestant.cores, 1 if single else len(CORES))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker"],
            env=os.environ | (ONE_THREAD if single else {}) | contestant.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        cores = CORES[-1:] if single else CORES
        job = {"make": contestant.make, "options": contestant.options, "cores": cores}
        self.answer = self.ask(job)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self.contestant.name} ended with {self.process.wait()}")
        return json.loads(line)

    def turn(self) -> dict[str, Any]:
        if self.mode == "default":
            _await_quiet()
        before = _machine_seconds()
        answer = self.ask({})
        foreign = (_machine_seconds() - before - answer["cpu"]) / answer["wall"]
        # On one core, CPU time is wall time without the other users of that core.
        seconds = answer["cpu"] if self.mode == "one core" else answer["wall"]
        share = answer["cpu"] / answer["wall"] / self.cores if self.cores else 1.0
        unit = seconds / answer["calls"] / self.contestant.units
        return {"seconds": unit, "share": share, "foreign": foreign, "losses": answer["losses"]}

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def _machine_seconds() -> float:
    """CPU seconds that all processes of the machine have used; 0 where the system does not say."""
    try:
        with open("/proc/stat") as file:
            user, nice, system, _, _, *rest = map(int, file.readline().split()[1:9])
    except OSError:
        return 0.0
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


def _await_quiet(longest: float = 10) -> None:
    """Wait until nobody else has used the cores for half a second, but no longer than `longest` seconds."""
    end = time.monotonic() + longest
    while time.monotonic() < end:
        before = _machine_seconds()
        time.sleep(0.5)
        if _machine_seconds() - before <= 0.5 * FOREIGN:
            return


def compete(
    contestants: Iterable[Contestant], mode: str, rounds: int, patience: int, tolerance: float = TOLERANCE
) -> dict[str, Any]:
    """Median seconds per unit of every contestant that is installed, over `rounds` quiet rounds.

    A disturbed round is repeated, at most `patience` times in all; rounds that are still missing
    are then filled with the least disturbed ones. Disturbance is judged by what other processes
    used, the same for every contestant, so that nobody gains by the choice.
    """
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(contestant, mode)) for contestant in contestants]
        present = [worker for worker in workers if "missing" not in worker.answer]
        played: list[dict[str, dict[str, Any]]] = []
        while len(played) < rounds + patience and sum(map(_quiet, played)) < rounds:
            played.append({worker.contestant.name: worker.turn() for worker in present})
            _agree(played[-1], tolerance)
    kept = sorted(played, key=lambda turns: (not _quiet(turns), _foreign(turns)))[:rounds]
    return {
        "mode": mode,
        "missing": [worker.contestant.name for worker in workers if "missing" in worker.answer],
        "medians": {name: statistics.median(turns[name]["seconds"] for turns in kept) for name in kept[0]},
        "disturbed": sum(not _quiet(turns) for turns in kept),
        "rounds": played,
    }


def _foreign(turns: dict[str, dict[str, Any]]) -> float:
    return max(turn["foreign"] for turn in turns.values())


def _quiet(turns: dict[str, dict[str, Any]]) -> bool:
    return _foreign(turns) <= FOREIGN and all(turn["share"] >= BUSY for turn in turns.values())


def _agree(turns: dict[str, dict[str, Any]], tolerance: float) -> None:
    """Refuse a round whose contestants ended at different losses: they did different work."""
    listed = {name: turn["losses"] for name, turn in turns.items() if turn["losses"]}
    first, wanted = next(iter(listed.items()))
    for name, losses in listed.items():
        for ours, theirs in zip(wanted, losses, strict=False):
            if not abs(ours - theirs) <= tolerance * abs(ours):
                raise RuntimeError(f"{first} ends at {ours:.6g}, {name} at {theirs:.6g}: not the same work")
