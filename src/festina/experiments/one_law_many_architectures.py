"""In many architectures two fitted rates describe how two points separate, but not in all of them how the outputs align
with the targets.

Every network of the source's table is trained on two points. H is the squared distance of the points in a middle hidden
layer, P that of their outputs, and w = P − dy·Δy* says how the outputs align with the targets. Two rates, fitted to
each run, describe H and P; a third rate, that of the mean of the outputs, describes the loss. All rates here are
fitted. The ratio κ = η_h/η_y tells the networks apart. It is about 0.02 in deep networks of (leaky) ReLU units, whose
encoders learn slowly, one half in a network of two layers, and near 1 in linear and tanh networks. It says no more than
the final distance does, κ = H²/(XY), and it varies by a factor of 5 between narrow networks.

**What does not reproduce.** One law does not describe w in all networks: in linear and tanh networks R² of w is 0.7,
and it is below 0.9 in most others that are not chains of (leaky) ReLU layers. The `applies` of the fit says so. The
convolutional network does not learn from every start: its last convolution has one channel, and where this channel
starts below 0, its leaky units pass on a hundredth of the signal, and the loss stays at Y/8. Nor do the printed data
reproduce the figures, dx = 0.5 and dy = 1. With them networks of 20 layers stay at Y/8 beyond the 6000 epochs from
about half of the starts or more, and two rates describe none of them. The figures come from dx² = 1 and dy² = 0.5, the
values here.

**Not printed.** The settings as run have four more rows; `networks` takes them by name, and none is among the default
values. Each was trained once from three starts (Adam from two). "gain 1.2" learns (after 1400 to 1960 epochs; R² of H,
P and w at least 0.93, 0.996 and 0.90), and the fit applies to one start of three, since H starts at up to 0.4 of its
final value. "gain 1.6", at a rate of 1.5·10⁻⁶, does not learn: after 6000 epochs its loss is 0.011 to 0.025, H has
fallen by an eighth to a fifth from its start of 25 to 34, and no fit applies. "Adam" learns after 2600 epochs, with R²
of −0.5, 0.92 and −0.4. The "two-layer linear" network learns after 3940 epochs, with R² of 1.00, 0.999 and 0.993 and κ
= 0.89, and the fit applies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._figures.style import new_figure
from .._foundation.checks import whole
from .._foundation.errors import BadInput
from ._kit.fitted_rows import draw_curves, draw_fits, draw_loss, trained_and_fitted
from ._kit.table_of_networks import DATA, NOT_PRINTED, WIDE, row
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset


THEME, PLACE = "pairs", 2
REFERENCE = {"vanrossem2024": "figures 2 and 11, table 1"}
NETWORKS = (
    "default",
    "convolution",
    "skip",
    "shallow",
    "narrow",
    "dropout",
    "linear",
    "ReLU",
    "ELU",
    "tanh",
    "swish",
)
PRESETS = {"as_run": dict(data="as_run"), "as_printed": dict(data="as_printed")}
QUICK = dict(networks=("narrow", "shallow"), seeds=3, starts=3, every=40)
UNSURE = "convolution"  # this network does not learn from some of its starts, and nothing can be fitted to these
UNSURE_STARTS = 4
DEEP_RECTIFIED, SMOOTH = ("default", "narrow", "ReLU"), ("linear", "tanh")
SETTLED = 6000  # epochs of the table


def run(
    *,
    networks: Sequence[str] = NETWORKS,
    units: int | None = None,
    data: str = "as_run",
    epochs: int = 6000,
    every: int = 20,
    seeds: int = 1,
    starts: int = 8,
    seed: int = 0,
) -> Result:
    """`networks` are rows of table 1, or of those that are not printed; `data` is "as_run" or "as_printed".

    The rows that are not printed are "gain 1.2", "gain 1.6", "Adam" and "two-layer linear". `units` replaces the widths
    of the rows. `starts` is the number of seeds from which the narrow network is trained on both data sets; the
    convolutional network, if it is among `networks`, is trained from four.
    """
    rows = {name: row(name, data, **({} if units is None else {"units": whole(units, "units")})) for name in networks}
    if not set(rows) - {UNSURE}:
        raise BadInput(f"networks = {networks!r}", "one that learns two points", f"name others: {', '.join(NETWORKS)}")
    epochs, every = whole(epochs, "epochs"), whole(every, "every")
    seeds, starts = whole(seeds, "seeds"), whole(starts, "starts", least=2)
    training = dict(epochs=epochs, every=every)
    fitted, setups = trained_and_fitted(rows, range(seed, seed + seeds), data=data, **training)
    both = {}
    for kind in DATA:
        if kind == data and starts == seeds and rows.get("narrow") == row("narrow"):
            both[kind] = fitted.sel(network="narrow")
            continue
        again, more = trained_and_fitted({"narrow": row("narrow")}, range(seed, seed + starts), data=kind, **training)
        both[kind] = again.isel(network=0)
        setups[f"narrow, {kind.replace('_', ' ')}"] = more["narrow"]
    if UNSURE in rows:
        learned, others = fitted.learned.sel(network=UNSURE).values, range(seed + seeds, seed + UNSURE_STARTS)
        if others:
            again, _ = trained_and_fitted({UNSURE: rows[UNSURE]}, others, data=data, **training)
            learned = np.append(learned, again.learned.values[0])
        fitted["unsure_learned"] = ("unsure_start", learned[:UNSURE_STARTS])
    fitted = fitted.assign(
        narrow_learned=(("data", "start"), [narrow.learned.values for narrow in both.values()]),
        narrow_applies=(("data", "start"), [narrow.applies.values for narrow in both.values()]),
        units=("network", [chosen.units for chosen in rows.values()]),
    ).assign_coords(data=list(both))
    return Result(fitted.assign_attrs(chosen=data), setups)


def claims(result: Result) -> list[Claim]:
    data = result.data
    as_run = data.attrs["chosen"] == "as_run"
    unlike = "" if as_run else "with the printed data deep networks wait so long that two rates do not describe them"
    late = "" if as_run else "with the printed data deep networks are still on their plateau"
    others = data.sel(network=[name for name in data.network.values if name != UNSURE and name not in NOT_PRINTED])
    rest = data.sel(network=[name for name in data.network.values if name in NOT_PRINTED])
    learned, epochs = np.isfinite(data.narrow_learned), int(data.epoch[-1])
    statements = []
    if others.sizes["network"]:
        of_networks = others.r2.sel(curve=["H", "P"]).min("curve").median("seed")
        worst = others.network.values[np.argmin(of_networks.values)]
        statements += [
            paper(
                f"Two rates describe the distances in the layer and of the outputs: smallest R² of H and P ({worst})",
                at_least(float(of_networks.min()), 0.85),
                fitted=True,
                fails=unlike,
            ),
            paper(
                f"These networks learn within {epochs} epochs: share of runs that do",
                at_least(float(np.isfinite(others.learned).mean()), 1.0),
                fails=late,
            ),
        ]
    statements += [
        ours(
            f"With the data of the figures every start of the narrow network learns within {epochs} epochs: share",
            at_least(float(learned.sel(data="as_run").mean()), 1.0),
        ),
        paper(
            "… and two rates describe it: share of starts for which the fit says that it applies",
            at_least(float(data.narrow_applies.sel(data="as_run").mean()), 0.5),
            fitted=True,
        ),
        paper(
            "With the printed data, dx = 0.5 and dy = 1, every start learns, too: share",
            at_least(float(learned.sel(data="as_printed").mean()), 1.0),
            fails="networks of 20 layers stay on their plateau for thousands of epochs more",
        ),
        paper(
            "… and two rates describe it: the same share",
            at_least(float(data.narrow_applies.sel(data="as_printed").mean()), 0.5),
            fitted=True,
            fails="after so long a plateau the drop is steeper than any of the theory's",
        ),
    ]
    if UNSURE in data.network:
        statements.append(
            paper(
                f"The convolutional network learns within {epochs} epochs, too: share of {UNSURE_STARTS} starts",
                at_least(float(np.isfinite(data.unsure_learned).mean()), 1.0),
                fails="where its last layer, of one channel, begins below 0, little gets through",
            )
        )
    if as_run and others.sizes["network"]:
        statements += _of_kinds(others)
    return statements + (_of_not_printed(rest) if as_run else [])


def _of_not_printed(data: Dataset) -> list[Claim]:
    """Claims about the rows that the settings as run have and the table does not, if they have enough units."""
    statements, epochs = [], int(data.epoch[-1])
    for name in data.network.values:
        one = data.sel(network=name)
        if one.units < WIDE:
            continue
        learned, r2 = float(np.isfinite(one.learned).mean()), one.r2.median("seed")
        if name == "gain 1.6":
            if epochs <= SETTLED:
                text = f"{name}, not printed: the network does not learn in {epochs} epochs: share of runs that do"
                statements.append(ours(text, at_most(learned, 0.0)))
            continue
        text = f"{name}, not printed: the network learns within {epochs} epochs: share of runs that do"
        statements.append(ours(text, at_least(learned, 1.0)))
        if name == "Adam":
            statements.append(
                ours("… which two rates do not describe: R² of w", at_most(float(r2.sel(curve="w")), 0.5), fitted=True)
            )
        else:
            text = "… and two rates describe it: smallest R² of H, P and w"
            statements.append(ours(text, at_least(float(r2.min()), 0.85), fitted=True))
    return statements


def _of_kinds(data: Dataset) -> list[Claim]:
    """Claims about κ and w by the kind of network."""
    kappa, alignment = data.kappa.median("seed"), data.r2.sel(curve="w").median("seed")
    rectified = [name for name in DEEP_RECTIFIED if name in data.network]
    smooth = [name for name in SMOOTH if name in data.network]
    levels = data.training.sel(curve="H").isel(epoch=-1) ** 2 / data.attrs["input_gap"] / data.attrs["target_gap"]
    gap = np.abs(levels / data.kappa - 1).where(np.isfinite(data.learned))
    statements = [
        paper(
            "A third rate describes the loss: smallest R² over networks",
            at_least(float(data.r2_loss.median("seed").min()), 0.95),
            fitted=True,
        ),
        ours(
            "κ agrees with the final distance, as H²/(XY): median relative gap",
            at_most(float(gap.median()), 0.15),
            fitted=True,
        ),
    ]
    if rectified:
        text = "20 layers of (leaky) ReLU units: the encoder learns slowly: median κ"
        typical = float(kappa.sel(network=rectified).median())
        statements.append(ours(text, between(typical, 0.005, 0.06), fitted=True))
    if "shallow" in data.network:
        text = "Two layers: κ is near one half"
        statements.append(ours(text, between(float(kappa.sel(network="shallow")), 0.4, 0.65), fitted=True))
    for name in smooth:
        if data.units.sel(network=name) >= WIDE:
            statements.append(
                ours(
                    f"20 layers, {name}: encoder and decoder learn at similar rates: κ",
                    between(float(kappa.sel(network=name)), 0.5, 2.0),
                    fitted=True,
                )
            )
    if smooth:
        least = data.network.values[np.argmin(alignment.values)]
        statements.append(
            paper(
                f"Two rates describe w in every network: smallest R² ({least})",
                at_least(float(alignment.min()), 0.9),
                fitted=True,
                fails="after a long wait networks drop more steeply than the theory",
            )
        )
    return statements


def figure(result: Result) -> Figure:
    data = result.data
    count = data.sizes["network"]
    columns = min(4, count)
    lines = math.ceil(count / columns)
    sheet, grid = new_figure(lines + 1, max(columns, 3), width=3.5, height=2.7)
    flat = grid[:-1].ravel()
    space = grid[0, 0].get_gridspec()
    for axes in (*flat[count:], *grid[-1]):
        axes.remove()
    for axes, name in zip(flat, data.network.values, strict=False):
        one = data.sel(network=name)
        draw_curves(axes, one)
        draw_loss(axes, one, data.attrs["target_gap"])
        axes.set_title(f"{name}, layer {int(one.layer)}")
    flat[0].legend(loc=(0.62, 0.46), fontsize=8)
    draw_fits(
        sheet.add_subplot(space[-1, :]),
        data,
        [str(name) for name in data.network.values],
        "fitted: rates per epoch, medians over seeds",
    )
    return sheet
