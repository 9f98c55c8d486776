"""Layers of gated nodes one behind the other: which of the edges between them some sample opens."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

INPUTS, OUTPUTS = "inputs", "outputs"


def open_edges(levels: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The edges from the inputs through levels {node: its gates} to the outputs that are ever open, layer by layer.

    A sample opens a path only if every layer has a node that is on for it, and then all such nodes lie on one: nodes
    without an open edge are those that no path needs.
    """
    on = [{name: np.asarray(gates) != 0 for name, gates in level.items()} for level in levels]
    let_through = functools.reduce(np.logical_and, [np.any(list(level.values()), axis=0) for level in on])
    ladder = [{INPUTS: True}, *on, {OUTPUTS: True}]
    return [
        (one, other)
        for before, after in itertools.pairwise(ladder)
        for one, other in itertools.product(before, after)
        if np.any(before[one] & after[other] & let_through)
    ]
