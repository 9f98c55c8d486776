"""Distances by layer: balanced chains at equal steps of their weight, and exponents of the gaps in final distances."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from ... import Net, Setup, Task, rules, tasks
from ...theories.two_point import depth_law
from .labelled import labelled, stack, table
from .pair_distances import correlation, evenly_recorded
from .training import simulate

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

X, Y = 1.0, 0.5  # squared distances of the opposite points
SHARE = {"long_name": "share of matrices below the layer, l/L"}
GAPS = {"dx": (0.5, 1.0, 1.5), "dy": (0.4, 0.7, 1.0)}
LEVELS = 200  # number of levels of a chain's weight at which its distances are compared
LEARNED = 1e-3  # a pair is learned if its final loss is below this


class Training(NamedTuple):
    """How a network is trained on two points."""

    net: Net
    gain: float
    lr: float
    epochs: int


def opposite() -> Task:
    """Two points at opposite places, with squared distances X of the inputs and Y of the targets."""
    x, y = X**0.5 / 2, Y**0.5 / 2
    return tasks.from_arrays([[-x], [x]], [[-y], [y]])


def on_two_points(training: Training, dx: float, dy: float) -> Setup:
    net, gain, lr, epochs = training
    return evenly_recorded(tasks.two_point(dx, dy), net, gain, rules.GradientDescent(lr), epochs, 1)


def by_gaps(training: Training, seed: int) -> Dataset:
    """Final distances, `end`, for all gaps dx and dy, and their `exponent` in these for every layer.

    An end is NaN where a pair is not learned; exponents are fitted to the others by least squares.
    """

    def end(dx: float, dy: float) -> DataArray:
        # One seed for all: only the task differs.
        run = simulate(on_two_points(training, dx, dy), [seed], ["loss", "distance"])
        distance = labelled(run, "distance", seed=0).isel(time=-1, pair=0, drop=True)
        return distance.astype(float).where(run["loss"][0, -1] < LEARNED)

    ends = stack({dx: stack({dy: end(dx, dy) for dy in GAPS["dy"]}, "dy") for dx in GAPS["dx"]}, "dx")
    exponents = _gap_exponents(ends.transpose("dx", "dy", "layer").values)
    data = ends.assign_coords(layer=np.arange(ends.sizes["layer"])).to_dataset(name="end")
    return data.assign(exponent=(("layer", "gap"), exponents)).assign_coords(gap=list(GAPS))


def _gap_exponents(ends: Float[np.ndarray, "dx dy layer"]) -> Float[np.ndarray, "layer gap"]:
    """Slopes of ln H against ln dx and ln dy, by least squares over the pairs that are learned."""
    dx, dy = (grid.ravel() for grid in np.meshgrid(GAPS["dx"], GAPS["dy"], indexing="ij"))
    ends = ends.reshape(len(dx), -1)
    known = np.isfinite(ends).all(axis=1)
    logs = np.stack([np.ones_like(dx), np.log(dx), np.log(dy)], axis=1)[known]
    # In the order in which it is stored, so that sums over data read back from a file are the same to the last digit.
    return np.ascontiguousarray(np.linalg.lstsq(logs, np.log(ends[known]), rcond=None)[0][1:].T)


def chain_by_layer(chain: Setup, seed: int) -> Dataset:
    """H, P and P/H of every layer at equal steps of the weight, over their final values, and the laws of their ends."""
    run = simulate(chain, [seed], ["distance", "output_distance"])
    H, P = _at_levels(run["distance"][0, :, :, 0], run["output_distance"][0, :, 0])
    layer, depth = np.arange(H.shape[1]), H.shape[1] + 1
    H, share, ratio = table(H, "level", "share"), (layer + 1) / depth, table(P, "level") / table(H, "level", "share")
    straight = [correlation(H[:, k], ratio[:, k]) ** 2 for k in layer]
    risen = H / H.isel(level=-1)
    import xarray

    return xarray.Dataset(
        {
            "final": H.isel(level=-1).assign_attrs(long_name="final H"),
            "final_law": table(depth_law(X, Y, layer, depth), "share"),
            "risen": risen,
            "ratio": ratio / ratio.isel(level=-1),
            "ratio_law": risen ** table(1 / share - 1, "share"),
            "straightness": table(straight, "share"),
        },
        coords={"share": ("share", share, SHARE)},
    )


def _at_levels(
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
