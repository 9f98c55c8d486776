"""A single linear neuron f(x) = a w·x with imbalance δ = a² − |w|²: tasks, initial weights, and how it learns."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import xarray
from jaxtyping import Float

from ... import inits, nets, rules, solve, tasks
from ..._setup.setup import Setup
from ..._setup.trajectory import Trajectory
from ...tasks.base import Task
from . import printed_formulas
from .labelled import labelled, largest, stack
from .training import simulate

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

Vector = Float[np.ndarray, " input"]
OBSERVED = ("map", "output_representation", "kernel_distance")


def noiseless_task(target: Vector, cov_x: Float[np.ndarray, "input input"]) -> Task:
    """The task y = β*·x with inputs of these second moments."""
    return tasks.from_moments((target @ cov_x)[None], cov_x, [[target @ cov_x @ target]])


def inverse_root(matrix: Float[np.ndarray, "input input"]) -> Float[np.ndarray, "input input"]:
    """The symmetric inverse root of a matrix of second moments."""
    variances, vectors = np.linalg.eigh(matrix)
    return vectors / np.sqrt(variances) @ vectors.T


def layers(beta: Vector, delta: float, sign: int) -> list[np.ndarray]:
    """Layers (w, a) with a w = β, a² − |w|² = δ, and this sign of a."""
    size = np.linalg.norm(beta)
    larger = np.sqrt(np.hypot(delta / 2, size) + abs(delta) / 2)
    gain = sign * (larger if delta >= 0 else size / larger)
    return [beta[None] / gain, np.array([[gain]])]


def curves(trajectory: Trajectory) -> Dataset:
    """β = a w, the gain |a|, the kernel distance and, of training, the largest drift of δ; of the first seed."""
    seed = 0 if trajectory.source == "simulate" else None
    gain = np.sqrt(labelled(trajectory, "output_representation", seed=seed)[:, 0, 0])
    values = {"beta": labelled(trajectory, "map", seed=seed)[:, 0], "gain": gain}
    values["kernel"] = labelled(trajectory, "kernel_distance", seed=seed)
    if seed is not None:
        values["drift"] = labelled(trajectory, "balance_drift", seed=seed).max()
    return xarray.Dataset(values)


@dataclasses.dataclass(frozen=True)
class Neurons:
    """Neurons that differ in their initial weights, recorded at the same times and trained at the same rates.

    They learn `task`, which has white inputs, unless another one is given.
    """

    task: Task
    times: Float[np.ndarray, " time"]
    rates: Float[np.ndarray, " rate"]
    seed: int

    def setup(self, beta: Vector, delta: float, sign: int = 1, *, task: Task | None = None, unit: float = 1.0) -> Setup:
        """The neuron with these initial β, δ and sign of a, at the smallest rate; `unit` multiplies the times."""
        init = inits.Given(layers(beta, delta, sign))
        rule, times = rules.GradientDescent(self.rates[-1]), unit * self.times
        return Setup(self.task if task is None else task, nets.DeepLinear(1), init, rule, times=times)

    def exact(self, setup: Setup, *, strict: bool = True) -> Dataset:
        """The curves of the closed form."""
        flow = setup.replace(rule=rules.GradientFlow())
        return curves(solve(flow, "BalancedRiccati", observe=OBSERVED, strict=strict))

    def trained(self, setup: Setup) -> Dataset:
        """The curves of training at every learning rate."""
        descents = {float(rate): setup.replace(rule=rules.GradientDescent(rate)) for rate in self.rates}
        observed = (*OBSERVED, "balance_drift")
        return stack({rate: curves(simulate(each, [self.seed], observed)) for rate, each in descents.items()}, "rate")

    def gaps(self, setup: Setup, *, strict: bool = True) -> DataArray:
        """The gap between β in training and in theory, at every learning rate."""
        return gap(self.trained(setup).beta, self.exact(setup, strict=strict).beta)


def gap(training: DataArray, theory: DataArray) -> DataArray:
    """Largest difference over time and inputs."""
    return abs(training - theory).max(["time", "input"])


def loss(beta: DataArray, target: DataArray) -> DataArray:
    """½|β − β*|²."""
    return 0.5 * ((beta - target) ** 2).sum("input")


def cosine(beta: DataArray, target: DataArray) -> DataArray:
    """The cosine of the angle between β and the target."""
    return beta @ target / (_size(beta) * _size(target))


def turning_rate(beta: DataArray, target: DataArray, delta: float) -> float:
    """Growth rate of the cotangent of the angle to the target, at late times but before rounding errors matter."""
    size, times = _size(target), beta.time.values
    along = beta @ target / size
    across = _size(beta - along * target / size).values
    speed = np.hypot(size, delta / 2)
    inside = (speed.item() * times > 3) & (along.values > 0) & (across > 1e-6 * along.values)
    return np.polyfit(times[inside], np.log(along.values[inside] / across[inside]), 1)[0]


def bend(beta: DataArray, start: DataArray, target: DataArray) -> DataArray:
    """Largest distance of a path from the line between start and target, in lengths of that line."""
    line = target - start
    along = (beta - start) @ line / (line @ line)
    return _size(beta - start - along * line).max("time") / _size(line)


def gap_of_nu(nu: DataArray, r: float) -> float:
    """The largest relative gap between a curve of ν = w·β*/a and the published one from the same initial value."""
    times, later = nu.time.values[1:], nu.values[1:]  # at time 0 ν may be zero
    return largest(later / printed_formulas.single_neuron_ratio(times, float(nu.delta), nu.values[0], r) - 1)


def _size(vectors: DataArray) -> DataArray:
    return (vectors**2).sum("input") ** 0.5
