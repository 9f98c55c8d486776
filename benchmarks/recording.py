"""Recording the loss and all outputs at 100 times, against recording at the end only."""

from __future__ import annotations

from pathlib import Path

from .harness import Claim, Contestant
from .problem import setup
from .rivals import Call

HIDDEN = 700
UNIT = "training"


def festina(records: int) -> Call:
    import festina as fs

    work = setup(HIDDEN, records)
    return lambda: fs.simulate(work, 1, ("loss", "outputs"), progress=False)["loss"][:, -1].tolist()


def contestants(mode: str, folder: Path) -> list[Contestant]:
    return [
        Contestant("100 records", "benchmarks.recording:festina", {"records": 100}),
        Contestant("one record", "benchmarks.recording:festina", {"records": 1}),
    ]


def claims(mode: str) -> list[Claim]:
    return [Claim("11–700–60, 100 records", "100 records", "one record", ("one record",), most=1.1)]
