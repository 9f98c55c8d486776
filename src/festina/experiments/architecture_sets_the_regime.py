"""The shape of a two-layer linear network decides which sign of the balance λ makes it lazy.

The balance is that of the layers, W₂ᵀW₂ − W₁W₁ᵀ = λI. With |λ| much larger than the task, one layer starts as √|λ|
times a matrix with orthonormal columns: the second layer if λ > 0, the first if λ < 0. If these columns span all that
this layer must reach (λ > 0 and N_h = N_o, or λ < 0 and N_h = N_i), the other layer learns alone and the tangent kernel
stays as it is: the network is lazy. Otherwise the large layer has to turn, and the kernel moves in the end, which is
called delayed rich. So a funnel, N_i > N_h = N_o, is lazy for positive λ, an inverted funnel for negative λ, and a
square network for both. The published rule, in terms of sgn(N_i − N_o), is this special case. It fails for bottlenecks,
N_h < N_i and N_h < N_o, which are delayed rich for both signs. From an initial map that is aligned with the task
nothing has to turn, and every shape is lazy for both signs.

Targets are Gaussian matrices with entries of variance 1, and inputs are white. The initial map is a Gaussian matrix
with entries of standard deviation `scale`, cut to rank N_h, and its factors are λ-balanced. All kernel distances are
one batched evaluation of the exact solution. Where |λ| is large and of the sign that is delayed, training has to be
followed for long, since the delay grows as |λ|/s², with s a singular value of the task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray

from .. import BadInput
from .._figures.panels import key, panels
from .._figures.style import COLOURS, GREY
from ._kit import padded_networks as padded
from ._kit.labelled import table
from ._kit.padded_networks import HIDDEN
from ._kit.parameters import Count, Numbers, Positive, Seed, Several, checked
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

THEME, PLACE = "regimes", 4
REFERENCE = {"domine2025": "architecture and regimes", "saxe_slides": "slides on lazy, rich and delayed rich regimes"}
QUICK = dict(grid=10, grid_targets=2, lr=0.01)
SHAPES = ((4, 4), (8, 4), (4, 8), (5, 5), (6, 5), (5, 6))  # (inputs, outputs)
END = 1e6  # in τ: long after the delay |λ|/s² of all but the faintest modes
CAPTION = """
How far the tangent kernel is from its initial direction after learning, 1 − cos, on one scale in **a**, **b** and
**d**: dark is lazy (the kernel stays), bright is rich. **a** Networks of different shapes, the numbers N_i of inputs,
N_h of hidden units and N_o of outputs, at different balances λ, from random maps; mean over tasks. Circles mark where
the rule of column spans predicts that large |λ| is lazy; in the outermost columns without a circle it predicts delayed
rich. **b** The same from maps that are aligned with the task. **c** The first three shapes of a at the end and, dotted,
at an early time: where large |λ| is delayed rich, the kernel moves late. **d** Networks 2-2-2, by λ and by the largest
singular value of the initial map. All distances are those of the exact solution.
"""
SCALE: dict[str, Any] = dict(cmap="cividis", vmin=-6, vmax=0, shading="nearest", rasterized=True)
ALT = """
In a, the square network is dark at both ends of λ, the funnel only at the positive end, the inverted funnel only at the
negative one, and bottlenecks nowhere. In b all shapes are dark at both ends. In d a bright stripe stands at λ = 0 for
small initial maps, and everything is bright for large ones.
"""


@checked
def run(
    *,
    lams: Numbers = (-40.0, -10.0, -2.0, 0.0, 2.0, 10.0, 40.0),
    scale: Positive = 0.05,
    targets: Count = 40,
    early: Positive = 20.0,
    grid: Several = 40,
    grid_targets: Count = 10,
    lr: Positive = 0.005,
    seed: Seed = 0,
) -> Result:
    """Every shape learns `targets` random maps; 2-2-2 networks learn `grid_targets` on a `grid` of λ and scales.

    `early` is a time at which distances are read besides that at the end.
    """
    if len(lams) < 3:
        raise BadInput(f"lams = {list(lams)}", "three or more, negative and positive", "add the missing ones")
    generator, balances = np.random.default_rng(seed), np.sort(lams)
    random, aligned = padded.random_networks(SHAPES, targets, scale, generator)
    map_lams, map_scales = np.linspace(-9, 9, grid), np.geomspace(0.01, 20, grid)
    sized = padded.networks_of_sizes(map_scales, grid_targets, generator)
    batches = [
        padded.with_balances(random, balances),
        padded.with_balances(aligned, balances),
        padded.with_balances(sized, map_lams),
    ]
    of_random, of_aligned, of_sized = padded.kernel_distances_of(batches, np.array([early, END]))
    axes, sizes = ("shape", "task", "lam", "when"), (len(SHAPES), targets, len(balances), 2)
    training, setups, theories = padded.training_and_theory(random[targets], balances[[1, -2]], early, lr)
    data = xarray.Dataset(
        {
            "kernel_distance": table(of_random.reshape(sizes), *axes),
            "aligned_kernel_distance": table(of_aligned.reshape(sizes), *axes),
            "phase": table(of_sized.reshape(grid_targets, grid, grid, 2)[..., 1], "task_", "start_scale", "map_lam"),
            "d_in": table([d_in for d_in, _ in SHAPES], "shape"),
            "d_out": table([d_out for _, d_out in SHAPES], "shape"),
            **training,
        },
        coords={
            "shape": [f"{d_in}-{HIDDEN}-{d_out}" for d_in, d_out in SHAPES],
            "lam": balances,
            "when": [early, END],
            "map_lam": map_lams,
            "start_scale": map_scales,
        },
    )
    return Result(data, setups, theories)


def _by_span(data: Dataset) -> np.ndarray:
    """Whether columns of the large layer span all that it must reach, for both signs of λ: then the shape is lazy."""
    return np.stack([data.d_in == HIDDEN, data.d_out == HIDDEN], axis=1)


def claims(result: Result) -> list[Claim]:
    data = result.data
    ends = data.kernel_distance.isel(when=-1, lam=[0, -1]).mean("task").values
    d_in, d_out, signs = data.d_in.values[:, None], data.d_out.values[:, None], np.array([-1, 1])
    by_span = _by_span(data)
    by_sign = (signs == np.sign(d_in - d_out)) | (d_in == d_out)
    bottleneck = ((d_in > HIDDEN) & (d_out > HIDDEN))[:, 0]
    wide, pure = ~bottleneck, by_sign[~bottleneck]
    slow = data.kernel_distance.isel(shape=[1, 2], lam=[0, -1]).mean("task").values[[0, 1], [0, 1]]
    trained = abs(data.trained - data.solved).max("trained_lam").values
    first = data.kernel_distance.isel(shape=1, task=0, when=0).sel(lam=data.trained_lam.values).values
    phase = data.phase.mean("task_")
    inner = abs(data.map_lam).argmin("map_lam")
    return [
        ours(
            "Rule of column spans, every shape: largest final kernel distance where it says lazy, outermost λ",
            at_most(ends[by_span].max(), 0.01),
            headline=True,
            panel="a",
        ),
        ours(
            "Rule of column spans, every shape: smallest final kernel distance where it says delayed rich",
            at_least(ends[~by_span].min(), 0.05),
            headline=True,
            panel="a",
        ),
        paper(
            "Rule sgn λ = sgn(N_i − N_o) or N_i = N_o, no bottleneck: largest final kernel distance where it says lazy",
            at_most(ends[wide][pure].max(), 0.01),
            panel="a",
        ),
        paper(
            "Rule sgn λ = sgn(N_i − N_o), no bottleneck: smallest final kernel distance where it says rich",
            at_least(ends[wide][~pure].min(), 0.2),
            panel="a",
        ),
        paper(
            "Rule sgn λ = sgn(N_i − N_o), bottlenecks: largest final kernel distance where it says lazy",
            at_most(ends[bottleneck][by_sign[bottleneck]].max(), 0.01),
            fails="N_h columns span neither the inputs nor the outputs, so the large layer turns for both signs",
            panel="a",
        ),
        ours(
            "Maps aligned with the task, every shape and both signs: largest final kernel distance, outermost λ",
            at_most(data.aligned_kernel_distance.isel(when=-1, lam=[0, -1]).max(), 1e-3),
            panel="b",
        ),
        ours(
            f"Largest |λ| of the delayed sign: final kernel distance over that at t = {float(data.when[0]):g} τ, "
            "smaller ratio of the two funnels",
            at_least((slow[:, 1] / slow[:, 0]).min(), 1.15),
            panel="c",
        ),
        ours(
            "Gap of the kernel distance between descent and theory, funnel at both signs: order in the learning rate",
            between(np.log2(trained[0] / trained[1]), 0.9, 1.1),
        ),
        ours(
            "Batched evaluation of networks padded with zeros against solve(): largest gap of the kernel distance",
            at_most(np.abs(first - data.solved.values).max(), 1e-9),
        ),
        paper(
            "2-2-2 from the smallest maps: final kernel distance at λ near 0 over that at the outermost λ",
            at_least(phase.isel(start_scale=0, map_lam=inner) / phase.isel(start_scale=0, map_lam=[0, -1]).max(), 10.0),
            panel="d",
        ),
    ]


def figure(result: Result) -> Figure:
    from matplotlib.lines import Line2D

    data = result.data
    sheet, at = panels("ab;cd", row=3.1)
    _draw_shapes(at["a"], data.kernel_distance, "Random initial maps (dark: lazy)")
    _draw_shapes(at["b"], data.aligned_kernel_distance, "Maps aligned with the task (dark: lazy)")
    rows, sides = np.nonzero(_by_span(data))
    at["a"].plot(sides * (data.sizes["lam"] - 1), rows, "o", color="white", ms=8, mfc="none", mew=1.5)
    colours = dict(zip(list(data["shape"].values[:3]), COLOURS, strict=False))
    for name, colour in colours.items():
        mean = data.kernel_distance.sel(shape=name).mean("task")
        at["c"].plot(data.lam, mean.isel(when=-1), "-", color=colour, lw=1.8)
        at["c"].plot(data.lam, mean.isel(when=0), ":", color=colour, lw=1.8)
    at["c"].set_xscale("symlog", linthresh=2.0)
    at["c"].set_xticks(data.lam.values, _names(data.lam))
    at["c"].set(title="Slow learning at large |λ|", xlabel="balance λ", ylabel="kernel distance")
    image = at["d"].pcolormesh(data.map_lam, data.start_scale, _logarithm(data.phase.mean("task_")), **SCALE)
    at["d"].set(
        title="2-2-2: balance and initial size", xlabel="balance λ", ylabel="initial singular value", yscale="log"
    )
    for letter in "bd":
        sheet.colorbar(image, ax=at[letter], label="log₁₀ of the kernel distance")
    moments = {"-": "at the end", ":": f"at t = {float(data.when[0]):g} τ"}
    lines = [Line2D([], [], color=GREY, lw=1.8, ls=style, label=label) for style, label in moments.items()]
    key(sheet, colours, kinds=(), marks=lines, title="in c")
    return sheet


def _draw_shapes(axes: Axes, distances: DataArray, title: str) -> None:
    """Final kernel distances of every shape at every λ."""
    axes.pcolormesh(_logarithm(distances.isel(when=-1).mean("task").transpose("shape", "lam")), **SCALE)
    axes.set_xticks(range(distances.sizes["lam"]), _names(distances.lam))
    axes.set_yticks(range(distances.sizes["shape"]), list(distances["shape"].values))
    axes.set(title=title, xlabel="balance λ", ylabel="inputs-hidden-outputs")
    axes.invert_yaxis()


def _logarithm(distances: DataArray) -> np.ndarray:
    return np.log10(distances.values + 1e-6)


def _names(lams: DataArray) -> list[str]:
    return [f"{lam:g}".replace("-", "−") for lam in lams.values]
