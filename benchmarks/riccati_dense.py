"""The exact solution of a 50–50–50 network at 1,000 times, against 1,000 plain NumPy steps of descent.

A thousand times of theory cost no more than a thousand steps of training. `solve` is called as a user calls it,
with a new setup each time, so that assumptions are measured anew. The rivals record nothing on their way.
What is compared at the end is the loss above the lowest possible one: the flow's, and that of descent at rate
`LR`, which differ in the order of the rate.
"""

from __future__ import annotations

from pathlib import Path

from .harness import Claim, Contestant
from .linear_problem import excess, problem
from .rivals import Call

UNIT = "trajectory"
TOLERANCE = 0.02
LR, STEPS = 0.002, 1000  # to time 2, while the loss still falls
WIDTH = 50
GIVEN = problem(WIDTH, samples=100, lam=1.0, scale=0.05)


def solve() -> Call:
    import festina as fs

    task = fs.tasks.from_arrays(GIVEN.x, GIVEN.y)
    net, init = fs.nets.DeepLinear(hidden=WIDTH), fs.inits.Given(GIVEN.weights)

    def go():
        work = fs.Setup(task, net, init, until=STEPS * LR, points=STEPS, spacing="log")
        return [fs.solve(work, "BalancedRiccati", observe="loss")["loss"][-1] - GIVEN.floor]

    return go


def on_moments() -> Call:
    target = GIVEN.cov_yx

    def go():
        first, last = (w.copy() for w in GIVEN.weights)
        for _ in range(STEPS):
            error = LR * (target - last @ first)
            slope = last.T @ error
            last += error @ first.T
            first += slope
        return [excess(target, first, last)]

    return go


def on_samples() -> Call:
    x, y, rate = GIVEN.x, GIVEN.y, LR / len(GIVEN.x)

    def go():
        first, last = (w.copy() for w in GIVEN.weights)
        for _ in range(STEPS):
            h = x @ first.T
            error = rate * (y - h @ last.T)
            slope = (error @ last).T @ x
            last += error.T @ h
            first += slope
        return [excess(GIVEN.cov_yx, first, last)]

    return go


def contestants(mode: str, folder: Path) -> list[Contestant]:
    return [
        Contestant("solve", "benchmarks.riccati_dense:solve"),
        Contestant("on moments", "benchmarks.riccati_dense:on_moments"),
        Contestant("on samples", "benchmarks.riccati_dense:on_samples"),
    ]


def claims(mode: str) -> list[Claim]:
    work = "exact 50–50–50 at 1,000 times"
    return [
        Claim(work, "solve", "1,000 NumPy steps on moments", ("on moments",), least=1.0),
        Claim(work, "solve", "1,000 NumPy steps on 100 samples", ("on samples",), least=1.0),
    ]
