"""Some gatings of linear networks learn faster than both a ReLU network and its gated twin.

The twin is a gated network with a shared pathway and a pathway for every two contexts; it has nearly the loss of a ReLU
network on items in contexts (see `context_dependent_processing`). Here it races other gatings of equally many units,
with initial weights of the same size. Their pathways are on for one context, for single points (samples), for items,
for random samples, or where units with random weights are on (see `which_gates_can_a_unit_make`); some have no shared
pathway. Pathways by context see the items only, as in the source; the others see all inputs, like ReLU units.

No gating is fastest at all times. On the residual of the shared pathway, pathways for two contexts have both the
largest and the smallest singular values; single points have nearly equal ones:

    time to learn a mode ~ 1/s:    two contexts are earlier at a tenth of the loss, single points at a hundredth

Without a shared pathway, single points learn nothing for long and then everything at once, as the closed form of one
mode for each point predicts, with nothing fitted. They are the first of all gatings to reach a hundredth of the loss.

**What does not reproduce.** Proposition 4.2 says that pathways for two contexts have a lower loss than all other gates,
at all times. Single points, which lemma 4.1 leaves open, are earlier at 1 % of the loss if they see all inputs (and not
if they see the items only). 24 gates of random units are earlier at 10 and 1 % than two contexts that also see all
inputs, and than the ReLU network, so it does not find the fastest gating. The proof compares first singular values, and
needs positive numbers where samples are removed (see `removing_samples_can_raise_a_mode`). Nor can gates by item be
ruled out: with context inputs they solve the task. `race` tells the order of the strongest modes, which is the order at
10 % of the loss and not that at 1 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import Net, Setup, Trajectory, inits, nets, rules, tasks
from .._figures.overlay import overlay
from .._figures.panels import key, panels
from .._figures.style import COLOURS, GREY
from ..gates.comparing import compare, times_to
from ..gates.feasible import implementable
from ._kit import gatings, item_contexts
from ._kit.gating_panels import FRACTIONS, draw_times, draw_values
from ._kit.gatings import APART, CONTEXTS, ITEMS, MADE, MATCHED, POINTS, SAMPLES, SCATTERED, TWIN
from ._kit.item_contexts import EPOCHS, RATE
from ._kit.labelled import labelled, stack, table
from ._kit.parameters import AtLeast, Count, Positive, Seed, Truth, checked
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataArray

THEME, PLACE = "twins", 7
REFERENCE = {"jarvis2025": "proposition 4.2, appendix E"}
QUICK = dict(lr=0.01, epochs=9000, every=50, seeds=1, draws=1, thorough=False)
CAPTION = """
**a** Loss, relative to its initial value, of a ReLU network and of five gatings, first seed. Pathways are on for two
contexts (the twin of the ReLU network), for one context, for single points, that is for one sample each, or where
random units are on, beside a shared pathway; or for single points without a shared pathway. Dashed: theory of the last,
one mode for each point, with nothing fitted. **b** Singular values of all modes of pathways for two contexts and for
single points, on the residual that the shared pathway leaves. **c** Epochs at which gatings reach 50, 10 and 1 % of the
initial loss, mean over seeds, in the order of the last; grey lines are those of the ReLU network. Labels have the
colours of a and b. “No common” means without a shared pathway; “all inputs” and “items only” say what the other
pathways see. A missing mark was not reached.
"""
ALT = """
Losses of gatings cross; single points and random units reach a hundredth of the loss before the ReLU network. Singular
values of single points are nearly equal, those for two contexts spread above and below them.
"""
SHOWN = {TWIN: COLOURS[1], "one context": COLOURS[2], POINTS: COLOURS[0], MADE: COLOURS[3], APART: COLOURS[4]}


@checked
def run(
    *,
    common: Count = 100,
    others: Annotated[int, AtLeast(SAMPLES)] = 300,
    hidden: Count = 700,
    scale: Positive = 0.005 / 700,
    small: Positive = 1e-6,
    lr: Positive = RATE,
    epochs: Count = 12000,
    every: Count = 20,
    seeds: Count = 2,
    draws: Count = 3,
    thorough: Truth = True,
    seed: Seed = 0,
) -> Result:
    """`common`: units of the shared pathway; `others`: those of all others together (all, without a shared one).

    `draws`: how often random units are drawn; `thorough` trains all gatings, and adds predictions by `race`.
    """
    task, starts = tasks.contextual(ITEMS, CONTEXTS), list(range(seed, seed + seeds))
    rate, shown, residual = lr * SAMPLES, np.arange(0, epochs + 1, every), item_contexts.left_by_linear(task)
    every_gating = gatings.candidates(task, draws, seed, thorough)

    def setup(net: Net, sd: float = scale) -> Setup:
        return Setup(task, net, inits.SmallRandom(sd), rules.GradientDescent(rate), times=shown * RATE * SAMPLES)

    def loss(run: Trajectory) -> DataArray:
        return labelled(run, "loss").rename(time="epoch").assign_coords(epoch=shown)

    layers = {name: gatings.given_gates(gating, (common, others)) for name, gating in every_gating.items()}
    relu = setup(nets.MLP(hidden))
    free = simulate(relu, starts, "loss")
    runs = {name: simulate(setup(net), starts, "loss") for name, net in layers.items()}
    gated = setup(nets.Gated.pathways(gatings.as_pathways(every_gating[TWIN], common, others)))
    small_runs = {name: loss(simulate(setup(layers[name], small), starts, "loss")) for name in (TWIN, POINTS)}
    comparison = compare(free, runs, fractions=list(FRACTIONS))
    gates = np.unique(np.concatenate([one.gates for name, one in every_gating.items() if name != SCATTERED]), axis=0)
    floors = [gatings.least_loss(task, net) / free["loss"][0, 0] for net in layers.values()]
    alone = gatings.one_mode_each(task, relu.times, (common + others) // SAMPLES, scale, rate)
    data = xarray.Dataset(
        {
            "loss": stack({name: loss(run) for name, run in runs.items()}, "candidate"),
            "relu_loss": loss(free),
            "small_loss": stack(small_runs, "raced"),
            "floor": table(floors, "candidate"),
            "epochs_to": comparison.time_to / (RATE * SAMPLES),
            "relu_epochs_to": comparison.reference_time_to / (RATE * SAMPLES),
            "distance": comparison.raw_mean,
            "two_contexts": table(item_contexts.strengths(residual, 2, CONTEXTS, ITEMS), "subset", "mode"),
            "points": table(np.linalg.norm(residual.y, axis=1) * np.linalg.norm(task.x, axis=1) / SAMPLES, "sample"),
            "predicted_loss": table(alone, "epoch"),
            "impossible": table(sum(not implementable(gate, task) for gate in gates)),
        },
        attrs={"small": small},
    )
    if thorough:
        three = {name: every_gating[name] for name in (TWIN, "one context", POINTS)}
        foretold = gatings.raced_epochs(task, three, common, others, scale, rate)
        data["predicted_epochs"] = table(list(foretold.values()), "foretold").assign_coords(foretold=list(foretold))
    return Result(data, {"ReLU": relu, f"common and {TWIN}": gated})


def claims(result: Result) -> list[Claim]:
    data = result.data
    first = data.relu_loss[:, 0].mean().item()
    rows = zip(data.candidate.values, data.epochs_to.values, strict=True)
    when = {str(name): dict(zip(FRACTIONS, row, strict=True)) for name, row in rows}
    relu = dict(zip(FRACTIONS, data.relu_epochs_to.values, strict=True))
    twin, points, matched = (when[name] for name in (TWIN, POINTS, MATCHED))
    made = [row for name, row in when.items() if name.startswith(MADE) and "no common" not in name]
    ahead = (data.loss.sel(candidate=TWIN) - data.loss).mean("seed").max("epoch").drop_sel(candidate=TWIN) / first
    leader = str(ahead.candidate.values[np.argmax(ahead.values)])
    winner = min(when, key=lambda name: when[name][0.01])
    late = _hundredth(data.small_loss.sel(raced=POINTS)) / _hundredth(data.small_loss.sel(raced=TWIN))
    items_only = when[f"{POINTS}, items only"][0.01] / twin[0.01]
    sooner = max(row[f] / matched[f] for row in made for f in (0.1, 0.01))
    gap = max(abs(row[0.5] / matched[0.5] - 1) for row in made)
    faster = min(relu[f] / row[f] for row in made for f in (0.1, 0.01))
    away = data.distance.drop_sel(candidate=[TWIN, MATCHED]) < data.distance.sel(candidate=TWIN)
    two, one = data.two_contexts.values[data.two_contexts.values > 1e-9], data.points.values
    alone = abs(_hundredth(data.predicted_loss) / when[APART][0.01] - 1)
    statements = [
        paper(
            f"ReLU finds the fastest gates: epochs to 1 % of the loss, fastest gating ({winner}) / ReLU",
            at_least(when[winner][0.01] / relu[0.01], 0.97),
            fails="several gatings are earlier; networks take what is fastest at first",
            headline=True,
            panel="c",
        ),
        paper(
            f"Two contexts have the lowest loss at all times (proposition 4.2): largest lead of another, {leader}",
            at_most(float(ahead.max()), 0.0),
            fails="the proof compares first singular values; the losses of most gatings cross",
            headline=True,
            panel="a",
        ),
        ours(
            "Epochs to 1 % of the loss, single-point pathways over two-context pathways: "
            "larger of the two ratios (items only, all inputs)",
            at_most(points[0.01] / min(twin[0.01], matched[0.01]), 0.9),
            panel="c",
        ),
        ours("Epochs to 10 % loss: single points / two contexts", at_least(points[0.1] / twin[0.1], 1.3), panel="c"),
        ours(
            f"Epochs to 1 % loss, weights of standard deviation {data.attrs['small']:.1g}: points / two contexts",
            at_most(late, 0.9),
        ),
        ours("Epochs to 1 % loss: single points, items only / two contexts", at_least(items_only, 1.1), panel="c"),
        ours("Epochs to 10, 1 % loss: random units / two contexts, all inputs, max", at_most(sooner, 0.9), panel="c"),
        ours("Epochs to 50 % loss: random units / two contexts, all inputs: gap from 1", at_most(gap, 0.15), panel="c"),
        ours("Epochs to 10, 1 % loss: ReLU / random units with a common one, min", at_least(faster, 1.1), panel="c"),
        paper(f"Gatings of {away.size} with a loss nearer to ReLU than two contexts", at_most(int(away.sum()), 0)),
        ours("Single points, no shared pathway: epochs to 1 % / theory: gap from 1", at_most(alone, 0.03), panel="a"),
        Claim(
            "Singular values on the residual, two contexts: smallest … largest",
            f"{two.min():.4f} … {two.max():.4f}",
            f"outside {one.min():.4f} … {one.max():.4f} of single points",
            bool(two.min() < one.min() and two.max() > one.max()),
            panel="b",
        ),
        ours(
            "Gates by item with context inputs solve the task: least possible loss / initial loss",
            at_most(float(data.floor.sel(candidate="items")), 1e-12),
        ),
        ours("Gates (not by random samples) that no single unit can make", at_most(int(data.impossible), 0)),
    ]
    if "predicted_epochs" not in data:
        return statements
    names = [str(name) for name in data.foretold.values]
    order = [names[k] for k in np.argsort(data.predicted_epochs.values)]
    orders = {f: sorted(names, key=lambda name, f=f: when[name][f]) for f in FRACTIONS}
    by_race, tenth, hundredth = (" < ".join(found) for found in (order, orders[0.1], orders[0.01]))
    return [
        *statements,
        Claim("Order in which gatings reach 10 %, which `race` predicts", tenth, by_race, tenth == by_race),
        Claim("Order in which gatings reach 1 %", hundredth, f"not {by_race}", hundredth != by_race),
    ]


def _hundredth(losses: DataArray) -> float:
    """Epochs to a hundredth of the first loss, mean over seeds."""
    return times_to(losses.epoch.values, losses.values, 0.01).mean()


def figure(result: Result) -> Figure:
    data, one, first = result.data, result.data.isel(seed=0), float(result.data.relu_loss[0, 0])
    sheet, at = panels("ab;cc", height_ratios=[1, 1.1 if data.sizes["candidate"] < 12 else 1.6])
    overlay(at["a"], one.relu_loss / first, along="epoch", colours=GREY)
    for name, colour in SHOWN.items():
        at["a"].plot(data.epoch, one.loss.sel(candidate=name) / first, color=colour, lw=1.6)
    overlay(at["a"], theory=data.predicted_loss / first, along="epoch", colours=SHOWN[APART])
    at["a"].set(xlabel=EPOCHS, ylabel="loss / initial loss", yscale="log", ylim=(1e-3, 1.5), xlim=(0, 9000))
    at["a"].set_title("Losses of gatings cross")
    draw_values(at["b"], {TWIN: data.two_contexts, POINTS: data.points}, SHOWN)
    draw_times(at["c"], data, SHOWN)
    key(sheet, kinds=("ReLU network", "theory: single points, no common (a)"))
    return sheet
