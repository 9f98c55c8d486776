"""How long the loss of a network rests on a plateau: two linear layers on opposite points, measures, and panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ... import Setup, Trajectory, inits, nets, rules, solve, tasks
from ..._figures.style import COLOURS, DASHES, TIME, predicted, trained
from ..._formulas.curves import crossing
from .training import simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray, Dataset


def two_linear_layers(
    starts: Sequence[float], lr: float, gaps: Mapping[str, float], seed: int
) -> tuple[dict[str, Any], dict[float, Setup], dict[str, Trajectory]]:
    """A linear network of two layers on opposite points, trained and in closed form: nothing is fitted."""
    dx, dy = np.sqrt(gaps["input_gap"]), np.sqrt(gaps["target_gap"])
    task = tasks.from_arrays([[-dx / 2], [dx / 2]], [[-dy / 2], [dy / 2]])
    until = 2 / (dx * dy) * (np.log(1 / min(starts)) + 8)
    times = np.round(np.linspace(0, until, 201) / lr) * lr
    setups = {
        start: Setup(task, nets.DeepLinear(1), inits.Aligned(start), rules.GradientDescent(lr), times=times)
        for start in starts
    }
    exact = {start: solve(setup, "TwoPoint", observe=["loss", "distance"]) for start, setup in setups.items()}
    rates = (lr, lr / 2, lr / 4)
    losses = np.stack(
        [
            [simulate(s.replace(rule=rules.GradientDescent(rate)), [seed], "loss")["loss"][0] for s in setups.values()]
            for rate in rates
        ]
    )
    variables = {
        "linear_training": (("lr", "start", "time"), losses),
        "linear_theory": (("start", "time"), np.stack([trajectory["loss"] for trajectory in exact.values()])),
        "time": times,
        "lr": list(rates),
    }
    return variables, setups, {f"two layers, start {min(starts):g}": exact[min(starts)]}


def share_of_waiting(data: Dataset) -> DataArray:
    """The share of epochs with a loss near Y/8, of those until the network has learned or, if it never does, of all.

    Axes are (network, seed).
    """
    return data.plateau / data.learned.fillna(float(data.epoch[-1]))


def half_times(losses: DataArray, times: DataArray) -> Float[np.ndarray, "*axes"]:
    """Times at which the loss has fallen to half of its first value; time is the last axis of the losses."""
    return crossing(times.values, -losses.values, -0.5 * losses.values[..., 0])


def draw_waiting(axes: Axes, data: Dataset) -> None:
    waiting = share_of_waiting(data)
    axes.plot(data.gain, waiting.transpose("network", "seed"), "o", color=COLOURS[0], ms=4)
    axes.plot(data.gain, waiting.median("seed"), color=COLOURS[0], lw=1)
    axes.set(xlabel="gain of the weights", ylabel="share of epochs", title="how long the loss is near Y/8")
    axes.set_ylim(0, 1)


def draw_linear(linear: Axes, times: Axes, data: Dataset) -> None:
    """Losses of two linear layers from every start, and the time to half of the loss against the start."""
    plateau = data.attrs["target_gap"] / 8
    for colour, start in zip(COLOURS, data.start.values, strict=False):
        chosen = data.sel(start=start)
        trained(linear, data.time, chosen.linear_training[-1] / plateau, colour=colour)
        predicted(linear, data.time, chosen.linear_theory / plateau, colour=colour)
    linear.set(xlabel=TIME, ylabel="loss / (Y/8)", title="two linear layers, nothing fitted")
    halves = half_times(data.linear_training, data.time)[-1]
    known = half_times(data.linear_theory, data.time)
    times.semilogx(data.start, halves, "o", color=COLOURS[0], label="training")
    times.semilogx(data.start, known, color="0.2", lw=1.3, ls=DASHES, label="theory")
    times.set(xlabel="first H / X", ylabel="time to half of the loss (τ)", title="the wait grows as ln(1/H₀)")
    times.legend()
