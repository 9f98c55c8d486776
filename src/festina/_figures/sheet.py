"""A figure class that notebooks display automatically; imported with the first figure, since it loads matplotlib."""

from __future__ import annotations

from matplotlib.figure import Figure

from .style import picture_bytes


class Sheet(Figure):
    """A matplotlib figure that is not registered with pyplot, and that notebooks display all the same."""

    def _repr_png_(self) -> bytes:
        return picture_bytes(self, "png")
