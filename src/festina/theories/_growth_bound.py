"""A bound on the error of an answer that is cheap: no error of the weights grows faster than e^(∫u dt).

u is a bound on the eigenvalues of −H, which come from second derivatives of the map alone: for two layers
|Σʸˣ − MΣˣ|, at every time no more than √(2(L − floor) |Σˣ|), and the loss L falls. Directions that grow one after
another are all counted at the rate of the fastest, so that the bound is useful where learning is short or starts are
not tiny, and useless elsewhere: there `_certificate` follows the error itself.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from .._precision import in_double
from .._setup import Setup
from ..nets import DeepLinear
from ._certificate import EPS, RESOLVED, time_grid
from ._constants import constants_of
from ._landscape import Landscape
from .base import Assumption, Theory

TIMES = 64
ROOM = 10.0  # for norms of several layers


def growth_bound(theory: Theory, setup: Setup, seed: int, measured: Sequence[Assumption]) -> float:
    """The relative error that defects of the start can have grown to by the last time; infinite where it is not known.

    A defect of the inputs acts all the time: it counts once per time constant.
    """
    if type(theory).fastest_growth is Theory.fastest_growth:
        return np.inf
    spans = [float(a.measured) / EPS for a in measured if a.name == "horizon"]
    begun = sum(float(a.measured) for a in measured if a.defect) + EPS
    begun *= ROOM * (1 + max(spans, default=0.0))
    weights, last = [np.asarray(w) for w in setup.weights(seed)], float(np.max(setup.times))
    size = sum(float(np.sum(w**2)) for w in weights)
    begun *= _share_of_loss(setup, weights)
    at_first = _at_first(setup, weights)
    if at_first is not None:
        rate, answer = at_first
        bound = _bound(begun, size, answer, last * rate)
        if bound <= RESOLVED:
            return bound
    nodes = time_grid(last, last * 1e-4, TIMES)
    growth, answer = in_double(_along)(theory, constants_of(theory, setup, seed), nodes)
    # An upper sum: what is left to learn only falls.
    exponent = float(np.sum(np.maximum(growth[1:], growth[:-1]) * np.diff(nodes)))
    return _bound(begun, size, float(np.linalg.norm(answer)), exponent)


def _share_of_loss(setup: Setup, weights: Sequence[Any]) -> float:
    """How many times more an error of the map is of the loss: the nearer to the target, the more."""
    landscape = Landscape.of(setup, weights)
    begun = in_double(lambda net, weights: net.map(weights))(landscape.net, tuple(weights))
    *_, loss = landscape.sizes(begun)
    return float(1 + 2 * np.sqrt(landscape.silent_loss / loss)) if loss > 0 else 1.0


def _bound(begun: float, size: float, answer: float, exponent: float) -> float:
    if not answer > 0:
        return np.inf
    return float(np.exp(min(np.log(begun) + np.log1p(size / answer) + exponent, 700.0)))


def _at_first(setup: Setup, weights: Sequence[Any]) -> tuple[float, float] | None:
    """u for all times from the loss of the start, and the size of the first map; of two layers in a chain."""
    if not isinstance(setup.net, DeepLinear) or len(weights) != 2:
        return None
    begun, cov_x = weights[1] @ weights[0], np.asarray(setup.task.cov_x)
    error = np.asarray(setup.task.target()) - begun
    excess = max(float(np.sum((error @ cov_x) * error)), 0.0)
    return float(np.sqrt(excess * np.linalg.norm(cov_x, 2))), float(np.linalg.norm(begun))


@functools.partial(jax.jit, static_argnames="theory")
def _along(theory: Theory, constants: Any, times: Any) -> tuple[Any, Any]:
    states = theory.states(constants, times)
    last = jax.tree.map(lambda leaf: leaf[-1:], states)
    return theory.fastest_growth(constants, states), theory.readouts["map"].read(constants, last)
