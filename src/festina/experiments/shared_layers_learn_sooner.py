"""A layer that many pathways share learns faster than all others, and the faster the more pathways share it.

The routing network (see `routing_networks_generalise`) has M encoders, one shared layer and M decoders, and K trained
pairs per domain. A mode of strength s obeys one law,

    ḃ₁ = K b₂b₃ (s − b₁b₂b₃),   ḃ₂ = MK b₁b₃ (s − b₁b₂b₃),   ḃ₃ = K b₁b₂ (s − b₁b₂b₃)      (time: epochs × lr/14)

of encoders (b₁), shared layer (b₂) and decoders (b₃). The shared layer belongs to MK paths, so it is the fastest and
ends √M times as strong. M b₁² − b₂² is conserved. With b₁ = b₃ the time follows by quadrature; it is exactly ∝ 1/K and
falls with M. From a decoupled start the law is exact, and gradient descent tends to it at first order in lr.

The loss and the learning rate are those of the slides (sum over trained pairs of the mean over 28 entries). The slides
draw their theory curve against its own index, ten times finer than epochs; here it is drawn against epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray

from .. import Setup, inits, nets, rules, solve, tasks
from .._figures.overlay import overlay
from .._figures.panels import key, mark, panels
from .._figures.style import COLOURS, DARK_GREY, LIGHT_GREY
from .._formulas import shared_layer
from ._kit import routing
from ._kit.labelled import largest, table
from ._kit.parameters import Count, Counts, Positive, Positives, Seed, Truth, checked
from ._kit.routing_runs import MARKS, from_decoupled, law_of_loss
from .base import Claim, Result, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEME, PLACE = "gates", 7.5
REFERENCE = {"saxe_slides": "“routing network”", "saxe2022": "routing networks"}
QUICK = dict(pairs=(1, 2, 3, 4), race=False)
CAPTION = """
A routing network with M domains, of which K pairs per domain are trained, learns from decoupled layers; the theory has
no free number. **a** Epochs until the first mode of the task is half learned: discs are gradient descent, crosses the
theory. Blue: K = 1, against M; orange: M = 7, against K. **b** Theory: strength of the encoders and decoders and of the
shared layer in the first mode. **c** Loss of gradient descent and theory, at the largest rate of d; one epoch is
several steps at this rate. **d** Largest gap between these two losses over the initial loss, at several learning rates
(discs); the line is proportional to the rate.
"""
ALT = """
Epochs fall along straight lines in doubly logarithmic axes, in inverse proportion to the number of trained pairs and
more slowly with the number of domains. The shared layer grows before the others and ends stronger. The theory lies on
the loss, and the gap falls in proportion to the learning rate.
"""
ACROSS, PER = COLOURS[:2]


@checked
def run(
    *,
    domains: Count = 7,
    pairs: Counts = (1, 2, 3, 4, 5, 6),
    shown: Count = 4,
    hidden: Count = 64,
    lr: Positive = 0.02,
    epochs: Count = 500,
    start: Positive = 0.08,
    rates: Positives = (0.004, 0.002, 0.001),
    sharing: Counts = (1, 2, 4, 7, 10),
    race: Truth = True,
    seed: Seed = 0,
) -> Result:
    """`pairs`: numbers of trained pairs per domain, of which `shown` is drawn; `sharing`: numbers of domains.

    `start`: initial strength of every mode in every layer; `race` compares the law with the theory NeuralRace.
    """
    unit, modes, few = routing.slides_units(domains, shown), routing.strengths(), np.linspace(0, epochs, 11)
    task, net = tasks.routing(domains, shown), nets.Gated.routing(domains, domains, shown, hidden=hidden)
    setup = Setup(task, net, inits.Decoupled(start), rules.GradientFlow(), times=few * unit * lr)
    slow, cut, axis = (
        from_decoupled(domains, shown, pairs, sharing, start, lr, rates),
        len(sharing),
        np.arange(epochs + 1),
    )
    outer, shared = shared_layer.layers(axis * lr * shown / 14, modes[:1], domains, start)
    data = xarray.Dataset(
        {
            "law_loss": table(law_of_loss(domains, shown, start, lr, axis), "epoch"),
            "outer": table(outer[0], "epoch"),
            "shared": table(shared[0], "epoch"),
            "rate_loss": table(np.asarray(slow["loss"]) * unit, "rate", "early"),
            "drift": table(slow["drift"], "rate"),
            "across_law": table(slow["law"][:cut], "across"),
            "across_training": table(slow["half"][:cut], "across"),
            "per_law": table(slow["law"][cut:], "per"),
            "per_training": table(slow["half"][cut:], "per"),
        },
        coords={
            "epoch": axis,
            "few": few,
            "early": np.arange(MARKS + 1),
            "rate": list(rates),
            "across": list(sharing),
            "per": slow["per"],
        },
        attrs={"domains": domains, "shown": shown, "lr": lr},
    )
    data["gap"] = abs(data.rate_loss - data.law_loss.sel(epoch=data.early)).max("early") / data.law_loss[0]
    if not race:
        return Result(data, {"decoupled start": setup})
    theory = solve(setup, "NeuralRace")
    data["race_loss"] = table(theory["loss"] * unit, "few")
    return Result(data, {"decoupled start": setup}, {"decoupled start": theory})


def claims(result: Result) -> list[Claim]:
    data = result.data
    law, first = data.law_loss, float(data.law_loss[0])
    halving = np.log(data.rate.values[-2] / data.rate.values[-1])
    gap, drift = (np.log(sizes.values[-2] / sizes.values[-1]) / halving for sizes in (data.gap, data.drift))
    half = np.concatenate([data.across_training / data.across_law, data.per_training / data.per_law])
    published = largest(law.sel(epoch=[0, 100, 200]) - [243.973, 58.845, 17.905])
    statements = [
        paper(
            "Time to learn half of the first mode, gradient descent against theory: largest relative gap",
            at_most(largest(half - 1), 0.03),
            headline=True,
            panel="a",
        ),
        ours(
            "Gap between the losses of gradient descent and theory: order in the learning rate",
            between(gap, 0.9, 1.1),
            headline=True,
            panel="d",
        ),
        ours("Drift of the conserved M b₁² − b₂²: order in the learning rate", between(drift, 0.9, 1.1)),
        ours(
            "Loss of the theory after 0, 100 and 200 epochs against 243.973, 58.845, 17.905 of the slides: largest gap",
            at_most(published, 2e-3),
            panel="c",
        ),
    ]
    if "race_loss" in data:
        race = largest(data.race_loss - law.interp(epoch=data.few)) / first
        statements.append(
            paper("Losses of this theory and of NeuralRace: largest gap / initial loss", at_most(race, 1e-7))
        )
    return statements


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab;cd")
    for name, colour in (("across", ACROSS), ("per", PER)):
        at["a"].plot(data[name], data[f"{name}_training"], "o", ms=8, color=colour, alpha=0.45, mew=0)
        at["a"].plot(data[name], data[f"{name}_law"], "x", ms=5, color=colour)
    at["a"].set(xscale="log", yscale="log", xlabel="domains M, or pairs per domain K", ylabel="epochs to half")
    ticks = sorted({*data.across.values} | {*data.per.values})
    at["a"].set_xticks(ticks, [str(tick) for tick in ticks])
    at["a"].set_yticks([50, 100, 200, 400, 600], ["50", "100", "200", "400", "600"])
    at["a"].minorticks_off()
    at["a"].set_title("Sharing shortens the time to learn")
    early = data.isel(epoch=slice(0, data.sizes["early"]))
    for name, label, colour in (("outer", "encoders,\ndecoders", COLOURS[3]), ("shared", "shared\nlayer", COLOURS[2])):
        overlay(at["b"], theory=early[name], along="epoch", colours=colour)
        end = (float(early.epoch[-1]), float(early[name][-1]))
        at["b"].annotate(label, end, (6, 0), textcoords="offset points", va="center", color=colour)
    at["b"].set(xlabel=f"epochs at rate {data.lr:g}", ylabel="strength in the first mode", ylim=(0, None))
    at["b"].set_title(f"Theory, M = {data.domains}, K = {data.shown}")
    overlay(at["c"], data.rate_loss[0], along="early", colours=DARK_GREY)
    overlay(at["c"], theory=early.law_loss, along="epoch", colours=DARK_GREY)
    at["c"].set(xlabel=f"epochs at rate {data.lr:g}", ylabel="loss, summed over pairs", ylim=(0, None))
    at["c"].set_title(f"Loss, M = {data.domains}, K = {data.shown}")
    at["d"].plot(data.rate, data.gap[-1] * data.rate / data.rate[-1], color=LIGHT_GREY, lw=0.9, zorder=0)
    at["d"].plot(data.rate, data.gap, "o", ms=7, color=DARK_GREY)
    at["d"].set(xlabel="learning rate", ylabel="gap of losses / initial loss", xlim=(0, None), ylim=(0, None))
    at["d"].set_title("Gradient descent tends to the theory")
    marks = [mark("training (a, d)", colour=DARK_GREY), mark("theory (a)", "x", colour=DARK_GREY)]
    key(sheet, {"K = 1, by M": ACROSS, f"M = {data.domains}, by K": PER}, marks=marks)
    return sheet
