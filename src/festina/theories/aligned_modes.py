"""In a balanced deep linear network that starts along the task's modes, every mode learns alone.

The map stays Σ_k a_k(t) u_k v_kᵀ, and each strength obeys [saxe2014, eq. 12] [saxe2019, eq. 5]

    da/dt = D |a|^(2 − 2/D) (s − λ a),

whose integral is

    D = 1   a = a₀ e^(−λt) + (s/λ)(1 − e^(−λt))              [saxe_slides, "Analytic learning trajectory"]
    D = 2   a = a₀ / (e^(−2st) + λ a₀ (1 − e^(−2st))/s)      [jarvis2025, eq. 7], in a form that cannot overflow
    D ≥ 3   the inverse of the elementary time t(a)          [saxe2014, eq. 12 integrated]
    D = ∞   a = (s/λ)/(1 + W[y₀ e^(y₀ − (s²/λ) t)]),  y₀ = s/(λ a₀) − 1, time in units τ/D.

For a₀ < 0 and D ≥ 2 the strength tends to 0, never through it: the balanced net is stuck at its saddle.
`festina._formulas.mode_at_depth` says how these forms are evaluated.

Symbols: a, strength of a mode, the product of its layers; s, singular value of Σʸˣ; λ, input variance vᵀΣˣv of the same
mode (`variance` in the code); a₀, start; D, depth; W, Lambert's function.

Convention: τ = 1 and the loss is ½·mean ‖y − f(x)‖²; other losses only rescale time.

Errata. The slides print e^(−t/τ) for D = 1, right only for λ = 1. They print the Lambert form for
D ≥ 3 with exponent −t/τ: it is the limit D → ∞, and its exponent is −(s²/λ) t. The form printed for
D = 2 has a pole at a finite time for a₀ < 0, where the true solution tends to 0. [jarvis2025, A.1] says
that Σˣ does not affect the time course: at D = 2 it leaves the rate alone, not the half-time.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._formulas import mode_at_depth
from .._formulas.aligned_chain import alignment_defect, balance_defect, chain_bases
from .._foundation.arrays import AnyArray, Numbers
from .._foundation.checks import is_traced
from .._foundation.errors import BadInput
from .._foundation.nouns import noun
from .._foundation.precision import in_double
from .._setup.setup import Setup
from ._fitting.aligned_modes import FITTING
from ._linear import (
    MAP_READOUTS,
    LayersInTime,
    LinearConstants,
    grown,
    growth_along_modes,
    linear_constants,
    weight_readouts,
)
from ._linear_assumptions import (
    aligned_assumption,
    chain_assumption,
    horizon_assumption,
    linear_assumptions,
    range_assumption,
)
from ._mode_arguments import check_clock, check_product, mode_depth, mode_numbers, without_nan
from ._remarks import lost_from_the_start
from .base import Approach, Assumption, Seed, Theory, Times

__all__ = ["AlignedModes"]


def mode(
    times: object, *, singular_value: object, variance: object = 1.0, start: object, depth: object = 2
) -> Float[AnyArray, "*shape"]:
    """Strength of a mode at `times`: axes of `times` first, then those of the other numbers.

    `times`, `singular_value`, `variance` and `start` are numbers or arrays. `depth` is 1, 2, 3, …, or math.inf with
    time in units of τ/D. A start of zero stays there for depth ≥ 2; a negative one decays to zero.

    >>> mode([0.0, 100.0], singular_value=2.0, variance=0.5, start=1e-3, depth=2).round(6).tolist()
    [0.001, 4.0]
    """
    ts, s, variance, start = mode_numbers(times, "times", singular_value, variance, start)
    if not is_traced(ts) and np.any(ts < 0):
        raise BadInput(f"times down to {np.min(ts):g}", "times >= 0", "learning starts at time 0")
    layers = mode_depth(depth)
    check_product(variance, start, layers)
    check_clock(ts, s, variance, start, layers)
    answer = _mode(ts, s, variance, start, layers)
    return without_nan(answer, times=ts, singular_value=s, variance=variance, start=start)


def time_to(
    strength: object, *, singular_value: object, variance: object = 1.0, start: object, depth: object = 2
) -> Float[AnyArray, "*shape"]:
    """Time at which a mode reaches `strength`; infinite if it never does.

    `depth` as for `mode`; all numbers broadcast against each other.
    """
    strength, s, variance, start = mode_numbers(strength, "strength", singular_value, variance, start)
    layers = mode_depth(depth)
    check_product(variance, start, layers)
    answer = in_double(mode_at_depth.time_to)(strength, s, variance, start, layers)
    return without_nan(answer, strength=strength, singular_value=s, variance=variance, start=start)


@in_double
def _mode(
    times: Numbers, singular_value: Numbers, variance: Numbers, start: Numbers, depth: int | float
) -> Float[AnyArray, "*shape"]:
    s, variance, start = jnp.broadcast_arrays(*map(jnp.asarray, (singular_value, variance, start)))
    times = jnp.reshape(jnp.asarray(times), jnp.shape(times) + (1,) * s.ndim)
    numbers = jnp.broadcast_arrays(times, s, variance, start)
    return mode_at_depth.strength(numbers[0], numbers[1], numbers[2], numbers[3], depth)


def _layers(constants: LinearConstants, strengths: Float[AnyArray, "time mode"]) -> LayersInTime:
    """The layers of modes of these strengths: |a|^(1/D) in each, with the signs of the start, which never change."""
    if constants.depth == 1:
        return grown(constants, strengths[:, None])
    start = chain_bases(constants.modes, constants.weights).strengths
    # |0|^(1/D) has an infinite slope; hold zeros out of the power.
    live = strengths != 0
    size = jnp.where(live, jnp.abs(jnp.where(live, strengths, 1.0)) ** (1 / constants.depth), 0.0)
    return grown(constants, jnp.sign(start) * size[:, None])


@noun
class AlignedModes(Theory[LinearConstants, Float[AnyArray, " mode"]]):
    """Independent modes of a balanced, aligned deep linear network, at every depth; exact."""

    reference = {"saxe2014": "eq. 12", "saxe2019": "eq. 5", "jarvis2025": "eq. 7 and A.1"}
    fitting = FITTING
    approach = Approach("lr", (0.08, 0.04, 0.02), order=1)
    readouts = {**MAP_READOUTS, **weight_readouts(_layers)}

    @classmethod
    def example(cls) -> Setup:
        from .. import inits, nets, tasks

        return Setup(tasks.hierarchy(levels=2), nets.DeepLinear(hidden=5), inits.Aligned(1e-2), until=24.0, points=31)

    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        chain = chain_assumption(setup)
        if not chain.holds:
            return (chain,)
        modes, weights = setup.modes(seed), setup.weights(seed)
        start = setup.net.map(weights)
        depth = setup.net.depth

        def fastest_rate() -> float:
            largest = np.maximum(np.abs(modes.strengths(start)), np.abs(modes.targets()))
            return float(np.max(depth * largest ** (2 - 2 / depth) * modes.variances))

        return (
            chain,
            *linear_assumptions(setup, modes, fastest_rate),
            aligned_assumption(alignment_defect(modes, weights)),
            Assumption.at_most(
                "balanced", "all layers of a mode have one strength", balance_defect(modes, weights), 1e-6, defect=True
            ),
            range_assumption(chain_bases(modes, weights).strengths),
            horizon_assumption(setup, fastest_rate()),
        )

    def constants(self, setup: Setup, seed: Seed) -> LinearConstants:
        return linear_constants(setup, seed)

    def start(self, constants: LinearConstants) -> Float[AnyArray, " mode"]:
        # From the layers: products of weights would hide a mode that starts at zero behind rounding,
        # and what is not zero grows.
        return jnp.prod(chain_bases(constants.modes, constants.weights).strengths, axis=0)

    def field(self, constants: LinearConstants, state: Float[AnyArray, " mode"]) -> Float[AnyArray, " mode"]:
        modes = constants.modes
        return mode_at_depth.field(state, modes.singular_values, modes.variances, constants.depth)

    def states(self, constants: LinearConstants, times: Times) -> Float[AnyArray, "time mode"]:
        modes = constants.modes
        return _mode(times, modes.singular_values, modes.variances, self.start(constants), constants.depth)

    def weights(self, constants: LinearConstants, states: Float[AnyArray, "time mode"]) -> LayersInTime:
        return _layers(constants, states)

    def fastest_growth(
        self, constants: LinearConstants, states: Float[AnyArray, "time mode"]
    ) -> Float[AnyArray, " time"]:
        return growth_along_modes(constants.modes, states, constants.weights)

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        return lost_from_the_start(setup, seed)
