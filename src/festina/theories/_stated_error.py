"""The error that comes with every answer, and whether it is small enough for the answer to be given.

Once all other assumptions of a theory hold, its error against gradient flow is estimated: by the cheap bound of
`_growth_bound` where that is tiny, else by `_certificate`, or by `_against_flow` for a theory without weights. It is
the last assumption, "error". An error that is no larger than what rounding grows to along the same path is accepted,
with a note: no simulation in float64 could do better.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from .._setup.setup import Setup
from ..rules.base import rate_of
from . import _against_flow
from ._certificate import certificate, rounding, steps
from ._followed_weights import RESOLVED
from ._growth_bound import growth_bound
from ._stiff import Vector
from .base import Assumption, Theory

CLEAR = 1e-6  # a bound this small is stated as it is; a larger one is followed up
ROUNDING_FACTOR = 100.0  # an error of at most this many times that of rounding comes from rounding


class Carried(NamedTuple):
    """Errors of the initial weights that earlier tasks have left: those of theories, and those of finite steps."""

    error: Vector | None = None
    steps: Vector | None = None


FROM_NOTHING = Carried()


@dataclasses.dataclass(frozen=True)
class StatedError:
    """The relative error of an answer, as an assumption of its theory, and what a user must know about it."""

    value: float
    assumption: Assumption
    note: str = ""


def stated_error(
    theory: Theory, setup: Setup, seed: int, measured: Sequence[Assumption], carried: Vector | None = None
) -> StatedError:
    """The error on a setup on which all other assumptions hold; `carried` as for `certificate`."""
    value = _value(theory, setup, seed, measured, carried)
    bound, limit = theory.tolerated, theory.kind == "limit"
    name = "error"
    statement = "relative error against gradient flow: what the assumptions above miss, grown until the last time"
    plain = Assumption.at_most(name, statement, value, bound, advisory=limit)
    if plain.holds or limit or not theory.can_be_followed:
        return StatedError(value, plain)
    followed, alone = certificate(theory, setup, seed, carried=carried), rounding(theory, setup, seed)
    lost = followed.lost_at(bound)
    # Both errors grow at the same rate; their ratio is read off where both are still small.
    if lost is None or lost >= len(alone.errors) or followed.errors[lost] > ROUNDING_FACTOR * alone.errors[lost]:
        return StatedError(value, plain)
    by_rounding = Assumption.that(
        name, statement, True, f"{value:.3g}, by rounding", f"<= {bound:g}, or no more than rounding"
    )
    note = (
        "rounding of the start, grown along this path, takes part in the answer from "
        f"t ≈ {followed.times[lost]:.3g} on: beyond, no simulation in float64 can follow the flow"
    )
    return StatedError(min(value, 1.0), by_rounding, note)


def _value(theory: Theory, setup: Setup, seed: int, measured: Sequence[Assumption], carried: Vector | None) -> float:
    if not theory.can_be_followed:
        return max(_against_flow.difference(theory, setup, seed), RESOLVED)
    if carried is None:
        quick = growth_bound(theory, setup, seed, measured)
        if quick <= CLEAR:
            return max(quick, RESOLVED)
    return certificate(theory, setup, seed, carried=carried).error


def steps_error(theory: Theory, setup: Setup, seed: int, carried: Vector | None = None) -> float:
    """The error that steps of the rule's length add; `carried` is what they have added in earlier tasks."""
    if theory.can_be_followed:
        return steps(theory, setup, seed, carried=carried).error
    return _against_flow.difference(theory, setup, seed, float(rate_of(setup.rule)))
