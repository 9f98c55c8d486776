"""Networks whose learning time depends on depth, in τ/D: aligned layers on y = x, and random orthogonal ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import ArrayLike, Float

from ... import Setup, inits, nets, rules, tasks
from ...theories.aligned_modes import time_to
from .labelled import labelled, time_at
from .training import simulate

if TYPE_CHECKING:
    from xarray import DataArray

ACHIEVED = 0.95  # share of the way from the initial strength to the target


def end_of(start: float, singular_value: float = 1.0) -> float:
    """The strength of a mode that has gone 95 % of its way."""
    return start + ACHIEVED * (singular_value - start)


def stated_time(depth: int | float, singular_value: ArrayLike, start: ArrayLike) -> Float[np.ndarray, "*shape"]:
    """The time to this strength by the closed form, in units of τ/D."""
    values, starts = np.asarray(singular_value, float), np.asarray(start, float)
    end = starts + ACHIEVED * (values - starts)
    factor = 1 if depth == math.inf else depth
    return factor * np.asarray(time_to(end, singular_value=values, start=starts, depth=depth))


def aligned(depth: int, start: float, end: float, lr: float) -> Setup:
    """An aligned network on y = x, for a little longer than it takes from one strength to another."""
    task, net = tasks.from_moments([[1.0]], [[1.0]], [[1.0]]), nets.DeepLinear((1,) * (depth - 1))
    wanted = float(time_to(end, singular_value=1.0, start=start, depth=depth))
    times = lr * np.arange(1, int(1.3 * wanted / lr) + 2)
    return Setup(task, net, inits.Aligned(start), rules.GradientDescent(lr), times=times)


def arrival(setup: Setup, end: float, seed: int) -> float:
    """The time at which it reaches a strength in training."""
    return float(time_at(labelled(simulate(setup, [seed], "modes"), "modes"), end).squeeze())


def singular_values(size: int) -> Float[np.ndarray, " mode"]:
    """Those of the target of random orthogonal networks."""
    return np.linspace(2.0, 1.0, size)


def orthogonal(depth: int, sign: str, size: int, lr: float, until: float, seed: int) -> Setup:
    """A network of random orthogonal layers on a random target; `sign` compares the signs of their determinants."""
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.normal(size=(size, size)))[0] for _ in range(2))
    values = singular_values(size)
    task = tasks.from_moments(left * values @ right.T, np.eye(size), np.diag(values**2))
    net, init = nets.DeepLinear((size,) * (depth - 1)), inits.Orthogonal(1.0, determinant=sign)
    return Setup(task, net, init, rules.GradientDescent(lr / depth), times=np.linspace(0, until / depth, 61))


def losses(setup: Setup, depth: int, size: int, seeds: Sequence[int]) -> DataArray:
    """Losses over that of zero weights, at times in units of τ/D."""
    of_seeds = labelled(simulate(setup, seeds, "loss"), "loss")
    return of_seeds.assign_coords(time=(of_seeds.time * depth).round(9)) / (0.5 * np.sum(singular_values(size) ** 2))
