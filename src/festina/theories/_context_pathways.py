"""A gated net read as a common pathway and all subsets of one number of contexts, on equal trees, and its readouts."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._errors import BadInput
from .._linalg import Modes
from .._noun import is_traced, noun, real_array, static
from .._riccati import staircase
from .._setup import Setup
from .._task import Task, once_per_task
from ..tasks.contextual import contextual
from ._gated import MOST_PATHS


@dataclasses.dataclass(frozen=True)
class ContextPathways:
    """A gated net read as a common pathway and all subsets of one size."""

    items: int
    contexts: int
    size: int
    common: tuple[int, ...]  # its edges, from the input
    subsets: tuple[tuple[int, ...], ...]
    members: np.ndarray  # (subset, context): 1 where it is on
    order: tuple[int, ...]  # of the blocks of gated inputs: number of a subset, or −1 for the common pathway


@once_per_task
def read_race(net: Any, task: Task) -> ContextPathways | str:
    """The race that a gated network on a task is, or what it is instead."""
    if net.switches or task.x is None:
        return "gates that change in time" if net.switches else "a task without samples"
    if net.graph.depth != 2 or net.graph.path_count > MOST_PATHS:
        return f"{net.graph.path_count} paths of up to {net.graph.depth} layers"
    reads, writes = net.columns(task.d_in, task.d_out)
    paths, openings = net.paths(), net.moments(task).openings
    if any(len(path.edges) != 2 for path in paths) or len({e for p in paths for e in p.edges}) < 2 * len(paths):
        return f"{len(paths)} paths that share layers, or do not have two"
    if any(tuple(writes[path.target]) != tuple(range(task.d_out)) for path in paths):
        return "pathways that write some of the outputs"
    everything = [
        p for p, path in enumerate(paths) if len(reads[path.source]) == task.d_in and np.all(openings[p] == 1)
    ]
    rest = [p for p in range(len(paths)) if p not in everything]
    if len(everything) != 1 or not rest:
        return f"{len(everything)} common pathways and {len(rest)} others"
    items = len(reads[paths[rest[0]].source])
    if any(tuple(reads[paths[p].source]) != tuple(range(items)) for p in rest):
        return "subsets that see different inputs, or not the first ones"
    if not np.isin(openings[rest], (0, 1)).all():
        return "gates that are neither on nor off"
    # Samples by the subsets that they open, as one number each: quick for any number of samples.
    codes = np.exp2(np.arange(len(rest))) @ openings[rest]
    _, first, context = np.unique(codes, return_index=True, return_inverse=True)
    on = openings[rest][:, first]
    contexts, size = on.shape[1], int(on[0].sum())
    all_subsets = len({tuple(row) for row in on}) == len(on) == math.comb(contexts, size)
    if not (np.all(on.sum(axis=1) == size) and all_subsets and 0 < size < contexts):
        return (
            f"{len(rest)} pathways on in {', '.join(f'{k:g}' for k in np.unique(on.sum(axis=1)))} of {contexts} groups"
        )
    if task.d_in != items + contexts:
        return f"{items} items and {contexts} contexts on {task.d_in} inputs"
    shown = np.array([np.argmax(np.sum(np.abs(task.x[context == c, items:]), axis=0)) for c in range(contexts)])
    column = np.argsort(shown) if len(set(shown)) == contexts else np.arange(contexts)
    bound = net.bound(task)[0].plan
    lands = {e: (w.source, w.opening) for _, ways in bound.ways for w, steps in ways for e, _ in steps}
    block = {lands[paths[p].edges[1]]: k for k, p in enumerate(rest)} | {lands[paths[everything[0]].edges[1]]: -1}
    order = tuple(block[b] for b in bound.blocks)
    edges = tuple(tuple(paths[p].edges) for p in rest)
    return ContextPathways(items, contexts, size, tuple(paths[everything[0]].edges), edges, on[:, column], order)


def context_scale(race: ContextPathways, task: Any) -> float:
    return math.sqrt(race.contexts * float(np.mean(np.diag(task.cov_x)[race.items :])))


def unlike_trees(race: ContextPathways, setup: Setup) -> float:
    """How far the gated moments are from those of equal trees, relative."""
    task = setup.bound().task
    scale = context_scale(race, setup.task)
    if race.items & (race.items - 1) or task.d_out != (race.contexts + 1) * (2 * race.items - 1) or scale == 0:
        return math.inf
    ideal = contextual(race.items, race.contexts, "hierarchy", scale)
    on = race.members[:, np.repeat(np.arange(race.contexts), race.items)]
    z = [ideal.x if k < 0 else on[k][:, None] * ideal.x[:, : race.items] for k in race.order]
    z = np.concatenate(z, axis=1)
    pairs = [(task.cov_yx, ideal.y.T @ z / len(z)), (task.cov_x, z.T @ z / len(z))]
    return float(max(np.linalg.norm(seen - wanted) / np.linalg.norm(wanted) for seen, wanted in pairs))


def directions(race: ContextPathways) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Over blocks of features, for every subset: the whole target û, the rest, and n̂ across û in their plane."""
    on, rare = race.members, race.size / race.contexts
    raw = np.concatenate([np.full((len(on), 1), race.size), on], axis=1) / math.sqrt(race.size * (race.size + 1))
    rest = np.concatenate([np.zeros((len(on), 1)), on - rare], axis=1) / math.sqrt(race.size * (1 - rare))
    cosine = math.sqrt((1 - rare) / (race.size + 1))
    return raw, rest, (cosine * raw - rest) / math.sqrt(1 - cosine**2)


def in_blocks(blocks: Any, left: Any) -> Any:
    """u of one tree in all blocks of features, with the weights of `blocks`."""
    return jnp.einsum("b,om->bom", blocks, left).reshape(-1, left.shape[1])


def common_modes(race: ContextPathways, scale: float, left: Any, values: Any, right: Any) -> tuple[Modes, Any, Any]:
    """The modes of the common pathway in order of s, their levels, and which are of items; from the SVD of the tree."""
    n, contexts = race.items, race.contexts
    samples, weight = n * contexts, contexts + n * scale**2
    apart = np.linalg.svd(np.eye(contexts) - 1 / contexts)[0][:, :-1]
    shared = np.concatenate([[contexts], np.ones(contexts)]) / math.sqrt(contexts * (contexts + 1))
    root = left[:, 0] * np.sign(right[0, 0])
    mean = np.concatenate([np.full(n, math.sqrt(contexts / n)), np.full(contexts, scale * math.sqrt(n / contexts))])
    none = np.zeros((1, contexts - 1))
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


def tree_levels(items: int) -> np.ndarray:
    """The level of every mode of a tree, largest singular value first."""
    depth = np.arange(items.bit_length())
    return np.repeat(depth, np.maximum(2**depth // 2, 1))


@jax.jit
def starts(weights: Any, left: Any, right: Any, level: Any) -> Any:
    """The matrix of effective starts ¼ P⊥(x + y)(x + y)ᵀP⊥ of modes in order of arrival, level by level."""
    first, last = weights
    stairs, pivots, _ = staircase((first @ right + last.T @ left).T)
    level = jnp.asarray(level)
    own = jnp.where((pivots >= 0) & (level[:, None] == level[jnp.maximum(pivots, 0)]), stairs, 0.0)
    return 0.25 * own @ own.T


@noun
class ContextConstants:
    """Modes of the common pathway, then those of the subsets: how fast, from where, towards what; and the vectors."""

    common: Modes
    lefts: Any  # (subset, output, mode)
    right: Any  # (item, mode)
    rates: Any  # s of the common modes, then S_m
    variances: Any  # d of the common modes, then f_m D_m
    effective: Any
    values: Any  # σ of the item modes
    starts: Any  # (subset, mode, mode): effective ones
    contexts: Any
    order: tuple[int, ...] = static()

    @property
    def learned(self) -> Any:
        """What every mode tends to."""
        return self.rates / self.variances


def split(constants: ContextConstants, strengths: Any) -> tuple[Any, Any]:
    """Numbers of the modes of the common pathway, and of those of the subsets."""
    count = len(constants.rates) - len(constants.values)
    return strengths[..., :count], strengths[..., count:]


def losses(constants: ContextConstants, strengths: Any) -> Any:
    common, rest = split(constants, constants.learned - strengths)
    left = jnp.sum(split(constants, constants.variances)[0] * common**2, axis=-1)
    # All subsets together leave (C−1)σ²(1 − B/B∞)² of a sum over samples, of which there are nC.
    away = constants.values * rest / split(constants, constants.learned)[1]
    share = (constants.contexts - 1) / (constants.contexts * (len(constants.values) + 1))
    return 0.5 * (left + share * jnp.sum(away**2, axis=-1))


def maps(constants: ContextConstants, strengths: Any) -> Any:
    common, rest = split(constants, strengths)
    whole_map = jnp.einsum("om,...m,im->...oi", constants.common.left, common, constants.common.right)
    parts = jnp.einsum("pom,...m,im->p...oi", constants.lefts, rest, constants.right)
    return jnp.concatenate([whole_map if k < 0 else parts[k] for k in constants.order], axis=-1)


def given_starts(value: Any, argument: str, modes: int) -> Any:
    """Effective starts as they were given: one number for all modes, or one for each."""
    if is_traced(value):
        return jnp.broadcast_to(value, (modes,))
    numbers = real_array(value, argument, ndim=(0, 1))
    if numbers.ndim and len(numbers) != modes:
        raise BadInput(f"{len(numbers)} numbers in {argument}", f"one, or one for each of {modes} modes", "match them")
    return np.broadcast_to(numbers, (modes,))
