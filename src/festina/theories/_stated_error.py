"""The error that comes with every answer, and whether it is small enough for the answer to be given."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._setup import Setup
from . import _against_flow
from ._certificate import RESOLVED, certificate, rounding, steps
from ._growth_bound import growth_bound
from .base import Assumption, Theory

CLEAR = 1e-6  # a bound this small is stated as it is; a larger one is followed up
ALIKE = 100.0  # an error of at most this many times that of rounding comes from rounding


class Carried(NamedTuple):
    """Shifts of the first weights that earlier tasks have left: errors of theories, and what finite steps add."""

    error: np.ndarray | None = None
    steps: np.ndarray | None = None


FROM_NOTHING = Carried()


@dataclasses.dataclass(frozen=True)
class StatedError:
    """The relative error of an answer, as an assumption of its theory, and what a user must know about it."""

    value: float
    assumption: Assumption
    note: str = ""


def stated_error(
    theory: Theory, setup: Setup, seed: int, measured: Sequence[Assumption], carried: Any = None
) -> StatedError:
    """Measured on a setup on which all other assumptions hold; `carried` as for `certificate`."""
    value = _value(theory, setup, seed, measured, carried)
    bound, limit = theory.tolerated, theory.kind == "limit"
    name = "error"
    statement = "relative error against gradient flow: what the assumptions above miss, grown until the last time"
    plain = Assumption.at_most(name, statement, value, bound, advisory=limit)
    if plain.holds or limit or not has_path(theory):
        return StatedError(value, plain)
    found, alone = certificate(theory, setup, seed, carried=carried), rounding(theory, setup, seed)
    lost = found.lost_at(bound)
    # Both grow alike; how many times one is the other is seen where they are still small.
    if lost is None or lost >= len(alone.errors) or found.errors[lost] > ALIKE * alone.errors[lost]:
        return StatedError(value, plain)
    by_rounding = Assumption.that(
        name, statement, True, f"{value:.3g}, by rounding", f"<= {bound:g}, or no more than rounding"
    )
    note = (
        "rounding of the start, grown along this path, takes part in the answer from "
        f"t ≈ {found.times[lost]:.3g} on: beyond, no simulation in float64 can follow the flow"
    )
    return StatedError(min(value, 1.0), by_rounding, note)


def _value(theory: Theory, setup: Setup, seed: int, measured: Sequence[Assumption], carried: Any) -> float:
    if not has_path(theory):
        return max(_against_flow.difference(theory, setup, seed), RESOLVED)
    if carried is None:
        quick = growth_bound(theory, setup, seed, measured)
        if quick <= CLEAR:
            return max(quick, RESOLVED)
    return certificate(theory, setup, seed, carried=carried).error


def steps_error(theory: Theory, setup: Setup, seed: int, carried: Any = None) -> float:
    """What steps of the rule's length add; `carried` is what they have added in earlier tasks."""
    if has_path(theory):
        return steps(theory, setup, seed, carried=carried).error
    return _against_flow.difference(theory, setup, seed, float(setup.rule.lr))


def has_path(theory: Theory) -> bool:
    return type(theory).path is not Theory.path or type(theory).weights is not Theory.weights
