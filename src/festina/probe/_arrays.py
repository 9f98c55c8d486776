"""The same measurements from activities that were recorded elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from .._foundation.checks import real_array
from .._foundation.errors import BadInput
from .._setup.trajectory import Trajectory
from ..observables.compared_points import checked_points
from ._arguments import increasing, joined
from ._backend import RECORDED_TIME, Backend
from ._measure import Record, checked_names, compares_pairs, needs_outputs

BACKEND = Backend("probe.arrays", RECORDED_TIME)


def arrays(
    times: ArrayLike,
    hidden: Mapping[str, ArrayLike],
    outputs: ArrayLike | None = None,
    *,
    inputs: object = None,
    targets: ArrayLike | None = None,
    pairs: Iterable[tuple[int, int]] | None = None,
    observe: str | Iterable[str] | None = None,
) -> Trajectory:
    """What a probe would have measured, from recorded activities.

    Args:
        times: when they were recorded, increasing: steps, epochs or time.
        hidden: {layer: (time, sample, …)}; activities are flattened for each sample.
        outputs: (time, sample, …), for "output_distance" and "outputs"; with targets also "output_alignment", "loss"
            and "mean_gap".
        inputs: (sample, …), or a tuple or dict of such arrays, for the gap between the inputs of each pair, in
            `provenance`.
        targets: (sample, feature).
        pairs: pairs of samples to compare, counted from 0; all of them if there are at most 100 samples.
        observe: as in `probe.torch`; a representation is called "representation of <layer>".

    Distances are squared and summed over units. Other tools may give the mean over units, or the root: convert them.
    """
    when = increasing(times)
    if not isinstance(hidden, Mapping) or not hidden:
        raise BadInput(
            f"hidden is {type(hidden).__name__}",
            "activities of each layer: {layer: (time, sample, unit)}",
            'give for example hidden={"hidden": activities}',
        )
    activity = {str(layer): _recorded(values, f"hidden[{layer!r}]", len(when)) for layer, values in hidden.items()}
    samples = next(iter(activity.values())).shape[1]
    given = None if outputs is None else _recorded(outputs, "outputs", len(when))
    for whose, values in (*activity.items(), *([] if given is None else [("outputs", given)])):
        if values.shape[1] != samples:
            raise BadInput(
                f"{values.shape[1]} samples in {whose!r}, and {samples} in {next(iter(activity))!r}",
                "activities of the same samples everywhere",
                "record all layers at the same inputs",
            )
    names = checked_names(observe, outputs=given is not None, targets=targets is not None and given is not None)
    known = checked_points(
        None if inputs is None else joined(inputs), targets, pairs, samples=samples, paired=compares_pairs(names)
    )
    first = {layer: values[0] for layer, values in activity.items()}
    record = Record(known, names, first, None if given is None else given[0])
    needed = needs_outputs(names)
    for i, time in enumerate(when):
        now = {layer: values[i] for layer, values in activity.items()}
        record.add(time, now, given[i] if needed and given is not None else None)
    return record.trajectory(BACKEND, {"layers": list(activity)})


def _recorded(values: ArrayLike, argument: str, times: int) -> Float[np.ndarray, "time sample unit"]:
    """Activity in float64, flattened for each sample."""
    array = real_array(values, argument)
    if array.ndim < 2 or len(array) != times or 0 in array.shape:
        raise BadInput(
            f"{argument} has shape {array.shape}, for {times} times",
            "(time, sample, unit)",
            "put time first, then the sample",
        )
    return array.reshape(*array.shape[:2], -1)
