"""covering(): which theories hold on a setup, with every assumption measured; and which of them answers.

The rule of choice: theories whose measured assumptions all hold, their error among them, come first; among them exact
ones before reductions before limits; then the one with the smaller error, by orders of magnitude; then the one with
more assumptions, since it says more, before the one with fewer; then by name. Those that do not hold are sorted by how
many assumptions fail; theories whose first assumption fails, the kind of network, come last.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as SequenceOfEntries
from typing import overload

import numpy as np

from .. import theories
from .._foundation import checks, html
from .._foundation.errors import BadInput, NoTheory, UnknownName, shown
from .._setup.setup import Setup, check_concrete
from .._setup.stages import has_stages, stages
from ..theories._stated_error import CLEAR, FROM_NOTHING, Carried, StatedError, stated_error
from ..theories.base import KINDS, Assumption, Theory


@dataclasses.dataclass(frozen=True)
class Coverage:
    """One theory against one setup."""

    theory: Theory
    assumptions: tuple[Assumption, ...]
    stated: StatedError | None = None  # once all other assumptions are known to hold

    @property
    def name(self) -> str:
        return type(self.theory).__name__

    @property
    def holds(self) -> bool:
        return all(assumption.holds for assumption in self.assumptions)

    @property
    def failed(self) -> tuple[Assumption, ...]:
        return tuple(assumption for assumption in self.assumptions if not assumption.holds)

    @property
    def usable(self) -> bool:
        """True if only advisory assumptions fail; such a theory may still be requested by name."""
        return all(assumption.holds or assumption.advisory for assumption in self.assumptions)

    def rank(self) -> tuple[bool, int, int, float, int, str]:
        """The place in `covering`: the smallest comes first."""
        # If the kind of network is wrong, no other assumption is measured, so the number of failures means nothing.
        other_kind = bool(self.assumptions) and not self.assumptions[0].holds
        kind = KINDS.index(self.theory.kind)
        return other_kind, len(self.failed), kind, self.magnitude, -len(self.assumptions), self.name

    @property
    def magnitude(self) -> float:
        """The order of magnitude of the error; 0 for all errors that integrated gradient flow cannot resolve."""
        if self.stated is None or not self.holds:
            return 0.0
        return max(0.0, float(np.ceil(np.log10(self.stated.value / CLEAR))))


class Covering(SequenceOfEntries):
    """Every theory with each assumption, measured on one setup; best first."""

    def __init__(self, entries: Iterable[Coverage]):
        do = "use festina.covering(setup)"
        known = checks.listed(entries, "entries", "what covering has measured of each theory", do, empty=True)
        for entry in known:
            checks.instance(entry, "entries", Coverage, do)
        self.entries: tuple[Coverage, ...] = tuple(sorted(known, key=Coverage.rank))

    @overload
    def __getitem__(self, index: str | int) -> Coverage: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Coverage, ...]: ...
    def __getitem__(self, index: str | int | slice) -> Coverage | tuple[Coverage, ...]:
        if isinstance(index, str):
            by_name = {entry.name: entry for entry in self.entries}
            if index not in by_name:
                raise UnknownName.among("theory", index, by_name)
            return by_name[index]
        return checks.entry(self.entries, index, "index")

    def __iter__(self) -> Iterator[Coverage]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def _repr_html_(self) -> str:
        parts = []
        for entry in self.entries:
            failed = entry.failed
            said = "holds" if entry.holds else f"{failed[0].name}: measured {html.escape(failed[0].shown)}"
            summary = f"{html.mark(entry.holds)} <b>{entry.name}</b> ({entry.theory.kind}): {said}"
            rows = [(html.mark(a.holds), a.name, a.statement, a.shown, a.needed) for a in entry.assumptions]
            heads = ("", "assumption", "statement", "measured", "needed")
            parts.append(html.folded(summary, html.table(rows, heads), is_open=entry is self.entries[0]))
        return "".join(parts)

    def __repr__(self) -> str:
        lines = []
        for entry in self.entries:
            lines.append(f"{'✓' if entry.holds else '✗'} {entry.name} ({entry.theory.kind})")
            lines += [f"    {'✓' if a.holds else '✗'} {a}" for a in entry.assumptions]
        return "\n".join(lines)


def members() -> dict[str, type[Theory]]:
    """Every theory by name."""
    public = {name: getattr(theories, name) for name in theories.__all__}
    return {
        name: member
        for name, member in public.items()
        if isinstance(member, type) and issubclass(member, Theory) and not member.__abstractmethods__
    }


def covering(setup: Setup, *, seed: int = 0) -> Covering:
    """Every theory with each assumption, the number measured and the number needed; best first.

    They are measured on the initial weights that `seed` draws. Of a sequence the first task is measured; `solve`
    measures each later one on the final weights of the one before.
    """
    check_concrete(setup, "covering")
    seed = checks.seed(seed)
    if has_stages(setup):
        setup = stages(setup)[0].setup
    return Covering([certified(measured(member(), setup, seed), setup, seed) for member in members().values()])


def theory_named(theory: object) -> Theory:
    """A theory, given by name, class or instance."""
    if isinstance(theory, Theory):
        return theory
    if isinstance(theory, type) and issubclass(theory, Theory) and not theory.__abstractmethods__:
        return theory()
    if isinstance(theory, str):
        known = members()
        if theory not in known:
            raise UnknownName.among("theory", theory, known)
        return known[theory]()
    raise BadInput(f"theory = {shown(theory)}", "a name, a Theory class or an instance", "see festina.theories")


def coverage(setup: Setup, theory: object, *, seed: int = 0) -> Coverage:
    """One theory, by name, class or instance, against a setup."""
    return certified(measured(theory_named(theory), setup, seed), setup, seed)


def measured(theory: Theory, setup: Setup, seed: int) -> Coverage:
    """A theory with its assumptions measured on a setup, all but the error of its answer."""
    return Coverage(theory, theory.assumptions(setup, seed))


def certified(entry: Coverage, setup: Setup, seed: int, carried: Carried = FROM_NOTHING) -> Coverage:
    """The same with the error of the answer as its last assumption, if all others hold."""
    if not entry.holds:
        return entry
    stated = stated_error(entry.theory, setup, seed, entry.assumptions, carried.error)
    return dataclasses.replace(entry, assumptions=(*entry.assumptions, stated.assumption), stated=stated)


def chosen(setup: Setup, theory: object, seed: int, strict: bool, carried: Carried) -> Coverage:
    """The theory that answers: the one asked for or, if that is None, the first of `covering`."""
    if theory is None:
        best = _best(setup, seed, carried)
        if best is None:
            ranked = covering(setup, seed=seed)
            raise NoTheory(
                "no theory covers this setup; the nearest first:\n" + repr(ranked),
                "every assumption of one theory",
                f"change the setup so that {ranked[0].failed[0].statement}, or train it with simulate",
            )
        return best
    entry = measured(theory_named(theory), setup, seed)
    if entry.theory.kind != "limit":
        entry = certified(entry, setup, seed, carried)
    if strict and not entry.usable:
        failed = "\n".join(f"    {a.statement} — {a}" for a in entry.failed)
        raise NoTheory(
            f"{entry.name} does not cover this setup:\n{failed}",
            f"every assumption of {entry.name}",
            "see festina.covering(setup) for what does, train it with festina.simulate(setup) under "
            "rules.GradientFlow(), or pass strict=False to see how wrong it is",
        )
    return entry


def _best(setup: Setup, seed: int, carried: Carried) -> Coverage | None:
    """The first of `covering`; assumptions and errors are measured only as far as they decide."""
    for kind in KINDS:
        of_kind = [member() for member in members().values() if member.kind == kind]
        candidates = []
        for entry in Covering([measured(theory, setup, seed) for theory in of_kind]):
            if entry.holds:
                candidate = certified(entry, setup, seed, carried)
                if candidate.holds and candidate.magnitude == 0:
                    return candidate
                candidates.append(candidate)
        if any(candidate.holds for candidate in candidates):
            return Covering(candidates)[0]
    return None
