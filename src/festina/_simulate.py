"""simulate(): train a setup for real, all seeds in one compiled call."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import jax
import numpy as np

from . import _checks, _run, _sequence
from ._bound import Bound
from ._errors import Diverged
from ._linalg import modes_at
from ._observables import OBSERVABLES, View, checked_names, compared, view_of
from ._points import Points, said_of
from ._precision import at_once, to_numpy
from ._progress import track
from ._setup import Discrete, Setup, TaskSequence, concrete, draws
from ._spec import to_spec
from ._trajectory import Trajectory
from ._version import __version__

_part_of_more: ContextVar[bool] = ContextVar("part_of_more", default=False)


@contextlib.contextmanager
def interrupts_end_everything() -> Iterator[None]:
    """Inside, Ctrl-C is not answered with a shorter trajectory: half an experiment proves nothing."""
    token = _part_of_more.set(True)
    try:
        yield
    finally:
        _part_of_more.reset(token)


def simulate(
    setup: Setup,
    seeds: int | Sequence[int] = 1,
    observe: str | Iterable[str] | None = None,
    *,
    pairs: Any = None,
    progress: bool | None = None,
) -> Trajectory:
    """Train `setup` from each seed and record observables at its times; axes (seed, time, …).

    Args:
        seeds: how many (0, 1, …), or a list of them.
        observe: names of observables; None records the loss, and the modes of a linear net.
        pairs: which samples to compare, [(0, 1), …], for observables of pairs; None takes all pairs of up to 100.
        progress: show a bar; None shows it on a terminal only.

    Ctrl-C returns what is finished, on the times that were reached. A diverging run raises
    `Diverged` with the step, the loss and an estimate of the largest stable rate.
    """
    concrete(setup, "simulate")
    seeds, progress = _checks.seeds(seeds), _checks.truth_or_none(progress, "progress")
    if isinstance(setup.task, TaskSequence) or setup.net.switches:
        compared(setup, (), pairs)  # no observable of pairs outlasts a change of task or net
        return _sequence.trained(setup, observe, functools.partial(train, seeds=seeds, progress=progress))
    return train(setup, checked_names(observe, setup), seeds=seeds, pairs=pairs, progress=progress)[0]


def train(
    setup: Setup,
    names: tuple[str, ...],
    *,
    seeds: tuple[int, ...],
    progress: bool | None,
    pairs: Any = None,
    before: _sequence.Before | None = None,
) -> tuple[Trajectory, _sequence.Before]:
    """Train one task; returns what the next task of a sequence has from it, too."""
    before = before or _sequence.Before(())
    began = time.perf_counter()
    chosen = compared(setup, names, pairs)
    # GPUs cut the factors of a float32 product to ten bits (TF32) unless told otherwise.
    with jax.enable_x64(setup.precision == "float64"), jax.default_matmul_precision("highest"), at_once():
        view, weights = _prepared(setup, seeds, names, before, chosen)
        run = _run.Run(setup, seeds, names, view, weights)
        recorded, interrupted = _driven(run, setup, progress)
        after = dataclasses.replace(before, weights=to_numpy(run.weights), start=view.start)
    finished = min((value.shape[1] for value in recorded.values()), default=0)
    facts = {"seconds": time.perf_counter() - began, "interrupted": interrupted}
    trajectory = _labelled(setup, seeds, recorded, finished, facts, chosen)
    if run.failure is not None:
        raise _diverged(setup, seeds, run.failure, trajectory, before)
    return trajectory, after


def _prepared(
    setup: Setup,
    seeds: tuple[int, ...],
    names: tuple[str, ...],
    before: _sequence.Before,
    chosen: Points | None = None,
) -> tuple[View, Any]:
    """What observables look at, and initial weights with a leading seed axis, in the run's precision."""
    needs = {need for name in names for need in OBSERVABLES[name].needs}
    # Draws are made in float64 and rounded, so that both precisions start alike.
    with jax.enable_x64(True):
        weights = before.weights
        if weights is None:
            weights = draws(setup.init, setup.net, setup.for_init, np.asarray(seeds))
        start = weights if before.start is None else before.start
        bound = setup.bound()
        modes = _modes_of_starts(bound, weights) if "modes" in needs else None
        view = view_of(setup, names, chosen)
        view = dataclasses.replace(
            view,
            cov_x=view.cov_x if before.cov_x is None or view.cov_x is None else before.cov_x,
            modes=modes,
            start=start if "start" in needs else None,
            tasks=_sequence.evidence(setup, before.tasks) if "tasks" in needs else None,
        )

    def cast(leaf):
        # Always a new array: JAX remembers what it made of an old one, in the precision of that time.
        return np.array(leaf, setup.precision) if leaf.dtype.kind == "f" else leaf

    return jax.tree.map(cast, to_numpy((view, weights)))


def _modes_of_starts(setup: Setup, weights: Any) -> Any:
    """The task's modes, fitted to every seed's start."""
    task = setup.task
    if task.d_out <= 2 * task.d_in:
        return _run.modes_of_starts(task.moments_only(), setup.net, weights)
    starts = [jax.tree.map(lambda leaf, k=k: leaf[k], weights) for k in range(len(jax.tree.leaves(weights)[0]))]
    each = [modes_at(task.cov_yx, task.cov_x, setup.net.map(start)) for start in starts]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *each)


def _driven(run: _run.Run, setup: Setup, progress: bool | None) -> tuple[dict[str, np.ndarray], bool]:
    """Call the compiled run block by block until it is through, diverges, or Ctrl-C."""
    blocks: list[dict[str, np.ndarray]] = []
    interrupted = False
    label = f"{type(setup.net).__name__} × {len(run.seeds)}"
    with track(label, run.total, progress) as show:
        try:
            while run.remaining and run.failure is None:
                blocks.append(run.block())
                show(run.done, f"loss {run.loss:.4g}")
        except KeyboardInterrupt:
            if _part_of_more.get():
                raise
            interrupted = True
    recorded = {
        name: np.concatenate([block[name] for block in blocks], axis=1) for name in (blocks[0] if blocks else ())
    }
    return recorded, interrupted


def _labelled(
    setup: Setup,
    seeds: tuple[int, ...],
    recorded: dict[str, np.ndarray],
    finished: int,
    facts: Any,
    chosen: Points | None,
) -> Trajectory:
    device = jax.devices()[0]
    more_facts, more_names = said_of(chosen)
    return Trajectory(
        setup.times[:finished],
        recorded,
        {name: ("seed", "time", *OBSERVABLES[name].axes) for name in recorded},
        "simulate",
        {
            "setup": functools.partial(to_spec, setup),
            "festina": __version__,
            "device": device.device_kind,
            "precision": setup.precision,
            **facts,
            **more_facts,
        },
        {"seed": np.asarray(seeds), **axis_names(setup.bound()), **more_names},
    )


def axis_names(setup: Setup) -> dict[str, Any]:
    """The names that a bound setup has for axes."""
    task = setup.task
    paths = setup.net.plan.graph.path_names if isinstance(setup.net, Bound) else None
    named = {"input": task.inputs, "feature": task.features, "sample": task.items, "path": paths}
    # A matrix between an axis and itself has two names for it.
    doubled = {f"{axis}_": names for axis, names in named.items()}
    return {axis: list(names) for axis, names in (named | doubled).items() if names is not None} | {
        "side": ["input", "output"]
    }


def _diverged(
    setup: Setup, seeds: tuple[int, ...], failure: _run.Failure, finished: Trajectory, before: _sequence.Before
) -> Diverged:
    when = f"step {failure.step}" if failure.step is not None else f"time {failure.time:g}"
    seen = f"training diverged at {when} (seed {seeds[failure.seed]}), loss {failure.loss:.4g}"
    rate = None
    if isinstance(setup.rule, Discrete):
        with jax.enable_x64(setup.precision == "float64"):
            view, weights = _prepared(setup, seeds, (), before)
            weights = jax.tree.map(lambda leaf: leaf[failure.seed : failure.seed + 1], weights)
            rate = _run.largest_stable_rate(setup, seeds[failure.seed], view, weights, failure.time)
    if rate is None:
        do = "lower the learning rate, the tolerances or the initial weights"
        if not isinstance(setup.rule, Discrete) and getattr(setup.net, "off_slope", None) is not None:
            # Where units switch, the flow has kinks, which no step is short enough for.
            do = "raise rtol and atol of the flow, or use rules.GradientDescent(lr): a net whose units switch has kinks"
        error = Diverged(seen, "a run that stays finite", do)
    else:
        error = Diverged(
            seen, f"lr below about {rate:.3g} (estimated from slower runs), not {setup.rule.lr:g}",
            f"try lr = {0.5 * rate:.2g}",
        )  # fmt: skip
    error.step, error.loss, error.seed, error.stable_rate = failure.step or 0, failure.loss, seeds[failure.seed], rate
    error.trajectory = finished
    return error
