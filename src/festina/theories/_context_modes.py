"""The modes of a common pathway and of subsets of contexts on equal trees, and what is read off their strengths.

The task has n items in C contexts with one tree H of features, once for all contexts and once for each: C + 1 blocks of
features. The common pathway has the modes of the mean, of the contexts and of the items; each subset has the item modes
in the direction of the features that the common pathway leaves. All come from the singular value decomposition of H.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from .._formulas.modes import Modes
from .._formulas.staircase import staircase
from .._foundation.arrays import AnyArray, Layers, Number
from .._foundation.nouns import noun, static
from .._foundation.program_memory import compiled
from ._context_pathways import ContextPathways


@noun
class ContextConstants:
    """Modes of the common pathway, then those of the subsets: rates, effective starts, targets and vectors."""

    common: Modes
    lefts: Float[AnyArray, "subset out item_mode"]
    right: Float[AnyArray, "item item_mode"]
    rates: Float[AnyArray, " mode"]  # s of the common modes, then S_m
    variances: Float[AnyArray, " mode"]  # d of the common modes, then f_m D_m
    effective: Float[AnyArray, " mode"]  # starts
    values: Float[AnyArray, " item_mode"]  # σ
    starts: Float[AnyArray, "subset item_mode item_mode"]  # effective ones
    contexts: Number
    order: tuple[int, ...] = static()

    @property
    def learned(self) -> Float[AnyArray, " mode"]:
        """What every mode tends to."""
        return self.rates / self.variances


def split(
    constants: ContextConstants, numbers: Float[AnyArray, "*time mode"]
) -> tuple[Float[AnyArray, "*time common_mode"], Float[AnyArray, "*time item_mode"]]:
    """Numbers of the modes of the common pathway, and of those of the subsets."""
    count = len(constants.rates) - len(constants.values)
    return numbers[..., :count], numbers[..., count:]


def losses(constants: ContextConstants, strengths: Float[AnyArray, "time mode"]) -> Float[AnyArray, " time"]:
    common, rest = split(constants, constants.learned - strengths)
    left = jnp.sum(split(constants, constants.variances)[0] * common**2, axis=-1)
    # All subsets together leave (C−1)σ²(1 − B/B∞)² of a sum over samples, of which there are nC.
    away = constants.values * rest / split(constants, constants.learned)[1]
    share = (constants.contexts - 1) / (constants.contexts * (len(constants.values) + 1))
    return 0.5 * (left + share * jnp.sum(away**2, axis=-1))


def maps(constants: ContextConstants, strengths: Float[AnyArray, "time mode"]) -> Float[AnyArray, "time out in"]:
    common, rest = split(constants, strengths)
    of_common = jnp.einsum("om,...m,im->...oi", constants.common.left, common, constants.common.right)
    of_subsets = jnp.einsum("pom,...m,im->p...oi", constants.lefts, rest, constants.right)
    return jnp.concatenate([of_common if k < 0 else of_subsets[k] for k in constants.order], axis=-1)


def directions(
    pathways: ContextPathways,
) -> tuple[Float[np.ndarray, "subset block"], Float[np.ndarray, "subset block"], Float[np.ndarray, "subset block"]]:
    """For every subset, unit vectors over feature blocks: whole target û, residual, and n̂ ⊥ û in the plane of both."""
    on, rare = pathways.members, pathways.size / pathways.contexts
    raw = np.concatenate([np.full((len(on), 1), pathways.size), on], axis=1)
    raw = raw / math.sqrt(pathways.size * (pathways.size + 1))
    rest = np.concatenate([np.zeros((len(on), 1)), on - rare], axis=1) / math.sqrt(pathways.size * (1 - rare))
    cosine = math.sqrt((1 - rare) / (pathways.size + 1))
    return raw, rest, (cosine * raw - rest) / math.sqrt(1 - cosine**2)


def in_blocks(blocks: Float[AnyArray, " block"], left: Float[AnyArray, "feature mode"]) -> Float[AnyArray, "out mode"]:
    """u of one tree in all blocks of features, with the weights of `blocks`."""
    return jnp.einsum("b,om->bom", blocks, left).reshape(-1, left.shape[1])


def common_modes(
    pathways: ContextPathways,
    scale: float,
    left: Float[np.ndarray, "feature tree_mode"],
    values: Float[np.ndarray, " tree_mode"],
    right: Float[np.ndarray, "tree_mode item"],
) -> tuple[Modes, Int[np.ndarray, " mode"], Int[np.ndarray, " item_mode"]]:
    """The modes of the common pathway in order of s, their levels, and which are of items; from the SVD of the tree."""
    n, contexts = pathways.items, pathways.contexts
    samples, weight = n * contexts, contexts + n * scale**2
    apart = np.linalg.svd(np.eye(contexts) - 1 / contexts)[0][:, :-1]
    shared = np.concatenate([[contexts], np.ones(contexts)]) / math.sqrt(contexts * (contexts + 1))
    root = left[:, 0] * np.sign(right[0, 0])
    mean = np.concatenate([np.full(n, math.sqrt(contexts / n)), np.full(contexts, scale * math.sqrt(n / contexts))])
    none = np.zeros((1, contexts - 1))
    # Of the mean, of the contexts, and of the items.
    lefts = [
        np.kron(shared, root)[:, None],
        np.kron(np.concatenate([none, apart]), root[:, None]),
        np.kron(shared[:, None], left[:, 1:]),
    ]
    rights = [
        mean[:, None] / math.sqrt(weight),
        np.concatenate([np.repeat(none, n, axis=0), apart]),
        np.concatenate([right[1:].T, np.zeros((contexts, n - 1))]),
    ]
    squares = [
        [values[0] ** 2 * (contexts + 1) * weight],
        np.full(contexts - 1, n * values[0] ** 2 * scale**2),
        values[1:] ** 2 * contexts * (contexts + 1),
    ]
    variances = [[weight], np.full(contexts - 1, n * scale**2), np.full(n - 1, contexts)]
    level = np.concatenate([[-2], np.full(contexts - 1, -1), tree_levels(n)[1:]])
    s = np.sqrt(np.concatenate(squares)) / samples
    order = np.argsort(-s, kind="stable")
    first_of_level = np.diff(level[order], prepend=level[order[0]]) != 0
    modes = Modes(
        np.concatenate(lefts, axis=1)[:, order],
        np.concatenate(rights, axis=1)[:, order],
        s[order],
        np.concatenate(variances)[order] / samples,
    )
    return modes, np.cumsum(first_of_level), np.flatnonzero(order >= contexts)


def tree_levels(items: int) -> Int[np.ndarray, " item"]:
    """The level of every mode of a tree, largest singular value first."""
    depth = np.arange(items.bit_length())
    return np.repeat(depth, np.maximum(2**depth // 2, 1))


@compiled(effort="little")
def starts(
    weights: Layers,
    left: Float[AnyArray, "out mode"],
    right: Float[AnyArray, "in mode"],
    level: Int[AnyArray, " mode"],
) -> Float[AnyArray, "mode mode"]:
    """The matrix of effective starts ¼ P⊥(x + y)(x + y)ᵀP⊥ of modes in the order of learning, level by level."""
    first, last = weights
    stairs, pivots, _ = staircase((first @ right + last.T @ left).T)
    level = jnp.asarray(level)
    added = jnp.where((pivots >= 0) & (level[:, None] == level[jnp.maximum(pivots, 0)]), stairs, 0.0)
    return 0.25 * added @ added.T
