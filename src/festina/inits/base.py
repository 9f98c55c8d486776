"""The contract of an initialisation: the distribution of the initial weights.

A new init is one file in this folder: a frozen `@noun` that derives from `Init`, and has `draw` and an `example`.

- `draw(key, net, task)` gives one draw of the weights, in the structure of `net.shapes(task.d_in, task.d_out)`. It runs
  inside `jax.vmap` over keys, and refuses nets for which it is not defined. `_pieces` has building blocks for it.
- `random` is False for an init that ignores the key, which is then None.
- `fits_any_width` is False for an init that holds the weights of one net.
- `sees_samples` is True for an init that needs more of a task than its second moments; all others get a task without
  its samples, so that their numbers may be traced.

Run tools/listings.py; CONTRIBUTING.md ("Where to add what") lists the docs and tests that know new members.
"""

from __future__ import annotations

import abc
from typing import ClassVar, Self

import jax
import jax.numpy as jnp
from jaxtyping import Int

from .._foundation.arrays import AnyArray, RandomKey, Weights
from .._foundation.precision import in_double
from ..nets.base import Net
from ..tasks.base import Task


class Init(abc.ABC):
    """The distribution of the initial weights."""

    random: ClassVar[bool] = True  # whether the draw depends on the key
    fits_any_width: ClassVar[bool] = True  # whether it can draw for a net of other widths, too
    sees_samples: ClassVar[bool] = False  # whether it needs more of a task than its second moments

    @classmethod
    def example(cls) -> tuple[Task, Net, Self]:
        """A task and a net with an init of this kind that draws for them; tests run the laws of all inits on these."""
        raise NotImplementedError(f"{cls.__name__} has no example()")

    @abc.abstractmethod
    def draw(self, key: RandomKey, net: Net, task: Task) -> Weights:
        """One draw of the weights of the net."""


@in_double
def draws(init: Init, net: Net, task: Task, seeds: Int[AnyArray, " seed"]) -> Weights:
    """Initial weights with a leading seed axis; not compiled as a whole, which takes longer than it saves."""
    return jax.vmap(lambda seed: init.draw(jax.random.key(seed), net, task))(jnp.asarray(seeds))
