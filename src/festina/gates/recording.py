"""Recording which units are on while a network learns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeGuard

import numpy as np

from .._foundation import checks
from .._foundation.checks import whole
from .._foundation.errors import BadInput, shown
from .._setup.setup import Setup
from .._setup.spec import from_spec
from .._setup.trajectory import Trajectory
from .._training.simulate import simulate
from ..nets.base import Net
from ..tasks.base import Task, TaskSequence

PROBED = ("gates", "unit_size", "loss", "outputs")  # by a probe as by `simulate`, but for the axis of seeds


def record(
    setup: Setup,
    seeds: int | Sequence[int] = 1,
    times: Any = None,
    observe: str | Iterable[str] | None = None,
    *,
    progress: bool | None = None,
    interrupt: Literal["keep", "raise"] = "keep",
) -> Trajectory:
    """Train a ReLU or leaky-ReLU net and record which units are on, how large they are, and the loss.

    It is `simulate(setup, seeds, ["gates", …])`, with the same `progress` and `interrupt`. `times` replaces those of
    the setup; `observe` names what else to record. `trajectory["gates"]` holds one bit for each sample of each hidden
    unit, packed into bytes: axes (seed, time, unit, byte); `patterns(trajectory)` unpacks them.
    """
    checks.instance(setup, "setup", Setup, "build one: festina.Setup(task, net, init, rule)")
    chosen = setup if times is None else setup.replace(times=times)
    others = checks.observables(observe) or ()
    return simulate(chosen, seeds, ("gates", *others), progress=progress, interrupt=interrupt)


@dataclasses.dataclass(frozen=True)
class Recording:
    """What a trajectory says about the gates of a network."""

    setup: Setup
    times: np.ndarray
    seeds: np.ndarray
    packed: np.ndarray  # (seed, time, unit, byte)
    size: np.ndarray  # (seed, time, unit): |incoming| |outgoing|
    loss: np.ndarray  # (seed, time)
    layer: np.ndarray  # (unit,): the hidden layer of each unit, counted from 1
    unknown: str = ""  # why the rule of the setup is not that of training

    @property
    def task(self) -> Task:
        return self.setup.single_task

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

    def need_rule(self) -> None:
        """Refuse a network that cannot be trained again."""
        if self.unknown:
            raise BadInput(
                f"gates of a network that cannot be trained again: {self.unknown}",
                "plain gradient descent of ½ mean |y − f|² on all probe inputs, at a known rate",
                "train with torch.optim.SGD(model.parameters(), lr=lr) and give the probe lr=lr; gates.find and "
                "gates.purity need no rule",
            )

    def after_start(self, share: float) -> np.ndarray:
        """(seed, time): whether the loss has fallen to at most `share` of `first_loss`, so that learning has begun."""
        return self.loss <= share * self.first_loss[:, None]

    @property
    def first_loss(self) -> np.ndarray:
        """(seed,): the loss of zero outputs, or that of the first record if it is larger."""
        silent = 0.5 * np.mean(np.sum(np.asarray(self.task.y) ** 2, axis=1))
        return np.maximum(self.loss[:, 0], silent)


def as_trained(trained: object) -> Any:
    """A probe's record of gates in the form that `simulate` gives, as its only seed; anything else as it is."""
    if not _is_probed(trained):
        return trained
    axes = {name: ("seed", *trained.axes[name]) for name in PROBED if name in trained}
    values = {name: trained[name][None] for name in axes}
    if "similarity" in trained and not trained.provenance.get("before_activations"):  # of the last hidden layer alone
        axes["similarity"] = ("seed", "time", "sample", "sample_")
        values["similarity"] = trained["similarity"][None, :, -1]
    return Trajectory(trained.times, values, axes, trained.source, trained.provenance, {"seed": [0]})


def _is_probed(trained: object) -> TypeGuard[Trajectory]:
    return isinstance(trained, Trajectory) and "gates" in trained and "seed" not in trained.axes["gates"]


def _network(trained: Trajectory) -> Setup:
    """The setup of a trained network; if a probe could not see the training rule, the setup has another one."""
    facts = trained.provenance
    if "network" in facts:
        return from_spec(facts["network"])
    if "setup" not in facts and trained.is_recorded:
        raise BadInput(
            f"gates recorded by {trained.source}: {facts.get('no_network', 'it sees activities alone')}",
            "those of all hidden layers of a chain of linear layers and ReLUs, recorded by probe.torch with targets",
            'give probe.torch(model, inputs=x, targets=y, observe=["gates", "outputs"]); gates.patterns needs no more',
        )
    return trained.setup


def recording(trained: object, *, least: int = 1, task: Task | None = None) -> Recording:
    """Read a trajectory; it must have gates at `least` times or more, recorded on `task` if one is given."""
    trained = as_trained(trained)
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
    setup = _network(trained)
    if len(trained.times) != len(setup.times):  # of a run that was interrupted
        setup = setup.replace(times=trained.times)
    if isinstance(setup.task, TaskSequence):
        raise BadInput("gates recorded over a sequence of tasks", "one task", "record each task by itself")
    if task is not None:
        if not same_samples(task, setup.single_task):
            raise BadInput(
                f"task = {shown(task)}, with other samples than the gates were recorded on",
                "the task of the recording: a gate belongs to a sample",
                "leave task out, or record the network on that task",
            )
        setup = setup.replace(task=task)  # which may have labels that the recording lacks
    layer = np.repeat(np.arange(len(setup.net.hidden)) + 1, setup.net.hidden)
    seeds, unknown = trained.coordinates["seed"], trained.provenance.get("no_setup", "")
    gates, size, loss = (trained[name] for name in ("gates", "unit_size", "loss"))
    return Recording(setup, trained.times, seeds, gates, size, loss, layer, unknown)


def slope_of(net: Net) -> float:
    """The slope of a unit that is off; nets whose units do more than switch are refused."""
    if net.off_slope is None:
        raise BadInput(f"gates of {net!r}", "units that switch between on and off", 'use nets.MLP with "relu"')
    return net.off_slope


def same_samples(task: object, other: Task) -> bool:
    """Whether two tasks show the same inputs in the same order, in float32, as most probes see them."""
    if not isinstance(task, Task) or task.x is None:
        return False
    return all(np.array_equal(np.float32(one), np.float32(two)) for one, two in ((task.x, other.x), (task.y, other.y)))


def patterns(trained: Trajectory | Recording) -> np.ndarray:
    """Which units are on, as truth values: (seed, time, unit, sample)."""
    if _is_probed(trained):  # the only question that needs no more than the gates
        return unpacked(as_trained(trained)["gates"], trained.provenance["samples"])  # pyright: ignore
    known = trained if isinstance(trained, Recording) else recording(trained)
    return unpacked(known.packed, known.samples)


def unpacked(packed: np.ndarray, samples: int) -> np.ndarray:
    """Truth values of packed bits along the last axis."""
    return np.unpackbits(packed, axis=-1, count=samples).astype(bool)
