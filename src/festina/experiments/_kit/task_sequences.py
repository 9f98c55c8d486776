"""Linear networks that learn random tasks one after another: losses of all tasks, and how much is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray
from jaxtyping import Float, Int

from ... import Init, Setup, Task, nets, rules, tasks
from ..._setup.stages import tasks_of
from ...tasks.base import Matrix
from .labelled import labelled, stack, table
from .training import simulate

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

    from ... import Trajectory

OBSERVED = ("task_loss", "balance_drift")
Shape = tuple[int, ...]  # inputs, hidden units, outputs


def random_sequence(
    shape: Shape, init: Init, lr: float, duration: float, samples: int, count: int, points: int, number: int
) -> Setup:
    """A sequence of random tasks, recorded at the same number of times in each task, and at every switch."""
    d_in, hidden, d_out = shape
    random = [tasks.regression(d_in=d_in, d_out=d_out, samples=samples, seed=number * count + k) for k in range(count)]
    total = max(round(duration / lr), points)
    # Most happens just after a switch.
    steps = np.maximum(np.arange(points), np.round(total * (np.arange(points) / points) ** 2))
    times = lr * np.append((steps + total * np.arange(count)[:, None]).ravel(), total * count)
    sequence = tasks.sequence(random, lr * total)
    return Setup(sequence, nets.DeepLinear(hidden), init, rules.GradientDescent(lr), times=times)


def learned_in_turn(
    sequences: list[Setup], theory: Trajectory, finer: tuple[int, ...], ends: Int[np.ndarray, " end"], seed: int
) -> Dataset:
    """Losses of the first sequence, their gap to theory at several learning rates, and the forgetting in all."""
    runs = [simulate(setup, [seed], OBSERVED) for setup in sequences]
    rates = [sequences[0].rule.lr / k for k in finer]  # pyright: ignore[reportAttributeAccessIssue]
    slower = [sequences[0].replace(rule=rules.GradientDescent(rate)) for rate in rates[1:]]
    by_rate = [runs[0], *(simulate(setup, [seed], OBSERVED) for setup in slower)]
    exact = labelled(theory, "task_loss")
    losses = xarray.Dataset({"theory": exact, "training": labelled(runs[0], "task_loss", seed=0)})
    return (
        losses.drop_vars(["time", "task"])
        .rename(time="record")
        .assign(
            record_time=table(theory.times, "record"),
            switch=table(sequences[0].task.starts[1:], "switch_number"),  # pyright: ignore[reportAttributeAccessIssue]
            lr=table(rates, "rate"),
            error=table([np.abs(run["task_loss"][0] - exact.values).max() for run in by_rate], "rate"),
            drift=table([run["balance_drift"].max() for run in by_rate], "rate"),
            rise_training=in_sets(runs, ends),
            rise_predicted=table([rises_of_targets(setup) for setup in sequences], "set", "stage", "task"),
        )
    )


def in_sets(runs: list[Trajectory], ends: Int[np.ndarray, " end"]) -> DataArray:
    return stack({number: rises(run, ends) for number, run in enumerate(runs)}, "set").drop_vars("set")


def rises(run: Trajectory, ends: Int[np.ndarray, " end"]) -> DataArray:
    """How much the loss of each task rises in each stage but the first; `ends` are the records at the switches."""
    return table(np.diff(run["task_loss"][0][ends], axis=0)[1:], "stage", "task")


def rises_of_targets(setup: Setup) -> Float[np.ndarray, "stage task"]:
    """The same rises if all stages end in their targets: neither training nor the initial weights enter."""
    sequence = tasks_of(setup)

    def loss(task: Task, target: Matrix) -> float:
        error = np.asarray(target - task.target())
        return 0.5 * np.sum((error @ task.cov_x) * error)

    after = np.array([[loss(task, learned.target()) for task in sequence] for learned in sequence])
    return np.diff(after, axis=0)
