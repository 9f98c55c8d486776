"""Imbalance between two layers turns the sigmoidal learning curve of a mode into an exponential one.

In a linear network with one hidden layer that starts along the task's modes, each mode conserves its imbalance
c = w₂² − w₁², and its strength obeys da/dt = √(c² + 4a²)(s − λa), where s is its singular value and λ its input
variance. Balanced layers give the logistic curve of rate 2s, very unbalanced ones an exponential of rate |c|λ, as in a
shallow network. The sign of c does not matter: either layer may be the larger one. The slides show the passage from one
to the other and name no border. There is one: learning speeds up before it slows down if and only if

    |c| < s/(√2 λ),      and then between the strengths (s ∓ √(s² − 2λ²c²))/(4λ).

Here the border is located by bisection in networks under training, for modes of different s and λ, all in one network.
Modes that start with the wrong sign cross zero and are learned, after a delay of ln(1/|c|)/s. With c = 0 they wait at
the saddle for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from .. import BadInput, Setup, inits, nets, rules, solve
from .._figures.style import COLOURS, DASHES, TIME, legend_of_kinds, new_figure, predicted, trained
from .._formulas.curves import half_time, order
from .._foundation.checks import positive, real_array, whole
from ._kit.time_grids import dense_at_start
from ._kit.training import simulate
from ._kit.unbalanced_layers import Curves, along_modes, bisected_border, task_of_modes
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset


THEME, PLACE = "modes", 4
REFERENCE = {
    "saxe_slides": "“From exponential to sigmoidal dynamics”",
    "saxe2014": "eq. 10",
    "kunin2024": "eq. 4",
}
QUICK = dict(lr=0.02, points=200, bisections=11)
HALVINGS = 3  # rates lr, lr/2, lr/4
ASYMPTOTIC = (10.0, 20.0, 40.0)  # imbalances, in units of the target, at which the approach to the exponential is read


def run(
    *,
    singular_values: Sequence[float] = (2.0, 1.2, 0.8),
    variances: Sequence[float] = (0.5, 1.0, 2.0),
    ratios: Sequence[float] = (0.0, 0.03, 0.3, 0.6, 1.0, 2.0, 5.0),
    start: float = 1e-3,
    backwards: Sequence[float] = (0.0, 1e-4, 1e-3, 1e-2, 1e-1),
    until: float = 20.0,
    lr: float = 0.01,
    points: int = 800,
    bisections: int = 14,
    seed: int = 0,
) -> Result:
    """Starts with the right sign are `start` × target, with imbalances of `ratios` × the predicted border.

    Starts with the wrong sign have imbalances of `backwards` × target.
    """
    points, bisections = whole(points, "points", least=20), whole(bisections, "bisections")
    lr, until, start = positive(lr, "lr"), positive(until, "until"), positive(start, "start")
    s, variance = real_array(singular_values, "singular_values", ndim=1), real_array(variances, "variances", ndim=1)
    if len(s) != len(variance) or np.any(s <= 0) or np.any(variance <= 0) or np.any(np.diff(s) >= 0):
        raise BadInput(
            f"singular_values = {s.tolist()}, variances = {variance.tolist()}",
            "one variance > 0 for each singular value > 0, largest singular value first",
            "give two lists of one length, the first one falling",
        )
    if 0.0 not in ratios or 0.0 not in backwards or max(ratios) < 2:
        raise BadInput(f"ratios = {ratios}, backwards = {backwards}", "0 in both, and a ratio >= 2", "add them")
    times, finest = dense_at_start(until, points, lr), lr / 2 ** (HALVINGS - 1)
    border, targets = s / (np.sqrt(2) * variance), s / variance
    task, bases = task_of_modes(s, variance, seed)
    # Whether learning speeds up is decided at a quarter of the target, on the way there from zero.
    border_times = np.arange(len(times)) * finest * np.ceil(2 / s.min() / (finest * len(times)))

    def setup(
        products: np.ndarray | float, imbalance: np.ndarray, rate: float = finest, grid: np.ndarray = times
    ) -> Setup:
        weights = along_modes(bases, np.broadcast_to(products, s.shape), np.broadcast_to(imbalance, s.shape))
        return Setup(task, nets.DeepLinear(len(s)), inits.Given(weights), rules.GradientDescent(rate), times=grid)

    def trained_modes(
        products: np.ndarray | float, imbalance: np.ndarray, rate: float = finest, grid: np.ndarray = times
    ) -> Curves:
        return simulate(setup(products, imbalance, rate, grid), [seed], "modes")["modes"][0]

    def exact_modes(products: np.ndarray | float, imbalance: np.ndarray, grid: np.ndarray = times) -> Curves:
        flow = setup(products, imbalance, grid=grid).replace(rule=rules.GradientFlow())
        return solve(flow, "UnbalancedModes")["modes"]

    def border_of(modes: Callable[..., Curves], sign: int = 1) -> Float[np.ndarray, " mode"]:
        return bisected_border(lambda c: modes(0.0, sign * c, grid=border_times), border, bisections)

    setups = {f"c = {ratio:g} of the border": setup(start * targets, ratio * border) for ratio in ratios}
    theories = {label: solve(unbalanced, "UnbalancedModes") for label, unbalanced in setups.items()}
    theory = np.array([trajectory["modes"] for trajectory in theories.values()])
    training = np.array(
        [[trained_modes(start * targets, r * border, lr / 2**k) for k in range(HALVINGS)] for r in ratios]
    )
    steep_times = times / until * 6 / s.min()  # long enough for the slowest mode, in units of 1/c
    steep = [exact_modes(0.0, c * targets, grid=steep_times / c) for c in ASYMPTOTIC]
    import xarray

    by_ratio, by_imbalance = ("ratio", "time", "mode"), ("imbalance", "time", "mode")
    data = xarray.Dataset(
        {
            "theory": (by_ratio, theory),
            "training": (by_ratio, training[:, -1]),
            "mirrored": (by_ratio, np.array([trained_modes(start * targets, -r * border) for r in ratios])),
            "gap": (("ratio", "rate"), np.abs(training - theory[:, None]).max(axis=(2, 3))),
            "border": ("mode", border),
            "found": (("side", "mode"), np.array([border_of(trained_modes, sign) for sign in (1, -1)])),
            "found_in_theory": ("mode", border_of(exact_modes)),
            "backward_theory": (
                by_imbalance,
                np.array([exact_modes(-0.5 * targets, c * targets) for c in backwards]),
            ),
            "backward_training": (
                by_imbalance,
                np.array([trained_modes(-0.5 * targets, c * targets) for c in backwards]),
            ),
            "asymptotic": (("steep", "steep_time", "mode"), np.array(steep)),
            "target": ("mode", targets),
            "singular_value": ("mode", s),
        },
        coords={
            "ratio": list(ratios),
            "time": times,
            "steep_time": steep_times,
            "rate": lr / 2.0 ** np.arange(HALVINGS),
            "imbalance": list(backwards),
            "steep": list(ASYMPTOTIC),
            "side": ["read-out larger", "input layer larger"],
        },
        attrs={"start": start},
    )
    return Result(data, setups, theories)


def claims(result: Result) -> list[Claim]:
    from scipy import special

    data = result.data
    times, targets = data.time.values, data.target.values
    s = data.singular_value.values
    orders = order(data.gap.values)[:, -1]
    share = data.training.values / targets
    balanced = share[list(data.ratio.values).index(0.0)]
    logistic = _slope(times, special.logit(np.clip(balanced, 1e-12, 1 - 1e-12)), balanced) / (2 * s)
    exponential = data.asymptotic.values[-1] / targets
    # Rates in units of c: |c|λ is c s for c in units of the target.
    rate = _slope(data.steep_time.values, -np.log1p(-np.minimum(exponential, 1 - 1e-15)), exponential) / s
    misfit = [_from_exponential(data.steep_time.values, curve / targets, s) for curve in data.asymptotic.values]
    fastest = times[np.argmax(np.diff(share, axis=1) / np.diff(times)[:, None], axis=1)]
    ratios = data.ratio.values
    small = [k for k, c in enumerate(data.imbalance.values) if 0 < c < 0.05]
    half = half_time(times, data.backward_training.values / targets, 1.0, axis=1)
    log_ratio = np.log(data.imbalance.values[small[1]] / data.imbalance.values[small[0]])
    delay = (half[small[0]] - half[small[1]])[s == s.max()] * s.max() / log_ratio
    stuck = data.sel(imbalance=0.0)
    # Rounding is an imbalance too; it takes over where s t is about 36.
    crossed = max(float(stuck.backward_theory.max()), float(stuck.backward_training[times * s.max() < 15].max()))
    learned = data.backward_training.isel(time=-1, mode=0) / data.target[0]
    return [
        paper(
            "c = 0 gives the logistic curve of rate 2s: largest relative gap of the measured rate over modes",
            at_most(np.abs(logistic - 1).max(), 0.05),
        ),
        paper(
            f"c = {ASYMPTOTIC[-1]:g} × target gives an exponential of rate |c|λ: largest relative gap of the rate",
            at_most(np.abs(rate - 1).max(), 0.02),
        ),
        ours(
            "… and the curve tends to this exponential as |c| → ∞: order in 1/|c|",
            between(order(np.array(misfit))[-1], 1.9, 2.1),
        ),
        paper(
            "Learning is fastest at the start for |c| ≥ 2 × border, and later for |c| ≤ 0.6 × border: exceptions",
            at_most(int((fastest[ratios <= 0.6] == 0).sum() + (fastest[ratios >= 2] > 0).sum()), 0),
        ),
        ours(
            "Learning speeds up iff |c| < s/(√2 λ): border in the closed form, largest relative gap over modes",
            at_most(np.abs(data.found_in_theory / data.border - 1).max(), 0.01),
        ),
        ours(
            "… and border in training, with either layer the larger one: largest relative gap over modes",
            at_most(np.abs(data.found / data.border - 1).max(), 0.02),
        ),
        ours("Descent tends to the closed form as lr → 0: lowest order over c", at_least(orders.min(), 0.9)),
        ours("… and highest order over c", at_most(orders.max(), 1.1)),
        ours(
            "The sign of c does not matter: largest gap between c and −c / target",
            at_most((np.abs(data.mirrored - data.training) / data.target).max(), 1e-9),
        ),
        ours(
            "From the wrong sign the strongest mode is learned for every c ≠ 0: least final strength / target",
            at_least(learned[data.imbalance.values > 0].min(), 0.99),
        ),
        ours(
            "… after a delay of ln(1/|c|)/s: growth of the delay per factor e in 1/|c|, times s",
            between(delay[0], 0.9, 1.1),
        ),
        ours(
            "… but with c = 0 it never crosses zero: largest strength at any time / target",
            at_most(crossed / targets.max(), 1e-6),
        ),
    ]


def _slope(times: np.ndarray, values: Curves, shares: Curves) -> Float[np.ndarray, " mode"]:
    """Mean slope of `values` while `shares` go from 10 to 90 %, by least squares."""
    inside = (shares > 0.1) & (shares < 0.9)
    return np.array([np.polyfit(times[inside[:, k]], values[inside[:, k], k], 1)[0] for k in range(values.shape[1])])


def _from_exponential(times: np.ndarray, shares: Curves, rates: np.ndarray) -> float:
    """Largest gap between curves from zero and exponentials of these rates."""
    return float(np.abs(shares + np.expm1(-np.outer(times, rates))).max())


def figure(result: Result) -> Figure:
    data = result.data
    sheet, ((curves, speeds), (borders, backward)) = new_figure(2, 2, width=5.0, height=3.6)
    share = data.isel(mode=0) / data.target[0]
    for number, ratio in enumerate(data.ratio.values):
        colour = COLOURS[number % len(COLOURS)]
        half = half_time(data.time.values, share.theory.sel(ratio=ratio).values, 1.0)
        trained(curves, data.time / half, share.training.sel(ratio=ratio), colour=colour)
        predicted(curves, data.time / half, share.theory.sel(ratio=ratio), colour=colour)
        curves.plot([], [], color=colour, lw=3, label=f"{ratio:g}")
        strength = share.training.sel(ratio=ratio).values
        speed = np.diff(strength) / np.diff(data.time)
        speeds.plot((strength[1:] + strength[:-1]) / 2, speed / speed.max(), color=colour, lw=1.5)
    curves.set(xlabel="time / time to one half", ylabel="strength / target", title="strongest mode", xlim=(0, 3))
    curves.add_artist(curves.legend(loc="lower right", fontsize=8, title="|c| / border", title_fontsize=8))
    legend_of_kinds(curves, loc="upper left", fontsize=8)
    speeds.axvline(0.25, color="0.7", lw=0.8, zorder=0)
    speeds.set(xlabel="strength / target", ylabel="speed / fastest", title="speed at each strength, in training")
    _draw_borders(borders, data)
    for number, imbalance in enumerate(data.imbalance.values):
        colour = COLOURS[number % len(COLOURS)]
        trained(backward, data.time, share.backward_training.sel(imbalance=imbalance), colour=colour)
        predicted(backward, data.time, share.backward_theory.sel(imbalance=imbalance), colour=colour)
        backward.plot([], [], color=colour, lw=3, label=f"{imbalance:g}")
    backward.axhline(0, color="0.7", lw=0.8, zorder=0)
    backward.set(
        xlabel=TIME, ylabel="strength / target", title="start with the wrong sign", xlim=(0, 0.6 * data.time[-1])
    )
    backward.set_xlim(0, 0.6 * float(data.time[-1]))
    backward.legend(loc="center right", bbox_to_anchor=(1.0, 0.62), fontsize=8, title="|c| / target", title_fontsize=8)
    return sheet


def _draw_borders(axes: Axes, data: Dataset) -> None:
    """The border between the two kinds of curve: predicted, and located by bisection in training."""
    reach = float(data.border.min()) / 2, 2 * float(data.border.max())
    axes.loglog(reach, reach, color="0.1", lw=1.3, ls=DASHES, label="s / (√2 λ)")
    for number, side in enumerate(data.side.values):
        marker, size, face = (("o", 9, "none"), ("s", 5, COLOURS[1]))[number]
        border, label = data.found.sel(side=side), f"training, {side}"
        axes.plot(data.border, border, marker, color=COLOURS[number], ms=size, mfc=face, label=label)
    axes.text(0.3, 0.85, "exponential", transform=axes.transAxes, ha="center", color="0.4")
    axes.text(0.7, 0.12, "sigmoidal", transform=axes.transAxes, ha="center", color="0.4")
    ticks = np.round(data.border.values, 2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
    axes.set(xlabel="predicted border of the mode", ylabel="imbalance |c|", title="border between both kinds of curve")
    axes.legend(loc="upper left", fontsize=8, bbox_to_anchor=(0.0, 0.8))
