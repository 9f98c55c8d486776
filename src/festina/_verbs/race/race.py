"""race(): which gating learns first, predicted by theory, and which one a ReLU network follows.

A candidate is a gated network: pathways, and the samples that open each. All candidates are initialised from the same
distribution, and divide the units of the ReLU network among their pathways unless these state widths (the variable
`units` has the total of each candidate).

For every pathway the table gives the singular value of its strongest mode on the target (`s_raw`) and on the residual
that always-open pathways leave (`s_residual`), and the input variance of that mode (`variance`, as vᵀΣˣv, never by
sorting). A pathway in parallel with an always-open one grows on the raw target until that one has learned the mode, and
on the residual after that. Its `head_start` is the logarithm of the factor that it gains by this first phase, and
`pathway_time` the time at which its mode is half learned, to leading order in the logarithm of the start. A subset of
samples and its complement have the same s on the residual; the first phase decides between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._foundation import checks
from ..._foundation.checks import positive, whole
from ..._foundation.errors import BadInput
from ..._setup.setup import Setup
from ...inits.small_random import SmallRandom
from ...nets import MLP, Gated
from ...rules.gradient_descent import GradientDescent
from ...tasks.base import Task
from .candidates import as_nets
from .pathways import Pathway, pathways_of
from .table import add_pathways, add_predictions, add_training, is_still_learning, predicted_curve

if TYPE_CHECKING:
    import xarray

STEADY = 0.02  # lr × the largest singular value, at which descent is close to gradient flow
DOUBLINGS = 10  # how often the last time may be doubled until all candidates that can have learned
LONGER = 1.2  # the last time, in units of the largest predicted time of a pathway
TIME_CONSTANTS = 20  # the last time in time constants of the strongest mode, if no pathway has a predicted time


def race(
    task: Task,
    candidates: Mapping[str, Gated | Sequence[Any]] | None = None,
    *,
    hidden: int = 128,
    scale: float = 1e-4,
    lr: float | None = None,
    until: float | None = None,
    fraction: float = 0.1,
    seeds: int = 1,
    check: bool = True,
) -> xarray.Dataset:
    """Race candidate gatings of a task, and see which one a ReLU network follows; an `xarray.Dataset`.

    Args:
        candidates: {name: Gated, or a list of pathways}; a pathway is a dict as in `Gated.pathways`, a rule such as
            {"context": [0, 1]}, or an array over samples. None takes one candidate for each size m: a pathway that is
            always open, and one pathway for every subset of m contexts; the task must have the label `context`.
        hidden: units of the ReLU network, shared out among the pathways that state no width.
        scale: standard deviation of all initial weights.
        lr: learning rate; None takes one at which descent is close to the flow.
        until: the last time; None takes one at which all candidates that can have learned are predicted to have.
        fraction: a candidate has learned when its loss has fallen to this share of that at the start.
        seeds: how many starts to train.
        check: train the candidates and the ReLU network; if false, predict only.

    The coordinates are `candidate` and `pathway`. `theory` names the theory that predicts a candidate: a closed form
    where there is one; PathDynamics merely integrates the flow of the weights that seed 0 draws. `order` ranks the
    candidates by predicted time, 1 first, 0 for those that do not learn in time; `predicted_steps` corrects the time of
    the slowest pathway for finite steps, in which a mode grows by ln(1 + lr s) and not by lr s. With `check`,
    `distance` is the mean distance between the losses of a candidate and of the ReLU network, in units of the initial
    loss. attrs["winner"] is the predicted winner, "" if no candidate learns; attrs["followed"] is the candidate at the
    smallest distance from the ReLU network.
    """
    import xarray

    checks.instance(task, "task", Task, "build one with festina.tasks, for example tasks.xor(0.5)")
    hidden, seeds, check = whole(hidden, "hidden"), whole(seeds, "seeds"), checks.truth(check, "check")
    scale = positive(scale, "scale")
    lr = None if lr is None else positive(lr, "lr", least=1e-100)
    until = None if until is None else positive(until, "until")
    nets = as_nets(task, candidates, hidden)
    fraction = positive(fraction, "fraction")
    if fraction >= 1:
        raise BadInput(f"fraction = {fraction:g}", "a share of the initial loss below 1", "give fraction=0.1")
    pathways = [pathway for name, net in nets.items() for pathway in pathways_of(name, net, task, scale)]
    strongest = max(pathway.s_raw for pathway in pathways)
    if not strongest > 0:
        raise BadInput(
            "candidates whose pathways see no correlation between inputs and target",
            "a gating that leaves something to learn",
            "gate single samples or contexts apart",
        )
    rule = GradientDescent(STEADY / strongest if lr is None else lr)
    horizon = until if until is not None else _horizon(pathways, strongest)
    setups = {name: Setup(task, net, SmallRandom(scale), rule, until=horizon, points=400) for name, net in nets.items()}
    curves = {name: predicted_curve(setup) for name, setup in setups.items()}
    for _ in range(DOUBLINGS if until is None else 0):
        if not any(is_still_learning(setups[name], curve, fraction) for name, curve in curves.items()):
            break
        horizon *= 2
        setups = {name: setup.replace(until=horizon, points=400) for name, setup in setups.items()}
        curves = {name: predicted_curve(setup) for name, setup in setups.items()}
    table = xarray.Dataset(coords={"candidate": list(nets)})
    add_pathways(table, pathways)
    add_predictions(table, setups, curves, pathways, fraction)
    if check:
        relu = Setup(task, MLP(hidden), SmallRandom(scale), rule, until=horizon, points=400)
        add_training(table, setups, relu, fraction, seeds)
    table.attrs |= {"fraction": fraction, "scale": float(scale), "lr": float(rule.lr), "hidden": hidden}
    return table


def _horizon(pathways: Sequence[Pathway], strongest: float) -> float:
    """A time by which all pathways that are learned have learned their mode, to leading order."""
    times = [pathway.pathway_time for pathway in pathways if np.isfinite(pathway.pathway_time)]
    return LONGER * max(times, default=TIME_CONSTANTS / strongest)
