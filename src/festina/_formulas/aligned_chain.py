"""A deep linear network along the task's modes: bases of its hidden layers, and each layer's strength in each mode."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Layers, Number
from .._foundation.precision import in_double
from .._foundation.program_memory import compiled
from .modes import ROUNDING, Modes, largest_share, unit_of


class AlongModes(NamedTuple):
    """A chain W_l ≈ R_l diag(b_l) R_{l−1}ᵀ between the bases R, with R_0 and R_D the singular vectors of the modes."""

    strengths: Float[AnyArray, "layer mode"]  # b
    defect: Number  # the largest part of a layer that is not of this form, relative to the layer
    bases: tuple[Float[AnyArray, "_ mode"], ...]  # R, from the input to the output


def alignment_defect(modes: Modes, weights: Layers) -> float:
    """Largest part of a chain's layers that is not along its modes, relative to its layer."""
    return float(chain_bases(modes, weights).defect)


def balance_defect(modes: Modes, weights: Layers) -> float:
    """Largest difference between layers in the strength of a mode, relative to that strength."""
    strengths = np.abs(chain_bases(modes, weights).strengths)
    largest = strengths.max(axis=0)
    return largest_share(largest - strengths.min(axis=0), largest, largest.max())


@in_double
@compiled(effort="little")
def chain_bases(modes: Modes, weights: Layers) -> AlongModes:
    """Decompose the layers of a chain along the task's modes.

    The basis of a hidden layer is the image of the right singular vectors under the layers below. For a mode that
    these layers hardly transmit it is the direction that the layers above read, which is less affected by rounding.
    """
    # Every layer is divided by its largest entry, since squares of very small weights would underflow to 0.
    units = [unit_of(jnp.max(jnp.abs(w), initial=0.0)) for w in weights]
    scaled = [w / unit for w, unit in zip(weights, units, strict=True)]
    below: list[AnyArray] = [jnp.asarray(modes.right)]
    above: list[AnyArray] = [jnp.asarray(modes.left)]
    # Of every mode, the weakest strength on the way from the input, and on the way from the output.
    carried: list[Float[AnyArray, " mode"]] = []
    read: list[Float[AnyArray, " mode"]] = []
    for w in scaled[:-1]:
        columns, strength = _carried_on(w, below[-1])
        below.append(columns)
        carried.append(strength if not carried else jnp.minimum(strength, carried[-1]))
    for w in reversed(scaled[1:]):
        columns, strength = _carried_on(w.T, above[-1])
        above.append(columns)
        read.append(strength if not read else jnp.minimum(strength, read[-1]))
    hidden = [
        _clearer(b, a, from_below, from_above)
        for b, a, from_below, from_above in zip(below[1:], above[:0:-1], carried, reversed(read), strict=True)
    ]
    bases = [below[0], *hidden, above[0]]
    strengths, defects = zip(
        *(_layer_along(w, *pair) for w, pair in zip(scaled, pairwise(bases), strict=True)), strict=True
    )
    # Hidden directions of different modes must not overlap.
    overlaps = [jnp.max(jnp.abs(jnp.triu(h.T @ h, 1))) for h in hidden]
    strengths = [strength * unit for strength, unit in zip(strengths, units, strict=True)]
    return AlongModes(jnp.stack(strengths), jnp.max(jnp.stack([*defects, *overlaps])), tuple(bases))


def _carried_on(
    w: Float[AnyArray, "out in"], columns: Float[AnyArray, "in mode"]
) -> tuple[Float[AnyArray, "out mode"], Float[AnyArray, " mode"]]:
    """The direction to which a layer maps each column, and its squared gain relative to the squared layer norm."""
    moved, size = w @ columns, jnp.sum(w**2)
    return _normalised(moved), jnp.sum(moved**2, axis=0) / jnp.where(size > 0, size, 1.0)


def _clearer(
    below: Float[AnyArray, "hidden mode"],
    above: Float[AnyArray, "hidden mode"],
    carried: Float[AnyArray, " mode"],
    read: Float[AnyArray, " mode"],
) -> Float[AnyArray, "hidden mode"]:
    """Of two estimates of a hidden direction the one from below, unless it is much weaker; signs are from below."""
    sign = jnp.where(jnp.sum(below * above, axis=0) < 0, -1.0, 1.0)
    kept = jnp.any(below != 0, axis=0) & (carried >= 1e-6 * read)
    return jnp.where(kept | ~jnp.any(above != 0, axis=0), below, sign * above)


def _layer_along(
    w: Float[AnyArray, "out in"], into: Float[AnyArray, "in mode"], out: Float[AnyArray, "out mode"]
) -> tuple[Float[AnyArray, " mode"], Float[AnyArray, ""]]:
    """Strengths b of a layer w ≈ out diag(b) intoᵀ, and the largest part of it that this misses, relative."""
    strengths = jnp.einsum("om,oi,im->m", out, w, into)
    size = jnp.linalg.norm(w)
    rests = (w @ into - out * strengths, w.T @ out - into * strengths)
    return strengths, jnp.max(jnp.stack([jnp.linalg.norm(rest, axis=0) for rest in rests])) / jnp.where(
        size > 0, size, 1.0
    )


def _normalised(columns: Float[AnyArray, "row mode"]) -> Float[AnyArray, "row mode"]:
    """Columns of unit length; columns that are zero, up to rounding of the largest, become zero."""
    squares = jnp.sum(columns**2, axis=0)
    live = squares > (ROUNDING**2) * jnp.max(squares)
    return jnp.where(live, columns / jnp.sqrt(jnp.where(live, squares, 1.0)), 0.0)
