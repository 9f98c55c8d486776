"""The equations of the two-point theory, said to have no analytic solution, are solved by elementary functions.

Two points of a network have the squared distances H in a hidden layer, P in the output, X of the inputs and Y of the
targets; w = P − dy·Δy* says how dy, the difference of the outputs, is aligned with that of the targets. The source says
that the three equations for H, P and w have no analytic solution, and its figures integrate them numerically. They are
those of a linear network with one hidden unit, in other variables, and this network has a closed form. Here the closed
form is compared with numerical integration in regular variables, for random pairs of points, time constants and numbers
of outputs.

The printed equations divide by H, which reaches zero in finite time from initial conditions whose outputs point away
from the target. Solvers of differential equations err there. On the border between the initial conditions that pass
through zero and those that turn back before it, they leave the solution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray
from jaxtyping import Float
from scipy.integrate import solve_ivp

from .._figures.panels import key, panels
from .._figures.style import COLOURS, INK, predicted, trained
from ..theories.two_point import final_distance, trajectory
from ._kit.exact_integration import integrated
from ._kit.labelled import largest, table
from ._kit.parameters import Annotated, AtLeast, Counts, Positive, Seed, Several, checked
from .base import Claim, Result, at_least, at_most, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataArray

THEME, PLACE = "pairs", 1
REFERENCE = {"vanrossem2024": "appendix A, eqs. 7, 10 and 24"}
QUICK = dict(pairs=18, records=46, points=50)
CAPTION = """
H is the squared distance of two points in a hidden layer. **a** H over its final value for six random pairs of points,
with the closed form of the theory; time is in units of √(τₕ τᵧ/(XY)), where τₕ and τᵧ are the time constants of the
layers below and above, and X and Y the squared distances of inputs and targets. Two of the pairs pass through H = 0.
**b** An initial condition from which H tends to 0 without reaching it, in closed form and by two solvers of SciPy at
default tolerances, on the equations as they are printed. **c** Final H by integration and as eq. 10 of the source
predicts it, for all pairs; the same with τₕ and τᵧ exchanged. The dotted line is equality. **d** Largest difference of
closed form and integration over time and over H, P and w, relative to the largest value, against τᵧ/τₕ, the ratio of
time constants. Nothing is fitted.
"""
ALT = """
The dashed closed form lies on the integrated curves, two of which fall to zero and rise again. On the border one solver
or both leave the closed form, which stays at zero. Predicted final distances lie on the diagonal. All differences are
of the size of rounding errors.
"""
CURVES = ["distance", "output", "alignment"]
SOLVERS = ["Radau", "LSODA"]
KINDS = {"stays above H = 0": COLOURS[0], "passes through H = 0": COLOURS[1]}
TICKS = [0.1, 0.2, 0.5, 1, 2, 5, 10]
BORDER = dict(distance0=1.0, output0=1.0, alignment0=2.0)  # a balanced network whose output points away from the target
ONES = dict(input_gap=1.0, target_gap=1.0, tau_h=1.0, tau_y=1.0)


@checked
def run(
    *,
    pairs: Annotated[int, AtLeast(6)] = 60,
    outputs: Counts = (1, 2, 5),
    spread: Positive = 1.0,
    until: Positive = 15.0,
    records: Annotated[int, AtLeast(3)] = 31,
    points: Several = 100,
    seed: Seed = 0,
) -> Result:
    """`pairs` of points are integrated, with numbers of outputs taken in turn from `outputs`, up to `until`.

    `spread` is that of the logarithms of X, Y and the ratio of time constants; `points` are times on the border.
    """
    times = np.linspace(0, until, records)
    data = _random_pairs(np.random.default_rng(seed), pairs, outputs, spread, times) | _border_of_zero(points)
    return Result(xarray.Dataset(data, coords={"curve": CURVES, "time": times, "solver": SOLVERS}))


def _random_pairs(
    rng: np.random.Generator, size: int, outputs: tuple[int, ...], spread: float, times: Float[np.ndarray, " time"]
) -> dict[str, DataArray]:
    """Random pairs of points, integrated as r and v (dh = r n, dy = r v), and in closed form.

    Every third initial condition points away from the target.
    """
    X, Y, kappa = np.exp(rng.uniform(-spread, spread, (3, size)))
    mean = np.sqrt(X * Y)
    tau_h, tau_y = mean / np.sqrt(kappa), mean * np.sqrt(kappa)
    r = np.exp(rng.uniform(-2 * spread, 0, size))
    v = rng.normal(size=(size, max(outputs))) * np.exp(rng.uniform(-2 * spread, 0, (size, 1)))
    v *= np.arange(max(outputs)) < np.resize(outputs, size)[:, None]
    v[::3, 0] = -np.abs(v[::3, 0])
    target = np.sqrt(Y)[:, None] * np.eye(max(outputs))[0]

    def speed(_: float, flat: np.ndarray) -> np.ndarray:
        r, v = np.split(flat.reshape(size, -1), [1], axis=1)
        error = r * v - target
        encoder = -(X / (2 * tau_h))[:, None] * np.sum(v * error, axis=1, keepdims=True)
        return np.hstack([encoder, -r * error / (2 * tau_y)[:, None]]).ravel()

    states = integrated(speed, np.column_stack([r, v]), times)
    r, v = states[..., :1], states[..., 1:]
    H, P = np.sum(r**2, axis=-1), np.sum((r * v) ** 2, axis=-1)
    integral = np.moveaxis(np.stack([H, P, P - np.sum(r * v * target, axis=-1)]), 1, -1)  # (curve, pair, time)
    task = dict(input_gap=X, target_gap=Y, tau_h=tau_h, tau_y=tau_y)
    start = dict(zip(BORDER, integral[..., 0], strict=True))
    late = integrated(speed, states[-1], times[-1] + np.array([0, 20.0, 200.0]))[-1]
    conserved = integral[0] - (kappa * X)[:, None] * integral[1] / integral[0]
    size_of = np.abs(conserved[:, :1]) + integral[0].max(axis=1, keepdims=True)
    return {
        "integral": table(integral, "curve", "pair", "time"),
        "closed_form": table(np.stack(trajectory(times, **start, **task)), "curve", "pair", "time"),
        "through_zero": table((states[..., 0].min(axis=0) < 0).astype(int), "pair"),
        "kappa": table(kappa, "pair"),
        "conserved_drift": table(np.max(np.abs(conserved - conserved[:, :1]) / size_of, axis=1), "pair"),
        "final": table(final_distance(**start, **task), "pair"),
        "final_swapped": table(final_distance(**start, **{**task, "tau_h": tau_y, "tau_y": tau_h}), "pair"),
        "final_integral": table(late[:, 0] ** 2, "pair"),
    }


def _border_of_zero(points: int) -> dict[str, DataArray]:
    """Initial conditions that tend to H = 0, in closed form and by solvers on the equations as printed."""

    def printed(_: float, state: np.ndarray) -> list[float]:
        H, P, w = state
        return [-w, -w * (H + P / H), -(3 * w - P + 1) * H / 2 - (P + w) * w / (2 * H)]

    times = np.linspace(0, 60.0, points)
    solved = np.full((len(SOLVERS), points), np.nan)
    for curve, solver in zip(solved, SOLVERS, strict=True):
        reached = solve_ivp(printed, (0, times[-1]), [*BORDER.values()], method=solver, t_eval=times).y[0]
        curve[: len(reached)] = reached
    return {
        "zero_time": table(times, "zero_time"),
        "zero_closed_form": table(trajectory(times, **BORDER, **ONES).distance, "zero_time"),
        "zero_solved": table(solved, "solver", "zero_time"),
    }


def _gaps(result: Result) -> DataArray:
    """Largest gap of closed form and integration for every pair, over the largest value of each curve."""
    gap, size = abs(result.data.closed_form - result.data.integral), abs(result.data.integral)
    return (gap.max("time") / size.max("time")).max("curve")


def claims(result: Result) -> list[Claim]:
    data = result.data
    late = data.zero_time > data.zero_time[-1] / 2
    left = abs(data.zero_solved.sel(solver="Radau") - data.zero_closed_form)[late]
    swapped = abs(data.final_swapped / data.final_integral - 1)
    return [
        paper(
            "No analytic solution exists (A.3): largest relative gap of the elementary one from integration",
            at_least(_gaps(result).max(), 1e-9),
            fails="they are a linear network with one hidden unit, whose integral is elementary",
            headline=True,
            panel="d",
        ),
        ours(
            "Solver Radau on the printed equations, where H → 0: largest late gap of H from the closed form",
            at_least(left.max(), 0.1),
            panel="b",
        ),
        paper(
            "The quantity H − κXP/H of eq. 24 is conserved: largest relative drift, by integration",
            at_most(data.conserved_drift.max(), 1e-9),
        ),
        paper(
            "Final H of eq. 10: largest relative gap from integration",
            at_most(largest(data.final / data.final_integral - 1), 1e-6),
            panel="c",
        ),
        ours(
            "Final H of eq. 10 with τₕ and τᵧ exchanged: median relative gap from integration",
            at_least(swapped.median(), 0.1),
            panel="c",
        ),
    ]


def figure(result: Result) -> Figure:
    from matplotlib.ticker import FixedLocator, NullLocator

    data = result.data
    sheet, at = panels("ab;cd")
    some = np.flatnonzero(data.through_zero)[:2]
    some = [*some, *np.flatnonzero(data.through_zero == 0)[: 6 - len(some)]]
    names = [[*KINDS][kind] for kind in data.through_zero.values]
    for pair in some:
        one = data.sel(curve="distance").isel(pair=pair)
        trained(at["a"], data.time, one.integral / one.final, colour=KINDS[names[pair]])
        predicted(at["a"], data.time, one.closed_form / one.final, colour=KINDS[names[pair]])
    solvers = dict(zip(SOLVERS, COLOURS[2:], strict=False))
    for solver, colour in solvers.items():
        trained(at["b"], data.zero_time, data.zero_solved.sel(solver=solver), colour=colour)
    predicted(at["b"], data.zero_time, data.zero_closed_form, colour=INK)
    marks = at["c"].plot(data.final_integral, data.final, "o", color=INK, ms=5, mfc="none", label="eq. 10 (c)")
    marks += at["c"].plot(data.final_integral, data.final_swapped, "x", color=COLOURS[4], ms=5, label="exchanged τ (c)")
    at["c"].axline((1, 1), (2, 2), color=INK, lw=1, ls=":")
    at["d"].scatter(data.kappa, _gaps(result), c=[KINDS[name] for name in names], s=18)
    for letter in "ab":
        at[letter].set_xlabel("time (√(τₕτᵧ/(XY)))")
    at["a"].set(title="The closed form equals integration", ylabel="H / final H")
    at["b"].set(title="Solvers fail where H tends to 0", ylabel="H", ylim=(-0.05, 1.6))
    at["c"].set(title="Final H is that of eq. 10", xlabel="final H by integration", ylabel="predicted final H")
    at["d"].set(
        title="Differences are rounding errors", xlabel="κ = τᵧ/τₕ", ylabel="largest relative gap", ylim=(1e-15, 1e-9)
    )
    for letter in "cd":
        at[letter].set(xscale="log", yscale="log")
    for axis in (at["c"].xaxis, at["c"].yaxis, at["d"].xaxis):
        axis.set(major_locator=FixedLocator(TICKS), minor_locator=NullLocator(), major_formatter="{x:g}")
    key(
        sheet,
        KINDS | {f"{name} (b)": colour for name, colour in solvers.items()},
        kinds=("integration", "closed form"),
        marks=marks,
    )
    return sheet
