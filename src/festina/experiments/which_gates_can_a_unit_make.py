"""A unit that sees an item and its context can implement every gate without an exclusive or, not only gates by context.

Inputs are the one-hot item beside the one-hot context, so a unit is on where wᵢ + v_c > 0. The sets of contexts in
which two items switch it on are then nested, and every nesting can be realised: a gate is possible if and only if it
contains no exclusive or in any two items × two contexts. For n items in C contexts there are

    Σ_m (m!)² S(n + 1, m + 1) S(C + 1, m + 1)        (S: Stirling numbers of the second kind; poly-Bernoulli numbers)

such gates: 14 of 16, 46 of 64, 230 of 512 and 1066 of 4096 for 2×2, 3×2, 3×3 and 4×3 items × contexts. They are found
by linear programs, one for each gate, and counted again without any. A bias adds no gate: the inputs of the items sum
to 1, so a bias is the same as more weight from every item. Here a gate is

- by context if it is the same for all items (always on and always off among these),
- by item if it is the same in all contexts, but not always on or off,
- a single point if it is on for one item in one context,
- other if it is none of these, such as on everywhere but in one point.

ReLU networks in training show no impossible gate, and on small tasks nearly all possible ones.

**What does not reproduce.** Lemma 4.1 says that all gates a ReLU network can make are by context or single points; its
proof only excludes the exclusive or of two items in two contexts. Of 14 gates at 2×2 eight are of these two kinds, two
are by item and four other; on the task of the source 32 of 354106 are of these two kinds. Its trained networks have
nearly all of their weight in the other gates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import Setup, inits, nets, rules, tasks
from .._figures.panels import key, panels
from .._figures.style import COLOURS
from ..gates.recording import record
from ._kit.gate_pictures import draw_gates
from ._kit.item_contexts import EPOCHS, RATE
from ._kit.labelled import largest, stack
from ._kit.parameters import AtLeast, Count, Positive, Seed, checked
from ._kit.possible_gates import KINDS, SIZES, SOURCE, counted, flat_tree, label, nestings, poly_bernoulli
from ._kit.shown_gates import read_units
from .base import Claim, Result, at_least, at_most, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEME, PLACE = "twins", 6
REFERENCE = {"jarvis2025": "lemma 4.1, appendix D"}
QUICK = dict(largest=3, hidden=200, source_scale=0.005 / 200, lr=0.01, source_seeds=1)
CAPTION = """
**a** All 16 gates of a unit that sees two items (columns) in two contexts (rows): coloured where it is on. Two of them,
grey, are an exclusive or, which a unit cannot make. Black bars are the share of the weight of trained ReLU units that
have the gate, relative to the largest. **b** The same for three items. **c** Share of all gates that is of each kind,
for some numbers of items × contexts, with the number of possible gates above. **d** Share of the weight of ReLU units
in gates of each kind while a network learns eight items in three contexts. An epoch is one step of gradient descent at
rate 10⁻³ on the loss summed over samples.
"""
ALT = """
Little grids show that a unit can make most gates of a small task. With more items and contexts a smaller share of gates
is possible, nearly all of the kind "other", and so are those of a trained network soon after learning begins.
"""
# Gates of each kind at 2×2, counted by hand, and all possible ones at every size, poly-Bernoulli numbers.
FIRST, POSSIBLE = (4, 2, 4, 4, 2), (14, 46, 230, 1066)
COLOUR = dict(zip(KINDS, [COLOURS[0], COLOURS[2], COLOURS[4], COLOURS[3], "0.8"], strict=True))


@checked
def run(
    *,
    largest: Annotated[int, AtLeast(3)] = 4,
    units: Count = 64,
    scale: Positive = 1e-4,
    rate: Positive = 0.1,
    steps: Annotated[int, AtLeast(50)] = 1500,
    seeds: Count = 10,
    hidden: Count = 700,
    source_scale: Positive = 0.005 / 700,
    lr: Positive = RATE,
    epochs: Annotated[int, AtLeast(50)] = 8000,
    source_seeds: Count = 3,
    seed: Seed = 0,
) -> Result:
    """`largest`: how many sizes to enumerate.

    The first two sizes are trained with `units`, `scale`, `rate`, `steps` and `seeds`; the task of the source with
    `hidden`, `source_scale`, `lr`, `epochs` and `source_seeds`.
    """
    sizes = SIZES[: min(largest, len(SIZES))]
    enumerated = {size: counted(*size) for size in sizes}
    points, shown = SOURCE[0] * SOURCE[1], np.linspace(0, epochs, 81).round()
    rule, times = rules.GradientDescent(rate), np.linspace(0, steps, 31).round() * rate
    setups = {
        size: Setup(flat_tree(*size), nets.MLP(units), inits.SmallRandom(scale), rule, times=times)
        for size in sizes[:2]
    }
    net, init, rule = nets.MLP(hidden), inits.SmallRandom(source_scale), rules.GradientDescent(lr * points)
    setups[SOURCE] = Setup(tasks.contextual(*SOURCE), net, init, rule, times=shown * RATE * points)
    readings = {}
    for size, setup in setups.items():
        draws = range(seed, seed + (source_seeds if size == SOURCE else seeds))
        readings[size] = read_units(record(setup, draws, interrupt="raise"), size)
    numbers = ("shown", "refuted", "distinct", "strong", "loss")
    data = xarray.Dataset(
        {
            **stack({label(size): counts for size, (counts, _) in enumerated.items()}, "size"),
            "formula": ("any_size", [poly_bernoulli(*size) for size in (*sizes, SOURCE)]),
            "nested": ("any_size", [nestings(*size) for size in (*sizes, SOURCE)]),
            **{f"kind {label(size)}": (f"gate {label(size)}", enumerated[size][1]) for size in sizes[:2]},
            **{f"weight {label(size)}": (f"gate {label(size)}", readings[size]["weight"]) for size in sizes[:2]},
            "share": (("task", "kind"), [reading["share"] for reading in readings.values()]),
            **{name: ("task", [reading[name] for reading in readings.values()]) for name in numbers},
            "source_share": (("epoch", "kind"), readings[SOURCE]["shares"]),
        },
        coords={
            "any_size": [label(size) for size in (*sizes, SOURCE)],
            "kind": list(KINDS),
            "task": [label(size) for size in setups],
            "epoch": shown,
        },
    )
    return Result(data, {label(size): setup for size, setup in setups.items()})


def claims(result: Result) -> list[Claim]:
    data = result.data
    first, source, name = data.isel(size=0), data.isel(task=-1), label(SOURCE)
    lemma = ["by context", "single point"]
    of_lemma, many = 2 ** SOURCE[1] + SOURCE[0] * SOURCE[1], int(data.formula[-1])
    outside = first.patterns.sel(kind=["by item", "other"])
    of_kinds, expected = (" ".join(str(int(count)) for count in counts) for counts in (first.patterns, FIRST))
    possible, stated = (
        " ".join(str(int(n)) for n in counts) for counts in (data.possible, POSSIBLE[: data.sizes["size"]])
    )
    gap = largest(data.formula - data.nested) + largest(data.possible.values - data.formula[:-1].values)
    occur = data.distinct.values[:2] / data.possible.values[:2]
    return [
        paper(
            "All gates are by context or single points (lemma 4.1): possible gates at 2×2 that are not",
            at_most(outside.sum(), 0),
            fails=f"{int(outside[0])} are by item and {int(outside[1])} are other; the proof excludes exclusive or "
            "only, and calls gates by item useless, not impossible",
            headline=True,
            panel="a",
        ),
        paper(
            "A unit cannot make an exclusive or of two items in two contexts: possible gates that have one",
            at_most(data.crossed.sum(), 0),
            headline=True,
            panel="a",
        ),
        ours(
            "A unit can make all other gates: number without an exclusive or minus number possible, over all sizes",
            at_most(np.abs(data.uncrossed - data.possible).sum(), 0),
        ),
        Claim(
            f"Numbers of possible gates at {', '.join(data['size'].values)}",
            possible,
            stated,
            possible == stated,
            panel="c",
        ),
        Claim(f"Number of gates at 2×2: {', '.join(KINDS)}", of_kinds, expected, of_kinds == expected, panel="c"),
        ours(
            f"Linear programs, nested sets and the formula count the same gates, up to {many} at {name}: largest gap",
            at_most(gap, 0),
        ),
        ours("Number of gates that a bias adds or removes", at_most((data.gained + data.lost).sum(), 0)),
        paper(
            f"All gates are by context or single points (lemma 4.1): share of the possible gates at {name} that are",
            at_least(of_lemma / many, 1.0),
            fails=f"they are {of_lemma} of {many}",
        ),
        ours(
            f"Impossible gates among {int(data.shown.sum())} that ReLU units show in training",
            at_most(data.refuted.sum(), 0),
        ),
        ours(
            "Share of the possible gates that ReLU units show in training, 2×2 and 3×2: smaller",
            at_least(occur.min(), 0.9),
        ),
        paper(
            f"Trained ReLU units at {name} are on by context or for single points: share of the weight in such units",
            at_least(source.share.sel(kind=lemma).sum(), 0.5),
            fails="nearly all of the weight is in units that split the items of a context",
            panel="d",
        ),
        ours("All networks learn: largest final loss / initial loss", at_most(data.loss.max(), 2e-3)),
    ]


def figure(result: Result) -> Figure:
    from matplotlib.patches import Patch

    data = result.data
    sheet, at = panels("ab;cd", row=3.2)
    for letter, size, columns in (("a", SIZES[0], 6), ("b", SIZES[1], 10)):
        draw_gates(at[letter], data, size, columns, list(COLOUR.values()))
        possible, of_all = int(data.possible.sel(size=label(size))), data.sizes[f"gate {label(size)}"]
        at[letter].set_title(f"{size[0]} items, {size[1]} contexts: {possible} of {of_all} gates")
    below, number = np.zeros(data.sizes["size"]), data.patterns.sum("kind")
    for kind, colour in COLOUR.items():
        high = (data.patterns.sel(kind=kind) / number).values
        at["c"].bar(data["size"], high, bottom=below, color=colour, width=0.6)
        below += high
    for k, (possible, of_all) in enumerate(zip(data.possible.values, number.values, strict=True)):
        at["c"].annotate(f"{possible} of {of_all}", (k, 1.02), ha="center", va="bottom", size=9)
    at["c"].set(
        xlabel="items × contexts",
        ylabel="share of all gates",
        ylim=(0, 1.12),
        title="Most gates of large tasks are impossible",
    )
    at["d"].stackplot(data.epoch, data.source_share[:, :-1].T, colors=list(COLOUR.values())[:-1], lw=0)
    at["d"].set(xlabel=EPOCHS, ylabel="share of the weight", ylim=(0, 1), xlim=(0, float(data.epoch[-1])))
    at["d"].set_title(f"Trained ReLU units, {SOURCE[0]} items in {SOURCE[1]} contexts")
    key(sheet, kinds=(), marks=[Patch(color=colour, label=kind) for kind, colour in COLOUR.items()])
    return sheet
