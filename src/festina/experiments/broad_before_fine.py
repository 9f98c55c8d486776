"""A deep network that learns a tree tells broad branches apart first and single items last; a shallow one does not.

Features of the items flip with probability ε on each edge of a binary tree. The singular values of such a world fall
from level to level, and a deep linear network with small initial weights has learned half of level l at the time

    t = τ/(2s) ln(s/(λ a₀) − 1),    s = √η_l/P,  λ = 1/P,  a₀ = N_h σ²/2,

in which nothing is fitted. Its hidden representations of the items move apart in the same order, as classical scaling
(MDS) of their distances shows. A shallow network learns all levels at one rate.

The slides say that networks must differentiate progressively. They do if 0 < ε < ½ and all levels start equally small;
near ½ the levels are so close that the random draw of the weights decides. With ε = ½ the items have nothing in common,
all levels have one singular value, and there is no order. With ε = 0 all items are alike, and there is nothing to tell
apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import BadInput, Setup, inits, nets, rules
from .._figures.style import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._formulas.curves import half_time
from .._foundation.checks import whole
from ..theories.aligned_modes import mode
from ._kit import tree_levels
from ._kit.training import simulate
from ._kit.tree_levels import DEPTH, tree
from .base import Claim, Result, at_least, at_most, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

THEME, PLACE = "structure", 1
REFERENCE = {
    "saxe2019": "“Progressive differentiation of hierarchical structure”",
    "saxe_slides": "“Progressive differentiation”",
}
QUICK = dict(flips=(0.0, 0.05, 0.15, 0.3, 0.5), lr=0.2, points=150, seeds=3)
FINE_FLIPS = np.linspace(0.04, 0.5, 93)  # probabilities at which the stated half-times are drawn


def run(
    *,
    flip: float = 0.15,
    flips: Sequence[float] = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.45, 0.5),
    hidden: int = 64,
    scale: float = 1e-3,
    until: float = 180.0,
    lr: float = 0.05,
    points: int = 300,
    seeds: int = 8,
    seed: int = 0,
) -> Result:
    """Trees are learned at all `flips`; `flip` is the one whose curves and hidden layer are shown."""
    if not {0.0, 0.5, flip} <= set(flips) or not 0 < flip < 0.5:
        raise BadInput(
            f"flip = {flip}, flips = {tuple(flips)}", "0, 1/2 and flip itself, between them, in flips", "add"
        )
    task, net, init, rule = tree(flip), nets.DeepLinear(hidden), inits.SmallRandom(scale), rules.GradientDescent(lr)
    shown = Setup(task, net, init, rule, until=until, points=points)
    all_seeds, times = list(range(seed, seed + whole(seeds, "seeds"))), shown.times
    setups = {f"deep, flip {probability:g}": shown.replace(task=tree(probability)) for probability in flips}
    runs = [simulate(setup, all_seeds, ["map", "representation"]) for setup in setups.values()]
    shallow = shown.replace(net=nets.DeepLinear(()))
    shallow_map = simulate(shallow, all_seeds, "map")["map"]
    learned = np.stack([tree_levels.strengths(trajectory["map"], task) for trajectory in runs])
    targets = np.stack([tree_levels.targets(tree(probability)) for probability in flips])
    fine_targets = np.stack([tree_levels.targets(tree(probability)) for probability in FINE_FLIPS])
    # There is no half-time where there is nothing to learn.
    halves = np.where(targets[:, None] > 0, half_time(times, learned, targets[:, None], axis=-2), np.inf)
    hidden_layer = runs[list(flips).index(flip)]["representation"]
    singular, variance, start = targets / task.d_in, 1 / task.d_in, hidden * scale**2 / 2
    shallow_singular = tree_levels.targets(task) / task.d_in
    import xarray

    data = xarray.Dataset(
        {
            "training": (("flip", "seed", "time", "level"), learned),
            "trained_half_time": (("flip", "seed", "level"), halves),
            "theory": (("time", "flip", "level"), mode(times, singular_value=singular, variance=variance, start=start)),
            "shallow_training": (("seed", "time", "level"), tree_levels.strengths(shallow_map, task)),
            "shallow_theory": (
                ("time", "level"),
                mode(times, singular_value=shallow_singular, variance=variance, start=0.0, depth=1),
            ),
            "target": (("flip", "level"), targets),
            "half_time": (("flip", "level"), tree_levels.stated_half_times(singular, variance, start)),
            "stated_half_time": (
                ("stated_flip", "level"),
                tree_levels.stated_half_times(fine_targets / task.d_in, variance, start),
            ),
            "rank_at_end": ("flip", [tree_levels.largest_rank(trajectory["map"][:, -1]) for trajectory in runs]),
            "distance": (("seed", "time", "split"), tree_levels.distances(hidden_layer)),
            "place": (("time", "item", "axis"), tree_levels.places(hidden_layer[0], task)),
        },
        coords={
            "flip": list(flips),
            "stated_flip": FINE_FLIPS,
            "seed": all_seeds,
            "time": times,
            "level": np.arange(DEPTH + 1),
            "split": np.arange(1, DEPTH + 1),
            "item": list(task.items or ()),
        },
        attrs={"shown_flip": flip},
    )
    return Result(data, setups | {"shallow": shallow})


def claims(result: Result) -> list[Claim]:
    data = result.data
    times, flips = data.time.values, data.flip.values
    trained_half = data.trained_half_time.values
    median = np.median(trained_half, axis=1)
    well_apart = (flips > 0) & (flips <= 0.2)
    rises = np.diff(data.stated_half_time.sel(stated_flip=slice(None, 0.4501)).values, axis=-1)
    gap = np.abs(median[flips > 0] / data.half_time.values[flips > 0] - 1)
    shown = int(np.flatnonzero(flips == data.attrs["shown_flip"])[0])
    ratio = median[:, -1] / median[:, 0]
    goal = data.target.values[shown]
    shallow_half = half_time(times, data.shallow_training.values, goal, axis=1)
    finest = _finest_when_first_is_learned(data.training.values[shown] / goal)
    shallow_finest = _finest_when_first_is_learned(data.shallow_training.values / goal)
    apart = data.distance.values
    parted = half_time(times, apart, apart[:, -1], axis=1)
    return [
        paper(
            "Broad before fine, ε ≤ 0.2: share of networks whose half-times rise with the level",
            at_least(np.mean(np.all(np.diff(trained_half[well_apart], axis=-1) > 0, axis=-1)), 1.0),
        ),
        paper(
            "… as they must from equal starts: smallest rise of the stated half-time from one level to the next, "
            "ε from 0.04 to 0.45",
            at_least(rises.min(), 1e-9),
        ),
        paper(
            "Half-times are τ/(2s) ln(s/(λ a₀) − 1), ε > 0 (not fitted): largest relative gap of the median",
            at_most(gap.max(), 0.1),
        ),
        paper(
            "Hidden representations of broad branches part first: share of networks in the order of the tree",
            at_least(np.mean(np.all(np.diff(parted, axis=-1) > 0, axis=-1)), 1.0),
        ),
        paper(
            "A deep network learns in stages: share of the finest level that is learned when the first branching is at "
            "90 %, largest",
            at_most(finest.max(), 0.25),
        ),
        paper(
            "A shallow network has no stages: share of the finest level at that moment, smallest",
            at_least(shallow_finest.min(), 0.85),
        ),
        ours(
            "… and all levels have one half-time: last / first",
            at_most(np.max(shallow_half.max(axis=-1) / shallow_half.min(axis=-1)), 1.05),
        ),
        paper(
            "Networks must differentiate progressively, at ε = ½ too: last half-time / first",
            at_least(ratio[flips == 0.5][0], 1.1),
            fails="at ε = ½ all levels have one singular value; progression needs 0 < ε < ½",
        ),
        paper(
            "… and at ε = 0: number of modes that are learned",
            at_least(data.rank_at_end.values[flips == 0][0], 2),
            fails="at ε = 0 all items are alike and the world has rank 1; progression needs 0 < ε < ½",
        ),
    ]


def _finest_when_first_is_learned(share: np.ndarray) -> np.ndarray:
    """From shares learned (seed, time, level): that of the finest level when the first branching passes 90 %."""
    moment = np.argmax(share[..., 1] >= 0.9, axis=1)
    return share[np.arange(len(moment)), moment, -1]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, ((deep, shallow), (places, conditions)) = new_figure(2, 2, width=4.8, height=3.4)
    part = data.sel(flip=data.attrs["shown_flip"])
    names = ["all alike", *(f"branching {level}" for level in data.level.values[1:])]
    for panel, prefix, title in ((deep, "", "deep: broad before fine"), (shallow, "shallow_", "shallow: all at once")):
        for level, name in enumerate(names):
            trained(panel, data.time, part[f"{prefix}training"].isel(level=level), colour=COLOURS[level])
            predicted(panel, data.time, part[f"{prefix}theory"].isel(level=level), colour=COLOURS[level])
            panel.plot([], [], color=COLOURS[level], lw=3, label=name)
        panel.set(xlabel=TIME, ylabel="mode strength", title=f"{title}, ε = {data.attrs['shown_flip']:g}")
    deep.legend(loc="lower right")
    legend_of_kinds(shallow, loc="lower right")
    shallow.set_xlim(0, 0.25 * float(data.time[-1]))
    _draw_places(places, data)
    _draw_conditions(conditions, data)
    return sheet


def _draw_places(axes: Axes, data: Dataset) -> None:
    """The paths of the items in the hidden layer, coloured by time."""
    from matplotlib.collections import LineCollection

    ends = data.place.isel(time=-1)
    learned = 1.5 * float(data.half_time.sel(flip=data.attrs["shown_flip"]).max())
    for item, name in enumerate(data.item.values):
        path = data.place.isel(item=item).values
        lines = LineCollection(list(np.stack([path[:-1], path[1:]], axis=1)), cmap="viridis", lw=2.5)
        lines.set_array(data.time.values[:-1])
        lines.set_clim(0, learned)
        axes.add_collection(lines)
        x, y = ends.isel(item=item).values
        axes.plot(x, y, "o", color="0.1", ms=4)
        shift = 0, 6 if y > 0 else -13
        axes.annotate(str(name), (x, y), shift, textcoords="offset points", ha="center", fontsize=8)
    axes.margins(0.15, 0.22)
    axes.set(title="hidden layer, classical scaling", xlabel="first and last branching", ylabel="branching between")
    axes.figure.colorbar(axes.collections[-1], ax=axes, label=TIME, extend="max")


def _draw_conditions(axes: Axes, data: Dataset) -> None:
    """Half-times against ε."""
    median = data.trained_half_time.median("seed")
    for level in range(data.sizes["level"]):
        reached = median.isel(level=level).where(lambda time: np.isfinite(time))
        axes.plot(data.flip, reached, "o", color=COLOURS[level], ms=6)
        predicted(axes, data.stated_flip, data.stated_half_time.isel(level=level), colour=COLOURS[level])
    axes.set(xlabel="probability ε of a flip", ylabel=f"half-{TIME}", title="levels are learned in order if 0 < ε < ½")
