"""One style for all figures: training thick and pale, theory thin, dark and dashed on top."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, in an order that keeps neighbours apart; safe for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A6F00", "#000000")
DASHES = (0, (4, 2))  # of theory
THIN, THICK = 1.3, 4  # widths of the lines of theory and of training
# Greys, from what is said to what stands behind: a matplotlib colour is 0 for black and 1 for white.
INK, DARK_GREY, GREY, LIGHT_GREY, FAINT_GREY = "0.1", "0.3", "0.5", "0.6", "0.8"
TRAINED_GREY = "0.75"  # of training in a legend, where it has no colour of its own
TITLE_SIZE, TEXT_SIZE, LEGEND_SIZE, NOTE_SIZE, TINY_SIZE = 10.5, 10, 9, 8, 7
STYLE = {
    "figure.dpi": 110,
    "savefig.dpi": 150,
    "figure.constrained_layout.use": True,
    "font.size": TEXT_SIZE,
    "axes.titlesize": TITLE_SIZE,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "legend.frameon": False,
    "legend.fontsize": LEGEND_SIZE,
    "svg.fonttype": "none",
    "svg.hashsalt": "festina",
}
TIME = "time (τ)"


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """The house style, for the figures made inside."""
    import matplotlib

    with matplotlib.rc_context(STYLE):  # pyright: ignore[reportArgumentType]
        yield


def new_figure(rows: int = 1, columns: int = 1, *, width: float = 4.2, height: float = 3.1) -> tuple[Figure, Any]:
    """A figure and its axes, without pyplot and so without global state; axes are a 2D array."""
    from .sheet import Sheet

    figure = Sheet(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def picture_bytes(figure: Figure, form: str) -> bytes:
    """A figure as SVG or PNG, the same for the same figure."""
    picture = io.BytesIO()
    figure.savefig(picture, format=form, metadata={"Date": None} if form == "svg" else None)
    return picture.getvalue()


def trained(axes: Axes, times: ArrayLike, values: ArrayLike, *, colour: str, label: str | None = None) -> None:
    """Training, one pale line per seed; `values` is (seed, time)."""
    for number, line in enumerate(np.atleast_2d(values)):
        axes.plot(
            times, line, color=_paler(colour), lw=THICK, solid_capstyle="round", label=label if number == 0 else None
        )


def predicted(axes: Axes, times: ArrayLike, values: ArrayLike, *, colour: str, label: str | None = None) -> None:
    """Theory; `values` is (time,)."""
    axes.plot(times, values, color=_darker(colour), lw=THIN, ls=DASHES, label=label, zorder=3)


def _darker(colour: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(0.6 * part for part in to_rgb(colour))


def _paler(colour: str) -> tuple[float, ...]:
    # Mixed with white instead of transparent: many seeds on top of each other stay pale.
    from matplotlib.colors import to_rgb

    return tuple(0.45 * part + 0.55 for part in to_rgb(colour))


def legend_of_kinds(axes: Axes, kinds: Sequence[str] = ("training", "theory"), **options: Any) -> None:
    """Add a legend with one entry for each line style, training and theory unless `kinds` gives other labels."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=TRAINED_GREY, lw=THICK), Line2D([], [], color=INK, lw=THIN, ls=DASHES)]
    axes.legend(lines, kinds, **options)
