"""Weights and rows of inputs as a user hands them to a net; inside compiled code they are traced, and pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from .._checks import is_traced, number_array, real_array
from .._errors import BadInput

HOW = "give them as net.shapes(d_in, d_out) says; setup.weights() draws them"


NO_ROWS = object()


def checked_call(net: Any, weights: Any, x: Any = NO_ROWS) -> tuple[Any, Any]:
    """The weights of a net made of layers, and rows of inputs if any are meant, refused where they do not fit."""
    if is_traced(weights, x):
        return weights, x
    layers = listed_layers(weights, len(net.shapes(1, 1)))
    x = None if x is NO_ROWS else checked_rows(x)
    ends = [jax.tree.leaves(layer)[0].shape for layer in (layers[0], layers[-1])]
    if not all(ends):
        raise BadInput("weights that are numbers", "a matrix for each layer", HOW)
    wanted = net.shapes(ends[0][-1] if x is None else x.shape[1], ends[1][0])
    seen = tuple(jax.tree.map(lambda leaf: leaf.shape, layer) for layer in layers)
    if seen != wanted:
        rows = "" if x is None else f", and x of shape {x.shape}"
        raise BadInput(f"weights of shapes {seen}{rows}", f"weights of shapes {wanted}", HOW)
    return layers, x


def listed_layers(weights: Any, count: int) -> tuple[Any, ...]:
    """One array, or one pair of arrays, for each of so many layers or edges."""
    if not isinstance(weights, (list, tuple)) or len(weights) != count:
        seen = f"{len(weights)} of them" if isinstance(weights, (list, tuple)) else type(weights).__name__
        raise BadInput(f"weights is {seen}", f"a list of weights, one for each of the {count} layers or edges", HOW)
    return tuple(_layer(layer, f"weights[{k}]") for k, layer in enumerate(weights))


def _layer(layer: Any, argument: str) -> Any:
    if isinstance(layer, Sequence) and len(layer) == 2 and all(hasattr(part, "shape") for part in layer):
        return tuple(_layer(part, argument) for part in layer)  # matrix and bias
    return layer if isinstance(layer, jax.Array) else number_array(layer, argument)


def checked_rows(x: Any) -> Any:
    """Finite rows of inputs, (sample, d_in)."""
    checked = real_array(x, "x", ndim=2)
    return x if isinstance(x, (np.ndarray, jax.Array)) and not np.ma.isMaskedArray(x) else checked
