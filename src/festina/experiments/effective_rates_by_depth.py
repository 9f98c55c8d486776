"""The deeper a hidden layer, the faster its encoder learns; two fitted rates describe the layers from the middle on,
but not the last ones.

A network of 20 hidden layers learns two points, and the two rates of the theory are fitted to every layer of it in one
call, `festina.probe.scan`. The rates are fitted; the first distances and the slopes d ln H/d ln p are not. Before
training the squared distance H of the points falls by gain²/2 from layer to layer; the half comes from leaky ReLU
units. The rate of the encoder, the layers below, rises with depth. That of the decoder, the layers above, rises up to
the middle and falls from there, as the source says.

**What does not reproduce.** The theory does not become more accurate from layer to layer: its squared error is
U-shaped. It is least at layer 11 of 0 … 19 in the network of 500 units (11 to 13 from six other starts, 10 to 16 in
narrow networks), and in the last layer 10 to 60 times as large. In the theory H grows in proportion to p, the distance
of the two outputs along the difference of the targets, once both are well above their start: d ln H/d ln p = 1.
Measured half way through the transition, this slope rises from 0 in the first layer to 1.7 in the last, and the fit is
best in layers near 1. With the printed data, dx = 0.5 and dy = 1, the network stays on its plateau for all 6000 epochs,
and there is nothing to fit. As run (the values here) the rate was twice the printed one, for half of the epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from .._figures.style import COLOURS, DASHES, new_figure
from .._foundation.checks import positive, whole
from ..probe import scan
from ._kit.table_of_networks import REPORTED, row, two_point_setup
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray

REFERENCE = {"vanrossem2024": "figure 10, sections 5.1 and 5.2, eq. 14"}
AS_RUN = dict(network="default", data="as_run", lr=0.01, epochs=3000)
PRESETS = {"as_run": AS_RUN, "as_printed": AS_RUN | dict(data="as_printed", lr=0.005, epochs=6000, seeds=2)}
QUICK = dict(network="narrow", seeds=3, every=30)
FITTED = ("eta_h", "eta_y", "kappa", "sse", "slope", "applies")


def run(
    *,
    network: str = "default",
    data: str = "as_run",
    lr: float = 0.01,
    epochs: int = 3000,
    every: int = 10,
    seeds: int = 1,
    seed: int = 0,
) -> Result:
    """`network` is a row of table 1, at a rate and for epochs of its own; `data` is "as_run" or "as_printed"."""
    which = row(network, lr=positive(lr, "lr"))
    epochs, every, seeds = whole(epochs, "epochs"), whole(every, "every"), whole(seeds, "seeds")
    setup = two_point_setup(which, data, epochs=epochs, every=every)
    training = simulate(setup, range(seed, seed + seeds), REPORTED)
    fits = scan(training).isel(pair=0, drop=True)
    learned = np.asarray(training["loss"])[:, -1] < 1e-3
    import xarray

    result = xarray.Dataset(
        {
            **{name: (("seed", "layer"), fits[name].values.astype(float)) for name in FITTED},
            "r2": (("seed", "layer", "curve"), fits.r2.values),
            "reasons": (("seed", "layer"), fits.reasons.values),
            "distance": (("seed", "epoch", "layer"), training["distance"][..., 0]),
            "loss": (("seed", "epoch"), training["loss"]),
            "learned": ("seed", learned.astype(int)),
        },
        coords={
            "seed": training.coordinates["seed"],
            "layer": np.arange(which.layers),
            "epoch": np.round(np.asarray(training.times) / which.lr),
            "curve": ["H", "P", "w"],
        },
        attrs={"network": network, "chosen": data, "lr": which.lr, "gain": which.gain, "units": which.units},
    )
    # As in the source: rates per epoch, and the squared error summed over all epochs.
    result = result.assign(eta_h=result.eta_h * which.lr, eta_y=result.eta_y * which.lr, sse=result.sse * every)
    return Result(result, {network: setup})


def claims(result: Result) -> list[Claim]:
    data = result.data
    as_run = data.attrs["chosen"] == "as_run"
    layers, middle, end = data.layer.values, data.sizes["layer"] // 2, data.sizes["layer"] // 6
    typical = data[["eta_h", "eta_y", "sse", "slope"]].median("seed")
    errors, decoder = typical.sse.values, typical.eta_y.values
    best, peak = int(np.argmin(errors)), int(np.argmax(decoder))
    first = data.distance.isel(epoch=0)
    factor = np.exp(np.log(first).diff("layer").mean("layer")).median()
    late = "" if as_run else "with the printed data the network is still on its plateau, and fits to it are biased"
    statements = [
        paper(
            "The first distance falls by gain²/2 from layer to layer (eq. 14): measured factor / gain²/2",
            between(float(factor) / (data.attrs["gain"] ** 2 / 2), 0.85, 1.15),
        ),
        paper("The network learns: share of seeds", at_least(data.learned.mean(), 1.0), fails=late),
    ]
    if not as_run:
        return statements
    return [
        *statements,
        ours(
            f"The fit is best in the second half of {len(layers)} layers, but not in the last {end}: number of the "
            "best layer, from 0",
            between(best, middle, len(layers) - 1 - end),
            fitted=True,
        ),
        paper(
            "The theory is accurate in the second half only: squared error at a quarter of the depth / the least",
            at_least(errors[len(layers) // 4] / errors[best], 10),
            fitted=True,
        ),
        ours(
            "… and not in the first layer: R² of w there",
            at_most(data.r2.sel(layer=0, curve="w").median(), 0.0),
            fitted=True,
        ),
        paper(
            "The theory is the more accurate the later the layer: squared error of the last layer / the least",
            at_most(errors[-1] / errors[best], 2.0),
            fails="past its best layer H grows with a higher power of the output distance than in the theory",
            fitted=True,
        ),
        paper(
            "The encoder's rate grows with depth: rank correlation with the layer",
            at_least(np.corrcoef(layers, rankdata(typical.eta_h))[0, 1], 0.9),
            fitted=True,
        ),
        paper(
            "The decoder's rate grows up to the middle: number of the layer where it is largest",
            between(peak, middle - 3, middle + 4),
            fitted=True,
        ),
        paper("… and falls from there: last / largest", at_most(decoder[-1] / decoder[peak], 0.6), fitted=True),
        ours(
            "Where the fit is best H grows in proportion to the output distance p, as in the theory: d ln H/d ln p",
            between(typical.slope[best], 0.6, 1.4),
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, grid = new_figure(2, 3, width=4.2, height=3.1)
    (errors, encoder, decoder), (fits, first, slopes) = grid
    for axes, name, title in (
        (errors, "sse", "squared error of the fit: U-shaped"),
        (encoder, "eta_h", "fitted rate of the encoder, per epoch"),
        (decoder, "eta_y", "fitted rate of the decoder, per epoch"),
    ):
        _draw_by_layer(axes, data[name])
        axes.set(yscale="log", title=title)
    best = int(np.argmin(data.sse.median("seed").values))
    errors.axvline(best, color="0.6", lw=0.8, ls=":")
    errors.text(best, errors.get_ylim()[1], f" best: {best}", va="top", color="0.35", fontsize=9)
    for colour, curve in zip(COLOURS, data.curve.values, strict=False):
        _draw_by_layer(fits, data.r2.sel(curve=curve), colour, str(curve))
    fits.set(title="R² of the fit", ylim=(-1.2, 1.05))
    fits.legend(loc="lower right")
    _draw_by_layer(first, data.distance.isel(epoch=0), label="trained network")
    law = float(data.distance[:, 0, 0].median()) * (data.attrs["gain"] ** 2 / 2) ** data.layer
    first.plot(data.layer, law, color="0.2", lw=1.3, ls=DASHES, label="(gain²/2)ⁿ")
    first.set(yscale="log", title="first distance H in each layer")
    first.legend()
    _draw_by_layer(slopes, data.slope)
    slopes.axhline(1, color="0.6", lw=0.8, ls=":")
    slopes.set(title="d ln H / d ln p mid-transition (theory: 1)")
    for axes in grid.ravel():
        axes.set_xlabel("hidden layer, from 0")
    return sheet


def _draw_by_layer(axes: Axes, values: DataArray, colour: str = COLOURS[0], label: str | None = None) -> None:
    """One dot for every seed, and a line through the medians."""
    axes.plot(values.layer, values.transpose("layer", "seed"), "o", color=colour, ms=2.5, alpha=0.5)
    axes.plot(values.layer, values.median("seed"), color=colour, lw=1.4, label=label)
