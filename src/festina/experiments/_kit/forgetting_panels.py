"""Panels about tasks that are learned in turn: losses of all tasks, and how much is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._figures.style import COLOURS, TIME, predicted, trained

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import DataArray, Dataset

CONTROLS = {"tanh": "tanh", "relu": "ReLU"}


def forgotten_of(rises: DataArray) -> np.ndarray:
    """The rises of the task that was just left, one for each switch, all sets in a row."""
    return np.array([np.asarray(rises)[:, k, k] for k in range(rises.shape[1])]).ravel()


def draw_losses(axes: Axes, data: Dataset) -> None:
    """The losses of all tasks against the number of the record; records are dense after each switch."""
    tasks_in_turn = data.sizes["task"]
    place = np.linspace(0, tasks_in_turn, data.sizes["time"])
    top = float(data.loss_training.max())
    for k in range(tasks_in_turn):
        colour = COLOURS[k % len(COLOURS)]
        trained(axes, place, data.loss_training.isel(task=k), colour=colour)
        predicted(axes, place, data.loss_theory.isel(task=k), colour=colour)
        axes.axvline(k, color="0.85", lw=0.8, zorder=0)
        axes.text(k + 0.5, 1.06 * top, f"task {k + 1}", color=colour, ha="center", va="bottom", fontsize=9)
    times = [0.0, *data.switch.values, float(data.time_of_net[-1])]
    axes.set_xticks(range(tasks_in_turn + 1), [f"{t:g}" for t in times])
    axes.set(
        xlabel=f"{TIME}, stretched after each switch",
        ylabel="loss of each task",
        title=f"tasks learned in turn, {data.net.item()}",
    )
    low = float(data.loss_training.min())
    axes.set_ylim(low - 0.2 * (top - low), 1.16 * top)


def draw_forgetting(axes: Axes, data: Dataset) -> None:
    """Forgetting of the task that was just left: in training against the formula."""
    kinds = [(data.rise_training.isel(net=k), k, str(data.net.values[k])) for k in range(data.sizes["net"])]
    kinds += [(data.rise_control.isel(control=k), 0, f"{v} (no theory)") for k, v in enumerate(CONTROLS.values())]
    for number, ((rises, net, label), mark) in enumerate(zip(kinds, "os^v", strict=True)):
        expected = forgotten_of(data.rise_predicted.isel(net=net))
        axes.plot(expected, forgotten_of(rises), mark, color=COLOURS[number], ms=5, mfc="none", label=label)
    ends = axes.get_xlim()
    axes.plot(ends, ends, color="0.4", lw=1, zorder=0)
    axes.set(
        xlabel="½κ‖Σ − Σ′‖², from the tasks alone",
        ylabel="rise of the loss in training",
        title="forgetting of the task just left",
    )
    axes.set_ylim(0, 1.4 * axes.get_ylim()[1])
    axes.legend(loc="upper left", ncols=2)
