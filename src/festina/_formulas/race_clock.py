"""The clock of a race: pathways that learn the same mode share its error, and each depends on its time integral alone.

With e the error of a mode and T = ∫ e dt, every pathway is a function of T alone, whatever its rivals do. Dividing the
law of the race [jarvis2025, eq. 10] by e gives, for decoupled layers,

    two layers      a₁' = ρ k a₂,   a₂' = ρ a₁                  k paths share the first layer
    three layers    b₁' = ρ b₂b₃,   b₂' = ρ M b₁b₃,   b₃ = b₁     M paths share the layer in the middle

with ρ the strength of the input in this mode. The race is over at the T at which all pathways together reach the
target. The clock runs as dT/dt = target − sum of all pathways.

Two rivals of two layers that start alike at a₀ and have correlations s₁ > s₂ end at loser/winner ∝ (a₀²)^(1 − s₂/s₁).
A pathway that M domains share and private ones of each end at private/shared ∝ b₀^(2(1 − 1/√M)) with two layers; with
three, private pathways grow by a factor that stays finite, so that private/shared ∝ b₀³ for every M > 1. [derived]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, Real
from scipy import integrate, optimize

Values: TypeAlias = float | int | np.number | Real[np.ndarray, "..."]  # one number, or an array that broadcasts
Products: TypeAlias = Float[np.ndarray, "..."]
ADVANTAGE = 2.0  # ratio of larger to smaller starts, and of unbalanced layers to their mean


def two_layers(clock: Values, first: Values, last: Values, reach: Values = 1.0, sharing: Values = 1) -> Products:
    """The product of two layers that start at `first` and `last`; `sharing` paths share the first.

    `reach` is ρ, the strength of the input; all arguments broadcast against each other.
    """
    clock, first, last, reach = (np.asarray(value, float) for value in (clock, first, last, reach))
    speed = np.sqrt(sharing)
    grows = (first + speed * last) ** 2 * np.exp(2 * speed * reach * clock)
    shrinks = (first - speed * last) ** 2 * np.exp(-2 * speed * reach * clock)
    return np.asarray((grows - shrinks) / (4 * speed))


def three_layers(clock: Values, start: Values, sharing: Values = 1, outer: Values = 1) -> Products:
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


def last_moment(start: Values, sharing: Values = 1, outer: Values = 1) -> Products:
    """The clock at which the product of three such layers diverges: arctan √(M − 1)/√(M − 1), over start."""
    start, outer = np.asarray(start), np.asarray(outer)
    root = np.sqrt(np.maximum(np.asarray(sharing, float) - 1, 1e-12))
    return np.asarray(np.where(np.asarray(sharing) > 1, np.arctan(root) / root, 1.0) / (outer * start))


def two_layer_rivals(clock: Values, start: float, sharing: Values) -> Products:
    """A shared and a private pathway of two layers, (…, path, mode); `sharing` has the clock's last axis."""
    shared = two_layers(clock, start, start, sharing=sharing)
    return np.stack([shared, two_layers(clock, start, start, sharing=np.ones_like(sharing))], axis=-2)


def three_layer_rivals(clock: Values, start: float, sharing: Values, outer: Values) -> Products:
    """A shared and a private pathway of three layers, (…, path, mode)."""
    return np.stack([three_layers(clock, start, sharing, outer), three_layers(clock, start)], axis=-2)


def random_rivals(clock: Products, scale: float, hidden: int, sharing: Values) -> Products:
    """The growing part of random layers: it starts at Nσ²/2 in a private pathway and Nσ²/(2√M) in the shared one."""
    speed = np.stack([np.sqrt(sharing), np.ones_like(sharing)])
    return hidden * scale**2 / 2 / speed * np.exp(2 * speed * clock[..., None, :])


def advantaged(start: float, advantage: float = ADVANTAGE) -> dict[str, Callable[[float], Products]]:
    """Pathways with and without one advantage, as functions of the clock; all else is equal."""

    def plain(clock: float) -> Products:
        return two_layers(clock, start, start)

    pairs: dict[str, tuple[Callable[[float], Products], Callable[[float], Products]]] = {
        "fewer layers": (plain, lambda clock: three_layers(clock, start)),
        "more paths": (lambda clock: 2 * two_layers(clock, start, start, sharing=2), plain),
        "larger start": (lambda clock: advantage * plain(clock), plain),
        "unbalanced": (lambda clock: two_layers(clock, advantage * start, start / advantage), plain),
    }
    return {
        name: lambda clock, pair=pair: np.array([float(path(clock)) for path in pair]) for name, pair in pairs.items()
    }


def private_growth(sharing: Values, outer: Values) -> Products:
    """The factor by which private pathways of three layers grow in the limit of small starts; infinite for a tie."""
    left = 1 - last_moment(1.0, sharing, outer)
    return np.where(left > 1e-9, np.maximum(left, 1e-9) ** -3, np.inf)


def finish(pathways: Callable[[float], Values], target: float, late: float) -> float:
    """The clock, before `late`, at which the sum of the pathways reaches the target."""

    def missing(clock: float) -> float:
        return min(np.sum(pathways(clock)), 1e6) - target

    return float(optimize.brentq(missing, 0.0, late, xtol=1e-13))  # pyright: ignore[reportArgumentType]


def finals(
    pathways: Callable[[float], Products], target: float, late: float, reach: Values = 1.0
) -> Float[np.ndarray, " path"]:
    """The strengths of pathways when all is learned; `reach` is how much each writes at strength 1."""
    return pathways(finish(lambda clock: reach * pathways(clock), target, late))


def over_time(
    pathways: Callable[[Products], Products],
    targets: Values,
    times: Float[np.ndarray, " time"],
    reach: Values = 1.0,
) -> Float[np.ndarray, "time path mode"]:
    """The strengths of pathways in independent races, one for each mode.

    `pathways` gives them (…, path, mode) at clocks (…, mode); `reach` is how much each writes at strength 1.
    """
    targets = np.asarray(targets, float)
    solution = integrate.solve_ivp(
        lambda _, clock: targets - np.sum(reach * pathways(clock), axis=-2),
        (0.0, times[-1]),
        np.zeros_like(targets),
        method="DOP853",
        t_eval=times,
        rtol=1e-12,
        atol=1e-14,
    )
    return pathways(solution.y.T)


def rivals_over_time(
    targets: Values, reach: Float[np.ndarray, "path mode"], start: float, times: Float[np.ndarray, " time"]
) -> Float[np.ndarray, "time path mode"]:
    """The strengths of two-layer pathways that start at `start` in both layers and see inputs of strength `reach`."""
    return over_time(lambda clock: two_layers(clock[..., None, :], start, start, reach), targets, times, reach)


def rivals_in_the_end(target: float, reach: Float[np.ndarray, " path"], start: float) -> Float[np.ndarray, " path"]:
    """The same pathways when all is learned; the strongest has reach 1."""
    return finals(lambda clock: two_layers(clock, start, start, reach), target, 1 - np.log(start), reach)


def advantaged_in_the_end(start: float) -> dict[str, Float[np.ndarray, " path"]]:
    """Pathways with and without one advantage when all is learned."""
    return {name: finals(pair, 1.0, -np.log(start)) for name, pair in advantaged(start).items()}
