"""Panels about the closed form of the two-point theory, beside integration, solvers and linear networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._figures.style import COLOURS, DASHES, TIME, legend_of_kinds, predicted, trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset


def draw_networks(axes: Axes, data: Dataset) -> None:
    """H of a few linear networks of both kinds, trained and by the theory."""
    for number, kind in enumerate(data.kind.values):
        some = data.sel(kind=kind, curve="distance").isel(network=slice(3))
        for network in range(some.sizes["network"]):
            trained(axes, data.step_time, some.training[network], colour=COLOURS[number])
            predicted(axes, data.step_time, some.theory[network], colour=COLOURS[number])
        axes.plot([], [], color=COLOURS[number], lw=3, label=kind)
    axes.set(xlabel=TIME, ylabel="H", title="linear networks, nothing fitted")
    axes.set_ylim(0, 1.35 * float(data.theory.sel(curve="distance").max()))
    axes.add_artist(axes.legend(loc="lower right", fontsize=8, title="decoder and dh", title_fontsize=8))
    legend_of_kinds(axes, loc="upper right", fontsize=8)


def draw_rates(axes: Axes, data: Dataset) -> None:
    """The gap between training and theory against the learning rate."""
    for number, kind in enumerate(data.kind.values):
        axes.loglog(data.rate, data.gap.sel(kind=kind), "o-", color=COLOURS[number], lw=1, ms=4, label=None)
        axes.plot([], [], "o-", color=COLOURS[number], lw=1, ms=4, label=kind)
    printed = data.gap_as_printed.values
    axes.loglog(np.full(len(printed), data.rate[-1]), printed, "x", color="0.3", ms=6, label="τ = 1/η, as printed")
    slope = float(data.gap.min()) * data.rate / data.rate[-1]
    axes.loglog(data.rate, slope / 2, color="0.6", lw=1, ls=":", label="order 1")
    axes.set(xlabel="learning rate η", ylabel="largest gap / curve", title="training tends to the theory with τ = 2/η")
    axes.set_xticks(data.rate.values, [f"{rate:g}" for rate in data.rate.values])
    axes.set_xticks([], minor=True)
    axes.legend(loc="upper right", bbox_to_anchor=(1.0, 0.97), fontsize=8)


def draw_rotation(axes: Axes, data: Dataset) -> None:
    """What it costs to neglect rotation, against the scale of the weights, with the median angle of rotation."""
    for number, (values, label) in enumerate(
        ((data.unturned_course, "time course of H"), (data.unturned_final, "final distance"))
    ):
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9], axis=1)
        axes.loglog(data.scale, middle, "o-", color=COLOURS[number], ms=4, label=label)
        axes.fill_between(data.scale, low, high, color=COLOURS[number], alpha=0.2, lw=0)
    angles = data.angle.median("few").values
    for scale, angle in zip(data.scale.values, angles, strict=True):
        axes.annotate(
            f"{angle:.0f}°", (scale, 0.02), xycoords=("data", "axes fraction"), ha="center", fontsize=8, color="0.3"
        )
    axes.set(xlabel="scale of the weights", ylabel="relative gap", title="cost of neglecting rotation (angles below)")
    axes.legend(loc="upper left", fontsize=8)


def draw_pairs(axes: Axes, data: Dataset) -> None:
    """A few of the pairs: some that pass through H = 0, and others."""
    passing = np.flatnonzero(data.through_zero)[:2]
    chosen = [*passing, *np.flatnonzero(data.through_zero == 0)[: 6 - len(passing)]]
    for number, pair in enumerate(chosen):
        for curve, draw in ((data.integral, trained), (data.closed_form, predicted)):
            draw(axes, data.time, (curve / data.final).isel(pair=pair).sel(curve="distance"), colour=COLOURS[number])
    axes.set(xlabel="time (√(τₕτᵧ/XY))", ylabel="H / final H", title="integration and closed form")
    kinds = [axes.plot([], [], color="0.75", lw=4)[0], axes.plot([], [], color="0.1", lw=1.3, ls=DASHES)[0]]
    axes.legend(kinds, ["integration", "closed form"], loc="lower right", fontsize=8)


def draw_zero(axes: Axes, data: Dataset) -> None:
    """H from a start on the border of those that pass through H = 0: the closed form, and solvers that may leave it."""
    for number, solver in enumerate(data.solver.values):
        axes.plot(data.zero_time, data.zero_solved.sel(solver=solver), color=COLOURS[number + 1], lw=1.5, label=solver)
    axes.plot(data.zero_time, data.zero_closed_form, color="0.1", lw=1.5, ls=DASHES, label="closed form")
    axes.set(xlabel="time (√(τₕτᵧ/XY))", ylabel="H", title="printed equations where H tends to 0", ylim=(-0.05, 1.6))
    axes.legend(loc="upper left", fontsize=8, ncols=2)


def draw_ends(axes: Axes, data: Dataset) -> None:
    """The final distance as predicted, against that of integration."""
    low, high = float(data.final_integral.min()), float(data.final_integral.max())
    axes.loglog([low, high], [low, high], color="0.1", lw=1.3, ls=DASHES)
    axes.loglog(data.final_integral, data.final_swapped, "x", color=COLOURS[1], ms=5, label="τₕ and τᵧ exchanged")
    axes.loglog(data.final_integral, data.final, "o", color=COLOURS[0], ms=4, label="eq. 10")
    axes.set(xlabel="H at the end of integration", ylabel="predicted", title="final distance")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
        axis.set_ticks([], minor=True)
    axes.legend(loc="upper left", fontsize=8)
