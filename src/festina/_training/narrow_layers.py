"""Wide hidden layers of linear nets, trained in fewer units.

Whatever a linear net learns along its gradient, the incoming and outgoing weights of a hidden layer stay in the span of
their initial values: ∂loss/∂W_in = W_outᵀ(…) and ∂loss/∂W_out = (…)W_inᵀ. Let Q be an orthonormal basis of that span,
with as many vectors as the layer has inputs and outputs together. Qᵀ W_in and W_out Q then learn by the same equations,
with the same loss at every step, and W_in = Q(Qᵀ W_in), W_out = (W_out Q)Qᵀ at any time: a layer of 100 units between 8
inputs and 60 outputs costs what 68 units cost. Nothing is approximated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import jax
import numpy as np
from jaxtyping import Float, PyTree

from .._foundation.arrays import AnyArray, RandomKey
from .._foundation.nouns import noun, static
from .._setup.loss import Moments, Samples
from ..nets.base import Net
from ..rules.base import Discrete, Rule
from .base import Amount, Carry, Descent
from .layout import Held, Layout
from .plain_steps import take_steps

Matrices: TypeAlias = Sequence[Float[AnyArray, "... _ _"]]  # one for each edge, (out, in), maybe with a seed axis
Bases: TypeAlias = tuple[Float[AnyArray, "... _ _"] | None, ...]  # Q of each layer, (width, units); None: all units
Junctions: TypeAlias = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]  # as `Net.junctions` has them


@noun
class NarrowLayers(Descent[Net, Moments, Discrete]):
    """Steps along the gradient of a linear net, within the span of each hidden layer's weights."""

    bases: Bases
    junctions: Junctions = static()
    layout: Layout = static()

    @classmethod
    def applies(cls, net: Net, evidence: Moments | Samples, rule: Rule) -> bool:
        # Gradient flow holds every weight to a tolerance of its own, so its weights stay as they are.
        return isinstance(rule, Discrete) and rule.follows_gradient and isinstance(evidence, Moments)

    @classmethod
    def hold(cls, net: Net, weights: Matrices) -> tuple[NarrowLayers, Held]:
        narrow, bases = narrowed(net.junctions, weights)
        narrow, bases = jax.tree.map(lambda leaf: np.asarray(leaf, weights[0].dtype), (narrow, bases))
        layout = Layout.of(net.stacks, narrow)
        return cls(bases, net.junctions, layout), layout.hold(narrow)

    def weights(self, held: Held) -> Matrices:
        return widened(self.junctions, self.trained(held), self.bases)

    def start(self, rule: Discrete, held: Held, samples: int | None, key: RandomKey) -> PyTree:
        return rule.start(held, samples, key)

    def advance(self, net: Net, evidence: Moments, rule: Discrete, carry: Carry, amount: Amount) -> Carry:
        return take_steps(self, net, evidence, rule, carry, amount)


def narrowed(junctions: Junctions, weights: Matrices) -> tuple[Matrices, Bases]:
    """Weights with a leading seed axis in the fewest units, and the bases that lead back to all units."""
    held = [np.asarray(w) for w in weights]
    bases: list[np.ndarray | None] = [None] * len(junctions)
    is_narrower = True
    while is_narrower:  # a layer that has become narrow leaves its neighbours less to span
        is_narrower = False
        for k, (into, out_of) in enumerate(junctions):
            sides = [*(held[edge] for edge in into), *(np.swapaxes(held[edge], 1, 2) for edge in out_of)]
            if sides[0].shape[1] > sum(side.shape[2] for side in sides):
                basis = np.linalg.qr(np.concatenate(sides, axis=2).astype(float))[0]
                for edge in into:
                    held[edge] = np.swapaxes(basis, 1, 2) @ held[edge]
                for edge in out_of:
                    held[edge] = held[edge] @ basis
                bases[k] = basis if bases[k] is None else bases[k] @ basis
                is_narrower = True
    return tuple(held), tuple(bases)


def widened(junctions: Junctions, weights: Matrices, bases: Bases) -> Matrices:
    """The weights of all units again; leading axes of weights and bases are the same."""
    if all(basis is None for basis in bases):
        return weights
    full = list(weights)
    for basis, (into, out_of) in zip(bases, junctions, strict=True):
        if basis is not None:
            for edge in into:
                full[edge] = basis @ full[edge]
            for edge in out_of:
                full[edge] = full[edge] @ basis.swapaxes(-1, -2)
    return tuple(full)
