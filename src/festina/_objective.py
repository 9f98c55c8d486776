"""The one loss of festina, ½·mean ‖y − f(x)‖², from samples or from second moments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from scipy.linalg import get_lapack_funcs

from ._errors import BadInput
from ._noun import is_traced, noun
from ._setup import Net, Task


@noun
class Moments:
    """What a linear net needs of a task: its cost does not grow with the number of samples."""

    cov_x: Any
    target: Any
    floor: Any
    root: Any  # R with Σˣ = R Rᵀ; None where Σˣ is traced

    @classmethod
    def of(cls, task: Task) -> Moments:
        return cls(task.cov_x, task.target(), task.floor(), None if is_traced(task.cov_x) else _root(task.cov_x))


def _root(cov_x: Any) -> np.ndarray:
    """R with Σ = R Rᵀ, by Cholesky's method with pivots: directions in which nothing varies are exactly 0 in it."""
    cov_x = np.asarray(cov_x, float)
    (factorise,) = get_lapack_funcs(("pstrf",), (cov_x,))
    factor, pivots, rank, _ = factorise(cov_x, lower=1)
    root = np.zeros_like(cov_x)
    root[pivots - 1, :rank] = np.tril(factor)[:, :rank]
    return root


@noun
class Samples:
    """What any net needs of a task."""

    x: Any
    y: Any


def evidence(net: Net, task: Task, *, full_batch: bool = True) -> Moments | Samples:
    """What the loss is computed from: moments where they suffice."""
    if net.linear and full_batch:
        return Moments.of(task)
    if task.samples is None:
        raise BadInput(
            f"a task without samples for {net!r}" + ("" if full_batch else " trained on batches"),
            "samples x and y",
            "use tasks.from_arrays(x, y), or a linear net with a full-batch rule",
        )
    return Samples(task.x, task.y)


def next_key(noise: Any) -> tuple[Any, Any]:
    """The noise that is left, and a key for one step of a noisy net; None of both for others.

    Noise is the data of a key, which every device and NumPy can hold.
    """
    if noise is None:
        return None, None
    left, key = jax.random.split(jax.random.wrap_key_data(noise))
    return jax.random.key_data(left), key


def loss(net: Net, seen: Moments | Samples, weights: Any, rows: Any = None, key: Any = None) -> Any:
    """½·mean ‖y − f(x)‖² over all samples, or over `rows` of them; with a key, of a noisy net as it is trained."""
    if isinstance(seen, Moments):
        return loss_of_map(seen, net.map(weights))
    x, y = (seen.x, seen.y) if rows is None else (seen.x[rows], seen.y[rows])
    outputs = net.apply(weights, x) if key is None else net.apply(weights, x, key)  # pyright: ignore[reportCallIssue]
    error = outputs - y
    return 0.5 * jnp.sum(error * error) / x.shape[0]


def descended(net: Any, seen: Moments | Samples, weights: Any, rows: Any = None, key: Any = None) -> Any:
    """The loss, with the slope that training follows.

    The two differ for nets of several ranks only: there, each rank descends the error that the lower ones leave.
    """
    if len(getattr(net, "ranks", ())) < 2:
        return loss(net, seen, weights, rows, key)
    if not isinstance(seen, Moments):
        raise BadInput(
            "sequential training on batches", "all samples at once", "use GradientDescent, or train jointly: ranks=None"
        )
    lower, descents = 0.0, 0.0
    for own in net.maps_by_rank(weights):
        descents = descents + loss_of_map(seen, jax.lax.stop_gradient(lower) + own)
        lower = lower + own
    value = jax.lax.stop_gradient(loss_of_map(seen, lower))
    return value + descents - jax.lax.stop_gradient(descents)


def loss_of_map(seen: Moments, matrix: Any) -> Any:
    """The loss of a linear map."""
    # In this form a vanishing loss keeps its digits; ½ tr Σʸ − … would lose them.
    return _half_square(matrix - seen.target, seen.cov_x, seen.root) + seen.floor


@jax.custom_jvp
def _half_square(error: Any, cov_x: Any, root: Any) -> Any:
    """½ tr(E Σ Eᵀ) = ½|E R|². Its slope EΣ comes with the value; JAX, without Σ = Σᵀ, would take two products for it.

    As a sum of squares it is never below 0, and as small as it is: an error that inputs cannot show, along which they
    do not vary, leaves rounding of either sign in E Σ Eᵀ. With its slope, on the way, the value is of the other form.
    """
    return 0.5 * (jnp.sum((error @ cov_x) * error) if root is None else jnp.sum((error @ root) ** 2))


def _half_square_slope(primals: Any, tangents: Any) -> Any:
    (error, cov_x, _), (moved, turned, _) = primals, tangents
    slope = error @ cov_x
    change = jnp.zeros((), slope.dtype)
    if not isinstance(moved, SymbolicZero):
        change += jnp.sum(slope * moved)
    if not isinstance(turned, SymbolicZero):
        change += 0.5 * jnp.sum((error @ turned) * error)
    return 0.5 * jnp.sum(slope * error), change


_half_square.defjvp(_half_square_slope, symbolic_zeros=True)


def gradient(net: Net, seen: Moments | Samples) -> Callable[[Any, Any], tuple[Any, Any]]:
    """`(weights, rows) → (loss, its slope in the weights)`."""
    return jax.value_and_grad(lambda weights, rows: descended(net, seen, weights, rows))


def blow_up(seen: Moments | Samples, begin: Any) -> Any:
    """A loss so far above those of the start and of a silent network that training has diverged."""
    if isinstance(seen, Moments):
        silent = 0.5 * jnp.sum((seen.target @ seen.cov_x) * seen.target) + seen.floor
    else:
        silent = 0.5 * jnp.mean(jnp.sum(seen.y**2, axis=1))
    return 1e8 * jnp.maximum(silent, begin)
