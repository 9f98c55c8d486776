"""Gates of units that see an item and its context: which are possible, how many, and of which kind."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from math import factorial
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int

from ... import Task, tasks
from ...gates.feasible import implementable_patterns

if TYPE_CHECKING:
    from xarray import Dataset

SIZES = ((2, 2), (3, 2), (3, 3), (4, 3))  # items × contexts that are enumerated
SOURCE = (8, 3)
KINDS = ("by context", "by item", "single point", "other", "impossible")


def flat_tree(items: int, contexts: int) -> Task:
    """`tasks.contextual` for any number of items: all items have a feature in common, and each has one of its own."""
    context, item = np.repeat(np.arange(contexts), items), np.tile(np.arange(items), contexts)
    block = np.concatenate([np.ones((1, items)), np.eye(items)]).T
    in_context = [np.kron(row[:, None], block) for row in np.eye(contexts)]
    return tasks.from_arrays(
        np.concatenate([np.eye(items)[item], np.eye(contexts)[context]], axis=1),
        np.concatenate([block[item], *in_context], axis=1),
        labels={"context": context, "item": item},
    )


def poly_bernoulli(items: int, contexts: int) -> int:
    """The poly-Bernoulli number Σ_m (m!)² S(n + 1, m + 1) S(C + 1, m + 1), with S the Stirling numbers."""
    terms = range(min(items, contexts) + 1)
    return sum(factorial(m) ** 2 * stirling(items + 1, m + 1) * stirling(contexts + 1, m + 1) for m in terms)


def stirling(n: int, k: int) -> int:
    """Stirling number of the second kind: the number of partitions of n things into k nonempty groups."""
    if n == k:
        return 1
    return 0 if k < 1 or k > n else k * stirling(n - 1, k) + stirling(n - 1, k - 1)


def nestings(items: int, contexts: int) -> int:
    """Number of ways to give every item a set of contexts such that of any two sets one contains the other."""
    sets = [frozenset(s) for size in range(contexts + 1) for s in itertools.combinations(range(contexts), size)]
    ways = Counter({frozenset(): 1})  # by the sets in use
    for _ in range(items):
        longer = Counter()
        for used, count in ways.items():
            for chosen in sets:
                if all(chosen <= other or other <= chosen for other in used):
                    longer[used | {chosen}] += count
        ways = longer
    return sum(ways.values())


def counted(items: int, contexts: int) -> tuple[Dataset, Int[np.ndarray, " gate"]]:
    """How many gates are possible, of which kinds, with and without a bias; and the kind of every gate."""
    import xarray

    task, samples = flat_tree(items, contexts), items * contexts
    possible, biased = (implementable_patterns(task, bias=bias) for bias in (False, True))
    kinds = kinds_of(gates_of(np.arange(2**samples), samples), items, contexts)
    kinds[np.setdiff1d(np.arange(len(kinds)), numbers_of(possible))] = KINDS.index("impossible")
    numbers = {
        "possible": len(possible),
        "gained": len(only_in(biased, possible)),
        "lost": len(only_in(possible, biased)),
        "crossed": int(crossed(possible, items, contexts).sum()),
        "uncrossed": uncrossed(items, contexts),
        "patterns": ("kind", np.bincount(kinds, minlength=len(KINDS))),
    }
    return xarray.Dataset(numbers), kinds


def label(size: Sequence[int]) -> str:
    return f"{size[0]}×{size[1]}"


def gates_of(numbers: Int[np.ndarray, " gate"], samples: int) -> Bool[np.ndarray, "gate sample"]:
    """Gates as the digits of binary numbers; samples are sorted by context."""
    return (numbers[:, None] >> np.arange(samples)[::-1]) & 1 == 1


def numbers_of(gates: Bool[np.ndarray, "*axes sample"]) -> Int[np.ndarray, "*axes"]:
    """The numbers whose binary digits the gates are."""
    return gates @ (1 << np.arange(gates.shape[-1])[::-1])


def only_in(gates: Bool[np.ndarray, "gate sample"], others: Bool[np.ndarray, "other sample"]) -> np.ndarray:
    """Numbers of the gates that are not among the others."""
    return np.setdiff1d(numbers_of(gates), numbers_of(others))


def kinds_of(gates: Bool[np.ndarray, "*axes sample"], items: int, contexts: int) -> Int[np.ndarray, "*axes"]:
    """The kind of each gate, as its place among KINDS; whether it is possible is not asked."""
    grid = gates.reshape(*gates.shape[:-1], contexts, items)
    by_context = (grid == grid[..., :1]).all(axis=(-2, -1))
    by_item = (grid == grid[..., :1, :]).all(axis=(-2, -1))
    return np.select([by_context, by_item, gates.sum(axis=-1) == 1], [0, 1, 2], default=3)


def crossed(gates: Bool[np.ndarray, "gate sample"], items: int, contexts: int) -> Bool[np.ndarray, " gate"]:
    """Whether each gate has an exclusive or in some two items × two contexts."""
    grid = gates.reshape(-1, contexts, items)
    has_one = np.zeros(len(grid), bool)
    for (a, b), (i, j) in itertools.product(
        itertools.combinations(range(contexts), 2), itertools.combinations(range(items), 2)
    ):
        diagonals = (grid[:, a, i] == grid[:, b, j]) & (grid[:, a, j] == grid[:, b, i])
        has_one |= diagonals & (grid[:, a, i] != grid[:, a, j])
    return has_one


def uncrossed(items: int, contexts: int) -> int:
    """The number of gates that have no exclusive or, counted one by one."""
    samples = items * contexts
    return int((~crossed(gates_of(np.arange(2**samples), samples), items, contexts)).sum())
