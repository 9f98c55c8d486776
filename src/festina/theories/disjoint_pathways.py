"""Paths that are never open together, and share no edge, are deep linear networks of their own.

If no two paths that write the same outputs are ever open for the same sample, Σˣ(j, p) = 0 between them, and path p
learns from its own moments alone. Where it starts balanced and along its modes, each of these obeys
[jarvis2025, eqs. 7 and 18] [saxe2014, eq. 12]

    da/dt = D |a|^(2 − 2/D) (s − d a),      D the number of layers of the path,

whose integral is that of `AlignedModes`. One path with one mode, two layers and target a* = s/d has a loss that falls
as L/L₀ = (1 − a/a*)², and from a₀ it reaches a given loss at

    t = ln[ r (1 − a₀/a*) / ((a₀/a*)(1 − r)) ] / (2s),      r = 1 − √(L/L₀).

In steps as long as lr the small map grows by (1 + lr s)² per step: 2s becomes 2 ln(1 + lr s)/lr. With N hidden units
and layers drawn from N(0, σ²), a₀ = Nσ²/2.

Exclusive or with a margin Δ (`tasks.xor`): two paths, one per answer ("linear": items 1, 2 and items 0, 3), have
s = Δ/2, d = Δ²/2; four paths, one per item ("XoR"), s = √(2 + Δ²)/4, d = (2 + Δ²)/4, so that L = ½(1 − a/a*)².

Errata of [jarvis2025, appendix C]. It prints d = 1/8 + Δ²/16 for a path of one item; it is 1/2 + Δ²/4, and with the
printed one the loss tends to −3/2. That s and d go into eq. 18, not "eq. 19". The crossover Δ = √(2/3) is where s is
equal; by the time to a given loss, with equal starts per path, it is √(2/3) only as a₀ → 0, logarithmically slowly
(0.850 at a₀ = 1e-10, 1.005 at 1e-2); with equal numbers of hidden units in all, it is √(2/3) at every a₀.

Symbols: a, strength of a mode of a path; s, singular value of Σʸˣ(p); d, variance of the mode in Σˣ(p, p); a₀, start;
L₀, loss without any learning.

Convention: τ = 1 and the loss is ½·mean ‖y − f(x)‖².
"""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import _chain
from .._checks import matching
from .._errors import BadInput
from .._linalg import Modes, alignment_defect, balance_defect, chain_bases, input_defect, modes_at
from .._noun import noun, positive, static, whole
from .._paths import product
from .._precision import in_double
from .._race import race
from .._race_start import drawn
from .._setup import Setup
from ._gated import fastest_gated_rate, learned_rate, listed_paths_assumptions
from ._linear import aligned_assumption, growth_along_modes, horizon_assumption, range_assumption
from ._race_maps import PathModes, path_modes, path_readouts
from .base import Approach, Assumption, Theory, smooth_training

__all__ = ["DisjointPathways"]


def time_to_loss(singular_value: Any, *, target: Any, start: Any, fraction: Any, lr: float | None = None) -> Any:
    """Time at which a two-layer path with one mode has brought its loss to `fraction` of what it was with nothing.

    `target` is s/d, `start` the strength a₀ at time 0 (see `effective_start`). With `lr`, the time that steps of this
    length take, to first order in the start; without, that of gradient flow. All numbers broadcast.

    >>> round(float(time_to_loss(2**0.5 / 4, target=2**-0.5, start=2e-8, fraction=0.4)), 2)
    23.81
    """
    numbers = {"singular_value": singular_value, "target": target, "start": start, "fraction": fraction}
    s, target, start, fraction = matching(numbers, above=dict.fromkeys(numbers, 0)).values()
    if np.max(fraction) >= 1:
        raise BadInput(
            f"fraction = {np.max(fraction):g}", "a fraction below 1 of the loss without learning", "lower fraction"
        )
    lr = None if lr is None else positive(lr, "lr")
    rate = 2 * s if lr is None else 2 * np.log1p(lr * s) / lr
    # 1 − √fraction, which would lose its digits next to 1; what is left is √fraction itself.
    left, begun = np.broadcast_arrays(np.sqrt(fraction), start / target)
    learned = (1 - fraction) / (1 + left)
    if np.any(begun > learned):
        wanted, had = learned[begun > learned][0], begun[begun > learned][0]
        raise BadInput(
            f"a start at {had:g} of the target, where the loss is {(1 - had) ** 2:.3g} of what it was with nothing",
            f"a start of at most {wanted:g} of the target, from where the loss falls to the fraction "
            f"{(1 - wanted) ** 2:.3g}",
            "lower start or fraction, or check that target is s/d",
        )
    # ln[learned (1 − begun)/(begun (1 − learned))] as two logarithms of which none is negative.
    tiny = begun < np.finfo(float).tiny  # or 0: a ratio that float64 does not hold
    beyond = np.where(tiny, 1.0, (learned - begun) / np.where(tiny, 1.0, begun))
    far = np.log(learned) + np.log(target) - np.log(start)
    return (np.where(tiny, far, np.log1p(beyond)) + np.log1p((learned - begun) / left)) / rate


def effective_start(width: int, scale: float) -> float:
    """The strength Nσ²/2 from which a mode of two random layers seems to start, on average.

    >>> round(effective_start(128, 0.5), 6)
    16.0
    """
    return whole(width, "width") * positive(scale, "scale") ** 2 / 2


@noun
class PathwayConstants:
    """The modes of every path, its start, its depth, and how a map is read off."""

    own: tuple[Modes, ...]  # per path
    weights: Any
    modes: PathModes
    paths: tuple[tuple[int, ...], ...] = static()  # edges of each
    width: int = static()  # the largest number of modes


def _layers_of(constants: PathwayConstants, path: int) -> tuple[Any, ...]:
    return tuple(constants.weights[k] for k in constants.paths[path])


def _stacked(constants: PathwayConstants, strengths: Any) -> Any:
    """(time, path, mode), padded with zeros."""
    return jnp.stack([jnp.pad(a, ((0, 0), (0, constants.width - a.shape[1]))) for a in strengths], axis=1)


@noun
class DisjointPathways(Theory):
    """Gated paths that never meet, each a balanced deep linear chain along its modes; exact."""

    reference = {"jarvis2025": "eqs. 7, 17 to 23, appendix C", "saxe2014": "eq. 12"}
    approach = Approach("lr", (0.08, 0.04, 0.02), order=1)
    readouts = path_readouts(_stacked)

    @classmethod
    def example(cls) -> Setup:
        from .. import inits, nets, tasks

        net = nets.Gated.pathways([
            {"on": {"item": [0]}, "width": 3},
            {"on": {"item": [1, 2]}, "width": 4},
            {"on": {"item": [3]}, "width": (3, 3)},
        ])  # fmt: skip
        return Setup(tasks.xor(1.0), net, inits.Decoupled(0.2), until=24.0, points=31)

    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        listed = listed_paths_assumptions(setup)
        if not listed[-1].holds:
            return listed
        found = race(setup.net, setup.task)
        paths = found.moments.paths
        used = [k for p in found.open for k in paths[p].edges]
        shared = len(used) - len(set(used))
        own_edges = Assumption.at_most("own edges", "no edge is shared by two open paths", shared, 0)
        together = Assumption.at_most(
            "never together",
            "no two paths that write the same outputs are open together",
            _together(setup),
            1e-6,
            defect=True,
        )
        if shared or not together.holds:
            return *listed, own_edges, together
        constants = in_double(lambda: self.constants(setup, seed))()
        own = [constants.own[p] for p in found.open]
        layers = [_layers_of(constants, p) for p in found.open]

        return (
            *listed,
            own_edges,
            together,
            *smooth_training(setup, lambda: fastest_gated_rate(setup, seed)),
            Assumption.at_most(
                "shared modes",
                "Σˣ of every path is diagonal in the right singular vectors of its Σʸˣ",
                max(input_defect(modes, found.moments.cov_x[p, p]) for p, modes in zip(found.open, own, strict=True)),
                1e-6,
                defect=True,
            ),
            aligned_assumption(max(map(alignment_defect, own, layers))),
            Assumption.at_most(
                "balanced",
                "all layers of a mode have one strength",
                max(map(balance_defect, own, layers)),
                1e-6,
                defect=True,
            ),
            range_assumption(*(chain_bases(modes, path)[0] for modes, path in zip(own, layers, strict=True))),
            horizon_assumption(setup, learned_rate(setup)),
        )

    def constants(self, setup: Setup, seed: Any) -> PathwayConstants:
        moments = race(setup.net, setup.task).moments
        weights = tuple(drawn(setup, seed))
        edges = tuple(path.edges for path in moments.paths)
        own = tuple(
            modes_at(moments.cov_yx[p], moments.cov_x[p, p], product(weights, listed)) for p, listed in enumerate(edges)
        )
        width = race(setup.net, setup.task).left[0].shape[1]  # as many as NeuralRace and the observable have
        left, right = (
            [basis @ np.eye(basis.shape[1], width) for basis in bases]
            for bases in ([m.left for m in own], [m.right for m in own])
        )
        return PathwayConstants(own, weights, path_modes(setup, moments, left, right), edges, width)

    def start(self, constants):
        # From the layers: products of weights would hide a mode that starts at zero behind rounding.
        return tuple(
            jnp.prod(chain_bases(own, _layers_of(constants, p))[0], axis=0) for p, own in enumerate(constants.own)
        )

    def field(self, constants, state):
        return tuple(
            _chain.field(a, own.singular_values, own.variances, len(edges))
            for a, own, edges in zip(state, constants.own, constants.paths, strict=True)
        )

    def states(self, constants, times):
        def each(own, begun, edges):
            numbers = jnp.broadcast_arrays(times[:, None], own.singular_values, own.variances, begun)
            return _chain.strength(numbers[0], numbers[1], numbers[2], numbers[3], len(edges))

        return tuple(map(each, constants.own, self.start(constants), constants.paths))

    def fastest_growth(self, constants, states):
        layers = (_layers_of(constants, p) for p in range(len(constants.paths)))
        return functools.reduce(jnp.maximum, map(growth_along_modes, constants.own, states, layers))

    def weights(self, constants, states):
        found = [jnp.asarray(w) for w in constants.weights]
        for p, (own, edges) in enumerate(zip(constants.own, constants.paths, strict=True)):
            begun, _, bases = chain_bases(own, _layers_of(constants, p))
            for place, k in enumerate(edges):
                change = _layer_strengths(states[p], begun[place], len(edges)) - begun[place]
                found[k] = found[k] + jnp.einsum("om,tm,im->toi", bases[place + 1], change, bases[place])
        return tuple(jnp.broadcast_to(w, (states[0].shape[0], *w.shape[-2:])) for w in found)


def _layer_strengths(strengths: Any, begun: Any, depth: int) -> Any:
    """|a|^(1/D) in every layer, with the sign that it began with; one layer is the strength itself."""
    if depth == 1:
        return strengths
    # |0|^(1/D) has an infinite slope; hold zeros out of the power.
    live = strengths != 0
    return jnp.sign(begun) * jnp.where(live, jnp.abs(jnp.where(live, strengths, 1.0)) ** (1 / depth), 0.0)


def _together(setup: Setup) -> float:
    """Largest |Σˣ(j, p)| of two paths that write the same outputs, relative to what each has alone."""
    found = race(setup.net, setup.task)
    paths, cov_x = found.moments.paths, found.moments.cov_x
    writes = setup.net.columns(setup.task.d_in, setup.task.d_out)[1]
    worst = 0.0
    for p in found.open:
        for j in found.open:
            if j < p and set(writes[paths[j].target]) & set(writes[paths[p].target]):
                alone = np.sqrt(np.linalg.norm(cov_x[j, j]) * np.linalg.norm(cov_x[p, p]))
                worst = max(worst, float(np.linalg.norm(cov_x[j, p]) / alone) if alone > 0 else 0.0)
    return worst
