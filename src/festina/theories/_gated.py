"""What theories of gated networks share: what they ask of the net, and how fast it can be."""

from __future__ import annotations

import numpy as np

from .._setup import Setup
from ..nets import Gated
from .base import Assumption
from .frozen_kernel import fastest_rate


def gated_assumption(setup: Setup) -> Assumption:
    """That the network is a gated linear one; without it nothing else can be measured."""
    bias = " with biases" if getattr(setup.net, "bias", False) else ""
    return Assumption.that(
        "gated",
        "the network is linear but for its gates, without biases",
        isinstance(setup.net, Gated),
        f"{type(setup.net).__name__}{bias}",
        "Gated",
    )


def fastest_gated_rate(setup: Setup, seed: int) -> float:
    """The larger of the rate at the start and that of balanced layers which have learned the strongest mode.

    Layers D deep that carry a mode s of input variance v turn at the rate D s^(2−2/D) v^(2/D−1) at the end.
    """
    task = setup.bound().task
    depth = max(len(path.edges) for path in setup.net.paths())
    strongest, variance = np.linalg.norm(task.cov_yx, 2), np.linalg.norm(task.cov_x, 2)
    learned = depth * strongest ** (2 - 2 / depth) * variance ** (2 / depth - 1)
    return float(max(learned, fastest_rate(setup, seed)))
