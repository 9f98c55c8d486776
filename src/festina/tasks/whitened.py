"""The same task with white inputs, whose second moments are the identity."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from .._formulas.modes import NOTHING
from .._foundation.checks import instance, is_traced
from .._foundation.errors import BadInput
from .base import Task
from .own_data import from_arrays, from_moments

__all__ = ["whitened"]


def whitened(task: Task) -> Task:
    """The task in the inputs Σˣ^(−1/2) x, whose second moments are the identity.

    Names of inputs are dropped, since each new input mixes all old ones.
    """
    instance(task, "task", Task, "build one with festina.tasks, such as tasks.hierarchy()")
    if is_traced(task):
        raise BadInput("a traced task", "concrete numbers", "whiten the task outside jit, grad and vmap")
    variances, vectors = np.linalg.eigh(task.cov_x)
    if variances[0] <= NOTHING * variances[-1]:
        raise BadInput(
            f"cov_x is singular: its smallest eigenvalue is {variances[0]:.3g}, its largest {variances[-1]:.3g}",
            "inputs that vary in every direction",
            "drop inputs that depend on the others, or give more samples",
        )
    if task.samples is not None:
        return from_arrays(white_rows(task.x), task.y, items=task.items, features=task.features, labels=task.labels)
    white = from_moments(
        task.cov_yx @ (vectors / np.sqrt(variances)) @ vectors.T, np.eye(task.d_in), features=task.features
    )
    return dataclasses.replace(white, power=task.power)


def white_rows(x: Float[np.ndarray, "sample d_in"]) -> Float[np.ndarray, "sample d_in"]:
    """Rows Σˣ^(−1/2) x, from the SVD of the samples themselves: their second moments are I to rounding."""
    left, _, right = np.linalg.svd(x, full_matrices=False)
    return np.sqrt(len(x)) * left @ right
