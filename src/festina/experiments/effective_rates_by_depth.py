"""In a deep network the fitted learning rate of the layers below a hidden layer rises with its depth; two fitted rates
describe the hidden layers just behind the middle, but neither the first nor the last ones.

A network of 20 hidden layers learns two points. The two-point theory splits it at a hidden layer into an encoder, the
layers below, and a decoder, the layers above, which have one effective learning rate each. Both are fitted to every
hidden layer in one call, `festina.probe.scan`. The rates are fitted; the initial distances and the slopes are not. At
initialisation the squared distance H of the two points falls by gain²/2 from layer to layer; the half comes from leaky
ReLU units. The rate of the encoder rises with depth. That of the decoder rises up to the middle and falls from there,
as the source says.

**What does not reproduce.** The theory does not become more accurate from layer to layer: its squared error is
U-shaped. It is smallest at layer 11 of 0 … 19 in the network of 500 units (11 to 13 from six other seeds, 10 to 16 in
narrow networks), and in the last layer 10 to 60 times as large. In the theory H grows in proportion to p, the distance
of the two outputs along the difference of the targets, once both are well above their first values: d ln H/d ln p = 1.
Measured half way through the transition, this slope rises from 0 in the first layer to 1.7 in the last, and the fit is
best in layers where it is near 1. With the printed data, dx = 0.5 and dy = 1, the network stays on its plateau for all
6000 epochs, and there is nothing to fit. The released code (the values here) used twice the printed learning rate, for
half of the epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from scipy.stats import rankdata

from .._figures.overlay import overlay
from .._figures.panels import border, key, panels
from .._figures.style import COLOURS, INK
from ..probe import scan
from ._kit.labelled import labelled
from ._kit.parameters import Count, OneOf, Positive, Seed, checked
from ._kit.table_of_networks import DATA, REPORTED, row, two_point_setup
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray

THEME, PLACE = "pairs", 4
REFERENCE = {"vanrossem2024": "figure 10, sections 5.1 and 5.2, eq. 14"}
AS_RUN = dict(network="default", data="as_run", lr=0.01, epochs=3000)
PRESETS = {"as_run": AS_RUN, "as_printed": AS_RUN | dict(data="as_printed", lr=0.005, epochs=6000, seeds=2)}
QUICK = dict(network="narrow", seeds=3, every=30)
CAPTION = """
A network of 20 hidden layers learns two points, and the two rates of the two-point theory are fitted to each of its
hidden layers; dots are seeds, lines their medians. **a** Fitted rates of the encoder, the layers below, and of the
decoder, the layers above. **b** Squared error of the fit, summed over epochs and over its three curves; the vertical
line is at its minimum. **c** How steeply H, the squared distance of the points in the layer, grows with p, the distance
of the outputs along the difference of the targets: d ln H/d ln p half way through the transition, which is not fitted.
It is 1 in the theory (horizontal line); the vertical line is that of b. **d** H at initialisation, and the theory that
it falls by the factor gain²/2 from layer to layer, drawn from the median of the first layer on; nothing is fitted.
"""
ALT = """
The encoder's rate rises with depth by orders of magnitude; the decoder's rises to the middle and then falls. The error
of the fit is U-shaped with a minimum in the second half of the layers, where the rising slope is near 1. The first
distances fall on a straight line in a logarithmic plot.
"""
RATES = {"encoder": "eta_h", "decoder": "eta_y"}
FITTED = [*RATES.values(), "kappa", "sse", "slope", "applies"]


@checked
def run(
    *,
    network: str = "default",
    data: Annotated[str, OneOf(*DATA)] = "as_run",
    lr: Positive = 0.01,
    epochs: Count = 3000,
    every: Count = 10,
    seeds: Count = 1,
    seed: Seed = 0,
) -> Result:
    """`network` is a row of table 1, at a rate and for epochs of its own; `data` is "as_run" or "as_printed"."""
    which = row(network, lr=lr)
    setup = two_point_setup(which, data, epochs=epochs, every=every)
    training = simulate(setup, range(seed, seed + seeds), REPORTED)
    fits = scan(training).isel(pair=0, drop=True)
    loss = labelled(training, "loss")
    result = (
        fits[FITTED]
        .astype(float)
        .assign(
            r2=fits.r2,
            reasons=fits.reasons,
            distance=labelled(training, "distance").isel(pair=0, drop=True),
            loss=loss,
            learned=(loss.isel(time=-1, drop=True) < 1e-3).astype(int),
        )
    )
    # As in the source: rates per epoch, and the squared error summed over all epochs.
    result = result.assign(eta_h=result.eta_h * lr, eta_y=result.eta_y * lr, sse=result.sse * every)
    result = result.assign_coords(layer=np.arange(which.layers))
    told = {"network": network, "chosen": data, "lr": which.lr, "gain": which.gain, "units": which.units}
    return Result(result.drop_attrs().assign_attrs(told), {network: setup})


def claims(result: Result) -> list[Claim]:
    data = result.data
    as_run = data.attrs["chosen"] == "as_run"
    layers, middle, last = data.layer.values, data.sizes["layer"] // 2, data.sizes["layer"] // 6
    typical = data[["eta_h", "eta_y", "sse", "slope"]].median("seed")
    errors, decoder = typical.sse.values, typical.eta_y.values
    best, peak = int(np.argmin(errors)), int(np.argmax(decoder))
    factor = np.exp(np.log(data.distance.isel(time=0)).diff("layer").mean("layer")).median()
    late = "" if as_run else "with the printed data the network is still on its plateau, and fits to it are biased"
    of_all = [
        paper(
            "H at initialisation, mean factor from layer to layer over gain²/2 (eq. 14)",
            between(float(factor) / (data.attrs["gain"] ** 2 / 2), 0.85, 1.15),
            panel="d",
        ),
        paper("Share of seeds that learn the two points", at_least(data.learned.mean(), 1.0), fails=late),
    ]
    if not as_run:
        return of_all
    return [
        paper(
            "Fitted rate of the encoder: rank correlation with the number of the layer",
            at_least(np.corrcoef(layers, rankdata(typical.eta_h))[0, 1], 0.9),
            fitted=True,
            headline=True,
            panel="a",
        ),
        ours(
            f"Layer of the best fit, from 0: in the second half of {len(layers)} layers, but not in the last {last}",
            between(best, middle, len(layers) - 1 - last),
            fitted=True,
            headline=True,
            panel="b",
        ),
        *of_all,
        paper(
            "Squared error of the fit at a quarter of the depth over the smallest: accurate in the second half only",
            at_least(errors[len(layers) // 4] / errors[best], 10),
            fitted=True,
            panel="b",
        ),
        ours(
            "R² of w, the alignment of the outputs with the targets, fitted to the first layer",
            at_most(data.r2.sel(layer=0, curve="alignment").median(), 0.0),
            fitted=True,
        ),
        paper(
            "Squared error of the fit in the last layer over the smallest: the later the layer, the more accurate",
            at_most(errors[-1] / errors[best], 2.0),
            fails="past its best layer H grows with a higher power of the output distance than in the theory",
            fitted=True,
            panel="b",
        ),
        paper(
            "Layer with the largest fitted rate of the decoder, from 0: near the middle",
            between(peak, middle - 3, middle + 4),
            fitted=True,
            panel="a",
        ),
        paper(
            "Fitted rate of the decoder in the last layer over the largest one",
            at_most(decoder[-1] / decoder[peak], 0.6),
            fitted=True,
            panel="a",
        ),
        ours(
            "d ln H/d ln p in the layer whose fit is best, p the output distance along the target: 1 in the theory",
            between(typical.slope[best], 0.6, 1.4),
            panel="c",
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab;cd")
    colours = dict(zip(RATES, COLOURS, strict=False))
    for name, rate in RATES.items():
        _draw_by_layer(at["a"], data[rate], colours[name])
    _draw_by_layer(at["b"], data.sse)
    _draw_by_layer(at["c"], data.slope)
    first = data.distance.isel(time=0)
    falling = first.isel(layer=0).median("seed") * (data.attrs["gain"] ** 2 / 2) ** data.layer
    overlay(at["d"], first, falling, along="layer", colours=INK)
    for letter in "bc":
        border(at[letter], data.sse.median("seed").idxmin("layer").item())
    border(at["c"], 1.0, across=True)
    at["a"].set(title="The encoder's rate rises with depth", ylabel="fitted rate (per epoch)", yscale="log")
    at["b"].set(title="The fit is best behind the middle", ylabel="squared error of the fit", yscale="log")
    at["c"].set(title="Near that layer H grows in proportion to p", ylabel="d ln H / d ln p")
    at["d"].set(title="Initial distances fall from layer to layer", ylabel="initial H", yscale="log")
    for axes in at.values():
        axes.set_xlabel("hidden layer, from 0")
    key(sheet, {f"{name} (a)": colour for name, colour in colours.items()}, kinds=("network (d)", "theory (d)"))
    return sheet


def _draw_by_layer(axes: Axes, values: DataArray, colour: str = INK) -> None:
    """One dot for every seed, and a line through the medians."""
    axes.plot(values.layer, values.transpose("layer", "seed"), "o", color=colour, ms=3, alpha=0.5)
    axes.plot(values.layer, values.median("seed"), color=colour, lw=1.4)
