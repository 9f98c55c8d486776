"""The conserved quantity and the end of learning: final distances and their distribution, regimes, rates, plateaus.

A = H − κXP/H is conserved, so that H → A/2 + √(A²/4 + B²) [vanrossem2024, eqs. 10 and 24]. The symbols are those of
this package; all numbers broadcast against each other.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri

from ..._foundation.arrays import Numbers
from ..._foundation.checks import RANGE, is_traced, matching, number_array
from ..._foundation.errors import BadInput
from ..._foundation.precision import in_double
from .. import two_layer_mode
from .flow import components, layers
from .pair import Floats, Pair, Start, root


class DistanceLaw(NamedTuple):
    """The distribution of the final distance H∞ if that of A is normal: 2B sinh(ln(H∞/B)) = A relates the two."""

    mean: Numbers
    spread: Numbers
    scale: Numbers  # B

    def cdf(self, distance: object) -> Floats:
        """The probability that H∞ < distance; 0 for distances of at most 0, and 1 for infinity."""
        if not is_traced(distance):
            held = number_array(distance, "distance")
            distance = np.minimum(held, RANGE[1]) if held.dtype.kind == "f" else distance
        return self._cdf(matching({"distance": distance, "the law": self.scale})["distance"])

    @in_double
    def _cdf(self, distance: Numbers) -> Floats:
        distance = jnp.asarray(distance, float)
        some = jnp.where(distance <= 0, 1.0, distance)
        return jnp.where(distance <= 0, 0.0, ndtr((some - self.scale**2 / some - self.mean) / self.spread))

    def quantile(self, share: object) -> Floats:
        """The distance below which this share of the draws ends; share ½ gives the median, and 1 gives infinity."""
        known = matching({"share": share, "the law": self.scale})["share"]
        if not is_traced(known) and not np.all((known >= 0) & (known <= 1)):
            worst = known.flat[np.argmax(np.abs(known - 0.5))]
            raise BadInput(f"share = {worst:g}", "0 <= share <= 1", "give a share of the draws, for example 0.9")
        return self._quantile(known)

    @in_double
    def _quantile(self, share: Numbers) -> Floats:
        return settled(self.mean + self.spread * ndtri(jnp.asarray(share, float)), self.scale)


def law_of_final_distance(mean: Numbers, pair: Pair, spread: Numbers | None = None) -> DistanceLaw:
    """The distribution of H∞ over networks in which H0/X and P0/H0 are normal with this mean and standard deviation.

    The standard deviation `spread` equals the mean if it is not given [vanrossem2024, eqs. 44 and 45]; eqs. 46 to 48
    hold for κ = 1 only. Both must be positive, as ratios of squared distances are.
    """
    ratio, spread = pair.tau_y / pair.tau_h, mean if spread is None else spread
    shift, width = pair.input_gap * mean * (1 - ratio), pair.input_gap * spread * jnp.hypot(1.0, ratio)
    return DistanceLaw(shift, width, rich_distance(pair))


def invariant(distance: Numbers, output: Numbers, input_gap: Numbers, tau_h: Numbers, tau_y: Numbers) -> Numbers:
    """A = H − κXP/H, the same at all times [vanrossem2024, eq. 24]."""
    return distance - tau_y / tau_h * input_gap * output / distance


def _invariant(distance: Numbers, output: Numbers, pair: Pair) -> Numbers:
    return invariant(distance, output, pair.input_gap, pair.tau_h, pair.tau_y)


def rich_distance(pair: Pair) -> Floats:
    """B = √(κXY), the final distance of small starts [vanrossem2024, eq. 11]."""
    return jnp.sqrt(pair.tau_y / pair.tau_h * pair.input_gap) * root(pair.target_gap)


def lazy_limit(constant: Numbers) -> Floats:
    """The final distance for |A| ≫ B, max(A, 0)."""
    return jnp.maximum(constant, 0.0)


def regime(distance: Numbers, output: Numbers, pair: Pair) -> Floats:
    """|A|/B: well below 1 the task decides the final distance, well above 1 the initialisation does."""
    return jnp.abs(_invariant(distance, output, pair)) / rich_distance(pair)


def settled(constant: Numbers, scale: Numbers) -> Floats:
    """A/2 + √(A²/4 + B²) = B exp(asinh(A/(2B))) [vanrossem2024, eq. 10], where nothing cancels."""
    constant, scale = jnp.broadcast_arrays(jnp.asarray(constant, float), jnp.asarray(scale, float))
    nothing = (constant == 0) & (scale == 0)
    larger = jnp.hypot(jnp.where(nothing, 1.0, constant / 2), scale) + jnp.abs(constant) / 2
    return jnp.where(nothing, 0.0, jnp.where(constant < 0, scale**2 / larger, larger))


def final_distance(start: Start, pair: Pair) -> Floats:
    """H at the end of learning [vanrossem2024, eq. 10]; 0 for the starts that never leave the saddle."""
    along, off = components(start.output, start.alignment, pair.target_gap)
    hidden = jnp.sqrt(jnp.asarray(start.distance, float))
    # If the targets are equal, the order of the rates differs, and a component that is not learned may remain.
    held = two_layer_mode.basis(*layers(hidden, along / hidden, off / start.distance, pair)[1]).learned == 0
    stuck = held & (jnp.asarray(pair.target_gap) > 0)
    constant = _invariant(start.distance, start.output, pair)
    return jnp.where(stuck, 0.0, settled(constant, rich_distance(pair)))


def fixed_point_rates(distance: Numbers, output: Numbers, pair: Pair) -> tuple[Floats, Floats]:
    """The rates at which the end is approached: H∞/τ_y orthogonal to the target, √(A² + 4B²)/(2τ_y) along it.

    These are the rates of P and w; the vector v⊥ decays at half of the first rate.
    """
    constant, scale = _invariant(distance, output, pair), rich_distance(pair)
    return settled(constant, scale) / pair.tau_y, jnp.hypot(constant, 2 * scale) / (2 * pair.tau_y)


def plateau(output0: Numbers, alignment0: Numbers, target_gap: Numbers) -> Floats:
    """The plateau of the loss for large weights with A < 0, (Y/8) sin²θ; θ is the angle between v and the target."""
    output0 = jnp.asarray(output0, float)
    off = components(output0, alignment0, target_gap)[1]
    return target_gap / 8 * jnp.where(output0 > 0, off / jnp.where(output0 > 0, output0, 1.0), 1.0)


def depth_law(input_gap: Numbers, target_gap: Numbers, layer: Numbers, depth: Numbers) -> Floats:
    """X^(1−l/L) Y^(l/L), l = layer + 1: the final distance in a hidden layer of a balanced chain of L matrices."""
    share = (jnp.asarray(layer) + 1) / depth
    return jnp.asarray(input_gap, float) ** (1 - share) * jnp.asarray(target_gap, float) ** share
