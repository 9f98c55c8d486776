"""Checks of the race of shared and private pathways: what is conserved, the theory NeuralRace, and half-times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ... import Setup, Trajectory, inits, rules
from ..._formulas.curves import crossing
from ...nets.gated.graph import Path
from . import shared_layers
from .training import simulate

if TYPE_CHECKING:
    from xarray import Dataset


def conserved_drift(
    count: int,
    hidden: int,
    start: float,
    times: Float[np.ndarray, " time"],
    rates: Sequence[float],
    seed: int,
) -> dict[str, list[float]]:
    """At several rates: the largest drift of M b₁² − b₂² relative to the final b₂², and the final ratio b₂/b₁."""
    net, task = shared_layers.two_layers([count], hidden)
    paths, measured = net.paths(), {"drift": [], "ratio": []}
    for rate in rates:
        setup = Setup(task, net, inits.Decoupled(start), rules.GradientDescent(rate), times=times)
        trajectory = simulate(setup, [seed], ["path_norm", "representation"])
        # The shared layer is the first hidden node; its activity is the encoder's strength times the input.
        shared = trajectory["representation"][0, :, 0, :hidden]
        encoder = np.linalg.norm(shared, axis=-1) / np.sqrt(count)
        decoder = shared_layers.pathways(trajectory["path_norm"], paths, [count])[0, :, 0, 0] / encoder
        drift = count * encoder**2 - decoder**2 - (count - 1) * start**2
        measured["drift"].append(np.abs(drift).max() / decoder[-1] ** 2)
        measured["ratio"].append(decoder[-1] / encoder[-1])
    return measured


def gap_to_neural_race(
    trajectory: Trajectory,
    paths: Sequence[Path],
    sharing: Sequence[int],
    theory: Float[np.ndarray, "time path sharing"],
) -> float:
    """Largest gap between NeuralRace, which integrates the strengths of all edges, and the closed form of the race."""
    strengths = np.abs(trajectory["path_modes"]).max(axis=-1)[None]
    return float(np.abs(shared_layers.pathways(strengths, paths, sharing)[0] - theory).max())


def half_times(data: Dataset) -> Mapping[str, Float[np.ndarray, "deep_start setting"]]:
    """Times at which half is learned, in training and by the closed form."""

    def half(name: str) -> np.ndarray:
        curves = data[name].sum("path").transpose("deep_start", "setting", "deep_time").values
        return crossing(data.deep_time.values, curves, 0.5)

    return {kind: half(f"three_{kind}") for kind in ("training", "theory")}
