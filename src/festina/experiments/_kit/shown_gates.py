"""Which gates the units of a network have in training, and how much of the weight is in each kind of gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import Trajectory
from ...gates.feasible import implementable
from ...gates.recording import patterns
from .possible_gates import (
    KINDS,
    SIZES,
    crossed,
    gates_of,
    kinds_of,
    numbers_of,
)

STRONG = 0.01  # of the largest unit: units below this have hardly grown


def read_units(trained: Trajectory, size: Sequence[int]) -> dict[str, Any]:
    """What the units of a network are on for, over all records and in the last one."""
    on, weight, task = patterns(trained), trained["unit_size"], trained.setup.single_task
    kinds = kinds_of(on, *size)
    numbers = np.unique(numbers_of(on))
    strong = numbers_of(on[:, -1][weight[:, -1] >= STRONG * weight[:, -1].max(axis=-1, keepdims=True)])
    every = gates_of(numbers, on.shape[-1])
    # Where there are thousands of gates, linear programs test only those of units that have grown by the last record.
    tested = every if len(every) <= 2 ** (SIZES[1][0] * SIZES[1][1]) else gates_of(np.unique(strong), on.shape[-1])
    refuted = int(crossed(every, *size).sum()) + sum(not implementable(gate, task) for gate in tested)
    share = weight / weight.sum(axis=-1, keepdims=True)
    shares = np.stack([np.mean(np.sum(share * (kinds == k), axis=-1), axis=0) for k in range(len(KINDS))], axis=-1)
    reading = {
        "share": shares[-1],
        "shares": shares,
        "refuted": refuted,
        "shown": on[..., 0].size,
        "distinct": len(numbers),
        "strong": len(np.unique(strong)),
        "loss": float(np.mean(trained["loss"][:, -1] / trained["loss"][:, 0])),
    }
    if on.shape[-1] <= SIZES[1][0] * SIZES[1][1]:
        of_gate = np.bincount(numbers_of(on[:, -1]).ravel(), share[:, -1].ravel(), minlength=2 ** on.shape[-1])
        reading["weight"] = of_gate / len(on)
    return reading
