"""Setup and the abstract Task, Net, Init and Rule; the one time grid.

House conventions, used everywhere: the loss is ½·mean over samples of ‖y − f(x)‖²;
Σʸˣ = ⟨y xᵀ⟩ and Σˣ = ⟨x xᵀ⟩ are means; flow is dW/dt = −∂loss/∂W; `W` is (out, in);
data are rows, `x` is (sample, d_in).
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from . import _checks
from ._errors import BadInput, UnknownName, shown
from ._linalg import Modes, modes_at
from ._noun import is_traced, noun, positive, real_array, static, whole
from ._precision import as_its_weights, in_double
from ._task import Matrix, Task, TaskSequence, default_horizon

Weights = Any  # a pytree of arrays; for a chain of layers a tuple of (out, in) matrices


class Net(abc.ABC):
    """An architecture: shapes and `apply`, no weights.

    A linear net also has `map`, and is trained on second moments: its cost does not grow
    with the number of samples. Whatever it computes from float64 weights is float64; inside
    a transformation of JAX it has the precision of that.
    """

    linear: ClassVar[bool] = False
    noisy: Any = False  # whether training draws something at every step; `apply` then takes a random key
    switches: Any = ()  # times at which the net itself changes; `at_time` is the net from then on
    alike: Any = ()  # groups of numbers of weights that have the same part and shape, and are best held as one
    junctions: Any = ()  # of a linear net, for every hidden layer: numbers of the weights into it, and out of it

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        for name in ("apply", "representations", "representation", "map", "gates"):
            if name in cls.__dict__:
                setattr(cls, name, as_its_weights(cls.__dict__[name]))

    @abc.abstractmethod
    def shapes(self, d_in: int, d_out: int) -> Any:
        """The shape of every weight, as a pytree of tuples."""

    @abc.abstractmethod
    def apply(self, weights: Weights, x: Float[Array, "sample d_in"]) -> Float[Array, "sample d_out"]:
        """The outputs for rows of inputs."""

    def representations(self, weights: Weights, x: Float[Array, "sample d_in"]) -> tuple[Any, ...]:
        """Activity of every hidden layer in turn, (sample, unit); for nets that are made of layers."""
        return ()

    def representation(self, weights: Weights, x: Float[Array, "sample d_in"]) -> Any:
        """Activity of the last hidden layer, (sample, hidden); None if there is no such layer."""
        return next(reversed(self.representations(weights, x)), None)

    def map(self, weights: Weights) -> Matrix:
        """The (out, in) matrix that a linear net applies."""
        raise NotImplementedError

    def at_time(self, time: float) -> Net:
        """The net from one of its switches on."""
        positive(time, "time", zero=True)
        return self

    def fits(self, tasks: Sequence[Task]) -> None:  # noqa: B027, most nets refuse nothing
        """Refuse tasks that a net of the right size cannot be trained on."""

    def bound(self, task: Task) -> tuple[Net, Task]:
        """The net and the task as they are trained; a net that looks at more than x says so here."""
        return self, task


class Init(abc.ABC):
    """The law of the initial weights."""

    random: ClassVar[bool] = True
    sees_samples: ClassVar[bool] = False  # whether it needs more of a task than its moments

    @abc.abstractmethod
    def draw(self, key: Any, net: Net, task: Task) -> Weights:
        """One draw; `key` is a JAX random key."""


class Rule(abc.ABC):
    """How weights change, and what a unit of time is."""

    full_batch: ClassVar[bool] = True

    @abc.abstractmethod
    def on_clock(self, times: Any) -> Any:
        """The times nearest to `times` at which this rule has a state."""


class Discrete(Rule):
    """A rule that moves in steps; one step of rate lr lasts lr units of time."""

    lr: Any
    follows_gradient: ClassVar[bool] = True  # one step is −lr times a gradient

    def steps(self, times: Any) -> Any:
        """Whole steps nearest to `times`."""
        return (jnp if is_traced(times, self.lr) else np).round(times / self.lr)

    def on_clock(self, times: Any) -> Any:
        return self.steps(times) * self.lr

    def start(self, weights: Weights, samples: int | None, key: Any) -> Any:
        """State of the rule before the first step."""
        return ()

    @abc.abstractmethod
    def step(self, gradient: Callable, weights: Weights, state: Any) -> tuple[Weights, Any, Any]:
        """One step. `gradient(weights, rows)` gives (loss, gradient); rows None means all samples.

        Returns weights, state and the loss before the step.
        """


PRECISIONS = ("float64", "float32")
SPACINGS = ("linear", "log")


@noun
class Setup:
    """Task, net, init and rule on one time grid; frozen, JSON-able, a pytree.

    The grid is given as `times`, or as `until` with `points` and `spacing`, or as `until`
    with `every` (steps of the rule). Without any of them it runs linearly to twelve time
    constants of the slowest mode, or through all tasks of a sequence. `setup.times` are these
    times on the rule's clock.
    """

    task: Any
    net: Any
    init: Any
    rule: Any
    requested_times: Any
    precision: str = static(default="float64")

    def __init__(
        self,
        task: Task | TaskSequence,
        net: Net,
        init: Init,
        rule: Rule | None = None,
        *,
        times: Any = None,
        until: float | None = None,
        points: int | None = None,
        spacing: str | None = None,
        every: int | None = None,
        precision: str = "float64",
    ):
        from .rules import GradientFlow

        rule = GradientFlow() if rule is None else rule
        kinds = {"task": (task, (Task, TaskSequence)), "net": (net, Net), "init": (init, Init), "rule": (rule, Rule)}
        for argument, (value, kind) in kinds.items():
            if not isinstance(value, kind):
                raise BadInput(
                    f"{argument} is {shown(value)}",
                    f"a {argument.capitalize()}",
                    f"build one with festina.{argument}s, for example festina.{_EXAMPLES[argument]}",
                )
        if not isinstance(precision, str) or precision not in PRECISIONS:
            seen, do = f"precision = {shown(precision)}", "use 'float64' unless speed matters"
            raise BadInput(seen, f"one of {PRECISIONS}", do)
        grid = _grid(task, rule, times, until, points, spacing, every)
        values = dict(task=task, net=net, init=init, rule=rule, requested_times=grid, precision=precision)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        net.shapes(task.d_in, task.d_out)  # wrong sizes fail here, on the user's own line
        if net.noisy and not isinstance(rule, Discrete):
            raise BadInput(
                f"{net!r} with {type(rule).__name__}",
                "a rule that moves in steps: what is drawn at every step has no flow",
                "use rules.GradientDescent(lr), rules.SGD(lr, batch) or rules.Adam(lr)",
            )
        if not is_traced(task, net):
            net.fits(task.tasks if isinstance(task, TaskSequence) else (task,))

    @property
    def times(self) -> Any:
        """The time grid, on the rule's clock; theory and training both use it."""
        return self.rule.on_clock(self.requested_times)

    def replace(self, **changes: Any) -> Setup:
        """The same setup with other parts; a grid that is not changed is kept as it was asked for."""
        grid = {"times", "until", "points", "spacing", "every"}
        parts = ("task", "net", "init", "rule", "precision")
        unknown = set(changes) - grid - set(parts)
        if unknown:
            raise UnknownName.among("part of a Setup", unknown.pop(), grid | set(parts))
        kept = {} if grid & set(changes) else {"times": self.requested_times}
        other = Setup(**{name: getattr(self, name) for name in parts} | kept | changes)
        if not {"task", "net", "init"} & set(changes):
            object.__setattr__(other, "_memory", self.__dict__.setdefault("_memory", {}))
        return other

    def weights(self, seed: Any = 0) -> Weights:
        """The initial weights that seed draws, in float64."""
        return self._remembered("weights", _checks.seed(seed), self._draw)

    def _draw(self, seed: Any) -> Weights:
        if not self.init.random:
            return in_double(lambda init, net, task: init.draw(None, net, task))(self.init, self.net, self.for_init)
        seeds = jnp.asarray([seed]) if is_traced(seed) else np.asarray([seed])
        drawn = draws(self.init, self.net, self.for_init, seeds)
        return jax.tree.map(lambda leaf: leaf[0], drawn)

    @property
    def for_init(self) -> Task:
        """What the init may look at: the moments of the (first) task, and its samples if it says so."""
        first = self.task.tasks[0] if isinstance(self.task, TaskSequence) else self.task
        return first if self.init.sees_samples else first.moments_only()

    def bound(self) -> Setup:
        """The setup as it is trained: of a gated net, a linear net on gated inputs. The start is not drawn from it."""
        if type(self.net).bound is Net.bound:
            return self
        net, task = self.net.bound(self.task)
        return self.replace(net=net, task=task)

    def modes(self, seed: Any = 0) -> Modes:
        """The task's modes, in the basis of each degenerate subspace that fits the start."""
        return self._remembered("modes", _checks.seed(seed), self._find_modes)

    def _find_modes(self, seed: Any) -> Modes:
        if not self.net.linear:
            return self.task.modes()
        return modes_at(self.task.cov_yx, self.task.cov_x, self.net.map(self.weights(seed)))

    def _remembered(self, name: Hashable, seed: Any, find: Callable[[Any], Any]) -> Any:
        """What a concrete setup has once computed; a dozen assumptions ask for the same start."""
        if is_traced(self, seed):
            return find(seed)
        memory = self.__dict__.setdefault("_memory", {})
        if (name, seed) not in memory:
            memory[name, seed] = find(seed)
        return memory[name, seed]

    def to_json(self) -> str:
        """The setup as JSON text; `Setup.from_json` reads it."""
        from ._spec import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Setup:
        """The setup that `to_json` wrote."""
        from ._spec import from_json

        return from_json(text)

    def __repr__(self) -> str:
        times = self.requested_times
        span = "traced" if is_traced(times) else f"{times[0]:g} … {times[-1]:g}"
        return (
            f"Setup(\n  {self.task!r},\n  {self.net!r},\n  {self.init!r},\n  {self.rule!r},\n"
            f"  {len(times)} times {span}, {self.precision})"
        )


_EXAMPLES = {
    "task": "tasks.hierarchy(levels=3)",
    "net": "nets.DeepLinear(hidden=32)",
    "init": "inits.Aligned(1e-3)",
    "rule": "rules.GradientFlow()",
}


@in_double
def draws(init: Init, net: Net, task: Task, seeds: Any) -> Weights:
    """Initial weights with a leading seed axis; not compiled as a whole, which takes longer than it saves."""
    return jax.vmap(lambda seed: init.draw(jax.random.key(seed), net, task))(jnp.asarray(seeds))


def _grid(task, rule, times, until, points, spacing, every) -> Any:
    if spacing is not None and not (isinstance(spacing, str) and spacing in SPACINGS):
        raise BadInput(f"spacing = {shown(spacing)}", f"one of {SPACINGS}", "use 'linear' or 'log'")
    if times is not None:
        if not (points is None and spacing is None and every is None):
            raise BadInput("times together with points, spacing or every", "one description of the grid", "keep one")
        return _checked_times(times, until)
    if until is None:
        until = np.sum(task.durations) if isinstance(task, TaskSequence) else default_horizon(task)
    until = positive(until, "until")
    if is_traced(until):
        do = "give times=, whose values may be traced, or build the setup outside jit, grad and vmap"
        raise BadInput("a traced until", "an end that is known, to lay out a grid", do)
    if every is not None:
        return _every(rule, until, whole(every, "every"), points, spacing)
    count = 200 if points is None else whole(points, "points", least=2)
    if spacing == "log":
        # Zero, then equal ratios; the first step of a stepping rule is its shortest time.
        first = rule.lr if isinstance(rule, Discrete) and not is_traced(rule.lr) else until * 1e-4
        grid = np.concatenate([[0.0], np.geomspace(min(first, until / 2), until, count - 1)])
    else:
        grid = np.linspace(0.0, until, count)
    # A grid finer than the rule's steps has fewer times than points, and none twice.
    return grid if is_traced(rule) else np.unique(rule.on_clock(grid))


def _every(rule: Rule, until: float, every: int, points: int | None, spacing: str | None) -> Any:
    if points is not None or spacing is not None:
        raise BadInput("every together with points or spacing", "one description of the grid", "keep one")
    if not isinstance(rule, Discrete):
        raise BadInput(
            f"every = {every} with {type(rule).__name__}, which has no steps",
            "a rule that moves in steps",
            "give points= instead, or use rules.GradientDescent(lr)",
        )
    last = int(rule.steps(until))
    return np.append(np.arange(0, last, every), last) * rule.lr


def _checked_times(times: Any, until: float | None) -> Any:
    grid = real_array(times, "times", ndim=1)
    if is_traced(grid):
        return grid
    if len(grid) == 0:
        raise BadInput("times is empty", "at least one time", "give times such as numpy.linspace(0, 10, 100)")
    if np.any(np.diff(grid) <= 0):
        raise BadInput("times do not increase", "strictly increasing times", "sort them and drop repeats")
    if grid[0] < 0:
        raise BadInput(f"times begin at {grid[0]:g}", "times >= 0", "training starts at time 0")
    if until is not None and grid[-1] > positive(until, "until"):
        raise BadInput(
            f"times reach {grid[-1]:g}, outside the run, which ends at until = {until:g}",
            "times within [0, until]",
            "raise until, or drop the later times",
        )
    return grid


def concrete(setup: Any, verb: str) -> None:
    """Refuse what is not a setup, and one whose numbers are not known."""
    if not isinstance(setup, Setup):
        raise BadInput(f"setup is {shown(setup)}", "a Setup", "build one with festina.Setup(task, net, init)")
    if is_traced(setup):
        do = f"call {verb} outside jit, grad and vmap; a theory's constants and states work inside"
        raise BadInput("a traced setup", "concrete numbers", do)


def layer_shapes(d_in: int, hidden: Sequence[int], d_out: int) -> tuple[tuple[int, int], ...]:
    """(out, in) of every layer of a chain."""
    sizes = (whole(d_in, "d_in"), *hidden, whole(d_out, "d_out"))
    return tuple((sizes[i + 1], sizes[i]) for i in range(len(sizes) - 1))


def widths(hidden: int | Sequence[int], argument: str = "hidden") -> tuple[int, ...]:
    """`hidden` as a tuple of positive widths; an int is one hidden layer."""
    if isinstance(hidden, (int, np.integer)):
        return (whole(hidden, argument),)
    needed, do = "a width, or a tuple of widths", f"give {argument}=32 or (32, 32)"
    return tuple(whole(width, argument) for width in _checks.listed(hidden, argument, needed, do, empty=True))
