"""solve(): what theory predicts for a setup; `covering` has the rule by which it chooses a theory."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable

import numpy as np

from .._foundation import checks
from .._foundation.errors import UnknownName
from .._foundation.version import __version__
from .._setup.setup import Setup, check_concrete
from .._setup.stages import has_stages
from .._setup.trajectory import Trajectory
from ..observables import OBSERVABLES
from ..observables.axes import axis_names
from ..observables.compared_points import pair_metadata
from ..observables.request import points_to_compare
from ..theories._constants import constants_of
from ..theories._stated_error import FROM_NOTHING, Carried
from ..theories.base import Theory
from .accuracy import Accuracy
from .covering import certified, chosen
from .evaluation import derived, is_derivable, predicted, weights_at
from .solve_sequence import solved


def solve(
    setup: Setup,
    theory: str | type[Theory] | Theory | None = None,
    *,
    observe: str | Iterable[str] | None = None,
    pairs: object = None,
    seed: int = 0,
    strict: bool = True,
) -> Trajectory:
    """What theory predicts for `setup`, on its time grid; axes (time, …).

    Args:
        theory: a name, class or instance; None takes the strongest that holds, the first of `festina.covering`.
        observe: observables to compute now; the others are computed when first asked for.
        pairs: which samples to compare, [(0, 1), …], for observables of pairs; None takes all pairs of up to 100.
        seed: the draw of a random start.
        strict: refuse a theory whose assumptions fail; if false, go on and say so in `provenance`.
    """
    check_concrete(setup, "solve")
    seed, strict = checks.seed(seed), checks.truth(strict, "strict")
    names = checks.observables(observe) or ()
    solve_one = functools.partial(_solved, theory=theory, seed=seed, strict=strict)
    if has_stages(setup):
        points_to_compare(setup, (), pairs)  # no observable of pairs outlasts a change of task or net
        return solved(setup, names, seed, solve_one)
    return solve_one(setup, names, pairs=pairs)[0]


def _solved(
    setup: Setup,
    asked: tuple[str, ...],
    carried: Carried = FROM_NOTHING,
    *,
    theory: object,
    seed: int,
    strict: bool,
    pairs: object = None,
) -> tuple[Trajectory, Callable[[], Carried]]:
    """One task, and a function that gives the error of its last weights; `carried` is what earlier tasks have left."""
    coverage = chosen(setup, theory, seed, strict, carried)
    member, times = coverage.theory, np.asarray(setup.times)
    names = tuple(name for name in member.readouts if name not in OBSERVABLES or not OBSERVABLES[name].lacks(setup))
    if pairs is not None:  # a theory of pairs has its own in mind; those asked for are read off its layers
        names = tuple(name for name in names if name not in OBSERVABLES or not OBSERVABLES[name].of_pairs)
    more = tuple(name for name in asked if name not in names and is_derivable(name, member, setup))
    for name in asked:
        if name not in (*names, *more):
            raise UnknownName.among(f"observable of {coverage.name}", name, names)
    points = points_to_compare(setup, [name for name in (*names, *more) if name in OBSERVABLES], pairs)
    facts, coordinates = pair_metadata(points)
    constants = functools.partial(constants_of, member, setup, seed)
    values = {name: (lambda name=name: predicted(member, (name,), constants(), times)[name]) for name in names}
    now = tuple(name for name in asked if name in names)
    values |= predicted(member, now, constants(), times) if now else {}
    values |= {name: derived(member, setup, seed, name, constants(), times, points) for name in more}

    @functools.cache
    def accuracy() -> Accuracy:
        # An advisory error is measured when somebody asks for it.
        known = coverage if coverage.stated else certified(coverage, setup, seed, carried)
        return Accuracy(known, setup, seed, carried)

    trajectory = Trajectory(
        times,
        values,
        {name: ("time", *member.readouts[name].axes) for name in names}
        | {name: ("time", *OBSERVABLES[name].axes) for name in more},
        coverage.name,
        {
            "festina": __version__,
            "exact": member.exact,
            "kind": member.kind,
            "reference": dict(member.reference),
            "assumptions": lambda: [dataclasses.asdict(a) for a in accuracy().coverage.assumptions],
            "error": lambda: accuracy().error,
            "note": lambda: accuracy().note,
            **facts,
        },
        axis_names(setup.lifted()) | coordinates,
        setup=setup,
        weights=lambda: weights_at(member, constants(), times[-1:]),
    )
    return trajectory, lambda: accuracy().end
