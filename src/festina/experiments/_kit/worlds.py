"""Four worlds of items: stated, sampled and written down entry by entry; their levels, and panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ... import Task, tasks
from ..._figures.style import COLOURS, TIME, legend_of_kinds, predicted, trained
from ..._formulas.modes import level_members

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
            "similarity": (("item", "item_"), similarity_of(task)),
            "formula_gap": ((), np.abs(similarity_of(task) - written_down(name)).max()),
            "vectors": (("item", "mode"), vectors),
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


def draw_world(panels: Sequence[Axes], part: Dataset, name: str) -> None:
    """One column of the figure: similarity, eigenvectors, spectrum and learning of a world."""
    similarity, vectors, spectrum, learning = panels
    image = similarity.imshow(part.similarity, cmap="cividis", vmin=0)
    similarity.set(title=f"{name}: similarity", xlabel="item", ylabel="item", xticks=[], yticks=[])
    similarity.figure.colorbar(image, ax=similarity, shrink=0.8)
    reach = float(np.abs(part.vectors).max())
    image = vectors.imshow(part.vectors.values.T, cmap="PuOr", vmin=-reach, vmax=reach)
    vectors.set(title="stated eigenvectors", xlabel="item", ylabel="mode", xticks=[], yticks=[])
    vectors.figure.colorbar(image, ax=vectors, shrink=0.8)
    place = np.arange(1, part.sizes["mode"] + 1)
    spectrum.plot(place, part.eigenvalue, "_", color="0.1", ms=14, mew=1.5, label="stated", zorder=3)
    for shift, colour, number in zip((-0.2, 0.2), COLOURS[1::-1], (0, -1), strict=True):
        low, middle, high = np.quantile(part.sampled_eigenvalue.isel(number=number), (0.05, 0.5, 0.95), axis=0)
        spectrum.errorbar(
            place + shift,
            middle,
            [middle - low, high - middle],
            fmt="o",
            color=colour,
            ms=3,
            lw=1,
            label=f"N = {int(part.number[number]):,}",
        )
    spectrum.set(title="spectrum", xlabel="mode", ylabel="eigenvalue η", ylim=(0, None), xticks=place)
    spectrum.legend(loc="upper right", fontsize=8, title="samples: 5 to 95 %", title_fontsize=8)
    for level in np.flatnonzero(part.target.notnull()):
        colour = COLOURS[level % len(COLOURS)]
        trained(learning, part.time, part.training.isel(level=level), colour=colour)
        predicted(learning, part.time, part.theory.isel(level=level), colour=colour)
    learning.set(title="learning, by level", xlabel=TIME, ylabel="mode strength", ylim=(0, 1.35 * part.target.max()))
    legend_of_kinds(learning, loc="upper right", ncols=2, fontsize=8)
