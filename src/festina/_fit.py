"""Fit the rates of the two-point theory to what was recorded from a network, and judge whether the theory applies."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _checks, _two_point
from ._errors import BadInput, UnknownName
from ._fit_rates import LARGEST_LOG, Found, FoundMean, Member, mean_rates, rates
from ._fit_records import CONSTANT, Entry, checked_entry, checked_times, numbered, pair_number, recorded, seed_number
from ._precision import in_double
from ._trajectory import Trajectory
from ._two_point import Curves
from .theories.base import Theory

LARGE_START = 0.3  # H0/H∞, which no choice of units changes; the hidden difference then turns before it grows
LEFT_TO_LEARN = 0.05  # of the target
GOOD_FIT = 0.9  # R² of every curve that changes
CHANGED = 0.1  # of the size of a curve; R² of one that changes less is that of its noise
LONG_PLATEAU = 10.0  # in lengths of the transition; the closed form from a start of 1e-9 waits for 5
IDENTIFIED = 1e6  # condition of the Gauss-Newton matrix
UNCHANGED = (
    "H, P and w do not change: nothing can be fitted",
    "train until the outputs differ as their targets do: record for longer, or a run that learns",
)


class Rates(NamedTuple):
    """The fitted rates η = 1/τ, per unit of the recorded times."""

    eta_h: float
    eta_y: float


@dataclasses.dataclass(frozen=True)
class Verdict:
    """True if nothing speaks against the theory; else `reasons` say what does, and `advice` what to try about each."""

    reasons: tuple[str, ...]
    advice: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.reasons

    def __str__(self) -> str:
        return "; ".join(self.reasons) if self.reasons else "nothing speaks against it"


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
    log_covariance: Any
    r2: Curves
    sse: float
    condition: float
    converged: bool
    applies: Verdict
    times: Any
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
    def loss(self) -> Any:
        """The loss of the two points at `times` with the three fitted rates; None without the third."""
        return None if self.mean is None else _loss(self)

    @property
    def has_rates(self) -> bool:
        """Whether there are rates at all: a minimum at which both are identified, of curves that change."""
        return self.converged and self.condition <= IDENTIFIED and bool(np.isfinite(self.r2).any())

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
    def covariance(self) -> Any:
        """The covariance of η_h, η_y and, where the start is free, p0/√Y."""
        units = np.array([*self.rates, 1.0][: len(self.log_covariance)])
        return self.log_covariance * np.outer(units, units)

    def plot(self) -> Any:
        """A figure of H, P and w: measured thick and pale, fitted thin, dark and dashed on top."""
        from ._plot import fit_figure

        return fit_figure(self)

    @property
    def named(self) -> str:
        """What was fitted, in words: layer, pair and seed, as far as they have names."""
        names = {"layer": self.layer, "pair": self.pair, "seed": self.seed}
        return ", ".join(f"{kind} {name}" for kind, name in names.items() if name is not None)

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


def fit(
    theory: str | type[Theory] | Theory,
    trajectory: Trajectory,
    *,
    layer: str | int | None = None,
    pair: str | int | tuple[int, int] = 0,
    seed: int | None = None,
    start: int = 0,
    free_gap: bool = False,
) -> TwoPointFit:
    """Fit a theory's free numbers to a recorded network; all that comes of it is marked as fitted.

    The one theory with free numbers is "TwoPoint", by name or as the class: its two rates, for one layer and one pair
    of inputs of a trajectory from `festina.probe`, recorded with targets, or from `simulate` or `solve` with
    observe=["distance", "output_distance", "output_alignment"]; curves of your own become a trajectory with
    `festina.probe.curves`. The third rate, that of the mean of the two outputs, is fitted if "mean_gap" was recorded,
    or the loss of these two points alone. `festina.probe.scan` fits all layers and pairs.

    Args:
        layer: a name or number of the recorded layers; None takes the middle one, number L//2.
        pair: of the recorded pairs, a name such as "0-1", the numbers of its two samples, (0, 1), or its own number.
        seed: one of the seeds of `simulate`; None takes the only one.
        start: the record to begin at, once the mean of the outputs is learned.
        free_gap: also fit the first difference of outputs along the target.
    """
    kind = theory if isinstance(theory, type) else type(theory)
    asked = theory if isinstance(theory, str) else kind.__name__
    if asked != "TwoPoint":
        raise UnknownName.among("theory with something to fit", asked, ("TwoPoint",))
    free_gap = _checks.truth(free_gap, "free_gap")
    seen = recorded(trajectory)
    which = (
        seed_number(seed, seen),
        numbered(len(seen.layers) // 2 if layer is None else layer, seen.layers, "layer"),
        pair_number(pair, seen.pairs),
    )
    return dataclasses.replace(
        _only(seen.times, seen.member(*which), start, free_gap),
        seed=None if seen.seeds is None else seen.seeds[which[0]],
        layer=seen.layers[which[1]],
        pair=seen.pairs[which[2]],
    )


def fit_two_point(
    times: Any,
    H: Any,
    P: Any,
    w: Any,
    X: Any,
    Y: Any,
    *,
    mean_gap: Any = None,
    free_gap: bool = False,
    start: int = 0,
) -> TwoPointFit:
    """The rates with which the two-point theory comes nearest to recorded curves.

    `H`, `P` and `w` are the squared distances in a layer and in the output, and w = P − dy·Δy*, at `times`; `X` and `Y`
    the squared distances of inputs and targets. `start` is the record to begin at: while a network still learns the
    mean of its outputs, H does not follow w. `free_gap` also fits p0, the first output difference along the target.
    `mean_gap` is |ȳ − ȳ*|² at `times`, for the third rate.

    >>> from festina.theories.two_point import trajectory
    >>> ts, pair = range(0, 4000, 20), dict(distance0=1e-3, output0=1e-4, alignment0=-0.0069)
    >>> curves = trajectory(ts, **pair, input_gap=1.0, target_gap=0.5, tau_h=500.0, tau_y=100.0)
    >>> fit = fit_two_point(ts, *curves, 1.0, 0.5)
    >>> round(fit.tau_h, 6), round(fit.tau_y, 6), bool(fit.applies)
    (500.0, 100.0, True)
    """
    return _only(times, Entry(H, P, w, X, Y, mean_gap), start, free_gap)


def _only(times: Any, entry: Entry, start: Any, free_gap: bool) -> TwoPointFit:
    (found,) = fit_all(times, [entry], free_gap=free_gap, start=start)
    if isinstance(found, BadInput):
        raise found
    return found


def fit_all(
    times: Any, entries: Sequence[Entry], *, free_gap: bool = False, start: int = 0
) -> list[TwoPointFit | BadInput]:
    """The fits of many records at the same times; for a record that cannot be used, what is wrong with it."""
    times, start = checked_times(times, start)
    outcomes: list[Any] = [checked_entry(entry, times, start, bool(free_gap)) for entry in entries]
    usable = [i for i, outcome in enumerate(outcomes) if not isinstance(outcome, BadInput)]
    times = times[start:]
    members = [outcomes[i][0] for i in usable]
    means = {i: outcomes[i][1] for i in usable if outcomes[i][1] is not None}
    third = dict(zip(means, mean_rates(times, list(means.values())), strict=True)) if means else {}
    for i, member, found in zip(usable, members, rates(times, members, bool(free_gap)) if members else (), strict=True):
        mean = _judged_mean(times, means[i], third[i]) if i in third else None
        outcomes[i] = _judged(times, member, found, mean, start, bool(free_gap))
    return outcomes


def _judged(times: Any, member: Member, found: Found, mean: MeanFit | None, start: int, free_gap: bool) -> TwoPointFit:
    curves, _, Y = member
    errors = np.sum((curves - np.stack(found.predicted)) ** 2, axis=1)
    # The first record is the start, and no evidence.
    spare = max(3 * (len(times) - 1) - len(found.metric), 1)
    log_covariance, condition = _uncertainty(found.metric, errors.sum() / spare)
    varied, r2 = _explained(curves, errors)
    converged = found.converged and bool(varied.any() and np.all(np.abs(found.logs[:2]) < LARGEST_LOG))
    r2 = Curves(*map(float, r2))
    return TwoPointFit(
        rates=Rates(*(_rate(log, times) for log in found.logs[:2])),
        log_covariance=log_covariance,
        r2=r2,
        sse=float(errors.sum()),
        condition=condition,
        converged=converged,
        applies=_verdict(times, curves, Y, r2, condition, converged) if varied.any() else _said([UNCHANGED]),
        times=times,
        predicted=found.predicted,
        measured=Curves(*curves),
        start=start,
        along0=float(found.logs[2] * (np.sqrt(Y) or 1.0)),
        free_gap=free_gap,
        target_gap=Y,
        mean=mean,
    )


def _rate(log: float, times: Any) -> float:
    """From a logarithm in units of the duration, which the search may leave far outside of what it looks at."""
    return float(np.exp(np.clip(log, -LARGEST_LOG, LARGEST_LOG)) / (times[-1] - times[0]))


def _judged_mean(times: Any, curve: Any, found: FoundMean) -> MeanFit:
    errors = np.sum((curve - found.predicted) ** 2)
    variance = errors / curve[0] ** 2 / max(len(times) - 2, 1)
    spread = np.sqrt(variance / found.metric) if found.metric > 0 else np.inf
    eta = _rate(found.log, times)
    r2 = _explained(curve[None], errors[None])[1]
    return MeanFit(eta, float(eta * spread), float(r2[0]), float(curve[0]), found.converged)


def _explained(curves: Any, errors: Any) -> tuple[Any, Any]:
    """Which curves change, and R² of those that do."""
    varied = np.ptp(curves, axis=1) > CONSTANT * np.max(np.abs(curves), axis=1)
    total = np.sum((curves - curves.mean(axis=1, keepdims=True)) ** 2, axis=1)
    return varied, np.where(varied, 1 - errors / np.where(varied, total, 1.0), np.nan)


@in_double
def _loss(fit: TwoPointFit) -> Any:
    assert fit.mean is not None
    return _two_point.loss(fit.times - fit.times[0], fit.predicted, fit.target_gap, fit.mean.gap0, 1 / fit.mean.eta)


def _uncertainty(metric, variance):
    """The covariance of the parameters, and the condition of the Gauss-Newton matrix; infinite where it is singular."""
    none = np.full(metric.shape, np.inf), np.inf
    if not np.all(np.isfinite(metric)):
        return none
    sizes, axes = np.linalg.eigh(metric)
    if sizes[0] <= 0:
        return none
    with np.errstate(over="ignore"):
        return variance * (axes / sizes) @ axes.T, float(sizes[-1] / sizes[0])


def _said(found: Sequence[tuple[str, str]]) -> Verdict:
    """A verdict of reasons, each with what to try about it."""
    return Verdict(tuple(reason for reason, _ in found), tuple(dict.fromkeys(advice for _, advice in found)))


def _verdict(times, curves, Y, r2, condition, converged) -> Verdict:
    (H0, P0, _), found = curves[:, 0], []
    last = np.median(curves[:, -max(1, len(times) // 50) :], axis=1)
    goal, scale = (Y, Y) if Y else (0.0, P0)
    short, rest = abs(last[1] - goal) / scale, abs(last[2]) / scale
    if max(short, rest) > LEFT_TO_LEARN:
        left = f"|P − Y| and |w| are {short:.2g} and {rest:.2g} of {'Y' if Y else 'P0'}, above {LEFT_TO_LEARN:g}"
        reason = f"learning is not over: at the end {left}; fits to a part of a run are biased"
        found.append((reason, "train for longer, or check that the network can learn these targets at all"))
    # Of a run that is not over, the end of H is not known; with equal targets, H only falls.
    elif Y and LARGE_START * last[0] < H0:
        share = f"{H0 / last[0] if last[0] else np.inf:.2g} of its end, above {LARGE_START:g}"
        reason = f"H starts at {share}: from a large start the hidden difference turns, and rates are biased"
        advice = "smaller starting weights, a pair of inputs that are closer together, or another layer: probe.scan"
        found.append((reason, advice))
    changed = np.ptp(curves, axis=1) > CHANGED * np.max(np.abs(curves), axis=1)
    poor = [
        f"{name} is {value:.3g}"
        for name, value, is_used in zip(("H", "P", "w"), r2, changed, strict=True)
        if is_used and not value >= GOOD_FIT
    ]
    if poor:
        reason = f"R² of {', of '.join(poor)}, below {GOOD_FIT:g}: two rates do not describe this run"
        advice = "another layer: probe.scan; start=k, once the mean of the outputs is learned; smaller starting weights"
        found.append((reason, advice))
    ratio = _plateau(times, curves[1])
    if ratio > LONG_PLATEAU:
        reason = f"the plateau is {ratio:.3g} times as long as the transition, above {LONG_PLATEAU:g}"
        found.append((reason, "larger starting weights, fewer layers, or start=k, a record nearer to the transition"))
    if not condition <= IDENTIFIED:
        reason = f"the rates are not identified: condition {condition:.2g}, above {IDENTIFIED:g}"
        found.append((reason, "record more often while the outputs change, or fit another layer or pair"))
    if not converged:
        found.append(("the fit did not converge", "another layer or pair, or start=k"))
    return _said(found)


def _plateau(times, output) -> float:
    """Time to a tenth of the change of P over the time from there to nine tenths."""
    change = output[-1] - output[0]
    if abs(change) <= CONSTANT * np.max(output):
        return 0.0
    done = (output - output[0]) / change
    early, late = np.argmax(done >= 0.1), np.argmax(done >= 0.9)
    return float((times[early] - times[0]) / (times[late] - times[early])) if late > early else float(early)
