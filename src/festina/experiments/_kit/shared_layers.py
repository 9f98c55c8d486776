"""Networks in which domains can be learned through shared or through private layers.

Races with several numbers of domains stand side by side in one network. Each has inputs and outputs of its own, so that
they do not interact and one compilation serves them all. Every domain has one mode, of correlation and variance 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ... import Trajectory, nets, tasks
from ...tasks.base import Task
from .labelled import table

if TYPE_CHECKING:
    from xarray import DataArray

Setting = tuple[int, int]  # how many domains there are, and trained pairs of each


def names(settings: Sequence[Setting]) -> list[str]:
    """What the groups of nodes of each setting are called."""
    return [f"{count} domains, {pairs} each" for count, pairs in settings]


def two_layers(sharing: Sequence[int], hidden: int) -> tuple[nets.Gated, Task]:
    """For each number of domains: every domain → a private layer or the shared one → one output."""
    nodes, edges, gates = {}, [], {}
    for count in sharing:
        for domain in range(count):
            source = f"{count}: in {domain + 1}"
            nodes[source], gates[source] = 1, {"domain": [len(gates)]}
    for count in sharing:
        nodes |= {f"{count}: shared": hidden, f"{count}: out": 1}
        for domain in range(count):
            private = f"{count}: own {domain + 1}"
            nodes[private] = hidden
            source = f"{count}: in {domain + 1}"
            edges += [(source, f"{count}: shared"), (source, private), (private, f"{count}: out")]
        edges.append((f"{count}: shared", f"{count}: out"))
    domains = sum(sharing)
    x = np.sqrt(domains) * np.eye(domains)
    group = np.repeat(np.arange(len(sharing)), sharing)
    y = np.sqrt(domains) * (group[:, None] == np.arange(len(sharing)))
    return nets.Gated(nodes, edges, node_gates=gates), tasks.from_arrays(x, y, labels={"domain": np.arange(domains)})


def three_layers(settings: Sequence[Setting]) -> tuple[nets.Gated, Task]:
    """For each setting: domains → shared layers → domains, and a private chain for every trained pair."""
    nodes, edges, gates, ends, pairs = {}, [], {}, {"in": 0, "out": 0}, []
    for name, (count, per) in zip(names(settings), settings, strict=True):
        sides = {side: [f"{name}: {side} {k + 1}" for k in range(count)] for side in ends}
        for side, label in (("in", "source"), ("out", "target")):
            for k, node in enumerate(sides[side]):
                nodes[node], gates[node] = 1, {label: [ends[side] + k]}
        nodes |= {f"{name}: encoded": 1, f"{name}: shared": 1}
        edges += [(node, f"{name}: encoded") for node in sides["in"]]
        edges += [(f"{name}: encoded", f"{name}: shared")]
        edges += [(f"{name}: shared", node) for node in sides["out"]]
        for a in range(count):
            for b in [(a + step) % count for step in range(per)]:
                pairs.append((ends["in"] + a, ends["out"] + b))
                chain = [sides["in"][a], *[f"{name}: own {a + 1} to {b + 1}, {k}" for k in (1, 2)], sides["out"][b]]
                nodes |= dict.fromkeys(chain[1:-1], 1)
                gates[chain[1]] = {"source": [pairs[-1][0]], "target": [pairs[-1][1]]}
                edges += list(itertools.pairwise(chain))
        ends = {side: ends[side] + count for side in ends}
    source, target = np.array(pairs).T
    size = np.sqrt(len(pairs))
    x, y = (size * (ends_of[:, None] == np.arange(ends["in"])) for ends_of in (source, target))
    return nets.Gated(nodes, edges, node_gates=gates), tasks.from_arrays(
        x, y, labels={"source": source, "target": target}
    )


def pathways(run: Trajectory, groups: Sequence[int] | Sequence[str]) -> DataArray:
    """Strengths of the shared (0) and of a private pathway (1) of each group, means over domains."""
    net, norms = run.setup.net, run["path_norm"]
    nodes = [path.nodes for path in net.paths()]  # pyright: ignore[reportAttributeAccessIssue]

    def mean(group: int | str, kind: str) -> np.ndarray:
        ours = [any(node.startswith(f"{group}: {kind}") for node in path) for path in nodes]
        return norms[..., np.flatnonzero(ours)].mean(axis=-1)

    means = np.array([[mean(group, kind) for group in groups] for kind in ("shared", "own")])
    return table(means, "path", "group", "seed", "time").assign_coords(time=run.times, group=list(groups))
