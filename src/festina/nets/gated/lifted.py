"""A gated network on a task is a linear map of gated inputs.

Samples differ only in which products of gates multiply their inputs: with z the list of all g_p x_{s(p)},

    f = Σ_p W_p g_p x_{s(p)} = A z,      A = [Σ of W_p over the paths that share a block of z]

so that loss and gradient need ⟨z zᵀ⟩ and ⟨y zᵀ⟩ alone, whose blocks are the Σˣ(j, p) and Σʸˣ(p) of
[jarvis2025, eq. 4]: the cost of training does not grow with the number of samples. Paths with the same
gates share a block, and layers that they share are multiplied once, so the cost does not grow with the number of paths
either. `Lifted` is the network as such a map; the task that belongs to it has z's moments, and samples that carry
their gates in extra columns.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..._foundation.arrays import AnyArray, Weights
from ..._foundation.checks import is_traced
from ..._foundation.errors import BadInput
from ..._foundation.nouns import noun, static
from ..._foundation.stacks import unstacked
from ...tasks.base import Task
from .._memory import once_per_task
from ..base import Activity, LinearMap, Net, Outputs, Rows, Shapes
from .forward import activity, hidden_activity, placed, written
from .graph import Graph, Path
from .plan import Plan, Planned, Steps, Way, planned

if TYPE_CHECKING:
    from .net import Gated

GatedMoments = tuple[Float[AnyArray, "d_out gated"], Float[AnyArray, "gated gated"]]  # ⟨y zᵀ⟩ and ⟨z zᵀ⟩

CHUNK = 4096  # samples whose gated inputs are held at once


@noun
class Lifted(Net):
    """A gated network on one task; `map` acts on gated inputs, `apply` on rows of x followed by columns of gates."""

    plan: Plan = static()  # pyright: ignore[reportIncompatibleMethodOverride]
    d_in: int = static()  # columns of x before the gates
    linear: ClassVar[bool] = True

    def shapes(self, d_in: int, d_out: int) -> Shapes:
        return self.plan.graph.shapes

    @property
    def graph(self) -> Graph:
        return self.plan.graph

    @property
    def path_names(self) -> tuple[str, ...] | None:
        return self.graph.path_names

    def paths(self) -> tuple[Path, ...]:
        return self.graph.paths()

    @property
    def depth(self) -> int:
        return self.graph.depth

    @property
    def training(self) -> str:
        return "joint" if len(self.plan.ranks) < 2 else "sequential"

    @property
    def hidden(self) -> tuple[int, ...]:
        size = self.plan.graph.size
        return tuple(size[name] for name in self.plan.graph.hidden)

    @property
    def junctions(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        graph = self.plan.graph
        return tuple((graph.into(node), graph.out_of(node)) for node in graph.hidden)

    @property
    def stacks(self) -> tuple[tuple[int, ...], ...]:
        """Layers of parallel chains of two edges: the first ones of equal shape, and the last ones."""
        graph, shapes, groups = self.graph, self.graph.shapes, []
        for node in graph.order:
            by_shape: dict[tuple[tuple[int, int], tuple[int, int]], list[int]] = {}
            for k in graph.into(node):
                before = graph.into(graph.edges[k][0])
                if len(before) == 1:
                    by_shape.setdefault((shapes[k], shapes[before[0]]), []).append(k)
            for last in by_shape.values():
                first = [graph.into(graph.edges[k][0])[0] for k in last]
                groups += [tuple(last), tuple(first)] if len(set(first)) == len(last) > 1 else []
        members = [k for group in groups for k in group]
        return tuple(groups) if len(set(members)) == len(members) else ()

    def map(self, weights: Weights) -> LinearMap:
        return functools.reduce(jnp.add, self.maps_by_rank(weights))

    def maps_by_rank(self, weights: Weights) -> tuple[LinearMap, ...]:
        """The map of the paths of each rank, lowest first; they add up to `map`."""
        plan, size = self.plan, self.plan.graph.size
        reached = self._products(weights)
        maps = []
        for rank in plan.ranks:
            columns = []
            for source, opening in plan.blocks:
                way = Way(source, opening, rank)
                parts = [
                    placed(reached[node][way], rows, plan.d_out) for node, rows in plan.writes if way in reached[node]
                ]
                blank = jnp.zeros((plan.d_out, size[source]), weights[0].dtype)
                columns.append(functools.reduce(jnp.add, parts) if parts else blank)
            maps.append(jnp.concatenate(columns, axis=1))
        return tuple(maps)

    def _products(self, weights: Weights) -> dict[str, dict[Way, LinearMap]]:
        """The product of layers along every way to every node that is no input."""
        reached: dict[str, dict[Way, LinearMap]] = {}
        for node, ways in self.plan.ways:
            if node not in self.graph.inputs:
                through = self._extended(weights, _ways_before(ways), reached)
                reached[node] = {
                    way: functools.reduce(jnp.add, [through[k][earlier] for k, earlier in steps]) for way, steps in ways
                }
        return reached

    def _extended(
        self, weights: Weights, taken: Mapping[int, Sequence[Way]], reached: Mapping[str, Mapping[Way, LinearMap]]
    ) -> dict[int, dict[Way, LinearMap]]:
        """The products of each edge's layer with the ways that it continues; equal shapes are computed together."""
        source = {k: self.graph.edges[k][0] for k in taken}
        # An edge that leaves an input takes up one way, the identity.
        products: dict[int, LinearMap] = {k: weights[k] for k in taken if source[k] in self.graph.inputs}
        by_shape: dict[tuple[tuple[int, ...], tuple[int, ...]], list[tuple[int, LinearMap]]] = {}
        for k in (k for k in taken if k not in products):
            matrices = [reached[source[k]][way] for way in taken[k]]
            matrix = jnp.concatenate(matrices, axis=1) if len(matrices) > 1 else matrices[0]
            by_shape.setdefault((weights[k].shape, matrix.shape), []).append((k, matrix))
        for group in by_shape.values():
            if len(group) == 1:
                ((k, matrix),) = group
                products[k] = weights[k] @ matrix
            else:
                edges, matrices = zip(*group, strict=True)
                stacked = jnp.stack([weights[k] for k in edges]) @ jnp.stack(matrices)
                products |= zip(edges, unstacked(stacked), strict=True)
        widths = {k: [self.graph.size[way.source] for way in ways] for k, ways in taken.items()}
        return {k: dict(zip(ways, _split(products[k], widths[k]), strict=True)) for k, ways in taken.items()}

    def apply(self, weights: Weights, x: Rows) -> Outputs:
        return written(self._activity(weights, x), dict(self.plan.writes), self.plan.d_out)

    def representation(self, weights: Weights, x: Rows) -> Activity | None:
        """Activity of all hidden nodes side by side, in the order of computation."""
        return hidden_activity(self.plan.graph, self._activity(weights, x))

    def _activity(
        self, weights: Weights, x: Float[AnyArray, "sample column"]
    ) -> dict[str, Float[AnyArray, "sample unit"]]:
        gates = {place: x[:, self.d_in + column] for place, column in self.plan.gate_columns}
        return activity(self.plan.graph, dict(self.plan.reads), gates, weights, x)

    def __repr__(self) -> str:
        return f"Lifted({len(self.plan.graph.sizes)} nodes, {len(self.plan.blocks)} blocks of gated inputs)"


def _ways_before(ways: Sequence[tuple[Way, Steps]]) -> dict[int, list[Way]]:
    """For each incoming edge: the merged paths ('ways', see `plan`) that it continues."""
    taken: dict[int, list[Way]] = {}
    for k, earlier in (step for _, steps in ways for step in steps):
        if earlier not in taken.setdefault(k, []):
            taken[k].append(earlier)
    return taken


def _split(product: LinearMap, widths: Sequence[int]) -> Sequence[LinearMap]:
    """The columns of a product in parts of these widths."""
    return [product] if len(widths) == 1 else jnp.split(product, np.cumsum(widths)[:-1], axis=1)


@once_per_task
def lift(net: Gated, task: Task) -> tuple[Lifted, Task]:
    """The network as a linear map of gated inputs, and the task of that map."""
    if is_traced(net, task):
        raise BadInput("a gated net or its task, traced", "concrete gates and samples", "lift outside jit, grad, vmap")
    made = planned(net, task)
    cov_yx, cov_x = _moments_of_gated_inputs(made, task)
    lifted_task = dataclasses.replace(
        task,
        cov_yx=cov_yx,
        cov_x=cov_x,
        x=None if task.x is None else np.concatenate([task.x, *(gate[:, None] for gate in made.gates)], axis=1),
        inputs=_input_names(made.plan, task),
        stated_spectrum=None,
        stated_vectors=None,
        recipe=None,
        labels=None,
    )
    return Lifted(made.plan, task.d_in), lifted_task


def _moments_of_gated_inputs(made: Planned, task: Task) -> GatedMoments:
    """⟨y zᵀ⟩ and ⟨z zᵀ⟩ of the gated inputs of a plan."""
    reads, openings, blocks = dict(made.plan.reads), made.openings, made.plan.blocks
    if task.x is not None:
        return moments_of_blocks(task, [(openings[k], reads[source]) for source, k in blocks])
    # Gates are numbers here: every block is x times a number.
    pick = np.concatenate([float(openings[k][0]) * np.eye(task.d_in)[list(reads[source])] for source, k in blocks])
    return task.cov_yx @ pick.T, pick @ task.cov_x @ pick.T


def moments_of_blocks(
    task: Task, blocks: Sequence[tuple[Float[np.ndarray, " sample"], tuple[int, ...]]]
) -> GatedMoments:
    """⟨y zᵀ⟩ and ⟨z zᵀ⟩ of gated inputs, (opening, columns of x) for every block, from a few samples at a time."""
    size, count = sum(len(columns) for _, columns in blocks), len(task.y)
    cov_yx, cov_x = np.zeros((task.d_out, size)), np.zeros((size, size))
    for first in range(0, count, CHUNK):
        rows = slice(first, first + CHUNK)
        z = np.concatenate([opening[rows, None] * task.x[rows, list(columns)] for opening, columns in blocks], axis=1)
        cov_yx += task.y[rows].T @ z
        cov_x += z.T @ z
    return cov_yx / count, cov_x / count


def _input_names(plan: Plan, task: Task) -> tuple[str, ...]:
    reads = dict(plan.reads)
    return tuple(
        f"{task.inputs[column] if task.inputs else f'{source}[{column}]'} · gate {opening}"
        for source, opening in plan.blocks
        for column in reads[source]
    )
