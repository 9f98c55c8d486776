"""Clusters of the patterns of many units, and the gates at their centres [jarvis2025, algorithm 1]."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .._foundation import checks
from .._foundation.checks import positive, whole
from .._foundation.errors import BadInput, UnknownName
from .._setup.setup import Setup
from .._setup.trajectory import Trajectory
from ..nets.gated.net import Gated
from ..tasks.base import Task
from ._patterns import Patterns, distinct, k_means
from .recording import Recording, recording, slope_of

METHODS = {"as_printed": ("count", 1), "weighted": ("weight", 10)}  # what a row counts, and the starts of k-means


@dataclasses.dataclass(frozen=True)
class Clustering:
    """The patterns of all units of a layer, and how they are to be clustered."""

    layer: Recording
    patterns: Patterns
    rows: int
    method: str
    n_init: int
    seed: int
    learned: float

    @property
    def number(self) -> int:
        """Which hidden layer it is, counted from 1."""
        return int(self.layer.layer[0])

    def at_centres(self, clusters: int) -> Found:
        """The gates at the centres of `clusters` clusters."""
        count = len(self.patterns.counts)
        clusters = whole(clusters, "clusters")
        if clusters > count:
            raise BadInput(
                f"clusters = {clusters}, and {count} distinct pattern{'s' * (count != 1)} among {self.rows} rows",
                f"at most {count} clusters",
                "lower clusters, or record more times and seeds",
            )
        by = METHODS[self.method][0]
        centroids, member = k_means(self.patterns, clusters, by, self.n_init, self.seed)
        share = np.bincount(member, self.patterns.weight, minlength=clusters) / self.patterns.weight.sum()
        order = np.argsort(-share, kind="stable")
        setup = self.layer.setup
        return Found(centroids[order], share[order], self.method, self.number, count, self.rows, setup)


def clustering(
    trained: Trajectory,
    method: str,
    *,
    layer: int = 1,
    n_init: int | None = None,
    seed: int = 0,
    learned: float = 0.99,
    task: Task | None = None,
) -> Clustering:
    """The patterns to cluster, with the arguments of `find` checked."""
    starts = METHODS[checks.choice(method, "method", METHODS)][1]
    starts = starts if n_init is None else whole(n_init, "n_init")
    seed = checks.seed(seed)
    if seed >= 2**32:
        raise BadInput(f"seed = {seed}", "a seed of k-means, below 2³²", "give a smaller one")
    if positive(learned, "learned") > 1:
        raise BadInput(f"learned = {learned}", "a share of the first loss, at most 1", "give learned=0.99")
    units = recording(trained, task=task).of_layer(layer)
    if method == "as_printed":
        rows, weights = units.packed.reshape(-1, units.packed.shape[-1]), None
    else:
        rows, weights = _rows_of_weight(units, learned)
    return Clustering(units, distinct(rows, weights, units.samples), len(rows), method, starts, seed, learned)


def _rows_of_weight(layer: Recording, learned: float) -> tuple[np.ndarray, np.ndarray]:
    """Patterns of units that are on for some sample, after learning has begun, weighted by their share of the layer."""
    has_begun = layer.after_start(learned)
    if not has_begun.any():
        times = len(layer.times)
        raise BadInput(
            f"gates recorded at too few times: at {times} time{'s' * (times != 1)}, "
            f"all with a loss above learned = {learned:g} of the first",
            "patterns from after learning has begun",
            'train longer, record later times, or take all patterns with method="as_printed"',
        )
    size = np.where(layer.packed.any(axis=-1) & has_begun[:, :, None], layer.size, 0.0)
    if not size.any():
        raise BadInput(
            f"no unit of layer {layer.layer[0]} that is on for any sample",
            "units that are on",
            'record a network that learns with its units on, or take method="as_printed"',
        )
    kept = size > 0
    return layer.packed[kept], (size / np.maximum(size.sum(axis=-1, keepdims=True), np.finfo(float).tiny))[kept]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Found(Sequence):
    """Gates found in a trained network, those with the largest share first: a sequence of arrays over samples.

    `centroids` (gate, sample) say how much of each cluster is on for a sample; `share` is the part of all rows, or of
    their weight, in the cluster. `distinct` of the `rows` that were clustered are different.
    """

    centroids: np.ndarray
    share: np.ndarray
    method: str
    layer: int
    distinct: int
    rows: int
    setup: Setup

    def __post_init__(self):
        do = "use gates.find(trained)"
        for name, rank in (("share", 1), ("centroids", 2)):
            if len(checks.real_array(getattr(self, name), name, ndim=rank)) != len(self.share):
                raise BadInput("centroids and share of different lengths", "one share for each gate", do)
        checks.choice(self.method, "method", METHODS)
        for name in ("layer", "distinct", "rows"):
            whole(getattr(self, name), name)
        checks.instance(self.setup, "setup", Setup, do)

    @property
    def task(self) -> Task:
        return self.setup.single_task

    @property
    def gates(self) -> np.ndarray:
        """(gate, sample): 1 where more than half of the cluster is on, else 0."""
        return (self.centroids > 0.5).astype(float)

    @property
    def ambiguity(self) -> np.ndarray:
        """(gate,): the mean distance of the centroid to the nearer of 0 and 1: 0 if the cluster is pure, at most ½."""
        return np.mean(np.abs(self.centroids - self.gates), axis=1)

    @property
    def names(self) -> tuple[str, ...]:
        """One digit per context where samples have them: 1 on for all, 0 off for all, x on for some of its samples."""
        context = (self.task.labels or {}).get("context")
        if context is None or len(np.unique(context)) < 2:
            return tuple(f"gate {k + 1}" for k in range(len(self)))
        parts = [self.gates[:, context == value] for value in np.unique(context)]
        digits = np.stack([np.where(part.all(1), "1", np.where(part.any(1), "x", "0")) for part in parts], axis=1)
        plain = ["".join(row) for row in digits]
        return tuple(
            f"{name} ({before + 1})" if (before := plain[:k].count(name)) else name for k, name in enumerate(plain)
        )

    def pathways(
        self, width: int | Sequence[int] | str = 100, *, sees: Iterable[int] | None = None
    ) -> list[dict[str, Any]]:
        """The pathways of `nets.Gated.pathways`, one per gate, each with `width` units that see the columns `sees`.

        A gate that is off for all samples is left out, and gates that are equal once rounded become one. `width` may
        also be one number per pathway, or "share": the units of the layer, dealt out by share. Of a leaky net, a gate
        that is off still passes the slope of its units.
        """
        if sees is not None:
            sees = _columns(sees)
        net = self.setup.net
        if net.bias:
            raise BadInput(
                "gates of a net with biases", "a net without: gated nets have no biases", "train with bias=False"
            )
        slope = slope_of(net)
        members: dict[bytes, list[int]] = {}
        for k, gate in enumerate(self.gates):
            if gate.any():
                members.setdefault(gate.tobytes(), []).append(k)
        if not members:
            raise BadInput(
                f"{len(self)} gate(s), all off for every sample",
                "a gate that is on",
                'raise clusters, or find gates with method="weighted", which leaves dead units out',
            )
        merged = sorted(members.values(), key=lambda same: -self.share[same].sum())
        widths = self._widths(width, np.array([self.share[same].sum() for same in merged]))
        return [
            {"name": self.names[k], "on": np.where(self.gates[k] > 0, 1.0, slope), "width": units, "sees": sees}
            for (k, *_), units in zip(merged, widths, strict=True)
        ]

    def net(
        self, width: int | Sequence[int] | str = 100, *, sees: Iterable[int] | None = None, training: str = "joint"
    ) -> Gated:
        """The gated net with these gates: `nets.Gated.pathways(found.pathways(width, sees=sees), training=training)`.

        A gate that is off for all samples is left out, and gates that are equal once rounded become one. In sequential
        training the pathway with the largest share comes first.
        """
        return Gated.pathways(self.pathways(width, sees=sees), training=training)

    def _widths(self, width: int | Sequence[int] | str, share: np.ndarray) -> list[int]:
        """The number of units of every pathway."""
        if isinstance(width, str):
            if width != "share":
                raise UnknownName.among("width", width, ("share",))
            return _dealt(self.setup.net.hidden[self.layer - 1], share)
        do, is_number = f"give width=100, or {len(share)} numbers", isinstance(width, (int, np.integer))
        listed = (
            [width] * len(share) if is_number else checks.listed(width, "width", "one width, or one per pathway", do)
        )
        if len(listed) != len(share):
            raise BadInput(
                f"{len(listed)} widths for {len(share)} pathways",
                "one width, or one per pathway: gates that are off or equal make none",
                do,
            )
        return [whole(units, "width") for units in listed]

    def __len__(self) -> int:
        return len(self.centroids)

    def __getitem__(self, index: Any) -> np.ndarray:  # pyright: ignore[reportIncompatibleMethodOverride]
        return checks.entry(self.gates, index, "index")

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.gates)

    def __contains__(self, gate: object) -> bool:
        return any(np.array_equal(known, gate) for known in self)  # pyright: ignore[reportArgumentType]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.gates, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        many = f"{len(self)} gate{'s' * (len(self) != 1)}"
        lines = [f"{many} of layer {self.layer} ({self.method}): {self.rows} rows, {self.distinct} distinct"]
        longest = max(map(len, ("gate", *self.names)))
        lines += [f"  {'gate':<{longest}}  samples on  share  ambiguity"]
        for name, gate, share, doubt in zip(self.names, self, self.share, self.ambiguity, strict=True):
            on = f"{int(gate.sum())} of {len(gate)}"
            lines += [f"  {name:<{longest}}  {on:>10}  {share:5.2f}  {doubt:9.2f}"]
        return "\n".join(lines)


def _columns(sees: object) -> list[int]:
    """Numbers of columns of x."""
    listed = checks.listed(sees, "sees", "numbers of columns of x, or None for all", "give sees=range(8)")
    return [whole(column, "sees", least=0) for column in listed]


def _dealt(total: int, share: np.ndarray) -> list[int]:
    """`total` units by share, rounded by largest remainder, at least one for each."""
    if total < len(share):
        raise BadInput(
            f"{total} unit{'s' * (total != 1)} of the layer for {len(share)} pathways",
            "a unit for each",
            "give width as a number, or find fewer gates",
        )
    quota = total * share / share.sum()
    units = np.maximum(np.floor(quota + 1e-9), 1)  # a whole quota stays whole under rounding
    while missing := total - units.sum():
        step = np.sign(missing)
        units[np.argmax(np.where(units + step >= 1, step * (quota - units), -np.inf))] += step
    return [int(count) for count in units]
