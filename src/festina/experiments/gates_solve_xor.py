"""Gates turn exclusive or into linear problems, one for each point, and each is learned along a closed form.

No linear network does better than loss 1/2 on exclusive or. A gated network with one pathway per point does: each
pathway receives one point, which a linear map fits, and no two pathways are ever open together. With s and d the
moments of a pathway, correlation and input variance,

    da/dt = 2a (s − d a),   s = √(2 + Δ²)/4,   d = (2 + Δ²)/4,   L = ½ − 4sa + 2da² = ½ (1 − a d/s)²

for each, with Δ the margin of a third input (here 0). From an aligned start this is exact, and descent tends to it at
first order in the learning rate. From small random weights the start of a pathway, a = nσ²/2 for its n units, follows
from their distribution, and nothing is fitted. A ReLU network with as many units takes as long: while the loss is still
on its plateau, the input weights of each unit turn towards one point, so that the network makes its own gates.

**What does not reproduce.** Appendix C prints d = 1/8 + Δ²/16, which is s². With it the printed loss falls below zero
and tends to −3/2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import Setup, inits, nets, rules, solve, tasks
from .._figures.style import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._formulas.curves import order
from .._foundation.checks import positive, whole
from ..gates.comparing import times_to
from ..theories.disjoint_pathways import effective_start, time_to_loss
from ._kit.printed_formulas import four_pathways_loss
from ._kit.training import simulate
from ._kit.xor import LEARNED, formulas, gated, moments, selectivity
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

    from .. import Task

THEME, PLACE = "gates", 1
REFERENCE = {"saxe_slides": "“XoR dynamics”", "jarvis2025": "section 3, appendix C"}
QUICK = dict(seeds=3, lr=0.1, points=120)
MARGINS = (0.0, 0.5, 1.0, 2.0)  # at which the moments of pathways are compared with their formulas
MOVING = 0.95  # of the first loss: the end of the plateau


def run(
    *,
    hidden: int = 128,
    variance: float = 4e-8,
    until: float = 48.0,
    lr: float = 0.05,
    points: int = 240,
    seeds: int = 10,
    seed: int = 0,
) -> Result:
    """`variance` is that of the initial weights, times `hidden`."""
    hidden, seeds = whole(hidden, "hidden", least=4), whole(seeds, "seeds")
    scale = np.sqrt(positive(variance, "variance") / hidden)
    task, all_seeds = tasks.xor(0.0), list(range(seed, seed + seeds))
    net, start, random = gated("XoR", hidden), effective_start(hidden // 4, scale), inits.SmallRandom(scale)
    rates = (lr, lr / 2, lr / 4)
    aligned = Setup(task, net, inits.Decoupled(np.sqrt(start)), rules.GradientDescent(lr), until=until, points=points)
    setups = {
        "gated, aligned": aligned,
        "gated, random": aligned.replace(init=random),
        "ReLU, random": aligned.replace(net=nets.MLP(hidden), init=random),
        "linear, random": aligned.replace(net=nets.MLP(hidden, "linear"), init=random),
    }
    theory = solve(aligned, "DisjointPathways", observe="outputs")
    descents = [
        simulate(aligned.replace(rule=rules.GradientDescent(rate)), all_seeds, ["loss", "outputs"]) for rate in rates
    ]
    gaps = np.array([np.abs(descent["outputs"] - theory["outputs"]).max() for descent in descents])
    switched = simulate(setups["gated, random"], all_seeds, ["loss", "outputs"])
    relu = simulate(setups["ReLU, random"], all_seeds, ["loss", "representation", "unit_size"])
    linear = simulate(setups["linear, random"], all_seeds, "loss")
    s, d = (float(moment) for moment in formulas("XoR", 0.0))
    gated_inputs = np.concatenate([opening[:, None] * task.x for opening in net.moments(task).openings], axis=1)
    import xarray

    data = xarray.Dataset(
        {
            "answer": ("sample", task.y[:, 0]),
            "theory": (("time", "sample"), theory["outputs"][..., 0]),
            "aligned": (("seed", "time", "sample"), descents[0]["outputs"][..., 0]),
            "largest_gap": ("rate", gaps),
            "gated_loss": (("seed", "time"), switched["loss"]),
            "relu_loss": (("seed", "time"), relu["loss"]),
            "linear_loss": (("seed", "time"), linear["loss"]),
            "activity": (("seed", "sample", "hidden"), relu["representation"][:, -1]),
            "unit_size": (("seed", "hidden"), relu["unit_size"][:, -1]),
            "selectivity": (("seed", "time"), selectivity(relu["representation"], relu["unit_size"])),
            "predicted_time": ((), time_to_loss(s, target=s / d, start=start, fraction=LEARNED, lr=lr)),
            "printed_loss": ("time", four_pathways_loss(aligned.times, s, s**2, start)),
            "moments": (("margin", "of"), [moments(net, margin) for margin in MARGINS]),
            "formula": (("margin", "of"), [formulas("XoR", margin) for margin in MARGINS]),
            "floor": ("gates", [_least_loss(inputs, task) for inputs in (task.x, gated_inputs)]),
        },
        coords={
            "time": aligned.times,
            "seed": all_seeds,
            "sample": list(task.items or ()),
            "rate": list(rates),
            "margin": list(MARGINS),
            "of": ["s", "d"],
            "gates": ["without", "one per point"],
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
    served = data.activity.argmax("sample").values
    sizes = data.unit_size.values
    shares = np.array([(sizes * (served == item)).sum(axis=1) / sizes.sum(axis=1) for item in range(4)])
    return [
        paper("No linear map does better than 1/2: its least loss", at_least(data.floor[0], 0.5 - 1e-12)),
        ours(
            "… and no trained linear network ends below it: least final loss over seeds",
            at_least(data.linear_loss.isel(time=-1).min(), 0.499),
        ),
        paper("With one gate per point a linear map fits all: its least loss", at_most(data.floor[1], 1e-12)),
        ours(
            "A pathway has s = √(2 + Δ²)/4 and d = (2 + Δ²)/4: largest gap over Δ",
            at_most(np.abs(data.moments - data.formula).max(), 1e-12),
        ),
        ours(
            "Descent tends to the closed form as lr → 0, aligned start: order",
            between(order(data.largest_gap.values)[-1], 0.9, 1.1),
        ),
        paper(
            "From random weights all gated networks learn exclusive or: largest final loss",
            at_most(data.gated_loss.isel(time=-1).max(), 1e-3),
        ),
        paper(
            "… and the time to loss 0.2 is that of the closed form from nσ²/2 (not fitted): relative gap of the mean",
            at_most(abs(switched / data.predicted_time - 1), 0.03),
        ),
        paper(
            "A ReLU network with as many units takes as long: relative gap of the times to loss 0.2",
            at_most(abs(relu / switched - 1), 0.05),
        ),
        paper(
            "Each ReLU unit specialises on one point: final share of its activity on this point, lowest over seeds",
            at_least(data.selectivity.isel(time=-1).min(), 0.97),
        ),
        ours(
            "… and does so before it learns: that share when the loss has fallen by 5 %, lowest",
            at_least(min(by_then), 0.9),
        ),
        ours("… with a quarter of the weight for each point: smallest share", between(shares.min(), 0.24, 0.2501)),
        paper(
            "With d as printed, 1/8 + Δ²/16, the loss does not fall below zero: its last value",
            at_least(data.printed_loss[-1], 0.0),
            fails="the printed d is s² and must be (2 + Δ²)/4 = 4s²; with s² the loss tends to −3/2",
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, ((outputs, losses), (units, printed)) = new_figure(2, 2, width=4.8)
    for k in range(data.sizes["sample"]):
        colour = COLOURS[0] if float(data.answer[k]) > 0 else COLOURS[1]
        trained(outputs, data.time, data.aligned.isel(sample=k), colour=colour)
        predicted(outputs, data.time, data.theory.isel(sample=k), colour=colour)
    outputs.set(xlabel=TIME, ylabel="output for each point", title="one gate per point, aligned start")
    legend_of_kinds(outputs, loc="upper left")
    closed = 0.5 * np.mean((data.answer.values - data.theory.values) ** 2, axis=1)
    for name, colour in (("linear", COLOURS[3]), ("gated", COLOURS[1])):
        trained(losses, data.time, data[f"{name}_loss"], colour=colour, label=name)
    # The line is thin, because a pale one would be hidden below that of the gated networks.
    labels = ["ReLU", *[None] * (data.sizes["seed"] - 1)]
    losses.plot(data.time, data.relu_loss.T, color=COLOURS[0], lw=1, label=labels)
    predicted(losses, data.time, closed, colour=COLOURS[1], label="closed form")
    alignment = losses.twinx()
    alignment.plot(data.time, data.selectivity.mean("seed"), color="0.4", lw=1, ls=":")
    alignment.set(ylim=(0, 1.05), ylabel="activity for one point (dotted)")
    alignment.spines["right"].set_visible(True)
    losses.set(xlabel=TIME, ylabel="loss", title="random weights", ylim=(-0.02, 0.53))
    losses.legend(loc="lower left")
    _draw_units(units, data.isel(seed=0))
    predicted(printed, data.time, closed, colour=COLOURS[1], label="d = (2 + Δ²)/4")
    printed.plot(data.time, data.printed_loss, color=COLOURS[3], ls=":", lw=2, label="d as printed")
    printed.axhline(0, color="0.8", lw=0.8, zorder=0)
    printed.set(xlabel=TIME, ylabel="loss", title="with d as printed the loss falls below zero")
    printed.legend(loc="lower left")
    return sheet


def _draw_units(axes: Axes, data: Dataset) -> None:
    """Final activity of the ReLU units for the four points; units active for the same point are side by side."""
    activity = data.activity.values
    places = np.lexsort((-activity.max(axis=0), activity.argmax(axis=0)))
    image = axes.imshow(activity[:, places], aspect="auto", cmap="Purples", vmin=0, interpolation="nearest")
    axes.set_yticks(range(data.sizes["sample"]), list(data["sample"].values))
    axes.set(
        xlabel="hidden unit of the ReLU network, sorted", ylabel="point", title="ReLU units specialise on one point"
    )
    axes.figure.colorbar(image, ax=axes, shrink=0.8, label="activity in the end")
