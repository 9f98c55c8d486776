"""What a network knows of an old task helps it at first with a related one, and then holds it up.

A two-layer linear network learns the tree of eight items, then a relative of it: "revised" turns the sign of one
feature, "colour" groups the same items in another way. The closed form goes on across the switch, and descent tends
to it at first order in the learning rate. Modes that both tasks have are kept; the others are unlearned and learned
again. The new task starts with a lower loss than an untrained network has, ½κ‖Σ − Σ′‖², and yet is learned later
than by a network that starts from scratch: what has the wrong sign has to pass the neighbourhood of a saddle, and
takes ln(1/λ)/s to leave it.

With λ = 0 it never does. Once the tree is learned to the end, as many modes of the new task are out of reach as the
product of the two tasks' orthogonal (polar) factors has eigenvalues −1: one of the revised tree, two of the colours.
Descent with finite steps does not keep λ = 0, and gets there all the same: see `reversal_gets_stuck`.
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
    "braun2022": "figure 6: revised and colour hierarchy",
    "domine2025": "λ-balanced weights and transfer",
    "saxe_slides": "“Transfer”",
}
QUICK = dict(stuck_hidden=8, points=61)
VARIANTS = ("revised", "colour")
OBSERVED = ("map", "input_representation")
HALVINGS = (1, 2, 4)
LEVEL = 0.01  # of the loss of an untrained network: the new task counts as learned


def run(
    *,
    lam=0.1,
    scale=1e-3,
    stuck_hidden=14,
    lams=(1e-3, 1e-2, 1e-1),
    duration=60.0,
    lr=0.05,
    points=121,
    seed=0,
) -> Result:
    points, lr = whole(points, "points", least=3), positive(lr, "lr")
    tree = tasks.contrasts("tree")
    steps = max(round(positive(duration, "duration") / lr / (points - 1)), 1)
    times = steps * lr * np.arange(points)
    net, wide = nets.DeepLinear(tree.d_out), nets.DeepLinear(whole(stuck_hidden, "stuck_hidden"))
    init, rule = inits.Balanced(lam, scale), rules.GradientDescent(lr)
    fresh_start = init

    def learned(net, lam):
        """Weights that have learned the tree to the end."""
        strengths = tree.modes().targets()
        made = inits.Balanced(lam, strengths, aligned=True) if lam else inits.Aligned(strengths)
        return inits.Given(Setup(tree, net, made, times=[0.0]).weights(seed))

    setups, theories, parts = {}, {}, {}
    for variant in VARIANTS:
        task = tasks.contrasts(variant)
        sequence = tasks.sequence([tree, task], times[-1])
        setup = Setup(sequence, net, init, rule, times=np.concatenate([times[:-1], times[-1] + times]))
        exact = solve(setup, "BalancedRiccati", seed=seed)
        runs = [simulate(setup.replace(rule=rules.GradientDescent(lr / k)), [seed], OBSERVED) for k in HALVINGS]
        fresh_setup = Setup(task, net, fresh_start, rule, times=times)
        fresh = solve(fresh_setup, "BalancedRiccati", seed=seed)
        stuck_setup = Setup(task, wide, learned(wide, 0.0), rule, times=times)
        stuck = solve(stuck_setup, "BalancedRiccati", seed=seed)
        setups |= {f"tree → {variant}": setup, f"{variant}, λ = 0": stuck_setup}
        theories |= {f"tree → {variant}": exact, f"{variant}, λ = 0": stuck, f"{variant} from scratch": fresh}
        embedded = _embedded(exact["input_representation"], points - 1)
        found = {
            "map_theory": exact["map"],
            "map_training": runs[0]["map"][0],
            "error": [max(np.abs(run[name][0] - exact[name]).max() for name in OBSERVED) for run in runs],
            "fresh_theory": _loss(task, fresh["map"]),
            "fresh_training": _loss(task, simulate(fresh_setup, [seed], OBSERVED)["map"][0]),
            "stuck_theory": _loss(task, stuck["map"]),
            "out_of_reach": stuck.provenance["note"].count("(s = "),
            "opposed": _opposed(tree, task),
            "untrained": _loss(task, np.zeros_like(task.target())[None])[0],
            "switch_predicted": _loss(task, tree.target()[None])[0],
            "item_places": embedded,
        }
        found |= {f"loss_{kind}": _loss(task, found[f"map_{kind}"][points - 1 :]) for kind in ("theory", "training")}
        for kind in ("theory", "training"):
            found[f"modes_{kind}"] = _strengths(task, found[f"map_{kind}"])
        found["tree_modes"] = _strengths(tree, exact["map"])
        found["loss_parts"] = 0.5 * _variance(task) * (found["modes_theory"] - task.modes().targets()) ** 2
        found["overlap"] = np.sum(tree.modes().right * task.modes().right, axis=0) * np.sum(
            tree.modes().left * task.modes().left, axis=0
        )
        parts[variant] = found
    flipped = []
    for value in lams:
        setup = Setup(tasks.contrasts("revised"), net, learned(net, positive(value, "lams")), rule, times=times)
        exact = solve(setup, "BalancedRiccati", seed=seed)
        flipped.append(_strengths(setup.task, exact["map"])[:, -1])
    import xarray

    axes = {
        "error": ("halving",),
        "out_of_reach": (),
        "opposed": (),
        "untrained": (),
        "switch_predicted": (),
        "item_places": ("both_times", "item", "direction"),
        "overlap": ("mode",),
        **{f"{name}_{kind}": ("time",) for name in ("fresh", "loss", "stuck") for kind in ("theory", "training")},
        **dict.fromkeys(("modes_theory", "modes_training", "tree_modes", "loss_parts"), ("both_times", "mode")),
    }
    kept = [name for name in parts["revised"] if not name.startswith("map_")]
    data = xarray.Dataset(
        {name: (("variant", *axes[name]), np.stack([np.asarray(parts[v][name]) for v in VARIANTS])) for name in kept}
        | {
            "flipped_feature": (("lam", "time"), np.stack(flipped)),
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


def _variance(task) -> float:
    return float(task.cov_x[0, 0])


def _loss(task, maps) -> np.ndarray:
    """Above the floor, which is zero here; (time,)."""
    return 0.5 * _variance(task) * np.sum((maps - task.target()) ** 2, axis=(1, 2))


def _strengths(task, maps) -> np.ndarray:
    """(time, mode)"""
    modes = task.modes()
    return np.einsum("om,toi,im->tm", modes.left, maps, modes.right)


def _opposed(old, new) -> int:
    """How many eigenvalues −1 the two targets' polar factors have between them."""

    def polar(task):
        left, _, right = np.linalg.svd(task.target())
        return left @ right

    return int(np.sum(np.abs(np.linalg.eigvals(polar(old).T @ polar(new)) + 1) < 1e-6))


def _embedded(grams, switch) -> np.ndarray:
    """Classical scaling of the items at every time, turned to fit the next time; seen along two directions.

    These are the one in which the first task spreads the items most, and the one across it in which the second task
    moves them most.
    """
    centred = grams - grams.mean(axis=1, keepdims=True)
    centred = centred - centred.mean(axis=2, keepdims=True)
    values, vectors = np.linalg.eigh(centred)
    points = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
    for k in range(len(points) - 2, -1, -1):
        left, _, right = np.linalg.svd(points[k].T @ points[k + 1])
        points[k] = points[k] @ left @ right
    widest = _widest(points[switch])
    moved = points[switch:] - points[switch]
    most_moved = _widest(moved - (moved @ widest)[..., None] * widest)
    return points @ np.stack([widest, most_moved]).T


def _widest(points) -> np.ndarray:
    direction = np.linalg.svd(points.reshape(-1, points.shape[-1]), full_matrices=False)[2][0]
    return direction * np.sign(direction[np.abs(direction).argmax()])


def claims(result: Result) -> list[Claim]:
    data = result.data
    orders = np.log2(data.error[:, -2].values / data.error[:, -1].values)
    second = data.sizes["time"] - 1
    shared = np.abs(data.overlap.values - 1) < 1e-9
    change = np.abs(data.modes_theory[:, second:].values / data.target.values - 1).max(axis=1)
    times, untrained = data.time.values, data.untrained.values
    known, scratch = (
        np.array([_time_to(data[name][k], times, LEVEL * untrained[k]) for k in range(len(VARIANTS))])
        for name in ("loss_theory", "fresh_theory")
    )
    half = np.array([_time_to(-curve, times, -float(data.target[-1]) / 2) for curve in data.flipped_feature])
    slopes = np.diff(half) / np.diff(-np.log(data.lam.values)) * float(data.singular_value[-1])
    ahead = data.loss_theory[:, 0].values
    out_of_reach = data.out_of_reach.values
    return [
        Claim.between(
            "Tree → revised: order in lr of the gap between descent and closed form, map and representation",
            orders[0],
            0.9,
            1.1,
            source="paper",
        ),
        Claim.between("Tree → colour: the same", orders[1], 0.9, 1.1, source="paper"),
        Claim.at_most(
            f"Modes of both tasks ({shared[0].sum()} revised, {shared[1].sum()} colour) are kept: largest relative gap",
            change[shared].max(),
            1e-6,
        ),
        Claim.at_most(
            "Loss at the switch is ½κ‖Σ − Σ′‖²: largest relative gap",
            np.abs(ahead / data.switch_predicted.values - 1).max(),
            1e-3,
        ),
        Claim.at_most(
            "Knowledge helps at first: loss at the switch / untrained, revised", ahead[0] / untrained[0], 0.5
        ),
        Claim.at_most("… the same for the colours", ahead[1] / untrained[1], 1.0),
        Claim.at_least(
            f"Knowledge holds up: time to {LEVEL:.0%} of the untrained loss, after the tree / from scratch, revised",
            known[0] / scratch[0],
            1.2,
        ),
        Claim.at_least("… the same for the colours", known[1] / scratch[1], 1.2),
        Claim.at_most(
            "The turned feature leaves its saddle at ln(1/λ)/s: largest |slope · s − 1|", np.abs(slopes - 1).max(), 0.1
        ),
        Claim.between("λ = 0: modes of the revised tree that are out of reach", out_of_reach[0], 1, 1),
        Claim.between("… and of the colours", out_of_reach[1], 2, 2),
        Claim.at_most(
            "… as many as eigenvalues −1 between the tasks: largest difference",
            np.abs(out_of_reach - data.opposed.values).max(),
            0,
        ),
    ]


def _time_to(curve, times, level) -> float:
    """First time at which a falling curve is at or below a level, linear between records."""
    curve = np.asarray(curve)
    below = curve <= level
    if below[0] or not below.any():
        return 0.0 if below[0] else float("inf")
    after = int(np.argmax(below))
    share = (curve[after - 1] - level) / (curve[after - 1] - curve[after])
    return float(times[after - 1] + share * (times[after] - times[after - 1]))


def figure(result: Result):
    data = result.data
    sheet, axes = new_figure(2, 4, width=4.0)
    for row, variant in zip(axes, VARIANTS, strict=True):
        one = data.sel(variant=variant)
        modes, parts, losses, items = row
        switch = float(data.time[-1])
        for k in range(data.sizes["mode"]):
            colour = COLOURS[k % len(COLOURS)]
            trained(modes, data.both_times, one.modes_training[:, k], colour=colour)
            predicted(modes, data.both_times, one.modes_theory[:, k], colour=colour)
            modes.plot(data.both_times, one.tree_modes[:, k], color=colour, lw=0.9, ls=":")
            parts.plot(data.both_times, one.loss_parts[:, k], color=colour, lw=1.3, label=f"{k + 1}")
        for panel in (modes, parts):
            panel.axvline(switch, color="0.85", lw=0.8, zorder=0)
            panel.set_xlabel(TIME)
        modes.set(ylabel="strength", title=f"modes of “{variant}” (dotted: of the tree)")
        parts.set(ylabel="part of the loss", title="its loss, mode by mode (theory)")
        _draw_losses(losses, one, data.time, variant)
        _draw_items(items, one, data.sizes["time"] - 1)
    low, high = axes[0, 0].get_ylim()
    axes[0, 0].set_ylim(low - 0.25 * (high - low), high)
    legend_of_kinds(axes[0, 0], loc="lower left", ncols=2)
    axes[0, 1].legend(title="mode", ncols=2)
    return sheet


def _draw_losses(axes, data, times, variant) -> None:
    for k, (name, label) in enumerate((("loss", "after the tree"), ("fresh", "from scratch"))):
        trained(axes, times, data[f"{name}_training"], colour=COLOURS[k], label=label)
        predicted(axes, times, data[f"{name}_theory"], colour=COLOURS[k])
    axes.plot(times, data.stuck_theory, color="0.3", lw=1.3, ls=":", label="after the tree, λ = 0")
    untrained = float(data.untrained)
    axes.set(xlabel="time since the switch (τ)", ylabel="loss", title=f"{variant}: with and without knowledge")
    axes.set_yscale("log")
    axes.set_ylim(1e-4 * untrained, 2 * untrained)
    axes.set_xlim(0, 0.6 * float(times[-1]))
    axes.legend()


def _draw_items(axes, data, switch) -> None:
    """Paths of the items through both tasks; rings where the first one ends, dots at the end."""
    for k, name in enumerate(data.item.values):
        path, colour = data.item_places.values[:, k], COLOURS[k % len(COLOURS)]
        axes.plot(*path[: switch + 1].T, color=colour, lw=0.8, ls=":")
        axes.plot(*path[switch:].T, color=colour, lw=1.5)
        axes.plot(*path[switch], "o", color=colour, ms=6, mfc="white")
        axes.plot(*path[-1], "o", color=colour, ms=5, label=str(name))
    axes.set(
        xlabel="widest direction of the tree", ylabel="direction of most change", title="hidden items: ○ tree, ● then"
    )
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
