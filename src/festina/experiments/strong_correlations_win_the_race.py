"""Of two pathways that could learn the same mode, the one with the stronger input-output correlation learns it.

Both pathways see the same error, and two layers grow as exp(2sT), with s their correlation (singular value) and T the
time integral of the error. As the initial strength a₀ of all layers tends to 0,

    loser/winner ∝ (a₀²)^(1 − s₂/s₁),

which tends to 0 for any s₂ < s₁, and slowly for nearly equal ones. Every mode has a race of its own: if the broad
levels of a hierarchy are clearest in one sensory modality (“sense”) and the fine ones in another, each level is learned
through the sense that shows it best, from small random weights too.

The slides list three other advantages, which act in three ways. A pathway of **fewer layers** learns everything: a
rival of three layers stays at its initial strength. **More paths through an edge** act as a stronger correlation: with
k paths a pathway grows √k times as fast. A **larger start** wins a share and not the race, since the ratio of the
pathways is that of their starts in the end. An **unbalanced start** acts as a larger one: layers a₁ and a₂ count as
(a₁ + a₂)²/4 instead of a₁a₂. The slides show pictures without numbers; the exponents are derived here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import Setup, inits, rules, tasks
from .._figures.overlay import overlay
from .._figures.panels import beside, key, mark, panels
from .._figures.style import COLOURS, DARK_GREY, DASHES, THIN
from .._formulas import race_clock
from .._formulas.curves import order
from .._foundation.errors import BadInput
from ..theories.aligned_modes import mode
from ._kit import rival_pathways, time_grids
from ._kit.labelled import largest, stack, table
from ._kit.parameters import POSITIVE, Count, Each, Numbers, Positive, Seed, Several, checked
from ._kit.rival_pathways import AMOUNTS, FACTORS, ITEMS, by_level, last_slope, loser_over_winner
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray

THEME, PLACE = "gates", 3
REFERENCE = {
    "saxe_slides": "“The neural race: stronger input-output correlations”, “The neural race reduction”",
    "saxe2022": "race reduction",
    "jarvis2025": "eq. 10",
}
QUICK = dict(starts=(1e-1, 1e-2, 1e-3), seeds=4, lr=0.025, points=100)
CAPTION = """
**a** Two pathways with input-output correlations s₂ < s₁ learn the same mode: the share of the target that each
contributes. Dotted: what the weaker one would contribute without its rival. **b** Final strength of the weaker over
that of the stronger pathway, against the strength a₀² that both start from. **c** Four levels of a hierarchy, from the
broadest (1) to the finest (4), each shown more clearly by one of two senses, learned from small random weights: what
the pathways from the better and the worse sense contribute, one line for each seed. **d** Pathways of equal correlation
of which one has two layers for three, two paths through its first layer, twice the initial strength, or layers of
unequal initial strength: its final share of what both contribute. Dots are networks after training. The theory is the
closed form of the race, without a fit.
"""
ALT = """
One curve rises to the target and the other stays near zero; every level of the hierarchy is learned through its better
sense. The final strength of the weaker pathway falls as a power of the start, more steeply for weaker correlations.
With fewer layers or more paths the favoured share tends to one; with a larger or unbalanced start it stays below.
"""
WINNER, LOSER = COLOURS[:2]
Falling = Annotated[tuple[float, ...], Each(POSITIVE, least=2)]


@checked
def run(
    *,
    ratios: Numbers = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    dims: Numbers = (0.4, 0.6, 0.7, 0.5),
    starts: Falling = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3),
    scales: Falling = (1e-2, 1e-3, 1e-4),
    hidden: Count = 32,
    until: Positive = 50.0,
    lr: Positive = 0.01,
    points: Several = 300,
    seeds: Count = 12,
    seed: Seed = 0,
) -> Result:
    """`ratios`: s₂/s₁ of pairs of pathways; `dims`: for each level, how dimly the worse sense shows it.

    `starts` are strengths of decoupled layers, `scales` standard deviations of random weights.
    """
    if len(ratios) != ITEMS or not all(0 < ratio <= 1 for ratio in ratios) or ratios[-1] != 1:
        raise BadInput(f"ratios = {ratios}", f"{ITEMS} numbers up to 1, the last of them 1", "change ratios")
    if len(dims) != 4 or not all(0 < dim < 1 for dim in dims):
        raise BadInput(f"dims = {dims}", "a number below 1 for each of the 4 levels", "change dims")
    starts, scales = (tuple(sorted(given, reverse=True)) for given in (starts, scales))
    times, draws = time_grids.even(until, points, lr), list(range(seed, seed + seeds))
    tree, rule, net = tasks.hierarchy(levels=3), rules.GradientDescent(lr), rival_pathways.net(hidden)
    modes, levels = tree.modes(), rival_pathways.levels(tree)
    senses = rival_pathways.senses(levels, dims)
    base = Setup(rival_pathways.task(tree, senses, ratios), net, inits.SmallRandom(scales[-1]), rule, times=times)

    def decoupled(start: float) -> Setup:
        return base.replace(init=inits.Decoupled(rival_pathways.strengths(net, start)))

    def trained_from(setup: Setup) -> xarray.Dataset:  # all seeds, even if they are alike: one shape for all runs
        return rival_pathways.measured(simulate(setup, draws, ["map", "path_norm"]), net, modes, senses)

    by_start = stack({start: trained_from(decoupled(start)) for start in starts}, "start").isel(seed=0)
    by_scale = stack({s: trained_from(base.replace(init=inits.SmallRandom(s))).tree for s in scales}, "scale")
    strengths, reach = modes.singular_values * np.sqrt(ITEMS), np.stack([np.ones(ITEMS), ratios])
    shown, fine = starts[len(starts) // 2], np.union1d(np.geomspace(starts[0], starts[-1], 25), starts)[::-1]
    effective = np.sqrt(hidden / 2) * scales[1]  # layers of sd σ seem to start at √(N/2) σ in each mode
    tree_theory, random_theory = (
        table(senses * race_clock.rivals_over_time(strengths, senses, start, times), "time", "path", "mode")
        for start in (shown, effective)
    )
    rivals_theory = table(race_clock.rivals_over_time(AMOUNTS, reach, shown, times), "time", "path", "ratio")
    halved = trained_from(decoupled(shown).replace(rule=rules.GradientDescent(lr / 2))).isel(seed=0)
    gaps = [largest(trained.tree - tree_theory) for trained in (by_start.sel(start=shown), halved)]
    ends = [[race_clock.rivals_in_the_end(AMOUNTS[k], reach[:, k], start) for k in range(ITEMS)] for start in fine]
    advantages = [list(race_clock.advantaged_in_the_end(start).values()) for start in fine]
    alone = mode(times, singular_value=reach[1] * AMOUNTS, variance=reach[1] ** 2, start=np.full(ITEMS, shown**2))
    data = xarray.Dataset(
        {
            "tree_training": by_scale,
            "tree_theory": random_theory,
            "rivals_training": by_start.rivals,
            "rivals_theory": rivals_theory,
            "rivals_final": table(ends, "fine_start", "ratio", "path"),
            "alone": table(alone, "time", "ratio"),
            "factor_training": by_start.factor,
            "factor_final": table(advantages, "fine_start", "factor", "path"),
            "order_in_lr": order(np.array(gaps))[0],
            "level": table(levels, "mode"),
            "target": table(strengths, "mode"),
            "amount": table(AMOUNTS, "ratio"),
        },
        coords={"time": times, "fine_start": fine, "ratio": list(ratios), "factor": list(FACTORS), "dim": list(dims)},
        attrs={"shown": shown},
    )
    return Result(data, {"decoupled": decoupled(shown), "random": base})


def claims(result: Result) -> list[Claim]:
    data = result.data
    ratio, least, advantage = data.ratio, float(data.scale[-1]), race_clock.ADVANTAGE
    final = data.rivals_training.isel(time=-1)
    shares = by_level(data.tree_training.isel(time=-1), data) / by_level(data.target, data)
    equal, factors = final.sel(ratio=1.0), data.factor_training
    uneven = largest(equal / equal.sum("path") - 0.5)
    odds = factors.isel(path=0) / factors.isel(path=1)
    grown = np.log(data.rivals_training / data.rivals_training.isel(time=0))
    by_scale = largest(last_slope(loser_over_winner(shares).median("seed"), "scale", 2) - (1 - data.dim))
    deep = last_slope(factors.sel(factor="fewer layers").isel(path=1), "start", 3)
    paths = last_slope(1 / odds.sel(factor="more paths"), "start", 2)
    off = largest(factors / data.factor_final.sel(fine_start=data.start) - 1)
    ahead = ((advantage + 1 / advantage) / 2) ** 2  # of unbalanced over balanced layers with the same product
    alone = float(final.isel(start=-1, path=1, ratio=0) / data.alone.isel(time=-1, ratio=0))
    rise = shares.isel(path=0).mean("seed").diff("scale").min()
    larger = largest(odds.sel(factor="larger start") - advantage)
    unbalanced = abs(float(odds.sel(factor="unbalanced")[-1]) - ahead)
    by_start = largest(last_slope(loser_over_winner(final), "start", 2) - (1 - ratio))
    power = float(abs(loser_over_winner(grown) - ratio).where(grown.isel(path=0) > np.log(10)).max())
    return [
        paper(
            f"Smallest share of a level learned through its better sense, weights of standard deviation {least:g}",
            at_least(shares.isel(path=0, scale=-1).min(), 0.95),
            headline=True,
            panel="c",
        ),
        paper(
            f"Weaker pathway over what it learns without a rival, s₂/s₁ = {float(ratio[0]):g}, smallest a₀",
            at_most(alone, 0.01),
            headline=True,
            panel="a",
        ),
        ours("Weaker/stronger pathway: exponent in a₀², gap from 1 − s₂/s₁", at_most(by_start, 0.01), panel="b"),
        ours("Worse/better sense: exponent in the variance of weights, gap from 1 − s₂/s₁", at_most(by_scale, 0.05)),
        ours("Share of the better sense grows as random weights get smaller: smallest rise", at_least(rise, 0.0)),
        ours("Pathways of equal correlation: largest gap of their shares from ½", at_most(uneven, 1e-9)),
        ours("Logarithmic growth, weaker over stronger pathway: largest gap from s₂/s₁", at_most(power, 0.01)),
        ours("Gap between training and closed form: order in the learning rate", between(data.order_in_lr, 0.9, 1.1)),
        paper("Fewer layers: final strength of the rival, exponent in its initial one", between(deep, 0.98, 1.02)),
        paper("Two paths for one: exponent of weaker/stronger in a₀² (1 − 1/√2 = 0.293)", between(paths, 0.283, 0.303)),
        paper(f"Larger initial strength: final ratio, gap from {advantage:g}", at_most(larger, 0.01), panel="d"),
        paper(f"Unbalanced layers: final ratio, gap from ((k + 1/k)/2)² = {ahead:.4g}", at_most(unbalanced, 0.01)),
        ours("All four advantages: largest relative gap of final strengths to the closed form", at_most(off, 0.06)),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab;cd")
    one = data.sel(ratio=0.8, method="nearest").sel(start=data.shown)
    weights = np.array([1.0, float(one.ratio)]) / float(one.amount)
    for k, colour in enumerate((WINNER, LOSER)):
        training, theory = (weights[k] * one[f"rivals_{kind}"].isel(path=k) for kind in ("training", "theory"))
        overlay(at["a"], training, theory, colours=colour)
    at["a"].plot(data.time, weights[1] * one.alone, color=LOSER, lw=THIN, ls=":")
    at["a"].set(ylabel="share of the target", title=f"Race for one mode, s₂/s₁ = {float(one.ratio):g}", xlim=(0, 20))
    final, levels = data.rivals_training.isel(time=-1), data.isel(scale=1)
    for ratio in data.ratio.values[::-2]:
        dots, line = (loser_over_winner(part.sel(ratio=ratio)) for part in (final, data.rivals_final))
        _draw_finals(at["b"], dots, line, f"s₂/s₁ = {ratio:g}")
    at["b"].set(yscale="log", ylabel="weaker / stronger pathway", title="The weaker one vanishes as a power of a₀²")
    for k, colour in enumerate((WINNER, LOSER)):
        kinds = (levels.tree_training, levels.tree_theory)
        training, theory = (by_level(curves, data, "mean").isel(path=k) for curves in kinds)
        overlay(at["c"], training, theory, by="dim", colours=[colour])
    for number, height in enumerate(by_level(data.target, data, "mean").values):
        beside(at["c"], float(data.time[-1]), height, f"level {number + 1}")
    at["c"].set(ylabel="contribution to the output", title="Every level of a hierarchy has its own race")
    for name in data.factor.values:
        both = (data[f"factor_{kind}"].sel(factor=name) for kind in ("training", "final"))
        dots, line = (pair.isel(path=0) / pair.sum("path") for pair in both)
        _draw_finals(at["d"], dots, line, name)
    at["d"].set(ylabel="share of the favoured pathway", title="Other advantages, equal correlation")
    colours = {"stronger correlation": WINNER, "weaker correlation": LOSER}
    alone = mark("without rival (a)", "", colour=LOSER)
    alone.set_linestyle(":")
    key(sheet, colours, marks=[alone, mark("trained, final", colour=DARK_GREY)])
    return sheet


def _draw_finals(axes: Axes, dots: DataArray, line: DataArray, name: str) -> None:
    """Trained networks as dots and their theory as a line, against the initial strength a₀²."""
    axes.semilogx(dots.start**2, dots, "o", color=DARK_GREY, ms=5)
    axes.plot(line.fine_start**2, line, color=DARK_GREY, lw=THIN, ls=DASHES)
    beside(axes, float(line.fine_start[0]) ** 2, float(line[0]), name)
    axes.set_xlabel("initial strength of both pathways, a₀²")
