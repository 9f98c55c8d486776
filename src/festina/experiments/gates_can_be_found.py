"""Clustering the gates of ReLU units finds the common and the two-context pathways, if dead units are left out.

Three trainings of a ReLU network on items in three contexts are recorded every 100 epochs. Each row of the record, of
one unit at one time, says for which samples the unit is on. k-means over these rows gives K centroids; with K = 4 they
should be the gates of a gated network that learns in the same way, one open in all contexts and three open in two
contexts each. To choose K, a gated network is trained with each number of gates: the error of its outputs falls up to
K = 4 and hardly further.

**What holds.** Weighted by the size of units, without dead units and without times before learning, the best of ten
starts of k-means gives the four gates in every set of trainings here. Leaving out the rows of dead units, with all else
as printed, is enough for that. Most rows are duplicates, so clustering needs to look at the distinct ones only.

**What does not reproduce.** As printed (algorithm 1: all rows count alike), one start of k-means mostly ends elsewhere,
often with a gate that is on for a part of a context; how often depends on the trainings. In some sets even the best of
ten starts does not have all four gates: dead units, 3 or 4 % of the rows, join a cluster and pull its centroid down.
Nor are the clusters pure: centroids are 0.1 to 0.2 away from 0 and 1, because hardly a unit has such a gate itself. The
gates describe an average over units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import Setup, inits, nets, rules, tasks
from .._figures.style import COLOURS, new_figure, predicted, trained
from .._foundation.checks import positive, whole
from ..gates.clusters import METHODS
from ..gates.finding import find
from ..gates.freezing import freeze
from ..gates.how_many import CLOSE
from ..gates.recording import record
from ._kit.gate_clusters import ALIVE, NAMES, draw_centroids, draw_successes, has_four_gates, some_seeds, table
from ._kit.item_contexts import EPOCHS, RATE
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEME, PLACE = "twins", 4
REFERENCE = {"jarvis2025": "appendix B, algorithm 1, figures 8 and 9"}
# Pathways as wide as the network, and one for each training, share compiled code with it.
QUICK = dict(
    hidden=280,
    width=280,
    lr=0.01,
    every=400,
    trials=1,
    starts=6,
    shown=(2, 4),
    tried=(2, 4),
    twins=3,
    printed_too=False,
)
CONTEXTS, ITEMS = 3, 8


def run(
    *,
    hidden: int = 700,
    width: int = 100,
    scale: float = 0.005 / 700,
    lr: float = RATE,
    epochs: int = 8000,
    every: int = 100,
    trainings: int = 3,
    trials: int = 4,
    starts: int = 20,
    shown: Sequence[int] = (2, 3, 4, 5),
    tried: Sequence[int] = (1, 2, 3, 4, 5, 6, 7),
    twins: int = 1,
    printed_too: bool = True,
    seed: int = 0,
) -> Result:
    """`trials` sets of `trainings` networks are trained; the gates of each set are clustered from `starts` starts.

    Centroids are drawn for `shown` numbers of clusters. For each number `tried`, a gated network with `width` units for
    each gate is trained beside the first `twins` networks, with the gates of both methods if `printed_too`. `lr` is the
    rate on the summed loss.
    """
    hidden, width, trainings = whole(hidden, "hidden"), whole(width, "width"), whole(trainings, "trainings")
    trials, starts = whole(trials, "trials"), whole(starts, "starts")
    task = tasks.contextual(ITEMS, CONTEXTS)
    samples = task.samples or 1
    epoch = np.arange(0, whole(epochs, "epochs") + 1, whole(every, "every"))
    rule, init = rules.GradientDescent(positive(lr, "lr") * samples), inits.SmallRandom(positive(scale, "scale"))
    setup = Setup(task, nets.MLP(hidden), init, rule, times=epoch * RATE * samples)
    seeds = range(seed, seed + trials * trainings)
    everything = record(setup, list(seeds), observe=("outputs", "similarity"), interrupt="raise")
    sets = [some_seeds(everything, range(k * trainings, (k + 1) * trainings)) for k in range(trials)]
    reference = some_seeds(everything, range(min(whole(twins, "twins"), trainings)))
    counts = sorted({*shown, *tried})
    gates = {(method, k): find(sets[0], k, method, seed=seed) for method in METHODS for k in counts}
    hows = [*METHODS, ALIVE]
    once = [[[has_four_gates(one_set, how, 1, k) for k in range(starts)] for one_set in sets] for how in hows]
    best_of_ten = [[has_four_gates(one_set, how, 10, seed) for one_set in sets] for how in hows]
    compared = list(METHODS) if printed_too else ["weighted"]
    frozen = {(m, k): freeze(reference, gates[m, k], width=width, progress=False) for m in compared for k in tried}
    import xarray

    per_gate = ("way", "clusters", "gate")
    data = xarray.Dataset(
        {
            "centroid": ((*per_gate, "sample"), table(gates, counts, lambda found: found.centroids, np.nan, samples)),
            "name": (per_gate, table(gates, counts, lambda found: found.names, " " * 12)),
            "share": (per_gate, table(gates, counts, lambda found: found.share, np.nan)),
            "ambiguity": (per_gate, table(gates, counts, lambda found: found.ambiguity, np.nan)),
            "one_start": (("how", "set", "start"), np.array(once).astype(np.int8)),
            "ten_starts": (("how", "set"), np.array(best_of_ten).astype(np.int8)),
            "rows": (("way",), [gates[method, 4].rows for method in METHODS]),
            "distinct": (("way",), [gates[method, 4].distinct for method in METHODS]),
            "dead": ((), np.mean(~sets[0]["gates"].any(axis=-1))),
            "error": (("twin", "tried"), [[frozen[m, k].error for k in tried] for m in compared]),
            "gap": (("twin", "tried"), [[float(frozen[m, k].errors.raw_mean[0]) for k in tried] for m in compared]),
            "loss": (("time",), reference["loss"][0]),
            "twin_loss": (("tried", "time"), [frozen["weighted", k].trajectory["loss"][0] for k in tried]),
        },
        coords={
            "time": setup.times,
            "epoch": ("time", epoch),
            "way": list(METHODS),
            "how": hows,
            "clusters": counts,
            "twin": compared,
            "tried": list(tried),
            "context": ("sample", np.asarray((task.labels or {})["context"])),
        },
        attrs={"shown": list(shown), "trainings": trainings, "width": width},
    )
    return Result(data, {"ReLU": setup, "gated, K = 4": frozen["weighted", 4].setup})


def claims(result: Result) -> list[Claim]:
    data = result.data
    once, ten = data.one_start.mean(("set", "start")), data.ten_starts.mean("set")
    error = data.error.sel(twin="weighted")
    close = error <= CLOSE * error.min()
    before = error.where(error.tried < 4, drop=True)
    doubt = data.ambiguity.sel(clusters=4).mean("gate")
    rows, different = (data[name].sel(way="as_printed") for name in ("rows", "distinct"))
    statements = [
        paper(
            "K = 4 gives the common and the two-context gates: share of sets (weighted, best of ten starts)",
            at_least(ten.sel(how="weighted"), 1.0),
        ),
        paper(
            "… as printed, from one start of k-means: share of starts",
            at_least(once.sel(how="as_printed"), 0.95),
            fails="k-means ends in other clusters; with dead units the four are not even always the best",
        ),
        paper(
            "Gated networks with fewer gates are far from ReLU: error at the next lower K tried / error at 4",
            at_least(before[-1] / error.sel(tried=4), 1.4),
        ),
        paper(
            "With the four gates the loss is that of ReLU: mean distance / first loss",
            at_most(data.gap.sel(twin="weighted", tried=4), 0.03),
        ),
        ours("Most rows are duplicates: distinct rows / all rows", at_most(different / rows, 0.5)),
        ours("As printed, dead units take part: share of rows that are all off", between(data.dead, 0.01, 0.1)),
        paper(
            "Clusters are pure: mean distance of the four centroids from 0 and 1, weighted",
            at_most(doubt.sel(way="weighted"), 0.05),
            fails="hardly a unit is on in whole contexts; clusters hold units that are on for some items of a context",
        ),
        ours(
            "… but purer than as printed: ratio of these distances",
            at_most(doubt.sel(way="weighted") / doubt.sel(way="as_printed"), 1.0),
        ),
    ]
    if error.tried.max() > 4:
        statements.append(
            paper(
                "Gated networks come no closer with more than four gates: least K within 25 % of the least error",
                between(error.tried[int(np.argmax(close.values))], 4, 4),
            )
        )
    if data.sizes["set"] < 4:  # too few to compare how often gates are found
        return statements
    return [
        *statements,
        ours(
            "Weighted, one start gives the four gates more often: share of starts − that as printed",
            at_least(once.sel(how="weighted") - once.sel(how="as_printed"), 0.25),
        ),
        paper(
            "As printed, the best of ten starts gives the four gates: share of sets",
            at_least(ten.sel(how="as_printed"), 1.0),
            fails="dead units join a cluster and pull its centroid down",
        ),
        ours(
            "… but it does so if the rows of dead units are left out, with all else as printed: share of sets",
            at_least(ten.sel(how=ALIVE), 1.0),
        ),
        ours(
            "… which also helps single starts: share of starts − that as printed",
            at_least(once.sel(how=ALIVE) - once.sel(how="as_printed"), 0.25),
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, ((printed, often, elbow), (weighted, doubts, losses)) = new_figure(2, 3, width=4.6, height=3.3)
    for axes, method in ((printed, "as_printed"), (weighted, "weighted")):
        draw_centroids(axes, data, method)
    draw_successes(often, data)
    for k, method in enumerate(data.way.values):
        colour = COLOURS[k]
        if method in data.twin.values:
            elbow.plot(data.tried, data.error.sel(twin=method), "o-", color=colour, label=NAMES[method])
        mean = data.ambiguity.sel(way=method).mean("gate")
        doubts.plot(data.clusters, mean, "o-", color=colour, label=NAMES[method])
    beyond = "error falls up to four gates only" if data.tried.max() > 4 else "large error with fewer than four gates"
    elbow.set(xlabel="gates K", yscale="log", xticks=data.tried.values, title=beyond)
    elbow.set_ylabel("mean square error of outputs")
    elbow.axvline(4, color="0.8", lw=1, zorder=0)
    elbow.legend()
    doubts.set(xlabel="gates K", xticks=data.clusters.values, ylim=(0, None), title="centroids are not pure")
    doubts.set_ylabel("distance from 0 and 1")
    doubts.legend()
    first = float(data.loss[0])
    trained(losses, data.epoch, data.loss / first, colour=COLOURS[0], label="ReLU")
    for k, count in enumerate(count for count in data.tried.values if count <= 4):
        loss = data.twin_loss.sel(tried=count) / first
        predicted(losses, data.epoch, loss, colour=COLOURS[k + 1], label=f"K = {count}")
    losses.set(xlabel=EPOCHS, ylabel="loss / first loss", title="gated networks with K gates", yscale="log")
    losses.set_ylim(1e-4, 1.5)
    losses.legend(ncols=2, loc="lower left")
    return sheet
