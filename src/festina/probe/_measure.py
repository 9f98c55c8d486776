"""What a probe measures: how far apart pairs of inputs are in every layer, and what belongs to it.

For a pair (x₁, x₂) with activities h₁, h₂ and outputs f₁, f₂ [vanrossem2024, eqs. 5 to 8]:

    dh = h₂ − h₁    dy = f₂ − f₁    Dy* = y₂ − y₁    X = |x₂ − x₁|²    Y = |Dy*|²
    distance H = |dh|²    output P = |dy|²    alignment w = P − dy·Dy*

All are squared distances, summed over units and not divided by their number.
"""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from .._errors import BadInput
from .._noun import real_array
from .._observables import known_names
from .._trajectory import Trajectory
from .._version import __version__

ALL_PAIRS_UP_TO = 100  # inputs
NUMBERS_AT_ONCE = 2**20  # differences of pairs are made in pieces of this size


@dataclasses.dataclass(frozen=True)
class Points:
    """The inputs at which a network is probed, their targets if there are any, and the pairs to compare."""

    inputs: np.ndarray | None  # (sample, …), None if they are not known
    samples: int
    targets: np.ndarray | None  # (sample, feature)
    pairs: np.ndarray  # (pair, 2)

    @property
    def input_gap(self) -> np.ndarray | None:
        """X of every pair."""
        return None if self.inputs is None else gaps(self.inputs.reshape(self.samples, -1), self.pairs)

    @property
    def target_gap(self) -> np.ndarray | None:
        """Y of every pair."""
        return None if self.targets is None else gaps(self.targets, self.pairs)


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


def _pieces(values: np.ndarray, pairs: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(pairs, h₂ − h₁) for some pairs at a time: all of them at once may not fit into memory."""
    count = max(1, NUMBERS_AT_ONCE // max(1, values.shape[1]))
    for first in range(0, len(pairs), count):
        some = pairs[first : first + count]
        yield some, values[some[:, 1]] - values[some[:, 0]]


def gaps(values: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """|v₂ − v₁|² of every pair; values (sample, unit)."""
    parts = [np.einsum("pu,pu->p", change, change) for _, change in _pieces(values, pairs)]
    return np.concatenate(parts) if parts else np.zeros(0)


def _products(values: np.ndarray, others: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """(v₂ − v₁)·(u₂ − u₁) of every pair."""
    parts = [
        np.einsum("pu,pu->p", change, others[some[:, 1]] - others[some[:, 0]])
        for some, change in _pieces(values, pairs)
    ]
    return np.concatenate(parts)


def _cosine(seen: Seen) -> np.ndarray:
    pairs = seen.points.pairs
    looks = list(zip(seen.hidden, seen.start, strict=True))
    dots = np.stack([_products(now, start, pairs) for now, start in looks])
    sizes = np.stack([np.sqrt(gaps(now, pairs)) * np.sqrt(gaps(start, pairs)) for now, start in looks])
    return np.where(sizes > 0, dots / sizes, np.nan)


def _alignment(seen: Seen) -> np.ndarray:
    points = seen.points
    return gaps(seen.outputs, points.pairs) - _products(seen.outputs, targets_of(points), points.pairs)


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
    "output": Observable(("pair",), lambda s: gaps(s.outputs, s.points.pairs), True),
    "alignment": Observable(("pair",), _alignment, True, True),
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


def checked_names(observe: str | Iterable[str] | None, *, outputs: bool, targets: bool) -> tuple[str, ...]:
    """The observables asked for, or all small ones that can be had."""

    def lacks(name: str) -> str:
        known = OBSERVABLES[name]
        if known.needs_targets and not targets:
            return "targets"
        return "outputs" if known.needs_outputs and not outputs else ""

    if observe is None:
        return tuple(n for n in ("distance", "output", "alignment", "loss", "cosine") if not lacks(n))
    names = known_names(observe, OBSERVABLES, "observable of a probe")
    for name in names:
        if missing := lacks(name):
            raise BadInput(
                f"observe {name!r} without {missing}",
                f"the {missing} at the probe inputs",
                f"give {missing}=…, or leave {name!r} out",
            )
    return tuple(dict.fromkeys(names))


def points(inputs: Any, targets: Any, pairs: Any, names: Sequence[str], samples: int | None = None) -> Points:
    """Check inputs (sample, …), targets (sample, feature) and pairs of samples against each other."""
    if inputs is not None:
        inputs = real_array(inputs, "inputs")
        if inputs.ndim == 0:
            raise BadInput(f"inputs = {inputs}", "an array (sample, …)", "give at least two inputs, as rows")
        if samples is not None and len(inputs) != samples:
            raise BadInput(
                f"{len(inputs)} inputs, and activities of {samples} samples", "one input per sample", "match them"
            )
        samples = len(inputs)
    assert samples is not None
    if targets is not None:
        targets = real_array(targets, "targets", ndim=(1, 2))
        targets = targets[:, None] if targets.ndim == 1 else targets
        if len(targets) != samples:
            raise BadInput(f"{len(targets)} targets for {samples} inputs", "one target per input", "match their rows")
    known = Points(inputs, samples, targets, np.zeros((0, 2), int))
    if not any("pair" in OBSERVABLES[name].axes for name in names):
        return known
    known = dataclasses.replace(known, pairs=_checked_pairs(pairs, samples))
    gap = known.input_gap
    if gap is not None and not gap.all():
        one, two = (int(i) for i in known.pairs[np.argmin(gap)])
        raise BadInput(
            f"inputs {one} and {two} of pair ({one}, {two}) are the same",
            "two different inputs in a pair",
            "leave one of them out, or give pairs=[…] without it",
        )
    return known


def _checked_pairs(pairs: Any, samples: int) -> np.ndarray:
    if pairs is None:
        if samples < 2:
            raise BadInput(f"{samples} input", "at least two, to form a pair", "probe at two inputs or more")
        if samples > ALL_PAIRS_UP_TO:
            raise BadInput(
                f"{samples} inputs and no pairs",
                f"pairs of inputs to compare, if there are more than {ALL_PAIRS_UP_TO} inputs",
                "give pairs=[(0, 1), …]",
            )
        return np.stack(np.triu_indices(samples, 1), axis=1)
    try:
        array = np.asarray(list(pairs))
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise BadInput(f"pairs = {pairs!r}", "pairs of sample numbers", "give for example pairs=[(0, 1), (0, 2)]")
    for one, two in array:
        if not (0 <= one < samples and 0 <= two < samples):
            raise BadInput(
                f"pair ({one}, {two}) and {samples} inputs",
                f"sample numbers from 0 to {samples - 1}",
                "count the probe inputs from 0",
            )
        if one == two:
            raise BadInput(f"pair ({one}, {two})", "two different samples in a pair", "name two samples")
    return array.astype(int)


def flat(values: Any, samples: int, whose: str, do: str) -> np.ndarray:
    """A copy of activities (sample, …) as (sample, unit) in float64."""
    array = np.asarray(values)
    if array.ndim == 0 or len(array) != samples:
        raise BadInput(f"{whose} has shape {array.shape}, for {samples} inputs", "the sample as its first axis", do)
    if array.dtype.kind not in "biuf":
        raise BadInput(f"{whose} holds {array.dtype}", "real numbers", do)
    return array.reshape(samples, -1).astype(np.float64)


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
                "give targets in the shape of the outputs",
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

    def trajectory(self, source: str, facts: Mapping[str, Any], libraries: Sequence[str]) -> Trajectory:
        """The record as a Trajectory; a representation becomes one observable for each layer."""
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
        coordinates = {
            "layer": np.array(list(self.units)),
            "pair": np.array([f"{one}-{two}" for one, two in self.points.pairs]),
            "unit": np.array([f"{layer}:{unit}" for layer, count in self.units.items() for unit in range(count)]),
        }
        used = {axis for names in axes.values() for axis in names}
        provenance = {
            "samples": self.points.samples,
            "pairs": self.points.pairs.tolist(),
            "input_gap": _listed(self.points.input_gap),
            "target_gap": _listed(self.points.target_gap),
            "units": self.units,
            "versions": versions(libraries),
            **facts,
        }
        kept = {axis: value for axis, value in coordinates.items() if axis in used}
        return Trajectory(np.asarray(self.times), values, axes, source, provenance, kept)


def _listed(values: np.ndarray | None) -> list[float] | None:
    return None if values is None else values.tolist()


def versions(libraries: Sequence[str]) -> dict[str, str]:
    """Versions of festina, Python, NumPy and the named libraries."""
    named = {name: metadata.version(name) for name in ("numpy", *libraries)}
    return {"festina": __version__, "python": platform.python_version(), **named}
