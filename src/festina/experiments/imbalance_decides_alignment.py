"""The imbalance of a single linear neuron decides how fast its input weights turn to the target, and whether its
function has to wait for them.

A neuron f(x) = a w·x learns the target β* from white inputs; δ = a² − |w|² is conserved. Its closed form is that of
λ-balanced networks with one hidden unit and one output, λ = δ, and covers δ = 0 and negative a. The angle θ between w
and β* obeys, once the start is forgotten,

    cot θ ∝ exp(½(√(4r² + δ²) + δ) t),      r = |β*|.

A large positive δ is lazy: a hardly changes, the function a w goes to the target on a straight line, and the tangent
kernel a² + wwᵀ stays as it is. A large negative δ is delayed: w is stiff, a alone fits what it can, and only then w
turns, at the rate r²/|δ|; the kernel turns with it. δ = 0 lies between, and its cosine is tanh(rt + artanh μ₀), where
μ₀ is the cosine at the start. The published solution for ν = w·β*/a agrees with ours where it is finite. A neuron that
starts opposite to the target never learns if δ = 0.

Inputs that are not white are outside this solution. In whitened inputs it holds again, for a neuron whose w is
initialised, and trained, in those inputs: it is another network with the same best function.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from .. import BadInput, Setup, inits, nets, rules, solve, tasks
from .._figures.style import COLOURS, DASHES, TIME, legend_of_kinds, new_figure, predicted, trained
from .._formulas.curves import order
from .._foundation.checks import positive, real_array, whole
from ._kit import linear_neuron, printed_formulas
from ._kit.time_grids import dense_at_start
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

    from .. import Task, Trajectory

THEME, PLACE = "regimes", 3
REFERENCE = {"kunin2024": "figures 2-4 and the single-neuron solutions"}
QUICK = dict(lr=0.02, points=160)
HALVINGS = 3  # rates lr, lr/2, lr/4
FURTHER = (8.0, 16.0, 32.0)  # imbalances at which the approach to the lazy limit is read off
OPPOSITE = (-1.0, 0.0, 1.0)  # imbalances of neurons that start opposite to the target
OBSERVED = ("map", "output_representation", "kernel_distance")


def run(
    *,
    deltas: Sequence[float] = (-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0),
    target: Sequence[float] = (0.0, 1.0),
    start: Sequence[float] = (-1.0, 0.0),
    aligned: float = 0.5,
    cov_x: Sequence[Sequence[float]] = ((2.0, 0.6), (0.6, 0.5)),
    until: float = 20.0,
    lr: float = 0.01,
    points: int = 400,
    seed: int = 0,
) -> Result:
    """Neurons start at β = `start`, orthogonal to the `target`, and at `aligned` × target.

    `cov_x` are the second moments of the inputs that are not white.
    """
    points = whole(points, "points", least=20)
    lr, until, aligned = positive(lr, "lr"), positive(until, "until"), positive(aligned, "aligned")
    goal, across = real_array(target, "target", ndim=1), real_array(start, "start", ndim=1)
    imbalances = real_array(deltas, "deltas", ndim=1)
    if 0.0 not in imbalances or imbalances.min() > -1 or imbalances.max() < 1 or np.any(np.diff(imbalances) <= 0):
        needed = "rising, with 0, one <= −1 and one >= 1"
        raise BadInput(f"deltas = {imbalances.tolist()}", needed, "add the missing ones")
    if abs(across @ goal) > 1e-12 or not np.linalg.norm(across) * np.linalg.norm(goal) > 0:
        texts = f"start = {across.tolist()}, target = {goal.tolist()}"
        raise BadInput(texts, "two orthogonal vectors that are not zero", "turn the start")
    times, rates = dense_at_start(until, points, lr), lr / 2.0 ** np.arange(HALVINGS)
    moments = real_array(cov_x, "cov_x", ndim=2)
    white, coloured = linear_neuron.noiseless_task(goal, np.eye(len(goal))), linear_neuron.noiseless_task(goal, moments)
    whitened = tasks.whitened(coloured)

    def setup(
        beta: np.ndarray,
        delta: float,
        sign: int = 1,
        task: Task = white,
        rate: float = rates[-1],
        grid: np.ndarray = times,
    ) -> Setup:
        weights = linear_neuron.layers(beta, delta, sign)
        return Setup(task, nets.DeepLinear(1), inits.Given(weights), rules.GradientDescent(rate), times=grid)

    def training(beta: np.ndarray, delta: float, rate: float = rates[-1], **options: Any) -> Trajectory:
        return simulate(setup(beta, delta, rate=rate, **options), [seed], (*OBSERVED, "balance_drift"))

    def exact(beta: np.ndarray, delta: float, strict: bool = True, **options: Any) -> Trajectory:
        flow = setup(beta, delta, **options).replace(rule=rules.GradientFlow())
        return solve(flow, "BalancedRiccati", observe=OBSERVED, strict=strict)

    def gaps_to_exact(task: Task, delta: float = 1.0, **options: Any) -> list[float]:
        prediction = exact(across, delta, task=task, strict=False, **options)
        descents = [training(across, delta, rate, task=task, **options) for rate in rates]
        return [np.abs(descent["map"][0] - prediction["map"]).max() for descent in descents]

    setups = {f"δ = {delta:g}": setup(across, delta) for delta in imbalances}
    setups["whitened inputs"] = setup(across, 1.0, task=whitened)
    theories = {label: solve(neuron, "BalancedRiccati", observe=OBSERVED) for label, neuron in setups.items()}
    theory = [theories[f"δ = {delta:g}"] for delta in imbalances]
    runs = [[training(across, delta, rate) for rate in rates] for delta in imbalances]
    finest = [descents[-1] for descents in runs]
    gaps = [
        [np.abs(descent["map"][0] - prediction["map"]).max() for descent in descents]
        for descents, prediction in zip(runs, theory, strict=True)
    ]
    # Neurons with a large δ learn early, so their times are in units of 1/δ.
    further = [exact(across, delta, grid=times / delta) for delta in FURTHER]
    ahead = [exact(aligned * goal, delta) for delta in imbalances]
    end = theories["whitened inputs"]["map"][-1, 0] @ linear_neuron.inverse_root(moments)
    drift = [[descent["balance_drift"].max() for descent in descents] for descents in runs]
    import xarray

    path, curve = ("delta", "time", "input"), ("delta", "time")
    data = xarray.Dataset(
        {
            "beta_theory": (path, _stacked("map", theory)[:, :, 0]),
            "beta_training": (path, _stacked("map", finest)[:, :, 0]),
            "gain_theory": (curve, _gains(theory)),
            "gain_training": (curve, _gains(finest)),
            "kernel_theory": (curve, _stacked("kernel_distance", theory)),
            "kernel_training": (curve, _stacked("kernel_distance", finest)),
            "gap": (("delta", "rate"), np.array(gaps)),
            "drift": (("delta", "rate"), np.array(drift)),
            "further_beta": (("further", "own_time", "input"), _stacked("map", further)[:, :, 0]),
            "further_kernel": (("further", "own_time"), _stacked("kernel_distance", further)),
            "ahead_beta": (path, _stacked("map", ahead)[:, :, 0]),
            "ahead_gain": (curve, _gains(ahead)),
            "negative_gain_gap": (("delta", "rate"), np.array([gaps_to_exact(white, d, sign=-1) for d in imbalances])),
            "antipodal_theory": (
                ("behind", "time", "input"),
                _stacked("map", [exact(-goal, delta) for delta in OPPOSITE])[:, :, 0],
            ),
            "antipodal_training": (
                ("behind", "time", "input"),
                _stacked("map", [training(-goal, delta) for delta in OPPOSITE])[:, :, 0],
            ),
            "whitened_gap": ("rate", gaps_to_exact(whitened)),
            "coloured_gap": ("rate", gaps_to_exact(coloured)),
            "whitened_end": ("input", end),
            "target": ("input", goal),
            "start": ("input", across),
        },
        coords={
            "delta": imbalances,
            "time": times,
            "own_time": times,  # times δ
            "rate": rates,
            "further": list(FURTHER),
            "behind": np.array(OPPOSITE),
        },
    )
    return Result(data, setups, theories)


def _stacked(name: str, trajectories: Iterable[Trajectory]) -> np.ndarray:
    """An observable of theories, or of runs of one seed."""
    return np.array([curves[name][0] if curves.source == "simulate" else curves[name] for curves in trajectories])


def _gains(trajectories: Iterable[Trajectory]) -> Float[np.ndarray, "delta time"]:
    """|a|, the gain of the neuron."""
    return np.sqrt(_stacked("output_representation", trajectories)[:, :, 0, 0])


def claims(result: Result) -> list[Claim]:
    data = result.data
    target, deltas, times = data.target.values, data.delta.values, data.time.values
    r = float(np.linalg.norm(target))
    orders, drift, negative = (order(data[name].values)[:, -1] for name in ("gap", "drift", "negative_gain_gap"))
    turning = _turning_rates(data) / linear_neuron.predicted_turning_rate(deltas, r)
    nu_gaps = [
        _gap_of_nu(times, beta.values @ target / gain.values**2, d, r)
        for betas, gains in ((data.beta_theory, data.gain_theory), (data.ahead_beta, data.ahead_gain))
        for beta, gain, d in zip(betas, gains, deltas, strict=True)
    ]
    balanced = linear_neuron.cosine(data.beta_theory.sel(delta=0.0).values, target)
    bends = np.array([linear_neuron.bend(beta, data.start.values, target) for beta in data.further_beta.values])
    kernels = data.further_kernel.values[:, -1]
    loss = _losses(data)
    slow = int(np.argmax(loss[0] < 0.6 * loss[0, 0]))
    stuck = data.sel(behind=0.0)
    crossed = max(float((stuck[f"antipodal_{kind}"] @ data.target).max()) for kind in ("theory", "training"))
    free = data.antipodal_training.isel(time=-1).sel(behind=[-1.0, 1.0])
    return [
        ours(
            "Descent tends to the closed form at first order in lr: largest gap of the order from 1 over δ",
            at_most(np.abs(orders - 1).max(), 0.1),
        ),
        paper(
            "δ is conserved: its drift in training is of first order in lr: largest gap of the order from 1 over δ",
            at_most(np.abs(drift - 1).max(), 0.1),
        ),
        paper(
            "The published ν = w·β*/a, with tanh or coth, agrees with ours: largest relative gap over δ and two starts",
            at_most(max(nu_gaps), 1e-8),
        ),
        paper(
            "For δ = 0 the cosine of w and β* is tanh(rt + artanh μ₀), here μ₀ = 0: largest gap",
            at_most(np.abs(balanced - np.tanh(r * times)).max(), 1e-9),
        ),
        ours(
            "w turns at the rate ½(√(4r² + δ²) + δ): largest relative gap in training over δ",
            at_most(np.abs(turning - 1).max(), 0.03),
        ),
        paper(
            "δ ≫ 0 is lazy: the function goes straight to the target: order in 1/δ of the bend of its path",
            between(order(bends)[-1], 1.9, 2.1),
        ),
        paper(
            "… and the tangent kernel stays: order in 1/δ of its final distance",
            between(order(kernels)[-1], 3.6, 4.4),
        ),
        paper(
            f"δ = {deltas[0]:g} is delayed: kernel distance in training when the loss has fallen to 60 %",
            at_most(data.kernel_training[0, slow], 0.05),
        ),
        paper("… and rich in the end: final kernel distance in training", at_least(data.kernel_training[0, -1], 0.5)),
        ours(
            "From a < 0, too, descent tends to the closed form at first order: largest gap of the order from 1 over δ",
            at_most(np.abs(negative - 1).max(), 0.1),
        ),
        ours(
            "From a start opposite to the target w never turns if δ = 0: largest β·β* at any time, theory and training",
            at_most(crossed, 1e-6),
        ),
        ours(
            "… and with δ = ±1 the target is learned: largest final distance from it",
            at_most(np.abs(free - data.target).max(), 0.01),
        ),
        ours(
            "In whitened inputs descent tends to the closed form of white inputs: order in lr",
            between(order(data.whitened_gap.values)[-1], 0.9, 1.1),
        ),
        ours(
            "… and in the same inputs before whitening it does not: gap at the finest rate / at the coarsest",
            at_least(data.coloured_gap[-1] / data.coloured_gap[0], 0.9),
        ),
        ours(
            "… and the neuron in whitened inputs learns β* of the original inputs: largest gap",
            at_most(np.abs(data.whitened_end - data.target).max(), 1e-6),
        ),
    ]


def _losses(data: Dataset, kind: str = "training") -> Float[np.ndarray, "delta time"]:
    """½|β − β*|², of training or of the theory."""
    return 0.5 * ((data[f"beta_{kind}"] - data.target) ** 2).sum("input").values


def _turning_rates(data: Dataset) -> Float[np.ndarray, " delta"]:
    """How fast w turns in training."""
    times, target = data.time.values, data.target.values
    paths = zip(data.beta_training.values, data.delta.values, strict=True)
    return np.array([linear_neuron.turning_rate(times, beta, target, delta) for beta, delta in paths])


def _gap_of_nu(times: np.ndarray, nu: np.ndarray, delta: float, r: float) -> float:
    """The largest relative gap between a curve of ν and the published one from the same start."""
    # The first time is the start, where ν may be zero.
    return float(np.abs(nu[1:] / printed_formulas.single_neuron_ratio(times[1:], delta, nu[0], r) - 1).max())


def figure(result: Result) -> Figure:
    data = result.data
    sheet, ((plane, turning, rates), (losses, kernels, behind)) = new_figure(2, 3, width=4.4, height=3.5)
    loss = {kind: _losses(data, kind) for kind in ("training", "theory")}
    for number, delta in enumerate(data.delta.values):
        colour = COLOURS[number % len(COLOURS)]
        for kind, draw in (("training", trained), ("theory", predicted)):
            beta, gain = data[f"beta_{kind}"].sel(delta=delta), data[f"gain_{kind}"].sel(delta=delta)
            angle = np.degrees(np.arccos(np.clip(linear_neuron.cosine(beta.values, data.target.values), -1, 1)))
            draw(plane, beta[:, 0], beta[:, 1], colour=colour)
            draw(turning, angle, gain, colour=colour)
            draw(losses, data.time[1:], loss[kind][number, 1:], colour=colour)
            draw(kernels, data.time[1:], data[f"kernel_{kind}"].sel(delta=delta)[1:], colour=colour)
            turning.plot(angle[0], gain[0], "o", color=colour, ms=4, zorder=4)
        rates.plot([], [], color=colour, lw=3, label=f"δ = {delta:g}")
    plane.plot(*data.start.values, "o", color="0.2", ms=6, zorder=4)
    plane.plot(*data.target.values, "*", color="0.2", ms=12, zorder=4)
    plane.set(xlabel="β₁", ylabel="β₂", title="function β: start ●, target ★", aspect="equal")
    legend_of_kinds(plane, loc="upper left", fontsize=8)
    turning.set(xlabel="angle between w and β* (degrees)", ylabel="a", title="weights: a and the direction of w")
    turning.invert_xaxis()
    _draw_rates(rates, data)
    losses.set(xlabel=TIME, ylabel="loss", title="loss", xscale="log")
    kernels.set(xlabel=TIME, ylabel="kernel distance from the start", title="tangent kernel", xscale="log")
    for number, delta in enumerate(data.behind.values):
        colour = COLOURS[(2, 3, 4)[number]]
        along = {kind: data[f"antipodal_{kind}"].sel(behind=delta) @ data.target for kind in ("training", "theory")}
        trained(behind, data.time, along["training"], colour=colour)
        predicted(behind, data.time, along["theory"], colour=colour)
        behind.plot([], [], color=colour, lw=3, label=f"δ = {delta:g}")
    behind.set(
        xlabel=TIME, ylabel="β · β*", title="opposite start (δ = ±1 coincide)", xlim=(0, 0.4 * float(data.time[-1]))
    )
    behind.legend(loc="center right", bbox_to_anchor=(1.0, 0.25), fontsize=8)
    return sheet


def _draw_rates(axes: Axes, data: Dataset) -> None:
    """How fast w turns, in training and as predicted."""
    deltas = np.linspace(float(data.delta.min()), float(data.delta.max()), 200)
    size = float(np.linalg.norm(data.target))
    axes.plot(deltas, linear_neuron.predicted_turning_rate(deltas, size), color="0.1", lw=1.3, ls=DASHES)
    for number, (delta, rate) in enumerate(zip(data.delta.values, _turning_rates(data), strict=True)):
        axes.plot(delta, rate, "o", color=COLOURS[number % len(COLOURS)], ms=7)
    axes.set(xlabel="imbalance δ", ylabel="growth rate of cot θ (1/τ)", title="how fast w turns", yscale="log")
    axes.legend(loc="lower right", fontsize=8)
