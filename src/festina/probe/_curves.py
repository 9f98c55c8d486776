"""Curves of distances that were measured elsewhere, as a trajectory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .._errors import BadInput
from .._fit_records import beyond_noise
from .._noun import real_array
from .._points import checked_pairs, facts_of, names_of
from .._trajectory import Trajectory
from .._two_point import no_angle
from ._measure import versions


def curves(
    times: Any,
    *,
    distance: Any,
    output_distance: Any,
    output_alignment: Any,
    input_gap: Any,
    target_gap: Any,
    mean_gap: Any = None,
    loss: Any = None,
    pairs: Iterable[tuple[int, int]] | None = None,
) -> Trajectory:
    """A trajectory of your own curves of distances, for `fit`, `scan` and `compare`.

        seen = fs.probe.curves(
            times, distance=H, output_distance=P, output_alignment=w, input_gap=1.0, target_gap=0.5
        )
        fs.fit("TwoPoint", seen)

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

    All are squared distances, summed over units. As for any two vectors, |P − w| ≤ √(PY): curves that miss
    this by more than errors of P and w of 5% of Y, or of the largest P, can do are refused.
    """
    times = real_array(times, "times", ndim=1)
    if not len(times) or (np.diff(times) <= 0).any():
        raise BadInput(f"times = {times}", "at least one time, increasing", "sort the records by time")
    P = _curve(output_distance, "output_distance", len(times))
    shape = P.shape
    w = _curve(output_alignment, "output_alignment", len(times), shape)
    layers = _layers(distance, len(times), shape)
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
        values["mean_gap"] = _curve(mean_gap, "mean_gap", len(times), shape)
        axes["mean_gap"] = ("time", "pair")
        _need_squares(values["mean_gap"], "mean_gap")
    if loss is not None:
        values["loss"] = real_array(loss, "loss", ndim=1)
        if len(values["loss"]) != len(times):
            raise BadInput(
                f"loss has {len(values['loss'])} values, for {len(times)} times", "one for every time", "match them"
            )
        axes["loss"] = ("time",)
        _need_squares(values["loss"], "loss")
    listed = _pairs(pairs, shape[1])
    return Trajectory(
        times,
        values,
        axes,
        "probe.curves",
        {**facts_of(len(np.unique(listed)), listed, X, Y), "layers": list(layers), "versions": versions(())},
        {"layer": np.array(list(layers)), "pair": names_of(listed)},
    )


def _curve(values: Any, name: str, times: int, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """(time, pair) in float64, in the shape of the others."""
    array = real_array(values, name, ndim=(1, 2))
    array = array[:, None] if array.ndim == 1 else array
    if len(array) != times or not array.shape[1] or (shape is not None and array.shape != shape):
        count = "" if shape is None else f" and {shape[1]} pair{'s' * (shape[1] != 1)}"
        raise BadInput(
            f"{name} has shape {np.shape(values)}, for {times} times{count}",
            "(time,) of one pair, or (time, pair)",
            "put time first, and give every curve at all times and for the same pairs",
        )
    return array


def _layers(distance: Any, times: int, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    if not isinstance(distance, Mapping):
        return {"hidden": _curve(distance, "distance", times, shape)}
    if not distance:
        raise BadInput("distance = {}", "at least one layer", 'give for example distance={"hidden": H}')
    return {str(layer): _curve(H, f"distance[{layer!r}]", times, shape) for layer, H in distance.items()}


def _gap(value: Any, name: str, pairs: int) -> np.ndarray:
    array = real_array(value, name, ndim=(0, 1))
    if array.ndim and len(array) != pairs:
        raise BadInput(
            f"{len(array)} values of {name}, and {pairs} pair(s)", "one number, or one per pair", "match them"
        )
    return np.broadcast_to(array, pairs)


def _need_squares(values: np.ndarray, name: str) -> None:
    if (values < 0).any():
        raise BadInput(f"{name} down to {values.min():g}", f"{name} >= 0", "give squared distances")


def _need_an_angle(P: np.ndarray, w: np.ndarray, Y: np.ndarray) -> None:
    over = beyond_noise(P, w, Y)
    if (over <= 0).all():
        return
    time, pair = np.unravel_index(np.argmax(over), over.shape)
    numbers = P[time, pair], w[time, pair], Y[pair]
    raise no_angle(*numbers, "output_distance", "output_alignment", "target_gap", f", at record {time}")


def _pairs(pairs: Any, count: int) -> np.ndarray:
    listed = np.arange(2 * count).reshape(count, 2) if pairs is None else checked_pairs(pairs)
    if len(listed) != count:
        raise BadInput(f"{len(listed)} pairs, and curves of {count}", "one pair of samples for each", "match them")
    return listed
