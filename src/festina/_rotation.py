"""Two points in a network with one output: their hidden difference may rotate, and the integral is still known.

With u = dh and the decoder v, a vector like u, gradient flow is [vanrossem2024, eqs. 15 to 17]

    du/dt = α v (√Y − u·v),      dv/dt = β u (√Y − u·v),

α, β, X, Y, H, P and w as in `_two_point`. It is the same for several outputs if dy is along the target and the target
an eigenvector of D_y D_yᵀ; v is then D_yᵀ Δy*/√Y. `_two_point` needs u and v parallel, and allows outputs off the
target.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from . import _pair
from ._two_point import Curves, root, settled


def rotated_final_distance(
    distance0: Any, decoder0: Any, along0: Any, input_gap: Any, target_gap: Any, tau_h: Any, tau_y: Any
) -> Any:
    """H at the end of learning for one output and any rotation.

    `distance0` is |u|² of the hidden difference u, `decoder0` |v|² of the whole decoder v, seen along the target, and
    `along0` = u·v, with a sign. It is `final_distance` if and only if u and v are parallel.
    """
    ratio = tau_y / tau_h * input_gap
    apart = ratio * jnp.maximum(distance0 * decoder0 - along0**2, 0.0)
    return settled(distance0 - ratio * decoder0, jnp.sqrt(ratio * target_gap + apart))


def rotating(
    ts: Any,
    distance0: Any,
    decoder0: Any,
    along0: Any,
    input_gap: Any,
    target_gap: Any,
    tau_h: Any,
    tau_y: Any,
) -> Curves:
    """H, P and w at `ts` for one output and any rotation of the hidden difference.

    `distance0`, `decoder0` and `along0` are those of `rotated_final_distance`.
    """
    now = _now(ts, distance0, decoder0, along0, input_gap, target_gap, tau_h, tau_y)
    total, balance = (now.plus + now.minus) / 2, now.balance
    # (S + c)/(2β), where c = β|u|² − α|v|² may be negative.
    bottom = jnp.where(balance < 0, total - balance, 1.0)
    twice = jnp.where(balance < 0, (now.apart + 4 * now.k**2 * now.m**2) / bottom, total + balance)
    gap = jnp.expand_dims(root(target_gap), -1)
    return Curves(twice * jnp.expand_dims(jnp.asarray(tau_y), -1), now.m**2, now.m * (now.m - gap))


def turn(
    ts: Any,
    distance0: Any,
    decoder0: Any,
    along0: Any,
    input_gap: Any,
    target_gap: Any,
    tau_h: Any,
    tau_y: Any,
) -> tuple[Any, Any]:
    """cosh θ and sinh θ at `ts`, where u/√α = cosh θ u₀/√α + sinh θ v₀/√β, and v/√β the other way round.

    One output, as in `rotating`: u/√α ± v/√β keep their directions, and grow by e^(±θ).
    """
    now = _now(ts, distance0, decoder0, along0, input_gap, target_gap, tau_h, tau_y)
    return now.cosh, now.sinh


class _Now(NamedTuple):
    """S ± 2km, where S = α|v|² + β|u|², k² = αβ and m = u·v; cosh θ and sinh θ; and what is conserved."""

    plus: Any
    minus: Any
    m: Any
    cosh: Any
    sinh: Any
    k: Any
    balance: Any  # β|u|² − α|v|²
    apart: Any  # 4k²(|u|²|v|² − m²)


def _now(ts, distance0, decoder0, along0, input_gap, target_gap, tau_h, tau_y) -> _Now:
    """S ± 2km grow by e^(±2θ) from p and q, and e^(2θ) = a/b obeys a Riccati equation, with Z = √((2k√Y)² + pq):

    a = 2 − σ + σ e^(−Zt) + q (1 − e^(−Zt))/Z,   b = σ + (2 − σ) e^(−Zt) + p (1 − e^(−Zt))/Z,   σ = 1 − 2k√Y/Z

    Differences, which lose digits where one layer is much larger than the other, are taken by hand: p − q = 4km₀ and
    a − b = 4k (√Y − m₀) (1 − e^(−Zt))/Z. What is left are sums of terms of one sign, but for m itself as it passes 0.
    """
    wide = (distance0, decoder0, along0, input_gap, target_gap, tau_h, tau_y)
    u, v, m, input_gap, target_gap, tau_h, tau_y = (jnp.expand_dims(jnp.asarray(n, float), -1) for n in wide)
    encoder, decoder, gap = input_gap / (2 * tau_h), 1 / (2 * tau_y), root(target_gap)
    k = jnp.sqrt(encoder * decoder)
    balance = decoder * u - encoder * v
    apart = 4 * k**2 * jnp.maximum(u * v - m**2, 0.0)
    kept = balance**2 + apart  # pq
    larger = encoder * v + decoder * u + 2 * k * jnp.abs(m)
    smaller = kept / jnp.where(larger > 0, larger, 1.0)
    plus, minus = jnp.where(m < 0, smaller, larger), jnp.where(m < 0, larger, smaller)
    pull = 2 * k * gap
    squared = pull**2 + kept
    still = squared == 0
    rate = jnp.where(still, 0.0, jnp.sqrt(jnp.where(still, 1.0, squared)))
    short = jnp.where(still, 1.0, kept / jnp.where(still, 1.0, rate * (rate + pull)))
    decay, spent = jnp.exp(-rate * ts), ts * _pair.mean_decay(rate * ts)
    a, b = 2 - short + short * decay + minus * spent, short + (2 - short) * decay + plus * spent
    over = jnp.where(b > 0, b, 1.0)  # late, and without a part that grows
    ahead = gap - m
    # p a² − q b² in terms of the smaller of p and q.
    later = m * jnp.where(m < 0, b / a, a / over) + smaller * spent * ahead * (1 / a + 1 / over)
    # What is not there may grow by any factor.
    grown, fallen = jnp.where(plus > 0, root(a / over), 1.0), jnp.where(minus > 0, root(b / a), 1.0)
    sinh = jnp.where(smaller > 0, 2 * k * spent * ahead / jnp.sqrt(a * over), (grown - fallen) / 2)
    return _Now(plus * a / over, minus * b / a, later, (grown + fallen) / 2, sinh, k, balance, apart)
