"""A gated network's learning depends on the data only through second moments of its paths, for any graph and gates.

With the product W_p of the layers of path p, its gated moments Σʸˣ(p) and Σˣ(j, p), and the products W_before and
W_after of the layers of p on the two sides of edge e,

    dW_e/dt = Σ_{p through e} W_afterᵀ [ Σʸˣ(p) − Σ_j W_j Σˣ(j, p) ] W_beforeᵀ          [jarvis2025, eqs. 3 and 8]

where j runs over the paths that write where p writes. The state is all weights, and the law is integrated: exact for
every gated network, at a cost that does not grow with the number of samples, nor with that of paths (see
`festina.nets.gated.lifted`).

Corrected: with the loss averaged over samples, as [jarvis2025, eq. 2] has it, the clock is τ = 1/rate; τ = 1/(N·rate)
of eq. 3 belongs to the loss summed over samples.

Symbols: W_e, weights of an edge; Σʸˣ(p) = ⟨g_p y xᵀ⟩, Σˣ(j, p) = ⟨g_j x xᵀ g_p⟩ over samples, g_p the product of all
gates on p.

Convention: τ = 1 and the loss is ½·mean ‖y − f(x)‖².
"""

from __future__ import annotations

from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Layers
from .._foundation.nouns import noun
from .._setup import loss
from .._setup.setup import Setup
from ..nets.base import Net
from ._gated import gated_assumption, gated_integration
from ._linear import LayersInTime
from ._rates import fastest_gated_rate
from .base import Approach, Assumption, Readout, Reduction, Seed, smooth_training

__all__ = ["PathDynamics"]

State: TypeAlias = tuple[Float[AnyArray, "_ _"], ...]  # the weights of every edge


@noun
class PathConstants:
    """The network as a map of gated inputs, what its loss is computed from, and the start."""

    net: Net
    evidence: loss.Moments | loss.Samples
    weights: Layers
    x: Float[AnyArray, "sample columns"] | None  # inputs of the samples, and their gates


def _maps(constants: PathConstants, states: LayersInTime) -> Float[AnyArray, "time out in"]:
    return jax.vmap(constants.net.map)(states)


def _losses(constants: PathConstants, states: LayersInTime) -> Float[AnyArray, " time"]:
    return jax.vmap(lambda weights: loss.loss(constants.net, constants.evidence, weights))(states)


def _outputs(constants: PathConstants, states: LayersInTime) -> Float[AnyArray, "time sample out"]:
    x = constants.x
    assert x is not None  # a task without samples has no readout of outputs
    return jax.vmap(lambda weights: constants.net.apply(weights, x))(states)


@noun
class PathDynamics(Reduction[PathConstants, State]):
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

    def constants(self, setup: Setup, seed: Seed) -> PathConstants:
        lifted = setup.lifted()
        return PathConstants(
            lifted.net,
            loss.evidence_of(lifted.net, lifted.single_task),
            tuple(setup.weights(seed)),
            lifted.single_task.x,
        )

    def start(self, constants: PathConstants) -> State:
        return jax.tree.map(jnp.asarray, tuple(constants.weights))

    def field(self, constants: PathConstants, state: State) -> State:
        slope = loss.gradient(constants.net, constants.evidence)(state, None)[1]
        return jax.tree.map(jnp.negative, slope)

    def weights(self, constants: PathConstants, states: LayersInTime) -> LayersInTime:
        return states

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        # There is no remark on a stage of a longer run, since another stage may open the edge.
        closed = () if setup.is_stage else setup.net.closed_edges([setup.single_task])
        return (f"never learned: edge {', '.join(closed)}; no sample opens a path through it",) if closed else ()
