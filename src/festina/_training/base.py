"""The contract of a descent: how a run holds the weights that it trains, and how it moves them.

All descents compute the same training. They differ in speed, and in what they need: a linear net, few samples, a rule
that moves in steps. A run takes the first of `choice.DESCENTS` that applies, and asks nothing of it but the members
below. A faster inner loop is therefore one file with one descent, a `@noun` class, and its place in that list: before
all that are more general, since the first that applies is taken.

CONTRIBUTING.md ("Where to add what") lists the docs and tests that know new members.
"""

from __future__ import annotations

import abc
from typing import ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

import jax
from jaxtyping import Bool, Float, Int, PyTree, Shaped, UInt32

from .._foundation.arrays import AnyArray, RandomKey, Weights
from .._setup.loss import Moments, Samples, training_loss
from ..nets.base import Net
from ..rules.base import Rule
from .layout import Held, Layout

# What a descent trains: a kind of net on a kind of evidence by a kind of rule.
N = TypeVar("N", bound=Net)
E = TypeVar("E", bound=Moments | Samples)
R = TypeVar("R", bound=Rule)
Amount: TypeAlias = Shaped[AnyArray, ""]  # of training: a whole number of steps, or a time of gradient flow


class Carry(NamedTuple):
    """The state of one seed's training."""

    held: Held  # the weights, as the descent holds them
    rule: PyTree  # the state of the rule; of gradient flow, the last step size and the absolute tolerance
    loss: Float[AnyArray, ""]  # before the last step
    limit: Float[AnyArray, ""]  # a loss beyond it means that training has diverged
    done: Amount
    noise: UInt32[AnyArray, " data"] | None = None  # of the random key that a noisy net draws with next

    @property
    def is_within_limit(self) -> Bool[AnyArray, ""]:
        return self.loss <= self.limit  # False for NaN, too


class Descent(abc.ABC, Generic[N, E, R]):
    """A way to train. Its leaves are what differs between seeds, with a leading seed axis; the layout is static."""

    layout: Layout
    block_length: ClassVar[int] = 1  # steps; a run may be cut after any multiple of it

    @classmethod
    @abc.abstractmethod
    def applies(cls, net: Net, evidence: Moments | Samples, rule: Rule) -> bool:
        """Whether this descent can train such a net on such evidence by such a rule, and is worth it."""

    @classmethod
    @abc.abstractmethod
    def hold(cls, net: N, weights: Weights) -> tuple[Descent[N, E, R], Held]:
        """The descent from these weights, which have a leading seed axis, and the weights as it holds them."""

    def weights(self, held: Held) -> Weights:
        """All weights of the net, read back from what is held: the inverse of `hold`."""
        return self.trained(held)

    def trained(self, held: Held) -> Weights:
        """The weights that are trained: all, or those of a narrower net that has the same loss at all times."""
        return self.layout.weights(held)

    @abc.abstractmethod
    def start(self, rule: R, held: Held, samples: int | None, key: RandomKey) -> PyTree:
        """The state of the rule before training; `samples` is their number, None if training uses second moments."""

    @abc.abstractmethod
    def advance(self, net: N, evidence: E, rule: R, carry: Carry, amount: Amount) -> Carry:
        """Training continued by `amount`, or by less if the loss leaves its limit on the way."""

    def cut(self, done: int, steps: int) -> int:
        """The longest stretch of at most `steps`, after `done` others, after which a break changes no rounding."""
        return max(steps - (done + steps) % self.block_length, 0)

    def gradient(
        self,
        net: N,
        evidence: E,
        held: Held,
        rows: Int[AnyArray, " batch"] | None = None,
        key: RandomKey | None = None,
    ) -> tuple[Float[AnyArray, ""], Held]:
        """The loss, and the gradient in what is held that training follows."""
        return jax.value_and_grad(lambda held: training_loss(net, evidence, self.trained(held), rows, key))(held)
