"""Data classes for two points in a network: the constants of the pair, its start, and the curves H, P and w."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
from jaxtyping import Float

from ..._foundation.arrays import AnyArray, Numbers

Floats: TypeAlias = Float[AnyArray, "..."]  # what formulas return: the axes of all numbers, then time


class Pair(NamedTuple):
    """What training leaves as it is: squared distances of inputs (X) and targets (Y), and time constants."""

    input_gap: Numbers  # X
    target_gap: Numbers  # Y
    tau_h: Numbers
    tau_y: Numbers


class Start(NamedTuple):
    """H, P and w at time 0."""

    distance: Numbers
    output: Numbers
    alignment: Numbers


class TurningStart(NamedTuple):
    """|u|², |v|² and u·v at time 0, for one output: u may point anywhere."""

    distance: Numbers
    decoder: Numbers
    along: Numbers


class Curves(NamedTuple):
    """Squared distances in the layer (H) and in the output (P), and w = P − dy·Δy*; or a number for each of these."""

    distance: Numbers
    output: Numbers
    alignment: Numbers


class Vectors(NamedTuple):
    """r, v∥ and v⊥: the signed hidden distance, and the decoder along the target and orthogonal to it."""

    hidden: Floats
    along: Floats
    off: Floats


def root(number: Numbers) -> Floats:
    """The square root of a number, with value and derivative 0 where the number is not positive."""
    number = jnp.asarray(number, float)
    some = number > 0
    return jnp.where(some, jnp.sqrt(jnp.where(some, number, 1.0)), 0.0)
