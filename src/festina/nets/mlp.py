"""Multilayer perceptrons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .._errors import BadInput, UnknownName
from .._noun import noun, static
from .._setup import Net, layer_shapes, widths

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda h: h,
    # max(h, 0) has slope 1/2 at 0 in JAX; networks in this field use slope 0 there.
    "relu": jax.nn.relu,
    "leaky_relu": jax.nn.leaky_relu,
    "elu": jax.nn.elu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "swish": jax.nn.swish,
    "gelu": jax.nn.gelu,
}
OFF_SLOPE = {"relu": 0.0, "leaky_relu": 0.01}  # activations that only switch: their slope where a unit is off


@noun
class MLP(Net):
    """Layers W h + b with one activation between them and none at the output.

    Weights are a tuple over layers: W, or (W, b) with `bias`.
    """

    hidden: int | tuple[int, ...] = static(default=())
    activation: str = static(default="relu")
    bias: bool = static(default=False)

    def __post_init__(self):
        object.__setattr__(self, "hidden", widths(self.hidden))
        if not isinstance(self.bias, bool):
            raise BadInput(f"bias = {self.bias!r}", "True or False", "say whether layers have biases")
        if self.activation not in ACTIVATIONS:
            raise UnknownName.among("activation", self.activation, ACTIVATIONS)

    def shapes(self, d_in, d_out):
        layers = layer_shapes(d_in, self.hidden, d_out)  # pyright: ignore[reportArgumentType]
        return tuple((shape, (shape[0],)) for shape in layers) if self.bias else layers

    def apply(self, weights, x):
        return self.layer(weights[-1], self._hidden(weights, x))

    def representation(self, weights, x):
        return self._hidden(weights, x) if self.hidden else None

    @property
    def off_slope(self) -> float | None:
        """What a unit that is off passes on; None where units do more than switch between on and off."""
        return OFF_SLOPE.get(self.activation)

    def gates(self, weights, x):
        """Which units are on, (sample, unit), the hidden layers side by side; a unit at exactly 0 is off."""
        on = []
        for layer in weights[:-1]:
            before = self.layer(layer, x)
            on.append(before > 0)
            x = ACTIVATIONS[self.activation](before)
        return jnp.concatenate(on, axis=1)

    def _hidden(self, weights, x):
        for layer in weights[:-1]:
            x = ACTIVATIONS[self.activation](self.layer(layer, x))
        return x

    def layer(self, layer, x):
        """One layer before its activation."""
        return x @ layer[0].T + layer[1] if self.bias else x @ layer.T
