"""The exact solution of a 5–5–5 network to time 60 at 100 times, against training there: 6,000 steps of rate 0.01.

Two contestants are ours: `solve`, which measures its assumptions on a new setup at each call, and the bare closed
form, from arrays to losses. NumPy records the loss at every step, on samples and on second moments; the faster
counts. What is compared is the loss above the lowest possible one while it falls, at `SEEN`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .harness import Claim, Contestant
from .linear_problem import excess, problem
from .rivals import Call

UNIT = "trajectory"
TOLERANCE = 0.02  # descent differs from the flow in the order of its rate
LR, STEPS = 0.01, 6000
WIDTH, LAM = 5, 1.0
GIVEN = problem(WIDTH, samples=25, lam=LAM, scale=0.05)
RECORDED = np.unique(np.round(np.geomspace(20, STEPS, 100)).astype(int))  # 100 steps: from 20 on none falls twice
SEEN = 20  # of the 100: time 0.63


def solve() -> Call:
    import festina as fs

    task = fs.tasks.from_arrays(GIVEN.x, GIVEN.y)
    net, init = fs.nets.DeepLinear(hidden=WIDTH), fs.inits.Given(GIVEN.weights)

    def go():
        work = fs.Setup(task, net, init, times=RECORDED * LR)
        return [fs.solve(work, "BalancedRiccati", observe="loss")["loss"][SEEN] - GIVEN.floor]

    return go


def closed_form() -> Call:
    import jax
    import jax.numpy as jnp

    from festina._formulas import balanced_flow
    from festina._foundation.precision import in_double

    @in_double
    @jax.jit
    def losses(target, weights, lam, times):
        flow = balanced_flow.flow(target, weights, lam)
        first, last = balanced_flow.factors(flow, balanced_flow.states(flow, times))
        missing = jnp.swapaxes(last, -1, -2) @ first - jnp.diag(flow.singular_values)
        return 0.5 * jnp.sum(missing**2, axis=(-1, -2))

    return lambda: [losses(GIVEN.cov_yx, GIVEN.weights, LAM, RECORDED * LR)[SEEN]]


def simulate() -> Call:
    import festina as fs

    task = fs.tasks.from_arrays(GIVEN.x, GIVEN.y)
    net, init = fs.nets.DeepLinear(hidden=WIDTH), fs.inits.Given(GIVEN.weights)
    work = fs.Setup(task, net, init, fs.rules.GradientDescent(LR), times=RECORDED * LR)
    return lambda: [fs.simulate(work, 1, "loss", progress=False)["loss"][0, SEEN] - GIVEN.floor]


def on_moments() -> Call:
    target = GIVEN.cov_yx

    def go():
        (first, last), losses = (w.copy() for w in GIVEN.weights), np.empty(STEPS + 1)
        for step in range(STEPS):
            error = target - last @ first
            losses[step] = 0.5 * np.vdot(error, error)
            error *= LR
            slope = last.T @ error
            last += error @ first.T
            first += slope
        losses[STEPS] = excess(target, first, last)
        return [float(losses[RECORDED[SEEN]])]

    return go


def on_samples() -> Call:
    x, y, samples = GIVEN.x, GIVEN.y, len(GIVEN.x)

    def go():
        (first, last), losses = (w.copy() for w in GIVEN.weights), np.empty(STEPS)
        for step in range(STEPS):
            h = x @ first.T
            error = y - h @ last.T
            losses[step] = 0.5 * np.vdot(error, error) / samples
            error *= LR / samples
            slope = (error @ last).T @ x
            last += error.T @ h
            first += slope
        return [float(losses[RECORDED[SEEN]]) - GIVEN.floor]

    return go


def contestants(mode: str, folder: Path) -> list[Contestant]:
    return [
        Contestant("closed form", "benchmarks.riccati_small:closed_form"),
        Contestant("solve", "benchmarks.riccati_small:solve"),
        Contestant("on moments", "benchmarks.riccati_small:on_moments"),
        Contestant("on samples", "benchmarks.riccati_small:on_samples"),
        Contestant("simulate", "benchmarks.riccati_small:simulate"),
    ]


def claims(mode: str) -> list[Claim]:
    bare, whole = "exact 5–5–5 to t = 60, closed form", "exact 5–5–5 to t = 60, solve"
    numpy = ("on moments", "on samples")
    return [
        Claim(bare, "closed form", "NumPy training", numpy, least=100),
        Claim(whole, "solve", "NumPy training", numpy),
        Claim(bare, "closed form", "simulate", ("simulate",)),
        Claim(whole, "solve", "simulate", ("simulate",)),
    ]
