"""Directed acyclic graphs of layers: what is refused, in which order nodes are computed, which paths there are."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..._foundation import checks
from ..._foundation.checks import is_traced, whole
from ..._foundation.errors import BadInput, UnknownName, shown
from ..base import Net

Sizes: TypeAlias = tuple[tuple[str, int | None], ...]  # (node, units) in the order of the listing
MOST_PATHS = 10_000  # more cannot be listed usefully; training and its theory never list them


@dataclasses.dataclass(frozen=True)
class Path:
    """One way from an input node to an output node: the numbers of its edges, and the nodes that it visits."""

    edges: tuple[int, ...]
    nodes: tuple[str, ...]

    @property
    def source(self) -> str:
        return self.nodes[0]

    @property
    def target(self) -> str:
        return self.nodes[-1]

    def before(self, edge: int) -> tuple[int, ...]:
        """The edges ahead of `edge`."""
        return self.edges[: self.edges.index(edge)]

    def after(self, edge: int) -> tuple[int, ...]:
        """The edges behind `edge`."""
        return self.edges[self.edges.index(edge) + 1 :]

    def __str__(self) -> str:
        return " → ".join(self.nodes)


@dataclasses.dataclass(frozen=True)
class Graph:
    """Nodes with their sizes, edges in order, and the nodes where data come in and go out.

    The size of an input or output node may be None: as many as the task has.
    """

    sizes: Sizes
    edges: tuple[tuple[str, str], ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def size(self) -> dict[str, Any]:
        """The units of every node; None where the task decides."""
        return dict(self.sizes)

    def sized(self, d_in: int, d_out: int) -> Graph:
        """The same graph with all sizes known."""
        ends = dict.fromkeys(self.outputs, d_out) | dict.fromkeys(self.inputs, d_in)
        return dataclasses.replace(self, sizes=tuple((n, ends[n] if s is None else s) for n, s in self.sizes))

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """(out, in) of every edge, once all sizes are known."""
        size = self.size
        return tuple((size[target], size[source]) for source, target in self.edges)

    @functools.cached_property
    def order(self) -> tuple[str, ...]:
        """All nodes, each after those that feed it."""
        return _ordered([name for name, _ in self.sizes], self.edges)[0]

    @property
    def hidden(self) -> tuple[str, ...]:
        """The nodes that are neither inputs nor outputs, in the order of computation."""
        return tuple(name for name in self.order if name not in (*self.inputs, *self.outputs))

    def into(self, node: str) -> tuple[int, ...]:
        """The numbers of the edges that end in `node`."""
        return tuple(k for k, (_, target) in enumerate(self.edges) if target == node)

    def out_of(self, node: str) -> tuple[int, ...]:
        """The numbers of the edges that begin in `node`."""
        return tuple(k for k, (source, _) in enumerate(self.edges) if source == node)

    @property
    def depth(self) -> int:
        """The number of layers of the longest path."""
        return max(self.steps[node] for node in self.outputs)

    @property
    def path_count(self) -> int:
        """How many paths there are, without listing them."""
        ways = dict.fromkeys(self.inputs, 1)
        for node in self.order:
            ways |= {node: sum(ways[self.edges[k][0]] for k in self.into(node))} if self.into(node) else {}
        return sum(ways[node] for node in self.outputs)

    @property
    def path_names(self) -> tuple[str, ...] | None:
        """The names of all paths, where they can be listed."""
        return tuple(map(str, self.walk())) if self.path_count <= MOST_PATHS else None

    def paths(self) -> tuple[Path, ...]:
        """Every path from an input to an output, by input and then by edge."""
        if self.path_count > MOST_PATHS:
            raise BadInput(
                f"a graph with {self.path_count} paths",
                f"at most {MOST_PATHS} to list them",
                "solve and simulate need no list: leave paths() and what is kept per path out",
            )
        return tuple(self.walk())

    def walk(self) -> Iterator[Path]:
        """The paths one by one."""

        def onward(edges: tuple[int, ...], nodes: tuple[str, ...]) -> Iterator[Path]:
            if edges and nodes[-1] in self.outputs:
                yield Path(edges, nodes)
            for k in self.out_of(nodes[-1]):
                yield from onward((*edges, k), (*nodes, self.edges[k][1]))

        for node in self.inputs:
            yield from onward((), (node,))

    @functools.cached_property
    def steps(self) -> dict[str, int]:
        """How many edges the longest way from an input to each node has."""
        steps: dict[str, int] = {}
        for node in self.order:
            steps[node] = max((steps[self.edges[k][0]] + 1 for k in self.into(node)), default=0)
        return steps

    def path_through(self, edge: int) -> Path:
        """One of the paths that take `edge`."""
        edges = [edge]
        while (node := self.edges[edges[0]][0]) not in self.inputs:
            edges.insert(0, self.into(node)[0])
        while (node := self.edges[edges[-1]][1]) not in self.outputs:
            edges.append(self.out_of(node)[0])
        return Path(tuple(edges), (self.edges[edges[0]][0], *(self.edges[k][1] for k in edges)))

    def edge_name(self, number: int) -> str:
        """Source and target; with its number, if it is one of several parallel edges."""
        source, target = self.edges[number]
        return f"{source} → {target}" + (f" (edge {number})" if self.edges.count(self.edges[number]) > 1 else "")


def graph_of(net: Net) -> Graph:
    """The graph of a net with paths, which has one."""
    assert net.graph is not None
    return net.graph


def checked_graph(
    nodes: object, edges: object, inputs: Iterable[str] | None = None, outputs: Iterable[str] | None = None
) -> Graph:
    """The graph that a user describes, checked.

    Unless they are given, inputs are the nodes that no edge enters, and outputs those that none leaves.
    """
    sizes = _checked_nodes(nodes)
    names = [name for name, _ in sizes]
    pairs = _checked_edges(edges, names)
    rest = _ordered(names, pairs)[1]
    if rest:
        raise BadInput(
            f"a cycle through {' → '.join([*rest, rest[0]])}",
            "a graph without cycles: activity flows from inputs to outputs once",
            f"remove one of its edges, for example {(rest[-1], rest[0])}",
        )
    entered, left = {target for _, target in pairs}, {source for source, _ in pairs}
    ins = tuple(inputs) if inputs is not None else tuple(name for name in names if name not in entered)
    outs = tuple(outputs) if outputs is not None else tuple(name for name in names if name not in left)
    for kind, ends in (("input node", ins), ("output node", outs)):
        for name in ends:
            if name not in names:
                raise UnknownName.among(kind, name, names)
    for name in ins:
        if name in entered:
            raise BadInput(f"input node {name!r} with an edge into it", "inputs that only data enter", "drop the edge")
    for name, size in sizes:
        if size is None and name not in (*ins, *outs):
            raise BadInput(f"node {name!r} without a size", "a size for every hidden node", f"give {{{name!r}: 32}}")
    checked = Graph(sizes, pairs, ins, outs)
    _all_reached(checked)
    return checked


def _checked_nodes(nodes: object) -> Sizes:
    given = nodes.items() if isinstance(nodes, Mapping) else nodes if isinstance(nodes, (list, tuple)) else ()
    pairs: list[Any] = [tuple(node) if isinstance(node, (list, tuple)) else () for node in given]
    if not pairs or any(len(node) != 2 for node in pairs):
        raise BadInput(f"nodes = {shown(nodes)}", "{name: size} of every node", 'give nodes={"x": 3, "h": 8, "y": 2}')
    for name, size in pairs:
        if not isinstance(name, str):
            do = f"give nodes={{{str(name)!r}: {size!r}, …}}, and the same text in edges and gates"
            raise BadInput(f"a node with the name {name!r}", "names of nodes that are text", do)
    names = [name for name, _ in pairs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadInput(f"node {twice[0]!r} twice", "one size for each node", "give every node a name of its own")
    sizes = [None if size is None else whole(size, f"size of node {name!r} in nodes") for name, size in pairs]
    return tuple(zip(names, sizes, strict=True))


def _checked_edges(edges: object, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    needed, do = "a list of (source, target)", 'give edges=[("x", "h"), ("h", "y")]'
    pairs = checks.listed(edges, "edges", needed, do)
    if any(not isinstance(edge, (list, tuple)) or len(edge) != 2 for edge in pairs):
        raise BadInput(f"edges = {shown(edges)}", needed, do)
    for edge in pairs:
        for name in edge:
            if name not in names:
                raise UnknownName.among(f"node of edge {tuple(edge)}", name, names)
    return tuple((source, target) for source, target in pairs)


def checked_weights(weights: object, graph: Graph, shapes: Sequence[tuple[int, int]]) -> tuple[Any, ...]:
    """The weights, one matrix of the right shape for every edge."""
    needed = f"one (out, in) matrix for each of the {len(shapes)} edges"
    do = "give [W1, W2, …] in the order of net.edges; setup.weights() draws them"
    matrices = checks.listed(weights, "weights", needed, do, empty=True)
    if len(matrices) != len(shapes):
        raise BadInput(f"weights as a list of {len(matrices)}", needed, do)
    for k, (matrix, shape) in enumerate(zip(matrices, shapes, strict=True)):
        given = _shape(matrix)
        if given != shape:
            raise BadInput(
                f"weights of edge {graph.edge_name(k)} "
                + (f"of type {type(matrix).__name__}" if given is None else f"of shape {given}"),
                f"shape {shape}, (out, in)",
                "transpose them" if given == shape[::-1] else do,
            )
    return matrices


def _shape(matrix: object) -> tuple[int, ...] | None:
    """The shape of an array of numbers; None for anything else."""
    if is_traced(matrix):
        return np.shape(matrix)  # pyright: ignore[reportArgumentType, reportCallIssue]
    try:
        array = np.asarray(matrix)
    except ValueError:  # rows of different lengths
        return None
    return array.shape if array.dtype.kind in "biuf" else None


def _ordered(names: Sequence[str], edges: Sequence[tuple[str, str]]) -> tuple[tuple[str, ...], list[str]]:
    """Nodes in the order of computation, and one cycle among those that have none."""
    waiting, order = list(names), []
    while ready := [name for name in waiting if not any(t == name and s in waiting for s, t in edges)]:
        order += ready
        waiting = [name for name in waiting if name not in ready]
    if not waiting:
        return tuple(order), []
    # Every node that waits is fed by another one that waits: going back must close a cycle.
    back = [waiting[0]]
    while back[-1] not in back[:-1]:
        back.append(next(s for s, t in edges if t == back[-1] and s in waiting))
    return tuple(order), back[back.index(back[-1]) :][:0:-1]


def _all_reached(graph: Graph) -> None:
    """Refuse nodes that no input reaches, or that reach no output."""
    fed, heard = set(graph.inputs), set(graph.outputs)
    for name in graph.order:
        if any(graph.edges[k][0] in fed for k in graph.into(name)):
            fed.add(name)
    for name in reversed(graph.order):
        if any(graph.edges[k][1] in heard for k in graph.out_of(name)):
            heard.add(name)
    for name, _ in graph.sizes:
        kind = "output node" if name in graph.outputs else "node"
        if name not in fed or (name in graph.outputs and not graph.into(name)):
            do = "add an edge into it, remove it, or name it in inputs"
            raise BadInput(f"{kind} {name!r} that no path from an input reaches", "a path to every node", do)
        if name not in heard or (name in graph.inputs and not graph.out_of(name)):
            do = "add an edge out of it, remove it, or name it in outputs"
            raise BadInput(f"{kind} {name!r} from which no path leads to an output", "a path from every node", do)
