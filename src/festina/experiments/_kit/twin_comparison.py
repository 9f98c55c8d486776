"""ReLU networks beside their gated twins: initial weights, comparisons and panels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ... import inits, nets
from ..._setup.trajectory import Trajectory
from ...gates.comparing import aligned, compare, geometry, scaling
from .labelled import labelled, stack

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

OBSERVED = ("loss", "outputs", "similarity")  # of networks that are to be compared
FRACTIONS = (0.5, 0.1, 0.01)  # of the first loss
PLANE = 2  # dimensions of a drawn layout
DOUBLES, SINGLES, BOTH, WIDE = "two contexts", "one context", "one and two contexts", "two contexts, wide common"
MARKS = ("o", "^", "s")  # of contexts


def small_start(net: nets.Gated, scale: float, ahead: float = 1.0) -> inits.SmallRandom:
    """Weights of standard deviation `scale`; those of pathways other than the common one have `ahead` times it."""
    return inits.SmallRandom([scale] * 2 + [ahead * scale] * (len(net.edges) - 2))


def compared(relu: Trajectory, twins: Mapping[str, Trajectory], epoch: float) -> Dataset:
    """The result of `gates.compare` with times in epochs, and the curves; `epoch` is the time that one epoch takes.

    `seed_geometry` is the agreement of the first ReLU network with those of other seeds.
    """
    data = compare(relu, twins, fractions=FRACTIONS).rename(candidate="net")
    for name in ("time_shift", "time_to", "reference_time_to"):
        data[name] = data[name] / epoch
    # Times of training and of theory differ by rounding.
    losses = {name: labelled(one, "loss").drop_vars("time") for name, one in {"": relu, **twins}.items()}
    first, *others = relu["similarity"]
    pairs = [np.asarray(geometry(first, other, similarity=True)) for other in others]
    curves = {
        "relu_loss": losses[""],
        "gated_loss": stack({name: losses[name].broadcast_like(losses[""]) for name in twins}, "net"),
        "seed_geometry": ("time", np.mean(np.stack(pairs), axis=0)),
    }
    return data.assign(curves).assign_coords(time=np.rint(relu.times / epoch).astype(int)).rename(time="epoch")


def layouts(relu: Trajectory, twin: Trajectory, record: int) -> Float[np.ndarray, "network sample dimension"]:
    """Hidden activity of the first seed of both networks in the plane, the twin turned and scaled onto ReLU."""
    first, second = (scaling(network["similarity"][0][record], PLANE, similarity=True) for network in (relu, twin))
    first = first - first.mean(axis=0)
    return np.stack([first, aligned(second, first, scale=True)])


def mismatch(points: ArrayLike) -> float:
    """Distance of the two `layouts` relative to the size of the first; 1 if they have nothing in common."""
    relu, twin = np.asarray(points)
    return float(np.linalg.norm(twin - relu) / np.linalg.norm(relu))


def draw_layout(axes: Axes, points: np.ndarray, contexts: np.ndarray, colours: tuple[str, str]) -> None:
    """Both `layouts`, ReLU filled and the twin open, with a line between the two places of each sample."""
    axes.plot(*points.transpose(2, 0, 1), color="0.8", lw=0.7, zorder=0)
    for context, mark in enumerate(MARKS):
        relu, twin = points[:, contexts == context]
        axes.plot(*relu.T, mark, color=colours[0], ms=6.5, mew=0)
        axes.plot(*twin.T, mark, color=colours[1], ms=6.5, mfc="none", mew=1.3)
    axes.set(xlabel="first dimension", ylabel="second dimension")
    axes.set_aspect("equal", adjustable="datalim")
