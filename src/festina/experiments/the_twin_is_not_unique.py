"""Gated networks with gates other than those of a ReLU network's twin can learn faster than this twin, and faster than
the ReLU network.

The twin is a gated network with a common pathway and a pathway for every two contexts; it has nearly the loss of a ReLU
network on items in contexts (see `context_dependent_processing`). Here the twin races other gatings of equally many
units, from the same law of initial weights and at the same learning rate. Their pathways are on for one context, for
one or two, for single points, for items, for random samples, or where units with random weights are on (see
`which_gates_can_a_unit_make`); some gatings have no common pathway. Pathways by context see the items only, as in the
source; the others see all inputs, like ReLU units.

Speed is not one number. Of what the common pathway leaves, pathways for two contexts have the largest singular value
and the smallest; single points have nearly equal ones:

    time to learn a mode ~ 1/s:    two contexts are earlier at a tenth of the loss, single points at a hundredth

Without a common pathway single points learn nothing for long and then everything at once, as the closed form of one
mode for each point says, with nothing fitted. They are the first of all gatings to reach a hundredth. The source is
right that removing inputs, outputs or (where all numbers are positive) samples cannot raise the first singular value,
but this decides the first mode only.

All gatings are trained as one layer of units with given gates, which is compiled once; from the same weights it is the
same network as `nets.Gated`.

**What does not reproduce.** Proposition 4.2 says that pathways for two contexts have a lower loss than all other gates,
at all times. Single points, which lemma 4.1 leaves open, are earlier at 1 % of the loss if they see all inputs (and not
if they see the items only). 24 gates of random units, which see all inputs, are earlier at 10 and 1 % than two contexts
that see all inputs, too (at 50 % about as early). They are also earlier than the ReLU network, which therefore does not
find the fastest gates. The proof compares first singular values, and needs positive numbers where samples are taken
away; what the common pathway leaves has both signs. Nor can gates by item be ruled out: with context inputs they solve
the task. `race` tells the order of the strongest modes, which is the order at 10 % of the loss and not that at 1 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import Net, Setup, inits, nets, race, rules, tasks
from .._figures.style import COLOURS, new_figure, predicted, trained
from .._foundation.checks import positive, whole
from ..gates.comparing import compare, largest_distance, times_to
from ..gates.feasible import implementable
from ._kit import item_contexts
from ._kit.gating_panels import FRACTIONS, draw_taking_away, draw_times, draw_values
from ._kit.gatings import (
    APART,
    CONTEXTS,
    ITEMS,
    MADE,
    MATCHED,
    POINTS,
    SAMPLES,
    SCATTERED,
    TWIN,
    as_edges,
    as_pathways,
    candidates,
    given_gates,
    least_loss,
    one_mode_each,
)
from ._kit.item_contexts import EPOCHS, RATE
from ._kit.taking_away import TAKEN, TRIALS, raised
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

THEME, PLACE = "twins", 7
REFERENCE = {"jarvis2025": "proposition 4.2, appendix E"}
QUICK = dict(lr=0.01, epochs=9000, every=50, seeds=1, draws=1, thorough=False)


def run(
    *,
    common: int = 100,
    others: int = 300,
    hidden: int = 700,
    scale: float = 0.005 / 700,
    small: float = 1e-6,
    lr: float = RATE,
    epochs: int = 12000,
    every: int = 20,
    seeds: int = 2,
    draws: int = 3,
    thorough: bool = True,
    seed: int = 0,
) -> Result:
    """`common`: units of the common pathway; `others`: those of all other pathways together.

    Without a common pathway the others have all of these units. `draws`: how often random units are drawn. `thorough`
    trains all gatings, and adds predictions by `race`.
    """
    common, others, every = whole(common, "common"), whole(others, "others", least=SAMPLES), whole(every, "every")
    seeds, draws = whole(seeds, "seeds"), whole(draws, "draws")
    task, starts = tasks.contextual(ITEMS, CONTEXTS), list(range(seed, seed + seeds))
    rate = positive(lr, "lr") * SAMPLES
    shown = np.arange(0, whole(epochs, "epochs", least=every) + 1, every)
    gatings = candidates(task, draws, seed, thorough)

    def setup(net: Net, sd: float = scale) -> Setup:
        return Setup(task, net, inits.SmallRandom(sd), rules.GradientDescent(rate), times=shown * RATE * SAMPLES)

    layers = {name: given_gates(gating, (common, others)) for name, gating in gatings.items()}
    relu = setup(nets.MLP(hidden))
    free = simulate(relu, starts, "loss")
    gated_runs = {name: simulate(setup(net), starts, "loss") for name, net in layers.items()}
    small_runs = {name: simulate(setup(layers[name], small), starts, "loss") for name in (TWIN, POINTS)}
    gated = setup(nets.Gated.pathways(as_pathways(gatings[TWIN], common, others)))
    graph = simulate(gated.replace(init=as_edges(setup(layers[TWIN]).weights(seed), gated.net)), [seed], "loss")
    comparison = compare(free, gated_runs, fractions=FRACTIONS)
    residual = item_contexts.left_by_linear(task)
    gates = np.unique(np.concatenate([one.gates for name, one in gatings.items() if name != SCATTERED]), axis=0)
    import xarray

    data = xarray.Dataset(
        {
            "loss": (("candidate", "seed", "time"), np.stack([run["loss"] for run in gated_runs.values()])),
            "relu_loss": (("seed", "time"), free["loss"]),
            "small_loss": (("raced", "seed", "time"), np.stack([run["loss"] for run in small_runs.values()])),
            "graph_loss": ("time", graph["loss"][0]),
            "floor": ("candidate", [least_loss(task, net) / free["loss"][0, 0] for net in layers.values()]),
            "epochs_to": comparison.time_to / (RATE * SAMPLES),
            "relu_epochs_to": comparison.reference_time_to / (RATE * SAMPLES),
            "distance": comparison.raw_mean,
            "two_contexts": (("subset", "mode"), item_contexts.strengths(residual, 2, CONTEXTS, ITEMS)),
            "points": ("sample", np.linalg.norm(residual.y, axis=1) * np.linalg.norm(task.x, axis=1) / SAMPLES),
            "predicted_loss": ("time", one_mode_each(task, relu.times, (common + others) // SAMPLES, scale, rate)),
            "raised": ("taken", raised(np.random.default_rng(seed))),
            "impossible": ((), sum(not implementable(gate, task) for gate in gates)),
        },
        coords={
            "candidate": list(gatings),
            "seed": starts,
            "time": relu.times,
            "epoch": ("time", shown),
            "raced": list(small_runs),
            "taken": list(TAKEN),
            "fraction": list(FRACTIONS),
        },
        attrs={"scale": scale, "small": small, "common": common, "others": others, "hidden": hidden},
    )
    if thorough:
        pathways = {name: as_pathways(gatings[name], common, others) for name in (TWIN, "one context", POINTS)}
        # Only the times of single pathways are needed, so the loss curve may end at once.
        table = race(task, pathways, scale=scale, lr=rate, until=rate, check=False)
        slowest = [float(table.pathway_time[table.of.values == name].max()) for name in pathways]
        data["predicted_epochs"] = ("foretold", np.array(slowest) / (RATE * SAMPLES))
        data.coords["foretold"] = list(pathways)
    return Result(data, {"ReLU": relu, f"common and {TWIN}": gated})


def claims(result: Result) -> list[Claim]:
    data = result.data
    epochs, first = data.epoch.values, data.relu_loss[:, 0].mean().item()
    rows = zip(data.candidate.values, data.epochs_to.values, strict=True)
    when = {str(name): dict(zip(FRACTIONS, row, strict=True)) for name, row in rows}
    relu = dict(zip(FRACTIONS, data.relu_epochs_to.values, strict=True))
    ahead = (data.loss.sel(candidate=TWIN) - data.loss).mean("seed").max("time").drop_sel(candidate=TWIN) / first
    leader, earlier = str(ahead.candidate.values[np.argmax(ahead.values)]), int((ahead > 1e-3).sum())
    late = {name: times_to(epochs, data.small_loss.sel(raced=name).values, 0.01).mean() for name in (TWIN, POINTS)}
    random_gates = [name for name in when if name.startswith(MADE) and "no common" not in name]
    twin_of_relu = float(data.distance.sel(candidate=TWIN))
    others = [name for name in when if name not in (TWIN, MATCHED)]
    over_matched = {f: [when[name][f] / when[MATCHED][f] for name in random_gates] for f in FRACTIONS}
    closer = sum(float(data.distance.sel(candidate=name)) < twin_of_relu for name in others)
    live = data.two_contexts.values[data.two_contexts.values > 1e-9]
    foretold = times_to(epochs, data.predicted_loss.values, 0.01)
    winner = min(when, key=lambda name: when[name][0.01])
    statements = [
        paper(
            f"Pathways for two contexts have a lower loss than all others at all times (proposition 4.2): largest lead "
            f"of another / first loss ({leader}; {earlier} of {ahead.size} lead by more than 0.1 % at some time)",
            at_most(float(ahead.max()), 0.0),
            fails="the proof compares first singular values; the losses of most gatings cross",
        ),
        ours(
            f"Single points reach 1 % earlier: epochs ({when[POINTS][0.01]:.0f}) / those of two contexts "
            f"({when[TWIN][0.01]:.0f}, with all inputs {when[MATCHED][0.01]:.0f}; ReLU {relu[0.01]:.0f})",
            at_most(when[POINTS][0.01] / min(when[TWIN][0.01], when[MATCHED][0.01]), 0.9),
        ),
        ours(
            f"… though 10 % later: epochs ({when[POINTS][0.1]:.0f}) / those of two contexts ({when[TWIN][0.1]:.0f})",
            at_least(when[POINTS][0.1] / when[TWIN][0.1], 1.3),
        ),
        ours(
            f"… also from weights of sd {data.attrs['small']:.1g}: epochs to 1 % ({late[POINTS]:.0f}) / those of "
            f"two contexts ({late[TWIN]:.0f})",
            at_most(late[POINTS] / late[TWIN], 0.9),
        ),
        ours(
            "… but not if they see the items only: the same ratio at 1 %",
            at_least(when[f"{POINTS}, items only"][0.01] / when[TWIN][0.01], 1.1),
        ),
        ours(
            "Gates of random units reach 10 and 1 % earlier than two contexts that also see all inputs: largest ratio "
            f"of epochs (two contexts: {when[MATCHED][0.1]:.0f} and {when[MATCHED][0.01]:.0f})",
            at_most(max(over_matched[0.1] + over_matched[0.01]), 0.9),
        ),
        ours(
            f"… and 50 % about as early ({when[MATCHED][0.5]:.0f}): largest relative difference",
            at_most(max(abs(ratio - 1) for ratio in over_matched[0.5]), 0.15),
        ),
        paper(
            "The ReLU network finds the gates that win the race: fewest epochs to 1 % of any gating "
            f"({winner}) / its own",
            at_least(when[winner][0.01] / relu[0.01], 0.97),
            fails="several gatings are earlier; networks take what is fastest at first",
        ),
        ours(
            "… gates of random units beside a common pathway are faster: epochs of ReLU / theirs, at 10 and 1 %, least",
            at_least(min(relu[f] / when[name][f] for name in random_gates for f in (0.1, 0.01)), 1.1),
        ),
        paper(
            f"Two contexts come nearest to the loss of ReLU (mean distance {twin_of_relu:.3f} of the first loss, "
            f"with all inputs {float(data.distance.sel(candidate=MATCHED)):.3f}): how many of {len(others)} "
            "gatings with other gates come nearer",
            at_most(closer, 0),
        ),
        ours(
            "Single points without a common pathway learn one mode each, nothing fitted: relative gap of epochs to 1 %",
            at_most(abs(foretold / when[APART][0.01] - 1), 0.03),
        ),
        Claim(
            "On what the common pathway leaves, two contexts have the largest singular value and the smallest: "
            "smallest … largest",
            f"{live.min():.4f} … {live.max():.4f}",
            f"outside {float(data.points.min()):.4f} … {float(data.points.max()):.4f} of single points",
            bool(live.min() < data.points.min() and live.max() > data.points.max()),
        ),
        ours(
            "Gates by item with context inputs solve the task: least possible loss / first loss",
            at_most(float(data.floor.sel(candidate="items")), 1e-12),
        ),
        paper(
            f"Removing an input or an output never raises s₁: how often it does, of {TRIALS} random data sets",
            at_most(float(data.raised[:2].max()) * TRIALS, 0),
        ),
        paper(
            "… nor does removing a sample if all numbers are positive: how often it does",
            at_most(float(data.raised[2]) * TRIALS, 0),
        ),
        ours("… but with both signs it does: share of cases", between(float(data.raised[3]), 0.25, 0.45)),
        ours(
            "A single unit can implement all these gates except those of random samples: number that it cannot",
            at_most(int(data.impossible), 0),
        ),
        ours(
            "One layer of units with given gates trains as nets.Gated does: largest distance / first loss",
            at_most(largest_distance(data.loss.sel(candidate=TWIN)[:1].values, data.graph_loss.values[None]), 1e-9),
        ),
    ]
    return statements + (_claims_of_race(data, when) if "predicted_epochs" in data else [])


def _claims_of_race(data: Dataset, when: dict[str, dict[float, float]]) -> list[Claim]:
    """Claims about the order of gatings by the slowest pathway's strongest mode, as `race` has it, and as trained."""
    names = [str(name) for name in data.foretold.values]
    order = [names[k] for k in np.argsort(data.predicted_epochs.values)]
    trained_order = {f: sorted(names, key=lambda name: when[name][f]) for f in (0.1, 0.01)}
    return [
        Claim(
            "`race` predicts the order in which gatings reach 10 %: order as trained",
            " < ".join(trained_order[0.1]),
            " < ".join(order),
            trained_order[0.1] == order,
        ),
        Claim(
            "… but not the order at 1 %, which the weakest modes decide: order as trained",
            " < ".join(trained_order[0.01]),
            "not " + " < ".join(order),
            trained_order[0.01] != order,
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, ((losses, times), (values, taken)) = new_figure(2, 2, width=5.6, height=3.7)
    one, first = data.isel(seed=0), float(data.relu_loss[0, 0])
    trained(losses, data.epoch, one.relu_loss / first, colour="0.5", label=f"ReLU, {data.attrs['hidden']} units")
    colours = {TWIN: COLOURS[1], "one context": COLOURS[2], POINTS: COLOURS[0], MADE: COLOURS[3], APART: COLOURS[4]}
    for name, colour in colours.items():
        losses.plot(data.epoch, one.loss.sel(candidate=name) / first, color=colour, lw=1.6, label=name)
    predicted(losses, data.epoch, data.predicted_loss / first, colour=COLOURS[4], label="… one mode each (theory)")
    losses.set(xlabel=EPOCHS, ylabel="loss / first loss", yscale="log", ylim=(1e-3, 1.5), xlim=(0, 9000))
    losses.set_title("losses of gatings cross: no gating is always first")
    losses.legend(loc="upper right", fontsize=8)
    draw_times(times, data, colours)
    draw_values(values, data)
    draw_taking_away(taken, data)
    return sheet
