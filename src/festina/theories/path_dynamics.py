"""A gated network learns by the second moments of its paths alone, whatever its graph and gates.

With the product W_p of the layers of path p, Σʸˣ(p) and Σˣ(j, p) its gated moments, and before and after the parts of
p on the two sides of edge e,

    dW_e/dt = Σ_{p through e} W_afterᵀ [ Σʸˣ(p) − Σ_j W_j Σˣ(j, p) ] W_beforeᵀ          [jarvis2025, eqs. 3 and 8]

where j runs over the paths that write where p writes. The state is all weights, and the law is integrated: exact for
every gated network, at a cost that does not grow with the number of samples, nor with that of paths (see `_bound`).

Corrected: with the loss averaged over samples, as [jarvis2025, eq. 2] has it, the clock is τ = 1/rate; τ = 1/(N·rate)
of eq. 3 belongs to the loss summed over samples.

Symbols: W_e, weights of an edge; Σʸˣ(p) = ⟨g_p y xᵀ⟩, Σˣ(j, p) = ⟨g_j x xᵀ g_p⟩ over samples, g_p the product of all
gates on p.

Convention: τ = 1 and the loss is ½·mean ‖y − f(x)‖².
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .. import _objective
from .._noun import noun
from .._setup import Setup
from ._gated import fastest_gated_rate, gated_assumption, gated_integration
from .base import Approach, Assumption, Readout, Reduction, smooth_training

__all__ = ["PathDynamics"]


@noun
class PathConstants:
    """The network as a map of gated inputs, what its loss is computed from, and the start."""

    net: Any
    seen: Any
    weights: Any
    x: Any


def _maps(constants: PathConstants, states: Any) -> Any:
    return jax.vmap(constants.net.map)(states)


def _losses(constants: PathConstants, states: Any) -> Any:
    return jax.vmap(lambda weights: _objective.loss(constants.net, constants.seen, weights))(states)


def _outputs(constants: PathConstants, states: Any) -> Any:
    return jax.vmap(lambda weights: constants.net.apply(weights, constants.x))(states)


@noun
class PathDynamics(Reduction):
    """Gradient flow of a gated network on the moments of its paths; exact for every gated network."""

    reference = {"jarvis2025": "eq. 3, eq. 4 and eq. 8"}
    approach = Approach("lr", (0.02, 0.01, 0.005), order=1)
    readouts = {
        "loss": Readout((), _losses),
        "map": Readout(("feature", "input"), _maps),
        "outputs": Readout(("sample", "feature"), _outputs),
    }

    @classmethod
    def example(cls) -> Setup:
        from .. import inits, nets, tasks

        task = tasks.contextual(items=4, contexts=3, blocks="hierarchy")
        net = nets.Gated.contexts(subsets=2, items=4, width=6)
        return Setup(task, net, inits.SmallRandom(0.1), until=20.0, points=21)

    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        gated = gated_assumption(setup)
        if not gated.holds:
            return (gated,)
        smooth = smooth_training(setup, lambda: fastest_gated_rate(setup, seed))
        return (gated, *smooth, gated_integration(setup, seed))

    def constants(self, setup: Setup, seed: Any) -> PathConstants:
        bound = setup.bound()
        return PathConstants(
            bound.net, _objective.evidence(bound.net, bound.task), tuple(setup.weights(seed)), bound.task.x
        )

    def start(self, constants):
        return jax.tree.map(jnp.asarray, constants.weights)

    def field(self, constants, state):
        slope = _objective.gradient(constants.net, constants.seen)(state, None)[1]
        return jax.tree.map(jnp.negative, slope)

    def weights(self, constants, states):
        return states

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        closed = setup.net.closed_edges([setup.task])
        return (f"never learned: edge {', '.join(closed)}; no sample opens a path through it",) if closed else ()
