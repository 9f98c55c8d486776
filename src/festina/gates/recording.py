"""Recording which units are on while a network learns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .. import _checks
from .._errors import BadInput, shown
from .._noun import whole
from .._setup import Setup, Task, TaskSequence
from .._simulate import simulate
from .._trajectory import Trajectory


def record(
    setup: Setup,
    seeds: int | Sequence[int] = 1,
    times: Any = None,
    observe: str | Iterable[str] | None = None,
    *,
    progress: bool | None = None,
) -> Trajectory:
    """Train a ReLU or leaky-ReLU net and record which units are on, how large they are, and the loss.

    It is `simulate(setup, seeds, ["gates", …])`. `times` replaces those of the setup; `observe` names what else to
    record. `trajectory["gates"]` holds one bit for each sample of each hidden unit, packed into bytes: axes
    (seed, time, unit, byte); `patterns(trajectory)` unpacks them.
    """
    _checks.instance(setup, "setup", Setup, "build one: festina.Setup(task, net, init, rule)")
    chosen = setup if times is None else setup.replace(times=times)
    others = _checks.observables(observe) or ()
    return simulate(chosen, seeds, ("gates", *others), progress=progress)


@dataclasses.dataclass(frozen=True)
class Recording:
    """What a trajectory tells of the gates of a network."""

    setup: Setup
    times: np.ndarray
    seeds: np.ndarray
    packed: np.ndarray  # (seed, time, unit, byte)
    size: np.ndarray  # (seed, time, unit): |incoming| |outgoing|
    loss: np.ndarray  # (seed, time)
    layer: np.ndarray  # (unit,): the hidden layer of each unit, counted from 1

    @property
    def task(self) -> Task:
        return self.setup.task

    @property
    def samples(self) -> int:
        assert self.task.samples is not None
        return self.task.samples

    @property
    def layers(self) -> range:
        return range(1, int(self.layer[-1]) + 1)

    def of_layer(self, layer: int) -> Recording:
        """The units of one hidden layer, counted from 1."""
        if whole(layer, "layer") not in self.layers:
            raise BadInput(f"layer = {layer}", f"a hidden layer, 1 to {self.layers[-1]}", "count hidden layers from 1")
        kept = self.layer == layer
        return dataclasses.replace(
            self, packed=self.packed[:, :, kept], size=self.size[:, :, kept], layer=self.layer[kept]
        )

    def after_start(self, share: float) -> np.ndarray:
        """(seed, time): whether the loss has left its start, that of all-but-silent weights, by more than 1 − share."""
        return self.loss <= share * self.first_loss[:, None]

    @property
    def first_loss(self) -> np.ndarray:
        """(seed,): the loss before training, or that of the first record if it is larger."""
        silent = 0.5 * np.mean(np.sum(np.asarray(self.task.y) ** 2, axis=1))
        return np.maximum(self.loss[:, 0], silent)


def recording(trained: Any, *, least: int = 1, task: Task | None = None) -> Recording:
    """Read a trajectory; it must have gates at `least` so many times, recorded on `task` if one is given."""
    if not isinstance(trained, Trajectory) or "gates" not in trained:
        what = f"a trajectory with {', '.join(trained)}" if isinstance(trained, Trajectory) else shown(trained)
        raise BadInput(
            f"trained is {what}, without gates",
            "a trajectory that has recorded them",
            'train with gates.record(setup), or simulate(setup, observe=["gates"])',
        )
    if len(trained.times) < least:
        raise BadInput(
            f"gates recorded at {len(trained.times)} time{'s' * (len(trained.times) != 1)}",
            f"at least {least}",
            "record more: gates.record(setup, times=[…])",
        )
    setup = trained.setup
    if len(trained.times) != len(setup.times):  # of a run that was interrupted
        setup = setup.replace(times=trained.times)
    if isinstance(setup.task, TaskSequence):
        raise BadInput("gates recorded over a sequence of tasks", "one task", "record each task by itself")
    if task is not None and not same_samples(task, setup.task):
        raise BadInput(
            f"task = {shown(task)}, with other samples than the gates were recorded on",
            "the task of the recording: a gate belongs to a sample",
            "leave task out, or record the network on that task",
        )
    layer = np.repeat(np.arange(len(setup.net.hidden)) + 1, setup.net.hidden)
    seeds = trained.coordinates["seed"]
    return Recording(setup, trained.times, seeds, trained["gates"], trained["unit_size"], trained["loss"], layer)


def same_samples(task: Any, other: Any) -> bool:
    """Whether two tasks show the same inputs in the same order."""
    if not isinstance(task, Task) or task.x is None:
        return False
    return np.array_equal(task.x, other.x) and np.array_equal(task.y, other.y)


def patterns(trained: Trajectory | Recording) -> np.ndarray:
    """Which units are on, as truth values: (seed, time, unit, sample)."""
    seen = trained if isinstance(trained, Recording) else recording(trained)
    return unpacked(seen.packed, seen.samples)


def unpacked(packed: np.ndarray, samples: int) -> np.ndarray:
    """Truth values of packed bits along the last axis."""
    return np.unpackbits(packed, axis=-1, count=samples).astype(bool)
