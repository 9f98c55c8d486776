"""From small weights a two-layer linear network passes near one saddle of its loss after another, and only near those
of nested sets of modes.

For every subset J of the modes of a task there is a critical point of the loss, at which the network has learned J and
nothing else. The number of directions in which the loss falls there, the index, has a formula, which is compared here
with the Hessian of automatic differentiation. From small initial strengths a the network visits {}, {1}, {1, 2}, … in
turn and no other saddle. Its plateaus are the losses of these, and it comes as near to the k-th as

    distance ~ a^((s_k − s_{k+1})/(s_k + s_{k+1})),

measured over fourteen decades of a on exact solutions, from aligned and from random balanced weights. A random balanced
start is flipped so that its determinant has the sign of the target's; otherwise it never learns the last mode. A
shallow network has one critical point, its minimum: its gradient falls all the time, and it passes near none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import BadInput, Setup, inits, nets, rules, saddles, tasks
from .._figures.style import COLOURS, TIME, new_figure, predicted, trained
from .._foundation.checks import positive, real_array, whole
from ..theories.aligned_modes import mode
from ._kit.saddle_approach import aligned_maps, along_modes, closest_of_random, counted_indices, waits
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

THEME, PLACE = "saddles", 1
REFERENCE = {"saxe_slides": "“Depth introduces a hierarchy of saddles”", "baldi1989": "fact 4"}
QUICK = dict(starts=(1e-2, 1e-4, 1e-8), lr=0.01, points=200, fine_points=2000, seeds=2)
SMALL = 1e-8  # exponents are read off at starts up to this one
OBSERVED = ("loss", "map", "gradient_norm")


def run(
    *,
    singular_values: Sequence[float] = (3.0, 2.0, 1.0),
    hidden: int = 3,
    starts: Sequence[float] = (1e-2, 1e-4, 1e-6, 1e-8),
    smallest: float = 1e-16,
    until: float = 18.0,
    lr: float = 0.005,
    points: int = 600,
    fine_points: int = 6000,
    seeds: int = 8,
    seed: int = 0,
) -> Result:
    """Networks are trained from `starts`; exact solutions from every power of ten down to `smallest`.

    `fine_points` are the times at which exact solutions are compared with the saddles.
    """
    values = real_array(singular_values, "singular_values", ndim=1)
    if len(values) < 2 or np.any(np.diff(values) >= 0) or values[-1] <= 0:
        raise BadInput(f"singular_values = {tuple(values)}", "two or more, falling and positive", "sort them")
    hidden = whole(hidden, "hidden", least=len(values))
    fine_points, smallest, seeds = (
        whole(fine_points, "fine_points", least=2),
        positive(smallest, "smallest"),
        whole(seeds, "seeds"),
    )
    falling = sorted((positive(start, "starts") for start in starts), reverse=True)
    if smallest > SMALL / 100:
        raise BadInput(f"smallest = {smallest:g}", f"at most {SMALL / 100:g}, for an exponent", "lower it")
    task = tasks.from_moments(np.diag(values), np.eye(len(values)), np.diag(values**2))
    table, net, rule = saddles(task, hidden), nets.DeepLinear(hidden), rules.GradientDescent(lr)
    aligned = Setup(task, net, along_modes(falling[-1], values, hidden), rule, until=until, points=points)
    times = aligned.times
    all_seeds = list(range(seed, seed + seeds))  # aligned starts are all alike, but one shape is compiled once
    runs = [
        simulate(aligned.replace(init=along_modes(start, values, hidden)), all_seeds, OBSERVED) for start in falling
    ]
    deviation = np.sqrt(2 * falling[-1] / hidden)  # weights of this deviation act like the smallest start
    random = aligned.replace(init=inits.SmallRandom(deviation))
    random_run = simulate(random, all_seeds, OBSERVED)
    shallow = aligned.replace(net=nets.DeepLinear(()), init=inits.Given([np.zeros_like(task.cov_x)]))
    shallow_run = simulate(shallow, [seed], OBSERVED)
    decades = 10.0 ** -np.arange(2, np.floor(-np.log10(smallest)) + 1)
    fine_times = np.linspace(0, 1.2 * np.log(values[-1] / decades[-1]) / values[-1], fine_points)
    closest = [table.distance(aligned_maps(values, start, fine_times)).min(axis=0) for start in decades]
    stated = [table.distance(aligned_maps(values, start, times)) for start in falling]
    stated_strengths = mode(times, singular_value=values, start=falling[-1])
    import xarray

    data = xarray.Dataset(
        {
            "saddle_loss": ("saddle", table.losses),
            "saddle_index": ("saddle", table.indices),
            "counted_index": ("saddle", counted_indices(task, table)),
            "member": (("saddle", "mode"), table.members.astype(int)),
            "nested": ("stage", table.nested()),
            "loss": (("start", "time"), np.stack([run["loss"][0] for run in runs])),
            "gradient_norm": (("start", "time"), np.stack([run["gradient_norm"][0] for run in runs])),
            "distance": (("start", "time", "saddle"), np.stack([table.distance(run["map"][0]) for run in runs])),
            "stated_distance": (("start", "time", "saddle"), np.stack(stated)),
            "stated_loss": ("time", 0.5 * np.sum((stated_strengths - values) ** 2, axis=1)),
            "random_loss": (("seed", "time"), random_run["loss"]),
            "random_distance": (("seed", "time", "saddle"), table.distance(random_run["map"])),
            "shallow_loss": ("time", shallow_run["loss"][0]),
            "shallow_gradient_norm": ("time", shallow_run["gradient_norm"][0]),
            "shallow_distance": (("time", "saddle"), table.distance(shallow_run["map"][0])),
            "closest": (("decade", "saddle"), np.stack(closest)),
            "closest_random": (("decade", "saddle"), closest_of_random(task, table, decades, fine_times, seed)),
            "singular_value": ("mode", values),
        },
        coords={"start": falling, "time": times, "decade": decades, "seed": all_seeds},
    )
    return Result(data, {"aligned": aligned, "small random": random, "shallow": shallow})


def _others(data: Dataset) -> np.ndarray:
    """Positions of the saddles that are not nested."""
    return np.setdiff1d(np.arange(data.sizes["saddle"]), data.nested.values)


def _passed(data: Dataset) -> np.ndarray:
    """Positions of the saddles on the way: nested, neither the origin nor the minimum."""
    return data.nested.values[1:-1]


def _exponents(data: Dataset, name: str) -> np.ndarray:
    """Slope of log closest approach in log start, for each saddle on the way."""
    small = data.where(data.decade <= SMALL * (1 + 1e-9), drop=True)
    return np.polyfit(np.log(small.decade), np.log(small[name].values[:, _passed(data)]), 1)[0]


def _stated_exponents(data: Dataset) -> np.ndarray:
    """(s_k − s_{k+1})/(s_k + s_{k+1})."""
    values = data.singular_value.values
    return (values[:-1] - values[1:]) / (values[:-1] + values[1:])


def claims(result: Result) -> list[Claim]:
    data = result.data
    nested, others, passed = data.nested.values, _others(data), _passed(data)
    levels = data.saddle_loss.values[passed]
    smallest = data.isel(start=-1)
    waiting = waits(smallest.gradient_norm.values)
    plateaus = smallest.loss.values[waiting]
    # The gap is finite only if there are as many plateaus as saddles on the way.
    gap = np.abs(plateaus - levels).max() / data.saddle_loss.max() if len(waiting) == len(passed) else np.inf
    approach, stated = (
        smallest[name].isel(saddle=passed).min("time").values for name in ("distance", "stated_distance")
    )
    expected = _stated_exponents(data)
    off = {name: np.abs(_exponents(data, name) / expected - 1).max() for name in ("closest", "closest_random")}
    return [
        ours(
            "The formula for the index of a saddle counts the negative eigenvalues of its Hessian: largest gap",
            at_most(np.abs(data.saddle_index - data.counted_index).max(), 0),
        ),
        paper(
            "Depth introduces a hierarchy of saddles: smallest fall of the index from one nested saddle to the next",
            at_least(-np.diff(data.counted_index.values[nested]).max(), 1),
        ),
        paper(
            "From the smallest start learning waits at each saddle on its way: minima of the gradient − saddles passed",
            between(len(waiting) - len(passed), 0, 0),
        ),
        paper("… at the loss of this saddle: largest gap / loss of the origin", at_most(gap, 0.03)),
        ours(
            "No other saddle is visited from any start: closest approach / smallest singular value",
            at_least(
                min(data.distance.isel(saddle=others).min(), data.random_distance.isel(saddle=others).min())
                / data.singular_value.min(),
                0.9,
            ),
        ),
        ours(
            "… while small random weights come near all nested ones: largest closest approach / "
            "smallest singular value",
            at_most(data.random_distance.isel(saddle=nested).min("time").max() / data.singular_value.min(), 0.2),
        ),
        ours(
            "Closest approaches in training are those of the closed form: largest relative gap, smallest start",
            at_most(np.abs(approach / stated - 1).max(), 0.1),
        ),
        ours(
            "Closest approach ~ a^((s_k − s_{k+1})/(s_k + s_{k+1})), aligned: largest relative gap of an exponent",
            at_most(off["closest"], 0.03),
        ),
        ours(
            "… and from random balanced weights: largest relative gap of an exponent",
            at_most(off["closest_random"], 0.03),
        ),
        paper(
            "A shallow network passes near none of them: closest approach / smallest singular value",
            at_least(data.shallow_distance.isel(saddle=passed).min() / data.singular_value.min(), 0.9),
        ),
        ours(
            "… and does not wait: number of minima of its gradient before the end",
            at_most(len(waits(data.shallow_gradient_norm.values)), 0),
        ),
    ]


def _names(data: Dataset) -> list[str]:
    """Subsets as texts, modes counted from 1."""
    return ["{" + ", ".join(str(k + 1) for k in np.flatnonzero(row)) + "}" for row in data.member.values]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, ((loss, distance), (scaling, order)) = new_figure(2, 2, width=5.0, height=3.5)
    _draw_losses(loss, data)
    _draw_distances(distance, data)
    _draw_scaling(scaling, data)
    _draw_order(order, data)
    return sheet


def _draw_losses(axes: Axes, data: Dataset) -> None:
    """Losses from all starts, and the losses of the nested saddles."""
    for number, start in enumerate(data.start.values):
        trained(axes, data.time, data.loss.isel(start=number), colour=COLOURS[number], label=f"a = {start:g}")
    axes.plot(data.time, data.shallow_loss, color="0.1", lw=1.5, label="shallow")
    predicted(axes, data.time, data.stated_loss, colour=COLOURS[data.sizes["start"] - 1], label="theory")
    names = _names(data)
    for position in data.nested.values:
        axes.axhline(float(data.saddle_loss[position]), color="0.6", lw=0.8, ls=":", zorder=0)
        axes.annotate(
            names[position],
            (1.0, float(data.saddle_loss[position])),
            xycoords=("axes fraction", "data"),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set(xlabel=TIME, ylabel="loss", title="plateaus are at the losses of saddles")
    axes.legend(loc="upper right")


def _draw_distances(axes: Axes, data: Dataset) -> None:
    """Distances from all saddles on the way, from the smallest start."""
    smallest, names = data.isel(start=-1), _names(data)
    for position in _others(data):
        axes.plot(data.time, smallest.distance.isel(saddle=position), color="0.8", lw=1.5)
    axes.plot([], [], color="0.8", lw=1.5, label="all others")
    for colour, position in zip(COLOURS, data.nested.values, strict=False):
        trained(axes, data.time, smallest.distance.isel(saddle=position), colour=colour, label=names[position])
        predicted(axes, data.time, smallest.stated_distance.isel(saddle=position), colour=colour)
    axes.set(
        xlabel=TIME,
        ylabel="distance of the map",
        yscale="log",
        title=f"saddles one after another, a = {float(smallest.start):g}",
        ylim=(1e-4, 2 * float(smallest.distance.max())),
    )
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))  # beside: curves reach every corner


def _draw_scaling(axes: Axes, data: Dataset) -> None:
    """Closest approaches to the saddles on the way, against the size of the start."""
    names = _names(data)
    for colour, position, exponent in zip(COLOURS[1:], _passed(data), _stated_exponents(data), strict=False):
        axes.plot(
            data.decade,
            data.closest.isel(saddle=position),
            "o",
            color=colour,
            ms=5,
            label=f"{names[position]}, aligned",
        )
        axes.plot(
            data.decade, data.closest_random.isel(saddle=position), "s", mfc="none", color=colour, ms=5, label="random"
        )
        axes.plot(data.start, data.distance.isel(saddle=position).min("time"), "x", color="0.1", ms=7, zorder=4)
        line = float(data.closest.isel(saddle=position, decade=-1)) * (data.decade / data.decade[-1]) ** exponent
        predicted(axes, data.decade, line, colour=colour, label=f"a^{exponent:.3g}")
    axes.plot([], [], "x", color="0.1", ms=7, label="training")
    axes.set(
        xlabel="start a", ylabel="closest approach", xscale="log", yscale="log", title="smaller starts come nearer"
    )
    axes.legend(loc="lower right", fontsize=7.5)


def _draw_order(axes: Axes, data: Dataset) -> None:
    """Loss and index of all saddles; those that are visited are joined."""
    names, nested = _names(data), data.nested.values
    axes.plot(data.saddle_index, data.saddle_loss, "o", color="0.6", ms=5)
    axes.plot(data.saddle_index[nested], data.saddle_loss[nested], "o-", color=COLOURS[0], ms=6, label="visited")
    for position, name in enumerate(names):
        where = float(data.saddle_index[position]), float(data.saddle_loss[position])
        # Beside the path of the visited ones, above the others.
        shift, side = ((9, -9), "left") if position in nested else ((0, 7), "center")
        axes.annotate(name, where, shift, textcoords="offset points", ha=side, fontsize=8)
    axes.margins(0.12, 0.15)
    axes.set(xlabel="index (falling directions)", ylabel="loss", title="all critical points")
    axes.legend(loc="upper left")
