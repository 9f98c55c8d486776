"""The imbalance of a single linear neuron decides how fast its weights turn, and whether its function waits for them.

A neuron f(x) = a w·x learns the target β* from white inputs; δ = a² − |w|² is conserved. The closed form is that of
λ-balanced networks with one hidden unit and one output, λ = δ, and covers δ = 0 and negative a. The angle θ between
w and β* obeys, once the start is forgotten,

    cot θ ∝ exp(½(√(4r² + δ²) + δ) t),      r = |β*|.

A large positive δ is lazy: a hardly changes, the function a w goes to the target on a straight line, and the tangent
kernel a² + wwᵀ stays as it is. A large negative δ is delayed: w is stiff, a alone fits what it can, and only then w
turns, at the rate r²/|δ|; the kernel turns with it. δ = 0 lies between, and its cosine is tanh(rt + artanh μ₀).
The published solution for ν = w·β*/a agrees with ours where it is finite. An antipodal start at δ = 0 never learns.

Inputs that are not white are outside this solution. In whitened inputs it holds again, for a neuron whose w is
initialised, and trained, in those inputs: it is another network, with the same best function.
"""

from __future__ import annotations

import numpy as np

from .. import inits, nets, rules, tasks
from .._errors import BadInput
from .._noun import positive, real_array, whole
from .._plot import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from .._solve import solve

REFERENCE = {"kunin2024": "figures 2-4 and the single-neuron solutions"}
QUICK = dict(lr=0.02, points=160)
HALVINGS = 3  # rates lr, lr/2, lr/4
FURTHER = (8.0, 16.0, 32.0)  # imbalances at which the approach to the lazy limit is read off
SEEN = ("map", "output_representation", "kernel_distance")


def run(
    *,
    deltas=(-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0),
    target=(0.0, 1.0),
    start=(-1.0, 0.0),
    aligned=0.5,
    cov_x=((2.0, 0.6), (0.6, 0.5)),
    until=20.0,
    lr=0.01,
    points=400,
    seed=0,
) -> Result:
    points = whole(points, "points", least=20)
    lr, until, aligned = positive(lr, "lr"), positive(until, "until"), positive(aligned, "aligned")
    deltas, target, start = (
        real_array(v, n, ndim=1) for v, n in ((deltas, "deltas"), (target, "target"), (start, "start"))
    )
    if 0.0 not in deltas or deltas.min() > -1 or deltas.max() < 1 or np.any(np.diff(deltas) <= 0):
        raise BadInput(f"deltas = {deltas.tolist()}", "rising, with 0, one <= −1 and one >= 1", "add the missing ones")
    if abs(start @ target) > 1e-12 or not np.linalg.norm(start) * np.linalg.norm(target) > 0:
        raise BadInput(
            f"start = {start.tolist()}, target = {target.tolist()}",
            "two orthogonal vectors that are not zero",
            "turn the start",
        )
    # Whole steps of the slowest rate, dense at the start, where unbalanced layers are fast.
    grid = np.concatenate([np.geomspace(lr, until, points // 2), np.linspace(0, until, points - points // 2)])
    times = np.unique(np.round(grid / lr)) * lr
    white = _task(target, np.eye(len(target)))

    def setup(beta, delta, sign=1, task=white, rate=lr / 2 ** (HALVINGS - 1), grid=times):
        weights = _neuron(np.asarray(beta), delta, sign)
        return Setup(task, nets.DeepLinear(1), inits.Given(weights), rules.GradientDescent(rate), times=grid)

    def seen(*args, **options):
        return simulate(setup(*args, **options), [seed], (*SEEN, "balance_drift"))

    def told(*args, strict=True, **options):
        flow = setup(*args, **options).replace(rule=rules.GradientFlow())
        return solve(flow, "BalancedRiccati", observe=SEEN, strict=strict)

    setups, theories = {}, {}
    for delta in deltas:
        setups[f"δ = {delta:g}"] = setup(start, delta)
        theories[f"δ = {delta:g}"] = solve(setups[f"δ = {delta:g}"], "BalancedRiccati", observe=SEEN)
    theory = list(theories.values())
    runs = [[seen(start, delta, rate=lr / 2**halving) for halving in range(HALVINGS)] for delta in deltas]
    finest = [each[-1] for each in runs]
    gaps = [[np.abs(r["map"][0] - t["map"]).max() for r in each] for each, t in zip(runs, theory, strict=True)]
    # Large layers are done early: the same number of times, in units of 1/δ.
    further = [told(start, delta, grid=times / delta) for delta in FURTHER]
    ahead = [told(aligned * target, delta) for delta in deltas]
    behind = np.array([-1.0, 0.0, 1.0])
    cov_x = real_array(cov_x, "cov_x", ndim=2)
    coloured = _task(target, cov_x)
    whitened = tasks.whitened(coloured)
    setups["whitened inputs"] = setup(start, 1.0, task=whitened)
    theories["whitened inputs"] = solve(setups["whitened inputs"], "BalancedRiccati", observe=SEEN)
    import xarray

    def stacked(name, trajectories):
        return np.array([each[name][0] if each.source == "simulate" else each[name] for each in trajectories])

    def gaps_to(task, delta=1.0, **options):
        prediction = told(start, delta, task=task, strict=False, **options)
        runs = [seen(start, delta, task=task, rate=lr / 2**halving, **options) for halving in range(HALVINGS)]
        return [np.abs(each["map"][0] - prediction["map"]).max() for each in runs]

    antipodal = {"theory": [told(-target, d) for d in behind], "training": [seen(-target, d) for d in behind]}
    data = xarray.Dataset(
        {
            "beta_theory": (("delta", "time", "input"), stacked("map", theory)[:, :, 0]),
            "beta_training": (("delta", "time", "input"), stacked("map", finest)[:, :, 0]),
            "gain_theory": (("delta", "time"), np.sqrt(stacked("output_representation", theory)[:, :, 0, 0])),
            "gain_training": (("delta", "time"), np.sqrt(stacked("output_representation", finest)[:, :, 0, 0])),
            "kernel_theory": (("delta", "time"), stacked("kernel_distance", theory)),
            "kernel_training": (("delta", "time"), stacked("kernel_distance", finest)),
            "gap": (("delta", "rate"), np.array(gaps)),
            "drift": (("delta", "rate"), np.array([[r["balance_drift"].max() for r in each] for each in runs])),
            "further_beta": (("further", "own_time", "input"), stacked("map", further)[:, :, 0]),
            "further_kernel": (("further", "own_time"), stacked("kernel_distance", further)),
            "ahead_beta": (("delta", "time", "input"), stacked("map", ahead)[:, :, 0]),
            "ahead_gain": (("delta", "time"), np.sqrt(stacked("output_representation", ahead)[:, :, 0, 0])),
            "negative_gain_gap": (("delta", "rate"), np.array([gaps_to(white, d, sign=-1) for d in deltas])),
            "antipodal_theory": (("behind", "time", "input"), stacked("map", antipodal["theory"])[:, :, 0]),
            "antipodal_training": (("behind", "time", "input"), stacked("map", antipodal["training"])[:, :, 0]),
            "whitened_gap": ("rate", gaps_to(whitened)),
            "coloured_gap": ("rate", gaps_to(coloured)),
            "whitened_end": ("input", theories["whitened inputs"]["map"][-1, 0] @ _inverse_root(cov_x)),
            "target": ("input", target),
            "start": ("input", start),
        },
        coords={
            "delta": deltas,
            "time": times,
            "own_time": times,  # times δ
            "rate": lr / 2.0 ** np.arange(HALVINGS),
            "further": list(FURTHER),
            "behind": behind,
        },
    )
    return Result(data, setups, theories)


def _task(target, cov_x):
    """The noiseless task y = β*·x with inputs of these second moments."""
    return tasks.from_moments((target @ cov_x)[None], cov_x, [[target @ cov_x @ target]])


def _inverse_root(matrix):
    variances, vectors = np.linalg.eigh(matrix)
    return vectors / np.sqrt(variances) @ vectors.T


def _neuron(beta, delta, sign):
    """Layers with a w = beta and a² − |w|² = delta, and this sign of a."""
    size = np.linalg.norm(beta)
    larger = np.sqrt(np.hypot(delta / 2, size) + abs(delta) / 2)
    gain = sign * (larger if delta >= 0 else size / larger)
    return [beta[None] / gain, np.array([[gain]])]


def published(times, delta, nu, r):
    """ν = w·β*/a as published, with coth for tanh where the start lies outside the two fixed points."""
    speed = np.sqrt(4 * r**2 + delta**2)
    where = (delta + 2 * nu) / speed
    if abs(where) < 1:
        return (-delta + speed * np.tanh(speed * times / 2 + np.arctanh(where))) / 2
    return (-delta + speed / np.tanh(speed * times / 2 + np.arctanh(1 / where))) / 2


def claims(result: Result) -> list[Claim]:
    data = result.data
    target, deltas, times = data.target.values, data.delta.values, data.time.values
    r = np.linalg.norm(target)
    order = np.log2(data.gap.values[:, :-1] / data.gap.values[:, 1:])[:, -1]
    negative = np.log2(data.negative_gain_gap.values[:, -2] / data.negative_gain_gap.values[:, -1])
    drift = np.log2(data.drift.values[:, :-1] / data.drift.values[:, 1:])[:, -1]
    measured, expected = _turning_rates(data), _predicted_rate(deltas, r)
    nus = [
        _gap_of_nu(times, beta.values @ target / gain.values**2, d, r)
        for betas, gains in ((data.beta_theory, data.gain_theory), (data.ahead_beta, data.ahead_gain))
        for beta, gain, d in zip(betas, gains, deltas, strict=True)
    ]
    balanced = _cosine(data.beta_theory.sel(delta=0.0).values, target)
    bends = np.array([_bend(beta, data.start.values, target) for beta in data.further_beta.values])
    kernels = data.further_kernel.values[:, -1]
    loss = _losses(data)
    slow = int(np.argmax(loss[0] < 0.6 * loss[0, 0]))
    stuck = data.sel(behind=0.0)
    crossed = max(float((stuck[f"antipodal_{kind}"] @ data.target).max()) for kind in ("theory", "training"))
    free = data.antipodal_training.isel(time=-1).sel(behind=[-1.0, 1.0])
    return [
        Claim.at_most(
            "Descent tends to the closed form as lr → 0 at first order: largest gap of the order over δ",
            np.abs(order - 1).max(),
            0.1,
        ),
        Claim.at_most(
            "δ is conserved: its drift in training is of first order in lr, largest gap of the order over δ",
            np.abs(drift - 1).max(),
            0.1,
            source="paper",
        ),
        Claim.at_most(
            "The published ν = w·β*/a, with tanh or coth, is ours: largest relative gap over δ and two starts",
            max(nus),
            1e-8,
            source="paper",
        ),
        Claim.at_most(
            "δ = 0: the cosine of w and β* is tanh(rt + artanh μ₀), μ₀ = 0: largest gap",
            np.abs(balanced - np.tanh(r * times)).max(),
            1e-9,
            source="paper",
        ),
        Claim.at_most(
            "w turns at the rate ½(√(4r² + δ²) + δ): largest relative gap in training over δ",
            np.abs(measured / expected - 1).max(),
            0.03,
        ),
        Claim.between(
            "δ ≫ 0 is lazy, the function goes straight: order of the bend of its path in 1/δ",
            np.log2(bends[-2] / bends[-1]),
            1.9,
            2.1,
            source="paper",
        ),
        Claim.between(
            "… and the tangent kernel stays: order of its final distance in 1/δ",
            np.log2(kernels[-2] / kernels[-1]),
            3.6,
            4.4,
            source="paper",
        ),
        Claim.at_most(
            f"δ = {deltas[0]:g} is delayed: kernel distance in training where the loss has fallen to 60 %",
            float(data.kernel_training[0, slow]),
            0.05,
            source="paper",
        ),
        Claim.at_least(
            "… and rich in the end: kernel distance", float(data.kernel_training[0, -1]), 0.5, source="paper"
        ),
        Claim.at_most(
            "From a < 0, too, descent tends to the closed form at first order: largest gap of the order over δ",
            np.abs(negative - 1).max(),
            0.1,
        ),
        Claim.at_most(
            "An antipodal start never turns at δ = 0: largest β·β* at any time, theory and training", crossed, 1e-6
        ),
        Claim.at_most(
            "… and is learned at δ = ±1: largest final distance from the target",
            float(np.abs(free - data.target).max()),
            0.01,
        ),
        Claim.between(
            "Inputs that are not white, whitened: order of the gap to the closed form in lr",
            np.log2(data.whitened_gap.values[-2] / data.whitened_gap.values[-1]),
            0.9,
            1.1,
        ),
        Claim.at_least(
            "… and not whitened, the closed form of white inputs is wrong: gap at the finest rate / at the coarsest",
            float(data.coloured_gap[-1] / data.coloured_gap[0]),
            0.9,
        ),
        Claim.at_most(
            "… and the whitened neuron learns β* of the original inputs: largest gap",
            float(np.abs(data.whitened_end - data.target).max()),
            1e-6,
        ),
    ]


def _losses(data, kind="training"):
    return 0.5 * ((data[f"beta_{kind}"] - data.target) ** 2).sum("input").values


def _cosine(beta, target):
    return beta @ target / (np.linalg.norm(beta, axis=-1) * np.linalg.norm(target))


def _turning_rate(times, beta, target, delta):
    """Growth rate of the cotangent of the angle to the target, once the start is forgotten and before rounding."""
    along = beta @ target / np.linalg.norm(target)
    across = np.linalg.norm(beta - np.outer(along, target) / np.linalg.norm(target), axis=1)
    speed = np.hypot(np.linalg.norm(target), delta / 2)
    inside = (speed * times > 3) & (along > 0) & (across > 1e-6 * along)
    return np.polyfit(times[inside], np.log(along[inside] / across[inside]), 1)[0]


def _turning_rates(data):
    """The same for every δ, in training."""
    curves = zip(data.beta_training.values, data.delta.values, strict=True)
    return np.array([_turning_rate(data.time.values, beta, data.target.values, delta) for beta, delta in curves])


def _predicted_rate(deltas, r):
    return (np.sqrt(4 * r**2 + deltas**2) + deltas) / 2


def _gap_of_nu(times, seen, delta, r):
    # The first time is the start, where ν may be zero.
    return np.abs(seen[1:] / published(times[1:], delta, seen[0], r) - 1).max()


def _bend(beta, start, target):
    """Largest distance of a path from the line between start and target, in lengths of that line."""
    line = target - start
    along = (beta - start) @ line / (line @ line)
    return np.linalg.norm(beta - start - np.outer(along, line), axis=1).max() / np.linalg.norm(line)


def figure(result: Result):
    data = result.data
    sheet, ((plane, turning, rates), (losses, kernels, behind)) = new_figure(2, 3, width=4.4, height=3.5)
    loss = {kind: _losses(data, kind) for kind in ("training", "theory")}
    for number, delta in enumerate(data.delta.values):
        colour = COLOURS[number % len(COLOURS)]
        for kind, draw in (("training", trained), ("theory", predicted)):
            beta, gain = data[f"beta_{kind}"].sel(delta=delta), data[f"gain_{kind}"].sel(delta=delta)
            angle = np.degrees(np.arccos(np.clip(_cosine(beta.values, data.target.values), -1, 1)))
            draw(plane, beta[:, 0], beta[:, 1], colour=colour)
            draw(turning, angle, gain, colour=colour)
            draw(losses, data.time[1:], loss[kind][number, 1:], colour=colour)
            draw(kernels, data.time[1:], data[f"kernel_{kind}"].sel(delta=delta)[1:], colour=colour)
        rates.plot([], [], color=colour, lw=3, label=f"δ = {delta:g}")
        turning.plot(angle[0], gain[0], "o", color=colour, ms=4, zorder=4)
    plane.plot(*data.start.values, "o", color="0.2", ms=6, zorder=4)
    plane.plot(*data.target.values, "*", color="0.2", ms=12, zorder=4)
    plane.set(xlabel="β₁", ylabel="β₂", title="function: from ● to ★", aspect="equal")
    legend_of_kinds(plane, loc="upper left", fontsize=8)
    turning.set(xlabel="angle between w and β* (degrees)", ylabel="a", title="weights: a, and the direction of w")
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
        xlabel=TIME, ylabel="β · β*", title="antipodal start (δ = ±1 coincide)", xlim=(0, 0.4 * float(data.time[-1]))
    )
    behind.legend(loc="center right", bbox_to_anchor=(1.0, 0.25), fontsize=8)
    return sheet


def _draw_rates(axes, data) -> None:
    """How fast w turns: in training, and as predicted."""
    deltas = np.linspace(float(data.delta.min()), float(data.delta.max()), 200)
    size = float(np.linalg.norm(data.target))
    axes.plot(deltas, _predicted_rate(deltas, size), color="0.1", lw=1.3, ls=(0, (4, 2)))
    for number, (delta, rate) in enumerate(zip(data.delta.values, _turning_rates(data), strict=True)):
        axes.plot(delta, rate, "o", color=COLOURS[number % len(COLOURS)], ms=7)
    axes.set(xlabel="imbalance δ", ylabel="rate of cot θ (1/τ)", title="how fast w turns, in training", yscale="log")
    axes.legend(loc="lower right", fontsize=8)
