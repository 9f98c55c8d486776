"""Linear algebra that several theories share."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._noun import noun
from ._precision import in_double

SAME = 1e-9  # singular values closer than this, relative to the largest, are one level


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
        carries = jnp.asarray(self.variances) > 0
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
def shared_modes(cov_yx: Any, cov_x: Any) -> Modes:
    """SVD of Σʸˣ, turned inside each degenerate level so that it diagonalises Σˣ.

    Variances are paired by vᵀ Σˣ v, never by sorting. Signs are fixed: the largest entry of
    each right vector is positive.
    """
    left, values, right_t = jnp.linalg.svd(cov_yx, full_matrices=False)
    right = right_t.T
    level = _levels(values, values[0])
    turn = jax.lax.stop_gradient(_eigenvectors_within(level, right.T @ cov_x @ right))
    left, right = left @ turn, right @ turn
    sign = jnp.sign(jnp.take_along_axis(right, jnp.argmax(jnp.abs(right), axis=0)[None], axis=0))
    return _paired(left * sign, right * sign, cov_yx, cov_x)


def _paired(left: Any, right: Any, cov_yx: Any, cov_x: Any) -> Modes:
    # First-order perturbation theory: with the vectors held still, the derivatives of s and of
    # the variance are exact, also at degenerate levels where those of the vectors do not exist.
    u, v = jax.lax.stop_gradient((left, right))
    return Modes(left, right, jnp.einsum("om,oi,im->m", u, cov_yx, v), jnp.einsum("im,ij,jm->m", v, cov_x, v))


@jax.jit
def adapt_to(modes: Modes, start: Any) -> Modes:
    """Turn the modes inside levels that share s and variance, to fit a starting map.

    Such levels leave the basis free; a start that is diagonal in one of the bases is aligned.
    """
    start = jax.lax.stop_gradient(start)
    u, v = modes.left, modes.right
    silent = modes.singular_values <= SAME * modes.singular_values[0]
    level = _levels(modes.singular_values, modes.singular_values[0])
    # Variances need not be sorted inside the silent level, so compare them pairwise.
    gap = jnp.abs(modes.variances[:, None] - modes.variances[None, :])
    same = (level[:, None] == level[None, :]) & (gap <= SAME * jnp.max(modes.variances))
    seen = jnp.einsum("om,oi,in->mn", u, start, v)
    image = start @ v
    wanted = jnp.where(silent[:, None], image.T @ image, 0.5 * (seen + seen.T))
    scale = jnp.max(jnp.abs(wanted)) + jnp.finfo(wanted.dtype).tiny
    turn = _eigenvectors_within(jnp.argmax(same, axis=1), wanted / scale)
    u, v = u @ turn, v @ turn
    # A silent mode has no left vector of its own: take the one the start maps it to.
    block = silent[:, None] & silent[None, :]
    seen = jnp.einsum("om,oi,in->mn", u, start, v)
    left, _, right_t = jnp.linalg.svd(jnp.where(block, seen / scale, jnp.diag(jnp.where(silent, 0.0, 1.0))))
    return Modes(u @ (left @ right_t), v, modes.singular_values, modes.variances)


def _levels(values: Any, largest: Any) -> Any:
    """Index of the level of each of the sorted values; equal values share one."""
    drop = values[:-1] - values[1:] > SAME * largest
    return jnp.concatenate([jnp.zeros(1, int), jnp.cumsum(drop)])


def _eigenvectors_within(level: Any, symmetric: Any) -> Any:
    """Orthogonal matrix that diagonalises each diagonal block (equal `level`) on its own."""
    same = level[:, None] == level[None, :]
    block = jnp.where(same, symmetric, 0.0)
    size = jnp.max(jnp.sum(jnp.abs(block), axis=1))
    # Eigenvalues are shifted by multiples of the level, so those of different blocks stay apart;
    # eigh then returns the columns level by level.
    _, vectors = jnp.linalg.eigh(block + jnp.diag(level * jnp.where(size > 0, 2 * size, 1.0)))
    order = jnp.argsort(level, stable=True)
    return jnp.where(same, jnp.zeros_like(vectors).at[:, order].set(vectors), 0.0)


def input_defect(modes: Modes, cov_x: Any) -> float:
    """How far Σˣ v_k is from λ_k v_k, relative; 0 if Σˣ shares the modes."""
    image = np.asarray(cov_x) @ np.asarray(modes.right)
    return _relative(image - modes.right * modes.variances, image)


def alignment_defect(modes: Modes, matrix: Any) -> float:
    """How far a map is from Σ_k a_k u_k v_kᵀ, relative."""
    matrix = np.asarray(matrix)
    return _relative(matrix - modes.matrix(modes.strengths(matrix)), matrix)


def balance_defect(weights: Any) -> float:
    """Largest |W_{l+1}ᵀW_{l+1} − W_l W_lᵀ|, relative to the largest of these Gram matrices."""
    weights = [np.asarray(w) for w in weights]
    below = [w @ w.T for w in weights[:-1]]
    above = [w.T @ w for w in weights[1:]]
    gaps = [np.linalg.norm(b - a) for b, a in zip(below, above, strict=True)]
    size = max([np.linalg.norm(gram) for gram in below + above], default=0.0)
    return float(max(gaps) / size) if size > 0 else 0.0


@in_double
@jax.jit
def chain_bases(modes: Modes, weights: Any) -> tuple[Any, Any]:
    """Layer strengths (layer, mode) of a chain along its modes, and the part that is not along them.

    The basis of a hidden layer is where the layers below carry the right vectors; a mode that they
    do not carry takes what the layers above read.
    """
    weights = [jnp.asarray(w) for w in weights]
    below, above = [jnp.asarray(modes.right)], [jnp.asarray(modes.left)]
    for w in weights[:-1]:
        below.append(_normalised(w @ below[-1]))
    for w in reversed(weights[1:]):
        above.append(_normalised(w.T @ above[-1]))
    hidden = [jnp.where(jnp.any(b != 0, axis=0), b, a) for b, a in zip(below[1:], above[:0:-1], strict=True)]
    bases = [below[0], *hidden, above[0]]
    pairs = list(zip(weights, bases[1:], bases[:-1], strict=True))
    strengths = jnp.stack([jnp.einsum("om,oi,im->m", out, w, into) for w, out, into in pairs])
    aligned = [(out * b) @ into.T for (_, out, into), b in zip(pairs, strengths, strict=True)]
    size = jnp.maximum(jnp.max(jnp.stack([jnp.linalg.norm(w) for w in weights])), jnp.finfo(strengths.dtype).tiny)
    outside = jnp.stack([jnp.linalg.norm(w - a) for w, a in zip(weights, aligned, strict=True)]) / size
    # Hidden directions of different modes must not overlap.
    overlap = [jnp.linalg.norm(jnp.triu(h.T @ h, 1)) for h in hidden]
    return strengths, jnp.max(jnp.stack([*outside, *overlap]))


def _normalised(columns: Any) -> Any:
    """Columns of unit length; columns that are zero, up to rounding of the largest, become zero."""
    squares = jnp.sum(columns**2, axis=0)
    live = squares > (1e-12**2) * jnp.max(squares)
    return jnp.where(live, columns / jnp.sqrt(jnp.where(live, squares, 1.0)), 0.0)


def _relative(part: Any, whole: Any) -> float:
    size = np.linalg.norm(whole)
    return float(np.linalg.norm(part) / size) if size > 0 else 0.0
