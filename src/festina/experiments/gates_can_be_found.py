"""k-means on the gates of ReLU units finds one common and three two-context pathways, if dead units are left out.

Three ReLU networks that learn items in three contexts are recorded every 100 epochs. A row of the record, for one unit
at one time, says for which samples the unit is on. k-means over these rows gives K centroids; with K = 4 they should be
the gates of a gated network that learns like the ReLU network. To choose K, a gated network is trained with each number
of gates: the error of its outputs falls up to K = 4 and hardly beyond. Weighted by the size of units, without dead
units and times before learning, the best of ten starts of k-means gives the four gates in every set of trainings here.
Leaving out the rows of dead units, with all else as printed, is enough for that.

**What does not reproduce.** As printed (algorithm 1: all rows count alike), one start of k-means mostly ends elsewhere,
often with a gate that is on for a part of a context. In some sets of trainings even the best of ten starts misses a
gate: dead units, 3 or 4 % of the rows, join a cluster and pull its centroid down. Nor are the clusters pure: centroids
are 0.1 to 0.2 away from 0 and 1, because hardly a unit has such a gate itself. The gates describe an average.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray

from .. import Setup, inits, nets, rules, tasks
from .._figures.panels import key, panels
from .._figures.style import COLOURS, trained
from ..gates.clusters import METHODS
from ..gates.finding import find
from ..gates.freezing import freeze
from ..gates.frozen_twin import Frozen
from ..gates.how_many import CLOSE
from ..gates.recording import record
from ._kit.gate_clusters import ALIVE, clusters, draw_clusters, has_four_gates, some_seeds
from ._kit.item_contexts import EPOCHS, RATE
from ._kit.labelled import labelled, stack, table
from ._kit.parameters import Count, Counts, Positive, Seed, Truth, checked
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

THEME, PLACE = "twins", 4
REFERENCE = {"jarvis2025": "appendix B, algorithm 1, figures 8 and 9"}
# Pathways as wide as the network, and one for each training, share compiled code with it.
QUICK = dict(hidden=280, width=280, lr=0.01, every=400, trials=1, starts=6, tried=(2, 4), twins=3, printed_too=False)
CAPTION = """
Which ReLU units are on for which samples, clustered by k-means into K clusters. **a**, **b** Centroids: each row is a
cluster, each column one of eight items in context 1, 2 or 3, and the shade is the share of the cluster that is on. Rows
are named by the contexts in which most of the cluster is on for all items; “other”: for a part of a context, or in one
only. In a all rows of the record count alike, as printed; in b units count by size, without dead units and times before
learning. **c** How often K = 4 gives the four gates named in a: from one start of k-means (bars), and from the best of
ten starts over sets of trainings (diamonds). **d** Loss of a ReLU network (thick), and of gated networks with the K
gates of b. An epoch is one step at rate 10⁻³ on the loss summed over samples.
"""
ALT = """
With four clusters the centroids are dark in all three contexts or in two of them, but not pure; single runs of k-means
often miss a gate. The loss of a gated network with four gates stays near that of ReLU, and with two gates it stops
falling.
"""
CONTEXTS, ITEMS = 3, 8
WAYS = {
    "as_printed": "all rows alike\n(as printed)",
    ALIVE: "as printed, but\nno dead rows",
    "weighted": "weighted\nby size",
}


@checked
def run(
    *,
    hidden: Count = 700,
    width: Count = 100,
    scale: Positive = 0.005 / 700,
    lr: Positive = RATE,
    epochs: Count = 8000,
    every: Count = 100,
    trainings: Count = 3,
    trials: Count = 4,
    starts: Count = 20,
    shown: Counts = (2, 3, 4, 5),
    tried: Counts = (1, 2, 3, 4, 5, 6, 7),
    twins: Count = 1,
    printed_too: Truth = True,
    seed: Seed = 0,
) -> Result:
    """`trials` sets of `trainings` networks are trained; the gates of each set are clustered from `starts` starts.

    Centroids are drawn for `shown` numbers of clusters. For each number `tried`, a gated network with `width` units for
    each gate is trained beside the first `twins` networks, with the gates of both methods if `printed_too`. `lr` is the
    rate on the summed loss.
    """
    task, samples = tasks.contextual(ITEMS, CONTEXTS), ITEMS * CONTEXTS
    epoch = np.arange(0, epochs + 1, every)
    rule, times = rules.GradientDescent(lr * samples), epoch * RATE * samples
    setup = Setup(task, nets.MLP(hidden), inits.SmallRandom(scale), rule, times=times)
    seeds = list(range(seed, seed + trials * trainings))
    everything = record(setup, seeds, observe=("outputs", "similarity"), interrupt="raise")
    sets = [some_seeds(everything, range(k * trainings, (k + 1) * trainings)) for k in range(trials)]
    reference = some_seeds(everything, range(min(twins, trainings)))
    counts = sorted({*shown, *tried, 4})
    gates = {method: {k: find(sets[0], k, method, seed=seed) for k in counts} for method in METHODS}
    once = [[[has_four_gates(one, how, 1, k) for k in range(starts)] for one in sets] for how in WAYS]
    best_of_ten = [[has_four_gates(one, how, 10, seed) for one in sets] for how in WAYS]
    compared = list(METHODS) if printed_too else ["weighted"]
    centres = {w: stack({k: clusters(one, counts[-1]) for k, one in of.items()}, "clusters") for w, of in gates.items()}
    frozen = {w: {k: freeze(reference, gates[w][k], width=width, progress=False) for k in tried} for w in compared}
    data = xarray.Dataset(
        {
            **stack(centres, "way"),
            **stack(
                {w: stack({k: _measured(one) for k, one in of.items()}, "tried") for w, of in frozen.items()}, "twin"
            ),
            "one_start": table(np.array(once, np.int8), "how", "set", "start"),
            "ten_starts": table(np.array(best_of_ten, np.int8), "how", "set"),
            "rows": ("way", [of_way[4].rows for of_way in gates.values()]),
            "distinct": ("way", [of_way[4].distinct for of_way in gates.values()]),
            "dead": ((), np.mean(~sets[0]["gates"].any(axis=-1))),
            "loss": labelled(reference, "loss", seed=0),
        },
        coords={"epoch": ("time", epoch), "how": list(WAYS)},
        attrs={"shown": list(shown)},
    )
    return Result(data, {"ReLU": setup, "gated, K = 4": frozen["weighted"][4].setup})


def _measured(twin: Frozen) -> Dataset:
    """The error of the outputs of a gated network, the mean gap of its loss, and its loss."""
    gap = twin.errors.raw_mean[0].drop_vars("candidate")
    return xarray.Dataset({"error": twin.error, "gap": gap, "twin_loss": labelled(twin.trajectory, "loss", seed=0)})


def claims(result: Result) -> list[Claim]:
    data = result.data
    once, ten = data.one_start.mean(("set", "start")), data.ten_starts.mean("set")
    error = data.error.sel(twin="weighted")
    close = error <= CLOSE * error.min()
    before = error.where(error.tried < 4, drop=True)
    doubt = data.ambiguity.sel(clusters=4).mean("gate")
    purer = doubt.sel(way="weighted") / doubt.sel(way="as_printed")
    rows, different = (data[name].sel(way="as_printed") for name in ("rows", "distinct"))
    statements = [
        paper(
            "K = 4, weighted, best of ten starts: share of sets of trainings with the common and two-context gates",
            at_least(ten.sel(how="weighted"), 1.0),
            headline=True,
            panel="c",
        ),
        paper(
            "K = 4, as printed, one start of k-means: share of starts with the common and two-context gates",
            at_least(once.sel(how="as_printed"), 0.95),
            fails="k-means ends in other clusters; with dead units the four are not even always the best",
            panel="c",
        ),
        paper(
            "Error of outputs of a gated network with the next lower number of gates tried, over that with four",
            at_least(before[-1] / error.sel(tried=4), 1.4),
        ),
        paper(
            "Loss of a gated network with the four gates and of ReLU: mean gap over initial loss",
            at_most(data.gap.sel(twin="weighted", tried=4), 0.03),
            panel="d",
        ),
        ours("Distinct rows of the record over all rows: most are duplicates", at_most(different / rows, 0.5)),
        ours("Share of rows of dead units, which the printed algorithm counts", between(data.dead, 0.01, 0.1)),
        paper(
            "Clusters are pure: mean distance of the four weighted centroids from 0 and 1",
            at_most(doubt.sel(way="weighted"), 0.05),
            fails="hardly a unit is on in whole contexts; clusters hold units that are on for some items of a context",
            panel="b",
        ),
        ours("Mean distance of the four centroids from 0 and 1, weighted over as printed", at_most(purer, 1.0)),
    ]
    if error.tried.max() > 4:
        text = "More than four gates bring a gated network no closer: least K within 25 % of the least error of outputs"
        statements.append(paper(text, between(error.tried[int(np.argmax(close.values))], 4, 4)))
    if data.sizes["set"] < 4:  # too few to compare how often gates are found
        return statements
    more = once - once.sel(how="as_printed")
    return [
        *statements,
        ours(
            "K = 4, one start: share of starts with the four gates, weighted minus as printed",
            at_least(more.sel(how="weighted"), 0.25),
            panel="c",
        ),
        paper(
            "K = 4, as printed, best of ten starts: share of sets of trainings with the four gates",
            at_least(ten.sel(how="as_printed"), 1.0),
            fails="dead units join a cluster and pull its centroid down",
            panel="c",
        ),
        ours(
            "K = 4, as printed but without rows of dead units, best of ten starts: share of sets with the four gates",
            at_least(ten.sel(how=ALIVE), 1.0),
            headline=True,
            panel="c",
        ),
        ours(
            "K = 4, one start: share of starts with the four gates, without rows of dead units minus as printed",
            at_least(more.sel(how=ALIVE), 0.25),
            panel="c",
        ),
    ]


def figure(result: Result) -> Figure:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    data = result.data
    sheet, at = panels("ab;cd", row=3.1)
    draw_clusters(at["a"], data.sel(way="as_printed"))
    image = draw_clusters(at["b"], data.sel(way="weighted"))
    sheet.colorbar(image, ax=at["b"], label="share of the cluster that is on")
    at["c"].barh(list(WAYS.values()), data.one_start.mean(("set", "start")), color="0.8", height=0.5)
    at["c"].plot(data.ten_starts.mean("set"), list(WAYS.values()), "D", color="0.1", ms=6, clip_on=False)
    at["c"].set(xlabel="share that gives the four gates", xlim=(0, 1))
    at["c"].invert_yaxis()
    trained(at["d"], data.epoch, data.loss / data.loss[0], colour=COLOURS[0])
    few = [int(k) for k in data.tried.values if k <= 4]
    for k in few:
        at["d"].plot(data.epoch, data.twin_loss.sel(twin="weighted", tried=k) / data.loss[0], color=COLOURS[k], lw=1.5)
    at["d"].set(xlabel=EPOCHS, ylabel="loss over initial loss", yscale="log", ylim=(1e-4, 1.5))
    titles = ("Clusters, all rows alike", "Clusters, by size", "Success of k-means at K = 4", "Four gates follow ReLU")
    for axes, title in zip(at.values(), titles, strict=True):
        axes.set_title(title)
    ways = [Patch(color="0.8", label="one start"), Line2D([], [], color="0.1", marker="D", ls="", label="best of ten")]
    key(sheet, {"ReLU": COLOURS[0]} | {f"gated, K = {k}": COLOURS[k] for k in few}, kinds=(), marks=ways)
    return sheet
