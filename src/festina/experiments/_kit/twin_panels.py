"""Gated twins for all contexts but one: the closed form of the source, and panels of losses and distances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ... import Task
from ..._figures.style import COLOURS, predicted, trained
from ..._formulas import mode_at_depth
from ...tasks.hierarchy import hierarchy_block
from ...theories.context_race import gate_overlap, item_mode
from . import twin_comparison
from .item_contexts import EPOCHS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

TWIN, HALF, RACE = "all but one", "half in common", "ContextRace"


def closed_form_loss(
    task: Task, items: int, contexts: int, times: Float[np.ndarray, " time"], starts: tuple[float, float] | None
) -> Float[np.ndarray, " time"]:
    """The loss of the closed form from one start of all common modes and one of the others; NaN without starts."""
    if starts is None:
        return np.full(len(times), np.nan)
    modes = task.modes()
    live = modes.singular_values > 1e-9
    s, d = modes.singular_values[live], modes.variances[live]
    sigma = np.linalg.svd(hierarchy_block(items), compute_uv=False)[1:]
    rest = item_mode(sigma, items=items, contexts=contexts, size=contexts - 1)
    effective = gate_overlap(contexts, contexts - 1) * rest.variance
    common = np.asarray(mode_at_depth.strength(times[:, None], s, d, starts[0], 2))
    others = np.asarray(mode_at_depth.strength(times[:, None], rest.residual, effective, starts[1], 2))
    left = np.sum(d * (s / d - common) ** 2, axis=1)
    share = (contexts - 1) / (items * contexts)
    return 0.5 * (left + share * np.sum((sigma * (1 - others * effective / rest.residual)) ** 2, axis=1))


def draw_losses(axes: Axes, data: Dataset, count: int) -> None:
    """Losses of the ReLU network, its twins, ContextRace and the closed form with fitted starts."""
    first = float(data.relu_loss[0, 0])
    trained(axes, data.epoch, data.relu_loss / first, colour=COLOURS[0], label="ReLU")
    twins = {TWIN: (COLOURS[1], "twin: all but one"), HALF: (COLOURS[2], "twin, wide common pathway")}
    for name, (colour, label) in twins.items():
        if name in data.net:
            axes.plot(data.epoch, data.gated_loss.sel(net=name)[0] / first, color=colour, lw=1.4, label=label)
    predicted(axes, data.epoch, data.gated_loss.sel(net=RACE)[0] / first, colour=COLOURS[1], label="ContextRace")
    for kind, colour, label in (
        ("fitted", COLOURS[0], "fitted to ReLU"),
        ("typed", COLOURS[3], "starts of the source"),
    ):
        if np.isfinite(data[f"{kind}_loss"]).all():
            curve = data[f"{kind}_loss"] / first
            axes.plot(data.epoch, curve, color=colour, lw=1, ls=":", label=f"closed form, {label}")
    axes.set(xlabel=EPOCHS, ylabel="loss / first loss", title=f"{count} contexts, context inputs {float(data.kappa):g}")
    axes.set(xlim=(0, 5000), ylim=(-0.02, 1.03))
    axes.legend(loc="upper right")


def draw_table(axes: Axes, data: Dataset) -> None:
    """Distances of losses and epochs to shares of the loss, one row for each network."""
    rows = []
    for count in data.contexts.values:
        here = data.sel(contexts=count)
        rows.append(
            (f"{count}: ReLU", ["", "", "", "", *map(twin_comparison.epochs_text, here.reference_time_to.values)])
        )
        for name in data.net.values:
            one = here.sel(net=name)
            distances = [f"{float(one[key]):.3f}" for key in ("raw", "raw_mean", "raw_after_shift")]
            times = map(twin_comparison.epochs_text, one.time_to.values)
            rows.append((f"    {name}", [*distances, f"{float(one.time_shift):.0f}", *times]))
    columns = ["largest", "mean", "moved", "by", *(f"{100 * fraction:g} %" for fraction in data.fraction.values)]
    twin_comparison.draw_table(axes, columns, rows, "distances of losses; epochs to a share of the loss")
