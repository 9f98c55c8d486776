"""A figure that notebooks show by themselves; imported with the first figure, since it loads matplotlib."""

from __future__ import annotations

from matplotlib.figure import Figure

from .style import picture_bytes


class Sheet(Figure):
    """A figure without pyplot, which therefore does not know of it."""

    def _repr_png_(self) -> bytes:
        return picture_bytes(self, "png")
