"""Whether a gated network is a race of subsets of contexts: a common pathway, and one pathway for every subset.

The theory of `context_race` covers networks of two-layer pathways: a common one, which sees all inputs in all contexts,
and one for every subset of m of the C contexts, which sees the items alone, on a task that has the same tree of
features in every context. `read_pathways` recognises such a network by its gates, and says of others in words why they
are none; `unlike_trees` measures how far the task is from equal trees.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Float

from .._setup.setup import Setup
from ..nets._memory import once_per_task
from ..nets.base import Net
from ..nets.gated.graph import graph_of
from ..nets.gated.plan import plan_of
from ..tasks.base import Task
from ..tasks.contextual import contextual
from ._gated import MOST_PATHS


@dataclasses.dataclass(frozen=True)
class ContextPathways:
    """A gated net read as a common pathway and all subsets of one size."""

    items: int
    contexts: int
    size: int
    common: tuple[int, ...]  # its edges, from the input
    subsets: tuple[tuple[int, ...], ...]  # the edges of each
    members: Float[np.ndarray, "subset context"]  # 1 where the subset is on
    order: tuple[int, ...]  # of the blocks of gated inputs: number of a subset, or −1 for the common pathway


@once_per_task
def read_pathways(net: Net, task: Task) -> ContextPathways | str:
    """The pathways of a gated network on a task, or in words why it is no such network."""
    if net.switch_times or task.x is None:
        return "gates that change in time" if net.switch_times else "a task without samples"
    graph = graph_of(net)
    if graph.depth != 2 or graph.path_count > MOST_PATHS:
        return f"{graph.path_count} paths of up to {graph.depth} layers"
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
    plan = plan_of(net.lifted(task)[0])
    lands = {e: (w.source, w.opening) for _, ways in plan.ways for w, steps in ways for e, _ in steps}
    block = {lands[paths[p].edges[1]]: k for k, p in enumerate(rest)} | {lands[paths[everything[0]].edges[1]]: -1}
    order = tuple(block[b] for b in plan.blocks)
    edges = tuple(tuple(paths[p].edges) for p in rest)
    return ContextPathways(items, contexts, size, tuple(paths[everything[0]].edges), edges, on[:, column], order)


def context_scale(pathways: ContextPathways, task: Task) -> float:
    """The size of the inputs that show the context."""
    return math.sqrt(pathways.contexts * float(np.mean(np.diag(task.cov_x)[pathways.items :])))


def unlike_trees(pathways: ContextPathways, setup: Setup) -> float:
    """How far the moments of gated inputs are from those of one tree in all contexts, relative."""
    task, items, contexts = setup.lifted().single_task, pathways.items, pathways.contexts
    scale = context_scale(pathways, setup.single_task)
    if items & (items - 1) or task.d_out != (contexts + 1) * (2 * items - 1) or scale == 0:
        return math.inf
    ideal = contextual(items, contexts, "hierarchy", scale)
    on = pathways.members[:, np.repeat(np.arange(contexts), items)]
    z = [ideal.x if k < 0 else on[k][:, None] * ideal.x[:, :items] for k in pathways.order]
    z = np.concatenate(z, axis=1)
    pairs = [(task.cov_yx, ideal.y.T @ z / len(z)), (task.cov_x, z.T @ z / len(z))]
    return float(max(np.linalg.norm(moment - wanted) / np.linalg.norm(wanted) for moment, wanted in pairs))
