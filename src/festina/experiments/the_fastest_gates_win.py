"""A ReLU network learns like the fastest gated linear network, and mixes gatings where two are equally fast.

Exclusive or with a third input ±Δ that reveals the target can be solved by two gatings: "linear" has one pathway for
each side of a plane, "XoR" one for each point. From its moments a pathway has

    linear: s = Δ/2, d = Δ²/2        XoR: s = √(2 + Δ²)/4, d = (2 + Δ²)/4        equal s at Δ = √(2/3)

and both gatings have the loss ½(1 − a d/s)², so that the one with the larger s wins. ReLU networks need as many steps
as the faster gating, to a few per cent, and change from units for one point to units for two points as Δ grows. The
change is smooth: near Δ = 0.88 half of the weight is in either kind of unit. From Δ = 0.2 to there the network is 1 to
3 % faster than the faster gating, most so near √(2/3); above, it is up to 3 % slower.

Times follow from the law of the initial weights, a₀ = nσ²/2 for the n units of a pathway, with nothing fitted, once the
finite step is taken into account: a small map grows by (1 + lr s)² per step, so that 2s becomes 2 ln(1 + lr s)/lr. A
unit whose weights lie along the input of a point is on for that point alone only if Δ < √2. At Δ = 0 its activity for
two other points is exactly 0, at the edge of its gate, and the sign of its activity there says nothing.

**What does not reproduce.** The gatings are equally fast in time, and not in s only, at √(2/3) if they have equally
many units in all, whatever the start. If they have equally many units *per pathway*, and so the same start a₀, this is
true only as a₀ → 0, and the approach is logarithmically slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import Net, Setup, inits, nets, rules, tasks
from .._figures.style import COLOURS, legend_of_kinds, new_figure
from .._formulas.curves import crossing
from .._foundation.checks import positive, whole
from .._foundation.errors import BadInput
from ..theories.disjoint_pathways import effective_start
from ._kit.training import simulate
from ._kit.xor import GATINGS, formulas, gated, moments, one_point_share, second_over_first
from ._kit.xor_measures import shifted_distances, steps_to
from ._kit.xor_panels import draw_gain, draw_losses, draw_mixture, draw_times
from ._kit.xor_times import (
    INDEPENDENT,
    STARTS,
    alone_until,
    equal_strength,
    equal_time,
    predicted_loss,
    predicted_steps,
)
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset


THEME, PLACE = "gates", 2
REFERENCE = {"jarvis2025": "figure 2, appendix C"}
QUICK = dict(margins=(0.0, 0.2, 0.4, 0.8, 0.85, 0.9, 1.2, 1.6, 2.0), shown=(0.4, 0.8, 1.6), seeds=5, steps=160)
EQUAL = np.sqrt(2 / 3)
PANELS = 3


def run(
    *,
    margins: Sequence[float] = tuple(INDEPENDENT),
    shown: Sequence[float] = (0.4, 0.8, 1.6),
    hidden: int = 128,
    variance: float = 4e-8,
    lr: float = 0.4,
    steps: int = 560,
    seeds: int = 10,
    seed: int = 0,
) -> Result:
    """`variance`: of the initial weights, times `hidden`; `shown`: margins Δ whose curves are drawn."""
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

    def setup(net: Net, margin: float) -> Setup:
        rule = rules.GradientDescent(lr)
        return Setup(tasks.xor(margin), net, inits.SmallRandom(scale), rule, times=np.arange(steps + 1) * lr)

    relu, switched, share, tie = [], [], [], []
    for margin in margins:
        free = simulate(setup(nets.MLP(hidden), margin), draws, ["loss", "representation", "unit_size"])
        relu.append(free["loss"])
        switched.append([simulate(setup(net, margin), draws, "loss")["loss"] for net in candidates.values()])
        share.append(one_point_share(free["representation"][:, -1], free["unit_size"][:, -1]))
        tie.append(second_over_first(free["representation"][:, -1], free["unit_size"][:, -1]))
    starts = {name: effective_start(hidden // len(points), scale) for name, points in GATINGS.items()}
    numbers = {name: np.array([formulas(name, margin) for margin in margins]) for name in GATINGS}
    expected = {
        rate: [predicted_steps(numbers[name], starts[name], lr, stepwise=rate == "stepwise") for name in GATINGS]
        for rate in ("stepwise", "flow")
    }
    same = (hidden, variance, lr) == (128, 4e-8, 0.4)
    others = np.array([INDEPENDENT.get(margin, (np.nan,) * 5) if same else (np.nan,) * 5 for margin in margins])
    import xarray

    data = xarray.Dataset(
        {
            "relu_loss": (("margin", "seed", "step"), np.stack(relu)),
            "gated_loss": (("margin", "gating", "seed", "step"), np.stack(switched)),
            "relu_steps": (("margin", "seed"), steps_to(np.stack(relu))),
            "gated_steps": (("margin", "gating", "seed"), steps_to(np.stack(switched))),
            "one_point_share": (("margin", "seed"), np.stack(share)),
            "second_over_first": (("margin", "seed"), np.stack(tie)),
            "predicted_steps": (("gating", "margin"), expected["stepwise"]),
            "flow_steps": (("gating", "margin"), expected["flow"]),
            "predicted_loss": (
                ("shown", "gating", "step"),
                [[predicted_loss(formulas(g, m), starts[g], lr, steps) for g in GATINGS] for m in shown],
            ),
            "other_steps": (("margin", "net"), others[:, [0, 2, 3]]),
            "other_sd": ("margin", others[:, 1]),
            "other_share": ("margin", others[:, 4]),
            "moments": (("gating", "margin", "of"), [[moments(n, m) for m in margins] for n in candidates.values()]),
            "formula": (("gating", "margin", "of"), np.stack(list(numbers.values()))),
            "equal_strength": ((), equal_strength(*candidates.values())),
            "equal_time": (("start", "units"), [equal_time(start) for start in STARTS]),
            "alone_until": ((), alone_until()),
        },
        coords={
            "margin": margins,
            "gating": list(GATINGS),
            "seed": draws,
            "step": np.arange(steps + 1),
            "shown": shown,
            "net": ["ReLU", *GATINGS],
            "of": ["s", "d"],
            "start": list(STARTS),
            "units": ["per pathway", "in all"],
        },
        attrs={"hidden": hidden, "lr": lr},
    )
    setups = {
        f"{name} gates, Δ = {margin:g}": setup(net, margin) for name, net in candidates.items() for margin in shown
    }
    return Result(data, setups | {f"ReLU, Δ = {margin:g}": setup(nets.MLP(hidden), margin) for margin in shown})


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
    lag = (data.gated_steps.sel(gating="linear") - data.gated_steps.sel(gating="XoR")).mean("seed").values
    finite = np.isfinite(lag)
    equally_fast = float(crossing(margins[finite], -lag[finite], 0.0))
    half_of_weight = float(crossing(margins[1:], -share[1:], -0.5))
    statements = [
        ours(
            "s and d of all pathways are as in the formulas (d of XoR corrected): largest gap",
            at_most(float(np.abs(data.moments - data.formula).where(data.formula.sel(of="s") > 0).max()), 1e-12),
        ),
        paper(
            "Pathways of both gatings are equally strong at Δ = √(2/3): gap",
            at_most(abs(float(data.equal_strength) - EQUAL), 1e-9),
        ),
        paper(
            "… and trained gatings with equally many units in all are equally fast there: gap",
            at_most(abs(equally_fast - EQUAL), 0.025),
        ),
        ours(
            "… as they are by the closed form, whatever the start: largest gap",
            at_most(float(np.abs(data.equal_time.sel(units="in all") - EQUAL).max()), 1e-9),
        ),
        paper(
            "Equally fast at √(2/3) with equal starts in every pathway, a₀ = 2e-8: gap",
            at_most(abs(float(data.equal_time.sel(units="per pathway", start=2e-8)) - EQUAL), 0.01),
            fails="equal s is not equal time: the pathways end at different a, and √(2/3) is the limit a₀ → 0",
        ),
        ours(
            "… but at 0.850, 0.860, 0.873, 0.903, 1.005 for a₀ = 1e-10, 2e-8, 1e-6, 1e-4, 1e-2: largest gap",
            at_most(float(np.abs(data.equal_time.sel(units="per pathway").values - list(STARTS.values())).max()), 1e-4),
        ),
        ours(
            "Steps of gated networks from the law of the weights and 2 ln(1 + lr s): largest relative gap",
            at_most(gaps["predicted"], 0.03),
        ),
        ours("… without the finite step: largest relative gap", at_least(gaps["flow"], 0.1)),
        paper(
            "ReLU networks are as fast as the fastest gating: largest relative gap of the steps to loss 0.2",
            at_most(off.max(), 0.05),
        ),
        paper(
            "… and not as slow as the other one: its steps / those of ReLU, the smaller of both ends of Δ",
            at_least(slower.min(), 1.3),
        ),
        ours(
            "… with the same loss curve, up to a shift: largest distance / first loss",
            at_most(max(shifted_distances(data)), 0.03),
        ),
        ours(
            "Near Δ = √(2/3) ReLU networks are faster than either gating: fraction of the steps saved",
            at_least(1 - relu[near] / fastest[near], 0.005),
        ),
        paper("Weight in units for one point, 0 < Δ ≤ 1/2: smallest share", at_least(share[few].min(), 0.99)),
        paper(
            "… and for Δ > √2, where a unit along one point is active on two: largest share",
            at_most(share[many].max(), 0.001),
        ),
        ours(
            "A unit with weights along one point is active on it alone up to Δ = √2: gap",
            at_most(abs(float(data.alone_until) - np.sqrt(2)), 1e-9),
        ),
        ours(
            "The weight moves from one kind of unit to the other: Δ at which half is in either kind",
            between(half_of_weight, 0.85, 0.90),
        ),
    ]
    if margins[0] == 0:
        statements.append(
            ours(
                "At Δ = 0 units are at the edge of their gates: largest ratio of second largest to largest activity",
                at_most(float(data.second_over_first[0].max()), 0.02),
            )
        )
    return statements + _claims_against_others(data, share, relu, mean.values)


def _claims_against_others(data: Dataset, share: np.ndarray, relu: np.ndarray, steps: np.ndarray) -> list[Claim]:
    """Claims about the same quantities of ten independent runs, if the numbers of this run are those of the paper."""
    known = np.isfinite(data.other_sd.values)
    if not known.any():
        return []
    spread = np.sqrt(1 / data.sizes["seed"] + 1 / 10)
    # ln a₀ of a pathway with n units has variance 2/n, and pathways are averaged.
    rate = 2 * np.log1p(data.attrs["lr"] * data.formula.sel(of="s").values.T)
    other = data.other_steps.values[:, 1:]
    both = known[:, None] & np.isfinite(steps) & np.isfinite(other)
    gates_away = np.abs(steps[both] - other[both]) * rate[both] / (np.sqrt(2 / data.attrs["hidden"]) * spread)
    away = np.abs(relu - data.other_steps.values[:, 0])[known] / (data.other_sd.values[known] * spread)
    shares = np.isfinite(data.other_share.values)
    return [
        ours(
            "Steps of all networks are those of ten independent runs: largest gap, in standard errors",
            at_most(max(away.max(), gates_away.max()), 4.0),
        ),
        ours(
            "… and so is the weight in units for one point: largest gap of the share",
            at_most(np.abs(share - data.other_share.values)[shares].max(), 0.1),
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    colours = dict(zip(data.gating.values, COLOURS[1:], strict=False))
    sheet, (curves, (times, mixture, gain)) = new_figure(2, PANELS, width=4.0)
    for panel, margin in zip(curves, data.shown.values, strict=True):
        draw_losses(panel, data, margin, colours)
    legend_of_kinds(curves[0], loc="lower left")
    curves[1].legend(loc="lower left")
    draw_times(times, data, colours)
    draw_mixture(mixture, data)
    draw_gain(gain, data)
    for panel in (times, mixture, gain):
        panel.set_xlabel("margin Δ")
        panel.set_xticks([0, 0.4, EQUAL, np.sqrt(2), 2], ["0", "0.4", "√(2/3)", "√2", "2"])
        for place in (EQUAL, np.sqrt(2)):
            panel.axvline(place, color="0.8", lw=0.8, zorder=0)
    return sheet
