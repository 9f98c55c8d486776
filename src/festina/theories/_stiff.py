"""One step of the linear equation dδ/dt = Aδ + r, for a matrix A that is symmetric and known by its products alone.

A is minus the Hessian of a loss, so that some directions may decay at rates that are millions of times as fast as
others grow. A step resolves growth to second order. Fast decay is only stable, not resolved, and costs little: by an
explicit method with as many stages as stability asks for, or by an implicit one where those would be too many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

Vector: TypeAlias = Float[np.ndarray, " weight"]
Operator: TypeAlias = Callable[[Vector], Vector]  # the product with A

GROWN = 0.3  # exponent by which a direction may grow in one step
STIFF = 300.0  # rate × step from which a step is implicit
SAFE = 1.5  # factor on a rate that comes from few products
PRODUCTS = 12  # with which the extreme rates of an operator are measured
MOST_STEPS = 400  # a duration that needs more steps has grown by more than float64 holds


class ErrorRates(NamedTuple):
    """The fastest decay and growth that a few products with A show, and a bound on all growth."""

    decay: float = 0.0
    growth: float = 0.0
    bound: float = 0.0

    def growth_over(self, duration: float) -> float:
        """The bound on growth, or the growth seen if the bound would take too many steps."""
        return self.bound if self.bound * duration <= MOST_STEPS * GROWN else self.growth


def extreme_rates(operator: Operator, delta: Vector, rng: np.random.Generator) -> tuple[float, float]:
    """The fastest decay and the fastest growth of dδ/dt = Aδ, both at least 0: Lanczos' iteration from δ and noise."""
    size = delta.size
    noise, length = rng.normal(size=size), np.linalg.norm(delta)
    known = size > 1 and 0 < length < np.inf  # of a single number, δ and noise may cancel
    basis = [noise / np.linalg.norm(noise) + (delta / length if known else 0.0)]
    basis[0] /= np.linalg.norm(basis[0])
    diagonal, off_diagonal = [], []
    for _ in range(min(PRODUCTS, size)):
        image = operator(basis[-1])
        diagonal.append(float(image @ basis[-1]))
        for _ in range(2):  # once loses digits
            image = image - np.stack(basis).T @ (np.stack(basis) @ image)
        length = float(np.linalg.norm(image))
        if not length > 1e-12 * max(map(abs, diagonal)):
            break
        off_diagonal.append(length)
        basis.append(image / length)
    count = len(diagonal)
    small = np.diag(diagonal) + np.diag(off_diagonal[: count - 1], 1) + np.diag(off_diagonal[: count - 1], -1)
    eigenvalues = np.linalg.eigvalsh(small)
    return max(-float(eigenvalues[0]), 0.0), max(float(eigenvalues[-1]), 0.0)


def advanced(
    operator: Operator, source: Vector, delta: Vector, duration: float, rates: ErrorRates, tilt: float = 0.0
) -> Vector:
    """δ after `duration`; infinite if it has grown beyond all bounds.

    `source` is r in the middle of the duration; at other times r is this times e^(tilt × time since the middle).
    """
    decay, growth = rates.decay, rates.growth_over(duration)
    count = max(1, math.ceil(growth * duration / GROWN))
    if count > MOST_STEPS:
        return np.full_like(delta, np.inf)
    step = duration / count
    method = _explicit if SAFE * max(decay, growth) * step <= STIFF else _implicit
    for k in range(count):
        at_step = source * math.exp(tilt * ((k + 0.5) * step - duration / 2))
        delta = method(operator, at_step, delta, step, SAFE * max(decay, growth))
    return delta


def _explicit(operator: Operator, source: Vector, delta: Vector, step: float, rate: float) -> Vector:
    """Runge-Kutta-Legendre of second order: s stages are stable up to rate × step = (s² + s − 2)/2.

    C. Meyer, D. Balsara and T. Aslam, J. Comput. Phys. 257 (2014), eqs. 16 to 21.
    """
    stages = max(3, math.ceil((math.sqrt(9 + 8 * rate * step) - 1) / 2))
    share = [1 / 3, 1 / 3, *((j * j + j - 2) / (2 * j * (j + 1)) for j in range(2, stages + 1))]
    first = 4 / (stages**2 + stages - 2)
    slope = operator(delta) + source
    before, now = delta, delta + share[1] * first * step * slope
    for j in range(2, stages + 1):
        along = (2 * j - 1) / j * share[j] / share[j - 1]
        back = -(j - 1) / j * share[j] / share[j - 2]
        moved = first * step * along * (operator(now) + source - (1 - share[j - 1]) * slope)
        before, now = now, along * now + back * before + (1 - along - back) * delta + moved
    return now


def _implicit(operator: Operator, source: Vector, delta: Vector, step: float, rate: float) -> Vector:
    """Two implicit stages of second order, after which nothing is left of what decays fast.

    R. Alexander, SIAM J. Numer. Anal. 14 (1977), theorem 5.
    """
    share = (1 - math.sqrt(0.5)) * step
    first = _solved(operator, delta + share * source, delta, share)
    slope = (first - delta) / share
    return _solved(operator, delta + (step - share) * slope + share * source, first, share)


def _solved(operator: Operator, wanted: Vector, guess: Vector, share: float) -> Vector:
    """(1 − share·A) δ = wanted by conjugate gradients; share × growth is below 1, so that the matrix is positive."""
    delta = guess
    rest = wanted - delta + share * operator(delta)
    along, square = rest, float(rest @ rest)
    enough = 1e-12 * float(wanted @ wanted)
    for _ in range(80):
        if not square > enough:
            break
        image = along - share * operator(along)
        far = square / float(along @ image)
        delta, rest = delta + far * along, rest - far * image
        square, last = float(rest @ rest), square
        along = rest + square / last * along
    return delta
