"""What arrays and trees of arrays are called in annotations.

A shape is written where the array is: `Float[AnyArray, "out in"]`. The letters of one signature agree with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Array, Float, Key, PyTree

AnyArray: TypeAlias = Array | np.ndarray  # of JAX, traced ones among them, or of NumPy
Number: TypeAlias = float | int | np.number | Float[AnyArray, ""]  # one number, traced ones among them
Numbers: TypeAlias = float | int | np.number | Float[AnyArray, "..."]  # one, or an array that broadcasts
RandomKey: TypeAlias = Key[Array, ""]
Weights: TypeAlias = PyTree  # of arrays; for a chain of layers a tuple of (out, in) matrices
Layers: TypeAlias = Sequence[Float[AnyArray, "_ _"]]  # of a chain of layers: matrices (out, in), from the input on
