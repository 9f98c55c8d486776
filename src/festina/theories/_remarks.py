"""Remarks that a user needs although every assumption holds: modes that are never learned, or whose s counts as 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from .._formulas.aligned_chain import chain_bases
from .._formulas.modes import NOTHING, ROUNDING
from .._foundation.arrays import AnyArray
from .._setup.setup import Setup


def unlearnable(
    silent: Sequence[bool] | Bool[AnyArray, " mode"], values: Float[AnyArray, " mode"], why: str
) -> tuple[str, ...]:
    """A remark on the modes that a start can never learn, counted from 1, with their singular values."""
    modes = [f"{k + 1} (s = {value:.4g})" for k, value in enumerate(values) if silent[k]]
    return (f"never learned: mode {', '.join(modes)}; {why}",) if modes else ()


def cut_off(values: Float[AnyArray, " mode"]) -> tuple[str, ...]:
    """A remark on singular values above rounding that are so small that theories take them for 0."""
    largest = np.max(values, initial=0.0)
    cut = (values > ROUNDING * largest) & (values <= NOTHING * largest)
    modes = [f"{k + 1} (s = {value:.4g})" for k, value in enumerate(values) if cut[k]]
    return (f"taken as nothing: mode {', '.join(modes)}; at most {NOTHING:g} of the largest s",) if modes else ()


def lost_from_the_start(setup: Setup, seed: int) -> tuple[str, ...]:
    """Remarks on modes of an aligned chain that start at a saddle and never grow; a single layer has no saddle."""
    modes = setup.modes(seed)
    layer_strengths = chain_bases(modes, setup.weights(seed)).strengths
    if len(layer_strengths) == 1:
        return ()
    size = np.abs(layer_strengths)
    product = np.prod(layer_strengths, axis=0)
    balanced = np.ptp(size, axis=0) <= 1e-13 * size.max(axis=0)
    # Of two layers, one that is not zero makes the other grow; of three, two must not be zero.
    dead = (product <= 0) & (balanced | (np.sum(size > 0, axis=0) < len(size) - 1))
    wanted = modes.singular_values > NOTHING * modes.singular_values[0]
    why = "it starts at zero, or balanced with the opposite sign"
    return (*unlearnable(dead & wanted, modes.singular_values, why), *cut_off(modes.singular_values))
