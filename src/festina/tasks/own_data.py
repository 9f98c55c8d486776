"""Tasks from a user's own samples or moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from .._foundation import checks
from .._foundation.arrays import AnyArray
from .._foundation.checks import is_traced, real_array
from .._foundation.errors import BadInput, shown
from .base import Task, lowest_loss

Names: TypeAlias = Sequence[str] | None


def from_arrays(
    x: ArrayLike,
    y: ArrayLike,
    *,
    items: Names = None,
    inputs: Names = None,
    features: Names = None,
    labels: Mapping[str, ArrayLike] | None = None,
) -> Task:
    """A task from samples: rows of `x` (sample, d_in) and of `y` (sample, d_out).

    `items` name the samples, `inputs` the columns of x, `features` the columns of y. `labels` describe the samples by
    one number per sample and label, such as {"context": [0, 0, 1, 1]}.
    """
    rows, targets = real_array(x, "x", ndim=2), real_array(y, "y", ndim=2)
    if rows.shape[0] != targets.shape[0]:
        raise BadInput(
            f"x has {rows.shape[0]} rows and y has {targets.shape[0]}",
            "one row of x and one row of y for every sample",
            "check that data are rows, not columns; transpose with .T",
        )
    _not_empty(rows, "x")
    _not_empty(targets, "y")
    xp = jnp if is_traced(rows, targets) else np
    count = rows.shape[0]
    return Task(
        cov_yx=targets.T @ rows / count,
        cov_x=rows.T @ rows / count,
        x=rows,
        y=targets,
        power=xp.sum(targets**2) / count,
        labels=_labels(labels, count),
        items=_names(items, count, "items"),
        inputs=_names(inputs, rows.shape[1], "inputs"),
        features=_names(features, targets.shape[1], "features"),
    )


def from_moments(
    cov_yx: ArrayLike, cov_x: ArrayLike, cov_y: ArrayLike | None = None, *, inputs: Names = None, features: Names = None
) -> Task:
    """A task from Σʸˣ (d_out, d_in) and Σˣ (d_in, d_in); with Σʸ (d_out, d_out) the loss is absolute.

    Linear networks and their theories need no more than these.
    """
    yx, xx = real_array(cov_yx, "cov_yx", ndim=2), real_array(cov_x, "cov_x", ndim=2)
    _not_empty(yx, "cov_yx")
    d_out, d_in = yx.shape
    _square(xx, "cov_x", d_in)
    yy = None if cov_y is None else real_array(cov_y, "cov_y", ndim=2)
    if yy is not None:
        _square(yy, "cov_y", d_out)
    task = Task(
        cov_yx=yx,
        cov_x=xx,
        power=None if yy is None else (jnp if is_traced(yy) else np).trace(yy),
        inputs=_names(inputs, d_in, "inputs"),
        features=_names(features, d_out, "features"),
    )
    if not is_traced(task, yy):
        _refuse_impossible(task, yy)
    return task


def _refuse_impossible(task: Task, cov_y: Float[np.ndarray, "out out"] | None) -> None:
    """Refuse moments that no data can have."""
    # Rounding in a sum of products; far below any wrong entry that matters.
    close = 1e-8
    for name, matrix in (("cov_x", task.cov_x), ("cov_y", cov_y)):
        if matrix is None:
            continue
        size = np.abs(matrix).max()
        if np.abs(matrix - matrix.T).max() > close * size:
            raise BadInput(f"{name} is not symmetric", "a matrix of second moments", f"use ({name} + {name}.T) / 2")
        lowest = np.linalg.eigvalsh(matrix)[0]
        if lowest < -close * size:
            raise BadInput(
                f"{name} has a negative eigenvalue, {lowest:.3g}", "a positive semidefinite matrix", "check the moments"
            )
    unexplained = np.abs(task.cov_yx - task.target() @ task.cov_x).max()
    if unexplained > close * np.abs(task.cov_yx).max():
        raise BadInput(
            f"cov_yx has a part ({unexplained:.3g}) along inputs that have no variance in cov_x",
            "cov_yx in the row space of cov_x, as for any data",
            "compute both moments from the same samples",
        )
    if cov_y is not None and lowest_loss(task) < -close * np.trace(cov_y):
        raise BadInput(
            f"cov_y explains less than cov_yx does: the lowest loss would be {lowest_loss(task):.3g}",
            "cov_y of the same data as cov_yx",
            "compute all moments from the same samples",
        )


def _square(matrix: Float[AnyArray, "row column"], argument: str, size: int) -> None:
    if matrix.shape != (size, size):
        raise BadInput(
            f"{argument} has shape {matrix.shape}", f"shape ({size}, {size}), to match cov_yx", f"check {argument}"
        )


def _not_empty(array: Float[AnyArray, "row column"], argument: str) -> None:
    if 0 in array.shape:
        raise BadInput(f"{argument} has shape {array.shape}", "at least one row and one column", "give some data")


def _labels(labels: object, count: int) -> dict[str, Float[AnyArray, " sample"]] | None:
    if labels is None:
        return None
    if not isinstance(labels, Mapping):
        raise BadInput(
            f"labels is {type(labels).__name__}",
            "a dict with one number per sample for every label",
            'give labels={"context": [0, 0, 1, 1]}',
        )
    checked = {}
    for name, values in labels.items():
        if not isinstance(name, str):
            raise BadInput(f"a label with the name {shown(name)}", "texts as names of labels", 'name it "context"')
        if _is_text(values):
            raise BadInput(
                f"label {name!r} is {type(values).__name__} of text, such as {str(values[0])!r}",
                "one number for every sample",
                f"number them: numpy.unique({name}, return_inverse=True)[1]",
            )
        numbers = real_array(values, f"label {name!r}", ndim=1)
        if len(numbers) != count:
            raise BadInput(
                f"label {name!r} has {len(numbers)} numbers for {count} samples",
                "one number for every sample",
                f"give {count} numbers for {name!r}",
            )
        checked[name] = numbers
    return checked or None


def _is_text(values: object) -> bool:
    entries = values if isinstance(values, (list, tuple, np.ndarray)) else ()
    return len(entries) > 0 and all(isinstance(value, (str, bytes)) for value in entries)


def _names(names: Names, count: int, argument: str) -> tuple[str, ...] | None:
    return None if names is None else checks.names(names, argument, count)
