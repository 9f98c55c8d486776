"""Final strengths of a shared pathway and its private rivals: shares, scaling with the start, and panels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..._figures.style import COLOURS, TIME, predicted, trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray, Dataset


def shared_share(strengths: DataArray) -> DataArray:
    """The share of the shared pathway in what it and the private one write."""
    return strengths.isel(path=0) / strengths.sum("path")


def private_over_shared(strengths: DataArray) -> DataArray:
    return strengths.isel(path=1) / strengths.isel(path=0)


def start_exponents(data: Dataset) -> Float[np.ndarray, " sharing"]:
    """The exponent of private/shared against b₀², between the smallest two decoupled starts."""
    ratio = private_over_shared(data.two_training.isel(time=-1)).transpose("start", "sharing").values
    return np.log(ratio[-2] / ratio[-1]) / np.log(data.start.values[-2] / data.start.values[-1]) / 2


def random_exponents(data: Dataset) -> Float[np.ndarray, " sharing"]:
    """The exponent of private/shared against σ², between the smallest two random weights; medians over seeds."""
    ratio = private_over_shared(data.two_random.isel(time=-1)).median("seed").transpose("scale", "sharing").values
    return np.log(ratio[-2] / ratio[-1]) / np.log(data.scale.values[-2] / data.scale.values[-1]) / 2


def pair_of_curves(axes: Axes, data: Dataset, training: DataArray, theory: DataArray) -> None:
    for k, name in enumerate(("shared pathway", "private pathway")):
        trained(axes, data.time, training.isel(path=k), colour=COLOURS[k], label=name)
        predicted(axes, data.time, theory.isel(path=k), colour=COLOURS[k])
    axes.set(xlabel=TIME, ylabel="strength", xlim=(0, float(data.time[-1]) / 2))
    axes.legend(loc="center right", fontsize=8)


def draw_two(axes: Axes, data: Dataset) -> None:
    count = data.attrs["conserved_domains"]
    one = data.sel(sharing=count, start=data.shown)
    pair_of_curves(axes, data, one.two_training, one.two_theory)
    axes.set_title(f"{count} domains, decoupled start {data.shown:g}")


def draw_random(axes: Axes, data: Dataset) -> None:
    count, one = data.attrs["conserved_domains"], data.isel(scale=1).sel(sharing=data.attrs["conserved_domains"])
    pair_of_curves(axes, data, one.two_random.transpose("path", "seed", "time"), one.random_theory)
    axes.set_title(f"{count} domains, random weights σ = {float(one.scale):g}")


def draw_shares(axes: Axes, data: Dataset) -> None:
    for number, count in enumerate(data.sharing.values):
        colour = COLOURS[number]
        shares = shared_share(data.two_training.isel(time=-1)).sel(sharing=count)
        closed_form = shared_share(data.two_final).sel(sharing=count)
        axes.semilogx(data.start**2, shares, "o", color=colour, ms=5, label=f"M = {count}")
        axes.semilogx(data.fine_start**2, closed_form, "--", color=colour, lw=1.2)
    axes.set(xlabel="start, b₀²", ylabel="share of the shared pathway", title="shares: ● training, – – theory")
    axes.set_ylim(0.45, 1.02)
    axes.legend(fontsize=8, loc="center left")


def draw_exponents(axes: Axes, data: Dataset) -> None:
    line = np.linspace(1, float(data.sharing[-1]), 100)
    axes.plot(line, 1 - 1 / np.sqrt(line), "--", color="0.2", lw=1.2, label="1 − 1/√M")
    axes.plot(data.sharing, start_exponents(data), "o", color=COLOURS[0], ms=7, label="decoupled start")
    axes.plot(data.sharing, random_exponents(data), "x", color=COLOURS[1], ms=7, mew=2, label="random weights")
    axes.set(
        xlabel="domains that share, M", ylabel="exponent of private/shared in b₀²", title="how private pathways vanish"
    )
    axes.legend(loc="lower right")


def draw_deep(axes: Axes, data: Dataset) -> None:
    grown = data.isel(path=1)
    for number, k in enumerate(np.flatnonzero(np.isfinite(data.limit.values))):
        one, colour = grown.isel(setting=k), COLOURS[number]
        label = f"M = {int(one.domains)}, K = {int(one.per_domain)}"
        for kind, style in (("training", "o"), ("theory", "--")):
            curve = one[f"three_{kind}"]
            axes.semilogy(
                data.deep_start,
                curve.isel(deep_time=-1) / curve.isel(deep_time=0),
                style,
                color=colour,
                ms=5,
                lw=1.2,
                label=label if kind == "training" else None,
            )
        axes.plot(0, float(one.limit), "*", color=colour, ms=9, clip_on=False)
    axes.set(xlabel="start, b₀", ylabel="growth of private pathways", title="three layers (∗ limit of small starts)")
    axes.set_xlim(left=0)
    axes.set_ylim(top=4 * float(data.limit.where(np.isfinite(data.limit)).max()))
    axes.legend(fontsize=8, ncols=2, loc="upper right")


def draw_epochs(axes: Axes, data: Dataset) -> None:
    alone = data.oracle_pairs == 1
    seven = data.oracle_domains == 7
    axes.loglog(
        data.oracle_domains[alone], data.epochs[alone], "o-", color=COLOURS[0], lw=1.2, base=2, label="against M, K = 1"
    )
    axes.loglog(
        data.oracle_pairs[seven], data.epochs[seven], "s-", color=COLOURS[1], lw=1.2, base=2, label="against K, M = 7"
    )
    axes.set(xlabel="domains M, or trained pairs K per domain", ylabel="epochs to half of the first mode")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.set_title("routing network: sharing makes it faster")
    axes.legend(fontsize=8, loc="lower left")
