"""The modes of a task: the singular value decomposition of Σʸˣ, with a definite basis in every degenerate subspace."""

from __future__ import annotations

import dataclasses
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from .._foundation.arrays import AnyArray, Number, Numbers
from .._foundation.checks import is_traced
from .._foundation.nouns import noun
from .._foundation.precision import in_double
from .._foundation.program_memory import compiled

ROUNDING = 1e-14  # a column this much shorter than the longest is zero
FAINT = 1e-9  # below this share of the largest, a part cannot be told from rounding to six digits
SAME = 1e-9  # singular values closer than this, relative to the largest, are one level
NOTHING = 1e-9  # a singular value or variance of at most this share of the largest counts as zero


@noun
class Modes:
    """The modes of a task: Σʸˣ = Σ_k s_k u_k v_kᵀ, with input variances v_kᵀ Σˣ v_k.

    The columns of `left` and `right` are u and v, in the order of falling singular values.
    """

    left: Float[AnyArray, "out mode"]
    right: Float[AnyArray, "in mode"]
    singular_values: Float[AnyArray, " mode"]
    variances: Float[AnyArray, " mode"]

    @in_double
    def targets(self) -> Float[AnyArray, " mode"]:
        """What each mode learns, s/variance; 0 where the mode carries nothing."""
        variances = jnp.asarray(self.variances)
        carries = variances > NOTHING * jnp.max(variances, initial=0.0)  # below is rounding of inputs that never vary
        return jnp.where(carries, self.singular_values / jnp.where(carries, self.variances, 1.0), 0.0)

    @in_double
    def strengths(self, matrix: Float[AnyArray, "*time out in"]) -> Float[AnyArray, "*time mode"]:
        """u_kᵀ M v_k of every mode."""
        return jnp.einsum("om,...oi,im->...m", self.left, matrix, self.right)

    @in_double
    def matrix(self, strengths: Float[AnyArray, "*time mode"]) -> Float[AnyArray, "*time out in"]:
        """Σ_k a_k u_k v_kᵀ."""
        return jnp.einsum("om,...m,im->...oi", self.left, strengths, self.right)


@compiled(effort="little")
def shared_modes(
    cov_yx: Float[AnyArray, "out in"], cov_x: Float[AnyArray, "in in"], start: Float[AnyArray, "out in"] | None = None
) -> Modes:
    """The SVD of Σʸˣ; degenerate subspaces are rotated to diagonalise Σˣ and, if still degenerate, a starting map.

    A subspace is degenerate if its singular values are equal. The modes of singular value 0 are called silent; their
    subspace may have more dimensions than are kept as modes: there, the directions that the start uses come first, then
    those of large variance. Variances are paired by vᵀ Σˣ v, never by sorting. Signs are fixed: the largest entry of
    each right vector is positive.
    """
    d_out, d_in = cov_yx.shape
    count = min(d_out, d_in)
    start = jnp.zeros_like(cov_yx) if start is None else jax.lax.stop_gradient(start)
    left, values, right_t = jnp.linalg.svd(cov_yx, full_matrices=True)
    right, padded = right_t.T, jnp.pad(values, (0, d_in - count))
    silent = padded <= NOTHING * padded[0]
    level = levels(padded)
    left, right = _rotated(left, right, silent, eigenvectors_within(level, right.T @ cov_x @ right))
    # What is still degenerate are modes with equal singular values and equal variances.
    variances = jnp.einsum("im,ij,jm->m", right, cov_x, right)
    apart = jnp.abs(variances[:, None] - variances[None, :]) > SAME * jnp.max(variances)
    group = jnp.argmax((level[:, None] == level[None, :]) & ~apart, axis=1)
    left, right = _rotated(left, right, silent, eigenvectors_within(group, _fit_to_start(start, left, right, silent)))
    use = jnp.sum((start @ right) ** 2, axis=0)
    order = jnp.lexsort((-variances, -use, jnp.where(silent, d_in, jnp.arange(d_in))))[:count]
    right = right[:, order]
    left = left @ jax.lax.stop_gradient(_left_rotation(start, left, right, silent[:count]))
    sign = jnp.sign(jnp.take_along_axis(right, jnp.argmax(jnp.abs(right), axis=0)[None], axis=0))
    return _paired(left * sign, right * sign, cov_yx, cov_x)


def modes_at(
    cov_yx: Float[AnyArray, "out in"], cov_x: Float[AnyArray, "in in"], start: Float[AnyArray, "out in"] | None = None
) -> Modes:
    """`shared_modes` in float64; if outputs far outnumber inputs, it works inside the subspace of outputs in use.

    Traced arrays are not reduced in this way: the reduction holds that subspace constant, so that gradients would miss
    its rotation.
    """
    if is_traced(cov_yx, cov_x, start) or cov_yx.shape[0] <= 2 * cov_yx.shape[1]:
        return in_double(shared_modes)(cov_yx, cov_x, start)
    used = np.linalg.qr(cov_yx if start is None else np.concatenate([cov_yx, start], axis=1))[0]
    inside = in_double(shared_modes)(used.T @ cov_yx, cov_x, None if start is None else used.T @ start)
    return dataclasses.replace(inside, left=used @ inside.left)


def _rotated(
    left: Float[AnyArray, "out out"],
    right: Float[AnyArray, "in in"],
    silent: Bool[AnyArray, " in"],
    rotation: Float[AnyArray, "in in"],
) -> tuple[Float[AnyArray, "out out"], Float[AnyArray, "in in"]]:
    """Both bases rotated alike, except for the silent left vectors, which are not paired with right vectors yet."""
    rotation = jax.lax.stop_gradient(rotation)
    shared = min(left.shape[1], right.shape[1])
    unpaired = (silent[:, None] | silent[None, :])[:shared, :shared]
    of_left = jnp.where(unpaired, jnp.eye(shared, dtype=rotation.dtype), rotation[:shared, :shared])
    return jnp.asarray(left).at[:, :shared].set(left[:, :shared] @ of_left), right @ rotation


def _fit_to_start(
    start: Float[AnyArray, "out in"],
    left: Float[AnyArray, "out out"],
    right: Float[AnyArray, "in in"],
    silent: Bool[AnyArray, " in"],
) -> Float[AnyArray, "in in"]:
    """A symmetric matrix whose eigenvectors fit the starting map W: uᵀWv for modes with s > 0, else vᵀWᵀWv."""
    count = min(start.shape)
    image = start @ right
    signal = jnp.zeros((right.shape[1],) * 2, image.dtype).at[:count, :count].set(left[:, :count].T @ image[:, :count])
    wanted = jnp.where(silent[:, None], image.T @ image, 0.5 * (signal + signal.T))
    return wanted / (jnp.max(jnp.abs(wanted)) + jnp.finfo(wanted.dtype).tiny)


def _left_rotation(
    start: Float[AnyArray, "out in"],
    left: Float[AnyArray, "out out"],
    right: Float[AnyArray, "in mode"],
    silent: Bool[AnyArray, " mode"],
) -> Float[AnyArray, "out mode"]:
    """A rotation that gives each silent mode, for which Σʸˣ has no left vector, the image of its right vector.

    The image is taken under the starting map.
    """
    rows = jnp.arange(left.shape[1])
    silent_rows = jnp.where(rows < silent.shape[0], silent[jnp.minimum(rows, silent.shape[0] - 1)], True)
    image = left.T @ start @ right
    free = silent_rows[:, None] & silent[None, :]
    kept = jnp.where(rows[:, None] == jnp.arange(silent.shape[0])[None, :], jnp.where(silent, 0.0, 1.0), 0.0)
    scale = jnp.max(jnp.abs(image)) + jnp.finfo(image.dtype).tiny
    outer, _, inner = jnp.linalg.svd(jnp.where(free, image / scale, kept), full_matrices=False)
    return outer @ inner


def _paired(
    left: Float[AnyArray, "out mode"],
    right: Float[AnyArray, "in mode"],
    cov_yx: Float[AnyArray, "out in"],
    cov_x: Float[AnyArray, "in in"],
) -> Modes:
    # First-order perturbation theory: with the vectors held constant, the derivatives of s and of
    # the variance are exact, also at degenerate levels where those of the vectors do not exist.
    u, v = jax.lax.stop_gradient((left, right))
    return Modes(left, right, jnp.einsum("om,oi,im->m", u, cov_yx, v), jnp.einsum("im,ij,jm->m", v, cov_x, v))


def levels(values: Float[AnyArray, " mode"]) -> Int[AnyArray, " mode"]:
    """Index of the level of each of the sorted values; equal values share one."""
    drop = values[:-1] - values[1:] > SAME * values[0]
    return jnp.concatenate([jnp.zeros(1, int), jnp.cumsum(drop)])


def mode_levels(modes: Modes) -> Int[AnyArray, " mode"]:
    """Index of the level of each mode; modes share one if they are equal in s and in variance."""
    values, variances = jnp.asarray(modes.singular_values), jnp.asarray(modes.variances)
    apart = jnp.abs(jnp.diff(variances)) > SAME * jnp.max(variances)
    return jnp.concatenate([jnp.zeros(1, int), jnp.cumsum(apart | (jnp.diff(levels(values)) > 0))])


def eigenvectors_within(
    level: Int[AnyArray, " mode"], symmetric: Float[AnyArray, "mode mode"]
) -> Float[AnyArray, "mode mode"]:
    """Orthogonal matrix that diagonalises each diagonal block (equal `level`) on its own."""
    same = level[:, None] == level[None, :]
    block = jnp.where(same, symmetric, 0.0)
    size = jnp.max(jnp.sum(jnp.abs(block), axis=1))
    # Eigenvalues are shifted by multiples of the level, so those of different blocks stay apart;
    # eigh then returns the columns level by level.
    _, vectors = jnp.linalg.eigh(block + jnp.diag(level * jnp.where(size > 0, 2 * size, 1.0)))
    order = jnp.argsort(level, stable=True)
    return jnp.where(same, jnp.zeros_like(vectors).at[:, order].set(vectors), 0.0)


def level_members(values: Float[np.ndarray, " mode"]) -> Float[np.ndarray, "level mode"]:
    """1/multiplicity where a mode belongs to a level of equal singular values, else 0."""
    level = np.concatenate([[0], np.cumsum(values[:-1] - values[1:] > SAME * values[0])]).astype(int)
    members = (np.arange(level[-1] + 1)[:, None] == level).astype(float)
    return members / members.sum(axis=1, keepdims=True)


def input_defect(modes: Modes, cov_x: Float[AnyArray, "in in"]) -> float:
    """Largest |Σˣ v_k − λ_k v_k| over the modes, relative to the mode's variance λ_k; 0 if Σˣ shares the modes."""
    rest = np.asarray(cov_x) @ np.asarray(modes.right) - modes.right * modes.variances
    return largest_share(np.linalg.norm(rest, axis=0), modes.variances, np.max(modes.variances))


def largest_share(parts: Float[AnyArray, " mode"], wholes: Float[AnyArray, " mode"], largest: Number) -> float:
    """The largest part relative to its whole, over all modes."""
    # A small mode is measured against itself, since it grows; below FAINT there is only rounding.
    scale = np.maximum(np.abs(wholes), FAINT * largest)
    return float(np.max(parts / np.where(scale > 0, scale, 1.0)))


def unit_of(size: Numbers, xp: ModuleType = jnp) -> Float[AnyArray, "*shape"]:
    """A scale to divide by, so that squares of the quotient stay within float64; constant for derivatives."""
    unit = xp.where(size > 0, size, 1.0)
    return jax.lax.stop_gradient(unit) if xp is jnp else unit
