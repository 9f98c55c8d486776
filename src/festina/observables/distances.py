"""Pairs of samples: how far apart they are in every hidden layer and in the output, and along their targets.

For a pair (x₁, x₂) with activities h₁, h₂ and outputs f₁, f₂ [vanrossem2024, eqs. 5 to 8]:

    dh = h₂ − h₁    dy = f₂ − f₁    Δy* = y₂ − y₁
    distance H = |dh|²    output_distance P = |dy|²    output_alignment w = P − dy·Δy*

All are squared distances, summed over units and not divided by their number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from .._foundation.arrays import AnyArray, Weights
from .._foundation.nouns import noun
from .._setup.setup import Setup
from ..tasks.base import TaskSequence
from .base import FromActivity, Observable, Occasion, Part, RecordedActivity, View
from .compared_points import gaps, products
from .lacking import no_hidden_activity, no_samples

OfPairs: TypeAlias = Float[AnyArray, " pair"]


@noun
class Compared:
    """The samples that are compared, and what is known of every pair of them."""

    inputs: Float[AnyArray, "sample ..."]
    pairs: Int[AnyArray, "pair 2"]  # rows of `inputs`
    target_changes: Float[AnyArray, "pair feature"]  # Δy*
    mean_targets: Float[AnyArray, "pair feature"]


def _compared(occasion: Occasion) -> Compared:
    points = occasion.points
    assert points is not None
    rows, numbers = np.unique(points.pairs, return_inverse=True)
    first, second = (np.asarray(points.targets)[points.pairs[:, side]] for side in (0, 1))
    return Compared(
        np.asarray(points.inputs)[rows], numbers.reshape(points.pairs.shape), second - first, (first + second) / 2
    )


_COMPARED = Part("compared", _compared)


def _changes(view: View, values: Float[AnyArray, "sample unit"]) -> Float[AnyArray, "pair unit"]:
    """v₂ − v₁ of every pair."""
    pairs = view[_COMPARED].pairs
    return values[pairs[:, 1]] - values[pairs[:, 0]]


def _distances(view: View, weights: Weights) -> Float[AnyArray, "layer pair"]:
    layers = view.net.representations(weights, view[_COMPARED].inputs)
    return jnp.stack([jnp.sum(_changes(view, h) ** 2, axis=1) for h in layers])


def _output_distance(view: View, outputs: Float[AnyArray, "sample feature"]) -> OfPairs:
    return jnp.sum(_changes(view, outputs) ** 2, axis=1)


def _output_alignment(view: View, outputs: Float[AnyArray, "sample feature"]) -> OfPairs:
    """w = P − dy·Δy*, without subtracting P and dy·Δy*, which are nearly equal near the end."""
    changes = _changes(view, outputs)
    return jnp.sum(changes * (changes - view[_COMPARED].target_changes), axis=1)


def _mean_gap(view: View, outputs: Float[AnyArray, "sample feature"]) -> OfPairs:
    compared = view[_COMPARED]
    means = (outputs[compared.pairs[:, 0]] + outputs[compared.pairs[:, 1]]) / 2
    return jnp.sum((means - compared.mean_targets) ** 2, axis=1)


def _mean_gap_of_activity(activity: RecordedActivity) -> OfPairs:
    errors, pairs = activity.errors, activity.points.pairs
    return np.sum(((errors[pairs[:, 0]] + errors[pairs[:, 1]]) / 2) ** 2, axis=1)


def _cosine_of_activity(activity: RecordedActivity) -> Float[np.ndarray, "layer pair"]:
    """The cosine of dh with dh at the first record; NaN where either is 0."""
    pairs = activity.points.pairs
    layers = list(zip(activity.hidden, activity.first, strict=True))
    dots = np.stack([products(now, first, pairs) for now, first in layers])
    sizes = np.stack([np.sqrt(gaps(now, pairs)) * np.sqrt(gaps(first, pairs)) for now, first in layers])
    return np.where(sizes > 0, dots / sizes, np.nan)


def _no_points(setup: Setup) -> str:
    """Require samples to compare, the same ones throughout, and layers in which to compare them."""
    if setup.net.has_paths:
        return "a gated net is a graph of nodes, and has no layers to compare points in"
    return "the points of a sequence of tasks change" if isinstance(setup.task, TaskSequence) else no_samples(setup)


def _of_outputs(
    read: Callable[[View, Float[AnyArray, "sample feature"]], OfPairs],
    of_activity: Callable[[RecordedActivity], OfPairs],
    needs_targets: bool = True,
) -> Observable:
    """What is read off the outputs of the samples that are compared."""
    return Observable(
        ("pair",),
        lambda view, w: read(view, view.net.apply(w, view[_COMPARED].inputs)),
        _no_points,
        (_COMPARED,),
        lambda view, matrix: read(view, view[_COMPARED].inputs @ matrix.T),
        narrow=True,
        from_activity=FromActivity(of_activity, needs_outputs=True, needs_targets=needs_targets),
    )


OBSERVABLES = {
    "distance": Observable(
        ("layer", "pair"),
        _distances,
        lambda setup: _no_points(setup) or no_hidden_activity(setup),
        (_COMPARED,),
        rotation_invariant=True,
        narrow=True,
        from_activity=FromActivity(lambda a: np.stack([gaps(h, a.points.pairs) for h in a.hidden])),
    ),
    "output_distance": _of_outputs(
        _output_distance, lambda a: gaps(a.given_outputs, a.points.pairs), needs_targets=False
    ),
    "output_alignment": _of_outputs(
        # Not P − dy·Δy*, which near the end is a small difference of large numbers.
        _output_alignment,
        lambda a: products(a.given_outputs, a.errors, a.points.pairs),
    ),
    "mean_gap": _of_outputs(_mean_gap, _mean_gap_of_activity),
    "cosine": Observable(("layer", "pair"), from_activity=FromActivity(_cosine_of_activity, needs_first=True)),
}
