"""From small weights a deep network discards, in each context, the feature that is irrelevant there; large initial
weights preserve it.

Images of a blob come with one of two contexts: the first asks for the horizontal position of the blob, the second for
the vertical one. Two points that differ only in the irrelevant feature have one target. They merge where their final
distance is the structured one, √(κXY), and keep their distance where the initialisation decides it [vanrossem2024, eq.
10]; X and Y are their squared distances in input and target, κ a ratio of learning rates. The collapse index of a layer
is the variance of its activity along the irrelevant feature over that along the relevant one, each summed over units.
Before training it is 1. From low gains (the factor of the initial weights) it falls to a few hundredths in the middle
layer, and the square of points of each context becomes a line. From a very low gain tanh units also lay these two lines
over each other, as [vanrossem2024, appendix C.2] says; from a high gain tanh units keep the squares.

**What does not reproduce.** The activation is printed as tanh, but the source's code does not pass it on and trains
leaky ReLU. Leaky ReLU units lose part of the irrelevant feature from the high gain, too, where the squares are said to
remain, and from the low gain they bring the two lines much nearer to each other than tanh units do. Training on all
samples at once, which the theory describes, is not what was done: in the printed number of epochs it does not leave its
first plateau. In the code, and here, batches have 64 samples, and an epoch is a pass over 1800.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np

from .. import Setup, inits, nets, rules, tasks
from .._figures.panels import key, panels
from .._figures.style import COLOURS, DARK_GREY, FAINT_GREY
from ._kit import blobs
from ._kit.labelled import stack, table
from ._kit.parameters import POSITIVE, AtLeast, Count, Each, OneOf, Parts, Seed, Several, Truth, checked
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

THEME, PLACE = "points", 1
REFERENCE = {"vanrossem2024": "figures 7, 8 and 12, table 2, appendices B.3 and C.2"}
PRESETS = {"as_run": dict(activations=("leaky_relu",)), "as_printed": dict(activations=("tanh",))}
QUICK = dict(
    activations=("tanh",),
    positions=8,
    units=50,
    batch=32,
    rates=(0.15, 0.06, 0.005),
    epochs=(4000, 3500, 800),
    seeds=1,
    all_at_once=False,
)
CAPTION = """
**a** to **c** The points in the middle hidden layer (layer 3 in d and e) after training from very low, low and high
weights (the gain is the factor of the initial weights), laid out by classical scaling, which nearly keeps distances. If
tanh and leaky ReLU units were trained, tanh is shown. Circles belong to the first context and crosses to the second;
colour is the target, the position that the context asks for, from −1 (dark) to 1 (bright); grey lines join points that
differ in the irrelevant feature only. Where the first dimension only separates the contexts, the second and third are
shown. **d** Collapse index of every hidden layer: variance of the activity along the irrelevant feature over that along
the relevant one. Before training it is near 1 (grey line). **e** Squared distance between the two contexts over the
variance along the relevant feature: near 0 both contexts share one line. In d and e every line is a seed; filled
circles are tanh, open squares leaky ReLU units.
"""
ALT = """
From very low and low weights points that differ in the irrelevant feature lie together, so that each context is a line;
from high weights they spread over a square. The collapse index falls by orders of magnitude with depth for very low and
low weights and much less for high ones. With tanh units the contexts are nearest to each other from very low weights.
"""
SETTINGS = ("very low", "low", "high")
SETTING_COLOURS = dict(zip(SETTINGS, COLOURS, strict=False))
NAMES = {"tanh": "tanh", "leaky_relu": "leaky ReLU"}
RECORDS = 50
LINE = 0.1  # the collapse index from which a square of points counts as a line
WIDE = 100  # units, as printed; with half of them even a gain of 2 is not high for some seeds
KEPT = 0.8  # share of the index before training above which the points still count as a square
PerSetting: TypeAlias = Annotated[tuple[float, float, float], Parts(**dict.fromkeys(SETTINGS, POSITIVE))]
Epochs: TypeAlias = Annotated[tuple[int, int, int], Parts(**dict.fromkeys(SETTINGS, AtLeast(1)))]


@checked
def run(
    *,
    activations: Annotated[Sequence[str], Each(OneOf(*NAMES))] = ("tanh", "leaky_relu"),
    positions: Several = 30,
    gains: PerSetting = (0.275, 0.5, 2.0),
    rates: PerSetting = (0.05, 0.015, 0.0015),
    epochs: Epochs = (2000, 1500, 750),
    units: Count = 100,
    layers: Several = 4,
    batch: Count = 64,
    seeds: Count = 2,
    all_at_once: Truth = True,
    seed: Seed = 0,
) -> Result:
    """`gains`, `rates` and `epochs` are those of very low, low and high weights.

    `positions` is the number of positions of a blob in each direction; `all_at_once` adds training on all samples at
    once, from low weights.
    """
    task, all_seeds = tasks.blobs(positions), range(seed, seed + seeds)
    steps = blobs.CONTEXTS * positions**2 // batch

    def setup(activation: str, which: int) -> Setup:
        times = np.linspace(0, epochs[which], RECORDS + 1).round() * steps * rates[which]
        net, rule = nets.MLP((units,) * layers, activation, bias=True), rules.SGD(rates[which], batch)
        return Setup(task, net, inits.Xavier(gains[which]), rule, times=times, precision="float32")

    setups = {one: {name: setup(one, k) for k, name in enumerate(SETTINGS)} for one in activations}
    measures = {
        one: stack({name: blobs.measured(setting, all_seeds, positions) for name, setting in of_one.items()}, "setting")
        for one, of_one in setups.items()
    }
    data = stack(measures, "activation").assign_coords(
        gain=table(gains, "setting"),
        epochs=table(epochs, "setting"),
        context=table((task.labels or {})["context"], "sample"),
        target=table(np.asarray(task.y)[:, 0], "sample"),
    )
    data.attrs.update(middle=layers // 2, positions=positions, units=units)
    named = {f"{NAMES[a]}, {name} weights": setting for a, of_one in setups.items() for name, setting in of_one.items()}
    if all_at_once:
        times = np.linspace(0, epochs[1], RECORDS + 1).round() * rates[1]
        full_batch = setups[activations[0]]["low"].replace(rule=rules.GradientDescent(rates[1]), times=times)
        data["loss_at_once"] = table(simulate(full_batch, all_seeds, "loss")["loss"], "seed", "record")
        named[f"{NAMES[activations[0]]}, low weights, all samples at once"] = full_batch
    return Result(data, named)


def claims(result: Result) -> list[Claim]:
    data, middle = result.data, result.data.attrs["middle"]
    in_middle, low = data.isel(layer=middle), data.collapse.sel(setting="low")
    statements = [claim for k in range(in_middle.sizes["activation"]) for claim in _claims_of(in_middle, k)]
    deeper = (low.isel(layer=middle) / low.isel(layer=0)).max()
    statements += [
        ours("Low weights: collapse index, middle layer over first one, largest", at_most(deeper, 0.5), panel="d"),
        ours("Before training: mean collapse index of the middle layer", between(in_middle.start.mean(), 0.8, 1.25)),
    ]
    if "loss_at_once" in data:
        statements.append(
            paper(
                f"Low weights, all samples at once, {int(data.epochs[1])} epochs: final loss over initial loss",
                at_most(_left(data.loss_at_once).mean(), 0.1),
                fails="the number of steps counts, not that of epochs: with batches of 64 an epoch has 28 steps",
            )
        )
    return statements


def _left(loss: DataArray) -> DataArray:
    """The final loss over the initial one."""
    return loss.isel(record=-1) / loss.isel(record=0)


def _claims_of(data: Dataset, number: int) -> list[Claim]:
    """Claims about one activation, in the middle layer; those about the first one state the finding."""
    data, headline = data.isel(activation=number), number == 0
    tanh, units = data.activation == "tanh", NAMES[str(data.activation.values)]
    apart, gains = data.apart.mean("seed"), data.gain.values
    named = {name: f"{units}, {name} weights (gain {gain:g})" for name, gain in zip(SETTINGS, gains, strict=True)}
    very_low, low, high = (data.collapse.sel(setting=setting) for setting in SETTINGS)
    between_contexts = "squared distance of contexts over variance along the relevant feature"
    statements = [
        paper(f"{named['low']}: largest collapse index", at_most(low.max(), LINE), headline=headline, panel="d"),
        ours(
            f"{named['high']}: mean collapse index over that from low weights",
            at_least(high.mean() / low.mean(), 10.0),
            headline=headline,
            panel="d",
        ),
        paper(f"{named['very low']}: largest collapse index", at_most(very_low.max(), LINE), panel="d"),
        paper(f"{named['very low']}: {between_contexts}", at_most(apart.sel(setting="very low"), 0.3), panel="e"),
        paper(
            f"{named['low']}: {between_contexts}, over that from very low weights",
            at_least(apart.sel(setting="low") / apart.sel(setting="very low"), 3.0),
            panel="e",
        ),
        paper(
            f"{units}, low and high weights: final loss over initial loss, largest",
            at_most(_left(data.loss.sel(setting=["low", "high"])).max(), 0.05),
        ),
    ]
    if data.attrs["units"] >= WIDE:
        kept = (data.collapse / data.start).sel(setting="high").mean()
        fails = "" if tanh else "leaky ReLU units lose part of the irrelevant feature, too"
        text = f"{named['high']}: mean collapse index over that before training"
        statements.append(paper(text, at_least(kept, KEPT), fails=fails, panel="d"))
    return statements


def figure(result: Result) -> Figure:
    from matplotlib.lines import Line2D

    data = result.data
    sheet, at = panels("aabbcc;dddeee")
    first = data.isel(activation=0)
    for letter, setting in zip("abc", SETTINGS, strict=True):
        part = first.sel(setting=setting)
        _draw_plane(at[letter], part, data.attrs["positions"])
        at[letter].set_title(f"{setting.capitalize()} weights, gain {float(part.gain):g}")
    looks: dict[str, dict[str, Any]] = {"tanh": dict(marker="o"), "leaky_relu": dict(marker="s", mfc="w")}
    layers = np.arange(data.sizes["layer"]) + 1
    for setting, colour in SETTING_COLOURS.items():
        for activation in data.activation.values:
            part, look = data.sel(setting=setting, activation=activation), looks[str(activation)]
            at["d"].plot(layers, part.collapse.T, color=colour, ms=6, lw=1.5, **look)
            at["e"].plot(layers, part.apart.T, color=colour, ms=6, lw=1.5, **look)
    at["d"].axhline(1, color=FAINT_GREY, lw=1, zorder=0)
    at["d"].set(title="The irrelevant feature collapses", ylabel="variance, irrelevant / relevant")
    at["e"].set(title="Distance between the contexts", ylabel="distance² of contexts / variance")
    for letter in "de":
        at[letter].set(xlabel="hidden layer", yscale="log", xticks=layers)
    marks = [Line2D([], [], color=DARK_GREY, ls="", marker=m, label=f"context {k}") for k, m in ((1, "o"), (2, "x"))]
    key(sheet, {f"{setting} weights": colour for setting, colour in SETTING_COLOURS.items()}, kinds=(), marks=marks)
    return sheet


def _draw_plane(axes: Axes, data: Dataset, positions: int) -> None:
    """Classical scaling of the middle layer; lines join points that differ in the irrelevant feature only."""
    points = data.layout.values.reshape(blobs.CONTEXTS, positions, positions, 2)
    for line in (*points[0], *np.swapaxes(points[1], 0, 1)):
        axes.plot(*line.T, color=FAINT_GREY, lw=0.6, zorder=1)
    for context, marker in enumerate("ox"):
        mine = data.context.values == context
        shade = data.target.values[mine]
        axes.scatter(*data.layout.values[mine].T, c=shade, cmap="cividis", marker=marker, s=9, lw=0.7, zorder=2)
    across, up = (f"dimension {int(number)}" for number in data.dimensions)
    axes.set(xlabel=across, ylabel=up, aspect="equal", adjustable="datalim")
