"""Tasks one after another: continual learning, reversal, transfer."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from .._foundation import checks
from .._foundation.checks import positive, real_array
from .._foundation.errors import BadInput, shown
from .base import Task, TaskSequence, default_horizon


def sequence(tasks: Iterable[Task], durations: ArrayLike | None = None) -> TaskSequence:
    """These tasks one after another, for one network that keeps its weights.

    `durations` is the time spent on each, one number for all or one per task; without it each task gets twelve
    time constants of its slowest mode. The last task goes on for as long as the setup's times do.
    """
    needed, do = "a list of tasks", "give sequence([tasks.ring(8), tasks.hierarchy(3)])"
    members = checks.listed(tasks, "tasks", needed, do)
    if not all(isinstance(task, Task) for task in members):
        raise BadInput(f"tasks = {shown(tasks)}", needed, do)
    shapes = [(task.d_in, task.d_out) for task in members]
    if len(set(shapes)) > 1:
        raise BadInput(
            f"tasks with (d_in, d_out) = {', '.join(map(str, shapes))}",
            "tasks that one network can do: equal sizes",
            "pad inputs or features with zeros",
        )
    if durations is None:
        spans = tuple(default_horizon(task) for task in members)
    elif isinstance(durations, (list, tuple)):  # which may hold traced numbers
        spans = tuple(positive(duration, "durations") for duration in durations)
    else:
        given = real_array(durations, "durations", ndim=(0, 1))
        numbers = given if np.ndim(given) else [given] * len(members)
        spans = tuple(positive(duration, "durations") for duration in numbers)
    if len(spans) != len(members):
        raise BadInput(f"{len(spans)} durations for {len(members)} tasks", "one for each task", "match the numbers")
    return TaskSequence(members, spans)
