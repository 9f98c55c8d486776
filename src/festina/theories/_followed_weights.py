"""The path of a theory through weight space on a setup, and errors of the weights propagated along this path.

A theory with weights W(t) predicts a path through the space of all weights. It is evaluated on a grid of times that is
refined where the weights move: half of the times are where the first grid had them, half are spread evenly along the
path, since modes are learned one after another. An error δ of the weights is carried from one time to the next by the
linear equation dδ/dt = −Hδ + r, where H is the Hessian of the loss at W(t) and r whatever adds to the error.

A theory may know its layers only up to a rotation of the hidden units, its frame, which may rotate in time relative to
that of gradient flow. Errors are followed in the frame of the theory: the initial weights are rotated into it, and r
includes its rotation.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator

import jax
import numpy as np
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Weights
from .._foundation.precision import in_double
from .._foundation.program_memory import compiled
from .._setup.setup import Setup
from ._constants import constants_of
from ._landscape import ChainPoint, Landscape, NetPoint
from ._stiff import ErrorRates, Vector, advanced
from .base import Limit, Reduction, Theory, Times

EPS = float(np.finfo(float).eps)
RESOLVED = 1e-9  # rtol of GradientFlow: a smaller error cannot be told from that of the flow itself
SECOND_ORDER = 2.0  # room for what is of order δ²
LOST = 1e3  # an error this large, relative, is not followed further
FIRST = 0.05  # the first time of the logarithmic grid, in units of the fastest time constant
REFINED = 2  # times that the grid is refined
MANY, FEW, LARGE = 160, 64, 20_000  # steps, and steps of a net with more weights than this
HELD = 2**23  # numbers of a path that are held at once

NumpyTimes = Float[np.ndarray, " time"]


def time_grid(last: float, first: float, count: int) -> NumpyTimes:
    """`count` + 1 times from 0, half of them even and half logarithmic: one program serves all horizons."""
    half = count // 2
    logarithmic = np.geomspace(min(first, last / half), last, half + 1)[:-1] if last > 0 else np.zeros(half)
    return np.sort(np.concatenate([np.linspace(0.0, last, half + 1), logarithmic]))


def relative(
    parts: Float[np.ndarray, "*time part"], scale: Float[np.ndarray, " part"]
) -> Float[np.ndarray, "*time part"]:
    """Parts over their scale: 0 where a part is 0, and infinite where the ratio is no number."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(parts == 0, 0.0, parts / scale)
    return np.where(np.isnan(ratio), np.inf, ratio)


@dataclasses.dataclass(frozen=True)
class FollowedPoint:
    """A theory's path at one time: the weights, their speed, the rate at which the frame rotates, and the answer."""

    weights: Vector
    speed: Vector
    rotation_rate: Float[np.ndarray, "hidden hidden"] | None  # antisymmetric; None if the frame does not rotate
    answer: Float[np.ndarray, "row column"]

    @property
    def growth(self) -> float:
        """The rate at which the weights grow: near a saddle at zero, what adds to the error grows with them."""
        unit = np.max(np.abs(self.weights), initial=0.0) or 1.0
        scaled = self.weights / unit
        return float(max(scaled @ (self.speed / unit) / max(scaled @ scaled, 1.0), 0.0))


@dataclasses.dataclass(frozen=True)
class FollowedError:
    """An error of the weights that has been followed along a path.

    `errors` are the resulting relative errors of the prediction at `times`; `end` is δ at the last of them.
    """

    times: NumpyTimes
    errors: NumpyTimes
    end: Vector

    @property
    def error(self) -> float:
        """The largest error; never below what gradient flow itself resolves."""
        largest = float(np.max(self.errors))
        return max(SECOND_ORDER * largest, RESOLVED) if np.isfinite(largest) else np.inf

    def lost_at(self, bound: float) -> int | None:
        """The number of the first time at which the error exceeds `bound`; None if it never does."""
        beyond = ~(SECOND_ORDER * self.errors <= bound)
        return int(np.argmax(beyond)) if beyond.any() else None


Source = Callable[["ChainPoint | NetPoint", FollowedPoint], Vector]  # r, from the landscape and the path at one time


class FollowedTheory:
    """A theory's path through the landscape of a setup, from the weights that the setup starts with.

    `carried` is an error of these weights that an earlier task has left.
    """

    def __init__(self, theory: Theory, setup: Setup, seed: int, carried: Vector | None):
        self.theory, self.last = theory, float(np.max(setup.times))
        weights = setup.weights(seed)
        self.landscape = Landscape.of(setup, weights)
        self.constants = constants_of(theory, setup, seed)
        self.answer = "map" if self.landscape.net.linear else "outputs"
        self.rng = np.random.default_rng(0)
        start = self.landscape.flat(weights) + (0.0 if carried is None else carried)
        self.fastest = max(self.landscape.at(start).rates(start, self.rng))
        count = MANY if self.landscape.size <= LARGE else FEW
        self._use_grid(time_grid(self.last, FIRST / max(self.fastest, EPS), count))
        for _ in range(REFINED):
            self._use_grid(self._refined_grid())
        self.first = next(self.points())
        self.carried = np.zeros_like(start) if carried is None else carried
        if self.first.rotation_rate is None:
            self.start = start
        else:
            frame = self._frame(start)
            self.start, self.carried = self._in_frame(frame, start), self._in_frame(frame, self.carried)

    def _use_grid(self, nodes: NumpyTimes) -> None:
        """Steps go from node to node, and the path is evaluated in the middle of each, and at both ends."""
        self.nodes = nodes
        self.times = np.concatenate([[0.0], (nodes[1:] + nodes[:-1]) / 2, [self.last]])

    def _refined_grid(self) -> NumpyTimes:
        """A grid with as many nodes as now: half of the present ones, and half spread evenly along the path."""
        flat = np.stack([at.weights for at in self.points()])
        moved = np.linalg.norm(np.diff(flat, axis=0), axis=1)
        length = np.concatenate([[0.0], np.cumsum(moved)])
        if not length[-1] > 0:
            return self.nodes
        half = len(self.nodes) // 2
        where = np.interp(np.linspace(0.0, length[-1], half), length, self.times)
        return np.sort(np.concatenate([self.nodes[::2], where])[: len(self.nodes)])

    def _frame(self, start: Vector) -> Float[np.ndarray, "hidden hidden"]:
        """The rotation of hidden units that turns the initial weights into those of the theory."""
        theirs, ours = (
            np.concatenate([low, high.T], axis=1)
            for low, high in map(self.landscape.layers, (self.first.weights, start))
        )
        outer, _, inner = np.linalg.svd(theirs @ ours.T)
        return outer @ inner

    def _in_frame(self, frame: Float[np.ndarray, "hidden hidden"], flat: Vector) -> Vector:
        low, high = self.landscape.layers(flat)
        return self.landscape.flat((frame @ low, high @ frame.T))

    def frame_motion(self, at: FollowedPoint, delta: Vector) -> Vector | float:
        """How a vector of weights moves because the frame of the hidden units rotates."""
        if at.rotation_rate is None:
            return 0.0
        low, high = self.landscape.layers(delta)
        return self.landscape.flat((at.rotation_rate @ low, high @ at.rotation_rate.T))

    def rounding(self, weights: Vector) -> Vector:
        """Rounding of weights, relative to the size of each layer; the same random numbers at every call."""
        sizes = [np.full(part.size, np.sqrt(np.mean(part**2))) for part in self.landscape.layers(weights)]
        return EPS * np.concatenate(sizes) * np.random.default_rng(1).normal(size=weights.shape)

    def integration(self) -> Vector | float:
        """The error of an integrated state, proportional to each entry: those that vanish by symmetry stay zero."""
        theory = self.theory
        if not isinstance(theory, Reduction):
            return 0.0

        def shift(constants: object) -> Weights:
            state, rng = theory.start(constants), np.random.default_rng(2)
            error = jax.tree.map(lambda leaf: theory.rtol * leaf * rng.normal(size=leaf.shape), state)

            def layers(state: object) -> Weights:
                return theory.followed_weights(constants, jax.tree.map(lambda leaf: leaf[None], state))

            return jax.jvp(layers, (state,), (error,))[1]

        return self.landscape.flat(in_double(shift)(self.constants))

    def points(self) -> Iterator[FollowedPoint]:
        """The path at `times`; a long one of a large net is evaluated in pieces."""
        pieces = 1
        if not isinstance(self.theory, Reduction):  # whose states are integrated from one time to the next
            pieces = -(-len(self.times) * self.landscape.size // HELD)
        together = -(-len(self.times) // pieces)
        for first in range(0, len(self.times), together):
            times = self.times[first : first + together]
            filled = np.concatenate([times, np.repeat(times[-1:], together - len(times))])
            weights, speeds, rotation, answers = in_double(_evaluated)(self.theory, self.answer, self.constants, filled)
            flat, speed = (
                np.concatenate([np.reshape(leaf, (together, -1)) for leaf in jax.tree.leaves(tree)], axis=1)
                for tree in (weights, speeds)
            )
            for k in range(len(times)):
                yield FollowedPoint(flat[k], speed[k], None if rotation is None else rotation[k], answers[k])

    def follow(self, delta: Vector, source: Source, *, whole: bool = False) -> FollowedError:
        """Follow `delta` along the path, with `source` added; `whole` also counts the error of the prediction at W."""
        wrong, right, rates, times = [], [], ErrorRates(), []
        scale = np.zeros(0)
        for k, at in enumerate(self.points()):
            point, middle = self.landscape.at(at.weights), delta
            duration = self.nodes[k] - self.nodes[k - 1] if 0 < k < len(self.nodes) else 0.0
            if duration > 0:
                rates = point.rates(delta, self.rng) if k % 2 or not any(rates) else rates
                operator = functools.partial(self._error_speed, point, at)
                later = advanced(operator, source(point, at), delta, duration, rates, at.growth)
                middle, delta = (delta + later) / 2, later
            missed = self._answer_change(point, at, middle) + (point.answer - at.answer if whole else 0.0)
            times.append(self.times[k])
            wrong.append([*self.landscape.changes(at.answer, missed), *self._layer_sizes(middle)])
            right.append([*self.landscape.sizes(at.answer), *self._layer_sizes(at.weights)])
            scale = np.max(right, axis=0)
            if not np.all(np.asarray(wrong[-1]) <= LOST * scale):
                break
        return FollowedError(np.array(times), np.max(relative(np.stack(wrong), scale), axis=1), delta)

    def _error_speed(self, point: ChainPoint | NetPoint, at: FollowedPoint, delta: Vector) -> Vector:
        """−Hδ, and how δ moves with the frame."""
        return point.minus_hessian(delta) + self.frame_motion(at, delta)

    def _answer_change(
        self, point: ChainPoint | NetPoint, at: FollowedPoint, delta: Vector
    ) -> Float[np.ndarray, "row column"]:
        """The change of the prediction by δ: to first order, unless the theory is a limit, where δ may be large."""
        if not isinstance(self.theory, Limit):
            return point.answer_change(delta)
        return self.landscape.at(at.weights + delta).answer - point.answer

    def _layer_sizes(self, weights: Vector) -> list[float]:
        """Lengths of the layers, where they are part of the answer."""
        if isinstance(self.theory, Limit):
            return []
        return [float(np.linalg.norm(part)) for part in self.landscape.layers(weights)]


@compiled(effort="little", static_argnames=("theory", "answer"))
def _evaluated(
    theory: Theory, answer: str, constants: object, times: Times
) -> tuple[Weights, Weights, Float[AnyArray, "time hidden hidden"] | None, Float[AnyArray, "time row column"]]:
    """Weights, their speed, the rotation of their frame, and the answer, time first."""
    states = theory.states(constants, times)

    def at_one(state: object) -> tuple[Weights, Weights, Float[AnyArray, "hidden hidden"] | None]:
        def layers(state: object) -> Weights:
            path = theory.followed_weights(constants, jax.tree.map(lambda leaf: leaf[None], state))
            return jax.tree.map(lambda leaf: leaf[0], path)

        weights, speed = jax.jvp(layers, (state,), (theory.field(constants, state),))
        return weights, speed, theory.rotation_rate(constants, state)

    return *jax.vmap(at_one)(states), theory.readouts[answer].read(constants, states)
