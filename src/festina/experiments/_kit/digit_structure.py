"""Squared distances between the first hundred digits in the middle layer of a network that learns digits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int, Real

from ... import nets, rules
from ..._figures.style import COLOURS
from ..._setup.setup import Setup
from ..._setup.trajectory import Trajectory
from ...tasks.base import Task
from .labelled import table
from .pair_distances import OBSERVED, correlation, evenly_recorded
from .training import simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray

RULES = {"SGD": rules.SGD, "Adam": rules.Adam}
ENTRIES = ("all", "no diagonal", "between classes")
SHOWN = 100
PAIRS = np.stack(np.triu_indices(SHOWN, 1), axis=1)
Matrix = Float[np.ndarray, "row column"]


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
    steps = epochs * (len(np.asarray(task.x)) // batch)
    net = nets.MLP((units,) * layers, "leaky_relu", bias=True)
    return evenly_recorded(task, net, gain, RULES[rule](lr, batch=batch), steps, records)


def sorted_by_digit(digit: Real[np.ndarray, " image"]) -> Int[np.ndarray, " row"]:
    """The places of the first hundred images, sorted by digit and within a digit in their order."""
    return np.argsort(digit[:SHOWN], kind="stable")


def trained(
    setup: Setup, seeds: Sequence[int], order: Int[np.ndarray, " row"], observe: Sequence[str] = OBSERVED
) -> Trajectory:
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


def correlations(measured: Matrix, predicted: Matrix, same: Bool[np.ndarray, "row column"]) -> list[float]:
    """Pearson's r for each of `ENTRIES`: over all entries, without the diagonal, and for pairs of different digits.

    It is NaN where nothing varies.
    """
    kept = np.ones_like(same), ~np.eye(SHOWN, dtype=bool), ~same
    return [correlation(measured[which], predicted[which]) for which in kept]


def relative(distances: Mapping[str, Matrix], same: Bool[np.ndarray, "row column"]) -> DataArray:
    """Matrices by their source, each over its mean over pairs of different digits."""
    maps = [matrix / matrix[~same].mean() for matrix in distances.values()]
    return table(maps, "source", "row", "column").assign_coords(source=list(distances))


def draw_maps(panels: Mapping[str, Axes], maps: DataArray, digit: DataArray, titles: Mapping[str, str]) -> None:
    """Maps by {source: title} in panels a, b, … on one scale, with the digits at their sides."""
    drawn = [panels[letter] for letter, _ in zip("abc", titles, strict=False)]
    values = digit.values
    middles = [float(np.mean(np.flatnonzero(values == d))) for d in np.unique(values)]
    for axes, (source, title) in zip(drawn, titles.items(), strict=True):
        axes.imshow(maps.sel(source=source).values, cmap="cividis", vmin=0, vmax=2)
        for ticks in (axes.set_xticks, axes.set_yticks):
            ticks(middles, [f"{d:.0f}" for d in np.unique(values)])
        axes.set(xlabel="digit", ylabel="digit", title=title)
    scale = drawn[0].images[0]
    below: dict[str, Any] = dict(location="bottom", shrink=0.4, aspect=30, extend="max")
    drawn[0].figure.colorbar(scale, ax=drawn, label="squared distance / mean between classes", **below)


def draw_correlations(axes: Axes, correlation: DataArray, rows: Mapping[str, str]) -> list[Any]:
    """Correlations with the rows, {prediction: label}, over all entries and between classes; gives marks for a key."""
    from matplotlib.lines import Line2D

    looks: dict[str, dict[str, Any]] = {
        ENTRIES[0]: dict(marker="o", color=COLOURS[0], label="over all entries"),
        ENTRIES[2]: dict(marker="s", color=COLOURS[1], label="between different classes"),
    }
    for entries, look in looks.items():
        axes.plot(correlation.sel(prediction=list(rows), entries=entries), range(len(rows)), ls="", ms=7, **look)
    axes.set_yticks(range(len(rows)), list(rows.values()))
    axes.set(xlabel="correlation with the network's distances", xlim=(min(0.0, float(correlation.min())) - 0.05, 1))
    axes.invert_yaxis()
    axes.grid(axis="y", color="0.9", lw=0.8)
    return [Line2D([], [], ls="", ms=7, **look) for look in looks.values()]
