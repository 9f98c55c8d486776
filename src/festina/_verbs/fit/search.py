"""The search for free parameters: least squares from many guesses, in programs that records of equal length share.

All guesses are scored on at most COARSE of the recorded times, and the best three are refined by the
Levenberg-Marquardt method. For long records this is done at these times first, and then, from the best of the three, at
all times.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PyTree

from ..._formulas.least_squares import TOLERANCE, Residuals, Search, minimised
from ..._foundation.arrays import AnyArray, Number
from ..._foundation.precision import in_double
from ..._foundation.program_memory import compiled
from ...theories._fitting.answer import Minimum
from ...theories._fitting.base import Fitting
from ...theories._fitting.records import COARSE, FitRecord, lengthened, padded

LONG = 1024  # records that are worth a second program, which compiles for seconds
POLISHED = 3
ROUGH = 1e-8  # tolerance of those that will be polished again


@in_double
def minimum(fitting: Fitting, record: FitRecord) -> Minimum:
    """The parameters with the least squared error of all curves, which weigh alike."""
    ts, curves, known = record.ts, record.curves, record.known
    some = np.unique(np.linspace(0, len(ts) - 1, COARSE).round().astype(int))
    part, full = padded(ts[some]), padded(ts)
    coarse, whole = lengthened(curves[:, some], len(part[0])), lengthened(curves, len(full[0]))
    # What is left to do between the programs is done by NumPy, for which nothing is compiled.
    tried = np.asarray(_best_guesses(fitting, *part, coarse, known, fitting.guesses(record)))
    if len(ts) > LONG:
        tried = _best(_polished(fitting, *part, coarse, known, tried, ROUGH)).x[None]
    end = _best(_polished(fitting, *full, whole, known, tried, TOLERANCE))
    predicted = np.asarray(end.predicted[:, : len(ts)])
    return Minimum(np.asarray(end.x), bool(end.done), predicted, np.asarray(end.metric))


@compiled(static_argnums=0)
def _best_guesses(
    fitting: Fitting,
    ts: Float[AnyArray, " time"],
    mask: Float[AnyArray, " time"],
    curves: Float[AnyArray, "curve time"],
    known: PyTree,
    guesses: Float[AnyArray, "guess parameter"],
) -> Float[AnyArray, "best parameter"]:
    """The few guesses with the smallest squared error."""
    residuals = _residuals(fitting, ts, mask, curves, known)
    scores = jax.vmap(lambda x: jnp.sum(residuals(x)[0] ** 2))(guesses)
    return guesses[jnp.argsort(scores)[:POLISHED]]


@compiled(static_argnums=0)
def _polished(
    fitting: Fitting,
    ts: Float[AnyArray, " time"],
    mask: Float[AnyArray, " time"],
    curves: Float[AnyArray, "curve time"],
    known: PyTree,
    starts: Float[AnyArray, "start parameter"],
    tolerance: Number,
) -> Search:
    """Minima near the starts."""
    residuals = _residuals(fitting, ts, mask, curves, known)
    return jax.vmap(lambda x: minimised(residuals, x, tolerance))(starts)


def _residuals(
    fitting: Fitting,
    ts: Float[AnyArray, " time"],
    mask: Float[AnyArray, " time"],
    curves: Float[AnyArray, "curve time"],
    known: PyTree,
) -> Residuals:
    """The residuals and the prediction at given parameters. Times beyond the mask are padding."""

    def residuals(x):
        predicted = fitting.predicted(x, ts, known)
        return ((predicted - curves) * mask).ravel(), predicted

    return residuals


def _best(ends: Search) -> Search:
    """The search that ended with the smallest squared error."""
    ends = jax.tree.map(np.asarray, ends)
    best = np.argmin(np.where(np.isnan(ends.cost), np.inf, ends.cost))
    return jax.tree.map(lambda leaf: leaf[best], ends)
