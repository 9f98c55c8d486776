"""Activity and outputs on samples, their similarity, and the representations of a linear network."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Weights
from .base import FromActivity, Observable, Part, View
from .lacking import no_hidden_activity, no_linear_layers, no_samples
from .maps import MODES

INPUTS = Part("x", lambda occasion: occasion.lifted.single_task.x)  # the samples of the task


def _representation(view: View, weights: Weights) -> Float[AnyArray, "sample unit"]:
    hidden = view.net.representation(weights, view[INPUTS])
    assert hidden is not None
    return hidden


def _similarity(view: View, weights: Weights) -> Float[AnyArray, "sample sample"]:
    hidden = _representation(view, weights)
    return hidden @ hidden.T


def _alignment(view: View, weights: Weights) -> Float[AnyArray, "2"]:
    """The larger cosine of each representation with the task's own, Σ s vvᵀ or Σ s² vvᵀ."""
    modes = view[MODES]
    sides = ((weights[0].T @ weights[0], modes.right), (weights[-1] @ weights[-1].T, modes.left))
    return jnp.stack([_best_cosine(gram, vectors, modes.singular_values) for gram, vectors in sides])


def _best_cosine(
    gram: Float[AnyArray, "unit unit"], vectors: Float[AnyArray, "unit mode"], values: Float[AnyArray, " mode"]
) -> Float[AnyArray, ""]:
    shares = jnp.einsum("im,ij,jm->m", vectors, gram, vectors)
    size = jnp.linalg.norm(gram)
    size = jnp.where(size > 0, size, 1.0)
    return jnp.max(jnp.stack([shares @ power / (size * jnp.linalg.norm(power)) for power in (values, values**2)]))


OBSERVABLES = {
    "outputs": Observable(
        ("sample", "feature"),
        lambda view, w: view.net.apply(w, view[INPUTS]),
        no_samples,
        (INPUTS,),
        narrow=True,
        from_activity=FromActivity(lambda activity: activity.given_outputs.copy(), needs_outputs=True),
    ),
    "representation": Observable(
        ("sample", "hidden"),
        _representation,
        no_hidden_activity,
        (INPUTS,),
        from_activity=FromActivity(lambda activity: [h.copy() for h in activity.hidden], by_layer=True),
    ),
    "similarity": Observable(
        ("sample", "sample_"),
        _similarity,
        no_hidden_activity,
        (INPUTS,),
        rotation_invariant=True,
        narrow=True,
        from_activity=FromActivity(
            lambda activity: np.stack([h @ h.T for h in activity.hidden]), axes=("layer", "sample", "sample_")
        ),
    ),
    "input_representation": Observable(("input", "input_"), lambda view, w: w[0].T @ w[0], no_linear_layers),
    "output_representation": Observable(("feature", "feature_"), lambda view, w: w[-1] @ w[-1].T, no_linear_layers),
    "alignment": Observable(
        ("side",),
        _alignment,
        no_linear_layers,
        (MODES,),
        rotation_invariant=True,
        entries={"side": lambda setup: ("input", "output")},
    ),
}
