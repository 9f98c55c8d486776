"""Two rates fitted to one pair of points predict which pairs end near and which far apart, but not their distances.

Rates of the two-point theory are fitted to trials at one fixed pair of inputs and targets and averaged. New trials, one
for every point of a grid of input distances and target distances, are then compared with the final distance that the
theory gives from these rates and from each trial's own start. Trials that have not learned are left out, and counted.
The order of the distances is right, more so in the shallow network (r = 0.97) than in the narrow one (0.84); single
distances are wrong by 20 to 30 %, in the median. Rates differ from trial to trial, and their ratio κ by a factor of
several in a narrow network of twenty layers, so an average of them is no property of the architecture.

How much of this is due to the fit? From small weights the prediction is √κ |dx||dy|: the rates set its level and
nothing else, and |dx||dy| without any fit correlates as well. The figure also shows the law of depth, X^(1−l/L) Y^(l/L)
for l of L matrices in the encoder, in which no number is fitted. In the shallow network it does better (r = 0.998, a
fifth too large throughout); its level is that of linear layers, and several times too high for twenty leaky ReLU
layers.

The source prints dx = 0.5 and dy = 1 for the fixed pair; as run it was dx² = 1 and dy² = 0.5, and trials of the grid
had a fifth of the rate and up to 40000 epochs. Here they are trained for the same time, in longer steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import Setup, UnknownName, fit, tasks
from .._figures.style import COLOURS, new_figure
from .._foundation.checks import positive, whole
from ..theories.two_point import depth_law
from ._kit.pair_distances import correlation, each_alone, foreseen
from ._kit.table_of_networks import DATA, Row, row, two_point_setup
from .base import Claim, Result, at_least, at_most, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

THEME, PLACE = "pairs", 5
REFERENCE = {"vanrossem2024": "figure 5, section 4.2 and appendix B.1"}
QUICK = dict(networks=("shallow",), units=50, trials=3, epochs=4000, side=3, longer=1.5)
PRESETS = {"as_run": dict(data="as_run"), "as_printed": dict(data="as_printed")}
DX, DY = (0.5, 1.5), (0.0, 1.0)
FIT_IF, COUNTED_IF = 1e-2, 1e-3  # last losses below which a trial's rates are used, and a trial of the grid counts
ON_GRID = ("loss", "start", "distance", "predicted", "by_depth")


def run(
    *,
    networks: Sequence[str] = ("shallow", "narrow"),
    units: int | None = None,
    data: str = "as_run",
    trials: int = 10,
    epochs: int = 6000,
    side: int = 5,
    longer: float = 4 / 3,
    seed: int = 0,
) -> Result:
    """`trials` at the fixed pair give the rates; `side`² more, each for `longer` × `epochs`, are predicted.

    `units` replaces the widths of the networks, which are rows of the source's table 1.
    """
    trials, side = whole(trials, "trials", least=2), whole(side, "side", least=3)
    epochs, longer = whole(epochs, "epochs", least=100), positive(longer, "longer")
    if data not in DATA:
        raise UnknownName.among("data", data, DATA)
    setups, fits, grids = {}, {}, {}
    for name in networks:
        which = row(name) if units is None else row(name, units=whole(units, "units"))
        fixed = two_point_setup(which, data, epochs=epochs)
        fits[name] = _fitted(fixed, which, [seed + k for k in range(trials)])
        grids[name] = _grid(fixed, which, longer, side, seed + trials, _mean_rates(fits[name]))
        setups[name] = fixed
    return Result(_labelled(fits, grids, side, data), setups)


def _fitted(setup: Setup, which: Row, seeds: Sequence[int]) -> np.ndarray:
    """(η_h, η_y) per epoch, the three R² and the last loss of every trial, (trial, 6)."""
    numbers = []
    for trial in each_alone((setup, seed) for seed in seeds):
        fitted = fit("TwoPoint", trial, layer=which.index)
        rates = (rate * which.lr for rate in (fitted.rates.eta_h, fitted.rates.eta_y))
        numbers.append([*rates, *fitted.r2, trial["loss"][0, -1]])
    return np.array(numbers)


def _mean_rates(fits: np.ndarray) -> np.ndarray:
    """Arithmetic means over the trials that have learned."""
    learned = fits[fits[:, 5] < FIT_IF]
    return learned[:, :2].mean(axis=0) if len(learned) else np.full(2, np.nan)


def _grid(fixed: Setup, which: Row, longer: float, side: int, seed: int, rates: np.ndarray) -> np.ndarray:
    """Trials of the grid, (dx, dy, value): last loss, first and last H, predictions of eq. 10 and the law of depth."""
    trials = []
    for dx in np.linspace(*DX, side):
        for dy in np.linspace(*DY, side):
            setup = fixed.replace(task=tasks.two_point(dx, dy), times=[0.0, longer * fixed.times[-1]])
            (trial,) = each_alone([(setup, seed + len(trials))])
            H = trial["distance"][0, :, which.index, 0].astype(float)
            predicted = foreseen(trial, which.index, rates)[0] if np.all(np.isfinite(rates)) else np.nan
            by_depth = depth_law(dx**2, dy**2, which.index, which.layers + 1)
            trials.append([trial["loss"][0, -1], H[0], H[-1], predicted, by_depth])
    return np.reshape(trials, (side, side, -1))


def _labelled(fits: Mapping[str, np.ndarray], grids: Mapping[str, np.ndarray], side: int, data: str) -> Dataset:
    import xarray

    by_trial, by_point = np.stack(list(fits.values())), np.stack(list(grids.values()))
    return xarray.Dataset(
        {
            **{name: (("network", "dx", "dy"), by_point[..., k]) for k, name in enumerate(ON_GRID)},
            "eta_h": (("network", "trial"), by_trial[..., 0]),
            "eta_y": (("network", "trial"), by_trial[..., 1]),
            "r2": (("network", "trial", "curve"), by_trial[..., 2:5]),
            "fixed_loss": (("network", "trial"), by_trial[..., 5]),
        },
        coords={
            "network": list(fits),
            "dx": np.linspace(*DX, side),
            "dy": np.linspace(*DY, side),
            "curve": ["H", "P", "w"],
        },
        attrs={"data": data},
    )


def _scores(data: Dataset) -> dict[str, float]:
    """Of one network: r of H and of its root, the relative error, and r of two predictions without a fit."""
    counted = data.loss.values < COUNTED_IF
    H, predicted, by_depth = (data[name].values[counted] for name in ("distance", "predicted", "by_depth"))
    product = np.outer(data.dx, data.dy)[counted]
    apart = H > 0
    return {
        "r": correlation(H, predicted),
        "r_roots": correlation(np.sqrt(H), np.sqrt(predicted)),
        "error": float(np.median(np.abs(predicted / H - 1)[apart])) if apart.any() else float("nan"),
        "r_product": correlation(H, product),
        "r_depth": correlation(H, by_depth),
        "left_out": int((~counted).sum()),
    }


def claims(result: Result) -> list[Claim]:
    statements = []
    for name in result.data.network.values:
        data = result.data.sel(network=name)
        score, shallow = _scores(data), name == "shallow"
        ends = data.distance.where(data.loss < COUNTED_IF)
        merged, others = ends.isel(dy=0), ends.isel(dy=slice(1, None))
        statements += [
            paper(
                f"The final distance is predicted, {name}: r of H over the trials that have learned",
                at_least(score["r"], 0.9 if shallow else 0.6),
                fitted=True,
            ),
            paper("… and r of √H", at_least(score["r_roots"], 0.9 if shallow else 0.7), fitted=True),
            paper(
                "… and its size: median relative error of H",
                at_most(score["error"], 0.1),
                fails="rates depend on the pair and on the seed; they are no constants of a network",
                fitted=True,
            ),
            ours(
                "… |dx||dy| alone, with nothing fitted, correlates as well: difference of r",
                at_most(abs(score["r"] - score["r_product"]), 0.1),
            ),
            ours("… as does the law of depth: its r", at_least(score["r_depth"], 0.85 if shallow else 0.5)),
            paper(
                "… pairs of one target merge: largest final H of dy = 0 / mean of the others",
                at_most(merged.max() / others.mean(), 0.1),
            ),
            ours(
                f"… share of trials that have not learned and are left out ({score['left_out']} of {data.loss.size})",
                at_most(score["left_out"] / data.loss.size, 0.3),
            ),
        ]
        if name == "narrow":
            kappa = (data.eta_h / data.eta_y).where(data.fixed_loss < FIT_IF)
            text = "… trials at one pair do not share their rates: largest κ / least"
            statements.append(ours(text, at_least(kappa.max() / kappa.min(), 1.5), fitted=True))
    return statements


def figure(result: Result) -> Figure:
    names = list(result.data.network.values)
    sheet, grid = new_figure(len(names), 3)
    for (fitted, law, rates), name in zip(grid, names, strict=True):
        data, score = result.data.sel(network=name), _scores(result.data.sel(network=name))
        _draw_prediction(fitted, data, "predicted", f"{name}: eq. 10, fitted rates, r = {score['r']:.2f}")
        _draw_prediction(law, data, "by_depth", f"law of depth, nothing fitted, r = {score['r_depth']:.2f}")
        sheet.colorbar(law.collections[0], ax=law, label="dx")
        _draw_rates(rates, data, name)
    return sheet


def _draw_prediction(axes: Axes, data: Dataset, kind: str, title: str) -> None:
    """Final distances in training against one prediction, for the trials that have learned."""
    counted = data.loss.values < COUNTED_IF
    shade = np.broadcast_to(data.dx.values[:, None], counted.shape)
    H, predicted = data.distance.values[counted], data[kind].values[counted]
    axes.scatter(predicted, H, c=shade[counted], cmap="viridis", s=26, vmin=DX[0], vmax=DX[1])
    top = 1.05 * max(float(H.max()), float(np.nanmax(predicted)), 1e-6)
    axes.plot([0, top], [0, top], color="0.5", lw=1.2, ls=":")
    axes.set(xlabel="predicted H", ylabel="final H, trained", title=title)


def _draw_rates(axes: Axes, data: Dataset, name: str) -> None:
    """The rates that were fitted to each trial at the fixed pair, and their mean."""
    learned = data.fixed_loss.values < FIT_IF
    kappa = (data.eta_h / data.eta_y)[learned]
    spread = float(data.eta_y[learned].std() / data.eta_y[learned].mean())
    x, y = (1e3 * data[rate].values[learned] for rate in ("eta_y", "eta_h"))
    axes.plot(x, y, "o", color=COLOURS[0], ms=5, label="one trial, fitted")
    axes.plot(x.mean(), y.mean(), "x", color=COLOURS[1], ms=9, mew=2, label=f"mean; η_y ± {100 * spread:.0f} %")
    axes.margins(0.15)
    axes.set(xlabel="η_y (10⁻³ per epoch)", ylabel="η_h (10⁻³ per epoch)")
    axes.set_title(f"{name}: κ from {float(kappa.min()):.2g} to {float(kappa.max()):.2g}")
    axes.legend(loc="best")
