"""The two-point theory as functions of plain numbers or arrays: checked, compiled and in double precision.

They are public as those of `festina.theories.two_point`. Their arguments are the initial values `distance0`, `output0`
and `alignment0` (H, P and w at time 0) and the pair's constants `input_gap` (X), `target_gap` (Y), `tau_h` and `tau_y`.
All may be arrays that broadcast against each other, with one entry for every pair of points; time is the last axis of
the results.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Float

from ..._foundation.arrays import AnyArray, Numbers
from ..._foundation.checks import is_traced
from ..._foundation.precision import in_double
from ..._foundation.program_memory import compiled
from . import checks, ends, flow, rotation, single_pair
from .ends import DistanceLaw
from .pair import Curves, Floats, Pair, Start, TurningStart

T = TypeVar("T")


class _Compiled:
    """A formula of times or curves, and of named numbers: one program for every set of names."""

    def __init__(self, formula: Callable[..., Any]):
        def named(names, leading, numbers):
            return formula(*leading, **dict(zip(names, numbers, strict=True)))

        self.evaluate = in_double(compiled(named, static_argnums=0))

    def __call__(self, numbers: dict[str, Any], *leading: Any) -> Any:
        # Plain numbers travel as one array: each argument of its own costs microseconds.
        values = [*numbers.values()]
        return self.evaluate(tuple(numbers), leading, np.array(values, float) if checks.are_plain(numbers) else values)

    def over_time(self, numbers: dict[str, Any], ts: Any) -> Any:
        """The formula at several times, or at one time; in the latter case the result has no time axis."""
        if np.ndim(ts):
            return self(numbers, ts)
        return jax.tree.map(lambda curve: curve[..., 0], self(numbers, ts[None]))


def _public(formula: Callable[..., T]) -> Callable[..., T]:
    """A formula with checked arguments, numbers or arrays; a first argument `ts` is one time or several times."""
    signature, compiled = inspect.signature(formula), _Compiled(formula)

    @functools.wraps(formula)
    def checked(*args: object, **kwargs: object) -> T:
        given = signature.bind(*args, **kwargs).arguments
        ts = given.pop("ts", None)
        # An argument that is left at its default, None, is omitted.
        numbers = {name: value for name, value in given.items() if value is not signature.parameters[name].default}
        numbers = checks.checked(numbers)
        if "ts" not in signature.parameters:
            return compiled(numbers)
        return compiled.over_time(numbers, checks.checked_times(ts, (0, 1)))

    return checked


@_Compiled
def _states(
    ts: Numbers,
    distance0: Numbers,
    output0: Numbers,
    alignment0: Numbers,
    input_gap: Numbers,
    target_gap: Numbers,
    tau_h: Numbers,
    tau_y: Numbers,
) -> Curves:
    return flow.states(ts, Start(distance0, output0, alignment0), Pair(input_gap, target_gap, tau_h, tau_y))


def trajectory(
    ts: object,
    *,
    distance0: object,
    output0: object,
    alignment0: object,
    input_gap: object,
    target_gap: object,
    tau_h: object,
    tau_y: object,
) -> Curves:
    """H, P and w at times `ts`, as (distance, output, alignment): axes of the other numbers first, time last.

    `distance0`, `output0` and `alignment0` are H, P and w at time 0, `input_gap` and `target_gap` the squared distances
    X and Y. All are numbers, or arrays that broadcast against each other, with one entry for every pair of points.

    >>> pair = dict(distance0=1e-2, output0=1e-4, alignment0=-0.0099, input_gap=1.0, target_gap=1.0)
    >>> trajectory([0.0, 100.0], **pair, tau_h=2.0, tau_y=2.0).distance.round(6).tolist()
    [0.01, 1.0]
    """
    times = checks.checked_times(ts, (0, 1))
    numbers = checks.checked(
        {
            "distance0": distance0,
            "output0": output0,
            "alignment0": alignment0,
            "input_gap": input_gap,
            "target_gap": target_gap,
            "tau_h": tau_h,
            "tau_y": tau_y,
        }
    )
    if checks.are_plain(numbers) and not is_traced(times) and times.ndim == 1:
        plain = [*numbers.values()]
        curves = single_pair.curves(times, Start(*plain[:3]), Pair(*plain[3:]))
        if curves is not None:
            return curves
    return _states.over_time(numbers, times)


@_public
def final_distance(
    *,
    distance0: Numbers,
    output0: Numbers,
    alignment0: Numbers,
    input_gap: Numbers,
    target_gap: Numbers,
    tau_h: Numbers,
    tau_y: Numbers,
) -> Floats:
    """The squared distance in the layer at the end of learning; arguments as for `trajectory`.

    It is 0 where the two points merge: for equal targets with A ≤ 0, and for starts on the border between those whose
    hidden difference passes through zero and those whose hidden difference turns back before; these end at the saddle.
    """
    return ends.final_distance(Start(distance0, output0, alignment0), Pair(input_gap, target_gap, tau_h, tau_y))


@_public
def rotating(
    ts: Numbers,
    distance0: Numbers,
    decoder0: Numbers,
    along0: Numbers,
    input_gap: Numbers,
    target_gap: Numbers,
    tau_h: Numbers,
    tau_y: Numbers,
) -> Curves:
    """H, P and w at `ts` for one output and any rotation of the hidden difference.

    `distance0`, `decoder0` and `along0` are those of `rotated_final_distance`.
    """
    pair = Pair(input_gap, target_gap, tau_h, tau_y)
    return rotation.rotating(ts, TurningStart(distance0, decoder0, along0), pair)


@_public
def rotated_final_distance(
    distance0: Numbers,
    decoder0: Numbers,
    along0: Numbers,
    input_gap: Numbers,
    target_gap: Numbers,
    tau_h: Numbers,
    tau_y: Numbers,
) -> Floats:
    """H at the end of learning for one output and any rotation.

    `distance0` is |u|² of the hidden difference u, `decoder0` |v|² of the whole decoder v, seen along the target, and
    `along0` = u·v, with a sign. It is `final_distance` if and only if u and v are parallel.
    """
    pair = Pair(input_gap, target_gap, tau_h, tau_y)
    return rotation.rotated_final_distance(TurningStart(distance0, decoder0, along0), pair)


@_public
def rich_distance(input_gap: Numbers, target_gap: Numbers, tau_h: Numbers, tau_y: Numbers) -> Floats:
    """B = √(κXY), the final distance of small starts [vanrossem2024, eq. 11]."""
    return ends.rich_distance(Pair(input_gap, target_gap, tau_h, tau_y))


@_public
def regime(
    distance: Numbers, output: Numbers, input_gap: Numbers, target_gap: Numbers, tau_h: Numbers, tau_y: Numbers
) -> Floats:
    """|A|/B: well below 1 the task decides the final distance, well above 1 the initialisation does."""
    return ends.regime(distance, output, Pair(input_gap, target_gap, tau_h, tau_y))


@_public
def fixed_point_rates(
    distance: Numbers, output: Numbers, input_gap: Numbers, target_gap: Numbers, tau_h: Numbers, tau_y: Numbers
) -> tuple[Floats, Floats]:
    """The rates at which the end is approached: H∞/τ_y orthogonal to the target, √(A² + 4B²)/(2τ_y) along it.

    These are the rates of P and w; the vector v⊥ decays at half of the first rate.
    """
    return ends.fixed_point_rates(distance, output, Pair(input_gap, target_gap, tau_h, tau_y))


@_public
def law_of_final_distance(
    mean: Numbers,
    input_gap: Numbers,
    target_gap: Numbers,
    tau_h: Numbers,
    tau_y: Numbers,
    spread: Numbers | None = None,
) -> DistanceLaw:
    """The distribution of H∞ over networks in which H0/X and P0/H0 are normal with this mean and standard deviation.

    The standard deviation `spread` equals the mean if it is not given [vanrossem2024, eqs. 44 and 45]; eqs. 46 to 48
    hold for κ = 1 only. Both must be positive, as ratios of squared distances are.
    """
    return ends.law_of_final_distance(mean, Pair(input_gap, target_gap, tau_h, tau_y), spread)


invariant = _public(ends.invariant)
lazy_limit = _public(ends.lazy_limit)
plateau = _public(ends.plateau)
depth_law = _public(ends.depth_law)
_loss = _Compiled(flow.loss)


def loss(
    ts: object, curves: object, target_gap: object, mean_gap0: object = 0.0, tau_mean: object = 1.0
) -> Float[AnyArray, "*pairs time"]:
    """½|ȳ − ȳ*|² + ⅛|dy − Δy*|², where the mean output is learned with its own τ.

    `curves` is what `trajectory` returns at `ts`, and `mean_gap0` |ȳ − ȳ*|² at time 0. [vanrossem2024, eqs. 9 and 22]
    print τ_y for the mean.
    """
    numbers = checks.checked({"target_gap": target_gap, "mean_gap0": mean_gap0, "tau_mean": tau_mean})
    known = checks.checked_curves(curves)
    times = checks.checked_times(ts, (1,))
    checks.check_lengths(times, known)
    return _loss(numbers, times, known)
