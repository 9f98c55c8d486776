"""How wrong a theory is on a setup: what it misses of gradient flow at every time, grown along its own path.

A theory with the weights W(t) misses the start by δ₀ = W_start − W(0), and the flow at later times by the residual
r = −∇L(W) − dW/dt. To first order the flow is at W + δ, with

    dδ/dt = −H(W) δ + r,      H the Hessian of the loss,

so that a defect that is small at the start is judged by what it has become: next to a saddle it grows like
e^(rate × time). Whatever a theory assumes (aligned layers, balance, white inputs, a frozen kernel), its failure is in
δ₀ or r. The rounding of the start is added to δ₀: float64 cannot see below it.

The error is the largest difference between what the theory answers, a map or outputs, and what W + δ gives, relative
to the largest answer; that of the loss, relative to the largest loss; and of theories that know the layers, the largest
δ of a layer relative to that layer. W is known on a fixed grid of times, half of them logarithmic and half linear;
`_stiff` carries δ from one to the next. Factors of growth are right to some per cent, which is enough for the size of
an error.

`_growth_bound` says where no δ need be followed.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from .._precision import in_double
from .._setup import Discrete, Setup
from ._constants import constants_of
from ._landscape import Landscape
from ._stiff import Rates, advanced

EPS = float(np.finfo(float).eps)
RESOLVED = 1e-9  # rtol of GradientFlow: a smaller error cannot be told from that of the flow itself
LOST = 1e3  # an error this large, relative, is not followed further
FIRST = 0.05  # the first time of the logarithmic grid, in units of the fastest time constant
REFINED = 2  # times that the grid is laid anew
SECOND_ORDER = 2.0  # room for what is of order δ²
MANY, FEW, LARGE = 160, 64, 20_000  # steps, and steps of a net with more weights than this
HELD = 2**23  # numbers of a path that are held at once


@dataclasses.dataclass(frozen=True)
class Certificate:
    """Relative errors of an answer at `times`, and the shift δ of the weights at the last."""

    times: np.ndarray
    errors: np.ndarray
    end: np.ndarray

    @property
    def error(self) -> float:
        """The largest error; never below what gradient flow itself resolves."""
        largest = float(np.max(self.errors))
        return max(SECOND_ORDER * largest, RESOLVED) if np.isfinite(largest) else np.inf

    def lost_at(self, bound: float) -> int | None:
        """Which of the times is the first at which the error exceeds `bound`; None if it never does."""
        beyond = ~(SECOND_ORDER * self.errors <= bound)
        return int(np.argmax(beyond)) if beyond.any() else None


def certificate(theory: Any, setup: Setup, seed: int, *, carried: np.ndarray | None = None) -> Certificate:
    """The error of what `theory` answers, against gradient flow from the weights of the setup.

    `carried` is a shift of these weights: the error that an earlier task has left.
    """
    return _found("certificate", _of_theory, theory, setup, seed, carried)


def rounding(theory: Any, setup: Setup, seed: int) -> Certificate:
    """What rounding, of the start and at every later time, grows to along the path."""
    return _found("rounding", _of_rounding, theory, setup, seed)


def steps(theory: Any, setup: Setup, seed: int, *, carried: np.ndarray | None = None) -> Certificate:
    """What steps of finite length add, to first order: gradient descent follows dW/dt = −∇L − (lr/2) H∇L.

    `carried` is what they have added in earlier tasks.
    """
    return _found("steps", _of_steps, theory, setup, seed, carried)


def _found(name: str, find: Callable, theory: Any, setup: Setup, seed: int, carried: Any = None) -> Certificate:
    lr = float(setup.rule.lr) if isinstance(setup.rule, Discrete) else 0.0
    given = None if carried is None else hashlib.sha256(carried.tobytes()).hexdigest()
    key = (name, theory, float(np.max(setup.times)), lr, given)

    def of(seed: int) -> Certificate:
        with jax.enable_x64(True):
            return find(_Path(theory, setup, seed, carried), lr)

    return setup._remembered(key, seed, of)


def _of_theory(path: _Path, lr: float) -> Certificate:
    begun = path.start - path.first.weights + path.noise(path.start) + path.integration()
    return path.followed(
        begun, lambda point, now: point.downhill + path.turned(now, now.weights) - now.speed, whole=True
    )


def _of_rounding(path: _Path, lr: float) -> Certificate:
    return path.followed(path.noise(path.start), lambda point, now: path.fastest * path.noise(now.weights))


def _of_steps(path: _Path, lr: float) -> Certificate:
    return path.followed(path.carried, lambda point, now: -lr / 2 * point.pull(point.downhill))


def time_grid(last: float, first: float, count: int) -> np.ndarray:
    """`count` + 1 times from 0, half of them even and half logarithmic: one program serves all horizons."""
    half = count // 2
    logarithmic = np.geomspace(min(first, last / half), last, half + 1)[:-1] if last > 0 else np.zeros(half)
    return np.sort(np.concatenate([np.linspace(0.0, last, half + 1), logarithmic]))


def relative(wrong: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """`wrong`/`scale`: 0 where nothing is wrong, and infinite where that is no number."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(wrong == 0, 0.0, wrong / scale)
    return np.where(np.isnan(found), np.inf, found)


@dataclasses.dataclass(frozen=True)
class Moment:
    """A theory's path at one time: weights, their speed, the rate at which its frame turns, and its answer."""

    weights: np.ndarray
    speed: np.ndarray
    turning: np.ndarray | None  # (hidden, hidden), antisymmetric
    answer: np.ndarray

    @property
    def growth(self) -> float:
        """The rate at which the weights grow: near a saddle at zero, what is missed grows with them."""
        unit = np.max(np.abs(self.weights), initial=0.0) or 1.0
        scaled = self.weights / unit
        return float(max(scaled @ (self.speed / unit) / max(scaled @ scaled, 1.0), 0.0))


class _Path:
    """A theory's path through the landscape of a setup."""

    def __init__(self, theory: Any, setup: Setup, seed: int, carried: np.ndarray | None):
        self.theory, self.last = theory, float(np.max(setup.times))
        weights = setup.weights(seed)
        self.landscape = Landscape.of(setup, weights)
        self.constants = constants_of(theory, setup, seed)
        self.answer = "map" if self.landscape.net.linear else "outputs"
        self.rng = np.random.default_rng(0)
        start = self.landscape.flat(weights) + (0.0 if carried is None else carried)
        self.fastest = max(self.landscape.at(start).rates(start, self.rng))
        count = MANY if self.landscape.size <= LARGE else FEW
        self._step_at(time_grid(self.last, FIRST / max(self.fastest, EPS), count))
        for _ in range(REFINED):
            self._step_at(self._nodes_where_it_moves())
        self.first = next(self.moments())
        self.carried = np.zeros_like(start) if carried is None else carried
        if self.first.turning is None:
            self.start = start
        else:
            frame = self._frame(start)
            self.start, self.carried = self._in_frame(frame, start), self._in_frame(frame, self.carried)

    def _step_at(self, nodes: np.ndarray) -> None:
        self.nodes = nodes
        self.times = np.concatenate([[0.0], (nodes[1:] + nodes[:-1]) / 2, [self.last]])

    def _nodes_where_it_moves(self) -> np.ndarray:
        """As many nodes, half of them where they were, half where the weights change: modes are learned one by one."""
        flat = np.stack([now.weights for now in self.moments()])
        moved = np.linalg.norm(np.diff(flat, axis=0), axis=1)
        length = np.concatenate([[0.0], np.cumsum(moved)])
        if not length[-1] > 0:
            return self.nodes
        half = len(self.nodes) // 2
        where = np.interp(np.linspace(0.0, length[-1], half), length, self.times)
        return np.sort(np.concatenate([self.nodes[::2], where])[: len(self.nodes)])

    def _frame(self, start: np.ndarray) -> np.ndarray:
        """The rotation of hidden units that takes the start to where the theory has it."""
        theirs, ours = (
            np.concatenate([low, high.T], axis=1)
            for low, high in map(self.landscape.layers, (self.first.weights, start))
        )
        outer, _, inner = np.linalg.svd(theirs @ ours.T)
        return outer @ inner

    def _in_frame(self, frame: np.ndarray, flat: np.ndarray) -> np.ndarray:
        low, high = self.landscape.layers(flat)
        return self.landscape.flat((frame @ low, high @ frame.T))

    def turned(self, now: Moment, delta: np.ndarray) -> Any:
        """How a vector moves because the frame of the hidden units turns."""
        if now.turning is None:
            return 0.0
        low, high = self.landscape.layers(delta)
        return self.landscape.flat((now.turning @ low, high @ now.turning.T))

    def noise(self, weights: np.ndarray) -> np.ndarray:
        """Rounding of weights, relative to the size of each layer; always the same draw."""
        sizes = [np.full(part.size, np.sqrt(np.mean(part**2))) for part in self.landscape.layers(weights)]
        return EPS * np.concatenate(sizes) * np.random.default_rng(1).normal(size=weights.shape)

    def integration(self) -> Any:
        """The error of an integrated state, relative to each of its numbers: what is zero by symmetry stays so."""
        theory = self.theory
        if theory.kind != "reduction":
            return 0.0

        def shift(constants):
            state, draw = theory.start(constants), np.random.default_rng(2)
            error = jax.tree.map(lambda leaf: theory.rtol * leaf * draw.normal(size=leaf.shape), state)
            layers = lambda state: theory.path(constants, jax.tree.map(lambda leaf: leaf[None], state))  # noqa: E731
            return jax.jvp(layers, (state,), (error,))[1]

        return self.landscape.flat(in_double(shift)(self.constants))

    def moments(self) -> Iterator[Moment]:
        """The path at `times`; a long one of a large net in pieces."""
        pieces = 1
        if self.theory.kind != "reduction":  # whose states are integrated from one time to the next
            pieces = -(-len(self.times) * self.landscape.size // HELD)
        together = -(-len(self.times) // pieces)
        for first in range(0, len(self.times), together):
            times = self.times[first : first + together]
            filled = np.concatenate([times, np.repeat(times[-1:], together - len(times))])
            weights, speeds, turning, answers = in_double(_path)(self.theory, self.answer, self.constants, filled)
            flat, speed = (
                np.concatenate([np.reshape(leaf, (together, -1)) for leaf in jax.tree.leaves(tree)], axis=1)
                for tree in (weights, speeds)
            )
            for k in range(len(times)):
                yield Moment(flat[k], speed[k], None if turning is None else turning[k], answers[k])

    def followed(
        self, delta: np.ndarray, source: Callable[[Any, Moment], np.ndarray], *, whole: bool = False
    ) -> Certificate:
        """`delta` carried along the path, with `source` added; `whole` counts what W itself answers otherwise, too."""
        wrong, right, rates, times = [], [], Rates(), []
        for k, now in enumerate(self.moments()):
            point, middle = self.landscape.at(now.weights), delta
            duration = self.nodes[k] - self.nodes[k - 1] if 0 < k < len(self.nodes) else 0.0
            if duration > 0:
                rates = point.rates(delta, self.rng) if k % 2 or not any(rates) else rates
                operator = lambda d, point=point, now=now: point.pull(d) + self.turned(now, d)  # noqa: E731
                later = advanced(operator, source(point, now), delta, duration, rates, now.growth)
                middle, delta = (delta + later) / 2, later
            missed = self._shift(point, now, middle) + (point.answer - now.answer if whole else 0.0)
            times.append(self.times[k])
            wrong.append([*self.landscape.changes(now.answer, missed), *self._layer_sizes(middle)])
            right.append([*self.landscape.sizes(now.answer), *self._layer_sizes(now.weights)])
            scale = np.max(right, axis=0)
            if not np.all(np.asarray(wrong[-1]) <= LOST * scale):
                break
        return Certificate(np.array(times), np.max(relative(np.stack(wrong), scale), axis=1), delta)

    def _shift(self, point: Any, now: Moment, delta: np.ndarray) -> np.ndarray:
        """What δ does to the answer: all of it where layers need not be right, and δ may be as large as they are."""
        if self.theory.kind != "limit":
            return point.shift(delta)
        return self.landscape.at(now.weights + delta).answer - point.answer

    def _layer_sizes(self, weights: np.ndarray) -> list[Any]:
        """Lengths of the layers, where they are part of the answer."""
        return [] if self.theory.kind == "limit" else [np.linalg.norm(part) for part in self.landscape.layers(weights)]


@functools.partial(jax.jit, static_argnames=("theory", "answer"))
def _path(theory: Any, answer: str, constants: Any, times: Any) -> Any:
    """Weights, their speed, the turning of their frame, and the answer, time first."""
    states = theory.states(constants, times)

    def one(state):
        def layers(state):
            found = theory.path(constants, jax.tree.map(lambda leaf: leaf[None], state))
            return jax.tree.map(lambda leaf: leaf[0], found)

        weights, speed = jax.jvp(layers, (state,), (theory.field(constants, state),))
        return weights, speed, theory.turning(constants, state)

    return *jax.vmap(one)(states), theory.readouts[answer].read(constants, states)
