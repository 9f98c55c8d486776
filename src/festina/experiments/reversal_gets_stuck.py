"""Under gradient flow a balanced two-layer linear network that has learned a task never learns the reverse of it.

The target Σ turns into −Σ. A shallow network relearns at once. With two balanced layers the learned weights have no
component along the reversed modes: each mode decays as −s e^(−2st)/(2 − e^(−2st)) to the saddle at zero, with s its
singular value, and the flow stays there for ever. A simulation leaves the saddle by rounding errors alone, after a time
that depends on the precision. Perturbations that free a network at a predictable time are in
`perturbations_free_a_reversal`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import Setup, inits, nets, rules, solve
from .._figures.overlay import overlay
from .._figures.panels import border, key, panels
from .._figures.style import COLOURS
from .._formulas.reversal import unlearned
from ._kit import time_grids
from ._kit.labelled import labelled, largest, stack, table, time_at
from ._kit.parameters import AtLeast, Count, Positive, Positives, Seed, checked
from ._kit.reversed_task import ReversedTask
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEME, PLACE = "sequences", 2
REFERENCE = {"braun2022": "figure 6: reversal learning", "saxe_slides": "“Reversal learning”"}
QUICK = dict(hidden=4, starts=2, points=401)
PRECISIONS = ("float64", "float32")
CAPTION = """
A linear network has learned a random task completely; at time 0 all its targets change sign. **a** Loss of the reversed
task, for a network without a hidden layer and for networks with one, trained in two precisions, one line for each set
of learned weights. The grey line is the loss at the saddle, where the map of the network is zero; the theory, exact for
gradient flow, stays there. **b** Strength of every mode of the reversed task over its target, with one hidden layer, in
theory and in a network trained in float64, which rounding errors free in the end.
"""
ALT = """
Without a hidden layer the loss falls to zero at once. With a hidden layer the loss falls to the saddle and stays on a
plateau, which networks trained in float32 leave earlier than those in float64, and the theory never.
"""
SHALLOW, DOUBLE, SINGLE = COLOURS[2], COLOURS[0], COLOURS[1]


@checked
def run(
    *,
    singular_values: Positives = (1.4, 1.0, 0.75, 0.45),
    hidden: Count = 6,
    samples: Count = 16,
    scale: Positive = 0.25,
    lr: Positive = 0.05,
    until: Positive = 80.0,
    points: Annotated[int, AtLeast(10)] = 801,
    starts: Count = 4,
    seed: Seed = 0,
) -> Result:
    """`starts`: how many learned weights are reversed; `scale`: of the weights from which the first task is learned."""
    net, deep = nets.DeepLinear(()), nets.DeepLinear(hidden)
    reversal = ReversedTask(singular_values, samples, deep, inits.ZeroBalanced(scale), seed)
    times, rule = time_grids.even(until, points, lr), rules.GradientDescent(lr)
    shallow = Setup(reversal.after, net, inits.Given([reversal.before.target()]), rule, times=times)
    learned = [shallow.replace(net=deep, init=inits.Given(reversal.learned(deep, seed + k))) for k in range(starts)]
    theory = solve(learned[0], "BalancedRiccati", observe=["map", "loss"])
    runs = {p: [simulate(s.replace(precision=p), [seed], ["loss", "map"]) for s in learned] for p in PRECISIONS}
    losses = {
        p: stack({k: labelled(run, "loss", seed=0) for k, run in enumerate(of)}, "start") for p, of in runs.items()
    }
    data = xarray.Dataset(
        {
            "modes_theory": reversal.strengths(theory),
            "modes_training": reversal.strengths(runs["float64"][0]),
            "formula": table(unlearned(times, reversal.values), "time", "mode"),
            "loss_theory": labelled(theory, "loss"),
            "loss_training": stack(losses, "precision"),
            "shallow_loss": labelled(simulate(shallow, [seed], "loss"), "loss", seed=0),
        },
        attrs={"note": theory.provenance["note"], "saddle_loss": reversal.saddle_loss},
    )
    return Result(data, {"reversed from the learned weights": learned[0], "shallow": shallow}, {"reversed": theory})


def claims(result: Result) -> list[Claim]:
    data = result.data
    half = data.saddle_loss / 2
    shallow = float(time_at(data.shallow_loss, half, falling=True)) / (0.5 * np.log(8))
    escape = time_at(data.loss_training, half, falling=True)
    ratio = escape.sel(precision="float64") / escape.sel(precision="float32")
    count = data.sizes["mode"]
    return [
        paper(
            f"Number of the {count} modes that gradient flow never learns after the reversal",
            at_least(data.attrs["note"].count("(s = "), count),
            headline=True,
            panel="b",
        ),
        paper(
            "Loss of gradient flow, closed form, at the last time: distance from the loss at the saddle, ½ Σ s²",
            at_most(abs(float(data.loss_theory[-1]) - data.saddle_loss), 1e-9),
            headline=True,
            panel="a",
        ),
        ours(
            "Strengths of the modes, closed form, against −s e^(−2st)/(2 − e^(−2st)): largest gap",
            at_most(largest(data.modes_theory - data.formula), 1e-10),
            panel="b",
        ),
        paper(
            "Control, no hidden layer: time to half of the loss at the saddle, over the closed form ½ ln 8",
            between(shallow, 0.9, 1.1),
            panel="a",
        ),
        ours(
            "Time at which rounding errors free the network from the saddle, float64 over float32: smallest ratio",
            at_least(ratio.min(), 1.5),
            panel="a",
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab", row=3.3)
    colours = {"float64": DOUBLE, "float32": SINGLE}
    overlay(at["a"], data.loss_training, by="precision", colours=colours)
    overlay(at["a"], data.shallow_loss, colours=SHALLOW)
    overlay(at["a"], theory=data.loss_theory, colours=DOUBLE)
    border(at["a"], data.saddle_loss, "saddle", across=True)
    target = data.mode
    overlay(at["b"], data.modes_training / target, data.modes_theory / target, colours=DOUBLE)
    at["a"].set(ylabel="loss of the reversed task", ylim=(0, None), title="With a hidden layer learning gets stuck")
    at["b"].set(ylabel="strength of the mode / target", title="In theory every mode stays at zero")
    for axes in at.values():
        axes.set_xlabel("time since the reversal (τ)")
    key(sheet, {"no hidden layer": SHALLOW, "one hidden layer, float64": DOUBLE, "one hidden layer, float32": SINGLE})
    return sheet
