"""Reading gates: which kinds of units hold the weight of a network, and how this changes as it learns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._foundation.checks import positive, whole
from .._foundation.errors import BadInput, UnknownName
from .._setup.trajectory import Trajectory
from ..tasks.base import Task
from .recording import Recording, recording

if TYPE_CHECKING:
    import xarray

BEGINNING = 0.99  # of the first loss: a network that has come to it has begun to learn
STATES = np.frombuffer(b"01x", np.uint8)  # off, on and split, as letters


def purity(
    trained: Trajectory,
    label: str = "context",
    *,
    small: float = 0.01,
    most_kinds: int = 250,
    task: Task | None = None,
) -> xarray.Dataset:
    """How the weight of a ReLU network is shared among kinds of gates over time; an `xarray.Dataset`.

    The kind of a unit has one letter for each value of the label, in their order: 1 where it is on for all samples with
    that value, 0 where it is off for all of them, x where it splits them. A unit weighs |incoming| |outgoing|, and a
    share is one of the weight of its layer; where all units of a layer have size 0, all count alike.

    Args:
        label: a label of the task, such as "context" or "item".
        small: units above this share of the largest of their layer are strong.
        most_kinds: how many kinds, and votes, to list; those with least weight over all times become "other".
        task: one with the samples of the recording and with labels, which a probe does not know.

    All variables have the axes (seed, layer, time), and the hidden layers count from 1:

    - `share` (…, kind): of each kind that ever occurs; 1 in sum. Pure kinds come first, then split ones, "000" last.
    - `all_on`, `pure`, `split`, `dead`: shares of the kinds "111", without an x and not "000", with an x, and "000".
    - `on_for` (…, values_on): of units that split no value, by how many values they are on for: 0 (dead) to all.
    - `majority` (…, vote): the same as `share` by majority: 1 where a unit is on for more than half of the samples.
    - `strong`, `distinct`: how many units are strong at that time, and how many patterns over samples these have.
    - `never_growing` (seed, layer): share of the units, by number, that at no time exceed `small` of the largest unit
      of the last time.
    - `switched`: share of units with another pattern over samples than when learning began, at the first record with
      the loss down to 0.99 of its start; 0 up to then, and where it never comes to that.
    - `began_all_on`: share of units that were all-on and strong when learning began, and `kept_all_on` the part of it
      that still is all-on; NaN before then, and where there is no such unit.
    """
    import xarray

    network = recording(trained, task=task)
    values, counts, sizes = _counts(network, label)
    if (small := positive(small, "small", zero=True)) >= 1:
        raise BadInput(f"small = {small:g}", "a share of the largest unit, below 1", "give small=0.01")
    whole_on, most = counts == sizes, whole(most_kinds, "most_kinds")
    split, ones = (~whole_on & (counts > 0)).any(axis=-1), whole_on.sum(axis=-1)
    weights = np.concatenate([_weight(network.of_layer(layer).size) for layer in network.layers], axis=-1)
    kind, kinds = _fewer(*_words(np.where(whole_on, 1, np.where(counts == 0, 0, 2))), weights, most)
    vote, votes = _fewer(*_words(np.where(2 * counts > sizes, 1, 0)), weights, most)
    has_begun, start = _beginning(network)
    all_on, dead = whole_on.all(axis=-1), (counts == 0).all(axis=-1)
    columns: dict[str, list[np.ndarray]] = {}
    for layer in network.layers:
        of, units = network.layer == layer, network.of_layer(layer)
        weight = _weight(units.size)
        strong = units.size > small * units.size.max(axis=-1, keepdims=True)
        first, large = _at(units.packed, start), _at(strong & all_on[..., of], start)
        began = (weight * large).sum(axis=-1)
        kept = (weight * (large & all_on[..., of])).sum(axis=-1)
        parts = {
            "share": _shared(weight, kind[..., of], len(kinds)),
            "all_on": (weight * all_on[..., of]).sum(axis=-1),
            "pure": (weight * (~split & ~dead)[..., of]).sum(axis=-1),
            "split": (weight * split[..., of]).sum(axis=-1),
            "dead": (weight * dead[..., of]).sum(axis=-1),
            "on_for": _shared(weight * ~split[..., of], ones[..., of], len(values) + 1),
            "majority": _shared(weight, vote[..., of], len(votes)),
            "strong": strong.sum(axis=-1),
            "distinct": _each(lambda packed, kept: len(set(map(bytes, packed[kept]))), units.packed, strong),
            "never_growing": (units.size.max(axis=1) <= small * units.size[:, -1].max(axis=-1, keepdims=True)).mean(-1),
            "switched": has_begun * (weight * _differ(units.packed, first)).sum(axis=-1),
            "began_all_on": np.where(has_begun, began, np.nan),
            "kept_all_on": np.where(has_begun & (began > 0), kept / np.where(began > 0, began, 1), np.nan),
        }
        for name, part in parts.items():
            columns.setdefault(name, []).append(part)
    last = {"share": ("kind",), "on_for": ("values_on",), "majority": ("vote",)}
    axes = {name: ("seed", "layer", "time", *last.get(name, ())) for name in columns} | {
        "never_growing": ("seed", "layer")
    }
    return xarray.Dataset(
        {name: (axes[name], np.stack(parts, axis=1)) for name, parts in columns.items()},
        coords={
            "seed": network.seeds,
            "layer": list(network.layers),
            "time": network.times,
            "kind": kinds,
            "vote": votes,
            "values_on": np.arange(len(values) + 1),
        },
        attrs={"label": label, "small": small},
    )


def _counts(network: Recording, label: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The values of a label, for how many samples of each a unit is on (seed, time, unit, value), and how many it has.

    Bits are counted as they are packed: unpacked, those of many samples would not fit into memory.
    """
    labels = network.task.labels or {}
    if not labels:
        raise BadInput(
            "gates recorded on samples without labels",
            "a label: what each sample is a case of, such as its context",
            'build the task with tasks.from_arrays(x, y, labels={"context": […]}); of a probe give it as task=…',
        )
    if not isinstance(label, str) or label not in labels:
        raise UnknownName.among("label of the task", label, labels)
    values, which = np.unique(np.asarray(labels[label]), return_inverse=True)
    masks = np.packbits(which == np.arange(len(values))[:, None], axis=-1)

    def on(packed: np.ndarray) -> np.ndarray:
        return np.stack([np.bitwise_count(packed & mask).sum(axis=-1, dtype=np.int64) for mask in masks], axis=-1)

    return values, _each(on, network.packed), np.bincount(which)


def _words(states: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Encode each unit's state per label value as a word of 1, 0 and x; return word indices and the words."""
    letters = np.ascontiguousarray(STATES[states])
    raw, number = np.unique(letters.view(f"S{letters.shape[-1]}")[..., 0], return_inverse=True)
    words = [word.decode() for word in raw]

    def rank(k: int) -> tuple[bool, int, int, str]:
        word = words[k]
        return set(word) == {"0"}, word.count("x"), -word.count("1"), word.translate(str.maketrans("1x0", "abc"))

    order = sorted(range(len(words)), key=rank)
    return np.argsort(order)[number.reshape(states.shape[:-1])], [words[k] for k in order]


def _fewer(number: np.ndarray, words: list[str], weights: np.ndarray, most: int) -> tuple[np.ndarray, list[str]]:
    """The words with most weight over all units and times; all others as one, "other", the last."""
    if len(words) <= most:
        return number, words
    total = np.bincount(number.ravel(), weights.ravel(), len(words))
    kept = np.sort(np.argsort(-total, kind="stable")[:most])
    place = np.full(len(words), most)
    place[kept] = np.arange(most)
    return place[number], [*(words[k] for k in kept), "other"]


def _weight(size: np.ndarray) -> np.ndarray:
    """Sizes (…, unit) as shares of their sum; equal ones where this is 0."""
    total = size.sum(axis=-1, keepdims=True, dtype=float)
    return np.where(total > 0, size / np.where(total > 0, total, 1), 1 / size.shape[-1])


def _shared(weight: np.ndarray, number: np.ndarray, count: int) -> np.ndarray:
    """The sum of weights (…, unit) by the number that each unit has, (…, count)."""
    rows = np.arange(weight[..., 0].size)[:, None]
    cells = count * rows + number.reshape(len(rows), -1)
    return np.bincount(cells.ravel(), weight.ravel(), count * len(rows)).reshape(*weight.shape[:-1], count)


def _beginning(network: Recording) -> tuple[np.ndarray, np.ndarray]:
    """(seed, time): from when on learning has begun; and the index of that time, (seed,)."""
    has_begun = np.logical_or.accumulate(network.after_start(BEGINNING), axis=1)
    return has_begun, np.argmax(has_begun, axis=1)


def _at(array: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The entries (seed, 1, …) at one time for each seed."""
    return array[np.arange(len(start)), start, None]


def _differ(packed: np.ndarray, first: np.ndarray) -> np.ndarray:
    """(seed, time, unit): whether patterns are others than the first."""
    return np.stack([np.any(now != first[:, 0], axis=-1) for now in np.moveaxis(packed, 1, 0)], axis=1)


def _each(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """Apply a function to each seed and time."""
    return np.array([[function(*at) for at in zip(*seed, strict=True)] for seed in zip(*arrays, strict=True)])
