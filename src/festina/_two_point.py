"""Two points in a network that is linear between them: their distance in a layer and in the output, in closed form.

With the target along one axis, dh = r n and D_y n = v = (v∥, v⊥), gradient flow on both Jacobians without rotation of
the hidden direction n is [vanrossem2024, eq. 7], in variables that are regular where the points meet in the layer:

    dr/dt = −α v·(r v − Δy*),      dv/dt = −β r (r v − Δy*),      α = X/(2τ_h),  β = 1/(2τ_y).

Divided by √α and √β these are two scalar layers and an idle part, `_pair` with s = √(αβY) and λ = αβ, and their
integral is elementary, although [vanrossem2024, A.3] says that there is none.

Symbols: H, P, squared distances in the layer and the output; w = P − dy·Δy*; X, Y, squared distances of inputs and
targets; p = (P − w)/√Y, q = P − p², the parts of the output along the target and off it; κ = τ_y/τ_h;
A = H − κXP/H, conserved [vanrossem2024, eq. 24]; B = √(κXY).

Distances broadcast against each other; time is the last axis of what depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri

from . import _pair
from ._checks import RANGE, is_traced, matching, number_array, real_array
from ._errors import BadInput
from ._precision import in_double

SMALLEST, LARGEST = 1e-110, 1e110  # of numbers that are multiplied
SLACK = 1e-6  # of Cauchy and Schwarz: records in float32 miss by 1e-7
SHARP = 32  # units of rounding below which the output has no part off the target


class Curves(NamedTuple):
    """Squared distances in the layer (H) and in the output (P), and w = P − dy·Δy*."""

    distance: Any
    output: Any
    alignment: Any


class Vectors(NamedTuple):
    """r, v∥ and v⊥: a hidden distance with a sign, and the decoder along and off the target."""

    hidden: Any
    along: Any
    off: Any


class Law(NamedTuple):
    """The law of the final distance where A is normal: 2B sinh(ln(H∞/B)) = A maps the one to the other."""

    mean: Any
    spread: Any
    scale: Any  # B

    def cdf(self, distance: Any) -> Any:
        """P(H∞ < distance); 0 for distances of 0 and below, which none has, and 1 for infinity."""
        if not is_traced(distance):
            held = number_array(distance, "distance")
            distance = np.minimum(held, RANGE[1]) if held.dtype.kind == "f" else distance
        return self._cdf(matching({"distance": distance, "the law": self.scale})["distance"])

    @in_double
    def _cdf(self, distance: Any) -> Any:
        distance = jnp.asarray(distance, float)
        some = jnp.where(distance <= 0, 1.0, distance)
        return jnp.where(distance <= 0, 0.0, ndtr((some - self.scale**2 / some - self.mean) / self.spread))

    def quantile(self, share: Any) -> Any:
        """The distance below which this share of the draws ends; share ½ is the median, and 1 has no bound."""
        share = matching({"share": share, "the law": self.scale})["share"]
        if not is_traced(share) and not np.all((share >= 0) & (share <= 1)):
            worst = share.flat[np.argmax(np.abs(share - 0.5))]
            raise BadInput(f"share = {worst:g}", "0 <= share <= 1", "give a share of the draws, for example 0.9")
        return self._quantile(share)

    @in_double
    def _quantile(self, share: Any) -> Any:
        return settled(self.mean + self.spread * ndtri(jnp.asarray(share, float)), self.scale)


def states(
    ts: Any,
    distance0: Any,
    output0: Any,
    alignment0: Any,
    input_gap: Any,
    target_gap: Any,
    tau_h: Any,
    tau_y: Any,
) -> Curves:
    """H, P and w at `ts` for every rate, start and number of outputs; exact, and without overflow."""
    along0, off0 = components(output0, alignment0, target_gap)
    return from_components(ts, distance0, along0, off0, input_gap, target_gap, tau_h, tau_y)


def components(output: Any, alignment: Any, target_gap: Any) -> tuple[Any, Any]:
    """p and q: the output along the target, and the square of the rest; all is rest if targets are equal."""
    output, gap = jnp.asarray(output, float), root(target_gap)
    bound = root(output)
    along = jnp.where(gap > 0, (output - alignment) / jnp.where(gap > 0, gap, 1.0), 0.0)
    along = jnp.clip(along, -bound, bound)
    rest = output - along**2
    return along, jnp.where(rest > SHARP * jnp.finfo(rest.dtype).eps * output, rest, 0.0)


def from_components(
    ts: Any, distance0: Any, along0: Any, off0: Any, input_gap: Any, target_gap: Any, tau_h: Any, tau_y: Any
) -> Curves:
    """`states` from p0 and q0."""
    hidden0 = jnp.sqrt(jnp.asarray(distance0, float))
    hidden, along, kept = _flow(ts, hidden0, along0 / hidden0, off0 / distance0, input_gap, target_gap, tau_h, tau_y)
    rest = jnp.expand_dims(off0 / distance0, -1) * kept**2
    return _curves(hidden, along, rest, jnp.expand_dims(root(target_gap), -1))


def vectors(ts: Any, start: Vectors, input_gap: Any, target_gap: Any, tau_h: Any, tau_y: Any) -> Vectors:
    """r, v∥ and v⊥ at `ts`, from those at time 0."""
    hidden0, along0, off0 = map(jnp.asarray, start)
    hidden, along, kept = _flow(ts, hidden0, along0, off0**2, input_gap, target_gap, tau_h, tau_y)
    return Vectors(hidden, along, jnp.expand_dims(off0, -1) * kept)


def _flow(ts, hidden0, along0, off0, input_gap, target_gap, tau_h, tau_y):
    """r, v∥ and v⊥/v⊥(0), from r0, v∥0 and |v⊥0|²."""
    (unit_h, unit_y), numbers = _layers(hidden0, along0, off0, input_gap, target_gap, tau_h, tau_y)
    first, last, kept = _pair.beside_idle(ts, *(jnp.expand_dims(number, -1) for number in numbers))
    return first * jnp.expand_dims(unit_h, -1), last * jnp.expand_dims(unit_y, -1), kept


def _layers(hidden, along, off, input_gap, target_gap, tau_h, tau_y):
    """√α and √β; s, λ, w₁, w₂ and |u|² of `_pair`."""
    encoder, decoder = jnp.asarray(input_gap) / (2 * tau_h), 1 / (2 * jnp.asarray(tau_y))
    units = jnp.sqrt(encoder), jnp.sqrt(decoder)
    pull = units[0] * units[1] * root(target_gap)
    return units, (pull, encoder * decoder, hidden / units[0], along / units[1], off / decoder)


def start(distance: Any, output: Any, alignment: Any, target_gap: Any) -> Vectors:
    """r, v∥ and v⊥ of a start with r > 0."""
    along, off = components(output, alignment, target_gap)
    hidden = jnp.sqrt(jnp.asarray(distance, float))
    return Vectors(hidden, along / hidden, root(off) / hidden)


def read(state: Vectors, target_gap: Any) -> Curves:
    """H, P and w of r, v∥ and v⊥."""
    return _curves(state.hidden, state.along, state.off**2, root(target_gap))


def _curves(hidden, along, rest, gap) -> Curves:
    distance, along = hidden**2, hidden * along
    off = distance * rest
    return Curves(distance, along**2 + off, along * (along - gap) + off)


def field(state: Vectors, input_gap: Any, target_gap: Any, tau_h: Any, tau_y: Any) -> Vectors:
    """dr/dt, dv∥/dt and dv⊥/dt; [vanrossem2024, eq. 7] is singular at H = 0, this is not."""
    hidden, along, off = state
    error = hidden * along - root(target_gap)
    encoder, decoder = input_gap / (2 * tau_h), 1 / (2 * tau_y)
    return Vectors(-encoder * (along * error + hidden * off**2), -decoder * hidden * error, -decoder * hidden**2 * off)


def invariant(distance: Any, output: Any, input_gap: Any, tau_h: Any, tau_y: Any) -> Any:
    """A = H − κXP/H, the same at all times [vanrossem2024, eq. 24]."""
    return distance - tau_y / tau_h * input_gap * output / distance


def rich_distance(input_gap: Any, target_gap: Any, tau_h: Any, tau_y: Any) -> Any:
    """B = √(κXY), the final distance of small starts [vanrossem2024, eq. 11]."""
    return jnp.sqrt(tau_y / tau_h * input_gap) * root(target_gap)


def regime(distance: Any, output: Any, input_gap: Any, target_gap: Any, tau_h: Any, tau_y: Any) -> Any:
    """|A|/B: well below 1 the final distance is that of the task, well above it that of the start."""
    constant = invariant(distance, output, input_gap, tau_h, tau_y)
    return jnp.abs(constant) / rich_distance(input_gap, target_gap, tau_h, tau_y)


def settled(constant: Any, scale: Any) -> Any:
    """A/2 + √(A²/4 + B²) = B exp(asinh(A/(2B))) [vanrossem2024, eq. 10], where nothing cancels."""
    constant, scale = jnp.broadcast_arrays(jnp.asarray(constant, float), jnp.asarray(scale, float))
    nothing = (constant == 0) & (scale == 0)
    larger = jnp.hypot(jnp.where(nothing, 1.0, constant / 2), scale) + jnp.abs(constant) / 2
    return jnp.where(nothing, 0.0, jnp.where(constant < 0, scale**2 / larger, larger))


def lazy_limit(constant: Any) -> Any:
    """The final distance for |A| ≫ B, max(A, 0)."""
    return jnp.maximum(constant, 0.0)


def final_distance(
    distance0: Any, output0: Any, alignment0: Any, input_gap: Any, target_gap: Any, tau_h: Any, tau_y: Any
) -> Any:
    """H at the end of learning [vanrossem2024, eq. 10]; 0 for the starts that never leave the saddle."""
    along, off = components(output0, alignment0, target_gap)
    hidden = jnp.sqrt(jnp.asarray(distance0, float))
    task = (input_gap, target_gap, tau_h, tau_y)
    # Without a pull the rates are ordered otherwise, and what is not learned may stay.
    held = _pair.basis(*_layers(hidden, along / hidden, off / distance0, *task)[1]).learned == 0
    stuck = held & (jnp.asarray(target_gap) > 0)
    constant = invariant(distance0, output0, input_gap, tau_h, tau_y)
    return jnp.where(stuck, 0.0, settled(constant, rich_distance(input_gap, target_gap, tau_h, tau_y)))


def fixed_point_rates(
    distance: Any, output: Any, input_gap: Any, target_gap: Any, tau_h: Any, tau_y: Any
) -> tuple[Any, Any]:
    """How fast the end is approached: H∞/τ_y by what is off the target, √(A² + 4B²)/(2τ_y) by what is along it.

    These are the rates of P and w; the vector v⊥ falls at half of the first.
    """
    constant = invariant(distance, output, input_gap, tau_h, tau_y)
    scale = rich_distance(input_gap, target_gap, tau_h, tau_y)
    return settled(constant, scale) / tau_y, jnp.hypot(constant, 2 * scale) / (2 * tau_y)


def loss(ts: Any, curves: Curves, target_gap: Any, mean_gap0: Any = 0.0, tau_mean: Any = 1.0) -> Any:
    """½|ȳ − ȳ*|² + ⅛|dy − Δy*|², where the mean output is learned with its own τ.

    `mean_gap0` is |ȳ − ȳ*|² at time 0. [vanrossem2024, eqs. 9 and 22] print τ_y for the mean.
    """
    mean_gap0, tau_mean, target_gap = (jnp.expand_dims(number, -1) for number in (mean_gap0, tau_mean, target_gap))
    apart = jnp.maximum(2 * curves.alignment + target_gap - curves.output, 0.0)
    return mean_gap0 * jnp.exp(-2 * jnp.asarray(ts) / tau_mean) / 2 + apart / 8


def plateau(output0: Any, alignment0: Any, target_gap: Any) -> Any:
    """The loss that large weights with A < 0 fall to and rest at, (Y/8) sin²θ; θ is the angle of v and the target."""
    output0 = jnp.asarray(output0, float)
    off = components(output0, alignment0, target_gap)[1]
    return target_gap / 8 * jnp.where(output0 > 0, off / jnp.where(output0 > 0, output0, 1.0), 1.0)


def law_of_final_distance(
    mean: Any, input_gap: Any, target_gap: Any, tau_h: Any, tau_y: Any, spread: Any = None
) -> Law:
    """The law of H∞ over networks in which H0/X and P0/H0 are normal of this mean and spread.

    `spread` is the mean if it is not given [vanrossem2024, eqs. 44 and 45]; eqs. 46 to 48 hold for κ = 1 only. Both
    are positive, as ratios of squared distances are.
    """
    ratio, spread = tau_y / tau_h, mean if spread is None else spread
    scale = rich_distance(input_gap, target_gap, tau_h, tau_y)
    return Law(input_gap * mean * (1 - ratio), input_gap * spread * jnp.hypot(1.0, ratio), scale)


def depth_law(input_gap: Any, target_gap: Any, layer: Any, depth: Any) -> Any:
    """X^(1−l/L) Y^(l/L), l = layer + 1: the final distance in a hidden layer of a balanced chain of L matrices."""
    share = (jnp.asarray(layer) + 1) / depth
    return jnp.asarray(input_gap, float) ** (1 - share) * jnp.asarray(target_gap, float) ** share


def root(number: Any) -> Any:
    """√, with slope 0 where it vanishes."""
    number = jnp.asarray(number, float)
    some = number > 0
    return jnp.where(some, jnp.sqrt(jnp.where(some, number, 1.0)), 0.0)


def plainly_fine(numbers: dict[str, Any]) -> bool:
    """Whether these are numbers that need no further look; a hundredth of the time of `checked`."""
    if numbers.keys() & {"along0", "depth"} or not all(
        isinstance(value, float) or (type(value) is int and abs(value) < 2**53) for value in numbers.values()
    ):
        return False
    for name, value in numbers.items():
        if not SMALLEST <= (value if name in _ADVICE else abs(value) or 1.0) <= LARGEST:
            return False
    P, w, Y = (numbers.get(name) for name in ("output0", "alignment0", "target_gap"))
    return P is None or w is None or Y is None or abs(P - w) <= (1 + SLACK) * math.sqrt(P * Y)


def checked(numbers: dict[str, Any], shown: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """A start and its constants as float64 arrays that a pair of points can have; traced values pass.

    `shown` are the names that a user knows them by, where they are others.
    """
    words = {name: shown.get(name, name) for name in numbers}
    do = "give one entry for every pair, in the same order; time is not an axis of the start"
    known = matching({words[name]: value for name, value in numbers.items()}, within=(SMALLEST, LARGEST), do=do)
    numbers = dict(zip(numbers, known.values(), strict=True))
    known = {name: value for name, value in numbers.items() if not is_traced(value)}
    for name, value in known.items():
        least = ">=" if name in _MAY_VANISH else ">"
        if name in _ADVICE and not np.all(value >= 0 if least == ">=" else value > 0):
            raise BadInput(f"{words[name]} = {np.min(value):g}", f"{words[name]} {least} 0", _ADVICE[name])
    angle = ("output0", "alignment0", "target_gap")
    if known.keys() >= set(angle):
        _check_angle(*(known[name] for name in angle), *(words[name] for name in angle))
    turned = ("distance0", "decoder0", "along0")
    if known.keys() >= set(turned):
        _check_product(*(known[name] for name in turned))
    if known.keys() >= {"layer", "depth"}:
        _check_place(known["layer"], known["depth"])
    return numbers


def checked_times(ts: Any, rank: tuple[int, ...]) -> Any:
    """Times from 0 on, of one of these ranks; traced ones pass untouched."""
    # Of times that are fine as they come, two bounds say so, NaN included; a third of the time of the whole check.
    plain = type(ts) is np.ndarray and ts.dtype == float and ts.ndim == 1 and ts.size
    if plain and np.minimum.reduce(ts) >= 0 and np.maximum.reduce(ts) < np.inf:
        return ts
    ts = real_array(ts, "ts", ndim=rank)
    if not is_traced(ts) and np.any(ts < 0):
        raise BadInput(f"ts down to {np.min(ts):g}", "ts >= 0", "learning starts at time 0")
    return ts


def check_lengths(ts: Any, curves: Any) -> None:
    """Time is the last axis of every curve."""
    for name, curve in zip(Curves._fields, curves, strict=False):
        if np.shape(curve)[-1:] != np.shape(ts):
            raise BadInput(
                f"curves.{name} of shape {np.shape(curve)}, and {np.size(ts)} times in ts",
                "one entry for every time, along the last axis",
                "give the times at which the curves were computed",
            )


_TAU = "give a time constant; that of gradient descent is 2/(learning rate) steps"
_ADVICE = {
    "distance0": "the two points must differ in the layer; give the squared distance |h(x2) − h(x1)|²",
    "distance": "give the squared distance |h(x2) − h(x1)|² at a time when the two points differ in the layer",
    "decoder0": "give the squared norm of the decoder along the target, |v|²",
    "output0": "give the squared distance of the outputs, |f(x2) − f(x1)|²",
    "output": "give the squared distance of the outputs, |f(x2) − f(x1)|²",
    "input_gap": "identical inputs have no two-point theory; give the squared distance |x2 − x1|² of two that differ",
    "target_gap": "give the squared distance of the targets, |y2 − y1|²",
    "tau_h": _TAU,
    "tau_y": _TAU,
    "tau_mean": "give a time constant; that of gradient descent is 1/(learning rate) steps",
    "mean_gap0": "give the squared distance of the mean output from the mean target",
    "mean": "give the mean of H0/X, a ratio of squared distances",
    "spread": "give a standard deviation",
    "layer": "count hidden layers from 0",
    "depth": "give the number of matrices, hidden layers + 1",
}
_MAY_VANISH = {"decoder0", "output0", "output", "target_gap", "mean_gap0", "layer"}


def _check_angle(output: Any, alignment: Any, target_gap: Any, P: str, w: str, Y: str) -> None:
    bound, product = np.sqrt(output * target_gap), np.abs(output - alignment)
    over = product - bound - SLACK * np.maximum(np.maximum(bound, np.abs(alignment)), output)
    if np.all(over <= 0):
        return
    output, alignment, target_gap = _at_worst(over, output, alignment, target_gap)
    raise no_angle(output, alignment, target_gap, P, w, Y)


def no_angle(output: float, alignment: float, target_gap: float, P: str, w: str, Y: str, where: str = "") -> BadInput:
    """What is wrong with numbers that no two vectors have; P, w and Y are what the user calls them."""
    return BadInput(
        f"{w} = {alignment:g} with {P} = {output:g} and {Y} = {target_gap:g}{where}: dy·Δy* = {output - alignment:g}",
        f"|{P} − {w}| <= √({P} {Y}) = {np.sqrt(output * target_gap):g}, as for any two vectors",
        f"give {w} = |dy|² − dy·(y2 − y1), and squared distances everywhere",
    )


def _at_worst(over: Any, *numbers: Any) -> list[float]:
    """The numbers where a bound is exceeded most."""
    worst = np.unravel_index(np.argmax(over), np.shape(over))
    return [float(number[worst]) for number in np.broadcast_arrays(*numbers)]


def _check_product(distance: Any, decoder: Any, along: Any) -> None:
    over = np.abs(along) - (1 + SLACK) * np.sqrt(distance * decoder)
    if np.all(over <= 0):
        return
    distance, decoder, along = _at_worst(over, distance, decoder, along)
    raise BadInput(
        f"along0 = {along:g} with distance0 = {distance:g} and decoder0 = {decoder:g}",
        f"|along0| <= √(distance0 decoder0) = {np.sqrt(distance * decoder):g}, as for any two vectors",
        "give distance0 = |u|², decoder0 = |v|² and along0 = u·v",
    )


def _check_place(layer: Any, depth: Any) -> None:
    for name, number in (("layer", layer), ("depth", depth)):
        fractions = number != np.round(number)
        if np.any(fractions):
            raise BadInput(f"{name} = {number[fractions][0]:g}", f"a whole number for {name}", _ADVICE[name])
    layer, depth = np.broadcast_arrays(layer, depth)
    beyond = layer > depth - 2
    if np.any(beyond):
        one, matrices = layer[beyond][0], depth[beyond][0]
        raise BadInput(
            f"layer = {one:g} with depth = {matrices:g}",
            "layer <= depth − 2, the last hidden layer",
            f"{_ADVICE['layer']}, and {_ADVICE['depth']}",
        )
