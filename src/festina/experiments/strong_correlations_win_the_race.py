"""Of two pathways that could learn the same, the one with the stronger input-output correlation learns it.

Both pathways see the same error. From decoupled layers each therefore runs on one clock, T = ∫ error dt, and two layers
grow as exp(2sT) with s their correlation (singular value). While the winner grows by a factor F, the loser grows by
F^(s₂/s₁), and stops where the winner has left nothing: as the start a₀ of all layers tends to 0,

    loser ∝ (a₀²)^(1 − s₂/s₁)

which tends to 0 for any s₂ < s₁, and slowly for nearly equal ones. Equal pathways share equally. The race is run for
every mode by itself: in a hierarchy that one sense shows the broad levels of, and another the fine ones, each level
is learned through the sense that shows it best, from small random weights too.

The other three advantages of the slides' list are exact laws of the same clock, and not alike. *Fewer layers* take all:
a rival of three layers stays where it started. *More paths through an edge* act as a stronger correlation: with k paths
through its first layer a pathway grows √k times as fast, loser ∝ (a₀²)^(1 − 1/√k). A *larger start* wins a share, not
the race: its odds are the ratio of the starts, at any size of them. An *unbalanced start* is a larger one: layers a₁
and a₂ count as (a₁ + a₂)²/4 instead of a₁a₂.

The slides show the statement in a picture without numbers; the exponents are derived here. All races are run side by
side in one network, where they do not touch: each has outputs of its own.
"""

from __future__ import annotations

import numpy as np

from .. import inits, rules, tasks
from .._errors import BadInput
from .._noun import positive, whole
from .._plot import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from .._solve import solve
from . import _rivals

REFERENCE = {
    "saxe_slides": "“The neural race: stronger input-output correlations”, “The neural race reduction”",
    "saxe2022": "race reduction",
    "jarvis2025": "eq. 10",
}
QUICK = dict(starts=(1e-1, 1e-2, 1e-3), seeds=4, lr=0.025, points=100, race=False)


def run(
    *,
    ratios=(0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    dims=(0.4, 0.6, 0.7, 0.5),
    starts=(1e-1, 3e-2, 1e-2, 3e-3, 1e-3),
    scales=(1e-2, 1e-3, 1e-4),
    hidden=32,
    until=50.0,
    lr=0.01,
    points=300,
    seeds=12,
    race=True,
    seed=0,
) -> Result:
    if len(ratios) != _rivals.ITEMS or not all(0 < ratio <= 1 for ratio in ratios) or ratios[-1] != 1:
        raise BadInput(
            f"ratios = {tuple(ratios)}", f"{_rivals.ITEMS} numbers up to 1, the last of them 1", "change ratios"
        )
    if len(dims) != 4 or not all(0 < dim < 1 for dim in dims):
        raise BadInput(f"dims = {tuple(dims)}", "a number below 1 for each of the 4 levels", "change dims")
    hidden, points, seeds = whole(hidden, "hidden"), whole(points, "points", least=2), whole(seeds, "seeds")
    lr, until = positive(lr, "lr"), positive(until, "until")
    starts, scales = sorted(starts, reverse=True), sorted(scales, reverse=True)
    draws = list(range(seed, seed + seeds))
    times = np.unique(np.round(np.linspace(0, until, points) / lr)) * lr
    tree = tasks.hierarchy(levels=3)
    modes, levels = tree.modes(), _rivals.levels(tree)
    other, broad = np.asarray(dims)[levels], levels < 2
    senses = np.stack([np.where(broad, 1.0, other), np.where(broad, other, 1.0)])
    task, net = _rivals.task(tree, senses, ratios), _rivals.net(hidden)
    paths = net.paths()

    def decoupled(start, rate=lr):
        return Setup(
            task, net, inits.Decoupled(_rivals.strengths(net, start)), rules.GradientDescent(rate), times=times
        )

    # One shape for all runs: that of all seeds, whether or not the seed matters.
    def trained_from(setup):
        found = simulate(setup, draws, ["map", "path_norm"])
        return _rivals.read(found["map"], modes, senses), _rivals.factors(found["path_norm"], paths)

    by_start = [trained_from(decoupled(start)) for start in starts]
    random = {scale: decoupled(starts[0]).replace(init=inits.SmallRandom(scale)) for scale in scales}
    by_scale = [trained_from(setup)[0] for setup in random.values()]
    shown = starts[len(starts) // 2]
    strengths = modes.singular_values * np.sqrt(_rivals.ITEMS)
    theory = {
        "tree": _rivals.predicted(times, strengths, senses, shown) * senses,
        "rivals": _rivals.predicted(times, _rivals.AMOUNTS, np.stack([np.ones(_rivals.ITEMS), ratios]), shown),
    }
    runs = [by_start[starts.index(shown)][0], trained_from(decoupled(shown, lr / 2))[0]]
    errors = [np.abs(found["tree"][0] - theory["tree"]).max() for found in runs]
    setups = {"decoupled": decoupled(shown), "random": random[scales[-1]]}
    theories = {"decoupled": solve(setups["decoupled"], "NeuralRace")} if race else {}
    effective = np.sqrt(hidden / 2) * scales[1]  # layers of sd σ seem to start at √(N/2) σ in each mode
    import xarray

    data = xarray.Dataset(
        {
            "tree_training": (("scale", "seed", "time", "path", "mode"), np.stack([r["tree"] for r in by_scale])),
            "tree_theory": (("time", "path", "mode"), _rivals.predicted(times, strengths, senses, effective) * senses),
            "rivals_training": (("start", "time", "path", "ratio"), np.stack([r["rivals"][0] for r, _ in by_start])),
            "rivals_theory": (("time", "path", "ratio"), theory["rivals"]),
            "rivals_final": (("start", "path", "ratio"), _rivals.finals(starts, ratios)),
            "alone": (("time", "ratio"), _rivals.alone(times, ratios, shown)),
            "factor_training": (("start", "factor", "path"), np.stack([f[0, -1] for _, f in by_start])),
            "factor_theory": (
                ("start", "factor", "path"),
                np.stack([_rivals.factor_finals(start) for start in starts]),
            ),
            "order_in_lr": ((), np.log2(errors[0] / errors[1])),
            "level": ("mode", levels),
            "target": ("mode", strengths),
            "amount": ("ratio", _rivals.AMOUNTS),
        },
        coords={
            "time": times,
            "start": starts,
            "scale": scales,
            "seed": draws,
            "ratio": list(ratios),
            "factor": list(_rivals.FACTORS),
            "dim": list(dims),
        },
        attrs={"shown": shown, "hidden": hidden},
    )
    for found in theories.values():
        data["race_gap"] = _race_gap(found, modes, senses, theory)
    return Result(data, setups, theories)


def _race_gap(found, modes, senses, theory) -> float:
    """Largest gap between NeuralRace, which integrates the strengths of all edges, and the clock."""
    read = _rivals.read(found["map"][None], modes, senses)
    return max(np.abs(read[name][0] - theory[name]).max() for name in theory)


def claims(result: Result) -> list[Claim]:
    data = result.data
    ratio, start = data.ratio.values, data.start.values
    final = data.rivals_training.isel(time=-1)
    random, shares = _random_slopes(data), _by_level(data).isel(path=0)
    equal = final.sel(ratio=1.0)
    growth = _growth(data)
    factors = data.factor_training
    odds = (factors.isel(path=0) / factors.isel(path=1)).transpose("factor", "start")
    deep = _slope(factors.sel(factor="fewer layers", path=1).values, start**3)[-1]
    paths = _slope(1 / odds.sel(factor="more paths").values, start**2)[-1]
    gap = np.abs(factors / data.factor_theory - 1)
    found = [
        Claim.at_least(
            "Each level of a hierarchy is learned through the sense that shows it best, from random weights: "
            f"smallest share of the winner, σ = {float(data.scale[-1]):g}",
            float(shares.isel(scale=-1).min()),
            0.95,
            source="paper",
        ),
        Claim.at_least(
            "… and more so the smaller the start: smallest rise of this share, scale to next scale",
            float(shares.mean("seed").diff("scale").min()),
            0.0,
        ),
        Claim.at_most(
            "The loser stops where the winner has left nothing, and alone would learn all: its strength / alone, "
            f"s₂/s₁ = {ratio[0]:g}",
            float(final.isel(start=-1, path=1, ratio=0) / data.alone.isel(time=-1, ratio=0)),
            0.01,
            source="paper",
        ),
        Claim.at_most(
            "Loser/winner ∝ (a₀²)^(1 − s₂/s₁): largest gap of the exponent over s₂/s₁, training",
            np.abs(_slopes(final, start**2) - (1 - ratio)).max(),
            0.01,
        ),
        Claim.at_most(
            "… and for the levels of the hierarchy from random weights, against σ²: largest gap, medians over seeds, "
            "smallest two σ",
            np.abs(random - (1 - data.dim.values)).max(),
            0.05,
        ),
        Claim.at_most(
            "Equal pathways share equally: gap of the shares from ½",
            np.abs(equal / equal.sum("path") - 0.5).max(),
            1e-9,
        ),
        Claim.at_most(
            "At all times the loser has grown by the winner's factor to the power s₂/s₁: largest gap of the power",
            growth,
            0.01,
        ),
        Claim.between("Training tends to the race as lr → 0: order", float(data.order_in_lr), 0.9, 1.1),
        Claim.between(
            "Fewer layers: three layers stay where they start, strength ∝ start¹: exponent, smallest starts",
            deep,
            0.98,
            1.02,
            source="paper",
        ),
        Claim.between(
            "More paths: √2 times as fast with two through an edge, odds ∝ (a₀²)^(1 − 1/√2 = 0.293): exponent",
            paths,
            0.283,
            0.303,
            source="paper",
        ),
        Claim.at_most(
            f"Larger start: odds are the ratio of the starts, {_rivals.LAYERS:g}, at any size: largest gap",
            np.abs(odds.sel(factor="larger start") - _rivals.LAYERS).max(),
            0.01,
            source="paper",
        ),
        Claim.at_most(
            f"Unbalanced start: odds tend to ((k + 1/k)/2)² = {_advantage():.4g} for layers k and 1/k times as large: "
            "gap, smallest start",
            abs(float(odds.sel(factor="unbalanced")[-1]) - _advantage()),
            0.01,
            source="paper",
        ),
        Claim.at_most("All four, at every start: largest relative gap to the clock", float(gap.max()), 0.06),
    ]
    if "race_gap" in data:
        found.append(Claim.at_most("NeuralRace is the clock: largest gap of all strengths", float(data.race_gap), 1e-6))
    return found


def _advantage() -> float:
    return ((_rivals.LAYERS + 1 / _rivals.LAYERS) / 2) ** 2


def _slope(values, starts) -> np.ndarray:
    return np.diff(np.log(values), axis=0) / np.diff(np.log(starts)).reshape(-1, *[1] * (np.ndim(values) - 1))


def _slopes(final, starts) -> np.ndarray:
    """The exponent of loser/winner against the start, between the smallest two; (ratio,)."""
    final = final.transpose("start", "path", "ratio").values
    return _slope(final[:, 1] / final[:, 0], starts)[-1]


def _random_slopes(data) -> np.ndarray:
    """The same for the levels of the hierarchy from random weights, of medians over seeds; (dim,)."""
    return _slope(_odds(_by_level(data)).median("seed").transpose("scale", "dim").values, data.scale.values**2)[-1]


def _by_level(data):
    """Shares (scale, seed, path, dim) of each level that are learned through its better (0) and its worse sense (1).

    Modes of one level are equal, so that random weights turn them into each other: their sum counts.
    """
    final = data.tree_training.isel(time=-1).groupby(data.level).sum() / data.target.groupby(data.level).sum()
    better = final.isel(path=[0, 1]).isel(level=slice(0, 2)), final.isel(path=[1, 0]).isel(level=slice(2, 4))
    import xarray

    return xarray.concat(better, "level").rename(level="dim").assign_coords(dim=data.dim.values)


def _growth(data) -> float:
    """Largest gap of log(loser's growth)/log(winner's growth) from the ratio, once the winner has grown tenfold."""
    grown = np.log(data.rivals_training / data.rivals_training.isel(time=0))
    winner, loser = (grown.isel(path=k).transpose("ratio", "start", "time").values for k in (0, 1))
    power = np.where(winner > np.log(10), loser / np.where(winner > 0, winner, 1.0), data.ratio.values[:, None, None])
    return float(np.abs(power - data.ratio.values[:, None, None]).max())


def figure(result: Result):
    data = result.data
    sheet, ((race, powers, exponents), (tree, law, factors)) = new_figure(2, 3)
    _draw_race(race, data)
    _draw_powers(powers, data)
    _draw_exponents(exponents, data)
    _draw_tree(tree, data)
    _draw_law(law, data)
    _draw_factors(factors, data)
    return sheet


def _draw_race(axes, data) -> None:
    one = data.sel(ratio=0.8, method="nearest")
    seen = one.rivals_training.sel(start=data.shown, method="nearest")
    ratio, amount = float(one.ratio), float(one.amount)
    for k, (name, reach) in enumerate({"winner": 1.0, f"loser, s₂/s₁ = {ratio:g}": ratio}.items()):
        trained(axes, data.time, reach * seen.isel(path=k) / amount, colour=COLOURS[k], label=name)
        predicted(axes, data.time, reach * one.rivals_theory.isel(path=k) / amount, colour=COLOURS[k])
    axes.plot(data.time, ratio * one.alone / amount, color=COLOURS[1], lw=1.2, ls=":", label="loser without rival")
    axes.set(xlabel=TIME, ylabel="share of the target", title="the winner leaves nothing to learn", xlim=(0, 20))
    axes.legend(loc="center right", fontsize=8)


def _draw_powers(axes, data) -> None:
    final = data.rivals_training.isel(time=-1)
    for number, ratio in enumerate(data.ratio.values[::-2]):
        colour, at = COLOURS[number % len(COLOURS)], dict(ratio=ratio)
        axes.loglog(data.start**2, _odds(final.sel(at)), "o", color=colour, ms=5, label=f"s₂/s₁ = {ratio:g}")
        axes.loglog(data.start**2, _odds(data.rivals_final.sel(at)), "--", color=colour, lw=1.2)
    axes.set(xlabel="start of both pathways, a₀²", ylabel="loser/winner", title="∘ training, -- clock of the race")
    axes.legend(loc="lower right", fontsize=8)


def _odds(strengths):
    return strengths.isel(path=1) / strengths.isel(path=0)


def _draw_exponents(axes, data) -> None:
    line = np.linspace(0, 1, 50)
    axes.plot(line, 1 - line, "--", color="0.2", lw=1.2, label="1 − s₂/s₁")
    slopes = _slopes(data.rivals_training.isel(time=-1), data.start.values**2)
    axes.plot(data.ratio, slopes, "o", color=COLOURS[0], ms=7, label="decoupled start")
    axes.plot(data.dim, _random_slopes(data), "x", color=COLOURS[1], ms=7, mew=2, label="random weights")
    axes.set(xlabel="s₂/s₁", ylabel="exponent of loser/winner in a₀²", title="how the loser vanishes with the start")
    axes.legend()


def _draw_tree(axes, data) -> None:
    middle = data.isel(scale=1)
    for k in range(2):
        for level in np.unique(data.level):
            members = np.flatnonzero(data.level == level)
            seen = middle.tree_training.isel(path=k, mode=members).mean("mode").transpose("seed", "time")
            trained(axes, data.time, seen, colour=COLOURS[k])
            predicted(axes, data.time, data.tree_theory.isel(path=k, mode=members[0]), colour=COLOURS[k])
    for k, name in enumerate(("sense that shows levels 0, 1 best", "sense that shows levels 2, 3 best")):
        axes.plot([], [], color=COLOURS[k], lw=3, label=name)
    axes.set(
        xlabel=TIME,
        ylabel="written to the output",
        title=f"a race per level, random weights σ = {float(middle.scale):g}",
    )
    axes.set_ylim(top=1.75 * float(data.target.max()))
    axes.legend(loc="upper left", fontsize=8)


def _draw_law(axes, data) -> None:
    grown = np.log10(data.rivals_training.sel(start=data.shown, method="nearest"))
    grown = grown - grown.isel(time=0)
    for number, ratio in enumerate(data.ratio.values[::-2]):
        colour, line = COLOURS[number % len(COLOURS)], grown.sel(ratio=ratio)
        trained(axes, line.isel(path=0), line.isel(path=1), colour=colour)
        reach = np.array([0.0, float(line.isel(path=0).max())])
        predicted(axes, reach, ratio * reach, colour=colour)
    axes.set(
        xlabel="growth of the winner (decades)",
        ylabel="growth of the loser (decades)",
        title="one clock for both (colours as above)",
    )
    legend_of_kinds(axes, loc="upper left")


def _draw_factors(axes, data) -> None:
    for number, name in enumerate(data.factor.values):
        colour = COLOURS[number]
        for kind, style in (("training", "o"), ("theory", "--")):
            both = data[f"factor_{kind}"].sel(factor=name)
            label = str(name) if kind == "training" else None
            axes.semilogx(
                data.start**2, both.isel(path=0) / both.sum("path"), style, color=colour, lw=1.2, ms=5, label=label
            )
    axes.axhline(0.5, color="0.8", lw=1, zorder=0)
    axes.set(xlabel="start, a₀²", ylabel="share of the favoured pathway", title="other advantages, equal correlations")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(0.0, 0.62))
