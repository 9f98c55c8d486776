"""The arguments `node_gates` and `edge_gates` of a gated net, and what its rules read of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..._foundation.errors import BadInput, UnknownName, shown
from ...tasks.base import Task, TaskSequence
from .gates import Gate, Plain, read_gate
from .graph import Graph


def gates_of_nodes(written: object, graph: Graph) -> dict[str, Plain]:
    """`node_gates` checked and in plain form, without those that are None."""
    gates = {} if written is None else written
    known = [name for name, _ in graph.sizes]
    if not isinstance(gates, Mapping):
        do = 'give node_gates={"h": {"context": [0]}}, or an array over samples in place of the rule'
        raise BadInput(f"node_gates = {shown(written)}", "{node: gate}", do)
    for name in gates:
        if name not in known:
            raise UnknownName.among("node in node_gates", name, known)
    return {name: read_gate(gate, node_text(name)).plain for name, gate in gates.items() if gate is not None}


def gates_of_edges(written: object, graph: Graph) -> tuple[Plain, ...]:
    """`edge_gates` checked and in plain form, one for every edge; None where there is none."""
    gates = {} if written is None else written
    plain: list[Plain] = [None] * len(graph.edges)
    if not isinstance(gates, (Mapping, list, tuple)):
        do = 'give edge_gates={("x", "h"): {"context": [0]}}, or an array over samples in place of the rule'
        raise BadInput(f"edge_gates = {shown(written)}", "{edge: gate}", do)
    for key, gate in gates.items() if isinstance(gates, Mapping) else enumerate(gates):
        for k in [int(key)] if isinstance(key, (int, np.integer)) else _edges_named(key, graph):
            if not 0 <= k < len(plain):
                raise BadInput(f"a gate for edge {k}", f"edges 0 … {len(plain) - 1}", "number edges as they are listed")
            plain[k] = read_gate(gate, edge_text(graph, k)).plain
    return tuple(plain)


def _edges_named(key: object, graph: Graph) -> list[int]:
    ends = tuple(key) if isinstance(key, (list, tuple)) else (key,)
    numbers = [k for k, edge in enumerate(graph.edges) if edge == ends]
    if not numbers:
        known = [f"{source} → {target}" for source, target in graph.edges]
        raise UnknownName.among("edge in edge_gates", " → ".join(map(str, ends)), known)
    return numbers


def node_text(name: str) -> str:
    """A node as messages name it."""
    return f"node {name!r}"


def edge_text(graph: Graph, number: int) -> str:
    """An edge as messages name it."""
    return f"edge {graph.edge_name(number)}"


def one_task(task: object) -> Task:
    """The task itself; refused if it is something else."""
    if isinstance(task, Task):
        return task
    needed = "one task: it decides the gates"
    if isinstance(task, TaskSequence):
        raise BadInput(f"a gated net on {task!r}", needed, "take one of task.tasks")
    do = "build one from samples: festina.tasks.from_arrays(x, y, labels={…})"
    raise BadInput(f"a gated net on {type(task).__name__}, which is no task", needed, do)


def refuse_absent_values(gates: Iterable[tuple[str, Gate]], tasks: Sequence[Task]) -> None:
    """Refuse rules on values of labels that no sample of any of the tasks has; gates come as (where, gate)."""
    rules = [(where, piece.labels) for where, gate in gates for _, piece in gate.pieces]
    for label in dict.fromkeys(name for _, labels in rules for name in labels):
        labelled = [task.labels[label] for task in tasks if label in (task.labels or {})]
        if not labelled:
            continue  # a name that no task knows is refused where the rule is read
        occurring = np.unique(np.concatenate(labelled)).tolist()
        for where, labels in rules:
            absent = [value for value in labels.get(label, ()) if value not in occurring]
            if absent:
                values = ", ".join(f"{value:g}" for value in occurring[:12]) + (", …" if len(occurring) > 12 else "")
                raise BadInput(
                    f"the gate of {where} reads whether the label {label!r} is {absent[0]:g}, which no sample has",
                    f"values of {label!r} that occur: {values}",
                    "take the value out of the rule, or build the net for as many contexts or domains as the task has",
                )
