"""What a network has learned of an old task lowers its initial loss on a related one, and then delays learning it.

A two-layer linear network learns the tree of eight items, then a relative of it: "revised" turns the sign of one
feature, "colour" groups the same items in another way. The closed form goes on across the switch, and descent tends to
it at first order in the learning rate. Modes that both tasks share are kept; the others are unlearned and learned
again. The new task starts with a lower loss than an untrained network has, ½κ‖Σ − Σ′‖² with κ the variance of the
inputs, and is still learned later than by a network that starts from scratch: a mode with the wrong sign has to pass
near a saddle, and takes ln(1/λ)/s to leave it, where λ is the balance of the layers.

With λ = 0 it never leaves. Once the tree is learned to the end, as many modes of the new task are out of reach as the
product of the two tasks' orthogonal (polar) factors has eigenvalues −1: one of the revised tree, two of the colours.
Descent with finite steps does not keep λ = 0, and learns them all the same: see `reversal_gets_stuck`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import Setup, inits, nets, rules, solve, tasks
from .._figures.style import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._formulas.curves import crossing, order
from .._foundation.checks import positive, whole
from ._kit import transfer
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

    from .. import Init, Net, Task, Trajectory

THEME, PLACE = "sequences", 3
REFERENCE = {
    "braun2022": "figure 6: revised and colour hierarchy",
    "domine2025": "λ-balanced weights and transfer",
    "saxe_slides": "“Transfer”",
}
QUICK = dict(stuck_hidden=8, points=61)
VARIANTS = ("revised", "colour")
OBSERVED = ("map", "input_representation")
HALVINGS = (1, 2, 4)
LEVEL = 0.01  # share of an untrained network's loss below which the new task counts as learned


def run(
    *,
    lam: float = 0.1,
    scale: float = 1e-3,
    stuck_hidden: int = 14,
    lams: Sequence[float] = (1e-3, 1e-2, 1e-1),
    duration: float = 60.0,
    lr: float = 0.05,
    points: int = 121,
    seed: int = 0,
) -> Result:
    """`stuck_hidden` units are those of the network with λ = 0; the sign of a feature is turned at all `lams`.

    Each task is trained for `duration`.
    """
    points, lr = whole(points, "points", least=3), positive(lr, "lr")
    tree = tasks.contrasts("tree")
    steps = max(round(positive(duration, "duration") / lr / (points - 1)), 1)
    times = steps * lr * np.arange(points)
    net, wide = nets.DeepLinear(tree.d_out), nets.DeepLinear(whole(stuck_hidden, "stuck_hidden"))
    init, rule = inits.Balanced(lam, scale), rules.GradientDescent(lr)

    def learned(net: Net, lam: float) -> Init:
        """Weights that have learned the tree to the end."""
        strengths = tree.modes().targets()
        made = inits.Balanced(lam, strengths, aligned=True) if lam else inits.Aligned(strengths)
        return inits.Given(Setup(tree, net, made, times=[0.0]).weights(seed))

    setups, theories, parts = {}, {}, {}
    for variant in VARIANTS:
        task = tasks.contrasts(variant)
        both_times = np.concatenate([times[:-1], times[-1] + times])
        across = Setup(tasks.sequence([tree, task], times[-1]), net, init, rule, times=both_times)
        fresh = Setup(task, net, init, rule, times=times)
        stuck = Setup(task, wide, learned(wide, 0.0), rule, times=times)
        setups |= {f"tree → {variant}": across, f"{variant}, λ = 0": stuck}
        exact = {
            f"tree → {variant}": solve(across, "BalancedRiccati", seed=seed),
            f"{variant}, λ = 0": solve(stuck, "BalancedRiccati", seed=seed),
            f"{variant} from scratch": solve(fresh, "BalancedRiccati", seed=seed),
        }
        theories |= exact
        descents = [simulate(across.replace(rule=rules.GradientDescent(lr / k)), [seed], OBSERVED) for k in HALVINGS]
        fresh_map = simulate(fresh, [seed], OBSERVED)["map"][0]
        parts[variant] = _measured(tree, task, points - 1, descents, fresh_map, *exact.values())
    flips = []
    for value in lams:
        setup = Setup(tasks.contrasts("revised"), net, learned(net, positive(value, "lams")), rule, times=times)
        flips.append(transfer.strengths(setup.task, solve(setup, "BalancedRiccati", seed=seed)["map"])[:, -1])
    import xarray

    data = xarray.Dataset(
        {
            **{
                name: (("variant", *dims), np.stack([np.asarray(parts[variant][name][1]) for variant in VARIANTS]))
                for name, (dims, _) in parts[VARIANTS[0]].items()
            },
            "flipped_feature": (("lam", "time"), np.stack(flips)),
            "singular_value": ("mode", tree.modes().singular_values),
            "target": ("mode", tree.modes().targets()),
        },
        coords={
            "variant": list(VARIANTS),
            "time": times,
            "both_times": setups["tree → revised"].times,
            "lam": list(lams),
            "item": list(tree.items or ()),
        },
    )
    return Result(data, setups, theories)


def _measured(
    tree: Task,
    task: Task,
    switch: int,
    descents: Sequence[Trajectory],
    fresh_map: np.ndarray,
    across: Trajectory,
    stuck: Trajectory,
    fresh: Trajectory,
) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Dimensions and values of what is measured on one variant; `descents` are those of `across` at falling rates."""
    old, new = tree.modes(), task.modes()
    theory_map, trained_map = across["map"], descents[0]["map"][0]
    modes = transfer.strengths(task, theory_map)
    both, curve, mode = ("both_times", "mode"), ("time",), ("mode",)
    errors = [max(np.abs(run[name][0] - across[name]).max() for name in OBSERVED) for run in descents]
    return {
        "error": (("halving",), errors),
        "fresh_theory": (curve, transfer.loss(task, fresh["map"])),
        "fresh_training": (curve, transfer.loss(task, fresh_map)),
        "stuck_theory": (curve, transfer.loss(task, stuck["map"])),
        "out_of_reach": ((), stuck.provenance["note"].count("(s = ")),
        "opposed": ((), transfer.opposed(tree, task)),
        "untrained": ((), transfer.loss(task, np.zeros_like(task.target())[None])[0]),
        "switch_predicted": ((), transfer.loss(task, tree.target()[None])[0]),
        "item_places": (
            ("both_times", "item", "direction"),
            transfer.item_places(across["input_representation"], switch),
        ),
        "loss_theory": (curve, transfer.loss(task, theory_map[switch:])),
        "loss_training": (curve, transfer.loss(task, trained_map[switch:])),
        "modes_theory": (both, modes),
        "modes_training": (both, transfer.strengths(task, trained_map)),
        "tree_modes": (both, transfer.strengths(tree, theory_map)),
        "loss_parts": (both, 0.5 * transfer.variance(task) * (modes - new.targets()) ** 2),
        "overlap": (mode, np.sum(old.right * new.right, axis=0) * np.sum(old.left * new.left, axis=0)),
    }


def claims(result: Result) -> list[Claim]:
    data = result.data
    orders = order(data.error.values)[:, -1]
    second = data.sizes["time"] - 1
    shared = np.abs(data.overlap.values - 1) < 1e-9
    change = np.abs(data.modes_theory[:, second:].values / data.target.values - 1).max(axis=1)
    times, untrained = data.time.values, data.untrained.values
    known, scratch = (
        crossing(times, -data[name].values, -LEVEL * untrained) for name in ("loss_theory", "fresh_theory")
    )
    half = crossing(times, data.flipped_feature.values, data.target.values[-1] / 2)
    slopes = np.diff(half) / np.diff(-np.log(data.lam.values)) * float(data.singular_value[-1])
    ahead = data.loss_theory[:, 0].values
    out_of_reach = data.out_of_reach.values
    return [
        paper(
            "Descent tends to the closed form as lr → 0, tree → revised: order of the gap of map and representation",
            between(orders[0], 0.9, 1.1),
        ),
        paper("… and tree → colour: order of the same gap", between(orders[1], 0.9, 1.1)),
        ours(
            f"Modes of both tasks ({shared[0].sum()} revised, {shared[1].sum()} colour) stay: largest relative change",
            at_most(change[shared].max(), 1e-6),
        ),
        ours(
            "The loss at the switch is ½κ‖Σ − Σ′‖²: largest relative gap",
            at_most(np.abs(ahead / data.switch_predicted.values - 1).max(), 1e-3),
        ),
        ours(
            "Knowledge helps at first: loss at the switch / loss of an untrained network, revised",
            at_most(ahead[0] / untrained[0], 0.5),
        ),
        ours("… and for the colours: the same ratio", at_most(ahead[1] / untrained[1], 1.0)),
        ours(
            f"Then it hinders: time to {LEVEL:.0%} of the untrained loss, after the tree / from scratch, revised",
            at_least(known[0] / scratch[0], 1.2),
        ),
        ours("… and for the colours: the same ratio of times", at_least(known[1] / scratch[1], 1.2)),
        ours(
            "The feature whose sign is turned leaves its saddle at ln(1/λ)/s: largest |slope · s − 1| in ln(1/λ)",
            at_most(np.abs(slopes - 1).max(), 0.1),
        ),
        ours("With λ = 0 one mode of the revised tree is out of reach: number", between(out_of_reach[0], 1, 1)),
        ours("… and two of the colours: number", between(out_of_reach[1], 2, 2)),
        ours(
            "… as many as there are eigenvalues −1 between the tasks: largest difference",
            at_most(np.abs(out_of_reach - data.opposed.values).max(), 0),
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, axes = new_figure(2, 4, width=4.0)
    for row, variant in zip(axes, VARIANTS, strict=True):
        part = data.sel(variant=variant)
        modes, parts, losses, items = row
        switch = float(data.time[-1])
        for k in range(data.sizes["mode"]):
            colour = COLOURS[k % len(COLOURS)]
            trained(modes, data.both_times, part.modes_training[:, k], colour=colour)
            predicted(modes, data.both_times, part.modes_theory[:, k], colour=colour)
            modes.plot(data.both_times, part.tree_modes[:, k], color=colour, lw=0.9, ls=":")
            parts.plot(data.both_times, part.loss_parts[:, k], color=colour, lw=1.3, label=f"{k + 1}")
        for panel in (modes, parts):
            panel.axvline(switch, color="0.85", lw=0.8, zorder=0)
            panel.set_xlabel(TIME)
        modes.set(ylabel="strength", title=f"modes of “{variant}” (dotted: of the tree)")
        parts.set(ylabel="part of the loss", title="loss on this task by mode (theory)")
        _draw_losses(losses, part, data.time.values, variant)
        _draw_items(items, part, data.sizes["time"] - 1)
    low, high = axes[0, 0].get_ylim()
    axes[0, 0].set_ylim(low - 0.25 * (high - low), high)
    legend_of_kinds(axes[0, 0], loc="lower left", ncols=2)
    axes[0, 1].legend(title="mode", ncols=2)
    return sheet


def _draw_losses(axes: Axes, data: Dataset, times: np.ndarray, variant: str) -> None:
    """The loss of the new task, after the old one and from scratch."""
    for k, (name, label) in enumerate((("loss", "after the tree"), ("fresh", "from scratch"))):
        trained(axes, times, data[f"{name}_training"], colour=COLOURS[k], label=label)
        predicted(axes, times, data[f"{name}_theory"], colour=COLOURS[k])
    axes.plot(times, data.stuck_theory, color="0.3", lw=1.3, ls=":", label="after the tree, λ = 0")
    untrained = float(data.untrained)
    axes.set(xlabel="time since the switch (τ)", ylabel="loss", title=f"{variant}: after the tree, and from scratch")
    axes.set_yscale("log")
    axes.set_ylim(1e-4 * untrained, 2 * untrained)
    axes.set_xlim(0, 0.6 * float(times[-1]))
    axes.legend()


def _draw_items(axes: Axes, data: Dataset, switch: int) -> None:
    """Paths of the items through both tasks; rings where the first task ends, dots at the end."""
    for k, name in enumerate(data.item.values):
        path, colour = data.item_places.values[:, k], COLOURS[k % len(COLOURS)]
        axes.plot(*path[: switch + 1].T, color=colour, lw=0.8, ls=":")
        axes.plot(*path[switch:].T, color=colour, lw=1.5)
        axes.plot(*path[switch], "o", color=colour, ms=6, mfc="white")
        axes.plot(*path[-1], "o", color=colour, ms=5, label=str(name))
    axes.set(
        xlabel="widest direction of the tree",
        ylabel="direction of most change",
        title="hidden items: ○ after the tree, ● in the end",
    )
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
