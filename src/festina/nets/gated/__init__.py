"""Gated deep linear networks on any acyclic graph, and the neural race of their pathways.

`net` defines the class `Gated`, from the parts in `graph`, `gates` and `builders`; `lifted` turns it, on one task, into
a linear map of gated inputs, which is what is trained; `paths`, `race`, `race_bases` and `race_layers` have the theory
of its paths; `picture` draws it.
"""

from .net import Gated

__all__ = ["Gated"]
