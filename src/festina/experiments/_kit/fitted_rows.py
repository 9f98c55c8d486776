"""Networks of [vanrossem2024, table 1] trained on two points, beside the two-point theory fitted to each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..._figures.style import COLOURS
from ..._setup.setup import Setup
from ..._verbs.fit.fit import fit
from .labelled import stack, table
from .table_of_networks import REPORTED, Row, two_point_setup
from .training import simulate

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

LEARNED = 1e-3  # a network has learned once its loss is below this
NEAR = 0.1  # a loss that differs from Y/8 by less than this fraction is on the plateau
CURVES = {"H": "distance", "P": "output_distance", "w": "output_alignment"}
CURVE_COLOURS = dict(zip(CURVES, COLOURS, strict=False))


def trained_and_fitted(
    rows: Mapping[str, Row], seeds: Sequence[int], *, data: str, epochs: int, every: int
) -> tuple[Dataset, dict[str, Setup]]:
    """Curves, fits and verdicts, (network, seed, …), and the setups; rates are per epoch.

    `learned` is the first recorded epoch with a loss below 0.001, NaN if there is none; `plateau` is the number of
    epochs before it with a loss within a tenth of Y/8, the loss of two equal outputs at the mean of the targets.
    """
    setups = {name: two_point_setup(row, data, epochs=epochs, every=every) for name, row in rows.items()}
    return stack({name: _one_row(setups[name], row, seeds) for name, row in rows.items()}, "network"), setups


def share_of_waiting(data: Dataset) -> DataArray:
    """The share of epochs on the plateau, of those until the network has learned or, if it never does, of all.

    Axes are (network, seed).
    """
    return data.plateau / data.learned.fillna(float(data.epoch[-1]))


def _one_row(setup: Setup, row: Row, seeds: Sequence[int]) -> Dataset:
    """The same for one network."""
    import xarray

    run = simulate(setup, seeds, REPORTED)
    fits = [fit("TwoPoint", run, layer=row.index, seed=seed) for seed in seeds]
    epochs = xarray.DataArray(
        np.round(run.times / row.lr), dims="epoch", attrs={"long_name": "training", "units": "epochs"}
    )
    observed = run.to_xarray().drop_vars("time").rename(time="epoch").isel(pair=0, layer=row.index, drop=True)
    X, Y = (float(run.provenance[gap][0]) for gap in ("input_gap", "target_gap"))
    loss = observed.loss.astype(float)
    fitted_loss = table(np.stack([fitted.loss for fitted in fits]), "seed", "epoch")
    below = loss < LEARNED
    waiting = (np.abs(loss / (Y / 8) - 1) < NEAR) & ~(below.cumsum("epoch") > 0)
    missed = ((loss - fitted_loss) ** 2).sum("epoch") / ((loss - loss.mean("epoch")) ** 2).sum("epoch")
    return xarray.Dataset(
        {
            "training": stack({name: observed[source].astype(float) for name, source in CURVES.items()}, "curve"),
            "fitted": table(np.stack([fitted.predicted for fitted in fits]), "seed", "curve", "epoch"),
            "loss": loss,
            "fitted_loss": fitted_loss,
            "eta": table([[row.lr * rate for rate in (*fit.rates, fit.eta_mean)] for fit in fits], "seed", "rate"),
            "kappa": table([fitted.kappa for fitted in fits], "seed"),
            "r2": table([list(fitted.r2) for fitted in fits], "seed", "curve"),
            "r2_loss": 1 - missed,
            "learned": epochs[below.argmax("epoch")].where(below.any("epoch")).drop_vars("epoch", errors="ignore"),
            "plateau": waiting.sum("epoch") * float(epochs[1] - epochs[0]),
            "applies": table([int(bool(fitted.applies)) for fitted in fits], "seed"),
            "reasons": table([str(fitted.applies) for fitted in fits], "seed"),
            "layer": row.index,
            "gain": row.gain,
        },
        coords={"seed": list(seeds), "epoch": epochs, "curve": list(CURVES), "rate": ["h", "y", "mean"]},
        attrs={"input_gap": X, "target_gap": Y},
    )
