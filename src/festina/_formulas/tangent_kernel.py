"""The tangent kernel of a deep linear network, by traces: the kernel itself is never formed.

For f(x) = W_D … W_1 x the kernel between outputs i, j on samples x, x' is Σ_l (P_l)_ij (xᵀ Q_l x') with
P_l = A_l A_lᵀ, A_l = W_D … W_{l+1}, and Q_l = B_lᵀ B_l, B_l = W_{l−1} … W_1. Two such kernels have the inner
product, over all samples and divided by their number squared,

    ⟨K, K'⟩ = Σ_{l,m} tr(P_l P'_m) tr(Q_l Σˣ Q'_m Σˣ).
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Layers, Number
from .._foundation.nouns import noun


@noun
class Tangent:
    """The blocks P_l and Q_l of a tangent kernel."""

    outer: Float[AnyArray, "layer out out"]  # P
    inner: Float[AnyArray, "layer in in"]  # Q


def tangent(weights: Layers) -> Tangent:
    """The blocks of the tangent kernel of a linear chain."""
    above: list[AnyArray] = [jnp.eye(weights[-1].shape[0], dtype=weights[-1].dtype)]
    below: list[AnyArray] = [jnp.eye(weights[0].shape[1], dtype=weights[0].dtype)]
    for layer in reversed(weights[1:]):
        above.append(above[-1] @ layer)
    for layer in weights[:-1]:
        below.append(layer @ below[-1])
    return Tangent(jnp.stack([a @ a.T for a in reversed(above)]), jnp.stack([b.T @ b for b in below]))


def two_layers(inner: Float[AnyArray, "in in"], outer: Float[AnyArray, "out out"]) -> Tangent:
    """The blocks of a two-layer chain, from its representations W₁ᵀW₁ and W₂W₂ᵀ."""
    identities = (jnp.eye(len(outer), dtype=outer.dtype), jnp.eye(len(inner), dtype=inner.dtype))
    return Tangent(jnp.stack([outer, identities[0]]), jnp.stack([identities[1], inner]))


def overlap(one: Tangent, other: Tangent, cov_x: Float[AnyArray, "in in"]) -> Float[AnyArray, ""]:
    """⟨K, K'⟩ over all samples, divided by their number squared."""
    outer = jnp.einsum("lij,mij->lm", one.outer, other.outer)
    inner = jnp.einsum("lij,mji->lm", one.inner @ cov_x, other.inner @ cov_x)
    return jnp.sum(outer * inner)


def distance(one: Tangent, other: Tangent, cov_x: Float[AnyArray, "in in"]) -> Float[AnyArray, ""]:
    """1 − cos of the angle between two kernels; 0 where one of them vanishes."""
    one, other = _unit(one), _unit(other)
    sizes = overlap(one, one, cov_x) * overlap(other, other, cov_x)
    both = sizes > 0
    cosine = overlap(one, other, cov_x) / jnp.sqrt(jnp.where(both, sizes, 1.0))
    return jnp.where(both, jnp.maximum(1.0 - cosine, 0.0), 0.0)


def relative_change(one: Tangent, other: Tangent, cov_x: Float[AnyArray, "in in"]) -> Float[AnyArray, ""]:
    """‖K' − K‖/‖K‖. Unlike the angle, it also counts a change of size; infinite where K vanishes and K' does not."""
    largest = jnp.maximum(_largest(one), _largest(other))
    first, second = (_scaled(kernel, largest) for kernel in (one, other))
    before = overlap(first, first, cov_x)
    change = before - 2 * overlap(first, second, cov_x) + overlap(second, second, cov_x)
    return jnp.sqrt(jnp.where(change > 0, change, 0.0) / jnp.where(change > 0, before, 1.0))


def _unit(kernel: Tangent) -> Tangent:
    return _scaled(kernel, _largest(kernel))


def _scaled(kernel: Tangent, largest: Number) -> Tangent:
    """A multiple of order 1: squares of very small weights' kernels would underflow."""
    return Tangent(kernel.outer / jnp.where(largest > 0, largest, 1.0), kernel.inner)


def _largest(kernel: Tangent) -> Float[AnyArray, ""]:
    return jnp.max(jnp.max(jnp.abs(kernel.outer), axis=(1, 2)) * jnp.max(jnp.abs(kernel.inner), axis=(1, 2)))
