"""One style for all figures: training thick and pale, theory thin, dark and dashed on top."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

# Okabe and Ito's colours, in an order that keeps neighbours apart; safe for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A6F00", "#000000")
STYLE = {
    "figure.dpi": 110,
    "savefig.dpi": 150,
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "legend.frameon": False,
    "legend.fontsize": 9,
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


def new_figure(rows: int = 1, columns: int = 1, *, width: float = 4.2, height: float = 3.1) -> tuple[Any, Any]:
    """A figure and its axes, without pyplot and so without global state; axes are a 2D array."""
    from matplotlib.figure import Figure

    class Sheet(Figure):
        """A figure that notebooks show by themselves, since pyplot does not know of it."""

        def _repr_png_(self) -> bytes:
            picture = io.BytesIO()
            self.savefig(picture, format="png")
            return picture.getvalue()

    figure = Sheet(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def trained(axes: Any, times: Any, values: Any, *, colour: str, label: str | None = None) -> None:
    """Training, one pale line per seed; `values` is (seed, time)."""
    for number, line in enumerate(np.atleast_2d(values)):
        axes.plot(times, line, color=_paler(colour), lw=4, solid_capstyle="round", label=label if number == 0 else None)


def predicted(axes: Any, times: Any, values: Any, *, colour: str, label: str | None = None) -> None:
    """Theory; `values` is (time,)."""
    axes.plot(times, values, color=_darker(colour), lw=1.3, ls=(0, (4, 2)), label=label, zorder=3)


def _darker(colour: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(0.6 * part for part in to_rgb(colour))


def _paler(colour: str) -> tuple[float, ...]:
    # Mixed with white instead of transparent: many seeds on top of each other stay pale.
    from matplotlib.colors import to_rgb

    return tuple(0.45 * part + 0.55 for part in to_rgb(colour))


def legend_of_kinds(axes: Any, **options: Any) -> None:
    """Say once which line is which."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color="0.75", lw=4), Line2D([], [], color="0.1", lw=1.3, ls=(0, (4, 2)))]
    axes.legend(lines, ["training", "theory"], **options)


def comparison_figure(comparison: Any, names: Sequence[str] | str | None = None) -> Any:
    """One panel per observable that is a curve or a few curves."""
    wanted = (names,) if isinstance(names, str) else names
    drawable = [name for name in (wanted or comparison.names) if comparison.theory[name].ndim <= 2]
    with styled():
        figure, axes = new_figure(1, max(len(drawable), 1))
        for panel, name in zip(axes[0], drawable, strict=False):
            theory = comparison.theory[name].reshape(len(comparison.times), -1)
            seen = np.moveaxis(comparison.trained[name], comparison.trained.axes[name].index("time"), -1)
            seen = seen.reshape(-1, *((theory.shape[1],) if theory.shape[1] > 1 else ()), len(comparison.times))
            for curve in range(theory.shape[1]):
                colour = COLOURS[curve % len(COLOURS)]
                trained(panel, comparison.times, seen[:, curve] if theory.shape[1] > 1 else seen, colour=colour)
                predicted(panel, comparison.times, theory[:, curve], colour=colour)
            panel.set(xlabel=TIME, ylabel=name, title=f"{name}: {comparison.theory.source}")
            legend_of_kinds(panel)
    return figure
