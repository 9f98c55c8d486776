"""Arrays of one shape, held as one."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def apart(stacked: Any, axis: int = 0) -> list[Any]:
    """The arrays of a stack; unlike indexing, what they return to the stack in a gradient is put together at once."""
    axis = axis % stacked.ndim
    if isinstance(stacked, np.ndarray):
        return [part.squeeze(axis) for part in np.split(stacked, stacked.shape[axis], axis=axis)]
    parts = jax.lax.split(stacked, (1,) * stacked.shape[axis], axis=axis)
    return [part.squeeze(axis) for part in parts]
