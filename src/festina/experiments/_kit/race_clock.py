"""The clock of a race: pathways that learn the same mode share its error, and each depends on its time integral alone.

With e the error of a mode and T = ∫ e dt, every pathway is a function of T alone, whatever its rivals do. Dividing the
law of the race [jarvis2025, eq. 10] by e gives, for decoupled layers,

    two layers      a₁' = ρ k a₂,   a₂' = ρ a₁                  k paths share the first layer
    three layers    b₁' = ρ b₂b₃,   b₂' = ρ M b₁b₃,   b₃ = b₁     M paths share the layer in the middle

with ρ the strength of the input in this mode. The race is over at the T at which all pathways together reach the
target. The clock runs as dT/dt = target − sum of all pathways.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import integrate, optimize


def two_layers(
    clock: ArrayLike, first: ArrayLike, last: ArrayLike, reach: ArrayLike = 1.0, sharing: ArrayLike = 1
) -> np.ndarray:
    """The product of two layers that start at `first` and `last`; so many paths share the first (`sharing`).

    `reach` is ρ, the strength of the input; all arguments broadcast against each other.
    """
    clock, first, last, reach = (np.asarray(value, float) for value in (clock, first, last, reach))
    speed = np.sqrt(sharing)
    grows = (first + speed * last) ** 2 * np.exp(2 * speed * reach * clock)
    shrinks = (first - speed * last) ** 2 * np.exp(-2 * speed * reach * clock)
    return (grows - shrinks) / (4 * speed)


def three_layers(clock: ArrayLike, start: ArrayLike, sharing: ArrayLike = 1, outer: ArrayLike = 1) -> np.ndarray:
    """The product of three layers that start alike; `outer` paths share the outer ones, sharing × outer the middle one.

    It is infinite from `last_moment` on.
    """
    clock, start, sharing, outer = (np.asarray(value) for value in (clock, start, sharing, outer))
    left = outer * start * (last_moment(start, sharing, outer) - clock)
    more = sharing - 1
    root, speed = np.sqrt(np.maximum(more, 1e-12)), np.sqrt(sharing)
    # u = start/b₁; its limit without sharing is what is left of the clock.
    u = np.where(more > 0, speed * np.sin(root * left) / root, left)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = np.where(more > 0, speed * np.cos(root * left), 1.0)
        return np.where(left > 0, start**3 * middle / u**3, np.inf)


def last_moment(start: ArrayLike, sharing: ArrayLike = 1, outer: ArrayLike = 1) -> np.ndarray:
    """The clock at which the product of three such layers diverges: arctan √(M − 1)/√(M − 1), over start."""
    start, outer = np.asarray(start), np.asarray(outer)
    root = np.sqrt(np.maximum(np.asarray(sharing, float) - 1, 1e-12))
    return np.where(np.asarray(sharing) > 1, np.arctan(root) / root, 1.0) / (outer * start)


def finish(pathways: Callable[[float], ArrayLike], target: float, late: float) -> float:
    """The clock, before `late`, at which the sum of the pathways reaches the target."""

    def missing(clock: float) -> float:
        return min(np.sum(pathways(clock)), 1e6) - target

    return float(optimize.brentq(missing, 0.0, late, xtol=1e-13))  # pyright: ignore[reportArgumentType]


def at_times(
    pathways: Callable[[Float[np.ndarray, " mode"]], np.ndarray], targets: ArrayLike, times: Float[np.ndarray, " time"]
) -> Float[np.ndarray, "time mode"]:
    """The clocks of independent races at these times; `pathways` gives the sum over pathways for all modes."""
    targets = np.asarray(targets, float)
    solution = integrate.solve_ivp(
        lambda _, clock: targets - pathways(clock),
        (0.0, times[-1]),
        np.zeros_like(targets),
        method="DOP853",
        t_eval=times,
        rtol=1e-12,
        atol=1e-14,
    )
    return solution.y.T
