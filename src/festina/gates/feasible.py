"""Which patterns one unit can make: linear feasibility over the samples of a task.

A unit is on for the samples with w·x > 0 (with a bias w·x + b > 0) and off for all others, those at exactly 0 among
them. Its patterns are those for which some weights have w·x ≥ 1 where it is on and w·x ≤ 0 where it is off. By
Farkas' lemma there are none iff the samples have shares λ, μ ≥ 0 with Σ_on λ x = Σ_off μ x and Σ λ = 1. A pattern is
called possible when weights are found that make it, and impossible when such shares are; what has neither is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog, nnls

from .._foundation.checks import real_array, truth, whole
from .._foundation.errors import BadInput, shown
from ..tasks.base import Task

CLEAR = 1e-9  # of Σ |w_i x_i|: nearer to the border than this, rounding may decide
BALANCED = 1e-14  # of the sum of the sizes: a smaller sum is 0 up to the rounding of its terms
SHARED = 1e-12  # of the largest share: a smaller one is 0 up to rounding
SOLVED_EXACTLY = 24  # samples with a share; the time for exact numbers grows with the fourth power, at least
DRAWS = 20  # times `most` random weights, to see early that there are too many patterns
AT_ONCE = 2**22  # values of w·x held at once


def implementable(pattern: ArrayLike, task: Task, *, bias: bool = False) -> bool:
    """Whether one unit can be on for exactly the samples that `pattern` is on for.

    `pattern` has one truth value, or 0 or 1, for each sample of the task. With `bias` the unit has one.

    Examples:
        >>> from festina import tasks
        >>> plain = tasks.xor(margin=0.0)
        >>> implementable([0, 1, 1, 0], plain), implementable([0, 1, 0, 0], plain)
        (False, True)
    """
    return witness(pattern, task, bias=bias) is not None


def witness(pattern: ArrayLike, task: Task, *, bias: bool = False) -> np.ndarray | None:
    """Weights (d_in,) of a unit that is on for exactly these samples, the bias last if it has one; None if none can.

    As few samples as possible lie on the border w·x = 0, and the weights are tried on all samples before they are
    given back. An answer of None is proven as well: by shares of samples on the two sides whose weighted sums are
    equal, up to rounding. Where rounding leaves a pattern open, that is said in an error.
    """
    x, centre = _inputs(task, bias)
    return _weights(_checked(pattern, len(x)), x, centre)


def implementable_patterns(task: Task, *, bias: bool = False, most: int = 100_000) -> np.ndarray:
    """All patterns (pattern, sample) that one unit can make, in the order of binary numbers; for small tasks.

    Patterns of the first n samples are extended by the next one. Weights that make a pattern already put the next
    sample on one side; only the other side has to be tried: at most one linear program for every pattern of every n.
    More than `most` patterns are refused.
    """
    (x, centre), most = _inputs(task, bias), whole(most, "most")
    _refuse_many(x - centre, most)
    makeable: list[np.ndarray] = []
    waiting = [(np.zeros(0, bool), np.zeros(x.shape[1]))]
    while waiting:
        pattern, weights = waiting.pop()
        if len(pattern) == len(x):
            makeable.append(pattern)
            if len(makeable) > most:
                raise _too_many(f"more than {most}", most)
            continue
        sample = x[len(pattern)]
        reached, near = sample @ weights, CLEAR * np.abs(sample) @ np.abs(weights)
        for on in (True, False):  # the last one in is the first one out: off before on
            longer = np.append(pattern, on)
            decided = reached > near if on else reached < -near
            extended = weights if decided else _weights(longer, x[: len(longer)], centre)
            if extended is not None:
                waiting.append((longer, extended))
    return np.array(makeable)


def _refuse_many(x: np.ndarray, most: int) -> None:
    """Refuse at once samples for which random weights already make more than `most` patterns."""
    if len(x) <= math.log2(most):
        return
    scaled, step = x / _power_of_two(x, axis=0), max(1, AT_ONCE // len(x))
    rng, patterns = np.random.default_rng(0), np.zeros(0, f"V{-(-len(x) // 8)}")
    for _ in range(DRAWS):
        steps = [min(step, most - first) for first in range(0, most, step)]
        tried = [np.packbits(rng.normal(size=(draws, x.shape[1])) @ scaled.T > 0, axis=1) for draws in steps]
        patterns = np.unique(np.concatenate([patterns, np.concatenate(tried).view(patterns.dtype).ravel()]))
        if len(patterns) > most:
            raise _too_many(f"at least {len(patterns)}", most)


def _too_many(count: str, most: int) -> BadInput:
    return BadInput(
        f"a task on which one unit can make {count} patterns",
        f"at most {most}",
        "take fewer samples, raise most=, or ask for one pattern: gates.implementable(pattern, task)",
    )


def _inputs(task: object, bias: object) -> tuple[np.ndarray, np.ndarray]:
    """The samples (sample, weight), with a 1 for the bias, and a centre (weight,) by which a bias lets them be moved.

    The centre is a median among the values themselves: moved by it, whole numbers stay whole.
    """
    bias = truth(bias, "bias", "say whether the unit has a bias")
    if not isinstance(task, Task) or task.x is None:
        raise BadInput(
            f"task = {shown(task)}, without samples", "a task with samples", "build one: tasks.from_arrays(x, y)"
        )
    x = np.asarray(task.x, dtype=float)
    if not bias:
        return x, np.zeros(x.shape[1])
    return np.column_stack([x, np.ones(len(x))]), np.append(np.sort(x, axis=0)[len(x) // 2], 0.0)


def _checked(pattern: ArrayLike, samples: int) -> np.ndarray:
    values = real_array(pattern, "pattern", ndim=1)
    if len(values) != samples:
        raise BadInput(
            f"a pattern of {len(values)} values", f"one for each of the {samples} samples", "give one 0 or 1 per sample"
        )
    if strange := sorted(set(values.tolist()) - {0.0, 1.0}):
        raise BadInput(f"a pattern with the value {strange[0]:g}", "0 or 1: off or on", "round it: pattern > 0.5")
    return values.astype(bool)


def _weights(pattern: np.ndarray, x: np.ndarray, centre: np.ndarray) -> np.ndarray | None:
    """Weights that are on for exactly this pattern of the samples x; None if there are none."""
    if not pattern.any():
        return np.zeros(x.shape[1])
    balanced = False
    for inputs, back, moved in _coordinates(x, centre):
        for solution in _programs(pattern, inputs):
            weights = back @ solution
            for candidate in (weights, _in_whole_numbers(weights)):
                candidate[-1] -= moved @ candidate  # w·(x - c) + b = w·x + (b - w·c)
                if _makes(candidate, pattern, x):
                    return candidate
        shares = _shares(pattern, inputs)
        if _balance_exactly(shares, pattern, x):
            return None
        balanced |= _balance(shares, pattern, x) and _balance(shares, pattern, x - centre)
        if balanced and np.count_nonzero(shares) > SOLVED_EXACTLY:
            return None
    if balanced:
        return None
    raise BadInput(
        f"a pattern of {len(pattern)} samples that rounding leaves open: no weights that make it, and no proof that "
        "none can",
        "samples of which none must lie exactly on the border w·x = 0, or nearly so",
        "give samples in small whole numbers, or ask for a unit with bias=True",
    )


def _coordinates(x: np.ndarray, centre: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Inputs that make the same patterns, the matrix that takes their weights back, and the centre they were moved by.

    First with inputs scaled by powers of two, which keeps whole numbers whole; then with orthogonal ones, which tells
    nearly parallel inputs apart. At last without the move, in which small values next to large ones are rounded.
    """
    for moved in (centre, np.zeros_like(centre)) if centre.any() else (centre,):
        columns = _power_of_two(x - moved, axis=0)
        scaled = (x - moved) / columns
        yield scaled, np.diag(1 / columns), moved
        left, sizes, right = np.linalg.svd(scaled, full_matrices=False)
        kept = sizes > max(x.shape) * np.finfo(float).eps * sizes[0]
        yield left[:, kept], (right[kept] / sizes[kept, None]).T / columns[:, None], moved


def _programs(pattern: np.ndarray, inputs: np.ndarray) -> Iterator[np.ndarray]:
    """Weights that make the pattern, up to the tolerance of linear programs.

    Finding none here does not prove that there are none. Each sample that is off has a margin of at most 1, and their
    sum is made as large as possible: then only samples that must lie on the border do, and rounding cannot push one
    over it. A penalty on large weights keeps weights in simple ratios where samples must lie on the border; if the
    penalty itself puts one there, we search again without it.
    """
    scaled, size = inputs / _power_of_two(inputs, axis=1)[:, None], inputs.shape[1]
    on, off, none = scaled[pattern], scaled[~pattern], np.zeros((pattern.sum(), (~pattern).sum()))
    for price in (1e-3, 0.0):
        solved = linprog(  # in the positive parts of the weights, their negative parts, the margins
            np.concatenate([np.full(2 * size, price), -np.ones(len(off))]),
            A_ub=np.block([[-on, on, none], [off, -off, np.eye(len(off))]]),
            b_ub=np.concatenate([-np.ones(len(on)), np.zeros(len(off))]),
            bounds=[(0.0, None)] * (2 * size) + [(0.0, 1.0)] * len(off),
            method="highs",
        )
        if solved.status == 0:
            yield solved.x[:size] - solved.x[size : 2 * size]
        elif solved.status == 2:  # infeasible, at any price
            return


def _makes(weights: np.ndarray, pattern: np.ndarray, x: np.ndarray) -> bool:
    """Whether a unit with these weights is on for exactly this pattern, in floating point and in exact numbers."""
    reached = x @ weights
    if not np.all(np.isfinite(reached)) or not np.array_equal(reached > 0, pattern):
        return False
    doubtful = np.abs(reached) <= 2 * len(weights) * np.finfo(float).eps * (np.abs(x) @ np.abs(weights))
    exact = [Fraction(weight) for weight in weights.tolist()]
    return all(
        (sum(Fraction(value) * weight for value, weight in zip(x[n].tolist(), exact, strict=True)) > 0) == pattern[n]
        for n in np.flatnonzero(doubtful)
    )


def _shares(pattern: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """Shares of the samples, λ where the unit is on and μ where it is off, with Σ_on λ x nearest to Σ_off μ x."""
    scales, sign = _power_of_two(inputs, axis=1), np.where(pattern, 1.0, -1.0)
    sides, one = np.vstack([(inputs * (sign / scales)[:, None]).T, pattern]), np.eye(inputs.shape[1] + 1)[-1]
    try:
        shares = nnls(sides, one)[0]
        used = shares > SHARED * shares.max()
        shares[~used] = 0.0
        shares[used] = nnls(sides[:, used], one)[0]
    except RuntimeError:  # too many steps
        return np.zeros(len(pattern))
    return shares / scales


def _balance(shares: np.ndarray, pattern: np.ndarray, x: np.ndarray) -> bool:
    """Whether both sides are equal in each input to the rounding of its own values, however small these are."""
    sums = np.where(pattern, shares, -shares) @ x
    return bool(shares[pattern].any() and np.all(np.abs(sums) <= BALANCED * (shares @ np.abs(x))))


def _balance_exactly(shares: np.ndarray, pattern: np.ndarray, x: np.ndarray) -> bool:
    """Whether the samples with a share, if not too many, have shares ≥ 0 for which both sides are exactly equal."""
    used = np.flatnonzero(shares)
    if len(used) > SOLVED_EXACTLY:
        return False
    sides = np.where(pattern[used], x[used].T, -x[used].T)
    rows = [[*map(Fraction, row), Fraction(0)] for row in sides.tolist()]
    rows.append([*map(Fraction, pattern[used].tolist()), Fraction(1)])
    solved = 0
    for column in range(len(used)):  # Gauss and Jordan; a share that nothing decides is 0
        pivot = next((n for n in range(solved, len(rows)) if rows[n][column]), None)
        if pivot is None:
            continue
        rows[solved], rows[pivot] = rows[pivot], rows[solved]
        rows[solved] = [value / rows[solved][column] for value in rows[solved]]
        for n in range(len(rows)):
            if n != solved and (factor := rows[n][column]):
                rows[n] = [value - factor * lead for value, lead in zip(rows[n], rows[solved], strict=True)]
        solved += 1
    return all(row[-1] >= 0 for row in rows[:solved]) and not any(row[-1] for row in rows[solved:])


def _power_of_two(x: np.ndarray, axis: int) -> np.ndarray:
    """A scale near the largest entries, by which division is exact."""
    return np.exp2(np.frexp(np.abs(x).max(axis=axis))[1])


def _in_whole_numbers(weights: np.ndarray) -> np.ndarray:
    """Weights in the same ratios, if these are ratios of small whole numbers: w·x is then exact where x is whole."""
    largest = np.abs(weights).max()
    if not 0 < largest < math.inf:
        return weights.copy()
    ratios = [Fraction(ratio).limit_denominator(10_000) for ratio in weights / largest]
    common = math.lcm(*(ratio.denominator for ratio in ratios))
    return np.array([float(ratio * common) for ratio in ratios])
