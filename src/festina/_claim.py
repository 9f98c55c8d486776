"""Claim and Result: what an experiment says, and what it has measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from . import _checks
from ._errors import BadInput
from ._setup import Setup
from ._trajectory import Trajectory

SOURCES = ("paper", "festina")


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement with a measured and a required value.

    `source` says whose claim it is; `expected` is false for a paper's claim that is known not to
    reproduce, and then `reason` says why.
    """

    text: str
    measured: float | str
    required: str
    holds: bool
    source: str = "festina"
    expected: bool = True
    reason: str = ""
    fitted: bool = False

    def __post_init__(self):
        _checks.text(self.text, "text")
        _checks.text(self.required, "required")
        if not isinstance(self.measured, str):
            _checks.number(self.measured, "measured", finite=False)
        for name in ("holds", "expected", "fitted"):
            _checks.truth(getattr(self, name), name)
        _checks.choice(self.source, "source", SOURCES)
        _checks.text(self.reason, "reason", empty=True)
        if not self.expected and not self.reason:
            raise BadInput(f"claim {self.text!r} is expected to fail", "a reason", "say why it does not reproduce")

    @classmethod
    def at_most(cls, text: str, measured: float, bound: float, **options: Any) -> Claim:
        """Holds if the measured number does not exceed the bound; NaN does not hold."""
        measured, bound = _measured(measured), _checks.number(bound, "bound")
        return cls(text, measured, f"<= {bound:g}", measured <= bound, **options)

    @classmethod
    def at_least(cls, text: str, measured: float, bound: float, **options: Any) -> Claim:
        """Holds if the measured number is not below the bound; NaN does not hold."""
        measured, bound = _measured(measured), _checks.number(bound, "bound")
        return cls(text, measured, f">= {bound:g}", measured >= bound, **options)

    @classmethod
    def between(cls, text: str, measured: float, low: float, high: float, **options: Any) -> Claim:
        """Holds if the measured number is between the bounds; NaN does not hold."""
        measured, low, high = _measured(measured), _checks.number(low, "low"), _checks.number(high, "high")
        return cls(text, measured, f"{low:g} … {high:g}", low <= measured <= high, **options)

    @property
    def as_expected(self) -> bool:
        return self.holds == self.expected


def _measured(value: Any) -> float:
    """A measured number; what was never reached is infinite, and what could not be measured NaN."""
    return _checks.number(value, "measured", finite=False)


@dataclasses.dataclass(frozen=True)
class Result:
    """What an experiment's `run` returns: labelled data, the setups, the theories' trajectories."""

    data: Any
    setups: Mapping[str, Setup] = dataclasses.field(default_factory=dict)
    theories: Mapping[str, Trajectory] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        import xarray

        _checks.instance(self.data, "data", xarray.Dataset, "give an xarray.Dataset of what was measured")
        for argument, kind in (("setups", Setup), ("theories", Trajectory)):
            needed, do = f"a dict {{label: {kind.__name__}}}", f'give {argument}={{"label": …}}'
            for one in _checks.mapping(getattr(self, argument), argument, needed, do).values():
                _checks.instance(one, argument, kind, do)
