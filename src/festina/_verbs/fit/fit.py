"""Fit the free numbers of a theory to what was recorded from a network, and judge whether the theory applies."""

from __future__ import annotations

import inspect
from typing import Any

from ..._foundation.errors import UnknownName
from ..._setup.trajectory import Trajectory
from ...theories._fitting.base import Fitting
from ...theories.base import Theory
from ..covering import members
from .search import minimum


def fit(
    theory: str | type[Theory] | Theory,
    trajectory: Trajectory,
    *,
    seed: int | None = None,
    start: int = 0,
    **options: Any,
) -> Any:
    """Fit a theory's free numbers to a recorded network; every result is marked as fitted.

    A theory, by name, class or instance, can be fitted if it declares how, as `fitting`:

    - "TwoPoint": its two rates, for one layer and one pair of inputs of a trajectory from `festina.probe`, recorded
      with targets, or from `simulate` or `solve` with observe=["distance", "output_distance", "output_alignment"];
      curves of your own become a trajectory with `festina.probe.curves`. The third rate, that of the mean of the two
      outputs, is fitted if "mean_gap" was recorded, or the loss of these two points alone. `festina.probe.scan` fits
      all layers and pairs.
    - "AlignedModes": the start of one mode of a deep linear network, from a trajectory of `simulate` or `solve` with
      "modes". With random initial weights, a mode's effective initial strength shows only once it is learned; the fit
      estimates it.

    Args:
        seed: one of the seeds of `simulate`; None takes the only one.
        start: the record to begin at; for "TwoPoint", once the mean of the outputs is learned.
        options: further arguments of the theory's fit, listed below.

    Options of "TwoPoint":

    - `layer`: a name or number of the recorded layers; None takes the middle one, number L//2.
    - `pair`: a name of the recorded pairs such as "0-1", the numbers of its two samples, (0, 1), or its own number; the
      first if it is not given.
    - `free_gap`: True also fits the first difference of outputs along the target.

    Option of "AlignedModes":

    - `mode`: the number of the mode; 0, the strongest, if it is not given.
    """
    name, fitting = _declared(theory)
    known = [*inspect.signature(fitting.record).parameters][1:]
    for option in options:
        if option not in known:
            raise UnknownName.among(f"argument of a fit of {name}", option, known)
    record = fitting.record(trajectory, seed=seed, start=start, **options)
    return fitting.answer(name, record, minimum(fitting, record))


def _declared(theory: object) -> tuple[str, Fitting]:
    """The name of a theory, and how it is fitted."""
    known = members()
    member = known.get(theory) if isinstance(theory, str) else theory
    kind = member if isinstance(member, type) else type(member)
    fitting = kind.fitting if issubclass(kind, Theory) else None
    if fitting is None:
        wanted = theory if isinstance(theory, str) else kind.__name__
        fitted = [name for name, member in known.items() if member.fitting is not None]
        raise UnknownName.among("theory with something to fit", wanted, fitted)
    return kind.__name__, fitting
