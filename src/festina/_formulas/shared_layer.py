"""Three linear layers of which the one in the middle is shared: a mode of M domains, one pathway each.

Encoders, the shared layer and decoders start alike, with strength b₀ in every mode. A mode of strength s obeys

    ḃ₁ = b₂b₃ (s − b₁b₂b₃),   ḃ₂ = M b₁b₃ (s − b₁b₂b₃),   ḃ₃ = b₁b₂ (s − b₁b₂b₃)

so that b₃ = b₁ and M b₁² − b₂² is conserved: the shared layer ends √M times as strong. With K trained pairs per domain,
time runs K times as fast.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy import integrate, optimize

from .._foundation.arrays import AnyArray


def layers(
    times: Float[AnyArray, " time"], strengths: Float[AnyArray, " mode"], sharing: int, start: float
) -> tuple[Float[np.ndarray, "mode time"], Float[np.ndarray, "mode time"]]:
    """b₁ = b₃ and b₂ of modes of these strengths."""
    modes = np.asarray(strengths)

    def slope(_: float, state: np.ndarray) -> np.ndarray:
        outer, shared = state.reshape(2, -1)
        missing = outer * (modes - outer**2 * shared)
        return np.concatenate([shared * missing, sharing * outer * missing])

    begin = np.full(2 * len(modes), start)
    solution = integrate.solve_ivp(
        slope, (0, times[-1]), begin, method="DOP853", t_eval=times, rtol=1e-10, atol=1e-12
    ).y.reshape(2, len(modes), -1)
    return solution[0], solution[1]


def half_time(strength: float, sharing: int, start: float) -> float:
    """∫ db₁/ḃ₁ from b₀ to b₁b₂b₃ = s/2, with b₂² = M b₁² − (M − 1) b₀² and b₃ = b₁."""

    def shared(b: float) -> float:
        return np.sqrt(sharing * b**2 - (sharing - 1) * start**2)

    end = optimize.brentq(lambda b: b**2 * shared(b) - strength / 2, start, strength)
    return integrate.quad(lambda b: 1 / (b * shared(b) * (strength - b**2 * shared(b))), start, end, limit=500)[0]
