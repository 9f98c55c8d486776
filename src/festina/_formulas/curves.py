"""Numbers read off curves: when they cross a level, and the order at which errors fall."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Real

from .._foundation.arrays import AnyArray, Number


def time_to_fraction(times: Real[AnyArray, " time"], losses: Real[AnyArray, " time"], fraction: Number) -> float:
    """The first time at which the loss has fallen to `fraction` of its start; infinite if it never does.

    Between recorded times the logarithm of the loss is interpolated linearly.
    """
    level = fraction * losses[0]
    below = np.flatnonzero(losses <= level)
    if not len(below):
        return np.inf
    k = int(below[0])
    if k == 0 or losses[k] <= 0:
        return float(times[k])
    share = np.log(losses[k - 1] / level) / np.log(losses[k - 1] / losses[k])
    return float(times[k - 1] + share * (times[k] - times[k - 1]))


def crossing(
    times: Real[AnyArray, " time"],
    curves: Real[AnyArray, "*axes"],
    level: Number | Real[AnyArray, "*levels"],
    axis: int = -1,
) -> Float[np.ndarray, "*others"]:
    """The first time at which each curve is at or above its level, linear between records; infinite if it never is.

    `axis` of `curves` is time, and the result has the other axes; `level` is one number, or broadcasts against the
    result. A curve that starts at or above its level crosses it at the first time. For falling curves give
    `-curves` and `-level`.
    """
    times, curves = np.asarray(times), np.moveaxis(np.asarray(curves), axis, -1)
    goal = np.broadcast_to(np.asarray(level), curves.shape[:-1])
    reached = curves >= goal[..., None]
    after = np.argmax(reached, axis=-1)
    before = np.maximum(after - 1, 0)
    low, high = (np.take_along_axis(curves, index[..., None], axis=-1)[..., 0] for index in (before, after))
    between = after > before
    share = np.where(between, (goal - low) / np.where(between, high - low, 1), 0)
    passed = times[before] + share * (times[after] - times[before])
    return np.where(reached.any(axis=-1), passed, np.inf)


def half_time(
    times: Real[AnyArray, " time"],
    curves: Real[AnyArray, "*axes"],
    target: Number | Real[AnyArray, "*targets"],
    axis: int = -1,
) -> Float[np.ndarray, "*others"]:
    """The first time at which each curve has come to half of its target; infinite if it never does.

    The arguments are those of `crossing`.
    """
    return crossing(times, curves, 0.5 * np.asarray(target), axis)


def order(errors: Real[AnyArray, "*axes"], axis: int = -1) -> Float[np.ndarray, "*others"]:
    """The order of convergence between neighbouring errors along `axis`, where each step halves the control parameter.

    It is log₂ of the ratio of neighbouring errors: 1 where the error is proportional to the parameter, 2 where it is
    proportional to its square. The result has one entry less along `axis` than the errors.
    """
    errors = np.moveaxis(np.asarray(errors), axis, -1)
    return np.moveaxis(np.log2(errors[..., :-1] / errors[..., 1:]), -1, axis)
