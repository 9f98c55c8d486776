"""Panels with letters, laid out for the column of a page, and keys that stand beside the data and not on them.

A figure is `WIDTH` inches wide whatever its number of panels, so that its text has on the page the size that it has
here. Panels are arranged by a text of letters, one row after another: "aab;ccb" has three, of which b spans two rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .style import DASHES, INK, LEGEND_SIZE, LIGHT_GREY, THICK, THIN, TITLE_SIZE, TRAINED_GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 8.8  # inches: 845 pixels, the column of the page
KINDS = ("training", "theory")
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def panels(arrangement: str, *, row: float = 2.9, **options: Any) -> tuple[Figure, dict[str, Axes]]:
    """A figure, and its panels by their letters.

    Args:
        arrangement: letters of panels, "ab;cc"; a dot leaves a place empty.
        row: height of a row, in inches.
        options: of matplotlib's `subplot_mosaic`, such as `width_ratios`.
    """
    from .sheet import Sheet

    rows = arrangement.count(";") + 1
    sheet = Sheet(figsize=(WIDTH, row * rows), layout="constrained")
    found = sheet.subplot_mosaic(arrangement, **options)
    for letter in sorted(found):
        _letter(found[letter], letter)
    return sheet, found


def _letter(axes: Axes, letter: str) -> None:
    """The letter of a panel, left of its title."""
    place: dict[str, Any] = dict(xycoords="axes fraction", textcoords="offset points", annotation_clip=False)
    axes.annotate(letter, (0, 1), (-26, 6), weight="bold", size=TITLE_SIZE + 1.5, **place)


def key(
    where: Figure | Axes,
    colours: Mapping[str, str] | None = None,
    *,
    kinds: Sequence[str] = KINDS,
    marks: Iterable[Any] = (),
    title: str = "",
) -> None:
    """A key below a figure, or to the right of one panel: what each line style and each colour stands for.

    Args:
        colours: {label: colour}.
        kinds: the labels of thick pale lines (training) and of thin dashed ones (theory); () for neither.
        marks: further labelled artists, such as dots.
    """
    from matplotlib.axes import Axes as AnyAxes
    from matplotlib.lines import Line2D

    looks: list[dict[str, Any]] = [dict(color=TRAINED_GREY, lw=THICK), dict(color=INK, lw=THIN, ls=DASHES)]
    entries = [Line2D([], [], **look, label=label) for look, label in zip(looks, kinds, strict=False)]
    entries += [Line2D([], [], color=colour, lw=THICK - 1, label=label) for label, colour in (colours or {}).items()]
    entries += list(marks)
    if isinstance(where, AnyAxes):
        beside: dict[str, Any] = dict(loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0)
        where.legend(handles=entries, title=title or None, title_fontsize=LEGEND_SIZE, alignment="left", **beside)
    else:
        columns = min(len(entries), 6)
        where.legend(handles=entries, title=title or None, loc="outside lower center", ncols=columns)


def border(axes: Axes, value: float, label: str = "", *, across: bool = False) -> None:
    """A thin line at a value that means something, with its name beside it; `across` draws it at a height."""
    line, place = (axes.axhline, (1.0, value)) if across else (axes.axvline, (value, 1.0))
    line(value, color=LIGHT_GREY, lw=0.9, zorder=0)
    if label:
        coordinates = ("axes fraction", "data") if across else ("data", "axes fraction")
        side: dict[str, Any]
        shift, side = ((3, 0), dict(va="center", ha="left")) if across else ((0, 2), dict(va="bottom", ha="center"))
        axes.annotate(
            label, place, shift, xycoords=coordinates, textcoords="offset points", size=LEGEND_SIZE, color=INK, **side
        )


def beside(axes: Axes, x: float, y: float, label: str, *, colour: str = INK) -> None:
    """The name of a curve, right of its last point."""
    place: dict[str, Any] = dict(textcoords="offset points", va="center", ha="left", annotation_clip=False)
    axes.annotate(label, (x, y), (6, 0), size=LEGEND_SIZE, color=colour, **place)


def plain(value: float) -> str:
    """A number as a figure shows it: 10⁻⁸ if it is a small or large power of ten, and with a true minus sign."""
    short = f"{value:.0e}"
    if short.startswith("1e") and float(short) == value and not 0.01 <= value < 1e4:
        return "10" + str(int(short[2:])).translate(SUPERSCRIPTS)
    return f"{value:g}".replace("-", "−")


def mark(label: str, marker: str = "o", *, colour: str = INK, **look: Any) -> Any:
    """A labelled marker, for a key."""
    from matplotlib.lines import Line2D

    return Line2D([], [], ls="", marker=marker, color=colour, label=label, **look)
