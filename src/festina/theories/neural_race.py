"""Paths of a gated network that start along its modes race: one number per edge and mode, coupled by what paths share.

If the moments of all paths are diagonal in one basis per node, and all layers start along these bases, then with S(p)
the diagonal of Σʸˣ(p) and B the product of the edges of a path [jarvis2025, eqs. 5, 6, 9 and 10] [saxe2022, race]

    db_e/dt = Σ_{p through e} B_{p\\e} [ S(p) − Σ_j B_j D(j, p) ],      B_{p\\e}: all edges of p but e,

j over the paths that write where p writes. Paths that share no edge may have bases of their own [jarvis2025, appendix
F]; then (U_pᵀ U_j)_ab (V_jᵀ Σˣ(j, p) V_p)_ba takes the place of D(j, p), a full matrix over modes, computed and never
typed in. It is the flow itself as long as the brackets stay U_p diag(…) V_pᵀ, which is measured along the solution.
A symmetric initialisation can ensure this. One example is a path for every subset of m contexts, with equal hierarchies
and equal initial strengths; these paths learn the residual that a linear map leaves of the target. It fails if another
path learns that linear map at the same time, because this rotates the left vectors u of the residual.

A path learns faster with larger S(p), fewer layers, a larger or less balanced start, and more paths through its edges.

Small random layers are not along the modes. For a path of two layers that shares no edge, mode a then has the effective
start ½|W₁v + W₂ᵀu| in either layer, without the hidden directions that modes of larger S use: on average B = Nσ²/2 with
N hidden units of standard deviation σ. The theory uses this start if it is requested by name.

Corrected: it is not enough that "each moment can be diagonalised"; all moments at a node need the same basis. Variances
are paired with singular values by vᵀ Σˣ v; pairing sorted lists is wrong where their orders differ.
[jarvis2025, appendix G] prints U_pᵀU_j = −1/2, −1/6, −1/12 for leave-one-out paths in 3, 4, 5 contexts: it is
−1/(C − 1). [saxe_slides, reduction] omits τ and the bracket and puts a derivative on S; taken literally, nothing leaves
the origin.

Symbols: b, strength of an edge in a mode; B, of a path; S(p), D(j, p), diagonals of Σʸˣ(p) and Σˣ(j, p); U, V, bases
of output and input nodes; C, number of contexts.

Convention: τ = 1 and the loss is ½·mean ‖y − f(x)‖². In sequential training j runs over paths of no higher rank.
"""

from __future__ import annotations

from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._formulas.modes import NOTHING
from .._foundation.arrays import AnyArray, Layers
from .._foundation.nouns import noun
from .._setup.setup import Setup
from ..nets.gated import path_bases, race, race_layers
from ..nets.gated.graph import graph_of
from ._gated import gated_integration, listed_paths_assumptions, start_weights
from ._linear import LayersInTime
from ._linear_assumptions import range_assumption
from ._race_maps import PathModes, path_modes, path_readouts
from ._rates import fastest_gated_rate
from ._remarks import cut_off
from .base import Approach, Assumption, Readout, Reduction, Seed, smooth_training

__all__ = ["NeuralRace"]

CHECKED_TIMES = 60  # times at which the brackets are measured

State: TypeAlias = Float[AnyArray, "edge mode"]


@noun
class RaceConstants:
    """The law of the strengths, where they start, the layers around them, and how a map is read off."""

    law: race.RaceLaw
    layers: race_layers.StartInBases
    weights: Layers
    modes: PathModes


@noun
class NeuralRace(Reduction[RaceConstants, State]):
    """Strengths of the modes of paths that may share edges, from a decoupled start; integrated."""

    reference = {"jarvis2025": "eq. 5, eq. 6, eq. 9 and eq. 10, appendix F", "saxe2022": "race reduction"}
    approach = Approach("lr", (0.02, 0.01, 0.005), order=1)
    readouts = {
        **path_readouts(lambda c, b: race.path_strengths(c.law.edges, b)),
        "edge_strengths": Readout(("edge", "mode"), lambda constants, states: states),
    }

    @classmethod
    def example(cls) -> Setup:
        from .. import inits, nets, tasks

        task = tasks.routing(domains=3, trained=2, levels=(3.0, 2.0))
        net = nets.Gated.routing(3, 3, 2, items=2, features=3, hidden=4)
        return Setup(task, net, inits.Decoupled(0.5), until=24.0, points=31)

    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        net = listed_paths_assumptions(setup)
        if not net[-1].holds:
            return net
        bases = path_bases.bases_of_paths(setup.net, setup.single_task)
        constants = self.constants(setup, seed)
        defects, layers = bases.defects(), constants.layers
        off, derived = layers.defect > race_layers.DECOUPLED, layers.derived
        measured = [
            *net,
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
                race_layers.DECOUPLED,
                advisory=bool(np.all(derived[off])),
            ),
        ]
        strengths, paths = np.asarray(layers.strengths), bases.moments.paths
        measured.append(range_assumption(*(strengths[list(paths[p].edges)] for p in bases.open)))
        if derived.any():
            measured.append(_small_start(bases, constants))
        if all(assumption.holds or assumption.advisory for assumption in measured):
            measured.append(self._diagonal_couplings(setup, bases, constants, advisory=bool(derived.any())))
        return tuple(measured)

    def _diagonal_couplings(
        self, setup: Setup, bases: path_bases.PathBases, constants: RaceConstants, *, advisory: bool
    ) -> Assumption:
        times = np.asarray(setup.times)
        some = times[np.unique(np.linspace(0, len(times) - 1, CHECKED_TIMES).astype(int))]
        strengths = race.integrated(constants.law, np.asarray(constants.layers.strengths), some)
        return Assumption.at_most(
            "diagonal couplings",
            "the error of every path stays diagonal in its modes, along the solution",
            race.coupling_defect(bases, strengths),
            1e-6,
            advisory=advisory,
        )

    def constants(self, setup: Setup, seed: Seed) -> RaceConstants:
        return setup._remembered("race constants", seed, lambda seed: _constants(setup, seed))

    def start(self, constants: RaceConstants) -> State:
        return jnp.asarray(constants.layers.strengths)

    def field(self, constants: RaceConstants, state: State) -> State:
        return race.slope(constants.law, state)

    def weights(self, constants: RaceConstants, states: Float[AnyArray, "time edge mode"]) -> LayersInTime:
        layers = constants.layers
        return tuple(
            w + jnp.einsum("om,tm,im->toi", layers.out[k], states[:, k] - layers.strengths[k], layers.into[k])
            for k, w in enumerate(constants.weights)
        )

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        bases = path_bases.bases_of_paths(setup.net, setup.single_task)
        defects = {name: np.max(values) for name, values in bases.defects().items()}
        remarks = [
            (
                f"bases: {len(bases.components)} components of paths; largest off-diagonal share of VᵀΣˣV "
                f"{defects['defect']:.2g}, commutator {defects['commutator']:.2g}, mismatch inside components "
                f"{defects['mismatch']:.2g}"
            )
        ]
        layers = self.constants(setup, seed).layers
        if np.any(layers.derived):
            remarks.append(
                f"{int(np.sum(layers.derived))} of {len(layers.derived)} components do not start along the modes: "
                "they start from ½|W₁v + W₂ᵀu| in either layer, right as the layers become small"
            )
            first = [members[0] for members in bases.components.values()]
            for p in np.asarray(first)[np.asarray(layers.derived, bool)]:
                remarks += cut_off(np.asarray(bases.strengths[p]))
        return tuple(remarks)


def _constants(setup: Setup, seed: Seed) -> RaceConstants:
    bases = path_bases.bases_of_paths(setup.net, setup.single_task)
    weights = tuple(start_weights(setup, seed))
    return RaceConstants(
        race.RaceLaw.of(bases, len(weights)),
        race_layers.layers_in_bases(bases, graph_of(setup.net), weights),
        weights,
        path_modes(setup, bases.moments, bases.left, bases.right),
    )


def _small_start(bases: path_bases.PathBases, constants: RaceConstants) -> Assumption:
    """The assumption that random layers are small: their squared norms over the smallest target of their path."""
    worst = 0.0
    for members, derived in zip(bases.components.values(), constants.layers.derived, strict=True):
        if derived:
            p = members[0]
            values, variances = bases.strengths[p], np.diag(bases.variances[p, p])
            live = values > NOTHING * np.max(values)
            smallest = np.min(values[live] / variances[live], initial=np.inf)
            size = max(np.linalg.norm(constants.weights[k], 2) for k in bases.moments.paths[p].edges)
            worst = max(worst, float(size**2 / smallest))
    statement = "layers that are not along the modes are small: |W|² relative to the smallest target"
    return Assumption.at_most("small start", statement, worst, 0.05)
