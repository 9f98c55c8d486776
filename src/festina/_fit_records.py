"""What the two-point theory is fitted to: H, P and w of pairs, whoever recorded them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _two_point
from ._errors import BadInput, UnknownName, shown
from ._fit_rates import Member
from ._noun import real_array, whole
from ._trajectory import Trajectory

# What is read off a trajectory, and its axes besides time and seed.
AXES = {
    "distance": ("layer", "pair"),
    "output_distance": ("pair",),
    "output_alignment": ("pair",),
    "mean_gap": ("pair",),
    "loss": (),
}
NOISE = 0.05  # of Y and of the largest P, by which P and w may be wrong
NEEDED = ("distance", "output_distance", "output_alignment")
CONSTANT = 1e-9  # of the size of a curve
MEAN_TO_LEARN = 1e-9  # of Y; below it the mean was right from the start


class Entry(NamedTuple):
    """One record: H, P, w (time), X and Y, and |ȳ − ȳ*|² (time) or None."""

    H: Any
    P: Any
    w: Any
    X: Any
    Y: Any
    mean_gap: Any = None


class Recorded(NamedTuple):
    """What a trajectory holds for the fit: arrays (seed, time, …), whoever made it."""

    times: Any
    distance: Any  # (seed, time, layer, pair)
    output: Any  # (seed, time, pair)
    alignment: Any
    mean_gap: Any  # or None
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


def recorded(trajectory: Any) -> Recorded:
    """The records of pairs in a trajectory from a probe, `simulate` or `solve`."""
    known = isinstance(trajectory, Trajectory)
    found = {name for name in AXES if known and _has(trajectory, name)}
    if not found.issuperset(NEEDED):
        raise BadInput(
            f"a fit of the two-point theory to {', '.join(trajectory) if known else type(trajectory).__name__}",
            f"a trajectory with {', '.join(NEEDED)} of pairs",
            'record one with festina.probe.torch(model, inputs=…, targets=…), or simulate(setup, observe=["distance", '
            '"output_distance", "output_alignment"]); curves of your own become one with festina.probe.curves',
        )
    H, P, w, mean, loss = (_seeded(trajectory, name) if name in found else None for name in AXES)
    assert H is not None
    names = {
        axis: [str(name) for name in trajectory.coordinates.get(axis, range(size))]
        for axis, size in (("layer", H.shape[2]), ("pair", H.shape[3]))
    }
    facts = trajectory.provenance
    X, Y = facts.get("input_gap"), facts.get("target_gap")
    if X is None or Y is None:
        do = "give inputs= and targets= to the probe"
        raise BadInput("a trajectory without gaps of inputs and targets", "both", do)
    # The loss of two points, and of no others, is that of their mean and that of their difference.
    if mean is None and loss is not None and P is not None and w is not None and facts.get("samples") == 2:
        mean = 2 * loss[..., None] - (2 * w + np.asarray(Y) - P) / 4
    seeds = trajectory.coordinates.get("seed", np.arange(len(H))) if "seed" in trajectory.axes["distance"] else None
    seeds = None if seeds is None else [int(seed) for seed in seeds]
    return Recorded(trajectory.times, H, P, w, mean, X, Y, seeds, names["layer"], names["pair"])


def _has(trajectory: Trajectory, name: str) -> bool:
    """Whether a trajectory has an observable of this name and these axes."""
    return name in trajectory and trajectory.axes[name] in {("time", *AXES[name]), ("seed", "time", *AXES[name])}


def _seeded(trajectory: Trajectory, name: str) -> Any:
    """An observable with a leading axis of seeds, in float64."""
    values = np.asarray(trajectory[name], np.float64)
    return values if trajectory.axes[name][0] == "seed" else values[None]


def seed_number(seed: Any, seen: Recorded) -> int:
    """The number of a seed in the record."""
    if seen.seeds is None:
        if seed is not None:
            raise BadInput(f"seed = {shown(seed)}, and a trajectory without seeds", "no seed", "leave it out")
        return 0
    if seed is None and len(seen.seeds) == 1:
        return 0
    listed = ", ".join(map(str, seen.seeds))
    if seed is None:
        do = f"give seed={seen.seeds[0]}, or fit them all: festina.probe.scan(trajectory)"
        raise BadInput(f"a trajectory of {len(seen.seeds)} seeds, and no seed", f"one of its seeds: {listed}", do)
    if whole(seed, "seed", least=0) not in seen.seeds:
        raise BadInput(f"seed = {seed}", f"one of the recorded seeds: {listed}", f"give seed={seen.seeds[0]}")
    return seen.seeds.index(seed)


def numbered(which: Any, names: list[str], kind: str) -> int:
    """The number of a recorded layer or pair, given by name or number."""
    if isinstance(which, str):
        if which not in names:
            raise UnknownName.among(f"recorded {kind}", which, names)
        return names.index(which)
    number = whole(which, kind, least=0)
    if number >= len(names):
        raise BadInput(f"{kind} = {number}", f"one of the {len(names)} recorded, counted from 0", f"choose: {names}")
    return number


def pair_number(which: Any, names: list[str]) -> int:
    """The number of a recorded pair, given by name, by number or by the numbers of its two samples in any order."""
    if not isinstance(which, (tuple, list)):
        return numbered(which, names, "pair")
    if len(which) != 2:
        raise BadInput(
            f"pair = {shown(which)}", "the numbers of two samples", "give pair=(0, 1), or a name: pair='0-1'"
        )
    i, j = (whole(sample, "pair", least=0) for sample in which)
    return numbered(f"{j}-{i}" if f"{j}-{i}" in names else f"{i}-{j}", names, "pair")


def checked_times(times, start):
    times, start = real_array(times, "times", ndim=1), whole(start, "start", least=0)
    if len(times) - start < 4:
        raise BadInput(
            f"{max(len(times) - start, 0)} records from start = {start} on", "at least 4", "record more often"
        )
    if np.any(np.diff(times) <= 0):
        raise BadInput("times that do not increase", "increasing times", "sort the records by time")
    return times, start


def beyond_noise(P: Any, w: Any, Y: Any) -> Any:
    """By how much |P − w| ≤ √(PY) is missed, beyond what noise of P and of w can do; (time, pair), and Y (pair,)."""
    noise = NOISE * np.maximum(P.max(axis=0), Y)
    return np.abs(P - w) - np.sqrt(np.maximum(P + noise, 0.0) * np.maximum(Y, 0.0)) - noise


def checked_entry(entry: Entry, times: Any, start: int, free_gap: bool) -> tuple[Member, Any] | BadInput:
    """A record from its start on, and that of the mean if there is something to fit; or what is wrong with it."""
    try:
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
        later = {name: curve[start:] for name, curve in given.items()}
        first = dict(zip(("distance0", "output0", "alignment0"), (float(c[0]) for c in later.values()), strict=False))
        shown = {name: f"{curve}[{start}]" for name, curve in zip(first, ("H", "P", "w"), strict=True)}
        X, Y = entry.X, entry.Y
        if np.ndim(Y) == 0 and np.all(beyond_noise(later["P"][:, None], later["w"][:, None], np.atleast_1d(Y))[0] <= 0):
            # What noise does to an output along its target is undone, as it is in the theory.
            bound = np.sqrt(first["output0"] * max(Y, 0.0))
            first["alignment0"] = first["output0"] - np.clip(first["output0"] - first["alignment0"], -bound, bound)
        numbers = _two_point.checked(
            {**first, "input_gap": X, "target_gap": Y}, {**shown, "input_gap": "X", "target_gap": "Y"}
        )
        if any(np.ndim(number) for number in numbers.values()):
            seen = f"X of shape {np.shape(X)} and Y of shape {np.shape(Y)}"
            raise BadInput(seen, "two numbers", "fit one pair of points at a time")
        X, Y = float(numbers["input_gap"]), float(numbers["target_gap"])
        if free_gap and Y == 0:
            raise BadInput(
                "free_gap = True with Y = 0", "targets that differ", "there is no target to be along; leave it"
            )
    except BadInput as error:
        return error
    mean = later.get("mean_gap")
    learned = (
        mean is not None and mean[0] > MEAN_TO_LEARN * max(Y, first["output0"]) and np.ptp(mean) > CONSTANT * mean[0]
    )
    return Member(np.stack([later[name] for name in ("H", "P", "w")]), X, Y), mean if learned else None
