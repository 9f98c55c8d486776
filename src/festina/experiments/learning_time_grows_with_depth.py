"""From small weights the learning time of a deep linear network grows exponentially with its depth; from orthogonal
weights it does not grow.

The learning rate falls as 1/D, as stability asks; times are in units of τ/D. From layers of strength b₀ < 1 a mode
takes D/((D − 2) s b₀^(D−2)) to leave the saddle at zero. The slides print 1/(s b₀^D): the limit D → ∞, for a real
network too long by 1/b₀². Pretraining D autoencoders of two layers takes D times the time of one sigmoid, far below the
printed D/b₀². Random orthogonal layers learn only if the determinant of their product has the sign of the target's.
Otherwise one mode starts on the wrong side of a saddle. At D = 2 gradient flow stays there for ever; gradient descent
leaves it late, because its steps conserve the balance of the layers only approximately.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Annotated

import numpy as np

from .. import rules, solve
from .._figures.panels import border, key, panels
from .._figures.style import COLOURS, DARK_GREY, DASHES, GREY, INK, LEGEND_SIZE, THIN, predicted
from .._formulas.curves import order
from .._formulas.mode_at_depth import escape_time
from ..theories.aligned_modes import time_to
from ._kit import learning_times
from ._kit.labelled import largest, stack, table
from ._kit.learning_times import arrival, end_of, singular_values, stated_time
from ._kit.parameters import AtLeast, Count, Counts, Positive, Positives, Seed, Several, checked
from ._kit.printed_formulas import pretraining_time, small_weights_time
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

THEME, PLACE = "modes", 3
REFERENCE = {
    "saxe_slides": "“Learning time”, “Initialization: small random, pretraining, orthogonal”",
    "saxe2014": "section 3 and figure 6",
}
QUICK = dict(depths=(2, 3), orthogonal_depths=(3, 6), seeds=4, lr=0.04)
PRETRAINED_FROM, LEARNED = 0.01, 0.99  # b₀ of an autoencoder's layers, and the strength at which its stage ends
SIGNS = ("same", "opposite")  # of the determinants of the product of layers and of the target
CAPTION = """
**a** Time until a mode (singular value s = 1) has gone 95 % of its way, against the number D of layers, for aligned
layers of strength b₀: by the closed form, as the slides print it, and in training from b₀ = 0.5. Grey: pretraining from
b₀ = 0.01, D times the measured time (in τ) of one stage. **b** The same time from aligned orthogonal layers (b₀ = 1) by
the closed form, for two singular values s; solid lines are the limits D → ∞. **c, d** Loss of networks with random
orthogonal layers, for the smallest and the largest D that were trained, one line for each seed. Colours: whether the
determinant of the product of layers has the sign of the target's. Times are in units of τ/D.
"""
ALT = """
From small layers learning times rise steeply with depth, straight lines on the logarithmic axis; from orthogonal layers
they soon become level. With the right sign of the determinant most losses fall steeply towards zero, at very different
times; with the wrong sign all stay on a plateau.
"""
LABELS = dict(xlabel="depth D", ylabel="learning time (τ/D)")
DETERMINANT = dict(zip(SIGNS, COLOURS[3:5], strict=True))


@checked
def run(
    *,
    layers: Positives = (0.5, 0.3, 0.1),
    depths: Counts = (2, 3, 4, 5, 6),
    longest: Annotated[int, AtLeast(10)] = 20,
    trained_layer: Positive = 0.5,
    orthogonal_depths: Counts = (3, 5, 10, 20),
    size: Several = 5,
    until: Positive = 30.0,
    lr: Positive = 0.01,
    seeds: Count = 15,
    seed: Seed = 0,
) -> Result:
    """Closed forms are drawn for `layers` of these strengths up to the depth `longest`.

    Aligned networks of `depths` are trained from layers of strength `trained_layer`, and random orthogonal ones of
    `orthogonal_depths`, with layers of `size` units, from `seeds` initialisations.
    """
    import xarray

    all_depths, strengths, rates = list(range(1, longest + 1)), np.array(layers), (lr, lr / 2, lr / 4)
    drawn = functools.partial(learning_times.orthogonal, size=size, lr=lr, until=until, seed=seed)
    orthogonal = {(sign, d): drawn(d, sign) for sign in SIGNS for d in orthogonal_depths}
    losses = {at: learning_times.losses(s, at[1], size, range(seed, seed + seeds)) for at, s in orthogonal.items()}
    stuck = drawn(2, "opposite").replace(rule=rules.GradientFlow(), times=[1e4])
    flow = solve(stuck, "BalancedRiccati", seed=seed)
    ends = {d: end_of(trained_layer**d) for d in depths}
    aligned = {(r, d): learning_times.aligned(d, trained_layer**d, ends[d], r / d) for r in rates for d in depths}
    arrived = {at: at[1] * arrival(setup, ends[at[1]], seed) for at, setup in aligned.items()}
    stage = learning_times.aligned(2, PRETRAINED_FROM**2, LEARNED, rates[-1])
    small = {d: table(stated_time(d, 1.0, strengths**d), "layer_strength") for d in all_depths}
    printed = {d: table(small_weights_time(1.0, strengths, d), "layer_strength") for d in all_depths}
    escape = {d: table(d * escape_time(1.0, strengths**d, d), "layer_strength") for d in all_depths[2:]}
    level = {d: table(stated_time(d, np.array([2.0, 0.5]), 1.0), "singular_value") for d in (*all_depths, math.inf)}
    by_sign = {s: stack({d: losses[s, d] for d in orthogonal_depths}, "orthogonal_depth") for s in SIGNS}
    data = xarray.Dataset(
        {
            "small": stack(small, "depth"),
            "small_printed": stack(printed, "depth"),
            "escape": stack(escape, "depth"),
            "training": table([[arrived[rate, d] for d in depths] for rate in rates], "rate", "trained_depth"),
            "theory": table([stated_time(d, 1.0, trained_layer**d) for d in depths], "trained_depth"),
            "stage_training": table(arrival(stage, LEARNED, seed)),
            "stage_theory": table(time_to(LEARNED, singular_value=1.0, start=PRETRAINED_FROM**2)),
            "pretraining_printed": table(pretraining_time(PRETRAINED_FROM, np.array(all_depths)), "depth"),
            "orthogonal": stack(level, "depth_or_inf"),
            "loss": stack(by_sign, "sign"),
            "stuck": table(flow["loss"][-1] / (0.5 * singular_values(size).min() ** 2)),
        },
        coords=dict(layer_strength=strengths, depth=all_depths, trained_depth=list(depths), singular_value=[2.0, 0.5]),
    )
    data["pretraining"] = data.depth * data.stage_training
    setups = {"aligned, deepest": aligned[lr, depths[-1]], "one stage of pretraining": stage}
    orthogonal["opposite", 2] = stuck
    setups |= {f"orthogonal, {sign} determinant, depth {depth}": s for (sign, depth), s in orthogonal.items()}
    deepest = solve(aligned[lr, depths[-1]], "AlignedModes")
    return Result(data, setups, {"aligned, deepest": deepest, "orthogonal, depth 2": flow})


def claims(result: Result) -> list[Claim]:
    data = result.data
    small, ends = data.small, data.loss.isel(time=-1)
    same, opposite = (ends.sel(sign=sign) for sign in SIGNS)
    deep = small.sel(layer_strength=0.3)
    escape = (deep / data.escape.sel(layer_strength=0.3)).sel(depth=slice(8, None))
    off, stage_off = largest(escape - 1), largest(data.stage_training / data.stage_theory - 1)
    slope = np.log(deep.sel(depth=20) / deep.sel(depth=10)) / np.log(1 / 0.3) / 10
    fast, slow = (data.orthogonal.sel(singular_value=s) for s in (2.0, 0.5))
    growth = np.diff(small.sel(depth=2, layer_strength=[0.3, 0.1]))[0] / np.log(9)
    errors = np.abs(data.training - data.theory).max("trained_depth").values
    over_printed = (small / data.small_printed).sel(depth=10, layer_strength=0.1)
    over = (data.pretraining / data.pretraining_printed).sel(depth=10)
    return [
        ours(
            "Small layers: growth of the learning time per added layer, as a power of 1/b₀, D = 10 to 20",
            between(slope, 0.95, 1.05),
            headline=True,
            panel="a",
        ),
        paper(
            "Aligned orthogonal layers, s = 2: longest learning time (τ/D) over all D",
            at_most(fast.max(), 3.0),
            headline=True,
            panel="b",
        ),
        ours("Aligned orthogonal layers, s = 0.5: time (τ/D) for D → ∞", between(slow[-1], 7.55, 7.65), panel="b"),
        ours("The time is D/((D−2) s b₀^(D−2)) at b₀ = 0.3, D ≥ 8: largest relative error", at_most(off, 0.03)),
        paper(
            "The time is 1/(s b₀^D): actual / printed at b₀ = 0.1, D = 10",
            between(over_printed, 0.5, 2.0),
            fails="the exponent is D − 2 for a network of depth D; 1/b₀^D belongs to the limit D → ∞",
            panel="a",
        ),
        ours(
            "Growth of the time at D = 2 from b₀ = 0.3 to 0.1, over ln 9: it goes as ln(1/b₀²)/s",
            between(growth, 0.9, 1.1),
        ),
        ours("Time in training against the closed form: order of the gap in lr", between(order(errors)[-1], 0.9, 1.1)),
        # Errors of first order in lr happen to cancel between this start and this end, so that no order is claimed.
        ours("Time of one stage of pretraining against the closed form: relative gap", at_most(stage_off, 1e-3)),
        paper(
            "Pretraining takes O(D/b₀²): actual / printed",
            between(over, 0.1, 10),
            fails="D/b₀² is an upper bound only; the time is D ln(1/b₀)",
        ),
        ours(
            "Random orthogonal layers, right sign: median final loss over that of zero weights",
            at_most(same.median(), 0.01),
            panel="c",
        ),
        ours(
            "Random orthogonal layers, wrong sign: least final loss over that of zero weights",
            at_least(opposite.min(), 0.02),
            panel="c",
        ),
        ours(
            "Gradient flow, wrong sign, D = 2: loss at t = 10⁴ τ over s²/2 of the smallest mode",
            between(data.stuck, 1 - 1e-9, 1 + 1e-9),
        ),
        paper(
            "Random orthogonal layers learn in O(1), whatever their sign: largest loss left",
            at_most(ends.max(), 0.01),
            fails="half of all draws have a determinant of the wrong sign and stay at a saddle",
            panel="c",
        ),
    ]


def figure(result: Result) -> Figure:
    from matplotlib.lines import Line2D

    data = result.data
    sheet, at = panels("ab;cd")
    _draw_small(at["a"], data)
    for curve in data.orthogonal.transpose("singular_value", "depth_or_inf"):
        predicted(at["b"], data.depth, curve[:-1], colour=GREY)
        border(at["b"], float(curve[-1]), f"s = {float(curve.singular_value):g}", across=True)
    at["b"].set(title="Aligned orthogonal layers: no growth", ylim=(0, None), **LABELS)
    for letter, number in (("c", 0), ("d", -1)):
        of_depth = data.loss.isel(orthogonal_depth=number)
        for sign, colour in DETERMINANT.items():
            at[letter].plot(data.time, of_depth.sel(sign=sign).transpose("time", "seed"), color=colour, lw=1.3)
        at[letter].set(title=f"Random orthogonal layers, D = {int(of_depth.orthogonal_depth)}")
        at[letter].set(xlabel="time (τ/D)", ylabel="loss / loss of zero weights", yscale="log", ylim=(1e-6, 2))
    marks = [
        Line2D([], [], color=INK, ls=DASHES, lw=THIN, label="closed form"),
        Line2D([], [], color=INK, ls=":", label="as printed"),
        Line2D([], [], color=DARK_GREY, marker="o", ls="", ms=5, label="training in a"),
    ]
    signs = {f"determinant: {sign} sign": colour for sign, colour in DETERMINANT.items()}
    key(sheet, signs, kinds=(), marks=marks)
    return sheet


def _draw_small(axes: Axes, data: Dataset) -> None:
    """Learning times from small layers: closed form, as printed, trained, and with pretraining."""
    for colour, layer in zip(COLOURS, data.layer_strength.values, strict=False):
        times = data.sel(layer_strength=layer)
        predicted(axes, data.depth, times.small, colour=colour)
        axes.plot(data.depth, times.small_printed, color=colour, ls=":", lw=1.2)
        seen = times.where(times.small < 1e10, drop=True)
        where = float(seen.depth[-1]), float(seen.small[-1])
        axes.annotate(f"b₀ = {layer:g}", where, (6, -8), textcoords="offset points", color=colour, size=LEGEND_SIZE)
    axes.plot(data.trained_depth, data.training.isel(rate=-1), "o", color=DARK_GREY, ms=5, zorder=4)
    axes.plot(data.depth, data.pretraining, color=GREY, ls="-.", lw=1.2)
    axes.text(float(data.depth[-1]), 10, "pretraining", color=GREY, size=LEGEND_SIZE, ha="right")
    axes.set(title="Small layers: exponential growth", yscale="log", ylim=(1, 1e12), **LABELS)
