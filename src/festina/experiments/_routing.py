"""Routing networks as matrix completion: many of them trained at once.

Items are one-hot, so that all outputs of a routing network for all its inputs are one matrix, D H E, with encoders side
by side in E and decoders on top of each other in D. A pair of domains is a block of it. Training sees the blocks of the
trained pairs alone,

    loss = ½ Σ_entries seen · (Y − D H E)²,      seen = 1/samples in trained blocks and 0 elsewhere,

so the network completes a matrix of which it is shown some blocks. This is the loss of `nets.Gated.routing` on
`tasks.routing`, written for every number of trained pairs with one shape, and so with one compilation.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import integrate, optimize

from .. import inits, nets, tasks
from .._errors import BadInput
from .._noun import whole
from .._precision import in_double
from .._setup import draws

ITEMS, FEATURES = 4, 7


def checked_pairs(pairs: Any, needed: Any) -> tuple[int, ...]:
    """Numbers of trained pairs per domain, in order, among them those that an experiment speaks of."""
    listed = tuple(sorted({whole(count, "pairs") for count in pairs}))
    if missing := sorted({*needed} - {*listed}):
        raise BadInput(
            f"pairs = {listed}", f"{missing[0]} among them: a claim is about it", f"give pairs={(*listed, *missing)}"
        )
    return listed


def slides_units(domains: int, trained: int) -> float:
    """The slides' loss over that of this library, and this library's learning rate over theirs."""
    return 2 * domains * trained / FEATURES


def block() -> np.ndarray:
    """What there is to learn between any two domains; (feature, item)."""
    target = tasks.routing(1, 1).y
    assert target is not None
    return target.T


def strengths() -> np.ndarray:
    """Singular values of the block."""
    return np.linalg.svd(block(), compute_uv=False)


def stacked(weights: Any, domains: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Encoders, shared layer and decoders (E, H, D), from the weights of the gated net; leading axes stay."""
    return (
        np.concatenate(weights[:domains], axis=-1),
        np.asarray(weights[domains]),
        np.concatenate(weights[domains + 1 :], axis=-2),
    )


def orthogonal_starts(domains: int, hidden: int, seeds: Any, together: int = 1) -> tuple[np.ndarray, ...]:
    """(E, H, D) of `inits.Orthogonal(1)` for every seed; a gain multiplies them.

    Draws are compiled for a number of seeds `together`; another draw of as many is free.
    """
    net, task = nets.Gated.routing(domains, domains, 1, hidden=hidden), tasks.routing(domains, 1)
    filled = np.resize(np.asarray(seeds), -(-len(seeds) // together) * together)
    parts = [draws(inits.Orthogonal(1.0), net, task, some) for some in filled.reshape(-1, together)]
    drawn = [np.concatenate(layers)[: len(seeds)] for layers in zip(*parts, strict=True)]
    return stacked(drawn, domains)


def trained_pairs(domains: int, trained: int) -> np.ndarray:
    """(target, source): whether the pair of domains is trained."""
    labels = tasks.routing(domains, trained).labels
    pairs = np.zeros((domains, domains), bool)
    pairs[np.asarray(labels["target"], int), np.asarray(labels["source"], int)] = True
    return pairs


def per_entry(pairs: Any) -> np.ndarray:
    """Values of pairs (…, target, source) for every entry of the matrix (…, feature, input)."""
    return np.repeat(np.repeat(np.asarray(pairs), FEATURES, axis=-2), ITEMS, axis=-1)


def padded(matrices: np.ndarray, shape: Any) -> np.ndarray:
    """(network, rows, columns) with rows and columns of zeros up to a shape."""
    rows, columns = (wanted - had for wanted, had in zip(shape, matrices.shape[1:], strict=True))
    return np.pad(matrices, ((0, 0), (0, rows), (0, columns)))


@in_double
def completed(starts: Any, pairs: Any, rates: Any, strides: Any, marks: int, exist: Any = None) -> tuple[Any, Any]:
    """Train networks by gradient descent; their last weights, and at every mark the error of either kind of pair.

    All arguments but `marks` have one entry per network: weights (E, H, D), trained pairs (target, source), learning
    rates in this library's units, steps from mark to mark, and which pairs there are at all (default: all). Errors are
    ‖Y − Ŷ‖²/‖Y‖² over the untrained and the trained pairs, axes (network, mark, kind); the first is that of the start.
    """
    target = np.tile(block(), pairs.shape[-2:])
    seen = per_entry(pairs) / (ITEMS * pairs.sum(axis=(-2, -1))[:, None, None])
    kinds = np.stack([per_entry(~pairs if exist is None else exist & ~pairs), per_entry(pairs)], axis=1)
    return _completed(starts, seen, kinds, target, rates, strides, np.zeros(marks))


@jax.jit
def _completed(starts, seen, kinds, target, rates, strides, marks):
    def one(network):
        start, seen, kinds, rate, stride = network

        def errors(weights):
            encoders, shared, decoders = weights
            gap = (target - decoders @ (shared @ encoders)) ** 2
            return jnp.sum(gap * kinds, axis=(1, 2)) / jnp.sum(target**2 * kinds, axis=(1, 2))

        def loss(weights):
            encoders, shared, decoders = weights
            return 0.5 * jnp.sum(seen * (target - decoders @ (shared @ encoders)) ** 2)

        def step(_, weights):
            return jax.tree.map(lambda w, slope: w - rate * slope, weights, jax.grad(loss)(weights))

        def mark(weights, _):
            after = jax.lax.fori_loop(0, stride, step, weights)
            return after, errors(after)

        end, passed = jax.lax.scan(mark, start, marks)
        return end, jnp.concatenate([errors(start)[None], passed])

    # A loop keeps one network in cache, where a batch of small matrix products would be slower.
    return jax.lax.map(one, (starts, seen, kinds, rates, strides))


def decoupled_starts(domains: int, strengths: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(E, H, D) with every layer diagonal in the modes of the block, of these strengths: one hidden unit per mode."""
    left, _, right = np.linalg.svd(block(), full_matrices=False)
    middle = np.diag(np.asarray(strengths, float))
    return np.tile(middle @ right, (1, domains)), middle, np.tile(left @ middle, (domains, 1))


def by_domain(encoded: np.ndarray) -> np.ndarray:
    """Columns of hidden activity, (…, hidden, input), by domain and mode of the block: (…, domain, hidden, mode)."""
    right = np.linalg.svd(block())[2].T
    domains = encoded.shape[-1] // ITEMS
    return np.moveaxis(encoded.reshape(*encoded.shape[:-1], domains, ITEMS), -2, -3) @ right


def between_domains(encoded: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gram matrices between two domains over those within one: ratio of mean sizes, and of mean traces.

    (hidden, input) are the last axes. Sizes ask whether domains use the same hidden directions, traces whether they use
    them for the same items.
    """
    activity = by_domain(encoded)
    grams = np.einsum("...ihk,...jhl->...ijkl", activity, activity)
    sizes, traces = np.linalg.norm(grams, axis=(-2, -1)), np.trace(grams, axis1=-2, axis2=-1)
    return _off_over_diagonal(sizes), _off_over_diagonal(traces)


def _off_over_diagonal(matrices: np.ndarray) -> np.ndarray:
    within = np.trace(matrices, axis1=-2, axis2=-1)
    return (matrices.sum(axis=(-2, -1)) - within) / (matrices.shape[-1] - 1) / within


def turns(activity: np.ndarray, pairs: np.ndarray) -> dict[str, np.ndarray]:
    """How hidden activity (network, domain, hidden, mode) of one domain stands to that of another."""
    modes = strengths()
    unit = activity / np.linalg.norm(activity, axis=-2, keepdims=True)
    between = np.einsum("nihk,njhl->nijkl", unit, unit)
    bases = np.linalg.qr(activity)[0]
    overlap = np.linalg.norm(np.einsum("nihk,njhl->nijkl", bases, bases), axis=(-2, -1)) ** 2 / len(modes)
    left, _, right = np.linalg.svd(between[..., 2:, 2:])
    rotation = left @ right  # the orthogonal matrix nearest to how the pair s = 3, 3 stands in two domains
    # The decoder of domain o knows the activity of domain o; another domain's is that, turned, as far as they overlap.
    turn = np.einsum("nokh,nihl->noikl", np.linalg.pinv(activity), activity)
    turned = np.sum(((np.eye(len(modes)) - turn) * modes[:, None]) ** 2, axis=(-2, -1)) / np.sum(modes**2)
    apart = ~np.eye(activity.shape[1], dtype=bool)
    return {
        "cosine": np.einsum("nijkk->nijk", between),
        "overlap": overlap[:, apart].mean(axis=1),
        "twist": (np.trace(rotation, axis1=-2, axis2=-1) / 2)[:, apart].mean(axis=1),
        "turned_error": np.sum(turned * ~pairs, axis=(1, 2)) / np.sum(~pairs, axis=(1, 2)),
    }


def law(domains: int, trained: int, start: float, lr: float, epochs: np.ndarray) -> np.ndarray:
    """The loss by the law of b₁ = b₃ and b₂, all modes from one start, in the slides' units."""
    modes = strengths()

    def slope(_, state):
        outer, shared = state.reshape(2, -1)
        missing = outer * (modes - outer**2 * shared)
        return np.concatenate([shared * missing, domains * outer * missing])

    clock = epochs * lr * trained / 14
    begin = np.full(2 * len(modes), start)
    found = integrate.solve_ivp(
        slope, (0, clock[-1]), begin, method="DOP853", t_eval=clock, rtol=1e-10, atol=1e-12
    ).y.reshape(2, len(modes), -1)
    missing = modes[:, None] - found[0] ** 2 * found[1]
    return domains * trained / 28 * np.sum(missing**2, axis=0)


def half_epochs(domains: int, trained: int, start: float, lr: float) -> float:
    """∫ db₁/ḃ₁ from the start to b₁b₂b₃ = s/2 in the first mode, with b₂² = M b₁² − (M − 1) b₀² and b₃ = b₁."""
    strength = strengths()[0]

    def shared(b):
        return np.sqrt(domains * b**2 - (domains - 1) * start**2)

    end = optimize.brentq(lambda b: b**2 * shared(b) - strength / 2, start, strength)
    time = integrate.quad(lambda b: 1 / (b * shared(b) * (strength - b**2 * shared(b))), start, end, limit=500)[0]
    return time * 14 / (trained * lr)
