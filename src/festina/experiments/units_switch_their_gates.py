"""ReLU units change their gates while they learn contexts; a gated network with a few constant gates describes their
average.

A ReLU network is a gated linear network whose gates, one per unit and sample, may change at any time. Replayed at every
step they give the network itself, up to rounding, whatever the gates do. Reducing a ReLU network on items in contexts
to a common pathway and pathways for two contexts says more: that units keep their gates, and share a few of them.

Here the gates of every unit are followed. When the loss begins to fall, all units that have grown are on everywhere.
The same units later hold most of the weight, and hardly any of it stays on everywhere: they come to split contexts by
items, in nearly as many patterns as there are units. By majority (a context counts if a unit is on for most of its
items) most of the weight is for two contexts, in equal parts for the three pairs. Constant gates, found by clustering,
therefore give loss and outputs within a few per cent; hidden activity is laid out alike at first, and differs in the
end.

**What does not reproduce.** Unlike in [jarvis2025, section 4], gates are not “constant from the start”, and units do
switch. The initial weights of 10⁻⁷ of table 1 do not help: units switch as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int8

from .. import Setup, Trajectory, inits, nets, rules, tasks
from .._figures.style import COLOURS, new_figure
from .._foundation.checks import positive, whole
from ..gates.freezing import freeze
from ..gates.reading import purity
from ..gates.recording import record, unpacked
from ..gates.replay import replay
from ._kit.gate_panels import (
    CONTEXTS,
    FOLLOWED,
    ITEMS,
    PAIRS,
    draw_errors,
    draw_followed,
    draw_patterns,
    draw_switches,
    draw_votes,
)
from ._kit.item_contexts import EPOCHS, RATE
from .base import Claim, Result, at_least, at_most, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure


THEME, PLACE = "twins", 5
REFERENCE = {"jarvis2025": "section 4 and definition 3.1; figure 4"}
# Pathways as wide as the network share its compiled code.
QUICK = dict(hidden=280, width=280, lr=0.01, every=200, seeds=1)
KINDS = ("all on", "two whole contexts", "one whole context", "some items only", "off")
STRONGEST = 120  # units whose gates are drawn


def run(
    *,
    hidden: int = 700,
    width: int | str = "share",
    scale: float = 0.005 / 700,
    small: float = 1e-7,
    lr: float = RATE,
    epochs: int = 8000,
    every: int = 100,
    seeds: int = 3,
    seed: int = 0,
) -> Result:
    """`scale`: standard deviation of weights as run, `small` as printed; `lr` is the rate on the summed loss.

    `width` is that of each pathway with constant gates; "share" divides the units of the network among them.
    """
    hidden, seeds = whole(hidden, "hidden"), whole(seeds, "seeds")
    scales = positive(scale, "scale"), positive(small, "small")
    task, draws = tasks.contextual(ITEMS, CONTEXTS), list(range(seed, seed + seeds))
    samples = task.samples or 1
    epoch = np.arange(0, whole(epochs, "epochs") + 1, whole(every, "every"))
    setup = Setup(
        task,
        nets.MLP(hidden),
        inits.SmallRandom(scales[0]),
        rules.GradientDescent(positive(lr, "lr") * samples),
        times=epoch * RATE * samples,
    )
    records = [
        record(setup.replace(init=inits.SmallRandom(size)), draws, observe=("outputs", "similarity"), interrupt="raise")
        for size in scales
    ]
    exact = replay(records[0], progress=False)
    frozen = freeze(records[0], width=width, progress=False)
    twin, errors = frozen.trajectory, frozen.errors.isel(candidate=0)
    first = records[0]["loss"][:, :1]
    readings = [purity(one).isel(layer=0) for one in records]
    instants = [int(np.argmin(np.abs(epoch - at))) for at in FOLLOWED if at <= epochs]
    import xarray

    def both(name: str) -> tuple[tuple[str, str, str], np.ndarray]:
        return ("start", "seed", "time"), np.stack([reading[name].values for reading in readings])

    data = xarray.Dataset(
        {
            "loss": (("start", "seed", "time"), np.stack([one["loss"] for one in records])),
            "share": (
                ("start", "seed", "time", "kind"),
                np.stack(
                    [
                        np.stack([*(one.on_for[..., k] for k in range(CONTEXTS, 0, -1)), one.split, one.dead], axis=-1)
                        for one in readings
                    ]
                ),
            ),
            "majority": (("seed", "time", "vote"), readings[0].majority.values),
            **{name: both(name) for name in ("switched", "began_all_on", "kept_all_on", "strong", "distinct")},
            "never_growing": (("start", "seed"), np.stack([reading.never_growing.values for reading in readings])),
            "flips": (("seed", "interval"), _flips(records[0], samples)),
            "on": (("shown", "hidden", "sample"), _followed(records[0], instants, samples)),
            "replay_error": (("seed", "time"), exact.errors),
            "flipped": (("seed", "time"), exact.flipped),
            "loss_gap": (("seed", "time"), np.abs(twin["loss"] - records[0]["loss"]) / first),
            "output_gap": (("time",), errors.output_gap.values),
            "geometry": (("time",), errors.geometry.values),
        },
        coords={
            "time": setup.times,
            "epoch": ("time", epoch),
            "seed": draws,
            "start": list(scales),
            "kind": list(KINDS),
            "vote": readings[0].vote.values,
            "shown": epoch[instants],
            "interval": epoch[1:],
        },
        attrs={"gates": list(frozen.found[0].names), "every": int(every)},
    )
    return Result(data, {"ReLU": setup, "with gates that stay": frozen.setup})


def _flips(trained: Trajectory, samples: int) -> Float[np.ndarray, "seed interval"]:
    """The share of gates that differ from those of the record before, averaged over units by their weight."""
    packed, size = trained["gates"], trained["unit_size"][:, 1:]
    changed = np.bitwise_count(packed[:, 1:] ^ packed[:, :-1]).sum(axis=-1) / samples
    return np.sum(changed * size, axis=-1) / size.sum(axis=-1)


def _followed(trained: Trajectory, instants: Sequence[int], samples: int) -> Int8[np.ndarray, "shown unit sample"]:
    """Gates of the units that are strongest in the end, sorted by the contexts that they are then active on."""
    strongest = np.argsort(-trained["unit_size"][0, -1])[:STRONGEST]
    on = unpacked(trained["gates"][0][instants][:, strongest], samples)
    part = on[-1].reshape(len(strongest), CONTEXTS, ITEMS).mean(axis=-1)
    votes = (part > 0.5) @ 2 ** np.arange(CONTEXTS)
    # Units with the same vote stand together, those for more contexts first; within a vote the more regular ones.
    order = np.lexsort([part.sum(axis=1), votes, -(part > 0.5).sum(axis=1)])
    return on[:, order].astype(np.int8)


def claims(result: Result) -> list[Claim]:
    data = result.data
    run_as, printed = data.start.values
    end = data.mean("seed").isel(time=-1)
    at = end.sel(start=run_as)
    share, votes = at.share, end.majority
    pairs = votes.sel(vote=list(PAIRS))
    return [
        paper(
            "With the gates of every step a linear network is the ReLU network: largest relative gap of outputs",
            at_most(float(data.replay_error.max()), 1e-9),
        ),
        paper(
            "Gating is constant: share of the weight in units with the gates that they had when learning began",
            at_least(1 - float(at.switched), 0.9),
            fails="nearly all change: units that learn what is common later learn the rest",
        ),
        ours(
            "In the end most of the weight is in units that were strong and on everywhere when learning began: share",
            at_least(float(at.began_all_on), 0.75),
        ),
        paper(
            "… and these stay the common pathway: the part of this weight that is still on everywhere",
            at_least(float(at.kept_all_on), 0.5),
            fails="the units that have learned what is common turn to the contexts",
        ),
        ours("In the end few units are active on all samples: share of the weight", at_most(float(share[0]), 0.05)),
        ours(
            "… nearly all split a context by items: share of the weight", at_least(float(share.sel(kind=KINDS[3])), 0.9)
        ),
        ours(
            "… in nearly as many patterns as there are strong units: ratio",
            at_least(float(at.distinct / at.strong), 0.75),
        ),
        ours(
            f"… and gates change to the end: share that changes in {data.attrs['every']} epochs, last quarter",
            at_least(float(data.flips.where(data.interval > 0.75 * data.interval[-1]).mean()), 0.01),
        ),
        paper("By majority most of the weight is for two contexts: share", at_least(float(pairs.sum()), 0.6)),
        ours(
            "… in similar parts for the three pairs: smallest / largest",
            at_least(float(pairs.min() / pairs.max()), 0.6),
        ),
        paper(
            "With four constant gates the loss is near: mean distance / first loss",
            at_most(float(data.loss_gap.mean()), 0.03),
        ),
        paper("… and so are the outputs in the end: relative gap", at_most(float(end.output_gap), 0.08)),
        paper(
            "Hidden geometry is alike at epoch 1000: correlation of distances between samples",
            at_least(float(np.interp(1000, data.epoch, data.geometry)), 0.97),
        ),
        paper(
            "… and in the end: the same correlation",
            at_least(float(end.geometry), 0.95),
            fails="units that split contexts change the hidden geometry; loss and outputs do not show it",
        ),
        ours(
            f"From weights of sd {printed:.0e}, as printed, units switch, too: part of all-on weight that stays all-on",
            at_most(float(end.kept_all_on.sel(start=printed)), 0.1),
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, ((kinds, votes, switches), (units, patterns, errors)) = new_figure(2, 3, width=4.6, height=3.4)
    mean = data.mean("seed")
    run_as = data.start.values[0]
    colours = [COLOURS[0], COLOURS[1], COLOURS[2], "0.85", "0.6"]
    kinds.stackplot(data.epoch, mean.share.sel(start=run_as).T, colors=colours, labels=data.kind.values, lw=0)
    kinds.set_title("samples on which units are active")
    draw_votes(votes, mean)
    for axes in (kinds, votes):
        axes.set(xlabel=EPOCHS, ylabel="share of the weight", ylim=(0, 1), xlim=(0, float(data.epoch[-1])))
        axes.legend(loc="center right", frameon=True, framealpha=0.9)
    draw_switches(switches, mean)
    draw_followed(units, data)
    draw_patterns(patterns, mean, data.attrs["every"])
    draw_errors(errors, mean)
    return sheet
