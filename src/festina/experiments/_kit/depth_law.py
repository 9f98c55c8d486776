"""Final distances by layer: two points, balanced chains at equal steps of their weight, and exponents of the gaps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ... import Net, Setup, Task, rules, tasks
from . import pair_distances
from .training import simulate

OPPOSITE = dict(X=1.0, Y=0.5)  # squared distances of the opposite points
GAPS = {"dx": (0.5, 1.0, 1.5), "dy": (0.4, 0.7, 1.0)}
LEVELS = 200  # number of levels of a chain's weight at which its distances are compared
LEARNED = 1e-3  # a trial has learned if its final loss is below this


class Training(NamedTuple):
    """How a network is trained on two points."""

    net: Net
    gain: float
    lr: float
    epochs: int


def opposite(X: float, Y: float) -> Task:
    """Two points at opposite places, with squared distances X of the inputs and Y of the targets."""
    x, y = X**0.5 / 2, Y**0.5 / 2
    return tasks.from_arrays([[-x], [x]], [[-y], [y]])


def on_two_points(training: Training, dx: float, dy: float) -> Setup:
    net, gain, lr, epochs = training
    return pair_distances.evenly_recorded(tasks.two_point(dx, dy), net, gain, rules.GradientDescent(lr), epochs, 1)


def final_distances(training: Training, seed: int) -> Float[np.ndarray, "dx dy layer"]:
    """Final distances for all sizes of the gaps dx and dy, NaN where a trial has not learned."""
    ends = []
    for dx in GAPS["dx"]:
        for dy in GAPS["dy"]:
            # One seed for all: only the task differs.
            end = simulate(on_two_points(training, dx, dy), [seed], ["loss", "distance"])
            learned = end["loss"][0, -1] < LEARNED
            ends.append(np.where(learned, end["distance"][0, -1, :, 0].astype(float), np.nan))
    return np.reshape(ends, (len(GAPS["dx"]), len(GAPS["dy"]), -1))


def gap_exponents(ends: Float[np.ndarray, "dx dy layer"]) -> Float[np.ndarray, "layer gap"]:
    """Slopes of ln H against ln dx and ln dy, by least squares over the trials that have learned."""
    dx, dy = (grid.ravel() for grid in np.meshgrid(GAPS["dx"], GAPS["dy"], indexing="ij"))
    ends = ends.reshape(len(dx), -1)
    known = np.isfinite(ends).all(axis=1)
    logs = np.stack([np.ones_like(dx), np.log(dx), np.log(dy)], axis=1)[known]
    # In the order in which it is stored, so that sums over data read back from a file are the same to the last digit.
    return np.ascontiguousarray(np.linalg.lstsq(logs, np.log(ends[known]), rcond=None)[0][1:].T)


def at_levels(
    H: Float[np.ndarray, "time layer"], P: Float[np.ndarray, " time"]
) -> tuple[Float[np.ndarray, "level layer"], Float[np.ndarray, " level"]]:
    """H and P at equal steps of the chain's weight P^(1/2L).

    Values are interpolated between records in logarithms, because the transition is short.
    """
    weight = P ** (1 / (2 * (H.shape[1] + 1)))
    levels = np.log(np.linspace(weight[0], weight[-1], LEVELS))

    def at(values: np.ndarray) -> np.ndarray:
        return np.exp(np.interp(levels, np.log(weight), np.log(values)))

    return np.stack([at(curve) for curve in H.T], axis=1), at(P)


def straightness_from_nothing(depth: int) -> Float[np.ndarray, " layer"]:
    """R² of P/H against H in a chain whose weight grows from zero to 1, at equal steps of the weight.

    Both are powers of the weight, whose moments are known.
    """
    up = np.arange(1, depth)
    both, powers = 1 / (2 * depth + 1), [2 * up, 2 * (depth - up)]
    spread = [1 / (2 * power + 1) - 1 / (power + 1) ** 2 for power in powers]
    return (both - 1 / ((powers[0] + 1) * (powers[1] + 1))) ** 2 / (spread[0] * spread[1])
