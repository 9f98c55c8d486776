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
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp
import numpy as np

from ..._foundation import checks
from ..._foundation.arrays import Weights
from ..._foundation.checks import is_traced, positive, whole
from ..._foundation.errors import BadInput
from ..._foundation.nouns import noun, settle, static
from ...tasks.base import Task
from .._weights import HOW, checked_rows, listed_layers
from ..base import Activity, LinearMap, Net, Outputs, Rows, Shapes
from .builders import context_pathways, pathways_as_graph, routing_graph
from .columns import dealt_columns, stated_columns, stated_names
from .forward import activity, hidden_activity, written
from .gate_arguments import edge_text, gates_of_edges, gates_of_nodes, node_text, one_task, refuse_absent_values
from .gates import Gate, Plain, read_gate, schedule
from .graph import Graph, Path, checked_graph, checked_weights
from .lifted import Lifted, lift
from .paths import PathMoments, path_gradient, path_moments
from .plan import gate_values, opened_edges

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    has_paths: ClassVar[bool] = True

    def __post_init__(self):
        graph = self._checked_graph()
        settle(
            self,
            nodes=graph.sizes,
            edges=graph.edges,
            node_gates=gates_of_nodes(self.node_gates, graph),
            edge_gates=gates_of_edges(self.edge_gates, graph),
            inputs=stated_columns(self.inputs, graph, "inputs"),
            outputs=stated_columns(self.outputs, graph, "outputs"),
            ranks=_checked_ranks(self.ranks, graph),
        )

    @functools.cached_property
    def graph(self) -> Graph:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The checked graph: order, paths, neighbours."""
        return self._checked_graph()

    def _checked_graph(self) -> Graph:
        names = stated_names(self.inputs, "inputs"), stated_names(self.outputs, "outputs")
        return checked_graph(self.nodes, self.edges, *names)

    @functools.cached_property
    def gates_at(self) -> dict[str | int, Gate]:
        """The gates, by the name of their node or the number of their edge; what has no gate is left out."""
        at_nodes = {name: read_gate(gate, self.where(name)) for name, gate in self.node_gates.items()}
        at_edges = {k: read_gate(gate, self.where(k)) for k, gate in enumerate(self.edge_gates) if gate is not None}
        return at_nodes | at_edges

    def where(self, place: str | int) -> str:
        """The name of a node or the number of an edge, as messages name it."""
        return edge_text(self.graph, place) if isinstance(place, int) else node_text(place)

    @classmethod
    def example(cls) -> Gated:
        return cls.pathways([{"width": 4}, {"on": 0.5, "width": 3}])

    @property
    def training(self) -> str:
        """ "joint" (all paths descend one loss) or "sequential" (by rank)."""
        return "joint" if self.ranks is None else "sequential"

    @property
    def hidden(self) -> tuple[int, ...]:
        size = self.graph.size
        return tuple(size[name] for name in self.graph.hidden)

    @property
    def depth(self) -> int:
        return self.graph.depth

    @property
    def path_names(self) -> tuple[str, ...] | None:
        return self.graph.path_names

    @property
    def switch_times(self) -> tuple[float, ...]:
        return tuple(sorted({time for gate in self.gates_at.values() for time in gate.switch_times}))

    @property
    def switches(self) -> tuple[float, ...]:
        """The same as `switch_times`."""
        return self.switch_times

    def at_time(self, time: float) -> Gated:
        """The net with the gates that its schedules have at `time`."""
        time = positive(time, "time", zero=True)
        return self._with_gates({place: gate.at_time(time).plain for place, gate in self.gates_at.items()})

    def _with_gates(self, plain: Mapping[str | int, Plain]) -> Gated:
        """The same net with these gates, by place."""
        return dataclasses.replace(
            self,
            node_gates={name: plain[name] for name in self.node_gates},
            edge_gates=tuple(plain.get(k) for k in range(len(self.edges))),
        )

    @staticmethod
    def schedule(pieces: Iterable[tuple[float, Plain]]) -> dict[str, Any]:
        """A gate that changes in time, from (time, gate) pairs; off before the first of them."""
        return schedule(pieces)

    def shapes(self, d_in: int, d_out: int) -> Shapes:
        self.columns(d_in, d_out)
        return self.graph.sized(d_in, d_out).shapes

    def columns(self, d_in: int, d_out: int) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
        """The columns of x that each input node reads, and those of y that each output node writes."""
        d_in, d_out = whole(d_in, "d_in"), whole(d_out, "d_out")
        reads = dealt_columns(self.inputs, self.graph, d_in, "inputs")
        writes = dealt_columns(self.outputs, self.graph, d_out, "outputs")
        if silent := sorted(set(range(d_out)) - {column for columns in writes.values() for column in columns}):
            raise BadInput(
                f"output column {silent[0]} of y ({len(silent)} in all) that no path reaches",
                f"every one of the {d_out} columns of y written by an output node",
                "add an output node for it, or drop the column from the task",
            )
        return reads, writes

    def refuse_unfit(self, tasks: Sequence[Task]) -> None:
        refuse_absent_values([(self.where(place), gate) for place, gate in self.gates_at.items()], tasks)
        for time in (0.0, *self.switch_times):
            for task in tasks:
                opened_edges(self.at_time(time), task)  # refuses a task on which every path is off

    def closed_edges(self, tasks: Iterable[Task]) -> tuple[str, ...]:
        """The edges through which no sample ever opens a path: their weights never change."""
        tasks = checks.listed(tasks, "tasks", "a list of tasks", "give tasks=[task]", empty=True)
        for task in tasks:
            checks.instance(task, "tasks", Task, "give tasks=[task]")
        nets = [self.at_time(time) for time in (0.0, *self.switch_times)]
        opened = set().union(*(opened_edges(net, task) for net in nets for task in tasks))
        return tuple(self.graph.edge_name(k) for k in range(len(self.edges)) if k not in opened)

    def lifted(self, task: Task) -> tuple[Lifted, Task]:
        return lift(self, one_task(task))

    def on(self, task: Task) -> Gated:
        """The net with its gates as arrays over the samples of `task`."""
        values = gate_values(self, one_task(task))
        if task.samples is None:  # all gates are numbers, and hold for any rows
            return self
        return self._with_gates({place: values.get(place, np.ones(task.samples)) for place in self.gates_at})

    def apply(self, weights: Weights, x: Rows) -> Outputs:
        """The outputs for rows of inputs; gates must be numbers, or arrays with one value per row (see `on`)."""
        weights, x, d_out = self._checked(weights, x)
        return written(self._activity(weights, x, d_out), self.columns(x.shape[1], d_out)[1], d_out)

    def representation(self, weights: Weights, x: Rows) -> Activity | None:
        """Activity of all hidden nodes side by side, in the order of computation; gates as for `apply`."""
        return hidden_activity(self.graph, self._activity(*self._checked(weights, x)))

    def _checked(self, weights: Weights, x: Rows) -> tuple[Weights, Rows, int]:
        """Weights and rows that fit, and how many outputs they give."""
        if is_traced(weights, x):
            return weights, x, self._width_of_outputs(weights)
        weights, x = listed_layers(weights, len(self.edges)), checked_rows(x)
        if any(np.ndim(matrix) != 2 for matrix in weights):
            raise BadInput(f"weights of shapes {[np.shape(w) for w in weights]}", "matrices (out, in)", HOW)
        d_out = self._width_of_outputs(weights)
        return checked_weights(weights, self.graph, self.shapes(x.shape[1], d_out)), x, d_out

    def _activity(self, weights: Weights, x: Rows, d_out: int) -> dict[str, Activity]:
        d_in = x.shape[1]
        nothing = Task(np.zeros((d_out, d_in)), np.eye(d_in), x=np.broadcast_to(0.0, x.shape))
        gates = gate_values(self, nothing)
        return activity(self.graph, self.columns(d_in, d_out)[0], gates, weights, jnp.asarray(x))

    def paths(self) -> tuple[Path, ...]:
        """Every path from an input to an output node."""
        return self.graph.paths()

    def moments(self, task: Task) -> PathMoments:
        """Σʸˣ(p) = ⟨g_p y xᵀ⟩ and Σˣ(j, p) = ⟨g_j x xᵀ g_p⟩ of every path and pair of paths. [jarvis2025, eq. 4]"""
        return path_moments(self, one_task(task))

    def gradient(self, task: Task, weights: Iterable[LinearMap]) -> tuple[LinearMap, ...]:
        """∂loss/∂W of every edge, summed over paths. [jarvis2025, eqs. 3 and 8]"""
        shapes = self.shapes(one_task(task).d_in, task.d_out)
        return path_gradient(self, task, checked_weights(weights, self.graph, shapes))

    def _width_of_outputs(self, weights: Weights) -> int:
        size = self.graph.size
        if any(size[name] is None for name in self.graph.outputs):
            return next(weights[k].shape[0] for k, (_, end) in enumerate(self.edges) if size[end] is None)
        return 1 + max(map(max, dealt_columns(self.outputs, self.graph, sys.maxsize, "outputs").values()))

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
        pathways = context_pathways(subsets, contexts, items, width, common, sees_context, begins)
        return cls.pathways(pathways, training=training)

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

    def draw(self, task: Task | None = None, ax: Axes | None = None) -> Figure:
        """A figure of the graph with its gates, on `ax` if one is given. With a task, gates show its samples."""
        from .picture import draw_graph

        return draw_graph(self, task if task is None else one_task(task), ax)

    def __repr__(self) -> str:
        nodes = ", ".join(f"{name} {'·' if size is None else size}" for name, size in self.nodes)
        edges = ", ".join(f"{source}→{target}" for source, target in self.edges)
        gates = [
            f"{self.graph.edge_name(place) if isinstance(place, int) else place}: {gate}"
            for place, gate in self.gates_at.items()
        ]
        shown = "; ".join(gates[:8]) + (f"; … {len(gates) - 8} more" if len(gates) > 8 else "")
        parts = [f"nodes {nodes}", f"edges {edges if len(edges) < 300 else edges[:297] + '…'}"]
        parts += [f"gates {shown}"] if gates else []
        parts += [] if self.ranks is None else [f"sequential training, ranks {self.ranks}"]
        return "Gated(\n    " + ",\n    ".join(parts) + ")"


def _checked_ranks(ranks: Any, graph: Graph) -> tuple[int, ...] | None:
    if ranks is None:
        return None
    entries = checks.listed(ranks, "ranks", "a whole number for every edge", "give ranks=[0, 1, …]", empty=True)
    numbers = tuple(whole(rank, "ranks", least=0) for rank in entries)
    if len(numbers) != len(graph.edges):
        raise BadInput(f"{len(numbers)} ranks", f"one for each of the {len(graph.edges)} edges", "give ranks=[0, 1, …]")
    return None if len(set(numbers)) == 1 else numbers
