"""The contract of a rule: how weights change, and what its times count.

A new rule is one file in this folder: a frozen `@noun` that derives from `Discrete` or `Flow`, and has an `example`.

- A rule that moves in steps derives from `Discrete` and has `step`; `start` if it keeps a state between steps. Its
  clock is lr × steps, unless it overrides `steps` and `time_of_steps`. A clock counts steps evenly: n steps last n
  times as long as one, whenever they begin. Theories predict gradient flow, and refuse a rule whose step of rate lr
  does not last lr; `simulate` takes every clock. A setup with such a rule needs an end of its own, `until` or `times`,
  and `clock` names the unit of time on the axes of figures.
  `lr` also tells theories how large the error of a finite step is, and a diverging run which rate to lower.
- A rule that is integrated derives from `Flow`, and says to which tolerances.
- `full_batch` and `follows_gradient` say what theories and the trainer may count on.

Run tools/listings.py; CONTRIBUTING.md ("Where to add what") lists the docs and tests that know new members.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from .._figures.style import TIME
from .._foundation.arrays import AnyArray, Number, RandomKey, Weights
from .._foundation.checks import is_traced
from .._foundation.errors import BadInput

Times: TypeAlias = Number | Float[AnyArray, " time"]
SampleNumbers: TypeAlias = Int[AnyArray, " batch"]  # numbers of samples
State: TypeAlias = Any  # a pytree of arrays that a rule keeps between steps
Gradient: TypeAlias = Callable[[Weights, SampleNumbers | None], tuple[Number, Weights]]


class Rule(abc.ABC):
    """How weights change, and what a unit of time is."""

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Any]]  # every rule is a noun

    follows_gradient: ClassVar[bool] = True  # whether every change is a multiple of −∂loss/∂W
    clock: ClassVar[str] = TIME  # what its times count, as the label of an axis

    @classmethod
    def example(cls) -> Self:
        """A rule of this kind, on which tests run the laws of all rules."""
        raise NotImplementedError(f"{cls.__name__} has no example()")

    @property
    def full_batch(self) -> bool:
        """Whether every change is computed from all samples."""
        return True

    @abc.abstractmethod
    def on_clock(self, times: Times) -> Times:
        """The times nearest to `times` at which this rule has a state."""


class Discrete(Rule):
    """A rule that moves in steps; one step of rate lr lasts lr units of time, unless it overrides its clock."""

    lr: Number

    def steps(self, times: Times) -> Times:
        """Whole numbers of steps nearest to `times`."""
        return (jnp if is_traced(times, self.lr) else np).round(times / self.lr)

    def time_of_steps(self, steps: Times) -> Times:
        """The time that `steps` steps take."""
        return steps * self.lr

    @property
    def lasts_lr(self) -> bool:
        """Whether one step of rate lr lasts lr, as in gradient flow."""
        return math.isclose(float(self.time_of_steps(1)), float(self.lr), rel_tol=1e-9)

    def on_clock(self, times: Times) -> Times:
        return self.time_of_steps(self.steps(times))

    def start(self, weights: Weights, samples: int | None, key: RandomKey) -> State:
        """The state of the rule before the first step."""
        return ()

    @abc.abstractmethod
    def step(self, gradient: Gradient, weights: Weights, state: State) -> tuple[Weights, State, Number]:
        """One step. `gradient(weights, rows)` gives (loss, gradient); rows None means all samples.

        Returns weights, state and the loss before the step.
        """


class Flow(Rule):
    """dW/dt = −∂loss/∂W, integrated adaptively; it has a state at every time."""

    rtol: Number

    def on_clock(self, times: Times) -> Times:
        return times

    @abc.abstractmethod
    def absolute_tolerance(self, weights: Weights) -> Number:
        """The absolute tolerance of a flow from these weights."""


def discrete(rule: Rule) -> Discrete:
    """The rule if it moves in steps; a flow is refused."""
    if not isinstance(rule, Discrete):
        raise BadInput(f"the learning rate of {rule!r}", "a rule that moves in steps", "use rules.GradientDescent(lr)")
    return rule


def rate_of(rule: Rule) -> Number:
    """The learning rate of a rule that moves in steps; a flow, which has none, is refused."""
    return discrete(rule).lr
