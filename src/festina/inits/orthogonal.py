"""Random orthogonal layers."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._formulas.modes import NOTHING
from .._foundation.arrays import RandomKey, Weights
from .._foundation.checks import is_traced, positive
from .._foundation.errors import BadInput, shown
from .._foundation.nouns import noun, settle, static
from ..nets.base import Net
from ..tasks.base import Task
from ._pieces import Shape, chain_shapes, example_with, map_layers, orthogonal
from .base import Init


@noun
class Orthogonal(Init):
    """Every layer is `gain` times a random matrix with orthonormal rows or columns; biases zero.

    With `determinant` "same" or "opposite" the determinant of the map has the same sign as that of the target, or the
    opposite one. Balanced square layers cannot change this sign, so that with the opposite one they never learn the
    whole target.
    """

    gain: Any = 1.0
    determinant: str | None = static(default=None)

    def __post_init__(self):
        settle(self, gain=positive(self.gain, "gain"))
        if self.determinant is not None and not (
            isinstance(self.determinant, str) and self.determinant in ("same", "opposite")
        ):
            raise BadInput(
                f"determinant = {shown(self.determinant)}",
                "None, 'same' or 'opposite'",
                "say how the sign of the map's determinant compares with that of the target",
            )

    @classmethod
    def example(cls) -> tuple[Task, Net, Orthogonal]:
        return example_with(cls(0.7))

    def draw(self, key: RandomKey, net: Net, task: Task) -> Weights:
        def layer(k: RandomKey, shape: Shape) -> Array:
            rows, columns = shape[0], math.prod(shape[1:])
            square = orthogonal(k, max(rows, columns))
            return self.gain * square[:rows, :columns].reshape(shape)

        weights = map_layers(key, net, task, layer)
        if self.determinant is None:
            return weights
        wanted = _target_sign(self, net, task) * (1 if self.determinant == "same" else -1)
        for w in weights:
            wanted = wanted * jnp.linalg.slogdet(w)[0]
        return (weights[0].at[:, 0].multiply(jnp.where(wanted < 0, -1.0, 1.0)), *weights[1:])


def _target_sign(init: Orthogonal, net: Net, task: Task) -> Float[Array, ""]:
    """The sign of the determinant of the task's target, where both it and the layers have one."""
    shapes = chain_shapes(init, net, task)
    if len({size for shape in shapes for size in shape}) > 1:
        sizes = "-".join(str(size) for size in (task.d_in, *(rows for rows, _ in shapes)))
        raise BadInput(
            f"determinant = {init.determinant!r} in a network {sizes}",
            "square layers, all of one width: others have no determinant",
            f"use hidden widths {task.d_in} in a task with as many outputs as inputs, or determinant=None",
        )
    target = task.target()
    if not is_traced(target):
        values = np.linalg.svd(target, compute_uv=False)
        if values[-1] <= NOTHING * values[0]:
            raise BadInput(
                f"determinant = {init.determinant!r} and a singular target: "
                f"singular values from {values[0]:.3g} to {values[-1]:.3g}",
                "a target of full rank: the determinant of this one has no sign",
                "use a task of full rank, or determinant=None",
            )
    return jnp.linalg.slogdet(jnp.asarray(target))[0]
