"""The answer of a two-point fit: rates, how well they are known, and what speaks against the theory."""

from __future__ import annotations

import dataclasses
import textwrap
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from ..._formulas.two_points import flow
from ..._formulas.two_points.pair import Curves
from ..._foundation import html
from ..._foundation.arrays import Numbers
from ..._foundation.precision import in_double
from .answer import (
    CHANGED,
    CONSTANT,
    GOOD_FIT,
    IDENTIFIED,
    LARGEST_LOG,
    Minimum,
    Verdict,
    explained,
    named,
    uncertainty,
)
from .records import FitRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGE_START = 0.3  # H0/H∞, a ratio without units; above it the hidden difference rotates before it grows
LEFT_TO_LEARN = 0.05  # share of the target that a finished run may leave to learn
LONG_PLATEAU = 10.0  # in durations of the transition; in the closed form from a start of 1e-9 the plateau lasts 5
UNCHANGED = (
    "H, P and w do not change: nothing can be fitted",
    "train until the outputs differ as their targets do: record for longer, or a run that learns",
)


class Rates(NamedTuple):
    """The fitted rates η = 1/τ, per unit of the recorded times."""

    eta_h: float
    eta_y: float


class MeanMinimum(NamedTuple):
    """The best rate of the mean of one record, in units of the duration."""

    log: float
    converged: bool
    predicted: Float[np.ndarray, " time"]
    metric: float  # of the derivative, in units of the start


class MeanFit(NamedTuple):
    """The fitted rate η of |ȳ − ȳ*|² = |ȳ(0) − ȳ*|² e^(−2ηt), its standard error, R², and whether it is a minimum."""

    eta: float
    error: float
    r2: float
    gap0: float
    converged: bool


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TwoPointFit:
    """Fitted rates of the two-point theory, how well they are known, and whether the theory applies.

    `covariance` is that of η_h, η_y and, where the start is free, p0/√Y; `log_covariance` that of ln η_h, ln η_y and
    p0/√Y. Both take the errors of the records as independent and the start as known. `condition` is that of the
    Gauss-Newton matrix: above 1e6 the rates are not identified. `predicted` are the curves of the fit at `times`, which
    begin at record `start`, and `measured` what they were fitted to. `mean` is the fit of the third rate, that of the
    mean of the outputs, to |ȳ − ȳ*|² alone. `layer`, `pair` and `seed` name what was fitted; None where the record has
    no such name.
    """

    rates: Rates
    log_covariance: Float[np.ndarray, "parameter parameter"]
    r2: Curves
    sse: float
    condition: float
    converged: bool
    applies: Verdict
    times: Float[np.ndarray, " time"]
    predicted: Curves
    measured: Curves
    start: int
    along0: float  # p0, the component of the first output difference on the target
    free_gap: bool
    target_gap: float
    mean: MeanFit | None = None
    layer: str | None = None
    pair: str | None = None
    seed: int | None = None

    @property
    def eta_mean(self) -> float | None:
        """The fitted rate of the mean of the outputs; None if there was nothing to fit it to."""
        return None if self.mean is None else self.mean.eta

    @property
    def tau_mean(self) -> float | None:
        """1/η_mean."""
        return None if self.mean is None else 1 / self.mean.eta

    @property
    def loss(self) -> Numbers | None:
        """The loss of the two points at `times` with the three fitted rates; None without the third."""
        return None if self.mean is None else _loss(self)

    @property
    def has_rates(self) -> bool:
        """Whether there are rates at all: a minimum at which both are identified, of curves that change."""
        return self.converged and self.condition <= IDENTIFIED and bool(np.isfinite(np.array(self.r2)).any())

    @property
    def tau_h(self) -> float:
        """1/η_h."""
        return 1 / self.rates.eta_h

    @property
    def tau_y(self) -> float:
        """1/η_y."""
        return 1 / self.rates.eta_y

    @property
    def kappa(self) -> float:
        """η_h/η_y."""
        return self.rates.eta_h / self.rates.eta_y

    @property
    def covariance(self) -> Float[np.ndarray, "parameter parameter"]:
        """The covariance of η_h, η_y and, where the start is free, p0/√Y."""
        units = np.array([*self.rates, 1.0][: len(self.log_covariance)])
        return self.log_covariance * np.outer(units, units)

    def plot(self) -> Figure:
        """A figure of H, P and w: measured thick and pale, fitted thin, dark and dashed on top."""
        from ..._figures.fit import fit_figure

        labels = {"H": "squared distance in the layer", "P": "squared distance in the output", "w": "w = P − dy·Δy*"}
        verdict = "nothing speaks against the theory" if self.applies else f"the theory does not apply: {self.applies}"
        what = f"TwoPoint fitted to {self.named}" if self.named else "TwoPoint fitted"
        title = f"{what}: η_h = {self.rates.eta_h:.3g}, η_y = {self.rates.eta_y:.3g}\n{textwrap.fill(verdict, 130)}"
        return fit_figure(
            title, labels, self.times, np.array(self.measured), np.array(self.predicted), np.array(self.r2)
        )

    @property
    def named(self) -> str:
        """What was fitted, in words: layer, pair and seed, as far as they have names."""
        return named({"layer": self.layer, "pair": self.pair, "seed": self.seed})

    def _repr_html_(self) -> str:
        return html.of_lines(repr(self))

    def __repr__(self) -> str:
        spread = np.sqrt(np.diag(self.covariance)[:2])
        rates = ", ".join(
            f"{name} = {value:.4g} ± {error:.1g}"
            for name, value, error in zip(("η_h", "η_y"), self.rates, spread, strict=True)
        )
        mean = ""
        if self.mean is not None:
            mean = f"  fitted   η_mean = {self.mean.eta:.4g} ± {self.mean.error:.1g}, R² {self.mean.r2:.4f}\n"
        start = f", p0 = {self.along0:.4g}" if self.free_gap else ""
        what = f", {self.named}" if self.named else ""
        fits = ", ".join(f"{name} {value:.4f}" for name, value in zip(("H", "P", "w"), self.r2, strict=True))
        return (
            f"TwoPointFit{what}, fitted to {len(self.times)} records from record {self.start} on\n"
            f"  fitted   {rates} per unit time, κ = {self.kappa:.4g}{start}\n"
            f"{mean}"
            f"  R²       {fits}; squared error {self.sse:.3g}, condition {self.condition:.2g}\n"
            f"  applies  {'yes' if self.applies else 'no'}: {self.applies}"
            + "".join(f"\n  try      {advice}" for advice in self.applies.advice)
        )


def judged(record: FitRecord, minimum: Minimum, third: MeanMinimum | None) -> TwoPointFit:
    """What the least-squares rates say, and what speaks against them."""
    times, curves, Y = record.times, record.curves, float(record.known.target_gap)
    logs = np.concatenate([minimum.x, record.known.along0])[:3]
    errors = np.sum((curves - minimum.predicted) ** 2, axis=1)
    # The first record is the start, and no evidence.
    spare = max(3 * (len(times) - 1) - len(minimum.metric), 1)
    log_covariance, condition = uncertainty(minimum.metric, errors.sum() / spare)
    varied, r2 = explained(curves, errors)
    converged = minimum.converged and bool(varied.any() and np.all(np.abs(logs[:2]) < LARGEST_LOG))
    r2 = Curves(*map(float, r2))
    applies = _verdict(times, curves, Y, r2, condition, converged) if varied.any() else Verdict.of([UNCHANGED])
    return TwoPointFit(
        rates=Rates(*(_rate(log, times) for log in logs[:2])),
        log_covariance=log_covariance,
        r2=r2,
        sse=float(errors.sum()),
        condition=condition,
        converged=converged,
        applies=applies,
        times=times,
        predicted=Curves(*minimum.predicted),
        measured=Curves(*curves),
        start=record.start,
        along0=float(logs[2] * (np.sqrt(Y) or 1.0)),
        free_gap=record.for_answer.free_gap,
        target_gap=Y,
        mean=None if third is None else _judged_mean(times, record.for_answer.mean_gap, third),
        **record.names,
    )


def _rate(log: float, times: Float[np.ndarray, " time"]) -> float:
    """A rate from its logarithm, which the search may leave far outside the range of floats."""
    return float(np.exp(np.clip(log, -LARGEST_LOG, LARGEST_LOG)) / (times[-1] - times[0]))


def _judged_mean(times: Float[np.ndarray, " time"], curve: Float[np.ndarray, " time"], minimum: MeanMinimum) -> MeanFit:
    errors = np.sum((curve - minimum.predicted) ** 2)
    variance = errors / curve[0] ** 2 / max(len(times) - 2, 1)
    spread = np.sqrt(variance / minimum.metric) if minimum.metric > 0 else np.inf
    eta = _rate(minimum.log, times)
    r2 = explained(curve[None], errors[None])[1]
    return MeanFit(eta, float(eta * spread), float(r2[0]), float(curve[0]), minimum.converged)


@in_double
def _loss(fit: TwoPointFit) -> Numbers:
    assert fit.mean is not None
    return flow.loss(fit.times - fit.times[0], fit.predicted, fit.target_gap, fit.mean.gap0, 1 / fit.mean.eta)


def _verdict(
    times: Float[np.ndarray, " time"],
    curves: Float[np.ndarray, "3 time"],
    Y: float,
    r2: Curves,
    condition: float,
    converged: bool,
) -> Verdict:
    (H0, P0, _), findings = curves[:, 0], []
    last = np.median(curves[:, -max(1, len(times) // 50) :], axis=1)
    goal, scale = (Y, Y) if Y else (0.0, P0)
    short, rest = abs(last[1] - goal) / scale, abs(last[2]) / scale
    if max(short, rest) > LEFT_TO_LEARN:
        left = f"|P − Y| and |w| are {short:.2g} and {rest:.2g} of {'Y' if Y else 'P0'}, above {LEFT_TO_LEARN:g}"
        reason = f"learning is not over: at the end {left}; fits to a part of a run are biased"
        findings.append((reason, "train for longer, or check that the network can learn these targets at all"))
    # Of a run that is not over, the end of H is not known; with equal targets, H only falls.
    elif Y and LARGE_START * last[0] < H0:
        share = f"{H0 / last[0] if last[0] else np.inf:.2g} of its end, above {LARGE_START:g}"
        reason = f"H starts at {share}: from a large start the hidden difference rotates, and rates are biased"
        advice = "smaller starting weights, a pair of inputs that are closer together, or another layer: probe.scan"
        findings.append((reason, advice))
    changed = np.ptp(curves, axis=1) > CHANGED * np.max(np.abs(curves), axis=1)
    poor = [
        f"{name} is {value:.3g}"
        for name, value, is_used in zip(("H", "P", "w"), r2, changed, strict=True)
        if is_used and not value >= GOOD_FIT
    ]
    if poor:
        reason = f"R² of {', of '.join(poor)}, below {GOOD_FIT:g}: two rates do not describe this run"
        advice = "another layer: probe.scan; start=k, once the mean of the outputs is learned; smaller starting weights"
        findings.append((reason, advice))
    ratio = _plateau(times, curves[1])
    if ratio > LONG_PLATEAU:
        reason = f"the plateau is {ratio:.3g} times as long as the transition, above {LONG_PLATEAU:g}"
        findings.append(
            (reason, "larger starting weights, fewer layers, or start=k, a record nearer to the transition")
        )
    if not condition <= IDENTIFIED:
        reason = f"the rates are not identified: condition {condition:.2g}, above {IDENTIFIED:g}"
        findings.append((reason, "record more often while the outputs change, or fit another layer or pair"))
    if not converged:
        findings.append(("the fit did not converge", "another layer or pair, or start=k"))
    return Verdict.of(findings)


def _plateau(times: Float[np.ndarray, " time"], output: Float[np.ndarray, " time"]) -> float:
    """Length of the plateau over that of the transition.

    The plateau lasts until P has made a tenth of its change, the transition from there to nine tenths.
    """
    change = output[-1] - output[0]
    if abs(change) <= CONSTANT * np.max(output):
        return 0.0
    done = (output - output[0]) / change
    early, late = np.argmax(done >= 0.1), np.argmax(done >= 0.9)
    return float((times[early] - times[0]) / (times[late] - times[early])) if late > early else float(early)
