"""A deep network that learns a tree tells broad branches apart first and single items last; a shallow one does not.

Features of the items flip with probability ε on each edge of a binary tree. The singular values of such a world
fall from level to level, and a deep linear network that starts small learns level l at the time

    t = τ/(2s) ln(s/(λ a₀) − 1),    s = √η_l/P,  λ = 1/P,  a₀ = N_h σ²/2,

in which nothing is fitted. Its hidden representations of the items move apart in the same order, as classical
scaling (MDS) of their distances shows. A shallow network learns all levels at one rate.

The slides say that networks must differentiate progressively. They do if 0 < ε < ½ and all levels have one small
start; near ½ the levels are so close that the draw of the weights decides. With ε = ½ the items have nothing in
common, all levels have one singular value, and there is no order; with ε = 0 all items are alike, and there is
nothing to differentiate.
"""

from __future__ import annotations

import numpy as np

from .. import inits, nets, rules, tasks
from .._errors import BadInput
from .._noun import positive, whole
from .._plot import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from ..theories.aligned_modes import mode

REFERENCE = {
    "saxe2019": "“Progressive differentiation of hierarchical structure”",
    "saxe_slides": "“Progressive differentiation”",
}
QUICK = dict(flips=(0.0, 0.05, 0.15, 0.3, 0.5), lr=0.2, points=150, seeds=3)
DEPTH = 3  # levels of the tree below its root
FINELY = np.linspace(0.04, 0.5, 93)  # flips at which the stated half-times are drawn


def run(
    *,
    flip=0.15,
    flips=(0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.45, 0.5),
    hidden=64,
    scale=1e-3,
    until=180.0,
    lr=0.05,
    points=300,
    seeds=8,
    seed=0,
) -> Result:
    hidden, seeds, points = whole(hidden, "hidden"), whole(seeds, "seeds"), whole(points, "points", least=2)
    lr, until, scale = positive(lr, "lr"), positive(until, "until"), positive(scale, "scale")
    if not {0.0, 0.5, flip} <= set(flips) or not 0 < flip < 0.5:
        raise BadInput(
            f"flip = {flip}, flips = {tuple(flips)}", "0, 1/2 and flip itself, between them, in flips", "add"
        )
    draws = list(range(seed, seed + seeds))
    times = np.unique(np.round(np.linspace(0, until, points) / lr)) * lr
    setups = {}
    for each in flips:
        deep = Setup(
            _tree(each), nets.DeepLinear(hidden), inits.SmallRandom(scale), rules.GradientDescent(lr), times=times
        )
        setups[f"deep, flip {each:g}"] = deep
    shallow = setups[f"deep, flip {flip:g}"].replace(net=nets.DeepLinear(()))
    found = [simulate(setup, draws, ["map", "representation"]) for setup in setups.values()]
    learned = np.stack([_strengths(trajectory["map"], _tree(flip)) for trajectory in found])
    seen = found[list(flips).index(flip)]["representation"]
    task, stated = _tree(flip), np.stack([_targets(_tree(each)) for each in flips])
    singular, variance, start = stated / task.d_in, 1 / task.d_in, hidden * scale**2 / 2
    import xarray

    data = xarray.Dataset(
        {
            "training": (("flip", "seed", "time", "level"), learned),
            "trained_half_time": (("flip", "seed", "level"), _half_times(learned, times, stated[:, None, None])),
            "theory": (("time", "flip", "level"), mode(times, singular_value=singular, variance=variance, start=start)),
            "shallow_training": (
                ("seed", "time", "level"),
                _strengths(simulate(shallow, draws, "map")["map"], task),
            ),
            "shallow_theory": (
                ("time", "level"),
                mode(times, singular_value=_targets(task) / task.d_in, variance=variance, start=0.0, depth=1),
            ),
            "target": (("flip", "level"), stated),
            "half_time": (("flip", "level"), _stated_half_times(singular, variance, start)),
            "stated_half_time": (("stated_flip", "level"), _stated_half_times(_finely() / task.d_in, variance, start)),
            "rank_at_end": ("flip", [_rank(trajectory["map"][:, -1]) for trajectory in found]),
            "distance": (("seed", "time", "split"), _distances(seen)),
            "place": (("time", "item", "axis"), _scaled(seen[0], task)),
        },
        coords={
            "flip": list(flips),
            "stated_flip": FINELY,
            "seed": draws,
            "time": times,
            "level": np.arange(DEPTH + 1),
            "split": np.arange(1, DEPTH + 1),
            "item": list(task.items or ()),
        },
        attrs={"shown_flip": flip},
    )
    return Result(data, setups | {"shallow": shallow})


def _tree(flip):
    return tasks.tree((2,) * DEPTH, flip=flip)


def _modes_of_levels():
    """The modes of each level of the tree, in the order of its stated vectors: 1, 1, 2, 4, …"""
    ends = 2 ** np.arange(DEPTH + 1)
    return [np.arange(first, last) for first, last in zip([0, *ends[:-1]], ends, strict=True)]


def _targets(task):
    """The strength √η that each level has once it is learned."""
    return task.d_in * task.spectrum()[[level[0] for level in _modes_of_levels()]]


def _finely():
    return np.stack([_targets(_tree(flip)) for flip in FINELY])


def _strengths(maps, task):
    """Mean strength of each level's modes, (seed, time, level)."""
    each = np.einsum("im,stij,jm->stm", task.vectors(), maps, task.vectors())
    return np.stack([each[..., level].mean(axis=-1) for level in _modes_of_levels()], axis=-1)


def _stated_half_times(singular, variance, start):
    """τ/(2s) ln(s/(λ a₀) − 1), or never where there is nothing to learn."""
    safe = np.where(singular > 0, singular, 1.0)
    return np.where(singular > 0, np.log(safe / (variance * start) - 1) / (2 * safe), np.inf)


def _rank(maps):
    """The largest number of singular values over 1 % of the first, over seeds."""
    values = np.linalg.svd(maps, compute_uv=False)
    return int(np.max(np.sum(values > 0.01 * values[:, :1], axis=1)))


def _distances(hidden):
    """Mean distance in the hidden layer of items whose branches part at each level, (seed, time, split)."""
    items = np.arange(hidden.shape[2])
    apart = np.linalg.norm(hidden[:, :, :, None] - hidden[:, :, None], axis=-1)
    shared = np.sum([(items[:, None] >> up) == (items >> up) for up in range(DEPTH)], axis=0)  # nodes above both
    return np.stack([apart[:, :, shared == split - 1].mean(axis=-1) for split in range(1, DEPTH + 1)], axis=-1)


def _scaled(hidden, task):
    """Classical scaling of one network's hidden layer at each time, laid onto the task's own, (time, item, axis).

    Scaling leaves rotations open; each time is turned to fit the scaling of the target's distances best, whose axes
    are the task's vectors. The seven axes are then seen along two: the first branching and a little of the last
    to the right, those between upwards.
    """
    count = hidden.shape[1]
    centre = np.eye(count) - 1 / count
    axes = task.vectors()[:, 1:]
    goal = axes * np.sqrt(count * task.spectrum()[1:])
    sight = np.zeros((count - 1, 2))
    sight[0, 0] = 1.0
    sight[-(count // 2) :, 0] = 0.5 / np.sqrt(count // 2)
    sight[1 : -(count // 2), 1] = 1.0
    sight /= np.linalg.norm(sight, axis=0)
    places = []
    for layer in hidden:
        apart = np.linalg.norm(layer[:, None] - layer[None], axis=-1)
        values, vectors = np.linalg.eigh(-0.5 * centre @ apart**2 @ centre)
        scaled = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, 1:]  # without the axis of the common centre
        left, _, right = np.linalg.svd(scaled.T @ goal)
        places.append(scaled @ left @ right @ sight)
    return np.stack(places)


def _half_times(curves, times, goals):
    """First time at which curves (…, time, level) pass half their goal; infinite where there is no goal or never."""
    passed = curves >= 0.5 * goals
    after = np.maximum(np.argmax(passed, axis=-2), 1)[..., None, :]
    low, high = (np.take_along_axis(curves, index, axis=-2) for index in (after - 1, after))
    share = (0.5 * goals - low) / np.where(high > low, high - low, 1.0)
    found = times[after - 1] + share * (times[after] - times[after - 1])
    return np.where(passed.any(axis=-2) & (goals > 0)[..., 0, :], found[..., 0, :], np.inf)


def claims(result: Result) -> list[Claim]:
    data = result.data
    times, flips = data.time.values, data.flip.values
    each = data.trained_half_time.values
    median = np.median(each, axis=1)
    apart_enough = (flips > 0) & (flips <= 0.2)
    rises = np.diff(data.stated_half_time.sel(stated_flip=slice(None, 0.4501)).values, axis=-1)
    gap = np.abs(median[flips > 0] / data.half_time.values[flips > 0] - 1)
    shown = int(np.flatnonzero(flips == data.attrs["shown_flip"])[0])
    ratio = median[:, -1] / median[:, 0]
    shallow_goal = data.target.values[shown]
    shallow = _half_times(data.shallow_training.values, times, shallow_goal[None, None, :])
    share = data.training.values[shown] / shallow_goal  # (seed, time, level)
    moment = np.argmax(share[..., 1] >= 0.9, axis=1)
    finest = share[np.arange(len(moment)), moment, -1]
    shallow_share = data.shallow_training.values / shallow_goal
    moment = np.argmax(shallow_share[..., 1] >= 0.9, axis=1)
    shallow_finest = shallow_share[np.arange(len(moment)), moment, -1]
    apart = data.distance.values
    apart_at = _half_times(apart, times, apart[:, -1:, :])
    return [
        Claim.at_least(
            "Broad before fine, ε ≤ 0.2: share of networks whose half-times rise with the level",
            float(np.mean(np.all(np.diff(each[apart_enough], axis=-1) > 0, axis=-1))),
            1.0,
            source="paper",
        ),
        Claim.at_least(
            "… as they must from one start: smallest rise of the stated half-time, level to level, ε from 0.04 to 0.45",
            float(rises.min()),
            1e-9,
            source="paper",
        ),
        Claim.at_most(
            "Half-times are τ/(2s) ln(s/(λ a₀) − 1), ε > 0 (not fitted): largest relative gap of the median",
            float(gap.max()),
            0.1,
            source="paper",
        ),
        Claim.at_least(
            "Hidden representations of broad branches part first: share of networks in the order of the tree",
            float(np.mean(np.all(np.diff(apart_at, axis=-1) > 0, axis=-1))),
            1.0,
            source="paper",
        ),
        Claim.at_most(
            "In stages: the most of the finest level that is learned when the first branching is at 90 %",
            float(finest.max()),
            0.25,
            source="paper",
        ),
        Claim.at_least(
            "A shallow network has no stages: the least of the finest level at that moment",
            float(shallow_finest.min()),
            0.85,
            source="paper",
        ),
        Claim.at_most(
            "… and one half-time for all: last / first",
            float(np.max(shallow.max(axis=-1) / shallow.min(axis=-1))),
            1.05,
        ),
        Claim.at_least(
            "Networks must differentiate progressively, at ε = ½ too: last half-time / first",
            float(ratio[flips == 0.5][0]),
            1.1,
            source="paper",
            expected=False,
            reason="at ε = ½ all levels have one singular value; progression needs 0 < ε < ½",
        ),
        Claim.at_least(
            "… and at ε = 0: number of modes that are learned",
            int(data.rank_at_end.values[flips == 0][0]),
            2,
            source="paper",
            expected=False,
            reason="at ε = 0 all items are alike and the world has rank 1; progression needs 0 < ε < ½",
        ),
    ]


def figure(result: Result):
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


def _draw_places(axes, data):
    """The paths of the items, coloured by time."""
    from matplotlib.collections import LineCollection

    ends = data.place.isel(time=-1)
    learned = 1.5 * float(data.half_time.sel(flip=data.attrs["shown_flip"]).max())
    for item in range(data.sizes["item"]):
        path = data.place.isel(item=item).values
        lines = LineCollection(list(np.stack([path[:-1], path[1:]], axis=1)), cmap="viridis", lw=2.5)
        lines.set_array(data.time.values[:-1])
        lines.set_clim(0, learned)
        drawn = axes.add_collection(lines)
        x, y = ends.isel(item=item).values
        axes.plot(x, y, "o", color="0.1", ms=4)
        axes.annotate(
            str(data.item.values[item]),
            (x, y),
            (0, 6 if y > 0 else -13),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    axes.margins(0.15, 0.22)
    axes.set(title="hidden layer, classical scaling", xlabel="first and last branching", ylabel="branching between")
    axes.figure.colorbar(drawn, ax=axes, label=TIME, extend="max")


def _draw_conditions(axes, data):
    """Half-times against ε."""
    median = data.trained_half_time.median("seed")
    for level in range(data.sizes["level"]):
        reached = median.isel(level=level).where(lambda time: np.isfinite(time))
        axes.plot(data.flip, reached, "o", color=COLOURS[level], ms=6)
        predicted(axes, data.stated_flip, data.stated_half_time.isel(level=level), colour=COLOURS[level])
    axes.set(xlabel="probability ε of a flip", ylabel=f"half-{TIME}", title="order needs 0 < ε < ½")
