"""The loss and its gradient."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Number, Weights
from .._setup.loss import gradient, loss
from .base import FromActivity, Observable, RecordedActivity, View


def norm(weights: Weights) -> Float[AnyArray, ""]:
    """The Euclidean norm of all numbers of a tree of arrays."""
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(weights)))


def _gradient_norm(view: View, weights: Weights) -> Float[AnyArray, ""]:
    return norm(gradient(view.net, view.evidence)(weights, None)[1])


def _of_outputs(activity: RecordedActivity) -> Number:
    return 0.5 * np.mean(np.sum(activity.errors**2, axis=1))


OBSERVABLES = {
    "loss": Observable(
        (),
        lambda view, w: loss(view.net, view.evidence, w),
        narrow=True,
        from_activity=FromActivity(_of_outputs, needs_outputs=True, needs_targets=True),
    ),
    "gradient_norm": Observable((), _gradient_norm, rotation_invariant=True, narrow=True),
}
