"""Each kind of world has a spectrum of its own, and that spectrum says when a deep network learns what.

Four worlds of items, shown one-hot and known by the similarity of their features: clusters, a tree, a ring and a grid.
Their eigenvalues and vectors have formulas, checked here against the similarity matrix written down entry by entry.
Features that are drawn at random, N of them, have this spectrum only up to order N^(−1/2). They also split the levels
that the formulas make degenerate: a pair on the ring by η√(2π/N) on average. Inside such a level the vectors of a
sample are arbitrary and tend to nothing, and only the projector onto the level converges.

A two-layer network is then trained on a sample, from small random weights. Its half-times are those of the stated
spectrum, τ/(2s) ln(s/(λ a₀) − 1) with s = √η/P, λ = 1/P and a₀ = N_h σ²/2, in which nothing is fitted.
Features are turned onto the P directions that they span, which changes no distance and no gradient along them.
"""

from __future__ import annotations

import numpy as np

from .. import inits, nets, rules, tasks
from .._errors import BadInput
from .._linalg import level_members
from .._noun import positive, whole
from .._plot import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from ..theories.aligned_modes import mode

REFERENCE = {
    "saxe2019": "“The discovery and representation of explicit structural forms”",
    "saxe_slides": "“Analytic link”",
}
QUICK = dict(numbers=(100, 1000, 10_000), draws=48, seeds=3, points=120)
WORLDS = ("partition", "tree", "ring", "grid")


def run(
    *,
    numbers=(100, 1000, 10_000, 100_000),
    draws=64,
    hidden=64,
    scale=1e-3,
    until=220.0,
    lr=0.2,
    points=300,
    seeds=8,
    seed=0,
) -> Result:
    draws, hidden, seeds = whole(draws, "draws", least=2), whole(hidden, "hidden"), whole(seeds, "seeds")
    points, scale = whole(points, "points", least=2), positive(scale, "scale")
    lr, until = positive(lr, "lr"), positive(until, "until")
    numbers = sorted(whole(number, "numbers") for number in numbers)
    if len(set(numbers)) < 2:
        raise BadInput(
            f"numbers = {tuple(numbers)}", "two numbers of features or more", "give some, such as (100, 1000)"
        )
    stated = {name: _world(name) for name in WORLDS}
    times = np.unique(np.round(np.linspace(0, until, points) / lr)) * lr
    setups, parts = {}, []
    for name, task in stated.items():
        samples = [[_similarity(_world(name, features=n, seed=seed + k)) for k in range(draws)] for n in numbers]
        learned, setup = _learned(samples[-1][0], hidden, scale, lr, times, range(seed, seed + seeds))
        setups[f"{name}, sampled"] = setup
        parts.append(_part(task, name, np.array(samples), learned))
    import xarray

    data = xarray.concat(parts, "world").assign_coords(
        world=list(WORLDS), number=list(numbers), draw=np.arange(seed, seed + draws), time=times
    )
    return Result(data.assign(_predictions(data, times, hidden * scale**2 / 2)), setups)


def _predictions(data, times, start):
    """Strength and half-time of every level, from the stated spectrum alone."""
    count = data.sizes["item"]
    singular, variance = data.target / count, 1 / count
    curves = mode(times, singular_value=singular.fillna(1.0).values, variance=variance, start=start)
    return {
        "theory": (("time", *singular.dims), np.where(singular.notnull(), curves, np.nan)),
        "half_time": np.log(singular / (variance * start) - 1) / (2 * singular),
    }


def _world(name, **sample):
    """The worlds of this experiment; with features and seed, a sample of one."""
    settings = {
        "partition": dict(sizes=(4, 2, 2), within=0.8, noise=0.2),
        "tree": dict(branching=(2, 2, 2), flip=0.1),
        "ring": dict(items=8, spread=1.0),
        "grid": dict(rows=2, columns=4, spread=1.0),
    }
    return getattr(tasks, name)(**settings[name], **sample)


def _written_down(name):
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


def _similarity(task):
    return task.y @ task.y.T


def _learned(similarity, hidden, scale, lr, times, draws):
    """Maps that networks learn from a sampled world, (seed, time, feature, item)."""
    values, vectors = np.linalg.eigh(similarity)
    root = vectors * np.sqrt(values) @ vectors.T
    task = tasks.from_arrays(np.eye(len(root)), root)
    net, init = nets.DeepLinear(hidden), inits.SmallRandom(scale)
    setup = Setup(task, net, init, rules.GradientDescent(lr), times=times)
    return simulate(setup, list(draws), "map")["map"], setup


def _part(task, name, samples, maps):
    """All numbers of one world; levels are as many as items, the rest NaN."""
    import xarray

    count, vectors = task.d_in, task.vectors()
    eigenvalues = (count * task.spectrum()) ** 2
    members = [np.flatnonzero(row) for row in level_members(eigenvalues)]
    level_value = np.array([eigenvalues[level[0]] for level in members])
    sampled_values, sampled_vectors = (part[..., ::-1] for part in np.linalg.eigh(samples))
    projectors, overlaps, split, strengths = [], [], [], []
    for level in members:
        basis, found = vectors[:, level], sampled_vectors[..., level]
        cosines = np.linalg.svd(basis.T @ found, compute_uv=False)
        projectors.append(np.sqrt(np.mean(1 - np.minimum(cosines, 1) ** 2, axis=-1)))  # |P − P'|_F / √(2m)
        nearest = np.abs(np.einsum("im,ndim->ndm", basis, found)).mean(axis=-1)
        overlaps.append(nearest if len(level) > 1 else np.full_like(nearest, np.nan))
        split.append(np.ptp(sampled_values[..., level], axis=-1))
        strengths.append(np.einsum("im,stij,jm->st", basis, maps, basis) / len(level))

    def padded(per_level):
        per_level = np.asarray(per_level, float)
        missing = np.full((count - len(members), *per_level.shape[1:]), np.nan)
        return np.concatenate([per_level, missing])

    return xarray.Dataset(
        {
            "similarity": (("item", "item_"), _similarity(task)),
            "formula_gap": ((), np.abs(_similarity(task) - _written_down(name)).max()),
            "vectors": (("item", "mode"), vectors),
            "eigenvalue": ("mode", eigenvalues),
            "eigenvalue_by_hand": ("mode", np.linalg.eigvalsh(_written_down(name))[::-1]),
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


def _slope(errors, numbers):
    """Exponent of the mean error in the number of features, by least squares over all of them."""
    return float(np.polyfit(np.log(numbers), np.log(errors), 1)[0])


def _half_times(data):
    """First time at which each level passes half its target, (world, level, seed); infinite if it never does."""
    times, curves = data.time.values, data.training.transpose("world", "level", "seed", "time").values
    goal = 0.5 * data.target.values[:, :, None, None]
    after = np.maximum(np.argmax(curves >= goal, axis=-1), 1)[..., None]
    low, high = (np.take_along_axis(curves, index, axis=-1)[..., 0] for index in (after - 1, after))
    before, after = times[after[..., 0] - 1], times[after[..., 0]]
    found = before + (after - before) * (goal[..., 0] - low) / (high - low)
    return np.where(np.any(curves >= goal, axis=-1), found, np.inf)


def claims(result: Result) -> list[Claim]:
    data = result.data
    numbers = data.number.values
    spectrum_gap = np.abs(data.sampled_eigenvalue - data.eigenvalue).mean("mode").mean("draw") / data.eigenvalue.mean(
        "mode"
    )
    spectrum_order = [_slope(spectrum_gap.sel(world=name).values, numbers) for name in WORLDS]
    shared = data.multiplicity > 1
    projector = data.projector_distance.where(shared).mean("draw")
    gaussian = data.sel(world=[name for name in WORLDS if name != "tree"])
    overlap = gaussian.vector_overlap.where(gaussian.multiplicity == 2).isel(number=-1)
    ring = data.sel(world="ring")
    pairs = ring.split.where(ring.multiplicity == 2)
    ratio = pairs / (ring.level_eigenvalue * np.sqrt(2 * np.pi / data.number))
    tree = data.sel(world="tree")
    finest = tree.split.isel(level=int(np.nanargmax(tree.multiplicity))).mean("draw")
    measured = np.median(_half_times(data), axis=-1)
    real = np.isfinite(data.half_time.values)
    gap = np.abs(measured / data.half_time.values - 1)
    ordered = [np.all(np.diff(measured[w][real[w]]) > 0) for w in range(len(WORLDS))]
    order_of_projector = np.log(projector.isel(number=-2) / projector.isel(number=-1)) / np.log(
        numbers[-1] / numbers[-2]
    )
    return [
        Claim.at_most(
            "Spectra have formulas: largest gap to the similarity written down entry by entry",
            float(np.maximum(data.formula_gap.max(), np.abs(data.eigenvalue - data.eigenvalue_by_hand).max())),
            1e-12,
            source="paper",
        ),
        Claim.between(
            "Sampled spectra tend to the formulas as N^(−1/2): slowest order over worlds",
            -max(spectrum_order),
            0.4,
            0.6,
        ),
        Claim.between("… and the fastest", -min(spectrum_order), 0.4, 0.6),
        Claim.between(
            "A sample splits degenerate levels: mean split of pairs on the ring / η√(2π/N), largest N",
            float(ratio.isel(number=-1).mean()),
            0.85,
            1.15,
        ),
        Claim.between(
            "… of the finest level of the tree, four vectors: order of the mean split in 1/N",
            -_slope(finest.values, numbers),
            0.4,
            0.6,
        ),
        Claim.at_most(
            "Projectors onto degenerate levels converge: largest mean distance at the largest N",
            float(projector.isel(number=-1).max()),
            0.2,
        ),
        Claim.between(
            "… as N^(−1/2): median order over levels, last two N", float(order_of_projector.median()), 0.4, 0.6
        ),
        Claim.between(
            "Vectors of degenerate pairs do not: mean overlap at the largest N, Gaussian features (any direction: 2/π)",
            float(overlap.mean()),
            0.57,
            0.7,
        ),
        Claim.at_least(
            "Networks learn the levels in the order of the spectrum: share of worlds",
            float(np.mean(ordered)),
            1.0,
            source="paper",
        ),
        Claim.at_most(
            "… at the half-times of the stated spectrum (not fitted): largest relative gap of the median",
            float(np.nanmax(gap)),
            0.1,
            source="paper",
        ),
    ]


def figure(result: Result):
    data = result.data
    sheet, axes = new_figure(4, len(WORLDS), width=3.1, height=2.7)
    for column, name in enumerate(WORLDS):
        _draw_world(axes[:, column], data.sel(world=name), name)
    return sheet


def _draw_world(panels, part, name):
    similarity, vectors, spectrum, learning = panels
    image = similarity.imshow(part.similarity, cmap="cividis", vmin=0)
    similarity.set(title=f"{name}: similarity", xlabel="item", ylabel="item", xticks=[], yticks=[])
    similarity.figure.colorbar(image, ax=similarity, shrink=0.8)
    reach = float(np.abs(part.vectors).max())
    image = vectors.imshow(part.vectors.values.T, cmap="PuOr", vmin=-reach, vmax=reach)
    vectors.set(title="stated vectors", xlabel="item", ylabel="mode", xticks=[], yticks=[])
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
