"""Two points in a network with one output: their hidden difference may rotate, and the integral is still known.

With u = dh and the decoder v, a vector like u, gradient flow is [vanrossem2024, eqs. 15 to 17]

    du/dt = α v (D − u·v),      dv/dt = β u (D − u·v),

with the letters of this package. It is the same for several outputs if dy is along the target and the target an
eigenvector of D_y D_yᵀ; v is then D_yᵀ Δy*/D. The solution in `flow` requires u and v to be parallel, but allows
outputs that are not along the target.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from ..._foundation.arrays import Numbers
from .. import two_layer_mode
from .ends import settled
from .pair import Curves, Floats, Pair, TurningStart, root


def rotated_final_distance(start: TurningStart, pair: Pair) -> Floats:
    """H at the end of learning for one output and any rotation.

    It is `final_distance` if and only if u and v are parallel.
    """
    ratio = pair.tau_y / pair.tau_h * pair.input_gap
    apart = ratio * jnp.maximum(start.distance * start.decoder - start.along**2, 0.0)
    return settled(start.distance - ratio * start.decoder, jnp.sqrt(ratio * pair.target_gap + apart))


def rotating(ts: Numbers, start: TurningStart, pair: Pair) -> Curves:
    """H, P and w at `ts` for one output and any rotation of the hidden difference."""
    later = _later(ts, start, pair)
    total, balance = (later.plus + later.minus) / 2, later.balance
    # (S + c)/(2β), where c = β|u|² − α|v|² may be negative.
    bottom = jnp.where(balance < 0, total - balance, 1.0)
    twice = jnp.where(balance < 0, (later.apart + 4 * later.k**2 * later.p**2) / bottom, total + balance)
    gap = jnp.expand_dims(root(pair.target_gap), -1)
    return Curves(twice * jnp.expand_dims(jnp.asarray(pair.tau_y), -1), later.p**2, later.p * (later.p - gap))


def growth_factors(ts: Numbers, start: TurningStart, pair: Pair) -> tuple[Floats, Floats]:
    """cosh θ and sinh θ at `ts`, where u/√α = cosh θ u₀/√α + sinh θ v₀/√β, and v/√β has u₀ and v₀ exchanged.

    One output, as in `rotating`: u/√α ± v/√β keep their directions, and grow by e^(±θ).
    """
    later = _later(ts, start, pair)
    return later.cosh, later.sinh


class _Later(NamedTuple):
    """S₊ and S₋ at some times, S± = α|v|² + β|u|² ± 2kp; p, cosh θ and sinh θ; and the constants of motion."""

    plus: Floats
    minus: Floats
    p: Floats
    cosh: Floats
    sinh: Floats
    k: Floats
    balance: Floats  # β|u|² − α|v|²
    apart: Floats  # 4k²(|u|²|v|² − p²)


def _later(ts: Numbers, start: TurningStart, pair: Pair) -> _Later:
    """S± grow by e^(±2θ), and e^(2θ) = a/b obeys a Riccati equation, with Z = √((2kD)² + S₊S₋) and S± at time 0:

    a = 2 − σ + σ e^(−Zt) + S₋ (1 − e^(−Zt))/Z,   b = σ + (2 − σ) e^(−Zt) + S₊ (1 − e^(−Zt))/Z,   σ = 1 − 2kD/Z

    Differences, which lose digits where one layer is much larger than the other, are replaced by closed forms:
    S₊ − S₋ = 4kp₀ and a − b = 4k (D − p₀) (1 − e^(−Zt))/Z. All other sums have terms of one sign, except that of p
    where p passes 0.
    """
    u, v, p, input_gap, target_gap, tau_h, tau_y = (
        jnp.expand_dims(jnp.asarray(number, float), -1) for number in (*start, *pair)
    )
    encoder, decoder, gap = input_gap / (2 * tau_h), 1 / (2 * tau_y), root(target_gap)
    k = jnp.sqrt(encoder * decoder)
    balance = decoder * u - encoder * v
    apart = 4 * k**2 * jnp.maximum(u * v - p**2, 0.0)
    product = balance**2 + apart  # S₊S₋
    larger = encoder * v + decoder * u + 2 * k * jnp.abs(p)
    smaller = product / jnp.where(larger > 0, larger, 1.0)
    plus, minus = jnp.where(p < 0, smaller, larger), jnp.where(p < 0, larger, smaller)
    pull = 2 * k * gap
    squared = pull**2 + product
    still = squared == 0
    rate = jnp.where(still, 0.0, jnp.sqrt(jnp.where(still, 1.0, squared)))
    short = jnp.where(still, 1.0, product / jnp.where(still, 1.0, rate * (rate + pull)))
    decay, spent = jnp.exp(-rate * ts), ts * two_layer_mode.mean_decay(rate * ts)
    a, b = 2 - short + short * decay + minus * spent, short + (2 - short) * decay + plus * spent
    over = jnp.where(b > 0, b, 1.0)  # b underflows at late times if no part grows
    ahead = gap - p
    # S₊ a² − S₋ b² in terms of the smaller of S₊ and S₋.
    later = p * jnp.where(p < 0, b / a, a / over) + smaller * spent * ahead * (1 / a + 1 / over)
    # A component that is 0 may be given any growth factor.
    grown, fallen = jnp.where(plus > 0, root(a / over), 1.0), jnp.where(minus > 0, root(b / a), 1.0)
    sinh = jnp.where(smaller > 0, 2 * k * spent * ahead / jnp.sqrt(a * over), (grown - fallen) / 2)
    return _Later(plus * a / over, minus * b / a, later, (grown + fallen) / 2, sinh, k, balance, apart)
