"""A cheap bound on the error of an answer: no error of the weights grows faster than e^(∫u dt).

u is a bound on the eigenvalues of −H, the rates at which errors of the weights grow. It comes from the second
derivatives of the map alone: for two layers it is |Σʸˣ − MΣˣ|, at every time no more than √(2(L − floor) |Σˣ|), and the
loss L falls. Every error is taken to grow at the fastest rate all the time, although directions grow one after another.
So the bound is small, and needs no more work, where learning is short or starts are not tiny; elsewhere it says
nothing, and `_certificate` follows the error itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Layers, Weights
from .._foundation.precision import in_double
from .._foundation.program_memory import compiled
from .._setup.setup import Setup
from ._constants import constants_of
from ._followed_weights import EPS, RESOLVED, time_grid
from ._landscape import Landscape
from .base import Assumption, Theory, Times

TIMES = 64
ROOM = 10.0  # for norms of several layers


def growth_bound(theory: Theory, setup: Setup, seed: int, measured: Sequence[Assumption]) -> float:
    """The relative error that defects of the start can have grown to by the last time; infinite where it is not known.

    A defect of the inputs acts all the time: it counts once per time constant.
    """
    if not theory.bounds_growth:
        return np.inf
    spans = [float(a.measured) / EPS for a in measured if a.name == "horizon"]
    defect = sum(float(a.measured) for a in measured if a.defect) + EPS
    defect *= ROOM * (1 + max(spans, default=0.0))
    weights, last = [np.asarray(w) for w in setup.weights(seed)], float(np.max(setup.times))
    size = sum(float(np.sum(w**2)) for w in weights)
    defect *= _share_of_loss(setup, weights)
    at_first = _at_first(setup, weights)
    if at_first is not None:
        rate, answer = at_first
        bound = _bound(defect, size, answer, last * rate)
        if bound <= RESOLVED:
            return bound
    nodes = time_grid(last, last * 1e-4, TIMES)
    growth, answer = in_double(_growth_and_last_map)(theory, constants_of(theory, setup, seed), nodes)
    # An upper sum: what is left to learn only falls.
    exponent = float(np.sum(np.maximum(growth[1:], growth[:-1]) * np.diff(nodes)))
    return _bound(defect, size, float(np.linalg.norm(answer)), exponent)


def _share_of_loss(setup: Setup, weights: Weights) -> float:
    """The factor by which a relative error of the loss may exceed that of the map: larger near the target."""
    landscape = Landscape.of(setup, weights)
    start = in_double(lambda net, weights: net.map(weights))(landscape.net, tuple(weights))
    *_, loss = landscape.sizes(start)
    return float(1 + 2 * np.sqrt(landscape.silent_loss / loss)) if loss > 0 else 1.0


def _bound(defect: float, size: float, answer: float, exponent: float) -> float:
    if not answer > 0:
        return np.inf
    return float(np.exp(min(np.log(defect) + np.log1p(size / answer) + exponent, 700.0)))


def _at_first(setup: Setup, weights: Layers) -> tuple[float, float] | None:
    """A bound u for all times from the initial loss, and the norm of the initial map; for chains of two layers only."""
    if not setup.net.is_linear_chain or len(weights) != 2:
        return None
    start, cov_x = weights[1] @ weights[0], np.asarray(setup.single_task.cov_x)
    error = np.asarray(setup.single_task.target()) - start
    excess = max(float(np.sum((error @ cov_x) * error)), 0.0)
    return float(np.sqrt(excess * np.linalg.norm(cov_x, 2))), float(np.linalg.norm(start))


@compiled(effort="little", static_argnames="theory")
def _growth_and_last_map(
    theory: Theory, constants: object, times: Times
) -> tuple[Float[AnyArray, " time"] | None, Float[AnyArray, "1 out in"]]:
    states = theory.states(constants, times)
    last = jax.tree.map(lambda leaf: leaf[-1:], states)
    return theory.fastest_growth(constants, states), theory.readouts["map"].read(constants, last)
