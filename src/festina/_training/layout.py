"""How a run holds arrays of weights, for the sake of speed: some transposed, some of one shape stacked into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Weights
from .._foundation.stacks import unstacked

Held: TypeAlias = tuple[Float[AnyArray, "..."], ...]  # arrays as a layout holds them


class Layout(NamedTuple):
    """Which weights are transposed, and which are held as one array; `weights` is the inverse of `hold`."""

    structure: Any  # the tree of the weights
    flips: tuple[bool, ...]  # whether each weight is held transposed
    stacks: tuple[tuple[int, ...], ...]  # the numbers of the weights in each stack

    @classmethod
    def of(cls, stacks: tuple[tuple[int, ...], ...], weights: Weights) -> Layout:
        """The layout of weights with a leading seed axis, of which each group in `stacks` is held as one array."""
        leaves, structure = jax.tree.flatten(weights)
        # With their longer axis contiguous XLA's matrix products need no copies.
        flips = tuple(w.ndim == 3 and w.shape[1] > w.shape[2] for w in leaves)
        single = set(range(len(leaves))) - {k for group in stacks for k in group}
        return cls(structure, flips, (*stacks, *((k,) for k in sorted(single))))

    def hold(self, weights: Weights) -> Held:
        leaves = jax.tree.leaves(weights)
        groups = [[np.asarray(leaves[k]) for k in stack] for stack in self.stacks]
        return self.transposed([np.stack(group, axis=-3) if len(group) > 1 else group[0] for group in groups])

    def weights(self, held: Held) -> Weights:
        leaves = {}
        # Stacks are transposed before they are unstacked: XLA then sees that the parts are put together again.
        for stack, array in zip(self.stacks, self.transposed(held), strict=True):
            leaves |= zip(stack, unstacked(array, -3) if len(stack) > 1 else [array], strict=True)
        return jax.tree.unflatten(self.structure, [leaves[k] for k in range(len(leaves))])

    def transposed(self, held: Sequence[Float[AnyArray, ...]]) -> Held:
        return tuple(
            array.swapaxes(-1, -2) if self.flips[stack[0]] else array
            for stack, array in zip(self.stacks, held, strict=True)
        )
