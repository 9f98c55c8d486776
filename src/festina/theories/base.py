"""What a theory is: a small state, its law of motion and a readout.

To add a theory, add one file to this folder with one final class that gives, in this order:

- `reference`: where it is published, {key in references.bib: equations};
- `example()`: a setup on which it holds;
- `assumptions(setup, seed)`: its conditions, each *measured* on the setup;
- `constants(setup, seed)`: the numbers that its law and readout need, as a pytree;
- `start(constants)`: the state at time 0;
- `field(constants, state)`: dstate/dt;
- `states(constants, times)`: the integral, if it is known (`Theory`). A `Reduction` leaves it out,
  and is integrated. A `Limit` is what training tends to as a knob of the setup, not of the rule, goes to 0;
- `readouts`: the observables, each from constants and states;
- `weights(constants, states)`: layers of a network in these states, if the theory knows them; they are
  handed on where tasks follow each other;
- `path(constants, states)`, if these layers are not what the theory answers: a path of all weights along which its
  error is measured. `theories._certificate` says how; a theory without a path is compared with the flow itself;
- `approach`: the knob that makes training agree with it, and the rate;
- `remarks(setup, seed)`: what a user must know although every assumption holds.

Every law in tests/test_theories.py then applies to it. A new theory needs no other edit than
`python tools/listings.py`.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax

from .. import _checks
from .._setup import Discrete, Setup
from ..rules import GradientDescent

__all__ = ["Assumption", "Limit", "Reduction", "Theory"]


@dataclasses.dataclass(frozen=True)
class Assumption:
    """One condition of a theory, measured on a setup.

    One that is `advisory` keeps a theory from being chosen, but not from being asked for by name: it says how
    near a limit is. The number of a `defect` is 0 where the theory is exact, and relative: what it becomes by the last
    time is the error of the answer.
    """

    name: str
    statement: str
    measured: float | str
    needed: str
    holds: bool
    advisory: bool = False
    defect: bool = False

    def __post_init__(self):
        for argument in ("name", "statement", "needed"):
            _checks.text(getattr(self, argument), argument)
        if not isinstance(self.measured, str):
            _checks.number(self.measured, "measured", finite=False)
        for argument in ("holds", "advisory", "defect"):
            _checks.truth(getattr(self, argument), argument)

    @classmethod
    def at_most(
        cls,
        name: str,
        statement: str,
        measured: float,
        bound: float,
        *,
        advisory: bool = False,
        defect: bool = False,
    ) -> Assumption:
        """Holds if the measured number does not exceed the bound; NaN does not hold."""
        measured, bound = _checks.number(measured, "measured", finite=False), _checks.number(bound, "bound")
        return cls(name, statement, measured, f"<= {bound:g}", measured <= bound, advisory, defect)

    @classmethod
    def that(cls, name: str, statement: str, holds: bool, measured: str, needed: str) -> Assumption:
        """Holds by kind, not by number."""
        return cls(name, statement, measured, needed, _checks.truth(holds, "holds"))

    def __str__(self) -> str:
        measured = self.measured if isinstance(self.measured, str) else f"{self.measured:.3g}"
        return f"{self.name}: measured {measured}, needed {self.needed}"


@dataclasses.dataclass(frozen=True)
class Readout:
    """An observable of a theory: axes after time, and a function of constants and states."""

    axes: tuple[str, ...]
    read: Callable[[Any, Any], Any]


@dataclasses.dataclass(frozen=True)
class Approach:
    """Training tends to the theory as `knob` falls through `values`, with an error ~ knob^order."""

    knob: str
    values: tuple[float, ...]
    order: float


def _on_setup(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a theory on a setup and a seed, with both checked."""

    @functools.wraps(method)
    def checked(self: Theory, setup: Setup, seed: Any) -> Any:
        _checks.instance(setup, "setup", Setup, "build one with festina.Setup(task, net, init)")
        return method(self, setup, _checks.seed(seed))

    return checked


def _at_knob(method: Callable[..., Any]) -> Callable[..., Any]:
    """A theory's `turned`, with the value of the knob checked."""

    @functools.wraps(method)
    def checked(self: Theory, value: float) -> Setup:
        return method(self, _checks.positive(value, "value"))

    return checked


class Theory(abc.ABC):
    """A theory whose integral is known; see the module's docstring for what a member gives."""

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        doors = {"assumptions": _on_setup, "constants": _on_setup, "remarks": _on_setup, "turned": _at_knob}
        for name, door in doors.items():
            method = getattr(cls, name)  # its own, or that of a class that shares it without being a theory
            if not hasattr(method, "__wrapped__") and not getattr(method, "__isabstractmethod__", False):
                setattr(cls, name, door(method))

    reference: ClassVar[Mapping[str, str]]
    readouts: ClassVar[Mapping[str, Readout]]
    approach: ClassVar[Approach]
    kind: ClassVar[str] = "exact"
    tolerated: ClassVar[float] = 1e-3  # relative error of an answer that is given

    @property
    def exact(self) -> bool:
        """Whether it is a closed form of the flow itself."""
        return self.kind == "exact"

    @classmethod
    @abc.abstractmethod
    def example(cls) -> Setup:
        """A setup that the theory covers."""

    @abc.abstractmethod
    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        """Every condition, measured; conditions that cannot be measured after a failed one are left out."""

    @abc.abstractmethod
    def constants(self, setup: Setup, seed: Any) -> Any:
        """What `field`, `states` and the readouts need of the setup."""

    @abc.abstractmethod
    def start(self, constants: Any) -> Any:
        """The state at time 0."""

    @abc.abstractmethod
    def field(self, constants: Any, state: Any) -> Any:
        """dstate/dt."""

    @abc.abstractmethod
    def states(self, constants: Any, times: Any) -> Any:
        """The states at `times`, time first."""

    def times_together(self, constants: Any) -> int:
        """How many times are best evaluated at once; fewer where one state already fills the cache."""
        return 64

    def costly(self, constants: Any) -> bool:
        """Whether a time costs so much that a long grid is read off fewer times; `festina._dense` says how exactly."""
        return False

    def weights(self, constants: Any, states: Any) -> Any:
        """Layers of a network in these states, up to a rotation of its hidden units; None if unknown."""
        return None

    def path(self, constants: Any, states: Any) -> Any:
        """Weights of the whole network in these states, on which its error is measured; None if unknown."""
        return self.weights(constants, states)

    def fastest_growth(self, constants: Any, states: Any) -> Any:
        """A bound on the rate at which any error of the weights can grow, time first; None if none is known."""
        return None

    def turning(self, constants: Any, state: Any) -> Any:
        """The rate, (hidden, hidden), at which the hidden units of `path` turn against the flow's; None: never."""
        return None

    @_on_setup
    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        """What a user must know although every assumption holds."""
        return ()

    @_at_knob
    def turned(self, value: float) -> Setup:
        """The example with the knob of `approach` at `value`; here the learning rate."""
        setup = self.example()
        slowest = max(self.approach.values)
        times = slowest * (setup.times / slowest).round()
        return setup.replace(rule=GradientDescent(value), times=times[1:])


class Reduction(Theory):
    """A theory whose integral is not known: the same object, integrated to the stated tolerances."""

    kind: ClassVar[str] = "reduction"
    rtol: ClassVar[float] = 1e-10

    def states(self, constants: Any, times: Any) -> Any:
        return _integrated(self, constants, times)


class Limit(Theory):
    """A closed form that training tends to as a knob of the setup goes to 0, at the rate of `approach`.

    A member says with `turned` what its knob is.
    """

    kind: ClassVar[str] = "limit"
    tolerated: ClassVar[float] = 0.1

    @abc.abstractmethod
    def turned(self, value: float) -> Setup:
        """The example with the knob of `approach` at `value`."""


@jax.jit
def _integrated(reduction: Reduction, constants: Any, times: Any) -> Any:
    from .._integrate import along, finest

    start = reduction.start(constants)
    atol = finest(start)
    return along(lambda state: reduction.field(constants, state), start, times, rtol=reduction.rtol, atol=atol)


def smooth_training(setup: Setup, fastest_rate: Callable[[], float]) -> tuple[Assumption, ...]:
    """That the rule follows the flow: all samples, along the gradient, in small steps.

    `fastest_rate()` is the largest rate of the theory; steps as long as 2/rate diverge, and the error
    against the flow is of the order of lr × rate.
    """
    _checks.instance(setup, "setup", Setup, "build one with festina.Setup(task, net, init)")
    _checks.function(fastest_rate, "fastest_rate", "a function that gives a number", "give lambda: rate")
    rule = setup.rule
    if isinstance(rule, Discrete) and not (rule.full_batch and rule.follows_gradient):
        return (
            Assumption.that(
                "gradient", "steps follow the full gradient", False, repr(rule), "GradientFlow or GradientDescent"
            ),
        )
    step = float(rule.lr) if isinstance(rule, Discrete) else 0.0
    return (Assumption.at_most("small steps", "lr × fastest rate is small", step and step * fastest_rate(), 0.2),)
