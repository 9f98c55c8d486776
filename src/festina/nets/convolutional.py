"""Convolutional networks in one dimension."""

from __future__ import annotations

import itertools
from typing import TypeAlias

import jax
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Weights
from .._foundation.checks import whole
from .._foundation.errors import BadInput
from .._foundation.nouns import noun, settle, static
from ._activations import ACTIVATIONS, checked_activation
from ._weights import checked_call
from .base import Activity, Net, Outputs, Rows, Shapes

Signal: TypeAlias = Float[AnyArray, "sample channel position"]


@noun
class Convolutional(Net):
    """A dense layer of `units`, `convolutions` along these, a linear read-out; an activation follows all but the last.

    The first convolution goes from 1 to `channels` channels, the last back to 1; each has `kernel` weights per channel,
    stride 1 and no padding, so that kernel − 1 positions are lost. The representation in a layer is that of all its
    channels and positions. Weights are a tuple over layers, (W, b) each, W of a convolution (out, in, kernel).
    The defaults are those of [vanrossem2024, table 1] as it was run.
    """

    units: int = static(default=500)
    channels: int = static(default=20)
    convolutions: int = static(default=11)
    kernel: int = static(default=11)
    activation: str = static(default="leaky_relu")  # pyright: ignore[reportIncompatibleMethodOverride]

    def __post_init__(self):
        for name, least in {"units": 1, "channels": 1, "kernel": 1, "convolutions": 2}.items():
            settle(self, **{name: whole(getattr(self, name), name, least=least)})
        checked_activation(self.activation)
        if self._last < 1:
            raise BadInput(
                f"{self.convolutions} convolutions of kernel {self.kernel} on {self.units} units",
                f"units above {self.convolutions * (self.kernel - 1)}: each convolution loses kernel − 1 positions",
                "raise units, or use fewer or shorter kernels",
            )

    @property
    def _last(self) -> int:
        """How many positions the convolutions leave."""
        return self.units - self.convolutions * (self.kernel - 1)

    @classmethod
    def example(cls) -> Convolutional:
        return cls(12, channels=3, convolutions=3, kernel=3)

    @property
    def bias(self) -> bool:
        return True

    @property
    def hidden(self) -> tuple[int, ...]:
        lost = self.kernel - 1
        inner = (self.channels * (self.units - k * lost) for k in range(1, self.convolutions))
        return (self.units, *inner, self._last)

    def shapes(self, d_in: int, d_out: int) -> Shapes:
        d_in, d_out = whole(d_in, "d_in"), whole(d_out, "d_out")
        inner = [1, *[self.channels] * (self.convolutions - 1), 1]
        kernels = [(into, out, self.kernel) for out, into in itertools.pairwise(inner)]
        layers = [(self.units, d_in), *kernels, (d_out, self._last)]
        return tuple((shape, (shape[0],)) for shape in layers)

    def apply(self, weights: Weights, x: Rows) -> Outputs:
        weights, x = checked_call(self, weights, x)
        return self._read_out(weights, self._through(weights, x)[-1])

    def representations(self, weights: Weights, x: Rows) -> tuple[Activity, ...]:
        weights, x = checked_call(self, weights, x)
        return tuple(h.reshape(len(h), -1) for h in self._through(weights, x))

    def _through(self, weights: Weights, x: Rows) -> list[Signal]:
        """The signal after each layer but the last."""
        act = ACTIVATIONS[self.activation]
        (matrix, bias), *kernels = weights[:-1]
        reached: list[Signal] = [act(x @ matrix.T + bias)[:, None, :]]
        for kernel, bias in kernels:
            reached.append(act(_convolved(reached[-1], kernel) + bias[:, None]))
        return reached

    def _read_out(self, weights: Weights, hidden: Signal) -> Outputs:
        matrix, bias = weights[-1]
        return hidden.reshape(len(hidden), -1) @ matrix.T + bias


def _convolved(h: Signal, kernel: Float[AnyArray, " out in length"]) -> Signal:
    kinds = ("NCH", "OIH", "NCH")
    return jax.lax.conv_general_dilated(h, kernel, (1,), "VALID", dimension_numbers=kinds)  # pyright: ignore[reportArgumentType]
