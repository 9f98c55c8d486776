"""The equations of gated paths: their moments, and the gradient as a sum over paths. [jarvis2025, eqs. 3, 4 and 8]"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..._foundation.arrays import AnyArray, Weights
from ..._foundation.checks import is_traced
from ...tasks.base import Task
from .._memory import once_per_task
from .graph import Path
from .lifted import moments_of_blocks
from .plan import gate_values

if TYPE_CHECKING:
    from .net import Gated

Moment = Float[AnyArray, "row column"]
Layer = Float[AnyArray, "out in"]


@dataclasses.dataclass(frozen=True)
class PathMoments:
    """Σʸˣ(p) in `cov_yx[p]` and Σˣ(j, p) in `cov_x[j, p]`; paths by their number in `paths`."""

    paths: tuple[Path, ...]
    openings: Float[np.ndarray, "path sample"]  # the product of all gates of a path, both end nodes included
    cov_yx: tuple[Moment, ...]
    cov_x: Mapping[tuple[int, int], Moment]

    def __repr__(self) -> str:
        lines = [
            f"  {p}: {path}, on for {np.mean(self.openings[p] != 0):.3g} of the samples, "
            f"Σʸˣ {self.cov_yx[p].shape} with largest singular value {np.linalg.norm(self.cov_yx[p], 2):.4g}"
            for p, path in enumerate(self.paths)
        ]
        return "\n".join(["PathMoments(", *lines, ")"])


@once_per_task
def path_moments(net: Gated, task: Task) -> PathMoments:
    """The moments of all paths and of all pairs of them."""
    reads, writes = net.columns(task.d_in, task.d_out)
    paths, gates, ones = net.graph.paths(), gate_values(net, task), np.ones(task.samples or 1)
    gates_along = [[gates.get(place, ones) for place in (*path.nodes, *path.edges)] for path in paths]
    openings = np.array([functools.reduce(np.multiply, along) for along in gates_along])
    sources = [list(reads[path.source]) for path in paths]
    ends = np.cumsum([0, *map(len, sources)])
    spans = [slice(a, b) for a, b in itertools.pairwise(ends)]
    pairs = list(itertools.product(range(len(paths)), repeat=2))
    if task.x is None:
        factors = openings[:, 0]
        yx = [factors[p] * task.cov_yx[:, columns] for p, columns in enumerate(sources)]
        xx = {(j, p): factors[j] * factors[p] * task.cov_x[np.ix_(sources[j], sources[p])] for j, p in pairs}
    else:
        cov_yx, cov_x = moments_of_blocks(task, [(openings[p], tuple(columns)) for p, columns in enumerate(sources)])
        yx = [cov_yx[:, span] for span in spans]
        xx = {(j, p): cov_x[spans[j], spans[p]] for j, p in pairs}
    targets = [list(writes[path.target]) for path in paths]
    return PathMoments(paths, openings, tuple(m[rows] for m, rows in zip(yx, targets, strict=True)), xx)


def path_gradient(net: Gated, task: Task, weights: Sequence[Layer]) -> tuple[Layer, ...]:
    """−Σ_{p through e} W_afterᵀ [Σʸˣ(p) − Σ_j W_j Σˣ(j, p)] W_beforeᵀ for every edge e.

    j are the paths that write where p writes; in sequential training those of a higher rank are left out.
    """
    writes, shapes = net.columns(task.d_in, task.d_out)[1], net.shapes(task.d_in, task.d_out)
    moments = path_moments(net, task)
    return _path_gradient(tuple(weights), path_ranks(net.ranks, moments.paths), shapes, moments, writes)


def _path_gradient(
    weights: Sequence[Layer],
    ranks: Sequence[int],
    shapes: Sequence[tuple[int, int]],
    moments: PathMoments,
    writes: Mapping[str, Sequence[int]],
) -> tuple[Layer, ...]:
    xp = jnp if is_traced(weights) else np  # many small products, which NumPy starts a hundred times faster
    weights = [xp.asarray(matrix, xp.result_type(float)) for matrix in weights]
    paths = moments.paths
    maps = [product(weights, path.edges) for path in paths]
    slopes = [xp.zeros(shape) for shape in shapes]
    for p, path in enumerate(paths):
        missing = moments.cov_yx[p]
        for j, other in enumerate(paths):
            if ranks[j] <= ranks[p]:
                shared = same_rows(writes[path.target], writes[other.target])
                if shared.any():
                    missing = missing - shared @ maps[j] @ moments.cov_x[j, p]
        for k in path.edges:
            before, after = path.before(k), path.after(k)
            slope = missing @ product(weights, before).T if before else missing
            slopes[k] = slopes[k] - (product(weights, after).T @ slope if after else slope)
    return tuple(slopes)


def path_ranks(ranks_of_edges: Sequence[int] | None, paths: Sequence[Path]) -> tuple[int, ...]:
    """The rank of every path: the largest of its edges'."""
    return tuple(0 if ranks_of_edges is None else max(ranks_of_edges[k] for k in path.edges) for path in paths)


def same_rows(rows: Sequence[int], others: Sequence[int]) -> Float[np.ndarray, "row other"]:
    """1 where a row of one output node and a row of another write the same column of y."""
    return (np.asarray(rows)[:, None] == np.asarray(others)[None, :]).astype(float)


def product(weights: Weights, edges: Sequence[int]) -> Layer:
    """W of the last edge … W of the first."""
    return functools.reduce(lambda before, k: weights[k] @ before, edges[1:], weights[edges[0]])
