"""Labelled arrays from trajectories: their axes, names and units stay, from training to the figure.

xarray.Dataset(
    {
        "training": labelled(trained, "modes", seed=0),
        "theory": labelled(theory, "modes"),
        "loss": stack({scale: labelled(run, "loss") for scale, run in runs.items()}, "scale"),
    }
)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..._formulas.curves import crossing, order
from ..._setup.setup import Setup
from ..._setup.trajectory import Trajectory
from ..._verbs.solve import solve
from ...rules import GradientDescent
from ...rules.base import rate_of
from .training import simulate

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

A = TypeVar("A", "DataArray", "Dataset")


def labelled(trajectory: Trajectory, name: str, *, seed: int | None = None) -> DataArray:
    """One observable with its named axes and coordinates; of one seed, counted from 0, if `seed` is given."""
    array = trajectory.array(name)
    return array if seed is None else array.isel(seed=seed, drop=True)


def of_both(theory: Trajectory, trained: Trajectory, name: str, *, seed: int | None = None) -> dict[str, DataArray]:
    """{"theory": …, "training": …}, an observable of theory and of training."""
    return {"theory": labelled(theory, name), "training": labelled(trained, name, seed=seed)}


def table(values: ArrayLike, *axes: str, unit: str = "", long_name: str = "") -> DataArray:
    """An array with named axes; `unit` and `long_name` are what a figure writes at its axis."""
    import xarray

    words = {"units": unit, "long_name": long_name}
    return xarray.DataArray(np.asarray(values), dims=axes, attrs={k: v for k, v in words.items() if v})


def stack(pieces: Mapping[Any, A], along: str) -> A:
    """Pieces of one shape beside each other along a new axis, whose coordinates are their labels."""
    import xarray

    labels = xarray.DataArray(list(pieces), dims=along, name=along)
    parts: list[Any] = list(pieces.values())
    joined: Any = xarray.concat(parts, dim=labels, join="exact", combine_attrs="override")
    return joined.assign_coords({along: list(pieces)})


def approach(
    setup: Setup, theory: str, observable: str, *, halvings: int = 2, seed: int = 0
) -> tuple[Trajectory, Dataset]:
    """A theory beside descent at rates lr, lr/2, …: `theory`, `training` at lr, `gap` for each rate, and its `order`.

    The gap is the largest difference over all times and entries; its order in lr is 1 where it is proportional to lr.
    """
    import xarray

    predicted = solve(setup, theory, seed=seed)
    exact = labelled(predicted, observable)
    rates = [rate_of(setup.rule) / 2**k for k in range(halvings + 1)]
    runs = [simulate(setup.replace(rule=GradientDescent(rate)), [seed], observable) for rate in rates]
    gaps = [float(np.abs(run[observable][0] - exact.values).max()) for run in runs]
    data = xarray.Dataset(
        {
            "theory": exact,
            "training": labelled(runs[0], observable, seed=0),
            "gap": table(gaps, "rate"),
            "order": table(order(np.array(gaps)), "halving"),
        },
        coords={"rate": rates},
    )
    return predicted, data


def prefixed(data: Dataset, prefix: str) -> dict[Hashable, DataArray]:
    """The variables of a dataset under names that begin with a prefix, to be put into another one."""
    return {f"{prefix}_{name}": array for name, array in data.data_vars.items()}


def time_at(array: DataArray, level: float | DataArray, *, along: str = "time", falling: bool = False) -> DataArray:
    """The first time at which each curve is at its level, linear between records; infinite if it never is."""
    import xarray

    sign, times = (-1.0 if falling else 1.0), array[along].values
    return xarray.apply_ufunc(
        lambda curves, levels: crossing(times, sign * curves, sign * levels),
        array,
        level,
        input_core_dims=[[along], []],
    )


def in_order(times: DataArray, along: str) -> DataArray:
    """Whether times strictly increase along an axis, for every entry of the other axes."""
    return (times.diff(along) > 0).all(along)


def largest(values: DataArray | Iterable[float]) -> float:
    """The largest absolute value."""
    return float(np.abs(np.asarray(values)).max())
