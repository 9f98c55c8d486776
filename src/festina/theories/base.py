"""What a theory is: a small state, its law of motion and a readout.

To add a theory, add one file to this folder with one final class. It derives from `Theory[Constants, State]`, with the
types of its constants and of its state, and gives, in this order:

- `reference`: where it is published, {key in references.bib: equations};
- `example()`: a setup on which it holds;
- `assumptions(setup, seed)`: its conditions, each *measured* on the setup;
- `constants(setup, seed)`: the numbers that its law and its readouts need, as a pytree;
- `start(constants)`: the state at time 0;
- `field(constants, state)`: the law of motion, dstate/dt;
- `states(constants, times)`: the solution, time first. A `Reduction` leaves it out and is integrated numerically. A
  `Limit` gives what training tends to as a number of the setup, not of the rule, goes to 0;
- `readouts`: the observables, each computed from constants and states;
- `weights(constants, states)`: layers of a network in these states, if the theory knows them; in a sequence of tasks
  the next task starts from them;
- `followed_weights(constants, states)`: weights of the whole network in these states, if its error is to be measured
  along others than `weights`. `theories._certificate` says how; a theory that has neither is compared with integrated
  gradient flow;
- `rotation_rate(constants, state)`: the rate at which the hidden units of these weights rotate against the flow's;
- `fastest_growth(constants, states)`: a bound on the rate at which errors of the weights grow;
- `tolerated`: the largest relative error with which an answer is given;
- `times_together(constants)`, `costly(constants)`: how many times are best evaluated at once, and whether one time is
  so expensive that a long grid is interpolated;
- `approach`: the parameter (knob) in whose limit training agrees with the theory, and the order of the error in it;
- `remarks(setup, seed)`: what a user must know although every assumption holds;
- `fitting`, if it has numbers that can be fitted to a recorded network: a `Fitting`, which `theories._fitting.base`
  describes. `festina.fit` then takes the theory.

Every law in tests/test_theories.py then applies to it. Run tools/listings.py; CONTRIBUTING.md ("Where to add what")
lists the docs and tests that know new members.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, cast, no_type_check

from jaxtyping import Float, Int

from .._foundation import checks
from .._foundation.arrays import AnyArray, Number, Weights
from .._foundation.program_memory import compiled
from .._setup.setup import Setup
from ..rules.base import Discrete
from ..rules.gradient_descent import GradientDescent
from ._fitting.base import Fitting

__all__ = ["Assumption", "Limit", "Reduction", "Theory"]

KINDS = ("exact", "reduction", "limit")  # from the strongest to the weakest
CHECKS = "checks_arguments"  # attribute of a method that checks its arguments

Constants = TypeVar("Constants")  # of a theory: what `constants` returns
State = TypeVar("State")  # of a theory: an array, or a pytree of arrays
Method = TypeVar("Method", bound=Callable[..., Any])
Seed: TypeAlias = int | Int[AnyArray, ""]
Times: TypeAlias = Float[AnyArray, " time"]


@no_type_check  # the checks below refuse in words
@dataclasses.dataclass(frozen=True)
class Assumption:
    """One condition of a theory, measured on a setup.

    If an `advisory` assumption fails, `solve` does not choose the theory, but still accepts it by name: such an
    assumption says how near a limit is. The number of a `defect` is a relative error that is 0 where the theory is
    exact; what it has grown to by the last time is the error of the answer.
    """

    name: str
    statement: str
    measured: Number | str
    needed: str
    holds: bool
    advisory: bool = False
    defect: bool = False

    def __post_init__(self) -> None:
        for argument in ("name", "statement", "needed"):
            checks.text(getattr(self, argument), argument)
        if not isinstance(self.measured, str):
            checks.number(self.measured, "measured", finite=False)
        for argument in ("holds", "advisory", "defect"):
            checks.truth(getattr(self, argument), argument)

    @classmethod
    def at_most(
        cls,
        name: str,
        statement: str,
        measured: Number,
        bound: Number,
        *,
        advisory: bool = False,
        defect: bool = False,
    ) -> Assumption:
        """Holds if the measured number does not exceed the bound; NaN does not hold."""
        measured, bound = checks.number(measured, "measured", finite=False), checks.number(bound, "bound")
        return cls(name, statement, measured, f"<= {bound:g}", cast(bool, measured <= bound), advisory, defect)

    @classmethod
    def that(cls, name: str, statement: str, holds: bool, measured: str, needed: str) -> Assumption:
        """An assumption that holds or fails by a property of the setup, not by a bound on a number."""
        return cls(name, statement, measured, needed, checks.truth(holds, "holds"))

    @property
    def shown(self) -> str:
        """The measured value, as it is printed."""
        return self.measured if isinstance(self.measured, str) else f"{self.measured:.3g}"

    def __str__(self) -> str:
        return f"{self.name}: measured {self.shown}, needed {self.needed}"


@dataclasses.dataclass(frozen=True)
class Readout:
    """An observable of a theory: the names of its axes after time, and a function of constants and states."""

    axes: tuple[str, ...]
    read: Callable[[Any, Any], AnyArray]


@dataclasses.dataclass(frozen=True)
class Approach:
    """Training tends to the theory as `knob` falls through `values`, with an error ~ knob^order."""

    knob: str
    values: tuple[float, ...]
    order: float | int


def _on_setup(method: Method) -> Method:
    """A method of a theory with its setup and its seed checked before it is called."""

    @functools.wraps(method)
    def checked(self: Theory, setup: object, seed: object) -> object:
        checks.instance(setup, "setup", Setup, "build one with festina.Setup(task, net, init)")
        return method(self, setup, checks.seed(seed))

    setattr(checked, CHECKS, True)
    return checked  # pyright: ignore[reportReturnType]


def _at_knob(method: Method) -> Method:
    """A theory's `example_at` with the value of the knob checked before it is called."""

    @functools.wraps(method)
    def checked(self: Theory, value: object) -> Setup:
        return method(self, checks.positive(value, "value"))

    setattr(checked, CHECKS, True)
    return checked  # pyright: ignore[reportReturnType]


class Theory(abc.ABC, Generic[Constants, State]):
    """A theory whose solution is known in closed form; the module's docstring says what a member gives."""

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        doors = {"assumptions": _on_setup, "constants": _on_setup, "remarks": _on_setup, "example_at": _at_knob}
        for name, door in doors.items():
            method = getattr(cls, name)  # of the member, or of a class that shares it without being a theory
            is_abstract = getattr(method, "__isabstractmethod__", False)
            if not is_abstract and not hasattr(method, CHECKS):
                setattr(cls, name, door(method))

    reference: ClassVar[Mapping[str, str]]
    readouts: ClassVar[Mapping[str, Readout]]
    approach: ClassVar[Approach]
    kind: ClassVar[str] = "exact"
    fitting: ClassVar[Fitting | None] = None
    tolerated: ClassVar[float] = 1e-3  # the largest relative error with which an answer is given

    @property
    def exact(self) -> bool:
        """Whether it is a closed form of the flow itself."""
        return self.kind == "exact"

    @property
    def knows_layers(self) -> bool:
        """Whether the theory has `weights`."""
        return type(self).weights is not Theory.weights

    @property
    def can_be_followed(self) -> bool:
        """Whether the theory knows weights of the whole network, along which an error can be followed."""
        return self.knows_layers or type(self).followed_weights is not Theory.followed_weights

    @property
    def bounds_growth(self) -> bool:
        """Whether the theory has `fastest_growth`."""
        return type(self).fastest_growth is not Theory.fastest_growth

    @classmethod
    @abc.abstractmethod
    def example(cls) -> Setup:
        """A setup that the theory covers."""

    @abc.abstractmethod
    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        """Every condition, measured; conditions that cannot be measured after a failed one are left out."""

    @abc.abstractmethod
    def constants(self, setup: Setup, seed: Seed) -> Constants:
        """What `field`, `states` and the readouts need of the setup."""

    @abc.abstractmethod
    def start(self, constants: Constants) -> State:
        """The state at time 0."""

    @abc.abstractmethod
    def field(self, constants: Constants, state: State) -> State:
        """dstate/dt."""

    @abc.abstractmethod
    def states(self, constants: Constants, times: Times) -> State:
        """The states at `times`, time first."""

    def times_together(self, constants: Constants) -> int:
        """How many times are best evaluated at once; fewer where one state already fills the cache."""
        return 64

    def costly(self, constants: Constants) -> bool:
        """Whether one time costs so much that a long grid is interpolated; see `festina._formulas.interpolation`."""
        return False

    def weights(self, constants: Constants, states: State) -> Sequence[Float[AnyArray, "time _ _"]] | None:
        """Layers of a network in these states, up to a rotation of its hidden units; None if unknown."""
        return None

    def followed_weights(self, constants: Constants, states: State) -> Weights | None:
        """Weights of the whole network in these states, on which its error is measured; None if unknown."""
        return self.weights(constants, states)

    def fastest_growth(self, constants: Constants, states: State) -> Float[AnyArray, " time"] | None:
        """A bound on the rate at which any error of the weights can grow, at every time; None if none is known."""
        return None

    def rotation_rate(self, constants: Constants, state: State) -> Float[AnyArray, "hidden hidden"] | None:
        """The rate at which hidden units of `followed_weights` rotate against the flow's; None if they never do."""
        return None

    @_on_setup
    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        """What a user must know although every assumption holds."""
        return ()

    @_at_knob
    def example_at(self, value: float) -> Setup:
        """The example with the knob of `approach` at `value`; here the learning rate."""
        setup = self.example()
        slowest = max(self.approach.values)
        times = slowest * (setup.times / slowest).round()
        return setup.replace(rule=GradientDescent(value), times=times[1:])


class Reduction(Theory[Constants, State]):
    """A theory of which only the law of motion is known: it is integrated to the stated tolerance."""

    kind: ClassVar[str] = "reduction"
    rtol: ClassVar[float] = 1e-10

    def states(self, constants: Constants, times: Times) -> State:
        return _integrated(self, constants, times)


class Limit(Theory[Constants, State]):
    """A closed form that training tends to as a knob of the setup goes to 0, at the rate of `approach`.

    A member says with `example_at` what its knob is.
    """

    kind: ClassVar[str] = "limit"
    tolerated: ClassVar[float] = 0.1

    @abc.abstractmethod
    def example_at(self, value: float) -> Setup:
        """The example with the knob of `approach` at `value`."""


@compiled
def _integrated(reduction: Reduction[Constants, State], constants: Constants, times: Times) -> State:
    from .._formulas.integration import along, finest

    start = reduction.start(constants)
    atol = finest(start)
    return along(lambda state: reduction.field(constants, state), start, times, rtol=reduction.rtol, atol=atol)


def smooth_training(setup: object, fastest_rate: object) -> tuple[Assumption, ...]:
    """The assumption that the rule of a setup follows the flow: all samples, along the gradient, in small steps.

    The times of a theory are those of gradient flow, so a rule with another clock than lr × steps is refused.

    `fastest_rate` is a function that returns the largest rate of the theory; steps as long as 2/rate diverge, and the
    error against the flow is of the order of lr × rate.
    """
    setup = checks.instance(setup, "setup", Setup, "build one with festina.Setup(task, net, init)")
    rate = checks.function(fastest_rate, "fastest_rate", "a function that gives a number", "give lambda: rate")
    rule = setup.rule
    if isinstance(rule, Discrete) and not (rule.full_batch and rule.follows_gradient):
        return (
            Assumption.that(
                "gradient", "steps follow the full gradient", False, repr(rule), "GradientFlow or GradientDescent"
            ),
        )
    step = float(rule.lr) if isinstance(rule, Discrete) else 0.0
    if isinstance(rule, Discrete) and not rule.lasts_lr:
        statement = "a step of rate lr lasts lr units of time, as in gradient flow"
        measured = f"{float(rule.time_of_steps(1)):g} for lr = {step:g}"
        return (Assumption.that("clock", statement, False, measured, f"{step:g}"),)
    return (Assumption.at_most("small steps", "lr × fastest rate is small", step and step * rate(), 0.2),)
