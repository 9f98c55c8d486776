"""How much of its old tasks a linear network forgets follows from the tasks alone, and is known without training.

A two-layer linear network learns random tasks with white inputs one after another and keeps its weights. The closed
form goes on across every switch, since the balance W₂ᵀW₂ − W₁W₁ᵀ = λI does not know of the task: the losses of all
tasks are predicted at all times, and descent tends to them at first order in the learning rate. Where both tasks
are learned to the end, going from task j to task k changes the loss of task i by

    ½κ‖Σ_k − Σ_i‖² − ½κ‖Σ_j − Σ_i‖²,

for i = j its forgetting: whatever the start and the width. Σ is Σʸˣ/κ here, and κ, the input variance, is 1.

Two networks: λ = 1 as in the λ-balanced setting, and λ = 0 from small weights. From small weights the slowest modes
(s ≈ 0.01) take long: the tasks last until the closed form has learned them. Networks with
tanh or ReLU units, which no theory here covers, are the control: the same formula does not hold for them.
"""

from __future__ import annotations

import numpy as np

from .. import inits, nets, rules, tasks
from .._noun import positive, whole
from .._plot import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from .._solve import solve

REFERENCE = {
    "braun2022": "figure 5: continual learning and forgetting",
    "domine2025": "continual learning from λ-balanced weights",
    "saxe_slides": "“Continual learning”",
}
QUICK = dict(shape=(6, 5, 5), small_shape=(6, 5, 5), small_duration=300.0, sets=3, points=30)
OBSERVED = ("task_loss", "balance_drift")
# Divisors of the learning rates. From small weights the flow passes close to saddles, where descent tends to it late.
FINER = ((1, 2, 4), (1, 16, 32))
CONTROLS = {"tanh": "tanh", "relu": "ReLU"}


def run(
    *,
    shape=(5, 5, 5),
    lam=1.0,
    scale=0.1,
    lr=0.01,
    duration=60.0,
    small_shape=(5, 10, 6),
    small_scale=1e-4,
    small_lr=0.05,
    small_duration=1200.0,
    control_scale=0.05,
    samples=25,
    count=4,
    sets=8,
    points=60,
    seed=0,
) -> Result:
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
    theories = {name: solve(made[0], "BalancedRiccati", seed=seed) for name, made in setups.items()}
    ends = np.arange(count + 1) * points
    parts: dict[str, list] = {name: [] for name in ("theory", "training", "errors", "drifts", "rise")}
    for (name, made), finer_by in zip(setups.items(), FINER, strict=True):
        runs = [simulate(setup, [seed], OBSERVED) for setup in made]
        finer = [runs[0], *(_trained_finer(made[0], seed, factor) for factor in finer_by[1:])]
        exact = theories[name]["task_loss"]
        parts["theory"].append(exact)
        parts["training"].append(runs[0]["task_loss"][0])
        parts["errors"].append([np.abs(run["task_loss"][0] - exact).max() for run in finer])
        parts["drifts"].append([run["balance_drift"].max() for run in finer])
        parts["rise"].append([_rises(run["task_loss"][0], ends) for run in runs])
    first = next(iter(setups))
    controls = {
        activation: [
            setup.replace(net=nets.MLP(shape[1], activation=activation), init=inits.SmallRandom(control_scale))
            for setup in setups[first]
        ]
        for activation in CONTROLS
    }
    starts = list(range(seed + 1, seed + 5))
    # One by one: these share what is compiled already, a batch of four does not.
    others = [simulate(setups[first][0], [start], OBSERVED)["task_loss"][0] for start in starts]
    import xarray

    data = xarray.Dataset(
        {
            "loss_theory": (("net", "time", "task"), np.stack(parts["theory"])),
            "loss_training": (("net", "time", "task"), np.stack(parts["training"])),
            "time_of_net": (("net", "time"), np.stack([made[0].times for made in setups.values()])),
            "switch": (("net", "switch_number"), np.stack([made[0].task.starts[1:] for made in setups.values()])),
            "error": (("net", "rate"), np.array(parts["errors"])),
            "balance_drift": (("net", "rate"), np.array(parts["drifts"])),
            "lr": (
                ("net", "rate"),
                np.array([[kind[2] / k for k in by] for kind, by in zip(kinds.values(), FINER, strict=True)]),
            ),
            "rise_predicted": (
                ("net", "set", "stage", "task"),
                np.stack([[_rises_of_targets(setup) for setup in made] for made in setups.values()]),
            ),
            "rise_training": (("net", "set", "stage", "task"), np.array(parts["rise"])),
            "rise_other_starts": (("seed", "stage", "task"), np.stack([_rises(loss, ends) for loss in others])),
            "rise_control": (
                ("control", "set", "stage", "task"),
                np.stack(
                    [
                        [_rises(simulate(setup, [seed], "task_loss")["task_loss"][0], ends) for setup in made]
                        for made in controls.values()
                    ]
                ),
            ),
        },
        coords={"net": list(kinds), "seed": starts, "control": list(CONTROLS)},
    )
    return Result(
        data,
        {name: made[0] for name, made in (setups | controls).items()},
        theories,
    )


def _setup(shape, init, lr, duration, samples, count, points, number) -> Setup:
    """One sequence of random tasks, recorded at the same number of times in each, and at every switch."""
    d_in, hidden, d_out = shape
    drawn = [tasks.regression(d_in=d_in, d_out=d_out, samples=samples, seed=number * count + k) for k in range(count)]
    total = max(round(positive(duration, "duration") / lr), points)
    # Most happens just after a switch.
    steps = np.maximum(np.arange(points), np.round(total * (np.arange(points) / points) ** 2))
    times = lr * np.append((steps + total * np.arange(count)[:, None]).ravel(), total * count)
    sequence = tasks.sequence(drawn, lr * total)
    return Setup(sequence, nets.DeepLinear(hidden), init, rules.GradientDescent(lr), times=times)


def _trained_finer(setup, seed, factor):
    rule = rules.GradientDescent(setup.rule.lr / factor)
    return simulate(setup.replace(rule=rule), [seed], OBSERVED)


def _rises(losses, ends) -> np.ndarray:
    """How much the loss of each task rises in each stage but the first; (stage, task)."""
    return np.diff(losses[ends], axis=0)[1:]


def _rises_of_targets(setup) -> np.ndarray:
    """The same where all stages end in their targets: no training and no start enters; (stage, task)."""
    sequence = setup.task.tasks

    def loss(task, target):
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
        Claim.between(
            "Closed form across all switches, λ-balanced, losses of all tasks: order in lr of the gap to descent",
            orders[0],
            0.9,
            1.1,
            source="paper",
        ),
        Claim.between("… and from small weights with λ = 0", orders[1], 0.9, 1.1, source="paper"),
        Claim.at_most(
            "Forgetting from the tasks alone, λ-balanced: largest gap to training / largest change of a loss",
            gap[0],
            1e-6,
            source="paper",
        ),
        Claim.at_most("… and from small weights with λ = 0, slow modes included", gap[1], 1e-3, source="paper"),
        Claim.at_most("The start does not matter: the same gap, four other starts, λ-balanced", spread, 1e-6),
        Claim.between(
            "The balance is conserved across switches: smallest order in lr of its drift",
            drift_orders.min(),
            0.9,
            1.2,
            source="paper",
        ),
        Claim.at_least(
            "Control, not covered: forgetting of a tanh network, relative gap to the linear formula (rms)",
            controls[0],
            0.1,
        ),
        Claim.at_least("Control, not covered: the same of a ReLU network", controls[1], 0.1),
    ]


def _last_order(rates, errors) -> np.ndarray:
    """Between the two smallest rates; (net,)."""
    return np.log(errors[:, -2] / errors[:, -1]) / np.log(rates[:, -2] / rates[:, -1])


def _forgotten(rises) -> np.ndarray:
    """The rises of the task that was just left, one for each switch, all sets in a row."""
    return np.array([np.asarray(rises)[:, k, k] for k in range(rises.shape[1])]).ravel()


def _relative_gap(seen, expected) -> float:
    seen, expected = _forgotten(seen), _forgotten(expected)
    return float(np.sqrt(np.mean((seen - expected) ** 2) / np.mean(expected**2)))


def figure(result: Result):
    data = result.data
    sheet, axes = new_figure(2, 2, width=4.8)
    for panel, number in zip(axes[0], range(2), strict=True):
        _draw_losses(panel, data.isel(net=number))
    legend_of_kinds(axes[0, 0], loc="lower left", ncols=2)
    _draw_forgetting(axes[1, 0], data)
    errors = axes[1, 1]
    share = (data.lr / data.lr.isel(rate=0)).values
    for k, name in enumerate(data.net.values):
        errors.loglog(share[k], data.error[k], "o", color=COLOURS[k], label=f"{name}, lr ≤ {float(data.lr[k, 0]):g}")
        errors.loglog(share[k], float(data.error[k, -1]) * share[k] / share[k, -1], color=COLOURS[k], lw=1, ls=":")
    errors.minorticks_off()
    errors.set(xlabel="lr / largest lr", ylabel="largest error of a loss", title="descent tends to the closed form")
    errors.plot([], [], color="0.4", lw=1, ls=":", label="∝ lr")
    errors.set_ylim(top=20 * float(data.error.max()))
    errors.legend(loc="upper left")
    return sheet


def _draw_losses(axes, data) -> None:
    """The losses of all tasks over the records, which are dense after each switch."""
    tasks_in_turn = data.sizes["task"]
    place = np.linspace(0, tasks_in_turn, data.sizes["time"])
    top = float(data.loss_training.max())
    for k in range(tasks_in_turn):
        colour = COLOURS[k % len(COLOURS)]
        trained(axes, place, data.loss_training.isel(task=k), colour=colour)
        predicted(axes, place, data.loss_theory.isel(task=k), colour=colour)
        axes.axvline(k, color="0.85", lw=0.8, zorder=0)
        axes.text(k + 0.5, 1.06 * top, f"task {k + 1}", color=colour, ha="center", va="bottom", fontsize=9)
    times = [0.0, *data.switch.values, float(data.time_of_net[-1])]
    axes.set_xticks(range(tasks_in_turn + 1), [f"{t:g}" for t in times])
    axes.set(
        xlabel=f"{TIME}, stretched after each switch",
        ylabel="loss of each task",
        title=f"tasks in turn, {data.net.item()}",
    )
    low = float(data.loss_training.min())
    axes.set_ylim(low - 0.2 * (top - low), 1.16 * top)


def _draw_forgetting(axes, data) -> None:
    """The task just left: its forgetting as trained, against the formula."""
    kinds = [(data.rise_training.isel(net=k), k, str(data.net.values[k])) for k in range(data.sizes["net"])]
    kinds += [(data.rise_control.isel(control=k), 0, f"{v} (not covered)") for k, v in enumerate(CONTROLS.values())]
    for number, ((seen, net, label), mark) in enumerate(zip(kinds, "os^v", strict=True)):
        expected = _forgotten(data.rise_predicted.isel(net=net))
        axes.plot(expected, _forgotten(seen), mark, color=COLOURS[number], ms=5, mfc="none", label=label)
    ends = axes.get_xlim()
    axes.plot(ends, ends, color="0.4", lw=1, zorder=0)
    axes.set(xlabel="½κ‖Σ − Σ′‖², from the tasks alone", ylabel="trained", title="forgetting of the task just left")
    axes.set_ylim(0, 1.4 * axes.get_ylim()[1])
    axes.legend(loc="upper left", ncols=2)
