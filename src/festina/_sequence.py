"""Tasks one after another: the stages of a setup, and trajectories joined over them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _kernel, _objective, _observables
from ._errors import BadInput, NoTheory, UnknownName
from ._precision import in_double
from ._setup import Setup, TaskSequence
from ._spec import to_spec
from ._trajectory import Trajectory
from .inits import Given

KINDS = ("exact", "reduction", "limit")  # of theories, from the strongest on
FORGETTING = "forgetting"  # of each task: its loss above the one that it was left with


@dataclasses.dataclass(frozen=True)
class Stage:
    """One task of a sequence, or a stretch of it in which the net's gates stay: its setup on its own clock.

    `kept` says which of its times belong to the whole grid, `number` which task it is.
    """

    setup: Setup
    begins: float
    kept: np.ndarray
    number: int

    @property
    def hands_on(self) -> bool:
        return not self.kept.all()


@dataclasses.dataclass(frozen=True)
class Before:
    """What a stage has from those before it: weights to go on with, the very first ones, and the whole sequence.

    Kernels are compared on the inputs of the first task, so that a switch alone does not move them.
    """

    tasks: tuple[Any, ...]
    cov_x: Any = None
    weights: Any = None
    start: Any = None


def stages(setup: Setup) -> tuple[Stage, ...]:
    """A setup per task, or stretch of a net's schedule, until the grid ends.

    All but the last also have the time at which they hand on.
    """
    begun = np.asarray(setup.rule.on_clock(np.asarray(setup.task.starts if _is_sequence(setup) else [0.0])))
    if np.any(np.diff(begun) <= 0):
        raise BadInput(
            f"a task of the sequence that lasts less than a step (durations {setup.task.durations})",
            "at least one step of the rule for every task",
            "lengthen it, leave it out, or lower lr",
        )
    switches = np.asarray([0.0, *setup.net.switches])
    switched = np.asarray(setup.rule.on_clock(switches))
    starts = np.unique([*begun, *switched])
    times = np.asarray(setup.times)
    found = []
    for k, start in enumerate(starts):
        number = int(np.searchsorted(begun, start, side="right")) - 1
        net = setup.net.at_time(float(switches[switched <= start][-1]))
        ends = starts[k + 1] if k + 1 < len(starts) else np.inf
        own = times[(times >= starts[k]) & (times < ends)] - starts[k]
        last = bool(ends > times[-1])
        grid = own if last else np.append(own, ends - starts[k])
        stage = setup.replace(task=tasks_of(setup)[number], net=net, times=grid)
        found.append(Stage(stage, float(start), np.arange(len(grid)) < len(own), number))
        if last:
            break
    return tuple(found)


def _is_sequence(setup: Setup) -> bool:
    return isinstance(setup.task, TaskSequence)


def tasks_of(setup: Setup) -> tuple[Any, ...]:
    """The tasks of a sequence, or the only task."""
    return setup.task.tasks if _is_sequence(setup) else (setup.task,)


def _label(setup: Setup, stage: Stage) -> str:
    since = f"from time {stage.begins:g}" if setup.net.switches else ""
    return " ".join(filter(None, (f"task {stage.number + 1}" if _is_sequence(setup) else "", since)))


def evidence(setup: Setup, tasks: Sequence[Any]) -> tuple[Any, ...]:
    """The net on every task, and what its loss there is computed from."""
    bound = [setup.net.bound(task) for task in tasks]
    return tuple((net, _objective.evidence(net, task, full_batch=setup.rule.full_batch)) for net, task in bound)


def trained(setup: Setup, observe: str | Iterable[str] | None, train: Callable[..., Any]) -> Trajectory:
    """Every stage trained from where the one before ended; `train(setup, names, before)` is that of one task."""
    asked = (observe,) if isinstance(observe, str) else observe if observe is None else tuple(observe)
    names = asked and tuple(dict.fromkeys("task_loss" if name == FORGETTING else name for name in asked))
    names = _observables.checked_names(names, setup)
    before = Before(tasks_of(setup), tasks_of(setup)[0].cov_x)
    done, parts = [], []
    for stage in stages(setup):
        part, before = train(stage.setup, names, before=before)
        done, parts = [*done, stage], [*parts, part]
        if part.provenance["interrupted"]:
            break
    values = {name: functools.partial(_concatenated, done, parts, name) for name in parts[0]}
    axes = dict(parts[0].axes)
    if asked and FORGETTING in asked:
        values[FORGETTING] = functools.partial(_forgotten, done, [part["task_loss"] for part in parts])
        axes[FORGETTING] = axes["task_loss"]
    return _joined(setup, done, parts, values, axes)


def solved(setup: Setup, asked: tuple[str, ...], seed: int, solve: Callable[..., Trajectory]) -> Trajectory:
    """Every stage solved from the weights that the one before ends with."""
    done, parts, init, carried = stages(setup), [], setup.init, ()
    own = [name for name in asked if name not in ("task_loss", FORGETTING)]
    for stage in done:
        part = solve(stage.setup.replace(init=init), own, *carried)
        parts.append(part)
        if stage.hands_on:
            init, carried = Given(_handed_on(part, len(parts))), (part.end_error(),)
    shared = [name for name in parts[0] if all(name in part for part in parts)]
    if "map" in shared and _observables.OBSERVABLES["map"].lacks(setup):
        shared.remove("map")
    values: dict[str, Any] = {name: functools.partial(_concatenated, done, parts, name) for name in shared}
    axes = {name: parts[0].axes[name] for name in shared}
    if {"input_representation", "output_representation"} <= set(shared) and setup.net.depth == 2:
        # Each stage by itself counts from its own start.
        grams = (values["input_representation"], values["output_representation"])
        values["kernel_distance"] = functools.partial(_kernel_distance, setup, setup.weights(seed), *grams)
    else:
        values.pop("kernel_distance", None)
    if "map" in shared and setup.net.linear and _is_sequence(setup):
        losses = functools.cache(lambda: [_losses(setup, part["map"]) for part in parts])
        values["task_loss"] = lambda: np.concatenate([v[s.kept] for s, v in zip(done, losses(), strict=True)])
        values[FORGETTING] = lambda: _forgotten(done, [loss[None] for loss in losses()])[0]
        axes |= dict.fromkeys(("task_loss", FORGETTING), ("time", "task"))
    joined = _joined(setup, done, parts, values, axes)
    for name in asked:
        if name not in values:
            raise UnknownName.among(f"observable of {joined.source}", name, values)
        joined[name]
    return joined


def _handed_on(part: Trajectory, number: int) -> Any:
    end = part.end_weights()
    if end is None:
        raise NoTheory(
            f"{part.source} does not know the weights that task {number} ends with",
            "a theory that hands weights on to the next task",
            "use BalancedRiccati, or train the sequence with simulate",
        )
    return end


def _joined(
    setup: Setup, done: Sequence[Stage], parts: Sequence[Trajectory], values: dict[str, Any], axes: dict[str, Any]
) -> Trajectory:
    count = sum(int(stage.kept[: len(part.times)].sum()) for stage, part in zip(done, parts, strict=True))
    facts = [part.provenance for part in parts]
    labels = [_label(setup, stage) for stage in done]
    numbered = [
        {**assumption, "name": f"{label}: {assumption['name']}"}
        for label, fact in zip(labels, facts, strict=True)
        for assumption in fact.get("assumptions", ())
    ]
    notes = [f"{label}: {fact['note']}" for label, fact in zip(labels, facts, strict=True) if fact.get("note")]
    own = {"setup": functools.partial(to_spec, setup), "note": "; ".join(notes)}
    if numbered:
        weakest = max((fact["kind"] for fact in facts), key=KINDS.index)
        errors = [functools.partial(part._fact, "error") for part in parts]
        own |= {"assumptions": numbered, "exact": weakest == "exact", "kind": weakest}
        own["error"] = lambda: max(error() for error in errors)
    if "seconds" in facts[0]:
        seconds = sum(fact["seconds"] for fact in facts)
        own |= {"seconds": seconds, "interrupted": any(fact["interrupted"] for fact in facts)}
    names = [f"task {k + 1}" for k in range(len(tasks_of(setup)))]
    return Trajectory(
        np.asarray(setup.times)[:count],
        values,
        axes,
        " → ".join(dict.fromkeys(part.source for part in parts)),
        {**facts[0], **own},
        {**parts[0].coordinates, "task": names},
    )


def _concatenated(done: Sequence[Stage], parts: Sequence[Trajectory], name: str) -> np.ndarray:
    axis = parts[0].axes[name].index("time")
    pieces = [np.compress(s.kept[: len(p.times)], p[name], axis=axis) for s, p in zip(done, parts, strict=True)]
    return np.concatenate(pieces, axis=axis)


def _forgotten(done: Sequence[Stage], losses: Sequence[Any]) -> np.ndarray:
    """(seed, time, task) over the whole grid, from the losses of every stage, its end included."""
    pieces: list[np.ndarray] = []
    left: dict[int, np.ndarray] = {}  # (seed,): the loss with which each task was left
    for stage, loss in zip(done, losses, strict=True):
        rise = np.zeros_like(loss)
        for task, ended in left.items():
            if task != stage.number:
                rise[..., task] = loss[..., task] - ended[:, None]
        pieces.append(rise[:, stage.kept[: loss.shape[1]]])
        left[stage.number] = loss[:, -1, stage.number]
    return np.concatenate(pieces, axis=1)


@in_double
def _losses(setup: Setup, maps: Any) -> Any:
    """(time, task): the loss of every task under the predicted map."""

    def one(task):
        return jax.vmap(functools.partial(_objective.loss_of_map, _objective.Moments.of(task)))(maps)

    return jnp.stack([one(task) for task in setup.task.tasks], axis=1)


def _kernel_distance(setup: Setup, start: Any, inner: Callable, outer: Callable) -> Any:
    """From the kernel before the first task."""

    def each(cov_x, start, inner, outer):
        begun = _kernel.tangent(start)
        now = jax.vmap(lambda a, b: _kernel.distance(begun, _kernel.two_layers(a, b), cov_x))
        return now(jnp.asarray(inner), jnp.asarray(outer))

    return in_double(each)(setup.task.tasks[0].cov_x, start, inner(), outer())
