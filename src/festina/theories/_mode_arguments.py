"""Checks of the numbers that a user gives to the closed forms of one mode: what float64 does not hold is refused."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Numbers
from .._foundation.checks import MOST, RANGE, is_traced, matching, real_array
from .._foundation.errors import BadInput, shown

LIMITS = np.finfo(float)


def mode_numbers(
    first: object, name: str, singular_value: object, variance: object, start: object
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Times or strengths, s, λ and a₀ as arrays of float64; all but times have to broadcast against each other."""
    numbers = {name: first, "singular_value": singular_value, "variance": variance, "start": start}
    apart = {name: real_array(numbers.pop(name), name)} if name == "times" else {}  # times have axes of their own
    checked = apart | matching(numbers, least={"variance": 0}, within=(0.0, RANGE[1]))
    for argument, value in checked.items():
        if not is_traced(value) and np.any(small := (value != 0) & (np.abs(value) < LIMITS.tiny)):
            raise BadInput(
                f"{argument} = {value[small][0]:g}",
                f"0, or at least {LIMITS.tiny:.2g}: processors round what is below to 0",
                f"use 0, or measure {argument} in a smaller unit",
            )
    return checked[name], checked["singular_value"], checked["variance"], checked["start"]


def mode_depth(depth: object) -> int | float:
    """A number of layers, or math.inf."""
    if isinstance(depth, (int, float, np.integer, np.floating)) and not isinstance(depth, (bool, np.timedelta64)):
        if depth == math.inf:
            return math.inf
        if 1 <= depth <= MOST and depth % 1 == 0:
            return int(depth)
    raise BadInput(f"depth = {shown(depth)}", "1, 2, 3, … or math.inf", "depth counts layers: hidden layers + 1")


def check_product(variance: Numbers, start: Numbers, depth: int | float) -> None:
    """Refuse a variance × start outside of float64's range: in deep chains it is a rate."""
    if is_traced(variance, start) or depth < 2:
        return
    variance, start = np.broadcast_arrays(variance, start)
    with np.errstate(over="ignore", under="ignore"):
        product = np.abs(variance * start)
    bad = (variance != 0) & (start != 0) & ((product < LIMITS.tiny) | (product > LIMITS.max))
    if np.any(bad):
        raise BadInput(
            f"variance × start = {variance[bad][0]:g} × {start[bad][0]:g}",
            "a product that float64 holds: the rate at which the start is felt",
            "measure strengths in other units: start / unit and variance × unit, with the unit s/variance",
        )


def check_clock(times: Numbers, s: Numbers, variance: Numbers, start: Numbers, depth: int | float) -> None:
    """Deep chains are solved on the clock D |a₀|^(1−2/D) t, on which float64 has to hold rates and times."""
    if is_traced(times, s, variance, start) or depth < 3:
        return
    factor, m = (1.0, 1.0) if depth == math.inf else (depth, 1 - 2 / depth)
    with np.errstate(divide="ignore"):
        size, last = np.log(np.abs(start)), np.log(np.max(times, initial=0.0) * factor)
        exponents = m * size + last + np.maximum(np.log(np.abs(s)), np.log(variance) + size)
    if np.any(exponents > math.log(LIMITS.max)):
        raise BadInput(
            f"a fastest rate × the last time of about 1e{np.max(exponents) / math.log(10):.0f}",
            f"at most {LIMITS.max:.2g}, which float64 holds",
            "ask for earlier times: the mode is long where it stays",
        )


def without_nan(answer: Float[AnyArray, "*shape"], **numbers: Numbers) -> Float[AnyArray, "*shape"]:
    """The answer, unless some of it is no number: then these numbers are refused."""
    if is_traced(answer) or not np.isnan(answer).any():
        return answer
    sizes = ", ".join(f"{name} = {np.max(np.abs(values)):g}" for name, values in numbers.items())
    raise BadInput(
        f"no answer in float64 for numbers up to {sizes}",
        "rates and times whose products float64 holds",
        "measure times and strengths in other units",
    )
