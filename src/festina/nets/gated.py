"""Gated deep linear networks: linear layers on any acyclic graph, switched per sample by gates.

With gates g on nodes v and edges q,

    h_v = g_v Σ_{q into v} g_q W_q h_{s(q)},      h_v = g_v x_v at the inputs           [jarvis2025, eq. 1]

A gate is a number, an array over samples (binary or real), a rule on the task's labels such as {"context": [0, 1]},
or a schedule of these in time. The output is the sum of what all output nodes write; where they write different
columns of y, that is one error per output node [jarvis2025, eq. 2].
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import _checks, _gating
from .._bound import activity, bind, gate_values, hidden_activity, opened_edges, written
from .._errors import BadInput, shown
from .._graph import Graph, Path, checked_weights, graph
from .._noun import is_traced, noun, positive, static, whole
from .._paths import PathMoments, path_gradient, path_moments
from .._setup import Net
from .._task import Task
from ._builders import context_pathways, pathways_as_graph, routing_graph
from ._weights import HOW, checked_rows, listed_layers


@noun
class Gated(Net):
    """A linear network on a graph of `nodes` {name: size} and `edges` [(source, target), …], with gates.

    Nodes that no edge enters are inputs, those that none leaves are outputs. `inputs` and `outputs` say which columns
    of x and y they stand for, {name: columns}; without them the columns are dealt out in the order of the nodes. An
    input or output node of size None stands for all columns that the task has. An edge listed twice is two parallel
    edges. `node_gates` are {node: gate}, `edge_gates` {(source, target) or number of the edge: gate}; what has no gate
    is always on.

    All paths descend one loss, unless `ranks` gives every edge a number: then a path (whose rank is the largest of its
    edges') descends the error that paths of lower rank have left, and those do not see it. This is the sequential
    training, by stopped gradients, of some published code.

    Examples:
        >>> net = Gated({"x": 3, "left": 4, "right": 4, "y": 2},
        ...             [("x", "left"), ("x", "right"), ("left", "y"), ("right", "y")],
        ...             node_gates={"left": {"context": [0]}, "right": {"context": [1]}})
        >>> [str(path) for path in net.paths()]
        ['x → left → y', 'x → right → y']
    """

    nodes: Any = static()
    edges: Any = static()
    node_gates: Any = None
    edge_gates: Any = None
    inputs: Any = static(default=None)
    outputs: Any = static(default=None)
    ranks: Any = static(default=None)

    def __post_init__(self):
        drawn = graph(self.nodes, self.edges, _names(self.inputs, "inputs"), _names(self.outputs, "outputs"))
        values = {
            "nodes": drawn.sizes,
            "edges": drawn.edges,
            "node_gates": _gating.of_nodes(self.node_gates, drawn),
            "edge_gates": _gating.of_edges(self.edge_gates, drawn),
            "inputs": _columns(self.inputs, drawn, drawn.inputs, "inputs"),
            "outputs": _columns(self.outputs, drawn, drawn.outputs, "outputs"),
            "ranks": _checked_ranks(self.ranks, drawn),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @functools.cached_property
    def graph(self) -> Graph:
        """The checked graph: order, paths, neighbours."""
        return graph(self.nodes, self.edges, _names(self.inputs, "inputs"), _names(self.outputs, "outputs"))

    @property
    def training(self) -> str:
        """ "joint" (all paths descend one loss) or "sequential" (by rank)."""
        return "joint" if self.ranks is None else "sequential"

    @property
    def hidden(self) -> tuple[int, ...]:
        size = self.graph.size
        return tuple(size[name] for name in self.graph.hidden)

    @property
    def switches(self) -> tuple[float, ...]:
        return _gating.switch_times((*self.node_gates.values(), *self.edge_gates))

    def at_time(self, time: float) -> Gated:
        """The net with the gates that its schedules have at `time`.

        It is a part of a run: what its rules miss on a task is not refused, another task or time may have it.
        """
        time = positive(time, "time", zero=True)
        stretch = dataclasses.replace(
            self,
            node_gates={name: _gating.at_time(gate, time) for name, gate in self.node_gates.items()},
            edge_gates=tuple(_gating.at_time(gate, time) for gate in self.edge_gates),
        )
        object.__setattr__(stretch, "_is_stretch", True)
        return stretch

    @staticmethod
    def schedule(pieces: Iterable[tuple[float, Any]]) -> dict[str, Any]:
        """A gate that changes in time, from (time, gate) pairs; off before the first of them."""
        return _gating.schedule(pieces)

    def shapes(self, d_in, d_out):
        self.columns(d_in, d_out)
        return self.graph.sized(d_in, d_out).shapes

    def columns(self, d_in: int, d_out: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """The columns of x that each input node reads, and those of y that each output node writes."""
        d_in, d_out = whole(d_in, "d_in"), whole(d_out, "d_out")
        drawn = self.graph
        reads = _dealt(self.inputs, drawn, drawn.inputs, d_in, "inputs")
        writes = _dealt(self.outputs, drawn, drawn.outputs, d_out, "outputs")
        if silent := sorted(set(range(d_out)) - {column for columns in writes.values() for column in columns}):
            raise BadInput(
                f"output column {silent[0]} of y ({len(silent)} in all) that no path reaches",
                f"every one of the {d_out} columns of y written by an output node",
                "add an output node for it, or drop the column from the task",
            )
        return reads, writes

    def fits(self, tasks):
        if self.__dict__.get("_is_stretch"):
            return
        _gating.refuse_absent_values(self.node_gates, self.edge_gates, self.graph, tasks)
        for time in (0.0, *self.switches):
            for task in tasks:
                opened_edges(self.at_time(time), task)  # refuses a task on which every path is off

    def closed_edges(self, tasks: Iterable[Task]) -> tuple[str, ...]:
        """The edges through which no sample ever opens a path: they stay as they start."""
        tasks = _checks.listed(tasks, "tasks", "a list of tasks", "give tasks=[task]", empty=True)
        for task in tasks:
            _checks.instance(task, "tasks", Task, "give tasks=[task]")
        if self.__dict__.get("_is_stretch"):
            return ()  # another time may open them
        stretches = [self.at_time(time) for time in (0.0, *self.switches)]
        opened = set().union(*(opened_edges(net, task) for net in stretches for task in tasks))
        return tuple(self.graph.edge_name(k) for k in range(len(self.edges)) if k not in opened)

    def bound(self, task):
        return bind(self, _gating.one_task(task))

    def on(self, task: Task) -> Gated:
        """The net with its gates as arrays over the samples of `task`."""
        full = gate_values(self, _gating.one_task(task))
        if task.samples is None:  # all gates are numbers, and hold for any rows
            return self
        ones = np.ones(task.samples)
        edge_gates = [full.get(k, ones) if gate is not None else None for k, gate in enumerate(self.edge_gates)]
        return dataclasses.replace(
            self,
            node_gates={name: full.get(name, ones) for name in self.node_gates},
            edge_gates=edge_gates,
        )

    def apply(self, weights, x):
        """The outputs for rows of inputs; gates must be numbers, or arrays with one value per row (see `on`)."""
        weights, x, d_out = self._checked(weights, x)
        return written(self._activity(weights, x, d_out), self.columns(x.shape[1], d_out)[1], d_out)

    def representation(self, weights, x):
        """Activity of all hidden nodes side by side, in the order of computation; gates as for `apply`."""
        return hidden_activity(self.graph, self._activity(*self._checked(weights, x)))

    def _checked(self, weights: Any, x: Any) -> tuple[Any, Any, int]:
        """Weights and rows that fit, and how many outputs they give."""
        if is_traced(weights, x):
            return weights, x, self._width_of_outputs(weights)
        weights, x = listed_layers(weights, len(self.edges)), checked_rows(x)
        if any(np.ndim(matrix) != 2 for matrix in weights):
            raise BadInput(f"weights of shapes {[np.shape(w) for w in weights]}", "matrices (out, in)", HOW)
        d_out = self._width_of_outputs(weights)
        return checked_weights(weights, self.graph, self.shapes(x.shape[1], d_out)), x, d_out

    def _activity(self, weights: Any, x: Any, d_out: int) -> dict[str, Any]:
        d_in = x.shape[1]
        nothing = Task(np.zeros((d_out, d_in)), np.eye(d_in), x=np.broadcast_to(0.0, x.shape))
        gates = gate_values(self, nothing)
        return activity(self.graph, self.columns(d_in, d_out)[0], gates, weights, jnp.asarray(x))

    def paths(self) -> tuple[Path, ...]:
        """Every path from an input to an output node."""
        return self.graph.paths()

    def moments(self, task: Task) -> PathMoments:
        """Σʸˣ(p) = ⟨g_p y xᵀ⟩ and Σˣ(j, p) = ⟨g_j x xᵀ g_p⟩ of every path and pair of paths. [jarvis2025, eq. 4]"""
        return path_moments(self, _gating.one_task(task))

    def gradient(self, task: Task, weights: Iterable[Any]) -> tuple[Any, ...]:
        """∂loss/∂W of every edge, summed over paths. [jarvis2025, eqs. 3 and 8]"""
        shapes = self.shapes(_gating.one_task(task).d_in, task.d_out)
        return path_gradient(self, task, checked_weights(weights, self.graph, shapes))

    def _width_of_outputs(self, weights: Any) -> int:
        drawn = self.graph
        if any(drawn.size[name] is None for name in drawn.outputs):
            return next(weights[k].shape[0] for k, (_, end) in enumerate(self.edges) if drawn.size[end] is None)
        return 1 + max(map(max, _dealt(self.outputs, drawn, drawn.outputs, sys.maxsize, "outputs").values()))

    @classmethod
    def pathways(cls, pathways: Iterable[Any], *, training: str = "joint") -> Gated:
        """Chains of layers side by side, one per pathway. Each is an array (its gate over samples), or a dict of

        - `on`: the gate of the pathway (default: always on);
        - `width`: its hidden width, or a tuple of them (default 32);
        - `sees`, `writes`: numbers of the columns of x that it reads, of y that it writes (default: all);
        - `begins`: the time at which it is switched on (default 0);
        - `rank`: its place in sequential training (default: 0 for the first pathway, 1 for all others);
        - `name`.

        With training="sequential" a pathway descends the error that those of lower rank leave.
        """
        return cls(**pathways_as_graph(pathways, training))

    @classmethod
    def contexts(
        cls,
        subsets: Any = 2,
        *,
        contexts: int = 3,
        items: int = 8,
        width: Any = 100,
        common: bool = True,
        sees_context: bool = False,
        training: str = "joint",
        begins: float = 0.0,
    ) -> Gated:
        """A pathway that is always on (`common`), and one for each subset of contexts in which it is on.

        `subsets` is a size, several sizes (all subsets of these sizes), or a list of subsets such as [(0, 1), (1, 2)].
        The common pathway sees all inputs; the others see the items alone, unless `sees_context`. `width` is one for
        all, or (common, others); `begins` switches the others on later. For `tasks.contextual(items, contexts)`.
        """
        listed = context_pathways(subsets, contexts, items, width, common, sees_context, begins)
        return cls.pathways(listed, training=training)

    @classmethod
    def routing(
        cls, inputs: int = 7, outputs: int = 7, trained: int = 4, *, items: int = 4, features: int = 7, hidden: int = 64
    ) -> Gated:
        """An encoder for each input domain, a decoder for each output domain, and a hidden layer that all share.

        For `tasks.routing(domains, trained)`: gates follow its labels `source` and `target`. The net has a path for
        every pair of domains. Which pairs are trained is decided by the samples of the task alone: `trained` is only
        checked against `outputs`, and changes nothing in the net.
        """
        return cls(**routing_graph(inputs, outputs, trained, items, features, hidden))

    def draw(self, task: Task | None = None, ax: Any = None) -> Any:
        """A picture of the graph with its gates; returns the matplotlib Axes. With a task, gates show its samples."""
        from .._draw import draw_graph

        return draw_graph(self, task if task is None else _gating.one_task(task), ax)

    def __repr__(self) -> str:
        nodes = ", ".join(f"{name} {'·' if size is None else size}" for name, size in self.nodes)
        edges = ", ".join(f"{source}→{target}" for source, target in self.edges)
        gates = [f"{name}: {_gating.described(gate)}" for name, gate in self.node_gates.items()]
        gates += [
            f"{self.graph.edge_name(k)}: {_gating.described(gate)}"
            for k, gate in enumerate(self.edge_gates)
            if gate is not None
        ]
        shown = "; ".join(gates[:8]) + (f"; … {len(gates) - 8} more" if len(gates) > 8 else "")
        parts = [f"nodes {nodes}", f"edges {edges if len(edges) < 300 else edges[:297] + '…'}"]
        parts += [f"gates {shown}"] if gates else []
        parts += [] if self.ranks is None else [f"sequential training, ranks {self.ranks}"]
        return "Gated(\n    " + ",\n    ".join(parts) + ")"


def _names(columns: Any, argument: str) -> tuple[str, ...] | None:
    """The names of the nodes that `inputs` or `outputs` list."""
    if columns is None:
        return None
    pairs = columns.items() if isinstance(columns, Mapping) else columns
    try:
        return tuple(name for name, _ in pairs)
    except (TypeError, ValueError):
        raise BadInput(
            f"{argument} = {shown(columns)}", "{node: columns}", f'give {argument}={{"x": [0, 1, 2]}}'
        ) from None


def _columns(stated: Any, drawn: Graph, names: tuple[str, ...], argument: str) -> Any:
    """`inputs` or `outputs` as a tuple of (node, columns), with columns of the right number."""
    if stated is None:
        return None
    pairs = stated.items() if isinstance(stated, Mapping) else stated
    checked = []
    for name, columns in pairs:
        if columns is not None and (isinstance(columns, str) or not hasattr(columns, "__iter__")):
            raise BadInput(
                f"{argument} of node {name!r}: {shown(columns)}", "numbers of columns", "give range(8), or None"
            )
        listed = None if columns is None else tuple(whole(c, f"{argument} of node {name!r}", least=0) for c in columns)
        size = drawn.size[name]
        if listed is not None and size is None:
            raise BadInput(
                f"node {name!r} of size None with columns of its own",
                "a size for it, or all columns",
                f"give nodes={{{name!r}: {len(listed)}, …}}",
            )
        if listed is not None and (len(listed) != size or len(set(listed)) != len(listed)):
            raise BadInput(
                f"{argument} of node {name!r}: {len(set(listed))} different columns",
                f"as many as the node has units, {size}",
                "change the size of the node, or its columns",
            )
        checked.append((name, listed))
    return tuple(checked)


def _dealt(stated: Any, drawn: Graph, names: tuple[str, ...], count: int, argument: str) -> dict[str, Any]:
    """The columns of every input or output node among `count` columns."""
    given, used, dealt = dict(stated or ()), 0, {}
    for name in names:
        size, columns = drawn.size[name], given.get(name)
        if columns is None:
            first = 0 if size is None else used
            columns = tuple(range(first, first + (count if size is None else size)))
            used += size or 0
        if max(columns) >= count:
            kind = "x" if argument == "inputs" else "y"
            raise BadInput(
                f"{argument[:-1]} node {name!r} of {len(columns)} units on columns {min(columns)} … {max(columns)}",
                f"columns 0 … {count - 1} of {kind}: the task has {count}",
                f"change the size of the node, or say which columns it has with {argument}={{{name!r}: [0, 1, …]}}",
            )
        dealt[name] = columns
    # Inputs without columns of their own, and none that has them all: the sizes must add up.
    dealt_by_size = not any(given.values()) and all(drawn.size[name] is not None for name in names)
    if argument == "inputs" and dealt_by_size and used < count:
        raise BadInput(
            f"input nodes {', '.join(map(repr, names))} of {used} units in all, and {count} columns of x",
            "as many units as columns",
            "change the sizes, or say which columns each has with inputs={name: columns}",
        )
    return dealt


def _checked_ranks(ranks: Any, drawn: Graph) -> tuple[int, ...] | None:
    if ranks is None:
        return None
    entries = _checks.listed(ranks, "ranks", "a whole number for every edge", "give ranks=[0, 1, …]", empty=True)
    listed = tuple(whole(rank, "ranks", least=0) for rank in entries)
    if len(listed) != len(drawn.edges):
        raise BadInput(f"{len(listed)} ranks", f"one for each of the {len(drawn.edges)} edges", "give ranks=[0, 1, …]")
    return None if len(set(listed)) == 1 else listed
