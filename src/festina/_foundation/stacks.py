"""Arrays of one shape, held as one array along an axis."""

from __future__ import annotations

import jax
import numpy as np

from .arrays import AnyArray


def unstacked(stack: AnyArray, axis: int = 0) -> list[AnyArray]:
    """The arrays of a stack. Unlike indexing, this gives gradients that XLA puts together as one stack."""
    axis = axis % stack.ndim
    if isinstance(stack, np.ndarray):
        return [part.squeeze(axis) for part in np.split(stack, stack.shape[axis], axis=axis)]
    parts = jax.lax.split(stack, (1,) * stack.shape[axis], axis=axis)
    return [part.squeeze(axis) for part in parts]
