"""What a probe measures: how far apart pairs of inputs are in every layer, and what belongs to it.

For a pair (x₁, x₂) with activities h₁, h₂ and outputs f₁, f₂ [vanrossem2024, eqs. 5 to 8]:

    dh = h₂ − h₁    dy = f₂ − f₁    Dy* = y₂ − y₁    X = |x₂ − x₁|²    Y = |Dy*|²
    distance H = |dh|²    output_distance P = |dy|²    output_alignment w = P − dy·Dy*

All are squared distances, summed over units and not divided by their number. What `simulate` records too has the name
that it has there.
"""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from .._errors import BadInput
from .._observables import known_names
from .._points import Points, gaps, products
from .._trajectory import Trajectory
from .._version import __version__


@dataclasses.dataclass(frozen=True)
class Seen:
    """What one look at a network gives: flattened activities and outputs, and the activities at the first look."""

    points: Points
    hidden: list[np.ndarray]  # of each layer: (sample, unit)
    outputs: Any  # (sample, feature)
    start: list[np.ndarray]


@dataclasses.dataclass(frozen=True)
class Observable:
    """A named quantity of one look, and what has to be known for it."""

    axes: tuple[str, ...]
    read: Callable[[Seen], Any]
    needs_outputs: bool = False
    needs_targets: bool = False


def _cosine(seen: Seen) -> np.ndarray:
    pairs = seen.points.pairs
    looks = list(zip(seen.hidden, seen.start, strict=True))
    dots = np.stack([products(now, start, pairs) for now, start in looks])
    sizes = np.stack([np.sqrt(gaps(now, pairs)) * np.sqrt(gaps(start, pairs)) for now, start in looks])
    return np.where(sizes > 0, dots / sizes, np.nan)


def _alignment(seen: Seen) -> np.ndarray:
    points = seen.points
    # Not P − dy·Dy*, which near the end is a small difference of large numbers.
    return products(seen.outputs, seen.outputs - targets_of(points), points.pairs)


def _mean_gap(seen: Seen) -> np.ndarray:
    error = seen.outputs - targets_of(seen.points)
    mean = (error[seen.points.pairs[:, 0]] + error[seen.points.pairs[:, 1]]) / 2
    return np.sum(mean**2, axis=1)


def _loss(seen: Seen) -> np.ndarray:
    return 0.5 * np.mean(np.sum((seen.outputs - targets_of(seen.points)) ** 2, axis=1))


def targets_of(points: Points) -> np.ndarray:
    """The targets, where an observable that needs them has been asked for."""
    assert points.targets is not None
    return points.targets


OBSERVABLES: dict[str, Observable] = {
    "distance": Observable(("layer", "pair"), lambda s: np.stack([gaps(h, s.points.pairs) for h in s.hidden])),
    "output_distance": Observable(("pair",), lambda s: gaps(s.outputs, s.points.pairs), True),
    "output_alignment": Observable(("pair",), _alignment, True, True),
    "cosine": Observable(("layer", "pair"), _cosine),
    "loss": Observable((), _loss, True, True),
    "mean_gap": Observable(("pair",), _mean_gap, True, True),
    "similarity": Observable(("layer", "sample", "sample_"), lambda s: np.stack([h @ h.T for h in s.hidden])),
    "gates": Observable(
        ("unit", "byte"), lambda s: np.packbits(np.concatenate([h.T > 0 for h in s.hidden]), axis=-1)
    ),
    "outputs": Observable(("sample", "feature"), lambda s: s.outputs.copy(), True),
    "representation": Observable(("sample", "hidden"), lambda s: [h.copy() for h in s.hidden]),
}  # fmt: skip


DEFAULT = ("distance", "output_distance", "output_alignment", "loss", "cosine")


def checked_names(observe: str | Iterable[str] | None, *, outputs: bool, targets: bool) -> tuple[str, ...]:
    """The observables asked for, or all small ones that can be had."""

    def lacks(name: str) -> str:
        known = OBSERVABLES[name]
        if known.needs_targets and not targets:
            return "targets"
        return "outputs" if known.needs_outputs and not outputs else ""

    if observe is None:
        return tuple(n for n in DEFAULT if not lacks(n))
    names = known_names(observe, OBSERVABLES, "observable of a probe")
    for name in names:
        if missing := lacks(name):
            raise BadInput(
                f"observe {name!r} without {missing}",
                f"the {missing} at the probe inputs",
                f"give {missing}=…, or leave {name!r} out",
            )
    beside = ("loss",) if "gates" in names and not lacks("loss") else ()  # as in `simulate`
    return tuple(dict.fromkeys((*names, *beside)))


def compares_pairs(names: Sequence[str]) -> bool:
    """Whether one of these observables is about pairs."""
    return any("pair" in OBSERVABLES[name].axes for name in names)


def flat(values: Any, samples: int, whose: str, do: str) -> np.ndarray:
    """A copy of activities (sample, …) as (sample, unit) in float64."""
    array = np.asarray(values)
    if array.ndim == 0 or len(array) != samples:
        raise BadInput(f"{whose} has shape {array.shape}, for {samples} inputs", "the sample as its first axis", do)
    if array.dtype.kind not in "biuf":
        raise BadInput(f"{whose} holds {array.dtype}", "real numbers", do)
    return array.reshape(samples, -1).astype(np.float64)


def _in_shape(targets: np.ndarray, classes: int) -> str:
    """What to do about targets of another shape: they may be the numbers of classes."""
    are_labels = targets.shape[1] == 1 and np.isin(targets, np.arange(classes)).all()
    hot = f"; labels become one-hot: numpy.eye({classes})[labels], or torch.nn.functional.one_hot(labels, {classes})"
    return "give targets in the shape of the outputs" + (hot if are_labels else "")


class Record:
    """The numbers measured so far: a short list of small arrays for every observable."""

    def __init__(self, points: Points, names: Sequence[str], hidden: Mapping[str, np.ndarray], outputs: Any):
        self.points, self.names = points, tuple(names)
        self.units = {layer: values.shape[1] for layer, values in hidden.items()}
        self.features = None if outputs is None else outputs.shape[1]
        self.times: list[Any] = []
        self._values: dict[str, list[Any]] = {name: [] for name in names}
        self._start: list[np.ndarray] | None = None
        targets = points.targets
        if targets is not None and outputs is not None and targets.shape != outputs.shape:
            raise BadInput(
                f"targets of shape {targets.shape}, and outputs of shape {outputs.shape}",
                "one target for every output",
                _in_shape(targets, outputs.shape[1]),
            )
        slashed = [layer for layer in hidden if "/" in layer]
        if "representation" in names and slashed:
            raise BadInput(
                f"a representation of layer {slashed[0]!r}", "a name without a slash", "rename it: layers={alias: name}"
            )

    def add(self, time: Any, hidden: Mapping[str, np.ndarray], outputs: np.ndarray | None) -> None:
        """Measure one look at the network; activities and outputs are (sample, unit)."""
        for layer, values in hidden.items():
            if values.shape[1] != self.units[layer]:
                raise BadInput(
                    f"layer {layer!r} has {values.shape[1]} units at time {time}, and had {self.units[layer]}",
                    "as many units at all times",
                    "probe with inputs of one shape",
                )
        now = list(hidden.values())
        if self._start is None:
            self._start = now if "cosine" in self.names else []
        seen = Seen(self.points, now, outputs, self._start)
        with np.errstate(all="ignore"):  # training may diverge; the record then says so with its numbers
            measured = {name: OBSERVABLES[name].read(seen) for name in self.names}
        self.times.append(time)
        for name, value in measured.items():
            self._values[name].append(value)

    @property
    def representations(self) -> dict[str, np.ndarray]:
        """Activities (time, sample, hidden) of every layer, if they were asked for."""
        if "representation" not in self.names:
            raise BadInput(
                "no recorded representations", "a probe that keeps them", 'ask for them: observe=["representation"]'
            )
        looks = self._values["representation"]
        return {layer: np.stack([look[i] for look in looks]) for i, layer in enumerate(self.units)}

    def trajectory(
        self,
        source: str,
        facts: Mapping[str, Any],
        libraries: Sequence[str],
        beside: Mapping[str, tuple[tuple[str, ...], Any]] | None = None,
    ) -> Trajectory:
        """The record as a Trajectory, with {name: (axes, values)} beside it if there are any.

        A representation becomes one observable for each layer.
        """
        values: dict[str, Any] = {}
        axes: dict[str, tuple[str, ...]] = {}
        for name in self.names:
            if name == "representation":
                for layer, array in self.representations.items():
                    values[f"representation of {layer}"] = array
                    axes[f"representation of {layer}"] = ("time", "sample", f"hidden of {layer}")
            else:
                values[name] = np.stack(self._values[name])
                axes[name] = ("time", *OBSERVABLES[name].axes)
        for name, (own, value) in (beside or {}).items():
            axes[name], values[name] = own, value
        coordinates = {
            "layer": np.array(list(self.units)),
            "pair": self.points.names,
            "unit": np.array([f"{layer}:{unit}" for layer, count in self.units.items() for unit in range(count)]),
        }
        used = {axis for names in axes.values() for axis in names}
        provenance = {
            **self.points.facts,
            "units": self.units,
            "versions": versions(libraries),
            **facts,
        }
        kept = {axis: value for axis, value in coordinates.items() if axis in used}
        return Trajectory(np.asarray(self.times), values, axes, source, provenance, kept)


def versions(libraries: Sequence[str]) -> dict[str, str]:
    """Versions of festina, Python, NumPy and the named libraries."""
    named = {name: metadata.version(name) for name in ("numpy", *libraries)}
    return {"festina": __version__, "python": platform.python_version(), **named}
