"""From a ReLU network to its gated linear twin: record its gates, replay them, read them, find a few, compare."""

from .comparing import aligned, compare, geometry, learning_times, scaling
from .feasible import implementable, implementable_patterns, witness
from .finding import Found, find
from .freezing import Frozen, elbow, freeze
from .reading import purity
from .recording import patterns, record
from .replay import Replay, replay

__all__ = [
    "Found",
    "Frozen",
    "Replay",
    "aligned",
    "compare",
    "elbow",
    "find",
    "freeze",
    "geometry",
    "implementable",
    "implementable_patterns",
    "learning_times",
    "patterns",
    "purity",
    "record",
    "replay",
    "scaling",
    "witness",
]
