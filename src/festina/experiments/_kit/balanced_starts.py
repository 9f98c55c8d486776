"""Two-layer linear networks of any shape whose layers start λ-balanced, with a chosen sign of the determinant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import tasks
from ...tasks.base import Task


def possible(shape: Sequence[int], lam: float) -> bool:
    """Whether layers of these widths, (inputs, hidden units, outputs), can be balanced at λ."""
    return lam == 0 or shape[1] <= (shape[2] if lam > 0 else shape[0])


def spaced_task(shape: Sequence[int], variance: float, spectrum: tuple[float, float], seed: int) -> Task:
    """White inputs of one variance, and a target of evenly spaced singular values and positive determinant.

    `spectrum` holds the largest and the least singular value; singular vectors are random.
    """
    count = min(shape[0], shape[2])
    left, right = _rotations(np.random.default_rng([seed, 0, *shape]), shape[2], shape[0])
    target = left[:, :count] * np.linspace(*spectrum, count) @ right[:, :count].T
    return tasks.from_moments(variance * target, variance * np.eye(shape[0]), variance * target @ target.T)


def start(shape: Sequence[int], lam: float, scale: float, wrong_sign: bool, seed: int) -> list[np.ndarray]:
    """Layers with W₂ᵀW₂ − W₁W₁ᵀ = λI, as `inits.Balanced` draws them, with a determinant of a chosen sign.

    The nonzero singular values of the map W₂W₁ are all `scale`.
    """
    inputs, hidden, outputs = shape
    left, right, middle = _rotations(np.random.default_rng([seed, 1, *shape]), outputs, inputs, hidden)
    if wrong_sign:
        left[:, 0] *= -1
    count = min(shape)
    used = np.where(np.arange(hidden) < count, 1.0, 0.0)
    half = np.hypot(lam / 2, scale * used)
    # A hidden direction that does not contribute to the map has weight in the larger layer only.
    first, last = np.sqrt(np.maximum(half - lam / 2, 0)), np.sqrt(np.maximum(half + lam / 2, 0))
    into, out = min(inputs, hidden), min(outputs, hidden)
    return [middle[:, :into] * first[:into] @ right[:, :into].T, left[:, :out] * last[:out] @ middle[:, :out].T]


def _rotations(rng: np.random.Generator, *widths: int) -> list[np.ndarray]:
    """Random orthogonal matrices of determinant +1."""
    matrices = [np.linalg.qr(rng.normal(size=(width, width)))[0] for width in widths]
    for matrix in matrices:
        matrix[:, 0] *= np.linalg.slogdet(matrix)[0]
    return matrices
