"""ReLU networks beside their gated twins: starts, what is compared, and how it is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import inits, nets
from .._plot import COLOURS
from .._trajectory import Trajectory
from ..gates.comparing import aligned, compare, geometry, scaling

OBSERVED = ("loss", "outputs", "similarity")  # of networks that are to be compared
FRACTIONS = (0.5, 0.1, 0.01)  # of the first loss
PLANE = 2  # dimensions of a drawn layout


def small_start(net: nets.Gated, scale: float, ahead: float = 1.0) -> inits.SmallRandom:
    """Weights of one standard deviation; those of pathways behind the common one, the first, are `ahead` times it."""
    return inits.SmallRandom([scale] * 2 + [ahead * scale] * (len(net.edges) - 2))


def compared(relu: Trajectory, twins: Mapping[str, Trajectory], epoch: float) -> Any:
    """`gates.compare` with times in epochs, where an `epoch` is so much time."""
    found = compare(relu, twins, fractions=FRACTIONS)
    for name in ("time_shift", "time_to", "reference_time_to"):
        found[name] = found[name] / epoch
    return found.assign_coords(time=np.rint(found.time / epoch).astype(int)).rename(time="epoch", candidate="net")


def between_seeds(relu: Trajectory) -> np.ndarray:
    """How alike the hidden geometry of the first seed and of the others is, (time,), averaged over these."""
    first, others = relu["similarity"][0], relu["similarity"][1:]
    return np.mean([geometry(first, other, similarity=True) for other in others], axis=0)


def layouts(relu: Trajectory, twin: Trajectory, instants: Sequence[int]) -> np.ndarray:
    """Hidden activity of the first seed in the plane, (network, instant, sample, dimension), the twin laid on ReLU."""
    own, other = (
        scaling(one["similarity"][0][list(instants)], PLANE, similarity=True) for one in (relu, twin)
    )  # fmt: skip
    own = own - own.mean(axis=-2, keepdims=True)
    return np.stack([own, aligned(other, own, scale=True)])


def mismatch(points: Any) -> np.ndarray:
    """Distance of two layouts relative to the size of the first, for every instant; 1 if they have nothing in common.

    `points` are those of `layouts`.
    """
    relu, twin = np.asarray(points)
    return np.linalg.norm(twin - relu, axis=(-2, -1)) / np.linalg.norm(relu, axis=(-2, -1))


def draw_layout(axes: Any, points: Any, contexts: np.ndarray) -> None:
    """Both layouts of `layouts` at one instant: ReLU as discs, the twin as crosses, a line between the two."""
    relu, twin = np.asarray(points)
    for context in np.unique(contexts):
        here, colour = contexts == context, COLOURS[int(context)]
        axes.plot(*np.stack([relu[here], twin[here]]).transpose(2, 0, 1), color=colour, lw=0.6, alpha=0.6)
        axes.scatter(*relu[here].T, color=colour, s=42, alpha=0.35, lw=0, label=f"context {int(context) + 1}")
        axes.scatter(*twin[here].T, color=colour, marker="x", s=22, lw=1.1)
    axes.set(xlabel="first dimension", ylabel="second dimension")
    axes.set_aspect("equal", adjustable="datalim")


def draw_table(axes: Any, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], title: str) -> None:
    """Rows of text, each with its name."""
    axes.set_axis_off()
    table = axes.table(
        [[name, *(f"  {cell}" for cell in cells)] for name, cells in rows],
        colLabels=["", *(f"  {column}" for column in columns)], loc="upper left", cellLoc="right", edges="horizontal",
    )  # fmt: skip
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
    return f"{number:.0f}" if np.isfinite(number) else "–"
