"""Steps of any rule, with every weight held as it is: used where nothing faster applies."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from .._foundation.arrays import RandomKey, Weights
from .._foundation.nouns import noun, static
from .._setup.loss import Moments, Samples, next_key
from ..nets.base import Net
from ..rules.base import Discrete, Rule
from .base import Amount, Carry, Descent, E, N
from .layout import Held, Layout


@noun
class PlainSteps(Descent[Net, Moments | Samples, Discrete]):
    """Steps of any rule, with every weight held as it is."""

    layout: Layout = static()

    @classmethod
    def applies(cls, net: Net, evidence: Moments | Samples, rule: Rule) -> bool:
        return isinstance(rule, Discrete)

    @classmethod
    def hold(cls, net: Net, weights: Weights) -> tuple[PlainSteps, Held]:
        layout = Layout.of(net.stacks, weights)
        return cls(layout), layout.hold(weights)

    def start(self, rule: Discrete, held: Held, samples: int | None, key: RandomKey) -> PyTree:
        return rule.start(held, samples, key)

    def advance(self, net: Net, evidence: Moments | Samples, rule: Discrete, carry: Carry, amount: Amount) -> Carry:
        return take_steps(self, net, evidence, rule, carry, amount)


def take_steps(
    descent: Descent[N, E, Discrete], net: N, evidence: E, rule: Discrete, carry: Carry, amount: Amount
) -> Carry:
    """`amount` steps of the rule, or fewer if the loss exceeds its limit."""

    def step(carry: Carry) -> Carry:
        noise, key = next_key(carry.noise)
        gradient = functools.partial(descent.gradient, net, evidence, key=key)
        held, state, value = rule.step(gradient, carry.held, carry.rule)
        return carry._replace(held=held, rule=state, loss=value, noise=noise)

    def loop(stride: int, state: tuple[Amount, Carry]) -> tuple[Amount, Carry]:
        def goes_on(state: tuple[Amount, Carry]):
            count, carry = state
            return (count + stride <= amount) & carry.is_within_limit

        def stride_of_steps(state: tuple[Amount, Carry]):
            count, carry = state
            for _ in range(stride):
                carry = step(carry)
            return count + stride, carry

        return jax.lax.while_loop(goes_on, stride_of_steps, state)

    # Two steps per iteration save XLA a copy of the largest weights; the second loop takes an odd last step.
    count, carry = loop(1, loop(2, (jnp.zeros_like(amount), carry)))
    return carry._replace(done=carry.done + count)
