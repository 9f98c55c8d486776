"""solve() and covering(): which theory holds here, and what it predicts.

The rule of choice: theories whose measured assumptions all hold come first; among them exact ones
before reductions; then the one with more assumptions, since it says more, before the one with
fewer; then by name. `covering` lists all in this order, those that do not hold sorted by how many
assumptions fail.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from . import theories
from ._errors import BadInput, NoTheory, UnknownName
from ._noun import whole
from ._precision import in_double
from ._setup import Setup, concrete
from ._simulate import axis_names
from ._spec import to_spec
from ._trajectory import Trajectory
from ._version import __version__
from .theories.base import Assumption, Theory


@dataclasses.dataclass(frozen=True)
class Coverage:
    """One theory against one setup."""

    theory: Theory
    assumptions: tuple[Assumption, ...]

    @property
    def name(self) -> str:
        return type(self.theory).__name__

    @property
    def holds(self) -> bool:
        return all(assumption.holds for assumption in self.assumptions)

    @property
    def failed(self) -> tuple[Assumption, ...]:
        return tuple(assumption for assumption in self.assumptions if not assumption.holds)

    def rank(self) -> tuple[Any, ...]:
        return len(self.failed), not self.theory.exact, -len(self.assumptions), self.name


class Covering(Sequence):
    """Every theory with each assumption, measured on one setup; best first."""

    def __init__(self, entries: Iterable[Coverage]):
        self.entries = tuple(sorted(entries, key=Coverage.rank))

    def __getitem__(self, index):
        if isinstance(index, str):
            named = {entry.name: entry for entry in self.entries}
            if index not in named:
                raise UnknownName.among("theory", index, named)
            return named[index]
        return self.entries[index]

    def __iter__(self) -> Iterator[Coverage]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        lines = []
        for entry in self.entries:
            kind = "exact" if entry.theory.exact else "reduction"
            lines.append(f"{'✓' if entry.holds else '✗'} {entry.name} ({kind})")
            lines += [f"    {'✓' if a.holds else '✗'} {a}" for a in entry.assumptions]
        return "\n".join(lines)


def members() -> dict[str, type[Theory]]:
    """Every theory by name."""
    listed = {name: getattr(theories, name) for name in theories.__all__}
    return {
        name: member
        for name, member in listed.items()
        if isinstance(member, type) and issubclass(member, Theory) and not member.__abstractmethods__
    }


def covering(setup: Setup, *, seed: int = 0) -> Covering:
    """Every theory with each assumption, the number measured and the number needed; best first.

    `seed` picks the draw of a random start on which they are measured.
    """
    concrete(setup, "covering")
    return Covering(_measured(member(), setup, seed) for member in members().values())


def solve(
    setup: Setup,
    theory: str | type[Theory] | Theory | None = None,
    *,
    observe: str | Iterable[str] | None = None,
    seed: int = 0,
    strict: bool = True,
) -> Trajectory:
    """What theory predicts for `setup`, on its time grid; axes (time, …).

    Args:
        theory: a name, class or instance; None takes the strongest that holds (see the module).
        observe: observables to compute now; the others are computed when first asked for.
        seed: the draw of a random start.
        strict: refuse a theory whose assumptions fail; if false, go on and say so in `provenance`.
    """
    concrete(setup, "solve")
    entry = _chosen(setup, theory, whole(seed, "seed", least=0), strict)
    member = entry.theory
    times = np.asarray(setup.times)
    evaluated = functools.cache(functools.partial(_evaluated, member, setup, seed, times))
    lacking = {"outputs"} if setup.task.samples is None else set()
    values = {
        name: functools.partial(lambda name: _read(member, name, *evaluated()), name)
        for name in member.readouts
        if name not in lacking
    }
    note = "" if entry.holds else "outside its assumptions: " + "; ".join(map(str, entry.failed))
    trajectory = Trajectory(
        times,
        values,
        {name: ("time", *member.readouts[name].axes) for name in values},
        entry.name,
        {
            "setup": functools.partial(to_spec, setup),
            "festina": __version__,
            "exact": member.exact,
            "reference": dict(member.reference),
            "assumptions": [dataclasses.asdict(a) for a in entry.assumptions],
            "note": note,
        },
        axis_names(setup),
    )
    for name in (observe,) if isinstance(observe, str) else observe or ():
        trajectory[name]
    return trajectory


def _chosen(setup: Setup, theory: Any, seed: int, strict: bool) -> Coverage:
    if theory is None:
        ranked = covering(setup, seed=seed)
        if not ranked[0].holds:
            raise NoTheory(
                "no theory covers this setup; the nearest first:\n" + repr(ranked),
                "every assumption of one theory",
                f"change the setup so that {ranked[0].failed[0].statement}, or train it with simulate",
            )
        return ranked[0]
    entry = _measured(_instance(theory), setup, seed)
    if strict and not entry.holds:
        failed = "\n".join(f"    {a.statement} — {a}" for a in entry.failed)
        raise NoTheory(
            f"{entry.name} does not cover this setup:\n{failed}",
            f"every assumption of {entry.name}",
            "see festina.covering(setup) for what does, or pass strict=False to see how wrong it is",
        )
    return entry


def _instance(theory: Any) -> Theory:
    if isinstance(theory, Theory):
        return theory
    if isinstance(theory, type) and issubclass(theory, Theory):
        return theory()
    if isinstance(theory, str):
        known = members()
        if theory not in known:
            raise UnknownName.among("theory", theory, known)
        return known[theory]()
    raise BadInput(f"theory = {theory!r}", "a name, a Theory class or an instance", "see festina.theories")


def _measured(theory: Theory, setup: Setup, seed: int) -> Coverage:
    return Coverage(theory, theory.assumptions(setup, seed))


@in_double
def _evaluated(theory: Theory, setup: Setup, seed: int, times: Any) -> tuple[Any, Any]:
    constants = theory.constants(setup, seed)
    return constants, theory.states(constants, times)


@in_double
def _read(theory: Theory, name: str, constants: Any, states: Any) -> Any:
    return theory.readouts[name].read(constants, states)
