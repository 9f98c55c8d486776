"""Networks in which domains can be learned through shared or through private layers, and their races on a common clock.

Races with several numbers of domains stand side by side in one network. Each has inputs and outputs of its own, so that
they do not interact and one compilation serves them all. Every domain has one mode, of correlation and variance 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int
from scipy import integrate

from ... import nets, tasks
from ...nets.gated.graph import Path
from ...tasks.base import Task
from . import race_clock

ROUTING = dict(strength=np.sqrt(185), start=0.08, rate=0.02, entries=28)  # first mode and settings of the slides
Setting = tuple[int, int]  # how many domains there are, and trained pairs of each
Times = Float[np.ndarray, " time"]


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


def pathways(
    norms: Float[np.ndarray, "seed time path"], paths: Sequence[Path], groups: Sequence[int] | Sequence[str]
) -> Float[np.ndarray, "seed time kind group"]:
    """Strengths of the shared and of a private pathway of each group, means over domains."""

    def mean(group: int | str, kind: str) -> np.ndarray:
        return norms[..., [k for k, path in enumerate(paths) if _is(path, group, kind)]].mean(axis=-1)

    means = np.array([[mean(group, kind) for group in groups] for kind in ("shared", "own")])
    return np.moveaxis(means, (0, 1), (2, 3))


def _is(path: Path, group: int | str, kind: str) -> bool:
    return any(node.startswith(f"{group}: {kind}") for node in path.nodes)


def _predicted(
    times: Times, strengths: Callable[[np.ndarray], np.ndarray], groups: int
) -> Float[np.ndarray, "time kind group"]:
    """Strengths at these times, if `strengths` gives them (…, kind, group) at clocks (…, group)."""
    return strengths(race_clock.at_times(lambda clock: strengths(clock).sum(axis=-2), np.ones(groups), times))


def _two(
    clock: Float[np.ndarray, "*times group"], start: float, sharing: Int[np.ndarray, " group"]
) -> Float[np.ndarray, "*times kind group"]:
    """The shared and a private pathway of two layers."""
    pathways = [race_clock.two_layers(clock, start, start, sharing=count) for count in (sharing, np.ones_like(sharing))]
    return np.stack(pathways, axis=-2)


def _three(
    clock: Float[np.ndarray, "*times group"], start: float, settings: Sequence[Setting]
) -> Float[np.ndarray, "*times kind group"]:
    """The shared and a private pathway of three layers."""
    count, per = np.array(settings).T
    return np.stack([race_clock.three_layers(clock, start, count, per), race_clock.three_layers(clock, start)], axis=-2)


def predicted_two(
    times: Times, start: float, sharing: Int[np.ndarray, " group"]
) -> Float[np.ndarray, "time kind group"]:
    """Strengths of the shared and a private pathway of two layers that start at `start`."""
    return _predicted(times, lambda clock: _two(clock, start, sharing), len(sharing))


def predicted_three(times: Times, start: float, settings: Sequence[Setting]) -> Float[np.ndarray, "time kind group"]:
    """Strengths of the shared and a private pathway of three layers that start at `start`."""
    return _predicted(times, lambda clock: _three(clock, start, settings), len(settings))


def predicted_random(
    times: Times, scale: float, hidden: int, sharing: Int[np.ndarray, " group"]
) -> Float[np.ndarray, "time kind group"]:
    """The growing part of random layers, which starts at Nσ²/2 in a private pathway and Nσ²/(2√M) in the shared one."""
    speed = np.stack([np.sqrt(sharing), np.ones_like(sharing)])
    return _predicted(
        times,
        lambda clock: hidden * scale**2 / 2 / speed * np.exp(2 * speed * clock[..., None, :]),
        len(sharing),
    )


def finals_two(starts: Sequence[float], sharing: Sequence[int]) -> Float[np.ndarray, "start kind group"]:
    """Strengths of the shared and a private pathway of two layers when all is learned."""

    def race(start: float, count: int) -> np.ndarray:
        def both(clock: float) -> np.ndarray:
            return _two(np.array([clock]), start, np.array([count]))[:, 0]

        return both(race_clock.finish(both, 1.0, -np.log(start)))

    return np.moveaxis(np.array([[race(start, count) for count in sharing] for start in starts]), 1, 2)


def limit(settings: Sequence[Setting]) -> Float[np.ndarray, " group"]:
    """The factor by which private pathways of three layers grow in the limit of small starts; infinite for a tie."""
    count, per = np.array(settings).T
    left = 1 - race_clock.last_moment(1.0, count, per)
    return np.where(left > 1e-9, np.maximum(left, 1e-9) ** -3, np.inf)


def limit_gap(start: float, settings: Sequence[Setting]) -> Float[np.ndarray, " group"]:
    """How far the growth of private pathways of three layers is from that limit, relative; 0 for a tie."""

    def gap(setting: Setting, limit: float) -> float:
        def both(clock: float) -> np.ndarray:
            return _three(np.array([clock]), start, [setting])[:, 0]

        late = float(race_clock.last_moment(start, *setting))
        return both(race_clock.finish(both, 1.0, late))[1] / start**3 / limit - 1

    limits = limit(settings)
    return np.array([gap(*pair) if np.isfinite(pair[1]) else 0.0 for pair in zip(settings, limits, strict=True)])


def routing_epochs(count: int, per: int) -> float:
    """Epochs of the slides until shared layers without rivals have learned half of the routing task's first mode."""
    strength, start, clock_per_epoch = ROUTING["strength"], ROUTING["start"], 2 * ROUTING["rate"] / ROUTING["entries"]

    def learned(clock: float) -> np.ndarray:
        return race_clock.three_layers(clock, start, count, per)

    half = race_clock.finish(learned, strength / 2, float(race_clock.last_moment(start, count, per)))
    return integrate.quad(lambda clock: 1 / (strength - learned(clock)), 0, half)[0] / clock_per_epoch
