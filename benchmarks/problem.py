"""The work that every trainer gets: a ReLU network of one hidden layer on 24 random samples, in float32.

The rivals start from the weights that festina draws.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

SAMPLES, INPUTS, OUTPUTS = 24, 11, 60
EPOCHS = 8000
LR = 1e-3  # the loss falls to a tenth, not to rounding, so that final losses can be compared
SCALE = 0.03


def data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return (
        random.standard_normal((SAMPLES, INPUTS)).astype(np.float32),
        random.standard_normal((SAMPLES, OUTPUTS)).astype(np.float32),
    )


def operations(hidden: int) -> int:
    """Floating-point operations of the five matrix products of one epoch."""
    return 2 * SAMPLES * hidden * (2 * INPUTS + 3 * OUTPUTS)


def setup(hidden: int, records: int = 1) -> Any:
    import festina as fs

    return fs.Setup(
        fs.tasks.from_arrays(*data()),
        fs.nets.MLP(hidden=hidden),
        fs.inits.SmallRandom(SCALE),
        fs.rules.GradientDescent(LR),
        times=np.linspace(0, EPOCHS * LR, records + 1)[1:],
        precision="float32",
    )


def write_start(hidden: int, folder: Path) -> str:
    """A file with the weights of seed 0."""
    into, out = (np.asarray(w, np.float32) for w in setup(hidden).weights(0))
    path = folder / f"start-{hidden}.npz"
    np.savez(path, into=into, out=out)
    return str(path)


def read_start(path: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path) as file:
        return file["into"], file["out"]


def loss(into: np.ndarray, out: np.ndarray) -> float:
    x, y = data()
    return 0.5 * float(np.mean(np.sum((np.maximum(x @ into.T, 0) @ out.T - y) ** 2, axis=1)))
