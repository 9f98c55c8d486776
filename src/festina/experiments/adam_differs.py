"""Adam does not follow the time course of the two-point theory, but ends with the geometry that the theory predicts.

The same networks are trained by gradient descent and by Adam. On two points the two rates of the theory are fitted to
the curves of each rule. On exclusive or (XOR) the final distances of the six pairs of inputs are compared with the
theory, whose ratio of rates κ is fitted to descent on two points. The theory describes gradient flow: from small
weights descent waits on a plateau, at the loss Y/8 of a network that has learned only the mean of its targets; Y is
their squared distance. Adam divides gradients by their own size and leaves the plateau at once, so two rates do not
describe its curves. The theory still predicts which pairs end near and which far apart, but not how far: on exclusive
or the distances are up to several times those of descent from the same weights.

The source prints none of its settings for Adam, so there is one set of values here. On two points gain, rate and epochs
are those of its code, 1, 10⁻⁶ and 3000; on exclusive or Adam's rate is chosen here. `adam_keeps_the_geometry` compares
both rules on images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import xarray

from .. import Setup, fit, nets, rules, tasks
from .._figures.overlay import overlay
from .._figures.panels import border, key, panels
from .._figures.style import COLOURS, trained
from ..rules.base import rate_of
from ._kit.exclusive_or_pairs import OTHERS, PAIRS, THEORY, draw_pairs, of_one_target
from ._kit.labelled import table
from ._kit.pair_distances import correlation, each_alone, evenly_recorded, foreseen
from ._kit.parameters import POSITIVE, AtLeast, Count, Parts, Seed, Several, checked
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

    from .. import Net, Task

THEME, PLACE = "pairs", 8
REFERENCE = {"vanrossem2024": "figures 13 to 16, appendix C.3"}
QUICK = dict(
    layers=2,
    descent=(0.35, 0.02, 1500),
    adam=(0.35, 3e-5, 1000),
    xor_layers=4,
    xor_units=200,
    xor_descent=(0.4, 0.2, 1500),
    xor_adam=(0.4, 3e-5, 1000),
)
CAPTION = """
**a** Two points learned by gradient descent: the squared distances H of the two in the middle hidden layer and P in the
output, and the product w of their output difference with its error. The dashed curves are a fit of the two rates of the
two-point theory to all three. **b** The same for Adam: no two rates fit. **c** The loss on the two points. Descent
waits on the plateau (grey line), the loss of a network that has learned only the mean of the two targets; Adam does
not. **d** Exclusive or: distances of the six pairs of inputs in the middle hidden layer after training, by both rules.
In the shaded pairs both inputs have the same target. The bars are the distances that the theory predicts for each pair
from the initial weights, with the ratio of rates that was fitted to descent in a.
"""
ALT = """
Under descent the dashed fit lies on the curves, under Adam it misses them. The loss of descent stays on a plateau and
then drops, that of Adam falls without a stop. On exclusive or both rules put the two shaded pairs nearest to each other
and the other four far apart, Adam farther than descent.
"""
RULES = {"descent": rules.GradientDescent, "Adam": rules.Adam}
NAMES = {"descent": "gradient descent", "Adam": "Adam"}
CURVES = {"H": "H, hidden", "P": "P, output", "w": "w, output × error"}
CURVE_COLOURS = dict(zip(CURVES, COLOURS, strict=False))
RULE_COLOURS = dict(zip(RULES, COLOURS[3:], strict=False))
RECORDS = 200
LEARNED = 1e-3  # a network has learned once its loss is below this
NEAR = 0.2  # a loss that differs from the plateau's by less than this fraction is on the plateau

Recorded: TypeAlias = Annotated[tuple[float, float, int], Parts(gain=POSITIVE, rate=POSITIVE, epochs=AtLeast(RECORDS))]


@checked
def run(
    *,
    units: Count = 500,
    layers: Several = 20,
    descent: Recorded = (1.0, 0.005, 3000),
    adam: Recorded = (1.0, 1e-6, 3000),
    xor_units: Count = 500,
    xor_layers: Several = 20,
    xor_descent: Recorded = (0.85, 0.03, 3000),
    xor_adam: Recorded = (0.85, 1e-6, 3000),
    seed: Seed = 0,
) -> Result:
    """`descent` and `adam` are gain, rate and epochs on two points, `xor_descent` and `xor_adam` on exclusive or."""
    net = nets.MLP((units,) * layers, "leaky_relu", bias=True)
    xor_net = nets.MLP((xor_units,) * xor_layers, "relu", bias=True)
    on_pair = _setups(tasks.two_point(), net, descent, adam)
    on_xor = _setups(tasks.xor(form="bits"), xor_net, xor_descent, xor_adam)
    data = _of_both_rules(on_pair, on_xor, layers // 2, xor_layers // 2, seed)
    setups = {f"two points, {rule}": setup for rule, setup in on_pair.items()}
    setups |= {f"exclusive or, {rule}": setup for rule, setup in on_xor.items()}
    return Result(data, setups)


def _setups(task: Task, net: Net, *settings: tuple[float, float, int]) -> dict[str, Setup]:
    """Training on a task by each rule, all samples at once."""
    return {
        rule: evenly_recorded(task, net, gain, RULES[rule](lr), epochs, RECORDS)
        for rule, (gain, lr, epochs) in zip(RULES, settings, strict=True)
    }


def _of_both_rules(
    on_pair: dict[str, Setup], on_xor: dict[str, Setup], layer: int, xor_layer: int, seed: int
) -> Dataset:
    """Curves on two points with their fits, and distances on exclusive or with their predictions, by rule.

    All predictions, those for Adam included, take the rates that were fitted to descent.
    """
    pair, four = (each_alone((setup, seed) for setup in setups.values()) for setups in (on_pair, on_xor))
    fits = [fit("TwoPoint", run, layer=layer) for run in pair]
    curves = [
        [run["distance"][0, :, layer, 0], run["output_distance"][0, :, 0], run["output_alignment"][0, :, 0]]
        for run in pair
    ]
    epochs = [np.round(np.asarray(setup.times) / rate_of(setup.rule)) for setup in on_pair.values()]  # one step each
    xor_distance = [np.sqrt(run["distance"][0, -1, xor_layer].astype(float)) for run in four]
    xor_predicted = [foreseen(run, xor_layer, fits[0].rates) for run in four]
    return xarray.Dataset(
        {
            "curves": table(np.array(curves, float), "rule", "curve", "record", long_name="squared distance"),
            "fitted": table([fitted.predicted for fitted in fits], "rule", "curve", "record"),
            "r2": table([list(fitted.r2) for fitted in fits], "rule", "curve"),
            "applies": table([int(bool(fitted.applies)) for fitted in fits], "rule"),
            "predicted": table([foreseen(run, layer, fits[0].rates)[0] for run in pair], "rule"),
            "loss": table(np.array([run["loss"][0] for run in pair], float), "rule", "record"),
            "xor_left": table([float(run["loss"][0, -1]) for run in four], "rule"),
            "xor_distance": table(xor_distance, "rule", "pair"),
            "xor_predicted": table(np.sqrt(xor_predicted), "rule", "pair"),
        },
        coords={"rule": list(RULES), "curve": list(CURVES), "pair": list(PAIRS), "epoch": (("rule", "record"), epochs)},
        attrs={"plateau": pair[0].provenance["target_gap"][0] / 8},
    )


def _waiting(loss: DataArray, plateau: float) -> float:
    """The share of the epochs before the task is learned in which the loss is that of the plateau."""
    until = int(np.argmax(loss.values < LEARNED)) if (loss < LEARNED).any() else len(loss)
    return float(np.mean(np.abs(loss.values[:until] / plateau - 1) < NEAR))


def claims(result: Result) -> list[Claim]:
    data = result.data
    descent, adam = (data.sel(rule=rule) for rule in RULES)
    larger = adam.xor_distance.sel(pair=list(OTHERS)).mean() / descent.xor_distance.sel(pair=list(OTHERS)).mean()
    r, w = correlation(adam.xor_distance, adam.xor_predicted), data.r2.sel(curve="w").values
    waits = [_waiting(data.loss.sel(rule=rule), data.attrs["plateau"]) for rule in RULES]
    last = max(float(data.loss.isel(record=-1).max()), float(data.xor_left.max()))
    size = np.sqrt(adam.curves.sel(curve="H")[-1] / adam.predicted)
    return [
        paper(
            "Two points, Adam: R² of w, the output difference times its error, with two fitted rates",
            at_most(w[1], 0.5),
            fitted=True,
            headline=True,
            panel="b",
        ),
        paper(
            "Exclusive or, Adam: correlation of final distances with the theory over pairs of inputs",
            at_least(r, 0.9),
            fitted=True,
            headline=True,
            panel="d",
        ),
        paper(
            "Two points, gradient descent: R² of w with two fitted rates", at_least(w[0], 0.7), fitted=True, panel="a"
        ),
        ours(
            "Two points, Adam: verdict of the fit on the theory (1: it applies)",
            at_most(adam.applies, 0.0),
            fitted=True,
        ),
        ours("Final loss on two points and on exclusive or, largest: both rules learn both tasks", at_most(last, 1e-2)),
        ours(
            "Two points, descent: share of epochs before learning on the plateau Y/8",
            at_least(waits[0], 0.2),
            panel="c",
        ),
        ours(
            "Two points: share of epochs on the plateau, Adam over descent",
            at_most(waits[1] / waits[0], 0.5),
            panel="c",
        ),
        ours(
            "Two points, Adam: final distance over that of the theory with the κ of descent",
            between(size, 0.5, 2.0),
            fitted=True,
        ),
        paper(
            "Exclusive or, Adam: largest distance between inputs of one target over the mean of the others",
            at_most(of_one_target(adam.xor_distance).max(), 0.5),
            panel="d",
        ),
        ours(
            "Exclusive or: mean distance between inputs of different targets, Adam over descent",
            at_least(larger, 1.1),
            panel="d",
        ),
    ]


def figure(result: Result) -> Figure:
    from matplotlib.lines import Line2D

    data = result.data
    sheet, at = panels("ab;cd")
    for letter, (rule, name) in zip("ab", NAMES.items(), strict=True):
        part = data.sel(rule=rule).swap_dims(record="epoch")
        overlay(at[letter], part.curves, part.fitted, by="curve", along="epoch", colours=CURVE_COLOURS)
        at[letter].set(title=f"Two points, {name}", xlabel="epoch", ylabel="H, P and w")
        trained(at["c"], part.epoch, part.loss, colour=RULE_COLOURS[rule])
    border(at["c"], data.attrs["plateau"], "plateau", across=True)
    at["c"].set(title="Two points: Adam leaves the plateau at once", xlabel="epoch", ylabel="loss", yscale="log")
    looks: list[dict[str, Any]] = [
        dict(color=RULE_COLOURS[rule], marker=marker, ls="", ms=7, label=NAMES[rule])
        for rule, marker in zip(RULES, "os", strict=True)
    ]
    draw_pairs(at["d"], data.xor_distance, data.xor_predicted, looks)
    at["d"].set_title("Exclusive or: final distances")
    marks = [*(Line2D([], [], **look) for look in looks), Line2D([], [], label="theory, final distance", **THEORY)]
    colours = {label: CURVE_COLOURS[curve] for curve, label in CURVES.items()}
    key(sheet, colours, kinds=("training", "fit"), marks=marks)
    return sheet
