"""Closed forms evaluated as their sources print them, with what is wrong with them; all with τ = 1.

Experiments compare them with training. The library's own solutions are in `festina.theories`.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.special import lambertw

from ... import Setup, tasks
from ..._foundation.arrays import AnyArray
from ...theories.aligned_modes import mode

LARGE = 8.0  # beyond this exponent, eqs. 13-15 as they stand lose their digits in float64


def shallow_mode(times: Float[AnyArray, " time"], s: float, variance: float, start: float) -> Float[AnyArray, " time"]:
    """The strength of a mode for D = 1 [saxe_slides, “Analytic learning trajectory”].

    Erratum: the exponent −t/τ lacks the input variance; it is −λt/τ.
    """
    return s / variance * (1 - np.exp(-times)) + start * np.exp(-times)


def deep_mode(times: Float[AnyArray, " time"], s: float, variance: float, start: float) -> Float[AnyArray, " time"]:
    """The strength of a mode for D = 2 [saxe_slides, “Analytic learning trajectory”]; it is right."""
    return (s / variance) / (1 - (1 - s / (variance * start)) * np.exp(-2 * s * times))


def very_deep_mode(
    times: Float[AnyArray, " time"], s: float, variance: float, start: float
) -> Float[AnyArray, " time"]:
    """The strength of a mode for D ≥ 3, with W the Lambert function [saxe_slides, “Analytic learning trajectory”].

    Erratum: this is the limit D → ∞, and its exponent −t/τ lacks the factor s²/λ.
    """
    y = s / (variance * start) - 1
    return (s / variance) / (1 + lambertw(y * np.exp(y - times)).real)


def four_pathways_loss(times: Float[AnyArray, " time"], s: float, d: float, start: float) -> Float[np.ndarray, " time"]:
    """The loss of exclusive or with one pathway per point [jarvis2025, eq. 23], for any d.

    Erratum: appendix C prints d = 1/8 + Δ²/16, which is s²; it is (2 + Δ²)/4 = 4s².
    """
    strength = np.asarray(mode(times, singular_value=s, variance=d, start=start))
    return 0.5 - 4 * s * strength + 2 * d * strength**2


def single_neuron_ratio(times: Float[AnyArray, " time"], delta: float, nu: float, r: float) -> Float[AnyArray, " time"]:
    """ν = w·β*/a of a linear neuron [kunin2024], with coth for tanh where ν starts outside its two fixed points.

    It is right where it is finite. `nu` is the start, `r` is |β*|.
    """
    speed = np.sqrt(4 * r**2 + delta**2)
    where = (delta + 2 * nu) / speed
    if abs(where) < 1:
        return (-delta + speed * np.tanh(speed * times / 2 + np.arctanh(where))) / 2
    return (-delta + speed / np.tanh(speed * times / 2 + np.arctanh(1 / where))) / 2


def balanced_map(
    setup: Setup, times: Float[AnyArray, " time"], lam: float, *, mended: bool
) -> Float[np.ndarray, "time out in"]:
    """The map of a λ-balanced network by eqs. 13-15 of the slides; NaN where float64 cannot hold them.

    Erratum: the last term of eq. 15, (e^(λ⊥t) − 1)/λ⊥, must be (e^(2λ⊥t) − 1)/(2λ⊥); with `mended` it is.
    B, C and D are not printed; they are W₂ᵀU(G + HG) + W₁V(G − HG), W₂ᵀU(G − HG) − W₁V(G + HG) and W₂ᵀU⊥ + W₁V⊥
    at the start.
    """
    first, last = setup.weights()
    left, values, right = np.linalg.svd(setup.single_task.target())
    count, surplus = len(values), right.shape[0] - left.shape[0]
    speed = np.hypot(values, lam / 2)
    tilt = np.sign(lam) * np.sqrt((speed - values) / (speed + values))
    small, big = (1 - tilt) / np.sqrt(1 + tilt**2), (1 + tilt) / np.sqrt(1 + tilt**2)
    u, v = left[:, :count], right[:count].T
    grow, fade = last.T @ u * big + first @ v * small, last.T @ u * small - first @ v * big
    apart = first @ right[count:].T if surplus > 0 else last.T @ left[:, count:]
    rate = -np.sign(surplus) * lam / 2
    power = 2 * rate if mended else rate
    maps = np.full((len(times), len(left), len(right)), np.nan)
    for number, time in enumerate(times):
        if speed.max() * time > LARGE:
            break
        up, down = np.exp(speed * time), np.exp(-speed * time)
        inner = 0.5 * (v * small * up) @ grow.T - 0.5 * (v * big * down) @ fade.T
        outer = 0.5 * (u * big * up) @ grow.T + 0.5 * (u * small * down) @ fade.T
        if surplus > 0:
            inner += np.exp(rate * time) * right[count:].T @ apart.T
        elif surplus < 0:
            outer += np.exp(rate * time) * left[:, count:] @ apart.T
        rest = np.expm1(power * time) / power if power else time
        middle = np.eye(len(first)) + rest * apart @ apart.T
        middle += grow * np.expm1(2 * speed * time) / (4 * speed) @ grow.T
        middle -= fade * np.expm1(-2 * speed * time) / (4 * speed) @ fade.T
        maps[number] = outer @ np.linalg.solve(middle, inner.T)
    return maps


def small_weights_time(s: float, layers: Float[np.ndarray, "*layers"], depth: int) -> Float[np.ndarray, "*layers"]:
    """The learning time from D layers of strength b₀, 1/(s b₀^D) in units of τ/D [saxe_slides, “Learning time”].

    Erratum: the exponent is D − 2; it is D only in the limit D → ∞.
    """
    return 1 / (s * layers ** float(depth))


def pretraining_time(layer: float, depth: Int[np.ndarray, "*depths"]) -> Float[np.ndarray, "*depths"]:
    """The time of pretraining D layers of strength b₀ one after another, D/b₀² [saxe_slides, “Initialization …”].

    Erratum: it is an upper bound; the time is D ln(1/b₀) to leading order.
    """
    return depth / layer**2


def residual_share(
    times: Float[AnyArray, " time"], s: float, variance: float, start: float
) -> Float[AnyArray, " time"]:
    """What pathways for all contexts but one have learned of a residual mode [jarvis2025, appendices F and G].

    Erratum: it has growth for decay, and S/(D B₀) for (C − 1)S/(D B₀), and tends to 0.
    """
    growth = np.exp(np.minimum(2 * s * times, 600.0))
    return 1 / (1 - (1 - s / (variance * start)) * growth)


def sorted_linear_loss(items: int, contexts: int, context_inputs: float) -> float:
    """The loss of the best linear map, summed, if sorted s go with sorted variances [jarvis2025, appendix F].

    Erratum: from 4 contexts on an item mode (d = 1/n) has a larger s than context modes (d = 1/C), unless the context
    inputs are large enough.
    """
    plain, task = (tasks.contextual(items, contexts, "hierarchy", context_scale=size) for size in (1.0, context_inputs))
    s, d = task.modes().singular_values[:-1], task.modes().variances[:-1]
    wrong = np.linalg.eigvalsh(task.cov_x)[::-1][: len(s)]
    left = plain.y - plain.x @ np.linalg.lstsq(plain.x, plain.y, rcond=None)[0]
    return 0.5 * (np.sum(left**2) + items * contexts * np.sum(d * (s / wrong - s / d) ** 2))
