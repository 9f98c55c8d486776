"""What theories of deep linear chains share: constants, readouts, the first assumption."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from .._linalg import Modes, input_defect
from .._noun import noun, static
from .._setup import Setup
from ..nets import DeepLinear
from .base import Assumption, Readout, smooth_training


@noun
class LinearConstants:
    """The task's modes at a start, the start itself, and how a loss is read off the strengths."""

    modes: Modes
    weights: Any
    floor: Any
    x: Any
    depth: int = static()


def linear_constants(setup: Setup, seed: Any) -> LinearConstants:
    return LinearConstants(setup.modes(seed), setup.weights(seed), setup.task.floor(), setup.task.x, setup.net.depth)


def _loss(constants: LinearConstants, strengths: Any) -> Any:
    # Measured from the floor, so that a vanishing loss keeps its digits.
    gap = strengths - constants.modes.targets()
    return constants.floor + 0.5 * jnp.sum(constants.modes.variances * gap**2, axis=-1)


def _map(constants: LinearConstants, strengths: Any) -> Any:
    return constants.modes.matrix(strengths)


# Readouts of the strengths of all modes, axes (time, mode).
MAP_READOUTS = {
    "loss": Readout((), _loss),
    "map": Readout(("feature", "input"), _map),
    "outputs": Readout(("sample", "feature"), lambda c, a: jnp.einsum("si,toi->tso", c.x, _map(c, a))),
}


def chain_assumption(setup: Setup) -> Assumption:
    """That the network is a deep linear chain; without it nothing else can be measured."""
    return Assumption.that(
        "linear chain",
        "the network is a chain of linear layers",
        isinstance(setup.net, DeepLinear),
        type(setup.net).__name__,
        "DeepLinear",
    )


def linear_assumptions(setup: Setup, modes: Modes, fastest_rate: Callable[[], float]) -> tuple[Assumption, ...]:
    """What every theory of modes needs besides the chain: a smooth rule, and inputs that share the modes."""
    shared = Assumption.at_most(
        "shared modes",
        "Σˣ is diagonal in the right singular vectors of Σʸˣ",
        input_defect(modes, setup.task.cov_x),
        1e-6,
    )
    return (*smooth_training(setup, fastest_rate), shared)
