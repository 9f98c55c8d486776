"""Imbalance between two layers turns the sigmoidal learning curve of a mode into an exponential one.

In a linear network with one hidden layer whose initial weights lie along the task's modes, each mode conserves its
imbalance c = w₂² − w₁², and its strength obeys da/dt = √(c² + 4a²)(s − λa), where s is its singular value and λ its
input variance. Balanced layers give the logistic curve of rate 2s, very unbalanced ones an exponential of rate |c|λ, as
in a shallow network. The sign of c does not matter: either layer may be the larger one. The slides show the passage
from one to the other and name no border. There is one: learning speeds up before it slows down if and only if

    |c| < s/(√2 λ),      and then between the strengths (s ∓ √(s² − 2λ²c²))/(4λ).

Here the border is located by bisection in networks under training, for modes of different s and λ, all in one network.
Modes of the wrong initial sign cross zero and are learned, after a delay of ln(1/|c|)/s. With c = 0 they wait at the
saddle for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from scipy import special

from .. import BadInput, solve
from .._figures.overlay import overlay
from .._figures.panels import border, key, panels, plain
from .._figures.style import COLOURS, DASHES, GREY, INK, LEGEND_SIZE, THIN
from .._formulas.curves import order
from ._kit.labelled import labelled, largest, stack, table, time_at
from ._kit.parameters import AtLeast, Count, Numbers, Positive, Positives, Seed, checked
from ._kit.time_grids import dense_at_start
from ._kit.unbalanced_layers import Modes, from_exponential, mean_slope
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

THEME, PLACE = "modes", 4
REFERENCE = {"saxe_slides": "“From exponential to sigmoidal dynamics”", "saxe2014": "eq. 10", "kunin2024": "eq. 4"}
QUICK = dict(lr=0.02, points=200, bisections=11)
ASYMPTOTIC = (10.0, 20.0, 40.0)  # imbalances / target at which the approach to the exponential is measured
CAPTION = """
**a** Strength of the strongest mode over its target, against time in units of its half-time, for imbalances |c| between
the two layers. Colours: |c| over the border s/(√2 λ). **b** Speed of learning in the same networks, over the fastest,
at every strength: it rises first only below the border. The grey line is the strength at which the border is decided.
**c** The border of three modes with different s and λ: as predicted (dashed), and located by bisection in training,
with the read-out or the input layer larger. **d** Strength of the strongest mode whose initial value has the wrong
sign, for imbalances |c| over the target, written above the curves; the lowest curve has none.
"""
ALT = """
Curves turn from a sigmoid into an exponential as the imbalance grows. Borders found in training lie on the predicted
line. From the wrong sign curves cross zero and rise, the later the smaller the imbalance; with none they stay at zero.
"""
BEGIN_WRONG = -0.5  # initial strength / target of modes with the wrong sign


@checked
def run(
    *,
    singular_values: Positives = (2.0, 1.2, 0.8),
    variances: Positives = (0.5, 1.0, 2.0),
    ratios: Numbers = (0.0, 0.03, 0.3, 0.6, 1.0, 2.0, 5.0),
    start: Positive = 1e-3,
    backwards: Numbers = (0.0, 1e-4, 1e-3, 1e-2, 1e-1),
    until: Positive = 20.0,
    lr: Positive = 0.01,
    points: Annotated[int, AtLeast(20)] = 800,
    bisections: Count = 14,
    seed: Seed = 0,
) -> Result:
    """Modes of the right sign begin at `start` × target, with imbalances of `ratios` × the predicted border.

    Modes of the wrong sign have imbalances of `backwards` × target.
    """
    import xarray

    s, variance = np.array(singular_values), np.array(variances)
    if len(s) != len(variance) or np.any(np.diff(s) >= 0):
        seen = f"singular_values = {singular_values}, variances = {variances}"
        raise BadInput(seen, "one variance for each singular value, largest first", "give two lists of one length")
    if 0.0 not in ratios or 0.0 not in backwards or max(ratios) < 2:
        raise BadInput(f"ratios = {ratios}, backwards = {backwards}", "0 in both, and a ratio >= 2", "add them")
    times, rates = dense_at_start(until, points, lr), (lr, lr / 2, lr / 4)
    borders, targets, finest = s / (np.sqrt(2) * variance), s / variance, rates[-1]
    modes = Modes.of(s, variance, times, seed)
    # Whether learning speeds up is decided at a quarter of the target, on the way there from zero.
    deciding = np.arange(len(times)) * finest * np.ceil(2 / s.min() / (finest * len(times)))
    on_the_way, steep_times = modes._replace(times=deciding), times / until * 6 / s.min()
    steep = {c: modes._replace(times=steep_times / c).exact(0.0, c * targets) for c in ASYMPTOTIC}
    setups = {ratio: modes.setup(start * targets, ratio * borders, finest) for ratio in ratios}
    theories = {ratio: solve(setup, "UnbalancedModes") for ratio, setup in setups.items()}
    theory = stack({ratio: labelled(one, "modes") for ratio, one in theories.items()}, "ratio")
    series = {r: stack({q: modes.trained(start * targets, q * borders, r) for q in ratios}, "ratio") for r in rates}
    mirrored = {ratio: modes.trained(start * targets, -ratio * borders, finest) for ratio in ratios}
    wrong, sides = BEGIN_WRONG * targets, {"read-out larger": 1, "input layer larger": -1}
    measured = {side: on_the_way.border(borders, bisections, sign=sign, rate=finest) for side, sign in sides.items()}
    data = xarray.Dataset(
        {
            "theory": theory,
            "training": series[finest],
            "mirrored": stack(mirrored, "ratio"),
            "gap": stack({r: abs(one - theory).max(["time", "mode"]) for r, one in series.items()}, "rate"),
            "border": table(borders, "mode"),
            "found": stack(measured, "side"),
            "found_in_theory": on_the_way.border(borders, bisections),
            "backward_theory": stack({c: modes.exact(wrong, c * targets) for c in backwards}, "imbalance"),
            "backward_training": stack({c: modes.trained(wrong, c * targets, finest) for c in backwards}, "imbalance"),
            "asymptotic": stack({c: table(one, "steep_time", "mode") for c, one in steep.items()}, "steep"),
            "target": table(targets, "mode"),
            "singular_value": table(s, "mode"),
        },
        coords={"steep_time": steep_times},
    )
    data["half_time"] = time_at(data.theory, data.target / 2)
    data["backward_half_time"] = time_at(data.backward_training, data.target / 2)
    named = {f"c = {ratio:g} of the border": ratio for ratio in ratios}
    return Result(data, {n: setups[r] for n, r in named.items()}, {n: theories[r] for n, r in named.items()})


def claims(result: Result) -> list[Claim]:
    data = result.data
    times, s, ratios = data.time.values, data.singular_value.values, data.ratio.values
    share = (data.training / data.target).transpose("ratio", "time", "mode")
    balanced = share.sel(ratio=0.0).values
    logistic = mean_slope(times, special.logit(np.clip(balanced, 1e-12, 1 - 1e-12)), balanced) / (2 * s)
    steep = (data.asymptotic / data.target).transpose("steep", "steep_time", "mode").values
    # Rates in units of c: |c|λ is c s for c in units of the target.
    fading = -np.log1p(-np.minimum(steep[-1], 1 - 1e-15))
    rate = mean_slope(data.steep_time.values, fading, steep[-1]) / s
    misfit = order(np.array([from_exponential(data.steep_time.values, curve, s) for curve in steep]))
    fastest = times[np.argmax(np.diff(share.values, axis=1) / np.diff(times)[:, None], axis=1)]
    exceptions = (fastest[ratios <= 0.6] == 0).sum() + (fastest[ratios >= 2] > 0).sum()
    orders = order(data.gap.transpose(..., "rate").values)[:, -1]
    first, second = [c for c in data.imbalance.values if 0 < c < 0.05][:2]
    half = data.backward_half_time.isel(mode=0)
    delay = (half.sel(imbalance=first) - half.sel(imbalance=second)) * s[0] / np.log(second / first)
    stuck, targets = data.sel(imbalance=0.0), data.target
    # Rounding is an imbalance too; it takes over where s t is about 36.
    early = stuck.backward_training.where(stuck.time * s[0] < 15)
    crossed = max(float(stuck.backward_theory.max()), float(early.max())) / targets.max()
    learned = (data.backward_training.isel(time=-1, mode=0) / targets[0]).where(data.imbalance > 0)
    in_training, in_theory = (largest(border / data.border - 1) for border in (data.found, data.found_in_theory))
    mirrored = largest((data.mirrored - data.training) / targets)
    return [
        ours(
            "Learning speeds up iff |c| < s/(√2 λ): border in training, largest relative gap",
            at_most(in_training, 0.02),
            headline=True,
            panel="c",
        ),
        paper(
            "Learning is fastest at first for |c| ≥ 2 × border, and later for |c| ≤ 0.6 × border: number of exceptions",
            at_most(exceptions, 0),
            headline=True,
            panel="b",
        ),
        ours("Learning speeds up iff |c| < s/(√2 λ): border in theory, largest relative gap", at_most(in_theory, 0.01)),
        paper("c = 0 gives the logistic curve of rate 2s: largest gap of rate", at_most(largest(logistic - 1), 0.05)),
        paper(
            f"c = {ASYMPTOTIC[-1]:g} × target gives an exponential of rate |c|λ: largest gap of the rate",
            at_most(largest(rate - 1), 0.02),
        ),
        ours("Curves tend to an exponential of rate |c|λ as |c| → ∞: order in 1/|c|", between(misfit[-1], 1.9, 2.1)),
        ours("Gap between descent and the closed form: lowest order in lr over c", at_least(orders.min(), 0.9)),
        ours("Gap between descent and the closed form: highest order in lr over c", at_most(orders.max(), 1.1)),
        ours("The sign of c does not matter: largest gap of curves with c and −c / target", at_most(mirrored, 1e-9)),
        ours(
            "From the wrong initial sign, strongest mode, c ≠ 0: least final strength / target",
            at_least(learned.min(), 0.99),
            panel="d",
        ),
        ours(
            "From the wrong initial sign the delay is ln(1/|c|)/s: its growth per factor e in 1/|c|, times s",
            between(delay, 0.9, 1.1),
            panel="d",
        ),
        ours("From the wrong initial sign, c = 0: largest strength / target", at_most(crossed, 1e-6), panel="d"),
    ]


def figure(result: Result) -> Figure:
    from matplotlib.lines import Line2D

    data = result.data
    sheet, at = panels("ab;cd", row=3.0)
    colours = dict(zip(data.ratio.values.tolist(), COLOURS, strict=False))
    strongest = data.isel(mode=0)
    for ratio, colour in colours.items():
        one = strongest.sel(ratio=ratio)
        scaled = one.assign_coords(time=one.time / one.half_time)
        overlay(at["a"], scaled.training / one.target, scaled.theory / one.target, colours=colour)
        speed = one.training.diff("time") / one.time.diff("time")
        middle = (one.training.values[1:] + one.training.values[:-1]) / 2
        at["b"].plot(middle / float(one.target), speed / speed.max(), color=colour, lw=1.5)
    border(at["b"], 0.25)
    at["a"].set(
        title="Imbalance makes learning exponential", ylabel="strength / target", xlabel="time / half-time", xlim=(0, 3)
    )
    at["b"].set(title="Below the border learning speeds up", xlabel="strength / target", ylabel="speed / fastest")
    _draw_borders(at["c"], data)
    for imbalance, half in zip(strongest.imbalance, strongest.backward_half_time, strict=True):
        one = strongest.sel(imbalance=imbalance) / strongest.target
        overlay(at["d"], one.backward_training, one.backward_theory, colours=GREY)
        name = plain(float(imbalance)) if imbalance else ""
        at["d"].text(float(half), 1.06, name, ha="center", size=LEGEND_SIZE, clip_on=True)
    at["d"].set(title="From the wrong initial sign", ylabel="strength / target", ylim=(None, 1.2))
    at["d"].set_xlim(0, 0.35 * float(data.time[-1]))
    key(at["b"], {f"{ratio:g}": colour for ratio, colour in colours.items()}, kinds=(), title="|c| / border")
    sides = [
        Line2D([], [], color=INK, ls="", marker="o", mfc="none", ms=8, label="training, read-out larger"),
        Line2D([], [], color=INK, ls="", marker="s", ms=4, label="training, input layer larger"),
    ]
    key(sheet, marks=sides)
    return sheet


def _draw_borders(axes: Axes, data: Dataset) -> None:
    """The border between the two kinds of curve: predicted, and located by bisection in training."""
    reach = float(data.border.min()) / 2, 2 * float(data.border.max())
    axes.loglog(reach, reach, color=INK, lw=THIN, ls=DASHES)
    axes.plot(data.border, data.found[0], "o", color=INK, ms=9, mfc="none")
    axes.plot(data.border, data.found[1], "s", color=INK, ms=5)
    axes.text(0.3, 0.85, "exponential", transform=axes.transAxes, ha="center", color=GREY)
    axes.text(0.7, 0.12, "sigmoidal", transform=axes.transAxes, ha="center", color=GREY)
    ticks = np.round(data.border.values, 2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
    axes.set(xlabel="predicted border s/(√2 λ)", ylabel="imbalance |c|", title="Border between both kinds of curve")
