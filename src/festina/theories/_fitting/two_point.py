"""The fit of the two-point theory: two rates from H, P and w, a third from the mean of the outputs.

Least squares of H, P and w with equal weights, from the recorded start [vanrossem2024, eq. 49], in the logarithms of
the two rates. The closed form makes every evaluation cheap and its derivatives exact. κ = η_h/η_y is set by the final
level, √(η_h η_y) by the time of the transition: the guesses scan the latter, for three values of the former.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..._formulas.least_squares import TOLERANCE, Search, minimised
from ..._formulas.two_points import flow
from ..._formulas.two_points.pair import Pair
from ..._foundation import checks
from ..._foundation.arrays import AnyArray
from ..._foundation.precision import in_double
from ..._foundation.program_memory import compiled
from .answer import LARGEST_LOG, Minimum
from .base import Fitting
from .records import FitRecord, checked_times, lengthened, numbered, padded, seed_number
from .two_point_answer import MeanMinimum, TwoPointFit, judged
from .two_point_records import Known, pair_number, record_of, recorded

SCAN = np.logspace(-3.5, 4.5, 80)  # √(η_h η_y X Y) × duration; η × duration of the mean
EXTREME = 1e24  # of the ratio of the rates; in a layer of c times the scale it is c⁴ times as large


class TwoPointFitting(Fitting):
    """Two rates η = 1/τ and, with `free_gap`, the first difference of outputs along the target."""

    free = ("eta_h", "eta_y")
    curves = ("H", "P", "w")

    def record(
        self,
        trajectory: object,
        *,
        seed: object,
        start: object,
        layer: object = None,
        pair: object = 0,
        free_gap: object = False,
    ) -> FitRecord:
        freed, known = checks.truth(free_gap, "free_gap"), recorded(trajectory)
        number = (
            seed_number(seed, known.seeds, ", or fit them all: festina.probe.scan(trajectory)"),
            numbered(len(known.layers) // 2 if layer is None else layer, known.layers, "layer"),
            pair_number(pair, known.pairs),
        )
        record = record_of(known.member(*number), *checked_times(known.times, start), freed)
        names = {
            "layer": known.layers[number[1]],
            "pair": known.pairs[number[2]],
            "seed": None if known.seeds is None else known.seeds[number[0]],
        }
        return dataclasses.replace(record, names=names)

    def guesses(self, record: FitRecord) -> Float[np.ndarray, "guess parameter"]:
        """The scan, for each of three values of κ, no two of them the same; and p0 as it was recorded."""
        X, Y = record.known.input_gap, record.known.target_gap
        (H0, P0, _), (H, P, _) = record.curves[:, 0], record.curves[:, -1]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # The final level of small starts; what the conserved quantity says; nothing known.
            ratios = np.array([H**2 / (X * Y) if Y else np.nan, (H - H0) / (X * (P / H - P0 / H0)), 1.0])
        usable = np.isfinite(ratios) & (ratios > 1 / EXTREME) & (ratios < EXTREME)
        ratios = np.where(usable, ratios, 1.0) * [1.0, 1.1, 1.2]  # often they agree, and one start is tried once
        speed = np.log(SCAN / np.sqrt(X * (Y or P0 or 1.0)))
        tilt = np.log(ratios)[:, None] / 2
        guesses = np.stack([speed + tilt, speed - tilt, np.full((3, len(SCAN)), record.known.along0[0])], axis=-1)
        return guesses.reshape(-1, 3)[:, : 3 if record.for_answer.free_gap else 2]

    def predicted(
        self, x: Float[AnyArray, " parameter"], times: Float[AnyArray, " time"], known: Known
    ) -> Float[AnyArray, "3 time"]:
        tau_h, tau_y = jnp.exp(-jnp.clip(x[:2], -LARGEST_LOG, LARGEST_LOG))
        along0 = jnp.concatenate([x, known.along0])[2] * jnp.sqrt(known.target_gap)
        pair = Pair(known.input_gap, known.target_gap, tau_h, tau_y)
        return jnp.stack(flow.from_components(times, known.distance0, along0, known.off0, pair))

    def answer(self, theory: str, record: FitRecord, minimum: Minimum) -> TwoPointFit:
        curve = record.for_answer.mean_gap
        return judged(record, minimum, None if curve is None else mean_rate(record.ts, curve))


FITTING = TwoPointFitting()


@in_double
def mean_rate(ts: Float[np.ndarray, " time"], curve: Float[np.ndarray, " time"]) -> MeanMinimum:
    """The best rate of m(0) e^(−2ηt) for a record of m = |ȳ − ȳ*|², the first of which is taken as known."""
    grid = padded(ts)
    end = jax.tree.map(np.asarray, _best_mean(*grid, lengthened(curve / curve[0], len(grid[0]))))
    predicted = curve[0] * end.predicted[: len(ts)]
    return MeanMinimum(float(end.x[0]), bool(end.done), predicted, float(end.metric[0, 0]))


@compiled
def _best_mean(ts: Float[AnyArray, " time"], mask: Float[AnyArray, " time"], curve: Float[AnyArray, " time"]) -> Search:
    def residuals(x):
        predicted = jnp.exp(-2 * jnp.exp(jnp.clip(x[0], -LARGEST_LOG, LARGEST_LOG)) * ts)
        return (predicted - curve) * mask, predicted

    guesses = jnp.log(SCAN)[:, None]
    scores = jax.vmap(lambda x: jnp.sum(residuals(x)[0] ** 2))(guesses)
    return minimised(residuals, guesses[jnp.argmin(scores)], TOLERANCE)
