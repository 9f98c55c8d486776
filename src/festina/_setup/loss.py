"""The one loss of festina, ½·mean ‖y − f(x)‖², from samples or from second moments.

The loss, its gradient and the limit beyond which training has diverged are all computed from the *evidence* of a task:
its second moments where a linear net is trained on all samples at once, its samples otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Float, Int, UInt32
from scipy.linalg import get_lapack_funcs

from .._foundation.arrays import AnyArray, Number, RandomKey, Weights
from .._foundation.checks import is_traced
from .._foundation.errors import BadInput
from .._foundation.nouns import noun
from ..nets.base import Net
from ..tasks.base import Task


@noun
class Moments:
    """The evidence of a task for a linear net: the cost of its loss does not grow with the number of samples."""

    cov_x: Float[AnyArray, "d_in d_in"]
    target: Float[AnyArray, "d_out d_in"]  # the linear map of smallest loss
    floor: Number  # the loss of that map
    root: Float[AnyArray, "d_in d_in"] | None  # R with Σˣ = R Rᵀ; None where Σˣ is traced

    @classmethod
    def of(cls, task: Task) -> Moments:
        return cls(task.cov_x, task.target(), task.floor(), None if is_traced(task.cov_x) else _root(task.cov_x))


def _root(cov_x: Float[AnyArray, "d_in d_in"]) -> Float[np.ndarray, "d_in d_in"]:
    """R with Σ = R Rᵀ, by Cholesky's method with pivots: directions in which nothing varies are exactly 0 in it."""
    cov_x = np.asarray(cov_x, float)
    (factorise,) = get_lapack_funcs(("pstrf",), (cov_x,))
    factor, pivots, rank, _ = factorise(cov_x, lower=1)
    root = np.zeros_like(cov_x)
    root[pivots - 1, :rank] = np.tril(factor)[:, :rank]
    return root


@noun
class Samples:
    """The evidence of a task for any net."""

    x: Float[AnyArray, "sample d_in"]
    y: Float[AnyArray, "sample d_out"]


def evidence_of(net: Net, task: Task, *, full_batch: bool = True) -> Moments | Samples:
    """What the loss of a net is computed from: second moments where they suffice, samples otherwise."""
    if net.linear and full_batch:
        return Moments.of(task)
    if task.samples is None:
        raise BadInput(
            f"a task without samples for {net!r}" + ("" if full_batch else " trained on batches"),
            "samples x and y",
            "use tasks.from_arrays(x, y), or a linear net with a full-batch rule",
        )
    return Samples(task.x, task.y)


def next_key(noise: UInt32[AnyArray, 2] | None) -> tuple[UInt32[AnyArray, 2] | None, RandomKey | None]:
    """The next random state, and a key for one step of a noisy net; both are None for other nets.

    The random state (`noise`) is the data of a random key, which every device and NumPy can hold.
    """
    if noise is None:
        return None, None
    left, key = jax.random.split(jax.random.wrap_key_data(jnp.asarray(noise)))
    return jax.random.key_data(left), key


def loss(
    net: Net,
    evidence: Moments | Samples,
    weights: Weights,
    rows: Int[AnyArray, " batch"] | None = None,
    key: RandomKey | None = None,
) -> Float[AnyArray, ""]:
    """½·mean ‖y − f(x)‖² over all samples, or over `rows` of them; with a key, of a noisy net as it is trained."""
    if isinstance(evidence, Moments):
        return loss_of_map(evidence, net.map(weights))
    x, y = (evidence.x, evidence.y) if rows is None else (evidence.x[rows], evidence.y[rows])
    outputs = net.apply(weights, x) if key is None else net.apply_in_training(weights, x, key)
    error = outputs - y
    return 0.5 * jnp.sum(error * error) / x.shape[0]


def training_loss(
    net: Net,
    evidence: Moments | Samples,
    weights: Weights,
    rows: Int[AnyArray, " batch"] | None = None,
    key: RandomKey | None = None,
) -> Float[AnyArray, ""]:
    """A function whose value is the loss and whose gradient is the one that training follows.

    In a net with several ranks this is not the gradient of the loss: each rank descends the error that the lower ranks
    leave.
    """
    if net.training == "joint":
        return loss(net, evidence, weights, rows, key)
    if not isinstance(evidence, Moments):
        raise BadInput(
            "sequential training on batches", "all samples at once", "use GradientDescent, or train jointly: ranks=None"
        )
    lower, descents = 0.0, 0.0
    for matrix in net.maps_by_rank(weights):
        descents = descents + loss_of_map(evidence, jax.lax.stop_gradient(lower) + matrix)
        lower = lower + matrix
    value = jax.lax.stop_gradient(loss_of_map(evidence, lower))  # pyright: ignore[reportArgumentType]
    return value + descents - jax.lax.stop_gradient(descents)


def loss_of_map(evidence: Moments, matrix: Float[AnyArray, "d_out d_in"]) -> Float[AnyArray, ""]:
    """The loss of a linear map."""
    # In this form a vanishing loss keeps its digits; ½ tr Σʸ − … would lose them.
    return _half_square(matrix - evidence.target, evidence.cov_x, evidence.root) + evidence.floor


@jax.custom_jvp
def _half_square(
    error: Float[AnyArray, "d_out d_in"],
    cov_x: Float[AnyArray, "d_in d_in"],
    root: Float[AnyArray, "d_in d_in"] | None,
) -> Float[AnyArray, ""]:
    """½ tr(E Σ Eᵀ) = ½|E R|², with its gradient EΣ: JAX, which does not know that Σ = Σᵀ, would take two products.

    The sum of squares is never below 0, and stays accurate when it is tiny: errors along directions in which the
    inputs do not vary leave rounding of either sign in E Σ Eᵀ. Where the gradient is computed as well, the value is
    of the form E Σ Eᵀ, which shares its product.
    """
    return 0.5 * (jnp.sum((error @ cov_x) * error) if root is None else jnp.sum((error @ root) ** 2))


def _half_square_and_change(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """The value of `_half_square`, and its change along changes of the error and of the covariance."""
    (error, cov_x, _), (error_change, cov_change, _) = primals, tangents
    slope = error @ cov_x
    change = jnp.zeros((), slope.dtype)
    if not isinstance(error_change, SymbolicZero):
        change += jnp.sum(slope * error_change)
    if not isinstance(cov_change, SymbolicZero):
        change += 0.5 * jnp.sum((error @ cov_change) * error)
    return 0.5 * jnp.sum(slope * error), change


_half_square.defjvp(_half_square_and_change, symbolic_zeros=True)


def gradient(
    net: Net, evidence: Moments | Samples
) -> Callable[[Weights, Int[AnyArray, " batch"] | None], tuple[Float[AnyArray, ""], Weights]]:
    """The function `(weights, rows) → (loss, gradient that training follows)`."""
    return jax.value_and_grad(lambda weights, rows: training_loss(net, evidence, weights, rows))


def divergence_limit(evidence: Moments | Samples, begin: Float[AnyArray, ""]) -> Float[AnyArray, ""]:
    """The loss above which training counts as diverged: far above the initial loss `begin` and that of zero outputs."""
    if isinstance(evidence, Moments):
        silent = 0.5 * jnp.sum((evidence.target @ evidence.cov_x) * evidence.target) + evidence.floor
    else:
        silent = 0.5 * jnp.mean(jnp.sum(evidence.y**2, axis=1))
    return 1e8 * jnp.maximum(silent, begin)
