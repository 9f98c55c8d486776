"""In networks of three layers with small initial weights the pathway that domains share learns everything, even if only
two domains share it.

In the routing network encoders lead to a shared layer and from there to decoders, with K trained outputs for each of M
inputs; every trained pair also has a private chain of three layers. With the strengths b₁, b₂ and b₃ of encoder, shared
layer and decoder, all b₀ at first, with the error e and T = ∫ e dt

    ḃ₁ = K b₂b₃ e,   ḃ₂ = MK b₁b₃ e,   b₃ = b₁:      b₁ → ∞ at T = arctan √(M − 1)/(√(M − 1) K b₀),

where a private pathway would need T = 1/b₀. The private pathway stops at (1 − arctan √(M − 1)/(K √(M − 1)))⁻³ times its
initial strength b₀³, so that private/shared ∝ b₀³ whatever M > 1. With two layers it is a weaker power that depends on
M: see `shared_edges_win_the_race`. These closed forms are derived here; the slides show pictures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import Setup, inits, rules
from .._figures.overlay import overlay
from .._figures.panels import beside, key, mark, panels
from .._figures.style import COLOURS, DARK_GREY, DASHES, THIN
from .._formulas import race_clock
from .._formulas.curves import order
from .._foundation.errors import BadInput
from ._kit import shared_layers, time_grids
from ._kit.labelled import largest, stack, table, time_at
from ._kit.parameters import POSITIVE, AtLeast, Counts, Each, Positive, Seed, Several, checked
from ._kit.shared_layers import Setting
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray

THEME, PLACE = "gates", 4.5
REFERENCE = {
    "saxe_slides": "“The neural race: edge sharing”, “Race dynamics favor shared structure”",
    "saxe2022": "race reduction, routing networks",
}
QUICK = dict(sharing=(1, 2, 4), starts=(0.2, 0.1, 0.05), lr=0.02, points=120)
SMALL = (2e-4, 1e-4)  # initial strengths at which the growth of private pathways is compared with its limit
CAPTION = """
Pairs of M domains with K trained outputs each are learned through layers that all share or through private chains, all
of three layers. **a** Strength of the shared and of a private pathway at M = 2 and K = 1. **b** Final share of the
shared pathway in what both write, against the initial strength b₀ of every layer. **c** Factor by which private
pathways have grown when all is learned; stars are its limit for small b₀, which is finite. **d** Time until half of the
target is learned, from the smallest b₀, at K = 1, against the number M of domains. Dots are networks after training;
the theory is the closed form of the race, without a fit.
"""
ALT = """
The shared pathway rises suddenly to the target and the private one stays near zero. The share of the shared pathway
tends to one as the initial strength falls, except without sharing, where it is one half; private pathways grow by a few
times at most, and more domains learn sooner.
"""
SHARED, PRIVATE = COLOURS[:2]


@checked
def run(
    *,
    sharing: Annotated[tuple[int, ...], Each(AtLeast(1), least=3)] = (1, 2, 4, 7, 10),
    trained_pairs: Counts = (1, 2),
    starts: Annotated[tuple[float, ...], Each(POSITIVE, least=2)] = (0.2, 0.14, 0.1, 0.07, 0.05),
    until: Positive = 60.0,
    lr: Positive = 0.005,
    points: Several = 300,
    seed: Seed = 0,
) -> Result:
    """`sharing`: numbers of domains M; `trained_pairs`: outputs K per input; `starts`: strengths of all layers."""
    if sharing[0] != 1 or list(sharing) != sorted(set(sharing)):
        raise BadInput(f"sharing = {sharing}", "increasing numbers of domains, from 1 on", "give (1, 2, 4)")
    starts, times = tuple(sorted(starts, reverse=True)), time_grids.even(until, points, lr)
    settings = [(count, 1) for count in sharing] + [(2, count) for count in trained_pairs if count > 1]
    domains, pairs = np.array(settings).T
    net, task = shared_layers.three_layers(settings)

    def from_start(start: float) -> Setup:
        # Given and not Decoupled: with K = 1 nothing in the data says which modes of two domains are alike.
        init = inits.Given([[[start]]] * len(net.edges))
        return Setup(task, net, init, rules.GradientDescent(lr), times=times)

    def theory(start: float) -> DataArray:
        of = lambda clock: race_clock.three_layer_rivals(clock, start, domains, pairs)  # noqa: E731
        return table(race_clock.over_time(of, np.ones(len(settings)), times), "time", "path", "setting")

    names = shared_layers.names(settings)
    runs = {start: simulate(from_start(start), [seed], "path_norm") for start in starts}
    training = stack({start: shared_layers.pathways(run, names).isel(seed=0) for start, run in runs.items()}, "start")
    limit = race_clock.private_growth(domains, pairs)
    small = np.array([[_final(start, setting)[1] / start**3 for setting in settings] for start in SMALL])
    fine = np.geomspace(starts[0], starts[-1], 25)
    final = [[_final(start, setting) for setting in settings] for start in fine]
    data = xarray.Dataset(
        {
            "training": training.rename(group="setting").drop_vars("setting"),
            "theory": stack({start: theory(start) for start in starts}, "start"),
            "final": table(final, "fine_start", "setting", "path"),
            "limit": table(limit, "setting"),
            "limit_order": table(order(np.where(np.isfinite(limit), small / limit - 1, np.nan), axis=0)[0], "setting"),
        },
        coords={"fine_start": fine, "domains": ("setting", domains), "pairs": ("setting", pairs)},
    )
    return Result(data, {"three layers": from_start(starts[-1])})


def _final(start: float, setting: Setting) -> np.ndarray:
    """Strengths of a shared and a private pathway when all is learned."""
    domains, pairs = (np.array([number]) for number in setting)
    both = lambda clock: race_clock.three_layer_rivals(np.array([clock]), start, domains, pairs)[:, 0]  # noqa: E731
    return race_clock.finals(both, 1.0, float(race_clock.last_moment(start, *setting)))


def claims(result: Result) -> list[Claim]:
    data = result.data
    won = np.isfinite(data.limit)
    share = _share(data.training.isel(time=-1, start=-1)).where(won, drop=True)
    grown, predicted = (_growth(data[kind].isel(path=1)) for kind in ("training", "theory"))
    halves, expected = (time_at(data[kind].sum("path"), 0.5) for kind in ("training", "theory"))
    return [
        paper(
            "Share of the shared pathway with three layers, smallest initial weights: smallest for M > 1",
            at_least(share.min(), 0.95),
            headline=True,
            panel="b",
        ),
        ours(
            "Growth of private pathways against the closed form: largest relative gap over M, K and b₀",
            at_most(largest(grown / predicted - 1), 0.05),
            panel="c",
        ),
        ours(
            "Growth of private pathways against its limit for small b₀: lowest order of the gap in b₀",
            between(data.limit_order.where(won, drop=True).min(), 0.9, 1.1),
            panel="c",
        ),
        ours(
            "Time to half of the target against the closed form: largest relative gap over M, K and b₀",
            at_most(largest(halves / expected - 1), 0.02),
            panel="d",
        ),
    ]


def _share(strengths: DataArray) -> DataArray:
    """The share of the shared pathway in what it and the private one write."""
    return strengths.isel(path=0) / strengths.sum("path")


def _growth(strengths: DataArray) -> DataArray:
    return strengths.isel(time=-1) / strengths.isel(time=0)


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab;cd")
    one, last = data.isel(setting=1, start=-1), data.training.isel(time=-1)
    overlay(at["a"], one.training, one.theory, by="path", colours=[SHARED, PRIVATE])
    at["a"].set(ylabel="strength of the pathway", title=f"Two domains, b₀ = {float(one.start):g}")
    names = [f"M = {int(m)}, K = {int(k)}" for m, k in zip(data.domains, data.pairs, strict=True)]
    for k in (0, 1, int((data.pairs == 1).sum()) - 1):
        _draw_finals(at["b"], _share(last.isel(setting=k)), _share(data.final.isel(setting=k)), names[k])
    for k in (1, 2, len(names) - 1):
        grown, line = last.isel(setting=k, path=1), data.final.isel(setting=k, path=1)
        _draw_finals(at["c"], grown / grown.start**3, line / line.fine_start**3, names[k])
        at["c"].plot(0, data.limit[k], "*", color=DARK_GREY, ms=9, clip_on=False)
    at["b"].set(ylabel="share of the shared pathway", title="The shared pathway learns everything")
    at["c"].set(
        ylabel="growth of private pathways", yscale="log", xlim=(0, None), title="Private pathways stop growing"
    )
    halves = {
        kind: time_at(data[kind].isel(start=-1).sum("path"), 0.5)[data.pairs == 1] for kind in ("training", "theory")
    }
    at["d"].plot(halves["training"].domains, halves["training"], "o", color=DARK_GREY, ms=5)
    at["d"].plot(halves["theory"].domains, halves["theory"], color=DARK_GREY, lw=THIN, ls=DASHES)
    at["d"].set(xlabel="domains that share an edge, M", ylabel="time to half of the target (τ)", ylim=(0, None))
    at["d"].set(title="More domains learn sooner", xticks=halves["theory"].domains)
    colours = {"shared pathway": SHARED, "private pathway": PRIVATE}
    key(sheet, colours, marks=[mark("trained, final", colour=DARK_GREY), mark("limit", "*", colour=DARK_GREY, ms=9)])
    return sheet


def _draw_finals(axes: Axes, dots: DataArray, line: DataArray, name: str) -> None:
    """Trained networks as dots and their theory as a line, against the initial strength b₀."""
    axes.plot(dots.start, dots, "o", color=DARK_GREY, ms=5)
    axes.plot(line.fine_start, line, color=DARK_GREY, lw=THIN, ls=DASHES)
    beside(axes, float(line.fine_start[0]), float(line[0]), name)
    axes.set_xlabel("initial strength of every layer, b₀")
