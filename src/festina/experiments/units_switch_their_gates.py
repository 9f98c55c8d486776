"""ReLU units change their gates while they learn contexts; a gated network with a few constant gates describes their
average.

A ReLU network is a gated linear network whose gates, one per unit and sample, may change at any time. Replayed at every
step they give the network itself, up to rounding. The reduction of a ReLU network on items in contexts to a common
pathway and pathways for two contexts assumes more: that units keep their gates, and share a few of them.

Here the gates of every unit are followed. When the loss begins to fall, all units that have grown are on everywhere.
The same units later hold most of the weight, and hardly any of it stays on everywhere: they come to split contexts by
items, in nearly as many patterns as there are units. By majority (a context counts if a unit is on for most of its
items) most of the weight is for two contexts, in similar parts for the three pairs. Constant gates, found by
clustering, therefore give loss and outputs within a few per cent; the geometry of hidden activity is alike at first,
and differs in the end.

**What does not reproduce.** Unlike in [jarvis2025, section 4], gates are not “constant from the start”, and units do
switch. The initial weights of 10⁻⁷ of table 1 do not help: units switch as much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray

from .. import Setup, inits, nets, rules, tasks
from .._figures.panels import key, panels
from .._figures.style import COLOURS
from ..gates.freezing import freeze
from ..gates.reading import purity
from ..gates.recording import record
from ..gates.replay import replay
from ._kit.followed_gates import CONTEXTS, ITEMS, draw_followed, flips, followed
from ._kit.item_contexts import EPOCHS, RATE
from ._kit.labelled import labelled, stack
from ._kit.parameters import Count, Positive, Seed, checked
from .base import Claim, Result, at_least, at_most, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEME, PLACE = "twins", 5
REFERENCE = {"jarvis2025": "section 4 and definition 3.1; figure 4"}
# Pathways as wide as the network share its compiled code.
QUICK = dict(hidden=280, width=280, lr=0.01, every=200, seeds=1)
CAPTION = """
**a** Gates of the same units at four times: each row is one of the units that are strongest in the end, always in the
same order, each column one of eight items in context 1, 2 or 3; black is on. **b** Share of the weight in units that
are on for all samples, for all items of two contexts, for all items of one, for some items of a context only, or never.
**c** The same if a unit counts for a context when it is on for most of its items; the shades of orange are the three
pairs of contexts. The weight of a unit is the product of the sizes of its incoming and outgoing weights. An epoch is
one step of gradient descent at rate 10⁻³ on the loss summed over samples.
"""
ALT = """
Units that are on everywhere at first show irregular patterns later, each its own; after 2000 epochs nearly all weight
is in units that split contexts. By majority of items most of it is for two contexts, in three similar bands.
"""
PAIRS = ("110", "101", "011")  # contexts in which units are on by majority
FOLLOWED = (500, 1000, 2000, 8000)  # epochs at which the gates of some units are drawn
KINDS = dict(
    zip(
        ["all contexts", "two contexts", "one context", "some items only", "off"],
        [*COLOURS[:3], "0.85", "0.6"],
        strict=True,
    )
)
READ = ("switched", "began_all_on", "kept_all_on", "strong", "distinct")


@checked
def run(
    *,
    hidden: Count = 700,
    width: int | str = "share",
    scale: Positive = 0.005 / 700,
    small: Positive = 1e-7,
    lr: Positive = RATE,
    epochs: Count = 8000,
    every: Count = 100,
    seeds: Count = 3,
    seed: Seed = 0,
) -> Result:
    """`scale`: standard deviation of weights as run, `small` as printed; `lr` is the rate on the summed loss.

    `width` is that of each pathway with constant gates; "share" divides the units of the network among them.
    """
    task, samples, epoch = tasks.contextual(ITEMS, CONTEXTS), ITEMS * CONTEXTS, np.arange(0, epochs + 1, every)
    rule, times = rules.GradientDescent(lr * samples), epoch * RATE * samples
    setup = Setup(task, nets.MLP(hidden), inits.SmallRandom(scale), rule, times=times)
    draws = list(range(seed, seed + seeds))
    records = {
        sd: record(
            setup.replace(init=inits.SmallRandom(sd)), draws, observe=("outputs", "similarity"), interrupt="raise"
        )
        for sd in (scale, small)
    }
    relu, readings = records[scale], {sd: purity(one).isel(layer=0, drop=True) for sd, one in records.items()}
    frozen = freeze(relu, width=width, progress=False)
    loss, errors = labelled(relu, "loss"), frozen.errors.isel(candidate=0, drop=True)
    instants = [int(np.argmin(np.abs(epoch - at))) for at in FOLLOWED if at <= epochs]
    on_for = readings[scale].on_for
    shares = [*(on_for.sel(values_on=k, drop=True) for k in (3, 2, 1)), readings[scale].split, readings[scale].dead]
    data = xarray.Dataset(
        {
            **stack({sd: reading[list(READ)] for sd, reading in readings.items()}, "start"),
            "share": stack(dict(zip(KINDS, shares, strict=True)), "kind"),
            "majority": readings[scale].majority,
            "flips": (("seed", "interval"), flips(relu, samples)),
            "on": (("shown", "hidden", "sample"), followed(relu, instants, samples)),
            "replay_error": (("seed", "time"), replay(relu, progress=False).errors),
            "loss_gap": (("seed", "time"), np.abs(frozen.trajectory["loss"] - loss.values) / loss.values[:, :1]),
            "output_gap": ("time", errors.output_gap.values),
            "geometry": ("time", errors.geometry.values),
        },
        coords={"epoch": ("time", epoch), "shown": epoch[instants], "interval": epoch[1:]},
        attrs={"every": every},
    )
    return Result(data, {"ReLU": setup, "with gates that stay": frozen.setup})


def claims(result: Result) -> list[Claim]:
    data = result.data
    end = data.mean("seed").isel(time=-1)
    run_as, printed = (end.isel(start=k) for k in (0, 1))
    pairs = end.majority.sel(vote=list(PAIRS))
    last_quarter = data.flips.where(data.interval > 0.75 * data.interval[-1]).mean()
    return [
        paper(
            "Final share of the weight in units whose gates are those that they had when learning began",
            at_least(1 - run_as.switched, 0.9),
            fails="nearly all change: units that learn what is common to all contexts later learn the rest",
            headline=True,
            panel="a",
        ),
        paper(
            "Final share of the weight in units that are on for most items of exactly two contexts",
            at_least(pairs.sum(), 0.6),
            headline=True,
            panel="c",
        ),
        ours(
            "Final share of the weight in units that were strong and on everywhere when learning began",
            at_least(run_as.began_all_on, 0.75),
        ),
        paper(
            "Units that were strong and on everywhere when learning began: final share of their weight on everywhere",
            at_least(run_as.kept_all_on, 0.5),
            fails="units that have learned what is common to all contexts come to split them",
            panel="a",
        ),
        ours(
            "Final share of the weight in units that are on for all samples",
            at_most(end.share.sel(kind="all contexts"), 0.05),
            panel="b",
        ),
        ours(
            "Final share of the weight in units that are on for some items of a context only",
            at_least(end.share.sel(kind="some items only"), 0.9),
            panel="b",
        ),
        ours(
            "Final number of different gates of strong units, over the number of strong units",
            at_least(run_as.distinct / run_as.strong, 0.75),
        ),
        ours(
            f"Share of the gates that change in {data.attrs['every']} epochs, mean over the last quarter of training",
            at_least(last_quarter, 0.01),
        ),
        ours(
            "Final weight in units on for most items of a pair of contexts: smallest over largest of the three pairs",
            at_least(pairs.min() / pairs.max(), 0.6),
            panel="c",
        ),
        paper(
            "Linear network given the ReLU gates of every step: largest relative difference of outputs from ReLU",
            at_most(data.replay_error.max(), 1e-9),
        ),
        paper(
            "Loss of a gated network with four constant gates and of ReLU: mean gap / initial loss",
            at_most(data.loss_gap.mean(), 0.03),
        ),
        paper(
            "Outputs of a gated network with four constant gates and of ReLU in the end: relative distance",
            at_most(end.output_gap, 0.08),
        ),
        paper(
            "Hidden geometry with four constant gates and of ReLU at epoch 1000: correlation of pairwise distances",
            at_least(np.interp(1000, data.epoch, data.geometry), 0.97),
        ),
        paper(
            "Hidden geometry with four constant gates and of ReLU in the end: correlation of pairwise distances",
            at_least(end.geometry, 0.95),
            fails="units that split contexts change the hidden geometry; loss and outputs do not show it",
        ),
        ours(
            f"Units strong and on everywhere early, weights of {float(printed.start):.0e}: final share on everywhere",
            at_most(printed.kept_all_on, 0.1),
        ),
    ]


def figure(result: Result) -> Figure:
    from matplotlib.patches import Patch

    data = result.data
    sheet, at = panels("aa;bc", row=3.0)
    draw_followed(at["a"], data)
    share, votes = data.share.mean("seed"), data.majority.mean("seed")
    at["b"].stackplot(data.epoch, share, colors=list(KINDS.values()), lw=0)
    counted = [votes.sel(vote=vote) for vote in ("111", *PAIRS)]
    colours = [COLOURS[0], COLOURS[1], "#E58A4D", "#F3C5A0", COLOURS[2]]
    at["c"].stackplot(data.epoch, *counted, 1 - sum(counted), colors=colours, lw=0)
    for letter, title in (("b", "Units on for all items of a context"), ("c", "Units on for most items of a context")):
        at[letter].set(xlabel=EPOCHS, ylabel="share of the weight", title=title, ylim=(0, 1))
        at[letter].set_xlim(0, float(data.epoch[-1]))
    names = [*list(KINDS)[:2], "one context (c: or none)", *list(KINDS)[3:]]
    key(sheet, kinds=(), marks=[Patch(color=c, label=name) for name, c in zip(names, KINDS.values(), strict=True)])
    return sheet
