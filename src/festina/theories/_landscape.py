"""The loss of a net on a task as a function of its weights: −∇L, Hessian products −Hδ, and the effect of δ on outputs.

Gradient flow moves the weights along −∇L, and a small error δ of the weights by −Hδ, with the Hessian H of the loss;
the change of the answer of the net, its map or its outputs, is the derivative of the answer along δ. Weights and errors
are flat vectors here. A chain of linear layers is computed in NumPy, since compiling costs more than the few products
that are asked for; every other net is differentiated by JAX.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Numbers, Weights
from .._foundation.precision import in_double
from .._foundation.program_memory import compiled
from .._setup import loss
from .._setup.setup import Setup
from ..nets.base import Net
from ._stiff import ErrorRates, Vector, extreme_rates

LEARNED = 1e-6  # errors of the loss are relative to at least this share of the loss of zero outputs

Evidence: TypeAlias = loss.Moments | loss.Samples
Answer: TypeAlias = Float[np.ndarray, "*time row column"]  # maps, or outputs on all samples
Matrix: TypeAlias = Float[np.ndarray, "_ _"]


class Landscape:
    """The loss of a net, for given samples or second moments, as a function of all its weights as one vector."""

    def __init__(
        self,
        net: Net,
        evidence: Evidence,
        weights: Weights,
        unexplained: float | Float[np.ndarray, "out in"] = 0.0,
    ):
        """`unexplained` is the part of Σʸˣ that no map explains."""
        self.net, self.evidence, self.unexplained = net, evidence, unexplained
        self.is_chain = net.is_linear_chain
        # For JAX these are converted once; as copies, which it has not met in float32.
        self.for_jax = (net, evidence) if self.is_chain else jax.tree.map(_as_new, (net, evidence))
        leaves, self.structure = jax.tree.flatten(weights)
        self.shapes = [np.shape(leaf) for leaf in leaves]
        self.ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])

    @classmethod
    def of(cls, setup: Setup, weights: Weights) -> Landscape:
        """The landscape in which the flow trains a setup."""
        lifted = setup.lifted()
        net, task = lifted.net, lifted.single_task
        # Inputs that almost never vary leave a part of Σʸˣ, of the size of rounding, that no map explains.
        unexplained = np.asarray(task.cov_yx) - np.asarray(task.target()) @ np.asarray(task.cov_x)
        return cls(net, in_double(loss.evidence_of)(net, task), weights, unexplained)

    @property
    def size(self) -> int:
        return int(self.ends[-1])

    @property
    def moments(self) -> loss.Moments:
        """What the loss of a linear net is computed from."""
        assert isinstance(self.evidence, loss.Moments)
        return self.evidence

    @staticmethod
    def flat(weights: Weights) -> Vector:
        return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(weights)])

    def layers(self, flat: Vector) -> list[Float[np.ndarray, ...]]:
        parts = np.split(flat, self.ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def at(self, flat: Vector) -> ChainPoint | NetPoint:
        return (ChainPoint if self.is_chain else NetPoint)(self, flat)

    def lengths(self, answer: Answer) -> Float[np.ndarray, " part *time"]:
        """Norms of maps or outputs: the Frobenius norm, and for a map also the root mean square of its outputs."""
        size = np.sqrt(np.sum(answer**2, axis=(-1, -2)))
        if not isinstance(self.evidence, loss.Moments):
            return np.stack([size])
        return np.stack([size, np.sqrt(np.maximum(self._power(answer), 0))])

    def loss(self, answer: Answer) -> Numbers:
        """The loss of maps or outputs, at every time."""
        if isinstance(self.evidence, loss.Moments):
            return 0.5 * np.maximum(self._power(answer - self.evidence.target), 0) + np.asarray(self.evidence.floor)
        return 0.5 * np.sum((answer - self.evidence.y) ** 2, axis=(-1, -2)) / len(self.evidence.y)

    @functools.cached_property
    def silent_loss(self) -> float:
        """The loss of a network whose output is 0."""
        answer = self.evidence.target if isinstance(self.evidence, loss.Moments) else self.evidence.y
        return float(self.loss(np.zeros_like(answer)))

    def sizes(self, answer: Answer) -> list[Numbers]:
        """The scales that errors of a prediction are relative to: its norms, and its loss, bounded from below."""
        return [*self.lengths(answer), np.maximum(self.loss(answer), LEARNED * self.silent_loss)]

    def changes(self, answer: Answer, missed: Answer) -> list[Numbers]:
        """The norms of `missed`, and the change of the loss if `missed` is added to the prediction."""
        return [*self.lengths(missed), np.abs(self.loss(answer + missed) - self.loss(answer))]

    def _power(self, matrix: Answer) -> Numbers:
        """⟨|Mx|²⟩ of maps M."""
        return np.sum((matrix @ self.moments.cov_x) * matrix, axis=(-1, -2))


def _as_new(leaf: Numbers) -> AnyArray:
    return jnp.array(np.copy(leaf))


def _after(below: Matrix | None, matrix: Matrix) -> Matrix:
    """The matrix after the layers below; None is the identity."""
    return matrix if below is None else matrix @ below


def _before(above: Matrix | None, matrix: Matrix) -> Matrix:
    """The matrix before the layers above; None is the identity."""
    return matrix if above is None else above @ matrix


class ChainPoint:
    """The landscape at the weights of a chain of linear layers, W_D … W_1."""

    def __init__(self, landscape: Landscape, flat: Vector):
        self.landscape = landscape
        moments, self.weights = landscape.moments, landscape.layers(flat)
        # Of every layer, the products of the layers below and above it; None is the identity.
        self.below: list[Matrix | None] = [None]
        self.above: list[Matrix | None] = [None]
        for w in self.weights[:-1]:
            self.below.append(_after(self.below[-1], w))
        for w in self.weights[:0:-1]:
            self.above.insert(0, _before(self.above[0], w))
        self.answer = _after(self.below[-1], self.weights[-1])
        self.error = (np.asarray(moments.target) - self.answer) @ np.asarray(moments.cov_x) + landscape.unexplained

    @functools.cached_property
    def descent(self) -> Vector:
        """−∇L."""
        return self._flat([self._slope(self.error, *sides) for sides in zip(self.above, self.below, strict=True)])

    def answer_change(self, delta: Vector) -> Matrix:
        """The change of the map, to first order in δ."""
        change = self.landscape.layers(delta)
        return self._map_change(change, self._below_changed(change))

    def minus_hessian(self, delta: Vector) -> Vector:
        """−Hδ."""
        change = self.landscape.layers(delta)
        below, above = self._below_changed(change), self._above_changed(change)
        error = -self._map_change(change, below) @ np.asarray(self.landscape.moments.cov_x)
        parts = []
        for k in range(len(change)):
            part = self._slope(error, self.above[k], self.below[k])
            if above[k] is not None:
                part = part + self._slope(self.error, above[k], self.below[k])
            if below[k] is not None:
                part = part + self._slope(self.error, self.above[k], below[k])
            parts.append(part)
        return self._flat(parts)

    def rates(self, delta: Vector, rng: np.random.Generator) -> ErrorRates:
        """How fast errors can decay and grow: at most by |Σʸˣ − MΣˣ| times the norms of all layers but two."""
        decay, growth = extreme_rates(self.minus_hessian, delta, rng)
        sizes = np.array([np.linalg.norm(w, 2) for w in self.weights])
        pairs = [np.prod(np.delete(sizes, (k, m))) for k in range(len(sizes)) for m in range(k)]
        bound = (len(sizes) - 1) * max(pairs, default=0.0) * np.linalg.norm(self.error, 2)
        return ErrorRates(decay, growth, max(growth, float(bound)))

    def _below_changed(self, change: Sequence[Matrix]) -> list[Matrix | None]:
        """How the products below each layer change."""
        changes: list[Matrix | None] = [None]
        for k, part in enumerate(change[:-1]):
            moved, before = _after(self.below[k], part), changes[k]
            changes.append(moved if before is None else moved + self.weights[k] @ before)
        return changes

    def _above_changed(self, change: Sequence[Matrix]) -> list[Matrix | None]:
        """How the products above each layer change."""
        changes: list[Matrix | None] = [None]
        for k in range(len(change) - 1, 0, -1):
            moved, after = _before(self.above[k], change[k]), changes[0]
            changes.insert(0, moved if after is None else moved + after @ self.weights[k])
        return changes

    def _map_change(self, change: Sequence[Matrix], below: Sequence[Matrix | None]) -> Matrix:
        moved, before = _after(self.below[-1], change[-1]), below[-1]
        return moved if before is None else moved + self.weights[-1] @ before

    @staticmethod
    def _slope(error: Matrix, above: Matrix | None, below: Matrix | None) -> Matrix:
        """The part of −∇L in a layer between these products."""
        inner = error if above is None else above.T @ error
        return inner if below is None else inner @ below.T

    @staticmethod
    def _flat(parts: Sequence[Matrix]) -> Vector:
        return np.concatenate([part.ravel() for part in parts])


class NetPoint:
    """The landscape at the weights of any net, by automatic differentiation."""

    def __init__(self, landscape: Landscape, flat: Vector):
        self.landscape, self.weights = landscape, self._tree(landscape, flat)

    @staticmethod
    def _tree(landscape: Landscape, flat: Vector) -> Weights:
        return jax.tree.unflatten(landscape.structure, landscape.layers(flat))

    @functools.cached_property
    def _here(self) -> tuple[AnyArray, Weights]:
        return _answer_and_descent(*self.landscape.for_jax, self.weights)

    @property
    def answer(self) -> Matrix:
        return np.asarray(self._here[0])

    @functools.cached_property
    def descent(self) -> Vector:
        """−∇L."""
        return self.landscape.flat(self._here[1])

    def answer_change(self, delta: Vector) -> Matrix:
        """The change of the map or of the outputs, to first order in δ."""
        return np.asarray(self._moved(delta)[0])

    def minus_hessian(self, delta: Vector) -> Vector:
        """−Hδ."""
        return self.landscape.flat(self._moved(delta)[1])

    def rates(self, delta: Vector, rng: np.random.Generator) -> ErrorRates:
        """How fast errors can decay and grow."""
        decay, growth = extreme_rates(self.minus_hessian, delta, rng)
        return ErrorRates(decay, growth, growth)

    def _moved(self, delta: Vector) -> tuple[AnyArray, Weights]:
        return _changes(*self.landscape.for_jax, self.weights, self._tree(self.landscape, delta))


def _with_pull(net: Net, evidence: Evidence, weights: Weights) -> tuple[AnyArray, Weights]:
    """The map or the outputs, and −∇L; of several ranks, each descends the error that the lower ones leave."""
    if not isinstance(evidence, loss.Moments):
        outputs, pull = jax.vjp(lambda w: net.apply(w, evidence.x), weights)
        return outputs, pull((evidence.y - outputs) / evidence.x.shape[0])[0]
    maps, pull = jax.vjp(net.maps_by_rank, weights)
    sums = jnp.cumsum(jnp.stack(maps), axis=0)
    errors = tuple((evidence.target - reached) @ evidence.cov_x for reached in sums)
    return sums[-1], pull(errors)[0]


@compiled(effort="little")
def _answer_and_descent(net: Net, evidence: Evidence, weights: Weights) -> tuple[AnyArray, Weights]:
    return _with_pull(net, evidence, weights)


@compiled(effort="little")
def _changes(net: Net, evidence: Evidence, weights: Weights, delta: Weights) -> tuple[AnyArray, Weights]:
    """The derivatives of the answer and of −∇L along δ."""
    return jax.jvp(functools.partial(_with_pull, net, evidence), (weights,), (delta,))[1]
