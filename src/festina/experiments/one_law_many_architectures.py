"""Two fitted rates describe how two points part in networks of many architectures, but not how they drop in all.

Every network of the source's table is trained on two points. In the hidden layer half way, H is the squared distance of
the points, P that of the outputs, and w = P − dy·Δy*. Two rates, fitted to each run, describe H and P; a third, that
of the mean of the outputs, the loss. All rates here are fitted. Their ratio κ = η_h/η_y tells the networks apart: about
0.02 in deep networks of (leaky) ReLU units, whose encoders learn slowly, a half in one of two layers, near 1 in linear
and tanh ones. It is no more than what the final distance says, κ = H²/(XY), and varies by a factor of 5 over narrow
networks.

**What does not reproduce.** That one law describes w in all of them: in linear and tanh networks R² of w is 0.7, below
0.9 in most others that are not chains of (leaky) ReLU layers, and `applies` of the fit says so. That the convolutional
network learns from every start: its last convolution has one channel, and where that begins below 0 its leaky units
pass on a hundredth of the signal, and the loss stays at Y/8. And the printed data, dx = 0.5 and
dy = 1: with them networks of 20 layers stay at Y/8 beyond the 6000 epochs in about half of the starts, or more, and two
rates describe none. The figures are those of dx² = 1 and dy² = 0.5, the values here.

**Not printed.** The settings as run have four rows more; `networks` takes them by name, and none is among the values
here. Each was trained once from three starts (Adam from two). "gain 1.2" learns (after 1400 to 1960 epochs; R² of H, P
and w at least 0.93, 0.996 and 0.90), and the fit applies to one of three, since H starts at up to 0.4 of its end.
"gain 1.6", at a rate of 1.5·10⁻⁶, does not learn: after 6000 epochs its loss is 0.011 to 0.025, H has fallen by an
eighth to a fifth of 25 to 34, and no fit applies. "Adam" learns after 2600 epochs, with R² of −0.5, 0.92 and −0.4. The
"two-layer linear" network learns after 3940, with R² of 1.00, 0.999 and 0.993 and κ = 0.89, and the fit applies.
"""

from __future__ import annotations

import math

import numpy as np

from .._errors import BadInput
from .._noun import whole
from .._plot import new_figure
from .._report import Claim, Result
from ._fitted_rows import draw_curves, draw_fits, draw_loss, trained_and_fitted
from ._two_points import DATA, NOT_PRINTED, WIDE, row

REFERENCE = {"vanrossem2024": "figures 2 and 11, table 1"}
NETWORKS = (
    "default", "convolution", "skip", "shallow", "narrow", "dropout", "linear", "ReLU", "ELU", "tanh", "swish",
)  # fmt: skip
PRESETS = {"as_run": dict(data="as_run"), "as_printed": dict(data="as_printed")}
QUICK = dict(networks=("narrow", "shallow"), seeds=3, starts=3, every=40)
UNSURE = "convolution"  # some of its starts do not learn, and nothing can be fitted to these
UNSURE_STARTS = 4
DEEP_KINKED, SMOOTH = ("default", "narrow", "ReLU"), ("linear", "tanh")
SETTLED = 6000  # epochs of the table


def run(*, networks=NETWORKS, units=None, data="as_run", epochs=6000, every=20, seeds=1, starts=8, seed=0) -> Result:
    """`networks` are rows of table 1, or of those that are not printed; `data` is "as_run" or "as_printed".

    The latter are "gain 1.2", "gain 1.6", "Adam" and "two-layer linear". `units` are the widths if not as there.
    `starts` is how many seeds of the narrow network are trained on both data sets; of the convolutional one, if it is
    there, four are.
    """
    rows = {name: row(name, data, **({} if units is None else {"units": whole(units, "units")})) for name in networks}
    if not set(rows) - {UNSURE}:
        raise BadInput(f"networks = {networks!r}", "one that learns two points", f"name others: {', '.join(NETWORKS)}")
    epochs, every = whole(epochs, "epochs"), whole(every, "every")
    seeds, starts = whole(seeds, "seeds"), whole(starts, "starts", least=2)
    asked = dict(epochs=epochs, every=every)
    found, setups = trained_and_fitted(rows, range(seed, seed + seeds), data=data, **asked)
    both = {}
    for kind in DATA:
        if kind == data and starts == seeds and rows.get("narrow") == row("narrow"):
            both[kind] = found.sel(network="narrow")
            continue
        again, more = trained_and_fitted({"narrow": row("narrow")}, range(seed, seed + starts), data=kind, **asked)
        both[kind] = again.isel(network=0)
        setups[f"narrow, {kind.replace('_', ' ')}"] = more["narrow"]
    if UNSURE in rows:
        learned, others = found.learned.sel(network=UNSURE).values, range(seed + seeds, seed + UNSURE_STARTS)
        if others:
            again, _ = trained_and_fitted({UNSURE: rows[UNSURE]}, others, data=data, **asked)
            learned = np.append(learned, again.learned.values[0])
        found["unsure_learned"] = ("unsure_start", learned[:UNSURE_STARTS])
    found = found.assign(
        narrow_learned=(("data", "start"), [one.learned.values for one in both.values()]),
        narrow_applies=(("data", "start"), [one.applies.values for one in both.values()]),
        units=("network", [one.units for one in rows.values()]),
    ).assign_coords(data=list(both))
    return Result(found.assign_attrs(chosen=data), setups)


def claims(result: Result) -> list[Claim]:
    data = result.data
    as_run = data.attrs["chosen"] == "as_run"
    unlike = "" if as_run else "with the printed data deep networks wait so long that two rates do not describe them"
    late = "" if as_run else "with the printed data deep networks are still on their plateau"
    others = data.sel(network=[name for name in data.network.values if name != UNSURE and name not in NOT_PRINTED])
    rest = data.sel(network=[name for name in data.network.values if name in NOT_PRINTED])
    learned, wanted = np.isfinite(data.narrow_learned), int(data.epoch[-1])
    found = []
    if others.sizes["network"]:
        of_networks = others.r2.sel(curve=["H", "P"]).min("curve").median("seed")
        worst = others.network.values[np.argmin(of_networks.values)]
        found += [
            Claim.at_least(
                f"Two rates describe the distances in the layer and of the outputs: smallest R² of H and P ({worst})",
                float(of_networks.min()), 0.85, source="paper", fitted=True, expected=as_run, reason=unlike,
            ),
            Claim.at_least(
                f"They learn within {wanted} epochs: share",
                float(np.isfinite(others.learned).mean()), 1.0, source="paper", expected=as_run, reason=late,
            ),
        ]  # fmt: skip
    found += [
        Claim.at_least(
            f"With the data of the figures every start of the narrow network learns within {wanted} epochs: share",
            float(learned.sel(data="as_run").mean()), 1.0,
        ),
        Claim.at_least(
            "… and two rates describe it: share of starts of which nothing speaks against the fit",
            float(data.narrow_applies.sel(data="as_run").mean()), 0.5, source="paper", fitted=True,
        ),
        Claim.at_least(
            "With the printed data, dx = 0.5 and dy = 1, it does so too: share",
            float(learned.sel(data="as_printed").mean()), 1.0, source="paper",
            expected=False, reason="networks of 20 layers stay on their plateau for thousands of epochs more",
        ),
        Claim.at_least(
            "… and two rates describe it: the same share",
            float(data.narrow_applies.sel(data="as_printed").mean()), 0.5, source="paper", fitted=True,
            expected=False, reason="after so long a plateau the drop is steeper than any of the theory's",
        ),
    ]  # fmt: skip
    if UNSURE in data.network:
        found.append(
            Claim.at_least(
                f"The convolutional network learns within {wanted} epochs, too: share of {UNSURE_STARTS} starts",
                float(np.isfinite(data.unsure_learned).mean()), 1.0, source="paper",
                expected=False, reason="where its last layer, of one channel, begins below 0, little gets through",
            )
        )  # fmt: skip
    if as_run and others.sizes["network"]:
        found += _of_kinds(others)
    return found + (_of_not_printed(rest) if as_run else [])


def _of_not_printed(data) -> list[Claim]:
    """What the rows do that the settings as run have and the table does not, at their widths or nearly."""
    found, wanted = [], int(data.epoch[-1])
    for name in data.network.values:
        one = data.sel(network=name)
        if one.units < WIDE:
            continue
        learned, r2 = float(np.isfinite(one.learned).mean()), one.r2.median("seed")
        if name == "gain 1.6":
            if wanted <= SETTLED:
                found.append(
                    Claim.at_most(f"{name}, not printed: it does not learn in {wanted} epochs: share", learned, 0.0)
                )
            continue
        found.append(Claim.at_least(f"{name}, not printed: it learns within {wanted} epochs: share", learned, 1.0))
        if name == "Adam":
            found.append(
                Claim.at_most("… which two rates do not describe: R² of w", float(r2.sel(curve="w")), 0.5, fitted=True)
            )
        else:
            found.append(Claim.at_least("… as two rates describe: smallest R²", float(r2.min()), 0.85, fitted=True))
    return found


def _of_kinds(data) -> list[Claim]:
    """What is known of κ and w by the kind of network."""
    kappa, alignment = data.kappa.median("seed"), data.r2.sel(curve="w").median("seed")
    kinked = [name for name in DEEP_KINKED if name in data.network]
    smooth = [name for name in SMOOTH if name in data.network]
    levels = data.training.sel(curve="H").isel(epoch=-1) ** 2 / data.attrs["input_gap"] / data.attrs["target_gap"]
    gap = np.abs(levels / data.kappa - 1).where(np.isfinite(data.learned))
    found = [
        Claim.at_least(
            "A third rate describes the loss: smallest R² of a network",
            float(data.r2_loss.median("seed").min()), 0.95, source="paper", fitted=True,
        ),
        Claim.at_most(
            "κ is what the final distance says, H²/(XY): median relative gap", float(gap.median()), 0.15, fitted=True
        ),
    ]  # fmt: skip
    if kinked:
        typical = float(kappa.sel(network=kinked).median())
        found.append(
            Claim.between("20 layers with a kink: encoders learn slowly, median κ", typical, 0.005, 0.06, fitted=True)
        )
    if "shallow" in data.network:
        found.append(
            Claim.between("Two layers: κ is near a half", float(kappa.sel(network="shallow")), 0.4, 0.65, fitted=True)
        )
    for name in smooth:
        if data.units.sel(network=name) >= WIDE:
            found.append(
                Claim.between(
                    f"20 layers, {name}: encoder and decoder learn at like rates, κ",
                    float(kappa.sel(network=name)), 0.5, 2.0, fitted=True,
                )
            )  # fmt: skip
    if smooth:
        least = data.network.values[np.argmin(alignment.values)]
        found.append(
            Claim.at_least(
                f"Two rates describe w in every network: smallest R² ({least})",
                float(alignment.min()), 0.9, source="paper", fitted=True,
                expected=False, reason="after a long wait networks drop more steeply than the theory",
            )
        )  # fmt: skip
    return found


def figure(result: Result):
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
        sheet.add_subplot(space[-1, :]), data, [str(name) for name in data.network.values],
        "fitted: rates per epoch, medians over seeds",
    )  # fmt: skip
    return sheet
