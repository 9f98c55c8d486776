"""With two hidden layers ReLU networks visit the same loss plateaus at seed-dependent times, and the published gated
network follows them only with a schedule that is switched by hand.

ReLU networks with two hidden layers of 420 units learn eight items in three contexts, each with a tree of its own. For
all of 100 seeds they stay, for 400 epochs or more, on the same plateaus of the loss (96, 66, 51, 30 and 12, summed over
samples). How long they stay, whether they also visit others (a quarter near 58, a third near 23), and how far they come
differs from seed to seed. The source explains them by a gated network: its first layer is shared and linear, and its
second layer has 240 units that are always on, beside 60 for each pair of contexts [jarvis2025, section 6].

**What does not reproduce.** Trained jointly from weights of the same size, that gated network goes from 96 to 51 at
once, because its pathways for pairs grow right behind the common one, and it is behind in the end. The curves of the
source come from a schedule switched by hand ("hand_switched" here): nothing learns before epoch 500; the pathways for
pairs are off until epoch 12,000 and start with read-out weights seven times larger; and they are trained on the
residual of the common pathway (sequential). The times at which pathways are said to align and to appear are those of
these switches. Nor is the first layer of the ReLU network linear: in the end almost none of its weight is in units that
are on for all samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import Setup, inits, nets, rules, tasks
from .._figures.panels import border, key, panels
from .._figures.style import COLOURS
from .._training.resumable import Parts, simulate_in_parts
from ..gates.comparing import times_to
from ..gates.reading import purity
from ._kit.deep_twins import CONTEXTS, FROZEN, ITEMS, SAMPLES, SCALE, WIDTH, start, twin
from ._kit.item_contexts import EPOCHS, RATE
from ._kit.labelled import stack, table
from ._kit.parameters import AtLeast, Count, Each, OneOf, Positive, Seed, checked
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

THEME, PLACE = "twins", 3
REFERENCE = {"jarvis2025": "section 6, figure 6"}
QUICK = dict(hidden=70, lr=1e-2, seeds=2, gate_seeds=2, every=200)
PRESETS = {"as_printed": dict(twins=("joint",)), "hand_switched": dict(twins=("hand_switched",))}
CAPTION = """
Networks with two hidden layers learn eight items in three contexts. **a** Loss of ReLU networks, one line for each
seed; grey lines are plateaus that all of them visit. **b** Mean loss over seeds of the ReLU networks, and of the gated
network of the source, trained jointly from weights of the same size, and with a schedule switched by hand; shades hold
10 to 90 % of the seeds. **c** Share of the weight of a hidden layer of the ReLU networks in units that are on for all
samples (all on), or in two whole contexts and off in the third (pairs). An epoch is one step of gradient descent at
rate 10⁻³ on the loss summed over samples.
"""
ALT = """
The losses of ReLU networks fall in the same stairs, shifted against each other; the gated network trained jointly skips
the second stair. The share of units that are on for all samples rises to 1 and falls back to 0 in both layers.
"""
PLATEAUS, NEAR, REST = (96, 66, 51, 30, 12), 1.0, 400  # of the loss, how near to them, and for how many epochs
LEVELS = (90, 60, 40, 25, 14, 10, 2)  # of the loss: just below the plateaus
NETWORKS = {"ReLU": "ReLU", "joint": "gated, joint", "hand_switched": "gated, by hand"}
GATES = {"layer 1, all on": (1, CONTEXTS), "layer 2, all on": (2, CONTEXTS), "layer 2, pairs": (2, 2)}


@checked
def run(
    *,
    hidden: Annotated[int, AtLeast(7)] = WIDTH,
    lr: Positive = RATE,
    epochs: Count = 30000,
    every: Count = 100,
    seeds: Count = 100,
    gate_seeds: Count = 20,
    twins: Annotated[tuple[str, ...], Each(OneOf("joint", "hand_switched"))] = ("joint", "hand_switched"),
    precision: str = "float64",
    seed: Seed = 0,
    parts: Parts | None = None,
) -> Result:
    """`lr` is the rate on the summed loss. Gates are recorded for the first `gate_seeds` ReLU networks.

    `parts` is where finished parts of the training are kept, so that an interrupted run can be resumed.
    """
    gate_seeds, wider = min(gate_seeds, seeds), np.sqrt(WIDTH / hidden)
    recorded, all_seeds = np.arange(0, epochs + 1, every), [seed + k for k in range(seeds)]
    task, net = tasks.contextual(ITEMS, CONTEXTS, "hierarchy"), nets.MLP((hidden, hidden))
    rule, times = rules.GradientDescent(SAMPLES * lr), SAMPLES * RATE * recorded
    relu = Setup(task, net, inits.SmallRandom(SCALE * wider), rule, times=times, precision=precision)
    watched = simulate_in_parts(relu, all_seeds[:gate_seeds], ("loss", "gates"), parts=parts)
    losses, norms, setups = {"ReLU": watched["loss"]}, {}, {"ReLU": relu}
    if seeds > gate_seeds:
        others = simulate_in_parts(relu, all_seeds[gate_seeds:], ("loss",), parts=parts)
        losses["ReLU"] = np.concatenate([watched["loss"], others["loss"]])
    for name in twins:
        setups[name] = relu.replace(net=twin(hidden, name), init=start(name, wider))
        late = recorded < FROZEN if name == "hand_switched" else np.zeros(len(recorded), bool)
        if late.any():  # time is counted from the epoch at which a run that waits begins to learn
            setups[name] = setups[name].replace(times=SAMPLES * RATE * (recorded[~late] - FROZEN))
        learned = simulate_in_parts(setups[name], all_seeds, ("loss", "path_norm"), parts=parts)
        losses[name], norms[name] = (
            np.concatenate([np.repeat(values[:, :1], late.sum(), axis=1), values], axis=1)
            for values in learned.values()
        )
    units = purity(watched).rename(seed="gate_seed", time="epoch").assign_coords(epoch=recorded)
    below = [times_to(recorded, SAMPLES * losses["ReLU"], level / PLATEAUS[0]) for level in LEVELS]
    data = xarray.Dataset(
        {
            "loss": stack({name: table(SAMPLES * loss, "seed", "epoch") for name, loss in losses.items()}, "network"),
            **{f"norm_{name}": (("seed", "epoch", "path"), values) for name, values in norms.items()},
            "on_for": stack(
                {k: units.on_for.sel(layer=m, values_on=n, drop=True) for k, (m, n) in GATES.items()}, "gate"
            ),
            "time_below": table(below, "level", "seed"),
        },
        coords={"epoch": recorded, "seed": all_seeds, "level": list(LEVELS)},
    )
    return Result(data, setups)


def claims(result: Result) -> list[Claim]:
    data, losses = result.data, dict(zip(result.data.network.values, result.data.loss, strict=True))
    relu, passed = losses["ReLU"], data.time_below.median("seed")
    midway = _resting(data, np.add(PLATEAUS[1:], PLATEAUS[:-1]) / 2).mean()
    gates = data.on_for.isel(epoch=-1).mean("gate_seed")
    statements = [
        ours(
            f"Share of ReLU networks that stay within {NEAR:g} of a loss of 96, 66, 51, 30 and 12 for {REST} epochs, "
            f"smallest (midway between two: {midway:.0%})",
            at_least(_resting(data, PLATEAUS).min(), 1.0),
            headline=True,
            panel="a",
        ),
        ours("ReLU networks leave the first plateau (96): median epoch", between(passed[0], 4000, 6000), panel="a"),
        ours("ReLU networks leave the second plateau (66): median epoch", between(passed[1], 9000, 11500), panel="a"),
        ours("ReLU networks leave the fourth plateau (30): median epoch", between(passed[3], 14500, 19000), panel="a"),
        paper(
            "Standard deviation of the loss over ReLU networks, largest over time, over the initial loss",
            at_least((relu.std("seed") / relu[:, 0].mean()).max(), 0.03),
            panel="a",
        ),
        paper(
            "First layer of the ReLU networks: share of its weight in units that are always on, in the end",
            at_least(gates.sel(gate="layer 1, all on"), 0.9),
            fails="almost every unit of the first layer comes to be off for some samples",
            panel="c",
        ),
        paper(
            "Second layer of the ReLU networks: share of its weight in units on for exactly two contexts, in the end",
            at_least(gates.sel(gate="layer 2, pairs"), 0.5),
            fails="most weight is in units that are on for some items of a context only",
            panel="c",
        ),
    ]
    if "joint" in losses:
        joint = losses["joint"]
        skipped, rested = (((one > 60) & (one < 72)).mean() for one in (joint, relu))
        statements += [
            paper(
                "Mean loss of the gated network, trained jointly, and of ReLU: largest gap over the initial loss",
                at_most(_gap(joint, relu), 0.15),
                fails="trained jointly from weights of the same size it goes from 96 to 51 at once",
                headline=True,
                panel="b",
            ),
            ours(
                "Gated network, trained jointly, skips the plateau at 66: share of epochs with a loss of 60 to 72",
                at_most(skipped, 0.25 * float(rested)),
                panel="b",
            ),
            ours(
                "Gated network, trained jointly: median loss in the end, over that of the ReLU networks",
                at_least(np.median(joint[:, -1]) / np.median(relu[:, -1]), 2.0),
                panel="b",
            ),
            paper(
                "Pathways for pairs of the gated network, trained jointly: median epoch at a tenth of their norm",
                between(np.median(_appeared(data)), 11000, 13000),
                fails="12,000 is when the source switches them on; otherwise they grow right behind the common pathway",
            ),
        ]
    if "hand_switched" in losses:
        noise = 0.3 / data.sizes["seed"] ** 0.5  # pairs of runs are up to 0.3 apart
        text = "Mean loss of the gated network, switched by hand, and of ReLU: largest gap over the initial loss"
        gap = _gap(losses["hand_switched"], relu)
        statements.append(paper(text, at_most(gap, 0.12 + noise), fitted=True, panel="b"))
    return statements


def _resting(data: Dataset, levels: Sequence[float] | np.ndarray) -> np.ndarray:
    """The share of ReLU networks whose loss is within NEAR of each level for REST epochs or more in total."""
    near = np.abs(data.loss.sel(network="ReLU").values[..., None] - np.asarray(levels)) <= NEAR
    return np.mean(near.sum(axis=1) * float(data.epoch[1] - data.epoch[0]) >= REST, axis=0)


def _gap(losses: DataArray, others: DataArray) -> float:
    """The largest distance of mean losses over time, in units of the first."""
    return float(np.abs(losses.mean("seed") - others.mean("seed")).max() / others[:, 0].mean())


def _appeared(data: Dataset) -> np.ndarray:
    """The first epoch at which the pathways for pairs, trained jointly, have a tenth of their largest norm, by seed."""
    size = np.sqrt(np.sum(data.norm_joint.values[:, :, 1:] ** 2, axis=-1))
    return data.epoch.values[np.argmax(size >= 0.1 * size.max(axis=1, keepdims=True), axis=1)]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("aa;bc", row=3.1)
    colours = dict(zip(NETWORKS, COLOURS, strict=False))
    for loss in data.loss.sel(network="ReLU"):
        at["a"].plot(data.epoch, loss, color=colours["ReLU"], lw=1.2, alpha=max(0.15, min(1.0, 5 / data.sizes["seed"])))
    for level in PLATEAUS:
        border(at["a"], level, str(level), across=True)
    low, high = data.loss.quantile([0.1, 0.9], "seed")
    for name in data.network.values:
        edges = low.sel(network=name), high.sel(network=name)
        at["b"].fill_between(data.epoch, *edges, color=colours[name], alpha=0.25, lw=0)
        at["b"].plot(data.epoch, data.loss.sel(network=name).mean("seed"), color=colours[name], lw=1.8)
    of_gates = dict(zip(GATES, COLOURS[3:], strict=False))
    for gate, colour in of_gates.items():
        at["c"].plot(data.epoch, data.on_for.sel(gate=gate).mean("gate_seed"), color=colour, lw=1.8)
    at["a"].set(ylabel="loss, summed over samples", title=f"The same plateaus in {data.sizes['seed']} ReLU networks")
    at["b"].set(ylabel="loss, summed over samples", title="Mean loss, ReLU and gated networks")
    at["c"].set(ylabel="share of the layer's weight", ylim=(-0.02, 1.02), title="Gates of the ReLU networks")
    for axes in at.values():
        axes.set_xlabel(EPOCHS)
    key(sheet, {NETWORKS[str(name)]: colours[str(name)] for name in data.network.values} | of_gates, kinds=())
    return sheet
