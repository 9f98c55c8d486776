"""One hidden layer of linear units whose gates are given: for every sample, each unit is on, off or in between."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Weights
from .._foundation.checks import is_traced, real_array
from .._foundation.errors import BadInput
from .._foundation.nouns import noun, settle, static
from ..tasks.base import Task
from ._memory import once_per_task
from ._weights import checked_call
from .base import Activity, Net, Outputs, Rows, Shapes, layer_shapes

__all__ = ["GatedUnits"]


class OneLayer(Net):
    """What a layer of gated units and its form lifted on a task share."""

    on: Any
    sees: Any

    @property
    def hidden(self) -> tuple[int, ...]:
        return (self.on.shape[1],)

    def shapes(self, d_in: int, d_out: int) -> Shapes:
        return layer_shapes(d_in, self.hidden, d_out)

    def _inner(self, first: Float[AnyArray, "unit input"], x: Rows) -> Activity:
        return x @ (first if self.sees is None else self.sees.astype(first.dtype) * first).T


@noun
class GatedUnits(OneLayer):
    """y = W₂ (g ∘ W₁x): linear units with gates g, one row for each sample or one for all.

    It is `Gated` with a pathway for each unit, as one layer: nets that differ in their gates alone share one compiled
    program, whatever pathways their units form. `sees` says which inputs reach each unit, 1 or 0 (default: all).

    Examples:
        >>> GatedUnits(np.array([[1, 1, 0], [0, 1, 1]])).hidden
        (3,)
    """

    on: Float[AnyArray, "sample unit"]
    sees: Float[AnyArray, "unit input"] | None = None

    def __post_init__(self):
        if is_traced(self.on, self.sees):
            return
        settle(self, on=real_array(self.on, "on", ndim=2))
        if not self.on.size:
            raise BadInput(f"on of shape {self.on.shape}", "a row of gates, one for each unit", "give on=[[1, 0, 1]]")
        if self.sees is not None:
            settle(self, sees=real_array(self.sees, "sees", ndim=2))
            if len(self.sees) != self.on.shape[1]:
                raise BadInput(
                    f"sees of shape {self.sees.shape}", f"a row for each of {self.hidden[0]} units", "sees=None"
                )

    @classmethod
    def example(cls) -> GatedUnits:
        return cls(np.array([[1.0, 1.0, 0.5, 0.0, 1.0]]))

    def representations(self, weights: Weights, x: Rows) -> tuple[Activity, ...]:
        weights, x = checked_call(self, weights, x)
        if not is_traced(x) and len(self.on) not in (1, len(x)):
            raise BadInput(
                f"{len(x)} rows of x", f"{len(self.on)}, as many as rows of gates", "give the samples of the task"
            )
        inner = self._inner(weights[0], x)
        return (self.on.astype(inner.dtype) * inner,)

    def apply(self, weights: Weights, x: Rows) -> Outputs:
        weights, x = checked_call(self, weights, x)
        return self.representations(weights, x)[0] @ weights[1].T

    def refuse_unfit(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            if task.samples is None or len(self.on) not in (1, task.samples):
                raise BadInput(
                    f"gates of {len(self.on)} samples on a task with {task.samples or 'no'} samples",
                    "a row of gates for each sample, or one for all",
                    "give on of shape (samples, units)",
                )
            if self.sees is not None and self.sees.shape[1] != task.d_in:
                raise BadInput(
                    f"sees with {self.sees.shape[1]} columns", f"{task.d_in}, one for each input", "sees=None"
                )

    def lifted(self, task: Task) -> tuple[Net, Task]:
        return _lifted(self, task)


@noun
class UnitsWithGates(OneLayer):
    """The same net, with the gates of every sample appended to its row of inputs."""

    on: Float[AnyArray, "one unit"]  # only its shape
    sees: Float[AnyArray, "unit input"] | None
    d_in: int = static()

    def shapes(self, d_in: int, d_out: int) -> Shapes:
        return layer_shapes(self.d_in, self.hidden, d_out)

    def representations(self, weights: Weights, x: Rows) -> tuple[Activity, ...]:
        return (x[:, self.d_in :] * self._inner(weights[0], x[:, : self.d_in]),)

    def apply(self, weights: Weights, x: Rows) -> Outputs:
        return self.representations(weights, x)[0] @ weights[1].T


@once_per_task
def _lifted(net: GatedUnits, task: Task) -> tuple[UnitsWithGates, Task]:
    if is_traced(net, task):
        raise BadInput(
            "a net with gates or its task, traced", "concrete gates and samples", "lift outside jit, grad, vmap"
        )
    net.refuse_unfit([task])
    rows, y = np.asarray(task.x), np.asarray(task.y)
    x = np.concatenate([rows, np.broadcast_to(net.on, (len(rows), net.hidden[0]))], axis=1)
    moments = dict(cov_yx=y.T @ x / len(x), cov_x=x.T @ x / len(x), stated_spectrum=None, stated_vectors=None)
    plain = dict(inputs=None, recipe=None)
    return UnitsWithGates(net.on[:1], net.sees, task.d_in), dataclasses.replace(task, x=x, **moments, **plain)
