"""Representations of items and features, W₁ᵀW₁ and W₂W₂ᵀ: their structure, and late ones of λ-balanced networks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import xarray
from jaxtyping import Float
from xarray import DataArray

from ... import Setup, Task, Trajectory, inits, nets, rules
from ..._formulas import balanced_flow
from ..._formulas.curves import order
from ..._foundation.arrays import Number
from ..._foundation.precision import in_double
from ..._foundation.program_memory import compiled
from ...rules.base import rate_of
from .labelled import labelled, table
from .training import simulate

OBSERVED = ("kernel_distance", "input_representation", "output_representation", "loss", "balance_residual")
SIDES = ("input", "output")
AXES = ("side", "row", "column")
LATE = 400.0  # a time at which the flow has ended for every λ, up to rounding


def representations_of(trajectory: Trajectory) -> DataArray:
    """Both representations on one axis, `side`."""
    names = {"input": "input", "output": "feature"}
    sides = [
        labelled(trajectory, f"{side}_representation")
        .rename({names[side]: "row", f"{names[side]}_": "column"})
        .drop_vars(["row", "column"], errors="ignore")
        for side in SIDES
    ]
    return xarray.concat(sides, xarray.DataArray(list(SIDES), dims="side", name="side"))


def late_representations(
    task: Task, lams: Sequence[float], scale: float, seed: int, seeds: int
) -> Float[np.ndarray, "lam seed side row column"]:
    """Representations of square λ-balanced nets at a late time, in one call.

    A draw whose determinant has the wrong sign gets the opposite sign in one input, which leaves it balanced.
    """
    kappa = np.trace(task.cov_x) / task.d_in
    target, net = task.target(), nets.DeepLinear(task.d_in)

    def one(lam: Number, number: Number) -> Float[jax.Array, "side row column"]:
        lower, upper = inits.Balanced(lam, scale).draw(jax.random.key(number), net, task)
        sign = jnp.linalg.slogdet(upper @ lower)[0] * jnp.linalg.slogdet(jnp.asarray(target))[0]
        flow = balanced_flow.flow(target, (lower.at[:, 0].multiply(sign), upper), lam)
        lower, upper = balanced_flow.weights(flow, balanced_flow.states(flow, jnp.array([kappa * LATE]))[0])
        return jnp.stack([lower.T @ lower, upper @ upper.T])

    family = compiled(jax.vmap(jax.vmap(one, (None, 0)), (0, None)))
    return in_double(family)(np.array(lams), np.arange(seed, seed + seeds))


def agreement(one: DataArray, other: DataArray) -> DataArray:
    """Cosine between symmetric matrices after multiples of the identity are taken away."""
    one, other = _without_identity(one), _without_identity(other)
    sizes = [(matrix**2).sum(["row", "column"]) ** 0.5 for matrix in (one, other)]
    return (one * other).sum(["row", "column"]) / (sizes[0] * sizes[1])


def _without_identity(matrix: DataArray) -> DataArray:
    identity = xarray.DataArray(np.eye(matrix.sizes["row"]), dims=("row", "column"))
    return matrix - (matrix * identity).sum(["row", "column"]) * identity / matrix.sizes["row"]


def spread(representation: DataArray) -> DataArray:
    """Standard deviation of the eigenvalues over their mean: 0 for a multiple of the identity."""
    values = xarray.apply_ufunc(
        np.linalg.eigvalsh, representation, input_core_dims=[["row", "column"]], output_core_dims=[["eigenvalue"]]
    )
    return values.std("eigenvalue") / values.mean("eigenvalue")


def right_signed(setup: Setup, first: int, count: int) -> list[int]:
    """The first seeds from `first` on whose map has a determinant of the sign of the target's."""
    wanted = np.linalg.slogdet(setup.single_task.target())[0]

    def fits(seed: int) -> bool:
        lower, upper = setup.weights(seed)
        return np.linalg.slogdet(upper @ lower)[0] == wanted

    return list(itertools.islice(filter(fits, itertools.count(first)), count))


def imbalance(run: Trajectory) -> DataArray:
    """The part of W₂ᵀW₂ − W₁W₁ᵀ that is not λI at first, relative to the layers as in BalancedRiccati."""
    first = representations_of(run).isel(time=0).transpose("seed", ...)
    sizes = np.linalg.norm(first.values, 2, axis=(-2, -1)).sum(axis=-1)
    return table(run["balance_residual"][:, 0, 0] / sizes, "seed")


def orders(setup: Setup, seeds: list[int], theory: Trajectory, coarse: Trajectory) -> Float[np.ndarray, " halving"]:
    """Orders in lr at which the representations of gradient descent tend to the theory."""
    rates = [rate_of(setup.rule) / 2, rate_of(setup.rule) / 4]
    runs = [coarse, *(simulate(setup.replace(rule=rules.GradientDescent(lr)), seeds, OBSERVED) for lr in rates)]
    exact = representations_of(theory)
    return order(np.array([float(abs(representations_of(run).isel(seed=0) - exact).max()) for run in runs]))
