"""Panels about the law of depth: a balanced chain, random chains, and the exponents of networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._figures.style import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset


def draw_chain(ends: Axes, lines: Axes, straight: Axes, data: Dataset) -> None:
    """A balanced chain: final distances of all layers, P/H against H, and how straight this is."""
    depth = data.attrs["depth"]
    share = (data.chain_layer + 1) / depth
    ends.plot(share, data.distance[-1], "o", color=COLOURS[0], ms=7, mfc="none", label="balanced chain, trained")
    ends.plot(share, data.law, color=COLOURS[0], lw=1.3, ls="--", label="X$^{1-l/L}$ Y$^{l/L}$")
    rich = float(np.sqrt(data.attrs["input_gap"] * data.attrs["target_gap"]))
    ends.axhline(rich, color=COLOURS[1], lw=1.3, ls=":", label="√(XY), equation 10 with κ = 1")
    ends.set(xlabel="l / L", ylabel="final squared distance H", title=f"all layers of a chain of {depth} matrices")
    ends.legend(loc="upper right")
    for number, layer in enumerate((0, depth // 2 - 1, depth - 2)):
        H = data.distance[:, layer]
        top = float(data.output[-1] / H[-1])
        lines.plot(H / H[-1], data.output / H / top, color=COLOURS[number], lw=1.5, label=f"l = {layer + 1}")
    lines.set(xlabel="H / final H", ylabel="P/H / its final value", title="P/H is linear in H in the middle layer only")
    lines.legend(loc="upper left")
    straight.plot(share, data.straightness, "o-", color=COLOURS[0], label=f"from weights of {data.attrs['begin']:g}")
    straight.plot(share, data.straightness_from_nothing, "--", color="0.3", lw=1.3, label="from zero weights, derived")
    straight.set(xlabel="l / L", ylabel="R² of P/H against H", title="how straight P/H is", ylim=(0, 1.05))
    straight.legend(loc="lower center")


def draw_errors(axes: Axes, data: Dataset) -> None:
    """The error of the law of depth against the scale of random weights."""
    axes.plot(data.scale, data.error, "o", color=COLOURS[0], ms=3, mec="none", alpha=0.6)
    middle = data.error.median("seed")
    axes.plot(data.scale, middle, color=COLOURS[0], lw=1.5, label="median")
    axes.plot(data.scale, middle[0] * (data.scale / data.scale[0]) ** 2, "--", color="0.3", lw=1.3, label="scale²")
    axes.set(xscale="log", yscale="log", xlabel="scale of random weights", ylabel="largest relative error")
    axes.set_title("small weights obey the law of depth")
    axes.set_xticks(data.scale.values, [f"{scale:g}" for scale in data.scale.values])
    axes.minorticks_off()
    axes.legend(loc="upper left")


def draw_exponents(axes: Axes, data: Dataset, key: str, title: str) -> None:
    """Exponents of |dx| and |dy| in the final distance of every layer, with the law of depth."""
    for number, gap in enumerate(data.gap.values):
        exponent, law = (data[f"{key}_{kind}"].sel(gap=gap) for kind in ("exponent", "law"))
        axes.plot(data[f"{key}_layer"], exponent, "o", color=COLOURS[number], label=f"of |{gap}|")
        axes.plot(data[f"{key}_layer"], law, "--", color=COLOURS[number], lw=1.3)
    axes.axhline(1.0, color="0.5", lw=1.2, ls=":")
    axes.plot([], [], "--", color="0.3", lw=1.3, label="law of depth")
    axes.plot([], [], ":", color="0.5", lw=1.2, label="equation 10")
    axes.set(xlabel="hidden layer", ylabel="exponent in the final H", title=title)
    axes.set_ylim(min(-0.4, float(data[f"{key}_exponent"].min()) - 0.1), 2.9)
    axes.legend(loc="upper center", ncols=2)
