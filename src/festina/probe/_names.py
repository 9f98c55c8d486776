"""Choosing layers by name: one name, a pattern, a list, an alias."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from .._foundation.errors import UnknownName

SHOWN = 12  # names in a message; networks can have thousands of modules


def is_pattern(text: str) -> bool:
    return any(sign in text for sign in "*?[")


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """Names that a pattern fits, part by part between the dots: `*` is one part or a piece of it, `**` any parts."""
    return [name for name in names if _fits(pattern.split("."), name.split("."))]


def _fits(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_fits(pattern[1:], parts[skipped:]) for skipped in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(pattern[1:], parts[1:])


def with_call(text: str) -> tuple[str, int] | None:
    """("relu", 1) of "relu[1]": the second call of a module."""
    match = re.fullmatch(r"(.+)\[(\d+)\]", text)
    return (match[1], int(match[2])) if match else None


def first_few(names: Sequence[str]) -> str:
    """The first of some names, and how many there are."""
    return ", ".join(names[:SHOWN]) + (f", … ({len(names)} in all)" if len(names) > SHOWN else "")


def unknown(name: str, names: Iterable[str], whose: str, listing: str) -> UnknownName:
    """The error for a layer that is not there, with the nearest names."""
    names = list(names)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
    do = f"did you mean {' or '.join(map(repr, near))}?" if near else f"choose from {listing}"
    what = "no layer fits the pattern" if is_pattern(name) else "unknown layer"
    return UnknownName(f"{what} {name!r} of {whose}", f"one of: {first_few(names) or 'nothing, it has none'}", do)
