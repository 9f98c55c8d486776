"""Parameters of an experiment, checked by their annotations before `run` begins.

    @checked
    def run(*, hidden: Count = 16, starts: Positives = (1e-2, 1e-4), lr: Positive = 0.01, seed: Seed = 0) -> Result: ...

A parameter with another annotation is left to `run`, such as one whose bound depends on another parameter.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Annotated, Any, ParamSpec, TypeAlias, TypeVar

from ..._foundation import checks
from ..._foundation.errors import BadInput, shown

P = ParamSpec("P")
R = TypeVar("R")


class Check:
    """How a parameter is checked: a function of its value and name, which returns the cleaned value or refuses it."""

    def __init__(self, clean: Callable[..., Any], **options: Any):
        self.clean, self.options = clean, options

    def __call__(self, value: object, argument: str) -> Any:
        return self.clean(value, argument, **self.options)


class AtLeast(Check):
    """A whole number of at least `least`: `Annotated[int, AtLeast(4)]`."""

    def __init__(self, least: int):
        super().__init__(checks.whole, least=least)


class OneOf(Check):
    """One of these texts: `Annotated[str, OneOf("xor", "contexts")]`."""

    def __init__(self, *options: str):
        super().__init__(checks.choice, options=options)


class Parts(Check):
    """As many entries as there are checks, each with a check of its own, as a tuple: gain, rate and epochs, say."""

    def __init__(self, **parts: Check):
        super().__init__(_parts, checks_of=parts)


class Each(Check):
    """A list whose entries all pass a check, as a tuple; it has `least` entries or more."""

    def __init__(self, check: Check, least: int = 1):
        super().__init__(_each, check=check, least=least)


def _each(value: object, argument: str, *, check: Check, least: int) -> tuple[Any, ...]:
    some = "an entry" if least == 1 else f"{least} entries"
    needed, do = f"a list of {some} or more", f"give {argument}=(…)"
    entries = checks.listed(value, argument, needed, do)
    if len(entries) < least:
        raise BadInput(f"{argument} = {shown(value)}", needed, do)
    return tuple(check(entry, argument) for entry in entries)


def _parts(value: object, argument: str, *, checks_of: dict[str, Check]) -> tuple[Any, ...]:
    needed, do = f"({', '.join(checks_of)})", f"give {argument}=({', '.join(checks_of)})"
    entries = checks.listed(value, argument, needed, do)
    if len(entries) != len(checks_of):
        raise BadInput(f"{argument} = {shown(value)}", needed, do)
    parts = zip(checks_of.items(), entries, strict=True)
    return tuple(check(entry, f"{name} of {argument}") for (name, check), entry in parts)


POSITIVE = Check(checks.positive)
Count: TypeAlias = Annotated[int, AtLeast(1)]
Several: TypeAlias = Annotated[int, AtLeast(2)]
Positive: TypeAlias = Annotated[float, POSITIVE]
NotNegative: TypeAlias = Annotated[float, Check(checks.positive, zero=True)]
Number: TypeAlias = Annotated[float, Check(checks.number)]
Share: TypeAlias = Annotated[float, Check(checks.number, least=0, most=1)]
Truth: TypeAlias = Annotated[bool, Check(checks.truth)]
Text: TypeAlias = Annotated[str, Check(checks.text)]
Seed: TypeAlias = Annotated[int, Check(checks.seed)]
Counts: TypeAlias = Annotated[tuple[int, ...], Each(AtLeast(1))]
Positives: TypeAlias = Annotated[tuple[float, ...], Each(POSITIVE)]
Numbers: TypeAlias = Annotated[tuple[float, ...], Each(Check(checks.number))]


def checked(run: Callable[P, R]) -> Callable[P, R]:
    """`run` of an experiment, with its arguments cleaned by the checks in their annotations."""

    @functools.wraps(run)
    def with_checks(*args: P.args, **given: P.kwargs) -> R:
        known = _checks_of(run)
        cleaned: dict[str, Any] = {n: known[n](v, n) if n in known else v for n, v in given.items()}
        return run(*args, **cleaned)

    return with_checks


@functools.cache
def _checks_of(run: Callable[..., Any]) -> dict[str, Check]:
    hints = typing.get_type_hints(run, include_extras=True)
    return {
        name: entry
        for name, hint in hints.items()
        for entry in getattr(hint, "__metadata__", ())
        if isinstance(entry, Check)
    }
