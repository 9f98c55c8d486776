"""Gradient flow."""

from __future__ import annotations

from .._foundation.arrays import Number, Weights
from .._foundation.checks import positive
from .._foundation.nouns import noun, settle
from .base import Flow


@noun
class GradientFlow(Flow):
    """dW/dt = −∂loss/∂W, integrated adaptively to the stated tolerances.

    `atol` must lie far below the initial weights, whose growth decides the time course; None takes 1e-14 of the largest
    of them, and no more than 1e-14. In float32 `rtol` is raised to what that precision can hold.
    """

    rtol: Number = 1e-9
    atol: Number | None = None

    def __post_init__(self):
        atol = None if self.atol is None else positive(self.atol, "atol")
        settle(self, rtol=positive(self.rtol, "rtol"), atol=atol)

    @classmethod
    def example(cls) -> GradientFlow:
        return cls()

    def absolute_tolerance(self, weights: Weights) -> Number:
        from .._formulas.integration import finest

        return finest(weights) if self.atol is None else self.atol
