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
    sums = _sums(ts, distance0, decoder0, along0, input_gap, target_gap, tau_h, tau_y)
    m, total = (sums.plus - sums.minus) / (4 * sums.k), (sums.plus + sums.minus) / 2
    # (S + c)/(2β), where c = β|u|² − α|v|² may be negative.
    balance = sums.balance
    bottom = jnp.where(balance < 0, total - balance, 1.0)
    twice = jnp.where(balance < 0, (sums.apart + 4 * sums.k**2 * m**2) / bottom, total + balance)
    gap = jnp.expand_dims(root(target_gap), -1)
    return Curves(twice * jnp.expand_dims(jnp.asarray(tau_y), -1), m**2, m * (m - gap))


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
    sums = _sums(ts, distance0, decoder0, along0, input_gap, target_gap, tau_h, tau_y)
    grown, fallen = (_growth(now, begun) for now, begun in ((sums.plus, sums.plus0), (sums.minus, sums.minus0)))
    return (grown + fallen) / 2, (grown - fallen) / 2


def _growth(now, begun):
    some = begun > 0
    return jnp.where(some, root(now / jnp.where(some, begun, 1.0)), 1.0)


class _Sums(NamedTuple):
    """S ± 2km, where S = α|v|² + β|u|², k² = αβ and m = u·v: now and at the start; and what is conserved."""

    plus: Any
    minus: Any
    plus0: Any
    minus0: Any
    k: Any
    balance: Any  # β|u|² − α|v|²
    apart: Any  # 4k²(|u|²|v|² − m²)


def _sums(ts, distance0, decoder0, along0, input_gap, target_gap, tau_h, tau_y) -> _Sums:
    """K² = S² − 4k²m² is conserved, and S ± 2km obey two Riccati equations of one variable.

    Sums of positive terms are all that is evaluated.
    """
    wide = (distance0, decoder0, along0, input_gap, target_gap, tau_h, tau_y)
    u, v, m, input_gap, target_gap, tau_h, tau_y = (jnp.expand_dims(jnp.asarray(n, float), -1) for n in wide)
    encoder, decoder, gap = input_gap / (2 * tau_h), 1 / (2 * tau_y), root(target_gap)
    k = jnp.sqrt(encoder * decoder)
    balance = decoder * u - encoder * v
    apart = 4 * k**2 * jnp.maximum(u * v - m**2, 0.0)
    kept = balance**2 + apart  # K²
    total = encoder * v + decoder * u
    larger = total + 2 * k * jnp.abs(m)
    smaller = kept / jnp.where(larger > 0, larger, 1.0)
    plus, minus = jnp.where(m < 0, smaller, larger), jnp.where(m < 0, larger, smaller)
    pull = 2 * k * gap
    squared = pull**2 + kept
    still = squared == 0
    rate = jnp.where(still, 0.0, jnp.sqrt(jnp.where(still, 1.0, squared)))
    short = jnp.where(still, 1.0, kept / jnp.where(still, 1.0, rate * (rate + pull)))  # 1 − pull/rate
    decay, spent = jnp.exp(-rate * ts), ts * _pair.mean_decay(rate * ts)

    def later(value, near, far):
        top = value * (far + near * decay) + kept * spent
        bottom = value * spent + near + far * decay
        return top / jnp.where(bottom > 0, bottom, 1.0)

    return _Sums(later(plus, short, 2 - short), later(minus, 2 - short, short), plus, minus, k, balance, apart)
