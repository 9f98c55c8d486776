"""Two-layer networks of different shapes as one padded batch, and the exact distances of their tangent kernels.

Small networks are padded with zeros up to the widest. The flow keeps these zeros, so that one compiled evaluation of
the exact solution of λ-balanced networks on white inputs [domine2025, theorem 4.3] serves all shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..._formulas import balanced_flow, tangent_kernel
from ..._foundation.arrays import AnyArray
from ..._foundation.precision import in_double
from ..._foundation.program_memory import compiled
from ...inits._pieces import shared_out

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
