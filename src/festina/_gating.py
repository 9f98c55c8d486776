"""Gates: a number, an array over samples, a rule on the labels of a task, or a schedule of these in time.

A rule is a dict {label: value or values}; it is on (1) for the samples whose label has one of the values, off (0) for
the others; several labels must all agree. A schedule is a dict {"begins": times, "gates": gates}: each gate holds from
its time until the next one begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _checks
from ._errors import BadInput, UnknownName, shown
from ._graph import Graph
from ._noun import positive, real_array
from ._task import Task, TaskSequence

SCHEDULE = {"begins", "gates"}


def schedule(pieces: Iterable[tuple[float, Any]]) -> dict[str, Any]:
    """The gate of each (time, gate) from its time on; before the first time the gate is off.

    >>> schedule([(5.0, {"context": [0]})])["begins"]
    (0.0, 5.0)
    """
    do = 'give [(0, 1.0), (5, {"context": [0]})]'
    given = _checks.listed(pieces, "the pieces of a schedule", "(time, gate) pairs", do, empty=True)
    if any(not isinstance(piece, (list, tuple)) or len(piece) != 2 for piece in given):
        raise BadInput(f"a schedule of {shown(pieces)}", "(time, gate) pairs", do)
    for begin, _ in given:
        if isinstance(begin, bool) or np.ndim(begin) > 0 or np.asarray(begin).dtype.kind not in "iuf":
            raise BadInput(f"a schedule with a gate from {shown(begin)} on", "times that are numbers", do)
    listed = [(float(begin), gate) for begin, gate in given]
    if listed and listed[0][0] != 0:
        listed = [(0.0, 0.0), *listed]
    return {"begins": tuple(begin for begin, _ in listed), "gates": tuple(gate for _, gate in listed)}


def is_schedule(gate: Any) -> bool:
    return isinstance(gate, Mapping) and set(gate) == SCHEDULE


def of_nodes(gates: Any, drawn: Graph) -> dict[str, Any]:
    """`node_gates` checked, without those that are None."""
    given = {} if gates is None else gates
    known = [name for name, _ in drawn.sizes]
    if not isinstance(given, Mapping):
        do = 'give node_gates={"h": {"context": [0]}}, or an array over samples in place of the rule'
        raise BadInput(f"node_gates = {shown(gates)}", "{node: gate}", do)
    for name in given:
        if name not in known:
            raise UnknownName.among("node in node_gates", name, known)
    return {name: checked(gate, f"node {name!r}") for name, gate in given.items() if gate is not None}


def of_edges(gates: Any, drawn: Graph) -> tuple[Any, ...]:
    """`edge_gates` checked, one for every edge; None where there is none."""
    given = {} if gates is None else gates
    found: list[Any] = [None] * len(drawn.edges)
    if not isinstance(given, (Mapping, list, tuple)):
        do = 'give edge_gates={("x", "h"): {"context": [0]}}, or an array over samples in place of the rule'
        raise BadInput(f"edge_gates = {shown(gates)}", "{edge: gate}", do)
    for key, gate in given.items() if isinstance(given, Mapping) else enumerate(given):
        numbers = [int(key)] if isinstance(key, (int, np.integer)) else _edges_named(key, drawn)
        for k in numbers:
            if not 0 <= k < len(found):
                raise BadInput(f"a gate for edge {k}", f"edges 0 … {len(found) - 1}", "number edges as they are listed")
            found[k] = checked(gate, f"edge {drawn.edge_name(k)}")
    return tuple(found)


def _edges_named(key: Any, drawn: Graph) -> list[int]:
    named = tuple(key) if isinstance(key, (list, tuple)) else (key,)
    numbers = [k for k, edge in enumerate(drawn.edges) if edge == named]
    if not numbers:
        listed = [f"{source} → {target}" for source, target in drawn.edges]
        raise UnknownName.among("edge in edge_gates", " → ".join(map(str, named)), listed)
    return numbers


def checked(gate: Any, where: str) -> Any:
    """A gate in its plain form; `where` names its node or edge in what is refused."""
    if gate is None:
        return None
    if is_schedule(gate):
        begins = real_array(gate["begins"], f"begins of the gate of {where}", ndim=1)
        if not isinstance(gate["gates"], (list, tuple)):
            raise BadInput(
                f"gates of the schedule of {where}: {shown(gate['gates'])}",
                "a list with one gate for each time",
                "build it with festina.nets.Gated.schedule([(0, gate), (5, gate)])",
            )
        if len(begins) != len(gate["gates"]) or not len(begins) or begins[0] != 0 or np.any(np.diff(begins) <= 0):
            raise BadInput(
                f"the gate of {where} begins at {begins.tolist()}, with {len(gate['gates'])} gates",
                "one gate for each time, the first at 0, in increasing order",
                "build it with festina.nets.Gated.schedule([(0, gate), (5, gate)])",
            )
        if any(map(is_schedule, gate["gates"])):
            raise BadInput(
                f"a schedule inside the schedule of {where}",
                "numbers, arrays and rules in a schedule",
                "put all its times into one",
            )
        return {"begins": tuple(begins.tolist()), "gates": tuple(checked(part, where) for part in gate["gates"])}
    if isinstance(gate, Mapping):
        return {_label_name(name, where): _rule_values(values, where) for name, values in gate.items()}
    values = real_array(gate, f"gate of {where}", ndim=(0, 1))
    return float(values) if np.ndim(values) == 0 else values


def _label_name(name: Any, where: str) -> str:
    if not isinstance(name, str):
        raise BadInput(f"a rule on {name!r} at {where}", "names of labels", 'give {"context": [0, 1]}')
    return name


def _rule_values(values: Any, where: str) -> tuple[float, ...]:
    listed = real_array(values, f"values of a rule at {where}", ndim=(0, 1))
    return tuple(np.atleast_1d(listed).tolist())


def switch_times(gates: Sequence[Any]) -> tuple[float, ...]:
    """The times after 0 at which any of the gates changes."""
    return tuple(sorted({time for gate in gates if is_schedule(gate) for time in gate["begins"] if time > 0}))


def at_time(gate: Any, time: float) -> Any:
    """What holds of a schedule from `time` on; other gates as they are."""
    if not is_schedule(gate):
        return gate
    begun = [k for k, begin in enumerate(gate["begins"]) if begin <= time]
    return gate["gates"][begun[-1]]


def values(gate: Any, task: Task, where: str) -> Any:
    """The gate on every sample of the task; a number if it is the same on all."""
    if gate is None:
        return 1.0
    if is_schedule(gate):
        raise BadInput(
            f"the gate of {where} changes in time",
            "gates of one time",
            "take the net of one time first: net.at_time(5.0)",
        )
    if isinstance(gate, Mapping):
        return _on_labels(gate, task, where)
    if np.ndim(gate) == 0:
        return gate
    count = _samples(task, where)
    if len(gate) != count:
        raise BadInput(
            f"the gate of {where} has {len(gate)} values",
            f"one for each of the {count} samples",
            "give one number per sample, or a rule on the task's labels",
        )
    return gate


def _on_labels(rule: Mapping[str, Any], task: Task, where: str) -> np.ndarray:
    on = np.ones(_samples(task, where))
    labels = task.labels or {}
    for name, wanted in rule.items():
        if not labels:
            raise BadInput(
                f"a rule on the label {name!r} at {where}, and samples without labels",
                "labels of the samples",
                "give tasks.from_arrays(…, labels={…}); for rows of inputs take net.on(task), whose gates are arrays",
            )
        if name not in labels:
            raise UnknownName.among(f"label in the gate of {where}", name, labels)
        on = on * np.isin(labels[name], wanted)
    return on


def _samples(task: Task, where: str) -> int:
    """How many samples the task has; refused if it has none."""
    if task.samples is None:
        raise BadInput(
            f"a gate per sample at {where}, and a task without samples",
            "samples: gates select among them",
            "use tasks.from_arrays(x, y, labels=…), or gates that are numbers",
        )
    return task.samples


def one_task(task: Any) -> Task:
    """The task itself; refused if it is something else."""
    if isinstance(task, Task):
        return task
    needed = "one task: it decides the gates"
    if isinstance(task, TaskSequence):
        raise BadInput(f"a gated net on {task!r}", needed, "take one of task.tasks")
    do = "build one from samples: festina.tasks.from_arrays(x, y, labels={…})"
    raise BadInput(f"a gated net on {type(task).__name__}, which is no task", needed, do)


def refuse_absent_values(
    node_gates: Mapping[str, Any], edge_gates: Sequence[Any], drawn: Graph, tasks: Sequence[Task]
) -> None:
    """Refuse rules on values that no sample of any of the tasks has."""
    named = [(f"node {name!r}", gate) for name, gate in node_gates.items()]
    named += [(f"edge {drawn.edge_name(k)}", gate) for k, gate in enumerate(edge_gates) if gate is not None]
    parts = [(where, part) for where, gate in named for part in (gate["gates"] if is_schedule(gate) else (gate,))]
    rules = [(where, rule) for where, rule in parts if isinstance(rule, Mapping)]
    for label in dict.fromkeys(name for _, rule in rules for name in rule):
        labelled = [task.labels[label] for task in tasks if label in (task.labels or {})]
        if not labelled:
            continue  # a name that no task knows is refused where the rule is read
        occurring = np.unique(np.concatenate(labelled)).tolist()
        for where, rule in rules:
            absent = [value for value in rule.get(label, ()) if value not in occurring]
            if absent:
                listed = ", ".join(f"{value:g}" for value in occurring[:12]) + (", …" if len(occurring) > 12 else "")
                raise BadInput(
                    f"the gate of {where} is on where the label {label!r} is {absent[0]:g}, which no sample has",
                    f"values of {label!r} that occur: {listed}",
                    "take the value out of the rule, or build the net for as many contexts or domains as the task has",
                )


def on_from(gate: Any, begins: Any) -> Any:
    """The gate, off until `begins`."""
    begins = positive(begins, "begins", zero=True)
    if begins == 0:
        return gate
    if is_schedule(gate):
        later = [(time, part) for time, part in zip(gate["begins"], gate["gates"], strict=True) if time > begins]
        return schedule([(begins, at_time(gate, begins)), *later])
    return schedule([(begins, 1.0 if gate is None else gate)])


def described(gate: Any) -> str:
    """A gate in a few words."""
    if gate is None or (isinstance(gate, Mapping) and not gate):
        return "always"
    if is_schedule(gate):
        return ", ".join(f"{described(g)} from {b:g}" for b, g in zip(gate["begins"], gate["gates"], strict=True))
    if isinstance(gate, Mapping):
        parts = (f"{name} {', '.join(f'{v:g}' for v in wanted)}" for name, wanted in gate.items())
        return " and ".join(parts)
    if np.ndim(gate) == 0:
        return "off" if gate == 0 else "always" if gate == 1 else f"{gate:g}"
    on = np.flatnonzero(gate)
    kind = "" if set(np.unique(gate)) <= {0.0, 1.0} else ", real-valued"
    return f"{len(on)} of {len(gate)} samples{kind}"
