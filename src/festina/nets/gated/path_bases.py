"""The bases of a gated network's paths: in them its moments are diagonal, and a race is one number per edge and mode.

Paths that share edges make a component. A component has one orthonormal basis at each of its input nodes (V) and of its
output nodes (U). Mode a is column a of all of them. Components have bases of their own, even at the same node
[jarvis2025, appendix F]. `race_bases` finds the bases; `race` has the law of motion in them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Int

from ..._foundation.arrays import AnyArray
from ...tasks.base import Task
from .._memory import once_per_task
from ..base import Net
from .graph import Path, graph_of
from .paths import PathMoments, path_ranks, same_rows
from .race_bases import bases_of_components

Basis: TypeAlias = Float[np.ndarray, "unit mode"]


@dataclasses.dataclass(frozen=True)
class PathBases:
    """The bases of all paths, and the moments in these bases; modes are padded with zeros to a common number."""

    moments: PathMoments
    component: tuple[int, ...]  # component of each path; −1 for a closed path that shares no edge with an open one
    nodes: Mapping[tuple[int, str], Basis]  # (component, input or output node): its basis
    left: tuple[Basis, ...]  # U_p; its units are the rows that the path writes
    right: tuple[Basis, ...]  # V_p; its units are the columns that the path reads
    overlaps: Float[np.ndarray, "path other mode mode"]  # U_pᵀ U_j over the rows that both write
    variances: Float[np.ndarray, "other path mode mode"]  # V_jᵀ Σˣ(j, p) V_p
    strengths: Float[np.ndarray, "path mode"]  # S(p), the diagonal of U_pᵀ Σʸˣ(p) V_p
    rows: tuple[tuple[int, ...], ...]  # of y that each path writes
    ranks: tuple[int, ...]  # of the paths
    edges: Int[np.ndarray, "path place"]  # the edges of each path; behind the last comes the number of edges

    @property
    def couplings(self) -> Float[np.ndarray, "path mode other mode"]:
        """How the strength of each mode of path j slows each mode of path p."""
        return np.einsum("pjab,jpba->pajb", self.overlaps, self.variances)

    @property
    def open(self) -> list[int]:
        """The paths that some sample opens."""
        return [p for p in range(len(self.component)) if np.any(self.moments.openings[p])]

    @property
    def components(self) -> dict[int, list[int]]:
        """The open paths of every component."""
        members: dict[int, list[int]] = {}
        for p in self.open:
            members.setdefault(self.component[p], []).append(p)
        return members

    def landing(self, p: int) -> Float[np.ndarray, "path row mode"]:
        """The left vectors of each path in the output rows of path p; 0 for a path of higher rank than p."""
        reached = np.zeros((len(self.left), *self.left[p].shape))
        for j, left in enumerate(self.left):
            if self.ranks[j] <= self.ranks[p]:
                reached[j] = same_rows(self.rows[p], self.rows[j]) @ left
        return reached

    def defects(self) -> dict[str, Float[np.ndarray, " path"]]:
        """How far the moments of each open path are from diagonal.

        "defect": share of VᵀΣˣ(p, p)V off its diagonal; "commutator" of ΣʸˣᵀΣʸˣ and Σˣ(p, p), relative; "mismatch":
        share of Σʸˣ(p) that U S Vᵀ misses, because the path's own singular vectors are not those of its component.
        """
        rows = [self._defects_of(p) for p in self.open]
        return dict(zip(("defect", "commutator", "mismatch"), np.array(rows).T, strict=True))

    def _defects_of(self, p: int) -> tuple[float, float, float]:
        cov_yx, cov_x, in_bases = self.moments.cov_yx[p], self.moments.cov_x[p, p], self.variances[p, p]
        square = cov_yx.T @ cov_yx
        missed = cov_yx - (self.left[p] * self.strengths[p]) @ self.right[p].T
        off = in_bases - np.diag(np.diag(in_bases))
        return (
            share(off, cov_x),
            share(square @ cov_x - cov_x @ square, square @ cov_x),
            share(missed, cov_yx),
        )


def share(part: Float[AnyArray, ...], whole: Float[AnyArray, ...]) -> float:
    """|part|/|whole|; 0 where there is nothing."""
    size = np.linalg.norm(whole)
    return float(np.linalg.norm(part) / size) if size > 0 else 0.0


@once_per_task
def bases_of_paths(net: Net, task: Task) -> PathBases:
    """The bases of the paths of a gated net on a concrete task."""
    moments = net.moments(task)
    paths = moments.paths
    reads, writes = net.columns(task.d_in, task.d_out)
    component = _components(moments)
    nodes = bases_of_components(moments, component, reads, writes, task.d_in)
    count = max(basis.shape[1] for basis in nodes.values())
    nodes = {key: np.pad(basis, ((0, 0), (0, count - basis.shape[1]))) for key, basis in nodes.items()}

    def basis_of(p: int, node: str, size: int) -> Basis:
        return nodes.get((component[p], node), np.zeros((size, count)))

    left = tuple(basis_of(p, path.target, len(writes[path.target])) for p, path in enumerate(paths))
    right = tuple(basis_of(p, path.source, len(reads[path.source])) for p, path in enumerate(paths))
    numbers = range(len(paths))
    strengths = np.array([np.einsum("om,oi,im->m", left[p], moments.cov_yx[p], right[p]) for p in numbers])
    variances = np.array([[right[j].T @ moments.cov_x[j, p] @ right[p] for p in numbers] for j in numbers])
    rows, ranks = tuple(tuple(writes[path.target]) for path in paths), path_ranks(net.ranks, paths)
    edges = _padded_edges(paths, len(graph_of(net).edges))
    made = PathBases(moments, component, nodes, left, right, np.zeros(0), variances, strengths, rows, ranks, edges)
    overlaps = np.array([np.einsum("oa,job->jab", left[p], made.landing(p)) for p in numbers])
    return dataclasses.replace(made, overlaps=overlaps)


def _padded_edges(paths: Sequence[Path], count: int) -> Int[np.ndarray, "path place"]:
    longest = max(len(path.edges) for path in paths)
    return np.array([[*path.edges, *[count] * (longest - len(path.edges))] for path in paths])


def _components(moments: PathMoments) -> tuple[int, ...]:
    """A number for each path: the same for open paths that share edges, directly or through others.

    A closed path has the number of an open one that shares an edge with it, or −1.
    """
    is_open = [bool(np.any(opening)) for opening in moments.openings]
    label: dict[int, int] = {}  # of edges
    for p, path in enumerate(moments.paths):
        if is_open[p]:
            joined = {label[k] for k in path.edges if k in label} | {p}
            label = {k: p if old in joined else old for k, old in label.items()} | dict.fromkeys(path.edges, p)
    numbers = {old: new for new, old in enumerate(dict.fromkeys(label.values()))}
    return tuple(next((numbers[label[k]] for k in path.edges if k in label), -1) for path in moments.paths)
