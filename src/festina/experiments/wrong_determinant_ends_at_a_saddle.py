"""Under gradient flow a balanced square linear network whose map starts with the wrong sign of the determinant never
learns its last mode.

If the layers of a square two-layer linear network are balanced with λ = 0, gradient flow cannot change the sign of the
determinant of its map. With the wrong sign it ends at a saddle, where the mode of the smallest singular value s is
missing and the loss is s²/2. Gradient descent has finite steps and is not quite balanced, by an amount in proportion to
its learning rate, and so it escapes: later by ln 2 / s for every halving of the rate. Networks with λ ≠ 0 do not stay
at the saddle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import solve
from .._figures.overlay import overlay
from .._figures.panels import border, key, panels
from .._figures.style import COLOURS, DASHES, INK, THIN
from ._kit.balanced_starts import BalancedNetworks, by_rate, loss_of
from ._kit.labelled import labelled, stack, time_at
from ._kit.parameters import AtLeast, Count, Positive, Seed, checked
from .base import Claim, Result, at_most, between, ours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEME, PLACE = "saddles", 2
REFERENCE = {"braun2022": "theorem 3.1", "domine2025": "theorem 4.3"}
QUICK = dict(lr=0.02, points=120)
CAPTION = """
**a** Loss of a square two-layer linear network with balanced layers, λ = 0, that starts with the wrong sign of the
determinant, in training at three learning rates. The theory, which is gradient flow and the same for all of them, stays
at the saddle. The horizontal line is the loss s²/2 of a network that lacks the mode of the smallest singular value s.
**b** The same in theory for three balances λ: only λ = 0 stays; curves of opposite λ coincide. **c** The time at which
the loss has fallen to half of s²/2, for each learning rate (lr); the dashed line has the predicted slope, ln 2 / s for
every halving, and passes through the point of the smallest rate.
"""
ALT = """
Losses fall to a plateau, on which the dashed theory remains; training leaves it, the later the smaller the learning
rate, by equal delays. For λ of either sign there is no plateau at this height.
"""
RATE_COLOURS, LAM_COLOURS = COLOURS[:3], (COLOURS[3], INK, COLOURS[3])


@checked
def run(
    *,
    units: Count = 4,
    lam: Positive = 5.0,
    strongest: Positive = 2.0,
    weakest: Positive = 1.0,
    scale: Positive = 0.2,
    until: Positive = 12.0,
    longer: Positive = 4.0,
    lr: Positive = 0.01,
    points: Annotated[int, AtLeast(20)] = 300,
    seed: Seed = 0,
) -> Result:
    """A network of `units` inputs, hidden units and outputs, with λ = 0 and ±`lam`.

    The network with λ = 0 is followed for `longer` × `until`. Singular values of the target are spaced evenly from
    `strongest` to `weakest`; those of the starting map are all `scale`.
    """
    networks = BalancedNetworks(scale, (strongest, weakest), until, lr, points, seed)
    shape = (units, units, units)
    setups = {balance: networks.setup(shape, balance, wrong_sign=True) for balance in (-lam, 0.0, lam)}
    theories = {balance: solve(setup, "BalancedRiccati") for balance, setup in setups.items()}
    short = {balance: loss_of(labelled(theory, "map"), setups[balance]) for balance, theory in theories.items()}
    stuck = setups[0.0].replace(times=longer * setups[0.0].times)
    theory = solve(stuck, "BalancedRiccati")
    maps = by_rate(stuck)
    training = stack({rate: loss_of(maps.sel(rate=rate), stuck) for rate in maps.rate.values}, "rate")
    escape = time_at(training, weakest**2 / 4, falling=True)
    data = xarray.Dataset(
        {
            "theory": loss_of(labelled(theory, "map"), stuck),
            "training": training,
            "escape": escape,
            "predicted_escape": escape[-1] - np.log(training.rate / training.rate[-1]) / weakest,
            "balanced": stack(short, "lam").rename(time="short_time"),
        },
        attrs={"weakest": weakest, "saddle": weakest**2 / 2},
    )
    label = f"{units}-{units}-{units}, λ = 0, wrong sign"
    return Result(data, {label: stuck}, {label: theory})


def claims(result: Result) -> list[Claim]:
    data = result.data
    weakest, saddle = data.attrs["weakest"], data.attrs["saddle"]
    delay = data.escape.diff("rate") / (np.log(2) / weakest)
    free = data.balanced.isel(short_time=-1, lam=[0, -1])
    return [
        ours(
            "Gradient flow, λ = 0 and wrong determinant: relative gap of the final loss from s²/2 of the weakest mode",
            at_most(abs(data.theory[-1] / saddle - 1), 1e-4),
            headline=True,
            panel="a",
        ),
        ours(
            "Gradient descent leaves the saddle later at half the learning rate: delay over ln 2 / s",
            between(delay[-1], 0.85, 1.15),
            panel="c",
        ),
        ours(
            f"Networks with λ = ±{float(data.lam[-1]):g} and the wrong determinant learn: largest final loss / (s²/2)",
            at_most(free.max() / saddle, 1e-4),
            panel="b",
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("aa;bc")
    saddle = data.attrs["saddle"]
    rates = {f"lr = {float(rate):g}": colour for rate, colour in zip(data.rate, RATE_COLOURS, strict=True)}
    lams = {"λ = 0": LAM_COLOURS[1], f"λ = ±{float(data.lam[-1]):g}": LAM_COLOURS[0]}
    for rate, colour in zip(data.rate, RATE_COLOURS, strict=True):
        overlay(at["a"], data.training.sel(rate=rate), colours=colour)
    overlay(at["a"], theory=data.theory, colours=INK)
    last = min(1.3 * float(data.escape.max()), float(data.time[-1]))
    at["a"].set(title="λ = 0: gradient flow stays at a saddle, descent leaves it", xlim=(0, last))
    curves = data.balanced.rename(short_time="time").isel(time=slice(1, None))
    overlay(at["b"], theory=curves, by="lam", colours=LAM_COLOURS)
    at["b"].set(title="λ ≠ 0: gradient flow learns the task", xscale="log")
    key(sheet, rates | lams)
    for letter in "ab":
        at[letter].set(yscale="log", ylim=(1e-3 * saddle, 2 * float(data.theory[0])))
        border(at[letter], saddle, across=True)
    for rate, colour in zip(data.rate, RATE_COLOURS, strict=True):
        at["c"].plot(rate, data.escape.sel(rate=rate), "o", color=colour, ms=7)
    at["c"].plot(data.rate, data.predicted_escape, color=INK, lw=THIN, ls=DASHES)
    at["c"].set(
        title="Escape is later at smaller rates", xlabel="learning rate", ylabel="time of escape (τ)", xscale="log"
    )
    at["c"].set_xticks(data.rate.values, [f"{rate:g}" for rate in data.rate.values])
    at["c"].minorticks_off()
    return sheet
