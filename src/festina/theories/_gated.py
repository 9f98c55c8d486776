"""What theories of gated networks share: what they ask of the net, and how fast it can be."""

from __future__ import annotations

import numpy as np

from .._setup import Setup
from ..nets import Gated
from ._linear import integration_assumption
from .base import Assumption
from .frozen_kernel import fastest_rate

MOST_PATHS = 500  # the couplings of more paths are too many numbers; PathDynamics needs no list of paths


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


def listed_paths_assumptions(setup: Setup) -> tuple[Assumption, ...]:
    """That the network is gated, and has few paths; nothing else can be measured unless both hold."""
    gated = gated_assumption(setup)
    if not gated.holds:
        return (gated,)
    count = setup.net.graph.path_count
    return gated, Assumption.at_most("few paths", "the paths of the network can be listed", count, MOST_PATHS)


def fastest_gated_rate(setup: Setup, seed: int) -> float:
    """The larger of the rate at the start and that of the end."""
    return max(learned_rate(setup), fastest_rate(setup, seed))


def gated_integration(setup: Setup, seed: int) -> Assumption:
    """That the flow can be integrated until the last time, by a bound on its rates that needs no compiling."""
    depth, variance = setup.net.graph.depth, np.linalg.norm(setup.bound().task.cov_x, 2)
    largest = max(np.linalg.norm(np.asarray(w), 2) for w in setup.weights(seed))
    return integration_assumption(setup, max(learned_rate(setup), float(depth * variance * largest ** (2 * depth - 2))))


def learned_rate(setup: Setup) -> float:
    """The rate of balanced layers that have learned the strongest mode.

    Layers D deep that carry a mode s of input variance v turn at the rate D s^(2−2/D) v^(2/D−1) at the end.
    """
    task, depth = setup.bound().task, setup.net.graph.depth
    strongest, variance = np.linalg.norm(task.cov_yx, 2), np.linalg.norm(task.cov_x, 2)
    return float(depth * strongest ** (2 - 2 / depth) * variance ** (2 / depth - 1))
