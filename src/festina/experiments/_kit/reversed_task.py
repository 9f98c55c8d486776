"""A random task and its reverse: the same inputs with the opposite targets, and weights that have learned the first."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ... import Init, Setup, Task, inits, nets, tasks
from ..._foundation.arrays import Weights


class ReversedTask:
    """A random task of given singular values that the initial weights can learn (`before`); its reverse (`after`)."""

    def __init__(self, values: Float[np.ndarray, " mode"], samples: int, net: nets.DeepLinear, init: Init, seed: int):
        generator = np.random.default_rng(seed)
        size = len(values)
        self.values = values
        self.left, self.right = (np.linalg.qr(generator.normal(size=(size, size)))[0] for _ in range(2))
        x = np.asarray(tasks.regression(d_in=size, d_out=size, samples=samples, seed=seed).x)
        first, last = Setup(self._task(x, 1), net, init, times=[0.0]).weights(seed)
        # A balanced start of as many directions as there are modes keeps the sign of its determinant.
        if np.linalg.det(last @ first) * np.linalg.det(self.left) * np.linalg.det(self.right) < 0:
            self.left[:, -1] *= -1
        self.before, self.after = self._task(x, 1), self._task(x, -1)
        self.saddle_loss = float(np.sum(values**2) / 2)

    def _task(self, x: Float[np.ndarray, "sample mode"], sign: int) -> Task:
        return tasks.from_arrays(x, sign * x @ (self.left * self.values @ self.right.T).T)

    def learned(self, net: nets.DeepLinear, seed: int, lam: float = 0.0) -> Weights:
        """Weights that have learned the first task, in a random hidden basis."""
        init = inits.Balanced(lam, self.values, aligned=True) if lam else inits.Aligned(self.values)
        return Setup(self.before, net, init, times=[0.0]).weights(seed)

    def strengths(self, maps: Float[np.ndarray, "time mode mode"]) -> Float[np.ndarray, "time mode"]:
        """Strengths of the reversed task's modes."""
        return -np.einsum("om,toi,im->tm", self.left, maps, self.right)

    def loss(self, maps: Float[np.ndarray, "time mode mode"], task: Task | None = None) -> Float[np.ndarray, " time"]:
        """The loss on a task; by default on the reversed one."""
        return np.sum((maps - (task or self.after).target()) ** 2, axis=(1, 2)) / 2
