"""A ReLU network learns as fast as the fastest gated linear network, and mixes gatings where two are equally fast.

Exclusive or with a third input ±Δ that reveals the target can be solved by two gatings: “linear” has one pathway for
each side of a plane, “XoR” one for each point. Pathways of both have equal singular values at Δ = √(2/3), and the
gating with the larger one is faster; `equal_strength_is_not_equal_speed` says when both are equally fast. ReLU networks
need as many steps as the faster gating, to a few per cent, and change from units for one point to units for two points
as Δ grows. The change is smooth: near Δ = 0.88 half of the weight is in either kind of unit. From Δ = 0.2 to there the
network is 1 to 3 % faster than the faster gating, most so near √(2/3); above, it is up to 3 % slower.

Times follow from the distribution of the initial weights, a₀ = nσ²/2 for the n units of a pathway, with nothing fitted,
once the finite step is taken into account: a small map grows by (1 + lr s)² per step, so that 2s becomes
2 ln(1 + lr s)/lr. A unit whose weights lie along the input of a point is active for that point alone only if Δ < √2. At
Δ = 0 its pre-activation is exactly zero for two other points, so that the sign of its activity there says nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import Net, Setup, inits, nets, rules, tasks
from .._figures.overlay import overlay
from .._figures.panels import border, key, mark, panels
from .._figures.style import COLOURS, DARK_GREY, predicted
from .._formulas.curves import crossing
from .._foundation import checks
from .._foundation.errors import BadInput
from ..gates.comparing import times_to
from ..theories._exclusive_or import EQUAL, GATINGS, loss_in_steps, steps_to_fraction
from ..theories.disjoint_pathways import effective_start
from ._kit.labelled import labelled, stack, table
from ._kit.parameters import AtLeast, Check, Count, Each, Positive, Positives, Seed, checked
from ._kit.training import simulate
from ._kit.xor import LEARNED, alone_until, gated, one_point_share, second_over_first
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

THEME, PLACE = "gates", 2
REFERENCE = {"jarvis2025": "figure 2, appendix C"}
QUICK = dict(margins=(0.0, 0.2, 0.4, 0.8, 0.85, 0.9, 1.2, 1.6, 2.0), seeds=5, steps=160)
CAPTION = """
**a**, **b** Loss of ReLU networks (thin lines) and of gated linear networks with “linear” gates, which open for two
points, or “XoR” gates, which open for one; at a small and at a large margin Δ of the input that reveals the target,
one line for each seed. **c** Steps until the loss is 0.2, against Δ: dots are means over gated networks, crosses over
ReLU networks. Grey lines are Δ = √(2/3), where both gatings have equal singular values, and Δ = √2. **d** Share of the
weight of the ReLU network that is in units active for one point only, one line for each seed; crosses are means. The
theory follows from the distribution of the initial weights, without a fit.
"""
ALT = """
At the small margin the ReLU loss drops with that of XoR gates, at the large margin with that of linear gates. The steps
of ReLU networks follow the lower of two falling curves, and the share of one-point units falls from one to zero where
these cross.
"""
RELU, COLOUR_OF = COLOURS[0], {"linear": COLOURS[1], "XoR": COLOURS[2]}
Margins = Annotated[tuple[float, ...], Each(Check(checks.positive, zero=True), least=2)]


@checked
def run(
    *,
    margins: Margins = (0.0, 0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 1.0, 1.2, 1.4, 1.6, 2.0),
    shown: Positives = (0.4, 1.6),
    hidden: Annotated[int, AtLeast(4)] = 128,
    variance: Positive = 4e-8,
    lr: Positive = 0.4,
    steps: Count = 560,
    seeds: Count = 10,
    seed: Seed = 0,
) -> Result:
    """`variance`: of the initial weights, times `hidden`; `shown`: two margins Δ whose curves are drawn."""
    if len(shown) != 2:
        raise BadInput(f"{len(shown)} margins shown", "two, one for each panel", "give shown=(0.4, 1.6)")
    margins = tuple(sorted({*margins, *shown}))
    if not (any(0 < m <= 0.5 for m in margins) and margins[0] < EQUAL and margins[-1] > np.sqrt(2)):
        needed = "margins on both sides: some in 0 … 0.5, some above √2"
        raise BadInput(f"margins = {margins}", needed, "add such margins")
    scale, draws = np.sqrt(variance / hidden), range(seed, seed + seeds)
    candidates = {name: gated(name, hidden) for name in GATINGS}
    starts = {name: effective_start(hidden // len(points), scale) for name, points in GATINGS.items()}

    def setup(net: Net, margin: float) -> Setup:
        rule = rules.GradientDescent(lr)
        return Setup(tasks.xor(margin), net, inits.SmallRandom(scale), rule, times=np.arange(steps + 1) * lr)

    def at_margin(margin: float) -> Dataset:
        free = simulate(setup(nets.MLP(hidden), margin), draws, ["loss", "representation", "unit_size"])
        activity, size = free["representation"][:, -1], free["unit_size"][:, -1]
        switched = {n: labelled(simulate(setup(net, margin), draws, "loss"), "loss") for n, net in candidates.items()}
        expected = {
            f"{kind}_steps": [steps_to_fraction(n, margin, starts[n], LEARNED, lr, finite=finite) for n in GATINGS]
            for kind, finite in (("predicted", True), ("flow", False))
        }
        losses = xarray.Dataset({"relu_loss": labelled(free, "loss"), "gated_loss": stack(switched, "gating")})
        of_units = {"one_point_share": one_point_share, "second_over_first": second_over_first}
        return losses.rename(time="step").assign(
            {name: table(values, "gating") for name, values in expected.items()}
            | {name: table(measure(activity, size), "seed") for name, measure in of_units.items()}
        )

    data = stack({margin: at_margin(margin) for margin in margins}, "margin").assign_coords(step=np.arange(steps + 1))
    curves = [[loss_in_steps(name, margin, starts[name], lr, steps) for name in GATINGS] for margin in shown]
    data = data.assign(
        relu_steps=table(times_to(data.step.values, data.relu_loss.values, LEARNED), *data.relu_loss.dims[:2]),
        gated_steps=table(times_to(data.step.values, data.gated_loss.values, LEARNED), *data.gated_loss.dims[:3]),
        predicted_loss=table(curves, "shown", "gating", "step").assign_coords(shown=list(shown)),
        alone_until=alone_until(),
    )
    setups = {
        f"{name} gates, Δ = {margin:g}": setup(net, margin) for name, net in candidates.items() for margin in shown
    }
    return Result(data, setups | {f"ReLU, Δ = {margin:g}": setup(nets.MLP(hidden), margin) for margin in shown})


def claims(result: Result) -> list[Claim]:
    data = result.data
    margins, gates = data.margin.values, data.gated_steps.mean("seed")
    fastest, relu = gates.min("gating"), data.relu_steps.mean("seed")
    off = abs(relu / fastest - 1).max()
    slower = (gates.max("gating") / relu)[[0, -1]].min()
    share = data.one_point_share.mean("seed")
    few, many = share[(margins > 0) & (margins <= 0.5)].min(), share[margins > np.sqrt(2)].max()
    gap, flow = (abs(data[f"{n}_steps"] / gates - 1).where(np.isfinite(gates)).max() for n in ("predicted", "flow"))
    lag = (gates.sel(gating="linear") - gates.sel(gating="XoR")).values
    finite = np.isfinite(lag)
    tie = abs(float(crossing(margins[finite], -lag[finite], 0.0)) - EQUAL)
    half = float(crossing(margins[1:], -share.values[1:], -0.5))
    saved = (1 - relu / fastest)[int(np.argmin(np.abs(margins - EQUAL)))]
    statements = [
        paper(
            "Steps of ReLU networks to loss 0.2 against those of the fastest gating: largest relative gap",
            at_most(off, 0.05),
            headline=True,
            panel="c",
        ),
        paper(
            "Steps of the slower gating over those of ReLU networks: smaller ratio of both ends of Δ",
            at_least(slower, 1.3),
            headline=True,
            panel="c",
        ),
        ours(
            "Losses of ReLU networks and of the fastest gating, shifted in time: largest distance / initial loss",
            at_most(max(_shifted_distances(data)), 0.03),
        ),
        ours(
            "Steps of gated networks against theory with finite steps, 2 ln(1 + lr s)/lr: largest relative gap",
            at_most(gap, 0.03),
            panel="c",
        ),
        ours("Steps of gated networks against theory of gradient flow: largest relative gap", at_least(flow, 0.1)),
        paper(
            "Margin Δ at which trained gatings of equally many units are equally fast: gap from √(2/3)",
            at_most(tie, 0.025),
        ),
        ours("Near Δ = √(2/3): share of steps that ReLU networks save on the faster gating", at_least(saved, 0.005)),
        paper("Smallest share of the weight in units for one point, 0 < Δ ≤ 1/2", at_least(few, 0.99), panel="d"),
        paper("Largest share of the weight in units for one point, Δ > √2", at_most(many, 0.001), panel="d"),
        ours(
            "Margin Δ up to which a unit with weights along one point is active on it alone: gap from √2",
            at_most(abs(float(data.alone_until) - np.sqrt(2)), 1e-9),
        ),
        ours("Margin Δ at which half of the weight is in units for one point", between(half, 0.85, 0.90), panel="d"),
    ]
    if margins[0] == 0:
        text = "Second largest over largest activity of a unit at Δ = 0, mean over units: largest over seeds"
        statements.append(ours(text, at_most(data.second_over_first[0].max(), 0.02)))
    return statements


def _shifted_distances(data: Dataset) -> list[float]:
    """Largest distances of the mean ReLU curve from that of the fastest gating, both shifted to their loss of 0.2."""
    distances = []
    for margin in data.margin.values:
        one = data.sel(margin=margin)
        best = one.isel(gating=int(one.gated_steps.mean("seed").argmin("gating")))
        relu = _aligned_mean(data.step.values, one.relu_loss.values, one.relu_steps.values)
        other = _aligned_mean(data.step.values, best.gated_loss.values, best.gated_steps.values)
        distances.append(float(np.max(np.abs(relu - other)) / one.relu_loss[0, 0]))
    return distances


def _aligned_mean(steps: np.ndarray, losses: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """The mean over seeds of the loss around the step at which each seed reaches 0.2."""
    around = np.linspace(-20, 15, 141)
    return np.mean([np.interp(around + at, steps, loss) for loss, at in zip(losses, reached, strict=True)], axis=0)


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab;cd")
    last = 1.6 * float(data.relu_steps.max())
    for letter, margin in zip("ab", data.shown.values, strict=True):
        one = data.sel(margin=margin)
        overlay(
            at[letter],
            one.gated_loss,
            data.predicted_loss.sel(shown=margin),
            by="gating",
            along="step",
            colours=COLOUR_OF,
        )
        # Drawn thin: as pale lines they would lie hidden below the gated networks.
        at[letter].plot(data.step, one.relu_loss.T, color=RELU, lw=1)
        at[letter].set(xlabel="step", ylabel="loss", xlim=(0, last), title=f"Margin Δ = {margin:g}")
    for name, colour in COLOUR_OF.items():
        gates = data.sel(gating=name)
        live = np.isfinite(gates.predicted_steps)
        at["c"].plot(data.margin, gates.gated_steps.mean("seed"), "o", ms=5, color=colour, alpha=0.5)
        predicted(at["c"], data.margin[live], gates.predicted_steps[live], colour=colour)
    at["c"].plot(data.margin, data.relu_steps.mean("seed"), "x", color=RELU, ms=6, mew=2)
    at["c"].set(ylabel="steps to loss 0.2", ylim=(0, last), title="ReLU is as fast as the faster gates")
    some = data.isel(margin=data.margin.values > 0)  # at Δ = 0 the signs of activities say nothing
    overlay(at["d"], some.one_point_share, along="margin", colours=RELU)
    at["d"].plot(some.margin, some.one_point_share.mean("seed"), "x", color=RELU, ms=6, mew=2)
    at["d"].set(ylabel="share of one-point units", title="ReLU units change from one point to two")
    for letter in "cd":
        at[letter].set(xlabel="margin Δ", xlim=(0, None))
        at[letter].set_xticks([0, 0.4, EQUAL, np.sqrt(2), 2], ["0", "0.4", "√(2/3)", "√2", "2"])
        border(at[letter], EQUAL)
        border(at[letter], np.sqrt(2))
    marks = [mark("gated, mean", colour=DARK_GREY), mark("ReLU, mean", "x", colour=RELU, mew=2)]
    key(sheet, {"ReLU": RELU, "linear gates": COLOUR_OF["linear"], "XoR gates": COLOUR_OF["XoR"]}, marks=marks)
    return sheet
