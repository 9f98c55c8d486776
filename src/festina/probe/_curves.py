"""Curves of distances that were measured elsewhere, as a trajectory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from .._formulas.two_points.checks import no_angle
from .._foundation.checks import real_array
from .._foundation.errors import BadInput
from .._setup.trajectory import Trajectory
from ..observables.compared_points import Pairs, checked_pairs, facts_of, names_of
from ..theories._fitting.two_point_records import beyond_noise
from ._arguments import increasing
from ._backend import RECORDED_TIME, Backend

BACKEND = Backend("probe.curves", RECORDED_TIME)
Curve: TypeAlias = Float[np.ndarray, "time pair"]


def curves(
    times: ArrayLike,
    *,
    distance: ArrayLike | Mapping[str, ArrayLike],
    output_distance: ArrayLike,
    output_alignment: ArrayLike,
    input_gap: ArrayLike,
    target_gap: ArrayLike,
    mean_gap: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    pairs: Iterable[tuple[int, int]] | None = None,
) -> Trajectory:
    """A trajectory of your own curves of distances, for `fit`, `scan` and `compare`.

        recorded = fs.probe.curves(
            times, distance=H, output_distance=P, output_alignment=w, input_gap=1.0, target_gap=0.5
        )
        fs.fit("TwoPoint", recorded)

    Curves are (time,) of one pair of inputs, or (time, pair).

    Args:
        times: when they were recorded, increasing: steps, epochs or time.
        distance: H = |h₂ − h₁|² in a layer, or {layer: H}.
        output_distance: P = |f₂ − f₁|².
        output_alignment: w = P − (f₂ − f₁)·(y₂ − y₁).
        input_gap: X = |x₂ − x₁|², one number, or one for every pair.
        target_gap: Y = |y₂ − y₁|², likewise.
        mean_gap: |ȳ − f̄|² of the means of a pair, for the third rate of a fit.
        loss: (time,), ½ mean |y − f|² over the samples of these pairs.
        pairs: the numbers of the two samples of every pair; (0, 1), (2, 3), … if they are not given.

    Distances are sums of squares over units. Always |P − w| ≤ √(PY); curves are refused if errors of 5 % of Y (or of
    the largest P) in P and w cannot explain the violation.
    """
    when = increasing(times)
    P = _curve(output_distance, "output_distance", len(when))
    shape = P.shape
    w = _curve(output_alignment, "output_alignment", len(when), shape)
    layers = _layers(distance, len(when), shape)
    X, Y = (_gap(value, name, shape[1]) for name, value in (("input_gap", input_gap), ("target_gap", target_gap)))
    for name, values in {"output_distance": P, **{f"distance of {layer!r}": H for layer, H in layers.items()}}.items():
        _need_squares(values, name)
    if not (X > 0).all():
        raise BadInput(f"input_gap = {X.min():g}", "input_gap > 0", "identical inputs have no two-point theory")
    _need_squares(Y, "target_gap")
    _need_an_angle(P, w, Y)
    values = {"distance": np.stack(list(layers.values()), axis=1), "output_distance": P, "output_alignment": w}
    axes = {"distance": ("time", "layer", "pair"), "output_distance": ("time", "pair")}
    axes["output_alignment"] = axes["output_distance"]
    if mean_gap is not None:
        values["mean_gap"] = _curve(mean_gap, "mean_gap", len(when), shape)
        axes["mean_gap"] = ("time", "pair")
        _need_squares(values["mean_gap"], "mean_gap")
    if loss is not None:
        values["loss"] = real_array(loss, "loss", ndim=1)
        if len(values["loss"]) != len(when):
            raise BadInput(
                f"loss has {len(values['loss'])} values, for {len(when)} times", "one for every time", "match them"
            )
        axes["loss"] = ("time",)
        _need_squares(values["loss"], "loss")
    numbers = _pairs(pairs, shape[1])
    return Trajectory(
        when,
        values,
        axes,
        BACKEND.name,
        {
            **facts_of(len(np.unique(numbers)), numbers, X, Y),
            "layers": list(layers),
            "versions": BACKEND.versions,
            **BACKEND.clock_facts(None),
        },
        {"layer": np.array(list(layers)), "pair": names_of(numbers)},
    )


def _curve(values: object, name: str, times: int, shape: tuple[int, ...] | None = None) -> Curve:
    """A curve of every pair in float64, in the shape of the others."""
    array = real_array(values, name, ndim=(1, 2))
    given = array.shape
    array = array[:, None] if array.ndim == 1 else array
    if len(array) != times or not array.shape[1] or (shape is not None and array.shape != shape):
        count = "" if shape is None else f" and {shape[1]} pair{'s' * (shape[1] != 1)}"
        raise BadInput(
            f"{name} has shape {given}, for {times} times{count}",
            "(time,) of one pair, or (time, pair)",
            "put time first, and give every curve at all times and for the same pairs",
        )
    return array


def _layers(distance: object, times: int, shape: tuple[int, ...]) -> dict[str, Curve]:
    if not isinstance(distance, Mapping):
        return {"hidden": _curve(distance, "distance", times, shape)}
    if not distance:
        raise BadInput("distance = {}", "at least one layer", 'give for example distance={"hidden": H}')
    return {str(layer): _curve(H, f"distance[{layer!r}]", times, shape) for layer, H in distance.items()}


def _gap(value: ArrayLike, name: str, pairs: int) -> Float[np.ndarray, " pair"]:
    array = real_array(value, name, ndim=(0, 1))
    if array.ndim and len(array) != pairs:
        raise BadInput(
            f"{len(array)} values of {name}, and {pairs} pair(s)", "one number, or one per pair", "match them"
        )
    return np.broadcast_to(array, pairs)


def _need_squares(values: np.ndarray, name: str) -> None:
    if (values < 0).any():
        raise BadInput(f"{name} down to {values.min():g}", f"{name} >= 0", "give squared distances")


def _need_an_angle(P: Curve, w: Curve, Y: Float[np.ndarray, " pair"]) -> None:
    over = beyond_noise(P, w, Y)
    if (over <= 0).all():
        return
    time, pair = np.unravel_index(np.argmax(over), over.shape)
    numbers = P[time, pair], w[time, pair], Y[pair]
    raise no_angle(*numbers, "output_distance", "output_alignment", "target_gap", f", at record {time}")


def _pairs(pairs: object, count: int) -> Pairs:
    numbers = np.arange(2 * count).reshape(count, 2) if pairs is None else checked_pairs(pairs)
    if len(numbers) != count:
        raise BadInput(f"{len(numbers)} pairs, and curves of {count}", "one pair of samples for each", "match them")
    return numbers
