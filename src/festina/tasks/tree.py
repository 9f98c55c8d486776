"""A tree of items whose features mutate on their way from the root to the leaves.

Each feature is +1 or −1 at the root with probability ½, and flips on each edge with probability ε.
With M_l nodes at level l of L, P = M_L leaves and q_l = (1 − 2ε)^(2(L−l)), the similarity of items has the
eigenvalues η_l = Σ_{k≥l} (q_k − q_{k−1}) P/M_k (q_{−1} = 0): once for l = 0, whose vector is constant, and
M_l − M_{l−1} times for l ≥ 1, whose vectors are contrasts between the children of one node of level l − 1 [saxe2019].

For 0 < ε < ½ they fall from level to level, so that a deep network that starts small learns broad distinctions first.
With ε = 0 all items are alike and C has rank 1; with ε = ½ the items have nothing in common and all η are 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from jaxtyping import Float

from .._foundation.checks import real_array, whole
from .._foundation.errors import BadInput
from ._recipe import recipe
from ._worlds import contrasts_of, counts, world
from .base import Task
from .hierarchy import ITEMS

MOST_ITEMS = 10_000  # leaves, between which similarities are a matrix


@recipe
def tree(
    branching: int | Sequence[int] = (2, 2, 2), flip: float = 0.1, features: int | None = None, seed: int = 0
) -> Task:
    """The leaves of a tree, with ±1 features that flip on each edge with probability `flip`.

    `branching` has the number of children of each node, level by level. `features` is the number of features,
    drawn from `seed`. Without it there are infinitely many, and the spectrum and its vectors are known exactly.
    """
    branching, flip = counts(branching, "branching"), _probability(flip)
    whole(math.prod(branching), "the number of leaves of branching", most=MOST_ITEMS)
    binary = all(children == 2 for children in branching)
    return world(
        *_eigen(branching, flip),
        features=features,
        seed=seed,
        items=ITEMS.get(len(branching)) if binary else None,
        draw=partial(_diffused, branching, flip),
    )


def _eigen(
    branching: tuple[int, ...], flip: float
) -> tuple[Float[np.ndarray, " mode"], Float[np.ndarray, "leaf mode"]]:
    """Eigenvalues of the similarity, level by level, and their vectors."""
    nodes = np.cumprod([1, *branching])
    leaves = int(nodes[-1])
    similarity = (1 - 2 * flip) ** (2.0 * np.arange(len(branching), -1, -1))
    gains = np.diff(similarity, prepend=0.0) * leaves / nodes
    values = np.cumsum(gains[::-1])[::-1]
    vectors = [np.full((leaves, 1), leaves**-0.5)]
    for above, below, children in zip(nodes[:-1], nodes[1:], branching, strict=True):
        constant = np.full((leaves // below, 1), (leaves // below) ** -0.5)
        vectors.append(np.kron(np.eye(above), np.kron(contrasts_of(children), constant)))
    return np.repeat(values, [block.shape[1] for block in vectors]), np.concatenate(vectors, axis=1)


def _diffused(
    branching: tuple[int, ...], flip: float, rng: np.random.Generator, number: int
) -> Float[np.ndarray, "leaf feature"]:
    """Features drawn at the root and passed down the tree to the leaves."""
    signs = rng.choice([-1.0, 1.0], size=(1, number))
    for children in branching:
        signs = np.repeat(signs, children, axis=0)
        signs = np.where(rng.random(signs.shape) < flip, -signs, signs)
    return signs


def _probability(flip: float) -> float:
    number = float(real_array(flip, "flip", ndim=0))
    if not 0 <= number <= 0.5:
        raise BadInput(
            f"flip = {flip}",
            "a probability between 0 and 1/2",
            "give 0 <= flip <= 0.5; from 1/2 to 1, 1 - flip gives the same similarities",
        )
    return number
