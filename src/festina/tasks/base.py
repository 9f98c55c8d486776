"""The contract of a task: what is to be learned, as one `Task`, or as a `TaskSequence` of several.

A new task is one file in this folder: a function that returns a `Task`, marked by `@recipe` so that a setup can write
it to JSON as its arguments, all of which are plain numbers and texts with defaults. `own_data.from_arrays` and
`from_moments` build the `Task`; `dataclasses.replace` adds to it what theory knows:

- `cov_yx` = ⟨y xᵀ⟩ and `cov_x` = ⟨x xᵀ⟩ are exact second moments, means over samples; every task has them.
- `x` and `y` are the samples as rows, or None where the moments are all that is known; `power` is then ⟨‖y‖²⟩ or None.
- `stated_spectrum` are the singular values of Σʸˣ and `stated_vectors` its right singular vectors, where a formula
  gives them.
- `items`, `inputs` and `features` name the samples, the columns of x and those of y.
- `labels` describe each sample, for example by its context; gates may read them, networks do not.

Whoever trains or solves asks for `d_in`, `d_out`, `samples`, `modes()`, `spectrum()`, `vectors()`, `target()`,
`floor()` and `moments_only()`.

Run tools/listings.py; CONTRIBUTING.md ("Where to add what") lists the docs and tests that know new members.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._formulas.modes import Modes, modes_at
from .._foundation import checks, html
from .._foundation.arrays import AnyArray
from .._foundation.checks import is_traced
from .._foundation.errors import BadInput
from .._foundation.nouns import noun, settle, static

Matrix: TypeAlias = Float[Array, "out in"] | Float[np.ndarray, "out in"]


@noun
class Task:
    """What is to be learned: samples if there are any, exact second moments, names for the axes.

    Build one with `festina.tasks`. `power` is ⟨‖y‖²⟩; without it losses are counted from the
    lowest loss that a linear map can reach. `labels` describe the samples, as {name: one number per sample}: for
    example the context or the item that a sample shows, or the sign of its target. They are not inputs, but gates may
    read them.
    """

    cov_yx: Matrix
    cov_x: Matrix
    x: Any = None  # (sample, d_in)
    y: Any = None  # (sample, d_out)
    power: Any = None
    stated_spectrum: Any = None  # (mode,), largest first
    stated_vectors: Any = None  # (input, mode)
    labels: Any = None  # {name: (sample,)}
    items: tuple[str, ...] | None = static(default=None)
    inputs: tuple[str, ...] | None = static(default=None)
    features: tuple[str, ...] | None = static(default=None)
    recipe: tuple[str, str] | None = static(default=None)

    def __post_init__(self):
        ranks = {"cov_yx": 2, "cov_x": 2, "x": 2, "y": 2, "power": 0, "stated_spectrum": 1, "stated_vectors": 2}
        for name, rank in ranks.items():
            value = getattr(self, name)
            if value is not None or name.startswith("cov"):
                settle(self, **{name: _held(value, name, rank)})
        if self.labels is not None:
            needed, do = "a dict with one number per sample for every label", 'give labels={"context": [0, 0, 1, 1]}'
            labels = checks.mapping(self.labels, "labels", needed, do)
            settle(self, labels={name: _held(value, f"labels[{name!r}]", 1) for name, value in labels.items()})
        d_out, d_in = self.cov_yx.shape
        counts = {"items": self.samples, "inputs": None, "features": d_out}  # x of a gated task has other columns
        for name, count in counts.items():
            if getattr(self, name) is not None:
                settle(self, **{name: checks.names(getattr(self, name), name, count)})
        if self.recipe is not None:
            needed = "the name of a function of festina.tasks and its arguments as JSON"
            parts = checks.listed(self.recipe, "recipe", needed, "leave recipe out")
            settle(self, recipe=tuple(checks.text(part, "recipe") for part in parts))
        if self.x is None and self.y is not None:
            raise BadInput("y without x", "samples of both, or of neither", "give x beside y")
        if np.shape(self.cov_x) != (d_in, d_in):
            raise BadInput(f"cov_x has shape {np.shape(self.cov_x)}", f"{d_in, d_in}, to match cov_yx", "check cov_x")
        if self.y is not None and len(self.y) != self.samples:
            raise BadInput(
                f"y has {len(self.y)} rows, and x {self.samples}", "one row for every sample", "check x and y"
            )

    @property
    def d_in(self) -> int:
        return self.cov_yx.shape[1]

    @property
    def d_out(self) -> int:
        return self.cov_yx.shape[0]

    @property
    def samples(self) -> int | None:
        return None if self.x is None else self.x.shape[0]

    def moments_only(self) -> Task:
        """The same task without its samples: all that linear theory and most inits need."""
        return dataclasses.replace(self, x=None, y=None, labels=None, items=None)

    def modes(self) -> Modes:
        """Singular vectors of Σʸˣ that also diagonalise Σˣ where they can; see `Modes`."""
        return modes_at(self.cov_yx, self.cov_x)

    def spectrum(self) -> Float[AnyArray, " mode"]:
        """Singular values of Σʸˣ, largest first: as stated by the task's theory, else by SVD."""
        return self.modes().singular_values if self.stated_spectrum is None else self.stated_spectrum

    def vectors(self) -> Float[AnyArray, "input mode"]:
        """Right singular vectors of Σʸˣ: as stated by the task's theory, else by SVD.

        Inside a degenerate level any basis is right: compare projectors, never vectors.
        """
        return self.modes().right if self.stated_vectors is None else self.stated_vectors

    def target(self) -> Matrix:
        """The best linear map Σʸˣ (Σˣ)⁺."""
        return _best_map(self.cov_yx, self.cov_x)

    def floor(self) -> Float[AnyArray, ""]:
        """The lowest loss that a linear map can reach (0 where ⟨‖y‖²⟩ is unknown)."""
        if self.power is None:
            return np.zeros(())
        lowest = lowest_loss(self)
        return (jnp if is_traced(lowest) else np).maximum(lowest, 0.0)  # rounding can bring it below

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("inputs", self.d_in), ("features", self.d_out)]
        rows += [("samples", "moments only" if self.samples is None else self.samples)]
        if not is_traced(self):
            values = self.modes().singular_values
            shown = ", ".join(f"{value:.3g}" for value in values[:8])
            rows += [("singular values of Σʸˣ", shown + ", …" * (len(values) > 8))]
        return html.table(rows, (), f"Task: {self.recipe[0] if self.recipe else 'own data'}")

    def __repr__(self) -> str:
        size = "moments only" if self.samples is None else f"{self.samples} samples"
        return f"Task({self.recipe[0] if self.recipe else 'own data'}: {self.d_in} → {self.d_out}, {size})"


def _held(value: object, name: str, rank: int) -> Any:
    """Numbers of a task, kept as they are where they have been checked before, or are traced."""
    if is_traced(value):
        return value
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and not value.flags.writeable and value.ndim == rank:
        return value
    return checks.real_array(value, name, ndim=rank)


def _best_map(cov_yx: Matrix, cov_x: Matrix) -> Matrix:
    xp = jnp if is_traced(cov_yx, cov_x) else np
    # Rounding gives directions in which inputs never vary a variance of their number times eps.
    rounding = 10 * len(cov_x) * np.finfo(np.float64).eps
    return cov_yx @ xp.linalg.pinv(cov_x, rtol=rounding, hermitian=True)


def lowest_loss(task: Task) -> Float[AnyArray, ""]:
    """½(⟨‖y‖²⟩ − what the best linear map explains); below 0 if the moments are not of the same data."""
    xp = jnp if is_traced(task.power, task.cov_yx, task.cov_x) else np
    return 0.5 * (task.power - xp.sum(task.target() * task.cov_yx))


@noun
class TaskSequence:
    """Tasks that follow each other; build one with `festina.tasks.sequence`.

    Task k is trained for `durations[k]` units of time from the end of the one before; the last one goes on for
    as long as the run does. At the very time of a switch the new task counts.
    """

    tasks: tuple[Task, ...]
    durations: tuple[Any, ...]

    @property
    def d_in(self) -> int:
        return self.tasks[0].d_in

    @property
    def d_out(self) -> int:
        return self.tasks[0].d_out

    @property
    def samples(self) -> int | None:
        counts = {task.samples for task in self.tasks}
        return counts.pop() if len(counts) == 1 else None

    @property
    def starts(self) -> Float[np.ndarray, " task"]:
        """The time at which each task begins."""
        return np.concatenate([[0.0], np.cumsum(self.durations)[:-1]])

    def moments_only(self) -> Task:
        """The first task's moments: what an init may look at."""
        return self.tasks[0].moments_only()

    def __repr__(self) -> str:
        parts = (f"{task!r} for {span:g}" for task, span in zip(self.tasks, self.durations, strict=True))
        return f"TaskSequence({', '.join(parts)})"


def default_horizon(task: Task) -> float:
    """Twelve time constants of the slowest mode."""
    if is_traced(task):
        raise BadInput(
            "a traced task and no times", "an explicit grid under JAX transformations", "give times= or until="
        )
    modes = task.modes()
    kept = modes.singular_values > 1e-6 * modes.singular_values[0]
    if not kept.any():
        return 1.0
    return float(12 * np.max(np.maximum(1 / modes.singular_values[kept], 0.5 / modes.variances[kept])))
