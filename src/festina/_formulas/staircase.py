"""Gram-Schmidt for rows that may be linearly dependent: the triangular factor becomes an echelon form (a staircase)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from .._foundation.arrays import AnyArray
from .._foundation.program_memory import compiled
from .modes import ROUNDING, unit_of


@compiled
def staircase(
    rows: Float[AnyArray, "row hidden"],
) -> tuple[Float[AnyArray, "row hidden"], Int[AnyArray, " hidden"], Float[AnyArray, "hidden hidden"]]:
    """The echelon form of the rows, the pivot of each column, and the orthonormal basis (as rows) that it refers to.

    Every row that is linearly independent of the rows above it opens the next column, whose pivot is this row; an empty
    column has the pivot −1. A row that adds no more than rounding to those above it opens no column.
    """
    hidden = rows.shape[1]
    unit = unit_of(jnp.max(jnp.abs(rows)))
    rows = rows / unit
    floor = ROUNDING * jnp.max(jnp.linalg.norm(rows, axis=1))
    columns = jnp.arange(hidden)

    def add(carry, item):
        basis, used, pivots = carry
        index, row = item
        along = basis @ row
        rest = row - along @ basis
        again = basis @ rest  # twice is enough: Gram and Schmidt lose digits the first time
        rest, along = rest - again @ basis, along + again
        size = jnp.sum(rest**2)
        new = (size > floor**2) & (used < hidden)
        length = jnp.sqrt(jnp.where(new, size, 1.0))
        here = (columns == used) & new
        basis = jnp.where(here[:, None], rest / length, basis)
        pivots = jnp.where(here, index, pivots)
        return (basis, used + new, pivots), jnp.where(here, length, along)

    first = (jnp.zeros((hidden, hidden), rows.dtype), 0, jnp.full(hidden, -1))
    (basis, _, pivots), stairs = jax.lax.scan(add, first, (jnp.arange(len(rows)), rows))
    return stairs * unit, pivots, basis
