"""Points at which a network is looked at, and the pairs of them that are compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._errors import BadInput, shown
from ._noun import real_array

ALL_PAIRS_UP_TO = 100  # inputs
NUMBERS_AT_ONCE = 2**20  # differences of pairs are made in pieces of this size


@dataclasses.dataclass(frozen=True)
class Points:
    """The inputs at which a network is looked at, their targets if there are any, and the pairs to compare."""

    inputs: np.ndarray | None  # (sample, …), None if they are not known
    samples: int
    targets: np.ndarray | None  # (sample, feature)
    pairs: np.ndarray  # (pair, 2)

    @property
    def names(self) -> np.ndarray:
        """A name for every pair: its two samples."""
        return names_of(self.pairs)

    @property
    def facts(self) -> dict[str, Any]:
        """What a trajectory of pairs says about them."""
        return facts_of(self.samples, self.pairs, self.input_gap, self.target_gap)

    @property
    def input_gap(self) -> np.ndarray | None:
        """X of every pair."""
        return None if self.inputs is None else gaps(self.inputs.reshape(self.samples, -1), self.pairs)

    @property
    def target_gap(self) -> np.ndarray | None:
        """Y of every pair."""
        return None if self.targets is None else gaps(self.targets, self.pairs)


def names_of(pairs: Any) -> np.ndarray:
    """A name for every pair: its two samples."""
    return np.array([f"{one}-{two}" for one, two in pairs])


def facts_of(samples: int, pairs: np.ndarray, input_gap: Any, target_gap: Any) -> dict[str, Any]:
    """What a trajectory of pairs says about them; gaps may be None."""
    gaps = {"input_gap": _listed(input_gap), "target_gap": _listed(target_gap)}
    return {"samples": samples, "pairs": pairs.tolist(), **gaps}


def said_of(chosen: Points | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and coordinates of a trajectory in which these points are compared, if any are."""
    return ({}, {}) if chosen is None else (chosen.facts, {"pair": chosen.names})


def _listed(values: np.ndarray | None) -> list[float] | None:
    return None if values is None else values.tolist()


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


def products(values: np.ndarray, others: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """(v₂ − v₁)·(u₂ − u₁) of every pair."""
    parts = [
        np.einsum("pu,pu->p", change, others[some[:, 1]] - others[some[:, 0]])
        for some, change in _pieces(values, pairs)
    ]
    return np.concatenate(parts)


def points(inputs: Any, targets: Any, pairs: Any, *, samples: int | None = None, paired: bool = True) -> Points:
    """Check inputs (sample, …), targets (sample, feature) and pairs of samples against each other.

    If nothing is asked of pairs (`paired`), there are none.
    """
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
    if not paired:
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
            raise BadInput(f"{samples} input", "at least two, to form a pair", "give two inputs or more")
        if samples > ALL_PAIRS_UP_TO:
            raise BadInput(
                f"{samples} inputs and no pairs",
                f"pairs of inputs to compare, if there are more than {ALL_PAIRS_UP_TO} inputs",
                "give pairs=[(0, 1), …]",
            )
        return np.stack(np.triu_indices(samples, 1), axis=1)
    return checked_pairs(pairs, samples)


def checked_pairs(pairs: Any, samples: int | None = None) -> np.ndarray:
    """Pairs of sample numbers (pair, 2), of so many samples if their number is known."""
    try:
        array = np.asarray(list(pairs))
    except Exception:  # lists of others raise what they like
        array = np.asarray(None)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise BadInput(f"pairs = {shown(pairs)}", "pairs of sample numbers", "give for example pairs=[(0, 1), (0, 2)]")
    for one, two in array:
        if min(one, two) < 0 or (samples is not None and max(one, two) >= samples):
            raise BadInput(
                f"pair ({one}, {two})" + ("" if samples is None else f" and {samples} inputs"),
                "sample numbers from 0" + (" on" if samples is None else f" to {samples - 1}"),
                "count the inputs from 0",
            )
        if one == two:
            raise BadInput(f"pair ({one}, {two})", "two different samples in a pair", "name two samples")
    return array.astype(int)
