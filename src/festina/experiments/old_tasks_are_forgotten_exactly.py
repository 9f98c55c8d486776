"""How much a linear network forgets of an old task follows from the tasks alone and can be computed without training.

A two-layer linear network learns random tasks with white inputs one after another and keeps its weights. The closed
form continues across every switch, since the balance W₂ᵀW₂ − W₁W₁ᵀ = λI does not depend on the task. It predicts the
losses of all tasks at all times, and gradient descent tends to it at first order in the learning rate. If tasks j and k
are learned completely, going from j to k changes the loss of task i by

    ½κ‖Σ_k − Σ_i‖² − ½κ‖Σ_j − Σ_i‖².

For i = j this is the **forgetting** of task j. It does not depend on the initial weights or the width. Here Σ is Σʸˣ/κ,
the map that solves a task, and κ, the input variance, is 1.

Two networks are trained: one with λ = 1, as in the λ-balanced setting, and one with λ = 0 from small weights. From
small weights the slowest modes (s ≈ 0.01) take long, so each task lasts until the closed form has learned them.
Networks with tanh or ReLU units, which no theory here describes, are the control: the formula does not hold for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import inits, nets, solve
from .._figures.overlay import overlay
from .._figures.panels import border, key, mark, panels
from .._figures.style import COLOURS, LIGHT_GREY
from ._kit.labelled import stack
from ._kit.parameters import AtLeast, Count, Each, Number, Positive, Seed, Several, checked
from ._kit.task_sequences import OBSERVED, Shape, in_sets, learned_in_turn, random_sequence, rises
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

THEME, PLACE = "sequences", 1
REFERENCE = {
    "braun2022": "figure 5: continual learning and forgetting",
    "domine2025": "continual learning from λ-balanced weights",
    "saxe_slides": "“Continual learning”",
}
QUICK = dict(shape=(6, 5, 5), small_shape=(6, 5, 5), small_duration=300.0, sets=3, points=30)
# Divisors of the learning rates. From small weights the flow passes close to saddles, so that the error of descent
# falls at first order only at much smaller rates.
FINER = ((1, 2, 4), (1, 16, 32))
CONTROLS = {"tanh": "tanh units", "relu": "ReLU units"}
CAPTION = """
**a** Losses of all tasks while a λ-balanced linear network (λ is the balance of its layers, here 1) learns one task
after another. Grey lines are the switches, the names above say which task is trained, and time is stretched after each
switch. When the network leaves a task, the loss of this task rises: this rise is its forgetting. The theory is the
closed form, with nothing fitted. **b** Forgetting at every switch in several sequences of random tasks, for two linear
networks: the measured rise of the loss against the formula, half the squared distance between the maps Σ and Σ′ that
solve the old and the new task; κ is the input variance, 1. On the grey line both are equal. **c** The same for networks
with tanh and ReLU units, which the formula does not describe.
"""
ALT = """
Each loss falls while its task is trained and rises at the next switch, with the dashed theory on the training. In b all
marks lie on the diagonal; in c they scatter above it.
"""
Widths = Annotated[Shape, Each(AtLeast(1), least=3)]


@checked
def run(
    *,
    shape: Widths = (5, 5, 5),
    lam: Number = 1.0,
    scale: Positive = 0.1,
    lr: Positive = 0.01,
    duration: Positive = 60.0,
    small_shape: Widths = (5, 10, 6),
    small_scale: Positive = 1e-4,
    small_lr: Positive = 0.05,
    small_duration: Positive = 1200.0,
    control_scale: Positive = 0.05,
    samples: Count = 25,
    count: Several = 4,
    sets: Count = 8,
    points: Several = 60,
    seed: Seed = 0,
) -> Result:
    """Train `sets` sequences of `count` random tasks; `shape` is (inputs, hidden units, outputs).

    The parameters that begin with `small` are those of the network with λ = 0; `points` are recorded in every task.
    """
    numbers = [seed * sets + k for k in range(sets)]
    kinds = {
        f"λ = {lam:g}": (shape, inits.Balanced(lam, scale), lr, duration),
        "λ = 0, small": (small_shape, inits.Balanced(0.0, small_scale**2), small_lr, small_duration),
    }
    setups = {
        name: [random_sequence(*kind, samples, count, points, k) for k in numbers] for name, kind in kinds.items()
    }
    theories = {name: solve(sequences[0], "BalancedRiccati", seed=seed) for name, sequences in setups.items()}
    ends = np.arange(count + 1) * points
    learned = {
        name: learned_in_turn(setups[name], theories[name], finer, ends, seed)
        for name, finer in zip(kinds, FINER, strict=True)
    }
    balanced = setups[f"λ = {lam:g}"]
    controls = {
        activation: [
            setup.replace(net=nets.MLP(shape[1], activation=activation), init=inits.SmallRandom(control_scale))
            for setup in balanced
        ]
        for activation in CONTROLS
    }
    # One by one: the compiled program of one seed exists already; four seeds in a batch would need another.
    others = {start: simulate(balanced[0], [start], OBSERVED) for start in range(seed + 1, seed + 5)}
    of_controls = {
        activation: in_sets([simulate(setup, [seed], "task_loss") for setup in sequences], ends)
        for activation, sequences in controls.items()
    }
    data = stack(learned, "net").assign(
        rise_other_starts=stack({start: rises(run, ends) for start, run in others.items()}, "seed"),
        rise_control=stack(of_controls, "control"),
    )
    shown = {name: sequences[0] for name, sequences in (setups | controls).items()}
    return Result(data.assign_coords(task=np.arange(count)), shown, theories)


def _forgotten(rises: DataArray) -> DataArray:
    """The rises of the task that was just left, one for each switch."""
    stages = xarray.DataArray(range(rises.sizes["stage"]), dims="switch_number")
    return rises.isel(stage=stages, task=stages)


def claims(result: Result) -> list[Claim]:
    data = result.data
    orders = {name: _last_order(data.lr, data[name]) for name in ("error", "drift")}
    top = abs(data.rise_predicted).max()
    gap = abs(data.rise_training - data.rise_predicted).max(["set", "stage", "task"]) / top
    spread = abs(data.rise_other_starts - data.rise_predicted.isel(net=0, set=0)).max() / top
    formula = _forgotten(data.rise_predicted.isel(net=0))
    missed = ((_forgotten(data.rise_control) - formula) ** 2).mean(["set", "switch_number"])
    controls = (missed / (formula**2).mean()) ** 0.5
    return [
        paper(
            "Forgetting, λ-balanced weights: largest gap between formula and training / largest change of a loss",
            at_most(gap[0], 1e-6),
            headline=True,
            panel="b",
        ),
        paper(
            "Forgetting, small weights with λ = 0: largest gap between formula and training / largest change of a loss",
            at_most(gap[1], 1e-3),
            panel="b",
        ),
        paper(
            "Losses of all tasks, λ-balanced weights: order in the learning rate of the gap to theory",
            between(orders["error"][0], 0.9, 1.1),
            headline=True,
            panel="a",
        ),
        paper(
            "Losses of all tasks, small weights with λ = 0: order in the learning rate of the gap to theory",
            between(orders["error"][1], 0.9, 1.1),
        ),
        ours(
            "Forgetting, four other λ-balanced initial weights: largest gap to formula / largest change of a loss",
            at_most(spread, 1e-6),
        ),
        paper(
            "The balance is conserved across switches: order in the learning rate of its drift, smaller of two",
            between(orders["drift"].min(), 0.9, 1.2),
        ),
        ours(
            "Control, tanh units: root mean square gap between forgetting and formula / that of the formula",
            at_least(controls.sel(control="tanh"), 0.1),
            panel="c",
        ),
        ours(
            "Control, ReLU units: root mean square gap between forgetting and formula / that of the formula",
            at_least(controls.sel(control="relu"), 0.1),
            panel="c",
        ),
    ]


def _last_order(rates: DataArray, errors: DataArray) -> DataArray:
    """Order in the learning rate, between the two smallest rates."""
    return xarray.apply_ufunc(np.log, errors[:, -2] / errors[:, -1]) / np.log(rates[:, -2] / rates[:, -1])


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("aa;bc")
    _draw_losses(at["a"], data.isel(net=0))
    formula = [_forgotten(data.rise_predicted.isel(net=number)) for number in range(data.sizes["net"])]
    rises = [("b", str(name), formula[k], _forgotten(data.rise_training[k])) for k, name in enumerate(data.net.values)]
    rises += [("c", CONTROLS[n], formula[0], _forgotten(data.rise_control.sel(control=n))) for n in data.control.values]
    marks = []
    for (letter, label, expected, actual), colour, shape in zip(rises, COLOURS[4:], "os^v", strict=True):
        at[letter].plot(expected.values.ravel(), actual.values.ravel(), shape, color=colour, ms=7, mfc="none", mew=1.4)
        marks.append(mark(f"{label} ({letter})", shape, colour=colour, mfc="none"))
    for letter, title in (("b", "Linear networks obey the formula"), ("c", "Nonlinear networks do not")):
        ends = at[letter].get_xlim()
        at[letter].plot(ends, ends, color=LIGHT_GREY, lw=1, zorder=0)
        at[letter].set(title=title, xlabel="formula, ½κ‖Σ − Σ′‖²", ylabel="rise of the loss in training")
    key(sheet, marks=marks)
    return sheet


def _draw_losses(axes: Axes, data: Dataset) -> None:
    """The losses of all tasks, and which task is trained; records are dense after each switch."""
    place = np.linspace(0, data.sizes["task"], data.sizes["record"])
    curves = [data[kind].rename(record="time").assign_coords(time=place) for kind in ("training", "theory")]
    overlay(axes, *curves, by="task", colours=COLOURS[:4])
    top = 1.12 * float(data.training.max())
    for number in range(data.sizes["task"]):
        border(axes, number)
        axes.text(number + 0.5, top, f"task {number + 1}", ha="center", va="top", color=COLOURS[number % 4])
    times = [0.0, *data.switch.values, float(data.record_time[-1])]
    axes.set_xticks(range(len(times)), [f"{time:g}" for time in times])
    axes.set(xlabel="time (τ), stretched after each switch", xlim=(0, data.sizes["task"]), ylabel="loss")
    axes.set(title=f"Losses of tasks learned in turn, {data.net.item()}")
    axes.set_ylim(top=top)
