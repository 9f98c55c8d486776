"""Two-layer networks of different shapes as one padded batch, and the exact distances of their tangent kernels.

Small networks are padded with zeros up to the widest. The flow keeps these zeros, so that one compiled evaluation of
the exact solution of λ-balanced networks on white inputs [domine2025, theorem 4.3] serves all shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray
from jaxtyping import Float

from ... import Setup, inits, nets, rules, solve, tasks
from ..._formulas import balanced_flow, tangent_kernel
from ..._foundation.arrays import AnyArray
from ..._foundation.precision import in_double
from ..._foundation.program_memory import compiled
from ...inits._pieces import shared_out
from .labelled import table
from .training import simulate

if TYPE_CHECKING:
    from ... import Trajectory

HIDDEN, WIDEST = 4, 8  # hidden units of every network, and inputs or outputs of the widest


class Family(NamedTuple):
    """Networks padded to one size; every entry has a leading axis over networks."""

    target: Float[np.ndarray, "... out in"]
    left: Float[np.ndarray, "... out hidden"]  # singular vectors of the starting map
    right: Float[np.ndarray, " ... in hidden"]
    scale: Float[np.ndarray, "... hidden"]  # its singular values
    lam: np.ndarray
    d_in: np.ndarray
    d_out: np.ndarray


def factors(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Left vectors, singular values and right vectors, as many as there are hidden units."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return left[:, :HIDDEN], values[:HIDDEN], right[:HIDDEN].T


def padded_network(target: np.ndarray, left: np.ndarray, scale: np.ndarray, right: np.ndarray) -> Family:
    """One network, padded with zeros; its λ is not set yet."""

    def padded(matrix: np.ndarray, columns: int) -> np.ndarray:
        return np.pad(matrix, ((0, WIDEST - matrix.shape[0]), (0, columns - matrix.shape[1])))

    d_out, d_in = target.shape
    return Family(
        padded(target, WIDEST),
        padded(left, HIDDEN),
        padded(right, HIDDEN),
        np.pad(scale, (0, HIDDEN - len(scale))),
        np.array(np.nan),
        np.array(d_in),
        np.array(d_out),
    )


def with_balances(networks: Sequence[Family], lams: np.ndarray) -> Family:
    """Every network with every λ, λ fastest."""
    stacked = [np.repeat(np.stack(entries), len(lams), axis=0) for entries in zip(*networks, strict=True)]
    return Family(*stacked)._replace(lam=np.tile(lams, len(networks)))


def random_networks(
    shapes: Sequence[tuple[int, int]], targets: int, scale: float, generator: np.random.Generator
) -> tuple[list[Family], list[Family]]:
    """Networks of every shape for random targets, from random maps and from maps that are aligned with the target."""
    random, aligned = [], []
    for d_in, d_out in shapes:
        for _ in range(targets):
            target = generator.standard_normal((d_out, d_in))
            start = scale * generator.standard_normal((d_out, d_in))
            random.append(padded_network(target, *factors(start)))
            left, _, right = factors(target)
            aligned.append(padded_network(target, left, np.full(HIDDEN, scale), right))
    return random, aligned


def networks_of_sizes(sizes: Float[np.ndarray, " size"], targets: int, generator: np.random.Generator) -> list[Family]:
    """2-2-2 networks for random targets from random maps with every size as the largest singular value."""
    networks = []
    for _ in range(targets):
        target, bases = generator.standard_normal((2, 2)), generator.standard_normal((2, 2))
        left, values, right = factors(bases)
        networks += [padded_network(target, left, size * values / values[0], right) for size in sizes]
    return networks


def setup_of(network: Family, lam: float, lr: float, until: float) -> Setup:
    """One of these networks without its padding, as a setup of its own."""
    target = network.target[: network.d_out, : network.d_in]
    task = tasks.from_moments(target, np.eye(int(network.d_in)), target @ target.T)
    last, first = (np.asarray(size) for size in in_double(shared_out)(network.scale, float(lam)))
    init = inits.Given([(network.right[: network.d_in] * first).T, network.left[: network.d_out] * last])
    return Setup(task, nets.DeepLinear(HIDDEN), init, rules.GradientDescent(lr), times=[0.0, until / 2, until])


def training_and_theory(
    network: Family, lams: np.ndarray, until: float, lr: float
) -> tuple[xarray.Dataset, dict[str, Setup], dict[str, Trajectory]]:
    """Last kernel distances of one of these networks at some λ, by descent at two rates and by theory."""
    setups = {
        f"{network.d_in}-{HIDDEN}-{network.d_out}, λ = {lam:g}": setup_of(network, lam, lr, until) for lam in lams
    }
    theories = {label: solve(setup, "BalancedRiccati", observe="kernel_distance") for label, setup in setups.items()}
    descents = [[s.replace(rule=rules.GradientDescent(rate)) for s in setups.values()] for rate in (lr, lr / 2)]
    trained = [[simulate(s, 1, "kernel_distance")["kernel_distance"][0, -1] for s in each] for each in descents]
    values = {
        "trained": table(trained, "rate", "trained_lam"),
        "solved": table([theory["kernel_distance"][-1] for theory in theories.values()], "trained_lam"),
    }
    return xarray.Dataset(values, coords={"trained_lam": lams}), setups, theories


def kernel_distances_of(
    batches: Sequence[Family], times: Float[np.ndarray, " time"]
) -> list[Float[np.ndarray, "network time"]]:
    """Distances of the networks of every batch, in one call."""
    family = Family(*(np.concatenate([getattr(batch, name) for batch in batches]) for name in Family._fields))
    return np.split(kernel_distances(family, times), np.cumsum([len(batch.lam) for batch in batches])[:-1])


@in_double
@compiled
def kernel_distances(family: Family, times: Float[AnyArray, " time"]) -> Float[AnyArray, "network time"]:
    """Distance of the tangent kernel from its start, for all networks in one call."""

    def distances_of(network: Family) -> Float[AnyArray, " time"]:
        last, first = shared_out(network.scale, network.lam)
        start = (network.right * first).T, network.left * last
        flow = balanced_flow.flow(network.target, start, network.lam)
        lower, upper = balanced_flow.weights(flow, balanced_flow.states(flow, times))
        inputs, outputs = (
            jnp.diag(jnp.arange(WIDEST) < size).astype(lower.dtype) for size in (network.d_in, network.d_out)
        )

        def tangent(first: AnyArray, last: AnyArray) -> tangent_kernel.Tangent:
            return tangent_kernel.Tangent(jnp.stack([last @ last.T, outputs]), jnp.stack([inputs, first.T @ first]))

        def distance(first: AnyArray, last: AnyArray) -> AnyArray:
            return tangent_kernel.distance(tangent(*start), tangent(first, last), inputs)

        return jax.vmap(distance)(lower, upper)

    return jax.lax.map(distances_of, family, batch_size=256)
