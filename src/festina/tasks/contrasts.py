"""Eight items in a binary tree, with one feature for each contrast of the tree.

The eight features are orthogonal columns with entries 0 and ±1: one that all items share, one that sets the halves
apart, two that set the quarters of a half apart, four that set the items of a pair apart. Column i = 1 … 8 is
multiplied by 1 + 0.1/i, which makes all singular values of Σʸˣ differ; they are the lengths of the columns over 8.

[braun2022, figures 3 and 6] learn this tree and then a relative of it:

- "colour" is the same tree over other groups: the items are numbered 0 … 7 in binary, and the bits are read in
  reverse, so that items 0, 2, 4, 6 (canary, salmon, oak, rose) make the first half, 0 and 4 a pair;
- "reversed" has the opposite sign in every feature;
- "revised" has the opposite sign in the last feature alone.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from .._foundation.checks import choice
from ._recipe import recipe
from .base import Task
from .hierarchy import ITEMS
from .own_data import from_arrays

VARIANTS = ("tree", "colour", "reversed", "revised")
FEATURES = ("all", "halves", "first half", "second half", "pair 1", "pair 2", "pair 3", "pair 4")
BITS_REVERSED = [0, 4, 2, 6, 1, 5, 3, 7]


@recipe
def contrasts(variant: str = "tree") -> Task:
    """Eight items with one feature for each contrast of their tree.

    The variants are "tree"; "colour", which groups the items in another way; "reversed", which flips the sign of every
    feature; and "revised", which flips the sign of the last feature only.
    """
    choice(variant, "variant", VARIANTS)
    splits = [np.kron(np.eye(2**level), np.repeat([[1.0], [-1.0]], 4 // 2**level, axis=0)) for level in range(3)]
    y = np.concatenate([np.ones((8, 1)), *splits], axis=1) * (1 + 0.1 / np.arange(1, 9))
    if variant == "colour":
        y = y[BITS_REVERSED]
    elif variant == "reversed":
        y = -y
    elif variant == "revised":
        y[:, -1] *= -1
    task = from_arrays(np.eye(8), y, items=ITEMS[3], inputs=ITEMS[3], features=FEATURES)
    lengths = np.linalg.norm(y, axis=0)
    return dataclasses.replace(task, stated_spectrum=lengths / 8, stated_vectors=y / lengths)
