"""Items whose features depend on the context in which they are shown, beside features that do not.

A sample is one of n items in one of C contexts: x is the one-hot item beside κ times the one-hot context. The features
come in blocks of 2n − 1. One block is the same tree in every context; each context has a block of its own, which is 0
in the others [jarvis2025, sections 4 and 5]. The block of a context is one of

- "hierarchy": one feature for each node of a binary tree, 1 for the items below it;
- "ring": one feature that all have, then bumps that move round the ring of items by one item per feature, with their
  flanks cut to two decimals (eight items: 0, 0.33, 0.66, 1, 1, 0.66, 0.33, 0), as in the source;
- "cross": the tree, but the items at even and those at odd positions of each half take the place of its two quarters
  (eight items: 0 and 2, 1 and 3, 4 and 6, 5 and 7; with four items this changes nothing).

No linear map solves it, since a feature of one context is a product of context and item. Where all blocks are trees,
with N = nC samples, Σʸˣ has the singular values √((2n − 1)(C + 1)(C + nκ²))/N once, κ√(n(2n − 1))/N for C − 1 modes
of contexts, √(λC(C + 1))/N for n − 1 modes of items, where λ are the eigenvalues of the tree below the largest (see
`hierarchy`), and 0 once. Their input variances are (C + nκ²)/N, nκ²/N, C/N and 0: large values do not always go
with large variances.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from .._foundation import checks
from .._foundation.checks import positive, whole
from .._foundation.errors import BadInput, shown
from ._recipe import recipe
from .base import Task
from .hierarchy import hierarchy_block, hierarchy_eigenvalues
from .own_data import from_arrays

__all__ = ["contextual"]

DIFFERENT = ("hierarchy", "ring", "cross")


@recipe
def contextual(
    items: int = 8,
    contexts: int = 3,
    blocks: str | Sequence[str] = DIFFERENT,
    context_scale: float = 1.0,
) -> Task:
    """Each of `items` in each of `contexts`: some features are the same in all contexts, others belong to one.

    `blocks` are the features of each single context, "hierarchy", "ring" or "cross": one name for all, or one for each;
    the three of the default are repeated in turn. `context_scale` is the size of the inputs that tell the context.
    Samples are sorted by context, then by item, the two labels ("context", "item"), which count from 0.
    """
    items, contexts = whole(items, "items", least=2), whole(contexts, "contexts", least=2)
    scale = positive(context_scale, "context_scale", zero=True)
    if items & (items - 1):
        raise BadInput(f"items = {items}", "a power of two, for a binary tree", f"use {2 ** (items.bit_length() - 1)}")
    names = _one_per_context(blocks, contexts)
    for name in names:
        if items < 4 and name != "hierarchy":
            raise BadInput(
                f"items = {items} with the block {name!r}", f"at least 4 items for {name!r}", "use blocks='hierarchy'"
            )
    context, item = np.repeat(np.arange(contexts), items), np.tile(np.arange(items), contexts)
    x = np.concatenate([np.eye(items)[item], scale * np.eye(contexts)[context]], axis=1)
    shared = np.tile(hierarchy_block(items), contexts).T
    of_context = [np.kron(np.eye(contexts)[c], BLOCKS[name](items)).T for c, name in enumerate(names)]
    where = ["common", *(f"context {c + 1}" for c in range(contexts))]
    task = from_arrays(
        x,
        np.concatenate([shared, *of_context], axis=1),
        items=[f"item {i} in context {c + 1}" for c, i in zip(context, item, strict=True)],
        inputs=[*(f"item {i}" for i in range(items)), *where[1:]],
        features=[f"{block} feature {row}" for block in where for row in range(2 * items - 1)],
        labels={"context": context, "item": item},
    )
    if set(names) != {"hierarchy"}:
        return task
    return dataclasses.replace(task, stated_spectrum=_spectrum_of_trees(items, contexts, scale))


def ring_block(items: int) -> Float[np.ndarray, "feature item"]:
    """A feature that all items have, then 2·items − 2 copies of a bump, each one item further."""
    steps = np.minimum(np.arange(items), np.arange(items)[::-1])
    bump = 100 * steps // (items // 2 - 1) / 100  # whole numbers until the end: decimals are cut, never rounded
    return np.stack([np.ones(items), *(np.roll(bump, -shift) for shift in range(2 * items - 2))])


def cross_block(items: int) -> Float[np.ndarray, "feature item"]:
    """The tree, with even and odd positions of each half in place of its two quarters."""
    block = hierarchy_block(items)
    block[3:7] = np.kron(np.eye(2), np.tile(np.eye(2), items // 4))
    return block


BLOCKS = {"hierarchy": hierarchy_block, "ring": ring_block, "cross": cross_block}


def _one_per_context(blocks: str | Sequence[str], contexts: int) -> tuple[str, ...]:
    do = f"give blocks='hierarchy', or {contexts} names"
    names = (blocks,) if isinstance(blocks, str) else checks.listed(blocks, "blocks", "names of blocks", do)
    for name in names:
        checks.choice(name, "block", BLOCKS)
    if len(names) == 1 or names == DIFFERENT:
        return tuple(names[c % len(names)] for c in range(contexts))
    if len(names) != contexts:
        raise BadInput(
            f"blocks = {shown(blocks)} for {contexts} contexts",
            "one name for all contexts, or one for each",
            do,
        )
    return names


def _spectrum_of_trees(items: int, contexts: int, scale: float) -> Float[np.ndarray, " mode"]:
    features, weight = 2 * items - 1, contexts + items * scale**2
    squares = np.concatenate(
        [
            [features * (contexts + 1) * weight],
            np.full(contexts - 1, items * features * scale**2),
            contexts * (contexts + 1) * hierarchy_eigenvalues(np.ones(items.bit_length()))[1:],
            [0.0],
        ]
    )
    return np.sort(np.sqrt(squares))[::-1] / (items * contexts)
