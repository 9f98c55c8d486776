"""A pathway whose edges many domains share learns faster than private pathways, and wins the race from small weights.

Every domain can be learned through a layer that all domains share, or through private layers of its own. Depth,
correlations and initial strengths are equal, and one domain is shown at a time. An edge that M paths go through learns
from all of them. With two layers (M input domains share one decoder) the shared pathway grows √M times as fast, so that
from decoupled layers of strength b₀

    private/shared ∝ b₀^(2(1 − 1/√M)) → 0   for every M > 1,

and the two are equal at M = 1. Random weights show the same. Along the way M b₁² − b₂² of encoders and shared decoder
is conserved, so the shared edge ends √M times as strong. The closed form is derived here; the slides show pictures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import Setup, inits, rules
from .._figures.overlay import overlay
from .._figures.panels import beside, key, mark, panels
from .._figures.style import COLOURS, DARK_GREY, DASHES, INK, THIN
from .._formulas import race_clock
from .._formulas.curves import order
from .._foundation.errors import BadInput
from ._kit import shared_layers, time_grids
from ._kit.labelled import largest, stack, table
from ._kit.parameters import POSITIVE, AtLeast, Count, Each, Positive, Seed, Several, checked
from ._kit.rival_pathways import last_slope, loser_over_winner
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

THEME, PLACE = "gates", 4
REFERENCE = {
    "saxe_slides": "“The neural race: edge sharing”, “Race dynamics favor shared structure”",
    "saxe2022": "race reduction",
}
QUICK = dict(sharing=(1, 2, 4), starts=(1e-1, 1e-2, 1e-3), seeds=4, lr=0.02, points=120)
CAPTION = """
M domains can each be learned through a pathway that all share or through a private one of their own, with two layers
each. **a** Strength of the shared and of a private pathway (product of its layers; the target is 1), from decoupled
layers of strength b₀. **b** Final share of the shared pathway in the output of both, against their initial strength
b₀². **c** How fast private pathways vanish as the initial weights become small: the exponent of the final ratio of
private to shared strength in b₀², or in the variance of small random weights. **d** As a, from small random weights of
standard deviation σ, one line for each seed. Dots are networks after training from decoupled layers, crosses from
random weights (medians over seeds). The theory is the closed form of the race, without a fit.
"""
ALT = """
The curve of the shared pathway rises to the target while that of private pathways stays low. Its share is one half
without sharing, and rises towards one as more domains share it and as the initial weights become smaller.
"""
SHARED, PRIVATE = COLOURS[:2]
Falling = Annotated[tuple[float, ...], Each(POSITIVE, least=2)]


@checked
def run(
    *,
    sharing: Annotated[tuple[int, ...], Each(AtLeast(1), least=3)] = (1, 2, 4, 7, 10),
    starts: Falling = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3),
    scales: Falling = (1e-2, 1e-3, 1e-4),
    hidden: Count = 32,
    until: Positive = 14.0,
    lr: Positive = 0.005,
    points: Several = 300,
    seeds: Count = 12,
    seed: Seed = 0,
) -> Result:
    """`sharing`: numbers of domains; `starts`: strengths of decoupled layers; `scales`: standard deviations."""
    if sharing[0] != 1 or list(sharing) != sorted(set(sharing)):
        raise BadInput(f"sharing = {sharing}", "increasing numbers of domains, from 1 on", "give (1, 2, 4)")
    starts, scales = (tuple(sorted(given, reverse=True)) for given in (starts, scales))
    draws, shown, many = range(seed, seed + seeds), starts[len(starts) // 2], np.array(sharing)
    times = time_grids.even(until, points, lr)
    rule, half_rate = rules.GradientDescent(lr), rules.GradientDescent(lr / 2)

    net, task = shared_layers.two_layers(sharing, hidden)
    two = {start: Setup(task, net, inits.Decoupled(start), rule, times=times) for start in starts}
    random = {scale: two[shown].replace(init=inits.SmallRandom(scale)) for scale in scales}

    def trained_from(setup: Setup) -> DataArray:
        return shared_layers.pathways(simulate(setup, draws, "path_norm"), sharing).rename(group="sharing")

    def rivals(clock: np.ndarray) -> np.ndarray:
        return race_clock.two_layer_rivals(clock, shown, many)

    def random_rivals(clock: np.ndarray) -> np.ndarray:
        return race_clock.random_rivals(clock, scales[1], hidden, many)

    by_start = stack({start: trained_from(setup).isel(seed=0) for start, setup in two.items()}, "start")
    by_scale = stack({scale: trained_from(setup) for scale, setup in random.items()}, "scale")
    theory, random_theory = (
        table(race_clock.over_time(of, np.ones(len(sharing)), times), "time", "path", "sharing")
        for of in (rivals, random_rivals)
    )
    halved = trained_from(two[shown].replace(rule=half_rate)).isel(seed=0)
    gaps = [largest(trained - theory) for trained in (by_start.sel(start=shown), halved)]

    fine = np.geomspace(starts[0], starts[-1], 25)
    data = xarray.Dataset(
        {
            "two_training": by_start,
            "two_theory": theory,
            "two_final": table([[_final(s, c) for c in sharing] for s in fine], "fine_start", "sharing", "path"),
            "two_random": by_scale,
            "random_theory": random_theory,
            "order_in_lr": order(np.array(gaps))[0],
            **_conserved(sharing[2], hidden, shown, times[::4], (lr, lr / 2), seed),
        },
        coords={"fine_start": fine, "sharing": list(sharing), "rate": [lr, lr / 2]},
        attrs={"shown": shown, "conserved_domains": sharing[2]},
    )
    return Result(data, {"two layers": two[shown], "two layers, random": random[scales[-1]]})


def _final(start: float, sharing: int) -> np.ndarray:
    """Strengths of a shared and a private pathway when all is learned."""
    both = lambda clock: race_clock.two_layer_rivals(np.array([clock]), start, np.array([sharing]))[:, 0]  # noqa: E731
    return race_clock.finals(both, 1.0, -np.log(start))


def _conserved(
    count: int, hidden: int, start: float, times: np.ndarray, rates: tuple[float, ...], seed: int
) -> dict[str, DataArray]:
    """At several rates: the largest drift of M b₁² − b₂² relative to the final b₂², and the final ratio b₂/b₁."""
    net, task = shared_layers.two_layers([count], hidden)
    drifts, ratios = [], []
    for rate in rates:
        setup = Setup(task, net, inits.Decoupled(start), rules.GradientDescent(rate), times=times)
        run = simulate(setup, [seed], ["path_norm", "representation"])
        # The shared layer is the first hidden node; its activity is the encoder's strength times the input.
        encoder = np.linalg.norm(run["representation"][0, :, 0, :hidden], axis=-1) / np.sqrt(count)
        decoder = shared_layers.pathways(run, [count]).values[0, 0, 0] / encoder
        drift = count * encoder**2 - decoder**2 - (count - 1) * start**2
        drifts.append(np.abs(drift).max() / decoder[-1] ** 2)
        ratios.append(decoder[-1] / encoder[-1])
    return {"drift": table(drifts, "rate"), "shared_edge": table(ratios, "rate")}


def claims(result: Result) -> list[Claim]:
    data = result.data
    last, random = data.two_training.isel(time=-1), data.two_random.isel(time=-1)
    share, expected, many = _share(last.isel(start=-1)), 1 - 1 / np.sqrt(data.sharing), data.sharing > 1
    by_start = largest(last_slope(loser_over_winner(last), "start", 2) - expected)
    medians = loser_over_winner(random).median("seed")
    by_scale = largest((last_slope(medians, "scale", 2) - expected).where(many, drop=True))
    rise = share.diff("sharing").min()
    alone = abs(float(share[0]) - 0.5)
    certain = _share(random.isel(scale=-1)).where(many, drop=True).min()
    domains, scale = data.attrs["conserved_domains"], float(data.scale[-1])
    edge = abs(float(data.shared_edge[-1]) / np.sqrt(domains) - 1)
    return [
        paper(
            f"Share of the shared pathway, M = {int(data.sharing[-1])} domains, smallest initial weights",
            at_least(share[-1], 0.98),
            headline=True,
            panel="b",
        ),
        paper(
            "Share of the shared pathway rises with the number of domains M: smallest rise from one M to the next",
            at_least(rise, 0.0),
            panel="b",
        ),
        ours("Share of the shared pathway without sharing (M = 1): gap from ½", at_most(alone, 1e-9), panel="b"),
        ours("Final private/shared strength: exponent in b₀², gap from 1 − 1/√M", at_most(by_start, 0.01), panel="c"),
        ours(
            "Final private/shared strength, random weights: exponent in their variance, largest gap from 1 − 1/√M",
            at_most(by_scale, 0.03),
            panel="c",
        ),
        paper(
            f"Share of the shared pathway, M > 1, weights of standard deviation {scale:g}: smallest over M and seeds",
            at_least(certain, 0.9),
        ),
        ours("Gap between training and closed form: order in the learning rate", between(data.order_in_lr, 0.9, 1.1)),
        ours(
            f"Drift of the conserved M b₁² − b₂² over the final b₂², M = {domains}, lr = {float(data.rate[-1]):g}",
            at_most(data.drift[-1], 1e-3),
        ),
        ours("Drift of M b₁² − b₂²: order in the learning rate", between(order(data.drift.values)[0], 0.9, 1.1)),
        ours(f"Final strength of shared over private edges, M = {domains}: relative gap from √M", at_most(edge, 0.01)),
    ]


def _share(strengths: DataArray) -> DataArray:
    """The share of the shared pathway in what it and the private one write."""
    return strengths.isel(path=0) / strengths.sum("path")


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab;cd")
    domains, colours = data.attrs["conserved_domains"], [SHARED, PRIVATE]
    one = data.sel(sharing=domains, start=data.shown)
    overlay(at["a"], one.two_training, one.two_theory, by="path", colours=colours)
    one = data.sel(sharing=domains).isel(scale=1)
    overlay(at["d"], one.two_random, one.random_theory, by="path", colours=colours)
    at["a"].set_title(f"{domains} domains, decoupled layers, b₀ = {data.shown:g}")
    at["d"].set_title(f"{domains} domains, random weights, σ = {float(one.scale):g}")
    for letter in "ad":
        at[letter].set(ylabel="strength of the pathway", xlim=(0, float(data.time[-1]) / 2))
    for count in sorted({*data.sharing.values[:3], data.sharing.values[-1]}):
        dots, line = (_share(some.sel(sharing=count)) for some in (data.two_training.isel(time=-1), data.two_final))
        at["b"].semilogx(data.start**2, dots, "o", color=DARK_GREY, ms=5)
        at["b"].plot(data.fine_start**2, line, color=DARK_GREY, lw=THIN, ls=DASHES)
        beside(at["b"], float(data.fine_start[0]) ** 2, float(line[0]), f"M = {count}")
    at["b"].set(xlabel="initial strength of both pathways, b₀²", ylabel="share of the shared pathway")
    at["b"].set_title("Small weights and many domains favour sharing")
    _draw_exponents(at["c"], data)
    marks = [mark("decoupled layers", colour=DARK_GREY), mark("random weights", "+", colour=DARK_GREY, ms=10)]
    key(sheet, {"shared pathway": SHARED, "private pathway": PRIVATE}, marks=marks)
    return sheet


def _draw_exponents(axes: Axes, data: Dataset) -> None:
    line = np.linspace(1, float(data.sharing[-1]), 100)
    last, random = (some.isel(time=-1) for some in (data.two_training, data.two_random))
    axes.plot(line, 1 - 1 / np.sqrt(line), color=INK, lw=THIN, ls=DASHES)
    axes.plot(data.sharing, last_slope(loser_over_winner(last), "start", 2), "o", color=DARK_GREY, ms=5)
    medians = loser_over_winner(random).median("seed")
    axes.plot(data.sharing, last_slope(medians, "scale", 2), "+", color=DARK_GREY, ms=14, mew=1.5)
    axes.set(xlabel="domains that share an edge, M", ylabel="exponent of private/shared")
    axes.set(title="Private pathways vanish as a power of b₀²", xticks=data.sharing)
