"""How balanced the layers of a linear network are."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Number, Weights
from .._foundation.checks import is_traced, real_array
from .._foundation.errors import BadInput


class Balance(NamedTuple):
    """The lam for which W2ᵀW2 − W1W1ᵀ is nearest to lam·I, and the Frobenius norm of the residual.

    For two layers both are numbers; for more layers they are arrays over pairs of neighbours, from the input on.
    """

    lam: Number | Float[AnyArray, " pair"]
    residual: Number | Float[AnyArray, " pair"]

    def __repr__(self) -> str:
        if is_traced(self):
            return f"Balance(lam={self.lam!r}, residual={self.residual!r})"
        shown = [
            f"{v:.6g}" if np.ndim(v) == 0 else np.array2string(np.asarray(v), precision=6, separator=", ") for v in self
        ]
        return f"Balance(lam={shown[0]}, residual={shown[1]})"


def balance(weights: object) -> Balance:
    """How far layers W1, W2, … are from W2ᵀW2 − W1W1ᵀ = lam·I, and the lam that comes nearest.

    `weights` is a list of (out, in) matrices. Gradient flow of a linear network conserves W2ᵀW2 − W1W1ᵀ, so that both
    numbers are the same at every time; positive lam means that the layer nearer to the output is the larger one.
    Works inside JAX transformations.
    """
    if not isinstance(weights, (list, tuple)) or len(weights) < 2:
        given = f"{len(weights)} layer(s)" if isinstance(weights, (list, tuple)) else type(weights).__name__
        raise BadInput(f"weights is {given}", "two layers or more", "give [W1, W2, …], (out, in) each")
    layers = [real_array(w, f"weights[{i}]", ndim=2) for i, w in enumerate(weights)]
    shapes = [tuple(np.shape(w)) for w in layers]
    if any(len(shape) != 2 for shape in shapes) or any(below[0] != above[1] for below, above in pairwise(shapes)):
        raise BadInput(
            f"weights of shapes {shapes}",
            "matrices (out, in), each with as many columns as the one before has rows",
            "order them from the input on, transpose them, or take one seed of many",
        )
    lams, residuals = imbalances(layers)
    if len(layers) > 2:
        return Balance(lams, residuals)
    numbers = lams[0], residuals[0]
    return Balance(*(numbers if is_traced(numbers) else map(float, numbers)))


def imbalances(
    layers: Weights, start: Weights | None = None
) -> tuple[Float[AnyArray, " pair"], Float[AnyArray, " pair"]]:
    """lam and residual of every pair of neighbouring layers.

    If the initial layers are given as `start`, the residual is the norm of the change of W2ᵀW2 − W1W1ᵀ since then, and
    lam is 0. A layer may be a pair of matrix and bias; the bias is ignored.
    """
    xp = jnp if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(layers)) else np
    pairs = _differences(layers)
    if start is None:
        lams = [xp.trace(pair) / pair.shape[0] for pair in pairs]
    else:
        pairs = [now - then for now, then in zip(pairs, _differences(start), strict=True)]
        lams = [xp.zeros_like(pair[0, 0]) for pair in pairs]
    rests = [pair - lam * xp.eye(pair.shape[0], dtype=pair.dtype) for pair, lam in zip(pairs, lams, strict=True)]
    return xp.stack(lams), xp.stack([xp.linalg.norm(rest) for rest in rests])


def _differences(layers: Weights) -> list[Float[AnyArray, "_ _"]]:
    """W2ᵀW2 − W1W1ᵀ of every pair of neighbouring layers."""
    matrices = [layer[0] if isinstance(layer, (tuple, list)) else layer for layer in layers]
    return [above.T @ above - below @ below.T for below, above in pairwise(matrices)]
