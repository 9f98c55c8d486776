"""The gated networks that race: those that a user gives, or one for every size of subsets of contexts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._foundation.errors import BadInput, shown
from ...nets import Gated
from ...nets.base import Net
from ...nets.gated.builders import PARTS
from ...tasks.base import Task


def as_nets(task: Task, candidates: object, hidden: int) -> dict[str, Net]:
    """The candidates by name; pathways that state no width share out `hidden` units."""
    if task.samples is None:
        raise BadInput("a race on a task without samples", "samples, which gates select", "use tasks.from_arrays")
    if candidates is None:
        return _context_subsets(task, hidden)
    if not isinstance(candidates, Mapping) or not candidates:
        raise BadInput(
            f"candidates = {shown(candidates)}", "{name: Gated or list of pathways}", 'give {"xor": [{"item": [0]}, …]}'
        )
    nets = {
        str(name): given
        if isinstance(given, Net) and given.has_paths
        else Gated.pathways(_with_widths(given, task, hidden))
        for name, given in candidates.items()
    }
    for name, net in nets.items():
        if net.switch_times:
            raise BadInput(
                f"candidate {name!r} with gates that change at {net.switch_times}",
                "gates that stay: all candidates run from the start",
                "leave begins and schedules out",
            )
    return nets


def _with_widths(pathways: object, task: Task, hidden: int) -> list[dict[str, Any]]:
    given = list(pathways) if isinstance(pathways, Sequence) and not isinstance(pathways, str) else []
    if not given:
        raise BadInput(
            f"a candidate given as {shown(pathways)}", "a Gated net or a list of pathways", "see Gated.pathways"
        )
    stated = [pathway if _is_pathway(pathway, task) else {"on": pathway} for pathway in given]
    return [{"width": max(1, hidden // len(stated)), **pathway} for pathway in stated]


def _is_pathway(given: object, task: Task) -> bool:
    """Whether a dict describes a pathway, and is not a rule on labels that are named like the parts of a pathway."""
    if not isinstance(given, Mapping) or not set(given) <= set(PARTS):
        return False
    return "on" in given or not set(given) <= set(task.labels or ())


def _context_subsets(task: Task, hidden: int) -> dict[str, Net]:
    """For each m, a gated network with an always-open pathway and one pathway for every subset of m contexts."""
    if not task.labels or "context" not in task.labels:
        raise BadInput(
            f"no candidates, and a task with the labels {sorted(task.labels or ())}",
            "candidates, or the label 'context' to take subsets of",
            "give candidates={name: [pathways]}, or labels={'context': […]} to tasks.from_arrays",
        )
    assert task.x is not None
    contexts = np.unique(task.labels["context"])
    # Inputs that only tell the context belong to the common pathway: with them a subset could see which it is in.
    within = [task.x[task.labels["context"] == context] for context in contexts]
    tells_context = np.all([np.ptp(rows, axis=0) == 0 for rows in within], axis=0)
    sees = tuple(int(column) for column in np.flatnonzero(~tells_context))
    nets = {}
    for size in range(1, len(contexts)):
        subsets = [tuple(float(c) for c in subset) for subset in itertools.combinations(contexts, size)]
        width = max(1, hidden // (len(subsets) + 1))
        others = [
            {"on": {"context": s}, "sees": sees, "width": width, "name": f"context {'+'.join(f'{c:g}' for c in s)}"}
            for s in subsets
        ]
        nets[f"{size} of {len(contexts)} contexts"] = Gated.pathways([{"name": "common", "width": width}, *others])
    return nets
