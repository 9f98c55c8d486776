"""Deep linear networks: f(x) = W^D … W^2 W^1 x."""

from __future__ import annotations

import functools
import itertools
from typing import ClassVar

from .._foundation.arrays import Weights
from .._foundation.nouns import noun, settle, static
from ._weights import checked_call, checked_weights_of_layers
from .base import Activity, LinearMap, Net, Outputs, Rows, Shapes, layer_shapes, widths


@noun
class DeepLinear(Net):
    """A chain of linear layers without biases; depth = len(hidden) + 1, and () is the shallow net.

    Examples:
        >>> DeepLinear(hidden=(64, 64)).depth
        3
    """

    hidden: int | tuple[int, ...] = static(default=())  # pyright: ignore[reportIncompatibleMethodOverride]
    linear: ClassVar[bool] = True

    def __post_init__(self):
        settle(self, hidden=widths(self.hidden))

    @classmethod
    def example(cls) -> DeepLinear:
        return cls((6, 3))

    @property
    def is_chain(self) -> bool:
        return True

    @property
    def junctions(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        return tuple(((k,), (k + 1,)) for k in range(self.depth - 1))

    def shapes(self, d_in: int, d_out: int) -> Shapes:
        return layer_shapes(d_in, self.hidden, d_out)  # pyright: ignore[reportArgumentType]

    def apply(self, weights: Weights, x: Rows) -> Outputs:
        weights, x = checked_call(self, weights, x)
        return functools.reduce(lambda h, w: h @ w.T, weights, x)

    def representations(self, weights: Weights, x: Rows) -> tuple[Activity, ...]:
        weights, x = checked_call(self, weights, x)
        return tuple(itertools.accumulate(weights[:-1], lambda h, w: h @ w.T, initial=x))[1:]

    def map(self, weights: Weights) -> LinearMap:
        weights = checked_weights_of_layers(self, weights)
        # Multiply from the input side: the result never grows wider than the input.
        return functools.reduce(lambda product, w: w @ product, weights)
