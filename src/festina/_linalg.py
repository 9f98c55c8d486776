"""Linear algebra that several theories share."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ._noun import is_traced, noun
from ._precision import in_double

ROUNDING = 1e-14  # a column this much shorter than the longest is zero
FAINT = 1e-9  # below this share of the largest, a part cannot be told from rounding to six digits
SAME = 1e-9  # singular values closer than this, relative to the largest, are one level
NOTHING = 1e-9  # a singular value or variance of no more than this share of the largest carries nothing


@noun
class Modes:
    """The modes of a task: Σʸˣ = Σ_k s_k u_k v_kᵀ, with input variances v_kᵀ Σˣ v_k.

    Attributes: left (d_out, mode), right (d_in, mode), singular_values and variances (mode,).
    """

    left: Any
    right: Any
    singular_values: Any
    variances: Any

    @in_double
    def targets(self) -> Any:
        """What each mode learns, s/variance; 0 where the mode carries nothing."""
        variances = jnp.asarray(self.variances)
        carries = variances > NOTHING * jnp.max(variances, initial=0.0)  # below is rounding of inputs that never vary
        return jnp.where(carries, self.singular_values / jnp.where(carries, self.variances, 1.0), 0.0)

    @in_double
    def strengths(self, matrix: Any) -> Any:
        """u_kᵀ M v_k of every mode; leading axes of M are kept."""
        return jnp.einsum("om,...oi,im->...m", self.left, matrix, self.right)

    @in_double
    def matrix(self, strengths: Any) -> Any:
        """Σ_k a_k u_k v_kᵀ; leading axes of the strengths are kept."""
        return jnp.einsum("om,...m,im->...oi", self.left, strengths, self.right)


@jax.jit
def shared_modes(
    cov_yx: Float[Array, "out in"], cov_x: Float[Array, "in in"], start: Float[Array, "out in"] | None = None
) -> Modes:
    """SVD of Σʸˣ, turned where it is free so that it diagonalises Σˣ, and then a starting map.

    It is free inside levels of equal singular values, and in the silent level of singular value 0, which may
    be larger than the number of modes: there, the directions that the start uses come first, then those of
    large variance. Variances are paired by vᵀ Σˣ v, never by sorting. Signs are fixed: the largest entry of each
    right vector is positive.
    """
    d_out, d_in = cov_yx.shape
    count = min(d_out, d_in)
    start = jnp.zeros_like(cov_yx) if start is None else jax.lax.stop_gradient(start)
    left, values, right_t = jnp.linalg.svd(cov_yx, full_matrices=True)
    right, padded = right_t.T, jnp.pad(values, (0, d_in - count))
    silent = padded <= NOTHING * padded[0]
    level = levels(padded)
    left, right = _turned(left, right, silent, eigenvectors_within(level, right.T @ cov_x @ right))
    # What is still free are levels that share the variance, too.
    variances = jnp.einsum("im,ij,jm->m", right, cov_x, right)
    apart = jnp.abs(variances[:, None] - variances[None, :]) > SAME * jnp.max(variances)
    group = jnp.argmax((level[:, None] == level[None, :]) & ~apart, axis=1)
    left, right = _turned(left, right, silent, eigenvectors_within(group, _seen_by(start, left, right, silent)))
    use = jnp.sum((start @ right) ** 2, axis=0)
    order = jnp.lexsort((-variances, -use, jnp.where(silent, d_in, jnp.arange(d_in))))[:count]
    right = right[:, order]
    left = left @ jax.lax.stop_gradient(_left_turn(start, left, right, silent[:count]))
    sign = jnp.sign(jnp.take_along_axis(right, jnp.argmax(jnp.abs(right), axis=0)[None], axis=0))
    return _paired(left * sign, right * sign, cov_yx, cov_x)


def modes_at(cov_yx: Any, cov_x: Any, start: Any = None) -> Modes:
    """`shared_modes` in float64; with many more outputs than inputs, inside the few that are used.

    Traced arrays take the long way: the short one holds the space of used outputs still, and gradients would miss
    how it turns.
    """
    if is_traced(cov_yx, cov_x, start) or cov_yx.shape[0] <= 2 * cov_yx.shape[1]:
        return in_double(shared_modes)(cov_yx, cov_x, start)
    used = np.linalg.qr(cov_yx if start is None else np.concatenate([cov_yx, start], axis=1))[0]
    inside = in_double(shared_modes)(used.T @ cov_yx, cov_x, None if start is None else used.T @ start)
    return dataclasses.replace(inside, left=used @ inside.left)


def _turned(left: Any, right: Any, silent: Any, turn: Any) -> tuple[Any, Any]:
    """Both bases turned alike; silent left vectors wait, since nothing pairs them yet."""
    turn = jax.lax.stop_gradient(turn)
    shared = min(left.shape[1], right.shape[1])
    waits = (silent[:, None] | silent[None, :])[:shared, :shared]
    left_turn = jnp.where(waits, jnp.eye(shared, dtype=turn.dtype), turn[:shared, :shared])
    return left.at[:, :shared].set(left[:, :shared] @ left_turn), right @ turn


def _seen_by(start: Any, left: Any, right: Any, silent: Any) -> Any:
    """A symmetric matrix whose eigenvectors fit the start: uᵀWv for signal, vᵀWᵀWv where there is no u."""
    count = min(start.shape)
    image = start @ right
    signal = jnp.zeros((right.shape[1],) * 2, image.dtype).at[:count, :count].set(left[:, :count].T @ image[:, :count])
    wanted = jnp.where(silent[:, None], image.T @ image, 0.5 * (signal + signal.T))
    return wanted / (jnp.max(jnp.abs(wanted)) + jnp.finfo(wanted.dtype).tiny)


def _left_turn(start: Any, left: Any, right: Any, silent: Any) -> Any:
    """A silent mode has no left vector of its own: take the one that the start maps it to."""
    rows = jnp.arange(left.shape[1])
    silent_rows = jnp.where(rows < silent.shape[0], silent[jnp.minimum(rows, silent.shape[0] - 1)], True)
    seen = left.T @ start @ right
    free = silent_rows[:, None] & silent[None, :]
    kept = jnp.where(rows[:, None] == jnp.arange(silent.shape[0])[None, :], jnp.where(silent, 0.0, 1.0), 0.0)
    scale = jnp.max(jnp.abs(seen)) + jnp.finfo(seen.dtype).tiny
    outer, _, inner = jnp.linalg.svd(jnp.where(free, seen / scale, kept), full_matrices=False)
    return outer @ inner


def _paired(left: Any, right: Any, cov_yx: Any, cov_x: Any) -> Modes:
    # First-order perturbation theory: with the vectors held still, the derivatives of s and of
    # the variance are exact, also at degenerate levels where those of the vectors do not exist.
    u, v = jax.lax.stop_gradient((left, right))
    return Modes(left, right, jnp.einsum("om,oi,im->m", u, cov_yx, v), jnp.einsum("im,ij,jm->m", v, cov_x, v))


def levels(values: Float[Array, " mode"]) -> Int[Array, " mode"]:
    """Index of the level of each of the sorted values; equal values share one."""
    drop = values[:-1] - values[1:] > SAME * values[0]
    return jnp.concatenate([jnp.zeros(1, int), jnp.cumsum(drop)])


def mode_levels(modes: Modes) -> Int[Array, " mode"]:
    """Index of the level of each mode; modes share one that are equal in s and in variance."""
    values, variances = jnp.asarray(modes.singular_values), jnp.asarray(modes.variances)
    apart = jnp.abs(jnp.diff(variances)) > SAME * jnp.max(variances)
    return jnp.concatenate([jnp.zeros(1, int), jnp.cumsum(apart | (jnp.diff(levels(values)) > 0))])


def eigenvectors_within(level: Int[Array, " mode"], symmetric: Float[Array, "mode mode"]) -> Float[Array, "mode mode"]:
    """Orthogonal matrix that diagonalises each diagonal block (equal `level`) on its own."""
    same = level[:, None] == level[None, :]
    block = jnp.where(same, symmetric, 0.0)
    size = jnp.max(jnp.sum(jnp.abs(block), axis=1))
    # Eigenvalues are shifted by multiples of the level, so those of different blocks stay apart;
    # eigh then returns the columns level by level.
    _, vectors = jnp.linalg.eigh(block + jnp.diag(level * jnp.where(size > 0, 2 * size, 1.0)))
    order = jnp.argsort(level, stable=True)
    return jnp.where(same, jnp.zeros_like(vectors).at[:, order].set(vectors), 0.0)


def level_members(values: np.ndarray) -> np.ndarray:
    """(level, mode): 1/multiplicity where a mode belongs to a level of equal singular values, else 0."""
    level = np.concatenate([[0], np.cumsum(values[:-1] - values[1:] > SAME * values[0])]).astype(int)
    members = (np.arange(level[-1] + 1)[:, None] == level).astype(float)
    return members / members.sum(axis=1, keepdims=True)


def input_defect(modes: Modes, cov_x: Any) -> float:
    """Largest |Σˣ v_k − λ_k v_k| over the modes, relative to the mode's own λ_k; 0 if Σˣ shares the modes."""
    rest = np.asarray(cov_x) @ np.asarray(modes.right) - modes.right * modes.variances
    return _relative(np.linalg.norm(rest, axis=0), modes.variances, np.max(modes.variances))


def alignment_defect(modes: Modes, weights: Any) -> float:
    """Largest part of a chain's layers that is not along its modes, relative to its layer."""
    return float(chain_bases(modes, weights)[1])


def balance_defect(modes: Modes, weights: Any) -> float:
    """Largest difference between layers in the strength of a mode, relative to that strength."""
    strengths = np.abs(chain_bases(modes, weights)[0])
    largest = strengths.max(axis=0)
    return _relative(largest - strengths.min(axis=0), largest, largest.max())


def _relative(parts: Any, own: Any, largest: float) -> float:
    # A small mode is measured against itself, since it grows; below FAINT there is only rounding.
    scale = np.maximum(np.abs(own), FAINT * largest)
    return float(np.max(parts / np.where(scale > 0, scale, 1.0)))


def unit_of(size: Any, xp: Any = jnp) -> Any:
    """A size to divide by, so that no square of what is left leaves float64; a constant for derivatives."""
    unit = xp.where(size > 0, size, 1.0)
    return jax.lax.stop_gradient(unit) if xp is jnp else unit


@in_double
@jax.jit
def chain_bases(modes: Modes, weights: Any) -> tuple[Any, Any, Any]:
    """Layer strengths (layer, mode) of a chain along its modes, its largest relative part that is not, the bases.

    The basis of a hidden layer is where the layers below carry the right vectors; a mode that they hardly carry takes
    what the layers above read, whose direction is less of rounding.
    """
    # In units of the layers: squares of what is small would be 0.
    units = [unit_of(jnp.max(jnp.abs(w), initial=0.0)) for w in weights]
    weights = [w / unit for w, unit in zip(weights, units, strict=True)]
    below, above = [jnp.asarray(modes.right)], [jnp.asarray(modes.left)]
    carried, read = [], []  # of every mode, the weakest strength on the way, relative to its layer
    for w in weights[:-1]:
        columns, strength = _carried_on(w, below[-1])
        below.append(columns)
        carried.append(strength if not carried else jnp.minimum(strength, carried[-1]))
    for w in reversed(weights[1:]):
        columns, strength = _carried_on(w.T, above[-1])
        above.append(columns)
        read.append(strength if not read else jnp.minimum(strength, read[-1]))
    hidden = [
        _clearer(b, a, from_below, from_above)
        for b, a, from_below, from_above in zip(below[1:], above[:0:-1], carried, reversed(read), strict=True)
    ]
    bases = [below[0], *hidden, above[0]]
    strengths, defects = zip(
        *(_layer_along(w, *pair) for w, pair in zip(weights, pairwise(bases), strict=True)), strict=True
    )
    # Hidden directions of different modes must not overlap.
    overlaps = [jnp.max(jnp.abs(jnp.triu(h.T @ h, 1))) for h in hidden]
    strengths = [own * unit for own, unit in zip(strengths, units, strict=True)]
    return jnp.stack(strengths), jnp.max(jnp.stack([*defects, *overlaps])), tuple(bases)


def _carried_on(w: Any, columns: Any) -> tuple[Any, Any]:
    """Where a layer takes each direction, and how strongly: the square of that, relative to the layer."""
    moved, size = w @ columns, jnp.sum(w**2)
    return _normalised(moved), jnp.sum(moved**2, axis=0) / jnp.where(size > 0, size, 1.0)


def _clearer(below: Any, above: Any, carried: Any, read: Any) -> Any:
    """Of two estimates of hidden directions those from below, unless they are much weaker; signs are from below."""
    sign = jnp.where(jnp.sum(below * above, axis=0) < 0, -1.0, 1.0)
    kept = jnp.any(below != 0, axis=0) & (carried >= 1e-6 * read)
    return jnp.where(kept | ~jnp.any(above != 0, axis=0), below, sign * above)


def _layer_along(w: Any, into: Any, out: Any) -> tuple[Any, Any]:
    """Strengths b of a layer w ≈ out diag(b) intoᵀ, and the largest rest on either side, relative to the layer."""
    strengths = jnp.einsum("om,oi,im->m", out, w, into)
    size = jnp.linalg.norm(w)
    rests = (w @ into - out * strengths, w.T @ out - into * strengths)
    return strengths, jnp.max(jnp.stack([jnp.linalg.norm(rest, axis=0) for rest in rests])) / jnp.where(
        size > 0, size, 1.0
    )


def _normalised(columns: Any) -> Any:
    """Columns of unit length; columns that are zero, up to rounding of the largest, become zero."""
    squares = jnp.sum(columns**2, axis=0)
    live = squares > (ROUNDING**2) * jnp.max(squares)
    return jnp.where(live, columns / jnp.sqrt(jnp.where(live, squares, 1.0)), 0.0)
