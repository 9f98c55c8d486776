"""solve() and covering(): which theory holds here, and what it predicts.

The rule of choice: theories whose measured assumptions all hold, their error among them, come first; among them exact
ones before reductions before limits; then the one with the smaller error, by orders of magnitude; then the one with
more assumptions, since it says more, before the one with fewer; then by name. `covering` lists all in this order,
those that do not hold sorted by how many assumptions fail; theories whose first assumption fails, the kind of
network, come last.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as SequenceOfEntries
from typing import Any

import jax
import numpy as np

from . import _checks, _dense, _sequence, theories
from ._errors import BadInput, NoTheory, UnknownName, shown
from ._observables import OBSERVABLES, compared, view_of
from ._points import Points, said_of
from ._precision import in_double
from ._run import Lanes
from ._setup import Discrete, Setup, TaskSequence, concrete
from ._simulate import axis_names
from ._spec import to_spec
from ._trajectory import Trajectory
from ._version import __version__
from .theories._certificate import certificate, steps
from .theories._constants import constants_of
from .theories._stated_error import CLEAR, FROM_NOTHING, Carried, StatedError, has_path, stated_error, steps_error
from .theories.base import Assumption, Theory

CHUNK = 64  # times of a closed form that are evaluated together: their states stay in cache
LONG = 256  # times that are worth a device of their own


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
        """Whether the theory may be asked for by name: no more than advice is against it."""
        return all(assumption.holds or assumption.advisory for assumption in self.assumptions)

    def rank(self) -> tuple[Any, ...]:
        # Of another kind of network the other assumptions are not measured, so their number says nothing.
        other_kind = bool(self.assumptions) and not self.assumptions[0].holds
        kind = _sequence.KINDS.index(self.theory.kind)
        return other_kind, len(self.failed), kind, self.magnitude, -len(self.assumptions), self.name

    @property
    def magnitude(self) -> float:
        """The order of magnitude of the error; all that no flow resolves are one."""
        if self.stated is None or not self.holds:
            return 0.0
        return max(0.0, np.ceil(np.log10(self.stated.value / CLEAR)))


class Covering(SequenceOfEntries):
    """Every theory with each assumption, measured on one setup; best first."""

    def __init__(self, entries: Iterable[Coverage]):
        do = "use festina.covering(setup)"
        listed = _checks.listed(entries, "entries", "what covering has measured of each theory", do, empty=True)
        for entry in listed:
            _checks.instance(entry, "entries", Coverage, do)
        self.entries = tuple(sorted(listed, key=Coverage.rank))

    def __getitem__(self, index):
        if isinstance(index, str):
            named = {entry.name: entry for entry in self.entries}
            if index not in named:
                raise UnknownName.among("theory", index, named)
            return named[index]
        return _checks.entry(self.entries, index, "index")

    def __iter__(self) -> Iterator[Coverage]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        lines = []
        for entry in self.entries:
            lines.append(f"{'✓' if entry.holds else '✗'} {entry.name} ({entry.theory.kind})")
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

    `seed` picks the draw of a random start on which they are measured. Of a sequence of tasks it is the first one
    that is measured; `solve` measures the others where the one before has ended.
    """
    concrete(setup, "covering")
    seed = _checks.seed(seed)
    if isinstance(setup.task, TaskSequence) or setup.net.switches:
        setup = _sequence.stages(setup)[0].setup
    return Covering([_certified(_measured(member(), setup, seed), setup, seed) for member in members().values()])


def solve(
    setup: Setup,
    theory: str | type[Theory] | Theory | None = None,
    *,
    observe: str | Iterable[str] | None = None,
    pairs: Any = None,
    seed: int = 0,
    strict: bool = True,
) -> Trajectory:
    """What theory predicts for `setup`, on its time grid; axes (time, …).

    Args:
        theory: a name, class or instance; None takes the strongest that holds (see the module).
        observe: observables to compute now; the others are computed when first asked for.
        pairs: which samples to compare, [(0, 1), …], for observables of pairs; None takes all pairs of up to 100.
        seed: the draw of a random start.
        strict: refuse a theory whose assumptions fail; if false, go on and say so in `provenance`.
    """
    concrete(setup, "solve")
    seed, strict = _checks.seed(seed), _checks.truth(strict, "strict")
    asked = _checks.observables(observe) or ()
    if isinstance(setup.task, TaskSequence) or setup.net.switches:
        compared(setup, (), pairs)  # no observable of pairs outlasts a change of task or net
        return _sequence.solved(
            setup, asked, seed, lambda stage, names, *left: _solved(stage, theory, names, None, seed, strict, *left)
        )
    return _solved(setup, theory, asked, pairs, seed, strict)


def _solved(
    setup: Setup,
    theory: Any,
    asked: tuple[str, ...],
    pairs: Any,
    seed: int,
    strict: bool,
    carried: Carried = FROM_NOTHING,
) -> Trajectory:
    """One task; `carried` is what the tasks before it have left."""
    entry = _chosen(setup, theory, seed, strict, carried)
    member = entry.theory
    times = np.asarray(setup.times)
    names = tuple(n for n in member.readouts if n not in OBSERVABLES or not OBSERVABLES[n].lacks(setup))
    if pairs is not None:  # a theory of pairs has its own in mind; those asked for are read off its layers
        names = tuple(n for n in names if n not in OBSERVABLES or "points" not in OBSERVABLES[n].needs)
    extra = tuple(name for name in asked if name not in names and _derivable(name, member, setup))
    for name in asked:
        if name not in (*names, *extra):
            raise UnknownName.among(f"observable of {entry.name}", name, names)
    constants = functools.partial(constants_of, member, setup, seed)
    values = {name: (lambda name=name: _predicted(member, (name,), constants(), times)[name]) for name in names}
    own = tuple(name for name in asked if name in names)
    values |= _predicted(member, own, constants(), times) if own else {}
    # What is only advice is measured when somebody asks for it.
    known = functools.cache(lambda: entry if entry.stated else _certified(entry, setup, seed, carried))
    trajectory_axes = {name: ("time", *member.readouts[name].axes) for name in names}
    trajectory_axes |= {name: ("time", *OBSERVABLES[name].axes) for name in extra}
    chosen = compared(setup, [name for name in (*names, *extra) if name in OBSERVABLES], pairs)
    more_facts, more_names = said_of(chosen)
    values |= {name: _derived(member, setup, seed, name, constants(), times, chosen) for name in extra}
    trajectory = Trajectory(
        times,
        values,
        trajectory_axes,
        entry.name,
        {
            "setup": functools.partial(to_spec, setup),
            "festina": __version__,
            "exact": member.exact,
            "kind": member.kind,
            "reference": dict(member.reference),
            "assumptions": lambda: [dataclasses.asdict(a) for a in known().assumptions],
            "error": lambda: _error(known(), setup, seed, carried),
            "note": lambda: _note(known(), setup, seed, carried),
            **more_facts,
        },
        axis_names(setup.bound()) | more_names,
    )
    trajectory.end_weights = lambda: _end_weights(member, constants(), times[-1:])
    trajectory.end_error = lambda: _end_error(known(), setup, seed, carried)
    return trajectory


def _derivable(name: str, theory: Theory, setup: Setup) -> bool:
    """Whether an observable can be read off the map or the layers that a theory predicts."""
    known = OBSERVABLES.get(name)
    if known is None or known.lacks(setup):
        return False
    knows_layers = type(theory).weights is not Theory.weights
    return (known.of_map is not None and "map" in theory.readouts) or (known.turns and knows_layers)


def _derived(
    theory: Theory, setup: Setup, seed: int, name: str, constants: Any, times: np.ndarray, chosen: Points | None
) -> Any:
    view = dataclasses.replace(view_of(setup, (name,), chosen), modes=setup.modes(seed))
    return _read_off(theory, name, constants, view, times)


@in_double
@functools.partial(jax.jit, static_argnames=("theory", "name"))
def _read_off(theory: Theory, name: str, constants: Any, view: Any, times: Any) -> Any:
    known, states = OBSERVABLES[name], theory.states(constants, times)
    if known.of_map is not None:
        return jax.vmap(functools.partial(known.of_map, view))(theory.readouts["map"].read(constants, states))
    return jax.vmap(functools.partial(known.read, view))(theory.weights(constants, states))


def _note(entry: Coverage, setup: Setup, seed: int, carried: Carried) -> str:
    """What fails, and what a user must know although nothing does."""
    outside = "outside its assumptions: " + "; ".join(map(str, entry.failed)) if entry.failed else ""
    rounded = "" if entry.stated is None else entry.stated.note
    stepped = _note_on_steps(entry, setup, seed, carried) if entry.holds else ""
    remarks = entry.theory.remarks(setup, seed) if entry.usable else ()
    return "; ".join(filter(None, (outside, rounded, stepped, *remarks)))


def _note_on_steps(entry: Coverage, setup: Setup, seed: int, carried: Carried) -> str:
    """What steps of finite length do to an answer that the flow would bear out."""
    if not isinstance(setup.rule, Discrete) or entry.stated is None or entry.stated.value > entry.theory.tolerated:
        return ""
    error = _error(entry, setup, seed, carried)
    if error <= entry.theory.tolerated:
        return ""
    return f"steps of lr = {setup.rule.lr:g} are {error:.2g} of the answer away from gradient flow: lower lr"


def _error(entry: Coverage, setup: Setup, seed: int, carried: Carried) -> float:
    """The relative error of the answer against training by the setup's rule; NaN where the theory does not apply."""
    if not entry.usable:
        return np.nan
    stated = entry.stated or stated_error(entry.theory, setup, seed, entry.assumptions, carried.error)
    if not isinstance(setup.rule, Discrete):
        return stated.value
    return stated.value + steps_error(entry.theory, setup, seed, carried.steps)


def _chosen(setup: Setup, theory: Any, seed: int, strict: bool, carried: Carried) -> Coverage:
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
    entry = _measured(_instance(theory), setup, seed)
    if entry.theory.kind != "limit":
        entry = _certified(entry, setup, seed, carried)
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
    """The first of `covering`; errors are measured only as far as they decide."""
    ranked = Covering([_measured(member(), setup, seed) for member in members().values()])
    for kind in _sequence.KINDS:
        found = []
        for entry in ranked:
            if entry.holds and entry.theory.kind == kind:
                entry = _certified(entry, setup, seed, carried)
                if entry.holds and entry.magnitude == 0:
                    return entry
                found.append(entry)
        if any(entry.holds for entry in found):
            return Covering(found)[0]
    return None


def _instance(theory: Any) -> Theory:
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


def coverage(setup: Setup, theory: Any, *, seed: int = 0) -> Coverage:
    """One theory, by name, class or instance, against a setup."""
    return _certified(_measured(_instance(theory), setup, seed), setup, seed)


def _measured(theory: Theory, setup: Setup, seed: int) -> Coverage:
    return Coverage(theory, theory.assumptions(setup, seed))


def _certified(entry: Coverage, setup: Setup, seed: int, carried: Carried = FROM_NOTHING) -> Coverage:
    """With the error that its answer has, if nothing else speaks against the theory."""
    if not entry.holds:
        return entry
    stated = stated_error(entry.theory, setup, seed, entry.assumptions, carried.error)
    return dataclasses.replace(entry, assumptions=(*entry.assumptions, stated.assumption), stated=stated)


def _predicted(theory: Theory, names: tuple[str, ...], constants: Any, times: np.ndarray) -> dict[str, Any]:
    """The readouts at all times."""
    if theory.kind == "reduction":
        return in_double(_evaluated)(theory, names, constants, times)
    evaluate = functools.partial(_in_chunks, theory, names, constants)
    return _dense.at_times(evaluate, times) if theory.costly(constants) else evaluate(times)


def _in_chunks(theory: Theory, names: tuple[str, ...], constants: Any, times: np.ndarray) -> dict[str, Any]:
    """The readouts of a closed form at every time by itself; in chunks, so that memory holds few states."""
    count = len(times)
    # A few lengths serve all grids: compiling costs more than a last time computed twice.
    lanes = Lanes.over(count // LONG)
    share = CHUNK * (1 if lanes.mesh is None else lanes.mesh.size)
    whole = 2 ** (count - 1).bit_length() if count <= CHUNK else -(-count // share) * share
    filled = np.concatenate([times, np.repeat(times[-1:], whole - count)])
    together = min(theory.times_together(constants), whole)
    values = in_double(_evaluated)(theory, names, constants, filled.reshape(-1, together), lanes)
    return {name: value[:count] for name, value in values.items()}


@functools.partial(jax.jit, static_argnames=("theory", "names", "lanes"))
def _evaluated(
    theory: Theory, names: tuple[str, ...], constants: Any, times: Any, lanes: Lanes | None = None
) -> dict[str, Any]:
    """`times` are all of them, or (chunk, time) with lanes to lay the chunks out on."""

    def read(constants, times):
        states = theory.states(constants, times)
        return {name: theory.readouts[name].read(constants, states) for name in names}

    if lanes is None:
        return read(constants, times)
    chunks = lanes.each(read, constants, times)
    return {name: value.reshape(-1, *value.shape[2:]) for name, value in chunks.items()}


@in_double
@functools.partial(jax.jit, static_argnames="theory")
def _end_weights(theory: Theory, constants: Any, last: Any) -> Any:
    layers = theory.weights(constants, theory.states(constants, last))
    return None if layers is None else [layer[0] for layer in layers]


def _end_error(entry: Coverage, setup: Setup, seed: int, carried: Carried) -> Carried:
    """Shifts of the last weights by the error of the answer and by steps; none that is as large as they are."""
    if entry.stated is None or not entry.stated.value <= entry.theory.tolerated or not has_path(entry.theory):
        return FROM_NOTHING
    error = certificate(entry.theory, setup, seed, carried=carried.error).end
    if not isinstance(setup.rule, Discrete):
        return Carried(error)
    added = steps(entry.theory, setup, seed, carried=carried.steps).end
    return Carried(error, added if np.all(np.isfinite(added)) else None)
