"""Fit the rates of the two-point theory to what was recorded from a network.

Least squares of H, P and w with equal weights, from the recorded start [vanrossem2024, eq. 49], in the logarithms of
the two rates. The closed form makes every evaluation cheap and its derivatives exact. κ = η_h/η_y is set by the final
level, √(η_h η_y) by the time of the transition: a scan of the latter comes first, and the best three are polished.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares

from . import _two_point
from ._errors import BadInput, UnknownName
from ._noun import real_array, whole
from ._precision import in_double
from ._trajectory import Trajectory
from ._two_point import Curves

SCAN = np.logspace(-3.5, 4.5, 80)  # √(η_h η_y X Y) × duration
COARSE = 256  # records are enough to scan
POLISHED = 3
LARGEST_LOG = 80.0  # of a rate × duration; beyond it nothing moves, or all is over at once

LARGE_START = 0.1  # H0/X; the hidden difference then turns before it grows
LEFT_TO_LEARN = 0.05  # of the target
GOOD_FIT = 0.9  # R² of w, the first curve to show that two rates do not describe a network
LONG_PLATEAU = 10.0  # in lengths of the transition; the closed form from a start of 1e-9 waits for 5
IDENTIFIED = 1e6  # condition of the Gauss-Newton matrix
CONSTANT = 1e-9  # of the size of a curve
UNCHANGED = "H, P and w do not change: nothing can be fitted; record for longer, or from a run that learns"


class Rates(NamedTuple):
    """The fitted rates η = 1/τ, per unit of the recorded times."""

    eta_h: float
    eta_y: float


@dataclasses.dataclass(frozen=True)
class Verdict:
    """True if nothing speaks against the theory; else `reasons` say what does."""

    reasons: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.reasons

    def __str__(self) -> str:
        return "; ".join(self.reasons) if self.reasons else "nothing speaks against it"


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class TwoPointFit:
    """Fitted rates of the two-point theory, how well they are known, and whether the theory applies.

    `covariance` is that of ln η_h, ln η_y and, where the start is free, p0/√Y; it takes the errors of the records as
    independent and the start as known. `condition` is that of the Gauss-Newton matrix: above 1e6 the rates are not
    identified. `predicted` are the curves of the fit at `times`, which begin at record `start`.
    """

    rates: Rates
    covariance: Any
    r2: Curves
    sse: float
    condition: float
    converged: bool
    applies: Verdict
    times: Any
    predicted: Curves
    start: int
    along0: float  # p0, the component of the first output difference on the target
    free_gap: bool

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
    def rates_covariance(self) -> Any:
        """The covariance of η_h and η_y themselves."""
        return self.covariance[:2, :2] * np.outer(self.rates, self.rates)

    def __repr__(self) -> str:
        spread = np.sqrt(np.diag(self.rates_covariance))
        rates = ", ".join(
            f"{name} = {value:.4g} ± {error:.1g}"
            for name, value, error in zip(("η_h", "η_y"), self.rates, spread, strict=True)
        )
        start = f", p0 = {self.along0:.4g}" if self.free_gap else ""
        fits = ", ".join(f"{name} {value:.4f}" for name, value in zip(("H", "P", "w"), self.r2, strict=True))
        return (
            f"TwoPointFit, fitted to {len(self.times)} records from record {self.start} on\n"
            f"  fitted   {rates} per unit time, κ = {self.kappa:.4g}{start}\n"
            f"  R²       {fits}; squared error {self.sse:.3g}, condition {self.condition:.2g}\n"
            f"  applies  {'yes' if self.applies else 'no'}: {self.applies}"
        )


def fit(
    theory: str,
    trajectory: Trajectory,
    *,
    layer: str | int | None = None,
    pair: str | int = 0,
    start: int = 0,
    free_gap: bool = False,
) -> TwoPointFit:
    """Fit a theory's free numbers to what a probe has recorded; all that comes of it is marked as fitted.

    The one theory with free numbers is "TwoPoint": its two rates, for one layer and one pair of inputs of a trajectory
    from `festina.probe`, recorded with targets.

    Args:
        layer: a name or number of the recorded layers; None takes the middle one, number L//2.
        pair: a name such as "0-1", or a number, of the recorded pairs.
        start: the record to begin at, once the mean of the outputs is learned.
        free_gap: also fit the first difference of outputs along the target.
    """
    if theory != "TwoPoint":
        raise UnknownName.among("theory with something to fit", theory, ("TwoPoint",))
    needed = ("distance", "output", "alignment")
    if not isinstance(trajectory, Trajectory) or not all(name in trajectory for name in needed):
        has = ", ".join(trajectory) if isinstance(trajectory, Trajectory) else repr(trajectory)
        raise BadInput(
            f"a fit of the two-point theory to {has}",
            f"a trajectory with {', '.join(needed)}",
            "record one with festina.probe.torch(model, inputs=…, targets=…)",
        )
    if trajectory.axes["distance"] != ("time", "layer", "pair"):
        raise BadInput(
            f"distances with the axes {trajectory.axes['distance']}", "time, layer, pair", "fit one run at a time"
        )
    facts = trajectory.provenance
    if not facts.get("input_gap") or not facts.get("target_gap"):
        do = "give inputs= and targets= to the probe"
        raise BadInput("a trajectory without gaps of inputs and targets", "both", do)
    layers = [str(name) for name in trajectory.coordinates["layer"]]
    which = _numbered(len(layers) // 2 if layer is None else layer, layers, "layer")
    k = _numbered(pair, [str(name) for name in trajectory.coordinates["pair"]], "pair")
    curves = trajectory["distance"][:, which, k], trajectory["output"][:, k], trajectory["alignment"][:, k]
    input_gap, target_gap = facts["input_gap"][k], facts["target_gap"][k]
    return fit_two_point(trajectory.times, *curves, input_gap, target_gap, free_gap=free_gap, start=start)


def _numbered(which: Any, names: list[str], kind: str) -> int:
    """The number of a recorded layer or pair, given by name or number."""
    if isinstance(which, str):
        if which not in names:
            raise UnknownName.among(f"recorded {kind}", which, names)
        return names.index(which)
    number = whole(which, kind, least=0)
    if number >= len(names):
        raise BadInput(f"{kind} = {number}", f"one of the {len(names)} recorded, counted from 0", f"choose: {names}")
    return number


class _Record(NamedTuple):
    """What the closed form is compared with, in units of the duration; records beyond `mask` are padding."""

    ts: Any
    curves: Any  # (3, time)
    mask: Any
    distance0: Any
    off0: Any
    input_gap: Any
    target_gap: Any


def fit_two_point(
    times: Any, H: Any, P: Any, w: Any, X: Any, Y: Any, *, free_gap: bool = False, start: int = 0
) -> TwoPointFit:
    """The rates with which the two-point theory comes nearest to recorded curves.

    `H`, `P` and `w` are the squared distances in a layer and in the output, and w = P − dy·Δy*, at `times`; `X` and `Y`
    the squared distances of inputs and targets. `start` is the record to begin at: while a network still learns the
    mean of its outputs, H does not follow w. `free_gap` also fits p0, the first output difference along the target.

    >>> from festina.theories.two_point import trajectory
    >>> ts, pair = range(0, 4000, 20), dict(distance0=1e-3, output0=1e-4, alignment0=-0.0069)
    >>> curves = trajectory(ts, **pair, input_gap=1.0, target_gap=0.5, tau_h=500.0, tau_y=100.0)
    >>> fit = fit_two_point(ts, *curves, 1.0, 0.5)
    >>> round(fit.tau_h, 6), round(fit.tau_y, 6), bool(fit.applies)
    (500.0, 100.0, True)
    """
    times, curves, start = _checked_record(times, dict(H=H, P=P, w=w), start)
    first = dict(zip(("distance0", "output0", "alignment0"), (float(c[0]) for c in curves), strict=True))
    shown = {name: f"{curve}[{start}]" for name, curve in zip(first, ("H", "P", "w"), strict=True)}
    numbers = _two_point.checked(
        {**first, "input_gap": X, "target_gap": Y}, {**shown, "input_gap": "X", "target_gap": "Y"}
    )
    if any(np.ndim(number) for number in numbers.values()):
        raise BadInput(
            f"X of shape {np.shape(X)} and Y of shape {np.shape(Y)}", "two numbers", "fit one pair of points at a time"
        )
    X, Y = float(numbers["input_gap"]), float(numbers["target_gap"])
    if free_gap and Y == 0:
        raise BadInput("free_gap = True with Y = 0", "targets that differ", "there is no target to be along; leave it")
    x, done, predicted, slopes = _fitted(times - times[0], curves, X, Y, bool(free_gap))
    errors = np.sum((curves - np.stack(predicted)) ** 2, axis=1)
    # The first record is the start, and no evidence.
    spare = max(3 * (len(times) - 1) - slopes.shape[1], 1)
    covariance, condition = _uncertainty(slopes, errors.sum() / spare)
    varied = np.ptp(curves, axis=1) > CONSTANT * np.max(np.abs(curves), axis=1)
    total = np.sum((curves - curves.mean(axis=1, keepdims=True)) ** 2, axis=1)
    r2 = Curves(*map(float, np.where(varied, 1 - errors / np.where(varied, total, 1.0), np.nan)))
    rates = Rates(*(float(np.exp(log) / (times[-1] - times[0])) for log in x[:2]))
    converged = done and bool(varied.any() and np.all(np.abs(x[:2]) < LARGEST_LOG))
    return TwoPointFit(
        rates=rates,
        covariance=covariance,
        r2=r2,
        sse=float(errors.sum()),
        condition=condition,
        converged=converged,
        applies=Verdict(_reasons(times, curves, X, Y, r2, condition, converged) if varied.any() else (UNCHANGED,)),
        times=times,
        predicted=predicted,
        start=start,
        along0=float(x[2] * (np.sqrt(Y) or 1.0)),
        free_gap=bool(free_gap),
    )


@in_double
def _fitted(ts, curves, X, Y, free_gap):
    """ln η_h, ln η_y in units of the duration, and p0/√Y; whether they are a minimum; curves and derivatives there."""
    ts = ts / ts[-1]
    along0, off0 = map(float, _two_point.components(curves[1, 0], curves[2, 0], Y))
    along0 = along0 / (np.sqrt(Y) or 1.0)
    fixed = curves[0, 0], off0, X, Y
    coarse = np.unique(np.linspace(0, len(ts) - 1, COARSE).round().astype(int))
    guesses = _guesses(curves, X, Y, along0)
    scores = np.asarray(_scores(guesses, _padded(ts[coarse], curves[:, coarse], *fixed)))
    record, free = _padded(ts, curves, *fixed), 3 if free_gap else 2

    def completed(x):
        return np.concatenate([x, [along0]])[:3]

    found = [
        least_squares(
            lambda x: np.asarray(_residuals(completed(x), record)),
            guess[:free],
            lambda x: np.asarray(_slopes(completed(x), record))[:, :free],  # pyright: ignore[reportArgumentType]
            method="lm",
            ftol=1e-15,
            xtol=1e-15,
            gtol=1e-15,
            max_nfev=200,
        )
        for guess in guesses[np.argsort(scores)[:POLISHED]]
    ]
    best = min(found, key=lambda one: one.cost)
    x = completed(best.x)
    return x, best.status > 0, Curves(*_predicted(x, record)[:, : len(ts)]), _slopes(x, record)[:, :free]


def _guesses(curves, X, Y, along0):
    """Logarithms of both rates, and p0: the scan, for each of three values of κ, no two of them the same."""
    (H0, P0, _), (H, P, _) = curves[:, 0], curves[:, -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        # The final level of small starts; what the conserved quantity says; nothing known.
        ratios = np.array([H**2 / (X * Y) if Y else np.nan, (H - H0) / (X * (P / H - P0 / H0)), 1.0])
    usable = np.isfinite(ratios) & (ratios > 1e-12) & (ratios < 1e12)
    ratios = np.where(usable, ratios, 1.0) * [1.0, 1.1, 1.2]  # often they agree, and one start is tried once
    speed = np.log(SCAN / np.sqrt(X * (Y or P0 or 1.0)))
    tilt = np.log(ratios)[:, None] / 2
    pairs = np.stack([speed + tilt, speed - tilt, np.full((3, len(SCAN)), along0)], axis=-1)
    return pairs.reshape(-1, 3)


def _padded(ts, curves, *fixed) -> _Record:
    """A record of a length that is a power of two, so that records of many lengths share a program."""
    length = max(COARSE, 1 << (len(ts) - 1).bit_length())
    more = (0, length - len(ts))
    mask = np.pad(np.ones(len(ts)), more)
    padded = np.pad(ts, more, mode="edge"), np.pad(curves, ((0, 0), more)), mask
    return _Record(*map(jnp.asarray, (*padded, *map(float, fixed))))


@jax.jit
def _predicted(x: Any, record: _Record) -> Any:
    tau_h, tau_y = jnp.exp(-jnp.clip(x[:2], -LARGEST_LOG, LARGEST_LOG))
    along0 = x[2] * jnp.sqrt(record.target_gap)
    curves = _two_point.from_components(
        record.ts, record.distance0, along0, record.off0, record.input_gap, record.target_gap, tau_h, tau_y
    )
    return jnp.stack(curves)


@jax.jit
def _residuals(x: Any, record: _Record) -> Any:
    return ((_predicted(x, record) - record.curves) * record.mask).ravel()


_slopes = jax.jit(jax.jacfwd(_residuals))
_scores = jax.jit(jax.vmap(lambda x, record: jnp.sum(_residuals(x, record) ** 2), in_axes=(0, None)))


def _uncertainty(slopes, variance):
    """The covariance of the parameters, and the condition of the Gauss-Newton matrix; infinite where it is singular."""
    _, sizes, right = np.linalg.svd(slopes, full_matrices=False)
    if not np.all(np.isfinite(sizes)) or sizes[-1] <= 0:
        return np.full((len(sizes), len(sizes)), np.inf), np.inf
    with np.errstate(over="ignore"):
        return variance * (right.T / sizes**2) @ right, float((sizes[0] / sizes[-1]) ** 2)


def _reasons(times, curves, X, Y, r2, condition, converged) -> tuple[str, ...]:
    (H0, P0, _), found = curves[:, 0], []
    if H0 > LARGE_START * X:
        found.append(f"H0/X = {H0 / X:.3g}, above {LARGE_START:g}: from a large start the hidden difference turns")
    last = np.median(curves[:, -max(1, len(times) // 50) :], axis=1)
    goal, scale = (Y, Y) if Y else (0.0, P0)
    short, rest = abs(last[1] - goal) / scale, abs(last[2]) / scale
    if max(short, rest) > LEFT_TO_LEARN:
        found.append(
            f"learning is not over: at the end |P − Y| and |w| are {short:.2g} and {rest:.2g} of "
            f"{'Y' if Y else 'P0'}, above {LEFT_TO_LEARN:g}; fits to a part of a run are biased, train for longer"
        )
    if not r2.alignment >= GOOD_FIT:
        found.append(f"R² of w is {r2.alignment:.3g}, below {GOOD_FIT:g}: two rates do not describe this run")
    ratio = _plateau(times, curves[1])
    if ratio > LONG_PLATEAU:
        found.append(f"the plateau is {ratio:.3g} times as long as the transition, above {LONG_PLATEAU:g}")
    if not condition <= IDENTIFIED:
        found.append(f"the rates are not identified: condition {condition:.2g}, above {IDENTIFIED:g}")
    if not converged:
        found.append("the fit did not converge")
    return tuple(found)


def _plateau(times, output) -> float:
    """Time to a tenth of the change of P over the time from there to nine tenths."""
    change = output[-1] - output[0]
    if abs(change) <= CONSTANT * np.max(output):
        return 0.0
    done = (output - output[0]) / change
    early, late = np.argmax(done >= 0.1), np.argmax(done >= 0.9)
    return float((times[early] - times[0]) / (times[late] - times[early])) if late > early else float(early)


def _checked_record(times, curves, start):
    times = real_array(times, "times", ndim=1)
    curves = {name: real_array(curve, name, ndim=1) for name, curve in curves.items()}
    lengths = {"times": len(times), **{name: len(curve) for name, curve in curves.items()}}
    if len(set(lengths.values())) > 1:
        raise BadInput(
            f"records of different lengths: {', '.join(f'{name} {n}' for name, n in lengths.items())}",
            "one value of H, P and w for every time",
            "record all of them at the same steps",
        )
    start = whole(start, "start", least=0)
    if len(times) - start < 4:
        raise BadInput(
            f"{max(len(times) - start, 0)} records from start = {start} on", "at least 4", "record more often"
        )
    if np.any(np.diff(times) <= 0):
        raise BadInput("times that do not increase", "increasing times", "sort the records by time")
    for name in ("H", "P"):
        if np.any(curves[name] < 0):
            raise BadInput(
                f"{name} down to {curves[name].min():g}", f"squared distances {name} >= 0", "give squared distances"
            )
    return times[start:], np.stack([curve[start:] for curve in curves.values()]), start
