"""Of two pathways that could learn the same mode, the one with the stronger input-output correlation learns it.

Both pathways see the same error e. From decoupled layers each therefore depends on time through T = ∫ e dt alone, and
two layers grow as exp(2sT) with s their correlation (singular value). While the winner grows by a factor F, the loser
grows by F^(s₂/s₁), and stops where the winner has left nothing to learn. As the start a₀ of all layers tends to 0,

    loser ∝ (a₀²)^(1 − s₂/s₁),

which tends to 0 for any s₂ < s₁, and slowly for nearly equal ones. Equal pathways share equally. Every mode has a race
of its own. If the broad levels of a hierarchy are strongest in one sensory modality (“sense”) and the fine ones in
another, each level is learned through the sense in which it is strongest, from small random weights too.

The slides list three other advantages. They are exact laws in the same T, and they are not alike. *Fewer layers* take
all: a rival of three layers stays where it started. *More paths through an edge* act as a stronger correlation: with k
paths through its first layer a pathway grows √k times as fast, loser ∝ (a₀²)^(1 − 1/√k). A *larger start* wins a share,
not the race: at the end the ratio of the pathways is that of their starts, however small these are. An *unbalanced
start* acts as a larger one: layers a₁ and a₂ count as (a₁ + a₂)²/4 instead of a₁a₂.

The slides show the statement in a picture without numbers; the exponents are derived here. All races run side by side
in one network, where they do not interact: each has outputs of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from .. import Setup, Trajectory, inits, rules, solve, tasks
from .._figures.style import new_figure
from .._formulas.modes import Modes
from .._foundation.checks import positive, whole
from .._foundation.errors import BadInput
from ._kit import rival_pathways, time_grids
from ._kit.rival_panels import (
    by_level,
    draw_exponents,
    draw_factors,
    draw_law,
    draw_powers,
    draw_race,
    draw_tree,
    random_exponents,
    slopes,
    start_exponents,
)
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset


THEME, PLACE = "gates", 3
REFERENCE = {
    "saxe_slides": "“The neural race: stronger input-output correlations”, “The neural race reduction”",
    "saxe2022": "race reduction",
    "jarvis2025": "eq. 10",
}
QUICK = dict(starts=(1e-1, 1e-2, 1e-3), seeds=4, lr=0.025, points=100, race=False)


def run(
    *,
    ratios: Sequence[float] = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    dims: Sequence[float] = (0.4, 0.6, 0.7, 0.5),
    starts: Sequence[float] = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3),
    scales: Sequence[float] = (1e-2, 1e-3, 1e-4),
    hidden: int = 32,
    until: float = 50.0,
    lr: float = 0.01,
    points: int = 300,
    seeds: int = 12,
    race: bool = True,
    seed: int = 0,
) -> Result:
    """`ratios`: s₂/s₁ of pairs of pathways; `dims`: for each level of the hierarchy, how dimly the worse sense shows
    it.

    `starts` are strengths of decoupled layers, `scales` standard deviations of random weights. `race` compares the
    closed form with the theory NeuralRace.
    """
    if len(ratios) != rival_pathways.ITEMS or not all(0 < ratio <= 1 for ratio in ratios) or ratios[-1] != 1:
        raise BadInput(
            f"ratios = {tuple(ratios)}", f"{rival_pathways.ITEMS} numbers up to 1, the last of them 1", "change ratios"
        )
    if len(dims) != 4 or not all(0 < dim < 1 for dim in dims):
        raise BadInput(f"dims = {tuple(dims)}", "a number below 1 for each of the 4 levels", "change dims")
    hidden, points, seeds = whole(hidden, "hidden"), whole(points, "points", least=2), whole(seeds, "seeds")
    lr, until = positive(lr, "lr"), positive(until, "until")
    starts, scales = sorted(starts, reverse=True), sorted(scales, reverse=True)
    draws = list(range(seed, seed + seeds))
    times = time_grids.even(until, points, lr)
    tree = tasks.hierarchy(levels=3)
    modes, levels = tree.modes(), rival_pathways.levels(tree)
    other, broad = np.asarray(dims)[levels], levels < 2
    senses = np.stack([np.where(broad, 1.0, other), np.where(broad, other, 1.0)])
    task, net = rival_pathways.task(tree, senses, ratios), rival_pathways.net(hidden)
    paths = net.paths()

    def decoupled(start: float, rate: float = lr) -> Setup:
        init = inits.Decoupled(rival_pathways.strengths(net, start))
        return Setup(task, net, init, rules.GradientDescent(rate), times=times)

    # One shape for all runs: that of all seeds, whether or not the seed matters.
    def trained_from(setup: Setup) -> tuple[dict[str, np.ndarray], np.ndarray]:
        run = simulate(setup, draws, ["map", "path_norm"])
        return rival_pathways.read(run["map"], modes, senses), rival_pathways.factors(run["path_norm"], paths)

    by_start = [trained_from(decoupled(start)) for start in starts]
    random = {scale: decoupled(starts[0]).replace(init=inits.SmallRandom(scale)) for scale in scales}
    by_scale = [trained_from(setup)[0] for setup in random.values()]
    shown = starts[len(starts) // 2]
    strengths = modes.singular_values * np.sqrt(rival_pathways.ITEMS)
    theory = {
        "tree": rival_pathways.predicted(times, strengths, senses, shown) * senses,
        "rivals": rival_pathways.predicted(
            times, rival_pathways.AMOUNTS, np.stack([np.ones(rival_pathways.ITEMS), ratios]), shown
        ),
    }
    pair = [by_start[starts.index(shown)][0], trained_from(decoupled(shown, lr / 2))[0]]
    errors = [np.abs(strengths_of["tree"][0] - theory["tree"]).max() for strengths_of in pair]
    setups = {"decoupled": decoupled(shown), "random": random[scales[-1]]}
    theories = {"decoupled": solve(setups["decoupled"], "NeuralRace")} if race else {}
    effective = np.sqrt(hidden / 2) * scales[1]  # layers of sd σ seem to start at √(N/2) σ in each mode
    import xarray

    data = xarray.Dataset(
        {
            "tree_training": (("scale", "seed", "time", "path", "mode"), np.stack([r["tree"] for r in by_scale])),
            "tree_theory": (
                ("time", "path", "mode"),
                rival_pathways.predicted(times, strengths, senses, effective) * senses,
            ),
            "rivals_training": (("start", "time", "path", "ratio"), np.stack([r["rivals"][0] for r, _ in by_start])),
            "rivals_theory": (("time", "path", "ratio"), theory["rivals"]),
            "rivals_final": (("start", "path", "ratio"), rival_pathways.finals(starts, ratios)),
            "alone": (("time", "ratio"), rival_pathways.alone(times, ratios, shown)),
            "factor_training": (("start", "factor", "path"), np.stack([f[0, -1] for _, f in by_start])),
            "factor_theory": (
                ("start", "factor", "path"),
                np.stack([rival_pathways.factor_finals(start) for start in starts]),
            ),
            "order_in_lr": ((), np.log2(errors[0] / errors[1])),
            "level": ("mode", levels),
            "target": ("mode", strengths),
            "amount": ("ratio", rival_pathways.AMOUNTS),
        },
        coords={
            "time": times,
            "start": starts,
            "scale": scales,
            "seed": draws,
            "ratio": list(ratios),
            "factor": list(rival_pathways.FACTORS),
            "dim": list(dims),
        },
        attrs={"shown": shown, "hidden": hidden},
    )
    for trajectory in theories.values():
        data["race_gap"] = _race_gap(trajectory, modes, senses, theory)
    return Result(data, setups, theories)


def _race_gap(
    trajectory: Trajectory, modes: Modes, senses: Float[np.ndarray, "path mode"], theory: dict[str, np.ndarray]
) -> float:
    """Largest gap between NeuralRace, which integrates the strengths of all edges, and the closed form of the race."""
    read = rival_pathways.read(trajectory["map"][None], modes, senses)
    return max(np.abs(read[name][0] - theory[name]).max() for name in theory)


def claims(result: Result) -> list[Claim]:
    data = result.data
    ratio, start = data.ratio.values, data.start.values
    final = data.rivals_training.isel(time=-1)
    random, shares = random_exponents(data), by_level(data).isel(path=0)
    equal = final.sel(ratio=1.0)
    growth = _growth(data)
    factors = data.factor_training
    odds = (factors.isel(path=0) / factors.isel(path=1)).transpose("factor", "start")
    deep = slopes(factors.sel(factor="fewer layers", path=1).values, start**3)[-1]
    paths = slopes(1 / odds.sel(factor="more paths").values, start**2)[-1]
    gap = np.abs(factors / data.factor_theory - 1)
    statements = [
        paper(
            "Each level of a hierarchy is learned through the sense that shows it best, from random weights: "
            f"smallest share of the winner, σ = {float(data.scale[-1]):g}",
            at_least(float(shares.isel(scale=-1).min()), 0.95),
        ),
        ours(
            "… and more so from smaller weights: smallest rise of this share, one scale to the next",
            at_least(float(shares.mean("seed").diff("scale").min()), 0.0),
        ),
        paper(
            "The loser stops where the winner has left nothing to learn: its strength / that without a rival, "
            f"s₂/s₁ = {ratio[0]:g}",
            at_most(float(final.isel(start=-1, path=1, ratio=0) / data.alone.isel(time=-1, ratio=0)), 0.01),
        ),
        ours(
            "Loser/winner ∝ (a₀²)^(1 − s₂/s₁) in training: largest gap of the exponent over s₂/s₁",
            at_most(np.abs(start_exponents(final, start**2) - (1 - ratio)).max(), 0.01),
        ),
        ours(
            "… and for the levels of the hierarchy from random weights of sd σ: largest gap of the exponent of σ², "
            "medians over seeds, smallest two σ",
            at_most(np.abs(random - (1 - data.dim.values)).max(), 0.05),
        ),
        ours(
            "Equal pathways share equally: gap of the shares from ½",
            at_most(np.abs(equal / equal.sum("path") - 0.5).max(), 1e-9),
        ),
        ours(
            "At all times the loser has grown by the winner's factor to the power s₂/s₁: largest gap of the power",
            at_most(growth, 0.01),
        ),
        ours(
            "Training tends to the closed form of the race as lr → 0: order of the gap in lr",
            between(float(data.order_in_lr), 0.9, 1.1),
        ),
        paper(
            "Fewer layers: the rival of three layers stays where it starts, strength ∝ start¹: exponent, "
            "smallest starts",
            between(deep, 0.98, 1.02),
        ),
        paper(
            "More paths: √2 times as fast with two through an edge, loser/winner ∝ (a₀²)^(1 − 1/√2 = 0.293): exponent",
            between(paths, 0.283, 0.303),
        ),
        paper(
            f"Larger start: winner/loser is the ratio of the starts, {rival_pathways.LAYERS:g}, however small: "
            "largest gap",
            at_most(np.abs(odds.sel(factor="larger start") - rival_pathways.LAYERS).max(), 0.01),
        ),
        paper(
            f"Unbalanced start: winner/loser tends to ((k + 1/k)/2)² = {_advantage():.4g} for layers k and 1/k times "
            "as large: gap, smallest start",
            at_most(abs(float(odds.sel(factor="unbalanced")[-1]) - _advantage()), 0.01),
        ),
        ours(
            "All four advantages, at every start: largest relative gap to the closed form",
            at_most(float(gap.max()), 0.06),
        ),
    ]
    if "race_gap" in data:
        statements.append(
            ours(
                "NeuralRace agrees with the closed form: largest gap of all strengths",
                at_most(float(data.race_gap), 1e-6),
            )
        )
    return statements


def _advantage() -> float:
    """By how much unbalanced layers are ahead of balanced ones with the same product."""
    return ((rival_pathways.LAYERS + 1 / rival_pathways.LAYERS) / 2) ** 2


def _growth(data: Dataset) -> float:
    """Largest gap of log(loser's growth)/log(winner's growth) from the ratio, once the winner has grown tenfold."""
    grown = np.log(data.rivals_training / data.rivals_training.isel(time=0))
    winner, loser = (grown.isel(path=k).transpose("ratio", "start", "time").values for k in (0, 1))
    power = np.where(winner > np.log(10), loser / np.where(winner > 0, winner, 1.0), data.ratio.values[:, None, None])
    return float(np.abs(power - data.ratio.values[:, None, None]).max())


def figure(result: Result) -> Figure:
    data = result.data
    sheet, ((race, powers, exponents), (tree, law, factors)) = new_figure(2, 3)
    draw_race(race, data)
    draw_powers(powers, data)
    draw_exponents(exponents, data)
    draw_tree(tree, data)
    draw_law(law, data)
    draw_factors(factors, data)
    return sheet
