"""Pairs of pathways that can learn the same modes, side by side in one network, and what is read off them.

Every pair has outputs of its own, so that the races do not interact and one compilation serves them all.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ... import nets, tasks
from ..._formulas.modes import Modes
from ..._formulas.race_clock import ADVANTAGE
from ...tasks.base import Task
from .labelled import table

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

ITEMS = 8  # of the hierarchy; also the number of ratios
AMOUNTS = np.linspace(1.0, 1.35, ITEMS)  # what rivals learn in each mode; unequal, so that modes are told apart
FACTORS = ("fewer layers", "more paths", "larger start", "unbalanced")


def levels(tree: Task) -> np.ndarray:
    """The level of the hierarchy that each of its modes belongs to."""
    return np.unique(-np.round(tree.modes().singular_values, 9), return_inverse=True)[1]


def senses(levels: np.ndarray, dims: Sequence[float]) -> Float[np.ndarray, "sense mode"]:
    """The strength of every mode in two senses: each shows half of the levels in full, and the others dimly."""
    other, broad = np.asarray(dims)[levels], levels < 2
    return np.stack([np.where(broad, 1.0, other), np.where(broad, other, 1.0)])


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
    larger = {
        f"larger start, {side}": (factor, factor) for side, factor in (("with", np.sqrt(ADVANTAGE)), ("without", 1))
    }
    unequal = larger | {"unbalanced, with": (ADVANTAGE, 1 / ADVANTAGE)}
    return [
        start * (unequal[target][0] if target in unequal else unequal[source][1] if source in unequal else 1.0)
        for source, target in net.edges
    ]


def measured(
    run: Mapping[str, np.ndarray], net: nets.Gated, modes: Modes, senses: Float[np.ndarray, "sense mode"]
) -> Dataset:
    """What each pathway writes: in the modes of the tree, in the copies, and with and without each advantage.

    `run` holds the map and the norms of paths of all seeds over time.
    """
    import xarray

    tree, copy = slice(0, 2 * ITEMS - 1), slice(2 * ITEMS - 1, 3 * ITEMS - 1)
    blocks = [run["map"][..., k * ITEMS : (k + 1) * ITEMS] for k in range(4)]
    of_modes = [np.einsum("om,stoi,im->stm", modes.left, block[:, :, tree], modes.right) for block in blocks[:2]]
    copies = [np.einsum("stii->sti", block[:, :, copy]) for block in blocks[2:]]
    axes, data = ("seed", "time", "path"), {}
    data["tree"] = table(np.stack(of_modes, axis=2) * senses, *axes, "mode")
    data["rivals"] = table(np.stack(copies, axis=2), *axes, "ratio")
    if "path_norm" in run:

        def total(node: str) -> np.ndarray:
            return run["path_norm"][..., [k for k, path in enumerate(net.paths()) if node in path.nodes]].sum(axis=-1)

        pairs = [[total(f"{name}, {side}") for side in ("with", "without")] for name in FACTORS]
        data["factor"] = table(np.array(pairs), "factor", "path", "seed", "time").isel(time=-1)
    return xarray.Dataset(data)


def by_level(array: DataArray, data: Dataset, how: str = "sum") -> DataArray:
    """Modes of each level together (`dim`), since random weights mix them; the path of the better sense comes first."""
    import xarray

    levels = getattr(array.groupby(data.level), how)().rename(level="dim").assign_coords(dim=data.dim.values)
    if "path" not in levels.dims:
        return levels
    swapped: list[DataArray] = [levels.isel(dim=slice(0, 2)), levels.isel(dim=slice(2, 4), path=[1, 0])]
    return xarray.concat(swapped, "dim")


def loser_over_winner(strengths: DataArray) -> DataArray:
    return strengths.isel(path=1) / strengths.isel(path=0)


def last_slope(values: DataArray, along: str, power: int) -> DataArray:
    """The exponent of values in so high a power of an axis, between its last two entries."""
    last, before = (np.log(values.isel({along: k})) for k in (-1, -2))
    return (last - before) / (np.log(values[along].values[-1] / values[along].values[-2]) * power)
