"""Gates of ReLU units, clustered by k-means: whether the four gates are found, and clusters by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ..._setup.trajectory import Trajectory
from ...gates._patterns import distinct, k_means
from ...gates.clusters import Found
from ...gates.finding import find
from ...gates.recording import recording

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from xarray import Dataset

GATES = {"111": "1, 2, 3", "110": "1, 2", "101": "1, 3", "011": "2, 3"}  # the contexts in which each is on
CONTEXTS = 3
ALIVE = "without_dead"  # as printed, but without rows that are all off


def some_seeds(trained: Trajectory, rows: Iterable[int]) -> Trajectory:
    """Some of the seeds of a trajectory."""
    chosen = list(rows)
    values = {name: trained[name][chosen] for name in trained}
    places = {**trained.coordinates, "seed": trained.coordinates["seed"][chosen]}
    return Trajectory(trained.times, values, trained.axes, trained.source, trained.provenance, places)


def has_four_gates(trained: Trajectory, how: str, starts: int, seed: int) -> bool:
    """Whether the best of `starts` runs of k-means, with four clusters, gives the common and the two-context gates."""
    if how != ALIVE:
        return set(GATES) == set(find(trained, 4, how, n_init=starts, seed=seed).names)
    recorded = recording(trained)
    rows = recorded.packed[recorded.packed.any(axis=-1)]
    patterns = distinct(rows, None, recorded.samples)
    centroids, member = k_means(patterns, 4, "count", starts, seed)
    share = np.bincount(member, patterns.counts, minlength=4) / len(rows)
    found = Found(centroids, share, "as_printed", 1, len(patterns.counts), len(rows), recorded.setup)
    return set(GATES) == set(found.names)


def clusters(found: Found, most: int) -> Dataset:
    """Centroids, the contexts in which each is on, and its distance from 0 and 1; empty beyond the last of `most`.

    The four gates come first, in their order, then all others.
    """
    import xarray

    first = [*GATES, *sorted({*found.names} - {*GATES})]
    order = sorted(range(len(found)), key=lambda k: first.index(found.names[k]))
    data = xarray.Dataset(
        {
            "centroid": (("gate", "sample"), found.centroids[order]),
            "on_in": ("gate", [GATES.get(found.names[k], "other") for k in order]),
            "ambiguity": ("gate", found.ambiguity[order]),
        },
        coords={"gate": range(len(found))},
    )
    return data.reindex(gate=range(most), fill_value={"centroid": np.nan, "on_in": "", "ambiguity": np.nan})


def draw_clusters(axes: Axes, data: Dataset) -> AxesImage:
    """The centroids for each number of clusters, below a line that says it."""
    blank, rows, names = np.full((1, data.sizes["sample"]), np.nan), [], []
    for count in np.atleast_1d(data.attrs["shown"]):
        of_count = data.sel(clusters=count).isel(gate=slice(int(count)))
        axes.text(-0.4, len(names), f"K = {count}", va="center", size=9)
        rows += [blank, of_count.centroid.values]
        names += ["", *of_count.on_in.values]
    image = axes.imshow(np.concatenate(rows), aspect="auto", cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
    items = data.sizes["sample"] / CONTEXTS
    for context in range(1, CONTEXTS):
        axes.axvline(context * items - 0.5, color="white", lw=2.5)
    axes.set_yticks(range(len(names)), names, size=8)
    axes.set_xticks([(k + 0.5) * items - 0.5 for k in range(CONTEXTS)], [f"context {k + 1}" for k in range(CONTEXTS)])
    axes.set_ylabel("contexts in which it is on")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image
