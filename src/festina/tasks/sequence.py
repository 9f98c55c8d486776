"""Tasks one after another: continual learning, reversal, transfer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import _checks
from .._errors import BadInput, shown
from .._noun import positive, real_array
from .._setup import Task, TaskSequence, default_horizon


def sequence(tasks: Iterable[Task], durations: Any = None) -> TaskSequence:
    """These tasks one after another, for one network that keeps its weights.

    `durations` is the time spent on each, one number for all or one per task; without it each task gets twelve
    time constants of its slowest mode. The last task goes on for as long as the setup's times do.
    """
    needed, do = "a list of tasks", "give sequence([tasks.ring(8), tasks.hierarchy(3)])"
    listed = _checks.listed(tasks, "tasks", needed, do)
    if not all(isinstance(task, Task) for task in listed):
        raise BadInput(f"tasks = {shown(tasks)}", needed, do)
    shapes = [(task.d_in, task.d_out) for task in listed]
    if len(set(shapes)) > 1:
        raise BadInput(
            f"tasks with (d_in, d_out) = {', '.join(map(str, shapes))}",
            "tasks that one network can do: equal sizes",
            "pad inputs or features with zeros",
        )
    if durations is None:
        spans = tuple(default_horizon(task) for task in listed)
    elif isinstance(durations, (list, tuple)):  # which may hold traced numbers
        spans = tuple(positive(duration, "durations") for duration in durations)
    else:
        given = real_array(durations, "durations", ndim=(0, 1))
        each = given if np.ndim(given) else [given] * len(listed)
        spans = tuple(positive(duration, "durations") for duration in each)
    if len(spans) != len(listed):
        raise BadInput(f"{len(spans)} durations for {len(listed)} tasks", "one for each task", "match the numbers")
    return TaskSequence(listed, spans)
