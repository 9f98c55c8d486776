"""simulate(): train a setup for real, all seeds in one compiled call."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Shaped

from .._figures.style import TIME
from .._foundation import checks
from .._foundation.arrays import Weights
from .._foundation.precision import at_once
from .._foundation.progress import track
from .._foundation.version import __version__
from .._setup.setup import Setup, check_concrete
from .._setup.stages import has_stages
from .._setup.trajectory import Trajectory
from ..observables import OBSERVABLES
from ..observables.axes import axis_names
from ..observables.compared_points import Points, pair_metadata
from ..observables.request import names_to_record, points_to_compare
from ..rules.base import Rule
from .divergence import diverged
from .loop import Run
from .preparation import prepared
from .sequence import Before, trained

INTERRUPTS = ("keep", "raise")
Records = Mapping[str, Shaped[np.ndarray, "seed time ..."]]


def simulate(
    setup: Setup,
    seeds: int | Iterable[int | np.integer] = 1,
    observe: str | Iterable[str] | None = None,
    *,
    pairs: Any = None,
    progress: bool | None = None,
    interrupt: Literal["keep", "raise"] = "keep",
) -> Trajectory:
    """Train `setup` from each seed and record observables at its times; axes (seed, time, …).

    Args:
        seeds: how many (0, 1, …), or a list of them.
        observe: names of observables; None records the loss, and the modes of a linear net.
        pairs: which samples to compare, [(0, 1), …], for observables of pairs; None takes all pairs of up to 100.
        progress: show a bar; None shows it on a terminal only.
        interrupt: what Ctrl-C does: "keep" returns what is finished, on the times that were reached; "raise" raises
            KeyboardInterrupt, for work that is of no use unless it is complete.

    `trajectory.weights` are the trained weights. A diverging run raises `Diverged` with the step, the loss and an
    estimate of the largest stable rate.
    """
    check_concrete(setup, "simulate")
    seeds, progress = checks.seeds(seeds), checks.truth_or_none(progress, "progress")
    checks.choice(interrupt, "interrupt", INTERRUPTS)
    train = functools.partial(_train, seeds=seeds, progress=progress, interrupt=interrupt)
    if has_stages(setup):
        points_to_compare(setup, (), pairs)  # no observable of pairs outlasts a change of task or net
        return trained(setup, observe, train)
    return train(setup, names_to_record(observe, setup), pairs=pairs)[0]


def _train(
    setup: Setup,
    names: tuple[str, ...],
    *,
    seeds: tuple[int, ...],
    progress: bool | None,
    interrupt: str,
    pairs: Any = None,
    before: Before | None = None,
) -> tuple[Trajectory, Before]:
    """Train one task; also returns what the next task of a sequence starts from."""
    before = before or Before(())
    began = time.perf_counter()
    points = points_to_compare(setup, names, pairs)
    # GPUs cut the factors of a float32 product to ten bits (TF32) unless told otherwise.
    with jax.enable_x64(setup.precision == "float64"), jax.default_matmul_precision("highest"), at_once():
        view, weights = prepared(setup, seeds, names, before, points)
        run = Run(setup, seeds, names, view, weights)
        records, is_interrupted = _driven(run, setup, progress, interrupt)
        after = dataclasses.replace(before, weights=run.weights, start=view.per_seed.get("start"))
    facts = {"seconds": time.perf_counter() - began, "interrupted": is_interrupted}
    trajectory = _labelled(setup, seeds, records, None if run.failure else after.weights, facts, points)
    if run.failure is not None:
        raise diverged(setup, seeds, run.failure, trajectory, before)
    return trajectory, after


def _driven(run: Run, setup: Setup, progress: bool | None, interrupt: str) -> tuple[Records, bool]:
    """Call the compiled run block by block until it is through, diverges, or is interrupted."""
    blocks: list[dict[str, np.ndarray]] = []
    is_interrupted = False
    label = f"{type(setup.net).__name__} × {len(run.seeds)}"
    with track(label, run.course.total, progress) as show:
        try:
            while run.is_going:
                blocks.append(run.block())
                show(float(run.course.done), f"loss {run.loss:.4g}")
        except KeyboardInterrupt:
            if interrupt == "raise":
                raise
            is_interrupted = True
    names = blocks[0] if blocks else ()
    return {name: np.concatenate([block[name] for block in blocks], axis=1) for name in names}, is_interrupted


def _labelled(
    setup: Setup,
    seeds: tuple[int, ...],
    records: Records,
    weights: Weights,
    facts: Mapping[str, Any],
    points: Points | None,
) -> Trajectory:
    finished = min((values.shape[1] for values in records.values()), default=0)
    device = jax.devices()[0]
    pair_facts, pair_names = pair_metadata(points)
    return Trajectory(
        np.asarray(setup.times)[:finished],
        records,
        {name: ("seed", "time", *OBSERVABLES[name].axes) for name in records},
        "simulate",
        {
            "festina": __version__,
            "device": device.device_kind,
            "precision": setup.precision,
            **facts,
            **pair_facts,
            **_clock_facts(setup.rule),
        },
        {"seed": np.asarray(seeds), **axis_names(setup.lifted()), **pair_names},
        setup=setup,
        weights=weights,
    )


def _clock_facts(rule: Rule) -> dict[str, str]:
    """The unit of time of a rule with a clock of its own; where none is stated, times are those of gradient flow."""
    return {} if rule.clock == TIME else {"unit_of_time": rule.clock}
