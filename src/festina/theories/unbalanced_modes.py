"""In a two-layer linear network that starts along the task's modes, each mode learns alone, whatever its balance.

With W₁ = R diag(w₁) Vᵀ and W₂ = U diag(w₂) Rᵀ, the imbalance c = w₂² − w₁² of each mode is conserved, and its
strength a = w₁ w₂ obeys [saxe2014, eq. 10] [kunin2024, eq. 4]

    da/dt = √(c² + 4a²) (s − λ a).

The integral of the pair (w₁, w₂) is elementary:

    ρ = √(s² + (λc/2)²),  h = (λc/2)/(ρ + s),  v₊ ∝ (1 − h, 1 + h),  v₋ ∝ (−1 − h, 1 − h),  k± = v± · (w₁, w₂)(0),
    (w₁, w₂)(t) = (v₊ k₊ + v₋ k₋ e) / √(e + λ (k₊² + k₋² e)(1 − e)/(2ρ)),      e = e^(−2ρt).

c = 0 gives the sigmoid with rate 2s, and |c| → ∞ a pure exponential with rate |c| λ. Learning speeds up before it slows
down if and only if |c| < s/(√2 λ). A negative a crosses zero and is learned, unless c = 0: then it tends to zero.
`festina._formulas.two_layer_mode` says how this form is evaluated.

Symbols: s, singular value of Σʸˣ; λ, input variance of the mode; c, its imbalance; w₁, w₂, its layers; v± and k±,
the eigenvectors of the linear part and the start along them.

Convention: τ = 1 and the loss is ½·mean ‖y − f(x)‖². The published form in the ratio w₁/w₂ loses all digits as
c → 0; this one does not.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._formulas import two_layer_mode
from .._formulas.aligned_chain import chain_bases
from .._foundation.arrays import AnyArray
from .._foundation.nouns import noun
from .._setup.setup import Setup
from ._linear import AlignedLayers, LinearConstants, growth_along_modes
from ._linear_assumptions import (
    aligned_assumption,
    horizon_assumption,
    linear_assumptions,
    range_assumption,
    two_layer_assumptions,
)
from .base import Approach, Assumption, Theory, Times

__all__ = ["UnbalancedModes"]


@noun
class UnbalancedModes(AlignedLayers, Theory[LinearConstants, Float[AnyArray, "layer mode"]]):
    """Independent modes of an aligned two-layer linear network of any balance; exact."""

    reference = {"saxe2014": "eq. 10", "kunin2024": "eq. 4"}
    approach = Approach("lr", (0.08, 0.04, 0.02), order=1)

    @classmethod
    def example(cls) -> Setup:
        from .. import inits, nets, tasks

        task = tasks.hierarchy(levels=2)
        modes = task.modes()
        hidden = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 4)))[0]
        weights = [0.02 * hidden @ modes.right.T, 0.3 * modes.left @ hidden.T]
        return Setup(task, nets.DeepLinear(hidden=5), inits.Given(weights), until=24.0, points=31)

    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        net = two_layer_assumptions(setup)
        if not all(assumption.holds for assumption in net):
            return net
        modes = setup.modes(seed)
        strengths, defect, _ = chain_bases(modes, setup.weights(seed))

        def fastest_rate() -> float:
            imbalance = np.abs(strengths[1] ** 2 - strengths[0] ** 2)
            largest = np.maximum(np.abs(np.prod(strengths, axis=0)), np.abs(modes.targets()))
            return float(np.max(np.hypot(imbalance, 2 * largest) * modes.variances))

        return (
            *net,
            *linear_assumptions(setup, modes, fastest_rate),
            aligned_assumption(defect),
            range_assumption(strengths),
            horizon_assumption(setup, fastest_rate()),
        )

    def field(self, constants: LinearConstants, state: Float[AnyArray, "layer mode"]) -> Float[AnyArray, "layer mode"]:
        modes = constants.modes
        return jnp.stack(two_layer_mode.field(modes.singular_values, modes.variances, *state))

    def states(self, constants: LinearConstants, times: Times) -> Float[AnyArray, "time layer mode"]:
        modes = constants.modes
        pair = two_layer_mode.weights(times[:, None], modes.singular_values, modes.variances, *self.start(constants))
        return jnp.stack(pair, axis=1)

    def fastest_growth(
        self, constants: LinearConstants, states: Float[AnyArray, "time layer mode"]
    ) -> Float[AnyArray, " time"]:
        return growth_along_modes(constants.modes, jnp.prod(states, axis=1), constants.weights)
