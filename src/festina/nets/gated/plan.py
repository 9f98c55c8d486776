"""How the map of a gated network on one task is put together from its layers.

Paths that leave the same input node, open for the same samples and have the same rank are one *way*. They are merged
at every node that they reach, so that there are as many ways as the data tell apart, and not as many as paths.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ..._foundation.errors import BadInput
from ...tasks.base import Task
from .._memory import once_per_task
from ..base import Net
from .graph import Graph

if TYPE_CHECKING:
    from .net import Gated

PerSample = Float[np.ndarray, " sample"]


@dataclasses.dataclass(frozen=True)
class Way:
    """All paths from an input to a node that open for the same samples and have the same rank."""

    source: str
    opening: int  # number of the product of gates
    rank: int


Steps = tuple[tuple[int, Way], ...]  # (edge, way that it takes up) of all that arrives at a node by one way


@dataclasses.dataclass(frozen=True)
class Plan:
    """How the map of gated inputs is put together."""

    graph: Graph
    reads: tuple[tuple[str, tuple[int, ...]], ...]
    writes: tuple[tuple[str, tuple[int, ...]], ...]
    d_out: int
    ways: tuple[tuple[str, tuple[tuple[Way, Steps], ...]], ...]  # of every node, in the order of computation
    blocks: tuple[tuple[str, int], ...]  # (input node, opening) of every block of gated inputs
    ranks: tuple[int, ...]  # those that occur
    gate_columns: tuple[tuple[str | int, int], ...]  # node name or edge number: its column behind those of x


@dataclasses.dataclass(frozen=True)
class Planned:
    """A plan with the gate values of one task."""

    plan: Plan
    openings: tuple[PerSample, ...]  # the products of gates that open its ways, by number
    gates: tuple[PerSample, ...]  # in the order of `Plan.gate_columns`


def plan_of(net: Net) -> Plan:
    """The plan of a lifted net with paths, which has one."""
    assert net.plan is not None
    return net.plan


def gate_values(net: Gated, task: Task) -> dict[str | int, PerSample]:
    """The gates that are not 1 for all samples, by the name of their node or the number of their edge."""
    shape = (task.samples or 1,)
    values = {
        place: np.broadcast_to(gate.values(task, net.where(place)), shape) for place, gate in net.gates_at.items()
    }
    return {place: gate for place, gate in values.items() if np.any(gate != 1)}


class _Openings:
    """Different products of gates, numbered as they first occur."""

    def __init__(self):
        self.arrays: list[PerSample] = []
        self.numbers: dict[bytes, int] = {}

    def number(self, opening: PerSample) -> int:
        key = np.ascontiguousarray(opening).tobytes()
        if key not in self.numbers:
            self.numbers[key] = len(self.arrays)
            self.arrays.append(opening)
        return self.numbers[key]


def planned(net: Gated, task: Task) -> Planned:
    """The plan of a net on a task; refused if every path is off."""
    reads, writes = net.columns(task.d_in, task.d_out)
    graph, gates = net.graph.sized(task.d_in, task.d_out), gate_values(net, task)
    ones, openings = np.ones(task.samples or 1), _Openings()
    ways: dict[str, dict[Way, list[tuple[int, Way]]]] = {}
    for node in graph.order:
        at_node, arriving = gates.get(node, ones), {}
        if node in reads and np.any(at_node):
            arriving[Way(node, openings.number(at_node + 0.0), 0)] = []
        for k in graph.into(node):
            through = at_node * gates.get(k, ones)
            for before in ways[graph.edges[k][0]]:
                opening = openings.arrays[before.opening] * through + 0.0  # −0 and 0 are one gate
                if np.any(opening):
                    rank = 0 if net.ranks is None else max(before.rank, net.ranks[k])
                    way = Way(before.source, openings.number(opening), rank)
                    arriving.setdefault(way, []).append((k, before))
        ways[node] = arriving
    ends = [way for node in writes for way in ways[node]]
    if not ends:
        raise BadInput(
            f"every path is off for all samples, {graph.path_through(0)} among them",
            "a sample that opens some path, at every time",
            "check the gates against the task's labels, and times at which they begin",
        )
    plan = Plan(
        graph,
        tuple(reads.items()),
        tuple(writes.items()),
        task.d_out,
        tuple((node, tuple((way, tuple(steps)) for way, steps in ways[node].items())) for node in graph.order),
        tuple(dict.fromkeys((way.source, way.opening) for way in ends)),
        tuple(sorted({way.rank for way in ends})),
        tuple((place, column) for column, place in enumerate(gates)),
    )
    return Planned(plan, tuple(openings.arrays), tuple(gates.values()))


@once_per_task
def opened_edges(net: Gated, task: Task) -> set[int]:
    """The edges through which some sample of the task opens a path."""
    plan = planned(net, task).plan
    outputs = dict(plan.writes)
    opened: set[int] = set()
    needed = {(node, way) for node, ways in plan.ways if node in outputs for way, _ in ways}
    for node, ways in reversed(plan.ways):  # backwards: what needs a way is met before the way itself
        for way, steps in ways:
            if (node, way) in needed:
                opened |= {k for k, _ in steps}
                needed |= {(plan.graph.edges[k][0], earlier) for k, earlier in steps}
    return opened
