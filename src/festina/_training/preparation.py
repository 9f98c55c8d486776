"""The start of a run: the view that its observables read, and the initial weights."""

from __future__ import annotations

import jax
import numpy as np

from .._foundation.arrays import AnyArray, Weights
from .._foundation.precision import to_numpy
from .._setup.setup import Setup
from ..inits.base import draws
from ..observables.base import Occasion, View
from ..observables.compared_points import Points
from ..observables.request import view_in_training
from .sequence import Before


def prepared(
    setup: Setup,
    seeds: tuple[int, ...],
    names: tuple[str, ...],
    before: Before,
    points: Points | None = None,
) -> tuple[View, Weights]:
    """The view of the named observables, and initial weights with a leading seed axis, in the run's precision."""
    # Draws are made in float64 and rounded, so that both precisions start alike.
    with jax.enable_x64(True):
        weights = before.weights
        if weights is None:
            weights = draws(setup.init, setup.net, setup.for_init, np.asarray(seeds))
        start = weights if before.start is None else before.start
        view = view_in_training(Occasion(setup, points, before.tasks, weights, start), names)

    def cast(leaf: AnyArray | np.generic) -> AnyArray | np.generic:
        # Always a new array: JAX remembers what it made of an old one, in the precision of that time.
        return np.array(leaf, setup.precision) if leaf.dtype.kind == "f" else leaf

    return jax.tree.map(cast, to_numpy((view, weights)))
