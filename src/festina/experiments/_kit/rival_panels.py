"""Final strengths of rival pathways: how they scale with the start, their shares of every level, and panels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..._figures.style import COLOURS, TIME, legend_of_kinds, predicted, trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray, Dataset


def slopes(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Exponents of values in the start, between neighbouring starts."""
    return np.diff(np.log(values), axis=0) / np.diff(np.log(starts)).reshape(-1, *[1] * (np.ndim(values) - 1))


def loser_over_winner(strengths: DataArray) -> DataArray:
    return strengths.isel(path=1) / strengths.isel(path=0)


def start_exponents(final: DataArray, starts: np.ndarray) -> Float[np.ndarray, " ratio"]:
    """The exponent of loser/winner against the start, between the smallest two decoupled starts."""
    values = final.transpose("start", "path", "ratio").values
    return slopes(values[:, 1] / values[:, 0], starts)[-1]


def random_exponents(data: Dataset) -> Float[np.ndarray, " dim"]:
    """The exponent of loser/winner for each level of the hierarchy, between the smallest two σ; medians over seeds."""
    medians = loser_over_winner(by_level(data)).median("seed").transpose("scale", "dim").values
    return slopes(medians, data.scale.values**2)[-1]


def by_level(data: Dataset) -> DataArray:
    """Shares (scale, seed, path, dim) of each level that are learned through its better (0) and its worse sense (1).

    Modes of one level have equal singular values, so random weights mix them: only their sum is compared.
    """
    final = data.tree_training.isel(time=-1).groupby(data.level).sum() / data.target.groupby(data.level).sum()
    better = final.isel(path=[0, 1]).isel(level=slice(0, 2)), final.isel(path=[1, 0]).isel(level=slice(2, 4))
    import xarray

    return xarray.concat(better, "level").rename(level="dim").assign_coords(dim=data.dim.values)


def draw_race(axes: Axes, data: Dataset) -> None:
    one = data.sel(ratio=0.8, method="nearest")
    training = one.rivals_training.sel(start=data.shown, method="nearest")
    ratio, amount = float(one.ratio), float(one.amount)
    for k, (name, reach) in enumerate({"winner": 1.0, f"loser, s₂/s₁ = {ratio:g}": ratio}.items()):
        trained(axes, data.time, reach * training.isel(path=k) / amount, colour=COLOURS[k], label=name)
        predicted(axes, data.time, reach * one.rivals_theory.isel(path=k) / amount, colour=COLOURS[k])
    axes.plot(data.time, ratio * one.alone / amount, color=COLOURS[1], lw=1.2, ls=":", label="loser without a rival")
    axes.set(xlabel=TIME, ylabel="share of the target", title="the winner leaves nothing to learn", xlim=(0, 20))
    axes.legend(loc="center right", fontsize=8)


def draw_powers(axes: Axes, data: Dataset) -> None:
    final = data.rivals_training.isel(time=-1)
    for number, ratio in enumerate(data.ratio.values[::-2]):
        colour, at = COLOURS[number % len(COLOURS)], dict(ratio=ratio)
        axes.loglog(
            data.start**2, loser_over_winner(final.sel(at)), "o", color=colour, ms=5, label=f"s₂/s₁ = {ratio:g}"
        )
        axes.loglog(data.start**2, loser_over_winner(data.rivals_final.sel(at)), "--", color=colour, lw=1.2)
    axes.set(xlabel="start of both pathways, a₀²", ylabel="loser/winner", title="loser/winner: ● training, – – theory")
    axes.legend(loc="lower right", fontsize=8)


def draw_exponents(axes: Axes, data: Dataset) -> None:
    line = np.linspace(0, 1, 50)
    axes.plot(line, 1 - line, "--", color="0.2", lw=1.2, label="1 − s₂/s₁")
    exponents = start_exponents(data.rivals_training.isel(time=-1), data.start.values**2)
    axes.plot(data.ratio, exponents, "o", color=COLOURS[0], ms=7, label="decoupled start")
    axes.plot(data.dim, random_exponents(data), "x", color=COLOURS[1], ms=7, mew=2, label="random weights")
    axes.set(xlabel="s₂/s₁", ylabel="exponent of loser/winner in a₀²", title="loser/winner is a power of the start")
    axes.legend()


def draw_tree(axes: Axes, data: Dataset) -> None:
    middle = data.isel(scale=1)
    for k in range(2):
        for level in np.unique(data.level):
            members = np.flatnonzero(data.level == level)
            strengths = middle.tree_training.isel(path=k, mode=members).mean("mode").transpose("seed", "time")
            trained(axes, data.time, strengths, colour=COLOURS[k])
            predicted(axes, data.time, data.tree_theory.isel(path=k, mode=members[0]), colour=COLOURS[k])
    for k, name in enumerate(("sense strongest in levels 0, 1", "sense strongest in levels 2, 3")):
        axes.plot([], [], color=COLOURS[k], lw=3, label=name)
    axes.set(
        xlabel=TIME,
        ylabel="contribution to the output",
        title=f"a race for every level, random σ = {float(middle.scale):g}",
    )
    axes.set_ylim(top=1.75 * float(data.target.max()))
    axes.legend(loc="upper left", fontsize=8)


def draw_law(axes: Axes, data: Dataset) -> None:
    grown = np.log10(data.rivals_training.sel(start=data.shown, method="nearest"))
    grown = grown - grown.isel(time=0)
    for number, ratio in enumerate(data.ratio.values[::-2]):
        colour, line = COLOURS[number % len(COLOURS)], grown.sel(ratio=ratio)
        trained(axes, line.isel(path=0), line.isel(path=1), colour=colour)
        reach = np.array([0.0, float(line.isel(path=0).max())])
        predicted(axes, reach, ratio * reach, colour=colour)
    axes.set(
        xlabel="growth of the winner (decades)",
        ylabel="growth of the loser (decades)",
        title="growth in the ratio s₂/s₁ (colours as above)",
    )
    legend_of_kinds(axes, loc="upper left")


def draw_factors(axes: Axes, data: Dataset) -> None:
    for number, name in enumerate(data.factor.values):
        colour = COLOURS[number]
        for kind, style in (("training", "o"), ("theory", "--")):
            both = data[f"factor_{kind}"].sel(factor=name)
            label = str(name) if kind == "training" else None
            axes.semilogx(
                data.start**2, both.isel(path=0) / both.sum("path"), style, color=colour, lw=1.2, ms=5, label=label
            )
    axes.axhline(0.5, color="0.8", lw=1, zorder=0)
    axes.set(xlabel="start, a₀²", ylabel="share of the favoured pathway", title="other advantages, equal correlations")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(0.0, 0.62))
