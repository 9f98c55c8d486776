"""Routing networks as matrix completion: many of them trained at once.

Items are one-hot, so that all outputs of a routing network for all its inputs are one matrix, D H E, with encoders side
by side in E and decoders on top of each other in D. A pair of domains is a block of this matrix. The loss has the
blocks of the trained pairs alone,

    loss = ½ Σ_entries weight · (Y − D H E)²,      weight = 1/samples in trained blocks and 0 elsewhere,

so the network completes a matrix of which it receives some blocks. This is the loss of `nets.Gated.routing` on
`tasks.routing`, written for every number of trained pairs with one shape, and so with one compilation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from ... import inits, nets, tasks
from ..._foundation.arrays import AnyArray
from ..._foundation.checks import whole
from ..._foundation.errors import BadInput
from ..._foundation.precision import in_double
from ..._foundation.program_memory import compiled
from ...inits.base import draws

ITEMS, FEATURES = 4, 7
Pairs = Bool[np.ndarray, "target source"]
Layers = tuple[AnyArray, ...]  # encoders, shared layer and decoders (E, H, D)


def checked_pairs(pairs: Iterable[int], needed: Iterable[int]) -> tuple[int, ...]:
    """Numbers of trained pairs per domain, in order; those that claims are about must be among them."""
    counts = tuple(sorted({whole(count, "pairs") for count in pairs}))
    if missing := sorted({*needed} - {*counts}):
        raise BadInput(
            f"pairs = {counts}", f"{missing[0]} among them: a claim is about it", f"give pairs={(*counts, *missing)}"
        )
    return counts


def slides_units(domains: int, trained: int) -> float:
    """The slides' loss over that of this library; also this library's learning rate over theirs."""
    return 2 * domains * trained / FEATURES


def block() -> Float[np.ndarray, "feature item"]:
    """What there is to learn between any two domains."""
    target = tasks.routing(1, 1).y
    assert target is not None
    return target.T


def strengths() -> Float[np.ndarray, " mode"]:
    """Singular values of the block."""
    return np.linalg.svd(block(), compute_uv=False)


def stacked(weights: Sequence[np.ndarray], domains: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(E, H, D) from the weights of the gated net; leading axes stay."""
    return (
        np.concatenate(weights[:domains], axis=-1),
        np.asarray(weights[domains]),
        np.concatenate(weights[domains + 1 :], axis=-2),
    )


def orthogonal_starts(
    domains: int, hidden: int, seeds: Sequence[int] | np.ndarray, together: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(E, H, D) of `inits.Orthogonal(1)` for every seed; a gain multiplies them.

    Draws are compiled for `together` seeds at once; a second draw of as many needs no compilation.
    """
    net, task = nets.Gated.routing(domains, domains, 1, hidden=hidden), tasks.routing(domains, 1)
    filled = np.resize(np.asarray(seeds), -(-len(seeds) // together) * together)
    parts = [draws(inits.Orthogonal(1.0), net, task, some) for some in filled.reshape(-1, together)]
    weights = [np.concatenate(layers)[: len(seeds)] for layers in zip(*parts, strict=True)]
    return stacked(weights, domains)


def trained_pairs(domains: int, trained: int) -> Pairs:
    """Whether each pair of domains is trained."""
    labels = tasks.routing(domains, trained).labels or {}
    pairs = np.zeros((domains, domains), bool)
    pairs[np.asarray(labels["target"], int), np.asarray(labels["source"], int)] = True
    return pairs


def per_entry(pairs: Bool[np.ndarray, "*axes target source"]) -> Bool[np.ndarray, "*axes feature input"]:
    """Values of pairs of domains, for every entry of the matrix."""
    return np.repeat(np.repeat(np.asarray(pairs), FEATURES, axis=-2), ITEMS, axis=-1)


def padded(
    matrices: Float[np.ndarray, "network rows columns"], shape: tuple[int, int]
) -> Float[np.ndarray, "network more_rows more_columns"]:
    """Matrices with rows and columns of zeros up to a shape."""
    rows, columns = (wanted - had for wanted, had in zip(shape, matrices.shape[1:], strict=True))
    return np.pad(matrices, ((0, 0), (0, rows), (0, columns)))


@in_double
def completed(
    starts: Layers,
    pairs: Bool[np.ndarray, "network target source"],
    rates: Float[AnyArray, " network"],
    strides: Int[AnyArray, " network"],
    marks: int,
    exist: Bool[np.ndarray, "network target source"] | None = None,
) -> tuple[Layers, Float[AnyArray, "network mark kind"]]:
    """Train networks by gradient descent; their last weights, and at every mark the error of either kind of pair.

    All arguments but `marks` have one entry per network: weights (E, H, D), trained pairs (target, source), learning
    rates in this library's units, steps from mark to mark, and which pairs there are at all (default: all). Errors are
    ‖Y − Ŷ‖²/‖Y‖² over the untrained and the trained pairs, axes (network, mark, kind); the first is that of the start.
    """
    target = np.tile(block(), pairs.shape[-2:])
    weight = per_entry(pairs) / (ITEMS * pairs.sum(axis=(-2, -1))[:, None, None])
    kinds = np.stack([per_entry(~pairs if exist is None else exist & ~pairs), per_entry(pairs)], axis=1)
    return _completed(starts, weight, kinds, target, rates, strides, np.zeros(marks))


@compiled
def _completed(
    starts: Layers,
    weight: AnyArray,
    kinds: AnyArray,
    target: AnyArray,
    rates: AnyArray,
    strides: AnyArray,
    marks: AnyArray,
) -> tuple[Layers, AnyArray]:
    def train(network: tuple[Layers, AnyArray, AnyArray, AnyArray, AnyArray]) -> tuple[Layers, AnyArray]:
        start, weight, kinds, rate, stride = network

        def errors(weights: Layers) -> AnyArray:
            encoders, shared, decoders = weights
            gap = (target - decoders @ (shared @ encoders)) ** 2
            return jnp.sum(gap * kinds, axis=(1, 2)) / jnp.sum(target**2 * kinds, axis=(1, 2))

        def loss(weights: Layers) -> AnyArray:
            encoders, shared, decoders = weights
            return 0.5 * jnp.sum(weight * (target - decoders @ (shared @ encoders)) ** 2)

        def step(_: AnyArray, weights: Layers) -> Layers:
            return jax.tree.map(lambda w, slope: w - rate * slope, weights, jax.grad(loss)(weights))

        def mark(weights: Layers, _: AnyArray) -> tuple[Layers, AnyArray]:
            after = jax.lax.fori_loop(0, stride, step, weights)
            return after, errors(after)

        end, passed = jax.lax.scan(mark, start, marks)
        return end, jnp.concatenate([errors(start)[None], passed])

    # A loop keeps one network in cache, where a batch of small matrix products would be slower.
    return jax.lax.map(train, (starts, weight, kinds, rates, strides))


def decoupled_starts(
    domains: int, strengths: Sequence[float] | np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(E, H, D) with every layer diagonal in the modes of the block, of these strengths: one hidden unit per mode."""
    left, _, right = np.linalg.svd(block(), full_matrices=False)
    middle = np.diag(np.asarray(strengths, float))
    return np.tile(middle @ right, (1, domains)), middle, np.tile(left @ middle, (domains, 1))
