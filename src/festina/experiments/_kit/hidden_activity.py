"""Activity of all hidden layers, and outputs, of networks with given weights."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ..._foundation.arrays import Weights
from ..._setup.setup import Setup
from ...inits.base import draws


def first_weights(setup: Setup, seeds: Sequence[int]) -> Weights:
    """The weights before training, with a leading seed axis."""
    # Under the same settings as in training, so that nothing is compiled twice.
    with jax.default_matmul_precision("highest"):
        return draws(setup.init, setup.net, setup.for_init, np.asarray(seeds))


def activity(
    setup: Setup, weights: Weights, x: ArrayLike
) -> tuple[Float[np.ndarray, "seed layer sample unit"], Float[np.ndarray, "seed sample feature"]]:
    """Hidden layers, all of one width, and outputs for inputs `x`; weights have a leading seed axis."""
    inputs = np.asarray(x, setup.precision)
    net = setup.net

    def of_seed(single: Weights) -> tuple[np.ndarray, np.ndarray]:
        return np.stack(net.representations(single, inputs)), np.asarray(net.apply(single, inputs))

    with jax.enable_x64(setup.precision == "float64"):
        count = len(jax.tree.leaves(weights)[0])
        activities = [of_seed(jax.tree.map(lambda leaf, k=k: leaf[k], weights)) for k in range(count)]
    hidden, outputs = (np.stack(parts).astype(float) for parts in zip(*activities, strict=True))
    return hidden, outputs
