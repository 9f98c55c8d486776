"""Consecutive layers of gated nodes: which edges between them are open for at least one sample."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

INPUTS, OUTPUTS = "inputs", "outputs"


def open_edges(levels: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The edges, from the inputs through levels {node: its gates} to the outputs, that some sample opens.

    A sample opens a path only if every level has a node that is on for it; then each of these nodes lies on an open
    path. A node without an open edge therefore lies on no path that any sample opens.
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
