"""A ReLU network learns like the fastest gated linear network, and mixes gatings where two are equally fast.

Exclusive or with a third input ±Δ that gives the answer away can be solved by two gatings: "linear", one pathway for
each side of a plane, or "XoR", one for each point. By their moments a pathway has

    linear: s = Δ/2, d = Δ²/2        XoR: s = √(2 + Δ²)/4, d = (2 + Δ²)/4        equal s at Δ = √(2/3)

and both have the loss ½(1 − a d/s)², so that the gating of larger s wins. ReLU networks need as many steps as the
faster one, to a few per cent, and change from units for one point to units for two as Δ grows. The change is smooth:
half of the weight is in either kind near Δ = 0.88. From Δ = 0.2 to there the network is 1 to 3 % faster than the faster
gating, most so near √(2/3); above, it is up to 3 % slower.

Times follow from the law of the weights, a₀ = nσ²/2 for the n units of a pathway, with nothing fitted, once the finite
step is counted: a small map grows by (1 + lr s)² per step, and 2s becomes 2 ln(1 + lr s)/lr. A unit along a point's
input is on for that point alone only if Δ < √2; at Δ = 0 it is at the edge, with activity 0, for two others, and the
sign of its activity there says nothing.

**What does not reproduce.** Gatings are equally fast in time, and not in s only, at √(2/3) if they have equally many
units in all, whatever the start. With equally many *per pathway*, and so the same start a₀, it is √(2/3) only as
a₀ → 0, and logarithmically slowly.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize

from .. import inits, nets, rules, tasks
from .._contest import time_to
from .._errors import BadInput
from .._noun import positive, whole
from .._plot import COLOURS, legend_of_kinds, new_figure, predicted, trained
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from ..theories.aligned_modes import mode
from ..theories.disjoint_pathways import effective_start, time_to_loss
from ._xor import GATINGS, LEARNED, formulas, gated, moments, one_point_share, second_over_first

REFERENCE = {"jarvis2025": "figure 2, appendix C"}
QUICK = dict(margins=(0.0, 0.2, 0.4, 0.8, 0.85, 0.9, 1.2, 1.6, 2.0), shown=(0.4, 0.8, 1.6), seeds=5, steps=160)
EQUAL = np.sqrt(2 / 3)
PANELS = 3
STARTS = {1e-10: 0.8499, 2e-8: 0.8601, 1e-6: 0.8729, 1e-4: 0.9027, 1e-2: 1.0048}  # a₀: equally fast at this margin
# Ten other runs with the default numbers: steps to loss 0.2 of ReLU (mean, sd) and of both gatings, weight share.
OTHERS = {
    0.0: (69.97, 0.40, np.inf, 68.63, np.nan), 0.1: (68.74, 0.40, 510.0, 68.47, 1.00),
    0.2: (67.43, 0.41, 248.6, 67.98, 1.00), 0.4: (65.42, 0.39, 122.0, 66.09, 1.00),
    0.5: (64.11, 0.39, 97.3, 64.78, 1.00), 0.6: (62.65, 0.35, 81.0, 63.27, 0.99),
    0.7: (60.93, 0.34, 69.4, 61.62, 0.95), 0.8: (58.51, 0.24, 60.79, 59.87, 0.76),
    0.85: (56.78, 0.19, 57.25, 58.97, 0.59), 0.9: (54.72, 0.22, 54.12, 58.06, 0.41),
    1.0: (50.08, 0.35, 48.82, 56.22, 0.16), 1.2: (41.97, 0.38, 40.91, 52.57, 0.03),
    1.4: (36.06, 0.31, 35.30, 49.08, 0.01), 1.6: (31.31, 0.19, 31.12, 45.82, 0.00),
    2.0: (25.36, 0.15, 25.31, 40.13, 0.00),
}  # fmt: skip


def run(
    *, margins=tuple(OTHERS), shown=(0.4, 0.8, 1.6), hidden=128, variance=4e-8, lr=0.4, steps=560, seeds=10, seed=0
) -> Result:
    """`variance`: of the initial weights, times `hidden`; `shown`: margins whose curves are drawn."""
    hidden, steps, seeds = whole(hidden, "hidden", least=4), whole(steps, "steps"), whole(seeds, "seeds")
    lr, scale = positive(lr, "lr"), np.sqrt(positive(variance, "variance") / hidden)
    margins, shown = (sorted(positive(m, "margins", zero=True) for m in given) for given in (margins, shown))
    margins = sorted({*margins, *shown})
    if len(shown) != PANELS:
        raise BadInput(
            f"{len(shown)} margins shown", f"{PANELS} margins, one for each panel", "give shown=(0.4, 0.8, 1.6)"
        )
    if not (any(0 < m <= 0.5 for m in margins) and margins[0] < EQUAL and margins[-1] > np.sqrt(2)):
        raise BadInput(
            f"margins = {tuple(margins)}", "margins on both sides: some in 0 … 0.5, some above √2", "add such margins"
        )
    draws = list(range(seed, seed + seeds))
    candidates = {name: gated(name, hidden) for name in GATINGS}

    def setup(net, margin):
        rule = rules.GradientDescent(lr)
        return Setup(tasks.xor(margin), net, inits.SmallRandom(scale), rule, times=np.arange(steps + 1) * lr)

    relu, switched, share, tie = [], [], [], []
    for margin in margins:
        free = simulate(setup(nets.MLP(hidden), margin), draws, ["loss", "representation", "unit_size"])
        relu.append(free["loss"])
        switched.append([simulate(setup(net, margin), draws, "loss")["loss"] for net in candidates.values()])
        share.append(one_point_share(free["representation"][:, -1], free["unit_size"][:, -1]))
        tie.append(second_over_first(free["representation"][:, -1], free["unit_size"][:, -1]))
    begun = {name: effective_start(hidden // len(points), scale) for name, points in GATINGS.items()}
    numbers = {name: np.array([formulas(name, margin) for margin in margins]) for name in GATINGS}
    expected = {
        rate: [_steps(numbers[name], begun[name], lr, stepwise=rate == "stepwise") for name in GATINGS]
        for rate in ("stepwise", "flow")
    }
    same = (hidden, variance, lr) == (128, 4e-8, 0.4)
    others = np.array([OTHERS.get(margin, (np.nan,) * 5) if same else (np.nan,) * 5 for margin in margins])
    import xarray

    data = xarray.Dataset(
        {
            "relu_loss": (("margin", "seed", "step"), np.stack(relu)),
            "gated_loss": (("margin", "gating", "seed", "step"), np.stack(switched)),
            "relu_steps": (("margin", "seed"), _steps_to(np.stack(relu))),
            "gated_steps": (("margin", "gating", "seed"), _steps_to(np.stack(switched))),
            "one_point_share": (("margin", "seed"), np.stack(share)),
            "second_over_first": (("margin", "seed"), np.stack(tie)),
            "predicted_steps": (("gating", "margin"), expected["stepwise"]),
            "flow_steps": (("gating", "margin"), expected["flow"]),
            "predicted_loss": (
                ("shown", "gating", "step"),
                [[_loss(formulas(g, m), begun[g], lr, steps) for g in GATINGS] for m in shown],
            ),
            "other_steps": (("margin", "net"), others[:, [0, 2, 3]]),
            "other_sd": ("margin", others[:, 1]),
            "other_share": ("margin", others[:, 4]),
            "moments": (("gating", "margin", "of"), [[moments(n, m) for m in margins] for n in candidates.values()]),
            "formula": (("gating", "margin", "of"), np.stack(list(numbers.values()))),
            "equal_strength": ((), _equal_strength(candidates)),
            "equal_time": (("start", "units"), [_equal_time(start) for start in STARTS]),
            "alone_until": ((), _alone_until()),
        },
        coords={
            "margin": margins, "gating": list(GATINGS), "seed": draws, "step": np.arange(steps + 1), "shown": shown,
            "net": ["ReLU", *GATINGS], "of": ["s", "d"], "start": list(STARTS), "units": ["per pathway", "in all"],
        },
        attrs={"hidden": hidden, "lr": lr},
    )  # fmt: skip
    setups = {
        f"{name} gates, Δ = {margin:g}": setup(net, margin) for name, net in candidates.items() for margin in shown
    }
    return Result(data, setups | {f"ReLU, Δ = {margin:g}": setup(nets.MLP(hidden), margin) for margin in shown})


def _steps(numbers, start, lr, *, stepwise):
    """Predicted steps to loss 0.2, with the finite step or by the flow; infinite where nothing can be learned."""
    s, d = numbers.T
    live = s > 0
    found = np.full(len(s), np.inf)
    s, d = s[live], d[live]
    found[live] = time_to_loss(s, target=s / d, start=start, fraction=LEARNED, lr=lr if stepwise else None) / lr
    return found


def _loss(numbers, start, lr, steps):
    """The predicted loss at every step; time is that of the flow, slowed down by the finite step."""
    s, d = numbers
    times = np.arange(steps + 1) * np.log1p(lr * s) / s
    return 0.5 * (1 - mode(times, singular_value=s, variance=d, start=start) * d / s) ** 2


def _steps_to(losses):
    steps = np.arange(losses.shape[-1])
    return np.apply_along_axis(lambda loss: time_to(steps, loss, LEARNED), -1, losses)


def _equal_strength(candidates) -> float:
    """The margin at which pathways of both gatings have the same s, by their moments."""
    linear, xor = candidates.values()
    return _root(lambda margin: moments(linear, margin)[0] - moments(xor, margin)[0], 0.1)


def _equal_time(start: float) -> tuple[float, ...]:
    """Margins at which both gatings are equally fast: with `start` in every pathway, and with units in proportion."""

    def lag(margin, share):
        times = [
            time_to_loss(s, target=s / d, start=begun, fraction=LEARNED)
            for (s, d), begun in ((formulas("linear", margin), start), (formulas("XoR", margin), share * start))
        ]
        return times[0] - times[1]

    return tuple(_root(lambda margin, share=share: lag(margin, share), 0.5) for share in (1.0, 0.5))


def _alone_until() -> float:
    """The margin up to which a unit along the input of a point is off for all other points."""

    def largest_overlap(margin):
        points = tasks.xor(margin).x
        return np.max((points @ points.T)[~np.eye(len(points), dtype=bool)])

    return _root(largest_overlap, 1.0)


def _root(of, low: float) -> float:
    """The margin between `low` and 2 at which a function of it is zero."""
    return float(optimize.root_scalar(of, bracket=(low, 2.0), xtol=1e-13).root)


def claims(result: Result) -> list[Claim]:
    data = result.data
    margins, mean = data.margin.values, data.gated_steps.mean("seed")
    fastest, relu = mean.min("gating").values, data.relu_steps.mean("seed").values
    near = int(np.argmin(np.abs(margins - EQUAL)))
    off = np.abs(relu / fastest - 1)
    slower = (mean.max("gating").values / relu)[[0, -1]]
    share = data.one_point_share.mean("seed").values
    few, many = (margins > 0) & (margins <= 0.5), margins > np.sqrt(2)
    reached = np.isfinite(mean.values)
    gaps = {
        name: np.max(np.abs(data[f"{name}_steps"].values.T[reached] / mean.values[reached] - 1))
        for name in ("predicted", "flow")
    }
    between = (data.gated_steps.sel(gating="linear") - data.gated_steps.sel(gating="XoR")).mean("seed").values
    found = [
        Claim.at_most(
            "s and d of all pathways are as in the formulas (d of XoR corrected): largest gap",
            float(np.abs(data.moments - data.formula).where(data.formula.sel(of="s") > 0).max()),
            1e-12,
        ),
        Claim.at_most(
            "Pathways are equally strong at Δ = √(2/3): gap",
            abs(float(data.equal_strength) - EQUAL),
            1e-9,
            source="paper",
        ),
        Claim.at_most(
            "… and trained gatings with equally many units equally fast: gap",
            abs(_crossing(margins, between, 0.0) - EQUAL),
            0.025,
            source="paper",
        ),
        Claim.at_most(
            "… and so by the closed form whatever the start: largest gap",
            float(np.abs(data.equal_time.sel(units="in all") - EQUAL).max()),
            1e-9,
        ),
        Claim.at_most(
            "Equally fast at √(2/3) with equal starts in every pathway, a₀ = 2e-8: gap",
            abs(float(data.equal_time.sel(units="per pathway", start=2e-8)) - EQUAL),
            0.01,
            source="paper",
            expected=False,
            reason="equal s is not equal time: the pathways end at different a, and √(2/3) is the limit a₀ → 0",
        ),
        Claim.at_most(
            "… but at 0.850, 0.860, 0.873, 0.903, 1.005 for a₀ = 1e-10, 2e-8, 1e-6, 1e-4, 1e-2: largest gap",
            float(np.abs(data.equal_time.sel(units="per pathway").values - list(STARTS.values())).max()),
            1e-4,
        ),
        Claim.at_most(
            "Steps of gated networks from the law of the weights and 2 ln(1 + lr s): largest relative gap",
            gaps["predicted"],
            0.03,
        ),
        Claim.at_least("… without the finite step the largest gap is", gaps["flow"], 0.1),
        Claim.at_most(
            "ReLU follows the fastest gating: largest relative gap of the steps to loss 0.2",
            off.max(),
            0.05,
            source="paper",
        ),
        Claim.at_least(
            "… and not the other one: its steps over ReLU's at both ends of Δ, at least",
            slower.min(),
            1.3,
            source="paper",
        ),
        Claim.at_most(
            "… with the same curve, but for a shift: largest distance / first loss", max(_shifted_distances(data)), 0.03
        ),
        Claim.at_least(
            "Near √(2/3) it is faster than either gating: by a fraction of the steps",
            1 - relu[near] / fastest[near],
            0.005,
        ),
        Claim.at_least(
            "Weight in one-point units for 0 < Δ ≤ 1/2: smallest share",
            share[few].min(),
            0.99,
            source="paper",
        ),
        Claim.at_most(
            "… and for Δ > √2, where a unit along a point is on for two: largest share",
            share[many].max(),
            0.001,
            source="paper",
        ),
        Claim.at_most(
            "A unit along a point is on for it alone up to Δ = √2: gap", abs(float(data.alone_until) - np.sqrt(2)), 1e-9
        ),
        Claim.between(
            "Half of the weight is in either kind at Δ", _crossing(margins[1:], -share[1:], -0.5), 0.85, 0.90
        ),
    ]
    if margins[0] == 0:
        found.append(
            Claim.at_most(
                "At Δ = 0 activities tie at zero: a unit's second largest activity over its largest, at most",
                float(data.second_over_first[0].max()),
                0.02,
            )
        )
    return found + _claims_against_others(data, share, relu, mean)


def _claims_against_others(data, share, relu, mean) -> list[Claim]:
    """The same quantities of ten independent runs, where the numbers of this run are those of the paper."""
    known = np.isfinite(data.other_sd.values)
    if not known.any():
        return []
    spread = np.sqrt(1 / data.sizes["seed"] + 1 / 10)
    # ln a₀ of a pathway with n units has variance 2/n, and pathways are averaged.
    rate = 2 * np.log1p(data.attrs["lr"] * data.formula.sel(of="s").values.T)
    own, other = mean.values, data.other_steps.values[:, 1:]
    both = known[:, None] & np.isfinite(own) & np.isfinite(other)
    gates_away = np.abs(own[both] - other[both]) * rate[both] / (np.sqrt(2 / data.attrs["hidden"]) * spread)
    away = np.abs(relu - data.other_steps.values[:, 0])[known] / (data.other_sd.values[known] * spread)
    shares = np.isfinite(data.other_share.values)
    return [
        Claim.at_most(
            "All steps are those of ten other runs: largest gap, in standard errors",
            max(away.max(), gates_away.max()),
            4.0,
        ),
        Claim.at_most(
            "… and the weight in one-point units: largest gap of the share",
            np.abs(share - data.other_share.values)[shares].max(),
            0.1,
        ),
    ]


def _crossing(margins, values, level) -> float:
    """Where values first fall, or rise, through a level; linear between margins, NaN where they do not."""
    fine = np.isfinite(values)
    margins, above = margins[fine], values[fine] > level
    values = values[fine]
    passed = np.flatnonzero(above[1:] != above[:-1])
    if not len(passed):
        return np.nan
    k = passed[0]
    return float(margins[k] + (level - values[k]) / (values[k + 1] - values[k]) * (margins[k + 1] - margins[k]))


def _shifted_distances(data) -> list[float]:
    """Largest distance of the mean ReLU curve to that of the fastest gating, both at the same place at loss 0.2."""
    steps, found = data.step.values, []
    for k in range(data.sizes["margin"]):
        times = data.gated_steps[k].mean("seed").values
        best = int(np.argmin(times))
        own = _aligned_mean(steps, data.relu_loss[k].values, data.relu_steps[k].values)
        other = _aligned_mean(steps, data.gated_loss[k, best].values, data.gated_steps[k, best].values)
        found.append(float(np.max(np.abs(own - other)) / data.relu_loss[k].values[0, 0]))
    return found


def _aligned_mean(steps, losses, reached):
    """The mean over seeds of the loss around the step at which each reaches 0.2."""
    around = np.linspace(-20, 15, 141)
    return np.mean([np.interp(around + own, steps, loss) for loss, own in zip(losses, reached, strict=True)], axis=0)


def figure(result: Result):
    data = result.data
    colours = dict(zip(data.gating.values, COLOURS[1:], strict=False))
    sheet, (curves, (times, mixture, gain)) = new_figure(2, PANELS, width=4.0)
    last = 1.6 * float(data.relu_steps.max())
    for panel, margin in zip(curves, data.shown.values, strict=True):
        for name, colour in colours.items():
            losses = data.gated_loss.sel(margin=margin, gating=name)
            trained(panel, data.step, losses, colour=colour, label=f"{name} gates")
            predicted(panel, data.step, data.predicted_loss.sel(shown=margin, gating=name), colour=colour)
        # Thin: pale, it would lie below the gated networks'.
        labels = ["ReLU", *[None] * (data.sizes["seed"] - 1)]
        panel.plot(data.step, data.relu_loss.sel(margin=margin).T, color=COLOURS[0], lw=1, label=labels)
        panel.set(xlabel="step", ylabel="loss", xlim=(0, last), title=f"Δ = {margin:g}")
    legend_of_kinds(curves[0], loc="lower left")
    curves[1].legend(loc="lower left")
    _draw_times(times, data, colours)
    some = data.isel(margin=data.margin.values > 0)  # at 0 the signs of activities say nothing
    trained(mixture, some.margin, some.one_point_share.T, colour=COLOURS[0])
    mixture.plot(some.margin, some.one_point_share.mean("seed"), color=COLOURS[0], lw=1, marker="x", ms=5)
    mixture.set(ylabel="weight in units for one point", title="from one gating to the other")
    above = data.relu_steps.mean("seed") / data.gated_steps.mean("seed").min("gating") - 1
    gain.plot(data.margin, 100 * above, color=COLOURS[0], marker="x", lw=1, ms=5)
    gain.axhline(0, color="0.8", lw=0.8, zorder=0)
    gain.set(ylabel="ReLU's steps above the fastest (%)", title="ReLU follows to a few per cent")
    for panel in (times, mixture, gain):
        panel.set_xlabel("margin Δ")
        panel.set_xticks([0, 0.4, EQUAL, np.sqrt(2), 2], ["0", "0.4", "√(2/3)", "√2", "2"])
        for place in (EQUAL, np.sqrt(2)):
            panel.axvline(place, color="0.8", lw=0.8, zorder=0)
    return sheet


def _draw_times(axes, data, colours) -> None:
    for name, colour in colours.items():
        axes.plot(data.margin, data.gated_steps.sel(gating=name).mean("seed"), "o", ms=5, color=colour, alpha=0.5)
        expected = data.predicted_steps.sel(gating=name)
        live = np.isfinite(expected)
        predicted(axes, data.margin[live], expected[live], colour=colour, label=f"{name} gates")
    axes.plot(data.margin, data.relu_steps.mean("seed"), color=COLOURS[0], lw=1, marker="x", ms=5, label="ReLU")
    axes.set(ylabel="steps to loss 0.2", title="the fastest gates win", ylim=(0, 1.8 * float(data.relu_steps.max())))
    axes.legend(loc="upper right")
