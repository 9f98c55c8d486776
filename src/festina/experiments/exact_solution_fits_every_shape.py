"""One closed form gives the map of a λ-balanced two-layer linear network at every time, whatever the network's shape.

The layers are balanced, W₂ᵀW₂ − W₁W₁ᵀ = λI, and the inputs are white. The closed form is compared with gradient descent
in networks with as many, more or fewer inputs than outputs, with a bottleneck, and with a wide hidden layer: the gap
closes at first order in the learning rate. Published statements ask for N_h = min(N_i, N_o), numbers of hidden units,
inputs and outputs; this is not needed. The gap grows in proportion to |λ| × learning rate, since large layers learn
fast. White inputs of any variance κ have the same solution at another speed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import BadInput, solve
from .._figures.overlay import colours_of, overlay
from .._figures.panels import key, mark, panels
from .._figures.style import GREY
from .._formulas.curves import order
from ._kit.balanced_starts import (
    ALL_SHAPES,
    BalancedNetworks,
    Shapes,
    by_rate,
    contrasts,
    loss_of,
    named,
    possible,
    slow_balance,
)
from ._kit.labelled import labelled, stack, table
from ._kit.parameters import AtLeast, Numbers, Positive, Positives, Seed, checked
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

    from .. import Setup, Trajectory

THEME, PLACE = "regimes", 2
REFERENCE = {"saxe_slides": "eqs. 13-15", "domine2025": "theorem 4.3", "braun2022": "theorem 3.1 and figure 2"}
QUICK = dict(shapes=((4, 4, 4), (6, 3, 3)), lr=0.02, points=120)
CAPTION = """
**a**, **b**, **c** Loss of networks of different shapes, relative to its initial value, at three balances λ. The colour
is the shape: numbers of inputs, hidden units and outputs. A positive λ means that the second layer is the larger one. A
shape that cannot be balanced at a λ is missing there, and where only the smaller layer learns, curves of shapes with as
many modes coincide. A bottleneck cannot learn all modes, so that its loss stays above 0. The theory is the closed form,
with nothing fitted. **d** Largest gap between the map in training and in theory, over all times and entries, relative
to the largest singular value of the target; the mark is λ. The dotted line is proportional to the learning rate.
"""
ALT = """
In three panels the dashed theory lies on the loss in training, which falls from 1 to 0, or to a plateau. In the fourth,
the gaps of all networks fall parallel to a line proportional to the learning rate.
"""
LARGER = {-1: "the first layer is larger", 0: "equal layers", 1: "the second layer is larger"}


@checked
def run(
    *,
    shapes: Shapes = ALL_SHAPES,
    lams: Numbers = (-5.0, 0.0, 5.0),
    steep: Positives = (2.5, 5.0, 10.0, 20.0),
    kappa: Positive = 0.5,
    strongest: Positive = 2.0,
    weakest: Positive = 1.0,
    scale: Positive = 0.2,
    until: Positive = 12.0,
    lr: Positive = 0.01,
    points: Annotated[int, AtLeast(20)] = 300,
    seed: Seed = 0,
) -> Result:
    """Networks of all `shapes`, (inputs, hidden units, outputs), at all `lams`; a square one at the `steep` λ, too.

    `kappa` is the variance of inputs in one further run. Singular values of the target are spaced evenly from
    `strongest` to `weakest`.
    """
    if min(lams) >= 0 or max(lams) <= 0:
        raise BadInput(f"lams = {list(lams)}", "one below 0 and one above", "add the missing one")
    networks = BalancedNetworks(scale, (strongest, weakest), until, lr, points, seed)
    square, uneven = contrasts(shapes)
    delayed = slow_balance(uneven, lams)
    setups, theories, of_shapes = {}, {}, {}
    for shape in shapes:
        of_lams = {}
        for lam in filter(partial(possible, shape), lams):
            setups[named(shape)] = networks.setup(shape, lam)
            theories[named(shape)], of_lams[lam] = _compared(setups[named(shape)])
        of_shapes[named(shape)] = stack(of_lams, "lam").reindex(lam=list(lams))
    label = f"{named(uneven)}, λ = {delayed:g}, κ = {kappa:g}"
    setups[label] = networks.setup(uneven, delayed, kappa=kappa)
    theories[label], scaled = _compared(setups[label])
    of_steep = stack({lam: _compared(networks.setup(square, lam))[1].gap for lam in steep}, "steep_lam")
    data = stack(of_shapes, "shape").assign(scaled_order=scaled.order[-1], steep_gap=of_steep)
    return Result(data.assign_attrs(kappa=kappa, strongest=strongest), setups, theories)


def _compared(setup: Setup) -> tuple[Trajectory, Dataset]:
    """The theory, and its loss beside that of training at the smallest rate, with the gap of the maps at each rate."""
    theory, training = solve(setup, "BalancedRiccati"), by_rate(setup)
    exact = labelled(theory, "map")
    gap = abs(training - exact).max([axis for axis in training.dims if axis != "rate"])
    losses = {"theory": loss_of(exact, setup), "training": loss_of(training.isel(rate=-1, drop=True), setup)}
    return theory, xarray.Dataset({"gap": gap, "order": table(order(gap.values), "halving"), **losses})


def claims(result: Result) -> list[Claim]:
    data = result.data
    orders, steep = data.order.isel(halving=-1), data.steep_gap.isel(rate=-1)
    growth = np.log(steep[-1] / steep[-2]) / np.log(data.steep_lam[-1] / data.steep_lam[-2])
    return [
        paper(
            "Closed form against training, every shape and λ: largest gap of the map / largest singular value",
            at_most(data.gap.isel(rate=-1).max() / data.attrs["strongest"], 0.02),
            headline=True,
            panel="d",
        ),
        ours(
            "Gap between descent and the closed form: order in the learning rate, smallest over shapes and λ",
            at_least(orders.min(), 0.9),
            headline=True,
            panel="d",
        ),
        ours(
            "Gap between descent and the closed form: order in the learning rate, largest over shapes and λ",
            at_most(orders.max(), 1.1),
            panel="d",
        ),
        ours(
            f"White inputs of variance {data.attrs['kappa']:g}: order of the gap in the learning rate",
            between(data.scaled_order, 0.9, 1.1),
        ),
        ours(
            "Gap between descent and the closed form: its exponent in |λ|, between the two largest λ",
            between(growth, 0.8, 1.2),
        ),
    ]


def figure(result: Result) -> Figure:
    from matplotlib.lines import Line2D

    data = result.data
    sheet, at = panels("ab;cd")
    colours = colours_of(list(data["shape"].values))
    lams = sorted({float(lam) for lam in (data.lam.min(), min(data.lam, key=abs), data.lam.max())})
    for letter, lam in zip("abc", lams, strict=False):
        curves = data.sel(lam=lam).isel(time=slice(1, None))
        first = data.theory.sel(lam=lam).isel(time=0)
        overlay(at[letter], curves.training / first, curves.theory / first, by="shape", colours=colours)
        title = f"{_balance(lam)}: {LARGER[int(np.sign(lam))]}"
        at[letter].set(title=title, ylabel="loss / initial loss", xscale="log", ylim=(-0.05, 1.1))
    gaps, marks = data.gap / data.attrs["strongest"], dict(zip(lams, "vos", strict=False))
    for shape, colour in colours.items():
        for lam, marker in marks.items():
            at["d"].loglog(data.rate, gaps.sel(shape=shape, lam=lam), marker, color=colour, ms=6, mfc="none", mew=1.3)
    at["d"].loglog(data.rate, 1.5 * float(gaps.max()) * data.rate / data.rate[0], ":", color=GREY)
    decades = np.floor(np.log10(gaps.min())), np.ceil(np.log10(1.5 * gaps.max()))
    at["d"].set(title="Descent tends to the closed form", xlabel="learning rate", ylabel="relative gap of the map")
    at["d"].set_ylim(*(10.0 ** float(power) for power in decades))
    at["d"].set_xticks(data.rate.values, [f"{rate:g}" for rate in data.rate.values])
    at["d"].minorticks_off()
    signs = [mark(_balance(lam), marker, colour=GREY, mfc="none") for lam, marker in marks.items()]
    key(sheet, colours, marks=[*signs, Line2D([], [], color=GREY, ls=":", label="∝ learning rate")])
    return sheet


def _balance(lam: float) -> str:
    return f"λ = {lam:g}".replace("-", "−")
