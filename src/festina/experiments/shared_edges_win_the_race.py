"""A pathway whose edges are shared by many domains outruns private ones, and takes all as the start becomes small.

Every domain can be learned through a layer that all domains share, or through layers of its own. Depth, correlations
and starts are equal, and one domain is shown at a time. An edge that M paths go through learns from all of them.

**Two layers** (M input domains, one decoder shared): the shared pathway grows √M times as fast, so that from decoupled
layers of strength b₀

    private/shared ∝ b₀^(2(1 − 1/√M)) → 0   for every M > 1,

and the two are equal at M = 1. Random weights show the same. Along the way M b₁² − b₂² of encoders and shared decoder
is conserved, so that the shared edge ends √M times as strong.

**Three layers** (the routing network: encoders, a shared layer, decoders, K outputs trained per input): with
T = ∫ error dt

    ḃ₁ = K b₂b₃ e,   ḃ₂ = MK b₁b₃ e,   b₃ = b₁:      b₁ → ∞ at T = arctan √(M − 1)/(√(M − 1) K b₀)

where a private pathway would need T = 1/b₀. It stops at (1 − arctan √(M − 1)/(K √(M − 1)))⁻³ times its start, so that
private/shared ∝ b₀³ whatever M > 1. The time to learn falls with M, and is exactly ∝ 1/K without rivals. These closed
forms are derived here; the slides show pictures.
"""

from __future__ import annotations

import numpy as np

from .. import inits, rules
from .._errors import BadInput
from .._noun import positive, whole
from .._plot import COLOURS, TIME, new_figure, predicted, trained
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from .._solve import solve
from . import _sharing

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
    sharing=(1, 2, 4, 7, 10),
    trained_pairs=(1, 2),
    starts=(1e-1, 3e-2, 1e-2, 3e-3, 1e-3),
    deep_starts=(0.2, 0.14, 0.1, 0.07, 0.05),
    scales=(1e-2, 1e-3, 1e-4),
    hidden=32,
    until=14.0,
    deep_until=60.0,
    lr=0.005,
    points=300,
    seeds=12,
    race=True,
    seed=0,
) -> Result:
    sharing, per = (
        [whole(count, "sharing") for count in sharing],
        [whole(count, "trained_pairs") for count in trained_pairs],
    )
    if sharing[0] != 1 or len(sharing) < 3 or sharing != sorted(set(sharing)):
        raise BadInput(f"sharing = {tuple(sharing)}", "increasing numbers of domains, from 1 on", "give (1, 2, 4)")
    hidden, points, seeds = whole(hidden, "hidden"), whole(points, "points", least=2), whole(seeds, "seeds")
    lr, until, deep_until = positive(lr, "lr"), positive(until, "until"), positive(deep_until, "deep_until")
    starts, scales = sorted(starts, reverse=True), sorted(scales, reverse=True)
    deep_starts = sorted(deep_starts, reverse=True)
    draws = list(range(seed, seed + seeds))
    times, deep_times = (np.unique(np.round(np.linspace(0, end, points) / lr)) * lr for end in (until, deep_until))
    rule = rules.GradientDescent(lr)

    # Two layers.
    net, task = _sharing.two_layers(sharing, hidden)
    paths = net.paths()
    two = [Setup(task, net, inits.Decoupled(start), rule, times=times) for start in starts]
    random = [
        setup.replace(init=inits.SmallRandom(scale)) for setup, scale in zip(two[:1] * len(scales), scales, strict=True)
    ]

    def trained_from(setup):
        return _sharing.pathways(simulate(setup, draws, "path_norm")["path_norm"], paths, sharing)

    by_start = np.stack([trained_from(setup)[0] for setup in two])
    by_scale = np.stack([trained_from(setup) for setup in random])
    shown, fine = len(starts) // 2, np.geomspace(starts[0], starts[-1], 40)
    theory = np.stack([_sharing.predicted_two(times, start, np.array(sharing)) for start in starts])
    half_rate = trained_from(two[shown].replace(rule=rules.GradientDescent(lr / 2)))[0]
    errors = [np.abs(seen - theory[shown]).max() for seen in (by_start[shown], half_rate)]

    # Three layers.
    settings = [(count, 1) for count in sharing] + [(2, count) for count in per if count > 1]
    deep_net, deep_task = _sharing.three_layers(settings)
    # Given and not Decoupled: with K = 1 nothing in the data says which modes of two domains are alike.
    three = [
        Setup(deep_task, deep_net, inits.Given([[[start]]] * len(deep_net.edges)), rule, times=deep_times)
        for start in deep_starts
    ]
    deep = [
        _sharing.pathways(
            simulate(setup, [seed], "path_norm")["path_norm"], deep_net.paths(), _sharing.names(settings)
        )[0]
        for setup in three
    ]
    deep_theory = np.stack([_sharing.predicted_three(deep_times, start, settings) for start in deep_starts])
    conserved = _conserved(max(sharing[:3]), hidden, starts[shown], times[::4], (lr, lr / 2), seed)

    setups = {"two layers": two[shown], "two layers, random": random[-1], "three layers": three[-1]}
    theories = {"two layers": solve(two[shown], "NeuralRace")} if race else {}
    import xarray

    data = xarray.Dataset(
        {
            "two_training": (("start", "time", "path", "sharing"), by_start),
            "two_theory": (("start", "time", "path", "sharing"), theory),
            "two_final": (("fine_start", "path", "sharing"), _sharing.finals_two(fine, sharing)),
            "two_random": (("scale", "seed", "time", "path", "sharing"), by_scale),
            "random_theory": (
                ("time", "path", "sharing"),
                _sharing.predicted_random(times, scales[1], hidden, np.array(sharing)),
            ),
            "three_training": (("deep_start", "deep_time", "path", "setting"), np.stack(deep)),
            "three_theory": (("deep_start", "deep_time", "path", "setting"), deep_theory),
            "limit": ("setting", _sharing.limit(settings)),
            "limit_gap": (
                ("small", "setting"),
                np.stack([_sharing.limit_gap(start, settings) for start in (2e-4, 1e-4)]),
            ),
            "order_in_lr": ((), np.log2(errors[0] / errors[1])),
            "drift": ("rate", conserved["drift"]),
            "shared_edge": ("rate", conserved["ratio"]),
            "epochs": ("oracle", [_sharing.routing_epochs(count, pairs) for count, pairs in EPOCHS]),
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
    for found in theories.values():
        data["race_gap"] = _race_gap(found, paths, sharing, theory[shown])
    return Result(data, setups, theories)


def _conserved(count, hidden, start, times, rates, seed) -> dict[str, list[float]]:
    """At several rates: the largest drift of M b₁² − b₂², over the last b₂², and b₂/b₁ in the end."""
    net, task = _sharing.two_layers([count], hidden)
    paths, found = net.paths(), {"drift": [], "ratio": []}
    for rate in rates:
        setup = Setup(task, net, inits.Decoupled(start), rules.GradientDescent(rate), times=times)
        seen = simulate(setup, [seed], ["path_norm", "representation"])
        # The shared layer is the first hidden node; its activity is the encoder's strength times the input.
        shared = seen["representation"][0, :, 0, :hidden]
        encoder = np.linalg.norm(shared, axis=-1) / np.sqrt(count)
        decoder = _sharing.pathways(seen["path_norm"], paths, [count])[0, :, 0, 0] / encoder
        drift = count * encoder**2 - decoder**2 - (count - 1) * start**2
        found["drift"].append(np.abs(drift).max() / decoder[-1] ** 2)
        found["ratio"].append(decoder[-1] / encoder[-1])
    return found


def _race_gap(found, paths, sharing, theory) -> float:
    """Largest gap between NeuralRace, which integrates the strengths of all edges, and the clock."""
    strengths = np.abs(found["path_modes"]).max(axis=-1)[None]
    return float(np.abs(_sharing.pathways(strengths, paths, sharing)[0] - theory).max())


def claims(result: Result) -> list[Claim]:
    data = result.data
    many = data.sharing.values > 1
    expected = 1 - 1 / np.sqrt(data.sharing.values)
    share = _share(data.two_training.isel(time=-1, start=-1))
    final = data.three_training.isel(deep_time=-1)
    grown = (final / data.three_training.isel(deep_time=0)).isel(path=1)
    predicted_growth = (data.three_theory.isel(deep_time=-1) / data.three_theory.isel(deep_time=0)).isel(path=1)
    won = np.isfinite(data.limit.values)
    deep_share = _share(final.isel(deep_start=-1)).values
    halves = _half_times(data)
    order = np.log2(data.limit_gap[0] / data.limit_gap[1]).values[won]
    random = _share(data.two_random.isel(time=-1))
    domains = data.attrs["conserved_domains"]
    found = [
        Claim.at_least(
            f"The shared pathway wins, two layers: share of it, M = {int(data.sharing[-1])}, smallest start",
            float(share[-1]),
            0.98,
            source="paper",
        ),
        Claim.at_least(
            "… and the more domains share it, the more: smallest rise of its share, M to next M",
            float(share.diff("sharing").min()),
            0.0,
            source="paper",
        ),
        Claim.at_most(
            "Without sharing (M = 1) neither wins: gap of the share from ½", abs(float(share[0]) - 0.5), 1e-9
        ),
        Claim.at_most(
            "Private/shared ∝ b₀^(2(1 − 1/√M)), training: largest gap of the exponent of b₀², smallest two starts",
            np.abs(_slopes(data) - expected).max(),
            0.01,
        ),
        Claim.at_most(
            "… from random weights, against σ²: largest gap, medians over seeds, smallest two σ",
            np.abs(_random_slopes(data) - expected)[many].max(),
            0.03,
        ),
        Claim.at_least(
            f"… where the shared pathway wins in every seed: its smallest share, M > 1, σ = {float(data.scale[-1]):g}",
            float(random.isel(scale=-1, sharing=many).min()),
            0.9,
            source="paper",
        ),
        Claim.between("Training tends to the clock of the race as lr → 0: order", float(data.order_in_lr), 0.9, 1.1),
        Claim.at_most(
            f"M b₁² − b₂² is conserved, M = {domains}: drift over the last b₂², lr = {float(data.rate[-1]):g}",
            float(data.drift[-1]),
            1e-3,
        ),
        Claim.between(
            "… up to the first order of lr: order of the drift", float(np.log2(data.drift[0] / data.drift[1])), 0.9, 1.1
        ),
        Claim.at_most(
            "… so that the shared edge ends √M times as strong as the others: relative gap",
            abs(float(data.shared_edge[-1]) / np.sqrt(domains) - 1),
            0.01,
        ),
        Claim.at_least(
            "Three layers: the shared pathway takes all: smallest share for M > 1, smallest start",
            deep_share[won].min(),
            0.95,
            source="paper",
        ),
        Claim.at_most(
            "… private ones grow as the clock says: largest relative gap over M, K and starts",
            np.abs(grown / predicted_growth - 1).values.max(),
            0.05,
        ),
        Claim.between(
            "… to (1 − arctan √(M − 1)/(K √(M − 1)))⁻³ times their start, up to the first order of b₀: lowest order",
            order.min(),
            0.9,
            1.1,
        ),
        Claim.at_most(
            "Half-times with rivals, three layers: largest relative gap of training to the clock",
            np.abs(halves["training"] / halves["theory"] - 1).max(),
            0.02,
        ),
        Claim.at_most(
            "Routing network, epochs to half of the first mode for M = 1 … 10 and K = 1 … 7: largest gap to "
            f"{', '.join(str(int(value)) for value in data.epochs_known)}",
            float(np.abs(np.ceil(data.epochs) - data.epochs_known).max()),
            0.0,
        ),
    ]
    if "race_gap" in data:
        found.append(Claim.at_most("NeuralRace is the clock: largest gap of all strengths", float(data.race_gap), 1e-6))
    return found


def _share(strengths):
    """Of the shared pathway in what both write."""
    return strengths.isel(path=0) / strengths.sum("path")


def _odds(strengths):
    return strengths.isel(path=1) / strengths.isel(path=0)


def _slopes(data) -> np.ndarray:
    """The exponent of private/shared against b₀², smallest two starts; (sharing,)."""
    odds = _odds(data.two_training.isel(time=-1)).transpose("start", "sharing").values
    return np.log(odds[-2] / odds[-1]) / np.log(data.start.values[-2] / data.start.values[-1]) / 2


def _random_slopes(data) -> np.ndarray:
    odds = _odds(data.two_random.isel(time=-1)).median("seed").transpose("scale", "sharing").values
    return np.log(odds[-2] / odds[-1]) / np.log(data.scale.values[-2] / data.scale.values[-1]) / 2


def _half_times(data) -> dict[str, np.ndarray]:
    """Times (deep start, setting) at which half is learned, of training and of the clock."""

    def half(name):
        curves = data[name].sum("path").transpose("deep_start", "setting", "deep_time").values
        return np.array([[np.interp(0.5, curve, data.deep_time) for curve in row] for row in curves])

    return {kind: half(f"three_{kind}") for kind in ("training", "theory")}


def figure(result: Result):
    data = result.data
    sheet, ((two, shares, exponents), (random, deep, epochs)) = new_figure(2, 3)
    _draw_two(two, data)
    _draw_shares(shares, data)
    _draw_exponents(exponents, data)
    _draw_random(random, data)
    _draw_deep(deep, data)
    _draw_epochs(epochs, data)
    return sheet


def _pair_of_curves(axes, data, training, theory) -> None:
    for k, name in enumerate(("shared pathway", "private pathway")):
        trained(axes, data.time, training.isel(path=k), colour=COLOURS[k], label=name)
        predicted(axes, data.time, theory.isel(path=k), colour=COLOURS[k])
    axes.set(xlabel=TIME, ylabel="strength", xlim=(0, float(data.time[-1]) / 2))
    axes.legend(loc="center right", fontsize=8)


def _draw_two(axes, data) -> None:
    count = data.attrs["conserved_domains"]
    one = data.sel(sharing=count, start=data.shown)
    _pair_of_curves(axes, data, one.two_training, one.two_theory)
    axes.set_title(f"{count} domains, decoupled start {data.shown:g}")


def _draw_random(axes, data) -> None:
    count, one = data.attrs["conserved_domains"], data.isel(scale=1).sel(sharing=data.attrs["conserved_domains"])
    _pair_of_curves(axes, data, one.two_random.transpose("path", "seed", "time"), one.random_theory)
    axes.set_title(f"{count} domains, random weights σ = {float(one.scale):g}")


def _draw_shares(axes, data) -> None:
    for number, count in enumerate(data.sharing.values):
        colour = COLOURS[number]
        seen = _share(data.two_training.isel(time=-1)).sel(sharing=count)
        axes.semilogx(data.start**2, seen, "o", color=colour, ms=5, label=f"M = {count}")
        axes.semilogx(data.fine_start**2, _share(data.two_final).sel(sharing=count), "--", color=colour, lw=1.2)
    axes.set(xlabel="start, b₀²", ylabel="share of the shared pathway", title="∘ training, -- clock of the race")
    axes.set_ylim(0.45, 1.02)
    axes.legend(fontsize=8, loc="center left")


def _draw_exponents(axes, data) -> None:
    line = np.linspace(1, float(data.sharing[-1]), 100)
    axes.plot(line, 1 - 1 / np.sqrt(line), "--", color="0.2", lw=1.2, label="1 − 1/√M")
    axes.plot(data.sharing, _slopes(data), "o", color=COLOURS[0], ms=7, label="decoupled start")
    axes.plot(data.sharing, _random_slopes(data), "x", color=COLOURS[1], ms=7, mew=2, label="random weights")
    axes.set(
        xlabel="domains that share, M", ylabel="exponent of private/shared in b₀²", title="how private pathways vanish"
    )
    axes.legend(loc="lower right")


def _draw_deep(axes, data) -> None:
    grown = data.isel(path=1)
    for number, k in enumerate(np.flatnonzero(np.isfinite(data.limit.values))):
        one, colour = grown.isel(setting=k), COLOURS[number]
        label = f"M = {int(one.domains)}, K = {int(one.per_domain)}"
        for kind, style in (("training", "o"), ("theory", "--")):
            curve = one[f"three_{kind}"]
            axes.semilogy(
                data.deep_start, curve.isel(deep_time=-1) / curve.isel(deep_time=0), style, color=colour, ms=5, lw=1.2,
                label=label if kind == "training" else None,
            )  # fmt: skip
        axes.plot(0, float(one.limit), "*", color=colour, ms=9, clip_on=False)
    axes.set(xlabel="start, b₀", ylabel="growth of private pathways", title="three layers (∗ limit of small starts)")
    axes.set_xlim(left=0)
    axes.set_ylim(top=4 * float(data.limit.where(np.isfinite(data.limit)).max()))
    axes.legend(fontsize=8, ncols=2, loc="upper right")


def _draw_epochs(axes, data) -> None:
    alone = data.oracle_pairs == 1
    seven = data.oracle_domains == 7
    axes.loglog(
        data.oracle_domains[alone], data.epochs[alone], "o-", color=COLOURS[0], lw=1.2, base=2, label="against M, K = 1"
    )
    axes.loglog(
        data.oracle_pairs[seven], data.epochs[seven], "s-", color=COLOURS[1], lw=1.2, base=2, label="against K, M = 7"
    )
    axes.set(xlabel="domains M, or trained pairs K per domain", ylabel="epochs to half of the first mode")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.set_title("routing network: sharing is speed")
    axes.legend(fontsize=8, loc="lower left")
