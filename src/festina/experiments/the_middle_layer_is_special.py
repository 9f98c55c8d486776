"""In a deep network only the middle layer ends at the distance of the two-point theory; others follow a law of depth.

The two-point theory splits a network into an encoder and a decoder, and gives the same final distance for every layer:
√(κXY), where X and Y are the squared distances of two inputs and of their targets. In a balanced chain of L matrices, l
of them in the encoder, the distance H of the layer tends instead to

    H∞ = X^(1 − l/L) Y^(l/L).

The two agree at l = L/2. So it is with the law that the theory conserves, a straight line of P/H against H with P the
squared distance of the outputs: it holds in the middle layer, and elsewhere P/H is a power (L − l)/l of H. The law of
depth has no free number. It is exact for balanced chains. From random weights it is reached as they become small, with
an error that falls as their square. In networks with biases, and for points that are not opposite, it tells well which
layers keep the distances of the inputs and which have those of the targets, and no more: a network that also has to
learn its mean output is not a balanced chain.

**What does not reproduce.** The final distance of the theory does not hold for every layer. Measured as exponents of
|dx| and |dy|, which the theory predicts to be 1 and 1, it fails everywhere but near the middle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from .. import Setup, Trajectory, inits, nets, rules
from .._figures.style import new_figure
from .._formulas.curves import order
from .._foundation.checks import positive, whole
from ..theories.two_point import depth_law
from ._kit import pair_distances
from ._kit.depth_law import (
    GAPS,
    OPPOSITE,
    Training,
    at_levels,
    final_distances,
    gap_exponents,
    on_two_points,
    opposite,
    straightness_from_nothing,
)
from ._kit.depth_law_panels import draw_chain, draw_errors, draw_exponents
from ._kit.table_of_networks import row
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset


THEME, PLACE = "pairs", 6
REFERENCE = {"vanrossem2024": "sections 4.1 and 5, equations 10 and 24"}
QUICK = dict(
    depth=6, layers=5, gain=0.6, lr=0.03, epochs=3000, shallow_units=50, shallow_lr=0.03, shallow_epochs=4000, draws=4
)
SHORT, WIDTH = 4, 16  # matrices and hidden units of the chains that start at random
SCALES = (0.1, 0.05, 0.025, 0.0125)
NETWORKS = ("linear", "leaky ReLU")


def run(
    *,
    depth: int = 8,
    begin: float = 0.3,
    draws: int = 8,
    layers: int = 20,
    units: int = 50,
    gain: float = 0.85,
    lr: float = 0.005,
    epochs: int = 4000,
    shallow_units: int = 500,
    shallow_lr: float = 0.02,
    shallow_epochs: int = 6000,
    seed: int = 0,
) -> Result:
    """`depth` is that of a balanced chain whose weights begin at `begin`; `draws` random chains are trained per scale.

    `layers`, `units`, `gain` and `lr` are those of a deep linear network with biases. The leaky ReLU network of two
    hidden layers has `shallow_units`, and a rate of its own.
    """
    depth, draws, layers = whole(depth, "depth", least=4), whole(draws, "draws"), whole(layers, "layers", least=3)
    epochs, shallow_epochs = whole(epochs, "epochs"), whole(shallow_epochs, "shallow_epochs")
    units, shallow_units = whole(units, "units"), whole(shallow_units, "shallow_units")
    begin, gain = positive(begin, "begin"), positive(gain, "gain")
    lr, shallow_lr = positive(lr, "lr"), positive(shallow_lr, "shallow_lr")
    points = opposite(**OPPOSITE)
    seeds = list(range(seed, seed + draws))
    chain = Setup(
        points,
        nets.DeepLinear((1,) * (depth - 1)),
        inits.Aligned(begin**depth),
        rules.GradientDescent(0.05),
        until=3 / begin ** (depth - 2),
        every=5,
    )
    balanced = simulate(chain, [seed], ["distance", "output_distance"])
    random = {
        scale: Setup(
            points,
            nets.DeepLinear((WIDTH,) * (SHORT - 1)),
            inits.SmallRandom(scale),
            rules.GradientDescent(0.1),
            times=[60 + 0.5 / scale**2],
        )
        for scale in SCALES
    }
    ends = np.stack([simulate(setup, seeds, "distance")["distance"][:, -1, :, 0] for setup in random.values()])
    shallow = row("shallow", units=shallow_units)
    trainings = {
        "linear": Training(nets.MLP((units,) * layers, "linear", bias=True), gain, lr, epochs),
        "leaky ReLU": Training(shallow.net(), shallow.gain, shallow_lr, shallow_epochs),
    }
    setups = {"balanced chain": chain, "random chain": random[SCALES[0]]}
    grids = {}
    for name, training in trainings.items():
        grids[name] = final_distances(training, seed)
        setups[f"{name} network"] = on_two_points(training, 1.0, 1.0)
    return Result(_labelled(balanced, ends, grids, depth, begin), setups)


def _labelled(
    balanced: Trajectory,
    ends: Float[np.ndarray, "scale seed layer"],
    grids: Mapping[str, Float[np.ndarray, "dx dy layer"]],
    depth: int,
    begin: float,
) -> Dataset:
    """The data of the result."""
    import xarray

    H, P = at_levels(balanced["distance"][0, :, :, 0], balanced["output_distance"][0, :, 0])
    chain_law = depth_law(OPPOSITE["X"], OPPOSITE["Y"], np.arange(depth - 1), depth)
    random_law = depth_law(OPPOSITE["X"], OPPOSITE["Y"], np.arange(SHORT - 1), SHORT)
    data = xarray.Dataset(
        {
            "distance": (("level", "chain_layer"), H),
            "output": ("level", P),
            "law": ("chain_layer", chain_law),
            "straightness": ("chain_layer", [pair_distances.correlation(curve, P / curve) ** 2 for curve in H.T]),
            "straightness_from_nothing": ("chain_layer", straightness_from_nothing(depth)),
            "error": (("scale", "seed"), np.abs(ends / random_law - 1).max(axis=2)),
        },
        coords={"chain_layer": np.arange(depth - 1), "scale": list(SCALES), **{k: list(v) for k, v in GAPS.items()}},
        attrs={"depth": depth, "begin": begin, "input_gap": OPPOSITE["X"], "target_gap": OPPOSITE["Y"]},
    )
    for key, name in zip(("linear", "leaky"), NETWORKS, strict=True):
        grid = grids[name]
        axis, size = f"{key}_layer", grid.shape[2] + 1
        share = np.arange(1, size) / size
        data[f"{key}_end"] = (("dx", "dy", axis), grid)
        data[f"{key}_exponent"] = ((axis, "gap"), gap_exponents(grid))
        data[f"{key}_law"] = ((axis, "gap"), 2 * np.stack([1 - share, share], axis=1))
        data = data.assign_coords({axis: np.arange(size - 1)})
    return data.assign_coords(gap=["dx", "dy"])


def _off(data: Dataset, key: str, expected: float | DataArray) -> float:
    """Root of the mean squared deviation of measured exponents."""
    return float(np.sqrt(((data[f"{key}_exponent"] - expected) ** 2).mean()))


def claims(result: Result) -> list[Claim]:
    data = result.data
    error = data.error.median("seed").values
    orders = order(error)
    straight, middle = data.straightness.values, data.attrs["depth"] // 2 - 1
    linear, leaky = (data[f"{key}_exponent"] for key in ("linear", "leaky"))
    learned = min(float(np.isfinite(data[f"{key}_end"]).mean()) for key in ("linear", "leaky"))
    return [
        ours(
            "A balanced chain ends at X^(1−l/L) Y^(l/L) in every layer: largest relative gap",
            at_most(float(np.abs(data.distance[-1] / data.law - 1).max()), 1e-6),
        ),
        ours(
            "From small random weights the law holds: order of its error in their scale",
            between(float(orders[-1]), 1.8, 2.2),
        ),
        ours(f"… relative error at a scale of {SCALES[-1]:g}", at_most(float(error[-1]), 0.01)),
        paper(
            "P/H against H is a straight line in the middle layer of a chain: R²",
            at_least(float(straight[middle]), 0.999),
        ),
        paper(
            "… and as straight in every layer: least R²",
            at_least(float(straight.min()), 0.99),
            fails="off the middle P/H is another power of H",
        ),
        ours(
            "Exponents of |dx| and |dy| in a linear network follow the law of depth: root mean squared deviation",
            at_most(_off(data, "linear", data.linear_law), 0.4),
        ),
        ours(
            "… and deviate more from 1 and 1, those of the theory: ratio of deviations",
            at_least(_off(data, "linear", 1.0) / _off(data, "linear", data.linear_law), 1.3),
        ),
        paper(
            "The final distance goes as |dx||dy| in every layer: largest gap of an exponent from 1, linear network",
            at_most(float(np.abs(linear - 1).max()), 0.3),
            fails="lower layers keep the distances of inputs, upper ones have those of targets",
        ),
        paper(
            "… and in both layers of a leaky ReLU network",
            at_most(float(np.abs(leaky - 1).max()), 0.3),
            fails="of three matrices, one or two are in the encoder: no layer is half way",
        ),
        ours(
            "From one layer to the next the exponent of |dy| grows and that of |dx| falls: smallest step, leaky ReLU",
            at_least(float(min(leaky[1, 1] - leaky[0, 1], leaky[0, 0] - leaky[1, 0])), 0.2),
        ),
        ours("Share of trials that have learned", at_least(learned, 0.75)),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, ((ends, lines, straight), (errors, linear, leaky)) = new_figure(2, 3)
    draw_chain(ends, lines, straight, data)
    draw_errors(errors, data)
    for axes, key, name in ((linear, "linear", "linear network"), (leaky, "leaky", "leaky ReLU, two hidden layers")):
        draw_exponents(axes, data, key, name)
    leaky.set_xticks(data.leaky_layer.values)
    return sheet
