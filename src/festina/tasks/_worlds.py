"""Tasks of items shown one-hot, defined by their similarity C = YᵀY/N with known eigenvalues η and eigenvectors.

Features are scaled by 1/√N, so that the similarity does not depend on their number N. With infinitely
many features y is the square root of C, and Σʸˣ has singular values √η/P for P items, with the eigenvectors of C
as right vectors. With N sampled features the spectrum is off by order N^(−1/2), and degenerate levels split.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float
from scipy.linalg import helmert

from .._foundation import checks
from .._foundation.checks import whole
from .base import Task
from .own_data import from_arrays

Draw = Callable[[np.random.Generator, int], Float[np.ndarray, "item feature"]]


def world(
    eigenvalues: Float[np.ndarray, " mode"],
    vectors: Float[np.ndarray, "item mode"],
    *,
    features: int | None,
    seed: int,
    items: Sequence[str] | None = None,
    draw: Draw | None = None,
) -> Task:
    """The task of a similarity with these eigenvalues and orthonormal vectors.

    `draw(rng, N)` gives N features of unit scale; they are Gaussian unless it is given.
    """
    seed = checks.seed(seed)
    order = np.argsort(-eigenvalues, kind="stable")
    eigenvalues, vectors = eigenvalues[order], vectors[:, order]
    root = vectors * np.sqrt(eigenvalues) @ vectors.T
    count = len(root)
    names = [f"item {i}" for i in range(count)] if items is None else items
    if features is not None:
        number = whole(features, "features")
        rng = np.random.default_rng(seed)
        features_of_items = root @ rng.normal(size=(count, number)) if draw is None else draw(rng, number)
        return from_arrays(np.eye(count), features_of_items / np.sqrt(number), items=names, inputs=names)
    task = from_arrays(np.eye(count), root, items=names, inputs=names)
    return dataclasses.replace(task, stated_spectrum=np.sqrt(eigenvalues) / count, stated_vectors=vectors)


def contrasts_of(count: int) -> Float[np.ndarray, "thing contrast"]:
    """Orthonormal contrasts between `count` things: each against the mean of those before it."""
    return helmert(count).T


def counts(value: object, argument: str) -> tuple[int, ...]:
    """A whole number, or a list of them, as a tuple."""
    if isinstance(value, (int, np.integer)):
        return (whole(value, argument),)
    do = f"give a list such as {argument}=(4, 2, 2)"
    return tuple(whole(number, argument) for number in checks.listed(value, argument, "whole numbers", do, empty=True))
