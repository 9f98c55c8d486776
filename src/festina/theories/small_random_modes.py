"""From small random weights, a two-layer linear network learns mode by mode, each from a start that can be computed.

While everything is small, W₁ and W₂ᵀ grow only along x_k + y_k, with x_k = W₁(0) v_k and y_k = W₂(0)ᵀ u_k, at
the rate s_k. The mode of largest s arrives first; it then fills its hidden direction, and the next ones grow
in what is left. So mode k follows the sigmoid of [jarvis2025, eq. 7], an aligned start of [saxe2014, eq. 12],
from

    a_k = ¼ | P⊥ (x_k + y_k) |²,

P⊥ projecting out the directions of the modes with larger s. Its mean over Gaussian weights of standard
deviation σ is N_h σ²/2 for the first mode. Modes of equal s share a level: there a is the matrix
¼ P⊥(x + y)(x + y)ᵀP⊥, and its eigenvectors are the modes.

The error of the map vanishes as σ^(1 − s_k/s_j), of the pair of modes j, k whose s_k/s_j < 1 is largest: until mode j
has been learned, mode k grows in its hidden direction, too, and stands in the map beside the diagonal. With s_k = 0,
inputs or outputs without a target, it vanishes as σ. That of the loss vanishes as the square. Close modes need starts
of no size that training ever has: the error of a draw is followed along its path, as for every theory.

Symbols: u, v, s, singular vectors and values of Σʸˣ; a, effective start of a mode; N_h, hidden units.

Convention: τ = 1. The projection u_kᵀ W₂W₁ v_k and the top singular value of W₂W₁(0), both in use as starts, are
not small corrections away: the former may even be negative. Without P⊥ the error does not vanish. For three
layers or more no such formula is known.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import _chain
from .._checks import instance, listed, real_array
from .._errors import BadInput
from .._linalg import NOTHING, Modes, eigenvectors_within, mode_levels
from .._noun import noun
from .._precision import in_double
from .._riccati import staircase
from .._setup import Setup
from ._linear import (
    MAP_READOUTS,
    cut_off,
    linear_assumptions,
    range_assumption,
    two_layer_assumptions,
    unlearnable,
    weight_readouts,
)
from .base import Approach, Assumption, Limit, Readout

__all__ = ["SmallRandomModes"]


@noun
class SmallRandomConstants:
    """Modes turned to the start within each level, their effective starts, and the hidden directions they grow in."""

    modes: Modes
    effective: Any
    hidden: Any  # (hidden, mode)
    fitted_modes: Modes  # those that training reports
    weights: Any
    floor: Any
    cov_x: Any
    x: Any


def effective_starts(modes: Modes, weights: Any) -> tuple[Modes, Any, Any]:
    """The modes, turned within levels of equal s, the strength from which each seems to start, its hidden direction."""
    return _effective_starts(modes, _two_layers(modes, weights))


@in_double
def _effective_starts(modes: Modes, weights: Any) -> tuple[Modes, Any, Any]:
    first, last = map(jnp.asarray, weights)
    stairs, pivots, basis = staircase((first @ modes.right + last.T @ modes.left).T)
    level = mode_levels(modes)
    # What a level adds to the levels before it.
    own = jnp.where((pivots >= 0) & (level[:, None] == level[jnp.maximum(pivots, 0)]), stairs, 0.0)
    start = 0.25 * own @ own.T
    turn = eigenvectors_within(level, start)
    turned = Modes(modes.left @ turn, modes.right @ turn, modes.singular_values, modes.variances)
    effective = jnp.einsum("km,kl,lm->m", turn, start, turn)
    live = effective > 0
    length = jnp.where(live, 2 * jnp.sqrt(jnp.where(live, effective, 1.0)), 1.0)
    return turned, effective, jnp.where(live, (basis.T @ own.T @ turn) / length, 0.0)


def _two_layers(modes: Any, weights: Any) -> tuple[Any, Any]:
    """Two layers between the inputs and outputs of these modes."""
    instance(modes, "modes", Modes, "use task.modes(), or setup.modes(seed)")
    needed, do = "two layers, (hidden, in) and (out, hidden)", "use setup.weights(seed)"
    given = listed(weights, "weights", needed, do)
    layers = [real_array(w, f"weights[{k}]") for k, w in enumerate(given)]
    ends = modes.right.shape[0], modes.left.shape[0]
    if len(layers) != 2 or any(w.ndim != 2 for w in layers) or layers[0].shape[::-1] + layers[1].shape[::-1] != (
        ends[0], layers[0].shape[0], layers[0].shape[0], ends[1]
    ):  # fmt: skip
        raise BadInput(
            f"weights of shapes {[w.shape for w in layers]} for {ends[0]} inputs, {ends[1]} outputs", needed, do
        )
    return layers[0], layers[1]


def _layers(constants: SmallRandomConstants, strengths: Any) -> tuple[Any, Any]:
    """The start, with each mode grown along its hidden direction."""
    root = lambda a: jnp.where(a > 0, jnp.sqrt(jnp.where(a > 0, a, 1.0)), 0.0)  # noqa: E731
    growth = root(strengths) - root(constants.effective)
    modes, hidden = constants.modes, constants.hidden
    first, last = constants.weights
    return (
        first + jnp.einsum("hm,tm,im->thi", hidden, growth, modes.right),
        last + jnp.einsum("om,tm,hm->toh", modes.left, growth, hidden),
    )


@noun
class SmallRandomModes(Limit):
    """Sigmoidal modes from the effective start of small random weights, two layers; the limit of small weights."""

    reference = {"saxe2014": "eq. 12", "jarvis2025": "eq. 7"}
    approach = Approach("scale", (1e-3, 1e-4, 1e-5), order=0.5)
    readouts = {
        **MAP_READOUTS,
        "modes": Readout(("mode",), lambda c, a: c.fitted_modes.strengths(c.modes.matrix(a))),
        **weight_readouts(_layers),
    }

    @classmethod
    def example(cls) -> Setup:
        return cls().turned(1e-3)

    def turned(self, value: float) -> Setup:
        from .. import inits, nets, tasks

        rng = np.random.default_rng(1)
        left, right = (np.linalg.qr(rng.normal(size=(4, 4)))[0][:, :3] for _ in range(2))
        # The first two modes err most, by σ^(1 − 1/2); the others are further apart.
        task = tasks.from_arrays(2 * np.eye(4), (left * [2.0, 1.0, 0.2]) @ right.T @ (2 * np.eye(4)))
        until = -2.3 * np.log(value) / 0.2
        return Setup(task, nets.DeepLinear(hidden=6), inits.SmallRandom(value), until=until, points=400, spacing="log")

    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        net = two_layer_assumptions(setup)
        if not all(assumption.holds for assumption in net):
            return net
        modes, weights = setup.modes(seed), setup.weights(seed)
        targets = np.abs(modes.targets())
        live = modes.singular_values > NOTHING * modes.singular_values[0]
        sizes = [np.linalg.norm(w, 2) ** 2 for w in weights]

        def fastest_rate():
            return float(np.max(2 * modes.singular_values))

        smallest = np.min(targets[live], initial=np.inf)
        swapped = _swapped(modes, live, setup.net.hidden[0])
        return (
            *net,
            *linear_assumptions(setup, modes, fastest_rate),
            range_assumption(np.array([[np.linalg.norm(w, 2)] for w in weights])),
            Assumption.at_most(
                "small start",
                "the weights are small: |W|² relative to the smallest target",
                max(sizes) / smallest if smallest > 0 else np.inf,
                0.05,
            ),
            Assumption.at_most(
                "room",
                "no mode is learned and then given up: how many rank by s²/λ behind one that does not fit",
                swapped,
                0,
            ),
        )

    def constants(self, setup: Setup, seed: Any) -> SmallRandomConstants:
        return setup._remembered("small random modes", seed, lambda seed: _constants(setup, seed))

    def start(self, constants):
        return constants.effective

    def field(self, constants, state):
        modes = constants.modes
        return _chain.field(state, modes.singular_values, modes.variances, 2)

    def states(self, constants, times):
        modes = constants.modes
        numbers = jnp.broadcast_arrays(times[:, None], modes.singular_values, modes.variances, constants.effective)
        return _chain.strength(numbers[0], numbers[1], numbers[2], numbers[3], 2)

    def path(self, constants, states):
        return _layers(constants, states)

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        modes, hidden = setup.modes(seed), setup.net.hidden[0]
        carries = modes.singular_values > NOTHING * modes.singular_values[0]
        wanted = carries & (self.constants(setup, seed).effective == 0)
        fits = np.arange(len(wanted)) < hidden
        lacking = "the start has no part in it that modes of larger s do not use"
        return (
            *unlearnable(wanted & fits, modes.singular_values, lacking),
            *unlearnable(
                wanted & ~fits, modes.singular_values, f"only {hidden} modes fit through {hidden} hidden units"
            ),
            *cut_off(modes.singular_values),
        )


def _constants(setup: Setup, seed: Any) -> SmallRandomConstants:
    task, weights, fitted = setup.task, setup.weights(seed), setup.modes(seed)
    found = effective_starts(fitted, weights)
    return SmallRandomConstants(*found, fitted, weights, task.floor(), task.cov_x, task.x)


def _swapped(modes: Modes, live: Any, hidden: int) -> int:
    """Modes are learned in order of s and kept in order of s²/λ: how many are learned first and given up later."""
    gain = np.where(live, modes.singular_values * modes.targets(), 0.0)
    learned, left = np.sort(gain[:hidden]), gain[hidden:]
    return int(np.sum(learned < np.max(left, initial=0.0) * (1 - 1e-9)))
