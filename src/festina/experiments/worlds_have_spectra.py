"""Clusters, trees, rings and grids of items have spectra of their own, which set when a deep network learns each level.

A world is a set of items, shown one-hot and defined by the similarity of their features: clusters, a tree, a ring or a
grid. The eigenvalues and eigenvectors of each have formulas, which are checked against the similarity matrix written
down entry by entry. N features drawn at random have this spectrum up to order N^(−1/2). They also split degenerate
levels: a pair on the ring by η√(2π/N) on average. Within such a level the eigenvectors of a sample are arbitrary and
have no limit; only the projector onto the level converges.

A two-layer network is then trained on one sample, from small random weights. Its half-times are those of the stated
spectrum, τ/(2s) ln(s/(λ a₀) − 1) with s = √η/P, λ = 1/P, P items and a₀ = N_h σ²/2, in which nothing is fitted. The
features are rotated onto the P directions that they span, which changes neither distances nor gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from .. import BadInput, Setup, inits, nets, rules, tasks
from .._figures.overlay import colours_of, overlay
from .._figures.panels import key, panels
from .._figures.style import LEGEND_SIZE, LIGHT_GREY
from ..theories.aligned_modes import mode, time_to
from ._kit.labelled import in_order, time_at
from ._kit.parameters import AtLeast, Count, Each, Positive, Seed, Several, checked
from ._kit.time_grids import even
from ._kit.training import simulate
from ._kit.worlds import measured_world, similarity_of, world_named
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

THEME, PLACE = "structure", 2
REFERENCE = {
    "saxe2019": "“The discovery and representation of explicit structural forms”",
    "saxe_slides": "“Analytic link”",
}
QUICK = dict(numbers=(100, 1000, 10_000), draws=48, seeds=3, points=120)
WORLDS = {"partition": "clusters", "tree": "tree", "ring": "ring", "grid": "grid"}
COLOUR = colours_of(list(WORLDS))
CAPTION = """
**a** Four worlds of eight items: similarity of every pair of items, over the largest. **b** Their spectra: eigenvalues
η of the similarity matrix, one for each mode. Bars are the formulas; dots are samples of the largest number N of random
features, medians over draws with a line from 5 to 95 %. **c** Strength of each level of the tree (modes with one
eigenvalue) while a network with one hidden layer learns one sample from small random weights: one line for each seed,
and the theory from the stated spectrum, in which nothing is fitted. **d** Time at which each level of each world is
half learned, in training (every seed) and as the stated spectrum predicts it; on the grey line both are equal. Colours
are the worlds.
"""
ALT = """
Block, nested, circular and neighbourhood patterns of similarity have spectra with different steps. Levels of the tree
are learned one after another along the dashed theory, and the half-times of all worlds lie on the diagonal.
"""


@checked
def run(
    *,
    numbers: Annotated[tuple[int, ...], Each(AtLeast(1), least=2)] = (100, 1000, 10_000, 100_000),
    draws: Several = 64,
    hidden: Count = 64,
    scale: Positive = 1e-3,
    until: Positive = 220.0,
    lr: Positive = 0.2,
    points: Several = 300,
    seeds: Count = 8,
    seed: Seed = 0,
) -> Result:
    """`numbers` of features, each drawn `draws` times; networks are trained on the first draw of the largest number."""
    import xarray

    numbers, all_seeds = tuple(sorted(set(numbers))), range(seed, seed + seeds)
    if len(numbers) < 2:
        raise BadInput(f"numbers = {numbers}", "two different numbers of features", "give some, such as (100, 1000)")
    times, setups, parts = even(until, points, lr), {}, []
    for name in WORLDS:
        samples = [[similarity_of(world_named(name, features=n, seed=seed + k)) for k in range(draws)] for n in numbers]
        values, vectors = np.linalg.eigh(samples[-1][0])
        task = tasks.from_arrays(np.eye(len(values)), vectors * np.sqrt(values) @ vectors.T)
        net, init = nets.DeepLinear(hidden), inits.SmallRandom(scale)
        setups[f"{name}, sampled"] = setup = Setup(task, net, init, rules.GradientDescent(lr), times=times)
        parts.append(
            measured_world(world_named(name), name, np.array(samples), simulate(setup, all_seeds, "map")["map"])
        )
    axes = dict(number=list(numbers), draw=np.arange(seed, seed + draws), time=times)
    data = xarray.concat(parts, "world").assign_coords(world=list(WORLDS), **axes)
    real, target = data.target.notnull(), data.target.fillna(1.0)
    constants = dict(
        singular_value=target.values / target.sizes["level"],
        variance=1 / data.sizes["item"],
        start=hidden * scale**2 / 2,
    )
    data["theory"] = real * xarray.DataArray(mode(times, **constants), dims=("time", *target.dims))
    data["half_time"] = xarray.DataArray(time_to(target.values / 2, **constants), dims=target.dims).where(real)
    data["trained_half_time"] = time_at(data.training, data.target / 2).where(real)
    return Result(data, setups)


def _slope(errors: DataArray) -> float:
    """Exponent of an error in the number of features, by least squares over all of them."""
    return float(np.polyfit(np.log(errors.number), np.log(errors), 1)[0])


def claims(result: Result) -> list[Claim]:
    data = result.data
    gap = np.abs(data.sampled_eigenvalue - data.eigenvalue).mean(["mode", "draw"]) / data.eigenvalue.mean("mode")
    slopes = [_slope(gap.sel(world=name)) for name in WORLDS]
    projector = data.projector_distance.where(data.multiplicity > 1).mean("draw")
    last, previous = projector.isel(number=-1), projector.isel(number=-2)
    projector_order = np.log(previous / last) / np.log(data.number[-1] / data.number[-2])
    gaussian = data.sel(world=[name for name in WORLDS if name != "tree"])
    overlap = gaussian.vector_overlap.where(gaussian.multiplicity == 2).isel(number=-1)
    ring, tree = data.sel(world="ring"), data.sel(world="tree")
    split = (ring.split / (ring.level_eigenvalue * np.sqrt(2 * np.pi / data.number))).where(ring.multiplicity == 2)
    finest = tree.split.isel(level=int(np.nanargmax(tree.multiplicity))).mean("draw")
    measured = data.trained_half_time.median("seed")
    by_hand = np.abs(data.eigenvalue - data.eigenvalue_by_hand).max()
    ordered = [in_order(measured.sel(world=name).dropna("level"), "level") for name in WORLDS]
    return [
        paper(
            "Share of worlds whose levels are learned in the order of their eigenvalues",
            at_least(np.mean(ordered), 1.0),
            headline=True,
        ),
        paper(
            "Times to half learn each level, median over seeds, against theory without a fit: largest relative gap",
            at_most(np.abs(measured / data.half_time - 1).max(), 0.1),
            headline=True,
            panel="d",
        ),
        paper(
            "Formulas for eigenvalues against the similarity matrix written down entry by entry: largest gap",
            at_most(max(float(data.formula_gap.max()), float(by_hand)), 1e-12),
        ),
        ours(
            "Eigenvalues of N sampled features tend to the formulas as N^(−1/2): lowest order over worlds",
            between(-max(slopes), 0.4, 0.6),
        ),
        ours(
            "Eigenvalues of N sampled features tend to the formulas as N^(−1/2): highest order over worlds",
            between(-min(slopes), 0.4, 0.6),
        ),
        ours(
            "Samples split degenerate pairs of the ring: mean split over η√(2π/N), largest N",
            between(split.isel(number=-1).mean(), 0.85, 1.15),
        ),
        ours(
            "Samples split the finest level of the tree (four modes): order of the mean split in 1/N",
            between(-_slope(finest), 0.4, 0.6),
        ),
        ours(
            "Projectors onto degenerate levels converge: mean distance at the largest N, largest over levels",
            at_most(last.max(), 0.2),
        ),
        ours(
            "Projectors onto degenerate levels converge as N^(−1/2): median order, last two N",
            between(projector_order.median(), 0.4, 0.6),
        ),
        ours(
            "Eigenvectors of degenerate pairs do not converge: mean overlap, largest N (2/π for any direction)",
            between(overlap.mean(), 0.57, 0.7),
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab;cd", row=3.1)
    _draw_similarities(at["a"], data)
    _draw_spectra(at["b"], data)
    tree = data.sel(world="tree").dropna("level", subset=["target"])
    overlay(at["c"], tree.training, tree.theory, by="level", colours=[COLOUR["tree"]])
    at["c"].set(title="Levels of the tree are learned in turn", ylabel="strength of the level")
    for name, colour in COLOUR.items():
        world = data.sel(world=name)
        for k in range(data.sizes["seed"]):
            at["d"].plot(world.half_time, world.trained_half_time.isel(seed=k), "o", mfc="none", color=colour, ms=5)
    ends = float(data.half_time.min()), float(data.half_time.max())
    at["d"].plot(ends, ends, color=LIGHT_GREY, lw=1, zorder=0)
    at["d"].set(title="All worlds: the spectrum sets the times", xlabel="half-time, predicted (τ)")
    at["d"].set_ylabel("half-time, training (τ)")
    key(sheet, {WORLDS[name]: colour for name, colour in COLOUR.items()})
    return sheet


def _draw_similarities(axes: Axes, data: Dataset) -> None:
    """The four matrices beside and below each other in one map."""
    size, gap = data.sizes["item"], 2
    sheet = np.full((2 * (size + gap), 2 * size + gap), np.nan)
    for number, name in enumerate(WORLDS):
        top, left = gap + (number // 2) * (size + gap), (number % 2) * (size + gap)
        sheet[top : top + size, left : left + size] = data.similarity.sel(world=name)
        axes.text(left - 0.5, top - 0.7, WORLDS[name], color=COLOUR[name], size=LEGEND_SIZE, va="bottom")
    image = axes.imshow(sheet, cmap="cividis", vmin=0, aspect="auto")
    axes.figure.colorbar(image, ax=axes, label="similarity / largest")
    axes.set_axis_off()
    axes.set_title("Four worlds of items")


def _draw_spectra(axes: Axes, data: Dataset) -> None:
    """Eigenvalues by formula and of samples, worlds beside each other at each mode."""
    place = np.arange(1, data.sizes["mode"] + 1)
    for shift, (name, colour) in zip((-0.3, -0.1, 0.1, 0.3), COLOUR.items(), strict=True):
        world = data.sel(world=name)
        low, middle, high = np.quantile(world.sampled_eigenvalue.isel(number=-1), (0.05, 0.5, 0.95), axis=0)
        axes.errorbar(place + shift, middle, [middle - low, high - middle], fmt="o", color=colour, ms=3.5, lw=1)
        axes.plot(place + shift, world.eigenvalue, "_", color=colour, ms=9, mew=1.5)
    axes.set(title="Each world has its own spectrum", xlabel="mode", ylabel="eigenvalue η", xticks=place, yscale="log")
    axes.set_yticks((0.2, 0.5, 1, 2), ("0.2", "0.5", "1", "2"))
    axes.set_yticks((), minor=True)
