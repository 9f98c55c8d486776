"""The result of a fit: parameters, their uncertainty, the quality of the curves, and reasons against the theory."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from ..._foundation import html
from .records import FitRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GOOD_FIT = 0.9  # least R² of every curve that changes
CHANGED = 0.1  # a curve changes if it varies by more than this share of its size; below, R² measures its noise
CONSTANT = 1e-9  # a curve is constant if it varies by at most this share of its size
IDENTIFIED = 1e6  # largest condition number of the Gauss-Newton matrix
KNOWN = 1.0  # largest standard error of the logarithm of a parameter
LARGEST_LOG = 80.0  # largest logarithm of a parameter in units of the record; beyond, nothing moves or all is over


class Minimum(NamedTuple):
    """Where the squared error of a record is least."""

    x: Float[np.ndarray, " parameter"]
    converged: bool
    predicted: Float[np.ndarray, "curve time"]
    metric: Float[np.ndarray, "parameter parameter"]  # JᵀJ of the derivatives of the prediction


@dataclasses.dataclass(frozen=True)
class Verdict:
    """True if nothing speaks against the theory; else `reasons` say what does, and `advice` what to try about each."""

    reasons: tuple[str, ...]
    advice: tuple[str, ...] = ()

    @classmethod
    def of(cls, findings: Sequence[tuple[str, str]]) -> Verdict:
        """The verdict of reasons, each with what to try about it."""
        return cls(tuple(reason for reason, _ in findings), tuple(dict.fromkeys(advice for _, advice in findings)))

    def __bool__(self) -> bool:
        return not self.reasons

    def __str__(self) -> str:
        return "; ".join(self.reasons) if self.reasons else "nothing speaks against it"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Fit:
    """Fitted numbers of a theory, how well they are known, and whether the theory applies.

    `numbers` and `errors`, their standard errors, have one entry for each free number, `r2` one for each curve.
    `log_covariance` is that of the logarithms; it takes the errors of the records as independent. `predicted` (curve,
    time) are the curves of the fit at `times`, which begin at record `start`, and `measured` what they were fitted to.
    `names` say what was fitted, such as the seed.
    """

    theory: str
    numbers: Mapping[str, float]
    log_covariance: Float[np.ndarray, "number number"]
    r2: Mapping[str, float]
    sse: float
    condition: float
    converged: bool
    applies: Verdict
    times: Float[np.ndarray, " time"]
    predicted: Float[np.ndarray, "curve time"]
    measured: Float[np.ndarray, "curve time"]
    start: int
    names: Mapping[str, Any]

    @property
    def errors(self) -> dict[str, float]:
        """Standard errors of the fitted numbers."""
        spread = np.sqrt(np.diag(self.log_covariance))
        return {name: float(size * error) for (name, size), error in zip(self.numbers.items(), spread, strict=True)}

    def plot(self) -> Figure:
        """A figure of every curve: measured thick and pale, fitted thin, dark and dashed on top."""
        from ..._figures.fit import fit_figure

        title = f"{self.theory} fitted{_to(self.names)}: {', '.join(self._numbers())}"
        title += f"\n{textwrap.fill(str(self.applies), 130)}"
        labels, r2 = {name: name for name in self.r2}, [*self.r2.values()]
        return fit_figure(title, labels, self.times, self.measured, self.predicted, r2)

    def _repr_html_(self) -> str:
        return html.of_lines(repr(self))

    def __repr__(self) -> str:
        r2 = ", ".join(f"{name} {value:.4f}" for name, value in self.r2.items())
        return (
            f"{self.theory} fitted{_to(self.names)}, {len(self.times)} records from record {self.start} on\n"
            f"  fitted   {', '.join(self._numbers())}\n"
            f"  R²       {r2}; squared error {self.sse:.3g}\n"
            f"  applies  {'yes' if self.applies else 'no'}: {self.applies}"
            + "".join(f"\n  try      {advice}" for advice in self.applies.advice)
        )

    def _numbers(self) -> list[str]:
        return [f"{name} = {value:.4g} ± {self.errors[name]:.1g}" for name, value in self.numbers.items()]


def named(names: Mapping[str, Any]) -> str:
    """What was fitted, in words: layer, pair, mode and seed, as far as they have names."""
    return ", ".join(f"{kind} {name}" for kind, name in names.items() if name is not None)


def _to(names: Mapping[str, Any]) -> str:
    return f" to {words}" if (words := named(names)) else ""


def fit_of(
    theory: str,
    names: Sequence[str],
    curves: Sequence[str],
    units: Float[np.ndarray, " number"],
    record: FitRecord,
    minimum: Minimum,
) -> Fit:
    """The answer of a theory whose parameters are the logarithms of its free numbers in some units."""
    errors = np.sum((record.curves - minimum.predicted) ** 2, axis=1)
    spare = max(record.curves.size - len(minimum.x), 1)
    covariance, condition = uncertainty(minimum.metric, errors.sum() / spare)
    varied, r2 = explained(record.curves, errors)
    has_minimum = bool(varied.any() and np.all(np.abs(minimum.x) < LARGEST_LOG))
    numbers = units * np.exp(np.clip(minimum.x, -LARGEST_LOG, LARGEST_LOG))
    return Fit(
        theory=theory,
        numbers=dict(zip(names, map(float, numbers), strict=True)),
        log_covariance=covariance,
        r2=dict(zip(curves, map(float, r2), strict=True)),
        sse=float(errors.sum()),
        condition=condition,
        converged=minimum.converged and has_minimum,
        applies=Verdict(()),
        times=record.times,
        predicted=minimum.predicted,
        measured=record.curves,
        start=record.start,
        names=record.names,
    )


def explained(
    curves: Float[np.ndarray, "curve time"], errors: Float[np.ndarray, " curve"]
) -> tuple[Bool[np.ndarray, " curve"], Float[np.ndarray, " curve"]]:
    """Which curves change, and R² of those that do."""
    varied = np.ptp(curves, axis=1) > CONSTANT * np.max(np.abs(curves), axis=1)
    total = np.sum((curves - curves.mean(axis=1, keepdims=True)) ** 2, axis=1)
    return varied, np.where(varied, 1 - errors / np.where(varied, total, 1.0), np.nan)


def uncertainty(
    metric: Float[np.ndarray, "parameter parameter"], variance: float
) -> tuple[Float[np.ndarray, "parameter parameter"], float]:
    """The covariance of the parameters, and the condition of the Gauss-Newton matrix; infinite where it is singular."""
    none = np.full(metric.shape, np.inf), np.inf
    if not np.all(np.isfinite(metric)):
        return none
    sizes, axes = np.linalg.eigh(metric)
    if sizes[0] <= 0:
        return none
    with np.errstate(over="ignore"):
        return variance * (axes / sizes) @ axes.T, float(sizes[-1] / sizes[0])


def common_reasons(fit: Fit) -> list[tuple[str, str]]:
    """What may speak against any theory, each with what to try about it."""
    varied = np.ptp(fit.measured, axis=1) > CONSTANT * np.max(np.abs(fit.measured), axis=1)
    if not varied.any():
        return [
            (f"{', '.join(fit.r2)} does not change: nothing can be fitted", "record for longer, or a run that learns")
        ]
    changed = np.ptp(fit.measured, axis=1) > CHANGED * np.max(np.abs(fit.measured), axis=1)
    poor = [
        f"{name} is {value:.3g}"
        for (name, value), is_used in zip(fit.r2.items(), changed, strict=True)
        if is_used and not value >= GOOD_FIT
    ]
    reasons = []
    if poor:
        reasons.append(
            (f"R² of {', of '.join(poor)}, below {GOOD_FIT:g}", "start=k, a later record; or another theory")
        )
    spread = np.sqrt(np.diag(fit.log_covariance))
    if not fit.condition <= IDENTIFIED or not np.all(spread <= KNOWN):
        reasons.append(("the record does not tell the free numbers", "record more often while the network learns"))
    if not fit.converged:
        reasons.append(("the fit did not converge", "record for longer, or start=k"))
    return reasons
