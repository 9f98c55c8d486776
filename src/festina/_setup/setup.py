"""The question: a Setup of task, net, init and rule on one time grid.

House conventions, used everywhere: the loss is ½·mean over samples of ‖y − f(x)‖²; Σʸˣ = ⟨y xᵀ⟩ and Σˣ = ⟨x xᵀ⟩ are
means; flow is dW/dt = −∂loss/∂W; `W` has shape (out, in); data are rows, `x` has shape (sample, d_in).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeAlias, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from .._formulas.modes import Modes, modes_at
from .._foundation import checks, html
from .._foundation.arrays import AnyArray, Number, Weights
from .._foundation.checks import is_traced
from .._foundation.errors import BadInput, UnknownName, shown
from .._foundation.nouns import noun, settle, static
from .._foundation.precision import in_double
from ..inits.base import Init, draws
from ..nets.base import Net
from ..rules.base import Discrete, Rule
from ..tasks.base import Task, TaskSequence
from .grid import Times, time_grid
from .memory import Memory

PRECISIONS = ("float64", "float32")
Seed: TypeAlias = int | Int[AnyArray, ""]  # the number of a random draw, which may be traced
T = TypeVar("T")


@noun
class Setup:
    """Task, net, init and rule on one time grid; frozen, JSON-able, a pytree.

    The grid is given as `times`, or as `until` with `points` and `spacing`, or as `until` with `every` (steps of the
    rule). Without any of them it runs linearly to twelve time constants of the slowest mode, or through all tasks of a
    sequence. `setup.times` are these times on the rule's clock.
    """

    task: Task | TaskSequence
    net: Net
    init: Init
    rule: Rule
    requested_times: Float[AnyArray, " time"]
    precision: str = static(default="float64")
    is_stage: bool = static(default=False)  # whether it is a part of a longer run: see `stage`

    def __init__(
        self,
        task: Task | TaskSequence,
        net: Net,
        init: Init,
        rule: Rule | None = None,
        *,
        times: Times | None = None,
        until: Number | None = None,
        points: int | None = None,
        spacing: str | None = None,
        every: int | None = None,
        precision: str = "float64",
    ):
        from ..rules.gradient_flow import GradientFlow

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
        grid = time_grid(task, rule, times=times, until=until, points=points, spacing=spacing, every=every)
        settle(self, task=task, net=net, init=init, rule=rule, requested_times=grid, precision=precision)
        net.shapes(task.d_in, task.d_out)  # wrong sizes fail here, on the user's own line
        if net.noisy and not isinstance(rule, Discrete):
            raise BadInput(
                f"{net!r} with {type(rule).__name__}",
                "a rule that moves in steps: what is drawn at every step has no flow",
                "use rules.GradientDescent(lr), rules.SGD(lr, batch) or rules.Adam(lr)",
            )
        if not (self.is_stage or is_traced(task, net)):
            net.refuse_unfit(task.tasks if isinstance(task, TaskSequence) else (task,))

    @property
    def single_task(self) -> Task:
        """The task of a setup that has one; a sequence of tasks is refused."""
        if isinstance(self.task, TaskSequence):
            raise BadInput(
                f"a sequence of {len(self.task.tasks)} tasks", "a single task", "take one of setup.task.tasks"
            )
        return self.task

    @property
    def first_task(self) -> Task:
        """The task that training begins with: the first of a sequence, or the only one."""
        return self.task.tasks[0] if isinstance(self.task, TaskSequence) else self.task

    @property
    def times(self) -> Float[AnyArray, " time"]:
        """The time grid, on the rule's clock; theory and training both use it."""
        # A clock moves each time to the nearest one of its own: the answer has the shape of the question.
        return cast("Float[AnyArray, ' time']", self.rule.on_clock(self.requested_times))

    def replace(self, **changes: Any) -> Setup:
        """The same setup with other parts; without a new grid, the times stay those that were asked for."""
        grid = {"times", "until", "points", "spacing", "every"}
        parts = ("task", "net", "init", "rule", "precision")
        unknown = set(changes) - grid - set(parts)
        if unknown:
            raise UnknownName.among("part of a Setup", unknown.pop(), grid | set(parts))
        kept = {} if grid & set(changes) else {"times": self.requested_times}
        other = self._remade(self.is_stage, **{name: getattr(self, name) for name in parts} | kept | changes)
        if not {"task", "net", "init"} & set(changes):
            settle(other, _results=self._memory.copy())
        return other

    def stage(self, task: Task, net: Net, times: Float[np.ndarray, " time"]) -> Setup:
        """The setup of a part of this run: of one task of a sequence, or between two times at which the net changes.

        The net is not checked against the task again: what it lacks on the task of one stage another stage may provide.
        """
        return self._remade(
            True, task=task, net=net, init=self.init, rule=self.rule, times=times, precision=self.precision
        )

    @staticmethod
    def _remade(is_stage: bool, **arguments: Any) -> Setup:
        other = object.__new__(Setup)
        settle(other, is_stage=is_stage)
        other.__init__(**arguments)
        return other

    def weights(self, seed: Seed = 0) -> Weights:
        """The initial weights that a seed draws, in float64."""
        return self._remembered("weights", checks.seed(seed), self._draw)

    def _draw(self, seed: Seed) -> Weights:
        if not self.init.random:
            return in_double(lambda init, net, task: init.draw(None, net, task))(self.init, self.net, self.for_init)
        seeds = jnp.asarray([seed]) if is_traced(seed) else np.asarray([seed])
        return jax.tree.map(lambda leaf: leaf[0], draws(self.init, self.net, self.for_init, seeds))

    @property
    def for_init(self) -> Task:
        """What the init may use of the (first) task: its moments, and its samples if the init `sees_samples`."""
        return self.first_task if self.init.sees_samples else self.first_task.moments_only()

    def lifted(self) -> Setup:
        """The setup that is trained: a gated net becomes a linear net on gated inputs.

        Initial weights still come from the original setup.
        """
        if isinstance(self.task, TaskSequence) and self.net.lifted(self.first_task)[0] is self.net:
            return self
        net, task = self.net.lifted(self.single_task)
        return self if net is self.net else self.replace(net=net, task=task)

    def modes(self, seed: Seed = 0) -> Modes:
        """The task's modes; in each degenerate subspace the basis is fitted to the initial weights of this seed."""
        return self._remembered("modes", checks.seed(seed), self._find_modes)

    def _find_modes(self, seed: Seed) -> Modes:
        if not self.net.linear:
            return self.single_task.modes()
        return modes_at(self.single_task.cov_yx, self.single_task.cov_x, self.net.map(self.weights(seed)))

    def _remembered(self, name: Hashable, seed: Seed, find: Callable[[Any], T]) -> T:
        """`find(seed)`, computed once for a concrete setup; under a transformation of JAX every time."""
        if is_traced(self, seed):
            return find(seed)
        return self._memory.recall((name, seed), lambda: find(seed))

    @property
    def _memory(self) -> Memory:
        # It is no field: JAX rebuilds a setup from its fields alone, and the rebuilt one begins with an empty memory.
        return self.__dict__.setdefault("_results", Memory())

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles hold: all but the memory, which two setups never share."""
        return {name: value for name, value in self.__dict__.items() if name != "_results"}

    def to_json(self) -> str:
        """The setup as JSON text; `Setup.from_json` reads it."""
        from .spec import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Setup:
        """The setup that `to_json` wrote."""
        from .spec import from_json

        return from_json(text)

    def _repr_html_(self) -> str:
        parts = [(kind, repr(getattr(self, kind))) for kind in ("task", "net", "init", "rule")]
        times = self.requested_times
        span = "traced" if is_traced(times) else f"{times[0]:g} … {times[-1]:g}"
        return html.table([*parts, ("times", f"{len(times)}: {span}"), ("precision", self.precision)], (), "Setup")

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


def check_concrete(setup: object, verb: str) -> None:
    """Refuse what is not a setup, and a setup whose numbers JAX is tracing: `verb` needs to know them."""
    if not isinstance(setup, Setup):
        raise BadInput(f"setup is {shown(setup)}", "a Setup", "build one with festina.Setup(task, net, init)")
    if is_traced(setup):
        do = f"call {verb} outside jit, grad and vmap; a theory's constants and states work inside"
        raise BadInput("a traced setup", "concrete numbers", do)
