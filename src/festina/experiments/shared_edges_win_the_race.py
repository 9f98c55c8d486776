"""A pathway whose edges are shared by many domains learns faster than private pathways, and learns all in the limit of
small initial weights.

Every domain can be learned through a layer that all domains share, or through private layers of its own. Depth,
correlations and starts are equal, and one domain is shown at a time. An edge that M paths go through learns from all of
them.

**Two layers** (M input domains share one decoder). The shared pathway grows √M times as fast, so that from decoupled
layers of strength b₀

    private/shared ∝ b₀^(2(1 − 1/√M)) → 0   for every M > 1,

and the two are equal at M = 1. Random weights show the same. Along the way M b₁² − b₂² of encoders and shared decoder
is conserved, so the shared edge ends √M times as strong.

**Three layers** (the routing network: encoders, a shared layer, decoders, with K trained outputs per input). With the
error e and T = ∫ e dt

    ḃ₁ = K b₂b₃ e,   ḃ₂ = MK b₁b₃ e,   b₃ = b₁:      b₁ → ∞ at T = arctan √(M − 1)/(√(M − 1) K b₀),

where a private pathway would need T = 1/b₀. The private pathway stops at (1 − arctan √(M − 1)/(K √(M − 1)))⁻³ times its
start, so private/shared ∝ b₀³ whatever M > 1. The time to learn falls with M, and is exactly ∝ 1/K without rivals.
These closed forms are derived here; the slides show pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from .. import Setup, inits, rules, solve
from .._figures.style import new_figure
from .._foundation.checks import positive, whole
from .._foundation.errors import BadInput
from ._kit import shared_layers, time_grids
from ._kit.sharing_checks import conserved_drift, gap_to_neural_race, half_times
from ._kit.sharing_panels import (
    draw_deep,
    draw_epochs,
    draw_exponents,
    draw_random,
    draw_shares,
    draw_two,
    random_exponents,
    shared_share,
    start_exponents,
)
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure


THEME, PLACE = "gates", 4
REFERENCE = {
    "saxe_slides": "“The neural race: edge sharing”, “Race dynamics favor shared structure”",
    "saxe2022": "race reduction, routing networks",
}
QUICK = dict(
    sharing=(1, 2, 4), starts=(1e-1, 1e-2, 1e-3), deep_starts=(0.2, 0.1, 0.05), seeds=4, lr=0.02, points=120, race=False
)
# Epochs until the first mode of the routing task is half learned, from b₀ = 0.08 at rate 0.02 on the slides' loss.
EPOCHS = {(1, 1): 625, (2, 1): 491, (4, 1): 378, (7, 1): 302, (10, 1): 260, (7, 2): 151, (7, 4): 76, (7, 7): 44}


def run(
    *,
    sharing: Sequence[int] = (1, 2, 4, 7, 10),
    trained_pairs: Sequence[int] = (1, 2),
    starts: Sequence[float] = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3),
    deep_starts: Sequence[float] = (0.2, 0.14, 0.1, 0.07, 0.05),
    scales: Sequence[float] = (1e-2, 1e-3, 1e-4),
    hidden: int = 32,
    until: float = 14.0,
    deep_until: float = 60.0,
    lr: float = 0.005,
    points: int = 300,
    seeds: int = 12,
    race: bool = True,
    seed: int = 0,
) -> Result:
    """`sharing`: numbers of domains; `trained_pairs`: outputs per input with three layers.

    `starts` and `deep_starts` are strengths of decoupled layers, of two and of three layers; `scales` are standard
    deviations of random weights. `race` compares the closed form with the theory NeuralRace.
    """
    sharing = [whole(count, "sharing") for count in sharing]
    per = [whole(count, "trained_pairs") for count in trained_pairs]
    if sharing[0] != 1 or len(sharing) < 3 or sharing != sorted(set(sharing)):
        raise BadInput(f"sharing = {tuple(sharing)}", "increasing numbers of domains, from 1 on", "give (1, 2, 4)")
    hidden, points, seeds = whole(hidden, "hidden"), whole(points, "points", least=2), whole(seeds, "seeds")
    lr, until, deep_until = positive(lr, "lr"), positive(until, "until"), positive(deep_until, "deep_until")
    starts, scales = sorted(starts, reverse=True), sorted(scales, reverse=True)
    deep_starts = sorted(deep_starts, reverse=True)
    draws = list(range(seed, seed + seeds))
    times, deep_times = (time_grids.even(end, points, lr) for end in (until, deep_until))
    rule = rules.GradientDescent(lr)

    # Two layers.
    net, task = shared_layers.two_layers(sharing, hidden)
    paths = net.paths()
    two = [Setup(task, net, inits.Decoupled(start), rule, times=times) for start in starts]
    random = [
        setup.replace(init=inits.SmallRandom(scale)) for setup, scale in zip(two[:1] * len(scales), scales, strict=True)
    ]

    def trained_from(setup: Setup) -> Float[np.ndarray, "seed time path sharing"]:
        return shared_layers.pathways(simulate(setup, draws, "path_norm")["path_norm"], paths, sharing)

    by_start = np.stack([trained_from(setup)[0] for setup in two])
    by_scale = np.stack([trained_from(setup) for setup in random])
    shown, fine = len(starts) // 2, np.geomspace(starts[0], starts[-1], 40)
    theory = np.stack([shared_layers.predicted_two(times, start, np.array(sharing)) for start in starts])
    half_rate = trained_from(two[shown].replace(rule=rules.GradientDescent(lr / 2)))[0]
    errors = [np.abs(strengths - theory[shown]).max() for strengths in (by_start[shown], half_rate)]

    # Three layers.
    settings = [(count, 1) for count in sharing] + [(2, count) for count in per if count > 1]
    deep_net, deep_task = shared_layers.three_layers(settings)
    # Given and not Decoupled: with K = 1 nothing in the data says which modes of two domains are alike.
    three = [
        Setup(deep_task, deep_net, inits.Given([[[start]]] * len(deep_net.edges)), rule, times=deep_times)
        for start in deep_starts
    ]
    deep = [
        shared_layers.pathways(
            simulate(setup, [seed], "path_norm")["path_norm"], deep_net.paths(), shared_layers.names(settings)
        )[0]
        for setup in three
    ]
    deep_theory = np.stack([shared_layers.predicted_three(deep_times, start, settings) for start in deep_starts])
    conserved = conserved_drift(max(sharing[:3]), hidden, starts[shown], times[::4], (lr, lr / 2), seed)

    setups = {"two layers": two[shown], "two layers, random": random[-1], "three layers": three[-1]}
    theories = {"two layers": solve(two[shown], "NeuralRace")} if race else {}
    import xarray

    data = xarray.Dataset(
        {
            "two_training": (("start", "time", "path", "sharing"), by_start),
            "two_theory": (("start", "time", "path", "sharing"), theory),
            "two_final": (("fine_start", "path", "sharing"), shared_layers.finals_two(list(fine), sharing)),
            "two_random": (("scale", "seed", "time", "path", "sharing"), by_scale),
            "random_theory": (
                ("time", "path", "sharing"),
                shared_layers.predicted_random(times, scales[1], hidden, np.array(sharing)),
            ),
            "three_training": (("deep_start", "deep_time", "path", "setting"), np.stack(deep)),
            "three_theory": (("deep_start", "deep_time", "path", "setting"), deep_theory),
            "limit": ("setting", shared_layers.limit(settings)),
            "limit_gap": (
                ("small", "setting"),
                np.stack([shared_layers.limit_gap(start, settings) for start in (2e-4, 1e-4)]),
            ),
            "order_in_lr": ((), np.log2(errors[0] / errors[1])),
            "drift": ("rate", conserved["drift"]),
            "shared_edge": ("rate", conserved["ratio"]),
            "epochs": ("oracle", [shared_layers.routing_epochs(count, pairs) for count, pairs in EPOCHS]),
            "epochs_known": ("oracle", list(EPOCHS.values())),
        },
        coords={
            "time": times,
            "deep_time": deep_times,
            "start": starts,
            "fine_start": fine,
            "deep_start": deep_starts,
            "scale": scales,
            "seed": draws,
            "sharing": sharing,
            "rate": [lr, lr / 2],
            "domains": ("setting", [count for count, _ in settings]),
            "per_domain": ("setting", [pairs for _, pairs in settings]),
            "oracle_domains": ("oracle", [count for count, _ in EPOCHS]),
            "oracle_pairs": ("oracle", [pairs for _, pairs in EPOCHS]),
        },
        attrs={"shown": starts[shown], "conserved_domains": max(sharing[:3]), "hidden": hidden},
    )
    for trajectory in theories.values():
        data["race_gap"] = gap_to_neural_race(trajectory, paths, sharing, theory[shown])
    return Result(data, setups, theories)


def claims(result: Result) -> list[Claim]:
    data = result.data
    many = data.sharing.values > 1
    expected = 1 - 1 / np.sqrt(data.sharing.values)
    share = shared_share(data.two_training.isel(time=-1, start=-1))
    final = data.three_training.isel(deep_time=-1)
    grown = (final / data.three_training.isel(deep_time=0)).isel(path=1)
    predicted_growth = (data.three_theory.isel(deep_time=-1) / data.three_theory.isel(deep_time=0)).isel(path=1)
    won = np.isfinite(data.limit.values)
    deep_share = shared_share(final.isel(deep_start=-1)).values
    halves = half_times(data)
    order = np.log2(data.limit_gap[0] / data.limit_gap[1]).values[won]
    random = shared_share(data.two_random.isel(time=-1))
    domains = data.attrs["conserved_domains"]
    statements = [
        paper(
            f"Two layers: the shared pathway wins: its share, M = {int(data.sharing[-1])}, smallest start",
            at_least(float(share[-1]), 0.98),
        ),
        paper(
            "… and wins by more the more domains share it: smallest rise of its share, one M to the next",
            at_least(float(share.diff("sharing").min()), 0.0),
        ),
        ours(
            "Without sharing (M = 1) neither pathway wins: gap of the share from ½",
            at_most(abs(float(share[0]) - 0.5), 1e-9),
        ),
        ours(
            "Private/shared ∝ b₀^(2(1 − 1/√M)), training: largest gap of the exponent of b₀², smallest two starts",
            at_most(np.abs(start_exponents(data) - expected).max(), 0.01),
        ),
        ours(
            "… and from random weights of sd σ: largest gap of the exponent of σ², medians over seeds, smallest two σ",
            at_most(np.abs(random_exponents(data) - expected)[many].max(), 0.03),
        ),
        paper(
            f"… where the shared pathway wins from every seed: smallest share, M > 1, σ = {float(data.scale[-1]):g}",
            at_least(float(random.isel(scale=-1, sharing=many).min()), 0.9),
        ),
        ours(
            "Training tends to the closed form of the race as lr → 0: order of the gap in lr",
            between(float(data.order_in_lr), 0.9, 1.1),
        ),
        ours(
            f"M b₁² − b₂² is conserved, M = {domains}: drift / last b₂², lr = {float(data.rate[-1]):g}",
            at_most(float(data.drift[-1]), 1e-3),
        ),
        ours(
            "… up to first order in lr: order of the drift",
            between(float(np.log2(data.drift[0] / data.drift[1])), 0.9, 1.1),
        ),
        ours(
            "… so the shared edge ends √M times as strong as the others: relative gap",
            at_most(abs(float(data.shared_edge[-1]) / np.sqrt(domains) - 1), 0.01),
        ),
        paper(
            "Three layers: the shared pathway takes all: smallest share for M > 1, smallest start",
            at_least(deep_share[won].min(), 0.95),
        ),
        ours(
            "… private pathways grow as the closed form says: largest relative gap over M, K and starts",
            at_most(np.abs(grown / predicted_growth - 1).values.max(), 0.05),
        ),
        ours(
            "… to (1 − arctan √(M − 1)/(K √(M − 1)))⁻³ times their start, up to first order in b₀: lowest order",
            between(order.min(), 0.9, 1.1),
        ),
        ours(
            "Three layers: half-times with rivals are those of the closed form: largest relative gap",
            at_most(np.abs(halves["training"] / halves["theory"] - 1).max(), 0.02),
        ),
        ours(
            "Routing network: epochs to half of the first mode, M = 1 … 10 and K = 1 … 7: largest gap to "
            f"{', '.join(str(int(value)) for value in data.epochs_known)}",
            at_most(float(np.abs(np.ceil(data.epochs) - data.epochs_known).max()), 0.0),
        ),
    ]
    if "race_gap" in data:
        statements.append(
            ours(
                "NeuralRace agrees with the closed form: largest gap of all strengths",
                at_most(float(data.race_gap), 1e-6),
            )
        )
    return statements


def figure(result: Result) -> Figure:
    data = result.data
    sheet, ((two, shares, exponents), (random, deep, epochs)) = new_figure(2, 3)
    draw_two(two, data)
    draw_shares(shares, data)
    draw_exponents(exponents, data)
    draw_random(random, data)
    draw_deep(deep, data)
    draw_epochs(epochs, data)
    return sheet
