"""Paths of a gated network that start along its modes race: one number per edge and mode, coupled by what paths share.

If the moments of all paths are diagonal in one basis per node, and all layers start along these bases, then with S(p)
the diagonal of Σʸˣ(p) and B the product of the edges of a path [jarvis2025, eqs. 5, 6, 9 and 10] [saxe2022, race]

    db_e/dt = Σ_{p through e} B_{p\\e} [ S(p) − Σ_j B_j D(j, p) ],      B_{p\\e}: all edges of p but e,

j over the paths that write where p writes. Paths that share no edge may have bases of their own [jarvis2025, appendix
F]; then (U_pᵀ U_j)_ab (V_jᵀ Σˣ(j, p) V_p)_ba takes the place of D(j, p), a full matrix over modes, computed and never
typed. It is the flow itself as long as the brackets stay U_p diag(…) V_pᵀ, which is measured along the solution: they
may do so by a symmetry of the start, as for all subsets of m contexts of equal hierarchies on what a linear map leaves
of them, started alike. Beside a path that learns this map they do not, for it turns the vectors u that are left.

What makes a path fast: larger S(p), fewer layers, a larger or less balanced start, and more paths through its edges.

Small random layers are not along the modes. For a path of two layers that shares no edge, mode a then grows from
½|W₁v + W₂ᵀu| in either layer, in what modes of larger S leave of the hidden layer: on average from B = Nσ²/2 with N
hidden units of standard deviation σ. The race is run from there, where it is asked for by name.

Corrected: "each moment can be diagonalised" is not enough, the basis belongs to the node. Variances are paired with
singular values by vᵀ Σˣ v; pairing sorted lists is wrong wherever the orders differ. [jarvis2025, appendix G] prints
U_pᵀU_j = −1/2, −1/6, −1/12 for leave-one-out paths in 3, 4, 5 contexts: it is −1/(C − 1). [saxe_slides, reduction]
lost τ and the bracket and has a derivative on S; taken literally nothing leaves the origin.

Symbols: b, strength of an edge in a mode; B, of a path; S(p), D(j, p), diagonals of Σʸˣ(p) and Σˣ(j, p); U, V, bases
of output and input nodes; C, number of contexts.

Convention: τ = 1 and the loss is ½·mean ‖y − f(x)‖². In sequential training j runs over paths of no higher rank.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import _race, _race_start
from .._linalg import NOTHING
from .._noun import noun
from .._setup import Setup
from ._gated import fastest_gated_rate, gated_integration, listed_paths_assumptions
from ._linear import cut_off, range_assumption
from ._race_maps import PathModes, path_modes, path_readouts
from .base import Approach, Assumption, Readout, Reduction, smooth_training

__all__ = ["NeuralRace"]

WATCHED = 60  # times at which the brackets are looked at


@noun
class RaceConstants:
    """The law of the strengths, where they start, the layers around them, and how a map is read off."""

    law: _race.Law
    layers: _race_start.Layers
    weights: Any
    modes: PathModes


@noun
class NeuralRace(Reduction):
    """Strengths of the modes of paths that may share edges, from a decoupled start; integrated."""

    reference = {"jarvis2025": "eq. 5, eq. 6, eq. 9 and eq. 10, appendix F", "saxe2022": "race reduction"}
    approach = Approach("lr", (0.02, 0.01, 0.005), order=1)
    readouts = {
        **path_readouts(lambda c, b: _race.path_strengths(c.law.edges, b)),
        "edge_strengths": Readout(("edge", "mode"), lambda constants, states: states),
    }

    @classmethod
    def example(cls) -> Setup:
        from .. import inits, nets, tasks

        task = tasks.routing(domains=3, trained=2, levels=(3.0, 2.0))
        net = nets.Gated.routing(3, 3, 2, items=2, features=3, hidden=4)
        return Setup(task, net, inits.Decoupled(0.5), until=24.0, points=31)

    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        listed = listed_paths_assumptions(setup)
        if not listed[-1].holds:
            return listed
        found = _race.race(setup.net, setup.task)
        constants = self.constants(setup, seed)
        defects, layers = found.defects(), constants.layers
        off, derived = layers.defect > _race_start.DECOUPLED, layers.derived
        measured = [
            *listed,
            *smooth_training(setup, lambda: fastest_gated_rate(setup, seed)),
            gated_integration(setup, seed),
            Assumption.at_most(
                "diagonal moments",
                "Σʸˣ and Σˣ of every path are diagonal in one basis per node",
                max(np.max(defects["defect"]), np.max(defects["mismatch"])),
                1e-6,
            ),
            Assumption.at_most(
                "decoupled",
                "every edge starts diagonal between the bases of its nodes",
                float(np.max(layers.defect)),
                _race_start.DECOUPLED,
                advisory=bool(np.all(derived[off])),
            ),
        ]
        begun, paths = np.asarray(layers.begun), found.moments.paths
        measured.append(range_assumption(*(begun[list(paths[p].edges)] for p in found.open)))
        if derived.any():
            measured.append(_small_start(found, constants))
        if all(assumption.holds or assumption.advisory for assumption in measured):
            measured.append(self._diagonal_couplings(setup, found, constants, advisory=bool(derived.any())))
        return tuple(measured)

    def _diagonal_couplings(
        self, setup: Setup, found: _race.Race, constants: RaceConstants, *, advisory: bool
    ) -> Assumption:
        times = np.asarray(setup.times)
        some = times[np.unique(np.linspace(0, len(times) - 1, WATCHED).astype(int))]
        strengths = _race.followed(constants.law, np.asarray(constants.layers.begun), some)
        return Assumption.at_most(
            "diagonal couplings",
            "what paths take from each other keeps to each one's own modes, along the solution",
            _race.coupling_defect(found, strengths),
            1e-6,
            advisory=advisory,
        )

    def constants(self, setup: Setup, seed: Any) -> RaceConstants:
        return setup._remembered("race constants", seed, lambda seed: _constants(setup, seed))

    def start(self, constants):
        return jnp.asarray(constants.layers.begun)

    def field(self, constants, state):
        return _race.slope(constants.law, state)

    def weights(self, constants, states):
        layers = constants.layers
        return tuple(
            w + jnp.einsum("om,tm,im->toi", layers.out[k], states[:, k] - layers.begun[k], layers.into[k])
            for k, w in enumerate(constants.weights)
        )

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        found = _race.race(setup.net, setup.task)
        defects = {name: np.max(values) for name, values in found.defects().items()}
        said = [
            (
                f"bases: {len(found.components)} components of paths; largest off-diagonal share of VᵀΣˣV "
                f"{defects['defect']:.2g}, commutator {defects['commutator']:.2g}, mismatch inside components "
                f"{defects['mismatch']:.2g}"
            )
        ]
        layers = self.constants(setup, seed).layers
        if np.any(layers.derived):
            said.append(
                f"{int(np.sum(layers.derived))} of {len(layers.derived)} components do not start along the modes: "
                "they start from ½|W₁v + W₂ᵀu| in either layer, right as the layers become small"
            )
            first = [members[0] for members in found.components.values()]
            for p in np.asarray(first)[np.asarray(layers.derived, bool)]:
                said += cut_off(np.asarray(found.strengths[p]))
        return tuple(said)


def _constants(setup: Setup, seed: Any) -> RaceConstants:
    found = _race.race(setup.net, setup.task)
    weights = tuple(_race_start.drawn(setup, seed))
    return RaceConstants(
        _race.Law.of(found, len(weights)),
        _race_start.layers(found, setup.net.graph, weights),
        weights,
        path_modes(setup, found.moments, found.left, found.right),
    )


def _small_start(found: _race.Race, constants: RaceConstants) -> Assumption:
    """That random layers are small against what their paths learn alone: squares of layers over smallest targets."""
    worst = 0.0
    for members, derived in zip(found.components.values(), constants.layers.derived, strict=True):
        if derived:
            p = members[0]
            values, variances = found.strengths[p], np.diag(found.variances[p, p])
            live = values > NOTHING * np.max(values)
            smallest = np.min(values[live] / variances[live], initial=np.inf)
            size = max(np.linalg.norm(constants.weights[k], 2) for k in found.moments.paths[p].edges)
            worst = max(worst, float(size**2 / smallest))
    statement = "layers that are not along the modes are small: |W|² relative to the smallest target"
    return Assumption.at_most("small start", statement, worst, 0.05)
