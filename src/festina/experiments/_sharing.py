"""Networks in which domains can be learned through shared or through private layers, and the clocks of their races.

Races of several numbers of domains stand side by side in one network: each has inputs and outputs of its own, so that
they do not touch, and one compilation serves them all. Every domain has one mode, of correlation and variance 1.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy import integrate

from .. import nets, tasks
from . import _clock

ROUTING = dict(strength=np.sqrt(185), start=0.08, rate=0.02, entries=28)  # first mode and settings of the slides


def names(settings) -> list[str]:
    return [f"{count} domains, {pairs} each" for count, pairs in settings]


def two_layers(sharing, hidden):
    """For each number of domains: every domain → its own layer or the shared one → one output."""
    nodes, edges, gates = {}, [], {}
    for count in sharing:
        for domain in range(count):
            source = f"{count}: in {domain + 1}"
            nodes[source], gates[source] = 1, {"domain": [len(gates)]}
    for count in sharing:
        nodes |= {f"{count}: shared": hidden, f"{count}: out": 1}
        for domain in range(count):
            own = f"{count}: own {domain + 1}"
            nodes[own] = hidden
            source = f"{count}: in {domain + 1}"
            edges += [(source, f"{count}: shared"), (source, own), (own, f"{count}: out")]
        edges.append((f"{count}: shared", f"{count}: out"))
    domains = sum(sharing)
    x = np.sqrt(domains) * np.eye(domains)
    group = np.repeat(np.arange(len(sharing)), sharing)
    y = np.sqrt(domains) * (group[:, None] == np.arange(len(sharing)))
    return nets.Gated(nodes, edges, node_gates=gates), tasks.from_arrays(x, y, labels={"domain": np.arange(domains)})


def three_layers(settings):
    """For each (M, K): domains → shared encoded → shared → domains, and a chain of its own for every trained pair."""
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


def pathways(norms, paths, groups) -> np.ndarray:
    """Strengths of the shared and of a private pathway of each group, (seed, time, path, group), means over domains."""

    def mean(group, kind):
        return norms[..., [k for k, path in enumerate(paths) if _is(path, group, kind)]].mean(axis=-1)

    found = np.array([[mean(group, kind) for group in groups] for kind in ("shared", "own")])
    return np.moveaxis(found, (0, 1), (2, 3))


def _is(path, group, kind) -> bool:
    return any(node.startswith(f"{group}: {kind}") for node in path.nodes)


def _predicted(times, strengths, groups) -> np.ndarray:
    """Strengths (time, path, group), if `strengths` gives them (…, path, group) at clocks (…, group)."""
    return strengths(_clock.at_times(lambda clock: strengths(clock).sum(axis=-2), np.ones(groups), times))


def _two(clock, start, sharing):
    """Shared and private pathway of two layers, (…, path, group), at clocks (…, group)."""
    pathways = [_clock.two_layers(clock, start, start, sharing=count) for count in (sharing, np.ones_like(sharing))]
    return np.stack(pathways, axis=-2)


def _three(clock, start, settings):
    """The same of three layers."""
    count, per = np.array(settings).T
    return np.stack([_clock.three_layers(clock, start, count, per), _clock.three_layers(clock, start)], axis=-2)


def predicted_two(times, start, sharing):
    return _predicted(times, lambda clock: _two(clock, start, sharing), len(sharing))


def predicted_three(times, start, settings):
    return _predicted(times, lambda clock: _three(clock, start, settings), len(settings))


def predicted_random(times, scale, hidden, sharing):
    """The growing part of random layers: on average Nσ²/2 in a private pathway, Nσ²/(2√M) in the shared one."""
    speed = np.stack([np.sqrt(sharing), np.ones_like(sharing)])
    return _predicted(
        times,
        lambda clock: hidden * scale**2 / 2 / speed * np.exp(2 * speed * clock[..., None, :]),
        len(sharing),
    )


def finals_two(starts, sharing) -> np.ndarray:
    """Strengths (start, path, sharing) when all is learned."""

    def race(start, count):
        both = lambda clock: _two(np.array([clock]), start, np.array([count]))[:, 0]  # noqa: E731
        return both(_clock.finish(both, 1.0, -np.log(start)))

    return np.moveaxis(np.array([[race(start, count) for count in sharing] for start in starts]), 1, 2)


def limit(settings) -> np.ndarray:
    """What private pathways of three layers grow by in the limit of small starts; infinite for a tie."""
    count, per = np.array(settings).T
    left = 1 - _clock.last_moment(1.0, count, per)
    return np.where(left > 1e-9, np.maximum(left, 1e-9) ** -3, np.inf)


def limit_gap(start, settings) -> np.ndarray:
    """How far private pathways of three layers are from that limit, relative; 0 for a tie."""

    def gap(setting, limit):
        both = lambda clock: _three(np.array([clock]), start, [setting])[:, 0]  # noqa: E731
        late = float(_clock.last_moment(start, *setting))
        return both(_clock.finish(both, 1.0, late))[1] / start**3 / limit - 1

    limits = limit(settings)
    return np.array([gap(*pair) if np.isfinite(pair[1]) else 0.0 for pair in zip(settings, limits, strict=True)])


def routing_epochs(count, per) -> float:
    """Epochs of the slides until the shared layers, without rivals, have half of the routing task's first mode."""
    strength, start, clock_per_epoch = ROUTING["strength"], ROUTING["start"], 2 * ROUTING["rate"] / ROUTING["entries"]

    def learned(clock):
        return _clock.three_layers(clock, start, count, per)

    half = _clock.finish(learned, strength / 2, float(_clock.last_moment(start, count, per)))
    return integrate.quad(lambda clock: 1 / (strength - learned(clock)), 0, half)[0] / clock_per_epoch
