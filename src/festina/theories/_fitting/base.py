"""What a theory declares so that `festina.fit` can fit it: its free numbers, and its prediction from them.

To make a theory one that can be fitted, write a class that derives from `Fitting` and give the theory the attribute
`fitting = ThatClass()`. The class gives, in this order:

- `free`, the names of the free numbers, and `curves`, those of the curves that they are fitted to;
- `record(trajectory, *, seed, start, …)`: what is read off a trajectory of a probe, of `simulate` or of `solve`, with a
  refusal in three parts of one that lacks it. Its other keyword arguments are those of `festina.fit` by which a user
  chooses what is fitted;
- `guesses(record)`: where the search begins. Many guesses cost little, since only the best are followed;
- `predicted(x, times, known)`: the curves, by functions that JAX can trace. The parameters x are the logarithms of the
  free numbers, in units of their own; times run from 0 to 1 over the record, and `record.known` is in these units;
- `units(record)`: the units of the free numbers;
- `reasons(fit)`: what speaks against the theory in this record; or `answer`, if the theory has one of its own kind.

`aligned_modes` is an example to copy.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, PyTree

from ..._foundation.arrays import AnyArray
from .answer import Fit, Minimum, Verdict, common_reasons, fit_of
from .records import FitRecord


class Fitting(abc.ABC):
    """How a theory is fitted; see the module's docstring for what a member gives."""

    free: ClassVar[tuple[str, ...]]
    curves: ClassVar[tuple[str, ...]]

    @abc.abstractmethod
    def record(self, *args: Any, **options: Any) -> FitRecord:
        """What is fitted, read off a trajectory from its record `start` on."""

    @abc.abstractmethod
    def guesses(self, record: FitRecord) -> Float[np.ndarray, "guess parameter"]:
        """Where the search begins."""

    @abc.abstractmethod
    def predicted(
        self, x: Float[AnyArray, " parameter"], times: Float[AnyArray, " time"], known: PyTree
    ) -> Float[AnyArray, "curve time"]:
        """The curves at times from 0 to 1."""

    def units(self, record: FitRecord) -> Float[np.ndarray, " number"]:
        """The units of the free numbers."""
        return np.ones(len(self.free))

    def reasons(self, fit: Fit) -> list[tuple[str, str]]:
        """What speaks against the theory, each with what to try about it."""
        return common_reasons(fit)

    def answer(self, theory: str, record: FitRecord, minimum: Minimum) -> Any:
        """What `festina.fit` returns, from the least-squares parameters."""
        fit = fit_of(theory, self.free, self.curves, self.units(record), record, minimum)
        return dataclasses.replace(fit, applies=Verdict.of(self.reasons(fit)))
