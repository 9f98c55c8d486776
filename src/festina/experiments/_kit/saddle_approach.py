"""How near two-layer networks on a diagonal task come to the saddles of their loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ... import Init, Setup, inits
from ..._formulas import balanced_flow
from ..._foundation.arrays import AnyArray
from ..._foundation.precision import in_double
from ..._foundation.program_memory import compiled
from ...observables.saddles import Saddles
from ...tasks.base import Task
from ...theories.aligned_modes import mode
from .labelled import labelled
from .training import simulate

if TYPE_CHECKING:
    from xarray import DataArray, Dataset


def along_modes(start: float, values: np.ndarray, hidden: int) -> Init:
    """Balanced layers along the modes of a diagonal task; each mode of their product has strength `start`."""
    return inits.Given([np.sqrt(start) * np.eye(hidden, len(values)), np.sqrt(start) * np.eye(len(values), hidden)])


def aligned_maps(
    values: Float[np.ndarray, " mode"], start: float, times: Float[AnyArray, " time"]
) -> Float[np.ndarray, "time feature input"]:
    """Maps of the exact solution of a diagonal task from an aligned start."""
    return np.asarray(mode(times, singular_value=values, start=start))[:, :, None] * np.eye(len(values))


def closest_of_random(
    task: Task, table: Saddles, sizes: Float[np.ndarray, " size"], times: Float[np.ndarray, " time"], seed: int
) -> Float[np.ndarray, "size saddle"]:
    """Closest approach of exact solutions from one random balanced start at many sizes."""
    # Orthonormal columns on both sides of one hidden basis: W₂ᵀW₂ = W₁W₁ᵀ, and every size of it is balanced too.
    rng = np.random.default_rng(seed)
    left, basis, right = (
        np.linalg.qr(rng.normal(size=(n, task.d_in)))[0] for n in (task.d_in, table.hidden, task.d_in)
    )
    if np.linalg.det(left @ right.T) * np.linalg.det(task.cov_yx) < 0:
        left[:, 0] *= -1
    first, last = basis @ right.T, left @ basis.T

    @in_double
    @compiled
    def maps(
        sizes: AnyArray, times: AnyArray, cov_yx: AnyArray, first: AnyArray, last: AnyArray
    ) -> Float[AnyArray, "size time feature input"]:
        def of_size(size: AnyArray) -> AnyArray:
            flow = balanced_flow.flow(cov_yx, (jnp.sqrt(size) * first, jnp.sqrt(size) * last), 0.0)
            lower, upper = balanced_flow.weights(flow, balanced_flow.states(flow, times))
            return upper @ lower

        return jax.vmap(of_size)(sizes)

    return table.distance(maps(sizes, times, task.cov_yx, first, last)).min(axis=1)


def waits(norms: Float[np.ndarray, " time"]) -> np.ndarray:
    """Records at which the gradient is locally smallest, ends excepted."""
    inner = norms[1:-1]
    return 1 + np.flatnonzero((inner < norms[:-2]) & (inner <= norms[2:]))


def observed(table: Saddles, setup: Setup, seeds: Sequence[int]) -> Dataset:
    """Loss, norm of the gradient and distances to all saddles in training."""
    import xarray

    run = simulate(setup, seeds, ("loss", "map", "gradient_norm"))
    distances = xarray.DataArray(table.distance(run["map"]), dims=("seed", "time", "saddle"))
    return xarray.Dataset({"distance": distances, **{name: labelled(run, name) for name in ("loss", "gradient_norm")}})


def power_of(array: DataArray, along: str, *, most: float) -> Float[np.ndarray, " saddle"]:
    """The exponent with which values depend on a coordinate, by least squares where it is at most so large."""
    small = array.where(array[along] <= most * (1 + 1e-9), drop=True).transpose(along, ...)
    return np.polyfit(np.log(small[along]), np.log(small), 1)[0]
