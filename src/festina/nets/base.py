"""The contract of a net: everything that may be asked of an architecture, with the answers that hold for most.

A new net is one file in this folder: a frozen `@noun` that derives from `Net`, has `shapes` and `apply`, and an
`example`. Whatever else it knows about itself it says by overriding a member below. General code asks these members
and nothing else: it never looks at the type of a net, and never asks whether a net has an attribute.

- What every net says: `shapes`, `apply`, `example`; `representations` if it has hidden layers, with `hidden` as their
  widths.
- A linear net: `linear`, `map`, and `junctions` where its hidden layers may be trained in fewer units.
- A chain of layers: `is_chain`; `activation`, `bias`, `skip`; `off_slope` and `gates` if its units switch.
- A net that draws random numbers while it is trained: `noisy`, `apply_in_training`.
- A net that changes in time: `switch_times`, `at_time`.
- A net that uses more of a task than x and y: `lifted`, and `refuse_unfit`, which refuses tasks that it cannot be
  trained on.
- A net of gated paths: `has_paths`, `graph`, `columns`, `ranks`, `paths`, `path_names`, `moments`, `closed_edges`,
  `draw`; and `plan` of the net to which `lifted` leads.
- A net with ranks, each of which descends the error that lower ranks leave: `training`, `maps_by_rank`.
- How it is best trained: `stacks`, for how its weights are stored; `steps_by_layer`, `layer` and `thinned` if it may be
  trained layer by layer.

Run tools/listings.py; CONTRIBUTING.md ("Where to add what") lists the docs and tests that know new members.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from jaxtyping import Bool, Float

from .._foundation import checks
from .._foundation.arrays import AnyArray, Number, RandomKey, Weights
from .._foundation.checks import positive, whole
from .._foundation.precision import as_its_weights
from ..tasks.base import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .gated.graph import Graph, Path
    from .gated.paths import PathMoments
    from .gated.plan import Plan

Shapes: TypeAlias = Any  # a pytree whose leaves are tuples of sizes; matrices are (out, in)
Rows: TypeAlias = Float[AnyArray, "sample d_in"]  # inputs
Outputs: TypeAlias = Float[AnyArray, "sample d_out"]
Activity: TypeAlias = Float[AnyArray, "sample unit"]  # of a hidden layer
LinearMap: TypeAlias = Float[AnyArray, "out in"]
Columns: TypeAlias = dict[str, tuple[int, ...]]  # of x or of y, by node


class Net(abc.ABC):
    """An architecture: shapes and `apply`, no weights.

    A linear net also has `map`, and is trained on second moments: its cost does not grow
    with the number of samples. Whatever it computes from float64 weights is float64; inside
    a transformation of JAX it has the precision of that.
    """

    # Whether the outputs are `map(weights)` times the inputs; such a net is trained on second moments.
    linear: ClassVar[bool] = False
    # Whether it is a graph of gated paths, with all members of that section below, and has no layers. The map of such
    # a net is one of gated inputs (see `lifted`), which may change from task to task and in time.
    has_paths: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        for name in ("apply", "representations", "representation", "map", "gates"):
            if name in cls.__dict__:
                setattr(cls, name, as_its_weights(cls.__dict__[name]))

    # At run time these are plain defaults, which a field or a property replaces.
    if TYPE_CHECKING:

        @property
        def hidden(self) -> tuple[int, ...]:
            """The widths of the hidden layers, from input to output; of a graph, those of its hidden nodes."""
            return ()

        @property
        def activation(self) -> str | None:
            """The name of the activation of hidden units; None if no single name describes it."""
            return None

        @property
        def bias(self) -> bool:
            """Whether layers have biases."""
            return False

        @property
        def skip(self) -> bool:
            """Whether the activity of a layer is also added further on."""
            return False

        @property
        def ranks(self) -> Sequence[int] | None:
            """The rank of every edge of a net with paths; None if all paths descend one loss."""
            return None

        @property
        def plan(self) -> Plan | None:
            """How the map of a lifted net is put together from the layers of gated paths; None for every other net."""
            return None

    else:
        hidden, activation, bias, skip, ranks, plan = (), None, False, False, None, None

    @classmethod
    def example(cls) -> Self:
        """A small net of this kind, on which tests run the laws of all nets."""
        raise NotImplementedError(f"{cls.__name__} has no example()")

    # Weights and outputs

    @abc.abstractmethod
    def shapes(self, d_in: int, d_out: int) -> Shapes:
        """The shape of every weight, in the structure that the weights have."""

    @abc.abstractmethod
    def apply(self, weights: Weights, x: Rows) -> Outputs:
        """The outputs for rows of inputs, of the whole net without noise."""

    @property
    def noisy(self) -> bool:
        """Whether training draws random numbers at every step; `apply_in_training` then uses its key."""
        return False

    def apply_in_training(self, weights: Weights, x: Rows, key: RandomKey) -> Outputs:
        """The outputs that one step of training sees; a noisy net draws with the key."""
        return self.apply(weights, x)

    # Hidden layers

    @property
    def depth(self) -> int:
        """The number of layers of weights on the longest way from input to output."""
        return len(self.hidden) + 1

    @property
    def is_chain(self) -> bool:
        """Whether weights are one matrix, or (W, b), per layer, and each layer feeds the next one alone."""
        return False

    @property
    def is_linear_chain(self) -> bool:
        """Whether weights are one matrix per layer, whose product is the map."""
        return self.linear and self.is_chain

    def representations(self, weights: Weights, x: Rows) -> tuple[Activity, ...]:
        """The activity of every hidden layer in turn; () for a net that is not made of layers."""
        return ()

    def representation(self, weights: Weights, x: Rows) -> Activity | None:
        """The activity of the last hidden layer, or of all hidden nodes of a graph; None if there is none."""
        return next(reversed(self.representations(weights, x)), None)

    # Units

    @property
    def off_slope(self) -> float | None:
        """The slope of a unit that is off (0 for ReLU); None if units do more than switch between on and off."""
        return None

    def gates(self, weights: Weights, x: Rows) -> Bool[AnyArray, "sample unit"]:
        """Which units are on, (sample, unit), the hidden layers side by side; for nets with an `off_slope`."""
        raise NotImplementedError(f"{type(self).__name__} has no units that only switch")

    # Linear nets

    def map(self, weights: Weights) -> LinearMap:
        """The matrix that a linear net applies."""
        raise NotImplementedError(f"{type(self).__name__} is not linear")

    @property
    def junctions(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """For every hidden layer of a linear net: the numbers of the weights into it, and of those out of it."""
        return ()

    @property
    def training(self) -> str:
        """How the net descends: "joint", all of it one loss, or "sequential".

        In sequential training each rank follows the gradient of the error left by all lower ranks.
        """
        return "joint"

    def maps_by_rank(self, weights: Weights) -> tuple[LinearMap, ...]:
        """The map of each rank of a linear net, lowest first; they add up to `map`."""
        return (self.map(weights),)

    # Time, tasks and training

    @property
    def switch_times(self) -> tuple[float, ...]:
        """The times after 0 at which the net itself changes, in order; `at_time` is the net from then on."""
        return ()

    def at_time(self, time: float) -> Net:
        """The net from one of its switch times on."""
        positive(time, "time", zero=True)
        return self

    def refuse_unfit(self, tasks: Sequence[Task]) -> None:  # noqa: B027, most nets refuse nothing
        """Refuse tasks that a net of the right size cannot be trained on."""

    def lifted(self, task: Task) -> tuple[Net, Task]:
        """The net and the task as they are trained; a net that looks at more than x says so here.

        A net with paths becomes a linear net of gated inputs, which has a `plan`.
        """
        return self, task

    @property
    def stacks(self) -> tuple[tuple[int, ...], ...]:
        """Groups of weights of equal role and shape, each weight by its number among the leaves of the pytree.

        The trainer holds each group as one array.
        """
        return ()

    @property
    def steps_by_layer(self) -> bool:
        """Whether the net applies `layer` after `layer` to `thinned` inputs, with `activation` and `skip` of an MLP.

        Such a net may be trained layer by layer.
        """
        return False

    def layer(self, layer: Weights, x: Activity) -> Activity:
        """One layer before its activation; for nets with `steps_by_layer`."""
        raise NotImplementedError(f"{type(self).__name__} is not trained layer by layer")

    def thinned(self, x: Activity, key: RandomKey | None, number: Number) -> Activity:
        """The inputs of layer `number` after noise is drawn with `key`; unchanged where there is no key."""
        return x

    # Gated paths

    @property
    def graph(self) -> Graph | None:
        """The graph of nodes and edges of a net with paths: one matrix of weights per edge, in the order of edges."""
        return None

    def columns(self, d_in: int, d_out: int) -> tuple[Columns, Columns]:
        """The columns of x that each input node reads, and those of y that each output node writes."""
        return {}, {}

    @property
    def path_names(self) -> tuple[str, ...] | None:
        """The names of all paths; None for a net without paths, or with too many to list them."""
        return None

    def paths(self) -> tuple[Path, ...]:
        """Every path from an input to an output node, with the numbers of its edges; () for a net without paths."""
        return ()

    def moments(self, task: Task) -> PathMoments:
        """The second moments of gated inputs, of every path and pair of paths; for nets with paths."""
        raise NotImplementedError(f"{type(self).__name__} has no paths")

    def closed_edges(self, tasks: Iterable[Task]) -> tuple[str, ...]:
        """The names of edges through which no sample of any task opens a path: their weights never change."""
        return ()

    def draw(self, task: Task | None = None, ax: Axes | None = None) -> Figure:
        """A picture of the graph with its gates; for nets with paths."""
        raise NotImplementedError(f"{type(self).__name__} has no paths")


def layer_shapes(d_in: int, hidden: Sequence[int], d_out: int) -> tuple[tuple[int, int], ...]:
    """(out, in) of every layer of a chain."""
    sizes = (whole(d_in, "d_in"), *hidden, whole(d_out, "d_out"))
    return tuple((sizes[i + 1], sizes[i]) for i in range(len(sizes) - 1))


def widths(hidden: int | Sequence[int], argument: str = "hidden") -> tuple[int, ...]:
    """`hidden` as a tuple of positive widths; an int is one hidden layer."""
    if isinstance(hidden, (int, np.integer)):
        return (whole(hidden, argument),)
    needed, do = "a width, or a tuple of widths", f"give {argument}=32 or (32, 32)"
    return tuple(whole(width, argument) for width in checks.listed(hidden, argument, needed, do, empty=True))
