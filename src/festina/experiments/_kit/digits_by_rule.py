"""Digits learned by gradient descent and by Adam: distances in the middle layer beside what the theory predicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ... import Setup
from ..._foundation.checks import positive, whole
from . import digit_images
from .digit_structure import (
    ENTRIES,
    SHOWN,
    correlations,
    draw_matrix,
    in_layer,
    learning_digits,
    sorted_by_digit,
    weighted,
)
from .digit_structure import trained as trained_on_pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

LAYERS, BATCH = 4, 64
IMAGES = 10000  # number of images, from the first on, that eq. 50 as run sums over
THEORY, CLASSES = "eq. 50", "classes"


def compared(
    samples: int, units: int, settings: Mapping[str, tuple[float, float, int]], seed: int
) -> tuple[Dataset, dict[str, Setup]]:
    """Squared distances of the first hundred digits under each rule, and their correlation with predictions.

    `settings` gives gain, rate and epochs for "descent" and for "Adam". The second prediction is 1 for digits of two
    classes and 0 for those of one: it has no theory in it.
    """
    import xarray

    samples, units = whole(samples, "digits", least=SHOWN), whole(units, "digit_units")
    task, data_name = digit_images.digits(samples)
    digit = np.asarray((task.labels or {})["digit"])
    order, images = sorted_by_digit(digit), min(samples, IMAGES)
    raw = np.asarray(digit_images.digits(images, "raw")[0].x)
    same = digit[order][:, None] == digit[order]
    predicted = {THEORY: weighted(raw, digit[:images], order), CLASSES: (~same).astype(float)}
    setups = {
        f"{data_name}, {rule}": learning_digits(
            task,
            units=units,
            layers=LAYERS,
            gain=gain,
            rule="SGD" if rule == "descent" else rule,
            lr=positive(lr, "lr"),
            batch=BATCH,
            epochs=epochs,
        )
        for rule, (gain, lr, epochs) in settings.items()
    }
    runs = [trained_on_pairs(setup, [seed], order, ("loss", "distance")) for setup in setups.values()]
    distances = [in_layer(run, LAYERS // 2)[0, -1] for run in runs]
    r = [[correlations(distance, prediction, same) for prediction in predicted.values()] for distance in distances]
    data = xarray.Dataset(
        {
            "digit_loss": (("rule", "digit_record"), [run["loss"][0] for run in runs]),
            "digit_distance": (("rule", "row", "column"), distances),
            "digit_foreseen": (("row", "column"), predicted[THEORY]),
            "digit_correlation": (("rule", "prediction", "entries"), r),
            "digit": ("row", digit[order].astype(int)),
        },
        coords={"rule": list(settings), "prediction": list(predicted), "entries": list(ENTRIES)},
        attrs={"digits": data_name, "digit_samples": samples, "digit_adam": list(settings["Adam"])},
    )
    return data, setups


def draw(panels: Iterable[Axes], data: Dataset) -> None:
    """The squared distances under each rule, and those that the theory predicts; three panels."""
    *trained_panels, last = panels
    r, digit = data.digit_correlation.sel(prediction=THEORY), data.digit.values
    for axes, rule in zip(trained_panels, data.rule.values, strict=True):
        over_all, across = (float(r.sel(rule=rule, entries=entries)) for entries in ("all", "between classes"))
        title = f"{data.attrs['digits']}, {rule}\nr = {over_all:.2f}, between classes {across:.2f}"
        draw_matrix(axes, data.digit_distance.sel(rule=rule).values, digit, title)
    draw_matrix(last, data.digit_foreseen.values, digit, f"theory: {THEORY}, as run")
