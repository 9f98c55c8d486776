"""Four worlds of items: stated, sampled and written down entry by entry; and the numbers of their levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ... import Task, tasks
from ..._formulas.modes import level_members

if TYPE_CHECKING:
    from xarray import Dataset


def world_named(name: str, **sample: int) -> Task:
    """A world of this experiment, by its stated spectrum; with `features` and `seed`, a sample of it."""
    settings = {
        "partition": dict(sizes=(4, 2, 2), within=0.8, noise=0.2),
        "tree": dict(branching=(2, 2, 2), flip=0.1),
        "ring": dict(items=8, spread=1.0),
        "grid": dict(rows=2, columns=4, spread=1.0),
    }
    return getattr(tasks, name)(**settings[name], **sample)


def written_down(name: str) -> Float[np.ndarray, "item item"]:
    """The similarity of the same worlds, entry by entry from what they are and not from their spectra."""
    if name == "partition":
        cluster = np.repeat([0, 1, 2], [4, 2, 2])
        return 0.8 * (cluster[:, None] == cluster) + 0.2 * np.eye(8)
    if name == "tree":
        parts = [np.arange(8) >> up for up in range(4)]  # which node is above a leaf, `up` levels higher
        apart = np.sum([node[:, None] != node for node in parts], axis=0)
        return (1 - 2 * 0.1) ** (2.0 * apart)  # `apart` edges down to each of the two
    if name == "ring":
        place = np.arange(8)
        near = np.isin((place[:, None] - place) % 8, (1, 7))
    else:
        place = np.indices((2, 4)).reshape(2, -1)
        near = np.abs(place[:, :, None] - place[:, None]).sum(axis=0) == 1
    laplacian = np.diag(near.sum(axis=0)) - near
    return np.linalg.inv(laplacian + np.eye(len(near)))


def similarity_of(task: Task) -> Float[np.ndarray, "item item"]:
    return task.y @ task.y.T


def measured_world(
    task: Task,
    name: str,
    samples: Float[np.ndarray, "number draw item item"],
    maps: Float[np.ndarray, "seed time feature item"],
) -> Dataset:
    """All numbers of one world; there are as many entries for levels as items, the last ones NaN."""
    import xarray

    count, vectors = task.d_in, task.vectors()
    eigenvalues = (count * task.spectrum()) ** 2
    members = [np.flatnonzero(row) for row in level_members(np.asarray(eigenvalues))]
    level_value = np.array([eigenvalues[level[0]] for level in members])
    sampled_values, sampled_vectors = (part[..., ::-1] for part in np.linalg.eigh(samples))
    projectors, overlaps, split, strengths = [], [], [], []
    for level in members:
        basis, sampled = vectors[:, level], sampled_vectors[..., level]
        cosines = np.linalg.svd(basis.T @ sampled, compute_uv=False)
        projectors.append(np.sqrt(np.mean(1 - np.minimum(cosines, 1) ** 2, axis=-1)))  # |P − P'|_F / √(2m)
        nearest = np.abs(np.einsum("im,ndim->ndm", basis, sampled)).mean(axis=-1)
        overlaps.append(nearest if len(level) > 1 else np.full_like(nearest, np.nan))
        split.append(np.ptp(sampled_values[..., level], axis=-1))
        strengths.append(np.einsum("im,stij,jm->st", basis, maps, basis) / len(level))

    def padded(per_level: Sequence[Any] | np.ndarray) -> np.ndarray:
        values = np.asarray(per_level, float)
        missing = np.full((count - len(members), *values.shape[1:]), np.nan)
        return np.concatenate([values, missing])

    return xarray.Dataset(
        {
            "similarity": (("item", "item_"), similarity_of(task) / similarity_of(task).max()),
            "formula_gap": ((), np.abs(similarity_of(task) - written_down(name)).max()),
            "eigenvalue": ("mode", eigenvalues),
            "eigenvalue_by_hand": ("mode", np.linalg.eigvalsh(written_down(name))[::-1]),
            "sampled_eigenvalue": (("number", "draw", "mode"), sampled_values),
            "level_eigenvalue": ("level", padded(level_value)),
            "multiplicity": ("level", padded([len(level) for level in members])),
            "projector_distance": (("level", "number", "draw"), padded(projectors)),
            "vector_overlap": (("level", "number", "draw"), padded(overlaps)),
            "split": (("level", "number", "draw"), padded(split)),
            "training": (("level", "seed", "time"), padded(strengths)),
            "target": ("level", padded(np.sqrt(level_value))),
        }
    )
