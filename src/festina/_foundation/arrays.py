"""Names for arrays and pytrees of arrays in annotations.

The shape is part of the annotation: `Float[AnyArray, "out in"]`. Within one signature, axes of the same name have the
same length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Array, Float, Key, PyTree

AnyArray: TypeAlias = Array | np.ndarray  # a JAX array, which may be traced, or a NumPy array
Number: TypeAlias = float | int | np.number | Float[AnyArray, ""]  # one number, traced ones among them
Numbers: TypeAlias = float | int | np.number | Float[AnyArray, "..."]  # one, or an array that broadcasts
RandomKey: TypeAlias = Key[Array, ""]
Weights: TypeAlias = PyTree  # of arrays; for a chain of layers a tuple of (out, in) matrices
Layers: TypeAlias = Sequence[Float[AnyArray, "_ _"]]  # of a chain of layers: matrices (out, in), from the input on
