"""Runs in stages: the trajectories of all stages, joined into one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from .setup import Setup
from .stages import Stage, label, tasks_of
from .trajectory import Trajectory

FORGETTING = "forgetting"  # of each task: its loss above the one that it was left with


def joined(
    setup: Setup,
    stages: Sequence[Stage],
    parts: Sequence[Trajectory],
    values: Mapping[str, Shaped[np.ndarray, ...] | Callable[[], np.ndarray]],
    axes: Mapping[str, tuple[str, ...]],
    facts: Mapping[str, Any],
) -> Trajectory:
    """One trajectory from those of all stages; `facts` are added to the provenance of the first."""
    count = sum(int(stage.on_grid[: len(part.times)].sum()) for stage, part in zip(stages, parts, strict=True))
    notes = [
        f"{label(setup, stage)}: {part.provenance['note']}"
        for stage, part in zip(stages, parts, strict=True)
        if part.provenance.get("note")
    ]
    names = [f"task {k + 1}" for k in range(len(tasks_of(setup)))]
    return Trajectory(
        np.asarray(setup.times)[:count],
        values,
        axes,
        " → ".join(dict.fromkeys(part.source for part in parts)),
        {**parts[0].provenance, "note": "; ".join(notes), **facts},
        {**parts[0].coordinates, "task": names},
        setup=setup,
        weights=functools.partial(getattr, parts[-1], "weights"),
    )


def concatenated(stages: Sequence[Stage], parts: Sequence[Trajectory], name: str) -> Shaped[np.ndarray, ...]:
    """An observable over the whole grid, from those of all stages."""
    axis = parts[0].axes[name].index("time")
    pieces = [np.compress(s.on_grid[: len(p.times)], p[name], axis=axis) for s, p in zip(stages, parts, strict=True)]
    return np.concatenate(pieces, axis=axis)


def forgotten(
    stages: Sequence[Stage], losses: Sequence[Float[np.ndarray, "seed _ task"]]
) -> Float[np.ndarray, "seed time task"]:
    """The rise of each task's loss since training on the task ended; `losses` has those of each stage up to its end."""
    pieces: list[np.ndarray] = []
    loss_when_left: dict[int, np.ndarray] = {}  # (seed,): the loss with which each task was left
    for stage, loss in zip(stages, losses, strict=True):
        rise = np.zeros_like(loss)
        for task, lowest in loss_when_left.items():
            if task != stage.number:
                rise[..., task] = loss[..., task] - lowest[:, None]
        pieces.append(rise[:, stage.on_grid[: loss.shape[1]]])
        loss_when_left[stage.number] = loss[:, -1, stage.number]
    return np.concatenate(pieces, axis=1)
