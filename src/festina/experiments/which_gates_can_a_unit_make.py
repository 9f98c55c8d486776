"""A unit that sees an item and its context can implement every gate that contains no exclusive or, not only gates by
context.

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

from typing import TYPE_CHECKING

import numpy as np

from .. import Setup, inits, nets, rules, tasks
from .._figures.style import COLOURS, new_figure
from .._foundation.checks import positive, whole
from ..gates.feasible import implementable_patterns
from ..gates.recording import record
from ._kit.gate_kind_panels import draw_counts, draw_gates, draw_shares
from ._kit.item_contexts import RATE
from ._kit.possible_gates import (
    KINDS,
    SIZES,
    SOURCE,
    crossed,
    flat_tree,
    gates_of,
    kinds_of,
    label,
    nestings,
    numbers_of,
    only_in,
    poly_bernoulli,
    uncrossed,
)
from ._kit.shown_gates import read_units
from .base import Claim, Result, at_least, at_most, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure


THEME, PLACE = "twins", 6
REFERENCE = {"jarvis2025": "lemma 4.1, appendix D"}
QUICK = dict(largest=3, hidden=200, source_scale=0.005 / 200, lr=0.01, source_seeds=1)
# Gates of each kind at 2×2, and all possible ones at every size, by an independent computation.
FIRST, POSSIBLE = (4, 2, 4, 4, 2), (14, 46, 230, 1066)


def run(
    *,
    largest: int = 4,
    units: int = 64,
    scale: float = 1e-4,
    rate: float = 0.1,
    steps: int = 1500,
    seeds: int = 10,
    hidden: int = 700,
    source_scale: float = 0.005 / 700,
    lr: float = RATE,
    epochs: int = 8000,
    source_seeds: int = 3,
    seed: int = 0,
) -> Result:
    """`largest`: how many sizes to enumerate.

    The first two sizes are trained with `units`, `scale`, `rate`, `steps` and `seeds`; the task of the source with
    `hidden`, `source_scale`, `lr`, `epochs` and `source_seeds`.
    """
    sizes = SIZES[: min(whole(largest, "largest", least=3), len(SIZES))]
    rate, lr = positive(rate, "rate"), positive(lr, "lr")
    steps, epochs = (whole(given, name, least=50) for given, name in ((steps, "steps"), (epochs, "epochs")))
    small = [flat_tree(*size) for size in sizes]
    possible = [implementable_patterns(task) for task in small]
    biased = [implementable_patterns(task, bias=True) for task in small]
    kinds = [kinds_of(gates_of(np.arange(2 ** (n * c)), n * c), n, c) for n, c in sizes]
    for of_size, gates in zip(kinds, possible, strict=True):
        of_size[np.setdiff1d(np.arange(len(of_size)), numbers_of(gates))] = KINDS.index("impossible")
    setups = {
        label(size): Setup(
            task,
            nets.MLP(units),
            inits.SmallRandom(scale),
            rules.GradientDescent(rate),
            times=np.linspace(0, steps, 31).round() * rate,
        )
        for size, task in zip(sizes[:2], small[:2], strict=True)
    }
    source, points = tasks.contextual(*SOURCE), SOURCE[0] * SOURCE[1]
    shown = np.linspace(0, epochs, 81).round()
    setups[label(SOURCE)] = Setup(
        source,
        nets.MLP(hidden),
        inits.SmallRandom(source_scale),
        rules.GradientDescent(lr * points),
        times=shown * RATE * points,
    )
    many = {name: whole(source_seeds if name == label(SOURCE) else seeds, "seeds") for name in setups}
    readings = {
        name: read_units(record(setup, range(seed, seed + many[name]), interrupt="raise"), size)
        for (name, setup), size in zip(setups.items(), (*sizes[:2], SOURCE), strict=True)
    }
    import xarray

    data = xarray.Dataset(
        {
            "possible": ("size", [len(gates) for gates in possible]),
            "gained": ("size", [len(only_in(one, other)) for one, other in zip(biased, possible, strict=True)]),
            "lost": ("size", [len(only_in(one, other)) for one, other in zip(possible, biased, strict=True)]),
            "crossed": ("size", [int(crossed(one, *size).sum()) for one, size in zip(possible, sizes, strict=True)]),
            "uncrossed": ("size", [uncrossed(*size) for size in sizes]),
            "patterns": (("size", "kind"), [np.bincount(of_size, minlength=len(KINDS)) for of_size in kinds]),
            "formula": ("any_size", [poly_bernoulli(*size) for size in (*sizes, SOURCE)]),
            "nested": ("any_size", [nestings(*size) for size in (*sizes, SOURCE)]),
            **{f"kind {label(size)}": (f"gate {label(size)}", kinds[k]) for k, size in enumerate(sizes[:2])},
            **{f"weight {name}": (f"gate {name}", readings[name]["weight"]) for name in list(readings)[:2]},
            "share": (("task", "kind"), [reading["share"] for reading in readings.values()]),
            "shown": ("task", [reading["shown"] for reading in readings.values()]),
            "refuted": ("task", [reading["refuted"] for reading in readings.values()]),
            "distinct": ("task", [reading["distinct"] for reading in readings.values()]),
            "strong": ("task", [reading["strong"] for reading in readings.values()]),
            "solved": ("task", [reading["loss"] for reading in readings.values()]),
            "source_share": (("time", "kind"), readings[label(SOURCE)]["shares"]),
        },
        coords={
            "size": [label(size) for size in sizes],
            "any_size": [label(size) for size in (*sizes, SOURCE)],
            "kind": list(KINDS),
            "task": list(setups),
            "time": setups[label(SOURCE)].times,
            "epoch": ("time", shown),
        },
        attrs={"lemma": 2 ** SOURCE[1] + SOURCE[0] * SOURCE[1]},
    )
    return Result(data, setups)


def claims(result: Result) -> list[Claim]:
    data = result.data
    first, source = data.isel(size=0), data.isel(task=-1)
    lemma = ["by context", "single point"]
    outside = int(first.patterns.sel(kind=["by item", "other"]).sum())
    many, all_of_source = int(data.formula[-1]), 2 ** (SOURCE[0] * SOURCE[1])
    counted = " ".join(str(int(count)) for count in first.patterns)
    expected = " ".join(map(str, FIRST))
    possible = " ".join(str(int(count)) for count in data.possible)
    stated = " ".join(map(str, POSSIBLE[: data.sizes["size"]]))
    gap = int(np.abs(data.formula - data.nested).max()) + int(np.abs(data.possible.values - data.formula[:-1]).max())
    occur = data.distinct.values[:2] / data.possible.values[:2]
    return [
        Claim(
            f"Number of gates that one unit can make, {', '.join(data['size'].values)}",
            possible,
            stated,
            possible == stated,
        ),
        Claim(f"Number of gates at 2×2: {', '.join(KINDS)}", counted, expected, counted == expected),
        ours(
            f"Linear programs, nested sets and the formula count the same number of gates, up to {label(SOURCE)} "
            f"({many} of {all_of_source}): largest gap",
            at_most(gap, 0),
        ),
        paper(
            "A unit cannot make an exclusive or of two items in two contexts: possible gates that have one",
            at_most(int(data.crossed.sum()), 0),
        ),
        ours(
            "… and can make all other gates: gates without one minus possible gates",
            at_most(int(abs(data.uncrossed - data.possible).sum()), 0),
        ),
        ours("A bias changes nothing: gates gained or lost", at_most(int((data.gained + data.lost).sum()), 0)),
        paper(
            "All gates are by context or single points (lemma 4.1): possible gates at 2×2 that are not",
            at_most(outside, 0),
            fails=f"{int(first.patterns.sel(kind='by item'))} are by item and {int(first.patterns.sel(kind='other'))} "
            "are other; the proof excludes exclusive or only, and calls gates by item useless, not impossible",
        ),
        paper(
            f"… share of the possible gates at {label(SOURCE)} that are",
            at_least(data.attrs["lemma"] / many, 1.0),
            fails=f"they are {data.attrs['lemma']} of {many}",
        ),
        ours(
            f"ReLU units in training show possible gates only: impossible ones of {int(data.shown.sum())} recorded",
            at_most(int(data.refuted.sum()), 0),
        ),
        ours("… and on small tasks nearly all of them: smallest share that occurs", at_least(float(occur.min()), 0.9)),
        paper(
            f"Trained units at {label(SOURCE)} are on by context or for single points: share of the weight",
            at_least(float(source.share.sel(kind=lemma).sum()), 0.5),
            fails="nearly all of the weight is in units that split the items of a context",
        ),
        ours(
            "All of these networks have learned: largest ratio of the last loss to the first",
            at_most(float(data.solved.max()), 2e-3),
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, ((two, three), (counts, shares)) = new_figure(2, 2, width=6.0, height=3.4)
    colours: dict[str, str] = dict(zip(KINDS, [COLOURS[0], COLOURS[2], COLOURS[4], COLOURS[3], "0.8"], strict=True))
    for axes, size, columns in ((two, SIZES[0], 8), (three, SIZES[1], 11)):
        draw_gates(axes, data, size, columns, list(colours.values()))
    from matplotlib.patches import Patch

    two.legend(
        handles=[Patch(color=colour, label=kind) for kind, colour in colours.items()],
        loc="upper center",
        bbox_to_anchor=(0.5, -0.02),
        ncols=len(KINDS),
        handlelength=1.0,
        columnspacing=1.0,
    )
    draw_counts(counts, data, colours)
    draw_shares(shares, data, colours)
    return sheet
