"""From one task to a related one: what is opposed between them, and how hidden items move."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ..._foundation.arrays import AnyArray
from ...tasks.base import Task


def variance(task: Task) -> float:
    """The variance of white inputs."""
    return float(task.cov_x[0, 0])


def loss(task: Task, maps: Float[AnyArray, "time out in"]) -> Float[np.ndarray, " time"]:
    """The loss above the floor, for white inputs."""
    return 0.5 * variance(task) * np.sum((maps - task.target()) ** 2, axis=(1, 2))


def strengths(task: Task, maps: Float[AnyArray, "time out in"]) -> Float[np.ndarray, "time mode"]:
    """The strength of each mode of the task."""
    modes = task.modes()
    return np.einsum("om,toi,im->tm", modes.left, maps, modes.right)


def opposed(old: Task, new: Task) -> int:
    """The number of eigenvalues −1 of the product of the two targets' orthogonal (polar) factors."""

    def polar(task: Task) -> np.ndarray:
        left, _, right = np.linalg.svd(task.target())
        return left @ right

    return int(np.sum(np.abs(np.linalg.eigvals(polar(old).T @ polar(new)) + 1) < 1e-6))


def item_places(grams: Float[np.ndarray, "time item item"], switch: int) -> Float[np.ndarray, "time item axis"]:
    """Classical scaling of the items at every time, rotated to fit the next time, along two directions.

    `switch` is the time of the change of task. The directions are the one in which the first task spreads the items
    most, and the one across it in which the second task moves them most.
    """
    centred = grams - grams.mean(axis=1, keepdims=True)
    centred = centred - centred.mean(axis=2, keepdims=True)
    values, vectors = np.linalg.eigh(centred)
    points = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
    for k in range(len(points) - 2, -1, -1):
        left, _, right = np.linalg.svd(points[k].T @ points[k + 1])
        points[k] = points[k] @ left @ right
    widest = _widest(points[switch])
    moved = points[switch:] - points[switch]
    most_moved = _widest(moved - (moved @ widest)[..., None] * widest)
    return points @ np.stack([widest, most_moved]).T


def _widest(points: Float[np.ndarray, "*points axis"]) -> Float[np.ndarray, " axis"]:
    """The unit vector along which points spread most from zero."""
    direction = np.linalg.svd(points.reshape(-1, points.shape[-1]), full_matrices=False)[2][0]
    return direction * np.sign(direction[np.abs(direction).argmax()])
