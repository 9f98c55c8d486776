"""A closed form on a long grid of times, interpolated to rounding from the few times at which it is evaluated.

A closed form is analytic in time. On a panel of consecutive times it is evaluated at Chebyshev points and at some of
the panel's times; the polynomial through the points gives it at all times of the panel [trefethen2013, chapters 3 and
8]. The polynomial is accepted only if, for every readout, relative to the smallest size that the readout has at any of
the evaluated times,

- the last coefficients are below `DECAYED`: more points would change nothing above rounding;
- polynomial and closed form differ by less than `AGREED` at the times of the panel that were evaluated.

The size of an array is its largest entry, so that a falling loss keeps its relative accuracy, and a matrix is accurate
relative to its largest entry. A panel that is not accepted, or whose numbers are not finite, is halved; one with too
few times for that is evaluated at every time. The result is thus the closed form, or within rounding of it (1e-13 of
the smallest size on the panel). A grid on which no panel is accepted costs at most two thirds more than without the
attempt.

Only a change that comes and goes between two neighbouring points could be missed. Learning leaves lasting changes: the
loss falls, and the map moves, at every mode that is learned, and no polynomial of this degree follows a step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

NODES, CHECKS = 56, 8  # evaluated for one panel: Chebyshev points, and times of the panel
TOGETHER = NODES + CHECKS
FEWEST = 3 * TOGETHER  # times of a panel
DECAYED, TAIL = 5e-14, 8  # the bound on the last coefficients together, and how many they are
AGREED = 1e-13

Times = Float[np.ndarray, " time"]
Values = dict[str, Float[np.ndarray, "_ ..."]]  # of every readout, time first

_DEGREES = np.arange(NODES)
_ODD = 2 * _DEGREES + 1
_ANGLES = np.pi / (2 * NODES) * _ODD
# Angles are reduced to one turn in integer arithmetic; at high degree they would carry the rounding of many turns.
_WAVES = np.cos(np.pi / (2 * NODES) * (np.outer(_DEGREES, _ODD) % (4 * NODES)))
_COEFFICIENTS = _WAVES * np.where(_DEGREES > 0, 2 / NODES, 1 / NODES)[:, None]


def at_times(evaluate: Callable[[Times], Values], times: Times) -> Values:
    """`evaluate(times)` for increasing times, exact to rounding, by fewer evaluations where interpolation is accepted.

    `evaluate` never gets more than `TOGETHER` times at once, so that one compiled length serves nearly all calls.
    """
    pieces: dict[int, Values] = {}  # by the index of their first time
    waiting, failed = [(0, len(times))], []
    while waiting:
        begin, end = waiting.pop()
        values = _panel(evaluate, times[begin:end]) if end - begin >= FEWEST else None
        if values is not None:
            pieces[begin] = values
        elif end - begin >= 2 * FEWEST:
            waiting += [((begin + end) // 2, end), (begin, (begin + end) // 2)]
        else:
            failed.append((begin, end))
    for begin, end in failed:
        for block in np.array_split(np.arange(begin, end), -((begin - end) // TOGETHER)):
            pieces[block[0]] = evaluate(times[block])
    ordered = [pieces[begin] for begin in sorted(pieces)]
    return {name: np.concatenate([piece[name] for piece in ordered]) for name in ordered[0]}


def _panel(evaluate: Callable[[Times], Values], times: Times) -> Values | None:
    """The values at `times`, from the polynomial through Chebyshev points; None if it is not accepted."""
    first, last = times[0], times[-1]
    checked = np.linspace(0, len(times) - 1, CHECKS).round().astype(int)
    evaluated = evaluate(np.concatenate([first + (last - first) * np.cos(_ANGLES / 2) ** 2, times[checked]]))
    # The polynomial is evaluated in the angle: near the ends of a panel it would amplify the rounding of the time.
    angles = 2 * np.arctan2(np.sqrt(last - times), np.sqrt(times - first))
    basis = np.cos(angles[:, None] * _DEGREES)
    series = {}
    for name, value in evaluated.items():
        flat = value.reshape(len(value), -1)
        smallest = np.abs(flat).max(axis=1).min()
        series[name] = _COEFFICIENTS @ flat[:NODES]
        tail = np.abs(series[name][-TAIL:]).sum(axis=0).max()
        miss = np.abs(basis[checked] @ series[name] - flat[NODES:]).max()
        if not (tail <= DECAYED * smallest and miss <= AGREED * smallest):  # not so for NaN, either
            return None
    return {name: (basis @ series[name]).reshape(len(times), *evaluated[name].shape[1:]) for name in evaluated}
