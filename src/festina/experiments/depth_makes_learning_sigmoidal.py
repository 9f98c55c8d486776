"""A shallow linear network learns along an exponential; every added layer turns the curve further into a sigmoid.

One mode of a linear network of D layers is a chain of D scalar weights. A shallow chain (D = 1) has no saddle and
learns fastest at first. From two layers on, zero weights are a saddle: learning waits there, accelerates and saturates.
The closed form of every depth is compared with gradient descent, which tends to it at first order in the learning rate.
Time is in units of τ/D, as if the learning rate were divided by the depth.

The slides print closed forms for D = 1, D = 2 and D ≥ 3, without a unit of time for the last; τ/D is its best reading.
The second is right. The first lacks the input variance in its exponent. The third is the limit of infinite depth, and
its exponent lacks the factor s²/λ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import BadInput, Setup, inits, nets, rules, solve, tasks
from .._figures.overlay import overlay
from .._figures.panels import key, panels
from .._figures.style import COLOURS, DASHES, INK, LEGEND_SIZE, LIGHT_GREY, THIN
from .._formulas.curves import order
from ..theories.aligned_modes import mode, time_to
from ._kit import printed_formulas
from ._kit.labelled import labelled, largest, stack, table
from ._kit.loss_curvature import curvatures
from ._kit.parameters import Counts, Positive, Seed, Several, checked
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

    from .. import Task, Trajectory

THEME, PLACE = "modes", 2
REFERENCE = {"saxe_slides": "“Error surface”, “Analytic learning trajectory”", "saxe2014": "figures 1 and 2"}
QUICK = dict(lr=0.04, points=120)
DEEPER = (50, 100, 200)  # depths at which the approach to infinite depth is measured
PATHS = ((0.02, 0.02), (-1.0, -0.9), (-1.3, 1.1), (1.2, -1.4))  # from where, over the root of the target
CAPTION = """
**a** Loss of a chain of two layers (grey contours), its minima (black curves) and the saddle at zero weights (cross).
Coloured lines are gradient flow from four initial weights (dots); one of them waits near the saddle. **b** Strength a
of one mode while networks of D layers learn, beside the closed form of their depth. **c** Training at D = 1, beside the
formula that the slides print for it. **d** Training of deeper networks, beside the formula that the slides print for D
≥ 3, and the corrected limit of infinite depth (dashed), which D = 10 has not yet reached. Time is in units of τ/D;
colours are depths.
"""
ALT = """
The shallow curve is an exponential that starts at its steepest; the others are sigmoids that start flat, the deeper the
longer. The printed curves of c and d miss the training curves.
"""


@checked
def run(
    *,
    depths: Counts = (1, 2, 3, 10),
    singular_value: Positive = 1.5,
    variance: Positive = 0.5,
    start: Positive = 0.05,
    until: Positive = 20.0,
    lr: Positive = 0.01,
    points: Several = 400,
    seed: Seed = 0,
) -> Result:
    """Times and rates are in units of τ/D."""
    import xarray

    if not {1, 2} <= set(depths) or max(depths) < 3:
        raise BadInput(f"depths = {depths}", "depths 1, 2 and at least one from 3 on", "add the missing depths")
    target = singular_value / variance
    task = tasks.from_moments([[singular_value]], [[variance]], [[singular_value * target]])
    init, rule = inits.Aligned(start), rules.GradientDescent(lr)
    shallow = Setup(task, nets.DeepLinear(()), init, rule, until=until, points=points)
    times = np.asarray(shallow.times)  # whole steps of every rate of the series
    setups, theories, parts = {}, {}, {}
    for depth in depths:
        setup = shallow.replace(net=nets.DeepLinear((1,) * (depth - 1)), times=times / depth)
        series = [setup.replace(rule=rules.GradientDescent(rate / depth)) for rate in (lr, lr / 2, lr / 4)]
        setups[f"depth {depth}"] = series[-1]
        theory = theories[f"depth {depth}"] = solve(series[-1], "AlignedModes")
        parts[depth] = _compared(theory, [simulate(setup, [seed], "modes") for setup in series], times)
    constants = dict(singular_value=singular_value, variance=variance, start=start)
    printed = tuple(constants.values())
    half_times = {depth: depth * time_to(target / 2, **constants, depth=depth) for depth in (10, *DEEPER)}
    zero, axis = np.zeros((1, 1)), np.linspace(-1.6, 1.6, 121) * np.sqrt(target)
    data = stack(parts, "depth").assign(
        printed_shallow=("time", printed_formulas.shallow_mode(times, *printed)),
        printed_deep=("time", printed_formulas.deep_mode(times / 2, *printed)),
        printed_very_deep=("time", printed_formulas.very_deep_mode(times, *printed)),
        infinitely_deep=("time", mode(times, **constants, depth=np.inf)),
        half_time_infinite=time_to(target / 2, **constants, depth=np.inf),
        half_time=("deeper", list(half_times.values())),
        surface=(("upper", "lower"), 0.5 * variance * (np.outer(axis, axis) - target) ** 2),
        path=xarray.concat([_path(task, target, *begin) for begin in PATHS], "begin"),
        shallow_curvature=("of_shallow", curvatures(task, [[zero]])[0]),
        deep_curvature=("of_deep", curvatures(task, [[zero, zero]])[0]),
        target=target,
    )
    data = data.assign_coords(deeper=list(half_times), upper=axis, lower=axis)
    return Result(data, setups, theories)


def _compared(theory: Trajectory, runs: Sequence[Trajectory], times: np.ndarray) -> Dataset:
    """The theory, training at the lowest learning rate, and the largest gap at every rate, each half of the last."""
    import xarray

    exact, *training = (labelled(run, "modes").isel(mode=0).assign_coords(time=times) for run in (theory, *runs))
    gaps = [largest(curve - exact) for curve in training]
    return xarray.Dataset({"theory": exact, "training": training[-1].isel(seed=0), "gap": table(gaps, "rate")})


def _path(task: Task, target: float, lower: float, upper: float) -> DataArray:
    """Gradient flow of a two-layer chain, (moment, layer); the layers need not be balanced."""
    given = inits.Given([[[np.sqrt(target) * lower]], [[np.sqrt(target) * upper]]])
    setup = Setup(task, nets.DeepLinear(1), given, until=8.0, points=160)
    # Strengths are counted along the hidden direction that the lower layer starts in.
    strengths = labelled(solve(setup, "AlignedChains"), "layer_strengths")[:, :, 0] * np.sign(lower)
    return strengths.rename(time="moment", layer="weight")


def claims(result: Result) -> list[Claim]:
    data = result.data
    fastest = {int(curve.depth): _time_of_fastest_learning(curve) for curve in data.training}
    shallow, deep, third = (data.training.sel(depth=d) for d in (1, 2, _third(data)))
    to_limit = order(np.abs(data.half_time.sel(deeper=list(DEEPER)) - data.half_time_infinite).values)
    at_ten = np.abs(data.half_time_infinite / data.half_time.sel(deeper=10) - 1)
    orders = order(data.gap.values)
    return [
        paper(
            "Deep networks, D ≥ 2, accelerate first: earliest time of fastest learning (τ/D)",
            at_least(min(time for depth, time in fastest.items() if depth > 1), 0.1),
            headline=True,
            panel="b",
        ),
        paper(
            "A shallow network learns fastest at first: time of its fastest learning (τ)",
            at_most(fastest[1], 0.0),
            headline=True,
            panel="b",
        ),
        paper(
            "Two layers have a saddle: lowest curvature of the loss at zero",
            at_most(data.deep_curvature[0], -1e-6),
            panel="a",
        ),
        paper("One layer has no saddle: curvature of the loss at zero", at_least(data.shallow_curvature[0], 1e-6)),
        paper(
            "The curve printed for D = 2 is that of training: largest gap / target",
            at_most(largest((data.printed_deep - deep) / data.target), 0.01),
        ),
        paper(
            "The curve printed for D = 1 is that of training: largest gap / target",
            at_most(largest((data.printed_shallow - shallow) / data.target), 0.01),
            fails="the exponent −t/τ lacks the input variance; it is −λt/τ",
            panel="c",
        ),
        paper(
            "The curve printed for D ≥ 3 is that of training at D = 3: largest gap / target",
            at_most(largest((data.printed_very_deep - third) / data.target), 0.01),
            fails="it is the limit D → ∞, and its exponent −t/τ lacks s²/λ",
            panel="d",
        ),
        paper(
            "The limit D → ∞, corrected, describes D ≈ 10: relative gap of the half-times",
            at_most(at_ten, 0.05),
            fails="finite depth tends to the limit only as 1/D; at D = 10 the finite-D curve is needed",
            panel="d",
        ),
        ours("Gap between descent and the closed form: lowest order in lr over D", between(orders.min(), 0.9, 1.1)),
        ours("Gap between descent and the closed form: highest order in lr over D", between(orders.max(), 0.9, 1.1)),
        ours("Half-time, gap between depth D and the limit D → ∞: order in 1/D", between(to_limit[-1], 0.9, 1.1)),
    ]


def _time_of_fastest_learning(curve: DataArray) -> float:
    speed = np.diff(curve.values) / np.diff(curve.time.values)
    return float(curve.time.values[int(np.argmax(speed))])


def _third(data: Dataset) -> int:
    """The smallest depth of three layers or more."""
    return int(data.depth[data.depth >= 3].min())


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab;cd")
    colours = {str(int(depth)): colour for depth, colour in zip(data.depth, COLOURS, strict=False)}
    _draw_surface(at["a"], data)
    overlay(at["b"], data.training, data.theory, by="depth", colours=colours)
    overlay(at["c"], data.training.sel(depth=[1]), by="depth", colours=colours)
    overlay(at["d"], data.training.where(data.depth >= 3, drop=True), by="depth", colours=colours)
    at["c"].plot(data.time, data.printed_shallow, ":", color=INK)
    at["d"].plot(data.time, data.printed_very_deep, ":", color=INK)
    at["d"].plot(data.time, data.infinitely_deep, ls=DASHES, color=INK, lw=THIN)
    until, target = float(data.time[-1]), float(data.target)
    notes = [("c", 0.15, 1.05, "as printed"), ("d", 0.72, 0.05, "as printed"), ("d", 0.73, 0.5, "D → ∞, corrected")]
    for letter, x, y, note in notes:
        at[letter].text(x * until, y * target, note, size=LEGEND_SIZE)
    titles = dict(b="Depth makes learning sigmoidal", c="D = 1: the printed formula", d="D ≥ 3: the printed formula")
    for letter, title in titles.items():
        at[letter].set(title=title, xlabel="time (τ/D)", ylabel="strength a of the mode", ylim=(None, 1.15 * target))
    key(sheet, {f"D = {depth}": colour for depth, colour in colours.items()})
    return sheet


def _draw_surface(axes: Axes, data: Dataset) -> None:
    """The loss of two layers with its minima, the saddle and four paths of gradient flow."""
    levels = np.geomspace(0.02, 1, 8) * float(data.surface.max())
    axes.contour(data.lower, data.upper, data.surface, levels=levels, colors=LIGHT_GREY, linewidths=0.6)
    side, target = data.lower.values, float(data.target)
    for branch in (side[side > target / side.max()], side[side < target / side.min()]):
        axes.plot(branch, target / branch, color=INK, lw=2)
    for path in data.path:
        axes.plot(path[:, 0], path[:, 1], color=COLOURS[1], lw=1.6)
        axes.plot(*path[0], "o", color=COLOURS[1], ms=4)
    axes.plot(0, 0, "x", color=INK, ms=9, mew=2)
    axes.set(xlabel="weight of layer 1", ylabel="weight of layer 2", title="Two layers: gradient flow passes a saddle")
