"""Squared distances of the first hundred digits in the middle layer of a network, and what the theory has for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import nets, rules
from .._noun import whole
from .._setup import Setup, Task
from .._simulate import simulate
from .._trajectory import Trajectory
from ._pairs import OBSERVED, correlation, evenly_recorded

RULES = {"SGD": rules.SGD, "Adam": rules.Adam}
ENTRIES = ("all", "no diagonal", "between classes")
SHOWN = 100
PAIRS = np.stack(np.triu_indices(SHOWN, 1), axis=1)
PIECE = 1000  # images whose distances are in memory at once


def learning_digits(
    task: Task, *, units: int, layers: int, gain: Any, rule: str, lr: float, batch: int, epochs: int, records: int = 10
) -> Setup:
    """A network of leaky ReLU units that learns digits in batches; `rule` is "SGD" or "Adam"."""
    steps = whole(epochs, "epochs") * (len(np.asarray(task.x)) // batch)
    net = nets.MLP((units,) * layers, "leaky_relu", bias=True)
    return evenly_recorded(task, net, gain, RULES[rule](lr, batch=batch), steps, records)


def sorted_by_digit(digit: Any) -> np.ndarray:
    """The places of the first hundred digits, by digit and else in their order."""
    return np.argsort(digit[:SHOWN], kind="stable")


def trained(setup: Setup, seeds: list[int], order: Any, observe: Any = OBSERVED) -> Trajectory:
    """A run, observed in all pairs of the digits in `order`."""
    return simulate(setup, seeds, observe, pairs=order[PAIRS])


def in_layer(found: Trajectory, layer: int) -> np.ndarray:
    """Squared distances (seed, time, row, column) of a run that observed all pairs."""
    return square(found["distance"][:, :, layer].astype(float))


def square(values: Any) -> np.ndarray:
    """Symmetric matrices (…, row, column) of values of pairs (…, pair)."""
    found = np.zeros((*values.shape[:-1], SHOWN, SHOWN))
    found[..., PAIRS[:, 0], PAIRS[:, 1]] = found[..., PAIRS[:, 1], PAIRS[:, 0]] = values
    return found


def structured(x: Any, digit: Any, rows: Any) -> np.ndarray:
    """√(XY) of some images with all, at κ = 1; targets of two classes are 2 apart, squared."""
    sizes = np.sum(x**2, axis=1)
    squares = np.maximum(sizes[rows][:, None] + sizes - 2 * x[rows] @ x.T, 0.0)
    return np.sqrt(2 * squares) * (digit[rows][:, None] != digit)


def weighted(x: Any, digit: Any, rows: Any) -> np.ndarray:
    """[vanrossem2024, eq. 50] for some images, summed over all, at κ = 1 and from small weights."""
    weights = np.exp(-structured(x, digit, rows))
    parts = [np.arange(k, min(k + PIECE, len(x))) for k in range(0, len(x), PIECE)]
    return sum(weights[:, part] @ structured(x, digit, part) for part in parts) @ weights.T


def correlations(measured: Any, predicted: Any, same: Any) -> list[float]:
    """Pearson's r over all entries, without the diagonal, and without pairs of one class; NaN where nothing varies."""
    kept = np.ones_like(same), ~np.eye(SHOWN, dtype=bool), ~same
    return [correlation(measured[which], predicted[which]) for which in kept]


def draw_matrix(axes: Any, matrix: Any, digit: Any, title: str) -> None:
    image = axes.imshow(matrix, cmap="cividis", vmin=0)
    middles = [np.mean(np.flatnonzero(digit == d)) for d in np.unique(digit)]
    for ticks in (axes.set_xticks, axes.set_yticks):
        ticks(middles, [f"{d:.0f}" for d in np.unique(digit)])
    axes.set(title=title, xlabel="digit", ylabel="digit")
    axes.figure.colorbar(image, ax=axes, shrink=0.75)
