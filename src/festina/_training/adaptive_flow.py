"""Gradient flow, integrated adaptively, every weight to its own tolerance."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from .._foundation.arrays import RandomKey, Weights
from .._foundation.nouns import noun, static
from .._setup.loss import Moments, Samples
from ..nets.base import Net
from ..rules.base import Flow, Rule
from .base import Amount, Carry, Descent
from .layout import Held, Layout


@noun
class AdaptiveFlow(Descent[Net, Moments | Samples, Flow]):
    """Gradient flow: amounts of training are times, and every weight is held as it is."""

    layout: Layout = static()

    @classmethod
    def applies(cls, net: Net, evidence: Moments | Samples, rule: Rule) -> bool:
        return isinstance(rule, Flow)

    @classmethod
    def hold(cls, net: Net, weights: Weights) -> tuple[AdaptiveFlow, Held]:
        layout = Layout.of(net.stacks, weights)
        return cls(layout), layout.hold(weights)

    def start(self, rule: Flow, held: Held, samples: int | None, key: RandomKey) -> PyTree:
        return jnp.zeros((), jax.tree.leaves(held)[0].dtype), rule.absolute_tolerance(held)

    def advance(self, net: Net, evidence: Moments | Samples, rule: Flow, carry: Carry, amount: Amount) -> Carry:
        from .._formulas.integration import integrate

        rtol = jnp.maximum(rule.rtol, jnp.finfo(amount.dtype).eps * 50)  # float32 cannot hold a tighter one

        def follow(carry: Carry) -> Carry:
            last_step, atol = carry.rule
            end, step, is_reached = integrate(
                lambda held: jax.tree.map(jnp.negative, self.gradient(net, evidence, held)[1]),
                carry.held,
                amount,
                last_step,
                rtol=rtol,
                atol=atol,
            )
            loss = jnp.where(is_reached, carry.loss, jnp.inf)
            return carry._replace(held=end, rule=(step, atol), loss=loss, done=carry.done + amount)

        return jax.lax.cond((amount > 0) & jnp.isfinite(carry.loss), follow, lambda carry: carry, carry)
