"""Two-layer linear networks of any shape whose layers start λ-balanced, with a chosen sign of the determinant."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np

from ... import inits, nets, rules, tasks
from ..._foundation.errors import BadInput
from ..._setup.setup import Setup
from ...rules.base import rate_of
from ...tasks.base import Task
from .labelled import labelled, stack
from .parameters import AtLeast, Each
from .time_grids import dense_at_start
from .training import simulate

if TYPE_CHECKING:
    from xarray import DataArray

Shape: TypeAlias = tuple[int, ...]  # inputs, hidden units, outputs
Shapes: TypeAlias = Annotated[tuple[Shape, ...], Each(Each(AtLeast(1), least=3))]
ALL_SHAPES = ((4, 4, 4), (6, 3, 3), (3, 3, 6), (5, 4, 5), (4, 2, 4), (3, 5, 6), (4, 6, 4))


HALVINGS = 2  # of the learning rate


@dataclasses.dataclass(frozen=True)
class BalancedNetworks:
    """Networks that differ in shape and λ, and share all other settings.

    The task has white inputs of variance `kappa` and a target of positive determinant, whose singular values are evenly
    spaced from the first to the second number of `spectrum`; singular vectors are random. The nonzero singular values
    of the starting map W₂W₁ are all `scale`; its determinant has the target's sign, or with `wrong_sign` the other.
    """

    scale: float
    spectrum: tuple[float, float]
    until: float
    lr: float
    points: int
    seed: int

    def setup(self, shape: Shape, lam: float, *, kappa: float = 1.0, wrong_sign: bool = False) -> Setup:
        """The network of one shape and λ, under descent at the smallest of the rates lr, lr/2 and lr/4."""
        times = dense_at_start(self.until, self.points, self.lr)
        init = inits.Given(self._start(shape, lam, wrong_sign))
        finest = rules.GradientDescent(self.lr / 2**HALVINGS)
        return Setup(self._task(shape, kappa), nets.DeepLinear(shape[1]), init, finest, times=times)

    def _task(self, shape: Shape, variance: float) -> Task:
        number = min(shape[0], shape[2])
        left, right = _rotations(np.random.default_rng([self.seed, 0, *shape]), shape[2], shape[0])
        target = left[:, :number] * np.linspace(*self.spectrum, number) @ right[:, :number].T
        return tasks.from_moments(variance * target, variance * np.eye(shape[0]), variance * target @ target.T)

    def _start(self, shape: Shape, lam: float, wrong_sign: bool) -> list[np.ndarray]:
        """Layers with W₂ᵀW₂ − W₁W₁ᵀ = λI, as `inits.Balanced` draws them."""
        inputs, hidden, outputs = shape
        left, right, middle = _rotations(np.random.default_rng([self.seed, 1, *shape]), outputs, inputs, hidden)
        if wrong_sign:
            left[:, 0] *= -1
        half = np.hypot(lam / 2, self.scale * (np.arange(hidden) < min(shape)))
        # A hidden direction that does not contribute to the map has weight in the larger layer only.
        first, last = np.sqrt(np.maximum(half - lam / 2, 0)), np.sqrt(np.maximum(half + lam / 2, 0))
        into, out = min(inputs, hidden), min(outputs, hidden)
        return [middle[:, :into] * first[:into] @ right[:, :into].T, left[:, :out] * last[:out] @ middle[:, :out].T]


def possible(shape: Shape, lam: float) -> bool:
    """Whether layers of these widths can be balanced at λ."""
    return lam == 0 or shape[1] <= (shape[2] if lam > 0 else shape[0])


def named(shape: Shape) -> str:
    return "-".join(map(str, shape))


def contrasts(shapes: Sequence[Shape]) -> tuple[Shape, Shape]:
    """The first square shape, and the first with N_h = N_o < N_i or N_h = N_i < N_o."""
    square = next((shape for shape in shapes if len(set(shape)) == 1), None)
    uneven = next((shape for shape in shapes if shape[0] != shape[2] and shape[1] == min(shape)), None)
    if square is None or uneven is None:
        needed = "a square shape, and one with N_h = N_o < N_i or N_h = N_i < N_o"
        raise BadInput(f"shapes = {list(shapes)}", needed, "add the missing one")
    return square, uneven


def slow_balance(shape: Shape, lams: Sequence[float]) -> float:
    """The λ for which the larger layer of an uneven shape has to turn most."""
    return max(lams, key=lambda lam: lam * np.sign(shape[2] - shape[0]))


def loss_of(maps: DataArray, setup: Setup) -> DataArray:
    """The loss of maps over time in a task without noise."""
    wrong = (maps - setup.single_task.target()) ** 2
    loss = 0.5 * setup.single_task.cov_x[0, 0] * wrong.sum([axis for axis in maps.dims if axis != "time"], skipna=False)
    return loss.assign_attrs(long_name="loss")


def by_rate(setup: Setup) -> DataArray:
    """The map in training at the rates lr, lr/2 and lr/4, of which `setup` has the last."""
    rates = [rate_of(setup.rule) * 2**k for k in reversed(range(HALVINGS + 1))]
    descents = {rate: setup.replace(rule=rules.GradientDescent(rate)) for rate in rates}
    return stack({rate: labelled(simulate(s, [0], "map"), "map", seed=0) for rate, s in descents.items()}, "rate")


def _rotations(rng: np.random.Generator, *widths: int) -> list[np.ndarray]:
    """Random orthogonal matrices of determinant +1."""
    matrices = [np.linalg.qr(rng.normal(size=(width, width)))[0] for width in widths]
    for matrix in matrices:
        matrix[:, 0] *= np.linalg.slogdet(matrix)[0]
    return matrices
