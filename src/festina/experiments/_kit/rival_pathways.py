"""Pairs of pathways that can learn the same modes, side by side in one network, and their races on a common clock.

Every pair has outputs of its own, so that the races do not interact and one compilation serves them all.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from ... import nets, tasks
from ..._formulas.modes import Modes
from ...nets.gated.graph import Path
from ...tasks.base import Task
from ...theories.aligned_modes import mode
from . import race_clock

ITEMS = 8  # of the hierarchy; also the number of ratios
AMOUNTS = np.linspace(1.0, 1.35, ITEMS)  # what rivals learn in each mode; unequal, so that modes are told apart
FACTORS = ("fewer layers", "more paths", "larger start", "unbalanced")
LAYERS = 2.0  # ratio of the starts of pathways, and of layers to their mean in the unbalanced one


def levels(tree: Task) -> np.ndarray:
    """The level of the hierarchy that each of its modes belongs to."""
    return np.unique(-np.round(tree.modes().singular_values, 9), return_inverse=True)[1]


def task(tree: Task, senses: Float[np.ndarray, "sense mode"], ratios: Sequence[float]) -> Task:
    """Columns of x are two senses of a hierarchy, a strong and a weak copy of its items, and one that is always 1.

    `senses` are the strengths of the modes in either sense, `ratios` those of the weak copy.
    """
    right = tree.modes().right
    sensed = [np.sqrt(ITEMS) * (right * reach) @ right.T for reach in senses]
    copies = [np.sqrt(ITEMS) * np.eye(ITEMS), np.sqrt(ITEMS) * np.diag(ratios)]
    always = np.ones((ITEMS, 1))
    return tasks.from_arrays(
        np.concatenate([*sensed, *copies, always], axis=1),
        np.concatenate([tree.y, copies[0] * AMOUNTS, *[always] * len(FACTORS)], axis=1),
    )


def net(hidden: int) -> nets.Gated:
    """Pairs of pathways side by side, each pair with outputs of its own."""
    ins, tree, copy = [range(k * ITEMS, (k + 1) * ITEMS) for k in range(4)], 2 * ITEMS - 1, ITEMS
    nodes = {"eye": ITEMS, "ear": ITEMS, "strong": ITEMS, "weak": ITEMS, "always": 1, "tree": tree, "copy": copy}
    nodes |= dict.fromkeys(FACTORS, 1)
    edges = []
    for source, target in (("eye", "tree"), ("ear", "tree"), ("strong", "copy"), ("weak", "copy")):
        nodes[f"through {source}"] = hidden
        edges += [(source, f"through {source}"), (f"through {source}", target)]
    for name in FACTORS:
        for side in ("with", "without"):
            chain = ["always", f"{name}, {side}", name]
            if (name, side) == ("fewer layers", "without"):
                chain[2:2] = [f"{name}, {side} 2"]
            nodes |= dict.fromkeys(chain[1:-1], 1)
            edges += list(itertools.pairwise(chain))
            if (name, side) == ("more paths", "with"):
                edges.append(edges[-1])  # a second edge from the same hidden layer
    outs = np.split(np.arange(tree + copy + len(FACTORS)), [tree, *range(tree + copy, tree + copy + len(FACTORS))])
    return nets.Gated(
        nodes,
        edges,
        inputs=dict(zip(nodes, [*ins, [4 * ITEMS]], strict=False)),
        outputs=dict(zip(["tree", "copy", *FACTORS], outs, strict=True)),
    )


def strengths(net: nets.Gated, start: float) -> list[float]:
    """The starts of all edges: `start`, except in the two races that are about the start."""
    larger = {f"larger start, {side}": (factor, factor) for side, factor in (("with", np.sqrt(LAYERS)), ("without", 1))}
    unequal = larger | {"unbalanced, with": (LAYERS, 1 / LAYERS)}
    return [
        start * (unequal[target][0] if target in unequal else unequal[source][1] if source in unequal else 1.0)
        for source, target in net.edges
    ]


def read(
    maps: Float[np.ndarray, "seed time out in"], modes: Modes, senses: Float[np.ndarray, "sense mode"]
) -> dict[str, np.ndarray]:
    """What each pathway writes, (seed, time, path, mode): in the modes of the tree, and in the copies."""
    tree, copy = slice(0, 2 * ITEMS - 1), slice(2 * ITEMS - 1, 3 * ITEMS - 1)
    blocks = [maps[..., k * ITEMS : (k + 1) * ITEMS] for k in range(4)]
    of_modes = [np.einsum("om,stoi,im->stm", modes.left, block[:, :, tree], modes.right) for block in blocks[:2]]
    copies = [np.einsum("stii->sti", block[:, :, copy]) for block in blocks[2:]]
    return {"tree": np.stack(of_modes, axis=2) * senses, "rivals": np.stack(copies, axis=2)}


def factors(
    norms: Float[np.ndarray, "seed time path"], paths: Sequence[Path]
) -> Float[np.ndarray, "seed time factor side"]:
    """Strengths of the pathways with and without each advantage."""

    def total(node: str) -> np.ndarray | int:
        return sum(norms[..., k] for k, path in enumerate(paths) if node in path.nodes)

    pairs = [[total(f"{name}, {side}") for side in ("with", "without")] for name in FACTORS]
    return np.moveaxis(np.array(pairs), (0, 1), (2, 3))


def predicted(
    times: Float[np.ndarray, " time"],
    targets: Float[np.ndarray, " mode"],
    reach: Float[np.ndarray, "path mode"],
    start: float,
) -> Float[np.ndarray, "time path mode"]:
    """Strengths of two pathways of two layers, all of which start at `start`."""

    def strengths(clock: np.ndarray) -> np.ndarray:
        return race_clock.two_layers(clock[..., None, :], start, start, reach)

    return strengths(race_clock.at_times(lambda clock: np.sum(reach * strengths(clock), axis=0), targets, times))


def finals(starts: Sequence[float], ratios: Sequence[float]) -> Float[np.ndarray, "start path ratio"]:
    """Strengths of the strong and the weak pathway when all is learned."""

    def race(start: float, ratio: float, amount: float) -> np.ndarray:
        reach = np.array([1.0, ratio])

        def both(clock: float) -> np.ndarray:
            return race_clock.two_layers(clock, start, start, reach)

        return both(race_clock.finish(lambda clock: reach * both(clock), amount, 1 - np.log(start)))

    return np.moveaxis(
        np.array([[race(start, *pair) for pair in zip(ratios, AMOUNTS, strict=True)] for start in starts]), 1, 2
    )


def alone(times: Float[np.ndarray, " time"], ratios: Sequence[float], start: float) -> Float[np.ndarray, "time ratio"]:
    """The strength of the weak pathway without its rival."""
    reach = np.asarray(ratios)
    starts = np.full(len(reach), start**2)
    return np.asarray(mode(times, singular_value=reach * AMOUNTS, variance=reach**2, start=starts))


def factor_finals(start: float) -> Float[np.ndarray, "factor side"]:
    """Strengths with and without each advantage when all is learned."""

    def plain(clock: float) -> np.ndarray:
        return race_clock.two_layers(clock, start, start)

    races = {
        "fewer layers": (plain, lambda clock: race_clock.three_layers(clock, start)),
        "more paths": (lambda clock: 2 * race_clock.two_layers(clock, start, start, sharing=2), plain),
        "larger start": (lambda clock: LAYERS * plain(clock), plain),
        "unbalanced": (lambda clock: race_clock.two_layers(clock, LAYERS * start, start / LAYERS), plain),
    }

    def race(name: str) -> np.ndarray:
        def both(clock: float) -> np.ndarray:
            return np.array([float(pathway(clock)) for pathway in races[name]])

        return both(race_clock.finish(both, 1.0, -np.log(start)))

    return np.stack([race(name) for name in FACTORS])
