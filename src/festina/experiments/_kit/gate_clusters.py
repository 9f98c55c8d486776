"""Gates of ReLU units, clustered by k-means: which clusters are gates for contexts, and panels of them.

Gates are named by the contexts that they are open in: "111" is the common one, "110" open in the first two contexts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._figures.style import COLOURS
from ..._setup.trajectory import Trajectory
from ...gates._patterns import distinct, k_means
from ...gates.clusters import METHODS, Found
from ...gates.finding import find
from ...gates.recording import recording

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

GATES = ("111", "110", "101", "011")
ALIVE = "without_dead"  # as printed, but without rows that are all off
NAMES = {"as_printed": "all rows alike (as printed)", "weighted": "weighted by size", ALIVE: "as printed, no dead rows"}


def some_seeds(trained: Trajectory, rows: Iterable[int]) -> Trajectory:
    """Some of the seeds of a trajectory."""
    chosen = list(rows)
    values = {name: trained[name][chosen] for name in trained}
    places = {**trained.coordinates, "seed": trained.coordinates["seed"][chosen]}
    return Trajectory(trained.times, values, trained.axes, trained.source, trained.provenance, places)


def has_four_gates(trained: Trajectory, how: str, starts: int, seed: int) -> bool:
    """Whether the best of `starts` runs of k-means, with four clusters, gives the common and the two-context gates."""
    return set(GATES) == set(_four_clusters(trained, how, starts, seed).names)


def _four_clusters(trained: Trajectory, how: str, starts: int, seed: int) -> Found:
    if how != ALIVE:
        return find(trained, 4, how, n_init=starts, seed=seed)
    recorded = recording(trained)
    rows = recorded.packed[recorded.packed.any(axis=-1)]
    patterns = distinct(rows, None, recorded.samples)
    centroids, member = k_means(patterns, 4, "count", starts, seed)
    share = np.bincount(member, patterns.counts, minlength=4) / len(rows)
    return Found(centroids, share, "as_printed", 1, len(patterns.counts), len(rows), recorded.setup)


def table(
    clusterings: Mapping[tuple[str, int], Found],
    counts: Sequence[int],
    value: Callable[[Found], Any],
    fill: float | str,
    *shape: int,
) -> np.ndarray:
    """A value of every gate, (method, number of clusters, gate, …); places without a gate hold `fill`.

    The four gates come first, in their order, then others by name.
    """
    cells = np.full((len(METHODS), len(counts), max(counts), *shape), fill)
    for m, method in enumerate(METHODS):
        for k, count in enumerate(counts):
            gates = clusterings[method, count]
            cells[m, k, :count] = np.asarray(value(gates))[_in_order(gates)]
    return cells


def _in_order(gates: Found) -> list[int]:
    def place(k: int) -> tuple[int, str]:
        name = gates.names[k]
        return (GATES.index(name) if name in GATES else len(gates) + len(GATES), name)

    return sorted(range(len(gates)), key=place)


def draw_centroids(axes: Axes, data: Dataset, method: str) -> None:
    """For each number of clusters shown: the share of each cluster that is on for each sample."""
    columns, places, names, middles = [], [], [], []
    samples = data.sizes["sample"]
    for count in np.atleast_1d(data.attrs["shown"]):
        clusters = data.sel(way=method, clusters=count).isel(gate=slice(int(count)))
        middles.append((len(columns) + (count - 1) / 2, count))
        places += range(len(columns), len(columns) + int(count))
        names += [str(name) for name in clusters.name.values]
        columns += [*clusters.centroid.values, np.full(samples, np.nan)]
    picture = axes.imshow(
        np.array(columns[:-1]).T, aspect="auto", cmap="Blues", vmin=0, vmax=1, interpolation="nearest"
    )
    borders = np.flatnonzero(np.diff(data.context.values)) + 0.5
    for border in borders:
        axes.axhline(border, color="white", lw=2)
    ends = [-0.5, *borders, samples - 0.5]
    axes.set_yticks((np.array(ends[:-1]) + ends[1:]) / 2, [f"context {k + 1}" for k in range(len(ends) - 1)])
    axes.set_xticks(places, names, rotation=90)
    for tick in axes.get_xticklabels():
        tick.set_color("black" if tick.get_text() in GATES else COLOURS[1])
    for middle, count in middles:
        axes.annotate(f"K = {count}", (middle, 1.01), xycoords=("data", "axes fraction"), ha="center", va="bottom")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    rows, different = (int(data[name].sel(way=method)) for name in ("rows", "distinct"))
    axes.set_title(f"{NAMES[method]}\n{rows:,} rows, {different:,} different", pad=18)
    axes.figure.colorbar(picture, ax=axes, shrink=0.8, label="share that is on")


def draw_successes(axes: Axes, data: Dataset) -> None:
    """How often single starts give the four gates, for each set of trainings; ✓ where the best of ten starts does."""
    sets = np.arange(data.sizes["set"])
    for k, method in enumerate(data.how.values):
        share = data.one_start.sel(how=method).mean("start").values
        places = sets + 0.27 * (k - 1)
        axes.bar(places, share, width=0.25, color=COLOURS[k], label=NAMES[method])
        for place, height, whole_set in zip(places, share, data.ten_starts.sel(how=method).values, strict=True):
            axes.annotate("✓" if whole_set else "✗", (place, height), ha="center", va="bottom", fontsize=11)
    axes.set(
        xlabel="set of trainings",
        xticks=sets,
        xticklabels=[str(k + 1) for k in sets],
        ylim=(0, 1.5),
        yticks=[0, 0.5, 1],
    )
    axes.set_ylabel(f"share of {data.sizes['start']} single starts")
    axes.set_title("starts that find all four gates (✓ ✗: best of ten)")
    axes.legend(loc="upper left", ncols=1)
