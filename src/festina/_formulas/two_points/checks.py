"""Numbers that two points can have: one check of starts, constants and times, under the names of the public functions.

Traced values are unknown, and pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

from ..._foundation.arrays import Numbers
from ..._foundation.checks import instance, is_traced, matching, real_array
from ..._foundation.errors import BadInput
from .pair import Curves

Floats: TypeAlias = Float[np.ndarray, "..."]
SMALLEST, LARGEST = 1e-110, 1e110  # of numbers that are multiplied
SLACK = 1e-6  # tolerance of the Cauchy-Schwarz inequality: float32 records violate it by 1e-7
EXACT = 2**53  # whole numbers below this are float64

_TAU = "give a time constant; that of gradient descent is 2/(learning rate) steps"
# What to do about a number that is negative, or 0 where it may not be.
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


def checked(numbers: dict[str, Any], shown: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """Refuse a start and constants that no pair of points can have; plain numbers stay, others become float64.

    `shown` gives the names under which the user knows the numbers, where these differ.
    """
    if _clearly_possible(numbers):
        return numbers
    words = {name: shown.get(name, name) for name in numbers}
    do = "give one entry for every pair, in the same order; time is not an axis of the start"
    known = matching({words[name]: value for name, value in numbers.items()}, within=(SMALLEST, LARGEST), do=do)
    arrays = dict(zip(numbers, known.values(), strict=True))
    known = {name: value for name, value in arrays.items() if not is_traced(value)}
    for name, value in known.items():
        least = ">=" if name in _MAY_VANISH else ">"
        if name in _ADVICE and not np.all(value >= 0 if least == ">=" else value > 0):
            raise BadInput(f"{words[name]} = {np.min(value):g}", f"{words[name]} {least} 0", _ADVICE[name])
    angle = ("output0", "alignment0", "target_gap")
    if known.keys() >= set(angle):
        _check_angle([known[name] for name in angle], [words[name] for name in angle])
    turning = ("distance0", "decoder0", "along0")
    if known.keys() >= set(turning):
        _check_product(*(known[name] for name in turning))
    if known.keys() >= {"layer", "depth"}:
        _check_place(known["layer"], known["depth"])
    return arrays


def _clearly_possible(numbers: dict[str, Any]) -> bool:
    """Whether these are plain numbers within all bounds; a hundred times faster than the check of arrays."""
    if "along0" in numbers or "depth" in numbers:
        return False
    for name, value in numbers.items():
        if not isinstance(value, float) and not (type(value) is int and abs(value) < EXACT):
            return False
        if not SMALLEST <= (value if name in _ADVICE else abs(value) or 1.0) <= LARGEST:
            return False
    P, w, Y = (numbers.get(name) for name in ("output0", "alignment0", "target_gap"))
    return P is None or w is None or Y is None or bool(abs(P - w) <= (1 + SLACK) * math.sqrt(P * Y))


def are_plain(numbers: Mapping[str, Any]) -> bool:
    """Whether all checked numbers are Python's floats or ints."""
    return all(isinstance(value, (float, int)) for value in numbers.values())


def checked_times(ts: Any, rank: tuple[int, ...]) -> Any:
    """Times from 0 on, with as many axes as one of `rank`; traced times pass unchecked."""
    # For a plain float array two bounds, which NaN fails too, are enough: a third of the time of the full check.
    plain = type(ts) is np.ndarray and ts.dtype == float and ts.ndim == 1 and ts.size
    if plain and np.minimum.reduce(ts) >= 0 and np.maximum.reduce(ts) < np.inf:
        return ts
    ts = real_array(ts, "ts", ndim=rank)
    if not is_traced(ts) and np.any(ts < 0):
        raise BadInput(f"ts down to {np.min(ts):g}", "ts >= 0", "learning starts at time 0")
    return ts


def checked_curves(curves: Any) -> Curves:
    """H, P and w as arrays of numbers."""
    do = "give what `trajectory` returns"
    instance(curves, "curves", tuple, do)
    if len(curves) != len(Curves._fields):
        raise BadInput(f"curves has {len(curves)} entries", f"{', '.join(Curves._fields)}", do)
    known = (real_array(curve, f"curves.{name}") for curve, name in zip(curves, Curves._fields, strict=True))
    return Curves(*known)


def check_lengths(ts: Numbers, curves: Sequence[Numbers]) -> None:
    """Refuse curves whose last axis is not time."""
    for name, curve in zip(Curves._fields, curves, strict=False):
        if np.shape(curve)[-1:] != np.shape(ts):
            raise BadInput(
                f"curves.{name} of shape {np.shape(curve)}, and {np.size(ts)} times in ts",
                "one entry for every time, along the last axis",
                "give the times at which the curves were computed",
            )


def _check_angle(numbers: Sequence[Floats], words: Sequence[str]) -> None:
    output, alignment, target_gap = numbers
    bound, product = np.sqrt(output * target_gap), np.abs(output - alignment)
    over = product - bound - SLACK * np.maximum(np.maximum(bound, np.abs(alignment)), output)
    if np.any(over > 0):
        (P, w, Y), worst = words, _at_worst(over, *numbers)
        raise no_angle(worst[0], worst[1], worst[2], P, w, Y)


def no_angle(output: float, alignment: float, target_gap: float, P: str, w: str, Y: str, where: str = "") -> BadInput:
    """The error for numbers that violate the Cauchy-Schwarz inequality; P, w and Y are the user's names for them."""
    return BadInput(
        f"{w} = {alignment:g} with {P} = {output:g} and {Y} = {target_gap:g}{where}: dy·Δy* = {output - alignment:g}",
        f"|{P} − {w}| <= √({P} {Y}) = {np.sqrt(output * target_gap):g}, as for any two vectors",
        f"give {w} = |dy|² − dy·(y2 − y1), and squared distances everywhere",
    )


def _at_worst(over: Numbers, *numbers: Numbers) -> list[float]:
    """The numbers where a bound is exceeded most."""
    worst = np.unravel_index(np.argmax(over), np.shape(over))
    return [float(number[worst]) for number in np.broadcast_arrays(*numbers)]


def _check_product(distance: Floats, decoder: Floats, along: Floats) -> None:
    over = np.abs(along) - (1 + SLACK) * np.sqrt(distance * decoder)
    if np.all(over <= 0):
        return
    distance0, decoder0, along0 = _at_worst(over, distance, decoder, along)
    raise BadInput(
        f"along0 = {along0:g} with distance0 = {distance0:g} and decoder0 = {decoder0:g}",
        f"|along0| <= √(distance0 decoder0) = {np.sqrt(distance0 * decoder0):g}, as for any two vectors",
        "give distance0 = |u|², decoder0 = |v|² and along0 = u·v",
    )


def _check_place(layer: Floats, depth: Floats) -> None:
    for name, number in (("layer", layer), ("depth", depth)):
        fractions = number != np.round(number)
        if np.any(fractions):
            raise BadInput(f"{name} = {number[fractions][0]:g}", f"a whole number for {name}", _ADVICE[name])
    layer, depth = np.broadcast_arrays(layer, depth)
    beyond = layer > depth - 2
    if np.any(beyond):
        raise BadInput(
            f"layer = {layer[beyond][0]:g} with depth = {depth[beyond][0]:g}",
            "layer <= depth − 2, the last hidden layer",
            f"{_ADVICE['layer']}, and {_ADVICE['depth']}",
        )
