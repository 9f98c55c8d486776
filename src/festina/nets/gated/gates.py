"""The kinds of gates: one class each, with one interface.

A user writes a gate as plain Python, which is also how a net keeps it and how it is stored in JSON:

- `None` is `Always`: on for all samples;
- a number is a `Constant`: the same for all samples;
- an array is `PerSample`: any real number for each sample of the task;
- a dict {label: value or values} is `OnLabels`: 1 for the samples whose label has one of the values, 0 for the others;
  several labels must all agree;
- a dict {"begins": times, "gates": gates} is a `Schedule`: each gate holds from its time until the next one begins.

`read_gate` turns what is written into an object of one of these classes, and `Gate.plain` is the way back. A new kind
of gate is one class: it derives from `Gate`, says in `reads` which plain form is its own, and is listed in `KINDS`. The
order of `KINDS` counts: the first kind that reads what is written takes it, so a narrow kind stands before a broad one.
A kind that reads labels names in `labels` all values that it mentions: those that no sample has are refused.

CONTRIBUTING.md ("Where to add what") lists the docs and tests that know new members.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from ..._foundation import checks
from ..._foundation.arrays import AnyArray
from ..._foundation.checks import is_traced, positive, real_array
from ..._foundation.errors import BadInput, UnknownName, shown
from ...tasks.base import Task

Plain = Any  # a gate as a user writes it and as a net keeps it: None, a number, an array or a dict
DO_SCHEDULE = "build it with festina.nets.Gated.schedule([(0, gate), (5, gate)])"


class Gate(abc.ABC):
    """One gate, checked; `where` names its node or edge in what is refused."""

    @classmethod
    @abc.abstractmethod
    def reads(cls, written: object) -> bool:
        """Whether `written` is the plain form of this kind; asked in the order of `KINDS`."""

    @classmethod
    @abc.abstractmethod
    def parse(cls, written: Plain, where: str) -> Gate:
        """The gate that is written, or a refusal."""

    @property
    @abc.abstractmethod
    def plain(self) -> Plain:
        """The plain form, of tuples, floats and arrays."""

    @abc.abstractmethod
    def values(self, task: Task, where: str) -> float | Float[AnyArray, " sample"]:
        """The gate on every sample of the task; a number if it is the same on all."""

    @abc.abstractmethod
    def __str__(self) -> str:
        """The gate in a few words."""

    @property
    def labels(self) -> Mapping[str, tuple[float, ...]]:
        """The values of labels that the gate mentions, whether it is on or off there; for gates that read labels.

        A setup is refused if no sample has one of them.
        """
        return {}

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers that are written in the gate as its values."""
        return ()

    @property
    def pieces(self) -> tuple[tuple[float, Gate], ...]:
        """(time, gate that holds from then on), the first at 0."""
        return ((0.0, self),)

    @property
    def switch_times(self) -> tuple[float, ...]:
        """The times after 0 at which the gate changes."""
        return tuple(time for time, _ in self.pieces if time > 0)

    def at_time(self, time: float) -> Gate:
        """The gate that holds from `time` on, until the next switch."""
        return [gate for begin, gate in self.pieces if begin <= time][-1]

    def delayed(self, begins: float) -> Gate:
        """The gate, off until `begins`."""
        begins = positive(begins, "begins", zero=True)
        if begins == 0:
            return self
        later = tuple((time, gate) for time, gate in self.pieces if time > begins)
        return Schedule(((0.0, Constant(0.0)), (begins, self.at_time(begins)), *later))


@dataclasses.dataclass(frozen=True)
class Always(Gate):
    """No gate: on for all samples."""

    @classmethod
    def reads(cls, written: object) -> bool:
        return written is None

    @classmethod
    def parse(cls, written: Plain, where: str) -> Gate:
        return cls()

    @property
    def plain(self) -> Plain:
        return None

    def values(self, task: Task, where: str) -> float:
        return 1.0

    def delayed(self, begins: float) -> Gate:
        late = Constant(1.0).delayed(begins)
        return late if late.switch_times else self

    def __str__(self) -> str:
        return "always"


@dataclasses.dataclass(frozen=True)
class Schedule(Gate):
    """Gates one after another; there is no schedule inside a schedule."""

    parts: tuple[tuple[float, Gate], ...]

    @classmethod
    def reads(cls, written: object) -> bool:
        return isinstance(written, Mapping) and set(written) == {"begins", "gates"}

    @classmethod
    def parse(cls, written: Plain, where: str) -> Gate:
        begins = real_array(written["begins"], f"begins of the gate of {where}", ndim=1)
        gates = written["gates"]
        if not isinstance(gates, (list, tuple)):
            raise BadInput(
                f"gates of the schedule of {where}: {shown(gates)}", "a list with one gate for each time", DO_SCHEDULE
            )
        if len(begins) != len(gates) or not len(begins) or begins[0] != 0 or np.any(np.diff(begins) <= 0):
            raise BadInput(
                f"the gate of {where} begins at {begins.tolist()}, with {len(gates)} gates",
                "one gate for each time, the first at 0, in increasing order",
                DO_SCHEDULE,
            )
        if any(map(cls.reads, gates)):
            raise BadInput(
                f"a schedule inside the schedule of {where}",
                "numbers, arrays and rules in a schedule",
                "put all its times into one",
            )
        return cls(tuple(zip(begins.tolist(), (read_gate(gate, where) for gate in gates), strict=True)))

    @property
    def plain(self) -> Plain:
        return {"begins": tuple(begin for begin, _ in self.parts), "gates": tuple(gate.plain for _, gate in self.parts)}

    @property
    def pieces(self) -> tuple[tuple[float, Gate], ...]:
        return self.parts

    def values(self, task: Task, where: str) -> float:
        raise BadInput(
            f"the gate of {where} changes in time",
            "gates of one time",
            "take the net of one time first: net.at_time(5.0)",
        )

    def __str__(self) -> str:
        return ", ".join(f"{gate} from {begin:g}" for begin, gate in self.parts)


@dataclasses.dataclass(frozen=True)
class OnLabels(Gate):
    """A rule on the labels of a task: 1 where every label named has one of its values, 0 elsewhere."""

    values_by_label: Mapping[str, tuple[float, ...]]

    @classmethod
    def reads(cls, written: object) -> bool:
        return isinstance(written, Mapping)

    @classmethod
    def parse(cls, written: Plain, where: str) -> Gate:
        return cls({_label_name(name, where): _label_values(values, where) for name, values in written.items()})

    @property
    def plain(self) -> Plain:
        return dict(self.values_by_label)

    @property
    def labels(self) -> Mapping[str, tuple[float, ...]]:
        return self.values_by_label

    def values(self, task: Task, where: str) -> Float[np.ndarray, " sample"]:
        on = np.ones(_sample_count(task, where))
        known = task.labels or {}
        for name, values in self.values_by_label.items():
            if not known:
                raise BadInput(
                    f"a rule on the label {name!r} at {where}, and samples without labels",
                    "labels of the samples",
                    "give tasks.from_arrays(…, labels={…}); for rows of inputs take net.on(task), whose gates are "
                    "arrays",
                )
            if name not in known:
                raise UnknownName.among(f"label in the gate of {where}", name, known)
            on = on * np.isin(known[name], values)
        return on

    def __str__(self) -> str:
        named = self.values_by_label.items()
        parts = (f"{name} {', '.join(f'{value:g}' for value in values)}" for name, values in named)
        return " and ".join(parts) or "always"


@dataclasses.dataclass(frozen=True)
class Constant(Gate):
    """The same number for all samples; 0 takes a part out of the net, and training leaves it alone."""

    number: float

    @classmethod
    def reads(cls, written: object) -> bool:
        return not isinstance(written, (list, tuple)) and np.ndim(written) == 0  # pyright: ignore[reportArgumentType]

    @classmethod
    def parse(cls, written: Plain, where: str) -> Gate:
        number = real_array(written, f"gate of {where}", ndim=(0, 1))
        return cls(number if is_traced(number) else float(number))

    @property
    def plain(self) -> Plain:
        return self.number

    @property
    def numbers(self) -> tuple[float, ...]:
        return (self.number,)

    def values(self, task: Task, where: str) -> float:
        return self.number

    def __str__(self) -> str:
        return "off" if self.number == 0 else "always" if self.number == 1 else f"{self.number:g}"


@dataclasses.dataclass(frozen=True, eq=False)
class PerSample(Gate):
    """One number for each sample of the task, in their order."""

    array: Float[AnyArray, " sample"]

    @classmethod
    def reads(cls, written: object) -> bool:
        return True

    @classmethod
    def parse(cls, written: Plain, where: str) -> Gate:
        return cls(real_array(written, f"gate of {where}", ndim=(0, 1)))

    @property
    def plain(self) -> Plain:
        return self.array

    @property
    def numbers(self) -> tuple[float, ...]:
        return tuple(np.asarray(self.array).tolist())

    def values(self, task: Task, where: str) -> Float[AnyArray, " sample"]:
        count = _sample_count(task, where)
        if len(self.array) != count:
            raise BadInput(
                f"the gate of {where} has {len(self.array)} values",
                f"one for each of the {count} samples",
                "give one number per sample, or a rule on the task's labels",
            )
        return self.array

    def __str__(self) -> str:
        kind = "" if set(np.unique(self.array)) <= {0.0, 1.0} else ", real-valued"
        return f"{np.count_nonzero(self.array)} of {len(self.array)} samples{kind}"


KINDS: tuple[type[Gate], ...] = (Always, Schedule, OnLabels, Constant, PerSample)


def read_gate(written: Plain, where: str) -> Gate:
    """The gate that a user has written for the node or edge `where`, or that a net or JSON has kept."""
    return next(kind for kind in KINDS if kind.reads(written)).parse(written, where)


def schedule(pieces: Iterable[tuple[float, Plain]]) -> dict[str, Any]:
    """The plain form of a gate that changes in time, from (time, gate) pairs; off before the first of them.

    >>> schedule([(5.0, {"context": [0]})])["begins"]
    (0.0, 5.0)
    """
    do = 'give [(0, 1.0), (5, {"context": [0]})]'
    given = checks.listed(pieces, "the pieces of a schedule", "(time, gate) pairs", do, empty=True)
    if any(not isinstance(piece, (list, tuple)) or len(piece) != 2 for piece in given):
        raise BadInput(f"a schedule of {shown(pieces)}", "(time, gate) pairs", do)
    for begin, _ in given:
        if isinstance(begin, bool) or np.ndim(begin) > 0 or np.asarray(begin).dtype.kind not in "iuf":
            raise BadInput(f"a schedule with a gate from {shown(begin)} on", "times that are numbers", do)
    pairs = [(float(begin), gate) for begin, gate in given]
    if pairs and pairs[0][0] != 0:
        pairs = [(0.0, 0.0), *pairs]
    return {"begins": tuple(begin for begin, _ in pairs), "gates": tuple(gate for _, gate in pairs)}


def _label_name(name: object, where: str) -> str:
    if not isinstance(name, str):
        raise BadInput(f"a rule on {name!r} at {where}", "names of labels", 'give {"context": [0, 1]}')
    return name


def _label_values(values: object, where: str) -> tuple[float, ...]:
    numbers = real_array(values, f"values of a rule at {where}", ndim=(0, 1))
    return tuple(np.atleast_1d(numbers).tolist())


def _sample_count(task: Task, where: str) -> int:
    """How many samples the task has; refused if it has none."""
    if task.samples is None:
        raise BadInput(
            f"a gate per sample at {where}, and a task without samples",
            "samples: gates select among them",
            "use tasks.from_arrays(x, y, labels=…), or gates that are numbers",
        )
    return task.samples
