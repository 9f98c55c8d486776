"""On features that depend on context, a ReLU network learns like a gated network with pathways for pairs of contexts.

Eight items in three contexts have features that are the same in every context, and features that differ from context to
context. No linear map solves this task, since the second kind is a product of context and item. A shared pathway solves
it together with three pathways that are each open in two contexts. `PathDynamics`, from the same initial weights, is
the limit of small steps of such a gated network. A ReLU network has nearly the same loss at all times. With pathways
that are open in one context each, the loss is that of the ReLU network down to a fifth and then falls behind. Where
both kinds compete, those for one context stay small. Yet both kinds have equal singular values on the residual, which
is what the shared pathway leaves to learn:

    Σʸˣ of a subset of contexts = −Σʸˣ of its complement on the residual

On the target itself two contexts have the larger ones: the race is decided before the shared pathway has learned.

**What does not reproduce.** The moments of these contexts are not diagonal in one basis (their commutator is 0.047), so
the reduction to modes, assumption 2.1.1, is only approximate. The ReLU network has the loss of the gated network and
not its gates: while it solves the task, nearly all of its weight comes to be in units that are active on some items of
a context and inactive on others. Most of it is in units for two contexts only if a unit counts as active on a context
when it is active on most of that context's items. Table 1 gives initial weights of 10⁻⁷; curves as in figure 4 need
0.005/700, since with 10⁻⁷ the first drop is near epoch 500 instead of 340. In the source's runs, pathways for contexts
have a head start, with initial weights twice those of the shared one; without it they are slower late in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import Setup, inits, nets, rules, solve, tasks
from .._figures.overlay import overlay
from .._figures.panels import border, key, panels
from .._figures.style import COLOURS
from ..gates.comparing import largest_distance, mean_distance, shifted_distance, times_to
from ..nets.gated.path_bases import bases_of_paths
from ._kit import context_panels, item_contexts, twin_comparison
from ._kit.context_panels import ALL, SOME, TWO_WHOLE
from ._kit.item_contexts import EPOCHS, RATE
from ._kit.labelled import labelled, largest, stack, table
from ._kit.parameters import AtLeast, Count, Positive, Seed, Truth, checked
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataArray

    from .. import Init, Net, Trajectory

THEME, PLACE = "gates", 5
REFERENCE = {"saxe_slides": "“Context-dependent processing”", "jarvis2025": "section 4, figure 4"}
QUICK = dict(lr=0.01, seeds=1, thorough=False)
CAPTION = """
**a** Loss, over the initial loss of the ReLU network, of this network and of three networks with linear pathways, from
initial weights of equal size: a shared pathway alone, and beside it pathways for two contexts each, or for one. Grey
line: the best linear map. The full preset adds the theory. **b** The same to the end of training, where pathways for
contexts begin with twice the initial weights of the shared one. **c** Singular values of what a pathway for one context
can learn and one for the two others, on the target and on the residual that the best linear map leaves; on the grey
line both are equal. **d** Share of the squared weights of the ReLU network in units that are active on all items of
three contexts, on all items of two, on most items of two, and on some items of a context only. All curves are of the
first seed.
"""
ALT = """
The losses of ReLU and of the network for two contexts nearly coincide; that for one context falls behind. Discs lie
above the line, circles on it. Units active on all contexts at first come to be active on some items, mostly of two.
"""
CONTEXTS, ITEMS = 3, 8
NEVER = 1e-100  # times the start of the shared pathway: such pathways learn nothing before the end of training
DROPPED = 0.85  # of the first loss: inside the first drop, which ends near 0.67
RELU, TWO, ONE, SHARED = COLOURS[:4]


@checked
def run(
    *,
    hidden: Count = 700,
    width: Annotated[int, AtLeast(ITEMS)] = 100,
    scale: Positive = 0.005 / 700,
    small: Positive = 1e-7,
    ahead: Positive = 2.0,
    lr: Positive = RATE,
    epochs: Count = 12000,
    every: Count = 20,
    seeds: Count = 3,
    thorough: Truth = True,
    seed: Seed = 0,
) -> Result:
    """Weights have standard deviation `scale`, or `small` as printed; those of contexts `ahead` times it.

    `lr` is the rate on the summed loss; curves are recorded every `every` epochs. `thorough` adds PathDynamics,
    pathways for one and for two contexts in one network, and sequential training.
    """
    task, draws = tasks.contextual(ITEMS, CONTEXTS), list(range(seed, seed + seeds))
    samples, recorded = len(task.items or ()), np.arange(0, epochs + 1, every)
    per_epoch, rate = RATE * samples, lr * samples

    def setup(net: Net, init: Init) -> Setup:
        return Setup(task, net, init, rules.GradientDescent(rate), times=recorded * per_epoch)

    def gated(sizes: int | Sequence[int], factor: float = 1.0, training: str = "joint") -> Setup:
        net = item_contexts.gated(sizes, contexts=CONTEXTS, items=ITEMS, width=width, training=training)
        return setup(net, twin_comparison.small_start(net, scale, factor))

    def loss(trajectory: Trajectory) -> DataArray:
        return labelled(trajectory, "loss").rename(time="epoch").assign_coords(epoch=recorded)

    setups = {"shared alone": gated(2, NEVER)}
    for name, size in (("two contexts", 2), ("one context", 1)):
        setups |= {name: gated(size), f"{name}, ahead": gated(size, ahead)}
    if thorough:
        setups["one and two contexts, ahead"] = gated((1, 2), ahead)
        setups["two contexts, ahead, sequential"] = gated(2, ahead, "sequential")
    relu = setup(nets.MLP(hidden), inits.SmallRandom(scale))
    late = simulate(relu.replace(init=inits.SmallRandom(small)), draws, "gates")
    free = simulate(relu, draws, "gates")
    runs = {name: simulate(one, draws, ["loss", "path_norm"]) for name, one in setups.items()}
    all_runs = {"ReLU": free, "ReLU, late": late} | runs
    moments = bases_of_paths(setups["two contexts"].net, task).defects()
    data = xarray.Dataset(
        {
            "loss": stack({name: loss(run) for name, run in all_runs.items()}, "net"),
            "floor": table(item_contexts.floor(task)),
            "residual": context_panels.paired_strengths(item_contexts.left_by_linear(task), CONTEXTS, ITEMS),
            "target": context_panels.paired_strengths(task, CONTEXTS, ITEMS),
            "commutator": table(float(moments["commutator"][0])),
            **context_panels.shares_of_units(free, CONTEXTS),
            "expected_delay": table(np.log(scale / small) * rate / np.log1p(rate * task.spectrum()[0]) / per_epoch),
        },
        attrs={"samples": samples, "small": small},
    )
    if not thorough:
        return Result(data, {"ReLU": relu} | setups)
    norms = runs["one and two contexts, ahead"]["path_norm"][:, -1, 1:]
    data["competing_norm"] = table(norms.reshape(seeds, 2, CONTEXTS), "seed", "size", "subset")
    chosen = setups["two contexts"]
    flow = chosen.replace(rule=rules.GradientFlow())
    flows = [solve(flow, "PathDynamics", seed=draw, observe="loss") for draw in draws]
    data["predicted_loss"] = stack(dict(zip(draws, map(loss, flows), strict=True)), "seed")
    finer = simulate(chosen.replace(rule=rules.GradientDescent(rate / 2)), draws, ["loss", "path_norm"])
    both = (runs["two contexts"]["loss"], finer["loss"])
    data["gap"] = table([mean_distance(curves, data.predicted_loss) for curves in both], "rate")
    return Result(data, {"ReLU": relu} | setups, {"two contexts": flows[0]})


def claims(result: Result) -> list[Claim]:
    data, epochs = result.data, result.data.epoch.values
    losses = {str(name): data.loss.sel(net=name).values for name in data.net.values}
    relu, ahead, one = losses["ReLU"], losses["two contexts, ahead"], losses["one context, ahead"]
    near, equal, far = (mean_distance(loss, relu) for loss in (ahead, losses["two contexts"], one))
    shift, after = shifted_distance(epochs, ahead, relu, item_contexts.SHIFTS)
    slower = times_to(epochs, one, 0.1).mean() / times_to(epochs, relu, 0.1).mean()
    drops = [times_to(epochs, losses[name], DROPPED) for name in ("ReLU", "ReLU, late")]
    delay = abs(float(np.mean(drops[1] - drops[0]) / data.expected_delay) - 1)
    linear, last = float(data.floor) * data.attrs["samples"], (relu[:, -1] / relu[:, 0]).max()
    alone = largest(data.loss.sel(net="shared alone")[:, -1] / data.floor - 1)
    tie, strongest = largest(data.residual.diff("size")), data.target.isel(mode=0)
    stronger = strongest.sel(size=2).min() / strongest.sel(size=1).max()
    share = data.share.mean("seed")
    every, some, small = share.sel(kind=ALL).interp(epoch=400), share.sel(kind=SOME)[-1], data.attrs["small"]
    most, late = data.majority.mean("seed").interp(epoch=8000), share.where(data.epoch >= 1000).max("epoch")
    statements = [
        paper(
            "Two contexts (head start) and ReLU: mean distance of losses / initial loss",
            at_most(near, 0.01),
            headline=True,
            panel="b",
        ),
        paper(
            "Mean distance of losses from ReLU: two contexts (equal start) / one context (head start)",
            at_most(equal / far, 0.6),
            headline=True,
        ),
        paper(f"Two contexts (head start) and ReLU, shifted {shift} epochs: largest distance", at_most(after, 0.04)),
        ours("Epochs to a tenth of the loss: one context (head start) / ReLU", at_least(slower, 1.2), panel="b"),
        ours("Least loss of a linear map, summed over samples: 16.508", between(linear, 16.5084, 16.5085), panel="a"),
        ours("Final loss, shared pathway alone / best linear map: relative gap", at_most(alone, 2e-3), panel="b"),
        paper("Final loss of ReLU / initial loss: it learns the whole task", at_most(last, 2e-3), panel="b"),
        ours("Singular values on the residual, one context against two others: gap", at_most(tie, 1e-12), panel="c"),
        ours("Top singular value on target: least, two contexts / largest, one", at_least(stronger, 1.3), panel="c"),
        paper("Share of ReLU's weight active on all items and contexts, epoch 400", at_least(every, 0.98), panel="d"),
        ours("Share of ReLU's weight active on some items of a context, end", at_least(some, 0.9), panel="d"),
        paper("Share of ReLU's weight active on most items of 2 contexts, epoch 8000", at_least(most, 0.6), panel="d"),
        paper(
            "Share of ReLU's weight active on all items of two contexts, largest after epoch 1000",
            at_least(late.sel(kind=TWO_WHOLE), 0.5),
            panel="d",
            fails="units are on for some items of a context only; the gated network describes their average",
        ),
        paper(
            "Moments are diagonal in one basis (assumption 2.1.1): commutator of ΣʸˣᵀΣʸˣ and Σˣ",
            at_most(data.commutator, 1e-6),
            fails="it holds for equal blocks in all contexts; with tree, ring and cross 4 % of VᵀΣˣV is off diagonal",
        ),
        ours(f"Delay from weights of {small:.2g}, as printed, / (ln(ratio)/s): gap", at_most(delay, 0.03)),
    ]
    if "predicted_loss" not in data:
        return statements
    gap, joint = data.gap.values, largest_distance(losses["two contexts, ahead, sequential"], ahead)
    norms = data.competing_norm.max(["seed", "subset"]), data.competing_norm.min(["seed", "subset"])
    ratio, order = norms[0].sel(size=1) / norms[1].sel(size=2), np.log2(gap[0] / gap[1])
    return [
        *statements,
        ours("Mean distance of training from PathDynamics: order in the learning rate", between(order, 0.9, 1.1)),
        ours("Mean distance of training from PathDynamics / initial loss", at_most(gap[0], 0.002), panel="a"),
        paper("Both kinds in one network: largest norm of one context / least of two", at_most(ratio, 0.2)),
        ours("Joint and sequential training: largest distance of losses / initial loss", at_most(joint, 0.008)),
    ]


def figure(result: Result) -> Figure:
    data, (sheet, at) = result.data.isel(seed=0), panels("ab;cd")
    first = float(data.loss.sel(net="ReLU")[0])
    for letter, head_start in (("a", ""), ("b", ", ahead")):
        overlay(at[letter], data.loss.sel(net="ReLU") / first, along="epoch", colours=RELU)
        curves = {f"two contexts{head_start}": TWO, f"one context{head_start}": ONE, "shared alone": SHARED}
        for name, colour in curves.items():
            at[letter].plot(data.epoch, data.loss.sel(net=name) / first, color=colour, lw=1.6)
        at[letter].set(xlabel=EPOCHS, ylabel="loss / initial loss of ReLU")
    if "predicted_loss" in data:
        overlay(at["a"], theory=data.predicted_loss / first, along="epoch", colours=TWO)
    border(at["a"], float(data.floor / first), "best\nlinear\nmap", across=True)
    at["a"].set(title="Pathways from equal initial weights", xlim=(0, 5000), ylim=(-0.02, 1.03))
    at["b"].set(title="Pathways for contexts with a head start", yscale="log", ylim=(1e-4, 1.5))
    context_panels.draw_singular_values(at["c"], data)
    context_panels.draw_shares(at["d"], data, TWO)
    shown = {"ReLU": RELU, "shared and two contexts": TWO, "shared and one context": ONE, "shared alone": SHARED}
    key(sheet, shown, kinds=("training", "theory") if "predicted_loss" in data else ())
    return sheet
