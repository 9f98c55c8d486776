"""The shared style of all figures, and the plots that overlay theory on training curves.

A plot belongs here if it can draw any trajectory, comparison or fit; the figure of a single finding belongs to its
experiment. Nothing is computed here: data come in as arrays, or as objects of which only a few attributes are read, and
a Figure leaves.
"""

from . import papers as figures  # the public name festina.figures

__all__ = ["figures"]
