"""A small network, 11–50–60: what a call per epoch costs when there is little to compute."""

from __future__ import annotations

from pathlib import Path

from .harness import Claim, Contestant
from .problem import EPOCHS, write_start

HIDDEN = 50
UNIT = "epoch"


def contestants(mode: str, folder: Path) -> list[Contestant]:
    start = {"start": write_start(HIDDEN, folder)}
    one = {"hidden": HIDDEN, "seeds": 1, "devices": 1}
    return [
        Contestant("festina", "benchmarks.relu_training:festina", one, EPOCHS),
        Contestant("jitted loop", "benchmarks.rivals:jitted_loop", start, EPOCHS),
        Contestant("NumPy, buffers", "benchmarks.rivals:numpy_buffers", start, EPOCHS),
    ]


def claims(mode: str) -> list[Claim]:
    work = "11–50–60, one seed"
    return [
        Claim(work, "festina", "jitted loop", ("jitted loop",), least=2),
        Claim(work, "festina", "NumPy", ("NumPy, buffers",)),
    ]
