"""A network that shares one layer between many domains learns pairs of domains that it was never trained on.

Seven input domains have an encoder each, seven output domains have a decoder each, and all 49 pairs share one layer in
between. K pairs per input domain are trained, from orthogonal weights of gain 0.2. With K ≥ 3 the network is right on
the other pairs, too.

**What decides generalisation.** The trained pairs are a circulant matrix. Its first singular value, K, belongs to a
structure that all domains share. The next one, sin(πK/M)/sin(π/M), belongs to a structure that changes along the ring
of domains, and this one takes part in the race, too. K = 1: both values are 1, and nothing couples the domains. They
end in the same hidden subspace, but each domain with its own rotation of it (in the limit of small weights a sign for
each mode, and a rotation of the pair s = 3, 3). An untrained pair is then as wrong as a random rotation makes it, ‖Y −
Ŷ‖² ≈ 2‖Y‖²: worse than an output of zero. K = 2: the two values are 10 % apart. Most domains agree on the sign of the
strongest modes, the pair s = 3, 3 often stays rotated, and in some runs even the strongest mode is common to a domain
and its neighbours on the ring only. K ≥ 3: all domains agree.

From random weights the loss follows the theory of `shared_layers_learn_sooner`, whose initial strength is fitted
(b₀ = gain/2.5, the slides' choice); each seed learns some epochs before or after it. The loss and the learning rate are
those of the slides (sum over trained pairs of the mean over 28 entries). All K are run at one rate of the mean loss,
that of lr at K = 4. Many seeds are trained at once, as matrix completion (see `_kit/routing.py`); a claim measures that
this is the training of the gated network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .._figures.overlay import heat, overlay
from .._figures.panels import border, key, panels
from .._figures.style import COLOURS, INK
from ._kit import routing
from ._kit.labelled import largest, table
from ._kit.parameters import AtLeast, Count, Counts, Positive, Seed, checked
from ._kit.routing_runs import MARKS, TOGETHER, gated_network, law_of_loss, trained_from_seeds
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

THEME, PLACE = "gates", 7
REFERENCE = {"saxe_slides": "“routing network”", "saxe2022": "routing networks"}
QUICK = dict(pairs=(1, 2, 3, 4), seeds=6, checked=(3, 2))
CAPTION = """
**a** Error of untrained pairs of domains, ‖Y − Ŷ‖²/‖Y‖² with target Y and output Ŷ, after training on K pairs per
domain: a disc for each seed, a bar for the median. The grey line is the error of an output of zero. Below K stands the
second singular value of the matrix of trained pairs over the first. **b** Loss of trained and untrained pairs while
four of seven pairs are trained, one line for each seed, and the theory of decoupled layers with their initial strength
fitted. **c**, **d** Cosine between the hidden activities of two input domains for the strongest mode (first seed), with
one and with four trained pairs per domain: +1 where they have the same sign, −1 where they have opposite signs.
"""
ALT = """
The error of untrained pairs is above that of an output of zero for one trained pair and falls by orders of magnitude
with three and more. The loss of untrained pairs falls with that of the trained ones. With one trained pair per domain
the signs of domains are mixed, with four all are equal.
"""
TRAINED, UNTRAINED = COLOURS[:2]


@checked
def run(
    *,
    domains: Count = 7,
    pairs: Counts = (1, 2, 3, 4, 5, 6),
    shown: Count = 4,
    gain: Positive = 0.2,
    hidden: Count = 64,
    lr: Positive = 0.02,
    epochs: Annotated[int, AtLeast(200)] = 500,
    fitted_start: Positive = 0.08,
    seeds: Annotated[int, AtLeast(TOGETHER)] = 20,
    checked: tuple[int, int] = (7, 4),
    seed: Seed = 0,
) -> Result:
    """`pairs`: numbers of trained pairs per domain, of which `shown` is drawn.

    `checked`, domains and trained pairs, is the gated network that is also trained by `simulate`.
    """
    pairs, unit = routing.checked_pairs(pairs, (1, 2, shown)), routing.slides_units(domains, shown)
    draws, ring, modes = np.arange(seed, seed + seeds), np.pi / domains, routing.strengths()
    network = gated_network(checked, hidden, gain, lr, epochs)
    direct = simulate(network, list(draws[:TOGETHER]), "task_loss")["task_loss"][:, -1, ::-1]
    many, same = trained_from_seeds(domains, hidden, gain, pairs, draws, unit * lr, epochs, checked, lr)
    data = xarray.Dataset(
        {
            **many,
            "law_loss": table(law_of_loss(domains, shown, fitted_start, lr, np.arange(epochs + 1)), "epoch"),
            "direct_error": table(direct * 2 / np.mean(modes**2), "network", "kind"),
            "completed_error": table(same, "network", "kind"),
            "runner_up": table(np.sin(ring * np.array(pairs)) / np.sin(ring) / pairs, "pairs"),
        },
        coords={
            "epoch": np.arange(epochs + 1),
            "mark": np.arange(MARKS + 1) * (epochs // MARKS),
            "pairs": list(pairs),
            "seed": draws,
            "kind": ["untrained", "trained"],
        },
        attrs={"domains": domains, "shown": shown, "gain": gain, "start": fitted_start, "lr": lr},
    )
    data["loss"] = data.error.sel(pairs=shown) * np.mean(modes**2) / 2 * unit
    data["loss"].loc[dict(kind="untrained")] *= (domains - shown) / shown  # a sum over more or fewer pairs
    return Result(data, {"network": network})


def claims(result: Result) -> list[Claim]:
    data = result.data
    error, enough = data.error.sel(kind="untrained").isel(mark=-1), data.pairs >= 3
    median, one, shown = error.median("seed"), data.sel(pairs=1), data.sel(pairs=data.shown)
    on_marks = data.law_loss.sel(epoch=data.mark)
    random = abs(data.loss.sel(kind="trained") - on_marks).mean("mark") / data.law_loss[0]
    least = np.min(median.values[:-1] / median.values[1:])
    agreeing = {int(k): _agreeing(data.sel(pairs=k)) for k in data.pairs.values}
    same_sign = min(share for k, share in agreeing.items() if k >= 3)
    unexplained = largest(one.turned_error / error.sel(pairs=1) - 1)
    ratio = abs(float(shown.shared_strength.median()) / np.sqrt(data.domains) - 1)
    both = largest(data.completed_error / data.direct_error - 1)
    return [
        paper(
            f"Error of untrained pairs ‖Y − Ŷ‖²/‖Y‖², K = {data.shown}: median over {data.sizes['seed']} seeds",
            at_most(median.sel(pairs=data.shown), 1e-4),
            headline=True,
            panel="a",
        ),
        paper(
            "Error of untrained pairs for every K ≥ 3: largest median",
            at_most(median[enough].max(), 1e-2),
            headline=True,
            panel="a",
        ),
        ours(
            "Error of untrained pairs, K = 1 (an output of zero has 1): median",
            at_least(median.sel(pairs=1), 1.0),
            panel="a",
        ),
        ours("Error of untrained pairs, K = 2: median", at_least(median.sel(pairs=2), 0.03), panel="a"),
        ours(
            "Error of untrained pairs falls with K: its median at one K over the next, smallest ratio",
            at_least(least, 1.0),
            panel="a",
        ),
        ours("Overlap of the hidden subspaces of domains, K = 1 (chance: 4/64)", at_least(one.overlap.mean(), 0.85)),
        ours(
            "K = 1: share of pairs of domains with equal signs of hidden activity, first two modes",
            between(agreeing[1], 0.3, 0.7),
            panel="c",
        ),
        ours(
            "Error of untrained pairs, K = 1 / that which rotated domains explain: largest gap from 1",
            at_most(unexplained, 0.1),
        ),
        ours("K = 2: share of pairs of domains with equal signs, first two modes", at_least(agreeing[2], 0.7)),
        ours(
            "K ≥ 3: smallest share of pairs of domains with equal signs, first two modes",
            at_least(same_sign, 1.0),
            panel="d",
        ),
        ours(
            "K ≥ 3: cosine of the rotation between domains of the two modes with s = 3, smallest",
            at_least(data.twist[enough].min(), 0.95),
        ),
        paper(
            f"Loss from random weights against the theory with fitted b₀ = {data.start:g}: mean gap / initial loss, "
            "median over seeds",
            at_most(random.median(), 0.02),
            fitted=True,
            panel="b",
        ),
        ours("Final strength of the shared layer / encoder: relative gap of the median from √M", at_most(ratio, 0.03)),
        ours("Errors of matrix completion and of the gated network: largest relative gap", at_most(both, 1e-6)),
    ]


def _agreeing(data: Dataset) -> float:
    """Share of pairs of domains whose hidden activity has the same sign in the first two modes."""
    apart = ~np.eye(data.sizes["domain"], dtype=bool)
    return float(np.mean(data.cosine.values[:, apart, :2] > 0))


def figure(result: Result) -> Figure:
    data = result.data
    error = data.error.sel(kind="untrained").isel(mark=-1)
    sheet, at = panels("ab;cd")
    for k, values in zip(data.pairs.values, error.values, strict=True):
        at["a"].plot(k + np.linspace(-0.18, 0.18, len(values)), values, "o", ms=4, color=UNTRAINED, alpha=0.5, mew=0)
    at["a"].plot(data.pairs, error.median("seed"), "_", ms=22, mew=2, color=INK)
    border(at["a"], 1.0, "zero\noutput", across=True)
    ticks = [f"{k}\n{r:.2f}" for k, r in zip(data.pairs.values, data.runner_up.values, strict=True)]
    at["a"].set_xticks(data.pairs.values, ticks)
    at["a"].set(yscale="log", xlabel="trained pairs per domain, K\nsecond singular value / first")
    at["a"].set(ylabel="error of untrained pairs", title="Three trained pairs are enough")
    for kind, colour, pairs in (
        ("trained", TRAINED, data.shown),
        ("untrained", UNTRAINED, data.domains - data.shown),
    ):
        overlay(at["b"], data.loss.sel(kind=kind), along="mark", colours=colour)
        overlay(at["b"], theory=pairs / data.shown * data.law_loss, along="epoch", colours=colour)
    at["b"].set(xlabel=f"epochs at rate {data.lr:g}", ylabel="loss, summed over pairs", ylim=(0, None))
    at["b"].set_title(f"Loss with K = {data.shown} of {data.domains} pairs trained")
    for letter, k, signs in (("c", 1, "mixed signs"), ("d", data.shown, "equal signs")):
        cosine = data.cosine.sel(pairs=k).isel(seed=0, mode=0)
        heat(at[letter], cosine, rows="domain", columns="domain_", signed=True, label="cosine")
        numbers = np.arange(data.domains)
        at[letter].set_xticks(numbers, numbers + 1)
        at[letter].set_yticks(numbers, numbers + 1)
        at[letter].set(xlabel="input domain", ylabel="input domain", title=f"Strongest mode, K = {k}: {signs}")
    key(sheet, {"trained pairs": TRAINED, "untrained pairs": UNTRAINED}, kinds=("training", "theory, b₀ fitted"))
    return sheet
