"""ReLU units change their gates as they learn contexts; a gated network with a few gates that stay is their average.

A ReLU network is a gated linear network whose gates, one per unit and sample, may change at any time. Replayed at every
step they give the network itself, to rounding, whatever the gates do. The reduction of a ReLU network on items in
contexts to a common pathway and pathways for two contexts says more: that units keep their gates, and share a few.

Here gates are followed unit by unit. As the loss begins to fall all units that have grown are on everywhere. It is
these that later hold most of the weight, and hardly any of it stays all-on: they come to split contexts by items, in
nearly as many patterns as there are units. By majority (a context counts where a unit is on for most of its items) most
of the weight is for two contexts, in equal parts. So gates that stay, found by clustering, give loss and outputs within
a few percent; hidden activity is laid out alike at first, and differs in the end.

**What does not reproduce.** “Gating constant from the start” and units that do not switch [jarvis2025, section 4]. The
start of 10⁻⁷ of Table 1 is no way out: units switch as much.
"""

from __future__ import annotations

import numpy as np

from .. import inits, nets, rules, tasks
from .._noun import positive, whole
from .._plot import COLOURS, new_figure
from .._report import Claim, Result
from .._setup import Setup
from ..gates.freezing import freeze
from ..gates.reading import purity
from ..gates.recording import record, unpacked
from ..gates.replay import replay
from ._contexts import EPOCHS, RATE

REFERENCE = {"jarvis2025": "section 4 and definition 3.1; figure 4"}
QUICK = dict(
    hidden=280, width=280, lr=0.01, every=200, seeds=1
)  # pathways as wide as the network share its compiled code
CONTEXTS, ITEMS = 3, 8
KINDS = ("all on", "two whole contexts", "one whole context", "some items only", "off")
PAIRS = ("110", "101", "011")
FOLLOWED = (500, 1000, 2000, 8000)  # epochs at which the gates of some units are drawn
DRAWN = 120  # units
ROUNDING = 1e-16  # smaller errors are drawn as this


def run(
    *, hidden=700, width="share", scale=0.005 / 700, small=1e-7, lr=RATE, epochs=8000, every=100, seeds=3, seed=0
) -> Result:
    """`scale`: standard deviation of weights as run, `small` as printed; `lr` is the rate on the summed loss.

    `width` is that of each pathway with gates that stay; "share" deals out the units of the network.
    """
    hidden, seeds = whole(hidden, "hidden"), whole(seeds, "seeds")
    scales = positive(scale, "scale"), positive(small, "small")
    task, draws = tasks.contextual(ITEMS, CONTEXTS), list(range(seed, seed + seeds))
    samples = task.samples or 1
    epoch = np.arange(0, whole(epochs, "epochs") + 1, whole(every, "every"))
    setup = Setup(
        task, nets.MLP(hidden), inits.SmallRandom(scales[0]), rules.GradientDescent(positive(lr, "lr") * samples),
        times=epoch * RATE * samples,
    )  # fmt: skip
    seen = [
        record(setup.replace(init=inits.SmallRandom(size)), draws, observe=("outputs", "similarity"))
        for size in scales
    ]  # fmt: skip
    exact = replay(seen[0], progress=False)
    frozen = freeze(seen[0], width=width, progress=False)
    twin, errors = frozen.trajectory, frozen.errors.isel(candidate=0)
    first = seen[0]["loss"][:, :1]
    read = [purity(one).isel(layer=0) for one in seen]
    instants = [int(np.argmin(np.abs(epoch - at))) for at in FOLLOWED if at <= epochs]
    import xarray

    def both(name):
        return ("start", "seed", "time"), np.stack([one[name].values for one in read])

    data = xarray.Dataset(
        {
            "loss": (("start", "seed", "time"), np.stack([one["loss"] for one in seen])),
            "share": (
                ("start", "seed", "time", "kind"),
                np.stack([
                    np.stack([*(one.on_for[..., k] for k in range(CONTEXTS, 0, -1)), one.split, one.dead], axis=-1)
                    for one in read
                ]),
            ),
            "majority": (("seed", "time", "vote"), read[0].majority.values),
            **{name: both(name) for name in ("switched", "began_all_on", "kept_all_on", "strong", "distinct")},
            "never_growing": (("start", "seed"), np.stack([one.never_growing.values for one in read])),
            "flips": (("seed", "interval"), _flips(seen[0], samples)),
            "on": (("shown", "hidden", "sample"), _followed(seen[0], instants, samples)),
            "replay_error": (("seed", "time"), exact.errors),
            "flipped": (("seed", "time"), exact.flipped),
            "loss_gap": (("seed", "time"), np.abs(twin["loss"] - seen[0]["loss"]) / first),
            "output_gap": (("time",), errors.output_gap.values),
            "geometry": (("time",), errors.geometry.values),
        },
        coords={
            "time": setup.times, "epoch": ("time", epoch), "seed": draws, "start": list(scales), "kind": list(KINDS),
            "vote": read[0].vote.values, "shown": epoch[instants], "interval": epoch[1:],
        },
        attrs={"gates": list(frozen.found[0].names), "every": int(every)},
    )  # fmt: skip
    return Result(data, {"ReLU": setup, "with gates that stay": frozen.setup})


def _flips(trained, samples) -> np.ndarray:
    """(seed, interval): the share of gates that differ from those of the record before, of units by their weight."""
    packed, size = trained["gates"], trained["unit_size"][:, 1:]
    changed = np.bitwise_count(packed[:, 1:] ^ packed[:, :-1]).sum(axis=-1) / samples
    return np.sum(changed * size, axis=-1) / size.sum(axis=-1)


def _followed(trained, instants, samples) -> np.ndarray:
    """Gates (shown, unit, sample) of the units that are strongest in the end, sorted by what they are for then."""
    strongest = np.argsort(-trained["unit_size"][0, -1])[:DRAWN]
    on = unpacked(trained["gates"][0][instants][:, strongest], samples)
    part = on[-1].reshape(len(strongest), CONTEXTS, ITEMS).mean(axis=-1)
    votes = (part > 0.5) @ 2 ** np.arange(CONTEXTS)
    # Units of one vote together, those of more contexts first; within a vote the more regular ones.
    order = np.lexsort([part.sum(axis=1), votes, -(part > 0.5).sum(axis=1)])
    return on[:, order].astype(np.int8)


def claims(result: Result) -> list[Claim]:
    data = result.data
    run_as, printed = data.start.values
    end = data.mean("seed").isel(time=-1)
    at = end.sel(start=run_as)
    share, votes = at.share, end.majority
    pairs = votes.sel(vote=list(PAIRS))
    return [
        Claim.at_most(
            "With the gates of every step a linear network is the ReLU network: largest relative gap of outputs",
            float(data.replay_error.max()), 1e-9, source="paper",
        ),
        Claim.at_least(
            "Gating is constant: share of the weight in units with the gates they had as learning began",
            1 - float(at.switched), 0.9, source="paper",
            expected=False, reason="nearly all change: units that learn what is common later learn the rest",
        ),
        Claim.at_least(
            "Most of the weight is in the end in units that were strong and on everywhere as learning began: share",
            float(at.began_all_on), 0.75,
        ),
        Claim.at_least(
            "… which stay the common pathway: the part of it that is still on everywhere",
            float(at.kept_all_on), 0.5, source="paper",
            expected=False, reason="the units that have learned what is common turn to the contexts",
        ),
        Claim.at_most("In the end few units are on everywhere: share of the weight", float(share[0]), 0.05),
        Claim.at_least("… nearly all split a context by items: share", float(share.sel(kind=KINDS[3])), 0.9),
        Claim.at_least(
            "… in nearly as many patterns as there are strong units: ratio", float(at.distinct / at.strong), 0.75
        ),
        Claim.at_least(
            f"… and go on to the end: share of gates that change in {data.attrs['every']} epochs, last quarter",
            float(data.flips.where(data.interval > 0.75 * data.interval[-1]).mean()), 0.01,
        ),
        Claim.at_least("By majority most of it is for two contexts: share", float(pairs.sum()), 0.6, source="paper"),
        Claim.at_least("… in like parts: least of three over largest", float(pairs.min() / pairs.max()), 0.6),
        Claim.at_most(
            "With four gates that stay the loss is near: mean distance / first loss", float(data.loss_gap.mean()), 0.03,
            source="paper",
        ),
        Claim.at_most("… and outputs are, in the end: relative gap", float(end.output_gap), 0.08, source="paper"),
        Claim.at_least(
            "Hidden activity is laid out alike at epoch 1000: correlation of distances",
            float(np.interp(1000, data.epoch, data.geometry)), 0.97, source="paper",
        ),
        Claim.at_least(
            "… and in the end", float(end.geometry), 0.95, source="paper",
            expected=False, reason="units that split contexts lay items out otherwise; loss and outputs do not show it",
        ),
        Claim.at_most(
            f"From starts of {printed:.0e}, as printed, units switch too: the part of all-on weight that stays so",
            float(end.kept_all_on.sel(start=printed)), 0.1,
        ),
    ]  # fmt: skip


def figure(result: Result):
    data = result.data
    sheet, ((kinds, votes, switches), (units, patterns, errors)) = new_figure(2, 3, width=4.6, height=3.4)
    mean = data.mean("seed")
    run_as, printed = data.start.values
    colours = [COLOURS[0], COLOURS[1], COLOURS[2], "0.85", "0.6"]
    kinds.stackplot(data.epoch, mean.share.sel(start=run_as).T, colors=colours, labels=data.kind.values, lw=0)
    kinds.set_title("what units are on for")
    _draw_votes(votes, mean)
    for axes in (kinds, votes):
        axes.set(xlabel=EPOCHS, ylabel="share of the weight", ylim=(0, 1), xlim=(0, float(data.epoch[-1])))
        axes.legend(loc="center right", frameon=True, framealpha=0.9)
    for start, style in ((run_as, "-"), (printed, ":")):
        at = mean.sel(start=start)
        lines = {
            "in units all-on at first": at.began_all_on,
            "… still all-on, of these": at.kept_all_on,
            "in units with other gates than at first": at.switched,
        }
        for k, (label, line) in enumerate(lines.items()):
            named = label if start == run_as else None
            switches.plot(data.epoch, line, ls=style, color=COLOURS[k], lw=1.8, label=named)
    switches.plot([], [], ":", color="0.3", label=f"from starts of {printed:.0e}")
    switches.set(xlabel=EPOCHS, ylabel="share of the weight", title="units switch", ylim=(-0.03, 1.03))
    switches.legend(loc="center right")
    _draw_followed(units, data)
    patterns.plot(data.epoch, mean.strong.sel(start=run_as), color=COLOURS[3], lw=2, label="strong units")
    patterns.plot(data.epoch, mean.distinct.sel(start=run_as), color=COLOURS[0], lw=2, label="their different patterns")
    patterns.set(xlabel=EPOCHS, ylabel="number", title="nearly every unit gets gates of its own", ylim=(0, None))
    rate = patterns.twinx()
    rate.plot(data.interval, mean.flips, color=COLOURS[1], lw=1)
    rate.set_ylabel(f"gates that change in {data.attrs['every']} epochs", color=COLOURS[1])
    rate.set_ylim(0, None)
    rate.spines.right.set_visible(True)
    patterns.legend(loc="center right")
    # At the start outputs are 0, and there is nothing to compare.
    drawn = data.epoch.values >= FOLLOWED[0]
    gaps = {
        "hidden layout: 1 − correlation": 1 - mean.geometry,
        "outputs, relative": mean.output_gap,
        "loss / first loss": mean.loss_gap,
        "replay, gates of every step": mean.replay_error,
    }
    for k, (label, gap) in enumerate(gaps.items()):
        errors.plot(data.epoch[drawn], np.maximum(gap[drawn], ROUNDING), color=COLOURS[k], lw=1.8, label=label)
    errors.set(xlabel=EPOCHS, ylabel="distance from ReLU", title="what gates that stay miss", yscale="log")
    errors.set_ylim(ROUNDING / 3, 3)
    errors.legend(loc="center right")
    return sheet


def _draw_votes(axes, mean) -> None:
    """Shares by majority: everywhere, two contexts, others."""
    known = ["111", *PAIRS]
    others = mean.majority.sum("vote") - mean.majority.sel(vote=known).sum("vote")
    parts = [*(mean.majority.sel(vote=vote) for vote in known), others]
    axes.stackplot(
        mean.epoch,
        parts,
        colors=[COLOURS[0], COLOURS[1], COLOURS[4], "#F3C5A0", "0.75"],
        labels=[*known, "others"],
        lw=0,
    )
    axes.set_title("… for most items of a context (majority)")


def _draw_followed(axes, data) -> None:
    """The gates of the same units, in the same order, at some epochs."""
    from matplotlib.colors import ListedColormap

    tint = np.repeat(1 + np.arange(CONTEXTS), ITEMS)
    blocks = [data.on.sel(shown=at).values * tint for at in data.shown.values]
    samples = CONTEXTS * ITEMS
    gap = np.full((len(blocks[0]), 2), np.nan)
    picture = np.concatenate([part for block in blocks for part in (block, gap)][:-1], axis=1)
    colours = ListedColormap(["#F2F2F2", *COLOURS[:CONTEXTS]])
    axes.imshow(picture, aspect="auto", cmap=colours, vmin=-0.5, vmax=CONTEXTS + 0.5, interpolation="nearest")
    axes.set_xticks(
        [k * (samples + 2) + (samples - 1) / 2 for k in range(len(blocks))], [f"{at:g}" for at in data.shown.values]
    )
    axes.tick_params(length=0)
    axes.set(xlabel="items in contexts 1, 2, 3 (colours) at epoch", yticks=[], title="the same units over time")
    axes.set_ylabel(f"the {len(blocks[0])} strongest in the end")
