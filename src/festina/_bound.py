"""A gated network on a task is a linear map of gated inputs.

Samples differ only in which products of gates multiply their inputs: with z the list of all g_p x_{s(p)},

    f = Σ_p W_p g_p x_{s(p)} = A z,      A = [Σ of W_p over the paths that share a block of z]

so that loss and gradient need ⟨z zᵀ⟩ and ⟨y zᵀ⟩ alone, whose blocks are the Σˣ(j, p) and Σʸˣ(p) of
[jarvis2025, eq. 4]: the cost of training does not grow with the number of samples. Paths that open alike share a
block, and what they share of their layers is multiplied once, so the cost does not grow with the number of paths
either. `Bound` is the network as such a map; the task that belongs to it has z's moments, and samples that carry
their gates in extra columns.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from . import _gating
from ._errors import BadInput
from ._graph import Graph
from ._noun import is_traced, noun, static
from ._parallel import apart
from ._setup import Net
from ._task import Task, once_per_task

CHUNK = 4096  # samples whose gated inputs are held at once


@dataclasses.dataclass(frozen=True)
class Way:
    """All paths from an input to a node that open for the same samples and have the same rank."""

    source: str
    opening: int  # number of the product of gates
    rank: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """How the map of gated inputs is put together."""

    graph: Graph
    reads: tuple[tuple[str, tuple[int, ...]], ...]
    writes: tuple[tuple[str, tuple[int, ...]], ...]
    d_out: int
    ways: tuple[tuple[str, tuple[tuple[Way, tuple[tuple[int, Way], ...]], ...]], ...]  # node: way: (edge, way before)
    blocks: tuple[tuple[str, int], ...]  # (input node, opening) of every block of z
    ranks: tuple[int, ...]  # those that occur
    gate_columns: tuple[tuple[Any, int], ...]  # node name or edge number: its column behind those of x


@noun
class Bound(Net):
    """A gated network on one task; inputs of `map` are gated inputs, those of `apply` carry their gates."""

    plan: Plan = static()
    d_in: int = static()  # columns of x before the gates
    linear: ClassVar[bool] = True

    def shapes(self, d_in, d_out):
        return self.plan.graph.shapes

    @property
    def ranks(self) -> tuple[int, ...]:
        return self.plan.ranks

    @property
    def hidden(self) -> tuple[int, ...]:
        size = self.plan.graph.size
        return tuple(size[name] for name in self.plan.graph.hidden)

    @property
    def junctions(self):
        drawn = self.plan.graph
        return tuple((drawn.into(node), drawn.out_of(node)) for node in drawn.hidden)

    @property
    def alike(self):
        drawn, groups = self.plan.graph, []
        for node in drawn.order:
            by_shape: dict[Any, list[int]] = {}
            for k in drawn.into(node):
                before = drawn.into(drawn.edges[k][0])
                if len(before) == 1:
                    by_shape.setdefault((drawn.shapes[k], drawn.shapes[before[0]]), []).append(k)
            for last in by_shape.values():
                first = [drawn.into(drawn.edges[k][0])[0] for k in last]
                groups += [tuple(last), tuple(first)] if len(set(first)) == len(last) > 1 else []
        listed = [k for group in groups for k in group]
        return tuple(groups) if len(set(listed)) == len(listed) else ()

    def map(self, weights):
        return functools.reduce(jnp.add, self.maps_by_rank(weights))

    def maps_by_rank(self, weights: Any) -> tuple[Any, ...]:
        """The map of the paths of each rank, lowest first; they add up to `map`."""
        plan, size = self.plan, self.plan.graph.size
        reached = self._products(weights)
        maps = []
        for rank in plan.ranks:
            columns = []
            for source, opening in plan.blocks:
                way = Way(source, opening, rank)
                parts = [
                    _placed(reached[node][way], rows, plan.d_out) for node, rows in plan.writes if way in reached[node]
                ]
                blank = jnp.zeros((plan.d_out, size[source]), weights[0].dtype)
                columns.append(functools.reduce(jnp.add, parts) if parts else blank)
            maps.append(jnp.concatenate(columns, axis=1))
        return tuple(maps)

    def _products(self, weights: Any) -> dict[str, dict[Way, Any]]:
        """The product of layers along every way to every node; None stands for the identity at an input."""
        reached: dict[str, dict[Way, Any]] = {}
        for node, ways in self.plan.ways:
            before = {
                k: {way: reached[self.plan.graph.edges[k][0]][way] for way in taken}
                for k, taken in _ways_before(ways).items()
            }
            through = _extended(weights, before)
            reached[node] = {
                way: functools.reduce(jnp.add, [through[k][earlier] for k, earlier in steps]) if steps else None
                for way, steps in ways
            }
        return reached

    def apply(self, weights, x):
        return written(self._activity(weights, x), dict(self.plan.writes), self.plan.d_out)

    def representation(self, weights, x):
        """Activity of all hidden nodes side by side, in the order of computation."""
        return hidden_activity(self.plan.graph, self._activity(weights, x))

    def _activity(self, weights: Any, x: Any) -> dict[str, Any]:
        gates = {key: x[:, self.d_in + column] for key, column in self.plan.gate_columns}
        return activity(self.plan.graph, dict(self.plan.reads), gates, weights, x)

    def __repr__(self) -> str:
        return f"Bound({len(self.plan.graph.sizes)} nodes, {len(self.plan.blocks)} blocks of gated inputs)"


def _ways_before(ways: Any) -> dict[int, list[Way]]:
    """For every edge into a node, the ways that it takes up."""
    found: dict[int, list[Way]] = {}
    for k, earlier in (step for _, steps in ways for step in steps):
        if earlier not in found.setdefault(k, []):
            found[k].append(earlier)
    return found


def _extended(weights: Any, before: dict[int, dict[Way, Any]]) -> dict[int, dict[Way, Any]]:
    """The products of each edge's layer with what it takes up; layers of the same shapes are multiplied at once."""
    # At an input there is one way, the identity.
    products: dict[int, Any] = {k: weights[k] for k, taken in before.items() if next(iter(taken.values())) is None}
    alike: dict[Any, list[tuple[int, Any]]] = {}
    for k in (k for k in before if k not in products):
        matrices = list(before[k].values())
        matrix = jnp.concatenate(matrices, axis=1) if len(matrices) > 1 else matrices[0]
        alike.setdefault((weights[k].shape, matrix.shape), []).append((k, matrix))
    for group in alike.values():
        if len(group) == 1:
            ((k, matrix),) = group
            products[k] = weights[k] @ matrix
        else:
            edges, matrices = zip(*group, strict=True)
            each = jnp.stack([weights[k] for k in edges]) @ jnp.stack(matrices)
            products |= zip(edges, apart(each), strict=True)
    return {k: _split(products[k], taken) for k, taken in before.items()}


def _split(product: Any, taken: dict[Way, Any]) -> dict[Way, Any]:
    if len(taken) == 1:
        return dict.fromkeys(taken, product)
    widths = np.cumsum([matrix.shape[1] for matrix in taken.values()])[:-1]
    return dict(zip(taken, jnp.split(product, widths, axis=1), strict=True))


def activity(graph: Graph, reads: dict[str, Any], gates: dict[Any, Any], weights: Any, x: Any) -> dict[str, Any]:
    """h of every node for rows of inputs; `gates` are (sample,), by node name or edge number. [jarvis2025, eq. 1]"""

    def gated(values, key):
        return values * gates[key][:, None] if key in gates else values

    active: dict[str, Any] = {}
    for node in graph.order:
        if node in reads:
            total = x[:, np.asarray(reads[node])]
        else:
            terms = [gated(active[graph.edges[k][0]] @ weights[k].T, k) for k in graph.into(node)]
            total = functools.reduce(jnp.add, terms)
        active[node] = gated(total, node)
    return active


def written(active: dict[str, Any], writes: dict[str, Any], d_out: int) -> Any:
    """What all output nodes write together, (sample, d_out)."""
    return functools.reduce(jnp.add, [_placed(active[node].T, rows, d_out) for node, rows in writes.items()]).T


def hidden_activity(graph: Graph, active: dict[str, Any]) -> Any:
    """Activity of all hidden nodes side by side, in the order of computation; None if there are none."""
    return jnp.concatenate([active[node] for node in graph.hidden], axis=1) if graph.hidden else None


def _placed(matrix: Any, rows: tuple[int, ...], count: int) -> Any:
    """The rows of a matrix among `count` rows."""
    if rows == tuple(range(count)):
        return matrix
    if rows == tuple(range(rows[0], rows[0] + len(rows))):
        return jnp.pad(matrix, ((rows[0], count - rows[-1] - 1), (0, 0)))
    return jnp.zeros((count, matrix.shape[1]), matrix.dtype).at[np.asarray(rows)].set(matrix)


def gate_values(net: Any, task: Task) -> dict[Any, np.ndarray]:
    """The gates that are not 1 for all samples, by node name or edge number."""
    drawn, count = net.graph, task.samples or 1
    named = [(name, gate, f"node {name!r}") for name, gate in net.node_gates.items()]
    named += [(k, gate, f"edge {drawn.edge_name(k)}") for k, gate in enumerate(net.edge_gates)]
    found = {key: np.broadcast_to(_gating.values(gate, task, where), (count,)) for key, gate, where in named}
    return {key: gate for key, gate in found.items() if np.any(gate != 1)}


@once_per_task
def opened_edges(net: Any, task: Task) -> set[int]:
    """The edges through which some sample of the task opens a path."""
    reads, writes = net.columns(task.d_in, task.d_out)
    plan, _, _ = _planned(net, task, reads, writes)
    found: set[int] = set()
    needed = {(node, way) for node, ways in plan.ways if node in writes for way, _ in ways}
    for node, ways in reversed(plan.ways):  # backwards: what needs a way is met before the way itself
        for way, steps in ways:
            if (node, way) in needed:
                found |= {k for k, _ in steps}
                needed |= {(plan.graph.edges[k][0], earlier) for k, earlier in steps}
    return found


@once_per_task
def bind(net: Any, task: Task) -> tuple[Bound, Task]:
    """The network as a linear map of gated inputs, and the task of that map."""
    if is_traced(net, task):
        raise BadInput("a gated net or its task, traced", "concrete gates and samples", "bind outside jit, grad, vmap")
    if not isinstance(task, Task):
        raise BadInput(f"a gated net on {task!r}", "one task: it decides the gates", "take one of task.tasks")
    reads, writes = net.columns(task.d_in, task.d_out)
    plan, openings, gates = _planned(net, task, reads, writes)
    bound = Bound(plan, task.d_in)
    names = _input_names(plan, openings, task)
    if task.x is None:
        # Gates are numbers here: every block is x times a number.
        picks = [float(openings[k][0]) * np.eye(task.d_in)[list(reads[source])] for source, k in plan.blocks]
        pick = np.concatenate(picks)
        lifted = dataclasses.replace(task, cov_yx=task.cov_yx @ pick.T, cov_x=pick @ task.cov_x @ pick.T, inputs=names)
    else:
        cov_yx, cov_x = moments_of_blocks(task, [(openings[k], reads[source]) for source, k in plan.blocks])
        lifted = dataclasses.replace(
            task, cov_yx=cov_yx, cov_x=cov_x, x=np.concatenate([task.x, *(g[:, None] for g in gates)], axis=1),
            inputs=names,
        )  # fmt: skip
    return bound, dataclasses.replace(lifted, stated_spectrum=None, stated_vectors=None, recipe=None, labels=None)


def _planned(net: Any, task: Task, reads: Any, writes: Any) -> tuple[Plan, list[np.ndarray], list[np.ndarray]]:
    """The plan, the products of gates that open its ways, and the gates in the order of their columns."""
    drawn, gates = net.graph.sized(task.d_in, task.d_out), gate_values(net, task)
    ones = np.ones(task.samples or 1)
    openings: list[np.ndarray] = []
    numbers: dict[bytes, int] = {}

    def number(opening: np.ndarray) -> int:
        key = np.ascontiguousarray(opening).tobytes()
        if key not in numbers:
            numbers[key] = len(openings)
            openings.append(opening)
        return numbers[key]

    ways: dict[str, dict[Way, list[tuple[int, Way]]]] = {}
    for node in drawn.order:
        own, found = gates.get(node, ones), {}
        if node in reads and np.any(own):
            found[Way(node, number(own + 0.0), 0)] = []
        for k in drawn.into(node):
            through = own * gates.get(k, ones)
            for before in ways[drawn.edges[k][0]]:
                opening = openings[before.opening] * through + 0.0  # −0 and 0 are one gate
                if np.any(opening):
                    rank = 0 if net.ranks is None else max(before.rank, net.ranks[k])
                    found.setdefault(Way(before.source, number(opening), rank), []).append((k, before))
        ways[node] = found
    ends = [way for node in writes for way in ways[node]]
    if not ends:
        raise BadInput(
            f"every path is off for all samples, {drawn.path_through(0)} among them",
            "a sample that opens some path, at every time",
            "check the gates against the task's labels, and times at which they begin",
        )
    plan = Plan(
        drawn,
        tuple(reads.items()),
        tuple(writes.items()),
        task.d_out,
        tuple((node, tuple((way, tuple(steps)) for way, steps in ways[node].items())) for node in drawn.order),
        tuple(dict.fromkeys((way.source, way.opening) for way in ends)),
        tuple(sorted({way.rank for way in ends})),
        tuple((key, column) for column, key in enumerate(gates)),
    )
    return plan, openings, list(gates.values())


def moments_of_blocks(
    task: Task, blocks: Sequence[tuple[np.ndarray, tuple[int, ...]]]
) -> tuple[np.ndarray, np.ndarray]:
    """⟨y zᵀ⟩ and ⟨z zᵀ⟩ of gated inputs, from a few samples at a time."""
    size, count = sum(len(columns) for _, columns in blocks), len(task.y)
    cov_yx, cov_x = np.zeros((task.d_out, size)), np.zeros((size, size))
    for first in range(0, count, CHUNK):
        rows = slice(first, first + CHUNK)
        z = np.concatenate([opening[rows, None] * task.x[rows, list(columns)] for opening, columns in blocks], axis=1)
        cov_yx += task.y[rows].T @ z
        cov_x += z.T @ z
    return cov_yx / count, cov_x / count


def _input_names(plan: Plan, openings: list[np.ndarray], task: Task) -> tuple[str, ...]:
    reads = dict(plan.reads)
    return tuple(
        f"{task.inputs[column] if task.inputs else f'{source}[{column}]'} · gate {opening}"
        for source, opening in plan.blocks
        for column in reads[source]
    )
