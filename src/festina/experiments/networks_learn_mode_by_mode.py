"""A deep linear network learns the singular modes of its task one after another, each like an independent chain.

The task is that of canary, salmon, oak and rose: all grow, animals move and plants have roots, and each has one
property of its own. Its singular modes are the levels of this tree. A shallow network learns all modes at once. A deep
network learns them in stages, broad distinctions first. From initial weights that are aligned with the modes the closed
form is exact, and gradient descent tends to it at first order in the learning rate. From small random weights the
network finds the modes by itself; there the closed form starts at a = N_h σ²/2, which follows from the distribution of
the initial weights and is not fitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray

from .. import Setup, inits, nets, rules, tasks
from .._figures.overlay import heat, overlay
from .._figures.panels import key, panels, plain
from .._figures.style import COLOURS
from .._formulas.modes import Modes
from ..theories.aligned_modes import mode, time_to
from ._kit.labelled import approach, in_order, labelled, largest, prefixed, stack, table, time_at
from ._kit.parameters import Count, Positive, Positives, Seed, Several, checked
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataArray

THEME, PLACE = "modes", 1
REFERENCE = {
    "jarvis2025": "figure 7 and A.1",
    "saxe2019": "figures 1 and 3",
    "saxe_slides": "“Full networks act like several 1D chains”, “Depth introduces stage-like transitions”",
}
QUICK = dict(seeds=4, lr=0.04, points=150)
CAPTION = """
**a** The four singular modes of the task: what each tells apart, as its weight on every item; s is the singular value.
Mode 1 is what all items share, mode 2 separates animals from plants, modes 3 and 4 separate the items within each.
**b** Strength of every mode while a network without hidden layer learns: all rise together. **c** The same for a
network with one hidden layer that starts aligned with the modes: each mode waits, then rises quickly, the broad ones
first. **d** The same from small random weights (sd: standard deviation), one line for each seed. The theory of c is
exact; that of d starts from the mean strength that the random weights give a mode, with nothing fitted.
"""
ALT = """
In the shallow network four curves rise at once; in the deep networks they rise one after another as sigmoids, and the
dashed theory lies on the training.
"""
MODE_COLOURS = (COLOURS[0], COLOURS[2], COLOURS[3], COLOURS[3])  # the last two modes are one level of the tree


@checked
def run(
    *,
    hidden: Count = 16,
    scales: Positives = (1e-1, 1e-2, 1e-3, 1e-4),
    start: Positive = 1e-4,
    until: Positive = 70.0,
    lr: Positive = 0.01,
    points: Several = 400,
    seeds: Count = 16,
    seed: Seed = 0,
) -> Result:
    """`scales`: standard deviations of random weights; `start`: initial strength of every mode of the aligned start."""
    task = tasks.hierarchy(levels=2)
    modes, rule = task.modes(), rules.GradientDescent(lr)
    deep = Setup(task, nets.DeepLinear(hidden), inits.Aligned(start), rule, until=until, points=points)
    shallow = deep.replace(net=nets.DeepLinear(()))
    random = {scale: deep.replace(init=inits.SmallRandom(scale)) for scale in scales}
    runs = {s: simulate(setup, range(seed, seed + seeds), ["modes", "map", "loss"]) for s, setup in random.items()}
    of_modes = dict(singular_value=modes.singular_values, variance=modes.variances)
    numbers = {scale: of_modes | dict(start=hidden * scale**2 / 2) for scale in scales}  # not fitted
    theory = {s: table(mode(deep.times, **known), "time", "mode") for s, known in numbers.items()}
    half_times = {s: table(time_to(modes.targets() / 2, **known), "mode") for s, known in numbers.items()}
    aligned, of_deep = approach(deep, "AlignedModes", "modes", seed=seed)
    flat, of_shallow = approach(shallow, "AlignedModes", "modes", halvings=0, seed=seed)
    data = xarray.Dataset(
        {
            **prefixed(of_deep, "deep"),
            **prefixed(of_shallow[["theory", "training"]], "shallow"),
            "random_training": stack({s: labelled(run, "modes") for s, run in runs.items()}, "scale"),
            "random_theory": stack(theory, "scale"),
            "random_loss": stack({s: labelled(run, "loss") for s, run in runs.items()}, "scale"),
            "outside_modes": stack({s: _outside(labelled(run, "map"), modes) for s, run in runs.items()}, "scale"),
            "predicted_half": stack(half_times, "scale"),
            "target": table(modes.targets(), "mode"),
            "singular_value": table(modes.singular_values, "mode"),
            "right": table(modes.right, "input", "mode", long_name="weight of the item"),
        },
        coords={"input": list(task.inputs or ())},
    )
    setups = {"deep, aligned": deep, "shallow, aligned": shallow}
    setups |= {f"deep, random {scale:g}": setup for scale, setup in random.items()}
    return Result(data, setups, {"deep, aligned": aligned, "shallow, aligned": flat})


def _outside(maps: DataArray, modes: Modes) -> DataArray:
    """Largest part of the map that mixes modes of different levels, relative to the learned map."""
    in_modes = np.einsum("om,stoi,in->stmn", modes.left, maps.values, modes.right)
    level = np.isclose(modes.singular_values[:, None], modes.singular_values[None, :])
    outside = np.linalg.norm(np.where(level, 0.0, in_modes), axis=(2, 3)).max(axis=1)
    return table(outside / np.linalg.norm(modes.targets()), "seed")


def claims(result: Result) -> list[Claim]:
    data = result.data
    smallest, target = data.isel(scale=-1), data.target
    half = time_at(smallest.random_training, target / 2)
    levels = xarray.concat([half[..., :2], half[..., 2:].min("mode")], "mode")
    halves = {net: time_at(data[f"{net}_training"], target / 2) for net in ("shallow", "deep")}
    spread = {net: float(half.max() / half.min()) for net, half in halves.items()}
    shallow, deep = (_rise(data[f"{net}_training"], target) / half for net, half in halves.items())
    outside = data.outside_modes.max("seed").values
    fall = (outside[:-1] / outside[1:]).min()
    gap = largest((data.deep_theory - data.deep_training) / target)
    delay_gap = largest(half.median("seed") / smallest.predicted_half - 1)
    values, loss = largest(data.singular_value - np.sqrt([7, 3, 1, 1]) / 4), smallest.random_loss.isel(time=-1).max()
    return [
        paper(
            "Share of seeds that learn broad distinctions before narrow ones, from the smallest random weights",
            at_least(in_order(levels, "mode").mean(), 1.0),
            headline=True,
            panel="d",
        ),
        ours(
            "Deep network, last half-time of a mode over the first: one mode after another",
            at_least(spread["deep"], 2.0),
            headline=True,
            panel="c",
        ),
        ours("Shallow network, last half-time of a mode over the first", at_most(spread["shallow"], 1.01), panel="b"),
        paper("Singular values of the task: largest gap to √7/4, √3/4, 1/4, 1/4", at_most(values, 1e-12), panel="a"),
        paper("Final loss from the smallest random weights: largest over seeds", at_most(loss, 1e-3)),
        paper("Part of the map that mixes modes over the target, small weights: largest", at_most(outside[-1], 0.05)),
        ours("Part that mixes modes, over that at the next smaller scale of weights: least", at_least(fall, 1.0)),
        paper("Closed form against training, aligned: largest gap over the target", at_most(gap, 0.1), panel="c"),
        ours("Gap between descent and the closed form: order in lr", between(data.deep_order[-1], 0.9, 1.1)),
        paper(
            "Half-times from random weights: largest gap to the theory (not fitted)", at_most(delay_gap, 0.1), panel="d"
        ),
        paper("Deep network, time from 10 to 90 % over half-time: largest", at_most(deep.max(), 1.0), panel="c"),
        paper("Shallow network, time from 10 to 90 % over half-time: least", at_least(shallow.min(), 2.0), panel="b"),
    ]


def _rise(curves: DataArray, target: DataArray) -> DataArray:
    """The time from 10 to 90 % of the target."""
    return time_at(curves, 0.9 * target) - time_at(curves, 0.1 * target)


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab;cd")
    names = [f"mode {k + 1}\ns = {float(s):.2f}" for k, s in enumerate(data.singular_value)]
    heat(at["a"], data.right.assign_coords(mode=names), rows="mode", columns="input", signed=True)
    smallest = data.isel(scale=-1)
    overlay(at["b"], data.shallow_training, data.shallow_theory, by="mode", colours=MODE_COLOURS)
    overlay(at["c"], data.deep_training, data.deep_theory, by="mode", colours=MODE_COLOURS)
    overlay(at["d"], smallest.random_training, smallest.random_theory, by="mode", colours=MODE_COLOURS)
    at["a"].set_title("What each mode tells apart")
    at["b"].set_title("No hidden layer: all modes at once")
    at["c"].set_title("One hidden layer: one mode after another")
    at["d"].set_title(f"Random weights, sd {plain(float(smallest.scale))}: the same order")
    for letter in "bcd":
        at[letter].set_ylabel("strength of the mode")
    key(sheet, dict(zip(["mode 1", "mode 2", "modes 3 and 4"], MODE_COLOURS, strict=False)))
    return sheet
