"""The equations of the two-point theory, said to have no analytic solution, are solved by elementary functions.

Two points of a network have the squared distances H in a layer, P in the output, X of the inputs and Y of the targets,
and w = P − dy·Δy*. The source says that the three equations for H, P and w have no analytic solution, and its figures
integrate them. They are those of a linear network with one hidden unit, in other variables, and this network is solved.
Here the closed form is compared with integration in regular variables, for random pairs of points, time constants and
numbers of outputs. The printed equations divide by H, which reaches zero in finite time from starts whose outputs point
away from the target. There solvers err, and on the border between starts that pass through zero and starts that turn
before it they leave the solution.

Two-layer linear networks on x and −x obey the theory with nothing to fit: τ = 2/η in steps of gradient descent with
rate η. The source forgets the average over two points in its gradient, and has τ = 1/η. The theory neglects that the
difference of the hidden activities rotates. With one output the rotating network is solved, too, and tells what this
neglect costs: little of the final distance where weights are small, although they rotate far, and a seventh of it at
weights of order 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._figures.style import new_figure
from .._foundation.checks import positive, real_array, whole
from .._foundation.errors import BadInput
from ._kit.two_point_checks import (
    CURVES,
    SOLVERS,
    STEPS,
    border_of_zero,
    linear_networks,
    random_pairs,
    rotating_networks,
)
from ._kit.two_point_panels import draw_ends, draw_networks, draw_pairs, draw_rates, draw_rotation, draw_zero
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure


THEME, PLACE = "pairs", 1
REFERENCE = {"vanrossem2024": "appendix A, eqs. 7, 10, 17 and 24"}
QUICK = dict(pairs=18, draws=60, networks=4, records=16, points=50, width=30)


def run(
    *,
    pairs: int = 60,
    outputs: Sequence[int] = (1, 2, 5),
    spread: float = 1.0,
    until: float = 15.0,
    records: int = 31,
    networks: int = 8,
    hidden: int = 8,
    gain: float = 0.1,
    lr: float = 0.04,
    training: float = 8.0,
    points: int = 100,
    scales: Sequence[float] = (0.01, 0.1, 0.3, 1.0, 2.0),
    width: int = 100,
    draws: int = 400,
    seed: int = 0,
) -> Result:
    """`pairs` of points are integrated, with numbers of outputs taken in turn from `outputs`, up to `until`.

    `networks` of `hidden` units are trained for a time `training`; `draws` networks of `width` units rotate, from every
    one of `scales`.
    """
    pairs, records, networks = (
        whole(pairs, "pairs", least=6),
        whole(records, "records", least=3),
        whole(networks, "networks"),
    )
    hidden, points, width, draws = (
        whole(value, name, least=2)
        for value, name in ((hidden, "hidden"), (points, "points"), (width, "width"), (draws, "draws"))
    )
    spread, until, gain, lr = (
        positive(v, n) for v, n in ((spread, "spread"), (until, "until"), (gain, "gain"), (lr, "lr"))
    )
    training, scale_of = positive(training, "training"), real_array(scales, "scales", ndim=1)
    outputs = tuple(whole(count, "outputs") for count in outputs)
    if not outputs or min(scale_of, default=0) <= 0:
        raise BadInput(f"outputs = {outputs}, scales = {scale_of}", "some of each, scales > 0", "give outputs=(1, 2)")
    import xarray

    rng = np.random.default_rng(seed)
    parts = {**random_pairs(rng, pairs, outputs, spread, np.linspace(0, until, records)), **border_of_zero(points)}
    in_training, setups, theories = linear_networks(rng, networks, hidden, gain, lr, training, points)
    parts |= {**in_training, **rotating_networks(rng, scale_of, width, draws)}
    data = xarray.Dataset(
        parts,
        coords={
            "curve": list(CURVES),
            "time": np.linspace(0, until, records),
            "solver": list(SOLVERS),
            "rate": lr / 2.0 ** np.arange(STEPS),
            "kind": ["one direction", "any direction"],
            "scale": scale_of,
        },
    )
    return Result(data, setups, theories)


def claims(result: Result) -> list[Claim]:
    data = result.data
    size = np.abs(data.integral).max("time")
    gap = float((np.abs(data.closed_form - data.integral).max("time") / size).max())
    order = np.log2(data.gap.values[:, -2] / data.gap.values[:, -1])
    swapped = np.abs(data.final_swapped / data.final_integral - 1)
    late = data.zero_time > data.zero_time[-1] / 2
    left = np.abs(data.zero_solved.sel(solver="Radau") - data.zero_closed_form)[late]
    return [
        paper(
            "The three equations have no analytic solution (A.3): largest gap of the elementary one / curve",
            at_least(gap, 1e-9),
            fails="they are a linear network with one hidden unit, whose integral is elementary",
        ),
        ours(
            "Radau on the printed equations leaves the border, where H → 0 in closed form: largest late gap",
            at_least(float(left.max()), 0.1),
        ),
        ours(
            "Networks tend to the theory with τ = 2/η, nothing fitted: order in the learning rate, farthest from 1",
            between(float(order.ravel()[np.argmax(np.abs(order - 1))]), 0.9, 1.1),
        ),
        paper(
            "Networks obey it with τ = 1/η (eq. 17 as printed): least gap / curve",
            at_most(float(data.gap_as_printed.min()), 0.05),
            fails="the gradient of the average over two points is half of the printed one, so that τ = 2/η",
        ),
        paper(
            "H − κXP/H is conserved (eq. 24): largest drift / size", at_most(float(data.conserved_drift.max()), 1e-9)
        ),
        paper(
            "The final distance is that of eq. 10: largest relative gap",
            at_most(float(np.abs(data.final / data.final_integral - 1).max()), 1e-6),
        ),
        ours("… and not that with τ_h and τ_y exchanged: median relative gap", at_least(float(swapped.median()), 0.1)),
        ours(
            "With one output a rotating network is solved, too: largest relative gap of H to its integral",
            at_most(float(data.turned_gap.max()), 1e-7),
        ),
        ours(
            "… and tells what neglect of rotation costs: largest median gap of the final distance over scales",
            between(float(data.unturned_final.median("draw").max()), 0.1, 0.2),
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, ((pairs, zero, networks), (rates, ends, turning)) = new_figure(2, 3, width=4.6, height=3.5)
    draw_pairs(pairs, data)
    draw_zero(zero, data)
    draw_networks(networks, data)
    draw_rates(rates, data)
    draw_ends(ends, data)
    draw_rotation(turning, data)
    return sheet
