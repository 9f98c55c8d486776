"""A deep linear network that starts along the task's modes acts like several one-dimensional chains.

With Σʸˣ = U S Vᵀ, Σˣ = V Λ Vᵀ and layers W_l = R_l diag(b_l) R_{l−1}ᵀ (R_0 = V, R_D = U), the strengths
b_lk of layer l in mode k obey [saxe2014, eq. 10] [jarvis2025, A.1], whatever their balance,

    db_l/dt = (∏_{j≠l} b_j) (s − λ ∏_j b_j)      for each mode on its own.

Symbols: b, layer strengths (layer, mode); s, singular value of Σʸˣ; λ, input variance of the mode.

Convention: τ = 1. [jarvis2025, A.1] prints dW = +ε ∂L/∂W and the products in a wrong order; neither
matters for diagonal layers once the sign is set right.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._formulas.aligned_chain import chain_bases
from .._foundation.arrays import AnyArray
from .._foundation.nouns import noun
from .._setup.setup import Setup
from ._linear import AlignedLayers, LinearConstants
from ._linear_assumptions import (
    aligned_assumption,
    chain_assumption,
    integration_assumption,
    linear_assumptions,
    range_assumption,
)
from .base import Approach, Assumption, Reduction

__all__ = ["AlignedChains"]


@noun
class AlignedChains(AlignedLayers, Reduction[LinearConstants, Float[AnyArray, "layer mode"]]):
    """Aligned layers of any balance and depth, one chain of scalars per mode; integrated."""

    reference = {"saxe2014": "eq. 10", "jarvis2025": "A.1"}
    approach = Approach("lr", (0.04, 0.02, 0.01), order=1)

    @classmethod
    def example(cls) -> Setup:
        from .. import inits, nets, tasks

        task = tasks.hierarchy(levels=2)
        modes = task.modes()
        rng = np.random.default_rng(0)
        low, high = (np.linalg.qr(rng.normal(size=(5, 4)))[0] for _ in range(2))
        weights = [0.3 * low @ modes.right.T, 0.5 * high @ low.T, 0.7 * modes.left @ high.T]
        return Setup(task, nets.DeepLinear(hidden=(5, 5)), inits.Given(weights), until=24.0, points=31)

    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        chain = chain_assumption(setup)
        if not chain.holds:
            return (chain,)
        modes = setup.modes(seed)
        strengths, defect, _ = chain_bases(modes, setup.weights(seed))

        def fastest_rate() -> float:
            # The rate λ Σ_l ∏_{j≠l} b_j² at the target, estimated with the larger of starting and balanced layers.
            layer = np.maximum(np.abs(strengths), np.abs(modes.targets()) ** (1 / len(strengths)))
            others = np.prod(layer, axis=0) / np.where(layer > 0, layer, 1.0)
            return float(np.max(np.sum(others**2, axis=0) * modes.variances))

        return (
            chain,
            *linear_assumptions(setup, modes, fastest_rate),
            integration_assumption(setup, fastest_rate()),
            aligned_assumption(defect),
            range_assumption(strengths),
        )

    def field(self, constants: LinearConstants, state: Float[AnyArray, "layer mode"]) -> Float[AnyArray, "layer mode"]:
        modes = constants.modes
        error = modes.singular_values - modes.variances * jnp.prod(state, axis=0)
        # Products of the other layers, without dividing by a strength that may be zero.
        others = [jnp.prod(jnp.delete(state, layer, axis=0), axis=0) for layer in range(state.shape[0])]
        return jnp.stack(others) * error
