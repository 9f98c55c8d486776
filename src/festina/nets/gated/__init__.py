"""Gated deep linear networks on any acyclic graph, and the race of their pathways.

`net` is the noun `Gated`; `graph`, `gates` and `builders` are what it is made of; `lifted` turns it, on one task, into
a linear map of gated inputs, which is what is trained; `paths`, `race`, `race_bases` and `race_layers` are its theory
of paths; `picture` draws it.
"""

from .net import Gated

__all__ = ["Gated"]
