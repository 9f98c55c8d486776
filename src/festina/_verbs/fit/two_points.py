"""Fits of the two-point theory to many records, and to curves that are no trajectory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._foundation.errors import BadInput
from ...theories._fitting.records import checked_times
from ...theories._fitting.two_point import FITTING
from ...theories._fitting.two_point_answer import TwoPointFit
from ...theories._fitting.two_point_records import Entry, record_of
from .search import minimum


def fit_two_point(
    times: object,
    H: object,
    P: object,
    w: object,
    X: object,
    Y: object,
    *,
    mean_gap: object = None,
    free_gap: bool = False,
    start: object = 0,
) -> TwoPointFit:
    """The rates with which the two-point theory comes nearest to recorded curves.

    `H`, `P` and `w` are the squared distances in a layer and in the output, and w = P − dy·Δy*, at `times`; `X` and `Y`
    the squared distances of inputs and targets. `start` is the record to begin at: while a network still learns the
    mean of its outputs, H does not follow w. `free_gap` also fits p0, the first output difference along the target.
    `mean_gap` is |ȳ − ȳ*|² at `times`, for the third rate.

    >>> from festina.theories.two_point import trajectory
    >>> ts, pair = range(0, 4000, 20), dict(distance0=1e-3, output0=1e-4, alignment0=-0.0069)
    >>> curves = trajectory(ts, **pair, input_gap=1.0, target_gap=0.5, tau_h=500.0, tau_y=100.0)
    >>> fit = fit_two_point(ts, *curves, 1.0, 0.5)
    >>> round(fit.tau_h, 6), round(fit.tau_y, 6), bool(fit.applies)
    (500.0, 100.0, True)
    """
    (outcome,) = fit_all(times, [Entry(H, P, w, X, Y, mean_gap)], free_gap=free_gap, start=start)
    if isinstance(outcome, BadInput):
        raise outcome
    return outcome


def fit_all(
    times: object, entries: Sequence[Entry], *, free_gap: bool = False, start: object = 0
) -> list[TwoPointFit | BadInput]:
    """The fits of many records at the same times; for a record that cannot be used, what is wrong with it."""
    known, first = checked_times(times, start)
    return [_fitted_or_refused(entry, known, first, bool(free_gap)) for entry in entries]


def _fitted_or_refused(entry: Entry, times: Any, start: int, free_gap: bool) -> TwoPointFit | BadInput:
    try:
        record = record_of(entry, times, start, free_gap)
    except BadInput as refusal:
        return refusal
    return FITTING.answer("TwoPoint", record, minimum(FITTING, record))
