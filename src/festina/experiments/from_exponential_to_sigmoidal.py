"""Imbalance between two layers turns the sigmoidal learning curve of a mode into an exponential one.

In a linear network with one hidden layer that starts along the task's modes, each mode conserves its imbalance
c = w₂² − w₁² and its strength obeys da/dt = √(c² + 4a²)(s − λa), where s is its singular value and λ its input
variance. Balanced layers give the logistic curve of rate 2s; very unbalanced ones an exponential of rate |c|λ, as in
a shallow network. The sign of c does not matter: either layer may be the larger one. The slides show the passage
and name no border between the two. There is one: learning speeds up before it slows down if and only if

    |c| < s/(√2 λ),      and then between the strengths (s ∓ √(s² − 2λ²c²))/(4λ).

Here it is found by bisection in networks under training, for modes of different s and λ, all in one network.
Modes that start with the wrong sign cross zero and are learned, after a delay of ln(1/|c|)/s, unless c = 0: then
they wait at the saddle for ever.
"""

from __future__ import annotations

import numpy as np

from .. import inits, nets, rules, tasks
from .._errors import BadInput
from .._noun import positive, real_array, whole
from .._plot import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from .._solve import solve

REFERENCE = {
    "saxe_slides": "“From exponential to sigmoidal dynamics”",
    "saxe2014": "eq. 10",
    "kunin2024": "eq. 4",
}
QUICK = dict(lr=0.02, points=200, bisections=11)
HALVINGS = 3  # rates lr, lr/2, lr/4
BRACKET = (0.5, 2.0)  # where the border is looked for, in units of the predicted one
ASYMPTOTIC = (10.0, 20.0, 40.0)  # imbalances, in units of the target, at which the approach to the exponential is read


def run(
    *,
    singular_values=(2.0, 1.2, 0.8),
    variances=(0.5, 1.0, 2.0),
    ratios=(0.0, 0.03, 0.3, 0.6, 1.0, 2.0, 5.0),
    start=1e-3,
    backwards=(0.0, 1e-4, 1e-3, 1e-2, 1e-1),
    until=20.0,
    lr=0.01,
    points=800,
    bisections=14,
    seed=0,
) -> Result:
    points, bisections = whole(points, "points", least=20), whole(bisections, "bisections")
    lr, until, start = positive(lr, "lr"), positive(until, "until"), positive(start, "start")
    s, variances = (
        real_array(v, n, ndim=1) for v, n in ((singular_values, "singular_values"), (variances, "variances"))
    )
    if len(s) != len(variances) or np.any(s <= 0) or np.any(variances <= 0) or np.any(np.diff(s) >= 0):
        raise BadInput(
            f"singular_values = {s.tolist()}, variances = {variances.tolist()}",
            "one variance > 0 for each singular value > 0, largest singular value first",
            "give two lists of one length, the first one falling",
        )
    if 0.0 not in ratios or 0.0 not in backwards or max(ratios) < 2:
        raise BadInput(f"ratios = {ratios}, backwards = {backwards}", "0 in both, and a ratio >= 2", "add them")
    # Whole steps of the slowest rate, dense at the start, where unbalanced layers are fast.
    grid = np.concatenate([np.geomspace(lr, until, points // 2), np.linspace(0, until, points - points // 2)])
    times = np.unique(np.round(grid / lr)) * lr
    border, targets = s / (np.sqrt(2) * variances), s / variances
    task, bases = _task(s, variances, seed)

    finest = lr / 2 ** (HALVINGS - 1)
    # The border is seen at a quarter of the target, on the way there from zero.
    border_times = np.arange(len(times)) * finest * np.ceil(2 / s.min() / (finest * len(times)))

    def setup(products, imbalance, rate=finest, grid=times):
        weights = _aligned(bases, np.broadcast_to(products, s.shape), np.broadcast_to(imbalance, s.shape))
        return Setup(task, nets.DeepLinear(len(s)), inits.Given(weights), rules.GradientDescent(rate), times=grid)

    def seen(products, imbalance, rate=finest, grid=times):
        return simulate(setup(products, imbalance, rate, grid), [seed], "modes")["modes"][0]

    def told(products, imbalance, grid=times):
        flow = setup(products, imbalance, grid=grid).replace(rule=rules.GradientFlow())
        return solve(flow, "UnbalancedModes")["modes"]

    def found(curves_of, sign=1):
        return _bisected(lambda c: curves_of(0.0, sign * c, grid=border_times), border, bisections)

    setups, theories = {}, {}
    for ratio in ratios:
        label = f"c = {ratio:g} of the border"
        setups[label] = setup(start * targets, ratio * border)
        theories[label] = solve(setups[label], "UnbalancedModes")
    forward = [[seen(start * targets, r * border, lr / 2**k) for k in range(HALVINGS)] for r in ratios]
    theory = np.array([each["modes"] for each in theories.values()])
    errors = np.abs(np.array(forward) - theory[:, None]).max(axis=(2, 3))
    steep_times = times / until * 6 / s.min()  # long enough for the slowest mode, in units of 1/c
    import xarray

    stacked = lambda curves: np.array(list(curves))  # noqa: E731
    data = xarray.Dataset(
        {
            "theory": (("ratio", "time", "mode"), theory),
            "training": (("ratio", "time", "mode"), stacked(each[-1] for each in forward)),
            "mirrored": (("ratio", "time", "mode"), stacked(seen(start * targets, -r * border) for r in ratios)),
            "gap": (("ratio", "rate"), errors),
            "border": ("mode", border),
            "found": (("side", "mode"), stacked(found(seen, sign) for sign in (1, -1))),
            "found_in_theory": ("mode", found(told)),
            "backward_theory": (
                ("imbalance", "time", "mode"),
                stacked(told(-0.5 * targets, c * targets) for c in backwards),
            ),
            "backward_training": (
                ("imbalance", "time", "mode"),
                stacked(seen(-0.5 * targets, c * targets) for c in backwards),
            ),
            "asymptotic": (
                ("steep", "steep_time", "mode"),
                stacked(told(0.0, c * targets, steep_times / c) for c in ASYMPTOTIC),
            ),
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


def _task(s, variances, seed):
    """A task whose modes have these singular values and input variances, and random vectors."""
    rng = np.random.default_rng(seed)
    left, right, hidden = (np.linalg.qr(rng.normal(size=(len(s), len(s))))[0] for _ in range(3))
    cov_y = left * s**2 / variances @ left.T
    return tasks.from_moments(left * s @ right.T, right * variances @ right.T, cov_y), (left, right, hidden)


def _aligned(bases, products, imbalance):
    """Layers along the modes with w₁w₂ = products and w₂² − w₁² = imbalance; a negative sign sits in the last layer."""
    left, right, hidden = bases
    half = np.hypot(imbalance / 2, products)
    larger = np.sqrt(half + np.abs(imbalance) / 2)
    smaller = np.divide(np.abs(products), larger, out=np.zeros_like(larger), where=larger > 0)
    last = np.where(imbalance >= 0, larger, smaller) * np.where(products < 0, -1.0, 1.0)
    first = np.where(imbalance >= 0, smaller, larger)
    return [hidden * first @ right.T, left * last @ hidden.T]


def _bisected(curves_of, border, steps):
    """The imbalance from which on no mode's learning speeds up, mode by mode; all modes at once."""
    low, high = BRACKET[0] * border, BRACKET[1] * border
    for _ in range(steps):
        middle = (low + high) / 2
        sigmoidal = _speeds_up(curves_of(middle))
        low, high = np.where(sigmoidal, middle, low), np.where(sigmoidal, high, middle)
    return (low + high) / 2


def _speeds_up(curves):
    """Whether each curve (time, mode) on an even grid is somewhere steeper than before; beyond rounding."""
    speed = np.diff(curves, axis=0)
    return (np.diff(speed, axis=0) > 1e-12 * np.abs(speed).max(axis=0)).any(axis=0)


def claims(result: Result) -> list[Claim]:
    from scipy import special

    data = result.data
    times, targets = data.time.values, data.target.values
    s = data.singular_value.values
    order = np.log2(data.gap.values[:, :-1] / data.gap.values[:, 1:])[:, -1]
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
    half = np.array([_half_time(times, curve / targets) for curve in data.backward_training.values])
    decades = np.log(data.imbalance.values[small[1]] / data.imbalance.values[small[0]])
    delay = (half[small[0]] - half[small[1]])[s == s.max()] * s.max() / decades
    stuck = data.sel(imbalance=0.0)
    # Rounding is an imbalance too; it takes over where s t is about 36.
    crossed = max(float(stuck.backward_theory.max()), float(stuck.backward_training[times * s.max() < 15].max()))
    learned = data.backward_training.isel(time=-1, mode=0) / data.target[0]
    return [
        Claim.at_most(
            "c = 0 is the logistic curve of rate 2s: largest relative gap of the measured rate over modes",
            np.abs(logistic - 1).max(),
            0.05,
            source="paper",
        ),
        Claim.at_most(
            f"c = {ASYMPTOTIC[-1]:g} a* is exponential of rate |c|λ: largest relative gap of the measured rate",
            np.abs(rate - 1).max(),
            0.02,
            source="paper",
        ),
        Claim.between(
            "… and the curve tends to this exponential as |c| → ∞: order in 1/|c|",
            np.log2(misfit[-2] / misfit[-1]),
            1.9,
            2.1,
        ),
        Claim.at_most(
            "Learning is fastest later where |c| ≤ 0.6 of the border, at the start where |c| ≥ 2: cases against it",
            int((fastest[ratios <= 0.6] == 0).sum() + (fastest[ratios >= 2] > 0).sum()),
            0,
            source="paper",
        ),
        Claim.at_most(
            "Learning speeds up iff |c| < s/(√2 λ): border in the closed form, largest relative gap over modes",
            float(np.abs(data.found_in_theory / data.border - 1).max()),
            0.01,
        ),
        Claim.at_most(
            "… and border in training, either layer the larger one: largest relative gap over modes",
            float(np.abs(data.found / data.border - 1).max()),
            0.02,
        ),
        Claim.at_least("Descent tends to the closed form as lr → 0: lowest order over c", order.min(), 0.9),
        Claim.at_most("… and highest order over c", order.max(), 1.1),
        Claim.at_most(
            "The sign of c does not matter: largest gap between c and −c / target",
            float((np.abs(data.mirrored - data.training) / data.target).max()),
            1e-9,
        ),
        Claim.at_least(
            "From the wrong sign the strongest mode is learned for every c ≠ 0: least final strength / target",
            float(learned[data.imbalance.values > 0].min()),
            0.99,
        ),
        Claim.between(
            "… after a delay ln(1/|c|)/s: growth of the delay per e-fold of 1/|c|, times s", float(delay[0]), 0.9, 1.1
        ),
        Claim.at_most(
            "… but with c = 0 it never crosses zero: largest strength at any time / target",
            crossed / targets.max(),
            1e-6,
        ),
    ]


def _slope(times, values, shares):
    """Mean slope of `values` (time, mode) while `shares` go from 10 to 90 %, by least squares; (mode,)."""
    inside = (shares > 0.1) & (shares < 0.9)
    return np.array([np.polyfit(times[inside[:, k]], values[inside[:, k], k], 1)[0] for k in range(values.shape[1])])


def _from_exponential(times, shares, rates):
    """Largest gap between curves from zero and exponentials of these rates."""
    return np.abs(shares + np.expm1(-np.outer(times, rates))).max()


def _half_time(times, shares):
    """When each curve passes one half, linear between records; NaN if it never does."""
    late = (shares >= 0.5).any(axis=0)
    after = np.argmax(shares >= 0.5, axis=0)
    modes = np.arange(shares.shape[1])
    before, beyond = shares[after - 1, modes], shares[after, modes]
    found = times[after - 1] + (0.5 - before) / (beyond - before) * (times[after] - times[after - 1])
    return np.where(late, found, np.nan)


def figure(result: Result):
    data = result.data
    sheet, ((curves, speeds), (borders, backward)) = new_figure(2, 2, width=5.0, height=3.6)
    share = data.isel(mode=0) / data.target[0]
    for number, ratio in enumerate(data.ratio.values):
        colour = COLOURS[number % len(COLOURS)]
        half = _half_time(data.time.values, share.theory.sel(ratio=ratio).values[:, None])[0]
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
    speeds.set(xlabel="strength / target", ylabel="speed / fastest", title="where it is learned fastest, in training")
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


def _draw_borders(axes, data) -> None:
    """The border between the two kinds of curve: as predicted, and as found by bisection."""
    reach = float(data.border.min()) / 2, 2 * float(data.border.max())
    axes.loglog(reach, reach, color="0.1", lw=1.3, ls=(0, (4, 2)), label="s / (√2 λ)")
    for number, side in enumerate(data.side.values):
        look = dict(color=COLOURS[number], ms=9 - 4 * number, mfc=("none", COLOURS[1])[number])
        axes.plot(data.border, data.found.sel(side=side), "os"[number], label=f"training, {side}", **look)
    axes.text(0.3, 0.85, "exponential", transform=axes.transAxes, ha="center", color="0.4")
    axes.text(0.7, 0.12, "sigmoidal", transform=axes.transAxes, ha="center", color="0.4")
    ticks = np.round(data.border.values, 2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
    axes.set(xlabel="predicted border of the mode", ylabel="imbalance |c|", title="where learning stops speeding up")
    axes.legend(loc="upper left", fontsize=8, bbox_to_anchor=(0.0, 0.8))
