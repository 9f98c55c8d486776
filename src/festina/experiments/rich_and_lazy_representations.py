"""Small weights and balanced ones end with representations of the task; large random weights keep their own.

Eight items in a tree are learned without error from every start, and yet the representations W₁ᵀW₁ of the items and
W₂W₂ᵀ of the features end differently. From small Gaussian weights they become those of the task, V S Vᵀ and U S Uᵀ
(rich). From large Gaussian weights they stay near what they were (lazy). Scale alone does not make a network lazy:
from balanced weights, W₂ᵀW₂ − W₁W₁ᵀ = λI, the end is exactly

    W₁ᵀW₁ = V (√(λ² + 4S²) − λ)/2 Vᵀ,      W₂W₂ᵀ = U (√(λ² + 4S²) + λ)/2 Uᵀ

whatever the scale. λ = 0 is rich even from large weights. Large |λ| leaves one layer as a multiple of the identity,
up to (S/λ)²: it says nothing about the task, and the other layer all of it. Large Gaussian weights are not balanced,
so that no exact theory covers them; the size of what is missing is measured. How large is large depends on the
width: at the published σ = 0.42 a net 8-14-8 is lazy, and a net 8-8-8 is half way.

Agreement of two representations is the cosine between their parts beside the identity: 1 for the same structure, 0
on average for unrelated ones. The published score keeps the identity, and then the identity itself scores 0.95 on
this task. Balanced draws whose determinant has the wrong sign are left out: at λ = 0 they never learn all modes.
"""

from __future__ import annotations

import jax
import numpy as np

from .. import _riccati, inits, nets, rules, tasks
from .._noun import positive, whole
from .._plot import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._precision import in_double
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from .._solve import covering, solve

REFERENCE = {
    "braun2022": "figure 3",
    "domine2025": "figures on semantic learning and theorem on the limits of λ",
    "saxe_slides": "“Rich and lazy learning”",
}
QUICK = dict(seeds=4, lr=0.05, points=24)
SIDES = ("input", "output")
LATE = 400.0  # a time at which the flow has ended to rounding, for every λ


def run(
    *,
    hidden=14,
    small=1e-4,
    large=0.42,
    zero_balanced=0.44,
    scales=(1e-4, 0.1, 0.25, 0.42, 0.6, 1.0),
    lams=(-20.0, -10.0, -5.0, -2.0, 0.0, 2.0, 5.0, 10.0, 20.0),
    balanced_scale=0.5,
    until=120.0,
    lr=0.02,
    points=60,
    seeds=12,
    seed=0,
) -> Result:
    hidden, points, seeds = whole(hidden, "hidden", least=8), whole(points, "points", least=2), whole(seeds, "seeds")
    lr, until = positive(lr, "lr"), positive(until, "until")
    task = tasks.contrasts()
    times = np.concatenate([[0.0], np.unique(np.round(np.geomspace(4 * lr, until, points) / lr)) * lr])

    def setup(width, init):
        return Setup(task, nets.DeepLinear(width), init, rules.GradientDescent(lr), times=times)

    lam = max(lams)
    setups = {
        "small Gaussian": setup(hidden, inits.SmallRandom(small)),
        "large Gaussian": setup(hidden, inits.SmallRandom(large)),
        "large, λ = 0": setup(hidden, inits.ZeroBalanced(zero_balanced)),
        f"λ = {lam:g}": setup(8, inits.Balanced(lam, balanced_scale)),
    }
    wide = _right_signed(setups["large, λ = 0"], seed, seeds)
    square = _right_signed(setups[f"λ = {lam:g}"], seed, seeds)
    runs = [simulate(s, draws, OBSERVED) for s, draws in zip(setups.values(), (wide, wide, wide, square), strict=True)]
    balanced = dict(zip(list(setups)[2:], (wide, square), strict=True))
    theories = {
        label: solve(setups[label], "BalancedRiccati", observe=PREDICTED, seed=draws[0])
        for label, draws in balanced.items()
    }
    sweep = [simulate(setup(hidden, inits.SmallRandom(s)), wide, OBSERVED) for s in scales]
    narrow = simulate(setup(8, inits.SmallRandom(large)), square, OBSERVED)
    measured = [_imbalance(setups["large Gaussian"], s) for s in wide]
    import xarray

    modes, starts = task.modes(), list(setups)
    data = xarray.Dataset(
        {
            "representation": (
                ("start", "seed", "time", "side", "row", "column"),
                np.stack([_representations(r) for r in runs]),
            ),
            "kernel_distance": (("start", "seed", "time"), np.stack([r["kernel_distance"] for r in runs])),
            "loss": (("start", "seed", "time"), np.stack([r["loss"] for r in runs])),
            "predicted_representation": (
                ("balanced", "time", "side", "row", "column"),
                np.stack([_representations(t) for t in theories.values()]),
            ),
            "predicted_kernel_distance": (
                ("balanced", "time"),
                np.stack([t["kernel_distance"] for t in theories.values()]),
            ),
            "scale_representation": (
                ("scale", "seed", "moment", "side", "row", "column"),
                np.stack([_representations(r)[:, [0, -1]] for r in sweep]),
            ),
            "narrow_representation": (
                ("seed", "moment", "side", "row", "column"),
                _representations(narrow)[:, [0, -1]],
            ),
            "late_representation": (
                ("lam", "seed", "side", "row", "column"),
                _late(
                    task, [[setup(8, inits.Balanced(b, balanced_scale)).weights(s) for s in square] for b in lams], lams
                ),
            ),
            "task_representation": (
                ("side", "row", "column"),
                np.stack([(v * modes.targets()) @ v.T for v in (modes.right, modes.left)]),
            ),
            "task_vector": (("side", "row", "mode"), np.stack([modes.right, modes.left])),
            "target": ("mode", modes.targets()),
            "imbalance": ("seed", measured),
            "order_in_lr": ("halving", _orders(setups["large, λ = 0"], wide[0], lr)),
        },
        coords={
            "start": starts,
            "balanced": list(balanced),
            "time": times,
            "side": list(SIDES),
            "scale": list(scales),
            "lam": list(lams),
            "item": list(task.items or ()),
            "draw": wide,
        },
        attrs={"large": large, "hidden": hidden},
    )
    return Result(data, setups, theories)


OBSERVED = ("loss", "kernel_distance", "input_representation", "output_representation")
PREDICTED = OBSERVED[1:]


def _right_signed(setup, first, count) -> list[int]:
    """The next seeds whose map has a determinant of the sign of the target's."""
    found, seed = [], first
    wanted = np.linalg.slogdet(setup.task.target())[0]
    while len(found) < count:
        lower, upper = setup.weights(seed)
        if np.linalg.slogdet(np.asarray(upper @ lower))[0] == wanted:
            found.append(seed)
        seed += 1
    return found


def _representations(trajectory):
    """(…, side, row, column)."""
    return np.stack([trajectory[f"{side}_representation"] for side in SIDES], axis=-3)


def _imbalance(setup, seed) -> float:
    """What keeps BalancedRiccati from a start: the rest of W₂ᵀW₂ − W₁W₁ᵀ beside λI, relative to the layers."""
    return next(a.measured for a in covering(setup, seed=seed)["BalancedRiccati"].assumptions if a.name == "balanced")


def _orders(setup, seed, lr):
    """Orders in lr at which the representations of descent tend to the theory."""

    def error(rate):
        changed = setup.replace(rule=rules.GradientDescent(rate))
        theory = solve(changed, "BalancedRiccati", observe=PREDICTED, seed=seed)
        return np.abs(_representations(simulate(changed, [seed], PREDICTED))[0] - _representations(theory)).max()

    errors = np.array([error(rate) for rate in (lr, lr / 2, lr / 4)])
    return np.log2(errors[:-1] / errors[1:])


def _late(task, starts, lams):
    """Representations at a late time, all λ and seeds in one call; (lam, seed, side, row, column)."""
    kappa = np.trace(task.cov_x) / task.d_in
    first, last = (np.stack([[weights[layer] for weights in row] for row in starts]) for layer in (0, 1))
    at = np.array([kappa * LATE])

    def one(first, last, lam):
        flow = _riccati.flow(task.cov_yx / kappa, (first, last), lam)
        lower, upper = _riccati.weights(flow, _riccati.states(flow, at)[0])
        return jax.numpy.stack([lower.T @ lower, upper @ upper.T])

    return in_double(jax.jit(jax.vmap(jax.vmap(one, (0, 0, None)))))(first, last, np.array(lams))


def _agreement(one, other):
    """Cosine between the parts of symmetric matrices that are no multiple of the identity; leading axes are kept."""
    one, other = (
        m - np.trace(m, axis1=-2, axis2=-1)[..., None, None] * np.eye(m.shape[-1]) / m.shape[-1] for m in (one, other)
    )
    return (
        np.sum(one * other, axis=(-2, -1)) / np.linalg.norm(one, axis=(-2, -1)) / np.linalg.norm(other, axis=(-2, -1))
    )


def _limits(data, lam):
    """The closed form of the end, (side, row, column)."""
    root = np.hypot(lam, 2 * data.target.values)
    return np.stack(
        [(v * (root + sign * lam) / 2) @ v.T for v, sign in zip(data.task_vector.values, (-1, 1), strict=True)]
    )


def _spread(representation):
    """Standard deviation of the eigenvalues over their mean: 0 for a multiple of the identity."""
    values = np.linalg.eigvalsh(representation)
    return values.std(axis=-1) / values.mean(axis=-1)


def claims(result: Result) -> list[Claim]:
    data = result.data
    task = data.task_representation.values
    small, large, zero = (data.representation.isel(start=k).values for k in range(3))
    to_start = _agreement(large[:, -1], large[:, 0]).mean(axis=0)
    to_task = _agreement(large[:, -1], task).mean(axis=0)
    narrow = data.narrow_representation.values
    narrow_gap = (_agreement(narrow[:, 1], narrow[:, 0]) - _agreement(narrow[:, 1], task)).mean(axis=0)
    late, lams = data.late_representation.values, data.lam.values
    ends = [
        np.abs(late[k] - _limits(data, lam)).max() / np.linalg.norm(_limits(data, lam), 2, (1, 2)).max()
        for k, lam in enumerate(lams)
    ]
    spread = _spread(late).mean(axis=1)
    top, next_ = np.argsort(lams)[-1], np.argsort(lams)[-2]
    order = np.log(spread[next_, 1] / spread[top, 1]) / np.log(lams[top] / lams[next_])
    identity = np.sum(data.target.values) / np.sqrt(8) / np.linalg.norm(data.target.values)
    moved = data.kernel_distance.isel(time=-1).mean("seed").values
    return [
        Claim.at_most("Every start learns the task: largest final loss", float(data.loss.isel(time=-1).max()), 1e-6),
        Claim.at_least(
            "Rich: small Gaussian weights end with the task's representations, lowest agreement",
            _agreement(small[:, -1], task).min(),
            0.99,
            source="paper",
        ),
        Claim.at_least(
            f"Lazy: Gaussian weights of sd {data.attrs['large']:g} end nearer to their start than to the task, "
            "agreement with the start minus that with the task, lower side",
            (to_start - to_task).min(),
            0.2,
            source="paper",
        ),
        Claim.at_most("… but not with 8 hidden units: the same difference, higher side", narrow_gap.max(), 0.0),
        Claim.at_most(
            "Large zero-balanced weights end rich: largest gap of training from V S Vᵀ and U S Uᵀ / largest S",
            np.abs(zero[:, -1] - task).max() / float(data.target.max()),
            0.01,
            source="paper",
        ),
        Claim.at_most(
            "Balanced weights end at the closed form for every λ, whatever the draw: largest relative gap",
            max(ends),
            1e-10,
        ),
        Claim.between(
            "Descent tends to the theory as lr → 0, large zero-balanced: order", float(data.order_in_lr[-1]), 0.9, 1.1
        ),
        Claim.between(
            "Large λ makes W₂W₂ᵀ a multiple of the identity: the spread of its eigenvalues falls as λ to the power −",
            order,
            1.8,
            2.0,
            source="paper",
        ),
        Claim.at_least(
            "… while W₁ᵀW₁ is the task's, V S² Vᵀ: lowest agreement with it at the largest λ",
            _agreement(
                late[top, :, 0], (data.task_vector.values[0] * data.target.values**2) @ data.task_vector.values[0].T
            ).min(),
            0.99,
            source="paper",
        ),
        Claim.at_least(
            "The tangent kernel moves more from small Gaussian weights than from large: ratio of distances",
            moved[0] / moved[1],
            2.0,
            source="paper",
        ),
        Claim.at_least(
            "Large Gaussian weights are not balanced, the exact theory refuses them: smallest residual (1e-6 allowed)",
            float(data.imbalance.min()),
            0.1,
        ),
        Claim.at_least("The published score of alignment does not see laziness: score of the identity", identity, 0.9),
    ]


def figure(result: Result):
    data = result.data
    sheet, axes = new_figure(2, 4, width=3.2, height=2.9)
    for panel, start in zip(axes[0], data.start.values, strict=True):
        _draw_similarity(panel, data, data.representation.sel(start=start, side="input").isel(seed=0, time=-1), start)
    agreement, kernel, sigma, spread = axes[1]
    task = data.task_representation.values
    for number, start in enumerate(data.start.values):
        colour, seen = COLOURS[number], data.sel(start=start)
        trained(agreement, data.time, _agreement(seen.representation.values, task).mean(axis=-1), colour=colour)
        trained(kernel, data.time, seen.kernel_distance, colour=colour)
        kernel.plot([], [], color=colour, lw=3, label=start)
        if start in data.balanced.values:
            theory = data.sel(balanced=start)
            predicted(
                agreement,
                data.time,
                _agreement(theory.predicted_representation.values, task).mean(axis=-1),
                colour=colour,
            )
            predicted(kernel, data.time, theory.predicted_kernel_distance, colour=colour)
    for panel in (agreement, kernel):
        panel.set(xlabel=TIME, xscale="symlog")
        panel.set_xscale("symlog", linthresh=1.0)
        panel.set_xlim(0, float(data.time[-1]))
    agreement.set(ylabel="agreement with the task", title="both sides, mean")
    legend_of_kinds(agreement, loc="lower right")
    kernel.set(ylabel="kernel distance", title="the tangent kernel moves")
    kernel.legend(loc="upper left", fontsize=7.5)
    first, last = data.scale_representation.values[:, :, 0], data.scale_representation.values[:, :, 1]
    for number, (other, label) in enumerate(((task, "with the task"), (first, "with the start"))):
        sigma.plot(
            data.scale, _agreement(last, other).mean(axis=(1, 2)), "o-", color=COLOURS[number], ms=4, label=label
        )
    sigma.set(
        xscale="log",
        xlabel="sd of Gaussian weights",
        ylabel="agreement at the end",
        title=f"scale, 8-{data.attrs['hidden']}-8",
    )
    sigma.legend(loc="center left")
    for number, (side, label) in enumerate(zip(SIDES, ("W₁ᵀW₁", "W₂W₂ᵀ"), strict=True)):
        colour = COLOURS[number]
        spread.plot(
            data.lam,
            _spread(data.late_representation.sel(side=side).values).mean(axis=1),
            "o",
            color=colour,
            ms=5,
            label=label,
        )
        fine = np.linspace(float(data.lam.min()), float(data.lam.max()), 200)
        limits = np.stack([_limits(data, lam)[number] for lam in fine])
        predicted(spread, fine, _spread(limits), colour=colour)
    spread.set(xlabel="balance λ", ylabel="spread of eigenvalues / mean", title="λ shares the task out, 8-8-8")
    spread.legend(loc="upper center")
    return sheet


def _draw_similarity(panel, data, matrix, title) -> None:
    reach = float(np.abs(matrix).max())
    panel.imshow(matrix, cmap="PuOr", vmin=-reach, vmax=reach)
    panel.set_xticks([])
    panel.set_yticks(range(data.sizes["item"]), list(data.item.values), fontsize=7)
    panel.set_title(f"W₁ᵀW₁ at the end: {title}", fontsize=9)
