"""The deeper a hidden layer, the faster its encoder; two rates describe those from the middle on, not the last.

A network of 20 hidden layers learns two points, and the two rates of the theory are fitted to every layer of it in one
call, `festina.probe.scan`. All rates here are fitted; the first distances and the slopes are not. Before training the
squared distance of the points falls by gain²/2 from layer to layer, the half being that of leaky ReLU units. The
encoder's rate rises with depth; the decoder's rises to the middle, and falls from there, as the source says.

**What does not reproduce.** That the theory is the more accurate the later the layer: its squared error is U-shaped,
least at layer 11 of 0 … 19 in the network of 500 units (11 to 13 in six other starts, 10 to 16 in narrow networks), and
10 to 60 times that in the last layer. In the theory H grows as the output p does, by d ln H/d ln p = 1 once both are
well above their start; measured half way through the transition this slope rises from 0 in the first layer to 1.7 in
the last, and the fit is best in layers near 1. With the printed data, dx = 0.5 and dy = 1, the network stays on its
plateau for all 6000 epochs, and there is nothing to fit. As run (the values here) the rate was twice the printed one,
for half of the epochs.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from .._noun import positive, whole
from .._plot import COLOURS, new_figure
from .._report import Claim, Result
from .._simulate import simulate
from ..probe import scan
from ._two_points import REPORTED, row, two_point_setup

REFERENCE = {"vanrossem2024": "figure 10, sections 5.1 and 5.2, eq. 14"}
AS_RUN = dict(network="default", data="as_run", lr=0.01, epochs=3000)
PRESETS = {"as_run": AS_RUN, "as_printed": AS_RUN | dict(data="as_printed", lr=0.005, epochs=6000, seeds=2)}
QUICK = dict(network="narrow", seeds=3, every=30)
FITTED = ("eta_h", "eta_y", "kappa", "sse", "slope", "applies")


def run(*, network="default", data="as_run", lr=0.01, epochs=3000, every=10, seeds=1, seed=0) -> Result:
    """`network` is a row of table 1, at a rate and for epochs of its own; `data` is "as_run" or "as_printed"."""
    which = row(network, lr=positive(lr, "lr"))
    epochs, every, seeds = whole(epochs, "epochs"), whole(every, "every"), whole(seeds, "seeds")
    setup = two_point_setup(which, data, epochs=epochs, every=every)
    found = simulate(setup, range(seed, seed + seeds), REPORTED)
    fits = scan(found).isel(pair=0, drop=True)
    import xarray

    numbers = {name: (("seed", "layer"), fits[name].values.astype(float)) for name in FITTED}
    learned = np.asarray(found["loss"])[:, -1] < 1e-3
    result = xarray.Dataset(
        {
            **numbers,
            "r2": (("seed", "layer", "curve"), fits.r2.values),
            "reasons": (("seed", "layer"), fits.reasons.values),
            "distance": (("seed", "epoch", "layer"), found["distance"][..., 0]),
            "loss": (("seed", "epoch"), found["loss"]),
            "learned": ("seed", learned.astype(int)),
        },
        coords={
            "seed": found.coordinates["seed"],
            "layer": np.arange(which.layers),
            "epoch": np.round(np.asarray(found.times) / which.lr),
            "curve": ["H", "P", "w"],
        },
        attrs={"network": network, "chosen": data, "lr": which.lr, "gain": which.gain, "units": which.units},
    )
    # Per epoch, as the source has them: rates for each, and the squared error summed over all.
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
    found = [
        Claim.between(
            "The first distance falls by gain²/2 from layer to layer (eq. 14): measured factor over that",
            float(factor) / (data.attrs["gain"] ** 2 / 2), 0.85, 1.15, source="paper",
        ),
        Claim.at_least(
            "The network learns: share of seeds",
            float(data.learned.mean()), 1.0, source="paper", expected=as_run, reason=late,
        ),
    ]  # fmt: skip
    if not as_run:
        return found
    return [
        *found,
        Claim.between(
            f"The fit is best in the second half of {len(layers)} layers, but not in the last {end}: number of the "
            "layer, from 0",
            best, middle, len(layers) - 1 - end, fitted=True,
        ),
        Claim.at_least(
            "The theory is accurate in the second half only: squared error at a quarter of the depth / the least",
            errors[len(layers) // 4] / errors[best], 10, source="paper", fitted=True,
        ),
        Claim.at_most(
            "… R² of w in the first layer", float(data.r2.sel(layer=0, curve="w").median()), 0.0, fitted=True
        ),
        Claim.at_most(
            "It is the more accurate the later the layer: squared error of the last / the least",
            errors[-1] / errors[best], 2.0, source="paper", fitted=True,
            expected=False, reason="past its best layer H grows by a higher power of the output than the theory's",
        ),
        Claim.at_least(
            "The encoder's rate grows with depth: rank correlation with the layer",
            float(np.corrcoef(layers, rankdata(typical.eta_h))[0, 1]), 0.9, source="paper", fitted=True,
        ),
        Claim.between(
            "The decoder's rate grows to the middle: number of the layer where it is largest",
            peak, middle - 3, middle + 4, source="paper", fitted=True,
        ),
        Claim.at_most(
            "… from there it falls: last / largest", decoder[-1] / decoder[peak], 0.6, source="paper", fitted=True
        ),
        Claim.between(
            "Where the fit is best H grows as the output does, as the theory has it: d ln H/d ln p",
            float(typical.slope[best]), 0.6, 1.4,
        ),
    ]  # fmt: skip


def figure(result: Result):
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
    first.plot(data.layer, law, color="0.2", lw=1.3, ls=(0, (4, 2)), label="(gain²/2)ⁿ")
    first.set(yscale="log", title="first distance H in each layer")
    first.legend()
    _draw_by_layer(slopes, data.slope)
    slopes.axhline(1, color="0.6", lw=0.8, ls=":")
    slopes.set(title="d ln H / d ln p half way; 1 in theory")
    for axes in grid.ravel():
        axes.set_xlabel("hidden layer, from 0")
    return sheet


def _draw_by_layer(axes, values, colour=COLOURS[0], label=None) -> None:
    """One dot for every seed, and a line through the medians."""
    axes.plot(values.layer, values.transpose("layer", "seed"), "o", color=colour, ms=2.5, alpha=0.5)
    axes.plot(values.layer, values.median("seed"), color=colour, lw=1.4, label=label)
