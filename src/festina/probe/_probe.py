"""What all probes share: which steps to record, counting them, and the record as a trajectory."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

import numpy as np

from .._foundation.checks import positive, whole
from .._foundation.errors import BadInput, shown
from .._setup.trajectory import Trajectory
from ..observables.compared_points import Points, checked_points
from ._backend import Backend
from ._measure import Record, checked_names, compares_pairs

At = int | Iterable[int]


def steps_to_record(at: object) -> Container[int]:
    """Steps from 0 on: every k-th for an int k, or those listed; fractions are rounded to the nearest step."""
    if isinstance(at, (int, np.integer)) and not isinstance(at, bool):
        return range(0, sys.maxsize, whole(at, "at"))
    if isinstance(at, range) and len(at) and min(at[0], at[-1]) >= 0:
        return at
    try:
        entries: Any = () if isinstance(at, (bool, str, bytes)) else tuple(at)  # pyright: ignore[reportArgumentType]
        steps = np.rint(np.asarray(entries, dtype=float))
    except Exception:  # of lists that hold no numbers, in whatever way
        steps = np.zeros(0)
    if steps.ndim != 1 or not len(steps) or not np.isfinite(steps).all() or min(steps) < 0:
        raise BadInput(
            f"at = {shown(at)}",
            "steps to record, counted from 0, or every how many",
            "give for example at=range(0, 6000, 20), at=[0, 10, 100] or at=20",
        )
    return frozenset(int(step) for step in steps)


class Probe:
    """Counts the steps of a training loop and measures the network at those asked for.

    `trajectory` is what has been recorded up to now, also during training and after an error; `representations`
    holds the activities of each layer, if they were asked for; `steps` is the number of steps counted.
    """

    backend: Backend

    def __init__(self, inputs: object, targets: object, pairs: object, at: object, observe: object, lr: object):
        self._names = checked_names(observe, outputs=True, targets=targets is not None)
        self._points: Points = checked_points(inputs, targets, pairs, paired=compares_pairs(self._names))
        self._due = steps_to_record(at)
        self._lr = None if lr is None else positive(lr, "lr")
        self._record: Record | None = None
        self._state = "new"
        self.steps = 0

    @property
    def source(self) -> str:
        """What its trajectories are said to come from."""
        return self.backend.name

    @property
    def _time(self) -> float:
        """The present time: the steps up to now, or lr × steps, computed as `simulate` does, to the last bit."""
        return self.steps if self._lr is None else self.steps * self._lr

    def _look(self) -> None:
        """Measure the network as it is now, as the record of step `steps`."""
        raise NotImplementedError

    def _facts(self) -> Mapping[str, object]:
        raise NotImplementedError

    def _weight_records(self) -> Mapping[str, tuple[tuple[str, ...], np.ndarray]]:
        """What was recorded of the weights: {name: (axes, values)}."""
        return {}

    def _count(self) -> None:
        """One more step begins: record the state before it, if it is asked for."""
        if self.steps in self._due:
            self._look()
        self.steps += 1

    def _need_open(self) -> None:
        if self._state != "open":
            raise BadInput(
                f"a step of a {self._state} probe",
                "a probe whose `with` block is running",
                f"put the training loop inside: with festina.{self.source}(…) as probe",
            )

    def __enter__(self) -> Self:
        if self._state != "new":
            raise BadInput(
                f"a probe that is {self._state} already", "one probe for each training run", "make a new probe"
            )
        self._state = "open"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state = "closed"

    @property
    def trajectory(self) -> Trajectory:
        """What has been recorded up to now."""
        return self._recorded.trajectory(self.backend, self._facts(), lr=self._lr, extra=self._weight_records())

    @property
    def representations(self) -> dict[str, np.ndarray]:
        """The activity of every layer, (time, sample, hidden), for observe=["representation"]."""
        return self._recorded.representations

    @property
    def _recorded(self) -> Record:
        if self._record is None or not self._record.times:
            raise BadInput(
                f"nothing recorded by this {self._state} probe: {self.steps} steps were counted",
                "a training loop inside the `with` block, with a step that `at` names",
                self._how_to_count(),
            )
        return self._record

    def _how_to_count(self) -> str:
        return "call probe.step(…) first thing in every iteration of the loop"

    def __repr__(self) -> str:
        done = [] if self._record is None else self._record.times
        last = f", the last at {'step' if self._lr is None else 'time'} {done[-1]:g}" if done else ""
        pairs = len(self._points.pairs)
        return (
            f"{self.source}, {self._state}: {pairs} pair{'s' * (pairs != 1)}, {', '.join(self._names)}; "
            f"{self.steps} steps, {len(done)} record{'s' * (len(done) != 1)}{last}"
        )
