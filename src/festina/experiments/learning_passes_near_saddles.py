"""From small weights a two-layer linear network passes near one saddle of its loss after another, and only near those
of nested sets of modes.

For every subset J of the modes of a task there is a critical point of the loss, at which the network has learned J and
nothing else. The number of directions in which the loss falls there, the index, has a formula, which is compared here
with the Hessian of automatic differentiation. From small initial strengths a the network visits {}, {1}, {1, 2}, … in
turn and no other saddle. Its plateaus are the losses of these, and it comes as near to the k-th as

    distance ~ a^((s_k − s_{k+1})/(s_k + s_{k+1})),

measured over fourteen decades of a on exact solutions, from aligned and from random balanced weights. A random balanced
initialisation is given a determinant of the target's sign; otherwise it never learns the last mode. A shallow network
has one critical point, its minimum: its gradient falls all the time, and it passes near no saddle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from .. import BadInput, Setup, inits, nets, rules, saddles, tasks
from .._figures.overlay import overlay
from .._figures.panels import border, key, panels, plain
from .._figures.style import COLOURS, FAINT_GREY, INK, LIGHT_GREY, NOTE_SIZE, predicted
from .._formulas.mode_at_depth import approach_exponents
from .._foundation.checks import whole
from ..theories.aligned_modes import mode
from ._kit.labelled import largest, stack, table
from ._kit.loss_curvature import curvatures
from ._kit.parameters import POSITIVE, Count, Each, Positive, Positives, Seed, Several, checked
from ._kit.saddle_approach import aligned_maps, along_modes, closest_of_random, observed, power_of, waits
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

THEME, PLACE = "saddles", 1
REFERENCE = {"saxe_slides": "“Depth introduces a hierarchy of saddles”", "baldi1989": "fact 4"}
QUICK = dict(starts=(1e-2, 1e-4, 1e-8), lr=0.01, points=200, fine_points=2000, seeds=2)
SMALL = 1e-8  # exponents are measured at initial strengths up to this one
CAPTION = """
**a** Loss while aligned networks with one hidden layer learn three modes from initial strengths a, and of a network
without hidden layer; the theory is drawn for the smallest a. Grey lines are the losses of saddles, named by the set of
modes that is learned there. **b** Distance of the network's map to that of every saddle, from the smallest a. **c**
Closest approach to the two saddles on the way, against a: exact solutions from aligned and from random balanced
weights, and training (crosses); dashed lines have the predicted exponent, and pass through the leftmost point. **d**
Index (number of directions in which the loss falls) and loss of every critical point; the line joins those that are
visited. In b, c and d a colour is a saddle; saddles that are not visited are grey.
"""
ALT = """
The smaller the initial strength, the longer the loss waits on two plateaus, at the losses of saddles {1} and {1, 2}.
The network comes near {}, {1}, {1, 2} and {1, 2, 3} in turn and to no other; closest approaches fall along straight
lines in the logarithmic plot.
"""
OF_SADDLES, OF_STARTS = COLOURS[:4], (*COLOURS[4:7], INK)


@checked
def run(
    *,
    singular_values: Annotated[tuple[float, ...], Each(POSITIVE, least=2)] = (3.0, 2.0, 1.0),
    hidden: Count = 3,
    starts: Positives = (1e-2, 1e-4, 1e-6, 1e-8),
    smallest: Positive = 1e-16,
    until: Positive = 18.0,
    lr: Positive = 0.005,
    points: Several = 600,
    fine_points: Several = 6000,
    seeds: Count = 8,
    seed: Seed = 0,
) -> Result:
    """Networks are trained from `starts`; exact solutions from every power of ten down to `smallest`.

    `fine_points` are the times at which exact solutions are compared with the saddles.
    """
    values, starts = np.array(singular_values), tuple(sorted(starts, reverse=True))
    if np.any(np.diff(values) >= 0):
        raise BadInput(f"singular_values = {singular_values}", "falling numbers", "sort them")
    whole(hidden, "hidden", least=len(values))
    if smallest > SMALL / 100:
        raise BadInput(f"smallest = {smallest:g}", f"at most {SMALL / 100:g}, for an exponent", "lower it")
    task = tasks.from_moments(np.diag(values), np.eye(len(values)), np.diag(values**2))
    all_saddles, net, rule = saddles(task, hidden), nets.DeepLinear(hidden), rules.GradientDescent(lr)
    aligned = Setup(task, net, along_modes(starts[-1], values, hidden), rule, until=until, points=points)
    all_seeds = range(seed, seed + seeds)  # aligned networks are all alike, but one shape is compiled once
    # Weights of this standard deviation act like the smallest initial strength.
    random = aligned.replace(init=inits.SmallRandom(np.sqrt(2 * starts[-1] / hidden)))
    shallow = aligned.replace(net=nets.DeepLinear(()), init=inits.Given([np.zeros_like(task.cov_x)]))
    setups = {a: aligned.replace(init=along_modes(a, values, hidden)) for a in starts}
    runs = {a: observed(all_saddles, setup, all_seeds).isel(seed=0) for a, setup in setups.items()}
    of_random, of_shallow = observed(all_saddles, random, all_seeds), observed(all_saddles, shallow, [seed])
    decades = 10.0 ** -np.arange(2, np.floor(-np.log10(smallest)) + 1)
    times = np.linspace(0, 1.2 * np.log(values[-1] / decades[-1]) / values[-1], fine_points)
    closest = {a: table(all_saddles.distance(aligned_maps(values, a, times)).min(axis=0), "saddle") for a in decades}
    stated = {a: table(all_saddles.distance(aligned_maps(values, a, aligned.times)), "time", "saddle") for a in starts}
    strengths = mode(aligned.times, singular_value=values, start=starts[-1])
    negative = curvatures(task, [all_saddles.weights(k) for k in range(len(all_saddles))]) < -1e-9  # not flat
    data = stack(runs, "start").assign({f"shallow_{name}": array[0] for name, array in of_shallow.items()})
    data = data.assign(
        saddle_loss=("saddle", all_saddles.losses),
        saddle_index=("saddle", all_saddles.indices),
        counted_index=("saddle", negative.sum(axis=1)),
        subset=("saddle", ["{" + ", ".join(str(k + 1) for k in subset) + "}" for subset in all_saddles.subsets]),
        nested=("stage", all_saddles.nested()),
        stated_distance=stack(stated, "start"),
        stated_loss=("time", 0.5 * np.sum((strengths - values) ** 2, axis=1)),
        random_distance=of_random.distance,
        closest=stack(closest, "decade"),
        closest_random=(("decade", "saddle"), closest_of_random(task, all_saddles, decades, times, seed)),
        singular_value=("mode", values),
    )
    return Result(data, {"aligned": aligned, "small random": random, "shallow": shallow})


def _others(data: Dataset) -> np.ndarray:
    """Positions of the saddles that are not nested."""
    return np.setdiff1d(np.arange(data.sizes["saddle"]), data.nested.values)


def _passed(data: Dataset) -> np.ndarray:
    """Positions of the saddles on the way: nested, neither the origin nor the minimum."""
    return data.nested.values[1:-1]


def claims(result: Result) -> list[Claim]:
    data = result.data
    nested, passed = data.nested.values, _passed(data)
    smallest, unit = data.isel(start=-1), data.singular_value.min()
    waiting, waiting_shallow = (waits(norms.values) for norms in (smallest.gradient_norm, data.shallow_gradient_norm))
    plateaus, levels = smallest.loss.values[waiting], data.saddle_loss.values[passed]
    # The gap is finite only if there are as many plateaus as saddles on the way.
    gap = np.abs(plateaus - levels).max() / data.saddle_loss.max() if len(waiting) == len(passed) else np.inf
    approach, stated = (array[:, passed].min("time") for array in (smallest.distance, smallest.stated_distance))
    others = min(array.isel(saddle=_others(data)).min() for array in (data.distance, data.random_distance))
    random = data.random_distance.isel(saddle=nested).min("time").max()
    shallow = data.shallow_distance.isel(saddle=passed).min()
    off, index = largest(approach / stated - 1), largest(data.saddle_index - data.counted_index)
    fall = -np.diff(data.counted_index.values[nested]).max()
    exponents = approach_exponents(data.singular_value.values)
    powers = [power_of(array[:, passed], "decade", most=SMALL) for array in (data.closest, data.closest_random)]
    aligned, balanced = (largest(power / exponents - 1) for power in powers)
    return [
        paper(
            "Plateaus (minima of the gradient) from the smallest a: their number minus that of saddles on the way",
            between(len(waiting) - len(passed), 0, 0),
            headline=True,
            panel="a",
        ),
        ours(
            "Closest approach to any saddle that is not nested / smallest singular value",
            at_least(others / unit, 0.9),
            headline=True,
            panel="b",
        ),
        paper("Losses of plateaus and of saddles: largest gap / loss of zero weights", at_most(gap, 0.03), panel="a"),
        ours("Largest closest approach of random weights to a nested saddle / smallest s", at_most(random / unit, 0.2)),
        ours("Index of saddles, formula against Hessian: largest gap", at_most(index, 0), panel="d"),
        paper("Hierarchy: smallest fall of the index from a nested saddle to the next", at_least(fall, 1), panel="d"),
        ours("Closest approaches, training against theory: largest relative gap", at_most(off, 0.1), panel="b"),
        ours(
            "Exponents of the closest approach in a, aligned: largest relative gap", at_most(aligned, 0.03), panel="c"
        ),
        ours(
            "Exponents of the closest approach in a, random: largest relative gap", at_most(balanced, 0.03), panel="c"
        ),
        paper(
            "Closest approach of a shallow network to a saddle on the way / smallest s", at_least(shallow / unit, 0.9)
        ),
        ours("Plateaus of a shallow network (minima of its gradient)", at_most(len(waiting_shallow), 0), panel="a"),
    ]


def figure(result: Result) -> Figure:
    from matplotlib.lines import Line2D

    data, names = result.data, result.data.subset.values
    sheet, at = panels("ab;cd", row=3.1)
    colours: dict[int, str] = dict(zip(data.nested.values.tolist(), OF_SADDLES, strict=False))
    overlay(at["a"], data.loss, by="start", colours=OF_STARTS)
    at["a"].plot(data.time, data.shallow_loss, color=INK, lw=1, ls="-.")
    predicted(at["a"], data.time, data.stated_loss, colour=OF_STARTS[data.sizes["start"] - 1])
    for position in colours:
        border(at["a"], float(data.saddle_loss[position]), names[position], across=True)
    at["a"].set(title="Plateaus are at the losses of saddles", ylabel="loss")
    smallest = data.isel(start=-1)
    visited = smallest.isel(saddle=data.nested)
    at["b"].plot(data.time, smallest.distance[:, _others(data)], color=FAINT_GREY, lw=1.5)
    overlay(at["b"], visited.distance, visited.stated_distance, by="stage", colours=OF_SADDLES)
    at["b"].set(title="One saddle after another", ylabel="distance of the map", yscale="log")
    at["b"].set_ylim(1e-4, 2 * float(smallest.distance.max()))
    of_names = {names[position]: colour for position, colour in colours.items()}
    key(at["b"], of_names | {"others": FAINT_GREY}, kinds=(), title="saddle")
    _draw_scaling(at["c"], data, colours)
    _draw_critical_points(at["d"], data, colours)
    marks = [Line2D([], [], color=INK, lw=1, ls="-.", label="no hidden layer")]
    for label, mark, face in (("aligned", "o", INK), ("random", "s", "none"), ("training", "x", INK)):
        marks.append(Line2D([], [], color=INK, ls="", marker=mark, mfc=face, ms=5, label=label))
    of_starts = {f"a = {plain(a)}": colour for a, colour in zip(data.start.values, OF_STARTS, strict=False)}
    key(sheet, of_starts, marks=marks)
    return sheet


def _draw_scaling(axes: Axes, data: Dataset, colours: dict[int, str]) -> None:
    """Closest approaches to the saddles on the way, against the initial strength."""
    for position, exponent in zip(_passed(data), approach_exponents(data.singular_value.values), strict=False):
        closest, colour = data.closest.isel(saddle=position), colours[position]
        axes.plot(data.decade, closest, "o", color=colour, ms=5)
        axes.plot(data.decade, data.closest_random.isel(saddle=position), "s", mfc="none", color=colour, ms=7)
        axes.plot(data.start, data.distance.isel(saddle=position).min("time"), "x", color=INK, ms=7, zorder=4)
        predicted(axes, data.decade, closest[-1] * (data.decade / data.decade[-1]) ** exponent, colour=colour)
    axes.set(title="Smaller initial weights come nearer", xscale="log", yscale="log")
    axes.set(xlabel="initial strength a", ylabel="closest approach")


def _draw_critical_points(axes: Axes, data: Dataset, colours: dict[int, str]) -> None:
    """Loss and index of all saddles; those that are visited are joined."""
    visited = data.isel(saddle=data.nested)
    axes.plot(visited.saddle_index, visited.saddle_loss, color=LIGHT_GREY, lw=1, zorder=0)
    for position, name in enumerate(data.subset.values):
        where = float(data.saddle_index[position]), float(data.saddle_loss[position])
        axes.plot(*where, "o", color=colours.get(position, FAINT_GREY), ms=7)
        # Beside the path of the visited ones, the last one lower; above the others.
        below = -12 if data.saddle_index[position] == 0 else -7
        shift, side = ((9, below), "left") if position in colours else ((0, 7), "center")
        axes.annotate(name, where, shift, textcoords="offset points", ha=side, size=NOTE_SIZE)
    axes.margins(0.14, 0.15)
    axes.set(xlabel="index (falling directions)", ylabel="loss", title="All critical points")
