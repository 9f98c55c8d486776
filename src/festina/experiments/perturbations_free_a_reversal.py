"""Any small perturbation frees a network that is stuck after the reversal of its task, after a predictable time.

A balanced two-layer linear network that has learned a task to the end never learns its reverse by gradient flow
(`reversal_gets_stuck`). Any departure from these conditions frees it, the later the smaller the departure:

- Noise ε on the weights frees the mode of singular value s at ln(1/ε)/s.
- A finite learning rate frees it at ln(1/lr)/s, in float32 as in float64, since descent breaks the balance of the
  layers a little while it learns the first task. This, and not rounding, frees simulations like that of the paper.
- Learning the first task for a finite time T only leaves a trace of the other solution. The trace frees mode k after
  T (s_k + s_(N+1−k))/s_k for large T, and the closed form predicts it exactly.
- A balance λ ≠ 0 of the layers frees the network, and the closed form predicts this exactly as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import xarray

from .. import Setup, inits, nets, rules, solve, tasks
from .._figures.overlay import overlay
from .._figures.panels import beside, key, mark, panels
from .._figures.style import COLOURS, DARK_GREY, DASHES, GREY, THIN
from ..tasks.base import TaskSequence
from ._kit import time_grids
from ._kit.labelled import approach, largest, stack, time_at
from ._kit.parameters import POSITIVE, AtLeast, Count, Each, Positive, Positives, Seed, checked
from ._kit.reversed_task import ReversedTask
from ._kit.training import simulate
from .base import Claim, Result, at_most, between, ours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

    from .. import Task, Trajectory
    from .._foundation.arrays import Weights

THEME, PLACE = "sequences", 2.5
REFERENCE = {"braun2022": "figure 6: reversal learning", "saxe_slides": "“Reversal learning”"}
QUICK = dict(hidden=4, points=401, noises=(1e-2, 1e-4, 1e-6))
PRECISIONS = ("float64", "float32")
RECORDS = 20  # of the first task
# The time T of brief learning in units of 1/s of the slowest mode. It is so short that what it leaves undone is far
# larger than the imbalance that the learning rate makes.
SHORT = 0.5
CAPTION = """
A network has learned a random task, and all its targets change sign: time until each mode of the reversed task, of
singular value s, is half relearned. **a** With noise of size ε on the learned weights. **b** With a finite learning
rate. **c** If the first task was learned for a finite time T only; circles are the closed form. Dashed lines in a to c
have the slope of theory; they are drawn through the point of the smallest ε, the smallest rate or the longest T. **d**
Loss of the reversed task in networks whose layers have a balance λ ≠ 0 (W₂ᵀW₂ − W₁W₁ᵀ = λI); the theory is exact for
gradient flow.
"""
ALT = """
Times to relearn grow along straight lines against the logarithm of the noise and of the learning rate, and against the
time of learning, more steeply for modes of small singular value. Losses with larger balance fall sooner.
"""
Pair = Annotated[tuple[float, ...], Each(POSITIVE, least=2)]


@checked
def run(
    *,
    singular_values: Positives = (1.4, 1.0, 0.75, 0.45),
    hidden: Count = 6,
    samples: Count = 16,
    scale: Positive = 0.25,
    lr: Positive = 0.05,
    until: Positive = 80.0,
    points: Annotated[int, AtLeast(10)] = 801,
    noises: Pair = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6),
    rates: Pair = (0.1, 0.05, 0.025, 0.0125, 0.00625),
    lams: Positives = (0.01, 0.1, 1.0),
    learned_for: Pair = (6.0, 8.0, 10.0, 12.0),
    seed: Seed = 0,
) -> Result:
    """`noises`, `rates`, `lams` and `learned_for`: what frees the network; `scale`: of the very first weights."""
    net, random = nets.DeepLinear(hidden), inits.ZeroBalanced(scale)
    reversal = ReversedTask(singular_values, samples, net, random, seed)
    slowest, square = float(reversal.values[-1]), nets.DeepLinear(len(reversal.values))
    times = time_grids.even(until, points, lr)

    def reversed_from(weights: Weights, net: nets.DeepLinear = net) -> Setup:
        return Setup(reversal.after, net, inits.Given(weights), rules.GradientDescent(lr), times=times)

    def in_turn(span: float, rate: float) -> Setup:
        """The first task for a time `span`, then its reverse; the first task has as many records for every span."""
        total = max(round(span / rate), RECORDS)
        steps = np.round(np.linspace(0, total, RECORDS + 1))[:-1]
        sequence = tasks.sequence([reversal.before, reversal.after], [total * rate, until])
        grid = np.concatenate([steps * rate, total * rate + times])
        return Setup(sequence, net, random, rules.GradientDescent(rate), times=grid)

    def freed(setup: Setup, begins: float = 0.0) -> DataArray:
        return reversal.relearned(simulate(setup, [seed], ["loss", "map"]), begins)

    learned, generator = reversal.learned(net, seed), np.random.default_rng(seed)
    direction = [generator.normal(size=w.shape) for w in learned]
    noisy = {e: reversed_from([w + e * d for w, d in zip(learned, direction, strict=True)]) for e in noises}
    by_rate = {p: {rate: in_turn(20 / slowest, rate).replace(precision=p) for rate in rates} for p in PRECISIONS}
    spans = {span: solve(in_turn(span, lr), "BalancedRiccati", seed=seed) for span in learned_for}
    unbalanced = {lam: reversed_from(reversal.learned(square, seed, lam), net=square) for lam in lams}
    exact = {lam: _approach(setup, seed, 2 if lam == lams[0] else 0) for lam, setup in unbalanced.items()}
    briefly = in_turn(SHORT / slowest, lr / 4)
    exact_briefly, of_brief = _approach(briefly, seed, 2)
    data = xarray.Dataset(
        {
            "noise_escape": stack({e: freed(setup) for e, setup in noisy.items()}, "noise"),
            "rate_escape": stack(
                {p: stack({r: freed(s, _second_start(s)) for r, s in of.items()}, "rate") for p, of in by_rate.items()},
                "precision",
            ),
            "span_escape": stack({span: reversal.relearned(t, span) for span, t in spans.items()}, "span"),
            **stack({lam: _losses(reversal.after, of) for lam, (_, of) in exact.items()}, "lam"),
            "lam_order": exact[lams[0]][1].order[-1],
            "brief_order": of_brief.order[-1],
        },
    )
    name = f"λ = {lams[0]:g}"
    theories = {name: exact[lams[0]][0], "learned briefly": exact_briefly}
    return Result(data, {name: unbalanced[lams[0]], "learned briefly": briefly}, theories)


def _second_start(setup: Setup) -> float:
    """When the second task of a sequence begins."""
    assert isinstance(setup.task, TaskSequence)
    return setup.task.starts[1]


def _approach(setup: Setup, seed: int, halvings: int) -> tuple[Trajectory, Dataset]:
    return approach(setup, "BalancedRiccati", "map", halvings=halvings, seed=seed)


def _losses(task: Task, maps: Dataset) -> Dataset:
    """The losses of theory and of training, for white inputs."""
    return ((maps[["theory", "training"]] - task.target()) ** 2).sum(("feature", "input")) / 2


def claims(result: Result) -> list[Claim]:
    data = result.data
    values = data.mode
    # Slopes are taken between the two smallest perturbations, which are nearest to the limit.
    noise = largest(_last_slope(data.noise_escape, -np.log(data.noise)) * values - 1)
    rates = data.rate_escape.isel(mode=0)
    rate = _last_slope(rates.sel(precision="float64"), -np.log(data.rate)) * values[0]
    span = _last_slope(data.span_escape, data.span) / _span_slope(values)
    same = largest(rates.sel(precision="float32") / rates.sel(precision="float64") - 1)
    return [
        ours(
            "Noise ε on the weights frees a mode after ln(1/ε)/s: largest gap of slope × s from 1, over modes",
            at_most(noise, 0.1),
            headline=True,
            panel="a",
        ),
        ours(
            "A finite learning rate lr frees the first mode after ln(1/lr)/s: slope × s",
            between(rate, 0.8, 1.2),
            headline=True,
            panel="b",
        ),
        ours(
            "Escape time of the first mode under gradient descent, float32 over float64: distance from 1",
            at_most(same, 0.02),
        ),
        ours(
            "Balance λ ≠ 0: order in the learning rate of the gap between gradient descent and theory",
            between(data.lam_order, 0.9, 1.1),
        ),
        ours(
            "First task learned briefly: order in the learning rate of the gap between gradient descent and theory",
            between(data.brief_order, 0.9, 1.1),
        ),
        ours(
            "Learning for a time T frees the slowest mode after T (s_k + s_(N+1−k))/s_k: relative gap of the slope",
            at_most(abs(span[-1] - 1), 0.02),
            panel="c",
        ),
    ]


def _last_slope(times: DataArray, against: DataArray) -> DataArray:
    """The slope between the last two perturbations."""
    along = against.dims[0]
    return (times.isel({along: -1}) - times.isel({along: -2})) / float(against[-1] - against[-2])


def _span_slope(values: DataArray) -> DataArray:
    return (values + values.values[::-1]) / values


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab;cd")
    colours = dict(zip([f"s = {s:g}" for s in data.mode.values], COLOURS, strict=False))
    slopes = {"a": -1 / data.mode, "b": -1 / data.mode, "c": _span_slope(data.mode)}
    for k, colour in enumerate(colours.values()):
        _draw_law(at["a"], data.noise, data.noise_escape[:, k], slopes["a"][k], colour, log=True)
        _draw_law(at["b"], data.rate, data.rate_escape.isel(precision=0)[:, k], slopes["b"][k], colour, log=True)
        _draw_law(at["c"], data.span, data.span_escape[:, k], slopes["c"][k], colour)
    overlay(at["d"], data.training, data.theory, colours=GREY)
    first, low = float(data.theory.max()), 1e-3
    for lam, when in zip(data.lam.values, time_at(data.theory, low * first, falling=True).values, strict=True):
        beside(at["d"], when, low * first, f"λ = {lam:g}")
    at["a"].set(xlabel="noise ε on the weights", title="Noise: time ∝ ln(1/ε)/s")
    at["b"].set(xlabel="learning rate lr", title="Finite learning rate: time ∝ ln(1/lr)/s")
    at["c"].set(xlabel="time T of the first task (τ)", title="Brief learning: time ∝ T")
    for letter in "abc":
        at[letter].set(ylabel="time to half relearn (τ)", ylim=(0, None))
    at["d"].set(
        xlabel="time since the reversal (τ)", ylabel="loss of the reversed task", title="Unbalanced layers, λ ≠ 0"
    )
    at["d"].set(yscale="log", ylim=(1e-4 * first, 2 * first), xlim=(0, 9 / float(data.mode[-1])))
    marks = [mark("training (a, b)", colour=DARK_GREY), mark("closed form (c)", colour=DARK_GREY, mfc="none")]
    key(sheet, colours, marks=marks)
    return sheet


def _draw_law(axes: Axes, x: DataArray, y: DataArray, slope: DataArray, colour: str, *, log: bool = False) -> None:
    """Times, and a line through the last of them with the slope that theory gives."""
    axes.plot(x, y, "o", color=colour, ms=5, mfc=colour if log else "none")
    scale = np.log(x) if log else x
    axes.plot(x, float(y[-1]) + float(slope) * (scale - float(scale[-1])), color=colour, lw=THIN, ls=DASHES)
    if log:
        axes.set_xscale("log")
