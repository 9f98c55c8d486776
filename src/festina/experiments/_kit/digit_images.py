"""Digits for the experiments that need them: MNIST where its files are found, else a synthetic stand-in."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from ... import tasks
from ..._foundation.errors import BadInput
from ...tasks.base import Task

MNIST, STAND_IN = "MNIST", "stand-in for MNIST"
TEST = 2000  # samples of the stand-in that are not trained on


def digits(samples: int, scaling: str = "normalised") -> tuple[Task, str]:
    """The first `samples` digits to train on, and the name of the data."""
    try:
        return tasks.mnist(samples, scaling=scaling), MNIST
    except BadInput as error:
        if not error.needed.startswith("the files of MNIST"):
            raise
        return tasks.mnist_stand_in(samples, scaling=scaling), STAND_IN


def unseen(
    samples: int, data: str
) -> tuple[Float[np.ndarray, "image pixel"], Int[np.ndarray, " image"] | Float[np.ndarray, " image"]]:
    """Images that are not among the first `samples`, and which digits they show."""
    if data == MNIST:
        task, first = tasks.mnist(part="test"), 0
    else:
        task, first = tasks.mnist_stand_in(samples + TEST), samples
    return np.asarray(task.x)[first:], np.asarray((task.labels or {})["digit"])[first:]
