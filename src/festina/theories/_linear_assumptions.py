"""Assumptions that theories of deep linear chains share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from .._formulas.modes import Modes, input_defect
from .._foundation.arrays import AnyArray, Number
from .._setup.setup import Setup
from .base import Assumption, smooth_training

MOST_SPANS = 2e5  # fastest time constants that a reduction is integrated over: some seconds
LEAST_EXPONENT = -290.0  # of 10: numbers above 1e-308 with all their digits, and room for products with rates


def chain_assumption(setup: Setup) -> Assumption:
    """The network is a deep linear chain; without it nothing else can be measured."""
    return Assumption.that(
        "linear chain",
        "the network is a chain of linear layers",
        setup.net.is_linear_chain,
        type(setup.net).__name__,
        "DeepLinear",
    )


def two_layer_assumptions(setup: Setup) -> tuple[Assumption, ...]:
    """The network is a linear chain, and of two layers; nothing else can be measured unless both hold."""
    chain = chain_assumption(setup)
    if not chain.holds:
        return (chain,)
    layers = len(setup.net.hidden) + 1
    two = Assumption.that("two layers", "the chain has one hidden layer", layers == 2, f"{layers} layers", "2 layers")
    return chain, two


def linear_assumptions(setup: Setup, modes: Modes, fastest_rate: Callable[[], float]) -> tuple[Assumption, ...]:
    """The assumptions of theories of modes besides the chain: small full-batch steps, and inputs sharing the modes."""
    shared = Assumption.at_most(
        "shared modes",
        "Σˣ is diagonal in the right singular vectors of Σʸˣ",
        input_defect(modes, setup.single_task.cov_x),
        1e-6,
        defect=True,
    )
    return (*smooth_training(setup, fastest_rate), shared)


def aligned_assumption(defect: Number) -> Assumption:
    return Assumption.at_most(
        "aligned", "each layer is diagonal between bases shared with its neighbours", defect, 1e-6, defect=True
    )


def range_assumption(*chains: Float[AnyArray, "_ _"]) -> Assumption:
    """The product of a mode's layer strengths, (layer, mode), is in float64's range: at 0 nothing would be learned."""
    smallest = 0.0
    for size in map(np.abs, chains):
        exponents = np.sum(np.log10(np.where(size > 0, size, 1.0)), axis=0)
        smallest = float(np.min(exponents[np.all(size > 0, axis=0)], initial=smallest))
    return Assumption.that(
        "range",
        "the strengths of a mode's layers have a product that float64 holds, or one of them is 0",
        smallest >= LEAST_EXPONENT,
        f"10^{smallest:.3g}",
        f">= 10^{LEAST_EXPONENT:g}",
    )


def horizon_assumption(setup: Setup, fastest_rate: float) -> Assumption:
    """Exponents at the last time still have correct digits in float64."""
    blur = float(np.finfo(float).eps * fastest_rate * np.max(setup.times))
    return Assumption.at_most(
        "horizon", "rounding of rate × time is small, so that float64 means something", blur, 1e-6
    )


def integration_assumption(setup: Setup, fastest_rate: float) -> Assumption:
    """A law takes at most some seconds to integrate: the number of explicit steps grows as rate × time."""
    return Assumption.at_most(
        "integration",
        "fastest rate × last time, and so the number of steps in which the law is integrated",
        fastest_rate * float(np.max(setup.times)),
        MOST_SPANS,
    )
