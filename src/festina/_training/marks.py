"""The marks of a run: stretches of training, after each of which a record may be taken.

A run goes from record to record in blocks, which are short enough for Ctrl-C and the progress bar. A block is a fixed
number of marks. Their amounts, steps or times of gradient flow, are traced numbers, so that one compiled program
serves every time grid.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Shaped

from .._foundation.errors import BadInput
from .._setup.setup import Setup
from ..rules.base import Discrete
from .base import Descent

MARKS = 64  # in a block
BLOCK_SECONDS = 0.5  # how long Ctrl-C and the progress bar may wait
Goals: TypeAlias = Shaped[np.ndarray, " record"]


class Marks(NamedTuple):
    """A mark is a stretch of training after which a record may be taken; marks of length 0 fill the block."""

    amounts: Shaped[np.ndarray, " mark"]
    recorded: Bool[np.ndarray, " mark"]


class Course:
    """How far a run has come towards its records, and how much of the way fits into the next block."""

    def __init__(self, setup: Setup):
        self.steps = isinstance(setup.rule, Discrete)  # whether amounts are steps, or times of gradient flow
        self.goals = _goals(setup)
        self.recorded = 0  # goals that have been reached
        self.done = self.goals.dtype.type(0)  # amount of training
        self._budget = 100.0 if self.steps else 4.0  # steps in a block; marks for a flow
        self._is_compiled = False

    @property
    def total(self) -> float:
        return float(self.goals[-1])

    @property
    def has_more(self) -> bool:
        return self.recorded < len(self.goals)

    def block(self, descent: Descent) -> tuple[Marks, float]:
        """The next marks, as many as fit into the budget, and their cost; a long stretch of steps is cut."""
        amounts, recorded, left = np.zeros(MARKS, self.goals.dtype), np.zeros(MARKS, bool), self._budget
        for index in range(min(MARKS, len(self.goals) - self.recorded)):
            amount = self.goals[self.recorded + index] - self.done
            cost = amount if self.steps else 1
            if cost > left and (self.steps or index):
                longest = max(left, descent.block_length) if index == 0 else left
                if self.steps and (cut := descent.cut(int(self.done), int(longest))):
                    amounts[index] = min(cut, amount)
                    self.done += amounts[index]
                    left -= amounts[index]
                break
            amounts[index], recorded[index], left = amount, True, left - cost
            self.done += amount
        return Marks(amounts, recorded), self._budget - left

    def adapt(self, cost: float, seconds: float) -> None:
        """Fit the budget to the time that the last block took, of this cost."""
        # The first block compiles, so its time says nothing.
        if not self._is_compiled:
            self._is_compiled = True
            return
        fitting = cost / max(seconds, 1e-6) * BLOCK_SECONDS
        self._budget = float(np.clip(fitting, self._budget / 8 + 1, self._budget * 8))


def _goals(setup: Setup) -> Goals:
    """Amounts of training at which to record: whole steps, or times."""
    if not isinstance(setup.rule, Discrete):
        return np.asarray(setup.times, setup.precision)
    steps, most = np.asarray(setup.rule.steps(setup.requested_times)), np.iinfo(np.int32).max
    if steps[-1] > most:
        raise BadInput(
            f"times up to {setup.requested_times[-1]:g} with lr = {setup.rule.lr:g}: {steps[-1]:.3g} steps",
            f"at most {most:.3g} steps",
            "shorten the run, raise lr, or use rules.GradientFlow()",
        )
    return steps.astype(np.int32)
