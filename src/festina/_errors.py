"""Errors in three parts: what was seen, what is needed, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FestinaError(Exception):
    """Base of all festina errors; carries the three parts as attributes."""

    def __init__(self, seen: str, needed: str, do: str):
        self.seen, self.needed, self.do = seen, needed, do
        super().__init__(f"{seen}\n  needed: {needed}\n  to do:  {do}")

    # KeyError would show the repr of the message; the words are for people.
    __str__ = Exception.__str__


class BadInput(FestinaError, ValueError):
    """An argument or a file that cannot be used; the message names it."""


class UnknownName(BadInput, KeyError):
    """A name that does not exist; the message suggests the nearest."""

    __str__ = Exception.__str__

    @classmethod
    def among(cls, kind: str, name: str, names: Iterable[str]) -> UnknownName:
        names = sorted(names)
        near = difflib.get_close_matches(str(name), names, n=3, cutoff=0.4)
        do = f"did you mean {' or '.join(map(repr, near))}?" if near else f"choose from: {', '.join(names)}"
        return cls(f"unknown {kind} {name!r}", f"one of: {', '.join(names)}", do)


class NoTheory(FestinaError, LookupError):
    """No theory covers the setup (or the one asked for does not)."""


class Diverged(FestinaError, ArithmeticError):
    """Training blew up. `trajectory` holds what was finished before.

    Attributes: step, loss, seed, stable_rate (an estimate, or None), trajectory.
    """

    step: int
    loss: float
    seed: int
    stable_rate: float | None
    trajectory: object | None = None
