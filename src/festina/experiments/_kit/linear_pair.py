"""A linear network of two layers on opposite points: losses of training and of the closed form, with nothing fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import Setup, Trajectory, inits, nets, rules, solve, tasks
from .labelled import labelled, stack, time_at
from .training import simulate

if TYPE_CHECKING:
    from xarray import DataArray


def two_linear_layers(
    starts: Sequence[float], lr: float, gaps: Mapping[str, Any], seed: int
) -> tuple[dict[str, DataArray], dict[float, Setup], dict[str, Trajectory]]:
    """Losses of a linear network of two layers on opposite points, trained at lr, lr/2 and lr/4, and in closed form."""
    dx, dy = np.sqrt(gaps["input_gap"]), np.sqrt(gaps["target_gap"])
    task = tasks.from_arrays([[-dx / 2], [dx / 2]], [[-dy / 2], [dy / 2]])
    until = 2 / (dx * dy) * (np.log(1 / min(starts)) + 8)
    times = np.round(np.linspace(0, until, 201) / lr) * lr
    setups = {
        start: Setup(task, nets.DeepLinear(1), inits.Aligned(start), rules.GradientDescent(lr), times=times)
        for start in starts
    }
    exact = {start: solve(setup, "TwoPoint", observe=["loss", "distance"]) for start, setup in setups.items()}

    def trained(rate: float) -> DataArray:
        runs = {s: simulate(setup.replace(rule=rules.GradientDescent(rate)), [seed]) for s, setup in setups.items()}
        return stack({start: labelled(run, "loss", seed=0) for start, run in runs.items()}, "start")

    variables = {
        "linear_training": stack({rate: trained(rate) for rate in (lr, lr / 2, lr / 4)}, "lr"),
        "linear_theory": stack({start: labelled(curve, "loss") for start, curve in exact.items()}, "start"),
    }
    return variables, setups, {f"two layers, start {min(starts):g}": exact[min(starts)]}


def half_times(losses: DataArray) -> DataArray:
    """Times at which the loss has fallen to half of its first value."""
    return time_at(losses, 0.5 * losses.isel(time=0, drop=True), falling=True)
