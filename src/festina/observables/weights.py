"""The distances of weights and tangent kernel from their initial values, and the balance of neighbouring layers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Float

from .._formulas import tangent_kernel
from .._formulas.balance import imbalances
from .._foundation.arrays import AnyArray, Weights
from .base import Observable, Occasion, Part, View
from .lacking import no_chain_of_layers, not_linear
from .loss import norm


def _cov_x(occasion: Occasion) -> Float[AnyArray, "in in"]:
    """Σˣ of the first task of a sequence, so that a mere change of task does not change the kernel."""
    return (occasion.tasks or (occasion.lifted.single_task,))[0].cov_x


_START = Part("start", lambda occasion: occasion.start, of_seed=lambda setup, seed: setup.weights(seed))
_COV_X = Part("cov_x", _cov_x)


def _kernel_distance(view: View, weights: Weights) -> Float[AnyArray, ""]:
    start = tangent_kernel.tangent(view[_START])
    return tangent_kernel.distance(start, tangent_kernel.tangent(weights), view[_COV_X])


def _parameter_distance(view: View, weights: Weights) -> Float[AnyArray, ""]:
    return norm(jax.tree.map(jnp.subtract, weights, view[_START]))


OBSERVABLES = {
    "kernel_distance": Observable((), _kernel_distance, not_linear, (_START, _COV_X)),
    "parameter_distance": Observable((), _parameter_distance, needs=(_START,)),
    "balance": Observable(("layer",), lambda view, w: imbalances(w)[0], no_chain_of_layers, rotation_invariant=True),
    "balance_residual": Observable(
        ("layer",), lambda view, w: imbalances(w)[1], no_chain_of_layers, rotation_invariant=True
    ),
    "balance_drift": Observable(
        ("layer",), lambda view, w: imbalances(w, view[_START])[1], no_chain_of_layers, (_START,)
    ),
}
