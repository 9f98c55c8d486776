"""A single linear neuron f(x) = a w·x with imbalance δ = a² − |w|²: tasks, starts, and measures of how it learns."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ... import tasks
from ...tasks.base import Task

Vector = Float[np.ndarray, " input"]
Path = Float[np.ndarray, "time input"]


def noiseless_task(target: Vector, cov_x: Float[np.ndarray, "input input"]) -> Task:
    """The task y = β*·x with inputs of these second moments."""
    return tasks.from_moments((target @ cov_x)[None], cov_x, [[target @ cov_x @ target]])


def inverse_root(matrix: Float[np.ndarray, "input input"]) -> Float[np.ndarray, "input input"]:
    """The symmetric inverse root of a matrix of second moments."""
    variances, vectors = np.linalg.eigh(matrix)
    return vectors / np.sqrt(variances) @ vectors.T


def layers(beta: Vector, delta: float, sign: int) -> list[np.ndarray]:
    """Layers (w, a) with a w = β, a² − |w|² = δ, and this sign of a."""
    size = np.linalg.norm(beta)
    larger = np.sqrt(np.hypot(delta / 2, size) + abs(delta) / 2)
    gain = sign * (larger if delta >= 0 else size / larger)
    return [beta[None] / gain, np.array([[gain]])]


def cosine(beta: Path, target: Vector) -> Float[np.ndarray, " time"]:
    """The cosine of the angle between β and the target."""
    return beta @ target / (np.linalg.norm(beta, axis=-1) * np.linalg.norm(target))


def turning_rate(times: Float[np.ndarray, " time"], beta: Path, target: Vector, delta: float) -> float:
    """Growth rate of the cotangent of the angle to the target, at late times but before rounding errors matter."""
    along = beta @ target / np.linalg.norm(target)
    across = np.linalg.norm(beta - np.outer(along, target) / np.linalg.norm(target), axis=1)
    speed = np.hypot(np.linalg.norm(target), delta / 2)
    inside = (speed * times > 3) & (along > 0) & (across > 1e-6 * along)
    return np.polyfit(times[inside], np.log(along[inside] / across[inside]), 1)[0]


def predicted_turning_rate(deltas: Float[np.ndarray, "*deltas"], r: float) -> Float[np.ndarray, "*deltas"]:
    """The predicted growth rate of this cotangent, ½(√(4r² + δ²) + δ)."""
    return (np.sqrt(4 * r**2 + deltas**2) + deltas) / 2


def bend(beta: Path, start: Vector, target: Vector) -> float:
    """Largest distance of a path from the line between start and target, in lengths of that line."""
    line = target - start
    along = (beta - start) @ line / (line @ line)
    return float(np.linalg.norm(beta - start - np.outer(along, line), axis=1).max() / np.linalg.norm(line))
