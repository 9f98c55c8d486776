"""How far the limit of small random weights is from the flow: the error of the map, from the start and the task.

Mode j is learned along a hidden direction h. Every other direction k of inputs and outputs has a part there, too, with
p = h·W₁v_k and q = h·W₂ᵀu_k, which grows as e^(s_k t) until mode j has been learned,

    dp/dt = s_k q − λ_k a_j p,      dq/dt = s_k p − λ_j a_j q,

and stands in the map beside the diagonal as √a_j p and √a_j q. With D = 1 − a λ/s, what a mode has still to learn,

    p² + q² ≤ 2A²,      A² = (P² e^(2 s_k t) + N² e^(−2 s_k t)) D_j^(r−μ) D_k,      P, N = (p ± q)/2 at the start,
    r = s_k/s_j,      μ = −(1+ρ)/2 + √((1−ρ)²/4 + r²),      ρ = λ_k/λ_j,

since the largest eigenvalue of the law is convex in a_j. For ρ = 1 it is an equality until mode k is learned. The
largest entry, about s_j/λ_j (a_j(0) λ_j/s_j)^((1−r)/2), is of the order 1 − s_k/s_j in the size of the start: no start
is small enough for modes of nearly equal s. To second order A² is in the map itself, and the parts of the others delay
mode j by ∫ 2 max(λ_j, λ_k) A² dt in ln a_j. A mode k of the larger target turns the hidden direction of mode j once it
is the stronger of the two: from then on mode j hardly holds it back, μ = √(ρ²/4 + r²) − ρ/2, and it has come late by
about A²/(a_j + a_k) (1 + r/|μ|). Besides, the map of the start is not that of the limit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._linalg import NOTHING, Modes, input_defect

STAGE = (-2.0, 4.0)  # times around the arrival of a mode, in 1/s: the entries beside it are largest there
TIMES = 300  # about so many are looked at
MARGIN = 1.1  # for third order, and for times between those of STAGE
LARGEST = 300.0  # exponents are cut here: what has grown so far is no limit any more
SLOW = 0.1  # of |μ|: what hardly grows or fades does not do so for ever


class Directions(NamedTuple):
    """Modes, then inputs without one, then outputs without one."""

    first: np.ndarray  # (hidden, direction): parts of the layers
    last: np.ndarray
    values: np.ndarray  # s
    variances: np.ndarray  # λ; infinite for outputs
    ahead: np.ndarray  # ln(target/start − 1); infinite for what is never learned

    def log_left(self, times: Any, which: Any = slice(None)) -> np.ndarray:
        """ln D of directions."""
        ahead = self.ahead[which]
        return np.logaddexp(0, -ahead) - np.logaddexp(0, 2 * self.values[which] * times - ahead)


class Course(NamedTuple):
    """Times (time, 1), and over them (time, direction) what all stages need."""

    times: np.ndarray
    left: np.ndarray  # ln D
    rate: np.ndarray  # 2 s t
    growth: np.ndarray  # ln of the integral of e^(2 s t) D
    fading: np.ndarray  # ln of the integral of e^(−2 s t)

    @classmethod
    def of(cls, around: Directions, times: np.ndarray) -> Course:
        left, rate, still = around.log_left(times), 2 * around.values * times, around.values == 0
        fading = _log(np.where(still, times, -np.expm1(-rate) / np.where(still, 1.0, 2 * around.values)))
        return cls(times, left, rate, rate + fading + left, fading)


class Stage(NamedTuple):
    """What the other directions do in the hidden direction of a mode."""

    beside: np.ndarray  # (time,): ΣA²
    delay: np.ndarray  # (time,): of the mode, in ln a
    delays: np.ndarray  # (direction,): of the others


def map_error(modes: Modes, effective: Any, hidden: Any, weights: Any, cov_x: Any, end: float) -> float:
    """The largest error of the map until `end`, relative to the largest map: an estimate that is hardly ever too small.

    `modes` are turned to the start, `effective` are their starts and `hidden` their hidden directions.
    """
    effective, hidden, weights = np.asarray(effective), np.asarray(hidden), [np.asarray(w) for w in weights]
    around = _directions(modes, effective, weights, np.asarray(cov_x))
    learned = np.flatnonzero(np.isfinite(around.ahead))
    values, ahead = around.values[learned], around.ahead[learned]
    targets = values / around.variances[learned]
    around_one = np.linspace(*STAGE, np.clip(TIMES // max(len(learned), 1), 7, 25))[:, None]
    times = np.concatenate([((ahead / 2 + around_one) / values).ravel(), [0.0, end]])
    course = Course.of(around, np.unique(np.clip(times, 0, end))[:, None])
    lacks = np.exp(course.left[:, learned] - np.logaddexp(0, -ahead))
    strengths = targets * (1 - lacks)
    stages = [_stage(around, int(mode), hidden[:, mode], course) for mode in learned]
    beside = np.array([stage.beside for stage in stages]).reshape(len(learned), len(course.times)).T
    delay = np.array([stage.delay for stage in stages]).reshape(beside.T.shape).T
    delay = delay + sum((stage.delays[learned] for stage in stages), np.zeros(len(learned)))
    entries = 2 * strengths * beside + (strengths * lacks * delay) ** 2
    begun = weights[1] @ weights[0]
    own = (np.asarray(modes.left) * effective) @ np.asarray(modes.right).T
    size, first = float(np.linalg.norm(strengths[-1])), float(np.linalg.norm(begun))
    rounding = np.finfo(float).eps * 2 * float(np.max(values, initial=0.0)) * end  # of rate × time
    unlike = float(np.linalg.norm(begun - own)) + (input_defect(modes, cov_x) + rounding) * size
    wrong = MARGIN * (float(np.max(np.sqrt(entries.sum(axis=1)) + beside.sum(axis=1))) + unlike)
    # The flow is at least as large as the limit less the error.
    return wrong / max(size - wrong, size / 2, first, np.finfo(float).tiny)


def _directions(modes: Modes, effective: np.ndarray, weights: Any, cov_x: np.ndarray) -> Directions:
    left, right = np.asarray(modes.left), np.asarray(modes.right)
    inputs, outputs = _rest(right), _rest(left)
    variances, turn = np.linalg.eigh(inputs.T @ cov_x @ inputs)
    (first, last), (silent, blind) = weights, (inputs.shape[1], outputs.shape[1])
    values = np.where(modes.singular_values > NOTHING * np.max(modes.singular_values), modes.singular_values, 0.0)
    own = np.maximum(modes.variances, np.finfo(float).tiny)
    learned = (effective > 0) & (values > 0)
    share = np.where(learned, effective * own / np.where(learned, values, 1.0), 0.5)
    ahead = np.where(learned, np.log(1 / np.minimum(share, 0.5) - 1), np.inf)  # a larger start has no stages
    return Directions(
        np.concatenate([first @ right, first @ inputs @ turn, np.zeros((len(first), blind))], axis=1),
        np.concatenate([last.T @ left, np.zeros((len(first), silent)), last.T @ outputs], axis=1),
        np.concatenate([values, np.zeros(silent + blind)]),
        np.concatenate([own, np.maximum(variances, 0.0), np.full(blind, np.inf)]),
        np.concatenate([ahead, np.full(silent + blind, np.inf)]),
    )


def _rest(basis: np.ndarray) -> np.ndarray:
    """An orthonormal basis of what the columns leave of the space."""
    return np.linalg.svd(basis, full_matrices=True)[0][:, basis.shape[1] :]


def _stage(around: Directions, mode: int, direction: np.ndarray, course: Course) -> Stage:
    values, variance = around.values, around.variances[mode]
    variances = np.where(np.isinf(around.variances), variance, around.variances)  # outputs fade as those of the mode
    r, rho = values / values[mode], variances / variance
    mu, free = np.hypot((1 - rho) / 2, r) - (1 + rho) / 2, np.hypot(rho / 2, r) - rho / 2
    both, apart = (2 * _log(np.abs((around.first + sign * around.last).T @ direction / 2)) for sign in (1, -1))
    both[: mode + 1] = -np.inf  # modes of larger s have none here: the direction is what they leave
    others = np.arange(len(values)) != mode
    target, targets, meet = _meeting(around, mode)
    freed = targets > 2 * target

    def grown(times, left, rate):
        own = np.broadcast_to(around.log_left(times, mode), left.shape)
        log = left + (r - mu) * own
        until = around.log_left(np.minimum(np.broadcast_to(times, left.shape)[..., freed], meet[freed]), mode)
        log[..., freed] += (mu - free)[freed] * (own[..., freed] - until)
        return others * (_exp(log + rate + both) + _exp(log - rate + apart))

    when = np.minimum(meet, course.times[-1])
    met = grown(when, around.log_left(when), 2 * values * when) / (target + np.minimum(target, targets / 2))
    met = met * (1 + r / np.maximum(np.abs(mu), SLOW))
    pull = 2 * np.maximum(variance, variances)
    return Stage(
        grown(course.times, course.left, course.rate).sum(axis=1),
        (_exp(course.growth + both) + _exp(course.fading + apart)) @ pull,
        np.where(targets > 0, met, 0.0),
    )


def _meeting(around: Directions, mode: int) -> tuple[float, np.ndarray, np.ndarray]:
    """The target of a mode, those of the modes learned after it or 0, and when these pass it or half of their own."""
    values = around.values
    target = values[mode] / around.variances[mode]
    later = np.isfinite(around.ahead) & (np.arange(len(values)) > mode)
    targets = np.where(later, values, 0.0) / np.where(later, around.variances, 1.0)
    passing = np.where(later, np.minimum(target / np.where(later, targets, 1.0), 0.5), 0.5)
    meet = np.where(later, around.ahead + np.log(passing / (1 - passing)), 0.0) / np.where(later, 2 * values, 1.0)
    return target, targets, np.maximum(np.maximum(meet, around.ahead[mode] / (2 * values[mode])), 0.0)


def _exp(power: Any) -> Any:
    return np.exp(np.minimum(power, LARGEST))


def _log(size: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.log(size)
