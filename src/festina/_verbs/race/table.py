"""The table of a race: what theory predicts of every candidate, and what training shows."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..._formulas.curves import time_to_fraction
from ..._foundation.errors import NoTheory
from ..._setup.setup import Setup
from ..._setup.trajectory import Trajectory
from ..._training.simulate import simulate
from ...inits.base import Init
from ...inits.decoupled import Decoupled
from ...inits.small_random import SmallRandom
from ...nets.gated.graph import graph_of
from ...rules.base import rate_of
from ...rules.gradient_flow import GradientFlow
from ..covering import coverage
from ..solve import solve
from .pathways import Pathway, in_steps

if TYPE_CHECKING:
    import xarray

QUANTITIES = ("s_raw", "s_residual", "variance", "head_start", "pathway_time", "always_open")


def predicted_curve(setup: Setup) -> Trajectory:
    """The loss under gradient flow, predicted by the first theory that covers this candidate, closed forms first."""
    setup = setup.replace(rule=GradientFlow())
    candidates = {
        "DisjointPathways": setup.replace(init=_expected_start(setup)),
        "ContextRace": setup,
        "NeuralRace": setup,
        "PathDynamics": setup,
    }
    for name, candidate in candidates.items():
        with contextlib.suppress(NoTheory):
            return solve(candidate, name, observe="loss")
    refused = [f"{name}: {coverage(candidate, name).failed[0]}" for name, candidate in candidates.items()]
    raise NoTheory(
        "no theory of gated networks covers this candidate:\n    " + "\n    ".join(refused),
        "a gated network",
        "give candidates as Gated nets or lists of pathways",
    )


def _expected_start(setup: Setup) -> Init:
    """An init with the mean effective start of small random two-layer pathways: strength √(n/2)·scale in each layer."""
    graph = graph_of(setup.net)
    hidden = [set(edge) & set(graph.hidden) for edge in graph.edges]
    if graph.depth != 2 or any(len(node) != 1 for node in hidden):
        return setup.init
    widths = np.array([graph.size[node.pop()] for node in hidden])
    assert isinstance(setup.init, SmallRandom)  # the law of all candidates
    return Decoupled(setup.init.scale * np.sqrt(widths / 2))


def is_still_learning(setup: Setup, curve: Trajectory, fraction: float) -> bool:
    """Whether a candidate could learn enough, and has not by the end of the curve."""
    lowest = float(setup.lifted().single_task.floor())
    able = lowest < 0.999 * fraction * curve["loss"][0]
    return bool(able and not np.isfinite(time_to_fraction(curve.times, curve["loss"], fraction)))


def add_pathways(table: xarray.Dataset, pathways: Sequence[Pathway]) -> None:
    """What is known of every pathway before training."""
    table.coords["pathway"] = [f"{pathway.candidate}: {pathway.name}" for pathway in pathways]
    table.coords["of"] = ("pathway", [pathway.candidate for pathway in pathways])
    for quantity in QUANTITIES:
        table[quantity] = ("pathway", [getattr(pathway, quantity) for pathway in pathways])


def add_predictions(
    table: xarray.Dataset,
    setups: Mapping[str, Setup],
    curves: Mapping[str, Trajectory],
    pathways: Sequence[Pathway],
    fraction: float,
) -> None:
    """Predicted losses and times of all candidates, their order, and who wins."""
    times = np.array([time_to_fraction(curve.times, curve["loss"], fraction) for curve in curves.values()])
    lr = float(rate_of(next(iter(setups.values())).rule))
    slowest = [max((p for p in pathways if p.candidate == name), key=lambda p: p.pathway_time) for name in setups]
    steps = [in_steps(time, pathway.phases, lr) for time, pathway in zip(times, slowest, strict=True)]
    learn = np.isfinite(times)
    table["units"] = ("candidate", [sum(setup.net.hidden) for setup in setups.values()])
    table["theory"] = ("candidate", [curve.source for curve in curves.values()])
    table["predicted_time"] = ("candidate", times)
    table["predicted_steps"] = ("candidate", steps)
    table["order"] = ("candidate", np.where(learn, 1 + np.argsort(np.argsort(times, kind="stable"), kind="stable"), 0))
    table.coords["time"] = next(iter(curves.values())).times
    table["predicted_loss"] = (("candidate", "time"), np.stack([curve["loss"] for curve in curves.values()]))
    table.attrs["winner"] = list(setups)[int(np.argmin(times))] if learn.any() else ""


def add_training(table: xarray.Dataset, setups: Mapping[str, Setup], relu: Setup, fraction: float, seeds: int) -> None:
    """Trained losses and times of the ReLU network and of all candidates, and whom the network follows."""
    free = simulate(relu, seeds=seeds, observe="loss", interrupt="raise")
    gated = [simulate(setup, seeds=seeds, observe="loss", interrupt="raise") for setup in setups.values()]
    table.coords["seed"] = np.arange(seeds)
    table["relu_loss"] = (("seed", "time"), free["loss"])
    table["relu_time"] = ("seed", [time_to_fraction(free.times, loss, fraction) for loss in free["loss"]])
    table["loss"] = (("candidate", "seed", "time"), np.stack([run["loss"] for run in gated]))
    table["trained_time"] = (
        ("candidate", "seed"),
        [[time_to_fraction(run.times, loss, fraction) for loss in run["loss"]] for run in gated],
    )
    gaps = np.abs(table["loss"].values - free["loss"][None]) / free["loss"][None, :, :1]
    table["distance"] = (("candidate", "seed"), gaps.mean(axis=-1))
    table.attrs["followed"] = list(setups)[int(np.argmin(table["distance"].values.mean(axis=-1)))]
