"""The activity of the nodes of a gated graph. [jarvis2025, eq. 1]"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..._foundation.arrays import AnyArray, Weights
from .graph import Graph


def activity(
    graph: Graph,
    reads: Mapping[str, Sequence[int]],
    gates: Mapping[str | int, Float[AnyArray, " sample"]],
    weights: Weights,
    x: Float[AnyArray, "sample column"],
) -> dict[str, Float[AnyArray, "sample unit"]]:
    """h of every node for rows of inputs; `gates` by the name of their node or the number of their edge."""

    def gated(values: Float[AnyArray, "sample unit"], place: str | int) -> Float[AnyArray, "sample unit"]:
        return values * gates[place][:, None] if place in gates else values

    active: dict[str, Float[AnyArray, "sample unit"]] = {}
    for node in graph.order:
        if node in reads:
            total = x[:, np.asarray(reads[node])]
        else:
            terms = [gated(active[graph.edges[k][0]] @ weights[k].T, k) for k in graph.into(node)]
            total = functools.reduce(jnp.add, terms)
        active[node] = gated(total, node)
    return active


def written(
    active: Mapping[str, Float[AnyArray, "sample unit"]], writes: Mapping[str, tuple[int, ...]], d_out: int
) -> Float[AnyArray, "sample d_out"]:
    """What all output nodes write together."""
    return functools.reduce(jnp.add, [placed(active[node].T, rows, d_out) for node, rows in writes.items()]).T


def hidden_activity(
    graph: Graph, active: Mapping[str, Float[AnyArray, "sample unit"]]
) -> Float[AnyArray, "sample hidden"] | None:
    """The activity of all hidden nodes side by side, in the order of computation; None if there are none."""
    return jnp.concatenate([active[node] for node in graph.hidden], axis=1) if graph.hidden else None


def placed(matrix: Float[AnyArray, "row column"], rows: tuple[int, ...], count: int) -> Float[AnyArray, "count column"]:
    """The rows of a matrix among `count` rows, the others 0."""
    if rows == tuple(range(count)):
        return matrix
    if rows == tuple(range(rows[0], rows[0] + len(rows))):
        return jnp.pad(matrix, ((rows[0], count - rows[-1] - 1), (0, 0)))
    return jnp.zeros((count, matrix.shape[1]), matrix.dtype).at[np.asarray(rows)].set(matrix)
