"""The imbalance between the two layers of a linear neuron decides how fast its input weights turn to the target.

A neuron f(x) = a w·x learns the target β* from white inputs, and its imbalance δ = a² − |w|² is conserved. Its closed
form is that of λ-balanced networks with one hidden unit and one output, λ = δ; it includes δ = 0 and negative a. At
late times the angle θ between w and β* obeys

    cot θ ∝ exp(½(√(4r² + δ²) + δ) t),      r = |β*|.

A large positive δ is **lazy**: a hardly changes, the function β = a w goes to the target on a straight line, and the
tangent kernel a² + wwᵀ stays as it is. A large negative δ is **delayed**: the direction of w is stiff, a alone fits
what it can, and only then w turns, at the rate r²/|δ|; the kernel turns with it. δ = 0 lies between, and the cosine is
tanh(rt + artanh μ₀), where μ₀ is its initial value. The published solution for ν = w·β*/a agrees with ours where it is
finite. A neuron whose w points away from the target never learns if δ = 0.

Inputs that are not white are outside this solution. In whitened inputs it holds again, for a neuron whose w is
initialised, and trained, in those inputs: that is a different network with the same best function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import BadInput, solve, tasks
from .._figures.overlay import overlay
from .._figures.panels import key, panels
from .._figures.style import DASHES, INK, THIN, predicted, trained
from .._formulas.curves import order
from .._formulas.two_layer_mode import alignment_rate
from .._foundation.checks import real_array
from ._kit import linear_neuron as neuron
from ._kit.labelled import largest, prefixed, stack, table
from ._kit.parameters import AtLeast, Numbers, Positive, Seed, checked
from ._kit.time_grids import dense_at_start
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEME, PLACE = "regimes", 3
REFERENCE = {"kunin2024": "figures 2-4 and the single-neuron solutions"}
QUICK = dict(lr=0.02, points=160)
HALVINGS = 3  # rates lr, lr/2, lr/4
FURTHER = (8.0, 16.0, 32.0)  # imbalances at which the approach to the lazy limit is measured
OPPOSITE = (-1.0, 0.0, 1.0)  # imbalances of neurons whose w points away from the target
CAPTION = """
A linear neuron f(x) = a w·x at different imbalances δ = a² − |w|², which are the colours. **a** The function β = a w
while it learns, from the dot to the target, the star: straight for large positive δ; for negative δ it first shrinks.
**b** How fast w turns to the target: late growth rate of the cotangent of their angle in training (dots), and the
prediction ½(√(4r² + δ²) + δ), where r is the length of the target (line). **c** Loss. For large negative δ it stays on
a plateau until w has turned. **d** Distance of the tangent kernel from its initial direction, 1 − cos: it stays for
positive δ and moves late for negative δ. The theory is exact, with nothing fitted.
"""
ALT = """
Paths in the plane bend the more, the more negative the imbalance is; the rate rises with it along the predicted curve.
Losses fall once if it is positive and twice if it is negative, where the kernel moves with the second fall.
"""


@checked
def run(
    *,
    deltas: Numbers = (-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0),
    target: Numbers = (0.0, 1.0),
    start: Numbers = (-1.0, 0.0),
    aligned: Positive = 0.5,
    cov_x: Sequence[Sequence[float]] = ((2.0, 0.6), (0.6, 0.5)),
    until: Positive = 20.0,
    lr: Positive = 0.01,
    points: Annotated[int, AtLeast(20)] = 400,
    seed: Seed = 0,
) -> Result:
    """β is `start`, orthogonal to the `target`, or `aligned` × target at first; `cov_x` is that of coloured inputs."""
    if 0.0 not in deltas or deltas[0] > -1 or deltas[-1] < 1 or np.any(np.diff(deltas) <= 0):
        raise BadInput(f"deltas = {deltas}", "rising, with 0, one <= −1 and one >= 1", "add the missing ones")
    goal, across = np.array(target), np.array(start)
    if abs(across @ goal) > 1e-12 or not np.linalg.norm(across) * np.linalg.norm(goal) > 0:
        raise BadInput(f"start = {start}, target = {target}", "two orthogonal vectors, not zero", "turn the start")
    times, rates = dense_at_start(until, points, lr), lr / 2.0 ** np.arange(HALVINGS)
    moments = real_array(cov_x, "cov_x", ndim=2)
    white, coloured = neuron.noiseless_task(goal, np.eye(len(goal))), neuron.noiseless_task(goal, moments)
    neurons = neuron.Neurons(white, times, rates, seed)
    setups = {f"δ = {delta:g}": neurons.setup(across, delta) for delta in deltas}
    setups["whitened inputs"] = neurons.setup(across, 1.0, task=tasks.whitened(coloured))
    theories = {label: solve(each, "BalancedRiccati", observe=neuron.OBSERVED) for label, each in setups.items()}
    theory = stack({delta: neuron.curves(theories[f"δ = {delta:g}"]) for delta in deltas}, "delta")
    runs = stack({delta: neurons.trained(neurons.setup(across, delta)) for delta in deltas}, "delta")
    # Neurons with a large δ learn early, so their times are in units of 1/δ.
    lazy = {delta: neurons.exact(neurons.setup(across, delta, unit=1 / delta)) for delta in FURTHER}
    further = stack({delta: each.assign_coords(time=times) for delta, each in lazy.items()}, "further")
    behind = {delta: neurons.setup(-goal, delta) for delta in OPPOSITE}
    behind_training = stack({delta: neurons.trained(each).beta[-1] for delta, each in behind.items()}, "behind")
    ahead = stack({delta: neurons.exact(neurons.setup(aligned * goal, delta)) for delta in deltas}, "delta")
    data = xarray.Dataset(
        {
            **prefixed(theory, "theory"),
            **prefixed(runs.isel(rate=-1).drop_vars(["rate", "drift"]), "training"),
            **prefixed(ahead, "ahead"),
            **prefixed(further.rename(time="own_time"), "further"),
            "gap": neuron.gap(runs.beta, theory.beta),
            "drift": runs.drift,
            "negative_gap": stack({delta: neurons.gaps(neurons.setup(across, delta, -1)) for delta in deltas}, "delta"),
            "behind_theory": stack({delta: neurons.exact(each).beta for delta, each in behind.items()}, "behind"),
            "behind_training": behind_training.drop_vars("rate"),
            "whitened_gap": neurons.gaps(setups["whitened inputs"], strict=False),
            "coloured_gap": neurons.gaps(neurons.setup(across, 1.0, task=coloured), strict=False),
            "whitened_end": table(theories["whitened inputs"]["map"][-1, 0] @ neuron.inverse_root(moments), "input"),
            "target": table(goal, "input"),
            "start": table(across, "input"),
        }
    )
    fine = np.linspace(deltas[0], deltas[-1], 200)
    data["predicted_rate"] = table(alignment_rate(np.linalg.norm(goal), fine), "fine_delta")
    rates_of = [neuron.turning_rate(data.training_beta.sel(delta=delta), data.target, delta) for delta in deltas]
    return Result(data.assign(turning_rate=table(rates_of, "delta")).assign_coords(fine_delta=fine), setups, theories)


def claims(result: Result) -> list[Claim]:
    data = result.data
    deltas, times, r = data.delta.values, data.time.values, float(np.sqrt(data.target @ data.target))
    orders, drift, negative = (order(data[name].values)[:, -1] for name in ("gap", "drift", "negative_gap"))
    turning = data.turning_rate / alignment_rate(r, data.delta.values)
    nus = [data[f"{kind}_beta"] @ data.target / data[f"{kind}_gain"] ** 2 for kind in ("theory", "ahead")]
    balanced = neuron.cosine(data.theory_beta.sel(delta=0.0), data.target)
    bends = neuron.bend(data.further_beta.rename(own_time="time"), data.start, data.target)
    delayed, loss = data.training_kernel[0], neuron.loss(data.training_beta, data.target)[0].values
    crossed = [(data[f"behind_{kind}"].sel(behind=0.0) @ data.target).max() for kind in ("theory", "training")]
    free = data.behind_training.isel(time=-1).sel(behind=[-1.0, 1.0])
    return [
        ours(
            "Rate at which w turns to the target in training over ½(√(4r² + δ²) + δ): largest gap from 1 over δ",
            at_most(abs(turning - 1).max(), 0.03),
            headline=True,
            panel="b",
        ),
        ours(
            "Gap between descent and the closed form, order in the learning rate: largest gap from 1 over δ",
            at_most(largest(orders - 1), 0.1),
        ),
        paper(
            "δ is conserved: order in the learning rate of its drift in training, largest gap from 1 over δ",
            at_most(largest(drift - 1), 0.1),
        ),
        paper(
            "The published ν = w·β*/a, with tanh or coth, against ours: largest relative gap over δ and two initial β",
            at_most(max(neuron.gap_of_nu(each, r) for nu in nus for each in nu), 1e-8),
        ),
        paper(
            "δ = 0: the cosine of w and β* is tanh(rt + artanh μ₀), from the initial value μ₀ = 0: largest gap",
            at_most(largest(balanced - np.tanh(r * times)), 1e-9),
        ),
        paper(
            "δ ≫ 0 is lazy, as β goes straight to the target: order in 1/δ of the bend of its path",
            between(order(bends.values)[-1], 1.9, 2.1),
            panel="a",
        ),
        paper(
            "δ ≫ 0 is lazy, as the tangent kernel stays: order in 1/δ of its final distance",
            between(order(data.further_kernel[:, -1].values)[-1], 3.6, 4.4),
            panel="d",
        ),
        paper(
            f"δ = {deltas[0]:g} is delayed: kernel distance in training when the loss has fallen to 60 %",
            at_most(delayed[int(np.argmax(loss < 0.6 * loss[0]))], 0.05),
            panel="d",
        ),
        paper(
            f"δ = {deltas[0]:g} is rich in the end: final kernel distance in training",
            at_least(delayed[-1], 0.5),
            panel="d",
        ),
        ours(
            "Gap between descent and the closed form for a < 0, order in the learning rate: largest gap from 1 over δ",
            at_most(largest(negative - 1), 0.1),
        ),
        ours(
            "δ = 0 and w away from the target: largest β·β* at any time, in theory and training, so w never turns",
            at_most(max(crossed), 1e-6),
        ),
        ours(
            "δ = ±1 and w away from the target: largest final distance of β from the target in training",
            at_most(abs(free - data.target).max(), 0.01),
        ),
        ours(
            "Whitened inputs, gap between descent and the closed form of white inputs: order in the learning rate",
            between(order(data.whitened_gap.values)[-1], 0.9, 1.1),
        ),
        ours(
            "The same inputs before whitening: gap at the smallest learning rate over that at the largest",
            at_least(data.coloured_gap[-1] / data.coloured_gap[0], 0.9),
        ),
        ours(
            "Whitened inputs: largest gap between what the neuron learns and β* of the original inputs",
            at_most(abs(data.whitened_end - data.target).max(), 1e-6),
        ),
    ]


def figure(result: Result) -> Figure:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    data = result.data
    sheet, at = panels("ab;cd")
    shades = colormaps["viridis"](np.linspace(0, 0.93, data.sizes["delta"]))
    colours = {str(delta): to_hex(shade) for delta, shade in zip(data.delta.values, shades, strict=True)}
    for number, colour in enumerate(colours.values()):
        for kind, draw in (("training", trained), ("theory", predicted)):
            beta = data[f"{kind}_beta"][number]
            draw(at["a"], beta[:, 0], beta[:, 1], colour=colour)
        at["b"].plot(data.delta[number], data.turning_rate[number], "o", color=colour, ms=7)
    at["b"].plot(data.fine_delta, data.predicted_rate, color=INK, lw=THIN, ls=DASHES)
    at["a"].plot(*data.start.values, "o", color=INK, ms=6, zorder=4)
    at["a"].plot(*data.target.values, "*", color=INK, ms=12, zorder=4)
    at["a"].set(title="Path of the function β = a w", xlabel="β₁", ylabel="β₂")
    at["b"].set(title="How fast w turns to the target", xlabel="imbalance δ", ylabel="rate (1/τ)", yscale="log")
    at["b"].set_yticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"])
    at["b"].minorticks_off()
    later = data.isel(time=slice(1, None))
    losses = [neuron.loss(beta, data.target) for beta in (later.training_beta, later.theory_beta)]
    overlay(at["c"], *losses, by="delta", colours=colours)
    overlay(at["d"], later.training_kernel, later.theory_kernel, by="delta", colours=colours)
    at["c"].set(title="Loss: delayed for large negative δ", ylabel="loss", xscale="log")
    at["d"].set(title="Tangent kernel: lazy for large positive δ", ylabel="kernel distance", xscale="log")
    key(sheet, {f"δ = {float(delta):g}".replace("-", "−"): colour for delta, colour in colours.items()})
    return sheet
