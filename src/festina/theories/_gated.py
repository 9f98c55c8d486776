"""What theories of gated networks share: what they require of the net, and its weights at the start."""

from __future__ import annotations

import jax
import numpy as np

from .._foundation.arrays import Weights
from .._foundation.checks import is_traced
from .._setup.setup import Setup
from ..nets.gated.graph import graph_of
from ._linear_assumptions import integration_assumption
from ._rates import learned_rate
from .base import Assumption, Seed

MOST_PATHS = 500  # the couplings of more paths are too many numbers; PathDynamics needs no list of paths


def start_weights(setup: Setup, seed: Seed) -> Weights:
    """The initial weights, differentiable with respect to the parameters of the init.

    A gated net is lifted on a concrete task, and `Setup.weights` hands a traced init a traced task. Where the numbers
    of the init alone are traced, it draws here from the concrete task and net.
    """
    if is_traced(setup.init) and not is_traced(setup.task, setup.net, seed):
        return setup.init.draw(jax.random.key(seed), setup.net, setup.for_init)
    return setup.weights(seed)


def gated_assumption(setup: Setup) -> Assumption:
    """The network is a gated linear one; without it nothing else can be measured."""
    bias = " with biases" if setup.net.bias else ""
    return Assumption.that(
        "gated",
        "the network is linear but for its gates, without biases",
        setup.net.has_paths,
        f"{type(setup.net).__name__}{bias}",
        "Gated",
    )


def listed_paths_assumptions(setup: Setup) -> tuple[Assumption, ...]:
    """The network is gated, and has few paths; nothing else can be measured unless both hold."""
    gated = gated_assumption(setup)
    if not gated.holds:
        return (gated,)
    count = graph_of(setup.net).path_count
    return gated, Assumption.at_most("few paths", "the paths of the network can be listed", count, MOST_PATHS)


def gated_integration(setup: Setup, seed: int) -> Assumption:
    """The flow can be integrated until the last time, by a bound on its rates that needs no compiling."""
    depth, variance = graph_of(setup.net).depth, np.linalg.norm(setup.lifted().single_task.cov_x, 2)
    largest = max(np.linalg.norm(np.asarray(w), 2) for w in setup.weights(seed))
    return integration_assumption(setup, max(learned_rate(setup), float(depth * variance * largest ** (2 * depth - 2))))
