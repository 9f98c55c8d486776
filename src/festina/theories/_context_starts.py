"""Where the race of subsets starts: effective starts of all modes, and what errors they leave.

The common pathway starts as in `small_random_modes`. A subset grows on the whole target until the common pathway has
learned, and on the residual from then on: its effective start on the residual is the head start B₀ of `context_race`.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._formulas.modes import Modes, eigenvectors_within
from .._foundation.arrays import AnyArray, Weights
from .._foundation.checks import is_traced, real_array
from .._foundation.errors import BadInput
from .._foundation.precision import in_double
from ..tasks.hierarchy import hierarchy_block
from ._context_formulas import arrival, gate_overlap, growth_until_arrival, item_mode, kept_in_rotation
from ._context_modes import ContextConstants, common_modes, directions, in_blocks, split, starts, tree_levels
from ._context_pathways import ContextPathways


@in_double
def context_constants(
    pathways: ContextPathways,
    scale: float,
    weights: Weights,
    common_start: object = None,
    subset_start: object = None,
) -> ContextConstants:
    """The constants of a race that starts from these weights, or from effective starts that are given."""
    n, contexts = pathways.items, pathways.contexts
    tree_left, values, tree_right = np.linalg.svd(hierarchy_block(n), full_matrices=False)
    tree_level = tree_levels(n)
    mode = item_mode(values[1:], n, contexts, pathways.size)
    common, level, of_items = common_modes(pathways, scale, tree_left, values, tree_right)
    start = starts([jnp.asarray(weights[e]) for e in pathways.common], common.left, common.right, level)
    rotation = eigenvectors_within(jnp.asarray(level), start)
    common = Modes(common.left @ rotation, common.right @ rotation, common.singular_values, common.variances)
    of_common = jnp.einsum("km,kl,lm->m", rotation, start, rotation)
    if common_start is not None:
        of_common = given_starts(common_start, "common_start", len(of_common))
    item_rotation = rotation[of_items][:, of_items]
    # Item modes, rotated as the common pathway has learned them, grow in all subsets at once.
    left, right = tree_left[:, 1:] @ item_rotation, tree_right[1:].T @ item_rotation
    raw, rest, resting = directions(pathways)
    growing, joins = kept_in_rotation(contexts, pathways.size)
    late = 2 * joins / growing * jnp.exp(-mode.raw * arrival(mode, of_common[of_items]))
    targets = [in_blocks(raw[k], left) + in_blocks(resting[k], left) * late for k in range(len(pathways.subsets))]
    of_subsets = jnp.stack(
        [
            starts([jnp.asarray(weights[e]) for e in edges], target, right, tree_level[1:])
            for target, edges in zip(targets, pathways.subsets, strict=True)
        ]
    )
    if subset_start is not None:
        of_subsets = jnp.broadcast_to(jnp.diag(given_starts(subset_start, "subset_start", n - 1)), of_subsets.shape)
    factor = growing * growth_until_arrival(mode, of_common[of_items])
    heads = factor[:, None] * jnp.mean(of_subsets, axis=0) * factor
    second = eigenvectors_within(jnp.asarray(tree_level[1:]), heads)
    overlap = gate_overlap(contexts, pathways.size)
    return ContextConstants(
        common,
        jnp.stack([in_blocks(blocks, left @ second) for blocks in rest]),
        right @ second,
        jnp.concatenate([common.singular_values, mode.residual]),
        jnp.concatenate([common.variances, jnp.full(n - 1, overlap * mode.variance)]),
        jnp.concatenate([of_common, jnp.einsum("km,kl,lm->m", second, heads, second)]),
        jnp.asarray(values[1:]),
        of_subsets,
        float(contexts),
        pathways.order,
    )


def given_starts(value: object, argument: str, modes: int) -> Float[AnyArray, " mode"]:
    """Effective starts as they were given: one number for all modes, or one for each."""
    if is_traced(value):
        return jnp.broadcast_to(jnp.asarray(value), (modes,))
    numbers = real_array(value, argument, ndim=(0, 1))
    if numbers.ndim and len(numbers) != modes:
        raise BadInput(f"{len(numbers)} numbers in {argument}", f"one, or one for each of {modes} modes", "match them")
    return np.broadcast_to(numbers, (modes,))


def spread_of_starts(constants: ContextConstants) -> float:
    """The standard deviation of the effective starts of the subsets, relative to their mean; of the worst mode."""
    of_subsets = np.diagonal(constants.starts, axis1=1, axis2=2)
    return float(np.max(np.std(of_subsets, axis=0) / np.mean(of_subsets, axis=0)))


def expected_error(pathways: ContextPathways, scale: float, constants: ContextConstants) -> float:
    """The error of the directions of subsets: (start/target)^((1−R)/2), or the power 1 − γ if that is larger.

    The exponent γ measures how much the subsets grow along the modes of the mean and of the contexts: on the mean until
    the common pathway has learned it, then on the residual until it has learned the contexts.
    """
    shape = {"items": pathways.items, "contexts": pathways.contexts, "size": pathways.size}
    mode, mean = item_mode(1.0, **shape), item_mode(math.sqrt(2 * pathways.items - 1), **shape)
    weight = pathways.contexts + pathways.items * scale**2
    samples = pathways.items * pathways.contexts
    first = math.sqrt((2 * pathways.items - 1) * (pathways.contexts + 1) * weight) / samples
    second = scale * math.sqrt(pathways.items * (2 * pathways.items - 1)) / samples
    far = mean.raw / first + mean.residual * (1 / second - 1 / first)
    start = float(np.max(split(constants, constants.effective / constants.learned)[0]))
    return float(max(start ** ((1 - mode.raw / mode.common) / 2), start ** max(1 - far, 0.0)))
