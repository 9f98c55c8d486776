"""Errors in three parts: what was seen, what is needed, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


def shown(value: Any, most: int = 60) -> str:
    """A value in an error: its repr on one line, cut where it is long; its type where it has none."""
    try:
        text = repr(value.item() if type(value).__module__ == "numpy" and not value.shape else value)
    except Exception:  # of anything that a user hands in
        text = f"<{type(value).__name__}>"
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."


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
    def among(cls, kind: str, name: object, names: Iterable[str]) -> UnknownName:
        """The error for a name that is none of these; anything may have been given as the name."""
        names = sorted(map(str, names))
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.4) if isinstance(name, str) else []
        names = [*near, *(other for other in names if other not in near)]
        do = f"did you mean {' or '.join(map(repr, near))}?" if near else f"choose from: {', '.join(names)}"
        return cls(f"unknown {kind} {shown(name)}", f"one of: {', '.join(names)}", do)


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
