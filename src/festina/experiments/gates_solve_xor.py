"""Gates split exclusive or into one linear problem per point, each learned along a closed form.

No linear network does better than loss 1/2 on exclusive or. A gated network with one pathway per point does: each
pathway receives one point, which a linear map fits, and no two pathways are ever open together. With s the correlation
and d the input variance of a pathway, its strength a obeys

    da/dt = 2a (s − d a),   s = √(2 + Δ²)/4,   d = (2 + Δ²)/4,   L = ½ − 4sa + 2da² = ½ (1 − a d/s)²

with Δ the margin of a third input (here 0). From aligned initial weights this is exact, and gradient descent tends to
it at first order in the learning rate. From small random weights the initial strength of a pathway, a = nσ²/2 for its n
units, follows from their distribution, and nothing is fitted. A ReLU network with as many units takes as long: while
the loss is still on its plateau, the input weights of each unit turn towards one point, so that the network makes its
own gates.

**What does not reproduce.** Appendix C prints d = 1/8 + Δ²/16, which is s². With it the printed loss falls below zero
and tends to −3/2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import xarray

from .. import Setup, inits, nets, rules, solve, tasks
from .._figures.overlay import heat, overlay
from .._figures.panels import border, key, panels
from .._figures.style import COLOURS
from .._formulas.curves import order
from ..gates.comparing import times_to
from ..theories._exclusive_or import pathway_moments
from ..theories.disjoint_pathways import effective_start, time_to_loss
from ._kit.labelled import labelled, largest, table
from ._kit.parameters import AtLeast, Count, Positive, Seed, Several, checked
from ._kit.printed_formulas import four_pathways_loss
from ._kit.training import simulate
from ._kit.xor import LEARNED, gated, moments, selectivity
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .. import Task

THEME, PLACE = "gates", 1
REFERENCE = {"saxe_slides": "“XoR dynamics”", "jarvis2025": "section 3, appendix C"}
QUICK = dict(seeds=3, lr=0.1, points=120)
MARGINS = (0.0, 0.5, 1.0, 2.0)  # at which the moments of pathways are compared with their formulas
MOVING = 0.95  # of the first loss: the end of the plateau
CAPTION = """
**a** Outputs for the four points of exclusive or while a gated linear network learns, with one pathway per point and
aligned initial weights; the targets are 1 and −1. **b** Loss from small random weights, one line for each seed: a
linear network stays at 1/2, gated and ReLU networks (dots) learn together. **c** Share of the activity of a ReLU unit
that is for one point, mean over units weighted by size; 1/4 would be the same for all points. The grey line is the time
at which the mean loss in b has fallen by 5 %. **d** Activity of every ReLU unit for the four points after training,
sorted by point, one seed. The theory of a is exact, that of b follows from the distribution of the weights, without a
fit.
"""
ALT = """
The outputs leave zero together and rise or fall to their targets as sigmoids, on which the theory lies. The loss of
linear networks stays level; that of gated and ReLU networks drops at the same time, after ReLU units have come to be
active for one point each: in the map every unit has a single bright entry.
"""
COLOUR_OF = dict(zip(("ReLU", "linear", "gated"), (COLOURS[0], COLOURS[3], COLOURS[2]), strict=True))
ONE, ZERO = COLOURS[1], COLOURS[4]


@checked
def run(
    *,
    hidden: Annotated[int, AtLeast(4)] = 128,
    variance: Positive = 4e-8,
    until: Positive = 48.0,
    lr: Positive = 0.05,
    points: Several = 240,
    seeds: Count = 10,
    seed: Seed = 0,
) -> Result:
    """`variance` is that of the initial weights, times `hidden`."""
    scale, task, draws = np.sqrt(variance / hidden), tasks.xor(0.0), range(seed, seed + seeds)
    net, start, random = gated("XoR", hidden), effective_start(hidden // 4, scale), inits.SmallRandom(scale)
    aligned = Setup(task, net, inits.Decoupled(np.sqrt(start)), rules.GradientDescent(lr), until=until, points=points)
    setups = {
        "gated, aligned": aligned,
        "gated, random": aligned.replace(init=random),
        "ReLU, random": aligned.replace(net=nets.MLP(hidden), init=random),
        "linear, random": aligned.replace(net=nets.MLP(hidden, "linear"), init=random),
    }
    theory = solve(aligned, "DisjointPathways", observe=["outputs", "loss"])
    slower = [aligned.replace(rule=rules.GradientDescent(lr / k)) for k in (1, 2, 4)]
    descents = [simulate(setup, draws, ["loss", "outputs"]) for setup in slower]
    gaps = [np.abs(descent["outputs"] - theory["outputs"]).max() for descent in descents]
    switched = simulate(setups["gated, random"], draws, ["loss", "outputs"])
    relu = simulate(setups["ReLU, random"], draws, ["loss", "representation", "unit_size"])
    linear = simulate(setups["linear, random"], draws, "loss")
    s, d = pathway_moments("XoR", 0.0)
    split = np.concatenate([opening[:, None] * task.x for opening in net.moments(task).openings], axis=1)
    activity = labelled(relu, "representation")
    data = xarray.Dataset(
        {
            "answer": table(task.y[:, 0], "sample"),
            "theory": labelled(theory, "outputs")[..., 0],
            "aligned": labelled(descents[0], "outputs")[..., 0],
            "theory_loss": labelled(theory, "loss"),
            "order": order(np.array(gaps))[-1],
            "gated_loss": labelled(switched, "loss"),
            "relu_loss": labelled(relu, "loss"),
            "linear_loss": labelled(linear, "loss"),
            "activity": activity.isel(time=-1, drop=True),
            "unit_size": labelled(relu, "unit_size").isel(time=-1, drop=True).rename(unit="hidden"),
            "selectivity": table(selectivity(relu["representation"], relu["unit_size"]), "seed", "time"),
            "predicted_time": time_to_loss(s, target=s / d, start=start, fraction=LEARNED, lr=lr),
            "printed_loss": table(four_pathways_loss(aligned.times, s, s**2, start), "time"),
            "moments": table([moments(net, margin) for margin in MARGINS], "margin", "of"),
            "formula": table([pathway_moments("XoR", margin) for margin in MARGINS], "margin", "of"),
            "floor": table([_least_loss(inputs, task) for inputs in (task.x, split)], "gates"),
        },
    )
    return Result(data, setups, {"gated, aligned": theory})


def _least_loss(inputs: np.ndarray, task: Task) -> float:
    """The least loss of a linear map of these inputs."""
    left = task.y - inputs @ np.linalg.lstsq(inputs, task.y, rcond=None)[0]
    return 0.5 * np.mean(np.sum(left**2, axis=1))


def claims(result: Result) -> list[Claim]:
    data = result.data
    times = data.time.values
    switched, relu = (times_to(times, data[f"{net}_loss"].values, LEARNED).mean() for net in ("gated", "relu"))
    moving = times_to(times, data.relu_loss.values, MOVING)
    by_then = [np.interp(when, times, curve) for when, curve in zip(moving, data.selectivity.values, strict=True)]
    served = data.activity.argmax("sample")
    shares = [(data.unit_size * (served == item)).sum("hidden") / data.unit_size.sum("hidden") for item in range(4)]
    end = data.isel(time=-1)
    late = abs(switched / float(data.predicted_time) - 1)
    gap_of_times = abs(relu / switched - 1)
    return [
        paper("Least loss of a linear map with one gate per point", at_most(data.floor[1], 1e-12), headline=True),
        paper(
            "A ReLU network against a gated one with as many units: relative gap of the times to loss 0.2",
            at_most(gap_of_times, 0.05),
            headline=True,
            panel="b",
        ),
        paper("Least loss of a linear map of exclusive or", at_least(data.floor[0], 0.5 - 1e-12)),
        ours("Final loss of linear networks: least over seeds", at_least(end.linear_loss.min(), 0.499), panel="b"),
        ours(
            "s and d of a pathway against √(2 + Δ²)/4 and (2 + Δ²)/4: largest gap over Δ",
            at_most(largest(data.moments - data.formula), 1e-12),
        ),
        ours(
            "Gap between descent and the closed form, aligned: order in the learning rate",
            between(data.order, 0.9, 1.1),
        ),
        paper(
            "Final loss of gated networks from random weights: largest", at_most(end.gated_loss.max(), 1e-3), panel="b"
        ),
        paper(
            "Time to loss 0.2 from random weights against the closed form from nσ²/2 (not fitted): gap of the mean",
            at_most(late, 0.03),
            panel="b",
        ),
        paper(
            "Share of the activity of ReLU units for one point, after training: lowest over seeds",
            at_least(end.selectivity.min(), 0.97),
            panel="c",
        ),
        ours(
            "Share of the activity of ReLU units for one point, when the loss has fallen by 5 %: lowest over seeds",
            at_least(min(by_then), 0.9),
            panel="c",
        ),
        ours(
            "Share of the weight of ReLU units for each point: smallest",
            between(np.min(shares), 0.24, 0.2501),
            panel="d",
        ),
        paper(
            "With d as printed, 1/8 + Δ²/16, the loss does not fall below zero: its last value",
            at_least(end.printed_loss, 0.0),
            fails="the printed d is s² and must be (2 + Δ²)/4 = 4s²; with s² the loss tends to −3/2",
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab;cd")
    by_answer = [ONE if answer > 0 else ZERO for answer in data.answer.values]
    overlay(at["a"], data.aligned, data.theory, by="sample", colours=by_answer)
    at["a"].set(ylabel="output for each point", title="One pathway per point, aligned weights")
    for name in ("linear", "gated"):
        overlay(at["b"], data[f"{name}_loss"], colours=COLOUR_OF[name])
    overlay(at["b"], theory=data.theory_loss, colours=COLOUR_OF["gated"])
    # Dots, because a line would be hidden below those of the gated networks.
    dots: dict[str, Any] = dict(color=COLOUR_OF["ReLU"], ls="", marker="o", ms=3.5, markevery=6, zorder=4)
    at["b"].plot(data.time, data.relu_loss.transpose("time", "seed"), **dots)
    at["b"].set(ylabel="loss", title="Small random weights: ReLU learns like gated", ylim=(-0.02, 0.53))
    overlay(at["c"], data.selectivity, colours=COLOUR_OF["ReLU"])
    mean = data.relu_loss.mean("seed")
    border(at["c"], float(data.time[int((mean < MOVING * mean[0]).argmax("time"))]))
    at["c"].set(ylabel="share of the activity", ylim=(0, 1.05), title="ReLU units choose a point early")
    one = data.activity.isel(seed=0)
    places = np.lexsort((-one.max("sample").values, one.argmax("sample").values))
    heat(at["d"], one.isel(hidden=places), rows="sample", columns="hidden", label="activity", colours="Purples")
    at["d"].images[0].set_interpolation("nearest")
    at["d"].set(xlabel="hidden unit of the ReLU network, sorted", ylabel="point", title="Each unit serves one point")
    key(sheet, {"target 1": ONE, "target −1": ZERO} | {f"{name} network": c for name, c in COLOUR_OF.items()})
    return sheet
