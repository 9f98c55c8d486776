"""Paths that are never open together, and share no edge, are separate deep linear networks.

If no two paths that write the same outputs are ever open for the same sample, Σˣ(j, p) = 0 between them, and path p
learns from its moments alone. Where it starts balanced and along its modes, each of these obeys
[jarvis2025, eqs. 7 and 18] [saxe2014, eq. 12]

    da/dt = D |a|^(2 − 2/D) (s − d a),      D the number of layers of the path,

whose integral is that of `AlignedModes`. One path with one mode, two layers and target a* = s/d has a loss that falls
as L/L₀ = (1 − a/a*)², and from a₀ it reaches a given loss at

    t = ln[ r (1 − a₀/a*) / ((a₀/a*)(1 − r)) ] / (2s),      r = 1 − √(L/L₀).

In steps of length lr the map, while it is small, grows by the factor (1 + lr s)² per step, so that 2s is replaced by
2 ln(1 + lr s)/lr. With N hidden units and layers drawn from N(0, σ²), a₀ = Nσ²/2.

Exclusive or with a margin Δ (`tasks.xor`): two paths, one per answer ("linear": items 1, 2 and items 0, 3), have
s = Δ/2, d = Δ²/2; four paths, one per item ("XoR"), s = √(2 + Δ²)/4, d = (2 + Δ²)/4, so that L = ½(1 − a/a*)².

Errata of [jarvis2025, appendix C]. It prints d = 1/8 + Δ²/16 for a path of one item; it is 1/2 + Δ²/4, and with the
printed one the loss tends to −3/2. That s and d go into eq. 18, not "eq. 19". The crossover Δ = √(2/3) is where s is
equal; by the time to a given loss, with equal starts per path, it is √(2/3) only as a₀ → 0, logarithmically slowly
(0.850 at a₀ = 1e-10, 1.005 at 1e-2); with equal numbers of hidden units in all, it is √(2/3) at every a₀.

Symbols: a, strength of a mode of a path; s, singular value of Σʸˣ(p); d, variance of the mode in Σˣ(p, p); a₀, initial
strength; L₀, loss of the zero map.

Convention: τ = 1 and the loss is ½·mean ‖y − f(x)‖².
"""

from __future__ import annotations

import functools
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._formulas import mode_at_depth
from .._formulas.aligned_chain import alignment_defect, balance_defect, chain_bases
from .._formulas.modes import Modes, input_defect, modes_at
from .._foundation.arrays import AnyArray, Layers
from .._foundation.checks import matching, positive, whole
from .._foundation.errors import BadInput
from .._foundation.nouns import noun, static
from .._foundation.precision import in_double
from .._setup.setup import Setup
from ..nets.gated.path_bases import bases_of_paths
from ..nets.gated.paths import product
from ._gated import listed_paths_assumptions, start_weights
from ._linear import LayersInTime, growth_along_modes
from ._linear_assumptions import aligned_assumption, horizon_assumption, range_assumption
from ._race_maps import PathModes, path_modes, path_readouts
from ._rates import fastest_gated_rate, learned_rate
from .base import Approach, Assumption, Seed, Theory, Times, smooth_training

__all__ = ["DisjointPathways"]

State: TypeAlias = tuple[Float[AnyArray, " _"], ...]  # of every path, the strengths of its modes
States: TypeAlias = tuple[Float[AnyArray, "time _"], ...]


def time_to_loss(
    singular_value: object, *, target: object, start: object, fraction: object, lr: object = None
) -> Float[AnyArray, "*shape"] | np.floating:
    """Time at which the loss of a two-layer path with one mode has fallen to `fraction` of the loss with no learning.

    `target` is s/d, `start` the strength a₀ at time 0 (see `effective_start`). With a rate `lr`, the time that steps of
    this length take, to first order in the start; without, that of gradient flow. All numbers broadcast.

    >>> round(float(time_to_loss(2**0.5 / 4, target=2**-0.5, start=2e-8, fraction=0.4)), 2)
    23.81
    """
    numbers = {"singular_value": singular_value, "target": target, "start": start, "fraction": fraction}
    s, goal, a0, remaining = matching(numbers, above=dict.fromkeys(numbers, 0)).values()
    if np.max(remaining) >= 1:
        raise BadInput(
            f"fraction = {np.max(remaining):g}", "a fraction below 1 of the loss without learning", "lower fraction"
        )
    step = None if lr is None else positive(lr, "lr")
    rate = 2 * s if step is None else 2 * np.log1p(step * s) / step
    # Shares of the target: what is left at the end, √fraction; what the start has; and what is learned at the end,
    # 1 − √fraction in a form that keeps its digits next to 1.
    left, share = np.broadcast_arrays(np.sqrt(remaining), a0 / goal)
    learned = (1 - remaining) / (1 + left)
    if np.any(share > learned):
        wanted, had = learned[share > learned][0], share[share > learned][0]
        raise BadInput(
            f"a start at {had:g} of the target, where the loss is {(1 - had) ** 2:.3g} of what it was with nothing",
            f"a start of at most {wanted:g} of the target, from where the loss falls to the fraction "
            f"{(1 - wanted) ** 2:.3g}",
            "lower start or fraction, or check that target is s/d",
        )
    # ln[learned (1 − share)/(share (1 − learned))] as two logarithms of which none is negative.
    tiny = share < np.finfo(float).tiny  # or 0: a ratio that float64 does not hold
    beyond = np.where(tiny, 1.0, (learned - share) / np.where(tiny, 1.0, share))
    far = np.log(learned) + np.log(goal) - np.log(a0)
    return (np.where(tiny, far, np.log1p(beyond)) + np.log1p((learned - share) / left)) / rate


def effective_start(width: object, scale: object) -> float:
    """The mean effective start Nσ²/2 of a mode of two random layers with N = `width` hidden units and σ = `scale`.

    >>> round(effective_start(128, 0.5), 6)
    16.0
    """
    return whole(width, "width") * positive(scale, "scale") ** 2 / 2


@noun
class PathwayConstants:
    """The modes of every path, its start, its depth, and how a map is read off."""

    chains: tuple[Modes, ...]  # the modes of every path
    weights: Layers
    modes: PathModes
    paths: tuple[tuple[int, ...], ...] = static()  # the edges of each
    width: int = static()  # the largest number of modes


def _layers_of(constants: PathwayConstants, path: int) -> Layers:
    return tuple(constants.weights[k] for k in constants.paths[path])


def _stacked(constants: PathwayConstants, strengths: States) -> Float[AnyArray, "time path mode"]:
    """The strengths of all paths, padded with zeros to one number of modes."""
    return jnp.stack([jnp.pad(a, ((0, 0), (0, constants.width - a.shape[1]))) for a in strengths], axis=1)


@noun
class DisjointPathways(Theory[PathwayConstants, State]):
    """Gated paths that never meet, each a balanced deep linear chain along its modes; exact."""

    reference = {"jarvis2025": "eqs. 7, 17 to 23, appendix C", "saxe2014": "eq. 12"}
    approach = Approach("lr", (0.08, 0.04, 0.02), order=1)
    readouts = path_readouts(_stacked)

    @classmethod
    def example(cls) -> Setup:
        from .. import inits, nets, tasks

        pathways = [
            {"on": {"item": [0]}, "width": 3},
            {"on": {"item": [1, 2]}, "width": 4},
            {"on": {"item": [3]}, "width": (3, 3)},
        ]
        return Setup(tasks.xor(1.0), nets.Gated.pathways(pathways), inits.Decoupled(0.2), until=24.0, points=31)

    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        net = listed_paths_assumptions(setup)
        if not net[-1].holds:
            return net
        bases = bases_of_paths(setup.net, setup.single_task)
        paths = bases.moments.paths
        used = [k for p in bases.open for k in paths[p].edges]
        shared = len(used) - len(set(used))
        unshared = Assumption.at_most("own edges", "no edge is shared by two open paths", shared, 0)
        together = Assumption.at_most(
            "never together",
            "no two paths that write the same outputs are open together",
            _together(setup),
            1e-6,
            defect=True,
        )
        if shared or not together.holds:
            return *net, unshared, together
        constants = in_double(lambda: self.constants(setup, seed))()
        chains = [constants.chains[p] for p in bases.open]
        layers = [_layers_of(constants, p) for p in bases.open]

        return (
            *net,
            unshared,
            together,
            *smooth_training(setup, lambda: fastest_gated_rate(setup, seed)),
            Assumption.at_most(
                "shared modes",
                "Σˣ of every path is diagonal in the right singular vectors of its Σʸˣ",
                max(
                    input_defect(modes, bases.moments.cov_x[p, p]) for p, modes in zip(bases.open, chains, strict=True)
                ),
                1e-6,
                defect=True,
            ),
            aligned_assumption(max(map(alignment_defect, chains, layers))),
            Assumption.at_most(
                "balanced",
                "all layers of a mode have one strength",
                max(map(balance_defect, chains, layers)),
                1e-6,
                defect=True,
            ),
            range_assumption(*(chain_bases(modes, path).strengths for modes, path in zip(chains, layers, strict=True))),
            horizon_assumption(setup, learned_rate(setup)),
        )

    def constants(self, setup: Setup, seed: Seed) -> PathwayConstants:
        bases = bases_of_paths(setup.net, setup.single_task)
        moments, weights = bases.moments, tuple(start_weights(setup, seed))
        edges = tuple(path.edges for path in moments.paths)
        chains = tuple(
            modes_at(moments.cov_yx[p], moments.cov_x[p, p], product(weights, path)) for p, path in enumerate(edges)
        )
        width = bases.left[0].shape[1]  # as many as NeuralRace and the observable have
        left, right = (
            [basis @ np.eye(basis.shape[1], width) for basis in bases]
            for bases in ([modes.left for modes in chains], [modes.right for modes in chains])
        )
        return PathwayConstants(chains, weights, path_modes(setup, moments, left, right), edges, width)

    def start(self, constants: PathwayConstants) -> State:
        # From the layers: products of weights would hide a mode that starts at zero behind rounding.
        return tuple(
            jnp.prod(chain_bases(modes, _layers_of(constants, p)).strengths, axis=0)
            for p, modes in enumerate(constants.chains)
        )

    def field(self, constants: PathwayConstants, state: State) -> State:
        return tuple(
            mode_at_depth.field(a, modes.singular_values, modes.variances, len(edges))
            for a, modes, edges in zip(state, constants.chains, constants.paths, strict=True)
        )

    def states(self, constants: PathwayConstants, times: Times) -> States:
        def strengths(modes: Modes, start: Float[AnyArray, " _"], edges: tuple[int, ...]) -> Float[AnyArray, "time _"]:
            numbers = jnp.broadcast_arrays(times[:, None], modes.singular_values, modes.variances, start)
            return mode_at_depth.strength(numbers[0], numbers[1], numbers[2], numbers[3], len(edges))

        return tuple(map(strengths, constants.chains, self.start(constants), constants.paths))

    def fastest_growth(self, constants: PathwayConstants, states: States) -> Float[AnyArray, " time"]:
        layers = (_layers_of(constants, p) for p in range(len(constants.paths)))
        return functools.reduce(jnp.maximum, map(growth_along_modes, constants.chains, states, layers))

    def weights(self, constants: PathwayConstants, states: States) -> LayersInTime:
        weights = [jnp.asarray(w) for w in constants.weights]
        for p, (modes, edges) in enumerate(zip(constants.chains, constants.paths, strict=True)):
            start, _, bases = chain_bases(modes, _layers_of(constants, p))
            for place, k in enumerate(edges):
                change = _layer_strengths(states[p], start[place], len(edges)) - start[place]
                weights[k] = weights[k] + jnp.einsum("om,tm,im->toi", bases[place + 1], change, bases[place])
        return tuple(jnp.broadcast_to(w, (states[0].shape[0], *w.shape[-2:])) for w in weights)


def _layer_strengths(
    strengths: Float[AnyArray, "time mode"], start: Float[AnyArray, " mode"], depth: int
) -> Float[AnyArray, "time mode"]:
    """|a|^(1/D) in every layer, with the sign of the layer at the start; one layer is the strength itself."""
    if depth == 1:
        return strengths
    # |0|^(1/D) has an infinite slope; hold zeros out of the power.
    live = strengths != 0
    return jnp.sign(start) * jnp.where(live, jnp.abs(jnp.where(live, strengths, 1.0)) ** (1 / depth), 0.0)


def _together(setup: Setup) -> float:
    """Largest |Σˣ(j, p)| of two paths that write the same outputs, relative to what each has alone."""
    bases = bases_of_paths(setup.net, setup.single_task)
    paths, cov_x = bases.moments.paths, bases.moments.cov_x
    writes = setup.net.columns(setup.single_task.d_in, setup.single_task.d_out)[1]
    worst = 0.0
    for p in bases.open:
        for j in bases.open:
            if j < p and set(writes[paths[j].target]) & set(writes[paths[p].target]):
                alone = np.sqrt(np.linalg.norm(cov_x[j, j]) * np.linalg.norm(cov_x[p, p]))
                worst = max(worst, float(np.linalg.norm(cov_x[j, p]) / alone) if alone > 0 else 0.0)
    return worst
