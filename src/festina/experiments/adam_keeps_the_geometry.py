"""On images of digits, the two-point theory agrees with networks trained by Adam about as well as with gradient
descent.

Networks learn handwritten digits by gradient descent and by Adam. The squared distances of the first hundred digits in
the middle layer are compared with the two-point theory: a sum of its predictions over other images, eq. 50 on raw
pixels. `mnist_structure` explains this prediction; most of it says only which digits are of one class. The same holds
under Adam. There the correlation r depends on the learning rate and on when training ends, the second and third entry
of `digit_adam`. For all digits and seed 0, r at a rate of 10⁻⁴ is 0.72, 0.68 and 0.64 after 4, 10 and 20 epochs, and
0.40, 0.37 and 0.25 between classes; at 10⁻³ it is 0.63, 0.57 and 0.46 after 2, 5 and 10 epochs, and in the end −0.19
between classes. Under descent r rises to 0.71, and to 0.48 between classes. At 0.005, the rate of the source's code,
networks do not stay trained (the preset `as_run` of `mnist_structure`).

If `positions` is given, networks also learn images of blobs by Adam. From small weights the feature that is irrelevant
in a context collapses as it does under descent (`irrelevant_features_collapse`); from large weights it is lost in part.

The source prints none of its settings for Adam, so its rates are chosen here. The rate on digits was 10⁻³ until it
missed the claim r ≥ ½: the claim holds for the rate, not for Adam. The digits are those of MNIST where its files are
found (`festina.tasks.mnist`), else a synthetic stand-in, and then figure and claims say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np
import xarray

from .. import Setup, nets, rules, tasks
from .._figures.panels import key, panels
from ._kit import blobs, digit_images
from ._kit.digit_predictions import summed_over_images
from ._kit.digit_structure import (
    ENTRIES,
    SHOWN,
    correlations,
    draw_correlations,
    draw_maps,
    in_layer,
    learning_digits,
    relative,
    sorted_by_digit,
    trained,
)
from ._kit.labelled import table
from ._kit.pair_distances import evenly_recorded
from ._kit.parameters import POSITIVE, AtLeast, Count, Parts, Seed, checked
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEME, PLACE = "points", 4
REFERENCE = {"vanrossem2024": "figures 13 to 16, appendix C.3"}
QUICK = dict(positions=None, digits=1000, digit_units=50, digit_descent=(0.5, 0.05, 100), digit_adam=(0.5, 1e-3, 40))
CAPTION = """
**a** Squared distances between one hundred digits, sorted by class, in the middle hidden layer of a network trained by
gradient descent. The title names the data: MNIST, or a synthetic stand-in where its files are not found. **b** The same
for a network trained by Adam. **c** The distances that the two-point theory predicts, summed over other images (eq. 50,
on raw pixels). All three are divided by their mean over pairs of different classes, and share the scale below. **d**
Pearson correlation between the distances of either network and those of c, or a matrix of labels alone: 0 for two
digits of one class, 1 for two of different classes; over all entries, and over pairs of different classes only, where
labels predict nothing. Nothing is fitted.
"""
ALT = """
All three maps have dark blocks along the diagonal, one for each class; outside them the networks' maps are mottled and
that of the theory is nearly flat. Over all entries theory and labels correlate about equally with the network, under
both rules; between classes the correlation with the theory is much lower.
"""
RULES = {"descent": "SGD", "Adam": "Adam"}
THEORY, CLASSES = "eq. 50", "labels"
ROWS = {
    f"{rule}, {prediction}": f"{rule}: {name}"
    for rule in RULES
    for prediction, name in ((THEORY, "theory"), (CLASSES, "labels"))
}
LAYERS, BATCH = 4, 64
IMAGES = 10000  # number of images, from the first on, that eq. 50 on raw pixels sums over
BLOB_GAINS, BLOB_LR, BLOB_EPOCHS = {"small": 0.5, "large": 2.0}, 1e-3, 500

Training: TypeAlias = Annotated[tuple[float, float, int], Parts(gain=POSITIVE, rate=POSITIVE, epochs=AtLeast(1))]


@checked
def run(
    *,
    positions: int | None = 30,
    digits: Annotated[int, AtLeast(SHOWN)] = 60000,
    digit_units: Count = 100,
    digit_descent: Training = (0.5, 0.01, 20),
    digit_adam: Training = (0.5, 1e-4, 20),
    seed: Seed = 0,
) -> Result:
    """`digit_descent` and `digit_adam` are gain, rate and epochs on that many `digits`.

    `positions` is the number of positions of a blob in each direction; None leaves blobs out.
    """
    task, name = digit_images.digits(digits)
    digit, images = np.asarray((task.labels or {})["digit"]), min(digits, IMAGES)
    order, raw = sorted_by_digit(digit), np.asarray(digit_images.digits(images, "raw")[0].x)
    same = digit[order][:, None] == digit[order]
    predicted = {THEORY: summed_over_images(raw, digit[:images], order), CLASSES: (~same).astype(float)}
    shape = dict(units=digit_units, layers=LAYERS, batch=BATCH)
    setups = {
        rule: learning_digits(task, **shape, gain=gain, rule=RULES[rule], lr=lr, epochs=epochs)
        for rule, (gain, lr, epochs) in zip(RULES, (digit_descent, digit_adam), strict=True)
    }
    runs = {rule: trained(setup, [seed], order, ("loss", "distance")) for rule, setup in setups.items()}
    distances = {rule: in_layer(run, LAYERS // 2)[0, -1] for rule, run in runs.items()}
    r = [
        correlations(distance, prediction, same) for distance in distances.values() for prediction in predicted.values()
    ]
    data = xarray.Dataset(
        {
            "left": table([run["loss"][0, -1] / run["loss"][0, 0] for run in runs.values()], "rule"),
            "relative": relative(distances | {THEORY: predicted[THEORY]}, same),
            "correlation": table(r, "prediction", "entries"),
            "digit": table(digit[order].astype(int), "row"),
        },
        coords={"rule": list(RULES), "prediction": list(ROWS), "entries": list(ENTRIES)},
        attrs={"data": name, "adam": list(digit_adam)},
    )
    named = {f"{name}, {rule}": setup for rule, setup in setups.items()}
    if positions is not None:
        places = AtLeast(6)(positions, "positions")  # a batch of samples or more
        on_blobs = {weights: _on_blobs(places, gain) for weights, gain in BLOB_GAINS.items()}
        named |= {f"blobs, Adam, {weights} weights": setup for weights, setup in on_blobs.items()}
        measures = [blobs.measured(setup, [seed], places).isel(seed=0) for setup in on_blobs.values()]
        data["blob_collapse"] = table([one.collapse[LAYERS // 2] for one in measures], "weights")
        data["blob_left"] = table([one.loss[-1] / one.loss[0] for one in measures], "weights")
        data = data.assign_coords(weights=list(on_blobs))
    return Result(data, named)


def _on_blobs(positions: int, gain: float) -> Setup:
    """Blobs of two contexts, learned by Adam in batches."""
    task = tasks.blobs(positions)
    steps = BLOB_EPOCHS * (len(np.asarray(task.x)) // BATCH)
    net, rule = nets.MLP((100,) * LAYERS, "tanh", bias=True), rules.Adam(BLOB_LR, batch=BATCH)
    return evenly_recorded(task, net, gain, rule, steps, 20)


def claims(result: Result) -> list[Claim]:
    data, name, (_, rate, epochs) = result.data, result.data.attrs["data"], result.data.attrs["adam"]

    def r(rule: str, prediction: str = THEORY, entries: str = ENTRIES[0]) -> float:
        return float(data.correlation.sel(prediction=f"{rule}, {prediction}", entries=entries))

    adam, descent = r("Adam"), r("descent")
    how = f"{name}, Adam at rate {rate:g}, {epochs:g} epochs: correlation of distances"
    statements = [
        paper(
            f"{how} with eq. 50, minus that of descent",
            between(adam - descent, -0.25, 0.25),
            headline=True,
            panel="d",
        ),
        paper(f"{how} with eq. 50, over all entries", at_least(adam, 0.5), panel="d"),
        ours(
            f"{how} with the labels alone, over that with eq. 50", at_least(r("Adam", CLASSES) / adam, 0.7), panel="d"
        ),
        ours(
            f"{how} with eq. 50, between different classes over that for all entries",
            at_most(r("Adam", entries=ENTRIES[2]) / adam, 0.85),
            panel="d",
        ),
        ours(f"{name}: final loss over initial loss, larger of both rules", at_most(data.left.max(), 0.35)),
    ]
    if "blob_collapse" in data:
        small, large = (data.blob_collapse.sel(weights=weights) for weights in BLOB_GAINS)
        what = "variance of the irrelevant feature over that of the relevant one, middle layer"
        statements += [
            ours("Blobs, Adam: final loss over initial loss, largest", at_most(data.blob_left.max(), 0.1)),
            paper(f"Blobs, Adam, small initial weights: {what}", at_most(small, 0.1)),
            paper(f"Blobs, Adam: {what}, from large weights over small ones", at_least(large / small, 5.0)),
        ]
    return statements


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("abc;ddd", row=3.0, height_ratios=[1, 0.6])
    name = "MNIST" if data.attrs["data"] == digit_images.MNIST else "stand-in"
    draw_maps(
        at,
        data.relative,
        data.digit,
        {"descent": f"Descent ({name})", "Adam": f"Adam ({name})", THEORY: "Theory (eq. 50)"},
    )
    marks = draw_correlations(at["d"], data.correlation, ROWS)
    at["d"].set_title("Correlation of the networks with theory and labels")
    key(sheet, kinds=(), marks=marks)
    return sheet
