"""The contract of an observable: a named quantity that is read off a network while it learns.

To add one, write an `Observable` under its name into the table `OBSERVABLES` of a family, a file of this folder, and a
row into `docs/observables.md`. A new family is a new file with such a table; `tools/listings.py` joins the tables in
`__init__.py`. All that there is to say of an observable is said there:

- `axes`: the names of its axes after those of seed and time; `entries` says what the entries of a new axis are called.
- `read(view, weights)`: how it is computed, by JAX, from the weights and from what a `View` holds besides them.
- `needs`: the parts of the view that `read` looks at. A new `Part` says how it is made, and whether it differs by seed.
- `lacks(setup)`: why a setup does not have it, or "". `lacking.py` has the reasons that several observables share.
- `of_map`, `rotation_invariant`: whether theories that know the map or the layers of a net predict it, too.
- `narrow`: whether it is the same for a linear net whose wide hidden layers are trained in fewer units.
- `recorded_with`: the observables without which it is of no use, which are recorded with it.
- `from_activity`: how a probe reads it off the recorded activity of any network, by NumPy.

Run tools/listings.py; CONTRIBUTING.md ("Where to add what") lists the docs and tests that know new members.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float, Shaped

from .._foundation.arrays import AnyArray, Weights
from .._foundation.nouns import noun
from .._setup.loss import Moments, Samples
from .._setup.setup import Setup
from ..nets.base import Net
from ..tasks.base import Task
from .compared_points import Points

Values: TypeAlias = Shaped[AnyArray, "..."]  # of an observable at one time, of one seed


@dataclasses.dataclass(frozen=True)
class Occasion:
    """What the parts of a view are computed from: a setup, and the state in which its training starts."""

    setup: Setup  # a setup with one task; for a sequence of tasks, one of its stages
    points: Points | None = None  # the samples that are compared in pairs
    tasks: tuple[Task, ...] = ()  # all tasks of the sequence, if the setup is a stage of one
    weights: Weights = None  # the weights at the start of this stage, with a leading seed axis
    start: Weights = None  # the weights before any training, with a leading seed axis

    @functools.cached_property
    def lifted(self) -> Setup:
        """The setup as it is trained: of a gated net, a linear net on gated inputs."""
        return self.setup.lifted()


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of the view, and how it is made.

    A part that differs by seed is made with a leading seed axis, and has `of_seed`, which makes it for one seed of a
    setup that is not trained.
    """

    name: str
    make: Callable[[Occasion], Any]
    of_seed: Callable[[Setup, int], Any] | None = None

    @property
    def differs_by_seed(self) -> bool:
        return self.of_seed is not None


@noun
class View:
    """All that an observable may look at besides the weights; it holds the parts that somebody needs, by name."""

    net: Net
    evidence: Moments | Samples  # what the loss is computed from
    shared: dict[str, Any]  # parts that are the same for all seeds
    per_seed: dict[str, Any]  # parts of one seed, or of all seeds with a leading axis

    def __getitem__(self, part: Part) -> Any:
        return (self.per_seed if part.differs_by_seed else self.shared)[part.name]

    def with_seed(self, per_seed: dict[str, Any]) -> View:
        """The view with these parts of a seed, or with none."""
        return dataclasses.replace(self, per_seed=per_seed)


@dataclasses.dataclass(frozen=True)
class RecordedActivity:
    """What is recorded of a network at one time: the activity of its layers and its outputs, at some samples."""

    points: Points
    hidden: Sequence[Float[np.ndarray, "sample _"]]  # of each layer
    outputs: Float[np.ndarray, "sample feature"] | None
    first: Sequence[Float[np.ndarray, "sample _"]]  # the hidden activity of the first record, if somebody needs it

    @property
    def given_outputs(self) -> Float[np.ndarray, "sample feature"]:
        """The outputs, for observables that need them."""
        assert self.outputs is not None
        return self.outputs

    @property
    def errors(self) -> Float[np.ndarray, "sample feature"]:
        """Outputs minus targets, for observables that need both."""
        assert self.points.targets is not None
        return self.given_outputs - self.points.targets


@dataclasses.dataclass(frozen=True)
class FromActivity:
    """How an observable is read off recorded activity, and what has to be known for it."""

    read: Callable[[RecordedActivity], Any]
    axes: tuple[str, ...] | None = None  # where they are not those of the observable
    needs_outputs: bool = False
    needs_targets: bool = False
    needs_first: bool = False  # the activity of the first record
    by_layer: bool = False  # `read` gives a list with the values of each layer, which become observables of their own


def _not_of_weights(view: View, weights: Weights) -> Values:
    raise NotImplementedError("this observable is read off recorded activity only")


def _has_all(setup: Setup) -> str:
    return ""


@dataclasses.dataclass(frozen=True)
class Observable:
    """A named quantity of a network; the module says what each field is."""

    axes: tuple[str, ...]
    read: Callable[[View, Weights], Values] = _not_of_weights
    lacks: Callable[[Setup], str] = _has_all
    needs: tuple[Part, ...] = ()
    of_map: Callable[[View, Float[AnyArray, "out in"]], Values] | None = None
    rotation_invariant: bool = False  # it does not change if hidden units are rotated
    narrow: bool = False
    recorded_with: tuple[str, ...] = ()
    entries: Mapping[str, Callable[[Setup], Iterable[str] | None]] = dataclasses.field(default_factory=dict)
    from_activity: FromActivity | None = None

    @property
    def of_weights(self) -> bool:
        """Whether it can be read off weights."""
        return self.read is not _not_of_weights

    @property
    def of_pairs(self) -> bool:
        """Whether it compares samples in pairs."""
        return "pair" in self.axes


def of_map(
    axes: tuple[str, ...],
    read: Callable[[View, Float[AnyArray, "out in"]], Values],
    lacks: Callable[[Setup], str],
    needs: tuple[Part, ...] = (),
) -> Observable:
    """An observable that is read off the map of a linear net, whatever its layers are."""
    return Observable(axes, lambda view, w: read(view, view.net.map(w)), lacks, needs, read, narrow=True)
