"""A random task and its reverse: the same inputs with the opposite targets, and weights that have learned the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from ... import Init, Setup, Task, Trajectory, inits, nets, tasks
from ..._foundation.arrays import Weights
from ..._foundation.errors import BadInput
from .labelled import table, time_at

if TYPE_CHECKING:
    from xarray import DataArray


class ReversedTask:
    """A random task of given singular values that the initial weights can learn (`before`); its reverse (`after`)."""

    def __init__(self, values: Sequence[float], samples: int, net: nets.DeepLinear, init: Init, seed: int):
        width = net.hidden if isinstance(net.hidden, int) else min(net.hidden)
        if width < len(values):
            raise BadInput(f"hidden = {width}", f"at least {len(values)}, one for each mode", "widen the net")
        generator = np.random.default_rng(seed)
        size = len(values)
        self.values = np.sort(np.array(values))[::-1]
        self.left, self.right = (np.linalg.qr(generator.normal(size=(size, size)))[0] for _ in range(2))
        x = np.asarray(tasks.regression(d_in=size, d_out=size, samples=samples, seed=seed).x)
        first, last = Setup(self._task(x, 1), net, init, times=[0.0]).weights(seed)
        # A balanced start of as many directions as there are modes keeps the sign of its determinant.
        if np.linalg.det(last @ first) * np.linalg.det(self.left) * np.linalg.det(self.right) < 0:
            self.left[:, -1] *= -1
        self.before, self.after = self._task(x, 1), self._task(x, -1)
        self.saddle_loss = float(np.sum(self.values**2) / 2)

    def _task(self, x: Float[np.ndarray, "sample mode"], sign: int) -> Task:
        return tasks.from_arrays(x, sign * x @ (self.left * self.values @ self.right.T).T)

    def learned(self, net: nets.DeepLinear, seed: int, lam: float = 0.0) -> Weights:
        """Weights that have learned the first task, in a random hidden basis."""
        init = inits.Balanced(lam, self.values, aligned=True) if lam else inits.Aligned(self.values)
        return Setup(self.before, net, init, times=[0.0]).weights(seed)

    def strengths(self, trajectory: Trajectory) -> DataArray:
        """Strengths of the reversed task's modes, of the first seed."""
        maps = trajectory["map"] if trajectory["map"].ndim == 3 else trajectory["map"][0]
        modes = -np.einsum("om,toi,im->tm", self.left, maps, self.right)
        return table(modes, "time", "mode").assign_coords(time=trajectory.times, mode=self.values)

    def relearned(self, trajectory: Trajectory, begins: float = 0.0) -> DataArray:
        """When each reversed mode reaches half of its target, counted from `begins`."""
        modes = self.strengths(trajectory)
        modes = modes.isel(time=trajectory.times >= begins - 1e-9)
        return time_at(modes.assign_coords(time=modes.time - begins), table(self.values / 2, "mode"))
