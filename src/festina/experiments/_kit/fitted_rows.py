"""Networks of [vanrossem2024, table 1] trained on two points, beside the two-point theory fitted to each of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..._figures.style import COLOURS, predicted, trained
from ..._setup.setup import Setup
from ..._verbs.fit.fit import fit
from .table_of_networks import REPORTED, Row, two_point_setup
from .training import simulate
from .twin_comparison import draw_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

LEARNED = 1e-3  # a network has learned once its loss is below this
NEAR = 0.1  # a loss that differs from Y/8 by less than this fraction is on the plateau
EPOCHS = "training (epochs)"
CURVES = {"H": "‖dh‖²", "P": "‖dy‖²", "w": "w"}
COLOUR = dict(zip(CURVES, COLOURS, strict=False))


def trained_and_fitted(
    rows: Mapping[str, Row], seeds: Sequence[int], *, data: str, epochs: int, every: int
) -> tuple[Dataset, dict[str, Setup]]:
    """Curves, fits and verdicts, (network, seed, …), and the setups; rates are per epoch.

    `learned` is the first recorded epoch with a loss below 0.001, NaN if there is none; `plateau` is the number of
    epochs before it with a loss within a tenth of Y/8, the loss of two equal outputs at the mean of the targets.
    """
    import xarray

    setups = {name: two_point_setup(row, data, epochs=epochs, every=every) for name, row in rows.items()}
    parts = [_one_row(setups[name], row, seeds) for name, row in rows.items()]
    together = xarray.concat(parts, dim="network").assign_coords(network=list(rows))
    return together.assign_attrs(parts[0].attrs), setups


def _one_row(setup: Setup, row: Row, seeds: Sequence[int]) -> Dataset:
    """The same for one network."""
    import xarray

    run = simulate(setup, seeds, REPORTED)
    epochs = np.round(np.asarray(run.times) / row.lr)
    X, Y = (float(run.provenance[gap][0]) for gap in ("input_gap", "target_gap"))
    curves = run["distance"][:, :, row.index, 0], run["output_distance"][..., 0], run["output_alignment"][..., 0]
    training = np.stack(curves, axis=-1).astype(float)
    fits = [fit("TwoPoint", run, layer=row.index, seed=seed) for seed in seeds]
    theory = np.stack([np.stack(fitted.predicted, axis=-1) for fitted in fits])
    losses, loss_theory = np.asarray(run["loss"], float), np.stack([fitted.loss for fitted in fits])
    in_short = [", ".join(re.split("[,:]", why)[0] for why in fitted.applies.reasons) for fitted in fits]
    below = losses < LEARNED
    learned = np.where(below.any(axis=1), epochs[np.argmax(below, axis=1)], np.nan)
    waiting = (np.abs(losses / (Y / 8) - 1) < NEAR) & ~(np.cumsum(below, axis=1) > 0)
    missed = np.sum((losses - loss_theory) ** 2, axis=1) / np.sum((losses - losses.mean(axis=1)[:, None]) ** 2, axis=1)
    return xarray.Dataset(
        {
            "training": (("seed", "epoch", "curve"), training),
            "theory": (("seed", "epoch", "curve"), theory),
            "loss": (("seed", "epoch"), losses),
            "loss_theory": (("seed", "epoch"), loss_theory),
            "eta": (("seed", "rate"), row.lr * np.array([[*fitted.rates, fitted.eta_mean] for fitted in fits])),
            "kappa": ("seed", [fitted.kappa for fitted in fits]),
            "r2": (("seed", "curve"), [list(fitted.r2) for fitted in fits]),
            "r2_loss": ("seed", 1 - missed),
            "learned": ("seed", learned),
            "plateau": ("seed", waiting.sum(axis=1) * (epochs[1] - epochs[0])),
            "applies": ("seed", [int(bool(fitted.applies)) for fitted in fits]),
            "reasons": ("seed", [str(fitted.applies) for fitted in fits]),
            "in_short": ("seed", in_short),
            "layer": ((), row.index),
            "gain": ((), row.gain),
        },
        coords={"seed": list(seeds), "epoch": epochs, "curve": list(CURVES), "rate": ["h", "y", "mean"]},
        attrs={"input_gap": X, "target_gap": Y},
    )


def draw_curves(axes: Axes, data: Dataset) -> None:
    """H, P and w of the first seed of one network, trained and fitted."""
    for name, label in CURVES.items():
        trained(axes, data.epoch, data.training.sel(curve=name)[0], colour=COLOUR[name], label=label)
        predicted(axes, data.epoch, data.theory.sel(curve=name)[0], colour=COLOUR[name])
    axes.set(xlabel=EPOCHS)


def draw_fits(axes: Axes, data: Dataset, named: Sequence[str], title: str) -> None:
    """A table of the fitted numbers, medians over seeds, and of the reasons why a fit does not apply."""
    rows = []
    for name, label in zip(data.network.values, named, strict=True):
        network = data.sel(network=name)
        rates = [f"{float(value):.2g}" for value in (*network.eta.median("seed"), network.kappa.median())]
        fits = [f"{float(value):.3f}" for value in (*network.r2.median("seed"), network.r2_loss.median("seed"))]
        done = network.learned.values[np.isfinite(network.learned.values)]
        when = f"{np.median(done):.0f}" if len(done) else "–"
        counts = [f"{number} of {network.sizes['seed']}" for number in (len(done), int(network.applies.sum()))]
        rows.append((label, [*rates, *fits, when, *counts, str(network.in_short.values[0])]))
    columns = [
        "η_h",
        "η_y",
        "η of mean",
        "κ",
        "R² H",
        "R² P",
        "R² w",
        "R² loss",
        "loss < 0.001 at",
        "learned",
        "applies",
    ]
    draw_table(axes, [*columns, f"why it does not apply (seed {int(data.seed[0])})"], rows, title)


def draw_loss(axes: Axes, data: Dataset, target_gap: float) -> None:
    """The loss of the first seed of one network, and the level of the plateau."""
    trained(axes, data.epoch, data.loss[0], colour=COLOURS[3], label="loss")
    predicted(axes, data.epoch, data.loss_theory[0], colour=COLOURS[3])
    axes.axhline(target_gap / 8, color="0.6", lw=0.8, ls=":")
    axes.set(xlabel=EPOCHS)
