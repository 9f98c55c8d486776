"""Deep linear networks: f(x) = W^D … W^2 W^1 x."""

from __future__ import annotations

import functools
import itertools
from typing import ClassVar

from .._noun import noun, static
from .._setup import Net, layer_shapes, widths
from ._weights import checked_call


@noun
class DeepLinear(Net):
    """A chain of linear layers without biases; depth = len(hidden) + 1, and () is the shallow net.

    Examples:
        >>> DeepLinear(hidden=(64, 64)).depth
        3
    """

    hidden: int | tuple[int, ...] = static(default=())
    linear: ClassVar[bool] = True

    def __post_init__(self):
        object.__setattr__(self, "hidden", widths(self.hidden))

    @property
    def depth(self) -> int:
        return len(self.hidden) + 1  # pyright: ignore[reportArgumentType]

    @property
    def junctions(self):
        return tuple(((k,), (k + 1,)) for k in range(self.depth - 1))

    def shapes(self, d_in, d_out):
        return layer_shapes(d_in, self.hidden, d_out)  # pyright: ignore[reportArgumentType]

    def apply(self, weights, x):
        weights, x = checked_call(self, weights, x)
        return functools.reduce(lambda h, w: h @ w.T, weights, x)

    def representations(self, weights, x):
        weights, x = checked_call(self, weights, x)
        return tuple(itertools.accumulate(weights[:-1], lambda h, w: h @ w.T, initial=x))[1:]

    def map(self, weights):
        weights, _ = checked_call(self, weights)
        # Multiply from the input side: the result never grows wider than the input.
        return functools.reduce(lambda product, w: w @ product, weights)
