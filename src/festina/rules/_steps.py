"""Shared by rules that move in steps: one gradient step, and the order in which batches visit the samples."""

from __future__ import annotations

from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from .._foundation.arrays import Number, RandomKey, Weights
from .._foundation.errors import BadInput

Order: TypeAlias = Int[Array, " sample"]
Pass: TypeAlias = tuple[RandomKey, Order, Int[Array, ""]]  # key of the next order, this order, how far it is used


def stepped_down(weights: Weights, slope: Weights, lr: Number) -> Weights:
    """The weights after one step down a slope."""
    return jax.tree.map(lambda w, g: w - lr * g, weights, slope)


def first_order(batch: int, samples: int | None, key: RandomKey) -> Pass:
    """The state of the passes before the first batch."""
    if samples is None or batch > samples:
        raise BadInput(
            f"batch = {batch} for a task with {samples or 'no'} samples",
            "at least as many samples as the batch",
            "use a smaller batch, or all samples at once",
        )
    return key, jax.random.permutation(key, samples), jnp.zeros((), jnp.int32)


def next_rows(batch: int, state: Pass) -> tuple[Int[Array, " batch"], Pass]:
    """The samples of the next batch, and the state after it."""
    key, order, begin = state
    rows = jax.lax.dynamic_slice_in_dim(order, begin, batch)
    begin = begin + batch
    return rows, jax.lax.cond(begin + batch > order.shape[0], _reshuffled, lambda *s: s, key, order, begin)


def _reshuffled(key: RandomKey, order: Order, begin: Int[Array, ""]) -> Pass:
    key = jax.random.split(key, 1)[0]
    return key, jax.random.permutation(key, order.shape[0]), jnp.zeros_like(begin)
