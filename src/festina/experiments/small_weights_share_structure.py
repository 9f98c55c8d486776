"""From small initial weights domains share what they have in common; from large ones each pair is learned by itself.

The routing network of `routing_networks_generalise` learns its trained pairs from orthogonal weights of any gain. Its
error on pairs that it never saw depends on the gain. From small weights (rich learning), with K ≥ 3 trained pairs per
domain, untrained pairs come out right, up to an error ∝ gain⁶. This is the square of the initial product of the three
layers, which training does not remove. From large weights (lazy learning) an untrained pair keeps its initial map,

    ‖Y − Ŷ‖²/‖Y‖² = 1 + gain⁶ · 28/(64 ‖Y‖²)      (K = 1, layers that do not move),

for 28 entries through 64 hidden units; more trained pairs pull it towards the target, slowly. K = 1 never generalises:
from small weights the domains do use the same hidden directions, but each with a rotation of its own, and a random
rotation is wrong by 2‖Y‖², worse than an output of zero.

Sharing is measured in the encoders: the size of the Gram matrix between the items of two domains over that within one
domain. It is 1 if they use the same directions, and √(4/64) = 0.25 by chance. Numbers are medians over seeds. The
errors of K = 2 spread over orders of magnitude between seeds (domains may be rotated against each other or not), so
none is claimed. Small errors of untrained pairs go on falling, by up to a factor of 5, long after the trained pairs are
learned (to 0.1 %), and so depend on when training stops. The published sweep stops after 700 epochs; at gain 0.2 this
is before the weakest modes are learned in some runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray

from .. import Setup, inits, nets, rules, tasks
from .._figures.panels import border, key, panels
from .._figures.style import COLOURS, DASHES, INK, THIN
from ._kit import routing
from ._kit.domains import between_domains
from ._kit.labelled import table
from ._kit.parameters import Count, Counts, Positive, Positives, Seed, checked
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

THEME, PLACE = "gates", 8
REFERENCE = {"saxe_slides": "“routing network”, rich and lazy", "saxe2022": "routing networks"}
QUICK = dict(pairs=(1, 3, 4), gains=(0.1, 0.2, 0.66, 2.5), sweep=(0.2, 2.5), seeds=3)
CAPTION = """
A routing network learns K pairs per domain from orthogonal weights of a gain. **a** Error of untrained pairs of
domains, ‖Y − Ŷ‖²/‖Y‖² with target Y and output Ŷ: median over seeds, with the range from the smallest to the largest.
Dashed: the error for K = 1 if the layers kept their initial weights. **b** How much domains share: size of the Gram
matrix of encoded items between two domains over that within one domain, median over seeds. The grey line is its value
by chance. **c**, **d** Inner products of the encoded items of all domains, over the largest (first seed), from the
smallest and from the largest weights; items are sorted by domain, and ticks are in the middle of each domain.
"""
ALT = """
The error of untrained pairs rises by orders of magnitude with the gain, except for one trained pair, where it is above
1 throughout. The Gram ratio falls from 1 to chance. From small weights all blocks of the matrix of inner products are
alike, from large weights only its diagonal stands out.
"""
LEARNED = 20.0  # gain × time (of the mean loss) in which the weakest mode is learned from small weights
LEAST = 56.0  # time that every network gets


@checked
def run(
    *,
    domains: Count = 7,
    pairs: Counts = (1, 2, 3, 4, 5, 6),
    shown: Count = 4,
    gains: Positives = (0.02, 0.1, 0.2, 0.66, 2.04, 2.5),
    sweep: Positives = (0.2, 0.66, 1.12, 1.58, 2.04, 2.5),
    hidden: Count = 64,
    lr: Positive = 0.006,
    epochs: Count = 700,
    seeds: Count = 20,
    seed: Seed = 0,
) -> Result:
    """`pairs`: numbers of trained pairs per domain, of which `shown` is drawn.

    Networks from `gains` are trained until they have learned; those of the published `sweep` for `epochs` epochs.
    """
    gains, sweep = tuple(sorted(gains)), tuple(sorted(sweep))
    pairs, unit = routing.checked_pairs(pairs, (1, shown)), routing.slides_units(domains, shown)
    modes, entries = routing.strengths(), routing.FEATURES * routing.ITEMS

    def rate(gain: float) -> float:
        return unit * lr / gain ** (1 / 3)

    # Every network until it has learned, then the published sweep with its fixed number of epochs.
    cells = [(g, k, int(np.ceil(max(LEARNED / g, LEAST) / rate(g)))) for g in gains for k in pairs]
    every = [*cells, *((g, shown, epochs) for g in sweep)]
    runs = [(g, k, steps, number) for g, k, steps in every for number in range(seeds)]
    starts = routing.orthogonal_starts(domains, hidden, np.arange(seed, seed + seeds), seeds)
    masks = {k: routing.trained_pairs(domains, k) for k in {*pairs, shown}}
    (encoders, _, _), error = routing.completed(
        tuple(np.stack([g * layer[n] for g, _, _, n in runs]) for layer in starts),
        np.stack([masks[k] for _, k, _, _ in runs]),
        np.array([rate(g) for g, *_ in runs]),
        np.array([steps for _, _, steps, _ in runs]),
        1,
    )
    size, trace = between_domains(encoders)
    cut, shape, published = len(cells) * seeds, (len(gains), len(pairs), seeds), (len(sweep), seeds)
    ends = np.array([0, len(gains) - 1]) * len(pairs) + pairs.index(shown)
    pictures = encoders[ends * seeds]
    similarity = np.einsum("ehi,ehj->eij", pictures, pictures)
    setups = {
        f"gain {gain:g}": Setup(
            tasks.routing(domains, shown),
            nets.Gated.routing(domains, domains, shown, hidden=hidden),
            inits.Orthogonal(gain),
            rules.GradientDescent(rate(gain)),
            times=np.array([0, epochs]) * rate(gain),
        )
        for gain in (sweep[0], sweep[-1])
    }
    lazy = 1 + np.array(gains) ** 6 * entries / (hidden * np.sum(modes**2))  # layers that do not move
    data = xarray.Dataset(
        {
            "error": table(error[:cut, -1].reshape(*shape, 2), "gain", "pairs", "seed", "kind"),
            "gram": table(size[:cut].reshape(shape), "gain", "pairs", "seed"),
            "agreement": table(trace[:cut].reshape(shape), "gain", "pairs", "seed"),
            "lazy_error": table(lazy, "gain"),
            "sweep_error": table(error[cut:, -1].reshape(*published, 2), "sweep", "seed", "kind"),
            "similarity": table(similarity / np.abs(similarity).max(axis=(1, 2), keepdims=True), "end", "row", "item"),
        },
        coords={
            "gain": list(gains),
            "pairs": list(pairs),
            "kind": ["untrained", "trained"],
            "sweep": list(sweep),
            "end": [gains[0], gains[-1]],
        },
        attrs={"domains": domains, "shown": shown, "chance": np.sqrt(routing.ITEMS / hidden)},
    )
    return Result(data, setups)


def claims(result: Result) -> list[Claim]:
    data = result.data
    error = data.error.sel(kind="untrained").median("seed")
    gram = data.gram.sel(pairs=data.shown).median("seed").values
    shown, one = error.sel(pairs=data.shown).values, error.sel(pairs=1)
    first, second = data.error.sel(kind="untrained", pairs=data.shown).values[:2]
    order = np.median(np.log(second / first)) / np.log(data.gain.values[1] / data.gain.values[0])
    sweep = data.sweep_error.median("seed").sel(kind="untrained").values
    sharing, agreement = data.gram.sel(pairs=1)[0].median(), abs(data.agreement.sel(pairs=1)[0].mean())
    learned, k = data.error.sel(kind="trained").max(), data.shown
    return [
        paper(
            f"Error of untrained pairs from the smallest weights, K ≥ 3: largest median of {data.sizes['seed']} seeds",
            at_most(error.isel(gain=0)[data.pairs >= 3].max(), 1e-3),
            headline=True,
            panel="a",
        ),
        paper(
            f"Gram ratio (between / within domains) falls with the gain, K = {k}: largest ratio from gain to gain",
            at_most(np.max(gram[1:] / gram[:-1]), 1.0),
            headline=True,
            panel="b",
        ),
        paper(
            f"Error of untrained pairs rises with the gain, K = {k}: smallest ratio from gain to gain",
            at_least(np.min(shown[1:] / shown[:-1]), 1.0),
            panel="a",
        ),
        ours(
            f"Error of untrained pairs at small gains, K = {k}: order in the gain", between(order, 5.5, 6.5), panel="a"
        ),
        ours("Error of trained pairs ‖Y − Ŷ‖²/‖Y‖²: largest over all networks", at_most(learned, 1e-3)),
        paper(
            "Published sweep: error of untrained pairs at the largest / smallest gain",
            at_least(sweep[-1] / sweep[0], 10.0),
        ),
        ours(f"Gram ratio (between / within domains), smallest weights, K = {k}", at_least(gram[0], 0.95), panel="b"),
        ours(f"Gram ratio, largest weights, K = {k} (chance: 0.25)", at_most(gram[-1], 0.3), panel="b"),
        ours(
            "Error of untrained pairs from the smallest weights, K = 1 (a random rotation has 2)",
            between(one[0], 1.2, 2.5),
            panel="a",
        ),
        ours("Gram ratio (between / within domains), smallest weights, K = 1", at_least(sharing, 0.8), panel="b"),
        ours("Ratio of Gram traces (1 if equal items coincide), smallest weights, K = 1", at_most(agreement, 0.2)),
        ours(
            "Error of untrained pairs from the largest weights, K = 1, over that of layers that keep their weights",
            between(one[-1] / data.lazy_error[-1], 0.9, 1.15),
            panel="a",
        ),
    ]


def figure(result: Result) -> Figure:
    from matplotlib.lines import Line2D

    data = result.data
    sheet, at = panels("ab;cd")
    colours = {int(k): COLOURS[int(k) - 1] for k in data.pairs.values}  # of a K, whatever the preset
    for k, colour in colours.items():
        error = data.error.sel(kind="untrained", pairs=k)
        at["a"].fill_between(data.gain, error.min("seed"), error.max("seed"), color=colour, alpha=0.15, lw=0)
        at["a"].plot(data.gain, error.median("seed"), "o-", ms=4, color=colour)
        at["b"].plot(data.gain, data.gram.sel(pairs=k).median("seed"), "o-", ms=4, color=colour)
    at["a"].plot(data.gain, data.lazy_error, color=INK, lw=THIN, ls=DASHES)
    at["a"].set(yscale="log", ylabel="error of untrained pairs", title="Small weights generalise")
    border(at["b"], data.chance, "chance", across=True)
    at["b"].set(ylim=(0, 1.05), ylabel="Gram ratio, between / within", title="Small weights share directions")
    for letter in "ab":
        at[letter].set(xscale="log", xlabel="gain of the initial weights")
    for number, (letter, kind) in enumerate((("c", "small"), ("d", "large"))):
        title = f"Encoded items, {kind} weights (gain {float(data.end[number]):g})"
        _inner_products(at[letter], data.isel(end=number), title)
    theory = Line2D([], [], color=INK, lw=THIN, ls=DASHES, label="layers that do not move (a)")
    key(sheet, {f"K = {k}": colour for k, colour in colours.items()}, kinds=(), marks=[theory])
    return sheet


def _inner_products(axes: Axes, data: Dataset, title: str) -> None:
    """Inner products of all items, with the numbers of domains at their middles."""
    image = axes.imshow(data.similarity, cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
    middles = (np.arange(data.domains) + 0.5) * data.sizes["row"] / data.domains - 0.5
    axes.set_xticks(middles, np.arange(data.domains) + 1)
    axes.set_yticks(middles, np.arange(data.domains) + 1)
    axes.set(xlabel="items, by input domain", ylabel="items, by input domain", title=title)
    axes.figure.colorbar(image, ax=axes, label="inner product / largest")
