"""The two-point theory in every layer of a network at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jaxtyping import Float

from .._formulas.two_points import ends
from .._formulas.two_points.pair import Pair, Start
from .._foundation.checks import truth
from .._foundation.precision import in_double
from .._setup.trajectory import Trajectory
from .._verbs.fit.two_points import fit_all
from ..theories._fitting.two_point_answer import TwoPointFit
from ..theories._fitting.two_point_records import Entry, recorded

if TYPE_CHECKING:
    import xarray

Curve: TypeAlias = Float[np.ndarray, " time"]
LAST = 50  # the end of a run is the last of this many equal parts of it
TRANSITION = (0.4, 0.6)  # of the way that the output goes along the target
RATES = ("eta_h", "eta_y", "kappa")
NUMBERS = (
    *RATES,
    *(f"{name}_error" for name in RATES),
    *("sse", "condition", "final_distance", "measured_final_distance", "slope"),
)


def scan(trajectory: Trajectory, *, start: int = 0, free_gap: bool = False) -> xarray.Dataset:
    """Fit the two-point theory to every layer, pair and seed of a trajectory, in one call.

    Gives an `xarray.Dataset` with the axes (seed, layer, pair); seed only if the trajectory has it:

    - `eta_h`, `eta_y` and `kappa` = η_h/η_y, fitted, and their standard errors, `eta_h_error` and so on;
    - `r2` (…, curve), `sse`, `condition`, `converged`, `applies`, `reasons` and `advice`, as `fit` has them;
    - `final_distance`, the closed form's from the recorded start with these rates, and `measured_final_distance`;
    - `slope`, d ln H/d ln p half way through the transition: 1 in the layer that the theory is made for;
    - `best` (seed, pair), the layer with the least squared error; `attrs["best"]` is that of the median over pairs;
    - `eta_mean`, `eta_mean_error` and `r2_mean` (seed, pair), the third rate, where there is something to fit it to.

    A record that cannot be fitted, or whose rates are not found (the search ends at no minimum, or they are not
    identified), has NaN and `reasons`, and leaves the others alone. Rates beside `applies` = False are those of the
    nearest curves, and biased. `trajectory`, `start` and `free_gap` are those of `fit`, whose answers these are.
    """
    import xarray

    record, free_gap = recorded(trajectory), truth(free_gap, "free_gap")
    shape = record.distance.shape[0], *record.distance.shape[2:]
    entries = [record.member(*index) for index in np.ndindex(*shape)]
    fits = fit_all(record.times, entries, free_gap=free_gap, start=start)
    values = {name: np.full(shape, np.nan) for name in NUMBERS}
    values |= {"converged": np.zeros(shape, bool), "applies": np.zeros(shape, bool)}
    r2 = np.full((*shape, 3), np.nan)
    reasons, advice = np.full(shape, "", object), np.full(shape, "", object)
    thirds = {name: np.full((shape[0], shape[2]), np.nan) for name in ("eta_mean", "eta_mean_error", "r2_mean")}
    for index, entry, fit in zip(np.ndindex(*shape), entries, fits, strict=True):
        if not isinstance(fit, TwoPointFit):
            reasons[index], advice[index] = f"cannot be fitted: {fit.seen}; needed: {fit.needed}", fit.do
            continue
        for name, value in _read(fit, entry, start).items():
            values[name][index] = value
        r2[index], reasons[index] = fit.r2, "; ".join(fit.applies.reasons)
        advice[index] = "; ".join(fit.applies.advice)
        if fit.mean is not None:
            # Every layer has the same outputs.
            for name, value in zip(thirds, (fit.mean.eta, fit.mean.error, fit.mean.r2), strict=True):
                thirds[name][index[0], index[2]] = value
    dims, known = ("seed", "layer", "pair"), np.isfinite(values["sse"]) & np.isfinite(values["kappa"])
    error = np.where(known, values["sse"], np.inf)
    names = np.array(record.layers)
    best = np.where(known.any(axis=1), names[np.argmin(error, axis=1)], "")
    data = xarray.Dataset(
        {
            **{name: (dims, value) for name, value in values.items()},
            "r2": ((*dims, "curve"), r2),
            "reasons": (dims, reasons.astype(str)),
            "advice": (dims, advice.astype(str)),
            "best": (("seed", "pair"), best),
            **{name: (("seed", "pair"), value) for name, value in thirds.items()},
        },
        coords={
            "seed": record.seeds or [0],
            "layer": names,
            "pair": np.array(record.pairs),
            "curve": ["distance", "output", "alignment"],
        },
        attrs={"theory": "TwoPoint", "fitted": "rates, per unit of the recorded times", "start": start},
    )
    usable = known.any(axis=1)
    if usable.any():
        median = np.median(np.moveaxis(error, 1, -1)[usable], axis=0)
        data.attrs["best"] = str(names[np.argmin(median)])
    return data if record.seeds is not None else data.isel(seed=0, drop=True)


def _read(fit: TwoPointFit, entry: Entry, start: int) -> dict[str, Any]:
    """The numbers of one fit, by name."""
    moved = np.isfinite(np.asarray(fit.r2, float)).any()
    H, P, w = (np.asarray(curve, float)[start:] for curve in (entry.H, entry.P, entry.w))
    late = max(1, len(H) // LAST)
    return {
        **(_rates(fit, entry, H[0]) if fit.has_rates else {}),  # what a search ended with that found none is no rate
        **dict(sse=fit.sse if moved else np.nan, condition=fit.condition),
        "converged": fit.converged,
        "applies": bool(fit.applies),
        "measured_final_distance": float(np.median(H[-late:])),
        "slope": _slope(H, P, w, entry.Y),
    }


def _rates(fit: TwoPointFit, entry: Entry, distance0: float) -> dict[str, float]:
    """Rates, their errors, and where they lead to."""
    spread = fit.log_covariance
    with np.errstate(invalid="ignore"):  # of a fit to the last digit, variances may round below 0
        kappa_error = np.sqrt(spread[0, 0] + spread[1, 1] - 2 * spread[0, 1]) * fit.kappa
        errors = np.sqrt(np.diag(fit.covariance)[:2])
    return {
        **dict(eta_h=fit.rates.eta_h, eta_y=fit.rates.eta_y, kappa=fit.kappa),
        **dict(eta_h_error=errors[0], eta_y_error=errors[1], kappa_error=kappa_error),
        "final_distance": _final(fit, entry, distance0),
    }


@in_double
def _final(fit: TwoPointFit, entry: Entry, distance0: float) -> float:
    """H∞ from the fitted start."""
    output0, alignment0 = (float(np.asarray(curve)[0]) for curve in fit.predicted[1:])
    start, pair = Start(distance0, output0, alignment0), Pair(entry.X, entry.Y, fit.tau_h, fit.tau_y)
    return float(ends.final_distance(start, pair))


def _slope(H: Curve, P: Curve, w: Curve, Y: float) -> float:
    """d ln H/d ln p between two points of the transition of p, by the straight lines between records."""
    along = (P - w) / np.sqrt(Y) if Y > 0 else np.zeros(1)
    goals = along[0] + np.array(TRANSITION) * (along[-1] - along[0])
    if not (goals > 0).all() or goals[0] >= goals[1]:
        return np.nan
    places = []
    for goal in goals:
        after = int(np.argmax(along >= goal))
        places.append(after - 1 + (goal - along[after - 1]) / (along[after] - along[after - 1]))
    early, late = np.interp(places, np.arange(len(H)), H)
    return float(np.log(late / early) / np.log(goals[1] / goals[0])) if early > 0 and late > 0 else np.nan
