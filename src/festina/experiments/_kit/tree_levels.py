"""Binary trees whose features flip with probability ε on every edge: what is learned of each level, and when.

A level of the tree is a branching; its modes share one singular value. The levels of a tree of depth `DEPTH` are
numbered from 0, all items alike, to `DEPTH`, the last branching, which tells single items apart.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ... import tasks
from ...tasks.base import Task

DEPTH = 3  # levels of the tree below its root


def tree(flip: float) -> Task:
    """The binary tree whose features flip with this probability on each edge."""
    return tasks.tree((2,) * DEPTH, flip=flip)


def _modes_of_levels() -> list[np.ndarray]:
    """The modes of each level of the tree, in the order of its stated vectors: 1, 1, 2, 4, … modes."""
    ends = 2 ** np.arange(DEPTH + 1)
    return [np.arange(first, last) for first, last in zip([0, *ends[:-1]], ends, strict=True)]


def targets(task: Task) -> Float[np.ndarray, " level"]:
    """The strength √η that each level has once it is learned."""
    return task.d_in * np.asarray(task.spectrum())[[level[0] for level in _modes_of_levels()]]


def strengths(maps: Float[np.ndarray, "seed time feature item"], task: Task) -> Float[np.ndarray, "seed time level"]:
    """Mean strength of each level's modes."""
    of_modes = np.einsum("im,stij,jm->stm", task.vectors(), maps, task.vectors())
    return np.stack([of_modes[..., level].mean(axis=-1) for level in _modes_of_levels()], axis=-1)


def largest_rank(maps: Float[np.ndarray, "seed feature item"]) -> int:
    """The number of singular values over 1 % of the first; the largest over seeds."""
    values = np.linalg.svd(maps, compute_uv=False)
    return int(np.max(np.sum(values > 0.01 * values[:, :1], axis=1)))


def distances(hidden: Float[np.ndarray, "seed time item unit"]) -> Float[np.ndarray, "seed time split"]:
    """Mean distance in the hidden layer of items whose branches part at each level."""
    items = np.arange(hidden.shape[2])
    apart = np.linalg.norm(hidden[:, :, :, None] - hidden[:, :, None], axis=-1)
    shared = np.sum([(items[:, None] >> up) == (items >> up) for up in range(DEPTH)], axis=0)  # nodes above both
    return np.stack([apart[:, :, shared == split - 1].mean(axis=-1) for split in range(1, DEPTH + 1)], axis=-1)


def places(hidden: Float[np.ndarray, "time item unit"], task: Task) -> Float[np.ndarray, "time item axis"]:
    """Classical scaling (MDS) of the hidden layer at each time, laid onto the task's own, in a plane.

    Scaling leaves rotations open; each time is rotated to fit the scaling of the target's distances best, whose axes
    are the task's vectors. The seven axes are projected onto two: the first branching and a little of the last to the
    right, the branchings between upwards.
    """
    count = hidden.shape[1]
    centre = np.eye(count) - 1 / count
    goal = task.vectors()[:, 1:] * np.sqrt(count * task.spectrum()[1:])
    sight = np.zeros((count - 1, 2))
    sight[0, 0] = 1.0
    sight[-(count // 2) :, 0] = 0.5 / np.sqrt(count // 2)
    sight[1 : -(count // 2), 1] = 1.0
    sight /= np.linalg.norm(sight, axis=0)
    planes = []
    for layer in hidden:
        apart = np.linalg.norm(layer[:, None] - layer[None], axis=-1)
        values, vectors = np.linalg.eigh(-0.5 * centre @ apart**2 @ centre)
        scaled = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, 1:]  # without the axis of the common centre
        left, _, right = np.linalg.svd(scaled.T @ goal)
        planes.append(scaled @ left @ right @ sight)
    return np.stack(planes)
