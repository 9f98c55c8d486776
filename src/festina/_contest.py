"""race(): which gating learns first, predicted by theory, and which one a ReLU network follows.

A candidate is a gated network: pathways, and the samples that open each. All start from the same law, and share out
the units of the ReLU network among their pathways unless they state widths (`units` says how many each has).

For every pathway the table gives the strongest mode of its moments on the target (`s_raw`), on what pathways that are
always open leave of it (`s_residual`) and its input variance (`variance`, by vᵀΣˣv, never by sorting). A pathway beside
one that is always open grows on the raw target until that one has learned the mode, and on the residual after: its
`head_start` is the logarithm of what it gains by this, and `pathway_time` the time at which it has half of its mode, to
leading order in the logarithm of the start. A subset of samples and its complement tie on the residual; it is the raw
phase that decides between them.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _checks
from ._errors import BadInput, NoTheory, shown
from ._linalg import NOTHING
from ._noun import positive, whole
from ._paths import PathMoments
from ._setup import Setup, Task
from ._simulate import simulate
from ._solve import coverage, solve
from ._trajectory import Trajectory
from .inits import Decoupled, SmallRandom
from .nets import MLP, Gated
from .nets._builders import PARTS
from .rules import GradientDescent, GradientFlow

STEADY = 0.02  # lr × the strongest mode: descent is then close to the flow
DOUBLINGS = 10  # of the last time, until all candidates that can have learned
QUANTITIES = ("s_raw", "s_residual", "variance", "head_start", "pathway_time", "always_open")


def race(
    task: Task,
    candidates: Mapping[str, Any] | None = None,
    *,
    hidden: int = 128,
    scale: float = 1e-4,
    lr: float | None = None,
    until: float | None = None,
    fraction: float = 0.1,
    seeds: int = 1,
    check: bool = True,
) -> Any:
    """Race candidate gatings of a task, and see which one a ReLU network follows; an `xarray.Dataset`.

    Args:
        candidates: {name: Gated, or a list of pathways}; a pathway is a dict as in `Gated.pathways`, a rule such as
            {"context": [0, 1]}, or an array over samples. None takes, for each size m, a pathway that is always open
            beside one for every m of the contexts; the task must have the label `context`.
        hidden: units of the ReLU network, shared out among the pathways that state no width.
        scale: standard deviation of all initial weights.
        lr: learning rate; None takes one at which descent is close to the flow.
        until: the last time; None takes one at which all candidates that can have learned are predicted to have.
        fraction: a candidate has learned when its loss has fallen to this share of that at the start.
        seeds: how many starts to train.
        check: train the candidates and the ReLU network; if false, predict only.

    The coordinates are `candidate` and `pathway`. `theory` says what predicts a candidate: a closed form where there
    is one; PathDynamics is no more than the flow of the very weights that seed 0 draws. `order` ranks the candidates by
    predicted time, 1 first, 0 for those that do not learn in time; `predicted_steps` corrects the time of the slowest
    pathway for finite steps, in which a mode grows by ln(1 + lr s) and not by lr s. With `check`, `distance` is the
    mean distance between the losses of a candidate and of the ReLU network, in units of the loss at the start;
    attrs["winner"] is predicted ("" if nobody learns), attrs["followed"] is the candidate at the smallest distance.
    """
    import xarray

    _checks.instance(task, "task", Task, "build one with festina.tasks, for example tasks.xor(0.5)")
    hidden, seeds, check = whole(hidden, "hidden"), whole(seeds, "seeds"), _checks.truth(check, "check")
    scale = positive(scale, "scale")
    lr = None if lr is None else positive(lr, "lr", least=1e-100)
    until = None if until is None else positive(until, "until")
    nets = _as_nets(task, candidates, hidden)
    fraction = positive(fraction, "fraction")
    if fraction >= 1:
        raise BadInput(f"fraction = {fraction:g}", "a share of the initial loss below 1", "give fraction=0.1")
    entrants = [entrant for name, net in nets.items() for entrant in _entrants(name, net, task, scale)]
    strongest = max(entrant["s_raw"] for entrant in entrants)
    if not strongest > 0:
        raise BadInput(
            "candidates whose pathways see no correlation between inputs and target",
            "a gating that leaves something to learn",
            "gate single samples or contexts apart",
        )
    rule = GradientDescent(STEADY / strongest if lr is None else lr)
    times = [e["pathway_time"] for e in entrants if np.isfinite(e["pathway_time"])]
    horizon = until if until is not None else 1.2 * max(times, default=20 / strongest)
    setups = {name: Setup(task, net, SmallRandom(scale), rule, until=horizon, points=400) for name, net in nets.items()}
    curves = {name: _predicted(setup) for name, setup in setups.items()}
    for _ in range(DOUBLINGS if until is None else 0):
        if not any(_still_learning(setups[name], curve, fraction) for name, curve in curves.items()):
            break
        horizon *= 2
        setups = {name: setup.replace(until=horizon, points=400) for name, setup in setups.items()}
        curves = {name: _predicted(setup) for name, setup in setups.items()}
    table = xarray.Dataset(coords={"candidate": list(nets)})
    _add_pathways(table, entrants)
    _add_predictions(table, setups, curves, entrants, fraction)
    if check:
        relu = Setup(task, MLP(hidden), SmallRandom(scale), rule, until=horizon, points=400)
        _add_training(table, setups, relu, fraction, seeds)
    table.attrs |= {"fraction": fraction, "scale": float(scale), "lr": float(rule.lr), "hidden": hidden}
    return table


def _as_nets(task: Task, candidates: Mapping[str, Any] | None, hidden: int) -> dict[str, Gated]:
    if task.samples is None:
        raise BadInput("a race on a task without samples", "samples, which gates select", "use tasks.from_arrays")
    if candidates is None:
        return _context_subsets(task, hidden)
    if not isinstance(candidates, Mapping) or not candidates:
        raise BadInput(
            f"candidates = {shown(candidates)}", "{name: Gated or list of pathways}", 'give {"xor": [{"item": [0]}, …]}'
        )
    nets = {
        str(name): given if isinstance(given, Gated) else Gated.pathways(_with_widths(given, task, hidden))
        for name, given in candidates.items()
    }
    for name, net in nets.items():
        if net.switches:
            raise BadInput(
                f"candidate {name!r} with gates that change at {net.switches}",
                "gates that stay: all candidates run from the start",
                "leave begins and schedules out",
            )
    return nets


def _with_widths(pathways: Any, task: Task, hidden: int) -> list[dict[str, Any]]:
    listed = list(pathways) if isinstance(pathways, Sequence) and not isinstance(pathways, str) else []
    if not listed:
        raise BadInput(
            f"a candidate given as {shown(pathways)}", "a Gated net or a list of pathways", "see Gated.pathways"
        )
    rule = lambda p: isinstance(p, Mapping) and "on" not in p and set(p) <= set(task.labels or ())  # noqa: E731
    stated = [p if isinstance(p, Mapping) and set(p) <= set(PARTS) and not rule(p) else {"on": p} for p in listed]
    return [{"width": max(1, hidden // len(stated)), **pathway} for pathway in stated]


def _context_subsets(task: Task, hidden: int) -> dict[str, Gated]:
    """For each m, a pathway that is always open beside one for every m of the contexts."""
    if not task.labels or "context" not in task.labels:
        raise BadInput(
            f"no candidates, and a task with the labels {sorted(task.labels or ())}",
            "candidates, or the label 'context' to take subsets of",
            "give candidates={name: [pathways]}, or labels={'context': […]} to tasks.from_arrays",
        )
    contexts = np.unique(task.labels["context"])
    # Inputs that only tell the context belong to the common pathway: with them a subset could see which it is in.
    within = [task.x[task.labels["context"] == context] for context in contexts]
    tells_context = np.all([np.ptp(rows, axis=0) == 0 for rows in within], axis=0)
    sees = tuple(int(column) for column in np.flatnonzero(~tells_context))
    found = {}
    for size in range(1, len(contexts)):
        subsets = [tuple(float(c) for c in subset) for subset in itertools.combinations(contexts, size)]
        width = max(1, hidden // (len(subsets) + 1))
        others = [
            {"on": {"context": s}, "sees": sees, "width": width, "name": f"context {'+'.join(f'{c:g}' for c in s)}"}
            for s in subsets
        ]
        found[f"{size} of {len(contexts)} contexts"] = Gated.pathways([{"name": "common", "width": width}, *others])
    return found


def _entrants(candidate: str, net: Gated, task: Task, scale: float) -> list[dict[str, Any]]:
    """What is known of every pathway of a candidate before the race; from moments alone."""
    moments, reads = net.moments(task), net.columns(task.d_in, task.d_out)[0]
    size = net.graph.size
    always = [p for p in range(len(moments.paths)) if np.all(moments.openings[p] == 1)]
    found = []
    for p, path in enumerate(moments.paths):
        if not moments.openings[p].any():
            continue
        two_layers = len(path.edges) == 2
        start = scale**2 * size[path.nodes[1]] / 2 if two_layers else np.nan
        entrant = {"candidate": candidate, "pathway": str(path), "always_open": p in always}
        beside = [a for a in always if moments.paths[a].target == path.target and p not in always]
        found.append(entrant | (_behind if beside else _alone)(moments, p, beside, start, reads))
    return found


def _alone(moments: PathMoments, p: int, beside: list[int], start: float, reads: Any) -> dict[str, Any]:
    """A pathway that has the target for itself."""
    _, s, right = _top(moments.cov_yx[p])
    variance = float(right @ moments.cov_x[p, p] @ right)
    time = _half_time(s, variance, start)
    return {
        "s_raw": s, "s_residual": np.nan, "variance": variance, "head_start": 0.0, "pathway_time": time,
        "phases": ((s, s, time),),
    }  # fmt: skip


def _behind(moments: PathMoments, p: int, beside: list[int], start: float, reads: Any) -> dict[str, Any]:
    """A pathway beside others that are always open: the raw phase, then the residual one."""
    raw, cov_x = moments.cov_yx[p], moments.cov_x
    explained = np.hstack([moments.cov_yx[a] for a in beside])
    shared = np.block([[cov_x[a, b] for b in beside] for a in beside])
    residual = raw - explained @ np.linalg.pinv(shared, hermitian=True) @ np.vstack([cov_x[a, p] for a in beside])
    direction, s, right = _top(residual)
    pull = raw @ right
    along = float(np.linalg.norm(pull))
    cosine = float(direction @ pull / along) if along > 0 else 0.0
    variance = float(right @ cov_x[p, p] @ right)
    learned, faster = _learned_by(right, moments, p, beside, start, reads)
    head = 2 * (along - s) * learned + 2 * np.log(max((1 + cosine) / 2, 1e-300))
    worth = s > NOTHING * along and variance > 0 and start > 0
    time = learned + max(0.0, np.log(s / variance / start) - head) / (2 * s) if worth else np.inf
    return {
        "s_raw": _top(raw)[1], "s_residual": s, "variance": variance, "head_start": head, "pathway_time": time,
        "phases": ((faster, along, learned), (s, s, np.inf)),
    }  # fmt: skip


def _learned_by(
    right: Any, moments: PathMoments, p: int, beside: list[int], start: float, reads: Any
) -> tuple[float, float]:
    """When a pathway that is always open has learned the mode whose inputs are most like p's mode, and its s."""
    columns = list(reads[moments.paths[p].source])
    best, when, strength = 0.0, 0.0, 0.0
    for a in beside:
        source = list(reads[moments.paths[a].source])
        _, values, modes = np.linalg.svd(moments.cov_yx[a], full_matrices=False)
        spread = np.zeros(1 + max([*source, *columns]))
        spread[columns] = right
        likeness = np.abs(modes @ spread[source])
        k = int(np.argmax(likeness))
        if likeness[k] > best and values[k] > 0:
            best, strength = float(likeness[k]), float(values[k])
            when = _half_time(strength, modes[k] @ moments.cov_x[a, a] @ modes[k], start)
    return when, strength


def _half_time(s: float, variance: float, start: float) -> float:
    """When a mode of two balanced layers has half of its end s/variance. [jarvis2025, eq. 7]"""
    if not (s > 0 and start > 0):
        return np.inf
    return float(np.log(max(s / (variance * start) - 1, 1.0)) / (2 * s))


def _top(matrix: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return left[:, 0], float(values[0]), right[0]


def _add_pathways(table: Any, entrants: list[dict[str, Any]]) -> None:
    names = [f"{e['candidate']}: {e['pathway']}" for e in entrants]
    table.coords["pathway"] = names
    table.coords["of"] = ("pathway", [e["candidate"] for e in entrants])
    for quantity in QUANTITIES:
        table[quantity] = ("pathway", [e[quantity] for e in entrants])


def _still_learning(setup: Setup, curve: Trajectory, fraction: float) -> bool:
    """Whether a candidate could learn enough, and has not by the end of the curve."""
    lowest = float(setup.bound().task.floor())
    able = lowest < 0.999 * fraction * curve["loss"][0]
    return able and not np.isfinite(time_to(curve.times, curve["loss"], fraction))


def _add_predictions(
    table: Any, setups: dict[str, Setup], curves: dict[str, Trajectory], entrants: list[dict[str, Any]], fraction: float
) -> None:
    times = np.array([time_to(curve.times, curve["loss"], fraction) for curve in curves.values()])
    lr = float(next(iter(setups.values())).rule.lr)
    slowest = [max((e for e in entrants if e["candidate"] == name), key=lambda e: e["pathway_time"]) for name in setups]
    learn = np.isfinite(times)
    table["units"] = ("candidate", [sum(setup.net.hidden) for setup in setups.values()])
    table["theory"] = ("candidate", [curve.source for curve in curves.values()])
    table["predicted_time"] = ("candidate", times)
    table["predicted_steps"] = ("candidate", [_steps(t, e["phases"], lr) for t, e in zip(times, slowest, strict=True)])
    table["order"] = ("candidate", np.where(learn, 1 + np.argsort(np.argsort(times, kind="stable"), kind="stable"), 0))
    table.coords["time"] = next(iter(curves.values())).times
    table["predicted_loss"] = (("candidate", "time"), np.stack([curve["loss"] for curve in curves.values()]))
    table.attrs["winner"] = list(setups)[int(np.argmin(times))] if learn.any() else ""


def _steps(time: float, phases: Any, lr: float) -> float:
    """A time of the flow in steps. In each phase (s that ends it, s of the pathway, duration) rates are shorter.

    A mode s grows by ln(1 + lr s) per step and not by lr s: the phase lasts longer, and what the pathway gains in it
    is another, which the next phase has to make up for.
    """
    if not np.isfinite(time):
        return np.inf
    steps, missing = 0.0, 0.0
    for ends, own, lasts in phases:
        spent = min(time, lasts)
        longer = spent * ends * lr / np.log1p(lr * ends) if ends > 0 else spent
        longer += missing * lr / np.log1p(lr * own) if own > 0 else 0.0
        missing = own * spent - np.log1p(lr * own) / lr * longer
        steps, time = steps + longer / lr, time - spent
        if time <= 0:
            break
    return float(steps)


def _predicted(setup: Setup) -> Trajectory:
    """The flow, by the first theory, closed forms before integration, that may be asked for this candidate."""
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


def _expected_start(setup: Setup) -> Any:
    """Small random layers of two-layer pathways as their modes see them on average: √(n/2)·scale in either layer."""
    drawn = setup.net.graph
    hidden = [set(edge) & set(drawn.hidden) for edge in drawn.edges]
    if drawn.depth != 2 or any(len(node) != 1 for node in hidden):
        return setup.init
    widths = np.array([drawn.size[node.pop()] for node in hidden])
    return Decoupled(setup.init.scale * np.sqrt(widths / 2))


def _add_training(table: Any, setups: dict[str, Setup], relu: Setup, fraction: float, seeds: int) -> None:
    free = simulate(relu, seeds=seeds, observe="loss")
    gated = [simulate(setup, seeds=seeds, observe="loss") for setup in setups.values()]
    table.coords["seed"] = np.arange(seeds)
    table["relu_loss"] = (("seed", "time"), free["loss"])
    table["relu_time"] = ("seed", [time_to(free.times, loss, fraction) for loss in free["loss"]])
    table["loss"] = (("candidate", "seed", "time"), np.stack([run["loss"] for run in gated]))
    table["trained_time"] = (
        ("candidate", "seed"),
        [[time_to(run.times, loss, fraction) for loss in run["loss"]] for run in gated],
    )
    gaps = np.abs(table["loss"].values - free["loss"][None]) / free["loss"][None, :, :1]
    table["distance"] = (("candidate", "seed"), gaps.mean(axis=-1))
    table.attrs["followed"] = list(setups)[int(np.argmin(table["distance"].values.mean(axis=-1)))]


def time_to(times: Any, losses: Any, fraction: float) -> float:
    """When the loss first falls to `fraction` of that at the start, between times on a logarithmic scale of losses."""
    level = fraction * losses[0]
    below = np.flatnonzero(losses <= level)
    if not len(below):
        return np.inf
    k = int(below[0])
    if k == 0 or losses[k] <= 0:
        return float(times[k])
    share = np.log(losses[k - 1] / level) / np.log(losses[k - 1] / losses[k])
    return float(times[k - 1] + share * (times[k] - times[k - 1]))
