"""Curvatures of the loss of a linear network at given weights, by automatic differentiation."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..._foundation.arrays import AnyArray
from ..._foundation.precision import in_double
from ..._foundation.program_memory import compiled
from ...tasks.base import Task


def curvatures(task: Task, points: Sequence[Sequence[np.ndarray]]) -> Float[np.ndarray, "point direction"]:
    """Eigenvalues of the Hessian at each point, its layers from the first on; all points have layers of one shape."""
    shapes = [layer.shape for layer in points[0]]
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])

    def loss(flat: AnyArray) -> AnyArray:
        layers = [flat[a:b].reshape(shape) for a, b, shape in zip(ends[:-1], ends[1:], shapes, strict=True)]
        weights = layers[0]
        for layer in layers[1:]:
            weights = layer @ weights
        # The loss up to a constant.
        return 0.5 * jnp.sum(weights * (weights @ task.cov_x)) - jnp.sum(weights * task.cov_yx)

    hessian = in_double(compiled(jax.hessian(loss)))
    flat = [np.concatenate([np.ravel(layer) for layer in point]).astype(float) for point in points]
    return np.array([np.linalg.eigvalsh(hessian(point)) for point in flat])
