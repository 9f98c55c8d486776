"""The fastest rates of gradient flow on a setup, which decide how small steps must be to follow it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Weights
from .._foundation.precision import in_double
from .._foundation.program_memory import compiled
from .._setup.setup import Setup
from ..nets.base import Net
from ..nets.gated.graph import graph_of

ITERATIONS = 50  # of the power method


def fastest_rate(setup: Setup, seed: int) -> float:
    """The largest eigenvalue of the tangent kernel at the start, by power iteration; the kernel is not formed."""
    lifted, weights = setup.lifted(), setup.weights(seed)
    net, task = lifted.net, lifted.single_task
    if net.linear:
        values, vectors = np.linalg.eigh(task.cov_x)
        root = (vectors * np.sqrt(np.maximum(values, 0))).T
        return float(_largest_eigenvalue(net, weights, root))
    return float(_largest_eigenvalue(net, weights, task.x)) / len(task.x)


@in_double
@compiled(effort="little")
def _largest_eigenvalue(net: Net, weights: Weights, x: Float[AnyArray, "sample in"]) -> Float[AnyArray, ""]:
    def apply(w):
        return x @ net.map(w).T if net.linear else net.apply(w, x)

    outputs, pull = jax.vjp(apply, weights)

    def improve(_, state):
        direction = state[0] / jnp.linalg.norm(state[0])
        moved = jax.jvp(apply, (weights,), pull(direction))[1]
        return moved, jnp.sum(direction * moved)

    first = jax.random.normal(jax.random.key(0), outputs.shape, outputs.dtype)
    return jax.lax.fori_loop(0, ITERATIONS, improve, (first, jnp.zeros((), outputs.dtype)))[1]


def learned_rate(setup: Setup) -> float:
    """The rate of a balanced gated net that has learned its strongest mode.

    D layers that carry a mode with singular value s and input variance v return to the target at the rate
    D s^(2−2/D) v^(2/D−1).
    """
    task, depth = setup.lifted().single_task, graph_of(setup.net).depth
    strongest, variance = np.linalg.norm(task.cov_yx, 2), np.linalg.norm(task.cov_x, 2)
    return float(depth * strongest ** (2 - 2 / depth) * variance ** (2 / depth - 1))


def fastest_gated_rate(setup: Setup, seed: int) -> float:
    """The larger of the rates of a gated net at the start and at the end."""
    return max(learned_rate(setup), fastest_rate(setup, seed))
