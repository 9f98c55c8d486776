"""The rates with which the two-point theory comes nearest to records, one after another in one compiled program.

Least squares of H, P and w with equal weights, from the recorded start [vanrossem2024, eq. 49], in the logarithms of
the two rates. The closed form makes every evaluation cheap and its derivatives exact. κ = η_h/η_y is set by the final
level, √(η_h η_y) by the time of the transition: a scan of the latter comes first, and the best three are polished; of
long records first a part, and then the best of the three on all of them. The method of Levenberg and Marquardt does
the polishing, and also finds the third rate, that of the mean of the outputs, from its own record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import _two_point
from ._precision import in_double
from ._two_point import Curves

SCAN = np.logspace(-3.5, 4.5, 80)  # √(η_h η_y X Y) × duration; η × duration of the mean
COARSE = 256  # records are enough to scan
LONG = 1024  # records that are worth a second program, which compiles for seconds
POLISHED = 3
LARGEST_LOG = 80.0  # of a rate × duration; beyond it nothing moves, or all is over at once
EXTREME = 1e24  # of the ratio of the rates; in a layer of c times the scale it is c⁴ times as large
ROUNDS = 200  # of Levenberg and Marquardt
TOLERANCE = 1e-15  # of a step, and of what it gains
ROUGH = 1e-8  # for those that will be polished again


class Member(NamedTuple):
    """One record to fit: H, P and w (3, time), and the squared distances of inputs and targets."""

    curves: Any
    input_gap: float
    target_gap: float


class Found(NamedTuple):
    """The best rates of one record."""

    logs: Any  # ln η_h and ln η_y in units of the duration, and p0/√Y
    converged: bool
    predicted: Curves
    metric: Any  # JᵀJ of the derivatives


class FoundMean(NamedTuple):
    """The best rate of the mean of one record, in units of the duration."""

    log: float
    converged: bool
    predicted: Any
    metric: float  # of the derivative, in units of the start


class _Record(NamedTuple):
    """What the closed form is compared with, in units of the duration; records beyond `mask` are padding."""

    ts: Any
    mask: Any
    curves: Any  # (3, time)
    distance0: Any
    off0: Any
    input_gap: Any
    target_gap: Any
    last: Any  # p0/√Y, unless it is fitted


class Polish(NamedTuple):
    """Where Levenberg and Marquardt stand."""

    x: Any
    predicted: Any
    cost: Any
    pull: Any  # Jᵀr
    metric: Any  # JᵀJ
    damping: Any
    growth: Any
    rounds: Any
    done: Any


@in_double
def rates(times: Any, members: Sequence[Member], free_gap: bool) -> list[Found]:
    """The best two rates of every member, and with `free_gap` the best first difference along the target."""
    ts = (times - times[0]) / (times[-1] - times[0])
    some = np.unique(np.linspace(0, len(ts) - 1, COARSE).round().astype(int))
    free = 3 if free_gap else 2
    part, full = _padded(ts[some]), _padded(ts)
    found = []
    for member in members:
        start = _start(member)
        last = np.array([start.along0])
        numbers = (*np.array(start[:4]), last)
        coarse, curves = _longer(member.curves[:, some], part[0]), _longer(member.curves, full[0])
        # What is left to do between the programs is done by NumPy, for which nothing is compiled.
        tried = np.asarray(_best_guesses(*part, coarse, numbers, _guesses(member, last)))[:, :free]
        if len(ts) > LONG:
            tried = _best(_polished(*part, coarse, numbers, tried, ROUGH)).x[None]
        end = _best(_polished(*full, curves, numbers, tried, TOLERANCE))
        predicted = Curves(*end.predicted[:, : len(ts)])
        found.append(Found(np.concatenate([end.x, last])[:3], bool(end.done), predicted, end.metric))
    return found


@in_double
def mean_rates(times: Any, curves: Sequence[Any]) -> list[FoundMean]:
    """The best rate of m(0) e^(−2ηt) for every record of m = |ȳ − ȳ*|², the first of which is taken as known."""
    ts = (times - times[0]) / (times[-1] - times[0])
    grid = _padded(ts)
    found = []
    for curve in curves:
        end = jax.tree.map(np.asarray, _best_mean(*grid, _longer(curve / curve[0], grid[0])))
        predicted = curve[0] * end.predicted[: len(ts)]
        found.append(FoundMean(float(end.x[0]), bool(end.done), predicted, float(end.metric[0, 0])))
    return found


def _padded(ts: Any) -> tuple[Any, Any]:
    """Times, COARSE × 4ⁿ of them so that records of many lengths share a program, and which of them are real."""
    length = COARSE
    while length < len(ts):
        length *= 4
    more = (0, length - len(ts))
    return np.pad(ts, more, mode="edge"), np.pad(np.ones(len(ts)), more)


def _longer(curves: Any, ts: Any) -> Any:
    return np.pad(curves, [(0, 0)] * (np.ndim(curves) - 1) + [(0, len(ts) - np.shape(curves)[-1])])


class _Start(NamedTuple):
    distance0: float
    off0: float
    input_gap: float
    target_gap: float
    along0: float  # p0/√Y


def _start(member: Member) -> _Start:
    (H0, P0, w0), Y = member.curves[:, 0], member.target_gap
    along0, off0 = map(float, _components(P0, w0, Y))
    return _Start(float(H0), off0, member.input_gap, Y, along0 / (np.sqrt(Y) or 1.0))


_components = jax.jit(_two_point.components)


def _guesses(member: Member, along0: Any) -> Any:
    """Logarithms of both rates, and p0: the scan, for each of three values of κ, no two of them the same."""
    curves, X, Y = member
    (H0, P0, _), (H, P, _) = curves[:, 0], curves[:, -1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # The final level of small starts; what the conserved quantity says; nothing known.
        ratios = np.array([H**2 / (X * Y) if Y else np.nan, (H - H0) / (X * (P / H - P0 / H0)), 1.0])
    usable = np.isfinite(ratios) & (ratios > 1 / EXTREME) & (ratios < EXTREME)
    ratios = np.where(usable, ratios, 1.0) * [1.0, 1.1, 1.2]  # often they agree, and one start is tried once
    speed = np.log(SCAN / np.sqrt(X * (Y or P0 or 1.0)))
    tilt = np.log(ratios)[:, None] / 2
    pairs = np.stack([speed + tilt, speed - tilt, np.full((3, len(SCAN)), along0[0])], axis=-1)
    return pairs.reshape(-1, 3)


@jax.jit
def _best_guesses(ts: Any, mask: Any, curves: Any, numbers: Any, guesses: Any) -> Any:
    """The first few of the guesses by how well they do."""
    record = _Record(ts, mask, curves, *numbers)
    scores = jax.vmap(lambda x: jnp.sum(_residuals(x, record)[0] ** 2))(guesses)
    return guesses[jnp.argsort(scores)[:POLISHED]]


@jax.jit
def _polished(ts: Any, mask: Any, curves: Any, numbers: Any, starts: Any, tolerance: Any) -> Polish:
    """Minima near the starts (start, parameter)."""
    record = _Record(ts, mask, curves, *numbers)
    return jax.vmap(lambda x: polished(lambda x: _residuals(x, record), x, tolerance))(starts)


def _best(ends: Polish) -> Polish:
    """The best end."""
    ends = jax.tree.map(np.asarray, ends)
    best = np.argmin(np.where(np.isnan(ends.cost), np.inf, ends.cost))
    return jax.tree.map(lambda leaf: leaf[best], ends)


@jax.jit
def _best_mean(ts: Any, mask: Any, curve: Any) -> Polish:
    def residuals(x):
        predicted = jnp.exp(-2 * jnp.exp(jnp.clip(x[0], -LARGEST_LOG, LARGEST_LOG)) * ts)
        return (predicted - curve) * mask, predicted

    guesses = jnp.log(SCAN)[:, None]
    scores = jax.vmap(lambda x: jnp.sum(residuals(x)[0] ** 2))(guesses)
    return polished(residuals, guesses[jnp.argmin(scores)], TOLERANCE)


def _residuals(x: Any, record: _Record) -> tuple[Any, Any]:
    """What the closed form misses, and what it gives."""
    tau_h, tau_y = jnp.exp(-jnp.clip(x[:2], -LARGEST_LOG, LARGEST_LOG))
    along0 = jnp.concatenate([x, record.last])[2] * jnp.sqrt(record.target_gap)
    predicted = jnp.stack(
        _two_point.from_components(
            record.ts, record.distance0, along0, record.off0, record.input_gap, record.target_gap, tau_h, tau_y
        )
    )
    return ((predicted - record.curves) * record.mask).ravel(), predicted


def polished(residuals: Callable[[Any], tuple[Any, Any]], start: Any, tolerance: Any) -> Polish:
    """A least-squares minimum near `start`, by Levenberg and Marquardt; `done` if it was reached.

    Parameters are on one scale, so the damping is a multiple of 1. It falls after good steps and rises, faster and
    faster, after bad ones; at a minimum no step is good, and they shrink to nothing. `tolerance` is that of a step
    and of what it gains.
    """
    size = start.shape[-1]
    unit = jnp.eye(size)

    def improved(now: Polish) -> Polish:
        # The first round is a step of nothing from an infinite cost, so that the closed form is compiled once.
        first = now.rounds == 0
        step = -jnp.linalg.solve(jnp.where(first, unit, now.metric + now.damping * unit), now.pull)
        foreseen = jnp.sum(step * (now.damping * step - now.pull)) / 2
        x = now.x + step
        value, along, predicted = jax.linearize(residuals, x, has_aux=True)
        slopes = jax.vmap(along)(unit)  # (parameter, residual)
        cost, pull, metric = jnp.sum(value**2) / 2, slopes @ value, slopes @ slopes.T
        gained = now.cost - cost
        better = first | (gained > 0)  # never where the cost is NaN
        ratio = gained / jnp.where(foreseen > 0, foreseen, 1.0)
        small = jnp.linalg.norm(step) <= tolerance * jnp.linalg.norm(now.x)
        little = (jnp.abs(gained) <= tolerance * now.cost) & (foreseen <= tolerance * now.cost)
        lower = now.damping * jnp.maximum(1 / 3, 1 - (2 * ratio - 1) ** 3)
        begin = 1e-3 * jnp.max(jnp.diagonal(metric)) + jnp.finfo(cost.dtype).tiny

        def kept(new, old):
            return jnp.where(better, new, old)

        return Polish(
            x=kept(x, now.x),
            predicted=kept(predicted, now.predicted),
            cost=kept(cost, now.cost),
            pull=kept(pull, now.pull),
            metric=kept(metric, now.metric),
            damping=jnp.where(first, begin, jnp.where(better, lower, now.damping * now.growth)),
            growth=kept(2.0, 2 * now.growth),
            rounds=now.rounds + 1,
            done=~first & (small | little),
        )

    shape = jax.eval_shape(residuals, start)[1]
    begun = Polish(
        x=start,
        predicted=jnp.zeros(shape.shape, shape.dtype),
        cost=jnp.asarray(jnp.inf),
        pull=jnp.zeros(size),
        metric=unit,
        damping=jnp.asarray(1.0),
        growth=jnp.asarray(2.0),
        rounds=jnp.asarray(0),
        done=jnp.asarray(False),
    )
    return jax.lax.while_loop(lambda now: ~now.done & (now.rounds < ROUNDS), improved, begun)
