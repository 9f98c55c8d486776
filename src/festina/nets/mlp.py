"""Multilayer perceptrons."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .._checks import truth
from .._errors import BadInput, shown
from .._noun import noun, positive, settle, static
from .._setup import Net, layer_shapes, widths
from ._activations import ACTIVATIONS, OFF_SLOPE, checked_activation
from ._weights import checked_call


@noun
class MLP(Net):
    """Layers W h + b with one activation between them and none at the output.

    Weights are a tuple over layers: W, or (W, b) with `bias`. With `skip` the activity of the hidden layer before the
    last is added, h_n = act(W h_{n−1}) + h_{n−2}, n counted from 0. `dropout` is the probability with which, at every
    step of training, each input of every layer is silenced, the others being scaled to the same mean; all that is
    recorded comes from the whole network.
    """

    hidden: int | tuple[int, ...] = static(default=())
    activation: str = static(default="relu")
    bias: bool = static(default=False)
    skip: bool = static(default=False)
    dropout: float = static(default=0.0)

    def __post_init__(self):
        object.__setattr__(self, "hidden", widths(self.hidden))
        for name, what in (("bias", "layers have biases"), ("skip", "layers are skipped")):
            settle(self, **{name: truth(getattr(self, name), name, f"say whether {what}")})
        checked_activation(self.activation)
        object.__setattr__(self, "dropout", positive(self.dropout, "dropout", zero=True))
        if self.dropout >= 1:
            raise BadInput(f"dropout = {self.dropout}", "0 <= dropout < 1", "lower it: at 1 nothing passes")
        if self.skip and len(set(self.hidden)) > 1:  # pyright: ignore[reportArgumentType]
            raise BadInput(
                f"skip in hidden layers of widths {self.hidden}",
                "one width: activities of different layers are added",
                "use equal widths",
            )

    @property
    def noisy(self) -> bool:
        return self.dropout > 0

    def shapes(self, d_in, d_out):
        layers = layer_shapes(d_in, self.hidden, d_out)  # pyright: ignore[reportArgumentType]
        return tuple((shape, (shape[0],)) for shape in layers) if self.bias else layers

    def apply(self, weights, x, key=None):
        return self.through(weights, x, key=key)[-1]

    def representations(self, weights, x):
        return self.through(weights, x)[:-1]

    @property
    def off_slope(self) -> float | None:
        """What a unit that is off passes on; None where units do more than switch between on and off."""
        return None if self.skip or self.dropout else OFF_SLOPE.get(self.activation)

    def gates(self, weights, x):
        """Which units are on, (sample, unit), the hidden layers side by side; a unit at exactly 0 is off."""
        # Without skips, activations that only switch keep the sign of what comes in.
        return jnp.concatenate([h > 0 for h in self.representations(weights, x)], axis=1)

    def through(self, weights, x, key=None) -> tuple[Any, ...]:
        """The activity of every hidden layer and the output."""
        weights, x = checked_call(self, weights, x)
        if key is not None and not (isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)):
            raise BadInput(f"key = {shown(key)}", "a random key, or None for no dropout", "give jax.random.key(0)")
        found = []
        for number, layer in enumerate(weights):
            x = self.layer(layer, self.thinned(x, key, number))
            if number < len(weights) - 1:
                x = ACTIVATIONS[self.activation](x)
                if self.skip and number > 1:
                    x = x + found[-2]
            found.append(x)
        return tuple(found)

    def layer(self, layer, x):
        """One layer before its activation."""
        return x @ layer[0].T + layer[1] if self.bias else x @ layer.T

    def thinned(self, x, key, number):
        """The inputs of a layer that dropout leaves, where there is a key to draw with."""
        if key is None or not self.dropout:
            return x
        kept = jax.random.bernoulli(jax.random.fold_in(key, number), 1 - self.dropout, x.shape)
        return jnp.where(kept, x / (1 - self.dropout), 0.0)
