"""Networks of [vanrossem2024, table 1] trained on two points, beside the two-point theory fitted to each of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._fit import fit
from .._plot import COLOURS, predicted, trained
from .._setup import Setup
from .._simulate import simulate
from ._twins import draw_table
from ._two_points import REPORTED, Row, two_point_setup

LEARNED = 1e-3  # of the loss
NEAR = 0.1  # how far from Y/8 a loss may be to be on the plateau, relative
EPOCHS = "training (epochs)"
CURVES = {"H": "‖dh‖²", "P": "‖dy‖²", "w": "w"}
COLOUR = dict(zip(CURVES, COLOURS, strict=False))


def trained_and_fitted(
    rows: Mapping[str, Row], seeds: Sequence[int], *, data: str, epochs: int, every: int
) -> tuple[Any, dict[str, Setup]]:
    """Curves, fits and verdicts, (network, seed, …), and the setups; rates are per epoch.

    `learned` is the first recorded epoch with a loss below 0.001, NaN if there is none; `plateau` how many of the
    epochs before it had a loss within a tenth of Y/8, that of two equal outputs at the mean of the targets.
    """
    import xarray

    setups = {name: two_point_setup(row, data, epochs=epochs, every=every) for name, row in rows.items()}
    found = [_one_row(setups[name], row, seeds) for name, row in rows.items()]
    data_of = xarray.concat(found, dim="network").assign_coords(network=list(rows))
    return data_of.assign_attrs(found[0].attrs), setups


def _one_row(setup: Setup, row: Row, seeds: Sequence[int]) -> Any:
    import xarray

    found = simulate(setup, seeds, REPORTED)
    epochs = np.round(np.asarray(found.times) / row.lr)
    X, Y = (float(found.provenance[gap][0]) for gap in ("input_gap", "target_gap"))
    curves = found["distance"][:, :, row.index, 0], found["output_distance"][..., 0], found["output_alignment"][..., 0]
    training = np.stack(curves, axis=-1).astype(float)
    fits = [fit("TwoPoint", found, layer=row.index, seed=seed) for seed in seeds]
    theory = np.stack([np.stack(one.predicted, axis=-1) for one in fits])
    losses, loss_theory = np.asarray(found["loss"], float), np.stack([one.loss for one in fits])
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
            "eta": (("seed", "rate"), row.lr * np.array([[*one.rates, one.eta_mean] for one in fits])),
            "kappa": ("seed", [one.kappa for one in fits]),
            "r2": (("seed", "curve"), [list(one.r2) for one in fits]),
            "r2_loss": ("seed", 1 - missed),
            "learned": ("seed", learned),
            "plateau": ("seed", waiting.sum(axis=1) * (epochs[1] - epochs[0])),
            "applies": ("seed", [int(bool(one.applies)) for one in fits]),
            "reasons": ("seed", [str(one.applies) for one in fits]),
            "in_short": ("seed", [", ".join(re.split("[,:]", why)[0] for why in one.applies.reasons) for one in fits]),
            "layer": ((), row.index),
            "gain": ((), row.gain),
        },
        coords={"seed": list(seeds), "epoch": epochs, "curve": list(CURVES), "rate": ["h", "y", "mean"]},
        attrs={"input_gap": X, "target_gap": Y},
    )


def draw_curves(axes: Any, one: Any) -> None:
    """H, P and w of the first seed of a row, trained and fitted."""
    for name, label in CURVES.items():
        trained(axes, one.epoch, one.training.sel(curve=name)[0], colour=COLOUR[name], label=label)
        predicted(axes, one.epoch, one.theory.sel(curve=name)[0], colour=COLOUR[name])
    axes.set(xlabel=EPOCHS)


def draw_fits(axes: Any, data: Any, named: Sequence[str], title: str) -> None:
    """A table of what was fitted, medians over seeds, and of what the fits say of themselves."""
    rows = []
    for name, label in zip(data.network.values, named, strict=True):
        one = data.sel(network=name)
        rates = [f"{float(value):.2g}" for value in (*one.eta.median("seed"), one.kappa.median())]
        fits = [f"{float(value):.3f}" for value in (*one.r2.median("seed"), one.r2_loss.median("seed"))]
        done = one.learned.values[np.isfinite(one.learned.values)]
        when = f"{np.median(done):.0f}" if len(done) else "–"
        counts = [f"{number} of {one.sizes['seed']}" for number in (len(done), int(one.applies.sum()))]
        rows.append((label, [*rates, *fits, when, *counts, str(one.in_short.values[0])]))
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
    draw_table(axes, [*columns, f"what speaks against it (seed {int(data.seed[0])})"], rows, title)


def draw_loss(axes: Any, one: Any, target_gap: float) -> None:
    """The loss of the first seed of a row, and the level of the plateau."""
    trained(axes, one.epoch, one.loss[0], colour=COLOURS[3], label="loss")
    predicted(axes, one.epoch, one.loss_theory[0], colour=COLOURS[3])
    axes.axhline(target_gap / 8, color="0.6", lw=0.8, ls=":")
    axes.set(xlabel=EPOCHS)
