"""From what a user asks for to what is recorded: names of observables, the samples to compare, and the view."""

from __future__ import annotations

from collections.abc import Iterable

from .._foundation.checks import known_names
from .._foundation.errors import BadInput
from .._setup.loss import evidence_of
from .._setup.setup import Setup
from . import OBSERVABLES
from .base import Occasion, Part, View
from .compared_points import Points, checked_points


def names_to_record(observe: object, setup: Setup) -> tuple[str, ...]:
    """The observables asked for, plus their companions (`recorded_with`) that the setup has; others are refused."""
    if observe is None:
        return ("loss", "modes") if setup.net.linear else ("loss",)
    names = known_names(observe, OBSERVABLES, "observable")
    for name in names:
        if reason := OBSERVABLES[name].lacks(setup):
            has = [other for other, known in OBSERVABLES.items() if not known.lacks(setup)]
            raise BadInput(f"observe {name!r}: {reason}", f"one of: {', '.join(has)}", "drop it, or change net or task")
    others = [other for name in names for other in OBSERVABLES[name].recorded_with]
    return tuple(dict.fromkeys((*names, *(other for other in others if not OBSERVABLES[other].lacks(setup)))))


def points_to_compare(setup: Setup, names: Iterable[str], pairs: object) -> Points | None:
    """The samples that the named observables compare, if any of these are of pairs."""
    if not any(OBSERVABLES[name].of_pairs for name in names):
        if pairs is not None:
            of_pairs = [name for name, known in OBSERVABLES.items() if known.of_pairs]
            raise BadInput("pairs, and no observable of pairs", f"one of: {', '.join(of_pairs)}", "name it in observe=")
        return None
    return checked_points(setup.single_task.x, setup.single_task.y, pairs)


def view_in_training(occasion: Occasion, names: Iterable[str]) -> View:
    """The view of the named observables while all seeds are trained; parts that differ by seed have a seed axis."""
    per_seed = {part.name: part.make(occasion) for part in _needed(names) if part.differs_by_seed}
    return _shared_view(occasion, names).with_seed(per_seed)


def view_of_seed(occasion: Occasion, names: Iterable[str], seed: int) -> View:
    """The view for one seed of a setup that is solved, not trained."""
    per_seed = {part.name: part.of_seed(occasion.setup, seed) for part in _needed(names) if part.of_seed is not None}
    return _shared_view(occasion, names).with_seed(per_seed)


def _shared_view(occasion: Occasion, names: Iterable[str]) -> View:
    setup = occasion.lifted
    evidence = evidence_of(setup.net, setup.single_task, full_batch=setup.rule.full_batch)
    shared = {part.name: part.make(occasion) for part in _needed(names) if not part.differs_by_seed}
    return View(setup.net, evidence, shared, {})


def _needed(names: Iterable[str]) -> list[Part]:
    return list(dict.fromkeys(part for name in names for part in OBSERVABLES[name].needs))
