"""A shallow network learns along an exponential; depth adds a saddle point and makes the curve sigmoidal.

One mode of a deep linear network is a chain of scalar weights. A shallow chain (D = 1) has no saddle and learns fastest
at the start. From two layers on the origin is a saddle: learning waits there, accelerates and saturates. The closed
form of every depth is compared with gradient descent, which tends to it at first order in the learning rate. Time is
measured in units τ/D, as if the learning rate were divided by the depth.

The slides print closed forms for D = 1, D = 2 and D ≥ 3, without a unit of time for the last; τ/D is its best reading.
The second is right. The first lacks the input variance in its exponent, and the third is the limit of infinite depth,
without s²/λ in its exponent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import BadInput, Setup, inits, nets, rules, solve, tasks
from .._figures.style import COLOURS, legend_of_kinds, new_figure, predicted, trained
from .._formulas.curves import order
from .._foundation.checks import positive
from ..theories.aligned_modes import mode, time_to
from ._kit import printed_formulas
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataArray

    from .. import Task

THEME, PLACE = "modes", 2
REFERENCE = {"saxe_slides": "“Error surface”, “Analytic learning trajectory”", "saxe2014": "figures 1 and 2"}
QUICK = dict(lr=0.04, points=120)
DEEPER = (50, 100, 200)  # depths at which the approach to infinite depth is read off


def run(
    *,
    depths: Sequence[int] = (1, 2, 3, 10),
    singular_value: float = 1.5,
    variance: float = 0.5,
    start: float = 0.05,
    until: float = 20.0,
    lr: float = 0.01,
    points: int = 400,
    seed: int = 0,
) -> Result:
    """Times and rates are in units of τ/D."""
    if not {1, 2} <= set(depths) or max(depths) < 3:
        raise BadInput(f"depths = {tuple(depths)}", "depths 1, 2 and at least one from 3 on", "add the missing depths")
    singular_value, variance = positive(singular_value, "singular_value"), positive(variance, "variance")
    task = tasks.from_moments([[singular_value]], [[variance]], [[singular_value**2 / variance]])
    shallow = Setup(
        task, nets.DeepLinear(()), inits.Aligned(start), rules.GradientDescent(lr), until=until, points=points
    )
    times = shallow.times  # whole steps of the slowest rate, so that every rate of the series visits them
    setups, theories, orders = {}, {}, []
    curves = {"theory": [], "training": []}
    for depth in depths:
        net, errors = nets.DeepLinear((1,) * (depth - 1)), []
        for rate in (lr, lr / 2, lr / 4):
            setup = shallow.replace(net=net, rule=rules.GradientDescent(rate / depth), times=times / depth)
            theory, training = solve(setup, "AlignedModes"), simulate(setup, [seed], "modes")
            errors.append(np.abs(training["modes"][0] - theory["modes"]).max())
        orders.append(order(np.array(errors)))
        curves["theory"].append(theory["modes"][:, 0])
        curves["training"].append(training["modes"][0, :, 0])
        setups[f"depth {depth}"], theories[f"depth {depth}"] = setup, theory
    constants = dict(singular_value=singular_value, variance=variance, start=start)
    printed = singular_value, variance, start
    half = 0.5 * singular_value / variance
    weights, loss = _surface(singular_value, variance)
    import xarray

    data = xarray.Dataset(
        {
            "theory": (("depth", "time"), np.array(curves["theory"])),
            "training": (("depth", "time"), np.array(curves["training"])),
            "order_in_lr": (("depth", "halving"), np.array(orders)),
            "printed_shallow": ("time", printed_formulas.shallow_mode(times, *printed)),
            "printed_deep": ("time", printed_formulas.deep_mode(times / 2, *printed)),
            "printed_very_deep": ("time", printed_formulas.very_deep_mode(times, *printed)),
            "infinitely_deep": ("time", mode(times, **constants, depth=np.inf)),
            "half_time_infinite": ((), time_to(half, **constants, depth=np.inf)),
            "half_time": ("deeper", [depth * time_to(half, **constants, depth=depth) for depth in DEEPER]),
            "half_time_ten": ((), 10 * time_to(half, **constants, depth=10)),
            "loss": (("upper", "lower"), loss),
            "path": (("start", "moment", "layer"), _paths(task, singular_value / variance)),
            "saddle_curvatures": (("layers", "direction"), _curvatures_at_zero(singular_value, variance)),
        },
        coords={
            "depth": list(depths),
            "time": times,
            "deeper": list(DEEPER),
            "upper": weights,
            "lower": weights,
            "layers": [1, 2],
        },
        attrs={"time": "units of τ/D", **constants},
    )
    return Result(data, setups, theories)


def _paths(task: Task, target: float) -> np.ndarray:
    """Gradient flow of a two-layer chain from four starts, (start, time, layer); the layers need not be balanced."""
    reach = np.sqrt(target)
    starts = ((0.02, 0.02), (-1.0, -0.9), (-1.3, 1.1), (1.2, -1.4))

    def path(lower: float, upper: float) -> np.ndarray:
        given = inits.Given([[[reach * lower]], [[reach * upper]]])
        setup = Setup(task, nets.DeepLinear(1), given, until=8.0, points=160)
        # Strengths are counted along the hidden direction that the lower layer starts in.
        return solve(setup, "AlignedChains")["layer_strengths"][:, :, 0] * np.sign(lower)

    return np.stack([path(*start) for start in starts])


def _surface(s: float, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights of a layer, and the loss of a two-layer chain at all pairs of them."""
    reach = 1.6 * np.sqrt(s / variance)
    weights = np.linspace(-reach, reach, 121)
    return weights, 0.5 * variance * (np.outer(weights, weights) - s / variance) ** 2


def _curvatures_at_zero(s: float, variance: float) -> np.ndarray:
    """Eigenvalues of the Hessian of ½ variance (∏ w − s/variance)² at w = 0, by automatic differentiation."""
    import jax
    import jax.numpy as jnp

    def loss(weights: jax.Array) -> jax.Array:
        return 0.5 * variance * (jnp.prod(weights) - s / variance) ** 2

    with jax.enable_x64(True):
        shallow, deep = (np.linalg.eigvalsh(jax.hessian(loss)(jnp.zeros(layers))) for layers in (1, 2))
    return np.array([[shallow[0], np.nan], deep])


def claims(result: Result) -> list[Claim]:
    data = result.data
    target = data.attrs["singular_value"] / data.attrs["variance"]
    shallow, deep = data.training.sel(depth=1), data.training.sel(depth=2)
    third = data.training.sel(depth=min(d for d in data.depth.values if d >= 3))
    fastest = {d: _time_of_fastest_learning(data.training.sel(depth=d)) for d in data.depth.values}
    gaps = np.abs(data.half_time.values - float(data.half_time_infinite))
    approach = order(gaps)
    curvatures = data.saddle_curvatures

    def gap(printed: DataArray, training: DataArray) -> DataArray:
        return np.abs(printed - training).max() / target

    return [
        paper(
            "Depth introduces a saddle point: lowest curvature of the loss at zero weights, two layers",
            at_most(curvatures.sel(layers=2)[0], -1e-6),
        ),
        paper(
            "A shallow chain has no saddle: curvature of its loss at zero weight",
            at_least(curvatures.sel(layers=1)[0], 1e-6),
        ),
        paper("A shallow chain is fastest at the start: time of fastest learning", at_most(fastest.pop(1), 0.0)),
        paper("Deep chains accelerate first: earliest time of fastest learning", at_least(min(fastest.values()), 0.1)),
        paper(
            "The curve printed for D = 2 is that of training: largest gap / target",
            at_most(gap(data.printed_deep, deep), 0.01),
        ),
        paper(
            "The curve printed for D = 1 is that of training: largest gap / target",
            at_most(gap(data.printed_shallow, shallow), 0.01),
            fails="the exponent −t/τ lacks the input variance; it is −λt/τ",
        ),
        paper(
            "The curve printed for D ≥ 3 is that of training at D = 3: largest gap / target",
            at_most(gap(data.printed_very_deep, third), 0.01),
            fails="it is the limit D → ∞, and its exponent −t/τ lacks s²/λ",
        ),
        paper(
            "The limit D → ∞, corrected, describes D ≈ 10: relative gap of the half-times",
            at_most(abs(float(data.half_time_infinite) / float(data.half_time_ten) - 1), 0.05),
            fails="finite depth tends to the limit only as 1/D; at D = 10 the finite-D curve is needed",
        ),
        ours(
            "Descent tends to the closed form as lr → 0: lowest order over depths",
            between(data.order_in_lr.min(), 0.9, 1.1),
        ),
        ours(
            "Descent tends to the closed form as lr → 0: highest order over depths",
            between(data.order_in_lr.max(), 0.9, 1.1),
        ),
        ours("Finite depth tends to the limit as 1/D: order of the half-time", between(approach[-1], 0.9, 1.1)),
    ]


def _time_of_fastest_learning(curve: DataArray) -> float:
    speed = np.diff(curve.values) / np.diff(curve.time.values)
    return float(curve.time.values[int(np.argmax(speed))])


def figure(result: Result) -> Figure:
    data = result.data
    target = data.attrs["singular_value"] / data.attrs["variance"]
    sheet, ((surface, curves, printed),) = new_figure(1, 3)
    levels = np.geomspace(0.02, 1, 8) * float(data.loss.max())
    surface.contour(data.lower, data.upper, data.loss, levels=levels, colors="0.75", linewidths=0.8)
    axis = data.lower.values
    ridge = axis[np.abs(axis) > target / axis.max()]
    for branch in (ridge[ridge > 0], ridge[ridge < 0]):
        surface.plot(branch, target / branch, color=COLOURS[2], lw=2, label="solutions" if branch[0] > 0 else None)
    for path in data.path:
        surface.plot(path[:, 0], path[:, 1], color=COLOURS[0], lw=1.5)
        surface.plot(*path[0], "o", color=COLOURS[0], ms=4)
    surface.plot([], [], "o-", color=COLOURS[0], lw=1.5, ms=4, label="gradient flow")
    surface.plot(0, 0, "x", color=COLOURS[1], ms=8, mew=2, label="saddle")
    surface.set(xlabel="weight of layer 1", ylabel="weight of layer 2", title="loss of two layers", aspect="equal")
    surface.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)  # beside: every corner is in use
    for number, depth in enumerate(data.depth.values):
        colour = COLOURS[number % len(COLOURS)]
        trained(curves, data.time, data.training.sel(depth=depth), colour=colour)
        predicted(curves, data.time, data.theory.sel(depth=depth), colour=colour)
        curves.plot([], [], color=colour, lw=3, label=f"D = {depth}")
    curves.set(xlabel="time (τ/D)", ylabel="mode strength a", title="depth makes learning sigmoidal")
    curves.add_artist(curves.legend(loc="center right"))
    legend_of_kinds(curves, loc="lower right")
    third = int(min(d for d in data.depth.values if d >= 3))
    for colour, depth, name in ((COLOURS[0], 1, "printed_shallow"), (COLOURS[2], third, "printed_very_deep")):
        trained(printed, data.time, data.training.sel(depth=depth), colour=colour, label=f"training, D = {depth}")
        label = "as printed, D ≥ 3" if depth > 1 else "as printed, D = 1"
        printed.plot(data.time, data[name], color=colour, lw=1.3, ls=":", label=label)
    printed.set(xlabel="time (τ/D)", ylabel="mode strength a", title="two printed formulas are wrong")
    printed.legend(loc="lower right")
    return sheet
