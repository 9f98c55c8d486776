"""Gradient flow around a point of the space of weights: −∇L there, −Hδ for a small change δ, and what it does.

Weights and changes are flat vectors here. A chain of linear layers is computed in NumPy, since nothing need be
compiled for a shape that is asked about once; every other net by JAX.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _objective
from .._precision import in_double
from .._setup import Net, Setup, Weights
from ..nets import DeepLinear
from ._stiff import Rates, extreme_rates

LEARNED = 1e-6  # of the loss of a network that is silent


class Landscape:
    """The loss of a net on a task, as a function of all its weights in a row."""

    def __init__(self, net: Net, seen: Any, weights: Weights, unexplained: Any = 0.0):
        self.net, self.seen, self.unexplained = net, seen, unexplained
        # Where JAX computes, numbers that stay are handed over once; as copies, which it has not met in float32.
        handed = lambda leaf: jnp.array(np.copy(leaf))  # noqa: E731
        self.handed = (net, seen) if isinstance(net, DeepLinear) else jax.tree.map(handed, (net, seen))
        leaves, self.structure = jax.tree.flatten(weights)
        self.shapes = [np.shape(leaf) for leaf in leaves]
        self.ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])

    @classmethod
    def of(cls, setup: Setup, weights: Weights) -> Landscape:
        """That of a setup, as it is trained by the flow."""
        bound = setup.bound()
        net, task = bound.net, bound.task
        # Inputs that almost never vary leave a part of Σʸˣ, of the size of rounding, that no map explains.
        unexplained = np.asarray(task.cov_yx) - np.asarray(task.target()) @ np.asarray(task.cov_x)
        return cls(net, in_double(_objective.evidence)(net, task), weights, unexplained)

    @property
    def size(self) -> int:
        return int(self.ends[-1])

    @staticmethod
    def flat(weights: Weights) -> np.ndarray:
        return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(weights)])

    def layers(self, flat: np.ndarray) -> list[np.ndarray]:
        parts = np.split(flat, self.ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def at(self, flat: np.ndarray) -> Chain | Anywhere:
        return (Chain if isinstance(self.net, DeepLinear) else Anywhere)(self, flat)

    def lengths(self, answer: Any) -> np.ndarray:
        """Lengths of maps or outputs, leading axes kept: as matrices, and of a map also by what it does to inputs."""
        size = np.sqrt(np.sum(answer**2, axis=(-1, -2)))
        if not isinstance(self.seen, _objective.Moments):
            return np.stack([size])
        return np.stack([size, np.sqrt(np.maximum(self._power(answer), 0))])

    def loss(self, answer: Any) -> np.ndarray:
        """The loss of maps or outputs, leading axes kept."""
        if isinstance(self.seen, _objective.Moments):
            return 0.5 * np.maximum(self._power(answer - self.seen.target), 0) + np.asarray(self.seen.floor)
        return 0.5 * np.sum((answer - self.seen.y) ** 2, axis=(-1, -2)) / len(self.seen.y)

    @functools.cached_property
    def silent_loss(self) -> float:
        """The loss of a network whose output is 0."""
        answer = self.seen.target if isinstance(self.seen, _objective.Moments) else self.seen.y
        return float(self.loss(np.zeros_like(answer)))

    def sizes(self, answer: Any) -> list[Any]:
        """What the parts of an answer are compared with: its lengths, and its loss until it has been learned."""
        return [*self.lengths(answer), np.maximum(self.loss(answer), LEARNED * self.silent_loss)]

    def changes(self, answer: Any, missed: Any) -> list[Any]:
        """How much the same parts change if `missed` is added to the answer."""
        return [*self.lengths(missed), np.abs(self.loss(answer + missed) - self.loss(answer))]

    def _power(self, matrix: Any) -> Any:
        return np.sum((matrix @ self.seen.cov_x) * matrix, axis=(-1, -2))


def _times(above: Any, below: Any) -> Any:
    """A product in which None is the identity."""
    return below if above is None else above if below is None else above @ below


class Chain:
    """A point of a chain of linear layers, W_D … W_1."""

    def __init__(self, landscape: Landscape, flat: np.ndarray):
        self.landscape = landscape
        seen, self.weights = landscape.seen, landscape.layers(flat)
        self.below, self.above = [None], [None]  # products of the other layers on either side of each
        for w in self.weights[:-1]:
            self.below.append(_times(w, self.below[-1]))
        for w in self.weights[:0:-1]:
            self.above.insert(0, _times(self.above[0], w))
        self.answer = _times(self.weights[-1], self.below[-1])
        self.error = (np.asarray(seen.target) - self.answer) @ np.asarray(seen.cov_x) + landscape.unexplained

    @functools.cached_property
    def downhill(self) -> np.ndarray:
        return self._flat([self._pulled(self.error, *sides) for sides in zip(self.above, self.below, strict=True)])

    def shift(self, delta: np.ndarray) -> np.ndarray:
        """The change of the map."""
        change = self.landscape.layers(delta)
        return self._shift(change, self._below_changed(change))

    def pull(self, delta: np.ndarray) -> np.ndarray:
        """−Hδ."""
        change = self.landscape.layers(delta)
        below, above = self._below_changed(change), self._above_changed(change)
        error = -self._shift(change, below) @ np.asarray(self.landscape.seen.cov_x)
        parts = []
        for k in range(len(change)):
            part = self._pulled(error, self.above[k], self.below[k])
            if above[k] is not None:
                part = part + self._pulled(self.error, above[k], self.below[k])
            if below[k] is not None:
                part = part + self._pulled(self.error, self.above[k], below[k])
            parts.append(part)
        return self._flat(parts)

    def rates(self, delta: np.ndarray, rng: np.random.Generator) -> Rates:
        """How fast δ can decay and grow: at most by |Σʸˣ − MΣˣ| times the norms of all layers but two."""
        decay, growth = extreme_rates(self.pull, delta, rng)
        sizes = np.array([np.linalg.norm(w, 2) for w in self.weights])
        pairs = [np.prod(np.delete(sizes, (k, m))) for k in range(len(sizes)) for m in range(k)]
        bound = (len(sizes) - 1) * max(pairs, default=0.0) * np.linalg.norm(self.error, 2)
        return Rates(decay, growth, max(growth, float(bound)))

    def _below_changed(self, change: list[np.ndarray]) -> list[Any]:
        found: list[Any] = [None]
        for k, part in enumerate(change[:-1]):
            moved = _times(part, self.below[k])
            found.append(moved if found[k] is None else moved + self.weights[k] @ found[k])
        return found

    def _above_changed(self, change: list[np.ndarray]) -> list[Any]:
        found: list[Any] = [None]
        for k in range(len(change) - 1, 0, -1):
            moved = _times(self.above[k], change[k])
            found.insert(0, moved if found[0] is None else moved + found[0] @ self.weights[k])
        return found

    def _shift(self, change: list[np.ndarray], below: list[Any]) -> np.ndarray:
        moved = _times(change[-1], self.below[-1])
        return moved if below[-1] is None else moved + self.weights[-1] @ below[-1]

    @staticmethod
    def _pulled(error: np.ndarray, above: Any, below: Any) -> np.ndarray:
        inner = error if above is None else above.T @ error
        return inner if below is None else inner @ below.T

    @staticmethod
    def _flat(parts: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([part.ravel() for part in parts])


class Anywhere:
    """A point of any net, by automatic differentiation."""

    def __init__(self, landscape: Landscape, flat: np.ndarray):
        self.landscape, self.weights = landscape, self._tree(landscape, flat)

    @staticmethod
    def _tree(landscape: Landscape, flat: np.ndarray) -> Weights:
        return jax.tree.unflatten(landscape.structure, landscape.layers(flat))

    @functools.cached_property
    def _here(self) -> tuple[Any, Any]:
        return _downhill(*self.landscape.handed, self.weights)

    @property
    def answer(self) -> np.ndarray:
        return np.asarray(self._here[0])

    @functools.cached_property
    def downhill(self) -> np.ndarray:
        return self.landscape.flat(self._here[1])

    def shift(self, delta: np.ndarray) -> np.ndarray:
        return np.asarray(self._moved(delta)[0])

    def pull(self, delta: np.ndarray) -> np.ndarray:
        return self.landscape.flat(self._moved(delta)[1])

    def rates(self, delta: np.ndarray, rng: np.random.Generator) -> Rates:
        decay, growth = extreme_rates(self.pull, delta, rng)
        return Rates(decay, growth, growth)

    def _moved(self, delta: np.ndarray) -> tuple[Any, Any]:
        return _moved(*self.landscape.handed, self.weights, self._tree(self.landscape, delta))


def _answer_and_pull(net: Any, seen: Any, weights: Any) -> tuple[Any, Any]:
    """The map or the outputs, and −∇L; of several ranks, each descends the error that the lower ones leave."""
    if not isinstance(seen, _objective.Moments):
        outputs, pull = jax.vjp(lambda w: net.apply(w, seen.x), weights)
        return outputs, pull((seen.y - outputs) / seen.x.shape[0])[0]
    by_rank = net.maps_by_rank if len(getattr(net, "ranks", ())) > 1 else lambda w: (net.map(w),)
    maps, pull = jax.vjp(by_rank, weights)
    sums = jnp.cumsum(jnp.stack(maps), axis=0)
    errors = tuple((seen.target - reached) @ seen.cov_x for reached in sums)
    return sums[-1], pull(errors)[0]


@jax.jit
def _downhill(net: Any, seen: Any, weights: Any) -> tuple[Any, Any]:
    return _answer_and_pull(net, seen, weights)


@jax.jit
def _moved(net: Any, seen: Any, weights: Any, delta: Any) -> tuple[Any, Any]:
    return jax.jvp(functools.partial(_answer_and_pull, net, seen), (weights,), (delta,))[1]
