"""Two gatings with equal singular values learn exclusive or equally fast only if they have equally many units in total.

Exclusive or with a third input ±Δ that reveals the target can be solved by two gatings: “linear” has one pathway for
each side of a plane, “XoR” one for each point. From its moments, correlation s and input variance d, a pathway has

    linear: s = Δ/2, d = Δ²/2        XoR: s = √(2 + Δ²)/4, d = (2 + Δ²)/4        equal s at Δ = √(2/3)

and both gatings have the loss ½(1 − a d/s)², with a the strength of a pathway. With equally many units in total, both
reach a loss at the same time at √(2/3), whatever the initial weights. With equally many units **per pathway**, and so
the same initial strength a₀, this is true only as a₀ → 0, and the approach is logarithmically slow.

**What does not reproduce.** The paper states √(2/3) without this condition. No network is trained here: see
`the_fastest_gates_win`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import Setup, inits, rules, tasks
from .._figures.panels import beside, border, panels
from .._figures.style import COLOURS, DASHES, INK, THIN, predicted
from .._foundation import checks
from ..theories._exclusive_or import EQUAL, GATINGS, equally_fast_at, margin_where_zero, pathway_moments
from ._kit.labelled import largest, table
from ._kit.parameters import AtLeast, Check, Each, Seed, Several, checked
from ._kit.xor import LEARNED, gated, moments
from .base import Claim, Result, at_most, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEME, PLACE = "gates", 2.5
REFERENCE = {"jarvis2025": "figure 2, appendix C"}
QUICK = {}
# Starts a₀ of every pathway, and the margin at which both gatings are equally fast from there.
STARTS = {1e-10: 0.8499, 2e-8: 0.8601, 1e-6: 0.8729, 1e-4: 0.9027, 1e-2: 1.0048}
PER_PATHWAY, IN_ALL = "per pathway", "in all"  # where both gatings have equally many units
UNITS = {PER_PATHWAY: 1.0, IN_ALL: 0.5}  # the start of an XoR pathway over that of a linear one
SHORT = {PER_PATHWAY: "equal units\nper pathway", IN_ALL: "equal units\nin total"}
CAPTION = """
**a** Singular value s of a pathway of either gating, against the margin Δ of the input that reveals the target:
“linear” gates open for two points, “XoR” gates for one. Dots are computed from the samples that a pathway lets through,
dashed lines are the formulas. The grey line is Δ = √(2/3), where both are equal. **b** Margin at which both gatings
reach loss 0.2 at the same time, by the closed form, against the initial strength a₀ of a linear pathway: both have
equally many units per pathway, or equally many in total. Nothing is trained or fitted.
"""
ALT = """
Two rising curves cross once. The margin of equal speed is constant for equally many units in total; for equally many
units per pathway it lies above, and comes closer only slowly as the initial strength falls over many decades.
"""
LINEAR, XOR = COLOURS[1:3]


Margins = Annotated[tuple[float, ...], Each(Check(checks.positive, zero=True), least=2)]


@checked
def run(
    *,
    margins: Margins = (0.0, 0.4, 0.8, 1.2, 1.6, 2.0),
    hidden: Annotated[int, AtLeast(4)] = 128,
    points: Several = 101,
    seed: Seed = 0,
) -> Result:
    """`margins`: Δ; `points`: how many initial strengths are drawn. Nothing is random, whatever the seed."""
    networks, starts = {name: gated(name, hidden) for name in GATINGS}, [*STARTS, *np.geomspace(1e-30, 1e-2, points)]

    def lead(margin: float) -> float:
        return moments(networks["linear"], margin)[0] - moments(networks["XoR"], margin)[0]

    measured = [[moments(network, margin) for margin in margins] for network in networks.values()]
    formula = [[pathway_moments(name, margin) for margin in margins] for name in networks]
    equal = [[equally_fast_at(start, LEARNED, share=share) for share in UNITS.values()] for start in starts]
    data = xarray.Dataset(
        {
            "moments": table(measured, "gating", "margin", "of"),
            "formula": table(formula, "gating", "margin", "of"),
            "equal_strength": margin_where_zero(lead, 0.1),
            "equal_time": table(equal, "start", "units"),
        },
        coords={
            "gating": list(GATINGS),
            "margin": list(margins),
            "of": ["s", "d"],
            "units": list(UNITS),
            "start": starts,
        },
    )
    task, init, rule = tasks.xor(EQUAL), inits.SmallRandom(1e-5), rules.GradientDescent(0.4)
    setups = {f"{name} gates": Setup(task, net, init, rule, until=64.0) for name, net in networks.items()}
    return Result(data, setups)


def claims(result: Result) -> list[Claim]:
    data = result.data
    known = data.equal_time.isel(start=slice(len(STARTS)))
    in_all, per_pathway = known.sel(units=IN_ALL), known.sel(units=PER_PATHWAY)
    gap = float(np.abs(data.moments - data.formula).where(data.formula.sel(of="s") > 0).max())
    return [
        paper(
            "Margin at which pathways of both gatings have the same s: gap from √(2/3)",
            at_most(abs(float(data.equal_strength) - EQUAL), 1e-9),
            headline=True,
            panel="a",
        ),
        paper(
            "Equally fast at √(2/3) with equal starts in every pathway, a₀ = 2e-8: gap",
            at_most(abs(float(per_pathway.sel(start=2e-8)) - EQUAL), 0.01),
            fails="equal s is not equal time: the pathways end at different a, and √(2/3) is the limit a₀ → 0",
            headline=True,
            panel="b",
        ),
        ours(
            "Margin of equal speed with equally many units in total, a₀ from 1e-10 to 1e-2: largest gap from √(2/3)",
            at_most(largest(in_all - EQUAL), 1e-9),
            panel="b",
        ),
        ours(
            "Margin of equal speed with equal a₀, from 1e-10 to 1e-2: largest gap from 0.850 … 1.005 (docs/errata.md)",
            at_most(largest(per_pathway - list(STARTS.values())), 1e-4),
            panel="b",
        ),
        ours("s and d of all pathways against the formulas, d of XoR corrected: largest gap", at_most(gap, 1e-12)),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab", row=3.2)
    strengths = data.sel(of="s")
    for k, (name, colour) in enumerate({"linear": LINEAR, "XoR": XOR}.items()):
        at["a"].plot(data.margin, strengths.moments[k], "o", color=colour, ms=5)
        predicted(at["a"], data.margin, strengths.formula[k], colour=colour)
        beside(at["a"], float(data.margin[-1]), float(strengths.formula[k, -1]), f"{name} gates")
    border(at["a"], EQUAL)
    at["a"].set(xlabel="margin Δ", ylabel="singular value s of a pathway", title="Equal singular values at Δ = √(2/3)")
    fine = data.equal_time.isel(start=slice(len(STARTS), None))
    for name in UNITS:
        line = fine.sel(units=name)
        at["b"].semilogx(line.start, line, color=INK, lw=THIN, ls=DASHES)
        beside(at["b"], float(line.start[-1]), float(line[-1]), SHORT[name])
    at["b"].set(xlabel="initial strength a₀ of a linear pathway", ylabel="margin Δ of equal speed")
    at["b"].set(ylim=(0.78, 1.02), title="Equal speed depends on the widths")
    return sheet
