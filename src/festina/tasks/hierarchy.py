"""A binary tree of items: broad distinctions are shared by many items, fine ones by few.

Items are the 2^levels leaves, shown one-hot. Each node of the tree is a feature of the items
below it, so y is a (2n − 1)-dimensional 0/1 vector. With two levels this is the canary, salmon,
oak and rose of [jarvis2025, figure 7], after [saxe2019, figure 1].

The eigenvalues of YᵀY are 2^(q−l+1) − 1, once for l = 0 and 2^(l−1) times for l = 1 … q
(q = levels), so Σʸˣ has singular values √eigenvalue / n. With values w_l for the features of level l they are
Σ_{k ≥ l} w_k² 2^(q−k), as often.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from .._foundation.checks import whole
from ._recipe import recipe
from .base import Task
from .own_data import from_arrays

__all__ = ["hierarchy"]

ITEMS = {
    2: ("canary", "salmon", "oak", "rose"),
    3: ("canary", "robin", "salmon", "sunfish", "oak", "pine", "rose", "daisy"),
}
FEATURES = {2: ("grow", "move", "roots", "fly", "swim", "bark", "petals")}


@recipe
def hierarchy(levels: int = 3) -> Task:
    """The tree with 2^levels items and 2^(levels + 1) − 1 features.

    Examples:
        >>> hierarchy(levels=2).features
        ('grow', 'move', 'roots', 'fly', 'swim', 'bark', 'petals')
    """
    levels = whole(levels, "levels", least=0)
    count = 2**levels
    items = ITEMS.get(levels, tuple(f"item {i}" for i in range(count)))
    nodes = tuple(f"level {level} node {i}" for level in range(levels + 1) for i in range(2**level))
    task = from_arrays(
        np.eye(count), hierarchy_block(count).T, items=items, inputs=items, features=FEATURES.get(levels, nodes)
    )
    return dataclasses.replace(task, stated_spectrum=np.sqrt(hierarchy_eigenvalues(np.ones(levels + 1))) / count)


def hierarchy_block(items: int) -> Float[np.ndarray, "feature item"]:
    """The 2·items − 1 features of the tree over `items`, a power of two: ones below each node, root first."""
    levels = range(items.bit_length())
    return np.concatenate([np.repeat(np.eye(2**level), items // 2**level, axis=1) for level in levels])


def hierarchy_eigenvalues(values: Float[np.ndarray, " level"]) -> Float[np.ndarray, " mode"]:
    """Eigenvalues of YᵀY, largest first, for a tree whose features of level l have the value `values[l]`."""
    levels = np.arange(len(values))
    shares = np.asarray(values) ** 2 * 2.0 ** levels[::-1]
    return np.repeat(np.cumsum(shares[::-1])[::-1], np.maximum(2**levels // 2, 1))
