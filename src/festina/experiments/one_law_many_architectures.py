"""In many architectures two fitted rates describe how the distances between two points grow, but in some of them they
do not describe how the outputs align with the targets.

Each network of the source's table is trained on two points. H is the squared distance of the points in a middle hidden
layer, P that of their outputs, and w = P − dy·Δy* says how the difference of the outputs, dy, is aligned with that of
the targets. Two rates of the two-point theory, fitted to each run, describe H and P; a third rate, that of the mean
output, describes the loss. All rates here are fitted. The ratio κ = η_h/η_y of the two rates, that of the layers below
over that of the layers above, tells the networks apart. It is about 0.02 in deep networks of (leaky) ReLU units, whose
lower layers learn slowly, one half in a network of two hidden layers, and near 1 in linear and tanh networks. It says
no more than the final H does, κ = H²/(XY) with X and Y the squared distances of inputs and targets, and it
varies by a factor of 5 between narrow networks.

**What does not reproduce.** Two rates do not describe w in all networks: in linear and tanh networks R² of w is 0.7,
and it is below 0.9 in most others that are not chains of (leaky) ReLU layers. The fit itself reports this in `applies`.
The convolutional network does not learn from every seed: its last convolution has one channel, and where this channel
is below 0 at first, its leaky units pass on a hundredth of the signal, and the loss stays at Y/8. Nor do the printed
data reproduce the figures, dx = 0.5 and dy = 1. With them networks of 20 layers stay at Y/8 beyond the 6000 epochs from
about half of the seeds or more, and two rates describe none of them. The figures come from dx² = 1 and dy² = 0.5, the
default values here.

**Not printed.** The released settings have four more rows; `networks` takes them by name, and none is among the default
values. From three seeds "gain 1.2" learns after 1400 to 1960 epochs, and the fit applies to one, since the first H is
up to 0.4 of the final one. "gain 1.6", at a learning rate of 1.5·10⁻⁶, has a loss of 0.011 to 0.025 after 6000 epochs,
and no fit applies. "Adam" learns after 2600 epochs (two seeds), with R² of −0.5, 0.92 and −0.4. The "two-layer linear"
network learns after 3940 epochs (three seeds), with R² of 1.00, 0.999 and 0.993 and κ = 0.89, and the fit applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np

from .._figures.overlay import overlay
from .._figures.panels import border, key, panels
from .._figures.style import INK
from .._foundation.checks import whole
from .._foundation.errors import BadInput
from ._kit.fitted_rows import CURVE_COLOURS, trained_and_fitted
from ._kit.labelled import prefixed, stack, table
from ._kit.parameters import Count, OneOf, Seed, Several, checked
from ._kit.table_of_networks import DATA, NOT_PRINTED, TABLE_1, WIDE, row
from .base import Claim, Marks, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

THEME, PLACE = "pairs", 2
REFERENCE = {"vanrossem2024": "figures 2 and 11, table 1"}
NETWORKS = tuple(TABLE_1)[:11]  # the others differ from the default in their gain only
PRESETS = {"as_run": dict(data="as_run"), "as_printed": dict(data="as_printed")}
QUICK = dict(networks=("narrow", "shallow", "ReLU", "skip", "tanh"), units=50, seeds=3, starts=3, every=40)
CAPTION = """
H is the squared distance of two points in a middle hidden layer of a network, P that of their outputs, and w = P −
dy·Δy* says how the difference of the outputs, dy, is aligned with Δy*, that of the targets. **a** The network in which
two fitted rates describe w best, and **b** the one in which they describe it worst, both from the first seed. **c** R²
of the fit for every network, median over seeds. Networks have 20 hidden layers of leaky ReLU units, except as their
names say: “shallow” has two layers, “narrow” fewer units, “skip” has skip connections, and so on. **d** The ratio κ of
the fitted rate of the layers below to that of the layers above: a circle for each seed. The line is at equal rates.
Runs that have not learned are left out of c and d.
"""
ALT = """
In panel a the dashed fit lies close to the training; in panel b it rises earlier and less steeply. R² of H and P is
near 1 in nearly all networks, that of w is far below in some. κ spreads over two orders of magnitude.
"""
UNSURE, UNSURE_STARTS = "convolution", 4  # some of these seeds do not learn
DEEP_RECTIFIED, SMOOTH = ("default", "narrow", "ReLU"), ("linear", "tanh")
LONGER = "networks of 20 layers stay on their plateau for thousands of epochs more"
STEEPER = "after so long a plateau the drop is steeper than any of the theory's"
EARLIER = "after a long wait networks drop more steeply than the theory"


@checked
def run(
    *,
    networks: Sequence[str] = NETWORKS,
    units: int | None = None,
    data: Annotated[str, OneOf(*DATA)] = "as_run",
    epochs: Count = 6000,
    every: Count = 20,
    seeds: Count = 1,
    starts: Several = 8,
    seed: Seed = 0,
) -> Result:
    """`networks` are rows of table 1, or of those that are not printed; `data` is "as_run" or "as_printed".

    The rows that are not printed are "gain 1.2", "gain 1.6", "Adam" and "two-layer linear". `units` replaces the widths
    of the rows. `starts` is the number of seeds from which the narrow network is trained on both data sets; the
    convolutional network, if it is among `networks`, is trained from four.
    """
    rows = {name: row(name, data, **({} if units is None else {"units": whole(units, "units")})) for name in networks}
    if not set(rows) - {UNSURE}:
        raise BadInput(f"networks = {networks!r}", "one that learns two points", f"name others: {', '.join(NETWORKS)}")
    fitted, setups = trained_and_fitted(rows, range(seed, seed + seeds), data=data, epochs=epochs, every=every)
    both = {}
    for kind in DATA:
        if kind == data and starts == seeds and rows.get("narrow") == row("narrow"):
            again = fitted.sel(network="narrow", drop=True)
        else:
            draws, name = range(seed, seed + starts), f"narrow, {kind.replace('_', ' ')}"
            again, more = trained_and_fitted({"narrow": row("narrow")}, draws, data=kind, epochs=epochs, every=every)
            again, setups[name] = again.isel(network=0, drop=True), more["narrow"]
        both[kind] = again[["learned", "applies"]].rename(seed="start")
    if UNSURE in rows:
        learned, others = fitted.learned.sel(network=UNSURE).values, range(seed + seeds, seed + UNSURE_STARTS)
        if others:
            again, _ = trained_and_fitted({UNSURE: rows[UNSURE]}, others, data=data, epochs=epochs, every=every)
            learned = np.append(learned, again.learned.values[0])
        fitted["unsure_learned"] = table(learned[:UNSURE_STARTS], "unsure_start")
    fitted["units"] = table([chosen.units for chosen in rows.values()], "network")
    return Result(fitted.assign(prefixed(stack(both, "data"), "narrow")).assign_attrs(chosen=data), setups)


def claims(result: Result) -> list[Claim]:
    data = result.data
    as_run = data.attrs["chosen"] == "as_run"
    printed = np.isin(data.network, list(NOT_PRINTED))
    others, rest = data.isel(network=~printed & (data.network.values != UNSURE)), data.isel(network=printed)
    learned, applies = np.isfinite(data.narrow_learned).mean("start"), data.narrow_applies.mean("start")
    epochs = int(data.epoch[-1])
    statements = _of_fits(others, as_run) if others.sizes["network"] else []
    for kind, said in (("as_run", "the data of the figures"), ("as_printed", "the printed data, dx = 0.5, dy = 1")):
        printed, learn, fit = kind == "as_printed", at_least(learned.sel(data=kind), 1.0), applies.sel(data=kind)
        text = f"Narrow network on {said}: share of seeds that learn within {epochs} epochs"
        statements.append(paper(text, learn, fails=LONGER) if printed else ours(text, learn))
        text = f"Narrow network on {said}: share of seeds whose fit reports that the theory applies"
        statements.append(paper(text, at_least(fit, 0.5), fitted=True, fails=STEEPER if printed else ""))
    if UNSURE in data.network:
        text = f"Convolutional network: share of {UNSURE_STARTS} seeds that learn within {epochs} epochs"
        why = "where its last layer, of one channel, begins below 0, little gets through"
        statements.append(paper(text, at_least(np.isfinite(data.unsure_learned).mean(), 1.0), fails=why))
    if as_run and others.sizes["network"]:
        statements += _of_kappa(others)
    return statements + (_of_not_printed(rest, epochs) if as_run else [])


def _of_fits(data: Dataset, as_run: bool) -> list[Claim]:
    """Claims about how well two or three rates describe the networks of the table."""
    unlike = "" if as_run else "with the printed data deep networks wait so long that two rates do not describe them"
    late = "" if as_run else "with the printed data deep networks are still on their plateau"
    r2 = data.r2.median("seed")
    distances, alignment = r2.sel(curve=["H", "P"]).min("curve"), r2.sel(curve="w")
    marks = Marks(fitted=True, headline=True, panel="c")
    text = f"Two fitted rates: smallest R² of the squared distances H and P over networks ({_least(distances)})"
    statements = [paper(text, at_least(distances.min(), 0.85), fails=unlike, **marks)]
    if as_run and set(SMOOTH) & set(data.network.values):
        text = f"Two fitted rates: smallest R² of the alignment w over networks ({_least(alignment)})"
        statements.append(paper(text, at_least(alignment.min(), 0.9), fails=EARLIER, **marks))
    if as_run:
        text = "Three fitted rates: smallest R² of the loss over networks"
        statements.append(paper(text, at_least(data.r2_loss.median("seed").min(), 0.95), fitted=True))
    text = f"Networks other than the convolutional one: share of runs that learn within {int(data.epoch[-1])} epochs"
    return [*statements, paper(text, at_least(np.isfinite(data.learned).mean(), 1.0), fails=late)]


def _least(values: DataArray) -> str:
    """The network in which a number is smallest."""
    return str(values.idxmin("network").item())


def _of_not_printed(data: Dataset, epochs: int) -> list[Claim]:
    """Claims about the rows that the released settings have and the table does not, if they have enough units."""
    statements = []
    for name in data.network.values[data.units.values >= WIDE]:
        one = data.sel(network=name)
        learned, r2 = np.isfinite(one.learned).mean(), one.r2.median("seed")
        text = f"{name}, not printed: share of runs that learn within {epochs} epochs"
        if name != "gain 1.6":
            statements.append(ours(text, at_least(learned, 1.0)))
        elif epochs <= 6000:  # those of the table
            statements.append(ours(text, at_most(learned, 0.0)))
        if name == "Adam":
            text = f"{name}, not printed: R² of the alignment w, which two fitted rates do not describe"
            statements.append(ours(text, at_most(r2.sel(curve="w"), 0.5), fitted=True))
        elif name != "gain 1.6":
            text = f"{name}, not printed: smallest R² of H, P and w with two fitted rates"
            statements.append(ours(text, at_least(r2.min(), 0.85), fitted=True))
    return statements


def _of_kappa(data: Dataset) -> list[Claim]:
    """Claims about κ by the kind of network."""
    kappa = data.kappa.median("seed")
    levels = data.training.sel(curve="H").isel(epoch=-1) ** 2 / data.attrs["input_gap"] / data.attrs["target_gap"]
    gap = np.abs(levels / data.kappa - 1).where(np.isfinite(data.learned))
    text = "Fitted κ against H²/(XY) of the final distance H: median relative gap over runs that have learned"
    statements = [ours(text, at_most(gap.median(), 0.15), fitted=True)]
    wide = data.network.values[data.units.values >= WIDE]
    for names, kind, low, high in (
        (
            [*DEEP_RECTIFIED],
            "20 layers of (leaky) ReLU: median fitted κ, small as lower layers learn slowly",
            0.005,
            0.06,
        ),
        (["shallow"], "Two hidden layers: fitted κ, which is near one half", 0.4, 0.65),
        *(([n], f"20 layers, {n}: fitted κ, near 1 as all layers learn at similar rates", 0.5, 2.0) for n in SMOOTH),
    ):
        trained = [name for name in names if name in (wide if name in SMOOTH else data.network)]
        if trained:
            value = kappa.sel(network=trained).median()
            statements.append(ours(kind, between(value, low, high), fitted=True, panel="d"))
    return statements


def figure(result: Result) -> Figure:
    data = result.data
    ended = data.where(np.isfinite(data.learned))
    alignment = ended.r2.sel(curve="w").median("seed").fillna(-np.inf)
    names = list(data.network.values[np.argsort(alignment.values)])
    sheet, at = panels("ab;cd")
    for letter, name, title in (("a", names[-1], "Best fit of w"), ("b", names[0], "Worst fit of w")):
        one = data.sel(network=name).isel(seed=0)
        overlay(at[letter], one.training, one.fitted, along="epoch", by="curve", colours=CURVE_COLOURS)
        at[letter].set(title=f"{title}: “{name}” network", ylabel="H, P and w")
    for (curve, colour), size in zip(CURVE_COLOURS.items(), (8, 5, 5), strict=True):
        at["c"].plot(ended.r2.sel(curve=curve, network=names).median("seed"), names, "o", color=colour, ms=size)
    for seed in range(data.sizes["seed"]):
        at["d"].plot(ended.kappa.isel(seed=seed).sel(network=names), names, "o", color=INK, ms=4, mfc="none")
    for letter in "cd":
        border(at[letter], 1.0)
        at[letter].margins(y=0.1)
    at["c"].set(title="Quality of the fit of every network", xlabel="R² of the fit, median over seeds")
    at["d"].set(
        title="The ratio of rates differs between networks", xlabel="κ, rate below / rate above the layer", xscale="log"
    )
    key(sheet, CURVE_COLOURS, kinds=("training", "fit"))
    return sheet
