"""A network that shares one layer between many domains learns pairs of domains that it was never trained on.

Seven input domains have an encoder each, seven output domains have a decoder each, and all 49 pairs share one layer in
between. K pairs per input domain are trained, from orthogonal weights of gain 0.2. With K ≥ 3 the network gets the
other pairs right, too. A mode of strength s moves along the one law

    ḃ₁ = K b₂b₃ (s − b₁b₂b₃),   ḃ₂ = MK b₁b₃ (s − b₁b₂b₃),   ḃ₃ = K b₁b₂ (s − b₁b₂b₃)      (time: epochs × lr/14)

of encoders (b₁), shared layer (b₂) and decoders (b₃). The shared layer belongs to MK paths, so it is the fastest and
ends √M times as strong. M b₁² − b₂² is conserved. With b₁ = b₃ the time follows by quadrature; it is exactly ∝ 1/K and
falls with M. From a decoupled start the law is exact, and gradient descent tends to it at first order in lr. From
random weights the start of the law is *fitted* (b₀ = gain/2.5, the slides' choice); each seed learns some epochs before
or after it.

**What decides generalisation.** The trained pairs are a circulant matrix. Its first singular value, K, belongs to a
structure that all domains share. The next one, sin(πK/M)/sin(π/M), belongs to a structure that changes along the ring
of domains, and this one takes part in the race, too. K = 1: both values are 1, and nothing couples the domains. They
end in the same hidden subspace, but each domain with its own rotation of it (in the limit of small weights a sign for
each mode, and a rotation of the pair s = 3, 3). An untrained pair is then as wrong as a random rotation makes it, ‖Y −
Ŷ‖² ≈ 2‖Y‖²: worse than an output of zero. K = 2: the two values are 10 % apart. Most domains agree on the sign of the
strongest modes, the pair s = 3, 3 often stays rotated, and in some runs even the strongest mode is common to a domain
and its neighbours on the ring only. K ≥ 3: all domains agree.

The loss and the learning rate are those of the slides (sum over trained pairs of the mean over 28 entries). The slides
draw their theory curve against its own index, ten times finer than epochs; here it is drawn against epochs. All K are
run at one rate of the *mean* loss, that of lr at K = 4. Training from many seeds treats the network as matrix
completion (see `_kit/routing.py`); a claim measures that this is the same training.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import Setup, inits, nets, rules, solve, tasks
from .._figures.style import new_figure
from .._foundation.checks import positive, whole
from ._kit import routing
from ._kit.routing_panels import (
    draw_explained,
    draw_generalising,
    draw_learning,
    draw_sharing,
    draw_signs,
    trained_loss,
)
from ._kit.routing_runs import MARKS, TOGETHER, from_decoupled, gated_network, trained_from_seeds
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

THEME, PLACE = "gates", 7
REFERENCE = {"saxe_slides": "“routing network”", "saxe2022": "routing networks"}
QUICK = dict(pairs=(1, 2, 3, 4), seeds=6, checked=(3, 2), race=False)
AXES = {  # of each measure of a network, after the axes pairs and seed
    "error": ("mark", "kind"),
    "cosine": ("domain", "domain_", "mode"),
    "overlap": (),
    "twist": (),
    "turned_error": (),
    "shared_strength": (),
}


def run(
    *,
    domains: int = 7,
    pairs: Sequence[int] = (1, 2, 3, 4, 5, 6),
    shown: int = 4,
    gain: float = 0.2,
    hidden: int = 64,
    lr: float = 0.02,
    epochs: int = 500,
    fitted_start: float = 0.08,
    rates: Sequence[float] = (0.004, 0.002, 0.001),
    sharing: Sequence[int] = (1, 2, 4, 7, 10),
    seeds: int = 20,
    checked: tuple[int, int] = (7, 4),
    race: bool = True,
    seed: int = 0,
) -> Result:
    """`pairs`: numbers of trained pairs per domain, of which `shown` is drawn; `sharing`: numbers of domains.

    `checked`, domains and trained pairs, is the gated network that is also trained by `simulate`; `race` compares the
    law with the theory NeuralRace.
    """
    domains, shown, hidden = whole(domains, "domains"), whole(shown, "shown"), whole(hidden, "hidden")
    epochs, seeds = whole(epochs, "epochs", least=200), whole(seeds, "seeds", least=TOGETHER)
    gain, lr, start = positive(gain, "gain"), positive(lr, "lr"), positive(fitted_start, "fitted_start")
    pairs, unit = routing.checked_pairs(pairs, (1, 2, shown)), routing.slides_units(domains, shown)
    draws = np.arange(seed, seed + seeds)

    network = gated_network(checked, hidden, gain, lr, epochs)
    direct = simulate(network, list(draws[:TOGETHER]), "task_loss")["task_loss"][:, -1, ::-1]
    decoupled = Setup(
        tasks.routing(domains, shown),
        nets.Gated.routing(domains, domains, shown, hidden=hidden),
        inits.Decoupled(start),
        rules.GradientFlow(),
        times=np.linspace(0, epochs, 11) * unit * lr,
    )
    theories = {"decoupled start": solve(decoupled, "NeuralRace")} if race else {}
    many, same = trained_from_seeds(domains, hidden, gain, pairs, draws, unit * lr, epochs, checked, lr)
    slow = from_decoupled(domains, shown, pairs, sharing, start, lr, rates)
    modes = routing.strengths()
    import xarray

    data = xarray.Dataset(
        {
            "law_loss": ("epoch", routing.law(domains, shown, start, lr, np.arange(epochs + 1))),
            "direct_error": (("network", "kind"), direct * 2 / np.mean(modes**2)),
            "completed_error": (("network", "kind"), same),
            **{name: (("pairs", "seed", *axes), many[name]) for name, axes in AXES.items()},
            "runner_up": ("pairs", np.sin(np.pi * np.array(pairs) / domains) / np.sin(np.pi / domains) / pairs),
            "rate_loss": (("rate", "early"), np.asarray(slow["loss"]) * unit),
            "drift": ("rate", slow["drift"]),
            "across_law": ("across", slow["law"][: len(sharing)]),
            "across_training": ("across", slow["half"][: len(sharing)]),
            "per_law": ("per", slow["law"][len(sharing) :]),
            "per_training": ("per", slow["half"][len(sharing) :]),
            **({"race_loss": ("few", theories["decoupled start"]["loss"] * unit)} if race else {}),
        },
        coords={
            "epoch": np.arange(epochs + 1),
            "few": np.linspace(0, epochs, 11),
            "mark": np.arange(MARKS + 1) * (epochs // MARKS),
            "early": np.arange(MARKS + 1),
            "pairs": list(pairs),
            "seed": draws,
            "rate": list(rates),
            "kind": ["untrained", "trained"],
            "across": list(sharing),
            "per": slow["per"],
        },
        attrs={"domains": domains, "shown": shown, "gain": gain, "start": start, "lr": lr, "power": np.mean(modes**2)},
    )
    return Result(data, {"network": network, "decoupled start": decoupled}, theories)


def claims(result: Result) -> list[Claim]:
    data = result.data
    law = data.law_loss.values
    gaps = np.abs(data.rate_loss - law[: data.sizes["early"]]).max("early").values / law[0]
    error = data.error.sel(kind="untrained").isel(mark=-1)
    random = np.abs(trained_loss(data, "trained") - law[data.mark.values]).mean(axis=1) / law[0]
    median = error.median("seed")
    enough = data.pairs >= 3
    one, shown = data.sel(pairs=1), data.sel(pairs=data.shown)
    halving = np.log(data.rate.values[-2] / data.rate.values[-1])
    order = {
        name: np.log(sizes[-2] / sizes[-1]) / halving for name, sizes in (("gap", gaps), ("drift", data.drift.values))
    }
    half = np.concatenate([data.across_training / data.across_law, data.per_training / data.per_law])
    statements = [
        paper(
            f"The network generalises to untrained pairs, K = {data.shown}: median error ‖Y − Ŷ‖²/‖Y‖² "
            f"over {data.sizes['seed']} seeds",
            at_most(median.sel(pairs=data.shown), 1e-4),
        ),
        paper("… and for every K ≥ 3: largest median error", at_most(median[enough].max(), 1e-2)),
        ours(
            "With one trained pair per domain, untrained ones are worse than an output of zero: median error",
            at_least(median.sel(pairs=1), 1.0),
        ),
        ours("Two trained pairs per domain are not enough: median error", at_least(median.sel(pairs=2), 0.03)),
        ours(
            "Every further trained pair helps: smallest ratio of median errors, one K to the next",
            at_least(np.min(median.values[:-1] / median.values[1:]), 1.0),
        ),
        ours(
            "K = 1: domains share a hidden subspace: mean overlap (4/64 by chance)", at_least(one.overlap.mean(), 0.85)
        ),
        ours(
            "… but each domain has its own signs: share of equal signs between domains, first two modes",
            between(_agreeing(one), 0.3, 0.7),
        ),
        ours(
            "… and its own rotation of this subspace, which explains the error: largest relative gap",
            at_most(np.abs(one.turned_error / error.sel(pairs=1) - 1).max(), 0.1),
        ),
        ours(
            "K = 2: most domains have equal signs: share between domains", at_least(_agreeing(data.sel(pairs=2)), 0.7)
        ),
        ours(
            "K ≥ 3: all domains have the same signs: smallest share",
            at_least(min(_agreeing(data.sel(pairs=k)) for k in data.pairs[enough]), 1.0),
        ),
        ours(
            "… and the pair of modes s = 3, 3 is not rotated between domains: smallest cosine of the rotation",
            at_least(data.twist[enough].min(), 0.95),
        ),
        ours(
            "The loss of the law at the start and after 100 and 200 epochs is 243.973, 58.845, 17.905: largest gap",
            at_most(np.abs(law[[0, 100, 200]] - [243.973, 58.845, 17.905]).max(), 2e-3),
        ),
        ours(
            "Gradient descent from a decoupled start tends to the law as lr → 0: order of the gap",
            between(order["gap"], 0.9, 1.1),
        ),
        ours("M b₁² − b₂² is conserved as lr → 0: order of its drift", between(order["drift"], 0.9, 1.1)),
        paper(
            f"Networks from random weights follow the law from b₀ = {data.start:g}: time mean of the gap / first loss, "
            "median over seeds",
            at_most(np.median(random), 0.02),
            fitted=True,
        ),
        paper(
            "Sharing an edge makes it faster by as much as the law says: largest relative gap of half-times",
            at_most(np.abs(half - 1).max(), 0.03),
        ),
        ours(
            "From random weights the shared layer ends √M times as strong as an encoder: relative gap of the median",
            at_most(abs(float(shown.shared_strength.median()) / np.sqrt(data.domains) - 1), 0.03),
        ),
        ours(
            "Training the gated network is matrix completion: largest relative gap of the errors of both trainings",
            at_most(np.abs(data.completed_error / data.direct_error - 1).max(), 1e-6),
        ),
    ]
    if "race_loss" in data:
        statements.append(
            paper(
                "The law is the race reduction of this network: largest gap / first loss",
                at_most(np.abs(data.race_loss.values - np.interp(data.few, data.epoch, law)).max() / law[0], 1e-7),
            )
        )
    return statements


def _agreeing(data: Dataset) -> float:
    """Share of pairs of domains whose hidden activity has the same sign in the first two modes."""
    apart = ~np.eye(data.sizes["domain"], dtype=bool)
    return float(np.mean(data.cosine.values[:, apart, :2] > 0))


def figure(result: Result) -> Figure:
    data = result.data
    sheet, axes = new_figure(2, 3, width=4.4, height=3.5)
    (learning, generalising, sharing), (alone, together, explained) = axes
    draw_learning(learning, data)
    draw_generalising(generalising, data)
    draw_sharing(sharing, data)
    draw_signs(alone, data, 1)
    draw_signs(together, data, data.shown)
    draw_explained(explained, data)
    return sheet
