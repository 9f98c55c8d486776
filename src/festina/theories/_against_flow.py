"""The error of a theory that knows no weights: its answer is compared with integrated gradient flow.

Without weights there is no path along which `_certificate` could follow an error. The flow of the setup is integrated
by SciPy instead, on all weights, and the largest difference of map (or outputs) and loss is the error.
"""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Float
from scipy.integrate import solve_ivp

from .._foundation.arrays import AnyArray
from .._foundation.precision import in_double
from .._foundation.program_memory import compiled
from .._setup.setup import Setup
from ._constants import constants_of
from ._followed_weights import NumpyTimes, relative, time_grid
from ._landscape import Landscape
from ._stiff import Vector
from .base import Theory, Times

TIMES = 48
RTOL = 1e-8


def difference(theory: Theory, setup: Setup, seed: int, lr: float = 0.0) -> float:
    """The largest difference between prediction and flow, relative to the largest prediction; the loss likewise.

    With `lr`, the flow is the one that steps of this length follow to first order, dW/dt = −∇L − (lr/2) H∇L.
    """
    weights = setup.weights(seed)
    last = float(np.max(setup.times))
    times = time_grid(last, last * 1e-3, TIMES)
    with jax.enable_x64(True):
        landscape = Landscape.of(setup, weights)
        start = landscape.flat(weights)
        on_flow = (start, *_flow(landscape, start, np.unique(times)[1:], lr))
        true = np.stack([landscape.at(flat).answer for flat in on_flow])
    name, constants = "map" if landscape.net.linear else "outputs", constants_of(theory, setup, seed)
    answers = in_double(_answers)(theory, name, constants, times)[np.unique(times, return_index=True)[1]]
    wrong, right = np.stack(landscape.changes(answers, true - answers)), np.stack(landscape.sizes(answers))
    return float(np.max(relative(np.max(wrong, axis=1), np.max(right, axis=1))))


def _flow(landscape: Landscape, start: Vector, times: NumpyTimes, lr: float) -> Float[np.ndarray, "time weight"]:
    """The weights of the flow at `times`; NaN if the integration fails."""
    if not len(times):
        return np.empty((0, start.size))

    def field(_: float, flat: Vector) -> Vector:
        point = landscape.at(flat)
        return point.descent - lr / 2 * point.minus_hessian(point.descent) if lr else point.descent

    solution = solve_ivp(
        field,
        (0.0, times[-1]),
        start,
        method="DOP853",
        t_eval=times,
        rtol=RTOL,
        atol=RTOL * 1e-4 * float(np.sqrt(np.mean(start**2))) or RTOL,
    )
    return solution.y.T if solution.success else np.full((len(times), start.size), np.nan)


@compiled(effort="little", static_argnames=("theory", "answer"))
def _answers(theory: Theory, answer: str, constants: object, times: Times) -> Float[AnyArray, "time row column"]:
    return theory.readouts[answer].read(constants, theory.states(constants, times))
