"""Which patterns one unit can make: linear feasibility over the samples of a task.

A unit is on for the samples with w·x > 0 (with a bias w·x + b > 0) and off for all others, those at exactly 0 among
them. Its patterns are those for which some weights have w·x ≥ 1 where it is on and w·x ≤ 0 where it is off.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import linprog

from .._errors import BadInput
from .._noun import real_array, whole
from .._setup import Task
from ._patterns import distinct

LARGEST_WEIGHT = 1e6  # for inputs near 1 and w·x ≥ 1: margins below its inverse are not told from 0
CLEAR = 1e-9  # of |w| |x|: nearer to the border than this, rounding may decide
DRAWS = 20  # times `most` random weights, to see early that there are too many patterns


def implementable(pattern: Any, task: Task, *, bias: bool = False) -> bool:
    """Whether one unit can be on for exactly the samples that `pattern` is on for.

    `pattern` has one truth value, or 0 or 1, for each sample of the task. With `bias` the unit has one.

    >>> from festina import tasks
    >>> plain = tasks.xor(margin=0.0)
    >>> implementable([0, 1, 1, 0], plain), implementable([0, 1, 0, 0], plain)
    (False, True)
    """
    return witness(pattern, task, bias=bias) is not None


def witness(pattern: Any, task: Task, *, bias: bool = False) -> np.ndarray | None:
    """Weights (d_in,) of a unit that is on for exactly these samples, the bias last if it has one; None if none can.

    As few samples as possible lie on the border w·x = 0, and the weights are tried on all samples before they are
    given back.
    """
    x = _inputs(task, bias)
    return _weights(_checked(pattern, len(x)), x)


def implementable_patterns(task: Task, *, bias: bool = False, most: int = 100_000) -> np.ndarray:
    """All patterns (pattern, sample) that one unit can make, in the order of binary numbers; for small tasks.

    Patterns of the first n samples are extended by the next one. The weights of a pattern decide its next sample, so
    only the other choice is a question: at most one linear program for every pattern of every n. More than `most`
    patterns are refused.
    """
    x, most = _inputs(task, bias), whole(most, "most")
    _refuse_many(x, most)
    found: list[np.ndarray] = []
    waiting = [(np.zeros(0, bool), np.zeros(x.shape[1]))]
    while waiting:
        pattern, weights = waiting.pop()
        if len(pattern) == len(x):
            found.append(pattern)
            if len(found) > most:
                raise _too_many(f"more than {most}", most)
            continue
        sample = x[len(pattern)]
        reached, near = sample @ weights, CLEAR * np.linalg.norm(sample) * np.linalg.norm(weights)
        for on in (True, False):  # the last one in is the first one out: off before on
            longer = np.append(pattern, on)
            decided = reached > near if on else reached < -near
            extended = weights if decided else _weights(longer, x[: len(longer)])
            if extended is not None:
                waiting.append((longer, extended))
    return np.array(found)


def _refuse_many(x: np.ndarray, most: int) -> None:
    """Refuse at once what random weights already show to have too many patterns."""
    if 2.0 ** len(x) <= most:
        return
    rng, seen = np.random.default_rng(0), np.zeros((0, -(-len(x) // 8)), np.uint8)
    for _ in range(DRAWS):
        drawn = np.packbits(rng.normal(size=(most, x.shape[1])) @ x.T > 0, axis=1)
        seen = np.packbits(distinct(np.concatenate([seen, drawn]), None, len(x)).on, axis=1)
        if len(seen) > most:
            raise _too_many(f"at least {len(seen)}", most)


def _too_many(seen: str, most: int) -> BadInput:
    return BadInput(
        f"a task on which one unit can make {seen} patterns",
        f"at most {most}",
        "take fewer samples, raise most=, or ask for one pattern: gates.implementable(pattern, task)",
    )


def _inputs(task: Any, bias: bool) -> np.ndarray:
    """The samples (sample, weight), with a 1 for the bias."""
    if not isinstance(task, Task) or task.x is None:
        raise BadInput(f"{task!r}, without samples", "a task with samples", "build one: tasks.from_arrays(x, y)")
    x = np.asarray(task.x, dtype=float)
    return np.column_stack([x, np.ones(len(x))]) if bias else x


def _checked(pattern: Any, samples: int) -> np.ndarray:
    values = real_array(pattern, "pattern", ndim=1)
    if len(values) != samples:
        raise BadInput(
            f"a pattern of {len(values)} values", f"one for each of the {samples} samples", "give one 0 or 1 per sample"
        )
    if strange := sorted(set(values.tolist()) - {0.0, 1.0}):
        raise BadInput(f"a pattern with the value {strange[0]:g}", "0 or 1: off or on", "round it: pattern > 0.5")
    return values.astype(bool)


def _weights(pattern: np.ndarray, x: np.ndarray) -> np.ndarray | None:
    """Weights that are on for exactly this pattern of the samples x; None if there are none.

    Each sample that is off has a margin of at most 1, and their sum is made as large as possible: then only samples
    that must lie on the border do, and rounding cannot push one over it. A price on large weights keeps those of such
    samples in simple ratios; where the price itself left a sample on the border, they are sought without it.
    """
    if not pattern.any():
        return np.zeros(x.shape[1])
    columns = _power_of_two(x, axis=0)  # the scales of inputs and of samples decide nothing
    scaled = x / columns
    scaled = scaled / _power_of_two(scaled, axis=1)[:, None]
    on, off, none = scaled[pattern], scaled[~pattern], np.zeros((pattern.sum(), (~pattern).sum()))
    for price in (1e-3, 0.0):
        solved = linprog(  # in the positive parts of the weights, their negative parts, the margins
            np.concatenate([np.full(2 * x.shape[1], price), -np.ones(len(off))]),
            A_ub=np.block([[-on, on, none], [off, -off, np.eye(len(off))]]),
            b_ub=np.concatenate([-np.ones(len(on)), np.zeros(len(off))]),
            bounds=[(0.0, LARGEST_WEIGHT)] * (2 * x.shape[1]) + [(0.0, 1.0)] * len(off),
            method="highs",
        )
        if solved.status == 2:  # infeasible
            return None
        if solved.status == 0:
            positive, negative = solved.x[: x.shape[1]], solved.x[x.shape[1] : 2 * x.shape[1]]
            weights = (positive - negative) / columns
            for candidate in (weights, _in_whole_numbers(weights)):
                if np.array_equal(x @ candidate > 0, pattern):
                    return candidate
    raise BadInput(
        f"a pattern of {len(pattern)} samples that rounding leaves open: weights that should make it do not",
        "samples of which none must lie exactly on the border w·x = 0",
        "give samples in small whole numbers, or ask for a unit with bias=True",
    )


def _power_of_two(x: np.ndarray, axis: int) -> np.ndarray:
    """A scale near the largest entries, by which division is exact."""
    return np.exp2(np.frexp(np.abs(x).max(axis=axis))[1])


def _in_whole_numbers(weights: np.ndarray) -> np.ndarray:
    """Weights in the same ratios, if these are ratios of small whole numbers: w·x is then exact where x is whole."""
    ratios = [Fraction(ratio).limit_denominator(10_000) for ratio in weights / np.abs(weights).max()]
    common = math.lcm(*(ratio.denominator for ratio in ratios))
    return np.array([float(ratio * common) for ratio in ratios])
