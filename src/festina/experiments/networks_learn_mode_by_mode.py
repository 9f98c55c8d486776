"""A deep linear network learns the singular modes of its task one after another, each like an independent chain.

The task is that of canary, salmon, oak and rose: all grow, animals move and plants have roots, and each has one
property of its own. Its singular modes are the levels of this tree. A shallow network learns all modes at once. A deep
network learns them in stages, broad distinctions first. From an aligned start the closed form is exact, and gradient
descent tends to it at first order in the learning rate. From small random weights the network finds the modes by
itself; there the closed form starts at a = N_h σ²/2, which is derived from the law of the initial weights and not
fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from .. import Setup, inits, nets, rules, solve, tasks
from .._figures.style import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._formulas.curves import crossing, half_time, order
from .._formulas.modes import Modes
from .._foundation.checks import positive, whole
from ..theories.aligned_modes import mode, time_to
from ._kit import time_grids
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset


REFERENCE = {
    "jarvis2025": "figure 7 and A.1",
    "saxe2019": "figures 1 and 3",
    "saxe_slides": "“Full networks act like several 1D chains”, “Depth introduces stage-like transitions”",
}
QUICK = dict(seeds=4, lr=0.04, points=150)


def run(
    *,
    hidden: int = 16,
    scales: Sequence[float] = (1e-1, 1e-2, 1e-3, 1e-4),
    start: float = 1e-4,
    until: float = 70.0,
    lr: float = 0.01,
    points: int = 400,
    seeds: int = 16,
    seed: int = 0,
) -> Result:
    """`scales`: standard deviations of random weights; `start`: initial strength of every mode of the aligned start."""
    hidden, points, seeds = whole(hidden, "hidden"), whole(points, "points", least=2), whole(seeds, "seeds")
    lr, until, start = positive(lr, "lr"), positive(until, "until"), positive(start, "start")
    task = tasks.hierarchy(levels=2)
    modes = task.modes()
    times = time_grids.even(until, points, lr)
    draws = list(range(seed, seed + seeds))

    def aligned(net: nets.DeepLinear, rate: float) -> Setup:
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
    random_runs = [simulate(setup, draws, ["modes", "map", "loss"]) for setup in random.values()]
    setups = {"deep, aligned": deep, "shallow, aligned": shallow} | {
        f"deep, random {scale:g}": setup for scale, setup in random.items()
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
            "random_training": (
                ("scale", "seed", "time", "mode"),
                np.stack([run["modes"] for run in random_runs]),
            ),
            "random_theory": (
                ("scale", "time", "mode"),
                np.stack([mode(times, **numbers, start=a) for a in expected_start]),
            ),
            "random_loss": (("scale", "seed", "time"), np.stack([run["loss"] for run in random_runs])),
            "outside_modes": (
                ("scale", "seed"),
                np.stack([_outside(run["map"], modes) for run in random_runs]),
            ),
            "half_time_predicted": (
                ("scale", "mode"),
                np.stack([time_to(modes.targets() / 2, **numbers, start=a, depth=2) for a in expected_start]),
            ),
            "target": ("mode", modes.targets()),
            "singular_value": ("mode", modes.singular_values),
            "order_in_lr": ("halving", order(np.array(errors))),
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


def _outside(maps: Float[np.ndarray, "seed time feature input"], modes: Modes) -> Float[np.ndarray, " seed"]:
    """Largest part of the map that mixes modes of different levels, relative to the learned map."""
    in_modes = np.einsum("om,stoi,in->stmn", modes.left, maps, modes.right)
    level = np.isclose(modes.singular_values[:, None], modes.singular_values[None, :])
    outside = np.where(level, 0.0, in_modes)
    return np.linalg.norm(outside, axis=(2, 3)).max(axis=1) / np.linalg.norm(modes.targets())


def claims(result: Result) -> list[Claim]:
    data = result.data
    times, targets = data.time.values, data.target.values
    smallest = data.isel(scale=-1)
    half = half_time(times, smallest.random_training.values, targets, axis=1)
    rise = {net: _rise_over_half(data[f"{net}_training"].values[None], times, targets) for net in ("shallow", "deep")}
    shallow_half = half_time(times, data.shallow_training.values, targets, axis=0)
    deep_half = half_time(times, data.deep_training.values, targets, axis=0)
    first, second, third = half[:, 0], half[:, 1], half[:, 2:].min(axis=1)
    gap = np.abs(np.median(half, axis=0) / smallest.half_time_predicted.values - 1)
    outside = data.outside_modes.max("seed").values
    return [
        paper(
            "Singular values of the task are √7, √3, 1, 1 over 4: largest gap",
            at_most(np.abs(data.singular_value.values - np.sqrt([7, 3, 1, 1]) / 4).max(), 1e-12),
        ),
        paper(
            "The network learns the task: largest final loss over seeds, smallest random weights",
            at_most(float(smallest.random_loss.isel(time=-1).max()), 1e-3),
        ),
        paper(
            "From random weights broad distinctions are learned first: share of seeds in the order of the tree",
            at_least(np.mean((first < second) & (second < third)), 1.0),
        ),
        paper(
            "Full networks act like several chains: largest part of the map between modes, smallest random weights",
            at_most(outside[-1], 0.05),
        ),
        ours(
            "… and more so from smaller weights: smallest ratio of this part, a scale to the next smaller one",
            at_least(np.min(outside[:-1] / outside[1:]), 1.0),
        ),
        paper(
            "The closed form is that of training, aligned start: largest gap / target",
            at_most(float((np.abs(data.deep_theory - data.deep_training) / data.target).max()), 0.1),
        ),
        ours(
            "Gradient descent tends to the closed form as lr → 0: order of the gap in lr",
            between(float(data.order_in_lr[-1]), 0.9, 1.1),
        ),
        paper(
            "Half-times from random weights are those from a start of N_h σ²/2 (not fitted): "
            "largest relative gap of the median",
            at_most(float(gap.max()), 0.1),
        ),
        paper(
            "Deep network: transitions are stage-like: largest ratio of rise time (10 to 90 %) to half-time",
            at_most(rise["deep"].max(), 1.0),
        ),
        paper(
            "Shallow network: learning is gradual: smallest value of the same ratio",
            at_least(rise["shallow"].min(), 2.0),
        ),
        ours(
            "Shallow network: all modes are learned at once: last half-time / first half-time",
            at_most(shallow_half.max() / shallow_half.min(), 1.01),
        ),
        ours(
            "Deep network: modes are learned one after another: last half-time / first half-time",
            at_least(deep_half.max() / deep_half.min(), 2.0),
        ),
    ]


def _rise_over_half(
    curves: Float[np.ndarray, "seed time mode"], times: np.ndarray, targets: np.ndarray
) -> Float[np.ndarray, "seed mode"]:
    """The time from 10 to 90 % of the target over the time to 50 %."""
    low, half, high = (crossing(times, curves, share * targets, axis=1) for share in (0.1, 0.5, 0.9))
    return (high - low) / half


def figure(result: Result) -> Figure:
    data = result.data
    sheet, axes = new_figure(2, 2, width=4.8)
    (vectors, shallow), (deep, random) = axes
    _draw_modes(vectors, data)
    panels = (
        (shallow, "shallow", "shallow network: all modes at once"),
        (deep, "deep", "deep network, aligned start: in stages"),
    )
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
    random.set(
        xlabel=TIME,
        ylabel="mode strength",
        title=f"deep network, random weights of sd {float(smallest.scale):g}",
    )
    legend_of_kinds(random, loc="lower right")
    return sheet


def _draw_modes(axes: Axes, data: Dataset) -> None:
    """Right singular vectors: what each mode tells apart."""
    reach = float(np.abs(data.right).max())
    image = axes.imshow(data.right.values.T, cmap="PuOr", vmin=-reach, vmax=reach)
    axes.set_xticks(range(data.sizes["input"]), list(data.input.values))
    labels = [f"mode {k + 1}, s = {float(s):.2f}" for k, s in enumerate(data.singular_value)]
    axes.set_yticks(range(data.sizes["mode"]), labels)
    axes.set_title("what each mode tells apart")
    axes.figure.colorbar(image, ax=axes, shrink=0.8, label="weight of the item")
