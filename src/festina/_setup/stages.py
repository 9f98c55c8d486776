"""Runs in stages: a setup for each task of a sequence, and for each stretch of time in which the net stays the same."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Bool, Float

from .._foundation.errors import BadInput
from ..tasks.base import Task, TaskSequence
from .setup import Setup


@dataclasses.dataclass(frozen=True)
class Stage:
    """A part of a run with one task and one net: its setup, with times that count from its start.

    `begins` is its start in the whole run, `number` that of its task. `on_grid` says which of its times belong to the
    grid of the whole run.
    """

    setup: Setup
    begins: float
    on_grid: Bool[np.ndarray, " time"]
    number: int

    @property
    def hands_on(self) -> bool:
        """Whether a later stage starts from this one's final weights; its last time is then not a grid time."""
        return not self.on_grid.all()


def stages(setup: Setup) -> tuple[Stage, ...]:
    """All stages until the grid ends; all but the last also have the time at which the next one begins."""
    task_starts = _task_starts(setup)
    switch_times = np.asarray([0.0, *setup.net.switch_times])
    net_starts = np.asarray(setup.rule.on_clock(switch_times))
    starts = np.unique([*task_starts, *net_starts])
    times = np.asarray(setup.times)
    parts = []
    for k, start in enumerate(starts):
        number = int(np.searchsorted(task_starts, start, side="right")) - 1
        net = setup.net.at_time(float(switch_times[net_starts <= start][-1]))
        end = starts[k + 1] if k + 1 < len(starts) else np.inf
        within = times[(times >= start) & (times < end)] - start
        is_last = bool(end > times[-1])
        grid = within if is_last else np.append(within, end - start)
        stage = setup.stage(tasks_of(setup)[number], net, grid)
        parts.append(Stage(stage, float(start), np.arange(len(grid)) < len(within), number))
        if is_last:
            break
    return tuple(parts)


def _task_starts(setup: Setup) -> Float[np.ndarray, " task"]:
    if not isinstance(setup.task, TaskSequence):
        return np.zeros(1)
    starts = np.asarray(setup.rule.on_clock(setup.task.starts))
    if np.any(np.diff(starts) <= 0):
        raise BadInput(
            f"a task of the sequence that lasts less than a step (durations {setup.task.durations})",
            "at least one step of the rule for every task",
            "lengthen it, leave it out, or lower lr",
        )
    return starts


def is_sequence(setup: Setup) -> bool:
    return isinstance(setup.task, TaskSequence)


def has_stages(setup: Setup) -> bool:
    """Whether it is trained and solved stage by stage: its task or its net changes in time."""
    return is_sequence(setup) or bool(setup.net.switch_times)


def tasks_of(setup: Setup) -> tuple[Task, ...]:
    """The tasks of a sequence, or the only task."""
    return setup.task.tasks if isinstance(setup.task, TaskSequence) else (setup.task,)


def label(setup: Setup, stage: Stage) -> str:
    """The name of a stage in notes and in names of assumptions."""
    since = f"from time {stage.begins:g}" if setup.net.switch_times else ""
    return " ".join(filter(None, (f"task {stage.number + 1}" if is_sequence(setup) else "", since)))
