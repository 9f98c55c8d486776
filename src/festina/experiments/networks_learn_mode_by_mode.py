"""A deep linear network learns the modes of its task one after another, each like a chain of its own.

The task is that of canary, salmon, oak and rose: all grow, animals move and plants have roots, and each has
one property of its own. Its singular modes are the levels of this tree. A shallow network learns all of them at
once; a deep one in stages, broad distinctions first. From an aligned start the closed form is exact, and descent
tends to it at first order in the learning rate. From small random weights the network finds the modes by itself;
there the closed form starts at a = N_h σ²/2, which is derived from the law of the weights and not fitted.
"""

from __future__ import annotations

import numpy as np

from .. import inits, nets, rules, tasks
from .._noun import positive, whole
from .._plot import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from .._solve import solve
from ..theories.aligned_modes import mode, time_to

REFERENCE = {
    "jarvis2025": "figure 7 and A.1",
    "saxe2019": "figures 1 and 3",
    "saxe_slides": "“Full networks act like several 1D chains”, “Depth introduces stage-like transitions”",
}
QUICK = dict(seeds=4, lr=0.04, points=150)


def run(
    *, hidden=16, scales=(1e-1, 1e-2, 1e-3, 1e-4), start=1e-4, until=70.0, lr=0.01, points=400, seeds=16, seed=0
) -> Result:
    hidden, points, seeds = whole(hidden, "hidden"), whole(points, "points", least=2), whole(seeds, "seeds")
    lr, until, start = positive(lr, "lr"), positive(until, "until"), positive(start, "start")
    task = tasks.hierarchy(levels=2)
    modes = task.modes()
    times = np.unique(np.round(np.linspace(0, until, points) / lr)) * lr
    draws = list(range(seed, seed + seeds))

    def aligned(net, rate):
        return Setup(task, net, inits.Aligned(start), rules.GradientDescent(rate), times=times)

    deep, shallow = aligned(nets.DeepLinear(hidden), lr), aligned(nets.DeepLinear(()), lr)
    theories = {"deep, aligned": solve(deep, "AlignedModes"), "shallow, aligned": solve(shallow, "AlignedModes")}
    errors = [
        np.abs(
            simulate(deep.replace(rule=rules.GradientDescent(rate)), [seed], "modes")["modes"][0]
            - theories["deep, aligned"]["modes"]
        ).max()
        for rate in (lr, lr / 2, lr / 4)
    ]
    random = {scale: deep.replace(init=inits.SmallRandom(scale)) for scale in scales}
    found = [simulate(setup, draws, ["modes", "map", "loss"]) for setup in random.values()]
    setups = {"deep, aligned": deep, "shallow, aligned": shallow} | {
        f"deep, random {k:g}": v for k, v in random.items()
    }
    expected_start = hidden * np.array(scales) ** 2 / 2
    numbers = dict(singular_value=modes.singular_values, variance=modes.variances)
    import xarray

    data = xarray.Dataset(
        {
            "deep_theory": (("time", "mode"), theories["deep, aligned"]["modes"]),
            "deep_training": (("time", "mode"), simulate(deep, [seed], "modes")["modes"][0]),
            "shallow_theory": (("time", "mode"), theories["shallow, aligned"]["modes"]),
            "shallow_training": (("time", "mode"), simulate(shallow, [seed], "modes")["modes"][0]),
            "random_training": (("scale", "seed", "time", "mode"), np.stack([t["modes"] for t in found])),
            "random_theory": (
                ("scale", "time", "mode"),
                np.stack([mode(times, **numbers, start=a) for a in expected_start]),
            ),
            "random_loss": (("scale", "seed", "time"), np.stack([t["loss"] for t in found])),
            "outside_modes": (("scale", "seed"), np.stack([_outside(t["map"], modes) for t in found])),
            "half_time_predicted": (
                ("scale", "mode"),
                np.stack([time_to(modes.targets() / 2, **numbers, start=a, depth=2) for a in expected_start]),
            ),
            "target": ("mode", modes.targets()),
            "singular_value": ("mode", modes.singular_values),
            "order_in_lr": ("halving", np.log2(np.array(errors[:-1]) / errors[1:])),
            "left": (("feature", "mode"), modes.left),
            "right": (("input", "mode"), modes.right),
        },
        coords={
            "time": times,
            "scale": list(scales),
            "seed": draws,
            "feature": list(task.features or ()),
            "input": list(task.inputs or ()),
        },
    )
    return Result(data, setups, theories)


def _outside(maps, modes):
    """Largest part of the map outside its own modes (between levels), relative to the learned map; (seed,)."""
    seen = np.einsum("om,stoi,in->stmn", modes.left, maps, modes.right)
    level = np.isclose(modes.singular_values[:, None], modes.singular_values[None, :])
    return np.linalg.norm(np.where(level, 0.0, seen), axis=(2, 3)).max(axis=1) / np.linalg.norm(modes.targets())


def claims(result: Result) -> list[Claim]:
    data = result.data
    targets = data.target.values
    smallest = data.isel(scale=-1)
    half = _crossing(smallest.random_training, data.time, targets, 0.5)
    rise = {
        net: _rise_over_half(data[f"{net}_training"].values[None], data.time, targets) for net in ("shallow", "deep")
    }
    shallow_half = _crossing(data.shallow_training.values[None], data.time, targets, 0.5)[0]
    deep_half = _crossing(data.deep_training.values[None], data.time, targets, 0.5)[0]
    first, second, third = half[:, 0], half[:, 1], half[:, 2:].min(axis=1)
    gap = np.abs(np.median(half, axis=0) / smallest.half_time_predicted.values - 1)
    outside = data.outside_modes.max("seed").values
    return [
        Claim.at_most(
            "Singular values of the task are √7, √3, 1, 1 over 4: largest gap",
            np.abs(data.singular_value.values - np.sqrt([7, 3, 1, 1]) / 4).max(),
            1e-12,
            source="paper",
        ),
        Claim.at_most(
            "The network learns the task: largest final loss, smallest random start",
            float(smallest.random_loss.isel(time=-1).max()),
            1e-3,
            source="paper",
        ),
        Claim.at_least(
            "Broad distinctions come first, from random weights: share of seeds in the order of the tree",
            np.mean((first < second) & (second < third)),
            1.0,
            source="paper",
        ),
        Claim.at_most(
            "Full networks act like several chains: largest part between modes, smallest random start",
            outside[-1],
            0.05,
            source="paper",
        ),
        Claim.at_least(
            "… and more so the smaller the start: smallest ratio of that part, scale to next scale",
            np.min(outside[:-1] / outside[1:]),
            1.0,
        ),
        Claim.at_most(
            "Closed form against training, aligned start: largest gap / target",
            float((np.abs(data.deep_theory - data.deep_training) / data.target).max()),
            0.1,
            source="paper",
        ),
        Claim.between("Descent tends to the closed form as lr → 0: order", float(data.order_in_lr[-1]), 0.9, 1.1),
        Claim.at_most(
            "Half-times from random weights, started at N_h σ²/2 (not fitted): largest relative gap of the median",
            float(gap.max()),
            0.1,
            source="paper",
        ),
        Claim.at_most(
            "Deep: stage-like transitions, rise time (10 to 90 %) / half-time at most",
            rise["deep"].max(),
            1.0,
            source="paper",
        ),
        Claim.at_least("Shallow: gradual, the same ratio at least", rise["shallow"].min(), 2.0, source="paper"),
        Claim.at_most(
            "Shallow: all modes at once, last half-time / first", shallow_half.max() / shallow_half.min(), 1.01
        ),
        Claim.at_least("Deep: one after another, last half-time / first", deep_half.max() / deep_half.min(), 2.0),
    ]


def _crossing(curves, times, targets, share) -> np.ndarray:
    """First time at which each curve passes a share of its target, linear between records; (seed, mode)."""
    curves, times = np.asarray(curves), np.asarray(times)
    above = curves >= share * targets
    after = np.argmax(above, axis=1)
    before = np.maximum(after - 1, 0)
    take = lambda index: np.take_along_axis(curves, index[:, None, :], axis=1)[:, 0, :]  # noqa: E731
    step = np.where(
        after > before, (share * targets - take(before)) / np.where(after > before, take(after) - take(before), 1), 0
    )
    found = times[before] + step * (times[after] - times[before])
    return np.where(above.any(axis=1), found, np.inf)


def _rise_over_half(curves, times, targets) -> np.ndarray:
    low, half, high = (_crossing(curves, times, targets, share) for share in (0.1, 0.5, 0.9))
    return (high - low) / half


def figure(result: Result):
    data = result.data
    sheet, axes = new_figure(2, 2, width=4.8)
    (vectors, shallow), (deep, random) = axes
    _draw_modes(vectors, data)
    panels = ((shallow, "shallow", "shallow: all modes at once"), (deep, "deep", "deep, aligned start: in stages"))
    for panel, net, title in panels:
        for k in range(data.sizes["mode"]):
            trained(panel, data.time, data[f"{net}_training"].isel(mode=k), colour=COLOURS[min(k, 2)])
            predicted(panel, data.time, data[f"{net}_theory"].isel(mode=k), colour=COLOURS[min(k, 2)])
        panel.set(xlabel=TIME, ylabel="mode strength", title=title)
        legend_of_kinds(panel, loc="lower right")
    smallest = data.isel(scale=-1)
    for k in range(data.sizes["mode"]):
        trained(random, data.time, smallest.random_training.isel(mode=k), colour=COLOURS[min(k, 2)])
        predicted(random, data.time, smallest.random_theory.isel(mode=k), colour=COLOURS[min(k, 2)])
    random.set(xlabel=TIME, ylabel="mode strength", title=f"deep, random weights of sd {float(smallest.scale):g}")
    legend_of_kinds(random, loc="lower right")
    return sheet


def _draw_modes(axes, data) -> None:
    """Right singular vectors: what each mode tells apart."""
    reach = float(np.abs(data.right).max())
    image = axes.imshow(data.right.values.T, cmap="PuOr", vmin=-reach, vmax=reach)
    axes.set_xticks(range(data.sizes["input"]), list(data.input.values))
    labels = [f"mode {k + 1}, s = {float(s):.2f}" for k, s in enumerate(data.singular_value)]
    axes.set_yticks(range(data.sizes["mode"]), labels)
    axes.set_title("what each mode tells apart")
    axes.figure.colorbar(image, ax=axes, shrink=0.8, label="weight of the item")
