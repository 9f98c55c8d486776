"""Two rates fitted to one pair of points predict which other pairs end near each other in a hidden layer and which far
apart, but not how far.

The two rates of the two-point theory are fitted to runs on one pair of inputs and targets, and averaged. New runs, one
for every point of a grid of input distances and target distances, are then compared with the final squared distance H
that the theory gives from these rates and from the first distances of each run. Runs that have not learned are left
out, and counted. The order of the distances is right, more so in the shallow network (r = 0.97) than in the narrow one
(0.84); single distances are wrong by 20 to 30 %, in the median. Rates differ from seed to seed, and their ratio κ by a
factor of several in a narrow network of twenty layers, so that their average is no property of the architecture.

How much of this is due to the fit? From small weights the prediction is √κ |dx||dy|, with dx and dy the differences of
inputs and targets: the rates set its level and nothing else, and |dx||dy| correlates as well without any fit. The
figure also shows the depth law, X^(1−l/L) Y^(l/L) behind l of L matrices, where X = |dx|² and Y = |dy|², in which no
number is fitted. In the shallow network it does better (r = 0.998, a fifth too large throughout); its level is that of
linear layers, and several times too high for twenty leaky ReLU layers.

The source prints dx = 0.5 and dy = 1 for the fixed pair; in its released settings it was dx² = 1 and dy² = 0.5, and
runs on the grid had a fifth of the learning rate and up to 40000 epochs. Here they are trained for the same time, in
longer steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import Setup, fit, tasks
from .._figures.overlay import colours_of
from .._figures.panels import key, panels
from .._figures.style import GREY
from .._foundation.checks import whole
from ..theories.two_point import depth_law
from ._kit.labelled import stack, table
from ._kit.pair_distances import correlation, each_alone, foreseen
from ._kit.parameters import AtLeast, OneOf, Positive, Seed, Several, checked
from ._kit.table_of_networks import DATA, Row, row, two_point_setup
from .base import Claim, Result, at_least, at_most, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

THEME, PLACE = "pairs", 5
REFERENCE = {"vanrossem2024": "figure 5, section 4.2 and appendix B.1"}
QUICK = dict(networks=("shallow",), units=50, trials=8, epochs=4000, side=5, longer=1.5)
PRESETS = {"as_run": dict(data="as_run"), "as_printed": dict(data="as_printed")}
CAPTION = """
H is the squared distance of two points in a hidden layer at the end of training, for pairs that differ in the distances
|dx| of their inputs and |dy| of their targets; a dot for each pair that was learned. **a** H against its prediction
from two rates that were fitted to other runs, all on one fixed pair, and averaged. **b** H against |dx||dy|, to which
the prediction is proportional from small weights. **c** H against the depth law, in which nothing is fitted. The dotted
lines in a and c are equality. **d** The rates that were fitted on the fixed pair, that of the layers above against that
of the layers below: a dot for each run, a cross for the mean, which a uses.
"""
ALT = """
The dots of all three comparisons rise from near zero along a line, with scatter that is no smaller with fitted rates
than for the product of the distances. The fitted rates of single runs scatter widely around their mean.
"""
DX, DY = (0.5, 1.5), (0.0, 1.0)
FIT_IF, COUNTED_IF = 1e-2, 1e-3  # last losses below which a run's rates are used, and a run of the grid counts
RATES = ["eta_h", "eta_y"]


@checked
def run(
    *,
    networks: Sequence[str] = ("shallow", "narrow"),
    units: int | None = None,
    data: Annotated[str, OneOf(*DATA)] = "as_run",
    trials: Several = 10,
    epochs: Annotated[int, AtLeast(100)] = 6000,
    side: Annotated[int, AtLeast(3)] = 5,
    longer: Positive = 4 / 3,
    seed: Seed = 0,
) -> Result:
    """`trials` at the fixed pair give the rates; `side`² more, each for `longer` × `epochs`, are predicted.

    `units` replaces the widths of the networks, which are rows of the source's table 1.
    """
    setups, results = {}, {}
    for name in networks:
        which = row(name) if units is None else row(name, units=whole(units, "units"))
        setups[name] = fixed = two_point_setup(which, data, epochs=epochs)
        fits = _fitted(fixed, which, range(seed, seed + trials))
        rates = fits[RATES].where(fits.fixed_loss < FIT_IF).mean("trial")
        grid = _grid(fixed, which, longer, side, seed + trials, np.array([rates.eta_h, rates.eta_y]))
        results[name] = fits.merge(grid)
    return Result(stack(results, "network").assign_attrs(chosen=data), setups)


def _fitted(setup: Setup, which: Row, seeds: Sequence[int]) -> Dataset:
    """Rates per epoch, R² and the last loss of every run on the fixed pair."""
    runs = each_alone((setup, seed) for seed in seeds)
    fits = [fit("TwoPoint", one, layer=which.index) for one in runs]
    return xarray.Dataset(
        {
            "eta_h": table([which.lr * one.rates.eta_h for one in fits], "trial"),
            "eta_y": table([which.lr * one.rates.eta_y for one in fits], "trial"),
            "r2": table([list(one.r2) for one in fits], "trial", "curve"),
            "fixed_loss": table([float(one["loss"][0, -1]) for one in runs], "trial"),
        },
        coords={"curve": ["H", "P", "w"]},
    )


def _grid(fixed: Setup, which: Row, longer: float, side: int, seed: int, rates: np.ndarray) -> Dataset:
    """Runs of the grid: last loss, first and last H, and predictions of eq. 10 and of the depth law."""
    columns = {}
    for dx in np.linspace(*DX, side):
        pairs = {}
        for dy in np.linspace(*DY, side):
            setup = fixed.replace(task=tasks.two_point(dx, dy), times=[0.0, longer * fixed.times[-1]])
            (one,) = each_alone([(setup, seed)])
            seed += 1
            begin, end = one["distance"][0, :, which.index, 0].astype(float)
            known = {
                "pair_loss": float(one["loss"][0, -1]),
                "begin": begin,
                "distance": end,
                "predicted": foreseen(one, which.index, rates)[0] if np.isfinite(rates).all() else np.nan,
                "by_depth": float(depth_law(dx**2, dy**2, which.index, which.layers + 1)),
                "product": dx * dy,
            }
            pairs[dy] = xarray.Dataset(known)
        columns[dx] = stack(pairs, "dy")
    return stack(columns, "dx")


def _learned(data: Dataset) -> dict[str, np.ndarray]:
    """Final distances of one network and what may predict them, over the pairs that were learned."""
    counted = data.pair_loss.values < COUNTED_IF
    return {name: data[name].values[counted] for name in ("distance", "predicted", "by_depth", "product")}


def claims(result: Result) -> list[Claim]:
    return [claim for name in result.data.network.values for claim in _of_network(result.data.sel(network=name))]


def _of_network(data: Dataset) -> list[Claim]:
    name = str(data.network.values)
    shallow, known = name == "shallow", _learned(data)
    H, predicted = known["distance"], known["predicted"]
    r, r_product = correlation(H, predicted), correlation(H, known["product"])
    apart, missing = H > 0, data.pair_loss.size - len(H)
    error = np.median(np.abs(predicted / H - 1)[apart]) if apart.any() else np.nan
    ends = data.distance.where(data.pair_loss < COUNTED_IF)
    kappa = (data.eta_h / data.eta_y).where(data.fixed_loss < FIT_IF)
    statements = [
        paper(
            f"{name} network: correlation of the final H with its prediction from fitted rates",
            at_least(r, 0.9 if shallow else 0.6),
            fitted=True,
            headline=shallow,
            panel="a",
        ),
        paper(
            f"{name} network: median relative error of the final H as predicted from fitted rates",
            at_most(error, 0.1),
            fails="rates depend on the pair and on the seed; they are no constants of a network",
            fitted=True,
            headline=shallow,
            panel="a",
        ),
        paper(
            f"{name} network: correlation of the final √H with its prediction from fitted rates",
            at_least(correlation(np.sqrt(H), np.sqrt(predicted)), 0.9 if shallow else 0.7),
            fitted=True,
        ),
        ours(
            f"{name} network: correlation of H with the prediction minus that with |dx||dy|, which is not fitted",
            at_most(abs(r - r_product), 0.1),
            panel="b",
        ),
        ours(
            f"{name} network: correlation of the final H with the depth law, in which nothing is fitted",
            at_least(correlation(H, known["by_depth"]), 0.85 if shallow else 0.5),
            panel="c",
        ),
        paper(
            f"{name} network: largest final H of pairs with equal targets over the mean H of the others: they merge",
            at_most(ends.isel(dy=0).max() / ends.isel(dy=slice(1, None)).mean(), 0.1),
            panel="a",
        ),
        ours(
            f"{name} network: share of runs on the grid that have not learned, {missing} of {data.pair_loss.size}",
            at_most(missing / data.pair_loss.size, 0.3),
        ),
    ]
    if name == "narrow":
        text = f"{name} network: largest κ over the smallest, fitted to runs on one pair"
        statements.append(ours(text, at_least(kappa.max() / kappa.min(), 1.5), fitted=True, panel="d"))
    return statements


def figure(result: Result) -> Figure:
    data = result.data
    colours = colours_of(data.network.values)
    sheet, at = panels("ab;cd")
    marks = []
    for name, colour in colours.items():
        one = data.sel(network=name)
        known = _learned(one)
        for letter, kind in (("a", "predicted"), ("b", "product"), ("c", "by_depth")):
            at[letter].plot(known[kind], known["distance"], "o", color=colour, ms=5, mec="white", mew=0.5)
        rates = 1e3 * one[RATES].where(one.fixed_loss < FIT_IF)
        label = f"{name} network, one run"
        marks += at["d"].plot(rates.eta_h, rates.eta_y, "o", color=colour, ms=5, mec="white", mew=0.5, label=label)
        marks += at["d"].plot(rates.eta_h.mean(), rates.eta_y.mean(), "x", color=colour, ms=10, mew=2, label="mean (d)")
    for letter in "ac":
        at[letter].axline((0, 0), slope=1, color=GREY, lw=1, ls=":")
    at["a"].set(title="Prediction from two fitted rates", xlabel="H predicted from fitted rates")
    at["b"].set(title="Product of distances, nothing fitted", xlabel="product of distances |dx||dy|")
    at["c"].set(title="Depth law, nothing fitted", xlabel="H of the depth law")
    at["d"].set(title="Rates fitted to one pair scatter", xlabel="rate of the layers below (10⁻³ per epoch)")
    at["d"].set_ylabel("rate of the layers above\n(10⁻³ per epoch)")
    for letter in "abc":
        at[letter].set_ylabel("final H")
    key(sheet, kinds=(), marks=marks)
    return sheet
