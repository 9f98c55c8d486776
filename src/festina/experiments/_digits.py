"""Digits for the experiments that need them: MNIST where its files are found, else the stand-in, each by its name."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import tasks
from .._errors import BadInput
from .._setup import Task

MNIST, STAND_IN = "MNIST", "stand-in for MNIST"
TEST = 2000  # samples of the stand-in that are not trained on


def digits(samples: int, scaling: str = "normalised") -> tuple[Task, str]:
    """The first digits to train on, and the name of the data."""
    try:
        return tasks.mnist(samples, scaling=scaling), MNIST
    except BadInput as error:
        if not error.needed.startswith("the files of MNIST"):
            raise
        return tasks.mnist_stand_in(samples, scaling=scaling), STAND_IN


def unseen(samples: int, data: str) -> tuple[Any, Any]:
    """Images beside the first `samples`, and which digits they are."""
    if data == MNIST:
        task, first = tasks.mnist(part="test"), 0
    else:
        task, first = tasks.mnist_stand_in(samples + TEST), samples
    return np.asarray(task.x)[first:], np.asarray((task.labels or {})["digit"])[first:]
