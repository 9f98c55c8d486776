"""The equations of the two-point theory, said to have no analytic solution, are solved by elementary functions.

Two points of a network have the squared distances H in a layer, P in the output, X of inputs and Y of targets, and
w = P − dy·Δy*. The three equations for H, P and w have no analytic solution, says the source, and its figures integrate
them. They are a linear network with one hidden unit in disguise, and that is solved. Here the closed form is put beside
integration in regular variables, for random pairs, time constants and numbers of outputs. The equations as printed
divide by H, which reaches zero in finite time from starts whose outputs point away from the target: there solvers err,
and on the border between starts that pass through zero and starts that turn before it they leave the solution.

Two-layer linear networks on x and −x obey it with nothing to fit: τ = 2/η in steps of gradient descent with rate η. The
source forgets the average over two points in its gradient, and has τ = 1/η. What the theory neglects is that the
hidden difference turns. With one output the turning network is solved, too, and says what neglect costs: little of the
final distance where weights are small, although they turn far, and a seventh of it at weights of order 1.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.integrate import solve_ivp

from .. import inits, nets, rules, tasks
from .._errors import BadInput
from .._noun import positive, real_array, whole
from .._plot import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from .._solve import solve
from ..theories.two_point import final_distance, rotated_final_distance, rotating, trajectory

REFERENCE = {"vanrossem2024": "appendix A, eqs. 7, 10, 17 and 24"}
QUICK = dict(pairs=18, draws=60, networks=4, records=16, points=50, width=30)
CURVES = ("distance", "output", "alignment")
OBSERVED = ("distance", "output_distance", "output_alignment")
STEPS = 3  # rates lr, lr/2, lr/4
EXACT = dict(method="DOP853", rtol=1e-12, atol=1e-15)
SOLVERS = ("Radau", "LSODA")
BORDER = (1.0, 1.0, 2.0)  # H, P and w of a balanced start away from the target, at X = Y = τ_h = τ_y = 1
START = ("distance0", "output0", "alignment0")
ONES = dict(input_gap=1.0, target_gap=1.0, tau_h=1.0, tau_y=1.0)


def run(
    *,
    pairs=60,
    outputs=(1, 2, 5),
    spread=1.0,
    until=15.0,
    records=31,
    networks=8,
    hidden=8,
    gain=0.1,
    lr=0.04,
    training=8.0,
    points=100,
    scales=(0.01, 0.1, 0.3, 1.0, 2.0),
    width=100,
    draws=400,
    seed=0,
) -> Result:
    pairs, records, networks = (
        whole(pairs, "pairs", least=6),
        whole(records, "records", least=3),
        whole(networks, "networks"),
    )
    hidden, points, width, draws = (
        whole(value, name, least=2)
        for value, name in ((hidden, "hidden"), (points, "points"), (width, "width"), (draws, "draws"))
    )
    spread, until, gain, lr = (
        positive(v, n) for v, n in ((spread, "spread"), (until, "until"), (gain, "gain"), (lr, "lr"))
    )
    training, scales = positive(training, "training"), real_array(scales, "scales", ndim=1)
    outputs = tuple(whole(count, "outputs") for count in outputs)
    if not outputs or min(scales, default=0) <= 0:
        raise BadInput(f"outputs = {outputs}, scales = {scales}", "some of each, scales > 0", "give outputs=(1, 2)")
    import xarray

    rng = np.random.default_rng(seed)
    parts = {**_pairs(rng, pairs, outputs, spread, np.linspace(0, until, records)), **_at_zero(points)}
    trained, setups, theories = _networks(rng, networks, hidden, gain, lr, training, points)
    parts |= trained | _turning(rng, scales, width, draws)
    data = xarray.Dataset(
        parts,
        coords={
            "curve": list(CURVES),
            "time": np.linspace(0, until, records),
            "solver": list(SOLVERS),
            "rate": lr / 2.0 ** np.arange(STEPS),
            "kind": ["one direction", "any direction"],
            "scale": scales,
        },
    )
    return Result(data, setups, theories)


def _integrated(speed, start, times, **options):
    """States at `times`, (time, …); from time to time, since between its own steps a solver interpolates."""
    states = [np.asarray(start, float)]
    for begin, end in itertools.pairwise(times):
        found = solve_ivp(speed, (begin, end), states[-1].ravel(), **{**EXACT, **options})
        states.append(found.y[:, -1].reshape(states[0].shape))
    return np.stack(states)


def _curves(hidden, output, target):
    """H, P and w of differences in the layer (…, unit) and in the output (…, feature)."""
    P = np.sum(output**2, axis=-1)
    return np.stack([np.sum(hidden**2, axis=-1), P, P - np.sum(output * target, axis=-1)])


def _pairs(rng, count, outputs, spread, times):
    """Random pairs of points, integrated as r and v (dh = r n, dy = r v), and in closed form.

    The unit of time is √(τ_h τ_y/(XY)). Every third start points away from the target.
    """
    X, Y, kappa = np.exp(rng.uniform(-spread, spread, (3, count)))
    mean = np.sqrt(X * Y)
    tau_h, tau_y = mean / np.sqrt(kappa), mean * np.sqrt(kappa)
    r = np.exp(rng.uniform(-2 * spread, 0, count))
    v = rng.normal(size=(count, max(outputs))) * np.exp(rng.uniform(-2 * spread, 0, (count, 1)))
    v *= np.arange(max(outputs)) < np.resize(outputs, count)[:, None]
    v[::3, 0] = -np.abs(v[::3, 0])
    target = np.sqrt(Y)[:, None] * np.eye(max(outputs))[0]

    def speed(_, flat):
        r, v = np.split(flat.reshape(count, -1), [1], axis=1)
        error = r * v - target
        return np.hstack(
            [-(X / (2 * tau_h))[:, None] * np.sum(v * error, axis=1, keepdims=True), -r * error / (2 * tau_y)[:, None]]
        ).ravel()

    states = _integrated(speed, np.column_stack([r, v]), times)
    r, v = states[..., :1], states[..., 1:]
    integral = np.moveaxis(_curves(r, r * v, target), 1, -1)  # (curve, pair, time)
    task = dict(input_gap=X, target_gap=Y, tau_h=tau_h, tau_y=tau_y)
    start = dict(zip(START, integral[..., 0], strict=True))
    late = _integrated(speed, states[-1], times[-1] + np.array([0, 20.0, 200.0]))[-1]
    swapped = final_distance(**start, **{**task, "tau_h": tau_y, "tau_y": tau_h})
    constant = integral[0] - (kappa * X)[:, None] * integral[1] / integral[0]
    size = np.abs(constant[:, :1]) + integral[0].max(axis=1, keepdims=True)
    return {
        "integral": (("curve", "pair", "time"), integral),
        "closed_form": (("curve", "pair", "time"), np.stack(trajectory(times, **start, **task))),
        "through_zero": ("pair", (states[..., 0].min(axis=0) < 0).astype(int)),
        "kappa": ("pair", kappa),
        "conserved_drift": ("pair", np.max(np.abs(constant - constant[:, :1]) / size, axis=1)),
        "final": ("pair", final_distance(**start, **task)),
        "final_swapped": ("pair", swapped),
        "final_integral": ("pair", late[:, 0] ** 2),
    }


def _at_zero(points):
    """A start that tends to H = 0, in closed form and by solvers at default tolerances on the equations as printed."""

    def printed(_, state):
        H, P, w = state
        return [-w, -w * (H + P / H), -(3 * w - P + 1) * H / 2 - (P + w) * w / (2 * H)]

    times = np.linspace(0, 60.0, points)
    solved = np.full((len(SOLVERS), points), np.nan)
    for curve, solver in zip(solved, SOLVERS, strict=True):
        reached = solve_ivp(printed, (0, times[-1]), BORDER, method=solver, t_eval=times).y[0]
        curve[: len(reached)] = reached
    closed = trajectory(times, **dict(zip(START, BORDER, strict=True)), **ONES).distance
    return {
        "zero_time": ("zero_time", times),
        "zero_closed_form": ("zero_time", closed),
        "zero_solved": (("solver", "zero_time"), solved),
    }


def _networks(rng, count, hidden, gain, lr, until, points):
    """Networks with one output on x and −x, at three rates: with a decoder along dh, and with any."""
    times = np.unique(np.round(np.linspace(0, until, points) / lr)) * lr
    half = rng.normal(size=3)
    half /= np.linalg.norm(half)
    task = tasks.from_arrays(np.stack([-half, half]), np.array([[-1.0], [1.0]]))
    encoders = gain * rng.normal(size=(count, hidden, 3))
    straight = rng.uniform(-0.8, 0.8, (count, 1, 1)) * np.swapaxes(encoders @ half[:, None], 1, 2)
    random = gain * rng.normal(size=(count, 1, hidden))
    plain = Setup(
        task, nets.DeepLinear(hidden), rule=rules.GradientDescent(lr), times=times, init=inits.SmallRandom(gain)
    )
    starts = [
        [plain.replace(init=inits.Given(w)) for w in zip(encoders, last, strict=True)] for last in (straight, random)
    ]
    seen = np.array(
        [
            [
                [_read(simulate(one.replace(rule=rules.GradientDescent(lr / 2**k)), [0], OBSERVED))[0] for one in kind]
                for k in range(STEPS)
            ]
            for kind in starts
        ]
    )  # (kind, rate, network, curve, time)
    begun = dict(zip(START, np.moveaxis(seen[0, 0, :, :, 0], 1, 0), strict=True))
    gaps = dict(input_gap=4.0, target_gap=4.0)
    # In units of t = lr × steps.
    told, printed = (np.stack(trajectory(times, **begun, **gaps, tau_h=tau, tau_y=tau), axis=1) for tau in (2.0, 1.0))
    theories = [solve(one, "TwoPoint", observe=OBSERVED) for one in starts[1]]
    told = np.stack([told, [_read(theory) for theory in theories]])
    size = np.abs(told).max(axis=(2, 3))
    gap = np.abs(seen - told[:, None]).max(axis=(3, 4)) / size[:, None]
    return (
        {
            "training": (("kind", "network", "curve", "step_time"), seen[:, -1]),
            "theory": (("kind", "network", "curve", "step_time"), told),
            "gap": (("kind", "rate", "network"), gap),
            "gap_as_printed": ("network", np.abs(seen[0, -1] - printed).max(axis=(1, 2)) / size[0]),
            "step_time": ("step_time", times),
        },
        {"any direction": starts[1][0]},
        {"any direction": theories[0]},
    )


def _read(trajectory):
    """H, P and w of the one layer and pair, (…, curve, time)."""
    distance, *others = (np.asarray(trajectory[name]) for name in OBSERVED)
    return np.stack([distance[..., 0, 0], *(other[..., 0] for other in others)], axis=-2)


def _turning(rng, scales, width, draws):
    """Random networks with one output, X = Y = τ_h = τ_y = 1: as they turn, and as if they did not."""
    until, few = 60.0, min(draws, 10)
    times = np.linspace(0, until, 241)
    shape = (len(scales), draws, width)
    u, v = (scales[:, None, None] / np.sqrt(width) * rng.normal(size=shape) for _ in range(2))
    squares = [np.sum(a * b, axis=-1) for a, b in ((u, u), (v, v), (u, v))]
    begun = dict(zip(("distance0", "decoder0", "along0"), squares, strict=True))
    m = squares[2]
    straight = dict(distance0=squares[0], output0=m**2, alignment0=m**2 - m)
    turned, unturned = rotating(times, **begun, **ONES).distance, trajectory(times, **straight, **ONES).distance
    change = np.abs(turned - turned[..., :1]).max(axis=-1)

    def speed(_, flat):
        u, v = flat.reshape(2, -1, width)
        error = np.sum(u * v, axis=-1, keepdims=True) - 1
        return np.stack([-v * error, -u * error]).ravel() / 2

    flat = np.stack([u[:, :few].reshape(-1, width), v[:, :few].reshape(-1, width)])
    after = _integrated(speed, flat, [0, until / 12, until], rtol=1e-10, atol=1e-13)[:, 0]
    cosine = np.sum(after[0] * after[-1], axis=-1) / np.prod(np.linalg.norm(after[[0, -1]], axis=-1), axis=0)
    true = np.sum(after**2, axis=-1).reshape(3, len(scales), few)
    mine = np.moveaxis(turned[:, :few, [0, len(times) // 12, -1]], -1, 0)
    end = rotated_final_distance(**begun, **ONES)
    return {
        "turned_gap": ("scale", np.max(np.abs(mine - true) / true, axis=(0, 2))),
        "unturned_final": (("scale", "draw"), np.abs(final_distance(**straight, **ONES) / end - 1)),
        "unturned_course": (("scale", "draw"), np.abs(unturned - turned).max(axis=-1) / change),
        "angle": (("scale", "few"), np.degrees(np.arccos(np.clip(cosine, -1, 1))).reshape(len(scales), few)),
    }


def claims(result: Result) -> list[Claim]:
    data = result.data
    size = np.abs(data.integral).max("time")
    gap = float((np.abs(data.closed_form - data.integral).max("time") / size).max())
    order = np.log2(data.gap.values[:, -2] / data.gap.values[:, -1])
    swapped = np.abs(data.final_swapped / data.final_integral - 1)
    late = data.zero_time > data.zero_time[-1] / 2
    left = np.abs(data.zero_solved.sel(solver="Radau") - data.zero_closed_form)[late]
    return [
        Claim.at_least(
            "The three equations have no analytic solution (A.3): largest gap of the elementary one / curve",
            gap,
            1e-9,
            source="paper",
            expected=False,
            reason="they are a linear network with one hidden unit, whose integral is elementary",
        ),
        Claim.at_least(
            "Radau on the printed equations leaves the border, on which H → 0 in closed form: largest late gap",
            float(left.max()),
            0.1,
        ),
        Claim.between(
            "Networks tend to it with τ = 2/η, nothing fitted: order in the learning rate, the one farthest from 1",
            float(order.ravel()[np.argmax(np.abs(order - 1))]),
            0.9,
            1.1,
        ),
        Claim.at_most(
            "Networks obey it with τ = 1/η (eq. 17 as printed): least gap / curve",
            float(data.gap_as_printed.min()),
            0.05,
            source="paper",
            expected=False,
            reason="the gradient of the average over two points is half of the printed one, so that τ = 2/η",
        ),
        Claim.at_most(
            "H − κXP/H is conserved (eq. 24): largest drift / size",
            float(data.conserved_drift.max()),
            1e-9,
            source="paper",
        ),
        Claim.at_most(
            "The final distance is that of eq. 10: largest relative gap",
            float(np.abs(data.final / data.final_integral - 1).max()),
            1e-6,
            source="paper",
        ),
        Claim.at_least("… and not with τ_h and τ_y exchanged: median relative gap", float(swapped.median()), 0.1),
        Claim.at_most(
            "With one output a network that turns is solved, too: largest relative gap of H to its integral",
            float(data.turned_gap.max()),
            1e-7,
        ),
        Claim.between(
            "… and says what neglect of turning costs: largest median gap of the final distance over scales",
            float(data.unturned_final.median("draw").max()),
            0.1,
            0.2,
        ),
    ]


def figure(result: Result):
    data = result.data
    sheet, ((pairs, zero, networks), (rates, ends, turning)) = new_figure(2, 3, width=4.6, height=3.5)
    _draw_pairs(pairs, data)
    _draw_zero(zero, data)
    for number, kind in enumerate(data.kind.values):
        some = data.sel(kind=kind, curve="distance").isel(network=slice(3))
        for network in range(some.sizes["network"]):
            trained(networks, data.step_time, some.training[network], colour=COLOURS[number])
            predicted(networks, data.step_time, some.theory[network], colour=COLOURS[number])
        networks.plot([], [], color=COLOURS[number], lw=3, label=kind)
    networks.set(xlabel=TIME, ylabel="H", title="linear networks, nothing fitted")
    networks.set_ylim(0, 1.35 * float(data.theory.sel(curve="distance").max()))
    networks.add_artist(networks.legend(loc="lower right", fontsize=8, title="decoder and dh", title_fontsize=8))
    legend_of_kinds(networks, loc="upper right", fontsize=8)
    for number, kind in enumerate(data.kind.values):
        rates.loglog(data.rate, data.gap.sel(kind=kind), "o-", color=COLOURS[number], lw=1, ms=4, label=None)
        rates.plot([], [], "o-", color=COLOURS[number], lw=1, ms=4, label=kind)
    printed = data.gap_as_printed.values
    rates.loglog(np.full(len(printed), data.rate[-1]), printed, "x", color="0.3", ms=6, label="τ = 1/η, as printed")
    slope = float(data.gap.min()) * data.rate / data.rate[-1]
    rates.loglog(data.rate, slope / 2, color="0.6", lw=1, ls=":", label="order 1")
    rates.set(xlabel="learning rate η", ylabel="largest gap / curve", title="training tends to it with τ = 2/η")
    rates.set_xticks(data.rate.values, [f"{rate:g}" for rate in data.rate.values])
    rates.set_xticks([], minor=True)
    rates.legend(loc="upper right", bbox_to_anchor=(1.0, 0.97), fontsize=8)
    _draw_ends(ends, data)
    for number, (values, label) in enumerate(
        ((data.unturned_course, "time course of H"), (data.unturned_final, "final distance"))
    ):
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9], axis=1)
        turning.loglog(data.scale, middle, "o-", color=COLOURS[number], ms=4, label=label)
        turning.fill_between(data.scale, low, high, color=COLOURS[number], alpha=0.2, lw=0)
    angles = data.angle.median("few").values
    for scale, angle in zip(data.scale.values, angles, strict=True):
        turning.annotate(
            f"{angle:.0f}°", (scale, 0.02), xycoords=("data", "axes fraction"), ha="center", fontsize=8, color="0.3"
        )
    turning.set(xlabel="scale of the weights", ylabel="relative gap", title="cost of neglecting rotation (its angle)")
    turning.legend(loc="upper left", fontsize=8)
    return sheet


def _draw_pairs(axes, data) -> None:
    """A few of the pairs: those that pass through zero, and others."""
    passing = np.flatnonzero(data.through_zero)[:2]
    chosen = [*passing, *np.flatnonzero(data.through_zero == 0)[: 6 - len(passing)]]
    for number, pair in enumerate(chosen):
        for curve, draw in ((data.integral, trained), (data.closed_form, predicted)):
            draw(axes, data.time, (curve / data.final).isel(pair=pair).sel(curve="distance"), colour=COLOURS[number])
    axes.set(xlabel="time (√(τₕτᵧ/XY))", ylabel="H / final H", title="closed form on integration")
    kinds = [axes.plot([], [], color="0.75", lw=4)[0], axes.plot([], [], color="0.1", lw=1.3, ls=(0, (4, 2)))[0]]
    axes.legend(kinds, ["integration", "closed form"], loc="lower right", fontsize=8)


def _draw_zero(axes, data) -> None:
    """The border of starts that pass through zero, where the closed form stays and solvers do not."""
    for number, solver in enumerate(data.solver.values):
        axes.plot(data.zero_time, data.zero_solved.sel(solver=solver), color=COLOURS[number + 1], lw=1.5, label=solver)
    axes.plot(data.zero_time, data.zero_closed_form, color="0.1", lw=1.5, ls=(0, (4, 2)), label="closed form")
    axes.set(xlabel="time (√(τₕτᵧ/XY))", ylabel="H", title="printed equations where H tends to 0", ylim=(-0.05, 1.6))
    axes.legend(loc="upper left", fontsize=8, ncols=2)


def _draw_ends(axes, data) -> None:
    low, high = float(data.final_integral.min()), float(data.final_integral.max())
    axes.loglog([low, high], [low, high], color="0.1", lw=1.3, ls=(0, (4, 2)))
    axes.loglog(data.final_integral, data.final_swapped, "x", color=COLOURS[1], ms=5, label="τₕ and τᵧ exchanged")
    axes.loglog(data.final_integral, data.final, "o", color=COLOURS[0], ms=4, label="eq. 10")
    axes.set(xlabel="H at the end of integration", ylabel="predicted", title="final distance")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
        axis.set_ticks([], minor=True)
    axes.legend(loc="upper left", fontsize=8)
