"""Algorithm 1 on 170,100 rows, three trainings of 700 units at 81 times: k-means of different rows, and of all.

Rows are made up: four gates by context, with bits that differ at random, so that about a tenth of them are different
from each other, as in the trained networks. Both take the best of ten starts; inertias must agree.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

from .harness import Claim, Contestant
from .rivals import Call

UNIT = "call"
SEEDS, TIMES, UNITS, SAMPLES = 3, 81, 700, 24
CLUSTERS, STARTS = 4, 10
TOLERANCE = 1e-3


def rows() -> np.ndarray:
    """(seed, time, unit, sample)."""
    random = np.random.default_rng(0)
    whole = np.repeat(np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]], bool), 8, axis=1)
    # Few patterns are common and many are rare: bits differ from unit to unit with different odds.
    odds = random.beta(0.05, 1.5, (SEEDS, TIMES, UNITS, 1))
    return whole[random.integers(4, size=(SEEDS, TIMES, UNITS))] ^ (
        random.random((SEEDS, TIMES, UNITS, SAMPLES)) < odds
    )


def inertia(patterns: np.ndarray, centroids: Any) -> float:
    """The mean squared distance to the nearest centroid, of one row in a hundred."""
    flat = patterns.reshape(-1, SAMPLES)[::100].astype(float)
    return float(np.min(((flat[:, None] - np.asarray(centroids)[None]) ** 2).sum(axis=-1), axis=1).mean())


def festina() -> Call:
    import festina as fs
    from festina._setup.spec import to_spec

    setup = fs.Setup(
        fs.tasks.contextual(), fs.nets.MLP(UNITS), fs.inits.SmallRandom(1.0), fs.rules.GradientDescent(0.1),
        times=np.arange(TIMES) * 0.1,
    )  # fmt: skip
    patterns = rows()
    shape = patterns.shape[:3]
    values = {"gates": np.packbits(patterns, axis=-1), "unit_size": np.ones(shape), "loss": np.ones(shape[:2])}
    axes = {"gates": ("seed", "time", "unit", "byte"), "unit_size": ("seed", "time", "unit"), "loss": ("seed", "time")}
    provenance = {"setup": functools.partial(to_spec, setup)}
    trained = fs.Trajectory(setup.times, values, axes, "simulate", provenance, {"seed": np.arange(SEEDS)})

    def go():
        return [inertia(patterns, fs.gates.find(trained, CLUSTERS, "as_printed", n_init=STARTS).centroids)]

    return go


def all_rows() -> Call:
    from sklearn.cluster import KMeans

    patterns = rows()

    def go():
        means = KMeans(CLUSTERS, n_init=STARTS, random_state=0).fit(patterns.reshape(-1, SAMPLES).astype(float))
        return [inertia(patterns, means.cluster_centers_)]

    return go


def contestants(mode: str, folder: Path) -> list[Contestant]:
    return [
        Contestant("festina", "benchmarks.find_gates:festina", {}, 1),
        Contestant("scikit-learn, all rows", "benchmarks.find_gates:all_rows", {}, 1),
    ]


def claims(mode: str) -> list[Claim]:
    return [Claim("four gates among 170,100 rows", "festina", "k-means of all rows", ("scikit-learn, all rows",))]
