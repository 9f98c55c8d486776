"""Trajectory: times, named observables, and where they came from."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import _checks
from ._errors import BadInput, UnknownName, shown
from ._netcdf import load_netcdf, save_netcdf

FORMAT = "festina trajectory 1"


class Trajectory(Mapping):
    """Observables on a time grid: `trajectory["loss"]`, axes `seed` (if trained), `time`, ….

    A theory's observables are computed when they are first asked for. `source` is the name of
    the theory, or "simulate"; `provenance` holds the rest (setup, assumptions, versions, …).
    """

    def __init__(
        self,
        times: np.ndarray,
        values: Mapping[str, Any],
        axes: Mapping[str, tuple[str, ...]],
        source: str,
        provenance: Mapping[str, Any] | None = None,
        coordinates: Mapping[str, Any] | None = None,
    ):
        _checks.real_array(times, "times", ndim=1)
        self.times = _checks.number_array(times, "times")
        self.source = _checks.text(source, "source")
        facts = "a dict {name: fact}", 'give provenance={"note": "…"}, or leave it out'
        self._provenance = {} if provenance is None else _checks.mapping(provenance, "provenance", *facts)
        self.coordinates = _checked_coordinates(coordinates)
        # Arrays, or functions that make them.
        self._values: dict[str, Any] = _checked_values(values)
        self.axes = _checked_axes(axes, self._values, len(self.times))
        self.end_weights: Any = None  # a function that gives the layers at the last time, where they are known
        self.end_error: Any = None  # a function that gives the shift of these layers by the error of a theory

    @property
    def provenance(self) -> dict[str, Any]:
        """Where it came from: setup, version, assumptions or device, …; long parts are made when asked for."""
        self._provenance = {k: v() if callable(v) else v for k, v in self._provenance.items()}
        return self._provenance

    @functools.cached_property
    def setup(self) -> Any:
        """The setup that it came from."""
        from ._spec import from_spec

        if "setup" not in self._provenance:
            raise BadInput(f"a trajectory from {self.source} without a setup", "one from simulate or solve", "train it")
        known = self._provenance["setup"]
        # Before it is written as a spec, the setup waits as the argument of the function that will do so.
        return known.args[0] if isinstance(known, functools.partial) else from_spec(self.provenance["setup"])

    def _fact(self, key: str) -> Any:
        value = self._provenance.get(key)
        return value() if callable(value) else value

    def __getitem__(self, name: str) -> np.ndarray:
        if not isinstance(name, str) or name not in self._values:
            raise UnknownName.among(f"observable of this trajectory (from {self.source})", name, self._values)
        if callable(self._values[name]):
            self._values[name] = self._values[name]()
        return self._values[name]

    # Mapping compares item by item, which arrays cannot answer with one truth value.
    __eq__ = object.__eq__
    __hash__ = object.__hash__  # pyright: ignore[reportAssignmentType]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._values  # Mapping would compute the observable to answer

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        lines = [f"Trajectory from {self.source}, {len(self.times)} times {self.times[0]:g} … {self.times[-1]:g}"]
        lines += [f"  {name:<16} ({', '.join(self.axes[name])})" for name in self]
        error = self._fact("error")
        lines += [] if error is None else [f"  error: {error:.2g} of the answer, against gradient flow"]
        lines += [f"  {key}: {fact}" for key in ("note", "interrupted") if (fact := self._fact(key))]
        return "\n".join(lines)

    def to_xarray(self) -> Any:
        """All observables as an `xarray.Dataset` with named axes and coordinates."""
        import xarray

        used = {axis for name in self for axis in self.axes[name]}
        coordinates = {axis: value for axis, value in self.coordinates.items() if axis in used}
        return xarray.Dataset(
            {name: (self.axes[name], np.asarray(self[name])) for name in self},
            coords={"time": self.times, **{axis: (axis, value) for axis, value in coordinates.items()}},
            attrs={"format": FORMAT, "source": self.source, "provenance": json.dumps(self.provenance)},
        )

    def save(self, path: str | Path) -> None:
        """Write netCDF with a checksum; the file appears whole or not at all."""
        save_netcdf(self.to_xarray(), path)

    @classmethod
    def load(cls, path: str | Path) -> Trajectory:
        """Read what `save` wrote, if it is as it was written."""
        path = _checks.path(path, "path")
        data = load_netcdf(path, FORMAT)
        try:
            times, source, provenance = data["time"].values, data.attrs["source"], json.loads(data.attrs["provenance"])
        # Another program's file, or an old damaged one.
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise BadInput(
                f"{path} lacks times, source or provenance ({error})", f"all that {FORMAT} has", "save it again"
            ) from None
        coordinates = {str(name): value.values for name, value in data.coords.items() if name != "time"}
        return cls(
            times,
            {str(name): value.values for name, value in data.data_vars.items()},
            {str(name): tuple(map(str, value.dims)) for name, value in data.data_vars.items()},
            source,
            provenance,
            coordinates,
        )


def _checked_values(values: Any) -> dict[str, Any]:
    """Numbers or truth values by name; NaN is kept, for what has no value at some time says so by it."""
    known = _checks.mapping(values, "values", "observables by name", 'give values={"loss": losses}')
    return {
        name: value if callable(value) else _checks.number_array(value, f"values[{name!r}]")
        for name, value in known.items()
    }


def _checked_coordinates(coordinates: Any) -> dict[str, np.ndarray]:
    """The names of the entries of an axis: numbers or texts, one after the other."""
    if coordinates is None:
        return {}
    do = 'give coordinates={"layer": ["first", "second"]}'
    known = _checks.mapping(coordinates, "coordinates", "a list of names for axes", do)
    found = {}
    for axis, value in known.items():
        listed = _checks.listed(value, f"coordinates[{axis!r}]", "a list of names", do, empty=True)
        if not all(isinstance(entry, (str, int, float, np.generic)) for entry in listed):
            raise BadInput(f"coordinates[{axis!r}] = {shown(value)}", "a list of texts or numbers", do)
        found[axis] = np.asarray(value if isinstance(value, np.ndarray) else listed)
    return found


def _checked_axes(axes: Any, values: Mapping[str, Any], times: int) -> dict[str, tuple[str, ...]]:
    """The axes of every observable, as many as it has dimensions; `time` is one of the lengths of the grid."""
    do = 'give axes={"loss": ("time",)}'
    known = {
        name: _checks.names(one, f"axes[{name!r}]")
        for name, one in _checks.mapping(axes, "axes", "the names of the axes of every observable", do).items()
    }
    for name, value in values.items():
        if name not in known:
            raise BadInput(f"axes without {name!r}", "the names of the axes of every observable in values", do)
        if callable(value):
            continue
        sizes = dict(zip(known[name], value.shape, strict=False))
        if len(known[name]) != value.ndim or sizes.get("time", times) != times:
            raise BadInput(
                f"values[{name!r}] of shape {value.shape}, axes {known[name]} and {times} times",
                "a name in axes for each dimension, and one entry of values for each of the times",
                f"match values[{name!r}], axes[{name!r}] and times",
            )
    return known
