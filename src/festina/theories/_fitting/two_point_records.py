"""What the two-point theory is fitted to: H, P and w of pairs of points, whoever recorded them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from ..._formulas.two_points import checks, flow
from ..._foundation.arrays import Numbers
from ..._foundation.checks import real_array, whole
from ..._foundation.errors import BadInput, shown
from ..._foundation.precision import in_double
from ..._foundation.program_memory import compiled
from ..._setup.trajectory import Trajectory
from .answer import CONSTANT
from .records import FitRecord, numbered, seeded, seeds_of

# What is read off a trajectory, and its axes besides time and seed.
AXES = {
    "distance": ("layer", "pair"),
    "output_distance": ("pair",),
    "output_alignment": ("pair",),
    "mean_gap": ("pair",),
    "loss": (),
}
NEEDED = ("distance", "output_distance", "output_alignment")
NOISE = 0.05  # of Y and of the largest P, by which P and w may be wrong
MEAN_TO_LEARN = 1e-9  # of Y; below it the mean was right from the start


class Entry(NamedTuple):
    """One pair of points in one layer, as recorded: H, P and w (time), X and Y, and |ȳ − ȳ*|² (time) or None."""

    H: object
    P: object
    w: object
    X: Any
    Y: Any
    mean_gap: object = None


class Known(NamedTuple):
    """What the fit of a pair takes as known: H0, q0, X and Y, and p0/√Y, unless that is fitted."""

    distance0: Numbers
    off0: Numbers
    input_gap: Numbers
    target_gap: Numbers
    along0: Float[np.ndarray, " only"]


class ForAnswer(NamedTuple):
    """Whether p0 is fitted; and |ȳ − ȳ*|², or None if it is unknown, was right from the start, or never changes."""

    free_gap: bool
    mean_gap: Float[np.ndarray, " time"] | None


class Recorded(NamedTuple):
    """What a trajectory holds for the fit: arrays (seed, time, …), whoever made it."""

    times: Float[np.ndarray, " time"]
    distance: Float[np.ndarray, "seed time layer pair"]
    output: Float[np.ndarray, "seed time pair"]
    alignment: Float[np.ndarray, "seed time pair"]
    mean_gap: Float[np.ndarray, "seed time pair"] | None
    input_gap: list[float]
    target_gap: list[float]
    seeds: list[int] | None  # None if there is no such axis
    layers: list[str]
    pairs: list[str]

    def member(self, seed: int, layer: int, pair: int) -> Entry:
        """One record, given by numbers."""
        mean = None if self.mean_gap is None else self.mean_gap[seed, :, pair]
        curves = (self.distance[seed, :, layer, pair], self.output[seed, :, pair], self.alignment[seed, :, pair])
        return Entry(*curves, self.input_gap[pair], self.target_gap[pair], mean)


def recorded(trajectory: object) -> Recorded:
    """The records of pairs in a trajectory from a probe, `simulate` or `solve`."""
    observed = set()
    if isinstance(trajectory, Trajectory):
        observed = {name for name in AXES if _has(trajectory, name)}
    if not isinstance(trajectory, Trajectory) or not observed.issuperset(NEEDED):
        what = ", ".join(trajectory) if isinstance(trajectory, Trajectory) else type(trajectory).__name__
        raise BadInput(
            f"a fit of the two-point theory to {what}",
            f"a trajectory with {', '.join(NEEDED)} of pairs",
            'record one with festina.probe.torch(model, inputs=…, targets=…), or simulate(setup, observe=["distance", '
            '"output_distance", "output_alignment"]); curves of your own become one with festina.probe.curves',
        )
    H, P, w = (seeded(trajectory, name) for name in NEEDED)
    names = {
        axis: [str(name) for name in trajectory.coordinates.get(axis, range(size))]
        for axis, size in (("layer", H.shape[2]), ("pair", H.shape[3]))
    }
    facts = trajectory.provenance
    X, Y = facts.get("input_gap"), facts.get("target_gap")
    if X is None or Y is None:
        do = "give inputs= and targets= to the probe"
        raise BadInput("a trajectory without gaps of inputs and targets", "both", do)
    mean = seeded(trajectory, "mean_gap") if "mean_gap" in observed else None
    # With only these two samples the loss splits into the parts of their mean and of their difference.
    if mean is None and "loss" in observed and facts.get("samples") == 2:
        mean = 2 * seeded(trajectory, "loss")[..., None] - (2 * w + np.asarray(Y) - P) / 4
    seeds = seeds_of(trajectory, "distance", len(H))
    return Recorded(trajectory.times, H, P, w, mean, X, Y, seeds, names["layer"], names["pair"])


def _has(trajectory: Trajectory, name: str) -> bool:
    """Whether a trajectory has an observable of this name and these axes."""
    return name in trajectory and trajectory.axes[name] in {("time", *AXES[name]), ("seed", "time", *AXES[name])}


def pair_number(which: object, names: list[str]) -> int:
    """The number of a recorded pair, given by name, by number or by the numbers of its two samples in any order."""
    if not isinstance(which, (tuple, list)):
        return numbered(which, names, "pair")
    if len(which) != 2:
        raise BadInput(
            f"pair = {shown(which)}", "the numbers of two samples", "give pair=(0, 1), or a name: pair='0-1'"
        )
    i, j = (whole(sample, "pair", least=0) for sample in which)
    return numbered(f"{j}-{i}" if f"{j}-{i}" in names else f"{i}-{j}", names, "pair")


def beyond_noise(
    P: Float[np.ndarray, "time pair"], w: Float[np.ndarray, "time pair"], Y: Float[np.ndarray, " pair"]
) -> Float[np.ndarray, "time pair"]:
    """By how much |P − w| exceeds √(PY), beyond what noise in P and w can explain."""
    noise = NOISE * np.maximum(P.max(axis=0), Y)
    return np.abs(P - w) - np.sqrt(np.maximum(P + noise, 0.0) * np.maximum(Y, 0.0)) - noise


def record_of(entry: Entry, times: Float[np.ndarray, " time"], start: int, free_gap: bool) -> FitRecord:
    """The record of a pair, from its record `start` on."""
    curves = _checked_curves(entry, times)
    later = {name: curve[start:] for name, curve in curves.items()}
    numbers = _checked_numbers(entry, later, start)
    X, Y = float(numbers["input_gap"]), float(numbers["target_gap"])
    if free_gap and Y == 0:
        raise BadInput("free_gap = True with Y = 0", "targets that differ", "there is no target to be along; leave it")
    H, P, w = later["H"], later["P"], later["w"]
    along0, off0 = map(float, _components(P[0], w[0], Y))
    known = Known(H[0], np.float64(off0), np.float64(X), np.float64(Y), np.array([along0 / (np.sqrt(Y) or 1.0)]))
    mean = later.get("mean_gap")
    learned = (
        mean is not None
        and mean[0] > MEAN_TO_LEARN * max(Y, float(numbers["output0"]))
        and np.ptp(mean) > CONSTANT * mean[0]
    )
    for_answer = ForAnswer(free_gap, mean if learned else None)
    return FitRecord(times[start:], np.stack([H, P, w]), known, start, for_answer=for_answer)


_components = in_double(compiled(flow.components))


def _checked_curves(entry: Entry, times: Float[np.ndarray, " time"]) -> dict[str, Float[np.ndarray, " time"]]:
    """H, P, w and, if it was recorded, |ȳ − ȳ*|²."""
    given = {name: real_array(getattr(entry, name), name, ndim=1) for name in ("H", "P", "w")}
    if entry.mean_gap is not None:
        given["mean_gap"] = real_array(entry.mean_gap, "mean_gap", ndim=1)
    lengths = {"times": len(times), **{name: len(curve) for name, curve in given.items()}}
    if len(set(lengths.values())) > 1:
        raise BadInput(
            f"records of different lengths: {', '.join(f'{name} {n}' for name, n in lengths.items())}",
            "one value of H, P and w for every time",
            "record all of them at the same steps",
        )
    for name in ("H", "P"):
        if np.any(given[name] < 0):
            raise BadInput(
                f"{name} down to {given[name].min():g}", f"squared distances {name} >= 0", "give squared distances"
            )
    return given


def _checked_numbers(entry: Entry, later: dict[str, Float[np.ndarray, " time"]], start: int) -> dict[str, Any]:
    """H, P and w of the first record, X and Y, as numbers that two points can have."""
    first = {"distance0": float(later["H"][0]), "output0": float(later["P"][0]), "alignment0": float(later["w"][0])}
    words = {name: f"{curve}[{start}]" for name, curve in zip(first, ("H", "P", "w"), strict=True)}
    X, Y = entry.X, entry.Y
    if np.ndim(Y) == 0 and np.all(beyond_noise(later["P"][:, None], later["w"][:, None], np.atleast_1d(Y))[0] <= 0):
        # Noise may break |P − w| ≤ √(PY) slightly; clip w as the closed form does.
        most = np.sqrt(first["output0"] * max(Y, 0.0))
        first["alignment0"] = first["output0"] - np.clip(first["output0"] - first["alignment0"], -most, most)
    gaps = {"input_gap": X, "target_gap": Y}
    numbers = checks.checked({**first, **gaps}, {**words, "input_gap": "X", "target_gap": "Y"})
    if any(np.ndim(number) for number in numbers.values()):
        shapes = f"X of shape {np.shape(X)} and Y of shape {np.shape(Y)}"
        raise BadInput(shapes, "two numbers", "fit one pair of points at a time")
    return numbers
