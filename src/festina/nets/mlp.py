"""Multilayer perceptrons."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Bool

from .._foundation.arrays import AnyArray, Number, RandomKey, Weights
from .._foundation.checks import positive, truth
from .._foundation.errors import BadInput, shown
from .._foundation.nouns import noun, settle, static
from ._activations import ACTIVATIONS, OFF_SLOPE, checked_activation
from ._weights import checked_call
from .base import Activity, Net, Outputs, Rows, Shapes, layer_shapes, widths


@noun
class MLP(Net):
    """Layers W h + b with one activation between them and none at the output.

    Weights are a tuple over layers: W, or (W, b) with `bias`. With `skip` the activity of the hidden layer before the
    last is added, h_n = act(W h_{n−1}) + h_{n−2}, n counted from 0. `dropout` is the probability with which, at every
    step of training, each input of every layer is set to zero, the others being scaled to keep the mean; observables
    are always those of the network without dropout.
    """

    hidden: int | tuple[int, ...] = static(default=())  # pyright: ignore[reportIncompatibleMethodOverride]
    activation: str = static(default="relu")  # pyright: ignore[reportIncompatibleMethodOverride]
    bias: bool = static(default=False)  # pyright: ignore[reportIncompatibleMethodOverride]
    skip: bool = static(default=False)  # pyright: ignore[reportIncompatibleMethodOverride]
    dropout: float = static(default=0.0)

    def __post_init__(self):
        settle(self, hidden=widths(self.hidden))
        for name, what in (("bias", "layers have biases"), ("skip", "layers are skipped")):
            settle(self, **{name: truth(getattr(self, name), name, f"say whether {what}")})
        checked_activation(self.activation)
        settle(self, dropout=positive(self.dropout, "dropout", zero=True))
        if self.dropout >= 1:
            raise BadInput(f"dropout = {self.dropout}", "0 <= dropout < 1", "lower it: at 1 nothing passes")
        if self.skip and len(set(self.hidden)) > 1:  # pyright: ignore[reportArgumentType]
            raise BadInput(
                f"skip in hidden layers of widths {self.hidden}",
                "one width: activities of different layers are added",
                "use equal widths",
            )

    @classmethod
    def example(cls) -> MLP:
        return cls((6, 3), "leaky_relu", bias=True)

    @property
    def noisy(self) -> bool:
        return self.dropout > 0

    @property
    def is_chain(self) -> bool:
        return not self.skip

    @property
    def steps_by_layer(self) -> bool:
        return type(self) is MLP  # what derives from it may compute something else

    def shapes(self, d_in: int, d_out: int) -> Shapes:
        layers = layer_shapes(d_in, self.hidden, d_out)  # pyright: ignore[reportArgumentType]
        return tuple((shape, (shape[0],)) for shape in layers) if self.bias else layers

    def apply(self, weights: Weights, x: Rows, key: RandomKey | None = None) -> Outputs:
        return self.through(weights, x, key=key)[-1]

    def apply_in_training(self, weights: Weights, x: Rows, key: RandomKey) -> Outputs:
        return self.apply(weights, x, key)

    def representations(self, weights: Weights, x: Rows) -> tuple[Activity, ...]:
        return self.through(weights, x)[:-1]

    @property
    def off_slope(self) -> float | None:
        """What a unit that is off passes on; None where units do more than switch between on and off."""
        return None if self.skip or self.dropout else OFF_SLOPE.get(self.activation)

    def gates(self, weights: Weights, x: Rows) -> Bool[AnyArray, "sample unit"]:
        """Which units are on, (sample, unit), the hidden layers side by side; a unit at exactly 0 is off."""
        # Without skips, activations that only switch keep the sign of what comes in.
        return jnp.concatenate([h > 0 for h in self.representations(weights, x)], axis=1)

    def through(self, weights: Weights, x: Rows, key: RandomKey | None = None) -> tuple[Activity, ...]:
        """The activity of every hidden layer and the output."""
        weights, x = checked_call(self, weights, x)
        if key is not None and not (isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)):
            raise BadInput(f"key = {shown(key)}", "a random key, or None for no dropout", "give jax.random.key(0)")
        reached: list[Activity] = []
        for number, layer in enumerate(weights):
            x = self.layer(layer, self.thinned(x, key, number))
            if number < len(weights) - 1:
                x = ACTIVATIONS[self.activation](x)
                if self.skip and number > 1:
                    x = x + reached[-2]
            reached.append(x)
        return tuple(reached)

    def layer(self, layer: Weights, x: Activity) -> Activity:
        """One layer before its activation."""
        return x @ layer[0].T + layer[1] if self.bias else x @ layer.T

    def thinned(self, x: Activity, key: RandomKey | None, number: Number) -> Activity:
        """The inputs of a layer after dropout drawn with `key`; unchanged where there is no key."""
        if key is None or not self.dropout:
            return x
        kept = jax.random.bernoulli(jax.random.fold_in(key, number), 1 - self.dropout, x.shape)
        return jnp.where(kept, x / (1 - self.dropout), 0.0)
