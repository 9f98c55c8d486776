"""The constants of a theory on a setup, computed once.

`Theory.constants` may cost a decomposition of a large matrix, and many readouts, grids of times and error estimates ask
for the same ones. A setup remembers them, in float64 and as NumPy arrays.
"""

from __future__ import annotations

from typing import TypeVar

import jax

from .._foundation.precision import to_numpy
from .._setup.setup import Setup
from .base import Theory

Constants = TypeVar("Constants")


def constants_of(theory: Theory[Constants, object], setup: Setup, seed: int) -> Constants:
    """`theory.constants(setup, seed)` of a concrete setup, in float64."""

    def compute(seed: int) -> Constants:
        with jax.enable_x64(True):
            return to_numpy(theory.constants(setup, seed))

    return setup._remembered(("constants", theory), seed, compute)
