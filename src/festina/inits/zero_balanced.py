"""Balanced layers of a random map."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp

from .._foundation.arrays import RandomKey, Weights
from .._foundation.checks import positive
from .._foundation.nouns import noun, settle
from ..nets.base import Net
from ..tasks.base import Task
from ._pieces import basis, chain_shapes, example_with
from .base import Init
from .small_random import SmallRandom


@noun
class ZeroBalanced(Init):
    """The map of independent Gaussian layers of standard deviation `scale`, refactored into balanced layers.

    With the SVD U S Vᵀ of the product, each of the D layers has S^(1/D); hidden bases are random. The map is
    that of `SmallRandom` with the same seed. [braun2022, published code], without the factor 1.15 that it has in
    both layers.
    """

    scale: Any

    def __post_init__(self):
        settle(self, scale=positive(self.scale, "scale"))

    @classmethod
    def example(cls) -> tuple[Task, Net, ZeroBalanced]:
        return example_with(cls(0.3))

    def draw(self, key: RandomKey, net: Net, task: Task) -> Weights:
        shapes = chain_shapes(self, net, task)
        layers = SmallRandom(1.0).draw(key, net, task)
        left, values, right = jnp.linalg.svd(net.map(layers), full_matrices=False)
        # A bottleneck leaves singular values that are rounding, and their roots would not be small.
        count = min(min(shape) for shape in shapes)
        layer = self.scale * values[:count] ** (1 / len(shapes))
        keys = jax.random.split(jax.random.fold_in(key, len(shapes)), len(shapes))  # the layers have key 0 … D − 1
        hidden = [basis(k, s[0], count) for k, s in zip(keys, shapes[:-1], strict=False)]
        bases = [right[:count].T, *hidden, left[:, :count]]
        return tuple((out * layer) @ into.T for into, out in itertools.pairwise(bases))
