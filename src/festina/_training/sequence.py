"""Training in stages: tasks one after another, or a net that changes in time."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable

from .._foundation.arrays import Weights
from .._setup.joined import FORGETTING, concatenated, forgotten, joined
from .._setup.setup import Setup
from .._setup.stages import stages, tasks_of
from .._setup.trajectory import Trajectory
from ..observables.request import names_to_record
from ..tasks.base import Task


@dataclasses.dataclass(frozen=True)
class Before:
    """What a stage is given: all tasks of the sequence, the weights after the stage before, and the initial ones."""

    tasks: tuple[Task, ...]
    weights: Weights = None
    start: Weights = None


def trained(
    setup: Setup, observe: str | Iterable[str] | None, train: Callable[..., tuple[Trajectory, Before]]
) -> Trajectory:
    """Every stage trained from where the one before ended; `train(setup, names, before)` trains one stage."""
    asked = (observe,) if isinstance(observe, str) else observe if observe is None else tuple(observe)
    names = asked and tuple(dict.fromkeys("task_loss" if name == FORGETTING else name for name in asked))
    names = names_to_record(names, setup)
    before = Before(tasks_of(setup))
    stages_trained, parts = [], []
    for stage in stages(setup):
        part, before = train(stage.setup, names, before=before)
        stages_trained, parts = [*stages_trained, stage], [*parts, part]
        if part.provenance["interrupted"]:
            break
    values = {name: functools.partial(concatenated, stages_trained, parts, name) for name in parts[0]}
    axes = dict(parts[0].axes)
    if asked and FORGETTING in asked:
        values[FORGETTING] = functools.partial(forgotten, stages_trained, [part["task_loss"] for part in parts])
        axes[FORGETTING] = axes["task_loss"]
    facts = {
        "seconds": sum(part.provenance["seconds"] for part in parts),
        "interrupted": any(part.provenance["interrupted"] for part in parts),
    }
    return joined(setup, stages_trained, parts, values, axes, facts)
