"""From small random weights, a two-layer linear network learns mode by mode, each from a start that can be computed.

While everything is small, W₁ and W₂ᵀ grow only along x_k + y_k, with x_k = W₁(0) v_k and y_k = W₂(0)ᵀ u_k, at
the rate s_k. The mode of largest s is learned first; it then fills its hidden direction, and the next ones grow
in the directions that are left. So mode k follows the sigmoid of [jarvis2025, eq. 7], an aligned start of
[saxe2014, eq. 12], from

    a_k = ¼ | P⊥ (x_k + y_k) |²,

P⊥ projecting out the directions of the modes with larger s. Its mean over Gaussian weights of standard
deviation σ is N_h σ²/2 for the first mode. Modes of equal s share a level: there a is the matrix
¼ P⊥(x + y)(x + y)ᵀP⊥, and its eigenvectors are the modes.

The error of the map vanishes as σ^(1 − s_k/s_j), for the pair of modes j, k whose s_k/s_j < 1 is largest: until mode j
has been learned, mode k also grows in the hidden direction of mode j, and adds an off-diagonal element to the map. With
s_k = 0, inputs or outputs without a target, the error vanishes as σ. The error of the loss vanishes as the square.
Modes of similar s would need smaller initial weights than are ever used; the error of a particular initialisation is
therefore followed along its path, as for every theory.

Symbols: u, v, s, singular vectors and values of Σʸˣ; a, effective start of a mode; N_h, hidden units.

Convention: τ = 1. The projection u_kᵀ W₂W₁ v_k and the top singular value of W₂W₁(0) are also in use as effective
starts, but differ from a_k by more than small corrections: the former may even be negative. Without P⊥ the error does
not vanish. For three layers or more no such formula is known.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from .._formulas import mode_at_depth
from .._formulas.modes import NOTHING, Modes, eigenvectors_within, mode_levels
from .._formulas.staircase import staircase
from .._foundation.arrays import AnyArray, Layers, Number
from .._foundation.checks import instance, listed, real_array
from .._foundation.errors import BadInput
from .._foundation.nouns import noun
from .._foundation.precision import in_double
from .._setup.setup import Setup
from ._linear import MAP_READOUTS, LayersInTime, weight_readouts
from ._linear_assumptions import linear_assumptions, range_assumption, two_layer_assumptions
from ._remarks import cut_off, unlearnable
from .base import Approach, Assumption, Limit, Readout, Seed, Times

__all__ = ["SmallRandomModes"]


@noun
class SmallRandomConstants:
    """Modes that fit the start within each level, their effective starts, and the hidden directions they grow in."""

    modes: Modes
    effective: Float[AnyArray, " mode"]
    hidden: Float[AnyArray, "hidden mode"]
    fitted_modes: Modes  # those that training reports
    weights: Layers
    floor: Number
    cov_x: Float[AnyArray, "in in"]
    x: Float[AnyArray, "sample in"] | None


def effective_starts(
    modes: object, weights: object
) -> tuple[Modes, Float[AnyArray, " mode"], Float[AnyArray, "hidden mode"]]:
    """The modes, rotated within levels of equal s; the strength from which each seems to start; its hidden direction.

    `modes` are those of a task, `weights` two layers.
    """
    modes = instance(modes, "modes", Modes, "use task.modes(), or setup.modes(seed)")
    return _effective_starts(modes, _two_layers(modes, weights))


@in_double
def _effective_starts(
    modes: Modes, weights: Layers
) -> tuple[Modes, Float[AnyArray, " mode"], Float[AnyArray, "hidden mode"]]:
    first, last = map(jnp.asarray, weights)
    stairs, pivots, basis = staircase((first @ modes.right + last.T @ modes.left).T)
    level = mode_levels(modes)
    # What a level adds to the levels before it.
    added = jnp.where((pivots >= 0) & (level[:, None] == level[jnp.maximum(pivots, 0)]), stairs, 0.0)
    start = 0.25 * added @ added.T
    rotation = eigenvectors_within(level, start)
    rotated = Modes(modes.left @ rotation, modes.right @ rotation, modes.singular_values, modes.variances)
    effective = jnp.einsum("km,kl,lm->m", rotation, start, rotation)
    live = effective > 0
    length = jnp.where(live, 2 * jnp.sqrt(jnp.where(live, effective, 1.0)), 1.0)
    return rotated, effective, jnp.where(live, (basis.T @ added.T @ rotation) / length, 0.0)


def _two_layers(modes: Modes, weights: object) -> tuple[Float[AnyArray, "hidden in"], Float[AnyArray, "out hidden"]]:
    """Two layers between the inputs and outputs of these modes."""
    needed, do = "two layers, (hidden, in) and (out, hidden)", "use setup.weights(seed)"
    given = listed(weights, "weights", needed, do)
    layers = [real_array(w, f"weights[{k}]") for k, w in enumerate(given)]
    d_in, d_out = modes.right.shape[0], modes.left.shape[0]
    shapes = [w.shape for w in layers]
    hidden = shapes[0][0] if shapes[0] else 0
    if shapes != [(hidden, d_in), (d_out, hidden)]:
        raise BadInput(f"weights of shapes {shapes} for {d_in} inputs, {d_out} outputs", needed, do)
    return layers[0], layers[1]


def _layers(constants: SmallRandomConstants, strengths: Float[AnyArray, "time mode"]) -> LayersInTime:
    """The start, with each mode grown along its hidden direction."""

    def root(a: Float[AnyArray, "*time mode"]) -> Float[AnyArray, "*time mode"]:
        return jnp.where(a > 0, jnp.sqrt(jnp.where(a > 0, a, 1.0)), 0.0)

    growth = root(strengths) - root(constants.effective)
    modes, hidden = constants.modes, constants.hidden
    first, last = constants.weights
    return (
        first + jnp.einsum("hm,tm,im->thi", hidden, growth, modes.right),
        last + jnp.einsum("om,tm,hm->toh", modes.left, growth, hidden),
    )


@noun
class SmallRandomModes(Limit[SmallRandomConstants, Float[AnyArray, " mode"]]):
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
        return cls().example_at(1e-3)

    def example_at(self, value: float) -> Setup:
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

        def fastest_rate() -> float:
            return float(np.max(2 * modes.singular_values))

        smallest = np.min(targets[live], initial=np.inf)
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
                "no mode is learned and then given up: how many one outside the hidden width outranks by s²/λ",
                _count_unlearned(modes, live, setup.net.hidden[0]),
                0,
            ),
        )

    def constants(self, setup: Setup, seed: Seed) -> SmallRandomConstants:
        return setup._remembered("small random modes", seed, lambda seed: _constants(setup, seed))

    def start(self, constants: SmallRandomConstants) -> Float[AnyArray, " mode"]:
        return constants.effective

    def field(self, constants: SmallRandomConstants, state: Float[AnyArray, " mode"]) -> Float[AnyArray, " mode"]:
        modes = constants.modes
        return mode_at_depth.field(state, modes.singular_values, modes.variances, 2)

    def states(self, constants: SmallRandomConstants, times: Times) -> Float[AnyArray, "time mode"]:
        modes = constants.modes
        numbers = jnp.broadcast_arrays(times[:, None], modes.singular_values, modes.variances, constants.effective)
        return mode_at_depth.strength(numbers[0], numbers[1], numbers[2], numbers[3], 2)

    def followed_weights(self, constants: SmallRandomConstants, states: Float[AnyArray, "time mode"]) -> LayersInTime:
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


def _constants(setup: Setup, seed: Seed) -> SmallRandomConstants:
    task, weights, fitted = setup.single_task, setup.weights(seed), setup.modes(seed)
    return SmallRandomConstants(*effective_starts(fitted, weights), fitted, weights, task.floor(), task.cov_x, task.x)


def _count_unlearned(modes: Modes, live: Bool[AnyArray, " mode"], hidden: int) -> int:
    """How many modes are learned first and given up later: they are learned by rank in s, and kept by rank in s²/λ."""
    gain = np.where(live, modes.singular_values * modes.targets(), 0.0)
    learned, left = np.sort(gain[:hidden]), gain[hidden:]
    return int(np.sum(learned < np.max(left, initial=0.0) * (1 - 1e-9)))
