"""Networks learn the representations of a task from small or balanced weights (λ = 0), not from large random ones.

A network learns eight items in a tree without error from any initial weights, and yet the final representations W₁ᵀW₁
of the items and W₂W₂ᵀ of the features differ. From small Gaussian weights they become those of the task, V S Vᵀ and U S
Uᵀ: **rich** learning. From large Gaussian weights they stay near their initial values: **lazy** learning. Size alone
does not make a network lazy. From balanced weights, W₂ᵀW₂ − W₁W₁ᵀ = λI, the final representations are exactly

    W₁ᵀW₁ = V (√(λ² + 4S²) − λ)/2 Vᵀ,      W₂W₂ᵀ = U (√(λ² + 4S²) + λ)/2 Uᵀ

whatever the size. λ = 0 is rich even from large weights. A large |λ| leaves one representation as a multiple of the
identity, up to (S/λ)²; this one says nothing about the task, and the other says everything. Large Gaussian weights are
not balanced, so that no exact theory covers them; their imbalance is measured.

The agreement of two representations is the cosine between them after multiples of the identity are taken away: 1 for
the same structure, 0 on average for unrelated ones. The published score keeps the identity and so does not see
laziness: the identity itself scores tr S/(√8 ‖S‖) = 0.95 on this task. Balanced draws whose map has a determinant of
the wrong sign are left out: at λ = 0 they never learn all modes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import Setup, inits, nets, rules, solve, tasks
from .._figures.panels import key, panels
from .._figures.style import COLOURS, DASHES, INK, THIN, predicted
from .._formulas.balanced_flow import final_representations
from ._kit import representations as kit
from ._kit.labelled import labelled, stack, table
from ._kit.parameters import AtLeast, Count, Numbers, Positive, Positives, Seed, Several, checked
from ._kit.representations import AXES, agreement, representations_of, right_signed, spread
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataArray

THEME, PLACE = "regimes", 1
REFERENCE = {
    "braun2022": "figure 3",
    "domine2025": "limits of large λ, semantic learning",
    "saxe_slides": "slides on lazy and rich regimes",
}
QUICK = dict(seeds=4, lr=0.05, points=24)
CAPTION = """
**a** to **d** Representation of the items, W₁ᵀW₁, after learning from different initial weights, relative to its
largest entry: similar items have similar representations. From small Gaussian weights (a) and from large ones with λ =
0 (c) it shows the tree of the task. From large Gaussian weights (b) it is that of the initial weights, and at a large
negative λ (d) it is a multiple of the identity. λ is the balance of the layers, W₂ᵀW₂ − W₁W₁ᵀ = λI. **e** From Gaussian
weights of a standard deviation: agreement of the final representations with those of the task and with the initial
ones, mean over both layers and draws; 1 is the same structure. **f** From balanced weights: spread of the eigenvalues
of the final representations, as standard deviation over mean; 0 is a multiple of the identity. Dots are late times of
the exact solution, mean over draws, and lines are the closed form of the limit.
"""
ALT = """
The four maps show a tree of blocks, noise, the same tree, and a plain diagonal. With the size of Gaussian weights the
agreement with the task falls from 1 to 0 as that with the initial representation rises. In f the two curves mirror each
other and cross at λ = 0, with all dots on the lines.
"""


@checked
def run(
    *,
    hidden: Annotated[int, AtLeast(8)] = 14,
    scales: Positives = (1e-4, 0.1, 0.25, 0.42, 0.6, 1.0),
    large: Positive = 0.42,
    zero_balanced: Positive = 0.44,
    lams: Numbers = (-20.0, -10.0, -5.0, -2.0, 0.0, 2.0, 5.0, 10.0, 20.0),
    balanced_scale: Positive = 0.5,
    until: Positive = 120.0,
    lr: Positive = 0.02,
    points: Several = 60,
    seeds: Count = 12,
    seed: Seed = 0,
) -> Result:
    """`scales`, `large`: standard deviations of Gaussian weights; `zero_balanced`, `balanced_scale`: of balanced ones.

    `lams` are the balances of square networks, whose late representations are compared with the closed form.
    """
    task = tasks.contrasts()
    modes = task.modes()
    times = np.concatenate([[0.0], np.unique(np.round(np.geomspace(4 * lr, until, points) / lr)) * lr])
    starts = {
        "small Gaussian": inits.SmallRandom(min(scales)),
        "large Gaussian": inits.SmallRandom(large),
        "large, λ = 0": inits.ZeroBalanced(zero_balanced),
    }
    descent = rules.GradientDescent(lr)
    setups = {name: Setup(task, nets.DeepLinear(hidden), init, descent, times=times) for name, init in starts.items()}
    balanced = setups["large, λ = 0"]
    draws = right_signed(balanced, seed, seeds)
    runs = {name: simulate(setup, draws, kit.OBSERVED) for name, setup in setups.items()}
    of_runs = stack({name: representations_of(trained) for name, trained in runs.items()}, "start")
    ends = {}
    for scale in scales:
        of_scale = representations_of(simulate(balanced.replace(init=inits.SmallRandom(scale)), draws, kit.OBSERVED))
        ends[scale] = of_scale.isel(time=[0, -1]).drop_vars("time").rename(time="moment")
    of_scales = stack(ends, "scale")
    theory = solve(balanced, "BalancedRiccati", observe=kit.OBSERVED[:3], seed=draws[0])
    late = table(kit.late_representations(task, lams, balanced_scale, seed, seeds), "lam", "draw", *AXES)
    fine = np.linspace(min(lams), max(lams), 201)

    def limits(balances: Iterable[float]) -> DataArray:
        vectors = modes.right, modes.targets(), modes.left
        return table([np.stack(final_representations(*vectors, lam)) for lam in balances], "lam", *AXES)

    of_task = limits([0.0])[0]
    data = xarray.Dataset(
        {
            "representation": of_runs.isel(time=[0, -1]).rename(time="moment").drop_vars("moment"),
            "kernel_distance": stack({n: labelled(t, "kernel_distance")[:, -1] for n, t in runs.items()}, "start"),
            "loss": stack({name: labelled(trained, "loss")[:, -1] for name, trained in runs.items()}, "start"),
            "imbalance": stack({name: kit.imbalance(trained) for name, trained in runs.items()}, "start"),
            "task_representation": of_task,
            "with_task": agreement(of_scales.isel(moment=1), of_task).mean(["seed", "side"]),
            "with_start": agreement(of_scales.isel(moment=1), of_scales.isel(moment=0)).mean(["seed", "side"]),
            "late_representation": late,
            "late_gap": abs(late - limits(lams)).max(["row", "column"]) / abs(limits(lams)).max(["row", "column"]),
            "late_spread": spread(late).mean("draw"),
            "predicted_spread": spread(limits(fine)).rename(lam="fine_lam"),
            "task_squared": table((modes.right * modes.targets() ** 2) @ modes.right.T, "row", "column"),
            "target": table(modes.targets(), "mode"),
            "order_in_lr": table(kit.orders(balanced, draws, theory, runs["large, λ = 0"]), "halving"),
        },
        coords={"lam": list(lams), "fine_lam": fine, "row": list(task.items or ())},
        attrs={"large": large},
    )
    return Result(data, setups, {"large, λ = 0": theory})


def claims(result: Result) -> list[Claim]:
    data = result.data
    first, last = data.representation.isel(moment=0), data.representation.isel(moment=1)
    of_task = agreement(last, data.task_representation)
    lazier = (agreement(last, first) - of_task).sel(start="large Gaussian").mean("seed")
    zero = abs(last.sel(start="large, λ = 0") - data.task_representation).max() / data.target.max()
    steep = data.sortby("lam").isel(lam=[-2, -1])
    narrow, lams = steep.late_spread.isel(side=1).values, steep.lam.values
    items = steep.late_representation.isel(lam=-1, side=0)
    moved = data.kernel_distance.mean("seed")
    return [
        paper(
            "Rich: agreement of the final representations with the task's, small Gaussian weights, smallest",
            at_least(of_task.sel(start="small Gaussian").min(), 0.99),
            headline=True,
            panel="a",
        ),
        paper(
            f"Lazy: final agreement with the initial representations minus that with the task's, Gaussian weights of "
            f"standard deviation {data.attrs['large']:g}, mean over draws, smaller of both layers",
            at_least(lazier.min(), 0.1),
            headline=True,
            panel="b",
        ),
        paper(
            "Large weights with λ = 0 are rich: largest gap of representations from V S Vᵀ, U S Uᵀ / largest S",
            at_most(zero, 0.01),
            panel="c",
        ),
        paper(
            "Final distance of the tangent kernel from the initial one: mean from small over large Gaussian weights",
            at_least(moved[0] / moved[1], 2.0),
        ),
        ours("Largest final loss over all initial weights: the task is learned", at_most(data.loss.max(), 1e-6)),
        ours(
            "Balanced weights: largest relative gap of late representations to the closed form, every λ and draw",
            at_most(data.late_gap.max(), 1e-10),
            panel="f",
        ),
        ours(
            "Gap of representations between descent and theory, large weights with λ = 0: order in the learning rate",
            between(data.order_in_lr[-1], 0.9, 1.1),
        ),
        paper(
            "Large λ makes W₂W₂ᵀ a multiple of the identity: p in spread of eigenvalues ∝ λ^(−p), two largest λ",
            between(np.log(narrow[0] / narrow[1]) / np.log(lams[1] / lams[0]), 1.8, 2.0),
            panel="f",
        ),
        paper(
            "Large λ gives W₁ᵀW₁ the structure of the task, V S² Vᵀ: lowest agreement at the largest λ",
            at_least(agreement(items, data.task_squared).min(), 0.99),
        ),
        ours(
            "Large Gaussian weights are not balanced: smallest imbalance, of which exact theory allows 1e-6",
            at_least(data.imbalance.sel(start="large Gaussian").min(), 0.1),
        ),
    ]


def figure(result: Result) -> Figure:
    from matplotlib.lines import Line2D

    data = result.data
    sheet, at = panels("abc;def", row=2.9)
    last = data.representation.isel(moment=1, seed=0, side=0)
    lowest = data.late_representation.isel(draw=0, side=0).sel(lam=data.lam.min())
    maps = {
        "Small Gaussian weights": last.sel(start="small Gaussian"),
        "Large Gaussian weights": last.sel(start="large Gaussian"),
        "Large weights, λ = 0": last.sel(start="large, λ = 0"),
        f"Balanced, λ = {float(lowest.lam):g}".replace("-", "−"): lowest,
    }
    for letter, (title, matrix) in zip("abcd", maps.items(), strict=True):
        at[letter].imshow(matrix / abs(matrix).max(), cmap="PuOr", vmin=-1, vmax=1)
        at[letter].set_xticks([])
        at[letter].set_yticks(range(matrix.sizes["row"]), list(data.row.values) if letter in "ad" else [], size=8)
        at[letter].set_title(title)
    sheet.colorbar(at["c"].images[0], ax=at["c"], label="entry / largest entry", shrink=0.85)
    for name, colour in (("with_task", COLOURS[0]), ("with_start", COLOURS[1])):
        at["e"].plot(data.scale, data[name], "o-", color=colour, ms=5, lw=1.5)
    at["e"].set(title="Large Gaussian weights: lazy", xscale="log", xlabel="standard deviation", ylabel="agreement")
    for side, colour in enumerate(COLOURS[2:4]):
        at["f"].plot(data.lam, data.late_spread[:, side], "o", color=colour, ms=5)
        predicted(at["f"], data.fine_lam, data.predicted_spread.isel(side=side), colour=colour)
    at["f"].set(title="Balance decides the layer", xlabel="balance λ", ylabel="spread of eigenvalues")
    agreements = {"with the task (e)": COLOURS[0], "with the initial one (e)": COLOURS[1]}
    layers = {"W₁ᵀW₁ (f)": COLOURS[2], "W₂W₂ᵀ (f)": COLOURS[3]}
    key(sheet, agreements | layers, kinds=(), marks=[Line2D([], [], color=INK, lw=THIN, ls=DASHES, label="theory (f)")])
    return sheet
