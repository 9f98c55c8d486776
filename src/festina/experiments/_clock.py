"""The clock of a race: pathways that write to the same mode see the same error, and run on its integral.

With the error e of a mode and T = ∫ e dt, every pathway is a function of T alone, whatever its rivals do. From
decoupled layers, dividing the law of the race [jarvis2025, eq. 10] by e,

    two layers      a₁' = ρ k a₂,   a₂' = ρ a₁                  k paths share the first layer
    three layers    b₁' = ρ b₂b₃,   b₂' = ρ M b₁b₃,   b₃ = b₁     M paths share the layer in the middle

with ρ the strength of the input in this mode. The race is over at the T at which all pathways together explain the
target, and the time that this takes is the integral of dT/dt = target − all pathways.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import integrate, optimize


def two_layers(clock: Any, first: Any, last: Any, reach: Any = 1.0, sharing: Any = 1) -> Any:
    """The product of two layers that start at `first` and `last`; `sharing` paths go through the first."""
    speed = np.sqrt(sharing)
    grows = (first + speed * last) ** 2 * np.exp(2 * speed * reach * clock)
    shrinks = (first - speed * last) ** 2 * np.exp(-2 * speed * reach * clock)
    return (grows - shrinks) / (4 * speed)


def three_layers(clock: Any, start: Any, sharing: Any = 1, outer: Any = 1) -> Any:
    """The product of three layers that start alike; `outer` paths share the outer ones, sharing × outer the middle one.

    It is infinite from `last_moment` on.
    """
    left = outer * start * (last_moment(start, sharing, outer) - clock)
    more = sharing - 1
    root, begun = np.sqrt(np.maximum(more, 1e-12)), np.sqrt(sharing)
    # u = start/b₁; its limit without sharing is what is left of the clock.
    u = np.where(more > 0, begun * np.sin(root * left) / root, left)
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = np.where(more > 0, begun * np.cos(root * left), 1.0)
        return np.where(left > 0, start**3 * middle / u**3, np.inf)


def last_moment(start: Any, sharing: Any = 1, outer: Any = 1) -> Any:
    """The clock at which three such layers would have grown without bound: arctan √(M − 1)/√(M − 1), over start."""
    root = np.sqrt(np.maximum(np.asarray(sharing, float) - 1, 1e-12))
    return np.where(np.asarray(sharing) > 1, np.arctan(root) / root, 1.0) / (outer * start)


def finish(pathways: Callable[[float], Any], target: float, late: float) -> float:
    """The clock, before `late`, at which the pathways together explain the target."""
    found: Any = optimize.brentq(lambda clock: min(np.sum(pathways(clock)), 1e6) - target, 0.0, late, xtol=1e-13)
    return float(found)


def at_times(pathways: Callable[[Any], Any], targets: Any, times: Any) -> np.ndarray:
    """The clocks (time, mode) of independent races at these times; `pathways` gives the sum for all modes."""
    targets = np.asarray(targets, float)
    found = integrate.solve_ivp(
        lambda _, clock: targets - pathways(clock),
        (0.0, times[-1]),
        np.zeros_like(targets),
        method="DOP853",
        t_eval=times,
        rtol=1e-12,
        atol=1e-14,
    )
    return found.y.T
