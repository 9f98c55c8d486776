"""A linear network is trained on second moments: 100,000 samples cost what 100 cost.

The many samples are the few, repeated, so that both runs have the same moments and end at the same loss.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .harness import Claim, Contestant
from .problem import EPOCHS
from .rivals import Call

UNIT = "training"


def festina(repeats: int) -> Call:
    import festina as fs

    random = np.random.default_rng(0)
    x, y = random.standard_normal((100, 20)), random.standard_normal((100, 30))
    work = fs.Setup(
        fs.tasks.from_arrays(np.tile(x, (repeats, 1)), np.tile(y, (repeats, 1))),
        fs.nets.DeepLinear(hidden=64),
        fs.inits.SmallRandom(0.05),
        fs.rules.GradientDescent(0.01),
        times=[EPOCHS * 0.01],
    )
    return lambda: fs.simulate(work, 1, "loss", progress=False)["loss"][:, -1].tolist()


def contestants(mode: str, folder: Path) -> list[Contestant]:
    return [
        Contestant("100,000 samples", "benchmarks.moments:festina", {"repeats": 1000}),
        Contestant("100 samples", "benchmarks.moments:festina", {"repeats": 1}),
    ]


def claims(mode: str) -> list[Claim]:
    return [Claim("20–64–30 linear, 100,000 samples", "100,000 samples", "100 samples", ("100 samples",), most=1.2)]
