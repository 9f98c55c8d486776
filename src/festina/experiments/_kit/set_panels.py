"""Panels about gated networks with pathways for sets of contexts: their losses, who wins, and what decides it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..._figures.style import COLOURS, predicted, trained
from ...gates.comparing import times_to
from .item_contexts import EPOCHS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray, Dataset


def epochs_to(losses: DataArray, fraction: float) -> float:
    """Epochs until the loss has fallen to a fraction of its start, averaged over seeds."""
    return float(times_to(losses.epoch.values, losses.values, fraction).mean())


def epochs_to_a_tenth(data: Dataset, count: int) -> tuple[Float[np.ndarray, " size"], Float[np.ndarray, " size"]]:
    """Epochs to a tenth of the loss for sets of every size in `count` contexts: trained, predicted."""
    here = data.sel(contexts=count)
    gated, theory = (
        np.array([epochs_to(here[name].sel(size=size), 0.1) for size in range(1, count)])
        for name in ("gated_loss", "predicted_loss")
    )
    return gated, theory


def draw_losses(axes: Axes, data: Dataset, count: int) -> None:
    """Losses of gated networks for sets of every size, of ContextRace and of a ReLU network."""
    for size in range(1, count):
        colour = COLOURS[size - 1]
        label = f"{size} of {count}"
        trained(axes, data.epoch, data.gated_loss.sel(size=size) / data.first, colour=colour, label=label)
        predicted(axes, data.epoch, data.predicted_loss.sel(size=size)[0] / data.first, colour=colour)
    axes.plot(data.epoch, data.relu_loss[0] / data.first, color="0.1", lw=1, label="ReLU")
    axes.set(xlabel=EPOCHS, ylabel="loss / first loss", title=f"{count} contexts", yscale="log", ylim=(1e-3, 1.3))
    axes.legend(loc="lower left", title="pathways for")
    axes.annotate("dashed: ContextRace", (0.98, 0.97), xycoords="axes fraction", ha="right", va="top", fontsize=9)


def draw_ranking(axes: Axes, data: Dataset) -> None:
    """Epochs to a tenth of the loss against the share of contexts in a set."""
    for k, count in enumerate(data.contexts.values):
        gated, theory = epochs_to_a_tenth(data, count)
        colour, sizes = COLOURS[3 + k], np.arange(1, count)
        trained(axes, sizes / count, gated, colour=colour, label=f"{count} contexts")
        predicted(axes, sizes / count, theory, colour=colour)
        axes.plot(sizes / count, gated, "o", color=colour, ms=5)
    axes.set(xlabel="share of contexts in which a pathway is on, m/C", ylabel="epochs to a tenth of the loss")
    axes.set(title="pathways for all contexts but one are fastest", ylim=(0, None))
    axes.legend(loc="lower left")


def draw_strengths(axes: Axes, data: Dataset) -> None:
    """Singular values on the target and on what the common pathway leaves, and the head start, of the most contexts."""
    count = int(data.contexts[-1])
    here, sizes = data.sel(contexts=count, size=slice(1, count - 1)), np.arange(1, count)
    for of, colour in (("target", COLOURS[0]), ("residual", COLOURS[1])):
        axes.plot(sizes, here.strength.sel(of=of), "o-", color=colour, label=f"s on the {of}")
    axes.set(xlabel=f"contexts in which a pathway is on, of {count}", ylabel="singular value", xticks=sizes)
    axes.set(title="half-size sets are strongest on the residual", ylim=(0, None))
    ahead = axes.twinx()
    ahead.semilogy(sizes, here.head_start, "s--", color="0.4", ms=4, lw=1, label="head start B₀/a")
    ahead.spines["right"].set_visible(True)
    ahead.set(ylabel="head start B₀/a")
    lines = [*axes.get_lines(), *ahead.get_lines()]
    axes.legend(lines, [str(line.get_label()) for line in lines], loc="upper left")


def draw_fit(axes: Axes, data: Dataset, count: int) -> None:
    """The loss of a ReLU network, and the closed form with both starts fitted or with one start for all."""
    trained(axes, data.epoch, data.relu_loss / data.first, colour=COLOURS[7], label="ReLU")
    for kind, colour, label in (("fitted", COLOURS[0], "a₀, B₀ fitted"), ("equal", COLOURS[1], "B₀ = a₀")):
        predicted(axes, data.epoch, data[f"{kind}_loss"] / data.first, colour=colour, label=f"closed form, {label}")
    axes.set(xlabel=EPOCHS, ylabel="loss / first loss", title=f"ReLU, {count} contexts: B₀ has to be fitted")
    axes.set_xlim(0, min(5000, float(data.epoch[-1])))
    axes.legend(loc="upper right")
