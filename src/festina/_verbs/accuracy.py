"""How wrong the answer of a theory is, in numbers and in words."""

from __future__ import annotations

import dataclasses

import numpy as np

from .._setup.setup import Setup
from ..rules.base import Discrete
from ..theories._certificate import certificate, steps
from ..theories._stated_error import FROM_NOTHING, Carried, stated_error, steps_error
from .covering import Coverage


@dataclasses.dataclass(frozen=True)
class Accuracy:
    """A theory that answers for a setup and a draw of its start; `carried` is the error of the tasks before."""

    coverage: Coverage
    setup: Setup
    seed: int
    carried: Carried

    @property
    def error(self) -> float:
        """The relative error against training by the setup's rule; NaN where the theory does not apply."""
        theory, assumptions = self.coverage.theory, self.coverage.assumptions
        if not self.coverage.usable:
            return np.nan
        stated = self.coverage.stated or stated_error(theory, self.setup, self.seed, assumptions, self.carried.error)
        if not isinstance(self.setup.rule, Discrete):
            return stated.value
        return stated.value + steps_error(theory, self.setup, self.seed, self.carried.steps)

    @property
    def note(self) -> str:
        """What fails, and what a user must know although nothing does."""
        known = self.coverage
        outside = "outside its assumptions: " + "; ".join(map(str, known.failed)) if known.failed else ""
        rounded = "" if known.stated is None else known.stated.note
        stepped = self._note_on_steps() if known.holds else ""
        remarks = known.theory.remarks(self.setup, self.seed) if known.usable else ()
        return "; ".join(filter(None, (outside, rounded, stepped, *remarks)))

    def _note_on_steps(self) -> str:
        """What steps of finite length do to an answer that is right for the flow."""
        tolerated, stated, rule = self.coverage.theory.tolerated, self.coverage.stated, self.setup.rule
        if not isinstance(rule, Discrete) or stated is None or stated.value > tolerated:
            return ""
        error = self.error
        if error <= tolerated:
            return ""
        return f"steps of lr = {rule.lr:g} are {error:.2g} of the answer away from gradient flow: lower lr"

    @property
    def end(self) -> Carried:
        """Shifts of the last weights by the error of the answer and by steps; none that is as large as they are."""
        theory, stated = self.coverage.theory, self.coverage.stated
        if stated is None or not stated.value <= theory.tolerated or not theory.knows_path:
            return FROM_NOTHING
        error = certificate(theory, self.setup, self.seed, carried=self.carried.error).end
        if not isinstance(self.setup.rule, Discrete):
            return Carried(error)
        added = steps(theory, self.setup, self.seed, carried=self.carried.steps).end
        return Carried(error, added if np.all(np.isfinite(added)) else None)
