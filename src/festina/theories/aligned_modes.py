"""In a balanced deep linear network that starts along the task's modes, every mode learns alone.

The map stays Σ_k a_k(t) u_k v_kᵀ, and each strength obeys [saxe2014, eq. 12] [saxe2019, eq. 5]

    da/dt = D |a|^(2 − 2/D) (s − λ a),

whose integral is

    D = 1   a = a₀ e^(−λt) + (s/λ)(1 − e^(−λt))              [saxe_slides, "Analytic learning trajectory"]
    D = 2   a = a₀ / (e^(−2st) + λ a₀ (1 − e^(−2st))/s)      [jarvis2025, eq. 7], in a form that cannot overflow
    D ≥ 3   the inverse of the elementary time t(a)          [saxe2014, eq. 12 integrated]
    D = ∞   a = (s/λ)/(1 + W[y₀ e^(y₀ − (s²/λ) t)]),  y₀ = s/(λ a₀) − 1, time in units τ/D.

For a₀ < 0 and D ≥ 2 the strength tends to 0, never through it: the balanced net is stuck at its saddle.

Symbols: s, singular value of Σʸˣ; λ, input variance vᵀΣˣv of the same mode; a₀, start; D, depth.

Convention: τ = 1 and the loss is ½·mean ‖y − f(x)‖²; other losses only rescale time.

Errata. The slides print e^(−t/τ) for D = 1, right only for λ = 1. They print the Lambert form for
D ≥ 3 with exponent −t/τ: it is the limit D → ∞, and its exponent is −(s²/λ) t. The form printed for
D = 2 has a pole at a finite time for a₀ < 0, where the true solution tends to 0. [jarvis2025, A.1] says
that Σˣ does not affect the time course: at D = 2 it leaves the rate alone, not the half-time.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import _chain
from .._checks import MOST, RANGE, matching
from .._errors import BadInput, shown
from .._linalg import alignment_defect, balance_defect, chain_bases
from .._noun import is_traced, noun, real_array
from .._precision import in_double
from .._setup import Setup
from ._linear import (
    MAP_READOUTS,
    LinearConstants,
    aligned_assumption,
    chain_assumption,
    grown,
    growth_along_modes,
    horizon_assumption,
    linear_assumptions,
    linear_constants,
    lost_from_the_start,
    range_assumption,
    weight_readouts,
)
from .base import Approach, Assumption, Theory

__all__ = ["AlignedModes"]

LIMITS = np.finfo(float)


def mode(times: Any, *, singular_value: Any, variance: Any = 1.0, start: Any, depth: int | float = 2) -> Any:
    """Strength of a mode at `times`: axes of `times` first, then those of the other numbers.

    `depth` is 1, 2, 3, …, or math.inf with time in units of τ/D. A start of zero stays there for
    depth ≥ 2; a negative one decays to zero.

    >>> mode([0.0, 100.0], singular_value=2.0, variance=0.5, start=1e-3, depth=2).round(6).tolist()
    [0.001, 4.0]
    """
    times, s, variance, start = _checked(times, "times", singular_value, variance, start)
    if not is_traced(times) and np.any(times < 0):
        raise BadInput(f"times down to {np.min(times):g}", "times >= 0", "learning starts at time 0")
    depth = _checked_depth(depth)
    _check_product(variance, start, depth)
    _check_turns(times, s, variance, start, depth)
    return _answered(
        _mode(times, s, variance, start, depth), times=times, singular_value=s, variance=variance, start=start
    )


def time_to(strength: Any, *, singular_value: Any, variance: Any = 1.0, start: Any, depth: int | float = 2) -> Any:
    """Time at which a mode reaches `strength`; infinite if it never does.

    `depth` as for `mode`; all numbers broadcast against each other.
    """
    strength, s, variance, start = _checked(strength, "strength", singular_value, variance, start)
    depth = _checked_depth(depth)
    _check_product(variance, start, depth)
    found = _time_to(strength, s, variance, start, depth)
    return _answered(found, strength=strength, singular_value=s, variance=variance, start=start)


@in_double
def _mode(times, singular_value, variance, start, depth):
    s, variance, start = jnp.broadcast_arrays(*map(jnp.asarray, (singular_value, variance, start)))
    times = jnp.reshape(jnp.asarray(times), jnp.shape(times) + (1,) * s.ndim)
    return _chain.strength(*jnp.broadcast_arrays(times, s, variance, start), depth)


@in_double
def _time_to(strength, singular_value, variance, start, depth):
    return _chain.time_to(strength, singular_value, variance, start, depth)


def _checked(first: Any, name: str, singular_value: Any, variance: Any, start: Any) -> tuple[Any, ...]:
    numbers = {name: first, "singular_value": singular_value, "variance": variance, "start": start}
    apart = {name: real_array(numbers.pop(name), name)} if name == "times" else {}  # times have axes of their own
    checked = apart | matching(numbers, least={"variance": 0}, within=(0.0, RANGE[1]))
    for argument, value in checked.items():
        if not is_traced(value) and np.any(small := (value != 0) & (np.abs(value) < LIMITS.tiny)):
            raise BadInput(
                f"{argument} = {value[small][0]:g}",
                f"0, or at least {LIMITS.tiny:.2g}: processors round what is below to 0",
                f"use 0, or measure {argument} in a smaller unit",
            )
    return tuple(checked.values())


def _check_product(variance: Any, start: Any, depth: float) -> None:
    """In deep chains variance × start is a rate: where it leaves float64, so does the way to the target."""
    if is_traced(variance, start) or depth < 2:
        return
    variance, start = np.broadcast_arrays(variance, start)
    with np.errstate(over="ignore", under="ignore"):
        product = np.abs(variance * start)
    bad = (variance != 0) & (start != 0) & ((product < LIMITS.tiny) | (product > LIMITS.max))
    if np.any(bad):
        raise BadInput(
            f"variance × start = {variance[bad][0]:g} × {start[bad][0]:g}",
            "a product that float64 holds: the rate at which the start is felt",
            "measure strengths in other units: start / unit and variance × unit, with the unit s/variance",
        )


def _check_turns(times: Any, s: Any, variance: Any, start: Any, depth: float) -> None:
    """Deep chains are solved on a clock of their own, D |a₀|^(1−2/D) t, on which rates and times must be numbers."""
    if is_traced(times, s, variance, start) or depth < 3:
        return
    factor, m = (1.0, 1.0) if depth == math.inf else (depth, 1 - 2 / depth)
    with np.errstate(divide="ignore"):
        size, last = np.log(np.abs(start)), np.log(np.max(times, initial=0.0) * factor)
        turns = m * size + last + np.maximum(np.log(np.abs(s)), np.log(variance) + size)
    if np.any(turns > math.log(LIMITS.max)):
        raise BadInput(
            f"a fastest rate × the last time of about 1e{np.max(turns) / math.log(10):.0f}",
            f"at most {LIMITS.max:.2g}, which float64 holds",
            "ask for earlier times: the mode is long where it stays",
        )


def _answered(found: Any, **numbers: Any) -> Any:
    """What was found, unless it is no number."""
    if is_traced(found) or not np.isnan(found).any():
        return found
    seen = ", ".join(f"{name} = {np.max(np.abs(values)):g}" for name, values in numbers.items())
    raise BadInput(
        f"no answer in float64 for numbers up to {seen}",
        "rates and times whose products float64 holds",
        "measure times and strengths in other units",
    )


def _checked_depth(depth: int | float) -> float:
    plain = isinstance(depth, (int, float, np.integer, np.floating)) and not isinstance(depth, (bool, np.timedelta64))
    if plain and depth == math.inf:
        return math.inf
    if not plain or not 1 <= depth <= MOST or depth % 1:
        raise BadInput(f"depth = {shown(depth)}", "1, 2, 3, … or math.inf", "depth counts layers: hidden layers + 1")
    return int(depth)


def _layers(constants: LinearConstants, strengths: Any) -> tuple[Any, ...]:
    """Every layer of a mode has |a|^(1/D); signs stay as they were, for a mode never passes through zero."""
    if constants.depth == 1:
        return grown(constants, strengths[:, None])
    begun = chain_bases(constants.modes, constants.weights)[0]
    # |0|^(1/D) has an infinite slope; hold zeros out of the power.
    live = strengths != 0
    size = jnp.where(live, jnp.abs(jnp.where(live, strengths, 1.0)) ** (1 / constants.depth), 0.0)
    return grown(constants, jnp.sign(begun) * size[:, None])


@noun
class AlignedModes(Theory):
    """Independent modes of a balanced, aligned deep linear network, at every depth; exact."""

    reference = {"saxe2014": "eq. 12", "saxe2019": "eq. 5", "jarvis2025": "eq. 7 and A.1"}
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

        def fastest_rate():
            largest = np.maximum(np.abs(modes.strengths(start)), np.abs(modes.targets()))
            return float(np.max(depth * largest ** (2 - 2 / depth) * modes.variances))

        return (
            chain,
            *linear_assumptions(setup, modes, fastest_rate),
            aligned_assumption(alignment_defect(modes, weights)),
            Assumption.at_most(
                "balanced", "all layers of a mode have one strength", balance_defect(modes, weights), 1e-6, defect=True
            ),
            range_assumption(chain_bases(modes, weights)[0]),
            horizon_assumption(setup, fastest_rate()),
        )

    def constants(self, setup: Setup, seed: Any) -> LinearConstants:
        return linear_constants(setup, seed)

    def start(self, constants):
        # From the layers: products of weights would hide a mode that starts at zero behind rounding,
        # and what is not zero grows.
        return jnp.prod(chain_bases(constants.modes, constants.weights)[0], axis=0)

    def field(self, constants, state):
        modes = constants.modes
        return _chain.field(state, modes.singular_values, modes.variances, constants.depth)

    def states(self, constants, times):
        modes = constants.modes
        return _mode(times, modes.singular_values, modes.variances, self.start(constants), constants.depth)

    def weights(self, constants, states):
        return _layers(constants, states)

    def fastest_growth(self, constants, states):
        return growth_along_modes(constants.modes, states, constants.weights)

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        return lost_from_the_start(setup, seed)
