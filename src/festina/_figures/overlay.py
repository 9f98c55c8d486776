"""Theory over training, drawn from labelled arrays: axes, units and names of curves are read off the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .style import COLOURS, TIME, predicted, trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray


def colours_of(entries: Sequence[object]) -> dict[str, str]:
    """A colour for each entry of an axis, by its name."""
    return {str(entry): COLOURS[k % len(COLOURS)] for k, entry in enumerate(entries)}


def overlay(
    axes: Axes,
    training: DataArray | None = None,
    theory: DataArray | None = None,
    *,
    by: str | None = None,
    along: str = "time",
    colours: Mapping[str, str] | Sequence[str] | str = COLOURS[0],
) -> None:
    """Training thick and pale, theory thin, dark and dashed on top, as curves over `along`.

    Each entry of the axis `by` has a colour of its own, all other axes (seeds, say) share it. The label of the
    vertical axis is the attribute `long_name` of the data, with its `units`; of the horizontal axis likewise, and
    "time (τ)" if time has none.

    Args:
        colours: by the names of the entries of `by`, or one after another; one colour if `by` is None.
    """
    for array, draw in ((training, trained), (theory, predicted)):
        if array is None:
            continue
        entries = [None] if by is None or by not in array.dims else list(range(array.sizes[by]))
        for number in entries:
            curves = array if number is None else array.isel({by: number})
            if isinstance(colours, str):
                colour = colours
            elif isinstance(colours, Mapping):
                colour = colours[str(array[by].values[number]) if by in array.coords else str(number)]
            else:
                colour = colours[(number or 0) % len(colours)]
            others = [axis for axis in curves.dims if axis != along]
            values = curves.transpose(*others, along).values.reshape(-1, curves.sizes[along])
            for line in values:
                draw(axes, curves[along].values, line, colour=colour)
    shown = theory if training is None else training
    assert shown is not None
    axes.set_ylabel(axes.get_ylabel() or axis_label(shown))
    axes.set_xlabel(axes.get_xlabel() or axis_label(shown[along], TIME if along == "time" else along))


def axis_label(array: DataArray, otherwise: str = "") -> str:
    """The name of a quantity with its unit in brackets, as its attributes say it."""
    name, unit = (
        array.attrs.get("long_name", otherwise or str(array.name or "").replace("_", " ")),
        array.attrs.get("units"),
    )
    return f"{name} ({unit})" if unit else str(name)


def heat(
    axes: Axes,
    array: DataArray,
    *,
    rows: str,
    columns: str,
    label: str = "",
    colours: str = "cividis",
    signed: bool = False,
    names: bool = True,
) -> None:
    """A map of numbers with its colour bar; `signed` puts zero in the middle. `names` writes the entries' names."""
    values = array.transpose(rows, columns).values
    if signed:
        reach = float(np.abs(values).max()) or 1.0
        image = axes.imshow(values, cmap="PuOr", vmin=-reach, vmax=reach, aspect="auto")
    else:
        image = axes.imshow(values, cmap=colours, aspect="auto")
    for axis, ticks in ((rows, axes.set_yticks), (columns, axes.set_xticks)):
        if names and axis in array.coords:
            ticks(range(array.sizes[axis]), [str(entry) for entry in array[axis].values])
    axes.figure.colorbar(image, ax=axes, label=label or axis_label(array))
