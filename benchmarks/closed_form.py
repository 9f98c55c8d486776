"""The closed form of aligned modes at 1,000 times, against training the same network by gradient flow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .harness import Claim, Contestant
from .rivals import Call

UNIT = "trajectory"
OBSERVED = ("loss", "modes")


def setup() -> Any:
    import festina as fs

    return fs.Setup(fs.tasks.hierarchy(levels=3), fs.nets.DeepLinear(hidden=32), fs.inits.Aligned(1e-3), points=1000)


def solve() -> Call:
    import festina as fs

    work = setup()
    return lambda: [fs.solve(work, "AlignedModes", observe=OBSERVED)["loss"][500]]


def train() -> Call:
    import festina as fs

    work = setup()
    return lambda: [fs.simulate(work, 1, OBSERVED, progress=False)["loss"][0, 500]]


def contestants(mode: str, folder: Path) -> list[Contestant]:
    return [
        Contestant("closed form", "benchmarks.closed_form:solve"),
        Contestant("gradient flow", "benchmarks.closed_form:train"),
    ]


def claims(mode: str) -> list[Claim]:
    return [Claim("aligned modes at 1,000 times", "closed form", "gradient flow", ("gradient flow",))]
