"""What the weights at the end of training make of inputs: all hidden layers, and the outputs."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .._observables import checked_names
from .._setup import Setup, draws
from .._simulate import train
from .._trajectory import Trajectory


def trained_with_weights(
    setup: Setup, seeds: list[int], observe: tuple[str, ...] = ("loss",), pairs: Any = None
) -> tuple[Trajectory, Any]:
    """What `simulate` returns, and the weights at the end with a leading seed axis."""
    names = checked_names(observe, setup)
    trajectory, after = train(setup, names, seeds=tuple(seeds), progress=None, pairs=pairs)
    return trajectory, after.weights


def first_weights(setup: Setup, seeds: list[int]) -> Any:
    """The weights before training, with a leading seed axis."""
    # Under the same settings as in training, so that nothing is compiled twice.
    with jax.default_matmul_precision("highest"):
        return draws(setup.init, setup.net, setup.for_init, np.asarray(seeds))


def activity(setup: Setup, weights: Any, x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Hidden layers of equal width, (seed, layer, sample, unit), and outputs, (seed, sample, feature)."""
    inputs = np.asarray(x, setup.precision)
    net = setup.net

    def one(own):
        return np.stack(net.representations(own, inputs)), np.asarray(net.apply(own, inputs))

    with jax.enable_x64(setup.precision == "float64"):
        count = len(jax.tree.leaves(weights)[0])
        found = [one(jax.tree.map(lambda leaf, k=k: leaf[k], weights)) for k in range(count)]
    hidden, outputs = (np.stack(parts).astype(float) for parts in zip(*found, strict=True))
    return hidden, outputs
