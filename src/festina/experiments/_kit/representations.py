"""Representations of items and features: agreement, the end of balanced learning in closed form, and panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ... import Task, Trajectory, inits, nets
from ..._figures.style import COLOURS, TIME, legend_of_kinds, predicted, trained
from ..._formulas import balanced_flow
from ..._foundation.arrays import Number
from ..._foundation.precision import in_double
from ..._foundation.program_memory import compiled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray, Dataset

SIDES = ("input", "output")
LATE = 400.0  # a time at which the flow has ended for every λ, up to rounding


def representations_of(trajectory: Trajectory) -> Float[np.ndarray, "*axes side row column"]:
    return np.stack([trajectory[f"{side}_representation"] for side in SIDES], axis=-3)


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


def agreement_of(one: np.ndarray | DataArray, other: np.ndarray | DataArray) -> np.ndarray:
    """Cosine between symmetric matrices after multiples of the identity are taken away; leading axes are kept."""
    one, other = (
        m - np.trace(m, axis1=-2, axis2=-1)[..., None, None] * np.eye(m.shape[-1]) / m.shape[-1] for m in (one, other)
    )
    sizes = np.linalg.norm(one, axis=(-2, -1)) * np.linalg.norm(other, axis=(-2, -1))
    return np.sum(one * other, axis=(-2, -1)) / sizes


def limits_of(data: Dataset, lam: float) -> Float[np.ndarray, "side row column"]:
    """The closed form of the representations at the end."""
    root = np.hypot(lam, 2 * data.target.values)
    sides = zip(data.task_vector.values, (-1, 1), strict=True)
    return np.stack([(vectors * (root + sign * lam) / 2) @ vectors.T for vectors, sign in sides])


def spread_of(representation: np.ndarray) -> np.ndarray:
    """Standard deviation of the eigenvalues over their mean: 0 for a multiple of the identity."""
    values = np.linalg.eigvalsh(representation)
    return values.std(axis=-1) / values.mean(axis=-1)


def draw_similarity(panel: Axes, data: Dataset, matrix: DataArray, title: str) -> None:
    reach = float(np.abs(matrix).max())
    panel.imshow(matrix, cmap="PuOr", vmin=-reach, vmax=reach)
    panel.set_xticks([])
    panel.set_yticks(range(data.sizes["item"]), list(data.item.values), fontsize=7)
    panel.set_title(f"W₁ᵀW₁ at the end:\n{title}", fontsize=9.5)


def draw_learning(agreement: Axes, kernel: Axes, data: Dataset) -> None:
    task = limits_of(data, 0.0)
    for number, start in enumerate(data.start.values):
        colour, runs = COLOURS[number], data.sel(start=start)
        trained(agreement, data.time, agreement_of(runs.representation.values, task).mean(axis=-1), colour=colour)
        trained(kernel, data.time, runs.kernel_distance, colour=colour)
        kernel.plot([], [], color=colour, lw=3, label=start)
    colour = COLOURS[data.sizes["start"] - 1]
    predicted(agreement, data.time, agreement_of(data.predicted_representation, task).mean(axis=-1), colour=colour)
    predicted(kernel, data.time, data.predicted_kernel_distance, colour=colour)
    for panel in (agreement, kernel):
        panel.set_xscale("symlog", linthresh=1.0)
        panel.set(xlabel=TIME, xlim=(0, float(data.time[-1])))
    agreement.set(ylabel="agreement with the task", title="structure, mean of both layers")
    legend_of_kinds(agreement, loc="lower right")
    kernel.set(ylabel="kernel distance", title="movement of the tangent kernel")
    kernel.legend(loc="upper left", fontsize=8)


def draw_scales(panel: Axes, data: Dataset) -> None:
    first, last = data.scale_representation.values[:, :, 0], data.scale_representation.values[:, :, 1]
    others = {"with the task": limits_of(data, 0.0), "with the start": first}
    for number, (label, other) in enumerate(others.items()):
        mean = agreement_of(last, other).mean(axis=(1, 2))
        panel.plot(data.scale, mean, "o-", color=COLOURS[number], ms=4, label=label)
    panel.set(xscale="log", xlabel="sd of Gaussian weights", ylabel="agreement at the end", title="from rich to lazy")
    panel.legend(loc="center left")


def draw_lams(panel: Axes, data: Dataset) -> None:
    fine = np.linspace(float(data.lam.min()), float(data.lam.max()), 201)
    limits = np.stack([limits_of(data, lam) for lam in fine])
    for number, label in enumerate(("W₁ᵀW₁", "W₂W₂ᵀ")):
        late = spread_of(data.late_representation.isel(side=number).values).mean(axis=1)
        panel.plot(data.lam, late, "o", color=COLOURS[number], ms=5, label=label)
        predicted(panel, fine, spread_of(limits[:, number]), colour=COLOURS[number])
    panel.set(xlabel="balance λ", ylabel="sd of eigenvalues / mean", title="λ decides which layer learns (8-8-8)")
    panel.legend(loc="center left")
