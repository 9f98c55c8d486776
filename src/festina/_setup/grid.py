"""The time grid of a setup, on the clock of its rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Real

from .._foundation.arrays import AnyArray, Number
from .._foundation.checks import is_traced, positive, real_array, whole
from .._foundation.errors import BadInput, shown
from ..rules.base import Discrete, Rule
from ..tasks.base import Task, TaskSequence, default_horizon

SPACINGS = ("linear", "log")
Times: TypeAlias = Sequence[Number] | Real[AnyArray, " time"]


def time_grid(
    task: Task | TaskSequence,
    rule: Rule,
    *,
    times: Times | None,
    until: Number | None,
    points: int | None,
    spacing: str | None,
    every: int | None,
) -> Float[AnyArray, " time"]:
    """The times that a setup asks for, each at most once; `Setup` says what the arguments mean."""
    if spacing is not None and not (isinstance(spacing, str) and spacing in SPACINGS):
        raise BadInput(f"spacing = {shown(spacing)}", f"one of {SPACINGS}", "use 'linear' or 'log'")
    if times is not None:
        if not (points is None and spacing is None and every is None):
            raise BadInput("times together with points, spacing or every", "one description of the grid", "keep one")
        return _checked_times(times, until)
    end = _end(task, rule, until)
    if every is not None:
        return _every(rule, end, whole(every, "every"), points, spacing)
    count = 200 if points is None else whole(points, "points", least=2)
    if spacing == "log":
        # Zero, then a geometric grid; for a rule that moves in steps it begins at the time of one step.
        step = rule.time_of_steps(1) if isinstance(rule, Discrete) else None
        first = end * 1e-4 if step is None or is_traced(step) else step
        grid = np.concatenate([[0.0], np.geomspace(min(first, end / 2), end, count - 1)])
    else:
        grid = np.linspace(0.0, end, count)
    # A grid finer than the rule's steps has fewer times than points, and none twice.
    return grid if is_traced(rule) else np.unique(np.asarray(rule.on_clock(grid)))


def _end(task: Task | TaskSequence, rule: Rule, until: Number | None) -> float:
    """When the run ends; the default is the end of all tasks of a sequence, or twelve of the slowest time constants."""
    if until is None:
        until = np.sum(task.durations) if isinstance(task, TaskSequence) else _default_end(task, rule)
    end = positive(until, "until")
    if is_traced(end):
        do = "give times=, whose values may be traced, or build the setup outside jit, grad and vmap"
        raise BadInput("a traced until", "an end that is known, to lay out a grid", do)
    return end


def _default_end(task: Task, rule: Rule) -> float:
    """Twelve of the slowest time constants: times of gradient flow, which say nothing on another clock."""
    if isinstance(rule, Discrete) and not is_traced(rule) and not rule.lasts_lr:
        raise BadInput(
            f"{rule!r}, a step of which lasts {float(rule.time_of_steps(1)):g}, without an end of the run",
            "an end on the clock of the rule: the default one is known in the time of gradient flow alone",
            "give until=, or times=",
        )
    return default_horizon(task)


def _every(rule: Rule, until: float, every: int, points: int | None, spacing: str | None) -> Float[np.ndarray, " time"]:
    if points is not None or spacing is not None:
        raise BadInput("every together with points or spacing", "one description of the grid", "keep one")
    if not isinstance(rule, Discrete):
        raise BadInput(
            f"every = {every} with {type(rule).__name__}, which has no steps",
            "a rule that moves in steps",
            "give points= instead, or use rules.GradientDescent(lr)",
        )
    last = int(rule.steps(until))
    return np.asarray(rule.time_of_steps(np.append(np.arange(0, last, every), last)))


def _checked_times(times: Times, until: Number | None) -> Float[AnyArray, " time"]:
    grid = real_array(times, "times", ndim=1)
    if is_traced(grid):
        return grid
    if len(grid) == 0:
        raise BadInput("times is empty", "at least one time", "give times such as numpy.linspace(0, 10, 100)")
    if np.any(np.diff(grid) <= 0):
        raise BadInput("times do not increase", "strictly increasing times", "sort them and drop repeats")
    if grid[0] < 0:
        raise BadInput(f"times begin at {grid[0]:g}", "times >= 0", "training starts at time 0")
    if until is not None and grid[-1] > positive(until, "until"):
        raise BadInput(
            f"times reach {grid[-1]:g}, outside the run, which ends at until = {until:g}",
            "times within [0, until]",
            "raise until, or drop the later times",
        )
    return grid
