"""In a deep network only the middle layer ends at the distance of the two-point theory; other layers follow a law of
depth.

The two-point theory splits a network into an encoder, the layers below a hidden layer, and a decoder, those above, and
gives the same final distance for every hidden layer: √(κXY), where X and Y are the squared distances of two inputs and
of their targets. In a balanced chain of L matrices, l of them in the encoder, the squared distance H of the two points
in the layer tends instead to

    H∞ = X^(1 − l/L) Y^(l/L).

The two agree at l = L/2. The same is true of the conserved quantity of the theory, in which P/H, with P the squared
distance of the outputs, is a straight line against H: this holds in the middle layer, and elsewhere P/H is a power
(L − l)/l of H. The law of depth has no free number. It is exact for balanced chains. From random weights it is
approached as they become small, with an error that falls as their square. In networks with biases, and for points that
are not opposite, it only tells which layers keep the distances of the inputs and which have those of the targets: a
network that also has to learn its mean output is not a balanced chain.

**What does not reproduce.** The final distance of the theory does not hold for every layer. Measured as exponents of
|dx| and |dy|, the distances of inputs and targets, which the theory predicts to be 1 and 1, it fails everywhere but
near the middle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from .. import Setup, inits, nets, rules
from .._figures.overlay import overlay
from .._figures.panels import border, key, mark, panels
from .._figures.style import COLOURS, INK, predicted, trained
from .._formulas.curves import order
from ..theories.two_point import depth_law
from ._kit.depth_law import SHARE, Training, X, Y, by_gaps, chain_by_layer, on_two_points, opposite
from ._kit.labelled import labelled, largest, prefixed, stack, table
from ._kit.parameters import AtLeast, Count, Positive, Seed, checked
from ._kit.table_of_networks import row
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataArray

THEME, PLACE = "pairs", 6
REFERENCE = {"vanrossem2024": "sections 4.1 and 5, equations 10 and 24"}
QUICK = dict(
    depth=6, layers=5, gain=0.6, lr=0.03, epochs=3000, shallow_units=50, shallow_lr=0.03, shallow_epochs=4000, draws=4
)
CAPTION = """
Two points are learned; H is their squared distance in the hidden layer behind l of L matrices, P that of the outputs, X
of the inputs, Y of the targets. **a** Final H in a balanced linear chain, with the law of depth X^(1−l/L) Y^(l/L). The
horizontal line is √(XY), which the two-point theory gives for every layer. **b** P/H against H in the three layers
whose dots in a have the same colour. The two-point theory predicts straight lines; dashed are powers (L − l)/l of H.
**c** Largest relative error of the law of depth over the layers of linear chains from small random weights, a dot for
each seed; the dashed line falls as the square of the scale. **d** Exponents of the distances |dx| of the inputs and
|dy| of the targets in the final H of networks with biases: linear (lines) and two hidden layers of leaky ReLU units
(circles). The two-point theory predicts 1 for both (horizontal line). Only the exponents are fitted, by least squares.
"""
ALT = """
Final distances lie on the law of depth and cross the horizontal line of the two-point theory at half of the depth. P/H
is a straight line in the middle layer and curved in the others. Errors fall on a line of slope 2. The exponent of |dx|
falls with depth and that of |dy| rises; they cross near the middle.
"""
SHORT, WIDTH = 4, 16  # matrices and hidden units of the chains that start at random
SCALES = (0.1, 0.05, 0.025, 0.0125)


@checked
def run(
    *,
    depth: Annotated[int, AtLeast(4)] = 8,
    begin: Positive = 0.3,
    draws: Count = 8,
    layers: Annotated[int, AtLeast(3)] = 20,
    units: Count = 50,
    gain: Positive = 0.85,
    lr: Positive = 0.005,
    epochs: Count = 4000,
    shallow_units: Count = 500,
    shallow_lr: Positive = 0.02,
    shallow_epochs: Count = 6000,
    seed: Seed = 0,
) -> Result:
    """`depth` is that of a balanced chain whose weights begin at `begin`; `draws` random chains are trained per scale.

    `layers`, `units`, `gain` and `lr` are those of a deep linear network with biases. The leaky ReLU network of two
    hidden layers has `shallow_units`, and a rate of its own.
    """
    weights, until = inits.Aligned(begin**depth), 3 / begin ** (depth - 2)
    one_wide, descent = nets.DeepLinear((1,) * (depth - 1)), rules.GradientDescent(0.05)
    chain = Setup(opposite(), one_wide, weights, descent, until=until, every=5)
    wide, descent = nets.DeepLinear((WIDTH,) * (SHORT - 1)), rules.GradientDescent(0.1)
    random = {
        scale: Setup(opposite(), wide, inits.SmallRandom(scale), descent, times=[60 + 0.5 / scale**2])
        for scale in SCALES
    }
    seeds = range(seed, seed + draws)
    ends = {s: labelled(simulate(setup, seeds, "distance"), "distance") for s, setup in random.items()}
    ends = stack({scale: end.isel(time=-1, pair=0, drop=True) for scale, end in ends.items()}, "scale")
    gaps = ends / table(depth_law(X, Y, np.arange(SHORT - 1), SHORT), "layer") - 1
    shallow = row("shallow", units=shallow_units)
    trainings = {
        "linear": Training(nets.MLP((units,) * layers, "linear", bias=True), gain, lr, epochs),
        "leaky": Training(shallow.net(), shallow.gain, shallow_lr, shallow_epochs),
    }
    data = chain_by_layer(chain, seed).assign(error=abs(gaps).max("layer"))
    for name, training in trainings.items():
        exponents = by_gaps(training, seed)
        share = (exponents.layer + 1) / (exponents.sizes["layer"] + 1)
        exponents["law"] = stack({"dx": 2 * (1 - share), "dy": 2 * share}, "gap")
        exponents = exponents.assign_coords(layer=share.assign_attrs(SHARE)).rename(layer=f"{name}_share")
        data = data.assign(prefixed(exponents, name))
    setups = {"balanced chain": chain, "random chain": random[SCALES[0]]}
    setups |= {f"{name} network": on_two_points(training, 1.0, 1.0) for name, training in trainings.items()}
    return Result(data, setups)


def _off(exponents: DataArray, expected: float | DataArray) -> float:
    """Root of the mean squared deviation of measured exponents."""
    return float(np.sqrt(((exponents - expected) ** 2).mean()))


def claims(result: Result) -> list[Claim]:
    data = result.data
    error = data.error.median("seed").values
    straight, middle = data.straightness.values, data.sizes["share"] // 2
    linear, leaky = data.linear_exponent, data.leaky_exponent
    of_leaky = leaky.diff("leaky_share").isel(leaky_share=0)
    return [
        ours(
            "Balanced chain: largest relative gap of the final H from X^(1−l/L) Y^(l/L) over layers",
            at_most(largest(data.final / data.final_law - 1), 1e-6),
            headline=True,
            panel="a",
        ),
        paper(
            "Deep linear network: largest gap from 1 of the exponents of |dx| and |dy| in the final H, over layers",
            at_most(largest(linear - 1), 0.3),
            fails="lower layers keep the distances of inputs, upper ones have those of targets",
            headline=True,
            panel="d",
        ),
        ours(
            "Small random weights: order in their scale of the error of the law of depth, X^(1−l/L) Y^(l/L)",
            between(order(error)[-1], 1.8, 2.2),
            panel="c",
        ),
        ours(
            f"Small random weights of scale {SCALES[-1]:g}: median error of the law of depth, relative",
            at_most(error[-1], 0.01),
            panel="c",
        ),
        paper(
            "Balanced chain, middle layer: R² of a straight line of P/H against H",
            at_least(straight[middle], 0.999),
            panel="b",
        ),
        paper(
            "Balanced chain: smallest R² over layers of a straight line of P/H against H",
            at_least(straight.min(), 0.99),
            fails="off the middle P/H is another power of H",
            panel="b",
        ),
        ours(
            "Deep linear network: root mean squared deviation of the exponents from the law of depth",
            at_most(_off(linear, data.linear_law), 0.4),
            panel="d",
        ),
        ours(
            "Deep linear network: deviation of the exponents from 1 over that from the law of depth",
            at_least(_off(linear, 1.0) / _off(linear, data.linear_law), 1.3),
            panel="d",
        ),
        paper(
            "Two leaky ReLU layers: largest gap from 1 of the exponents of |dx| and |dy| in the final H",
            at_most(largest(leaky - 1), 0.3),
            fails="of three matrices, one or two are in the encoder: no layer is half way",
            panel="d",
        ),
        ours(
            "Two leaky ReLU layers: exponent of |dy| rises and that of |dx| falls to the next layer: smaller change",
            at_least(min(float(of_leaky.sel(gap="dy")), -float(of_leaky.sel(gap="dx"))), 0.2),
            panel="d",
        ),
        ours(
            "Linear and leaky ReLU network: share of pairs of points that are learned, smaller of both",
            at_least(min(float(np.isfinite(data[f"{name}_end"]).mean()) for name in ("linear", "leaky")), 0.75),
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab;cd")
    overlay(at["a"], data.final, data.final_law, along="share", colours=INK)
    border(at["a"], np.sqrt(X * Y), "√(XY)", across=True)
    gaps = {"dx": COLOURS[3], "dy": COLOURS[4]}
    for place, colour in zip((0, data.sizes["share"] // 2, -1), COLOURS, strict=False):
        one = data.isel(share=place)
        at["a"].plot(one.share, one.final, "o", color=colour, ms=7)
        trained(at["b"], one.risen, one.ratio, colour=colour)
        predicted(at["b"], one.risen, one.ratio_law, colour=colour)
    at["c"].loglog(data.scale, data.error.transpose("scale", ...), "o", color=INK, ms=4, mfc="none")
    square = data.error.median("seed").isel(scale=0) * (data.scale / data.scale.isel(scale=0)) ** 2
    predicted(at["c"], data.scale, square, colour=INK)
    overlay(at["d"], data.linear_exponent, data.linear_law, along="linear_share", by="gap", colours=gaps)
    for gap, colour in gaps.items():
        at["d"].plot(data.leaky_share, data.leaky_exponent.sel(gap=gap), "o", color=colour, ms=7, mfc="none", mew=1.5)
    border(at["d"], 1.0, across=True)
    at["a"].set_title("Balanced chain: distances differ by layer")
    at["b"].set(title="Straight in the middle layer only", xlabel="H / final H", ylabel="P/H over its final value")
    at["c"].set(
        title="Small random weights obey the law of depth",
        xlabel="scale of the weights",
        ylabel="largest relative error",
    )
    at["c"].set_xticks(data.scale.values, [f"{scale:g}" for scale in data.scale.values])
    at["c"].minorticks_off()
    at["d"].set(title="Networks with biases follow it roughly", ylabel="exponent in the final H")
    names = dict(zip(("first layer", "middle layer", "last layer"), COLOURS, strict=False))
    key(
        sheet,
        names | {f"|{gap}| (d)": colour for gap, colour in gaps.items()},
        kinds=("training", "law of depth"),
        marks=[mark("leaky ReLU (d)", colour=INK, mfc="none")],
    )
    return sheet
