"""The error of a theory's prediction, in numbers and in words."""

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
    """How accurate a theory is on a setup and a seed; `carried` are the errors that earlier tasks have left."""

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
        """A note on failed assumptions, and remarks that a user needs even if all assumptions hold."""
        known = self.coverage
        outside = "outside its assumptions: " + "; ".join(map(str, known.failed)) if known.failed else ""
        rounded = "" if known.stated is None else known.stated.note
        stepped = self._note_on_steps() if known.holds else ""
        remarks = known.theory.remarks(self.setup, self.seed) if known.usable else ()
        return "; ".join(filter(None, (outside, rounded, stepped, *remarks)))

    def _note_on_steps(self) -> str:
        """A note if the finite learning rate adds a large error to a prediction that is right for gradient flow."""
        tolerated, stated, rule = self.coverage.theory.tolerated, self.coverage.stated, self.setup.rule
        if not isinstance(rule, Discrete) or stated is None or stated.value > tolerated:
            return ""
        error = self.error
        if error <= tolerated:
            return ""
        return f"steps of lr = {rule.lr:g} are {error:.2g} of the answer away from gradient flow: lower lr"

    @property
    def end(self) -> Carried:
        """The errors of the final weights, from the theory and from finite steps; none if the theory's is too large."""
        theory, stated = self.coverage.theory, self.coverage.stated
        if stated is None or not stated.value <= theory.tolerated or not theory.can_be_followed:
            return FROM_NOTHING
        error = certificate(theory, self.setup, self.seed, carried=self.carried.error).end
        if not isinstance(self.setup.rule, Discrete):
            return Carried(error)
        added = steps(theory, self.setup, self.seed, carried=self.carried.steps).end
        return Carried(error, added if np.all(np.isfinite(added)) else None)
