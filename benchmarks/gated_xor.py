"""Pathways that are never open together, in closed form at 1,000 times, against training them: exclusive or.

Four pathways of 32 units, one per item, to time 60. `solve` measures its assumptions on a new setup at each call;
training takes 6,000 steps of rate 0.01 and records as often. What is compared is the loss while it falls, at `SEEN`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .harness import Claim, Contestant
from .rivals import Call

UNIT = "trajectory"
TOLERANCE = 0.06  # descent lags behind the flow by half a step per unit of growth, a tenth of a unit of time at SEEN
LR = 0.01
TIMES = LR * np.round(np.linspace(0, 60, 1000) / LR)
SEEN = int(np.searchsorted(TIMES, 21.0))


def _setup(rule: Any = None) -> Any:
    import festina as fs

    net = fs.nets.Gated.pathways([{"on": {"item": [item]}, "width": 32} for item in range(4)])
    return fs.Setup(fs.tasks.xor(1.0), net, fs.inits.Decoupled(1e-4), rule, times=TIMES)


def solve() -> Call:
    import festina as fs

    return lambda: [fs.solve(_setup(), "DisjointPathways", observe="loss")["loss"][SEEN]]


def simulate() -> Call:
    import festina as fs

    work = _setup(fs.rules.GradientDescent(LR))
    return lambda: [fs.simulate(work, 1, "loss", progress=False)["loss"][0, SEEN]]


def contestants(mode: str, folder: Path) -> list[Contestant]:
    return [
        Contestant("solve", "benchmarks.gated_xor:solve"),
        Contestant("simulate", "benchmarks.gated_xor:simulate"),
    ]


def claims(mode: str) -> list[Claim]:
    return [Claim("DisjointPathways at 1,000 times", "solve", "simulate", ("simulate",))]
