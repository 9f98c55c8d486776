"""From a ReLU network to its gated linear twin: record its gates, replay them, read them, find a few, compare.

The input is a Setup or the recording of a probe; the results are recordings, replays, gates that were found, and
comparisons. This room trains by `simulate`, asks no theory, and does not import the probe. Kinds of gates that a user
writes are in nets/gated/gates.py.
"""

from .clusters import Found
from .comparing import aligned, compare, geometry, learning_times, scaling
from .feasible import implementable, implementable_patterns, witness
from .finding import find
from .freezing import freeze
from .frozen_twin import Frozen
from .how_many import elbow
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
