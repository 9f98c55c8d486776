"""From small weights a deep linear network takes longer to learn with every added layer; from orthogonal weights its
learning time does not grow with depth.

Times are in units of τ/D: the learning rate falls as 1/D, as stability asks. From layers of strength b₀ < 1 a mode
takes D/((D − 2) s b₀^(D−2)), exponential in depth. The slides print 1/(s b₀^D). That is the limit D → ∞ started at
b₀^D, and for a real network too long by the factor b₀⁻². Pretraining every layer as an autoencoder of two layers costs
D times one such stage, a sigmoid: it is linear in depth by construction, logarithmic in b₀, and far below the printed
D/b₀². One stage is trained; its time is in units of τ. From aligned orthogonal layers the time does not grow with
depth. For random orthogonal layers one more thing must hold: the determinant of their product must have the sign of the
target's. If not, one mode starts on the wrong side of a saddle and is not learned. At depth 2 the flow stays there for
ever; descent leaves late, because its steps do not conserve the balance of the layers exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from .. import Setup, inits, nets, rules, solve, tasks
from .._figures.style import COLOURS, new_figure
from .._formulas.curves import order
from .._foundation.checks import positive, whole
from ..theories.aligned_modes import time_to
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

    from .._foundation.arrays import AnyArray

THEME, PLACE = "modes", 3
REFERENCE = {
    "saxe_slides": "“Learning time”, “Initialization: small random, pretraining, orthogonal”",
    "saxe2014": "section 3 and figure 6",
}
QUICK = dict(depths=(2, 3), orthogonal_depths=(3, 6), seeds=4, lr=0.04)

ACHIEVED = 0.95  # share of the way from the start to the target
PRETRAINED_FROM, LEARNED = 0.01, 0.99  # b₀ of an autoencoder's layers, and the strength at which its stage ends
SIGNS = ("same", "opposite")  # of the determinants of the product of layers and of the target


def _scaled_time(
    depth: float | np.integer, *, singular_value: float | np.ndarray, start: float | np.ndarray, variance: float = 1.0
) -> AnyArray | np.floating:
    """Time in units of τ/D until a mode has gone 95 % of its way."""
    target = singular_value / variance
    end = start + ACHIEVED * (target - start)
    factor = 1 if depth == math.inf else depth
    return factor * time_to(end, singular_value=singular_value, variance=variance, start=start, depth=depth)


def _arrival(depth: int, start: float, end: float, lr: float, seed: int) -> tuple[float, Setup]:
    """Time at which an aligned network of this depth, trained on y = x, reaches a strength; and its setup."""
    task = tasks.from_moments([[1.0]], [[1.0]], [[1.0]])
    wanted = float(time_to(end, singular_value=1.0, start=start, depth=depth))
    times = lr * np.arange(1, int(1.3 * wanted / lr) + 2)
    net, rule = nets.DeepLinear((1,) * (depth - 1)), rules.GradientDescent(lr)
    setup = Setup(task, net, inits.Aligned(start), rule, times=times)
    return np.interp(end, simulate(setup, [seed], "modes")["modes"][0, :, 0], times), setup


def _arrivals(depths: Sequence[int], layer: float, lr: float, seed: int) -> tuple[Float[np.ndarray, " depth"], Setup]:
    """Scaled times at which aligned networks of each depth, trained, have gone 95 % of their way; the deepest setup."""
    ends = [layer**depth + ACHIEVED * (1 - layer**depth) for depth in depths]
    arrivals = [_arrival(d, layer**d, end, lr / d, seed) for d, end in zip(depths, ends, strict=True)]
    return np.array(depths) * [time for time, _ in arrivals], arrivals[-1][1]


def run(
    *,
    layers: Sequence[float] = (0.5, 0.3, 0.1),
    depths: Sequence[int] = (2, 3, 4, 5, 6),
    longest: int = 20,
    trained_layer: float = 0.5,
    orthogonal_depths: Sequence[int] = (3, 5, 10, 20),
    size: int = 5,
    until: float = 30.0,
    lr: float = 0.01,
    seeds: int = 15,
    seed: int = 0,
) -> Result:
    """Closed forms are drawn for `layers` of these strengths up to the depth `longest`.

    Aligned networks of `depths` are trained from layers of strength `trained_layer`, and random orthogonal ones of
    `orthogonal_depths`, with layers of `size` units, from `seeds` starts.
    """
    longest, size, seeds = whole(longest, "longest", least=10), whole(size, "size", least=2), whole(seeds, "seeds")
    lr, until = positive(lr, "lr"), positive(until, "until")
    strengths, all_depths = np.array(layers, float), np.arange(1, longest + 1)
    exact = np.stack([_scaled_time(depth, singular_value=1.0, start=strengths**depth) for depth in all_depths], axis=1)
    deep = np.where(all_depths > 2, all_depths / np.maximum(all_depths - 2, 1), np.nan)
    rates = (lr, lr / 2, lr / 4)
    arrived, deepest = zip(*(_arrivals(depths, trained_layer, rate, seed) for rate in rates), strict=True)
    predicted = [float(_scaled_time(depth, singular_value=1.0, start=trained_layer**depth)) for depth in depths]
    stage = float(time_to(LEARNED, singular_value=1.0, start=PRETRAINED_FROM**2, depth=2))
    staged, autoencoder = _arrival(2, PRETRAINED_FROM**2, LEARNED, rates[-1], seed)
    setups = {"aligned, deepest": deepest[0], "one stage of pretraining": autoencoder}
    for sign in SIGNS:
        for depth in orthogonal_depths:
            label = f"orthogonal, {sign} determinant, depth {depth}"
            setups[label] = _orthogonal(depth, size, sign, lr, until, seed)
    all_seeds = list(range(seed, seed + seeds))
    losses = np.array(
        [
            [
                simulate(setups[f"orthogonal, {sign} determinant, depth {depth}"], all_seeds, "loss")["loss"]
                for depth in orthogonal_depths
            ]
            for sign in SIGNS
        ]
    )
    shallow = _orthogonal(2, size, "opposite", lr, until, seed).replace(rule=rules.GradientFlow(), times=[1e4])
    stuck = solve(shallow, "BalancedRiccati", seed=seed)
    setups["orthogonal, opposite determinant, depth 2"] = shallow
    values, both = _singular_values(size), np.array([2.0, 0.5])
    orthogonal = np.stack(
        [_scaled_time(depth, singular_value=both, start=1.0) for depth in (*all_depths, math.inf)], axis=1
    )
    import xarray

    data = xarray.Dataset(
        {
            "exact": (("layer_strength", "depth"), exact),
            "law": (("layer_strength", "depth"), deep / strengths[:, None] ** (all_depths - 2.0)),
            "printed": (("layer_strength", "depth"), 1 / strengths[:, None] ** all_depths.astype(float)),
            "training": (("rate", "trained_depth"), np.array(arrived)),
            "theory": (("trained_depth",), predicted),
            "pretraining": (("depth",), all_depths * staged),
            "orthogonal": (("singular_value", "depth_or_inf"), orthogonal),
            "loss": (("sign", "orthogonal_depth", "seed", "time"), losses / (0.5 * np.sum(values**2))),
        },
        coords={
            "layer_strength": strengths,
            "depth": all_depths,
            "rate": np.array(rates),
            "trained_depth": np.array(depths),
            "singular_value": both,
            "depth_or_inf": np.append(all_depths.astype(float), np.inf),
            "sign": list(SIGNS),
            "orthogonal_depth": np.array(orthogonal_depths),
            "time": np.linspace(0, until, losses.shape[-1]),
        },
        attrs={
            "stuck": float(stuck["loss"][-1]),
            "smallest_mode": float(0.5 * values.min() ** 2),
            "stage_training": float(staged),
            "stage_theory": stage,
        },
    )
    aligned = solve(setups["aligned, deepest"], "AlignedModes")
    return Result(data, setups, {"aligned, deepest": aligned, "orthogonal, depth 2": stuck})


def _singular_values(size: int) -> Float[np.ndarray, " mode"]:
    """Those of the target of random orthogonal networks."""
    return np.linspace(2.0, 1.0, size)


def _orthogonal(depth: int, size: int, sign: str, lr: float, until: float, seed: int) -> Setup:
    """A network of random orthogonal layers on a random target, with this sign of the determinant."""
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.normal(size=(size, size)))[0] for _ in range(2))
    values = _singular_values(size)
    task = tasks.from_moments(left * values @ right.T, np.eye(size), np.diag(values**2))
    net, init = nets.DeepLinear((size,) * (depth - 1)), inits.Orthogonal(1.0, determinant=sign)
    return Setup(task, net, init, rules.GradientDescent(lr / depth), times=np.linspace(0, until / depth, 61))


def claims(result: Result) -> list[Claim]:
    data = result.data
    errors = abs(data["training"] - data["theory"]).max("trained_depth").values
    deep = data.sel(layer_strength=0.3)
    far = float(np.abs(deep["exact"].sel(depth=slice(8, None)) / deep["law"].sel(depth=slice(8, None)) - 1).max())
    over = (data["exact"] / data["printed"]).sel(depth=10, layer_strength=0.1)
    slope = np.log(deep["exact"].sel(depth=20) / deep["exact"].sel(depth=10)) / np.log(1 / 0.3) / 10
    ends = data["loss"].isel(time=-1)
    orthogonal = data["orthogonal"].sel(singular_value=2.0)
    slow = data["orthogonal"].sel(singular_value=0.5)
    two = data["exact"].sel(depth=2)
    logarithmic = float(two.sel(layer_strength=0.1) - two.sel(layer_strength=0.3)) / np.log((0.3 / 0.1) ** 2)
    return [
        ours("Training tends to the time of the closed form as lr → 0: order", between(order(errors)[-1], 0.9, 1.1)),
        ours("The time is D/((D−2) s b₀^(D−2)) for b₀ = 0.3, D ≥ 8: largest relative error", at_most(far, 0.03)),
        ours("Every layer multiplies the time by 1/b₀: exponent, D from 10 to 20", between(slope, 0.95, 1.05)),
        paper(
            "The time is 1/(s b₀^D): actual / printed at b₀ = 0.1, D = 10",
            between(over, 0.5, 2.0),
            fails="the exponent is D − 2 for a network of depth D; 1/b₀^D belongs to the limit D → ∞",
        ),
        ours(
            "At depth 2 the time grows as ln(1/b₀²)/s: its growth from b₀ = 0.3 to 0.1 / ln 9",
            between(logarithmic, 0.9, 1.1),
        ),
        # Errors of first order in lr happen to cancel between this start and this end, so that no order is claimed.
        ours(
            "One stage of pretraining from b₀ = 0.01 takes the time of the sigmoid, D stages D times that: relative "
            "gap at the finest rate",
            at_most(abs(data.attrs["stage_training"] / data.attrs["stage_theory"] - 1), 1e-3),
        ),
        paper(
            "Pretraining takes O(D/b₀²): actual / printed",
            between(float(data["pretraining"].sel(depth=10)) / (10 / PRETRAINED_FROM**2), 0.1, 10),
            fails="D/b₀² is an upper bound only; the time is D ln(1/b₀)",
        ),
        paper(
            "Aligned orthogonal layers learn s = 2 in a time that does not grow with depth: longest over D",
            at_most(orthogonal.max(), 3.0),
        ),
        ours("… and s = 0.5 in a bounded time: its limit D → ∞", between(slow[-1], 7.55, 7.65)),
        ours(
            "With the wrong sign of the determinant no run learns, three layers or more: smallest loss left",
            at_least(ends.sel(sign="opposite").min(), 0.02),
        ),
        ours(
            "… and at depth 2 the exact flow never learns its smallest mode: loss at t = 10⁴ / (s²/2)",
            between(data.attrs["stuck"] / data.attrs["smallest_mode"], 1 - 1e-9, 1 + 1e-9),
        ),
        ours(
            "With the right sign the typical run learns: median loss left",
            at_most(ends.sel(sign="same").median(), 0.01),
        ),
        paper(
            "Random orthogonal layers learn in O(1), whatever their sign: largest loss left",
            at_most(ends.max(), 0.01),
            fails="half of all draws have a determinant of the wrong sign and stay at a saddle",
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, ((small, orthogonal, random),) = new_figure(1, 3, height=3.6)
    _draw_small(small, data)
    depth = data["depth_or_inf"].values[:-1]
    for colour, value in zip(COLOURS, data["singular_value"].values, strict=False):
        times = data["orthogonal"].sel(singular_value=value).values
        orthogonal.plot(depth, times[:-1], color=colour, label=f"s = {value:g}")
        orthogonal.axhline(times[-1], color=colour, linestyle=":", linewidth=1)
    orthogonal.set(xlabel="depth D", ylabel="learning time (τ/D)", title="from aligned orthogonal layers")
    orthogonal.set_ylim(0, None)
    orthogonal.legend(title="dotted: D → ∞", fontsize="small")
    for colour, sign in zip(COLOURS, data["sign"].values, strict=False):
        runs = data["loss"].sel(sign=sign).stack(run=("orthogonal_depth", "seed"))
        random.plot(data["time"], runs, color=colour, alpha=0.35, linewidth=1)
        random.plot([], [], color=colour, label=f"{sign} sign")
    random.set(xlabel="time (τ/D)", ylabel="loss / loss at zero weights", title="from random orthogonal layers")
    random.set(yscale="log", ylim=(1e-6, 2))
    random.legend(title="determinant", fontsize="small")
    return sheet


def _draw_small(axes: Axes, data: Dataset) -> None:
    """Learning times from small layers, exact and as printed, trained, and with pretraining."""
    for colour, layer in zip(COLOURS, data["layer_strength"].values, strict=False):
        times = data.sel(layer_strength=layer)
        axes.plot(data["depth"], times["exact"], color=colour, label=f"b₀ = {layer:g}")
        axes.plot(data["depth"], times["printed"], color=colour, linestyle=":", linewidth=1)
    axes.plot(data["trained_depth"], data["training"].isel(rate=-1), "o", color="0.3", markersize=4, label="trained")
    label = f"pretraining, b₀ = {PRETRAINED_FROM:g} (τ)"
    axes.plot(data["depth"], data["pretraining"], color="0.5", linestyle="-.", label=label)
    axes.set(yscale="log", xlabel="depth D", ylabel="learning time (τ/D)", title="from small layers", ylim=(1, 1e12))
    axes.legend(title="dotted: as printed", fontsize="small")
