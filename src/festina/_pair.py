"""Two scalar layers in a row, of any balance: one mode of a two-layer linear network.

    dw₁/dt = w₂ (s − λ w₁ w₂),      dw₂/dt = w₁ (s − λ w₁ w₂),      c = w₂² − w₁² is conserved.

This is the λ-balanced solution of `_riccati` for one input, one hidden unit and one output, in a form that is
stable for every c, 0 included, and for inputs without variance.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ._linalg import ROUNDING


def weights(times: Any, singular_value: Any, variance: Any, first: Any, last: Any) -> tuple[Any, Any]:
    """w₁ and w₂ at `times`; all arguments broadcast against each other."""
    first, last = jnp.asarray(first), jnp.asarray(last)
    total, difference = last + first, last - first  # c = their product: nothing cancels as it goes to 0
    slope = variance * total * difference / 2
    # √(s² + (λc/2)²), with a slope where both vanish.
    still = (singular_value == 0) & (slope == 0)
    rate = jnp.where(still, 0.0, jnp.hypot(jnp.where(still, 1.0, singular_value), slope))
    tilt = slope / jnp.where(still, 1.0, rate + singular_value)
    norm = jnp.sqrt(2 * (1 + tilt**2))
    smaller, larger = (1 - tilt) / norm, (1 + tilt) / norm
    learned, forgotten = (total + tilt * difference) / norm, (difference - tilt * total) / norm
    learned = jnp.where(jnp.abs(learned) > ROUNDING * jnp.abs(forgotten), learned, 0.0)
    lost = learned == 0
    decay = jnp.exp(-2 * rate * times)
    spent = jnp.where(still, times, -jnp.expm1(-2 * rate * times) / jnp.where(still, 1.0, 2 * rate))
    # Where nothing grows, both sides are divided by the decay, which vanishes late.
    growing = learned / jnp.sqrt(jnp.where(lost, 1.0, decay + variance * (learned**2 + forgotten**2 * decay) * spent))
    falling = forgotten * jnp.where(
        lost,
        jnp.exp(-rate * times) / jnp.sqrt(1 + variance * forgotten**2 * spent),
        decay / jnp.sqrt(jnp.where(lost, 1.0, decay + variance * (learned**2 + forgotten**2 * decay) * spent)),
    )
    return smaller * growing - larger * falling, larger * growing + smaller * falling


def field(singular_value: Any, variance: Any, first: Any, last: Any) -> tuple[Any, Any]:
    """dw₁/dt and dw₂/dt."""
    error = singular_value - variance * first * last
    return last * error, first * error
