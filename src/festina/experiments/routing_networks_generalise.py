"""A network that shares one layer between many domains learns pairs of domains that it was never trained on.

Seven input domains have an encoder each, seven output domains a decoder each, and one layer in between is shared by all
49 pairs, of which K per input domain are trained (gain 0.2 of orthogonal weights). With K ≥ 3 the others come for free.
A mode of strength s moves along the one law

    ḃ₁ = K b₂b₃ (s − b₁b₂b₃),   ḃ₂ = MK b₁b₃ (s − b₁b₂b₃),   ḃ₃ = K b₁b₂ (s − b₁b₂b₃)      (time: epochs × lr/14)

of encoders, shared layer and decoders: the shared layer belongs to MK paths and so is the fastest and √M times as
strong in the end. M b₁² − b₂² is conserved; b₁ = b₃ gives the time by quadrature, exactly ∝ 1/K and falling with M.
From a decoupled start the law is exact and descent tends to it at first order in lr. From random weights its start is
*fitted* (b₀ = gain/2.5, the slides' choice); seeds drop some epochs before or after it.

**What decides generalisation.** The trained pairs are a circulant matrix. Its first singular value, K, belongs to a
structure that all domains share; the next, sin(πK/M)/sin(π/M), to one that changes along the ring of domains, and it
is in the race, too. K = 1: both are 1, nothing couples the domains. They end in the same hidden subspace, but each with
its own turn of it (in the limit of small weights a sign for each mode, and a rotation of the pair s = 3, 3). An
untrained pair then is as wrong as a random turn makes it, ‖Y − Ŷ‖² ≈ 2‖Y‖²: worse than no output. K = 2: 10 % apart.
Most domains agree on the sign of the strongest modes, the pair s = 3, 3 often stays twisted, and in some runs even the
strongest mode is that of a domain's neighbours on the ring, and not that of all. K ≥ 3: all agree.

Loss and learning rate are the slides' (sum over trained pairs of the mean over 28 entries). Their theory curve is drawn
against its own index, ten times finer than epochs; here it is drawn against epochs. All K are run at one rate of the
*mean* loss, that of lr at K = 4. Training from many seeds uses that the network completes a matrix (see `_routing`);
that this is the same training is claimed and measured.
"""

from __future__ import annotations

import numpy as np

from .. import inits, nets, rules, tasks
from .._noun import positive, whole
from .._plot import COLOURS, legend_of_kinds, new_figure, predicted, trained
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from .._solve import solve
from . import _routing

REFERENCE = {"saxe_slides": "“routing network”", "saxe2022": "routing networks"}
QUICK = dict(pairs=(1, 2, 3, 4), seeds=6, checked=(3, 2), race=False)
MARKS = 100  # records of every run
TOGETHER = 2  # seeds that the network itself is trained from
AXES = dict(error=("mark", "kind"), cosine=("domain", "domain_", "mode"), overlap=(), twist=(), turned_error=(),
            shared_strength=())  # fmt: skip
SMALL = 4  # how much smaller than lr the rate is at which sharing is measured


def run(
    *,
    domains=7,
    pairs=(1, 2, 3, 4, 5, 6),
    shown=4,
    gain=0.2,
    hidden=64,
    lr=0.02,
    epochs=500,
    fitted_start=0.08,
    rates=(0.004, 0.002, 0.001),
    sharing=(1, 2, 4, 7, 10),
    seeds=20,
    checked=(7, 4),
    race=True,
    seed=0,
) -> Result:
    domains, shown, hidden = whole(domains, "domains"), whole(shown, "shown"), whole(hidden, "hidden")
    epochs, seeds = whole(epochs, "epochs", least=200), whole(seeds, "seeds", least=TOGETHER)
    gain, lr, start = positive(gain, "gain"), positive(lr, "lr"), positive(fitted_start, "fitted_start")
    pairs, unit = _routing.checked_pairs(pairs, (1, 2, shown)), _routing.slides_units(domains, shown)
    draws = np.arange(seed, seed + seeds)

    network = _network(checked, hidden, gain, lr, epochs)
    direct = simulate(network, list(draws[:TOGETHER]), "task_loss")["task_loss"][:, -1, ::-1]
    decoupled = Setup(
        tasks.routing(domains, shown), nets.Gated.routing(domains, domains, shown, hidden=hidden),
        inits.Decoupled(start), rules.GradientFlow(), times=np.linspace(0, epochs, 11) * unit * lr,
    )  # fmt: skip
    theories = {"decoupled start": solve(decoupled, "NeuralRace")} if race else {}
    many, same = _many(domains, hidden, gain, pairs, draws, unit * lr, epochs, checked, lr)
    slow = _from_decoupled(domains, shown, pairs, sharing, start, lr, rates)
    modes = _routing.strengths()
    import xarray

    data = xarray.Dataset(
        {
            "law_loss": ("epoch", _routing.law(domains, shown, start, lr, np.arange(epochs + 1))),
            "direct_error": (("network", "kind"), direct * 2 / np.mean(modes**2)),
            "completed_error": (("network", "kind"), same),
            **{name: (("pairs", "seed", *axes), many[name]) for name, axes in AXES.items()},
            "runner_up": ("pairs", np.sin(np.pi * np.array(pairs) / domains) / np.sin(np.pi / domains) / pairs),
            "rate_loss": (("rate", "early"), slow["loss"] * unit),
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


def _network(checked, hidden, gain, lr, epochs) -> Setup:
    """The gated network on the pairs that it is trained with; the others only look on."""
    domains, trained_pairs = checked
    both = [tasks.routing(domains, trained_pairs, pairs=kind) for kind in ("trained", "untrained")]
    rate = _routing.slides_units(domains, trained_pairs) * lr
    steps = epochs // MARKS * MARKS
    return Setup(
        tasks.sequence(both, durations=2 * steps * rate),
        nets.Gated.routing(domains, domains, trained_pairs, hidden=hidden),
        inits.Orthogonal(gain),
        rules.GradientDescent(rate),
        times=np.array([0, steps // 2, steps]) * rate,
    )


def _many(domains, hidden, gain, pairs, draws, rate, epochs, checked, lr) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Networks from every seed with every number of trained pairs; axes (pairs, seed, …).

    And the last errors, (network, kind), of the networks that are also trained as gated ones.
    """
    starts = [np.tile(w, (len(pairs), 1, 1)) for w in _routing.orthogonal_starts(domains, hidden, draws, TOGETHER)]
    masks = np.repeat([_routing.trained_pairs(domains, count) for count in pairs], len(draws), axis=0)
    few, fewer_pairs = checked
    # Domains without trained pairs change nothing, so that one shape serves both.
    smaller = _routing.orthogonal_starts(few, hidden, draws[:TOGETHER], TOGETHER)
    widened = [np.concatenate([a, _routing.padded(b, a.shape[1:])]) for a, b in zip(starts, smaller, strict=True)]
    own = _routing.padded(np.repeat(_routing.trained_pairs(few, fewer_pairs)[None], TOGETHER, axis=0), masks.shape[1:])
    exist = np.concatenate([masks | True, _routing.padded(np.ones((TOGETHER, few, few), bool), masks.shape[1:])])
    rates = np.repeat([rate, _routing.slides_units(few, fewer_pairs) * lr], [len(masks), TOGETHER])
    (encoders, shared, _), error = _routing.completed(
        tuple(gain * w for w in widened), np.concatenate([masks, own]), rates,
        np.full(len(rates), epochs // MARKS), MARKS, exist,
    )  # fmt: skip
    encoders, shared = encoders[: len(masks)], shared[: len(masks)]
    strongest = np.linalg.norm(_routing.by_domain(encoders)[..., 0], axis=-1).mean(axis=-1)
    found = {
        "error": error[: len(masks)],
        "shared_strength": np.linalg.norm(shared, 2, axis=(-2, -1)) / strongest,
        **_routing.turns(_routing.by_domain(shared @ encoders), masks),
    }
    table = {name: value.reshape(len(pairs), len(draws), *value.shape[1:]) for name, value in found.items()}
    return table, error[len(masks) :, -1]


def _from_decoupled(domains, shown, pairs, sharing, start, lr, rates) -> dict:
    """Descent from decoupled starts.

    At several rates: the loss, and the drift of M b₁² − b₂² over b₂² in the first mode. At lr/SMALL: epochs of lr until
    the first mode is half learned, with the law's, for one pair per domain and every number of domains in `sharing`,
    then for every number of `per` trained pairs.
    """
    per, modes = sorted({*pairs, domains}), _routing.strengths()
    settings = [(count, 1) for count in sharing] + [(domains, count) for count in per]
    law = np.array([_routing.half_epochs(count, k, start, lr) for count, k in settings])
    runs = [(domains, shown)] * len(rates) + settings
    most = max(count for count, _ in runs)
    masks = np.zeros((len(runs), most, most), bool)
    for mask, (count, k) in zip(masks, runs, strict=True):
        mask[:count, :count] = _routing.trained_pairs(count, k)
    whole_start = _routing.decoupled_starts(most, [start] * len(modes))
    first_mode = _routing.decoupled_starts(most, [start, *[0.0] * (len(modes) - 1)])
    starts = tuple(
        np.stack([a] * len(rates) + [b] * len(settings)) for a, b in zip(whole_start, first_mode, strict=True)
    )
    speeds = np.array([*rates, *[lr / SMALL] * len(settings)])
    units = np.array([_routing.slides_units(count, k) for count, k in runs])
    strides = np.array([*np.round(lr / np.array(rates)), *np.ceil(1.5 * SMALL * law / MARKS)]).astype(int)
    (encoders, shared, _), error = _routing.completed(starts, masks, units * speeds, strides, MARKS)
    error = error[..., 1]
    # The other modes start at zero and stay there, so the error tells how much of the first is learned.
    half = (modes[0] ** 2 / 4 + np.sum(modes[1:] ** 2)) / np.sum(modes**2)
    cut = len(rates)
    marks = np.array([np.interp(-half, -curve, np.arange(MARKS + 1)) for curve in error[cut:]])
    first, second = np.linalg.norm(_routing.by_domain(encoders)[:cut, 0, :, 0], axis=-1), shared[:cut, 0, 0]
    drift = np.abs(domains * first**2 - second**2 - (domains - 1) * start**2) / second**2
    return {
        "loss": error[:cut] * np.mean(modes**2) / 2,
        "drift": drift,
        "law": law,
        "half": marks * strides[cut:] / SMALL,
        "per": per,
    }


def claims(result: Result) -> list[Claim]:
    data = result.data
    law = data.law_loss.values
    gaps = np.abs(data.rate_loss - law[: data.sizes["early"]]).max("early").values / law[0]
    error = data.error.sel(kind="untrained").isel(mark=-1)
    random = np.abs(_trained_loss(data, "trained") - law[data.mark.values]).mean(axis=1) / law[0]
    median = error.median("seed")
    enough = data.pairs >= 3
    one, shown = data.sel(pairs=1), data.sel(pairs=data.shown)
    halving = np.log(data.rate.values[-2] / data.rate.values[-1])
    order = {
        name: np.log(sizes[-2] / sizes[-1]) / halving for name, sizes in (("gap", gaps), ("drift", data.drift.values))
    }
    half = np.concatenate([data.across_training / data.across_law, data.per_training / data.per_law])
    found = [
        Claim.at_most(
            f"Untrained pairs come for free, K = {data.shown}: median error ‖Y − Ŷ‖²/‖Y‖² "
            f"over {data.sizes['seed']} seeds",
            median.sel(pairs=data.shown),
            1e-4,
            source="paper",
        ),
        Claim.at_most("… and for every K ≥ 3: largest median", median[enough].max(), 1e-2, source="paper"),
        Claim.at_least("One trained pair per domain is worse than no output: median error", median.sel(pairs=1), 1.0),
        Claim.at_least("Two are not enough: median error", median.sel(pairs=2), 0.03),
        Claim.at_least(
            "Every further pair helps: smallest ratio of median errors, K to next K",
            np.min(median.values[:-1] / median.values[1:]),
            1.0,
        ),
        Claim.at_least(
            "K = 1: domains share a hidden subspace: mean overlap (4/64 by chance)", one.overlap.mean(), 0.85
        ),
        Claim.between(
            "… but each domain has signs of its own: share of equal signs, first two modes", _agreeing(one), 0.3, 0.7
        ),
        Claim.at_most(
            "… and its turn of the subspace, read off the hidden layer, gives the error: largest relative gap",
            np.abs(one.turned_error / error.sel(pairs=1) - 1).max(),
            0.1,
        ),
        Claim.at_least("K = 2: most domains have equal signs: share", _agreeing(data.sel(pairs=2)), 0.7),
        Claim.at_least(
            "K ≥ 3: all domains have the same signs: smallest share",
            min(_agreeing(data.sel(pairs=k)) for k in data.pairs[enough]),
            1.0,
        ),
        Claim.at_least(
            "… and the pair s = 3, 3 is not twisted: smallest cosine of its rotation",
            data.twist[enough].min(),
            0.95,
        ),
        Claim.at_most(
            "Loss of the law at the start, after 100 and 200 epochs is 243.973, 58.845, 17.905: largest gap",
            np.abs(law[[0, 100, 200]] - [243.973, 58.845, 17.905]).max(),
            2e-3,
        ),
        Claim.between("Descent from a decoupled start tends to the law as lr → 0: order", order["gap"], 0.9, 1.1),
        Claim.between("M b₁² − b₂² is conserved as lr → 0: order of its drift", order["drift"], 0.9, 1.1),
        Claim.at_most(
            f"Random weights against the law from b₀ = {data.start:g}: time mean of the gap / L(0), median over seeds",
            np.median(random),
            0.02,
            source="paper",
            fitted=True,
        ),
        Claim.at_most(
            "Sharing an edge makes it faster by as much as the law says: largest relative gap of half-times",
            np.abs(half - 1).max(),
            0.03,
            source="paper",
        ),
        Claim.at_most(
            "The shared layer ends √M times as strong as an encoder, random weights: relative gap of the median",
            abs(float(shown.shared_strength.median()) / np.sqrt(data.domains) - 1),
            0.03,
        ),
        Claim.at_most(
            "The gated network is matrix completion: largest relative gap between the two trainings",
            np.abs(data.completed_error / data.direct_error - 1).max(),
            1e-6,
        ),
    ]
    if "race_loss" in data:
        found.append(
            Claim.at_most(
                "The law is the race reduction of this network: largest gap / L(0)",
                np.abs(data.race_loss.values - np.interp(data.few, data.epoch, law)).max() / law[0],
                1e-7,
                source="paper",
            )
        )
    return found


def _trained_loss(data, kind) -> np.ndarray:
    """Loss of trained or untrained pairs in the slides' units; (seed, mark)."""
    chosen = data.error.sel(pairs=data.shown, kind=kind).values
    count = data.shown if kind == "trained" else data.domains - data.shown
    return chosen * _routing.slides_units(data.domains, count) * data.power / 2


def _agreeing(data) -> float:
    """Share of pairs of domains whose activity has the same sign in the first two modes."""
    apart = ~np.eye(data.sizes["domain"], dtype=bool)
    return float(np.mean(data.cosine.values[:, apart, :2] > 0))


def figure(result: Result):
    data = result.data
    sheet, axes = new_figure(2, 3, width=4.4, height=3.5)
    (learning, generalising, sharing), (alone, together, explained) = axes
    _draw_learning(learning, data)
    _draw_generalising(generalising, data)
    _draw_sharing(sharing, data)
    _draw_signs(alone, data, 1)
    _draw_signs(together, data, data.shown)
    _draw_explained(explained, data)
    return sheet


def _draw_learning(axes, data) -> None:
    others = (data.domains - data.shown) / data.shown
    for kind, factor, colour in (("trained", 1.0, COLOURS[0]), ("untrained", others, COLOURS[1])):
        trained(axes, data.mark, _trained_loss(data, kind), colour=colour)
        predicted(axes, data.epoch, factor * data.law_loss, colour=colour)
    axes.set(
        xlabel=f"epochs (lr {data.lr:g} of the slides)", ylabel="loss (slides' units)",
        title=f"{data.shown} of {data.domains} pairs trained; start of the theory fitted",
        ylim=(None, 1.15 * float(data.law_loss[0])),
    )  # fmt: skip
    legend_of_kinds(axes, loc="upper right")
    for height, (kind, colour) in zip((0.72, 0.64), (("trained", COLOURS[0]), ("untrained", COLOURS[1])), strict=True):
        axes.text(0.97, height, f"{kind} pairs", transform=axes.transAxes, ha="right", color=colour)


def _draw_generalising(axes, data) -> None:
    error = data.error.sel(kind="untrained").isel(mark=-1)
    for k, values in zip(data.pairs.values, error.values, strict=True):
        spread = np.linspace(-0.18, 0.18, len(values))
        axes.plot(k + spread, values, "o", ms=3.5, color=COLOURS[0], alpha=0.5, mew=0)
    axes.plot(data.pairs, error.median("seed"), "_", ms=22, mew=2, color="0.1", label="median")
    axes.axhline(1, color="0.5", lw=1, ls=":")
    axes.annotate("no output", (float(data.pairs[-1]) + 0.35, 1), (0, 3), textcoords="offset points", ha="right")
    axes.set_xticks(
        data.pairs.values, [f"{k}\n{r:.2f}" for k, r in zip(data.pairs.values, data.runner_up.values, strict=True)]
    )
    axes.set(
        yscale="log", xlabel="trained pairs per domain\nrunner-up in the race: singular value / first",
        ylabel="error of untrained pairs", title=f"a few pairs are enough (gain {data.gain:g})",
    )  # fmt: skip
    axes.legend(loc="lower left")


def _draw_sharing(axes, data) -> None:
    labels = {
        "across": ("domains, one pair each", COLOURS[0]),
        "per": (f"pairs, {data.domains} domains", COLOURS[1]),
    }
    for name, (label, colour) in labels.items():
        axes.plot(data[name], data[f"{name}_training"], "o", ms=9, color=colour, alpha=0.45, mew=0, label=label)
        predicted(axes, data[name], data[f"{name}_law"], colour=colour)
    axes.set(
        xscale="log", yscale="log", ylim=(25, None), xlabel="number of domains, or of pairs per domain",
        ylabel="epochs until mode 1 is half learned",
        title="shared edges are faster (dots: training)",
    )  # fmt: skip
    ticks = sorted({*data.across.values} | {*data.per.values})
    axes.set_xticks(ticks, [f"{tick}" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks([50, 100, 200, 400], ["50", "100", "200", "400"])
    axes.legend(loc="lower left")


def _draw_signs(axes, data, pairs) -> None:
    shown = data.cosine.sel(pairs=pairs).isel(seed=0, mode=0)
    image = axes.imshow(shown, cmap="PuOr", vmin=-1, vmax=1)
    numbers = np.arange(data.domains)
    axes.set_xticks(numbers, numbers + 1)
    axes.set_yticks(numbers, numbers + 1)
    axes.set(xlabel="input domain", ylabel="input domain", title=f"mode 1 in the hidden layer, K = {pairs}")
    axes.figure.colorbar(image, ax=axes, shrink=0.85, label="cosine between domains")


def _draw_explained(axes, data) -> None:
    reach = 0.0
    for k, colour in ((1, COLOURS[0]), (2, COLOURS[1])):
        chosen = data.sel(pairs=k)
        measured = chosen.error.sel(kind="untrained").isel(mark=-1)
        axes.plot(chosen.turned_error, measured, "o", ms=6, color=colour, alpha=0.6, mew=0, label=f"K = {k}")
        reach = max(reach, float(measured.max()), float(chosen.turned_error.max()))
    axes.plot([0, 1.05 * reach], [0, 1.05 * reach], color="0.3", lw=1.3, ls=(0, (4, 2)))
    axes.set(
        xlabel="error from turns of the hidden subspace", ylabel="error of untrained pairs",
        title="turned subspaces explain what is wrong",
    )  # fmt: skip
    axes.legend(loc="upper left")
