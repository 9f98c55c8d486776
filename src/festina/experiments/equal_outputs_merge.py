"""Small weights merge the inputs of exclusive or that share an output, large ones leave all where they were.

A deep network learns the four points of exclusive or. The two-point theory, applied to each of the six pairs as if it
were alone, says that pairs with one target end together if weights start small, and that nothing moves if they start
large. Its ratio of rates κ is fitted once, to the default network on two points, and used for all. It holds for twenty
layers. A network with one hidden layer and small weights merges one of the two pairs only: four points are not two,
and the theory, which takes the encoder for free, does not see that one layer cannot map all as it likes.

**What does not reproduce.** The printed setting for small weights: leaky ReLU with gain 0.7 at a rate of 0.015 stays at
a loss of 1/8, that of the best constant, for all its 1000 epochs and for 6000. As run (the values here) units were
ReLU, the gain 0.85, the loss had no factor ½, which doubles the rate, and there were 3000 epochs.
"""

from __future__ import annotations

import numpy as np

from .. import nets, rules, tasks
from .._fit import fit
from .._noun import positive, whole
from .._plot import COLOURS, new_figure
from .._report import Claim, Result
from .._setup import Setup
from . import _pairs
from ._two_points import row, two_point_setup

REFERENCE = {"vanrossem2024": "figure 6, section 4.4 and table 2"}
# Gain, rate for the loss with ½, epochs.
AS_RUN = dict(
    activation="relu", low=(0.85, 0.03, 3000), intermediate=(1.25, 0.004, 1000), high=(2.0, 6e-9, 1000),
    two_layers=(0.0015, 0.06, 2000),
)  # fmt: skip
AS_PRINTED = dict(
    activation="leaky_relu", low=(0.7, 0.015, 1000), intermediate=(1.25, 0.002, 1000), high=(2.0, 3e-9, 1000),
    two_layers=(0.0015, 0.03, 40000),
)  # fmt: skip
PRESETS = {"as_run": AS_RUN, "as_printed": AS_PRINTED}
QUICK = dict(
    layers=6, units=200, low=(0.45, 0.2, 1500), intermediate=(1.3, 0.01, 500), high=(4.0, 1e-7, 500),
    default=(0.5, 0.05, 2000),
)  # fmt: skip
RUNS = ("low", "intermediate", "high", "two layers")
MERGING = ("0-3", "1-2")  # (0,0) and (1,1), (1,0) and (0,1): one target
NAMES = ("00 10", "00 01", "00 11", "10 01", "10 11", "01 11")
CHANCE = 1 / 8  # the loss of the best constant
RECORDS = 50
DEEP = 20  # hidden layers of the source; fewer merge less


def run(
    *, activation="relu", units=500, layers=20, low=(0.85, 0.03, 3000), intermediate=(1.25, 0.004, 1000),
    high=(2.0, 6e-9, 1000), two_layers=(0.0015, 0.06, 2000), default=(1.0, 0.005, 3000), seeds=2, seed=0,
) -> Result:  # fmt: skip
    """`low`, `intermediate`, `high` and `two_layers` are gain, rate and epochs of networks on exclusive or.

    `default` are those of the network on two points that κ is fitted to, leaky ReLU of as many `layers` and `units`.
    """
    units, layers, seeds = whole(units, "units"), whole(layers, "layers", least=2), whole(seeds, "seeds")
    draws = list(range(seed, seed + seeds))
    deep = nets.MLP((units,) * layers, activation, bias=True)
    single = nets.MLP((units,), "leaky_relu", bias=True)
    chosen = dict(zip(RUNS, (low, intermediate, high, two_layers), strict=True))
    setups = {name: _setup(single if name == RUNS[-1] else deep, *chosen[name]) for name in RUNS}
    gain, lr, epochs = default
    alone = row("default", gain=positive(gain, "gain"), lr=positive(lr, "lr"), units=units, layers=layers)
    setups["two points"] = two_point_setup(alone, epochs=whole(epochs, "epochs"))
    (pair,) = _pairs.each_alone([(setups["two points"], seed)])
    best = fit("TwoPoint", pair, layer=alone.index)
    found = {}
    for name in RUNS:
        index = 0 if name == RUNS[-1] else layers // 2
        runs = _pairs.each_alone((setups[name], draw) for draw in draws)
        found[name] = (
            [one["distance"][0, 0, index] for one in runs],
            [one["distance"][0, -1, index] for one in runs],
            [_pairs.foreseen(one, index, best.rates) for one in runs],
            [one["loss"][0] for one in runs],
            np.round(np.asarray(runs[0].times) / setups[name].rule.lr),
        )
    as_printed = activation == "leaky_relu" and tuple(low) == AS_PRINTED["low"]
    return Result(_labelled(found, best.kappa, draws, as_printed).assign_attrs(layers=layers), setups)


def _setup(net, gain, lr, epochs) -> Setup:
    rule, epochs = rules.GradientDescent(positive(lr, "lr")), whole(epochs, "epochs", least=RECORDS)
    return _pairs.evenly_recorded(tasks.xor(form="bits"), net, gain, rule, epochs, RECORDS)


def _labelled(found, kappa, draws, as_printed):
    import xarray

    start, end, foreseen, loss, epochs = (
        np.array([np.array(found[name][k], float) for name in RUNS]) for k in range(5)
    )
    axes = ("weights", "seed", "pair")
    return xarray.Dataset(
        {
            "start": (axes, np.sqrt(start)),
            "distance": (axes, np.sqrt(end)),
            "predicted": (axes, np.sqrt(foreseen)),
            "loss": (("weights", "seed", "record"), loss),
            "epoch": (("weights", "record"), epochs),
        },
        coords={"weights": list(RUNS), "seed": draws, "pair": ["0-1", "0-2", "0-3", "1-2", "1-3", "2-3"]},
        attrs={"kappa": kappa, "as_printed": int(as_printed)},
    )


def _r(data, weights) -> float:
    """Correlation of trained and predicted distances over pairs, mean over seeds."""
    one = data.sel(weights=weights)
    return float(
        np.mean([_pairs.correlation(a, b) for a, b in zip(one.distance.values, one.predicted.values, strict=True)])
    )


def _merged(data, weights):
    """Distances of the two pairs of one target over the mean of the others, (seed, pair)."""
    one = data.distance.sel(weights=weights)
    others = one.sel(pair=[pair for pair in data.pair.values if pair not in MERGING]).mean("pair")
    return one.sel(pair=list(MERGING)) / others


def claims(result: Result) -> list[Claim]:
    data = result.data
    printed = bool(data.attrs["as_printed"])
    stuck = "with the printed gain, rate and epochs it stays at the loss of a constant" if printed else ""
    last = data.loss.isel(record=-1)
    low, two = _merged(data, "low"), _merged(data, "two layers")
    moved = np.abs(data.distance / data.start - 1).sel(weights="high")
    level = data.predicted.sel(weights="low").max("pair") / data.distance.sel(weights="low").max("pair")
    found = [
        Claim.at_most(
            "From small weights it is learned: largest last loss", float(last.sel(weights="low").max()), 1e-2,
            source="paper", expected=not printed, reason=stuck,
        ),
        Claim.at_most(
            "… and pairs of one target merge: largest distance / mean of the others", float(low.max()),
            0.2 if data.attrs["layers"] >= DEEP else 0.5, source="paper", expected=not printed, reason=stuck,
        ),
        Claim.at_least(
            "… as the theory says, with κ of two points: r of distances over pairs", _r(data, "low"), 0.9,
            source="paper", fitted=True, expected=not printed, reason=stuck,
        ),
        Claim.at_most(
            "From large weights it is learned: largest last loss", float(last.sel(weights="high").max()), 1e-2,
            source="paper",
        ),
        Claim.at_most(
            "… and distances stay where they were: largest relative change", float(moved.max()), 0.05, source="paper",
        ),
        Claim.at_least("… as the theory says: r", _r(data, "high"), 0.99, source="paper", fitted=True),
        Claim.at_most(
            "From weights of intermediate size it is learned: largest last loss",
            float(last.sel(weights="intermediate").max()), 1e-2, source="paper",
        ),
        Claim.at_least(
            "… and they are between: r of the theory", _r(data, "intermediate"), 0.5, source="paper", fitted=True,
        ),
        Claim.at_most(
            "With one hidden layer (0,0) and (1,1) merge: distance / mean of the others",
            float(two.sel(pair=MERGING[0]).max()), 0.35, source="paper",
        ),
        Claim.at_least(
            "… and (1,0) and (0,1) do not", float(two.sel(pair=MERGING[1]).min()), 1.0, source="paper",
        ),
        Claim.at_most(
            "… which the theory does not see: its r", _r(data, "two layers"), 0.6, source="paper", fitted=True
        ),
    ]  # fmt: skip
    if not printed:
        found.append(
            Claim.between(
                "The level of the theory, largest distance / that of training, small weights", float(level.mean()),
                0.6, 1.7, fitted=True,
            )
        )  # fmt: skip
    return found


def figure(result: Result):
    data = result.data
    sheet, ((low, middle, high), (two, losses, table)) = new_figure(2, 3)
    where = np.arange(data.sizes["pair"])
    for axes, name in ((low, "low"), (middle, "intermediate"), (high, "high"), (two, "two layers")):
        one = data.sel(weights=name)
        for number, draw in enumerate(one.seed.values):
            begun, ended, foreseen = (one[key].sel(seed=draw) for key in ("start", "distance", "predicted"))
            shift = 0.12 * (number - (data.sizes["seed"] - 1) / 2)
            first = number == 0
            axes.plot(where + shift, begun, ".", color="0.6", ms=5, label="at first" if first else None)
            axes.plot(where + shift, ended, "o", color=COLOURS[0], ms=7, alpha=0.6, mec="none",
                      label="trained" if first else None)  # fmt: skip
            axes.plot(where + shift, foreseen, "_", color=COLOURS[1], ms=11, mew=2, label="theory" if first else None)
        kind = "one hidden layer, small weights" if name == "two layers" else f"{name} weights"
        axes.set_title(f"{kind}: r = {_r(data, name):.2f}")
        axes.set_xticks(where, NAMES)
        axes.set(ylabel="distance in the layer", ylim=(0, None))
        for pair in MERGING:
            axes.axvspan(*(list(data.pair.values).index(pair) + np.array([-0.5, 0.5])), color="0.94", zorder=0)
    low.legend(loc="best")
    for number, name in enumerate(data.weights.values):
        one = data.sel(weights=name)
        for draw in range(data.sizes["seed"]):
            done = one.epoch / one.epoch[-1]
            label = f"{name}, {int(one.epoch[-1])} epochs" if draw == 0 else None
            losses.semilogy(
                done, one.loss[draw].where(one.loss[draw] > 1e-9), color=COLOURS[number], lw=1.4, label=label
            )
    losses.axhline(CHANCE, color="0.5", lw=1.2, ls=":")
    losses.set(xlabel="epochs / all epochs", ylabel="loss", title="loss; dotted: the best constant", ylim=(1e-14, None))
    losses.legend(loc="lower left")
    _draw_task(table)
    return sheet


def _draw_task(axes) -> None:
    """The four points, shaded by target."""
    for (x, y), target in zip(((0, 0), (1, 0), (0, 1), (1, 1)), (0, 1, 1, 0), strict=True):
        axes.plot(x, y, "o", ms=22, color=COLOURS[4 if target else 5])
        axes.text(x, y, str(target), ha="center", va="center")
    axes.set(xlim=(-0.5, 1.5), ylim=(-0.5, 1.5), aspect="equal", xlabel="first input", ylabel="second input")
    axes.set(xticks=[0, 1], yticks=[0, 1], title="the task")
