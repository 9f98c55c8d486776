"""Figures for papers: the width of a column, vector formats, and text that is not shrunk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .._foundation import checks
from .._foundation.errors import BadInput
from .style import STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["save"]

COLUMNS = {"single": 3.5, "double": 7.2}  # inches
FORMATS = (".pdf", ".svg", ".png", ".eps")


def save(figure: Figure, path: str | Path, column: Literal["single", "double"] = "single") -> Path:
    """Write a figure as wide as one column of a journal (3.5 inches) or two (7.2), with text of 7 points.

    The end of the path says the format: .pdf, .svg, .png or .eps. The figure itself is left as it was.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure as AnyFigure
    from matplotlib.text import Text

    checks.instance(figure, "figure", AnyFigure, "give what .plot() returns")
    path, width = checks.path(path, "path"), COLUMNS[checks.choice(column, "column", COLUMNS)]
    if path.suffix.lower() not in FORMATS:
        raise BadInput(f"path = {str(path)!r}", f"a file that ends in {', '.join(FORMATS)}", 'give path="figure.pdf"')
    was, texts = (figure.get_figwidth(), figure.get_figheight()), figure.findobj(Text)
    sizes = [text.get_fontsize() for text in texts]
    try:
        figure.set_size_inches(width, was[1] * width / was[0])
        for text in texts:
            text.set_fontsize(7)
        with rc_context({**STYLE, "savefig.dpi": 300, "pdf.fonttype": 42}):  # pyright: ignore[reportArgumentType]
            figure.savefig(path)
    finally:
        figure.set_size_inches(*was)
        for text, size in zip(texts, sizes, strict=True):
            text.set_fontsize(size)
    return path
