"""From small weights a network waits on a plateau before two points part, and from large ones it learns at once.

Two points are learned by networks of 20 layers that differ in the gain of their weights. The mean of the outputs comes
first; then, from small weights, both outputs rest at the mean of the targets, where the loss is Y/8, until the points
part. The larger the gain, the shorter the wait, and at 1.3 there is none. Beside it are the two rates of the theory,
and a third for the mean of the outputs in the loss, fitted to each run: they describe H and P up to a gain of 1.1.
From larger weights the distance in the layer starts large and turns, the fit breaks down, and says so.

Nothing is fitted to a linear network of two layers on opposite points. There the closed form of the theory is exact,
training tends to it at first order in the learning rate, and the wait grows as 2 ln(1/H₀)/√(XY), in units of τ.

**What does not reproduce.** That two rates describe w at the smallest weights, too: deep networks wait longer and then
drop more steeply than the theory can, and R² of w is about 0.7 at a gain of 0.9. With the printed data, dx = 0.5 and
dy = 1, this is so at every gain up to 1.1, for H as well; the figures are those of dx² = 1 and dy² = 0.5, the values
here.

Two gains of the settings as run are not printed, and are trained where `more` names them. From three starts of 500
units "gain 1.2" learns after 1400 to 1960 epochs, a twentieth of which are near Y/8, and "gain 1.6", at a rate of
1.5·10⁻⁶, not within 6000: the loss comes down to 0.011 to 0.025.
"""

from __future__ import annotations

import numpy as np

from .. import inits, nets, rules, tasks
from .._errors import UnknownName
from .._noun import positive, whole
from .._plot import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from .._solve import solve
from ._fitted_rows import draw_curves, draw_fits, draw_loss, trained_and_fitted
from ._two_points import WIDE, row

REFERENCE = {"vanrossem2024": "figure 3 and section 3.2"}
PRESETS = {"as_run": dict(data="as_run"), "as_printed": dict(data="as_printed")}
QUICK = dict(units=50, seeds=2, every=40, lr=0.04)
GAINS = ("low", "default", "intermediate", "high", "very high")  # rows of table 1
SMALL = GAINS[:3]
NOT_PRINTED_GAINS = ("gain 1.2", "gain 1.6")  # rows of the settings as run beside those of the table


def run(
    *, units=500, data="as_run", epochs=6000, every=20, seeds=1, starts=(1e-2, 1e-3, 1e-4, 1e-5, 1e-6), lr=0.02,
    more=(), seed=0,
) -> Result:  # fmt: skip
    """`units` of each of 20 layers; `data` is "as_run" or "as_printed"; `more` are of "gain 1.2" and "gain 1.6".

    `starts` are first squared distances, over that of the inputs, in a linear network of two layers; `lr` its rate.
    """
    units, seeds, lr = whole(units, "units"), whole(seeds, "seeds"), positive(lr, "lr")
    epochs, every = whole(epochs, "epochs"), whole(every, "every")
    more = (more,) if isinstance(more, str) else tuple(more)
    for name in more:
        if name not in NOT_PRINTED_GAINS:
            raise UnknownName.among("gain that is not printed", name, NOT_PRINTED_GAINS)
    rows = {name: row(name, units=units) for name in (*GAINS, *more)}
    rows = dict(sorted(rows.items(), key=lambda item: item[1].gain))
    draws = range(seed, seed + seeds)
    found, setups = trained_and_fitted(rows, draws, data=data, epochs=epochs, every=every)
    linear, theories = _two_layers(starts, lr, found.attrs, seed)
    setups |= {f"two layers, start {start:g}": setup for start, setup in linear.pop("setups").items()}
    found = found.assign(linear).assign_coords(start=list(starts))
    return Result(found.assign_attrs(chosen=data, units=units), setups, theories)


def _two_layers(starts, lr, gaps, seed):
    """A linear network of two layers on opposite points, trained and in closed form: nothing is fitted."""
    dx, dy = np.sqrt(gaps["input_gap"]), np.sqrt(gaps["target_gap"])
    task = tasks.from_arrays([[-dx / 2], [dx / 2]], [[-dy / 2], [dy / 2]])
    until = 2 / (dx * dy) * (np.log(1 / min(starts)) + 8)
    times = np.round(np.linspace(0, until, 201) / lr) * lr
    setups = {
        start: Setup(task, nets.DeepLinear(1), inits.Aligned(start), rules.GradientDescent(lr), times=times)
        for start in starts
    }
    exact = {start: solve(setup, "TwoPoint", observe=["loss", "distance"]) for start, setup in setups.items()}
    rates = (lr, lr / 2, lr / 4)
    losses = np.stack(
        [
            [simulate(s.replace(rule=rules.GradientDescent(rate)), [seed], "loss")["loss"][0] for s in setups.values()]
            for rate in rates
        ]
    )
    return {
        "linear_training": (("lr", "start", "time"), losses),
        "linear_theory": (("start", "time"), np.stack([one["loss"] for one in exact.values()])),
        "time": times,
        "lr": list(rates),
        "setups": setups,
    }, {f"two layers, start {min(starts):g}": exact[min(starts)]}


def _waiting(data):
    """The share of epochs, until a network has learned or of all, with a loss near Y/8; (network, seed)."""
    return data.plateau / data.learned.fillna(float(data.epoch[-1]))


def _half_times(losses, times):
    """Times at which the loss has fallen to half of its first value; (…, time) → (…)."""
    found = [np.interp(-0.5 * one[0], -one, times) for one in losses.reshape(-1, losses.shape[-1])]
    return np.reshape(found, losses.shape[:-1])


def claims(result: Result) -> list[Claim]:
    data = result.data
    as_run = data.attrs["chosen"] == "as_run"
    unlike = "" if as_run else "with the printed data deep networks wait so long that two rates do not describe them"
    late = "" if as_run else "with the printed data small weights are still on their plateau"
    waiting = _waiting(data).median("seed").sel(network=list(GAINS)).values
    learned = np.isfinite(data.learned.sel(network=list(GAINS)))
    low, r2 = data.sel(network="low"), data.r2.median("seed")
    X, Y = data.attrs["input_gap"], data.attrs["target_gap"]
    end = low.learned.fillna(float(data.epoch[-1]))
    resting = low.loss.where((low.epoch > end / 4) & (low.epoch < end / 2)).median("epoch") / (Y / 8)
    halves = _half_times(data.linear_training.values, data.time.values)
    known = _half_times(data.linear_theory.values, data.time.values)
    errors = np.abs(data.linear_training - data.linear_theory).max(("start", "time")).values
    slope = np.polyfit(np.log(1 / data.start.values), halves[-1], 1)[0] * np.sqrt(X * Y) / 2
    found = [
        Claim.at_least(
            "From small weights, gain 0.9, the loss waits within a tenth of Y/8: share of the epochs until it is below "
            "0.001", waiting[0], 0.5, source="paper",
        ),
        Claim.between("… and that is where it rests: median loss there / (Y/8)", float(resting.median()), 0.9, 1.05),
        Claim.at_most("From the largest, gain 1.4, there is no plateau: the same share", waiting[-1], 0.15,
                      source="paper"),
        Claim.at_least(
            f"All this within {int(data.epoch[-1])} epochs: share of runs that learn",
            float(learned.mean()), 0.8, source="paper", expected=as_run, reason=late,
        ),
        Claim.at_least(
            "Gains up to 1.1: two rates describe H and P, smallest R²",
            float(r2.sel(network=list(SMALL), curve=["H", "P"]).min()), 0.9, source="paper", fitted=True,
            expected=as_run, reason=unlike,
        ),
        Claim.at_least(
            "… and w: smallest R² (gain 0.9)",
            float(r2.sel(network=list(SMALL), curve="w").min()), 0.9, source="paper", fitted=True,
            expected=False, reason="the longer the plateau, the steeper the drop, and deep networks drop more steeply",
        ),
        Claim.at_least(
            "… and a third rate the loss: smallest R²",
            float(data.r2_loss.median("seed").sel(network=list(SMALL)).min()), 0.95, source="paper", fitted=True,
        ),
        Claim.at_most(
            "From large weights the theory breaks down: R² of H at gain 1.4",
            float(r2.sel(network=GAINS[-1], curve="H")), 0.5, source="paper", fitted=True,
        ),
        Claim.at_most(
            "… and the fit says so itself: share of runs that nothing speaks against",
            float(data.applies.sel(network=GAINS[-1]).mean()), 0.0, fitted=True,
        ),
        Claim.between(
            "Two linear layers, nothing fitted: time to half of the loss grows as 2 ln(1/H₀)/√(XY), slope over that",
            float(slope), 0.97, 1.03,
        ),
        Claim.at_most(
            "… as the closed form says: largest relative gap of these times at the finest rate",
            float(np.abs(halves[-1] / known - 1).max()), 0.01,
        ),
        Claim.between(
            "… to which training tends at first order in the learning rate: order",
            float(np.log2(errors[-2] / errors[-1])), 0.9, 1.1,
        ),
    ]  # fmt: skip
    if as_run:
        found.append(
            Claim.at_most(
                "From 0.9 to 1.3 the wait is shorter with every gain: largest ratio of neighbours' shares",
                float((waiting[1:4] / waiting[:3]).max()), 0.9, source="paper",
            )
        )  # fmt: skip
    return found + (_of_not_printed(data) if as_run and data.attrs["units"] >= WIDE else [])


def _of_not_printed(data) -> list[Claim]:
    """Of wide networks: narrow ones vary more, and some of them learn at 1.6, too."""
    found, waiting, wanted = [], _waiting(data).median("seed"), int(data.epoch[-1])
    if "gain 1.2" in data.network:
        ratio = float(waiting.sel(network="gain 1.2") / waiting.sel(network="intermediate"))
        found.append(Claim.at_most("At 1.2, not printed, the wait is shorter than at 1.1: ratio of shares", ratio, 0.9))
    if "gain 1.6" in data.network and wanted <= 6000:
        share = float(np.isfinite(data.learned.sel(network="gain 1.6")).mean())
        found.append(Claim.at_most(f"At 1.6, not printed, nothing is learned in {wanted} epochs: share", share, 0.0))
    return found


def figure(result: Result):
    data = result.data
    Y = data.attrs["target_gap"]
    names = [str(name) for name in data.network.values]
    sheet, grid = new_figure(4, len(names), width=3.4, height=2.6)
    space = grid[0, 0].get_gridspec()
    space.set_height_ratios([1, 1, 1, 0.7])
    for curves, losses, name in zip(*grid[:2], names, strict=True):
        one = data.sel(network=name)
        draw_curves(curves, one)
        draw_loss(losses, one, Y)
        curves.set_title(f"gain {float(one.gain):g}")
        losses.set_title(f"gain {float(one.gain):g}: loss")
    grid[0, 0].legend(loc="upper left", fontsize=8)
    legend_of_kinds(grid[1, 0], loc="upper right")
    for axes in grid[2:].ravel():
        axes.remove()
    linear, times, shares = (
        sheet.add_subplot(space[2, columns]) for columns in (slice(2), slice(2, 4), slice(4, None))
    )
    waiting = _waiting(data)
    shares.plot(data.gain, waiting.transpose("network", "seed"), "o", color=COLOURS[0], ms=4)
    shares.plot(data.gain, waiting.median("seed"), color=COLOURS[0], lw=1)
    shares.set(xlabel="gain of the weights", ylabel="share of epochs", title="how long the loss is near Y/8",
               ylim=(0, 1))  # fmt: skip
    for colour, start in zip(COLOURS, data.start.values, strict=False):
        one = data.sel(start=start)
        trained(linear, data.time, one.linear_training[-1] / (Y / 8), colour=colour)
        predicted(linear, data.time, one.linear_theory / (Y / 8), colour=colour)
    linear.set(xlabel=TIME, ylabel="loss / (Y/8)", title="two linear layers, nothing fitted")
    halves = _half_times(data.linear_training.values, data.time.values)[-1]
    known = _half_times(data.linear_theory.values, data.time.values)
    times.semilogx(data.start, halves, "o", color=COLOURS[0], label="training")
    times.semilogx(data.start, known, color="0.2", lw=1.3, ls=(0, (4, 2)), label="theory")
    times.set(xlabel="first H / X", ylabel="time to half of the loss (τ)", title="waiting grows as ln(1/H₀)")
    times.legend()
    gains = [f"gain {gain:g}" for gain in data.gain.values]
    draw_fits(sheet.add_subplot(space[3, :]), data, gains, "fitted: rates per epoch, medians over seeds")
    return sheet
