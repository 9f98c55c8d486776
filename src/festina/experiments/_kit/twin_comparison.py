"""ReLU networks beside their gated twins: initial weights, comparisons and panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ... import inits, nets
from ..._figures.style import COLOURS
from ..._setup.trajectory import Trajectory
from ...gates.comparing import aligned, compare, geometry, scaling

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

OBSERVED = ("loss", "outputs", "similarity")  # of networks that are to be compared
FRACTIONS = (0.5, 0.1, 0.01)  # of the first loss
PLANE = 2  # dimensions of a drawn layout
Layouts = Float[np.ndarray, "network instant sample dimension"]


def small_start(net: nets.Gated, scale: float, ahead: float = 1.0) -> inits.SmallRandom:
    """Weights of standard deviation `scale`; those of pathways other than the common one have `ahead` times it."""
    return inits.SmallRandom([scale] * 2 + [ahead * scale] * (len(net.edges) - 2))


def compared(relu: Trajectory, twins: Mapping[str, Trajectory], epoch: float) -> Dataset:
    """The result of `gates.compare` with times in epochs; `epoch` is the time that one epoch takes."""
    data = compare(relu, twins, fractions=FRACTIONS)
    for name in ("time_shift", "time_to", "reference_time_to"):
        data[name] = data[name] / epoch
    return data.assign_coords(time=np.rint(data.time / epoch).astype(int)).rename(time="epoch", candidate="net")


def between_seeds(relu: Trajectory) -> Float[np.ndarray, " time"]:
    """How alike the hidden geometry of the first seed and of the others is, averaged over these."""
    first, others = relu["similarity"][0], relu["similarity"][1:]
    return np.mean(np.stack([np.asarray(geometry(first, other, similarity=True)) for other in others]), axis=0)


def layouts(relu: Trajectory, twin: Trajectory, instants: Sequence[int]) -> Layouts:
    """Hidden activity of the first seed of both networks in the plane, the twin rotated and scaled onto ReLU."""
    first, second = (
        scaling(network["similarity"][0][list(instants)], PLANE, similarity=True) for network in (relu, twin)
    )
    first = first - first.mean(axis=-2, keepdims=True)
    return np.stack([first, aligned(second, first, scale=True)])


def mismatch(points: ArrayLike) -> Float[np.ndarray, " instant"]:
    """Distance of the two `layouts` relative to the size of the first, at every instant.

    It is 1 if they have nothing in common.
    """
    relu, twin = np.asarray(points)
    return np.linalg.norm(twin - relu, axis=(-2, -1)) / np.linalg.norm(relu, axis=(-2, -1))


def draw_layout(axes: Axes, points: ArrayLike, contexts: np.ndarray) -> None:
    """Both layouts of `layouts` at one instant: ReLU as discs, the twin as crosses, a line between the two."""
    relu, twin = np.asarray(points)
    for context in np.unique(contexts):
        inside, colour = contexts == context, COLOURS[int(context)]
        axes.plot(*np.stack([relu[inside], twin[inside]]).transpose(2, 0, 1), color=colour, lw=0.6, alpha=0.6)
        axes.scatter(*relu[inside].T, color=colour, s=42, alpha=0.35, lw=0, label=f"context {int(context) + 1}")
        axes.scatter(*twin[inside].T, color=colour, marker="x", s=22, lw=1.1)
    axes.set(xlabel="first dimension", ylabel="second dimension")
    axes.set_aspect("equal", adjustable="datalim")


def draw_table(axes: Axes, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], title: str) -> None:
    """Rows of text, each with its name."""
    axes.set_axis_off()
    table = axes.table(
        [[name, *(f"  {cell}" for cell in cells)] for name, cells in rows],
        colLabels=["", *(f"  {column}" for column in columns)],
        loc="upper left",
        cellLoc="right",
        edges="horizontal",
    )
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    table.auto_set_column_width(list(range(len(columns) + 1)))
    table.scale(1, 1.2)
    for (row, column), cell in table.get_celld().items():
        cell.set_linewidth(0.4)
        cell.PAD = 0.04
        if column == 0:
            cell.set_text_props(ha="left")
        if row == 0:
            cell.set_text_props(color="0.35")
    axes.set_title(title)


def epochs_text(number: float) -> str:
    """A number of epochs, or a dash for one that was never reached."""
    return f"{number:.0f}" if np.isfinite(number) else "–"
