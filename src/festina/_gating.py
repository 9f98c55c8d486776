"""Gates: a number, an array over samples, a rule on the labels of a task, or a schedule of these in time.

A rule is a dict {label: value or values}; it is on (1) for the samples whose label has one of the values, off (0) for
the others; several labels must all agree. A schedule is a dict {"begins": times, "gates": gates}: each gate holds from
its time until the next one begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._errors import BadInput, UnknownName
from ._noun import positive, real_array
from ._task import Task

SCHEDULE = {"begins", "gates"}


def schedule(pieces: Sequence[tuple[float, Any]]) -> dict[str, Any]:
    """The gate of each (time, gate) from its time on; before the first time the gate is off.

    >>> schedule([(5.0, {"context": [0]})])["begins"]
    (0.0, 5.0)
    """
    listed: list[Any] = [tuple(piece) if isinstance(piece, (list, tuple)) else () for piece in pieces]
    if any(len(piece) != 2 for piece in listed):
        raise BadInput(f"a schedule of {pieces!r}", "(time, gate) pairs", 'give [(0, 1.0), (5, {"context": [0]})]')
    if listed and listed[0][0] != 0:
        listed = [(0.0, 0.0), *listed]
    return {"begins": tuple(float(begin) for begin, _ in listed), "gates": tuple(gate for _, gate in listed)}


def is_schedule(gate: Any) -> bool:
    return isinstance(gate, Mapping) and set(gate) == SCHEDULE


def checked(gate: Any, where: str) -> Any:
    """A gate in its plain form; `where` names its node or edge in what is refused."""
    if gate is None:
        return None
    if is_schedule(gate):
        begins = real_array(list(gate["begins"]), f"begins of the gate of {where}", ndim=1)
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
