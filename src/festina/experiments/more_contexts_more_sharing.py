"""Pathways shared by all contexts but one learn fastest, by a head start that grows with the number of contexts.

Items have a tree of features in common, and another tree of their own in each of C contexts. A gated network has a
shared pathway and, beside it, one pathway for every set of m contexts. Sets of any size m could solve the task; trained
from small weights, those with m = C − 1 solve it first. What the shared pathway leaves does not explain this: on this
residual a set and its complement have the same singular value S_m = σ√(m(C−m)/C)/N, and sets of half the contexts have
the largest. But until the shared pathway has learned, at time t_c, all pathways grow on the whole target, where their
singular value s_raw rises with the size of the set. In the closed form `ContextRace` they learn the residual as B(t)
from an initial strength B₀,

    B₀ = a K² exp[2(s_raw − S_m) t_c]        B(t) = B∞ / (1 − (1 − B∞/B₀) e^(−2 S_m t)),

with a the effective strength of their initial weights and K a constant. The head start B₀/a is thousands to hundreds of
thousands, and more with more contexts. Losses and times follow from the weights, with nothing fitted. The order of all
sizes follows already from the leading logarithm of the time.

The loss of a ReLU network is that of the network for all contexts but one to a few per cent, once curves are shifted by
some epochs. No other size comes closer if the shared pathway has half as many units as the ReLU network.

**What does not reproduce.** If the shared pathway has as many units as every other pathway, ReLU networks with 5
contexts come closer to sets of 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import xarray

from .. import Setup, inits, nets, rules, solve, tasks
from .._figures.overlay import overlay
from .._figures.panels import key, panels
from .._figures.style import COLOURS, INK
from ..gates.comparing import largest_distance, shifted_distance
from ..tasks.hierarchy import hierarchy_block
from ..theories.context_race import head_start, item_mode, race_ranking
from ..theories.disjoint_pathways import effective_start
from ._kit import context_sets, item_contexts
from ._kit.context_sets import dots, epochs_to, nearness, pairs_out_of_order
from ._kit.item_contexts import EPOCHS, RATE
from ._kit.labelled import labelled, largest, stack, table
from ._kit.number_lists import comma_separated
from ._kit.parameters import AtLeast, Count, Each, Positive, Seed, checked
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataArray

    from .. import Trajectory

THEME, PLACE = "gates", 6
REFERENCE = {"jarvis2025": "section 5, figure 5, appendices F and G"}
QUICK = dict(contexts=(4,), hidden=(500,), lr=0.005, every=40, seeds=1)
CAPTION = """
**a** Loss, relative to its initial value, of gated networks with a shared pathway and pathways for all sets of m
contexts, m by colour, for the largest number C of contexts. Dashed lines are the theory `ContextRace`, from the initial
weights and with nothing fitted; the black line is a ReLU network. **b** Epochs until the loss has fallen to a tenth:
training (discs, mean over seeds) and theory (crosses), for sets of m of C contexts; one line for each C. **c** Singular
values of the broadest item mode, for the C of panel a: s_raw, on the target, and S_m, on the residual that the shared
pathway leaves. **d** Head start of the pathways for that C by theory: their effective strength B₀ once the shared
pathway has learned, over their effective strength a at initialisation.
"""
ALT = """
The losses fall in the order of the sizes of sets, those of all contexts but one first, with the ReLU network beside
them and the theory on the curves. Singular values on the target rise with the size of sets, those on the residual are
largest for half of the contexts; the head start rises by orders of magnitude.
"""


@checked
def run(
    *,
    contexts: Annotated[tuple[int, ...], Each(AtLeast(3))] = (3, 4, 5),
    hidden: Annotated[tuple[int, ...], Each(AtLeast(1))] = (700, 500, 600),
    items: Annotated[int, AtLeast(4)] = 8,
    width: Count = 100,
    spread: Positive = 0.005,
    lr: Positive = RATE,
    epochs: Count = 8000,
    every: Count = 20,
    seeds: Count = 2,
    seed: Seed = 0,
) -> Result:
    """`hidden`: units of the ReLU network for each of `contexts`; `spread`: sd of all weights, times `hidden`.

    `lr` is the rate on the summed loss; curves are recorded each `every` epochs; `width`: units of a gated pathway.
    """
    context_sets.check_counts(contexts, hidden, width, items)
    draws, shown = list(range(seed, seed + seeds)), np.arange(0, epochs + 1, every)
    setups, theories, pieces = {}, {}, {}
    sigma = np.linalg.svd(hierarchy_block(items), compute_uv=False)[1]  # of the broadest item mode

    def loss(run: Trajectory) -> DataArray:
        return labelled(run, "loss").rename(time="epoch").assign_coords(epoch=shown)

    for count, units in zip(contexts, hidden, strict=True):
        task, random = tasks.contextual(items, count, "hierarchy"), inits.SmallRandom(spread / units)
        rule, times = rules.GradientDescent(lr * items * count), shown * RATE * items * count
        free = Setup(task, nets.MLP(units), random, rule, times=times)
        alike: dict[str, Any] = dict(contexts=count, items=items)
        start, sizes, name = effective_start(width, spread / units), {}, f"all but one of {count} contexts"
        for size in range(1, count):
            setup = free.replace(net=item_contexts.gated(size, **alike, width=width))
            wide = item_contexts.gated(size, **alike, width=(max(units // 2, width), width))
            flow = setup.replace(rule=rules.GradientFlow())
            predicted = {draw: solve(flow, "ContextRace", seed=draw, observe="loss") for draw in draws}
            mode = item_mode(sigma, size=size, **alike)
            sizes[size] = xarray.Dataset(
                {
                    "gated_loss": loss(simulate(setup, draws, "loss")),
                    "predicted_loss": stack({draw: loss(theory) for draw, theory in predicted.items()}, "seed"),
                    "matched_loss": loss(solve(flow.replace(net=wide), "ContextRace", seed=seed, observe="loss")),
                    "strength": table(context_sets.broadest_strengths(task, size, count, items), "of"),
                    "formula": table(np.array([mode.raw, mode.residual]), "of"),
                    "ranking": table(race_ranking(count)[size - 1]),
                    "head_start": table(head_start(sigma, start, start, size=size, **alike) / start),
                }
            )
            setups[name], theories[name] = setup, predicted[seed]  # the last size stays
        setups[f"ReLU, {count} contexts"] = free
        pieces[count] = stack(sizes, "size").assign(relu_loss=loss(simulate(free, draws, "loss")))
    data = xarray.concat(pieces.values(), "contexts", join="outer")
    data["tenth"], data["foretold"] = epochs_to(data.gated_loss, 0.1), epochs_to(data.predicted_loss, 0.1)
    return Result(data.assign_coords(contexts=list(pieces), of=["target", "residual"]), setups, theories)


def claims(result: Result) -> list[Claim]:
    data = result.data
    counts, epochs = data.contexts.values, data.epoch.values
    last = {count: data.sel(contexts=count, size=count - 1) for count in counts}
    ends = xarray.concat([one.drop_vars("size") for one in last.values()], "contexts")
    relu = {count: one.relu_loss.values for count, one in last.items()}
    all_times = (data.tenth, data.foretold, data.ranking)
    orders = [[times.sel(contexts=count).values[: count - 1] for times in all_times] for count in counts]
    disorder = sum(pairs_out_of_order(trained, other) for trained, *others in orders for other in others)
    behind = [min(times[:-1]) / times[-1] for times, *_ in orders]
    gap = max(np.abs(other / times - 1).max() for times, other, _ in orders)
    hundredth = epochs_to(ends.predicted_loss, 0.01) / epochs_to(ends.gated_loss, 0.01) - 1
    rivals = (data.strength.max("size") / ends.strength).sel(of="residual").min()
    advantage = (ends.head_start / data.head_start.sel(size=1)).min()
    wrong = largest((data.strength - data.formula).fillna(0))
    raw = [largest_distance(one.gated_loss.values, relu[c]) for c, one in last.items()]
    shifts = [shifted_distance(epochs, one.gated_loss.values, relu[c], item_contexts.SHIFTS) for c, one in last.items()]
    closer, private = nearness(data, "gated_loss")
    half = nearness(data, "matched_loss")[0].min()
    statements = [
        paper(
            "Epochs to a tenth of the loss: sets of another size / all contexts but one, least",
            at_least(min(behind), 1.15),
            headline=True,
            panel="b",
        ),
        ours(
            "Head start B₀/a: all contexts but one / one context, least",
            at_least(advantage, 100),
            headline=True,
            panel="d",
        ),
        ours("Singular values s_raw and S_m of all sets against their formulas: gap", at_most(wrong, 1e-12), panel="c"),
        ours("Largest S_m on the residual / S_m of all contexts but one, least", at_least(rivals, 1 - 1e-9), panel="c"),
        ours("Pairs of sizes that theory or its leading logarithm orders wrongly", at_most(disorder, 0), panel="b"),
        ours("Epochs to a tenth from the weights, nothing fitted: largest relative gap", at_most(gap, 0.03), panel="b"),
        ours("Epochs to a hundredth, all contexts but one: largest relative gap", at_most(largest(hundredth), 0.06)),
        paper(
            f"Losses of all but one and ReLU, shifted {comma_separated(s for s, _ in shifts)} epochs: largest distance",
            at_most(max(gap for _, gap in shifts), 0.06),
            panel="a",
        ),
        ours("Loss of all contexts but one and of ReLU, not shifted: largest distance", at_most(max(raw), 0.13)),
        paper("Mean loss gap to ReLU: all contexts but one / one context, largest", at_most(private.max(), 0.6)),
        ours("Mean loss gap to ReLU, wide shared pathway: other sizes / all but one, least", at_least(half, 1.0)),
    ]
    for few in (True, False):
        some = closer[(counts < 5) == few]
        if some.size:
            which = comma_separated(some.contexts.values)
            text = f"Mean loss gap to ReLU, equal widths, {which} contexts: other sizes / all but one, least"
            reason = "" if few else "all but one is then ahead of ReLU, which comes closer to 3 of 5"
            statements.append(paper(text, at_least(some.min(), 1.0), fails=reason))
    if len(counts) == 1:
        return statements
    gains, winners = data.tenth.sel(size=1) / ends.tenth, ends.tenth.values
    rise, ratio = np.diff(gains).min(), np.max(winners[1:] / winners[:-1])
    first, second = comma_separated(gains.values), comma_separated(winners)
    return [
        *statements,
        paper(f"Epochs to a tenth: one context / all but one ({first}), least rise", at_least(rise, 0.2), panel="b"),
        ours(f"Epochs to a tenth, all but one ({second}): largest next / last", at_most(ratio, 0.95), panel="b"),
    ]


def figure(result: Result) -> Figure:
    from matplotlib.lines import Line2D

    data, count = result.data, int(result.data.contexts[-1])
    sizes, most = list(range(1, count)), data.sel(contexts=count)
    colours, first = dict(zip(sizes, COLOURS, strict=False)), float(most.relu_loss[0, 0])
    sheet, at = panels("ab;cd")
    for size, colour in colours.items():
        one = most.sel(size=size)
        overlay(at["a"], one.gated_loss / first, one.predicted_loss[:1] / first, along="epoch", colours=colour)
    at["a"].plot(data.epoch, most.relu_loss[0] / first, color=INK, lw=1)
    at["a"].set(xlabel=EPOCHS, ylabel="loss / initial loss", yscale="log", ylim=(1e-3, 1.3))
    at["a"].set_title(f"Pathways for sets of m of {count} contexts")
    for number in data.contexts.values:
        here = data.sel(contexts=number, size=slice(1, number - 1))
        share = here["size"] / number
        dots(at["b"], share, here.tenth, colours)
        at["b"].plot(share, here.foretold, "x", color=INK, ms=5)
        end = (float(share[-1]), float(here.tenth[-1]))
        at["b"].annotate(f"C = {number}", end, (0, 9), textcoords="offset points", ha="center")
    at["b"].set(xlabel="share of contexts in a set, m/C", ylabel="epochs to a tenth of the loss")
    at["b"].set(ylim=(0, None), title="All contexts but one are fastest")
    values = most.sel(size=sizes).strength
    for of, label, place in (("target", "on the target", (-12, 2)), ("residual", "on the residual", (0, -16))):
        dots(at["c"], sizes, values.sel(of=of), colours, hollow=of == "residual")
        end = (sizes[-1], float(values.sel(of=of)[-1]))
        at["c"].annotate(label, end, place, textcoords="offset points", ha="right")
    at["c"].set(ylabel="singular value", title="The residual favours half of the contexts")
    at["c"].set_ylim(0, 1.12 * float(values.max()))
    dots(at["d"], sizes, most.sel(size=sizes).head_start, colours)
    at["d"].set(yscale="log", ylabel="head start, B₀/a", title="The head start favours large sets")
    for letter in "cd":
        at[letter].set(xlabel=f"contexts in a set, m, of {count}", xticks=sizes)
    marks = [Line2D([], [], color=INK, lw=1, label="ReLU network")]
    key(sheet, {f"m = {size}": colour for size, colour in colours.items()}, kinds=("training", "theory"), marks=marks)
    return sheet
