"""Weights and rows of inputs as a user hands them to a net; inside compiled code they are traced, and pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Weights
from .._foundation.checks import is_traced, number_array, real_array
from .._foundation.errors import BadInput

if TYPE_CHECKING:
    from .base import Net

Rows = Float[AnyArray, "sample d_in"]
HOW = "give them as net.shapes(d_in, d_out) says; setup.weights() draws them"


def checked_call(net: Net, weights: object, x: object) -> tuple[Weights, Rows]:
    """The weights of a net made of layers, and rows of inputs, refused where they do not fit each other."""
    if is_traced(weights, x):
        return weights, x  # pyright: ignore[reportReturnType]
    layers, rows = listed_layers(weights, len(net.shapes(1, 1))), checked_rows(x)
    _refuse_misfits(net, layers, rows)
    return layers, rows


def checked_weights_of_layers(net: Net, weights: object) -> Weights:
    """The weights of a net made of layers, refused where they do not fit each other."""
    if is_traced(weights):
        return weights
    layers = listed_layers(weights, len(net.shapes(1, 1)))
    _refuse_misfits(net, layers, None)
    return layers


def _refuse_misfits(net: Net, layers: Weights, x: Rows | None) -> None:
    ends = [jax.tree.leaves(layer)[0].shape for layer in (layers[0], layers[-1])]
    if not all(ends):
        raise BadInput("weights that are numbers", "a matrix for each layer", HOW)
    wanted = net.shapes(ends[0][-1] if x is None else x.shape[1], ends[1][0])
    shapes = tuple(jax.tree.map(lambda leaf: leaf.shape, layer) for layer in layers)
    if shapes != wanted:
        rows = "" if x is None else f", and x of shape {x.shape}"
        raise BadInput(f"weights of shapes {shapes}{rows}", f"weights of shapes {wanted}", HOW)


def listed_layers(weights: object, count: int) -> tuple[Any, ...]:
    """One array, or one pair of arrays, for each of `count` layers or edges."""
    if not isinstance(weights, (list, tuple)) or len(weights) != count:
        given = f"{len(weights)} of them" if isinstance(weights, (list, tuple)) else type(weights).__name__
        raise BadInput(f"weights is {given}", f"a list of weights, one for each of the {count} layers or edges", HOW)
    return tuple(_layer(layer, f"weights[{k}]") for k, layer in enumerate(weights))


def _layer(layer: object, argument: str) -> Any:
    if isinstance(layer, Sequence) and len(layer) == 2 and all(hasattr(part, "shape") for part in layer):
        return tuple(_layer(part, argument) for part in layer)  # matrix and bias
    return layer if isinstance(layer, jax.Array) else number_array(layer, argument)


def checked_rows(x: object) -> Rows:
    """Finite rows of inputs, (sample, d_in)."""
    checked = real_array(x, "x", ndim=2)
    return x if isinstance(x, (np.ndarray, jax.Array)) and not np.ma.isMaskedArray(x) else checked
