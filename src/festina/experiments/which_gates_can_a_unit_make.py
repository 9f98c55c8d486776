"""A unit that sees an item and its context can make every gate without exclusive or, not only gates by context.

Inputs are the one-hot item beside the one-hot context, so that a unit is on where wᵢ + v_c > 0. Any two items are then
on in nested sets of contexts, and whatever is nested can be made: a gate is possible if and only if it has no exclusive
or in any two items × two contexts. Of n items in C contexts there are

    Σ_m (m!)² S(n + 1, m + 1) S(C + 1, m + 1)        (S: Stirling numbers of the second kind; poly-Bernoulli numbers)

such gates: 14 of 16, 46 of 64, 230 of 512 and 1066 of 4096 for 2×2, 3×2, 3×3 and 4×3 items × contexts. They are found
by linear programs, one for each gate, and counted again without any. A bias adds none of them: the items' inputs sum to
1, and it is the same as more weight from every item. A gate is here

- by context if it is the same for all items (always on and always off among these),
- by item if it is the same in all contexts, but not always on or off,
- a single point if it is on for one item in one context,
- other if it is none of these, such as on everywhere but in one point.

ReLU networks in training show no gate that is not possible, and on small tasks nearly all that are.

**What does not reproduce.** Lemma 4.1 says that all gates a ReLU network can make are by context or single points; its
proof excludes exclusive or of two items in two contexts only. Of 14 gates at 2×2 eight are of these two kinds, two by
item and four other; on the task of the source 32 of 354106 are. Its trained networks have nearly all of their weight in
the other ones.
"""

from __future__ import annotations

import itertools
from collections import Counter
from math import factorial
from typing import Any

import numpy as np

from .. import inits, nets, rules, tasks
from .._noun import positive, whole
from .._plot import COLOURS, new_figure
from .._report import Claim, Result
from .._setup import Setup, Task
from ..gates.feasible import implementable, implementable_patterns
from ..gates.recording import patterns, record
from ._contexts import EPOCHS, RATE

REFERENCE = {"jarvis2025": "lemma 4.1, appendix D"}
QUICK = dict(largest=3, hidden=200, source_scale=0.005 / 200, lr=0.01, source_seeds=1)
SIZES = ((2, 2), (3, 2), (3, 3), (4, 3))  # items × contexts that are enumerated
SOURCE = (8, 3)
KINDS = ("by context", "by item", "single point", "other", "impossible")
# Gates of each kind at 2×2, and all possible ones at every size, by an independent computation.
FIRST, POSSIBLE = (4, 2, 4, 4, 2), (14, 46, 230, 1066)
STRONG = 0.01  # of the largest unit: those below have hardly grown


def run(
    *, largest=4, units=64, scale=1e-4, rate=0.1, steps=1500, seeds=10,
    hidden=700, source_scale=0.005 / 700, lr=RATE, epochs=8000, source_seeds=3, seed=0,
) -> Result:  # fmt: skip
    """`largest`: how many sizes to enumerate. The first two are trained with `units`, the source's with `hidden`."""
    sizes = SIZES[: min(whole(largest, "largest", least=3), len(SIZES))]
    rate, lr = positive(rate, "rate"), positive(lr, "lr")
    steps, epochs = (whole(given, name, least=50) for given, name in ((steps, "steps"), (epochs, "epochs")))
    small = [flat_tree(*size) for size in sizes]
    found = [implementable_patterns(task) for task in small]
    biased = [implementable_patterns(task, bias=True) for task in small]
    kinds = [_kinds(_numbered(np.arange(2 ** (n * c)), n * c), n, c) for n, c in sizes]
    for of_size, possible in zip(kinds, found, strict=True):
        of_size[np.setdiff1d(np.arange(len(of_size)), _numbers(possible))] = KINDS.index("impossible")
    setups = {
        _label(size): Setup(
            task, nets.MLP(units), inits.SmallRandom(scale), rules.GradientDescent(rate),
            times=np.linspace(0, steps, 31).round() * rate,
        )
        for size, task in zip(sizes[:2], small[:2], strict=True)
    }  # fmt: skip
    source, points = tasks.contextual(*SOURCE), SOURCE[0] * SOURCE[1]
    shown = np.linspace(0, epochs, 81).round()
    setups[_label(SOURCE)] = Setup(
        source, nets.MLP(hidden), inits.SmallRandom(source_scale), rules.GradientDescent(lr * points),
        times=shown * RATE * points,
    )  # fmt: skip
    many = {name: whole(source_seeds if name == _label(SOURCE) else seeds, "seeds") for name in setups}
    seen = {
        name: _read(record(setup, range(seed, seed + many[name])), size)
        for (name, setup), size in zip(setups.items(), (*sizes[:2], SOURCE), strict=True)
    }
    import xarray

    data = xarray.Dataset(
        {
            "possible": ("size", [len(one) for one in found]),
            "gained": ("size", [len(_only_in(one, other)) for one, other in zip(biased, found, strict=True)]),
            "lost": ("size", [len(_only_in(one, other)) for one, other in zip(found, biased, strict=True)]),
            "crossed": ("size", [int(_crossed(one, *size).sum()) for one, size in zip(found, sizes, strict=True)]),
            "uncrossed": ("size", [_uncrossed(*size) for size in sizes]),
            "patterns": (("size", "kind"), [np.bincount(of_size, minlength=len(KINDS)) for of_size in kinds]),
            "formula": ("any_size", [poly_bernoulli(*size) for size in (*sizes, SOURCE)]),
            "nested": ("any_size", [nested(*size) for size in (*sizes, SOURCE)]),
            **{f"kind {_label(size)}": (f"gate {_label(size)}", kinds[k]) for k, size in enumerate(sizes[:2])},
            **{f"weight {name}": (f"gate {name}", seen[name]["weight"]) for name in list(seen)[:2]},
            "share": (("task", "kind"), [one["share"] for one in seen.values()]),
            "shown": ("task", [one["shown"] for one in seen.values()]),
            "refuted": ("task", [one["refuted"] for one in seen.values()]),
            "distinct": ("task", [one["distinct"] for one in seen.values()]),
            "strong": ("task", [one["strong"] for one in seen.values()]),
            "solved": ("task", [one["loss"] for one in seen.values()]),
            "source_share": (("time", "kind"), seen[_label(SOURCE)]["shares"]),
        },
        coords={
            "size": [_label(size) for size in sizes], "any_size": [_label(size) for size in (*sizes, SOURCE)],
            "kind": list(KINDS), "task": list(setups), "time": setups[_label(SOURCE)].times,
            "epoch": ("time", shown),
        },
        attrs={"lemma": 2 ** SOURCE[1] + SOURCE[0] * SOURCE[1]},
    )  # fmt: skip
    return Result(data, setups)


def flat_tree(items: int, contexts: int) -> Task:
    """`tasks.contextual` for any number of items: all have a feature in common, and each has one of its own."""
    context, item = np.repeat(np.arange(contexts), items), np.tile(np.arange(items), contexts)
    block = np.concatenate([np.ones((1, items)), np.eye(items)]).T
    own = [np.kron(row[:, None], block) for row in np.eye(contexts)]
    return tasks.from_arrays(
        np.concatenate([np.eye(items)[item], np.eye(contexts)[context]], axis=1),
        np.concatenate([block[item], *own], axis=1),
        labels={"context": context, "item": item},
    )


def poly_bernoulli(items: int, contexts: int) -> int:
    """Σ_m (m!)² S(n + 1, m + 1) S(C + 1, m + 1)."""
    terms = range(min(items, contexts) + 1)
    return sum(factorial(m) ** 2 * _stirling(items + 1, m + 1) * _stirling(contexts + 1, m + 1) for m in terms)


def _stirling(n: int, k: int) -> int:
    """Ways to part n things into k groups."""
    if n == k:
        return 1
    return 0 if k < 1 or k > n else k * _stirling(n - 1, k) + _stirling(n - 1, k - 1)


def nested(items: int, contexts: int) -> int:
    """Ways to give every item a set of contexts such that of any two sets one contains the other, item by item."""
    sets = [frozenset(s) for size in range(contexts + 1) for s in itertools.combinations(range(contexts), size)]
    ways = Counter({frozenset(): 1})  # by the sets in use
    for _ in range(items):
        longer = Counter()
        for used, count in ways.items():
            for own in sets:
                if all(own <= other or other <= own for other in used):
                    longer[used | {own}] += count
        ways = longer
    return sum(ways.values())


def _label(size: tuple[int, int]) -> str:
    return f"{size[0]}×{size[1]}"


def _numbered(numbers: np.ndarray, samples: int) -> np.ndarray:
    """Gates (gate, sample) as the digits of binary numbers; samples are sorted by context."""
    return (numbers[:, None] >> np.arange(samples)[::-1]) & 1 == 1


def _numbers(gates: np.ndarray) -> np.ndarray:
    return gates @ (1 << np.arange(gates.shape[-1])[::-1])


def _only_in(gates: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.setdiff1d(_numbers(gates), _numbers(others))


def _kinds(gates: np.ndarray, items: int, contexts: int) -> np.ndarray:
    """The kind of each gate (…, sample), as its place among KINDS; whether it is possible is not asked."""
    grid = gates.reshape(*gates.shape[:-1], contexts, items)
    by_context = (grid == grid[..., :1]).all(axis=(-2, -1))
    by_item = (grid == grid[..., :1, :]).all(axis=(-2, -1))
    return np.select([by_context, by_item, gates.sum(axis=-1) == 1], [0, 1, 2], default=3)


def _crossed(gates: np.ndarray, items: int, contexts: int) -> np.ndarray:
    """Whether each gate (gate, sample) has an exclusive or in some two items × two contexts."""
    grid = gates.reshape(-1, contexts, items)
    found = np.zeros(len(grid), bool)
    for (a, b), (i, j) in itertools.product(
        itertools.combinations(range(contexts), 2), itertools.combinations(range(items), 2)
    ):
        found |= (grid[:, a, i] == grid[:, b, j]) & (grid[:, a, j] == grid[:, b, i]) & (grid[:, a, i] != grid[:, a, j])
    return found


def _uncrossed(items: int, contexts: int) -> int:
    """Gates of all that have no exclusive or, counted one by one."""
    samples = items * contexts
    return int((~_crossed(_numbered(np.arange(2**samples), samples), items, contexts)).sum())


def _read(trained: Any, size: tuple[int, int]) -> dict[str, Any]:
    """What the units of a network are on for, over all records and in the last one."""
    on, weight, task = patterns(trained), trained["unit_size"], trained.setup.task
    kinds = _kinds(on, *size)
    numbers = np.unique(_numbers(on))
    strong = _numbers(on[:, -1][weight[:, -1] >= STRONG * weight[:, -1].max(axis=-1, keepdims=True)])
    every = _numbered(numbers, on.shape[-1])
    # Where there are thousands of gates a linear program is spent on those of the last record that have grown.
    asked = every if len(every) <= 2 ** (SIZES[1][0] * SIZES[1][1]) else _numbered(np.unique(strong), on.shape[-1])
    refuted = int(_crossed(every, *size).sum()) + sum(not implementable(gate, task) for gate in asked)
    share = weight / weight.sum(axis=-1, keepdims=True)
    shares = np.stack([np.mean(np.sum(share * (kinds == k), axis=-1), axis=0) for k in range(len(KINDS))], axis=-1)
    found = {
        "share": shares[-1], "shares": shares, "refuted": refuted, "shown": on[..., 0].size,
        "distinct": len(numbers), "strong": len(np.unique(strong)),
        "loss": float(np.mean(trained["loss"][:, -1] / trained["loss"][:, 0])),
    }  # fmt: skip
    if on.shape[-1] <= SIZES[1][0] * SIZES[1][1]:
        of_gate = np.bincount(_numbers(on[:, -1]).ravel(), share[:, -1].ravel(), minlength=2 ** on.shape[-1])
        found["weight"] = of_gate / len(on)
    return found


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
        Claim(f"Gates that one unit can make, {', '.join(data['size'].values)}", possible, stated, possible == stated),
        Claim(f"At 2×2: {', '.join(KINDS)}", counted, expected, counted == expected),
        Claim.at_most(
            f"Numbers by linear programs, by counting nested sets and by the formula agree, up to {_label(SOURCE)} "
            f"({many} of {all_of_source}): largest gap", gap, 0,
        ),
        Claim.at_most(
            "Exclusive or of two items in two contexts cannot be made: possible gates that have it",
            int(data.crossed.sum()), 0, source="paper",
        ),
        Claim.at_most(
            "… and all else can: gates without it less possible ones", int(abs(data.uncrossed - data.possible).sum()), 0
        ),
        Claim.at_most("A bias changes nothing: gates gained or lost", int((data.gained + data.lost).sum()), 0),
        Claim.at_most(
            "All gates are by context or single points (lemma 4.1): possible gates at 2×2 that are not", outside, 0,
            source="paper", expected=False,
            reason=f"{int(first.patterns.sel(kind='by item'))} are by item and {int(first.patterns.sel(kind='other'))} "
            "are other; the proof excludes exclusive or only, and calls gates by item useless, not impossible",
        ),
        Claim.at_least(
            f"… share of the possible gates at {_label(SOURCE)} that are", data.attrs["lemma"] / many, 1.0,
            source="paper", expected=False, reason=f"they are {data.attrs['lemma']} of {many}",
        ),
        Claim.at_most(
            f"ReLU units in training show possible gates only: others among {int(data.shown.sum())} recorded",
            int(data.refuted.sum()), 0,
        ),
        Claim.at_least("… and on small tasks nearly all of them: least share that occurs", float(occur.min()), 0.9),
        Claim.at_least(
            f"Trained units at {_label(SOURCE)} are on by context or for single points: share of the weight",
            float(source.share.sel(kind=lemma).sum()), 0.5, source="paper",
            expected=False, reason="nearly all of the weight is in units that split the items of a context",
        ),
        Claim.at_most("All of these networks have learned: largest last loss / first", float(data.solved.max()), 2e-3),
    ]  # fmt: skip


def figure(result: Result):
    data = result.data
    sheet, ((two, three), (counts, shares)) = new_figure(2, 2, width=6.0, height=3.4)
    colours = dict(zip(KINDS, [COLOURS[0], COLOURS[2], COLOURS[4], COLOURS[3], "0.8"], strict=True))
    for axes, size, columns in ((two, SIZES[0], 8), (three, SIZES[1], 11)):
        _draw_gates(axes, data, size, columns, list(colours.values()))
    from matplotlib.patches import Patch

    two.legend(
        handles=[Patch(color=colour, label=kind) for kind, colour in colours.items()],
        loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=len(KINDS), handlelength=1.0, columnspacing=1.0,
    )  # fmt: skip
    below = np.zeros(data.sizes["size"])
    whole_number = data.patterns.sum("kind").values
    for kind, colour in colours.items():
        high = data.patterns.sel(kind=kind).values / whole_number
        counts.bar(data["size"], high, bottom=below, color=colour, width=0.6)
        below += high
    for k, (possible, of_all) in enumerate(zip(data.possible.values, whole_number, strict=True)):
        counts.annotate(f"{possible} of {of_all}", (k, 1.02), ha="center", va="bottom", fontsize=9)
    counts.set(ylabel="share of all gates", xlabel="items × contexts", ylim=(0, 1.12))
    counts.set_title("how many are possible")
    drawn = [colours[kind] for kind in KINDS[:-1]]
    shares.stackplot(data.epoch, data.source_share[:, :-1].T, colors=drawn, lw=0)
    shares.set(xlabel=EPOCHS, ylabel="share of the weight", ylim=(0, 1), xlim=(0, float(data.epoch[-1])))
    shares.set_title(f"what ReLU units are, {SOURCE[0]} items in {SOURCE[1]} contexts")
    return sheet


def _draw_gates(axes, data, size, columns, colours) -> None:
    """Every gate as a little grid of contexts (rows) and items; below it, a bar for the weight that it has."""
    from matplotlib.patches import Rectangle

    items, contexts = size
    kinds, weight = data[f"kind {_label(size)}"].values, data[f"weight {_label(size)}"].values
    order = np.argsort(kinds, kind="stable")
    across, down = items + 1.0, contexts + 1.6
    for place, number in enumerate(order):
        x, y = place % columns * across, -(place // columns) * down
        on = _numbered(np.array([number]), items * contexts)[0].reshape(contexts, items)
        for context, item in itertools.product(range(contexts), range(items)):
            face = colours[kinds[number]] if on[context, item] else "white"
            axes.add_patch(Rectangle((x + item, y - context), 1, 1, facecolor=face, edgecolor="0.6", lw=0.5))
        length = items * weight[number] / weight.max()
        axes.add_patch(Rectangle((x, y - contexts + 0.45), length, 0.3, facecolor="0.2", lw=0))
    rows = -(-len(order) // columns)
    axes.set(xlim=(-0.5, columns * across - 0.5), ylim=(-rows * down + 1.2, 1.5), aspect="equal")
    axes.set_axis_off()
    possible, used = int((kinds < KINDS.index("impossible")).sum()), int(data.strong.sel(task=_label(size)))
    axes.set_title(
        f"{items} items (across) in {contexts} contexts: {possible} of {len(kinds)} gates;\n"
        f"bars: weight of trained ReLU units; grown ones show {used}"
    )
