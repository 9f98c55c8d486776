"""Formulas of the race of subsets of contexts, on numbers that have been checked.

`context_race` states the equations, lists the symbols, and has the same functions for users, with checks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import gamma

from .._foundation.arrays import AnyArray, Numbers


class ItemMode(NamedTuple):
    """An item mode as each pathway sees it: singular values for the common pathway and a subset; input variances."""

    common: Numbers  # s_c
    common_variance: Numbers  # d_c
    raw: Numbers  # s_raw, of a subset on the whole target
    residual: Numbers  # S_m, of a subset on the residual of the common pathway
    variance: Numbers  # D_m


def item_mode(value: Numbers, items: int, contexts: int, size: int) -> ItemMode:
    """s_c, d_c, s_raw, S_m and D_m of a mode with singular value `value` of the tree, for subsets of `size`."""
    count = items * contexts
    unit = value / count
    return ItemMode(
        unit * math.sqrt(contexts * (contexts + 1)),
        contexts / count,
        unit * math.sqrt(size * (size + 1)),
        unit * math.sqrt(size * (contexts - size) / contexts),
        size / count,
    )


def gate_overlap(contexts: int, size: int) -> float:
    """f_m."""
    return math.comb(contexts, size) * (contexts - size) / (contexts * (contexts - 1))


def kept_in_rotation(contexts: int, size: int) -> tuple[float, float]:
    """K and K′."""
    mode = item_mode(1.0, 2, contexts, size)
    raw, rest = float(mode.raw / mode.common), float(mode.residual / mode.common)  # R and r
    taken = math.sqrt(raw**2 - rest**2)  # q

    def kept(rate: float) -> float:
        ends = gamma(1 + (rate + rest + taken) / 4) * gamma(1 + (rate + rest - taken) / 4)
        return gamma(1 + rate / 2) * gamma(1 + rest / 2) / ends

    growing = (1 + rest / raw) / 2 * kept(raw) ** 2
    return float(growing), float(-0.5 * taken / raw * kept(raw) * kept(-raw))


def arrival(mode: ItemMode, common_start: Numbers) -> Float[AnyArray, "*shape"]:
    """t_c."""
    # ln(e^r − 1): the quotient itself may be beyond float64.
    r = jnp.log(mode.common) - jnp.log(mode.common_variance) - jnp.log(common_start)
    begins_below = r > 0
    left = r + jnp.log1p(-jnp.exp(-jnp.where(begins_below, r, 1.0)))
    return jnp.where(begins_below, left, math.log(np.finfo(float).tiny)) / (2 * mode.common)


def growth_until_arrival(mode: ItemMode, common_start: Numbers) -> Float[AnyArray, "*shape"]:
    """e^((s_raw − S_m) t_c): how much larger weights are after t_c than if they had always grown on the residual."""
    return jnp.exp((mode.raw - mode.residual) * arrival(mode, common_start))
