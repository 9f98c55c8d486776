"""A deep network that learns a tree tells broad branches apart first and single items last; a shallow one does not.

Features of the items flip with probability ε on each edge of a binary tree. The singular values of such a task fall
from level to level, and a deep linear network with small initial weights has learned half of level l at the time

    t = τ/(2s) ln(s/(λ a₀) − 1),    s = √η_l/P,  λ = 1/P,  a₀ = N_h σ²/2,

in which nothing is fitted. P is the number of items, η_l the eigenvalue of level l of their similarity matrix, N_h the
number of hidden units and σ² the variance of the initial weights. The hidden representations of the items separate in
the same order, as classical scaling (MDS) of their distances shows. A shallow network learns all levels at one rate.

The slides say that networks must differentiate progressively. They do if 0 < ε < ½ and all levels have equally small
initial strengths; near ½ the levels are so close that the random draw of the weights decides. With ε = ½ the items have
nothing in common, all levels have one singular value, and there is no order. With ε = 0 all items are alike, and there
is nothing to tell apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import BadInput, Setup, inits, nets, rules
from .._figures.overlay import overlay
from .._figures.panels import key, panels
from .._figures.style import COLOURS, INK, NOTE_SIZE, TIME, predicted
from ..theories.aligned_modes import mode, time_to
from ._kit import tree_levels
from ._kit.labelled import in_order, stack, table, time_at
from ._kit.parameters import Count, Number, Numbers, Positive, Seed, Several, checked
from ._kit.training import simulate
from ._kit.tree_levels import DEPTH, tree
from .base import Claim, Result, at_least, at_most, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

THEME, PLACE = "structure", 1
REFERENCE = {
    "saxe2019": "“Progressive differentiation of hierarchical structure”",
    "saxe_slides": "“Progressive differentiation”",
}
QUICK = dict(flips=(0.0, 0.05, 0.15, 0.3, 0.5), lr=0.2, points=150, seeds=3)
FINE_FLIPS = np.linspace(0.04, 0.5, 93)  # probabilities at which the stated half-times are drawn
CAPTION = """
**a** Strength of every level of a binary tree of eight items while a network with one hidden layer learns it from small
random weights, one line for each seed. Level 0 is what all items share; branching 1 separates animals from plants,
branching 2 the kinds within each, branching 3 single items. **b** The same without hidden layer. **c** Paths of the
items in the hidden layer of one network from the origin to the dots, by classical scaling of their distances at each
time, which is the colour: the first and (less) the last branching separate them to the sides, the second up and down.
**d** Half-time of every level against the probability ε that a feature flips on an edge of the tree, in training (dots,
seed medians) and by the theory. The theory starts from the mean initial strength of a mode; nothing is fitted.
"""
ALT = """
In the deep network the levels rise one after another, broad before fine; in the shallow one they rise together. In the
hidden layer animals and plants separate first, then their kinds, then single items. The half-times of the levels fan
out for small ε and meet at one half.
"""
LEVELS: dict[str, str] = dict(zip(("level 0", "branching 1", "branching 2", "branching 3"), COLOURS, strict=False))


@checked
def run(
    *,
    flip: Number = 0.15,
    flips: Numbers = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.45, 0.5),
    hidden: Count = 64,
    scale: Positive = 1e-3,
    until: Positive = 180.0,
    lr: Positive = 0.05,
    points: Several = 300,
    seeds: Count = 8,
    seed: Seed = 0,
) -> Result:
    """Trees are learned at all `flips`; `flip` is the one whose curves and hidden layer are shown."""
    import xarray

    if not {0.0, 0.5, flip} <= set(flips) or not 0 < flip < 0.5:
        raise BadInput(f"flip = {flip}, flips = {flips}", "0, 1/2 and flip itself, between them, in flips", "add")
    task, net, rule = tree(flip), nets.DeepLinear(hidden), rules.GradientDescent(lr)
    axes = "seed", "time", "level"
    shown = Setup(task, net, inits.SmallRandom(scale), rule, until=until, points=points)
    setups = {f: shown.replace(task=tree(f)) for f in flips}
    shallow, all_seeds = shown.replace(net=nets.DeepLinear(())), range(seed, seed + seeds)
    runs = {f: simulate(setup, all_seeds, ["map", "representation"]) for f, setup in setups.items()}
    shallow_run, hidden_layer, times = simulate(shallow, all_seeds, "map"), runs[flip]["representation"], shown.times
    constants = dict(variance=1 / task.d_in, start=hidden * scale**2 / 2)

    def stated(of_flips: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Targets of the levels, and their half-times; infinite where there is nothing to learn."""
        targets = np.stack([tree_levels.targets(tree(f)) for f in of_flips])
        return targets, np.asarray(time_to(targets / 2, singular_value=targets / task.d_in, **constants))

    targets, half_times = stated(np.array(flips))
    learned = {f: table(tree_levels.strengths(run["map"], task), *axes) for f, run in runs.items()}
    singular = targets / task.d_in
    flat = mode(times, **constants | dict(start=0.0), singular_value=tree_levels.targets(task) / task.d_in, depth=1)
    data = xarray.Dataset(
        {
            "training": stack(learned, "flip"),
            "theory": table(mode(times, singular_value=singular, **constants), "time", "flip", "level"),
            "shallow_training": table(tree_levels.strengths(shallow_run["map"], task), *axes),
            "shallow_theory": table(flat, "time", "level"),
            "target": table(targets, "flip", "level"),
            "half_time": table(half_times, "flip", "level"),
            "stated_half_time": table(stated(FINE_FLIPS)[1], "stated_flip", "level"),
            "rank_at_end": table([tree_levels.largest_rank(run["map"][:, -1]) for run in runs.values()], "flip"),
            "distance": table(tree_levels.distances(hidden_layer), "seed", "time", "split"),
            "place": table(tree_levels.places(hidden_layer[0], task), "time", "item", "axis"),
        },
        coords=dict(stated_flip=FINE_FLIPS, time=times, level=np.arange(DEPTH + 1), item=list(task.items or ())),
        attrs={"shown_flip": flip},
    )
    halves = time_at(data.training, data.target / 2).where(data.target > 0, np.inf)
    named = {f"deep, flip {f:g}": setup for f, setup in setups.items()}
    return Result(data.assign(trained_half_time=halves), named | {"shallow": shallow})


def claims(result: Result) -> list[Claim]:
    data = result.data
    goal, shown = data.target.sel(flip=data.attrs["shown_flip"]), data.training.sel(flip=data.attrs["shown_flip"])
    halves, flips = data.trained_half_time, data.flip
    median = halves.median("seed")
    rises = data.stated_half_time.sel(stated_flip=slice(None, 0.4501)).diff("level")
    gap = np.abs(median / data.half_time - 1).where(flips > 0)
    at_half = median.sel(flip=0.5)
    shallow_half = time_at(data.shallow_training, goal / 2)
    parted = time_at(data.distance, data.distance.isel(time=-1) / 2)
    return [
        paper(
            "Share of networks whose half-times rise from each level to the next, ε ≤ 0.2: broad before fine",
            at_least(in_order(halves, "level").where((flips > 0) & (flips <= 0.2), drop=True).mean(), 1.0),
            headline=True,
            panel="a",
        ),
        paper(
            "Share of networks whose hidden representations separate in the order of the tree",
            at_least(in_order(parted, "split").mean(), 1.0),
            headline=True,
            panel="c",
        ),
        paper(
            "Half-times of the formula rise with the level: smallest rise, ε from 0.04 to 0.45 (τ)",
            at_least(rises.min(), 1e-9),
            panel="d",
        ),
        paper(
            "Half-times are τ/(2s) ln(s/(λ a₀) − 1), ε > 0 (not fitted): largest relative gap of the median",
            at_most(gap.max(), 0.1),
            panel="d",
        ),
        paper(
            "Deep network: largest share learned of the finest level when the first branching is at 90 %",
            at_most(_finest_when_first_is_learned(shown / goal).max(), 0.25),
            panel="a",
        ),
        paper(
            "Shallow network: least share learned of the finest level when the first branching is at 90 %",
            at_least(_finest_when_first_is_learned(data.shallow_training / goal).min(), 0.85),
            panel="b",
        ),
        ours(
            "Shallow network: last half-time of a level over the first",
            at_most((shallow_half.max("level") / shallow_half.min("level")).max(), 1.05),
            panel="b",
        ),
        paper(
            "Networks must differentiate progressively, at ε = ½ too: last half-time / first",
            at_least(at_half[-1] / at_half[0], 1.1),
            fails="at ε = ½ all levels have one singular value; progression needs 0 < ε < ½",
            panel="d",
        ),
        paper(
            "Networks must differentiate progressively, at ε = 0 too: number of modes that are learned",
            at_least(data.rank_at_end.sel(flip=0.0), 2),
            fails="at ε = 0 all items are alike and the task has rank 1; progression needs 0 < ε < ½",
            panel="d",
        ),
    ]


def _finest_when_first_is_learned(share: DataArray) -> DataArray:
    """From shares learned, of each seed: that of the finest level when the first branching passes 90 %."""
    moment = (share.isel(level=1) >= 0.9).argmax("time")
    return share.isel(level=-1).isel(time=moment)


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab;cd")
    part = data.sel(flip=data.attrs["shown_flip"])
    colours = list(LEVELS.values())
    overlay(at["a"], part.training, part.theory, by="level", colours=colours)
    overlay(at["b"], part.shallow_training, part.shallow_theory, by="level", colours=colours)
    at["a"].set_title(f"One hidden layer: broad before fine (ε = {data.attrs['shown_flip']:g})")
    at["b"].set(title="No hidden layer: all levels at once", xlim=(0, 0.25 * float(data.time[-1])))
    for letter in "ab":
        at[letter].set_ylabel("strength of the level")
    _draw_places(at["c"], data)
    median = data.trained_half_time.median("seed")
    for level, colour in enumerate(colours):
        reached = median.isel(level=level).where(np.isfinite(median.isel(level=level)))
        at["d"].plot(data.flip, reached, "o", color=colour, ms=6)
        predicted(at["d"], data.stated_flip, data.stated_half_time.isel(level=level), colour=colour)
    at["d"].set(xlabel="probability ε of a flip", ylabel=f"half-{TIME}", title="A fixed order needs 0 < ε < ½")
    key(sheet, LEVELS)
    return sheet


def _draw_places(axes: Axes, data: Dataset) -> None:
    """The paths of the items in the hidden layer, coloured by time."""
    from matplotlib.collections import LineCollection

    learned = 1.5 * float(data.half_time.sel(flip=data.attrs["shown_flip"]).max())
    for item, name in enumerate(data.item.values):
        path = data.place.isel(item=item).values
        lines = LineCollection(list(np.stack([path[:-1], path[1:]], axis=1)), cmap="viridis", lw=2.5)
        lines.set_array(data.time.values[:-1])
        lines.set_clim(0, learned)
        axes.add_collection(lines)
        x, y = path[-1]
        axes.plot(x, y, "o", color=INK, ms=4)
        shift = 0, 6 if y > 0 else -13
        axes.annotate(str(name), (x, y), shift, textcoords="offset points", ha="center", size=NOTE_SIZE)
    axes.margins(0.15, 0.22)
    axes.set(title="Items separate in the hidden layer", xlabel="first and last branching", ylabel="second branching")
    axes.figure.colorbar(axes.collections[-1], ax=axes, label=TIME, extend="max")
