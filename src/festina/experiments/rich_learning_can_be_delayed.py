"""A large balance λ of one sign makes a network lazy at first and rich late, after a delay that grows as |λ|.

In a network 3-3-6 with λ ≫ s the read-out starts as √λ times three orthonormal columns. The first layer learns at once,
at rate λ, what these columns can reach: a good part of the loss is gone while the tangent kernel has hardly moved. The
rest has to wait until the columns rotate. They do so at rates S_λ − λ/2 = s²/(S_λ + λ/2) ≈ s²/λ with S_λ = √(s² +
λ²/4), so the kernel moves, and the loss falls to zero, after a time of order λ/s². This is the slow sign of λ. The
funnel network 6-3-3 is the mirror image, transposed and with −λ: it is delayed for negative λ. With the other sign, the
lazy one, the same network is lazy to the end, and much faster; with λ = 0 the kernel moves from the start.

The exact solution holds throughout. Learning with a frozen kernel describes the first fall of the loss, and all of
learning with the lazy sign. With the slow sign it leaves the part of the loss that the columns do not reach. The time
to learn with the slow sign depends on the directions of the columns in each draw, and varies about threefold up and
down; with the lazy sign it does not. The times to 1 % of the loss on record for the slow sign come from one draw each
and test little: of 200 draws, a share of 0.32 is faster than the 17.9 at |λ| = 10, and shares of 0.46 and 0.28 are
faster than the 60 and the 51 at 30. The singular values of the task are equally spaced from 2 to 1; those of the
starting map are all `scale`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._figures.style import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._foundation.checks import positive, whole
from .._foundation.errors import BadInput
from ._kit.delayed_learning import (
    diagonal_task,
    draw_collapse,
    draw_delays,
    family_of_draws,
    time_to_half_moved,
    time_to_learn,
    trained_at_three,
)
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset


THEME, PLACE = "regimes", 5
REFERENCE = {"domine2025": "delayed rich learning", "saxe_slides": "slides on lazy, rich and delayed rich regimes"}
QUICK = dict(draws=24, points=160, record=60, lr=0.01)
STILL = 1e-3  # a kernel distance below which the kernel has hardly moved
RECORDED_LAZY = 0.23  # time to 1 % of the loss that is on record for the lazy sign, |λ| = 10


def run(
    *,
    sizes: Sequence[float] = (10.0, 30.0, 80.0, 160.0),
    scale: float = 0.05,
    draws: int = 200,
    until: float = 1e4,
    points: int = 400,
    lr: float = 0.005,
    record: int = 120,
    seed: int = 0,
) -> Result:
    """`sizes`: values of |λ|, each with both signs; `record`: how often training at the smallest |λ| is recorded."""
    draws, points, record = whole(draws, "draws"), whole(points, "points", least=2), whole(record, "record", least=2)
    scale, until, lr = positive(scale, "scale"), positive(until, "until"), positive(lr, "lr")
    if 10.0 not in sizes:
        raise BadInput(f"sizes = {tuple(sizes)}", "|λ| of 10 among them", "add it: a record exists for this one")
    magnitudes = np.sort(np.asarray(sizes, float))
    lams = np.concatenate([-magnitudes[::-1], [0.0], magnitudes])
    times = np.concatenate([[0.0], np.geomspace(1e-3, until, points)])
    numbers = np.arange(seed, seed + draws)
    task = diagonal_task(3, 6)
    loss, distance = family_of_draws(task, lams, numbers, scale, times)
    training, setups, theories = trained_at_three(task, float(magnitudes[0]), scale, lr, record, seed)
    import xarray

    axes = ("lam", "seed", "time")
    data = xarray.Dataset(
        {
            "loss": (axes, loss),
            "kernel_distance": (axes, distance),
            "singular_value": ("mode", task.modes().singular_values),
            **training,
        },
        coords={
            "lam": lams,
            "seed": numbers,
            "time": times,
            "regime": list(setups),
        },
        attrs={"scale": scale},
    )
    return Result(data, setups, theories)


def claims(result: Result) -> list[Claim]:
    data = result.data
    lams, times = data.lam.values, data.time.values
    at = {lam: int(np.argmin(np.abs(lams - lam))) for lam in (-10.0, 0.0, 10.0)}
    learned, half = time_to_learn(data, 0.01), time_to_learn(data, 0.5)
    relative = (data.loss / data.loss.isel(time=0)).values
    still = (data.kernel_distance.values < STILL).argmin(axis=-1)  # the first record at which it has moved
    before = np.take_along_axis(relative, np.maximum(still - 1, 0)[..., None], axis=-1)[..., 0]
    moved = np.median(time_to_half_moved(data), axis=-1)
    at_half = {
        lam: np.median([np.interp(t, times, curve) for t, curve in zip(half[k], data.kernel_distance[k], strict=True)])
        for lam, k in at.items()
    }
    gap = np.abs(data.trained_loss.values[:2] - data.frozen_loss.values) / data.trained_loss.values[:2, :1]
    resting = data.trained_kernel_distance.values[0] < STILL
    return [
        paper(
            "Lazy at first: share of the loss left when the kernel has moved by 0.001, largest λ, median over draws",
            at_most(np.median(before[-1]), 0.7),
        ),
        paper(
            "Rich in the end: final kernel distance, largest λ, mean over draws",
            at_least(data.kernel_distance.isel(time=-1, lam=-1).mean("seed").item(), 0.3),
        ),
        paper(
            "With the other sign learning is lazy to the end: largest kernel distance at any time, |λ| ≥ 10",
            at_most(data.kernel_distance.sel(lam=lams[lams <= -10]).max().item(), STILL),
        ),
        paper(
            "With λ = 0 learning is rich from the start: kernel distance at half of the loss / the same at the "
            "smallest λ of the slow sign",
            at_least(at_half[0.0] / at_half[10.0], 10.0),
        ),
        ours(
            "The delay grows as |λ|: exponent of the time at which the kernel has moved half way, largest two λ",
            between(np.log(moved[-1] / moved[-2]) / np.log(lams[-1] / lams[-2]), 0.97, 1.03),
        ),
        _rate_claim(data),
        ours(
            "With the lazy sign the network learns at the rate |λ|: time to 1 % of the loss × |λ| / ln 10, largest |λ|",
            between(learned[0].mean() * -lams[0] / np.log(10), 0.99, 1.01),
        ),
        ours(
            f"… at |λ| = 10 it takes {learned[at[-10.0]].mean():.4g}: relative gap to the {RECORDED_LAZY:g} on record",
            at_most(abs(learned[at[-10.0]].mean() / RECORDED_LAZY - 1), 0.05),
        ),
        ours(
            "Gradient descent tends to the exact kernel distance, slow sign: order of the gap in lr",
            between(float(data.order_in_lr[-1]), 0.9, 1.1),
        ),
        ours(
            "The funnel 6-3-3 with −λ is the mirror image: largest difference of loss and kernel distance",
            at_most(float(data.mirror_gap.max()), 1e-10),
        ),
        ours(
            "The frozen kernel describes learning with the lazy sign: largest gap to training / first loss",
            at_most(gap[1].max(), 0.05),
        ),
        ours("… and with the slow sign while the kernel rests: the same gap", at_most(gap[0][resting].max(), 0.05)),
        ours("… but not once it moves: largest gap, slow sign", at_least(gap[0].max(), 0.1)),
    ]


def _rate_claim(data: Dataset) -> Claim:
    """At every slow λ the late loss falls as e^(−2rt), with r the rate at which the slowest column rotates."""
    lams = data.lam.values
    s, slow = data.singular_value.values.min(), lams > 0
    predicted_rate = 2 * s**2 / (np.hypot(s, lams[slow] / 2) + lams[slow] / 2)
    measured_rate = np.log(1e4) / (time_to_learn(data, 1e-8) - time_to_learn(data, 1e-4))[slow]
    ratio = np.median(measured_rate, axis=-1) / predicted_rate
    return ours(
        "The late loss falls at twice the rate s²/(S_λ + |λ|/2) of the slowest mode: "
        "median ratio over draws, the one farthest from 1",
        between(ratio[np.argmax(np.abs(ratio - 1))], 0.95, 1.05),
    )


def figure(result: Result) -> Figure:
    data = result.data
    sheet, ((loss, kernel), (collapse, delays)) = new_figure(2, 2, width=4.8)
    for number, regime in enumerate(data.regime.values):
        colour, one = COLOURS[number], data.sel(regime=regime)
        for panel, name in ((loss, "loss"), (kernel, "kernel_distance")):
            trained(panel, data.moment_time, one[f"trained_{name}"], colour=colour)
            predicted(panel, data.moment_time, one[f"exact_{name}"], colour=colour)
        loss.plot([], [], color=colour, lw=3, label=regime)
    loss.plot(data.moment_time, data.frozen_loss[0], ":", color="0.2", lw=1.3, label="slow sign, frozen kernel")
    for panel in (loss, kernel):
        panel.set_xscale("symlog", linthresh=0.1)
        panel.set(xlabel=TIME, xlim=(0, float(data.moment_time[-1])))
    size = float(data.lam.where(data.lam > 0).min())
    loss.set(ylabel="loss", title=f"3-3-6, |λ| = {size:g}: the loss falls twice")
    loss.legend(loc="upper right", fontsize=8)
    kernel.set(ylabel="kernel distance", title="with the slow sign the kernel moves late")
    legend_of_kinds(kernel, loc="upper left")
    draw_collapse(collapse, data)
    draw_delays(delays, data)
    return sheet
