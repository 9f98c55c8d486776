"""Gated deep linear networks on any acyclic graph, and the neural race of their pathways.

`net` defines the class `Gated`, from the parts in `graph`, `gates` and `builders`; `lifted` turns it, on one task, into
a linear map of gated inputs, which is what is trained; `paths`, `path_bases`, `race_bases`, `race` and `race_layers`
have the theory of its paths; `picture` draws it. A new kind of gate is a class in `gates`.
"""

from .net import Gated

__all__ = ["Gated"]
