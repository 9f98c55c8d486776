"""The error of a theory that knows no weights: its answer beside gradient flow, integrated."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
from scipy.integrate import solve_ivp

from .._precision import in_double
from .._setup import Setup
from ._certificate import relative, time_grid
from ._constants import constants_of
from ._landscape import Landscape

TIMES = 48
RTOL = 1e-8


def difference(theory: Any, setup: Setup, seed: int, lr: float = 0.0) -> float:
    """The largest difference between answer and flow, relative to the largest answer; that of the loss likewise.

    With `lr` it is the flow that steps of this length follow to first order, dW/dt = −∇L − (lr/2) H∇L.
    """
    weights = setup.weights(seed)
    last = float(np.max(setup.times))
    times = time_grid(last, last * 1e-3, TIMES)
    with jax.enable_x64(True):
        landscape = Landscape.of(setup, weights)
        begun = landscape.flat(weights)
        weights_then = (begun, *_flow(landscape, begun, np.unique(times)[1:], lr))
        reached = np.stack([landscape.at(flat).answer for flat in weights_then])
    name, constants = "map" if landscape.net.linear else "outputs", constants_of(theory, setup, seed)
    said = in_double(_answers)(theory, name, constants, times)[np.unique(times, return_index=True)[1]]
    wrong, right = landscape.changes(said, reached - said), landscape.sizes(said)
    return float(np.max(relative(np.max(wrong, axis=1), np.max(right, axis=1))))


def _flow(landscape: Landscape, begun: np.ndarray, times: np.ndarray, lr: float) -> np.ndarray:
    """Weights at `times`, (time, weight)."""
    if not len(times):
        return np.empty((0, begun.size))

    def field(_, flat):
        point = landscape.at(flat)
        return point.downhill - lr / 2 * point.pull(point.downhill) if lr else point.downhill

    found = solve_ivp(
        field,
        (0.0, times[-1]),
        begun,
        method="DOP853",
        t_eval=times,
        rtol=RTOL,
        atol=RTOL * 1e-4 * float(np.sqrt(np.mean(begun**2))) or RTOL,
    )
    return found.y.T if found.success else np.full((len(times), begun.size), np.nan)


@functools.partial(jax.jit, static_argnames=("theory", "answer"))
def _answers(theory: Any, answer: str, constants: Any, times: Any) -> Any:
    return theory.readouts[answer].read(constants, theory.states(constants, times))
