"""Distinct patterns of many units, and k-means over them."""

from __future__ import annotations

import dataclasses

import numpy as np

from .recording import unpacked


@dataclasses.dataclass(frozen=True)
class Patterns:
    """The distinct rows of bits, with the number and the total weight of the rows that are equal to each."""

    on: np.ndarray  # (pattern, sample)
    counts: np.ndarray  # (pattern,)
    weight: np.ndarray  # (pattern,)


def distinct(rows: np.ndarray, weights: np.ndarray | None, samples: int) -> Patterns:
    """The different ones among packed rows (row, byte); without weights every row weighs 1."""
    as_one_value = np.ascontiguousarray(rows).view(f"V{rows.shape[1]}").ravel()
    first, which = np.unique(as_one_value, return_index=True, return_inverse=True)[1:]
    counts = np.bincount(which, minlength=len(first))
    weight = counts.astype(float) if weights is None else np.bincount(which, weights, minlength=len(first))
    return Patterns(unpacked(rows[first], samples), counts, weight)


def k_means(patterns: Patterns, clusters: int, by: str, n_init: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Centroids (cluster, sample) and the cluster of every pattern, the best of `n_init` starts.

    A pattern that counts c times is c equal rows: the k-means of all rows, at the cost of the different ones.
    """
    from sklearn.cluster import KMeans  # pyright: ignore[reportMissingImports]

    weight = {"count": patterns.counts, "weight": patterns.weight}[by]
    means = KMeans(clusters, n_init=n_init, random_state=seed)  # pyright: ignore[reportArgumentType]
    fitted = means.fit(patterns.on.astype(float), sample_weight=weight)
    return np.clip(fitted.cluster_centers_, 0.0, 1.0), np.asarray(fitted.labels_)  # means, up to rounding
