"""Checks of the two-point theory: random pairs by integration, the border of H = 0, linear and rotating networks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.integrate import solve_ivp

from ... import Setup, Trajectory, inits, nets, rules, solve, tasks
from ...theories.two_point import final_distance, rotated_final_distance, rotating, trajectory
from . import time_grids
from .training import simulate

Variables = Mapping[str, Any]  # of a Dataset: (dimensions, values) by name
CURVES = ("distance", "output", "alignment")
OBSERVED = ("distance", "output_distance", "output_alignment")
STEPS = 3  # rates lr, lr/2, lr/4
EXACT = dict(method="DOP853", rtol=1e-12, atol=1e-15)
SOLVERS = ("Radau", "LSODA")
BORDER = (1.0, 1.0, 2.0)  # H, P and w of a balanced start away from the target, at X = Y = τ_h = τ_y = 1
START = ("distance0", "output0", "alignment0")
ONES = dict(input_gap=1.0, target_gap=1.0, tau_h=1.0, tau_y=1.0)


def integrated(
    speed: Callable[[float, np.ndarray], np.ndarray],
    start: np.ndarray,
    times: np.ndarray | Sequence[float],
    **options: float,
) -> Float[np.ndarray, " time *state"]:
    """States at given times; integrated from time to time, since between its own steps a solver interpolates."""
    states = [np.asarray(start, float)]
    for begin, end in itertools.pairwise(times):
        solution = solve_ivp(speed, (begin, end), states[-1].ravel(), **{**EXACT, **options})
        states.append(solution.y[:, -1].reshape(states[0].shape))
    return np.stack(states)


def three_curves(
    hidden: Float[np.ndarray, "*axes unit"], output: Float[np.ndarray, "*axes feature"], target: np.ndarray
) -> Float[np.ndarray, " curve *axes"]:
    """H, P and w of differences in the layer and in the output."""
    P = np.sum(output**2, axis=-1)
    return np.stack([np.sum(hidden**2, axis=-1), P, P - np.sum(output * target, axis=-1)])


def random_pairs(
    rng: np.random.Generator, count: int, outputs: Sequence[int], spread: float, times: Float[np.ndarray, " time"]
) -> Variables:
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

    def speed(_: float, flat: np.ndarray) -> np.ndarray:
        r, v = np.split(flat.reshape(count, -1), [1], axis=1)
        error = r * v - target
        return np.hstack(
            [-(X / (2 * tau_h))[:, None] * np.sum(v * error, axis=1, keepdims=True), -r * error / (2 * tau_y)[:, None]]
        ).ravel()

    states = integrated(speed, np.column_stack([r, v]), times)
    r, v = states[..., :1], states[..., 1:]
    integral = np.moveaxis(three_curves(r, r * v, target), 1, -1)  # (curve, pair, time)
    task = dict(input_gap=X, target_gap=Y, tau_h=tau_h, tau_y=tau_y)
    start = dict(zip(START, integral[..., 0], strict=True))
    late = integrated(speed, states[-1], times[-1] + np.array([0, 20.0, 200.0]))[-1]
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


def border_of_zero(points: int) -> Variables:
    """A start that tends to H = 0, in closed form and by solvers at default tolerances on the equations as printed."""

    def printed(_: float, state: np.ndarray) -> list[float]:
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


def linear_networks(
    rng: np.random.Generator, count: int, hidden: int, gain: float, lr: float, until: float, points: int
) -> tuple[Variables, dict[str, Setup], dict[str, Trajectory]]:
    """Networks with one output on x and −x, at three rates: with a decoder along dh, and with any decoder."""
    times = time_grids.even(until, points, lr)
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
    runs = np.array(
        [
            [
                [
                    curves_of(simulate(one.replace(rule=rules.GradientDescent(lr / 2**k)), [0], OBSERVED))[0]
                    for one in kind
                ]
                for k in range(STEPS)
            ]
            for kind in starts
        ]
    )  # (kind, rate, network, curve, time)
    first = dict(zip(START, np.moveaxis(runs[0, 0, :, :, 0], 1, 0), strict=True))
    gaps = dict(input_gap=4.0, target_gap=4.0)
    # In units of t = lr × steps.
    theory, printed = (np.stack(trajectory(times, **first, **gaps, tau_h=tau, tau_y=tau), axis=1) for tau in (2.0, 1.0))
    theories = [solve(one, "TwoPoint", observe=OBSERVED) for one in starts[1]]
    theory = np.stack([theory, [curves_of(one) for one in theories]])
    size = np.abs(theory).max(axis=(2, 3))
    gap = np.abs(runs - theory[:, None]).max(axis=(3, 4)) / size[:, None]
    return (
        {
            "training": (("kind", "network", "curve", "step_time"), runs[:, -1]),
            "theory": (("kind", "network", "curve", "step_time"), theory),
            "gap": (("kind", "rate", "network"), gap),
            "gap_as_printed": ("network", np.abs(runs[0, -1] - printed).max(axis=(1, 2)) / size[0]),
            "step_time": ("step_time", times),
        },
        {"any direction": starts[1][0]},
        {"any direction": theories[0]},
    )


def curves_of(observed: Trajectory) -> Float[np.ndarray, "*axes curve time"]:
    """H, P and w of the one layer and pair."""
    distance, *others = (np.asarray(observed[name]) for name in OBSERVED)
    return np.stack([distance[..., 0, 0], *(other[..., 0] for other in others)], axis=-2)


def rotating_networks(
    rng: np.random.Generator, scales: Float[np.ndarray, " scale"], width: int, draws: int
) -> Variables:
    """Random networks with one output, X = Y = τ_h = τ_y = 1: as they rotate, and as if they did not."""
    until, few = 60.0, min(draws, 10)
    times = np.linspace(0, until, 241)
    shape = (len(scales), draws, width)
    u, v = (scales[:, None, None] / np.sqrt(width) * rng.normal(size=shape) for _ in range(2))
    squares = [np.sum(a * b, axis=-1) for a, b in ((u, u), (v, v), (u, v))]
    start = dict(zip(("distance0", "decoder0", "along0"), squares, strict=True))
    m = squares[2]
    straight = dict(distance0=squares[0], output0=m**2, alignment0=m**2 - m)
    rotated = np.asarray(rotating(times, **start, **ONES).distance)
    unrotated = np.asarray(trajectory(times, **straight, **ONES).distance)
    change = np.abs(rotated - rotated[..., :1]).max(axis=-1)

    def speed(_: float, flat: np.ndarray) -> np.ndarray:
        u, v = flat.reshape(2, -1, width)
        error = np.sum(u * v, axis=-1, keepdims=True) - 1
        return np.stack([-v * error, -u * error]).ravel() / 2

    flat = np.stack([u[:, :few].reshape(-1, width), v[:, :few].reshape(-1, width)])
    after = integrated(speed, flat, [0, until / 12, until], rtol=1e-10, atol=1e-13)[:, 0]
    cosine = np.sum(after[0] * after[-1], axis=-1) / np.prod(np.linalg.norm(after[[0, -1]], axis=-1), axis=0)
    true = np.sum(after**2, axis=-1).reshape(3, len(scales), few)
    closed_form = np.moveaxis(rotated[:, :few, [0, len(times) // 12, -1]], -1, 0)
    end = rotated_final_distance(**start, **ONES)
    return {
        "turned_gap": ("scale", np.max(np.abs(closed_form - true) / true, axis=(0, 2))),
        "unturned_final": (("scale", "draw"), np.abs(final_distance(**straight, **ONES) / end - 1)),
        "unturned_course": (("scale", "draw"), np.abs(unrotated - rotated).max(axis=-1) / change),
        "angle": (("scale", "few"), np.degrees(np.arccos(np.clip(cosine, -1, 1))).reshape(len(scales), few)),
    }
