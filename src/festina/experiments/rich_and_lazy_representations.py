"""Networks from small or balanced weights end with the representations of the task; those from large random weights
keep their own.

A network learns eight items in a tree without error from every start, and yet the representations W₁ᵀW₁ of the items
and W₂W₂ᵀ of the features end differently. From small Gaussian weights they become those of the task, V S Vᵀ and U S Uᵀ
(rich learning). From large Gaussian weights they stay near their initial values (lazy learning). Scale alone does not
make a network lazy. From balanced weights, W₂ᵀW₂ − W₁W₁ᵀ = λI, the representations end exactly at

    W₁ᵀW₁ = V (√(λ² + 4S²) − λ)/2 Vᵀ,      W₂W₂ᵀ = U (√(λ² + 4S²) + λ)/2 Uᵀ

whatever the scale. λ = 0 is rich even from large weights. A large |λ| leaves one representation as a multiple of the
identity, up to (S/λ)²; this one says nothing about the task, and the other says everything. Large Gaussian weights are
not balanced, so no exact theory covers them; their imbalance is measured.

The agreement of two representations is the cosine between them after multiples of the identity are taken away: 1 for
the same structure, 0 on average for unrelated ones. The published score keeps the identity and so does not see
laziness: the identity itself scores tr S/(√8 ‖S‖) = 0.95 on this task. Balanced draws whose map has a determinant of
the wrong sign are left out: at λ = 0 they never learn all modes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from .. import Setup, Trajectory, inits, nets, rules, solve, tasks
from .._figures.style import new_figure
from .._formulas.curves import order
from .._foundation.checks import positive, whole
from ._kit.representations import (
    SIDES,
    agreement_of,
    draw_lams,
    draw_learning,
    draw_scales,
    draw_similarity,
    late_representations,
    limits_of,
    representations_of,
    spread_of,
)
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure


THEME, PLACE = "regimes", 1
REFERENCE = {
    "braun2022": "figure 3",
    "domine2025": "limits of large λ, semantic learning",
    "saxe_slides": "slides on lazy and rich regimes",
}
QUICK = dict(seeds=4, lr=0.05, points=24)
OBSERVED = ("kernel_distance", "input_representation", "output_representation", "loss", "balance_residual")
PREDICTED = OBSERVED[:3]


def run(
    *,
    hidden: int = 14,
    scales: Sequence[float] = (1e-4, 0.1, 0.25, 0.42, 0.6, 1.0),
    large: float = 0.42,
    zero_balanced: float = 0.44,
    lams: Sequence[float] = (-20.0, -10.0, -5.0, -2.0, 0.0, 2.0, 5.0, 10.0, 20.0),
    balanced_scale: float = 0.5,
    until: float = 120.0,
    lr: float = 0.02,
    points: int = 60,
    seeds: int = 12,
    seed: int = 0,
) -> Result:
    """`scales` and `large`: standard deviations of Gaussian weights; `zero_balanced`, `balanced_scale`: of balanced
    ones.

    `lams` are the balances of square networks, whose representations are compared with the closed form of the end.
    """
    hidden, points, seeds = whole(hidden, "hidden", least=8), whole(points, "points", least=2), whole(seeds, "seeds")
    lr, until = positive(lr, "lr"), positive(until, "until")
    task = tasks.contrasts()
    modes = task.modes()
    times = np.concatenate([[0.0], np.unique(np.round(np.geomspace(4 * lr, until, points) / lr)) * lr])
    starts = {
        "small Gaussian": inits.SmallRandom(min(scales)),
        "large Gaussian": inits.SmallRandom(large),
        "large, λ = 0": inits.ZeroBalanced(zero_balanced),
    }
    setups = {
        label: Setup(task, nets.DeepLinear(hidden), init, rules.GradientDescent(lr), times=times)
        for label, init in starts.items()
    }
    balanced = setups["large, λ = 0"]
    draws = _right_signed(balanced, seed, seeds)
    runs = [simulate(setup, draws, OBSERVED) for setup in setups.values()]
    sweep = [simulate(balanced.replace(init=inits.SmallRandom(scale)), draws, OBSERVED) for scale in scales]
    theory = solve(balanced, "BalancedRiccati", observe=PREDICTED, seed=draws[0])
    import xarray

    square = ("row", "column")
    data = xarray.Dataset(
        {
            "representation": (
                ("start", "seed", "time", "side", *square),
                np.stack([representations_of(run) for run in runs]),
            ),
            "kernel_distance": (("start", "seed", "time"), np.stack([run["kernel_distance"] for run in runs])),
            "loss": (("start", "seed", "time"), np.stack([run["loss"] for run in runs])),
            "imbalance": (("start", "seed"), np.stack([_imbalance(run) for run in runs])),
            "predicted_representation": (("time", "side", *square), representations_of(theory)),
            "predicted_kernel_distance": ("time", theory["kernel_distance"]),
            "scale_representation": (
                ("scale", "seed", "moment", "side", *square),
                np.stack([representations_of(run)[:, [0, -1]] for run in sweep]),
            ),
            "late_representation": (
                ("lam", "seed", "side", *square),
                late_representations(task, lams, balanced_scale, seed, seeds),
            ),
            "task_vector": (("side", "row", "mode"), np.stack([modes.right, modes.left])),
            "target": ("mode", modes.targets()),
            "order_in_lr": ("halving", _orders(balanced, draws, theory, runs[2])),
        },
        coords={
            "start": list(starts),
            "time": times,
            "side": list(SIDES),
            "scale": list(scales),
            "lam": list(lams),
            "item": list(task.items or ()),
            "seed": draws,
        },
        attrs={"large": large, "hidden": hidden},
    )
    return Result(data, setups, {"large, λ = 0": theory})


def _right_signed(setup: Setup, first: int, count: int) -> list[int]:
    """The first seeds from `first` on whose map has a determinant of the sign of the target's."""
    wanted = np.linalg.slogdet(setup.task.target())[0]

    def fits(seed: int) -> bool:
        lower, upper = setup.weights(seed)
        return np.linalg.slogdet(upper @ lower)[0] == wanted

    return list(itertools.islice(filter(fits, itertools.count(first)), count))


def _imbalance(run: Trajectory) -> Float[np.ndarray, " seed"]:
    """The part of W₂ᵀW₂ − W₁W₁ᵀ that is not λI at the start, relative to the layers as in BalancedRiccati."""
    sizes = np.linalg.norm(representations_of(run)[:, 0], 2, axis=(-2, -1)).sum(axis=-1)
    return run["balance_residual"][:, 0, 0] / sizes


def _orders(setup: Setup, seeds: list[int], theory: Trajectory, coarse: Trajectory) -> Float[np.ndarray, " halving"]:
    """Orders in lr at which the representations of gradient descent tend to the theory."""
    rates = [setup.rule.lr / 2, setup.rule.lr / 4]
    runs = [coarse, *(simulate(setup.replace(rule=rules.GradientDescent(lr)), seeds, OBSERVED) for lr in rates)]
    errors = np.array([np.abs(representations_of(run)[0] - representations_of(theory)).max() for run in runs])
    return order(errors)


def claims(result: Result) -> list[Claim]:
    data = result.data
    task, targets = limits_of(data, 0.0), data.target.values
    small, large, zero = (data.representation.isel(start=k).values for k in range(3))
    lazier = (agreement_of(large[:, -1], large[:, 0]) - agreement_of(large[:, -1], task)).mean(axis=0)
    late = data.late_representation.sortby("lam")
    ends = np.stack([limits_of(data, lam) for lam in late.lam.values])[:, None]
    spread = spread_of(late.isel(side=1).values).mean(axis=1)
    power = np.log(spread[-2] / spread[-1]) / np.log(late.lam.values[-1] / late.lam.values[-2])
    right = data.task_vector.values[0]
    moved = data.kernel_distance.isel(time=-1).mean("seed").values
    return [
        ours(
            "The networks learn the task from every start: largest final loss",
            at_most(float(data.loss.isel(time=-1).max()), 1e-6),
        ),
        paper(
            "Rich: networks from small Gaussian weights end with the task's representations: lowest agreement",
            at_least(agreement_of(small[:, -1], task).min(), 0.99),
        ),
        paper(
            f"Lazy: representations from Gaussian weights of sd {data.attrs['large']:g} end nearer to their start than "
            "to the task: agreement with the start minus that with the task, mean over draws, lower of the two layers",
            at_least(lazier.min(), 0.1),
        ),
        paper(
            "The tangent kernel moves more from small Gaussian weights than from large ones: ratio of distances",
            at_least(moved[0] / moved[1], 2.0),
        ),
        paper(
            "Large weights with λ = 0 end rich: largest gap of training from V S Vᵀ and U S Uᵀ / largest S",
            at_most(np.abs(zero[:, -1] - task).max() / targets.max(), 0.01),
        ),
        ours(
            "Balanced weights end at the closed form for every λ and every draw: largest relative gap",
            at_most((np.abs(late.values - ends) / np.abs(ends).max(axis=(-2, -1), keepdims=True)).max(), 1e-10),
        ),
        ours(
            "Gradient descent tends to the theory as lr → 0, large weights with λ = 0: order of the gap in lr",
            between(float(data.order_in_lr[-1]), 0.9, 1.1),
        ),
        paper(
            "Large λ makes W₂W₂ᵀ a multiple of the identity: the spread of its eigenvalues falls as λ^(−p); "
            "p between the two largest λ",
            between(power, 1.8, 2.0),
        ),
        paper(
            "… while W₁ᵀW₁ becomes that of the task, V S² Vᵀ: lowest agreement at the largest λ",
            at_least(agreement_of(late.isel(lam=-1, side=0).values, (right * targets**2) @ right.T).min(), 0.99),
        ),
        ours(
            "Large Gaussian weights are not balanced, so the exact theory refuses them: "
            "smallest imbalance (1e-6 is allowed)",
            at_least(float(data.imbalance.isel(start=1).min()), 0.1),
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, axes = new_figure(2, 4, width=3.3, height=3.0)
    ends = {start: data.representation.sel(start=start).isel(seed=0, time=-1) for start in data.start.values}
    ends[f"λ = {float(data.lam[0]):g}".replace("-", "−")] = data.late_representation.isel(lam=0, seed=0)
    for panel, (title, end) in zip(axes[0], ends.items(), strict=True):
        draw_similarity(panel, data, end.sel(side="input"), title)
    agreement, kernel, scales, lams = axes[1]
    draw_learning(agreement, kernel, data)
    draw_scales(scales, data)
    draw_lams(lams, data)
    return sheet
