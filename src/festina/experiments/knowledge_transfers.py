"""Learning one task first speeds up and then slows learning of a related task.

A two-layer linear network learns the tree of eight items, then a relative of it: “revised” turns the sign of one
feature, “colour” groups the same items in another way. Modes that both tasks share are kept; the others are unlearned
and learned again. At the switch the loss of the new task is ½κ‖Σ − Σ′‖², with κ the variance of the inputs and Σ and Σ′
the two targets; an untrained network has a larger one. The new task is still learned later than by a network that
starts from scratch: a mode with the wrong sign has to pass near a saddle, and takes ln(1/λ)/s to leave it, with λ the
balance of the layers and s the singular value of the mode. The closed form holds across the switch of tasks, and
gradient descent tends to it at first order in the learning rate.

With λ = 0 the network never leaves the saddle. Once the tree is learned to the end, as many modes of the new task are
out of reach as the product of the two tasks' orthogonal (polar) factors has eigenvalues −1: one of the revised tree and
two of the colours. Descent with finite steps does not keep λ = 0, and learns them too: see `reversal_gets_stuck`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import Setup, inits, nets, rules, solve, tasks
from .._figures.overlay import overlay
from .._figures.panels import border, key, panels
from .._figures.style import COLOURS, GREY, INK, THIN
from .._formulas.curves import order
from .._formulas.reversal import modes_out_of_reach
from ._kit.labelled import labelled, largest, stack, table, time_at
from ._kit.parameters import AtLeast, Count, Positive, Positives, Seed, checked
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

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
LEVEL = 0.01  # share of an untrained network's loss below which the new task counts as learned
CAPTION = """
A network learns the tree of eight items, and then the same tree with one feature of the opposite sign (**a**, **b**) or
the same features over other groups of the items (**c**, **d**). **a**, **c** Loss of the second task, after the tree
and for a network that starts from scratch; below the grey line it counts as learned. Dotted: the theory for layers with
balance λ = 0, which never learn all modes. **b**, **d** Strength of every mode of the second task over its target
before and after the switch of tasks at time 0; modes that both tasks share are grey. The theory is exact, without a
fit.
"""
ALT = """
After the tree both new tasks start at a lower loss than from scratch, but the curves cross, and the network from
scratch has learned first. Shared modes stay as they are; the others begin below their target and reach it late.
"""
AFTER, SCRATCH = COLOURS[:2]


@checked
def run(
    *,
    lam: Positive = 0.1,
    scale: Positive = 1e-3,
    stuck_hidden: Count = 14,
    lams: Positives = (1e-3, 1e-2, 1e-1),
    duration: Positive = 60.0,
    lr: Positive = 0.05,
    points: Annotated[int, AtLeast(3)] = 121,
    seed: Seed = 0,
) -> Result:
    """`stuck_hidden`: units of the net with λ = 0; `lams`: where a feature is turned; `duration`: of each task."""
    tree, rule = tasks.contrasts("tree"), rules.GradientDescent(lr)
    times = max(round(duration / lr / (points - 1)), 1) * lr * np.arange(points)
    net, init = nets.DeepLinear(tree.d_out), inits.Balanced(lam, scale)

    def after_the_tree(task: Task, net: Net, lam: float) -> Setup:
        """From weights that have learned the tree to the end."""
        strengths = tree.modes().targets()
        made: Init = inits.Balanced(lam, strengths, aligned=True) if lam else inits.Aligned(strengths)
        learned = inits.Given(Setup(tree, net, made, times=[0.0]).weights(seed))
        return Setup(task, net, learned, rule, times=times)

    setups, theories, parts = {}, {}, {}
    for variant in VARIANTS:
        task = tasks.contrasts(variant)
        both_times = np.concatenate([times[:-1], times[-1] + times])
        across = Setup(tasks.sequence([tree, task], times[-1]), net, init, rule, times=both_times)
        stuck = after_the_tree(task, nets.DeepLinear(stuck_hidden), 0.0)
        fresh = Setup(task, net, init, rule, times=times)
        named = {f"tree → {variant}": across, f"{variant}, λ = 0": stuck, f"{variant} from scratch": fresh}
        solved = {name: solve(setup, "BalancedRiccati", seed=seed) for name, setup in named.items()}
        setups, theories = setups | named, theories | solved
        runs = [across.replace(rule=rules.GradientDescent(lr / k)) for k in (1, 2, 4)] + [fresh]
        trained = [simulate(setup, [seed], OBSERVED) for setup in runs]
        parts[variant] = _measured(tree, task, trained, *solved.values())
    revised = tasks.contrasts("revised")
    flipped = {value: after_the_tree(revised, net, value) for value in lams}
    flips = {v: labelled(solve(setup, "BalancedRiccati", seed=seed), "map") for v, setup in flipped.items()}
    data = xarray.Dataset(
        {
            **stack(parts, "variant"),
            "flipped_feature": stack({v: _strengths(revised, m)[:, -1] for v, m in flips.items()}, "lam"),
            "singular_value": table(tree.modes().singular_values, "mode"),
            "target": table(tree.modes().targets(), "mode"),
        },
    )
    return Result(data, setups, theories)


def _measured(
    tree: Task, task: Task, trained: Sequence[Trajectory], across: Trajectory, stuck: Trajectory, scratch: Trajectory
) -> Dataset:
    """What is measured on one variant; trained are `across` at falling rates, and at last `scratch`."""
    *descents, fresh = trained
    old, new, switch = tree.modes(), task.modes(), (len(across.times) - 1) // 2
    theory, training = labelled(across, "map"), labelled(descents[0], "map", seed=0)
    losses = {
        "loss_theory": _loss(task, theory[switch:]).assign_coords(time=stuck.times),
        "loss_training": _loss(task, training[switch:]).assign_coords(time=stuck.times),
        "fresh_theory": _loss(task, labelled(scratch, "map")),
        "fresh_training": _loss(task, labelled(fresh, "map", seed=0)),
        "stuck_theory": _loss(task, labelled(stuck, "map")),
    }
    modes = {"modes_theory": _strengths(task, theory), "modes_training": _strengths(task, training)}
    errors = [max(largest(run[o][0] - across[o]) for o in OBSERVED) for run in descents]
    return xarray.Dataset(
        {
            **losses,
            **{name: array.rename(time="both_times") for name, array in modes.items()},
            "order": table(order(np.array(errors)), "halving"),
            "out_of_reach": stuck.provenance["note"].count("(s = "),
            "opposed": modes_out_of_reach(tree.target(), task.target()),
            "untrained": _loss(task, 0 * theory[0]),
            "switch_predicted": _loss(task, table(tree.target(), "feature", "input")),
            "overlap": table(np.sum(old.right * new.right, axis=0) * np.sum(old.left * new.left, axis=0), "mode"),
        }
    )


def _loss(task: Task, maps: DataArray) -> DataArray:
    """The loss above the floor, for white inputs."""
    return 0.5 * float(task.cov_x[0, 0]) * ((maps - task.target()) ** 2).sum(("feature", "input"))


def _strengths(task: Task, maps: DataArray) -> DataArray:
    """The strength of each mode of the task."""
    return table(task.modes().strengths(maps.values), "time", "mode").assign_coords(time=maps.time.values)


def claims(result: Result) -> list[Claim]:
    data = result.data
    shared = np.abs(data.overlap - 1) < 1e-9
    after = data.modes_theory.isel(both_times=slice(data.sizes["time"] - 1, None))
    kept = abs(after / data.target - 1).where(shared).max()
    level = LEVEL * data.untrained
    known, scratch = (time_at(data[name], level, falling=True) for name in ("loss_theory", "fresh_theory"))
    half = time_at(data.flipped_feature, float(data.target[-1]) / 2)
    slopes = half.diff("lam") / np.diff(-np.log(data.lam)) * float(data.singular_value[-1])
    ahead = data.loss_theory.isel(time=0)
    help_of, delay = ahead / data.untrained, known / scratch
    slope, difference = largest(slopes - 1), largest(data.out_of_reach - data.opposed)
    reach, ahead_off = data.out_of_reach, largest(ahead / data.switch_predicted - 1)
    (first, second), (last, end) = VARIANTS, data.order[:, -1]
    when = f"Time to {LEVEL:.0%} of the untrained loss, after the tree over from scratch"
    return [
        ours(
            "Loss at the switch over that of an untrained network, revised tree: the tree helps at first",
            at_most(help_of.sel(variant=first), 0.5),
            headline=True,
            panel="a",
        ),
        ours(
            f"{when}, revised tree: then it delays",
            at_least(delay.sel(variant=first), 1.2),
            headline=True,
            panel="a",
        ),
        ours(
            "Loss at the switch over that of an untrained network, colours",
            at_most(help_of.sel(variant=second), 1.0),
            panel="c",
        ),
        ours(f"{when}, colours", at_least(delay.sel(variant=second), 1.2), panel="c"),
        paper("Gap between descent and theory, tree → revised: order in the learning rate", between(last, 0.9, 1.1)),
        paper("Gap between descent and theory, tree → colours: order in the learning rate", between(end, 0.9, 1.1)),
        ours("Modes that both tasks share: largest relative change", at_most(kept, 1e-6), panel="b"),
        ours("Loss at the switch against ½κ‖Σ − Σ′‖²: largest relative gap", at_most(ahead_off, 1e-3)),
        ours("Delay of the feature that turns, relative gap of its slope in ln(1/λ) from 1/s", at_most(slope, 0.1)),
        ours("Number of modes of the revised tree out of reach with λ = 0", between(reach[0], 1, 1), panel="a"),
        ours("Number of modes of the colours out of reach with λ = 0", between(reach[1], 2, 2), panel="c"),
        ours("Modes out of reach minus eigenvalues −1 of the polar product: largest", at_most(difference, 0)),
    ]


def figure(result: Result) -> Figure:
    from matplotlib.lines import Line2D

    data = result.data
    sheet, at = panels("ab;cd")
    switch = float(data.time[-1])
    since = data.assign_coords(both_times=data.both_times - switch)
    for variant, losses, modes in zip(VARIANTS, "ac", "bd", strict=True):
        part = since.sel(variant=variant)
        overlay(at[losses], part.loss_training, part.loss_theory, colours=AFTER)
        overlay(at[losses], part.fresh_training, part.fresh_theory, colours=SCRATCH)
        at[losses].plot(data.time, part.stuck_theory, color=INK, lw=THIN, ls=":")
        untrained = float(part.untrained)
        border(at[losses], LEVEL * untrained, across=True)
        at[losses].set(ylabel="loss", yscale="log", ylim=(1e-4 * untrained, 2 * untrained), xlim=(0, 0.6 * switch))
        shared = np.abs(part.overlap.values - 1) < 1e-9
        strengths = (part.modes_training / data.target, part.modes_theory / data.target)
        for these, colour in ((shared, GREY), (~shared, AFTER)):
            overlay(at[modes], *(each.isel(mode=these) for each in strengths), along="both_times", colours=colour)
        at[modes].set(ylabel="strength of the mode / target", xlim=(-0.1 * switch, 0.6 * switch))
        border(at[modes], 0)
        for letter in (losses, modes):
            at[letter].set_xlabel("time since the switch of tasks (τ)")
        name = "revised tree" if variant == "revised" else "colours"
        at[losses].set_title(f"Second task, {name}: loss")
        at[modes].set_title(f"Second task, {name}: modes")
    never = Line2D([], [], color=INK, lw=THIN, ls=":", label="theory, λ = 0")
    key(sheet, {"after the tree": AFTER, "from scratch": SCRATCH, "shared mode": GREY}, marks=[never])
    return sheet
