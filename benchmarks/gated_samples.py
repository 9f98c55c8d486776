"""A gated network is trained on second moments of gated inputs: 240,000 samples cost what 24 cost.

A setup computes its moments once, at the first call; "new setup" is a setup of its own for every call, which has to
read all samples again. The many samples are the few, repeated.
"""

from __future__ import annotations

from pathlib import Path

from .gated_problem import setup, task
from .harness import Claim, Contestant
from .rivals import Call

UNIT = "training"
REPEATS = {"24 samples": 1, "240,000 samples": 10_000}


def festina(repeats: int, renewed: bool) -> Call:
    import festina as fs

    given = task(repeats)
    kept = setup(given)

    def go():
        work = setup(given) if renewed else kept
        return fs.simulate(work, 1, "loss", progress=False)["loss"][:, -1].tolist()

    return go


def contestants(mode: str, folder: Path) -> list[Contestant]:
    ours = "benchmarks.gated_samples:festina"
    return [
        Contestant(f"{name}{', new setup' if renewed else ''}", ours, {"repeats": repeats, "renewed": renewed})
        for renewed in (False, True)
        for name, repeats in REPEATS.items()
    ]


def claims(mode: str) -> list[Claim]:
    few, many = REPEATS
    work = f"four gated pathways, {many}"
    return [
        Claim(work, many, few, (few,), most=1.2),
        Claim(f"{work}, new setup", f"{many}, new setup", f"{few}, new setup", (f"{few}, new setup",), most=1.2),
    ]
