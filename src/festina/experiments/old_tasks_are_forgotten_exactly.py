"""How much a linear network forgets of its old tasks follows from the tasks alone and is known without training.

A two-layer linear network learns random tasks with white inputs one after another and keeps its weights. The closed
form continues across every switch, since the balance W₂ᵀW₂ − W₁W₁ᵀ = λI does not depend on the task. It predicts the
losses of all tasks at all times, and gradient descent tends to it at first order in the learning rate. If both tasks
are learned to the end, going from task j to task k changes the loss of task i by

    ½κ‖Σ_k − Σ_i‖² − ½κ‖Σ_j − Σ_i‖².

For i = j this is the forgetting of task j. It does not depend on the initial weights or the width. Here Σ is Σʸˣ/κ, and
κ, the input variance, is 1.

Two networks are trained: one with λ = 1, as in the λ-balanced setting, and one with λ = 0 from small weights. From
small weights the slowest modes (s ≈ 0.01) take long, so each task lasts until the closed form has learned them.
Networks with tanh or ReLU units, which no theory here covers, are the control: the same formula does not hold for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from .. import Init, Setup, Task, Trajectory, inits, nets, rules, solve, tasks
from .._figures.style import COLOURS, legend_of_kinds, new_figure
from .._foundation.checks import positive, whole
from ._kit.forgetting_panels import CONTROLS, draw_forgetting, draw_losses, forgotten_of
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataArray


THEME, PLACE = "sequences", 1
REFERENCE = {
    "braun2022": "figure 5: continual learning and forgetting",
    "domine2025": "continual learning from λ-balanced weights",
    "saxe_slides": "“Continual learning”",
}
QUICK = dict(shape=(6, 5, 5), small_shape=(6, 5, 5), small_duration=300.0, sets=3, points=30)
OBSERVED = ("task_loss", "balance_drift")
# Divisors of the learning rates. From small weights the flow passes close to saddles, so that the error of descent
# falls at first order only at much smaller rates.
FINER = ((1, 2, 4), (1, 16, 32))


def run(
    *,
    shape: Sequence[int] = (5, 5, 5),
    lam: float = 1.0,
    scale: float = 0.1,
    lr: float = 0.01,
    duration: float = 60.0,
    small_shape: Sequence[int] = (5, 10, 6),
    small_scale: float = 1e-4,
    small_lr: float = 0.05,
    small_duration: float = 1200.0,
    control_scale: float = 0.05,
    samples: int = 25,
    count: int = 4,
    sets: int = 8,
    points: int = 60,
    seed: int = 0,
) -> Result:
    """Train `sets` sequences of `count` random tasks; `shape` is (inputs, hidden units, outputs).

    The parameters that begin with `small` are those of the network with λ = 0; `points` are recorded in every task.
    """
    count, sets, points = whole(count, "count", least=2), whole(sets, "sets"), whole(points, "points", least=2)
    kinds = {
        f"λ = {lam:g}": (shape, inits.Balanced(lam, scale), positive(lr, "lr"), duration),
        "λ = 0, small": (
            small_shape,
            inits.Balanced(0.0, small_scale**2),
            positive(small_lr, "small_lr"),
            small_duration,
        ),
    }
    setups = {
        name: [_setup(*kind, samples, count, points, seed * sets + k) for k in range(sets)]
        for name, kind in kinds.items()
    }
    theories = {name: solve(sequences[0], "BalancedRiccati", seed=seed) for name, sequences in setups.items()}
    ends = np.arange(count + 1) * points
    parts: dict[str, list] = {name: [] for name in ("theory", "training", "errors", "drifts", "rise")}
    for (name, sequences), finer_by in zip(setups.items(), FINER, strict=True):
        runs = [simulate(setup, [seed], OBSERVED) for setup in sequences]
        finer = [runs[0], *(_trained_finer(sequences[0], seed, factor) for factor in finer_by[1:])]
        exact = theories[name]["task_loss"]
        parts["theory"].append(exact)
        parts["training"].append(runs[0]["task_loss"][0])
        parts["errors"].append([np.abs(run["task_loss"][0] - exact).max() for run in finer])
        parts["drifts"].append([run["balance_drift"].max() for run in finer])
        parts["rise"].append([_rises(run["task_loss"][0], ends) for run in runs])
    first_setups = [sequences[0] for sequences in setups.values()]
    balanced = next(iter(setups.values()))
    controls = {
        activation: [
            setup.replace(net=nets.MLP(shape[1], activation=activation), init=inits.SmallRandom(control_scale))
            for setup in balanced
        ]
        for activation in CONTROLS
    }
    starts = list(range(seed + 1, seed + 5))
    # One by one: the compiled program of one seed exists already; four seeds in a batch would need another.
    others = [simulate(balanced[0], [start], OBSERVED)["task_loss"][0] for start in starts]
    import xarray

    data = xarray.Dataset(
        {
            "loss_theory": (("net", "time", "task"), np.stack(parts["theory"])),
            "loss_training": (("net", "time", "task"), np.stack(parts["training"])),
            "time_of_net": (("net", "time"), np.stack([first.times for first in first_setups])),
            "switch": (
                ("net", "switch_number"),
                np.stack([first.task.starts[1:] for first in first_setups]),
            ),
            "error": (("net", "rate"), np.array(parts["errors"])),
            "balance_drift": (("net", "rate"), np.array(parts["drifts"])),
            "lr": (
                ("net", "rate"),
                np.array([[kind[2] / k for k in by] for kind, by in zip(kinds.values(), FINER, strict=True)]),
            ),
            "rise_predicted": (
                ("net", "set", "stage", "task"),
                np.stack([[_rises_of_targets(setup) for setup in sequences] for sequences in setups.values()]),
            ),
            "rise_training": (("net", "set", "stage", "task"), np.array(parts["rise"])),
            "rise_other_starts": (("seed", "stage", "task"), np.stack([_rises(loss, ends) for loss in others])),
            "rise_control": (
                ("control", "set", "stage", "task"),
                np.stack(
                    [
                        [_rises(simulate(setup, [seed], "task_loss")["task_loss"][0], ends) for setup in sequences]
                        for sequences in controls.values()
                    ]
                ),
            ),
        },
        coords={"net": list(kinds), "seed": starts, "control": list(CONTROLS)},
    )
    return Result(
        data,
        {name: sequences[0] for name, sequences in (setups | controls).items()},
        theories,
    )


def _setup(
    shape: Sequence[int],
    init: Init,
    lr: float,
    duration: float,
    samples: int,
    count: int,
    points: int,
    number: int,
) -> Setup:
    """A sequence of random tasks, recorded at the same number of times in each task, and at every switch."""
    d_in, hidden, d_out = shape
    random = [tasks.regression(d_in=d_in, d_out=d_out, samples=samples, seed=number * count + k) for k in range(count)]
    total = max(round(positive(duration, "duration") / lr), points)
    # Most happens just after a switch.
    steps = np.maximum(np.arange(points), np.round(total * (np.arange(points) / points) ** 2))
    times = lr * np.append((steps + total * np.arange(count)[:, None]).ravel(), total * count)
    sequence = tasks.sequence(random, lr * total)
    return Setup(sequence, nets.DeepLinear(hidden), init, rules.GradientDescent(lr), times=times)


def _trained_finer(setup: Setup, seed: int, factor: int) -> Trajectory:
    """The same training at a learning rate that is smaller by a factor."""
    rule = rules.GradientDescent(setup.rule.lr / factor)
    return simulate(setup.replace(rule=rule), [seed], OBSERVED)


def _rises(losses: Float[np.ndarray, "time task"], ends: Sequence[int] | np.ndarray) -> Float[np.ndarray, "stage task"]:
    """How much the loss of each task rises in each stage but the first; `ends` are the records at the switches."""
    return np.diff(losses[ends], axis=0)[1:]


def _rises_of_targets(setup: Setup) -> Float[np.ndarray, "stage task"]:
    """The same rises if all stages end in their targets: neither training nor the initial weights enter."""
    sequence = setup.task.tasks

    def loss(task: Task, target: np.ndarray) -> float:
        error = target - task.target()
        return 0.5 * np.sum((error @ task.cov_x) * error)

    after = np.array([[loss(task, learned.target()) for task in sequence] for learned in sequence])
    return np.diff(after, axis=0)


def claims(result: Result) -> list[Claim]:
    data = result.data
    balanced = data.isel(net=0)
    orders, drift_orders = (_last_order(data.lr.values, data[name].values) for name in ("error", "balance_drift"))
    largest = float(np.abs(data.rise_predicted).max())
    gap = np.abs(data.rise_training - data.rise_predicted).max(("set", "stage", "task")) / largest
    spread = np.abs(data.rise_other_starts - balanced.rise_predicted.isel(set=0)).max() / largest
    controls = [_relative_gap(data.rise_control.isel(control=k), balanced.rise_predicted) for k in range(len(CONTROLS))]
    return [
        paper(
            "The closed form predicts the losses of all tasks across all switches, λ-balanced weights: "
            "order in lr of the gap to descent",
            between(orders[0], 0.9, 1.1),
        ),
        paper("… small weights with λ = 0: the same order", between(orders[1], 0.9, 1.1)),
        paper(
            "Forgetting follows from the tasks alone, λ-balanced weights: largest gap to training / "
            "largest change of a loss",
            at_most(gap[0], 1e-6),
        ),
        paper("… small weights with λ = 0, slow modes included: the same gap", at_most(gap[1], 1e-3)),
        ours("The initial weights do not matter: the same gap for four other λ-balanced starts", at_most(spread, 1e-6)),
        paper(
            "The balance is conserved across switches: smallest order in lr of its drift",
            between(drift_orders.min(), 0.9, 1.2),
        ),
        ours(
            "Control without theory: forgetting of a tanh network, relative gap (rms) to the linear formula",
            at_least(controls[0], 0.1),
        ),
        ours("Control without theory: the same gap of a ReLU network", at_least(controls[1], 0.1)),
    ]


def _last_order(
    rates: Float[np.ndarray, "net rate"], errors: Float[np.ndarray, "net rate"]
) -> Float[np.ndarray, " net"]:
    """Order in the learning rate, between the two smallest rates."""
    return np.log(errors[:, -2] / errors[:, -1]) / np.log(rates[:, -2] / rates[:, -1])


def _relative_gap(measured: DataArray, expected: DataArray) -> float:
    """Root mean squared gap of the forgetting, relative to the root mean square of what is expected."""
    forgotten, formula = forgotten_of(measured), forgotten_of(expected)
    return float(np.sqrt(np.mean((forgotten - formula) ** 2) / np.mean(formula**2)))


def figure(result: Result) -> Figure:
    data = result.data
    sheet, axes = new_figure(2, 2, width=4.8)
    for panel, number in zip(axes[0], range(2), strict=True):
        draw_losses(panel, data.isel(net=number))
    legend_of_kinds(axes[0, 0], loc="lower left", ncols=2)
    draw_forgetting(axes[1, 0], data)
    errors = axes[1, 1]
    share = (data.lr / data.lr.isel(rate=0)).values
    for k, name in enumerate(data.net.values):
        errors.loglog(share[k], data.error[k], "o", color=COLOURS[k], label=f"{name}, lr ≤ {float(data.lr[k, 0]):g}")
        errors.loglog(share[k], float(data.error[k, -1]) * share[k] / share[k, -1], color=COLOURS[k], lw=1, ls=":")
    errors.minorticks_off()
    errors.set(
        xlabel="lr / largest lr",
        ylabel="largest error of a loss",
        title="gradient descent tends to the closed form",
    )
    errors.plot([], [], color="0.4", lw=1, ls=":", label="∝ lr")
    errors.set_ylim(top=20 * float(data.error.max()))
    errors.legend(loc="upper left")
    return sheet
