"""Squared distances of the first hundred digits in the middle layer of a network, and what the theory predicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int, Real

from ... import nets, rules
from ..._foundation.checks import whole
from ..._setup.setup import Setup
from ..._setup.trajectory import Trajectory
from ...tasks.base import Task
from .pair_distances import OBSERVED, correlation, evenly_recorded
from .training import simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RULES = {"SGD": rules.SGD, "Adam": rules.Adam}
ENTRIES = ("all", "no diagonal", "between classes")
SHOWN = 100
PAIRS = np.stack(np.triu_indices(SHOWN, 1), axis=1)
PIECE = 1000  # images whose distances are in memory at once
Images = Float[np.ndarray, "image pixel"]
Digits = Real[np.ndarray, " image"]  # which digit an image shows
Places = Int[np.ndarray, " row"]


def learning_digits(
    task: Task,
    *,
    units: int,
    layers: int,
    gain: float,
    rule: str,
    lr: float,
    batch: int,
    epochs: int,
    records: int = 10,
) -> Setup:
    """A network of leaky ReLU units that learns digits in batches; `rule` is "SGD" or "Adam"."""
    steps = whole(epochs, "epochs") * (len(np.asarray(task.x)) // batch)
    net = nets.MLP((units,) * layers, "leaky_relu", bias=True)
    return evenly_recorded(task, net, gain, RULES[rule](lr, batch=batch), steps, records)


def sorted_by_digit(digit: Digits) -> Places:
    """The places of the first hundred images, sorted by digit and within a digit in their order."""
    return np.argsort(digit[:SHOWN], kind="stable")


def trained(setup: Setup, seeds: list[int], order: Places, observe: Sequence[str] = OBSERVED) -> Trajectory:
    """A run that compares all pairs of the images in `order`."""
    return simulate(setup, seeds, observe, pairs=order[PAIRS])


def in_layer(run: Trajectory, layer: int) -> Float[np.ndarray, "seed time row column"]:
    """Squared distances in one layer, of a run that compared all pairs."""
    return square(run["distance"][:, :, layer].astype(float))


def square(values: Float[np.ndarray, "*axes pair"]) -> Float[np.ndarray, "*axes row column"]:
    """Symmetric matrices of values of pairs."""
    matrices = np.zeros((*values.shape[:-1], SHOWN, SHOWN))
    matrices[..., PAIRS[:, 0], PAIRS[:, 1]] = matrices[..., PAIRS[:, 1], PAIRS[:, 0]] = values
    return matrices


def structured(x: Images, digit: Digits, rows: Places) -> Float[np.ndarray, "row image"]:
    """√(XY) of some images with all, at κ = 1; the squared distance of the targets of two classes is Y = 2."""
    sizes = np.sum(x**2, axis=1)
    squares = np.maximum(sizes[rows][:, None] + sizes - 2 * x[rows] @ x.T, 0.0)
    return np.sqrt(2 * squares) * (digit[rows][:, None] != digit)


def weighted(x: Images, digit: Digits, rows: Places) -> Float[np.ndarray, "row column"]:
    """The prediction of [vanrossem2024, eq. 50] for some images, summed over all, at κ = 1 and from small weights."""
    weights = np.exp(-structured(x, digit, rows))
    parts = [np.arange(k, min(k + PIECE, len(x))) for k in range(0, len(x), PIECE)]
    return sum(weights[:, part] @ structured(x, digit, part) for part in parts) @ weights.T


def correlations(
    measured: Float[np.ndarray, "row column"],
    predicted: Float[np.ndarray, "row column"],
    same: Bool[np.ndarray, "row column"],
) -> list[float]:
    """Pearson's r over all entries, without the diagonal, and without pairs of the `same` class.

    It is NaN where nothing varies.
    """
    kept = np.ones_like(same), ~np.eye(SHOWN, dtype=bool), ~same
    return [correlation(measured[which], predicted[which]) for which in kept]


def draw_matrix(axes: Axes, matrix: np.ndarray, digit: np.ndarray, title: str) -> None:
    """Squared distances of digits that are sorted; ticks name the digits."""
    image = axes.imshow(matrix, cmap="cividis", vmin=0)
    middles = [np.mean(np.flatnonzero(digit == d)) for d in np.unique(digit)]
    for ticks in (axes.set_xticks, axes.set_yticks):
        ticks(middles, [f"{d:.0f}" for d in np.unique(digit)])
    axes.set(title=title, xlabel="digit", ylabel="digit")
    axes.figure.colorbar(image, ax=axes, shrink=0.75, label="squared distance")
