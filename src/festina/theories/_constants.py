"""The numbers that a theory draws from a setup, computed once."""

from __future__ import annotations

from typing import Any

import jax

from .._precision import to_numpy
from .._setup import Setup
from .base import Theory


def constants_of(theory: Theory, setup: Setup, seed: int) -> Any:
    """What a theory has computed of a concrete setup before any time is asked for, in float64."""

    def find(seed: int) -> Any:
        with jax.enable_x64(True):
            return to_numpy(theory.constants(setup, seed))

    return setup._remembered(("constants", theory), seed, find)
