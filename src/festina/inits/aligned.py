"""Balanced layers along the modes of the task."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp

from .._foundation.arrays import RandomKey, Weights
from .._foundation.nouns import noun, settle
from ..nets.base import Net
from ..tasks.base import Task
from ._pieces import basis, chain_shapes, example_with, one_for_each, one_or_several
from .base import Init


@noun
class Aligned(Init):
    """Balanced layers along the task's own modes: the map starts as Σ_k a_k u_k v_kᵀ.

    `strength` is the a_k of the whole map, one number or one per mode (largest singular value
    first); each of the D layers has |a_k|^(1/D), a negative sign sits in the last one. The hidden
    basis is random. Modes that do not fit through the narrowest layer start, and stay, at zero.
    """

    strength: Any

    def __post_init__(self):
        settle(self, strength=one_or_several(self.strength, "strength"))

    @classmethod
    def example(cls) -> tuple[Task, Net, Aligned]:
        return example_with(cls(0.1))

    def draw(self, key: RandomKey, net: Net, task: Task) -> Weights:
        shapes = chain_shapes(self, net, task)
        modes = task.modes()
        count = modes.singular_values.shape[0]
        do = "match the number of modes: min(d_in, d_out)"
        strength = one_for_each(self.strength, "strength", count, "modes of the task", do)
        narrowest = min([count, *(rows for rows, _ in shapes[:-1])])
        strength = jnp.where(jnp.arange(count) < narrowest, strength, 0.0)
        # |0|^(1/D) has an infinite slope; hold zeros out of the power.
        live = strength != 0
        layer = jnp.where(live, jnp.abs(jnp.where(live, strength, 1.0)) ** (1 / len(shapes)), 0.0)
        keys = jax.random.split(key, len(shapes))
        bases = [modes.right, *(basis(k, s[0], count) for k, s in zip(keys, shapes[:-1], strict=False)), modes.left]
        weights = [(out * layer) @ into.T for into, out in itertools.pairwise(bases)]
        return (*weights[:-1], (modes.left * layer * jnp.where(strength < 0, -1.0, 1.0)) @ bases[-2].T)
