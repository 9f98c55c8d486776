"""How balanced the layers of a linear network are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ._errors import BadInput
from ._noun import is_traced, real_array


class Balance(NamedTuple):
    """The nearest lam to balance, W2ᵀW2 − W1W1ᵀ ≈ lam·I, and the Frobenius norm of what is left.

    Numbers for two layers; arrays over the pairs of neighbours, from the input on, for more.
    """

    lam: Any
    residual: Any

    def __repr__(self) -> str:
        if is_traced(self):
            return f"Balance(lam={self.lam!r}, residual={self.residual!r})"
        shown = [f"{v:.6g}" if np.ndim(v) == 0 else np.array2string(v, precision=6, separator=", ") for v in self]
        return f"Balance(lam={shown[0]}, residual={shown[1]})"


def balance(weights: Sequence[Any]) -> Balance:
    """How far layers W1, W2, … are from W2ᵀW2 − W1W1ᵀ = lam·I, and the lam that comes nearest.

    `weights` are (out, in) matrices. Gradient flow of a linear network conserves W2ᵀW2 − W1W1ᵀ, so that both
    numbers say the same at every time; positive lam means that the layer nearer to the output is the larger one.
    Works inside JAX transformations.
    """
    if not isinstance(weights, (list, tuple)) or len(weights) < 2:
        seen = f"{len(weights)} layer(s)" if isinstance(weights, (list, tuple)) else type(weights).__name__
        raise BadInput(f"weights is {seen}", "two layers or more", "give [W1, W2, …], (out, in) each")
    layers = [real_array(w, f"weights[{i}]", ndim=2) for i, w in enumerate(weights)]
    shapes = [tuple(np.shape(w)) for w in layers]
    if any(len(shape) != 2 for shape in shapes) or any(one[0] != next_[1] for one, next_ in pairwise(shapes)):
        raise BadInput(
            f"weights of shapes {shapes}",
            "matrices (out, in), each with as many columns as the one before has rows",
            "order them from the input on, transpose them, or take one seed of many",
        )
    lams, residuals = imbalances(layers)
    if len(layers) > 2:
        return Balance(lams, residuals)
    one = lams[0], residuals[0]
    return Balance(*(one if is_traced(one) else map(float, one)))


def imbalances(layers: Any, start: Any = None) -> tuple[Any, Any]:
    """lam and residual of every pair of neighbours; with `start`, of the change since then, whose lam is held at 0.

    A layer may be a pair of matrix and bias; the bias does not count.
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


def _differences(layers: Any) -> list[Any]:
    matrices = [layer[0] if isinstance(layer, (tuple, list)) else layer for layer in layers]
    return [above.T @ above - below @ below.T for below, above in pairwise(matrices)]
