"""Independent Gaussian weights."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .._foundation.arrays import RandomKey, Weights
from .._foundation.checks import is_traced, positive
from .._foundation.nouns import noun, settle
from ..nets.base import Net
from ..tasks.base import Task
from ._pieces import example_with, map_layers, normal, one_for_each, one_or_several
from .base import Init


@noun
class SmallRandom(Init):
    """Independent Gaussian weights of standard deviation `scale`, one for all or one for each matrix; biases zero."""

    scale: Any

    def __post_init__(self):
        settle(self, scale=one_or_several(self.scale, "scale"))
        for scale in () if is_traced(self.scale) else np.atleast_1d(self.scale):
            positive(scale, "scale")

    @classmethod
    def example(cls) -> tuple[Task, Net, SmallRandom]:
        return example_with(cls(0.3))

    def draw(self, key: RandomKey, net: Net, task: Task) -> Weights:
        leaves, structure = jax.tree.flatten(map_layers(key, net, task, normal))
        matrices = [k for k, leaf in enumerate(leaves) if leaf.ndim > 1]
        do = "match the number of layers or edges"
        scales = one_for_each(self.scale, "scale", len(matrices), "matrices of the net", do)
        for k, scale in zip(matrices, scales, strict=True):
            leaves[k] = scale * leaves[k]
        return jax.tree.unflatten(structure, leaves)
