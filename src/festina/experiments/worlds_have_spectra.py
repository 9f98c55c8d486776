"""Each kind of world has a spectrum of its own, and this spectrum determines when a deep network learns each of its
levels.

A world is a set of items, shown one-hot and known by the similarity of their features. There are four: clusters, a
tree, a ring and a grid. Their eigenvalues and eigenvectors have formulas, which are checked here against the similarity
matrix written down entry by entry. N features that are drawn at random have this spectrum only up to order N^(−1/2).
They also split levels that are degenerate in the formulas: a pair on the ring by η√(2π/N) on average. Within such a
level the eigenvectors of a sample are arbitrary and tend to no limit; only the projector onto the level converges.

A two-layer network is then trained on a sample, from small random weights. Its half-times are those of the stated
spectrum, τ/(2s) ln(s/(λ a₀) − 1) with s = √η/P, λ = 1/P, P items and a₀ = N_h σ²/2, in which nothing is fitted. The
features are rotated onto the P directions that they span, which changes no distance, and no gradient along these
directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from .. import Setup, inits, nets, rules, tasks
from .._figures.style import new_figure
from .._formulas.curves import half_time
from .._foundation.checks import positive, whole
from .._foundation.errors import BadInput
from ..theories.aligned_modes import mode
from ._kit import time_grids
from ._kit.training import simulate
from ._kit.worlds import draw_world, measured_world, similarity_of, world_named
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset


THEME, PLACE = "structure", 2
REFERENCE = {
    "saxe2019": "“The discovery and representation of explicit structural forms”",
    "saxe_slides": "“Analytic link”",
}
QUICK = dict(numbers=(100, 1000, 10_000), draws=48, seeds=3, points=120)
WORLDS = ("partition", "tree", "ring", "grid")


def run(
    *,
    numbers: Sequence[int] = (100, 1000, 10_000, 100_000),
    draws: int = 64,
    hidden: int = 64,
    scale: float = 1e-3,
    until: float = 220.0,
    lr: float = 0.2,
    points: int = 300,
    seeds: int = 8,
    seed: int = 0,
) -> Result:
    """`numbers` of features, each drawn `draws` times; networks are trained on the first draw of the largest number."""
    draws, hidden, seeds = whole(draws, "draws", least=2), whole(hidden, "hidden"), whole(seeds, "seeds")
    points, scale = whole(points, "points", least=2), positive(scale, "scale")
    lr, until = positive(lr, "lr"), positive(until, "until")
    numbers = sorted(whole(number, "numbers") for number in numbers)
    if len(set(numbers)) < 2:
        raise BadInput(
            f"numbers = {tuple(numbers)}", "two numbers of features or more", "give some, such as (100, 1000)"
        )
    stated = {name: world_named(name) for name in WORLDS}
    times = time_grids.even(until, points, lr)
    setups, parts = {}, []
    for name, task in stated.items():
        samples = [[similarity_of(world_named(name, features=n, seed=seed + k)) for k in range(draws)] for n in numbers]
        learned, setup = _learned(samples[-1][0], hidden, scale, lr, times, range(seed, seed + seeds))
        setups[f"{name}, sampled"] = setup
        parts.append(measured_world(task, name, np.array(samples), learned))
    import xarray

    data = xarray.concat(parts, "world").assign_coords(
        world=list(WORLDS), number=list(numbers), draw=np.arange(seed, seed + draws), time=times
    )
    return Result(data.assign(_predictions(data, times, hidden * scale**2 / 2)), setups)


def _predictions(data: Dataset, times: Float[np.ndarray, " time"], start: float) -> dict[str, Any]:
    """Strength and half-time of every level, from the stated spectrum alone."""
    count = data.sizes["item"]
    singular, variance = data.target / count, 1 / count
    curves = mode(times, singular_value=singular.fillna(1.0).values, variance=variance, start=start)
    return {
        "theory": (("time", *singular.dims), np.where(singular.notnull(), curves, np.nan)),
        "half_time": np.log(singular / (variance * start) - 1) / (2 * singular),
    }


def _learned(
    similarity: Float[np.ndarray, "item item"],
    hidden: int,
    scale: float,
    lr: float,
    times: Float[np.ndarray, " time"],
    seeds: Sequence[int],
) -> tuple[Float[np.ndarray, "seed time feature item"], Setup]:
    """Maps that networks learn from a sampled world."""
    values, vectors = np.linalg.eigh(similarity)
    root = vectors * np.sqrt(values) @ vectors.T
    task = tasks.from_arrays(np.eye(len(root)), root)
    net, init = nets.DeepLinear(hidden), inits.SmallRandom(scale)
    setup = Setup(task, net, init, rules.GradientDescent(lr), times=times)
    return simulate(setup, list(seeds), "map")["map"], setup


def _slope(errors: np.ndarray, numbers: np.ndarray) -> float:
    """Exponent of the mean error in the number of features, by least squares over all of them."""
    return float(np.polyfit(np.log(numbers), np.log(errors), 1)[0])


def _half_times(data: Dataset) -> Float[np.ndarray, "world level seed"]:
    """First time at which each level passes half of its target; infinite if it never does."""
    curves = data.training.transpose("world", "level", "seed", "time").values
    return half_time(data.time.values, curves, data.target.values[:, :, None])


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
        paper(
            "Spectra have formulas: largest gap to the similarity written down entry by entry",
            at_most(
                float(np.maximum(data.formula_gap.max(), np.abs(data.eigenvalue - data.eigenvalue_by_hand).max())),
                1e-12,
            ),
        ),
        ours(
            "Sampled spectra tend to the formulas as N^(−1/2): slowest order over worlds",
            between(-max(spectrum_order), 0.4, 0.6),
        ),
        ours("… and the fastest order over worlds", between(-min(spectrum_order), 0.4, 0.6)),
        ours(
            "A sample splits degenerate levels: mean split of pairs on the ring / η√(2π/N), largest N",
            between(float(ratio.isel(number=-1).mean()), 0.85, 1.15),
        ),
        ours(
            "… and so does the finest level of the tree, of four vectors: order of the mean split in 1/N",
            between(-_slope(finest.values, numbers), 0.4, 0.6),
        ),
        ours(
            "Projectors onto degenerate levels converge: largest mean distance at the largest N",
            at_most(float(projector.isel(number=-1).max()), 0.2),
        ),
        ours(
            "… as N^(−1/2): median order over levels, last two N", between(float(order_of_projector.median()), 0.4, 0.6)
        ),
        ours(
            "Eigenvectors of degenerate pairs do not converge: mean overlap at the largest N, Gaussian features "
            "(2/π for any direction)",
            between(float(overlap.mean()), 0.57, 0.7),
        ),
        paper(
            "Networks learn the levels in the order of the spectrum: share of worlds",
            at_least(float(np.mean(ordered)), 1.0),
        ),
        paper(
            "… at the half-times of the stated spectrum (not fitted): largest relative gap of the median",
            at_most(float(np.nanmax(gap)), 0.1),
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, axes = new_figure(4, len(WORLDS), width=3.1, height=2.7)
    for column, name in enumerate(WORLDS):
        draw_world(axes[:, column], data.sel(world=name), name)
    return sheet
