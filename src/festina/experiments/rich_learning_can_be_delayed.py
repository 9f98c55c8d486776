"""A large balance λ of one sign makes a network lazy at first and rich later, after a delay in proportion to |λ|.

The balance is that of the layers, W₂ᵀW₂ − W₁W₁ᵀ = λI. In a network 3-3-6 with λ ≫ s, where s are the singular values of
the task, the second layer is √λ times three orthonormal columns at first. The first layer learns at once, at rate λ,
what these columns can reach: a good part of the loss is gone while the tangent kernel has hardly moved. The rest is
learned only when the columns rotate. They do so at rates S_λ − λ/2 = s²/(S_λ + λ/2) ≈ s²/λ with S_λ = √(s² + λ²/4), so
the kernel moves, and the loss falls to zero, after a time of order λ/s². This is the **delayed** sign of λ. The funnel
network 6-3-3 is the mirror image, transposed and with −λ: it is delayed for negative λ. With the other sign, the
**lazy** one, the same network is lazy to the end, and much faster; with λ = 0 the kernel moves from the beginning.

The exact solution holds throughout. Learning with a frozen kernel describes the first fall of the loss, and all of
learning with the lazy sign. With the delayed sign it leaves the part of the loss that the columns do not reach. The
time to learn with the delayed sign depends on the directions of the columns in each draw, and varies about threefold up
and down; with the lazy sign it does not. The singular values of the task are equally spaced from 2 to 1; those of the
initial map are all `scale`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from .._figures.overlay import colours_of, overlay
from .._figures.panels import key, mark, panels
from .._figures.style import DARK_GREY, DASHES, GREY, INK, TIME
from ._kit.delayed_learning import (
    REGIMES,
    diagonal_task,
    family_of_draws,
    time_to_half_moved,
    time_to_learn,
    trained_at_three,
)
from ._kit.labelled import table
from ._kit.parameters import Count, Positive, Positives, Seed, Several, checked
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

THEME, PLACE = "regimes", 5
REFERENCE = {"domine2025": "delayed rich learning", "saxe_slides": "slides on lazy, rich and delayed rich regimes"}
QUICK = dict(draws=24, points=160, record=60, lr=0.01)
STILL = 1e-3  # a kernel distance below which the kernel has hardly moved
CAPTION = """
**a** Loss and **b** distance of the tangent kernel from its initial direction, 1 − cos, in networks of 3 inputs, 3
hidden units and 6 outputs, with a large balance λ of the delayed and of the lazy sign and with λ = 0. The theory is
exact, with nothing fitted. The dotted line is learning with the kernel frozen at its initial value, for the delayed
sign: it stops where the kernel has to move. **c** Kernel distance for the delayed sign against time over λ, mean over
draws of the initial weights; the darker, the larger λ. **d** The time at which the loss has fallen to 1 % (dots) and at
which the kernel has moved half of its way (squares), median over draws; bars hold 80 % of the draws. The dashed line is
proportional to |λ| and passes through the first square.
"""
ALT = """
With the delayed sign the loss falls in two steps and the kernel moves only with the second; with the lazy sign the loss
falls at once and the kernel does not move. In c all curves coincide. In d the times of the delayed sign rise in
proportion to the size of λ, and those of the lazy sign fall.
"""


@checked
def run(
    *,
    sizes: Positives = (10.0, 30.0, 80.0, 160.0),
    scale: Positive = 0.05,
    draws: Count = 200,
    until: Positive = 1e4,
    points: Several = 400,
    lr: Positive = 0.005,
    record: Several = 120,
    seed: Seed = 0,
) -> Result:
    """`sizes`: values of |λ|, each with both signs; `record`: how often training at the smallest |λ| is recorded."""
    magnitudes = np.sort(sizes)
    lams = np.concatenate([-magnitudes[::-1], [0.0], magnitudes])
    times = np.concatenate([[0.0], np.geomspace(1e-3, until, points)])
    task = diagonal_task(3, 6)
    family = family_of_draws(task, lams, np.arange(seed, seed + draws), scale, times)
    training, setups, theories = trained_at_three(task, float(magnitudes[0]), scale, lr, record, seed)
    data = training.merge(family).assign(
        singular_value=table(task.modes().singular_values, "mode"),
        learned=time_to_learn(family.loss, 0.01),
        half_moved=time_to_half_moved(family.kernel_distance),
    )
    return Result(data, setups, theories)


def claims(result: Result) -> list[Claim]:
    data = result.data
    lams, relative = data.lam.values, data.loss / data.loss.isel(time=0)
    size = lams[lams > 0][0]
    still = (data.kernel_distance < STILL).argmin("time")  # the first record at which it has moved
    before = relative.isel(time=np.maximum(still - 1, 0)).isel(lam=-1)
    moved = data.half_moved.median("seed").values
    at_half = {lam: _distance_at_half(data.sel(lam=lam)) for lam in (0.0, size)}
    gap = abs(data.trained_loss[:2].values - data.frozen_loss.values) / data.trained_loss.values[:2, :1]
    resting = data.trained_kernel_distance.values[0] < STILL
    rate = _late_rate(data)
    return [
        paper(
            "Lazy at first: share of the loss left when the kernel has moved by 0.001, largest λ, median over draws",
            at_most(before.median(), 0.7),
            headline=True,
            panel="a",
        ),
        paper(
            "Rich in the end: final kernel distance, largest λ of the delayed sign, mean over draws",
            at_least(data.kernel_distance.isel(time=-1, lam=-1).mean("seed"), 0.3),
            headline=True,
            panel="c",
        ),
        ours(
            "The delay grows as |λ|: exponent of the time at which the kernel has moved half way, two largest λ",
            between(np.log(moved[-1] / moved[-2]) / np.log(lams[-1] / lams[-2]), 0.97, 1.03),
            panel="d",
        ),
        paper(
            f"With the lazy sign learning is lazy to the end: largest kernel distance at any time, |λ| ≥ {size:g}",
            at_most(data.kernel_distance.sel(lam=lams[lams < 0]).max(), STILL),
            panel="b",
        ),
        paper(
            f"With λ = 0 learning is rich at once: kernel distance at half of the loss over that at λ = {size:g}",
            at_least(at_half[0.0] / at_half[size], 10.0),
        ),
        ours(
            "Rate of the late loss over that of the slowest mode, 2s²/(S_λ + |λ|/2): "
            "median over draws, at the λ where it is farthest from 1",
            between(rate[np.argmax(np.abs(rate - 1))], 0.95, 1.05),
        ),
        ours(
            "With the lazy sign the network learns at the rate |λ|: time to 1 % of the loss × |λ| / ln 10, largest |λ|",
            between(data.learned[0].mean() * -lams[0] / np.log(10), 0.99, 1.01),
            panel="d",
        ),
        ours(
            "Gap of the kernel distance between descent and theory, delayed sign: order in the learning rate",
            between(data.order_in_lr[-1], 0.9, 1.1),
        ),
        ours(
            "The funnel 6-3-3 with −λ is the mirror image: largest difference of loss and kernel distance",
            at_most(data.mirror_gap.max(), 1e-10),
        ),
        ours(
            "Loss with a frozen kernel, lazy sign: largest gap to training / initial loss",
            at_most(gap[1].max(), 0.05),
        ),
        ours(
            "Loss with a frozen kernel, delayed sign, before the kernel moves: largest gap to training / initial loss",
            at_most(gap[0][resting].max(), 0.05),
            panel="a",
        ),
        ours(
            "Loss with a frozen kernel, delayed sign, at all times: largest gap to training / initial loss",
            at_least(gap[0].max(), 0.1),
            panel="a",
        ),
    ]


def _distance_at_half(data: Dataset) -> float:
    """The kernel distance when the loss is at half of its initial value, median over draws."""
    half = time_to_learn(data.loss, 0.5).values
    curves = data.kernel_distance.transpose("seed", "time").values
    return float(np.median([np.interp(t, data.time.values, c) for t, c in zip(half, curves, strict=True)]))


def _late_rate(data: Dataset) -> np.ndarray:
    """The measured over the predicted rate of the late loss, which falls as e^(−2rt), for each delayed λ."""
    slow = data.isel(lam=data.lam.values > 0)
    s, half = data.singular_value.values.min(), slow.lam.values / 2
    measured = np.log(1e4) / (time_to_learn(slow.loss, 1e-8) - time_to_learn(slow.loss, 1e-4))
    return measured.median("seed").values * (np.hypot(s, half) + half) / (2 * s**2)


def figure(result: Result) -> Figure:
    from matplotlib.lines import Line2D

    data = result.data
    sheet, at = panels("ab;cd")
    colours = colours_of(REGIMES)
    for letter, name in (("a", "loss"), ("b", "kernel_distance")):
        curves = [data[f"{kind}_{name}"].rename(moment_time="time") for kind in ("trained", "exact")]
        overlay(at[letter], *curves, by="regime", colours=colours)
        at[letter].set_xscale("symlog", linthresh=0.1)
        at[letter].set_xlim(0, float(data.moment_time[-1]))
    at["a"].plot(data.moment_time, data.frozen_loss[0], ":", color=INK, lw=1.3)
    size = float(data.lam.where(data.lam > 0).min())
    at["a"].set(title=f"Loss, |λ| = {size:g}", ylabel="loss")
    at["b"].set(title=f"Movement of the kernel, |λ| = {size:g}", ylabel="kernel distance")
    _draw_collapse(at["c"], data)
    _draw_delays(at["d"], data, colours)
    marks = [Line2D([], [], color=INK, lw=1.3, ls=":", label="frozen kernel (a)")]
    marks += [mark("loss at 1 % (d)", colour=DARK_GREY), mark("kernel half way (d)", "s", colour=DARK_GREY, mfc="w")]
    key(sheet, {name if "λ" in name else f"{name} sign": colour for name, colour in colours.items()}, marks=marks)
    return sheet


def _draw_collapse(axes: Axes, data: Dataset) -> None:
    """Mean kernel distance of the delayed sign against time over λ."""
    from matplotlib import colormaps

    delayed = data.kernel_distance.isel(lam=data.lam.values > 0).mean("seed")
    shades = colormaps["Blues"](np.linspace(0.35, 1, delayed.sizes["lam"]))
    for curve, shade in zip(delayed, shades, strict=True):
        axes.plot(data.time / curve.lam, curve, color=shade, lw=1.8)
    axes.set(title="Delayed sign: one curve in time / λ", xlabel="time / λ (τ)", ylabel="kernel distance")
    axes.set(xscale="log", xlim=(1e-3, 30))


def _draw_delays(axes: Axes, data: Dataset, colours: Mapping[str, str]) -> None:
    """Times to 1 % of the loss for both signs, and of half the kernel's movement, against |λ|."""
    for times, sign, marker in ((data.learned, 1, "o"), (data.half_moved, 1, "s"), (data.learned, -1, "o")):
        chosen = times.isel(lam=sign * data.lam.values > 0)
        low, middle, high = chosen.quantile((0.1, 0.5, 0.9), "seed").values
        colour = colours[REGIMES[0] if sign > 0 else REGIMES[1]]
        face = "white" if marker == "s" else colour
        axes.errorbar(abs(chosen.lam), middle, [middle - low, high - middle], fmt=marker, ms=6, color=colour, mfc=face)
        if marker == "s":
            axes.plot(chosen.lam, middle[0] * chosen.lam / chosen.lam[0], ls=DASHES, color=GREY, lw=1, zorder=0)
    axes.set(title="The delay is proportional to |λ|", xscale="log", yscale="log", xlabel="|λ|", ylabel=TIME)
