"""Points, which are samples of a task or inputs of a probe, and the pairs of them that are compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Int, Shaped

from .._foundation.checks import real_array
from .._foundation.errors import BadInput, shown

Pairs: TypeAlias = Int[np.ndarray, "pair 2"]  # numbers of samples
OfPairs: TypeAlias = Float[np.ndarray, " pair"]
BySample: TypeAlias = Shaped[np.ndarray, "sample unit"]  # numbers or, of gates, truth values

ALL_PAIRS_UP_TO = 100  # inputs
NUMBERS_AT_ONCE = 2**20  # differences of pairs are made in pieces of this size


@dataclasses.dataclass(frozen=True)
class Points:
    """The inputs of all points, their targets if there are any, and the pairs to compare."""

    inputs: Float[np.ndarray, "sample ..."] | None  # None if they are not known
    samples: int
    targets: Float[np.ndarray, "sample feature"] | None
    pairs: Pairs

    @property
    def names(self) -> np.ndarray:
        """A name for every pair: its two samples."""
        return names_of(self.pairs)

    @property
    def facts(self) -> dict[str, Any]:
        """What the provenance of a trajectory says about its pairs."""
        return facts_of(self.samples, self.pairs, self.input_gap, self.target_gap)

    @property
    def input_gap(self) -> OfPairs | None:
        """X, the squared distance of the inputs, of every pair."""
        return None if self.inputs is None else gaps(self.inputs.reshape(self.samples, -1), self.pairs)

    @property
    def target_gap(self) -> OfPairs | None:
        """Y, the squared distance of the targets, of every pair."""
        return None if self.targets is None else gaps(self.targets, self.pairs)


def names_of(pairs: Pairs) -> np.ndarray:
    """A name for every pair: its two samples."""
    return np.array([f"{first}-{second}" for first, second in pairs])


def facts_of(samples: int, pairs: Pairs, input_gap: OfPairs | None, target_gap: OfPairs | None) -> dict[str, Any]:
    """What the provenance of a trajectory says about its pairs; gaps may be None."""
    known = {"input_gap": input_gap, "target_gap": target_gap}
    listed = {name: None if gap is None else gap.tolist() for name, gap in known.items()}
    return {"samples": samples, "pairs": pairs.tolist(), **listed}


def pair_metadata(chosen: Points | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and coordinates of a trajectory in which these points are compared, if any are."""
    return ({}, {}) if chosen is None else (chosen.facts, {"pair": chosen.names})


def _pieces(values: BySample, pairs: Pairs) -> Iterator[tuple[Pairs, BySample]]:
    """(pairs, v₂ − v₁) for some pairs at a time: all of them at once may not fit into memory."""
    count = max(1, NUMBERS_AT_ONCE // max(1, values.shape[1]))
    for first in range(0, len(pairs), count):
        some = pairs[first : first + count]
        yield some, values[some[:, 1]] - values[some[:, 0]]


def gaps(values: BySample, pairs: Pairs) -> OfPairs:
    """|v₂ − v₁|² of every pair."""
    parts = [np.einsum("pu,pu->p", change, change) for _, change in _pieces(values, pairs)]
    return np.concatenate(parts) if parts else np.zeros(0)


def products(values: BySample, others: BySample, pairs: Pairs) -> OfPairs:
    """(v₂ − v₁)·(u₂ − u₁) of every pair."""
    parts = [
        np.einsum("pu,pu->p", change, others[some[:, 1]] - others[some[:, 0]])
        for some, change in _pieces(values, pairs)
    ]
    return np.concatenate(parts)


def checked_points(
    inputs: object, targets: object, pairs: object, *, samples: int | None = None, paired: bool = True
) -> Points:
    """Points with inputs (sample, …), targets (sample, feature) and pairs of samples, checked against each other.

    Unless observables of pairs are asked for (`paired`), there are no pairs. `samples` is the number of samples, needed
    if inputs are not known.
    """
    rows, wanted = None, None
    if inputs is not None:
        rows = real_array(inputs, "inputs")
        if rows.ndim == 0:
            raise BadInput(f"inputs = {rows}", "an array (sample, …)", "give at least two inputs, as rows")
        if samples is not None and len(rows) != samples:
            raise BadInput(
                f"{len(rows)} inputs, and activities of {samples} samples", "one input per sample", "match them"
            )
        samples = len(rows)
    assert samples is not None
    if targets is not None:
        wanted = real_array(targets, "targets", ndim=(1, 2))
        wanted = wanted[:, None] if wanted.ndim == 1 else wanted
        if len(wanted) != samples:
            raise BadInput(f"{len(wanted)} targets for {samples} inputs", "one target per input", "match their rows")
    checked = Points(rows, samples, wanted, np.zeros((0, 2), int))
    if not paired:
        return checked
    checked = dataclasses.replace(checked, pairs=_checked_pairs(pairs, samples))
    gap = checked.input_gap
    if gap is not None and not gap.all():
        first, second = (int(i) for i in checked.pairs[np.argmin(gap)])
        raise BadInput(
            f"inputs {first} and {second} of pair ({first}, {second}) are the same",
            "two different inputs in a pair",
            "leave one of them out, or give pairs=[…] without it",
        )
    return checked


def _checked_pairs(pairs: object, samples: int) -> Pairs:
    if pairs is None:
        if samples < 2:
            raise BadInput(f"{samples} input", "at least two, to form a pair", "give two inputs or more")
        if samples > ALL_PAIRS_UP_TO:
            raise BadInput(
                f"{samples} inputs and no pairs",
                f"pairs of inputs to compare, if there are more than {ALL_PAIRS_UP_TO} inputs",
                "give pairs=[(0, 1), …]",
            )
        return np.stack(np.triu_indices(samples, 1), axis=1)
    return checked_pairs(pairs, samples)


def checked_pairs(pairs: object, samples: int | None = None) -> Pairs:
    """Pairs of sample numbers (pair, 2), below `samples` if that number is known."""
    try:
        array = np.asarray(list(pairs))  # pyright: ignore[reportArgumentType, reportCallIssue]
    except Exception:  # lists of others raise what they like
        array = np.asarray(None)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise BadInput(f"pairs = {shown(pairs)}", "pairs of sample numbers", "give for example pairs=[(0, 1), (0, 2)]")
    for first, second in array:
        if min(first, second) < 0 or (samples is not None and max(first, second) >= samples):
            raise BadInput(
                f"pair ({first}, {second})" + ("" if samples is None else f" and {samples} inputs"),
                "sample numbers from 0" + (" on" if samples is None else f" to {samples - 1}"),
                "count the inputs from 0",
            )
        if first == second:
            raise BadInput(f"pair ({first}, {second})", "two different samples in a pair", "name two samples")
    return array.astype(int)
