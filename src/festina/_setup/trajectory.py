"""The answer: a Trajectory of named observables in time, and where they came from."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from .._foundation import checks, html
from .._foundation.arrays import Weights
from .._foundation.errors import BadInput, UnknownName, shown
from .._foundation.netcdf import load_netcdf, save_netcdf
from .setup import Setup
from .spec import from_spec, to_spec

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.animation import FuncAnimation
    from matplotlib.figure import Figure

FORMAT = "festina trajectory 1"


class Trajectory(Mapping):
    """Observables on a time grid: `trajectory["loss"]`, axes `seed` (if trained), `time`, ….

    A theory's observables are computed when they are first asked for. `source` is the name of the theory, or
    "simulate"; `setup` is what was solved or trained; `provenance` holds the rest (assumptions, versions, …).

    `weights` are those of the net at the last time, as `net.apply` takes them. From `simulate` they have a leading seed
    axis; of an interrupted run they are those at which it stopped, at or after the last time. From a theory that knows
    them they have no such axis, and are known up to a rotation of hidden units. They are None from any other source,
    and of a run that diverged; files do not hold them.
    """

    def __init__(
        self,
        times: ArrayLike,
        values: Mapping[str, Any],
        axes: Mapping[str, tuple[str, ...]],
        source: str,
        provenance: Mapping[str, Any] | None = None,
        coordinates: Mapping[str, Any] | None = None,
        *,
        setup: Setup | None = None,
        weights: Weights | Callable[[], Weights] = None,
    ):
        checks.real_array(times, "times", ndim=1)
        self.times = checks.number_array(times, "times")
        self.source = checks.text(source, "source")
        facts = "a dict {name: fact}", 'give provenance={"note": "…"}, or leave it out'
        self._provenance = {} if provenance is None else checks.mapping(provenance, "provenance", *facts)
        self._setup, self._weights = setup, _checked_weights(weights)
        if setup is not None:
            checks.instance(setup, "setup", Setup, "give the setup, or leave it out")
            spec = {"setup": functools.partial(to_spec, setup)}
            self._provenance = spec | self._provenance | spec  # the first of the facts
        self.coordinates = _checked_coordinates(coordinates)
        # Arrays, or functions that make them.
        self._values: dict[str, Any] = _checked_values(values)
        self.axes = _checked_axes(axes, self._values, len(self.times))

    @property
    def provenance(self) -> dict[str, Any]:
        """Where it came from: setup, version, assumptions or device, …; long parts are made when asked for."""
        self._provenance = {k: v() if callable(v) else v for k, v in self._provenance.items()}
        return self._provenance

    @property
    def setup(self) -> Setup:
        """The setup that was solved or trained."""
        if self._setup is None:
            if "setup" not in self._provenance:
                needed = "one from simulate or solve"
                raise BadInput(f"a trajectory from {self.source} without a setup", needed, "train it")
            self._setup = from_spec(self.provenance["setup"])
        return self._setup

    @property
    def weights(self) -> Weights:
        """The weights of the net at the last time, with a leading seed axis if it was trained; None if unknown."""
        if callable(self._weights):
            self._weights = self._weights()
        return self._weights

    @property
    def is_recorded(self) -> bool:
        """Whether a probe recorded it; its provenance then says what its times count."""
        return "clock" in self._provenance

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

    def to_xarray(self) -> xarray.Dataset:
        """All observables as an `xarray.Dataset` with named axes and coordinates."""
        import xarray

        return xarray.Dataset(
            {name: (self.axes[name], np.asarray(self[name])) for name in self},
            coords=self._coordinates_of(*self),
            attrs={"format": FORMAT, "source": self.source, "provenance": json.dumps(self.provenance)},
        )

    def array(self, name: str) -> xarray.DataArray:
        """One observable as an `xarray.DataArray` with named axes and coordinates."""
        import xarray

        return xarray.DataArray(np.asarray(self[name]), self._coordinates_of(name), self.axes[name], name)

    def _coordinates_of(self, *names: str) -> dict[str, Any]:
        used = {"time", *(axis for name in names for axis in self.axes[name])}
        named = {axis: (axis, value) for axis, value in self.coordinates.items() if axis in used}
        return {"time": ("time", self.times), **named}

    def to_dataframe(self, observe: str | Iterable[str] = "loss") -> pandas.DataFrame:
        """Observables of the same axes as a `pandas.DataFrame`: a row for each entry, a column for each observable."""
        names = checks.known_names(observe, self, f"observable of this trajectory (from {self.source})")
        axes = {self.axes[name] for name in names}
        if len(axes) > 1:
            kinds = ", ".join(f"{name} {self.axes[name]}" for name in names)
            raise BadInput(f"observables of different axes: {kinds}", "the same axes for all columns", "ask one by one")
        import xarray

        order = list(axes.pop())
        frame = xarray.Dataset({name: self.array(name) for name in names}).to_dataframe(dim_order=order).reset_index()
        return frame.reindex(columns=[*order, *names])

    def plot(self, observe: str | Iterable[str] | None = None) -> Figure:
        """A figure with a panel for each observable that is a curve or a few curves."""
        from .._figures.trajectory import trajectory_figure

        return trajectory_figure(self, self._names(observe))

    def animate(self, name: str = "loss", path: str | Path | None = None, *, seed: int = 0) -> FuncAnimation:
        """A film of an observable as it grows, or, of "similarity", of the samples as their representations move apart.

        Samples are placed by classical scaling of their similarity. With `path`, the film is also written, as a GIF,
        or as MP4 where FFmpeg is installed. `seed` is the number of a trained seed, counted from 0.
        """
        from .._figures.comparison import clock_of, is_drawable
        from .._figures.trajectory import curve_film, points_film, save_film
        from .._formulas.classical_scaling import centred, on_axes_of_the_last

        checks.choice(name, f"observable of this trajectory (from {self.source})", self)
        seed = checks.whole(seed, "seed", least=0)
        file = None if path is None else checks.path(path, "path")
        if file is not None and file.suffix not in (".gif", ".mp4"):
            raise BadInput(f"path = {str(path)!r}", "a file that ends in .gif or .mp4", 'give path="learning.gif"')
        if name == "similarity":
            array = self.array(name)
            if "seed" in array.dims:
                array = array.isel(seed=checks.entry(range(array.sizes["seed"]), seed, "seed"))
            points = on_axes_of_the_last(centred(array.values), 2)
            labels = [str(entry) for entry in self.coordinates.get("sample", range(points.shape[1]))]
            film = points_film(points, labels, self.times, clock_of(self))
        elif is_drawable(self.axes[name]):
            film = curve_film(self, name)
        else:
            raise BadInput(
                f"{name} with axes {self.axes[name]}", "curves, or similarity", 'record observe="similarity", or "loss"'
            )
        if file is not None:
            save_film(film, file)
        return film

    def _names(self, names: str | Iterable[str] | None) -> tuple[str, ...]:
        kind = f"observable of this trajectory (from {self.source})"
        return tuple(self) if names is None else checks.known_names(names, self, kind)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def _repr_html_(self) -> str:
        rows = [(name, ", ".join(self.axes[name])) for name in self]
        facts = [(key, fact) for key in ("note", "interrupted") if (fact := self._fact(key))]
        caption = f"Trajectory from {self.source}, {len(self.times)} times {self.times[0]:g} … {self.times[-1]:g}"
        return html.table([*rows, *facts], ("observable", "axes"), caption)

    def save(self, path: str | Path) -> None:
        """Write netCDF with a checksum; the file appears whole or not at all."""
        save_netcdf(self.to_xarray(), path)

    @classmethod
    def load(cls, path: str | Path) -> Trajectory:
        """Read what `save` wrote, if it is as it was written."""
        path = checks.path(path, "path")
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


def _checked_weights(weights: Weights | Callable[[], Weights]) -> Weights | Callable[[], Weights]:
    """A tree of arrays of finite numbers, a function that makes it, or None."""
    if weights is None or callable(weights):
        return weights
    needed, do = "layers, or None where they are not known", "give weights=[W1, W2, …], (out, in) each"
    try:
        leaves = jax.tree.leaves(weights) if isinstance(weights, (list, tuple, dict)) else []
    except (RecursionError, SystemError):  # lists in lists, deeper than any network
        leaves = []
    arrays = [checks.number_array(leaf, "weights") for leaf in leaves]
    if not arrays or any(array.ndim == 0 or array.size == 0 or not np.isfinite(array).all() for array in arrays):
        raise BadInput(f"weights is {shown(weights)}", needed, do)
    return weights


def _checked_values(values: object) -> dict[str, Any]:
    """Numbers or truth values by name; NaN stays, and stands for an observable without a value at that time."""
    given = checks.mapping(values, "values", "observables by name", 'give values={"loss": losses}')
    return {
        name: value if callable(value) else checks.number_array(value, f"values[{name!r}]")
        for name, value in given.items()
    }


def _checked_coordinates(coordinates: object) -> dict[str, np.ndarray]:
    """The names of the entries of each axis: numbers or texts."""
    if coordinates is None:
        return {}
    do = 'give coordinates={"layer": ["first", "second"]}'
    checked = {}
    for axis, value in checks.mapping(coordinates, "coordinates", "a list of names for axes", do).items():
        entries = checks.listed(value, f"coordinates[{axis!r}]", "a list of names", do, empty=True)
        if not all(isinstance(entry, (str, int, float, np.generic)) for entry in entries):
            raise BadInput(f"coordinates[{axis!r}] = {shown(value)}", "a list of texts or numbers", do)
        checked[axis] = np.asarray(value if isinstance(value, np.ndarray) else entries)
    return checked


def _checked_axes(axes: object, values: Mapping[str, Any], times: int) -> dict[str, tuple[str, ...]]:
    """The axes of every observable, as many as it has dimensions; `time` is one of the lengths of the grid."""
    do = 'give axes={"loss": ("time",)}'
    given = checks.mapping(axes, "axes", "the names of the axes of every observable", do)
    known = {name: checks.names(entry, f"axes[{name!r}]") for name, entry in given.items()}
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
