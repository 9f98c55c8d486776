"""What a probe measures: the observables that are read off recorded activity, and the record of their values.

What an observable is, `festina.observables` says. What `simulate` records too has the name that it has there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from .._foundation.checks import known_names
from .._foundation.errors import BadInput
from .._setup.trajectory import Trajectory
from ..observables import FROM_ACTIVITY
from ..observables.base import FromActivity, RecordedActivity
from ..observables.compared_points import Points
from ._backend import Backend

DEFAULT = ("distance", "output_distance", "output_alignment", "loss", "cosine")

HiddenActivity = Mapping[str, Float[np.ndarray, "sample _"]]  # the activity of every layer, by name


def reading(name: str) -> FromActivity:
    """How an observable is read off activity."""
    known = FROM_ACTIVITY[name].from_activity
    assert known is not None
    return known


def checked_names(observe: object, *, outputs: bool, targets: bool) -> tuple[str, ...]:
    """The observables asked for, plus their companions (`recorded_with`); None takes all small ones available."""

    def lacks(name: str) -> str:
        if reading(name).needs_targets and not targets:
            return "targets"
        return "outputs" if reading(name).needs_outputs and not outputs else ""

    if observe is None:
        return tuple(name for name in DEFAULT if not lacks(name))
    names = known_names(observe, FROM_ACTIVITY, "observable of a probe")
    for name in names:
        if missing := lacks(name):
            raise BadInput(
                f"observe {name!r} without {missing}",
                f"the {missing} at the probe inputs",
                f"give {missing}=…, or leave {name!r} out",
            )
    others = [other for name in names for other in FROM_ACTIVITY[name].recorded_with if other in FROM_ACTIVITY]
    return tuple(dict.fromkeys((*names, *(name for name in others if not lacks(name)))))


def compares_pairs(names: Sequence[str]) -> bool:
    """Whether one of these observables is about pairs."""
    return any(FROM_ACTIVITY[name].of_pairs for name in names)


def needs_outputs(names: Sequence[str]) -> bool:
    """Whether one of these observables is read off the outputs."""
    return any(reading(name).needs_outputs for name in names)


def flat(values: object, samples: int, whose: str, do: str) -> Float[np.ndarray, "sample unit"]:
    """A copy of activities (sample, …) as (sample, unit) in float64."""
    array = np.asarray(values)
    if array.ndim == 0 or len(array) != samples:
        raise BadInput(f"{whose} has shape {array.shape}, for {samples} inputs", "the sample as its first axis", do)
    if array.dtype.kind not in "biuf":
        raise BadInput(f"{whose} holds {array.dtype}", "real numbers", do)
    return array.reshape(samples, -1).astype(np.float64)


def _shape_advice(targets: Float[np.ndarray, "sample feature"], classes: int) -> str:
    """What to do about targets of another shape: they may be the numbers of classes."""
    are_labels = targets.shape[1] == 1 and np.isin(targets, np.arange(classes)).all()
    hot = f"; labels become one-hot: numpy.eye({classes})[labels], or torch.nn.functional.one_hot(labels, {classes})"
    return "give targets in the shape of the outputs" + (hot if are_labels else "")


class Record:
    """The numbers measured so far: a short list of small arrays for every observable."""

    def __init__(
        self,
        points: Points,
        names: Sequence[str],
        hidden: HiddenActivity,
        outputs: Float[np.ndarray, "sample feature"] | None,
    ):
        self.points, self.names = points, tuple(names)
        self.units = {layer: values.shape[1] for layer, values in hidden.items()}
        self.times: list[float] = []
        self._values: dict[str, list[Any]] = {name: [] for name in names}
        self._first: list[Float[np.ndarray, "sample _"]] | None = None
        targets = points.targets
        if targets is not None and outputs is not None and targets.shape != outputs.shape:
            raise BadInput(
                f"targets of shape {targets.shape}, and outputs of shape {outputs.shape}",
                "one target for every output",
                _shape_advice(targets, outputs.shape[1]),
            )
        by_layer = [name for name in names if reading(name).by_layer]
        slashed = [layer for layer in hidden if "/" in layer]
        if by_layer and slashed:
            raise BadInput(
                f"a {by_layer[0]} of layer {slashed[0]!r}", "a name without a slash", "rename it: layers={alias: name}"
            )

    def add(self, time: float, hidden: HiddenActivity, outputs: Float[np.ndarray, "sample feature"] | None) -> None:
        """Measure the network at one time."""
        for layer, values in hidden.items():
            if values.shape[1] != self.units[layer]:
                raise BadInput(
                    f"layer {layer!r} has {values.shape[1]} units at time {time}, and had {self.units[layer]}",
                    "as many units at all times",
                    "probe with inputs of one shape",
                )
        now = list(hidden.values())
        if self._first is None:
            self._first = now if any(reading(name).needs_first for name in self.names) else []
        activity = RecordedActivity(self.points, now, outputs, self._first)
        with np.errstate(all="ignore"):  # training may diverge; the record then says so with its numbers
            measured = {name: reading(name).read(activity) for name in self.names}
        self.times.append(time)
        for name, value in measured.items():
            self._values[name].append(value)

    @property
    def representations(self) -> dict[str, Float[np.ndarray, "time sample _"]]:
        """The activity of every layer, if it was asked for."""
        if "representation" not in self.names:
            raise BadInput(
                "no recorded representations", "a probe that keeps them", 'ask for them: observe=["representation"]'
            )
        return self._of_layers("representation")

    def _of_layers(self, name: str) -> dict[str, np.ndarray]:
        """The values of an observable that every layer has for itself."""
        return {layer: np.stack([value[k] for value in self._values[name]]) for k, layer in enumerate(self.units)}

    def trajectory(
        self,
        backend: Backend,
        facts: Mapping[str, object],
        *,
        lr: float | None = None,
        extra: Mapping[str, tuple[tuple[str, ...], np.ndarray]] | None = None,
    ) -> Trajectory:
        """The record as a Trajectory, with `extra` observables, {name: (axes, values)}, if there are any.

        An observable that every layer has for itself becomes one observable for each layer.
        """
        values: dict[str, np.ndarray] = {}
        axes: dict[str, tuple[str, ...]] = {}
        for name in self.names:
            if reading(name).by_layer:
                *others, last = FROM_ACTIVITY[name].axes
                for layer, array in self._of_layers(name).items():
                    values[f"{name} of {layer}"] = array
                    axes[f"{name} of {layer}"] = ("time", *others, f"{last} of {layer}")
            else:
                values[name] = np.stack(self._values[name])
                axes[name] = ("time", *(reading(name).axes or FROM_ACTIVITY[name].axes))
        for name, (extra_axes, value) in (extra or {}).items():
            axes[name], values[name] = extra_axes, value
        coordinates = {
            "layer": np.array(list(self.units)),
            "pair": self.points.names,
            "unit": np.array([f"{layer}:{unit}" for layer, count in self.units.items() for unit in range(count)]),
        }
        used = {axis for names in axes.values() for axis in names}
        provenance = {
            **self.points.facts,
            "units": self.units,
            "versions": backend.versions,
            **facts,
            **backend.clock_facts(lr),
        }
        kept = {axis: value for axis, value in coordinates.items() if axis in used}
        return Trajectory(np.asarray(self.times), values, axes, backend.name, provenance, kept)
