"""Small weights and balanced ones end with representations of the task; large random weights keep their own.

Eight items in a tree are learned without error from every start, and yet the representations W₁ᵀW₁ of the items and
W₂W₂ᵀ of the features end differently. From small Gaussian weights they become those of the task, V S Vᵀ and U S Uᵀ
(rich). From large Gaussian weights they stay near what they were (lazy). Scale alone does not make a network lazy:
from balanced weights, W₂ᵀW₂ − W₁W₁ᵀ = λI, the end is exactly

    W₁ᵀW₁ = V (√(λ² + 4S²) − λ)/2 Vᵀ,      W₂W₂ᵀ = U (√(λ² + 4S²) + λ)/2 Uᵀ

whatever the scale. λ = 0 is rich even from large weights. Large |λ| leaves one layer as a multiple of the identity,
up to (S/λ)²: it says nothing about the task, and the other layer all of it. Large Gaussian weights are not balanced,
so that no exact theory covers them; how far they are from it is measured.

Agreement of two representations is the cosine between their parts beside the identity: 1 for the same structure, 0
on average for unrelated ones. The published score keeps the identity and so does not see laziness: the identity
itself scores tr S/(√8 ‖S‖) = 0.95 on this task. Balanced draws whose determinant has the wrong sign are left out: at
λ = 0 they never learn all modes.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from .. import _riccati, inits, nets, rules, tasks
from .._noun import positive, whole
from .._plot import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._precision import in_double
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from .._solve import solve

REFERENCE = {
    "braun2022": "figure 3",
    "domine2025": "limits of large λ, semantic learning",
    "saxe_slides": "slides on lazy and rich regimes",
}
QUICK = dict(seeds=4, lr=0.05, points=24)
SIDES = ("input", "output")
OBSERVED = ("kernel_distance", "input_representation", "output_representation", "loss", "balance_residual")
PREDICTED = OBSERVED[:3]
LATE = 400.0  # a time at which the flow has ended to rounding, for every λ


def run(
    *,
    hidden=14,
    scales=(1e-4, 0.1, 0.25, 0.42, 0.6, 1.0),
    large=0.42,
    zero_balanced=0.44,
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
                np.stack([_representations(run) for run in runs]),
            ),
            "kernel_distance": (("start", "seed", "time"), np.stack([run["kernel_distance"] for run in runs])),
            "loss": (("start", "seed", "time"), np.stack([run["loss"] for run in runs])),
            "imbalance": (("start", "seed"), np.stack([_imbalance(run) for run in runs])),
            "predicted_representation": (("time", "side", *square), _representations(theory)),
            "predicted_kernel_distance": ("time", theory["kernel_distance"]),
            "scale_representation": (
                ("scale", "seed", "moment", "side", *square),
                np.stack([_representations(run)[:, [0, -1]] for run in sweep]),
            ),
            "late_representation": (("lam", "seed", "side", *square), _late(task, lams, balanced_scale, seed, seeds)),
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


def _right_signed(setup, first, count) -> list[int]:
    """The next seeds whose map has a determinant of the sign of the target's."""
    wanted = np.linalg.slogdet(setup.task.target())[0]

    def fits(seed):
        lower, upper = setup.weights(seed)
        return np.linalg.slogdet(upper @ lower)[0] == wanted

    return list(itertools.islice(filter(fits, itertools.count(first)), count))


def _representations(trajectory):
    """(…, side, row, column)."""
    return np.stack([trajectory[f"{side}_representation"] for side in SIDES], axis=-3)


def _imbalance(run):
    """The rest of W₂ᵀW₂ − W₁W₁ᵀ beside λI at the start, relative to the layers as in BalancedRiccati; (seed,)."""
    sizes = np.linalg.norm(_representations(run)[:, 0], 2, axis=(-2, -1)).sum(axis=-1)
    return run["balance_residual"][:, 0, 0] / sizes


def _orders(setup, draws, theory, coarse):
    """Orders in lr at which the representations of descent tend to the theory."""
    rates = [setup.rule.lr / 2, setup.rule.lr / 4]
    runs = [coarse, *(simulate(setup.replace(rule=rules.GradientDescent(lr)), draws, OBSERVED) for lr in rates)]
    errors = np.array([np.abs(_representations(run)[0] - _representations(theory)).max() for run in runs])
    return np.log2(errors[:-1] / errors[1:])


def _late(task, lams, scale, seed, seeds):
    """Representations of square λ-balanced nets at a late time, in one call; (lam, seed, side, row, column).

    A draw whose determinant has the wrong sign gets the opposite sign in one input, which leaves it balanced.
    """
    kappa = np.trace(task.cov_x) / task.d_in
    target, net = task.target(), nets.DeepLinear(task.d_in)

    def one(lam, number):
        lower, upper = inits.Balanced(lam, scale).draw(jax.random.key(number), net, task)
        sign = jnp.linalg.slogdet(upper @ lower)[0] * jnp.linalg.slogdet(jnp.asarray(target))[0]
        flow = _riccati.flow(target, (lower.at[:, 0].multiply(sign), upper), lam)
        lower, upper = _riccati.weights(flow, _riccati.states(flow, jnp.array([kappa * LATE]))[0])
        return jnp.stack([lower.T @ lower, upper @ upper.T])

    family = jax.jit(jax.vmap(jax.vmap(one, (None, 0)), (0, None)))
    return in_double(family)(np.array(lams), np.arange(seed, seed + seeds))


def _agreement(one, other):
    """Cosine between the parts of symmetric matrices that are no multiple of the identity; leading axes are kept."""
    one, other = (
        m - np.trace(m, axis1=-2, axis2=-1)[..., None, None] * np.eye(m.shape[-1]) / m.shape[-1] for m in (one, other)
    )
    sizes = np.linalg.norm(one, axis=(-2, -1)) * np.linalg.norm(other, axis=(-2, -1))
    return np.sum(one * other, axis=(-2, -1)) / sizes


def _limits(data, lam):
    """The closed form of the end, (side, row, column)."""
    root = np.hypot(lam, 2 * data.target.values)
    sides = zip(data.task_vector.values, (-1, 1), strict=True)
    return np.stack([(vectors * (root + sign * lam) / 2) @ vectors.T for vectors, sign in sides])


def _spread(representation):
    """Standard deviation of the eigenvalues over their mean: 0 for a multiple of the identity."""
    values = np.linalg.eigvalsh(representation)
    return values.std(axis=-1) / values.mean(axis=-1)


def claims(result: Result) -> list[Claim]:
    data = result.data
    task, targets = _limits(data, 0.0), data.target.values
    small, large, zero = (data.representation.isel(start=k).values for k in range(3))
    lazier = (_agreement(large[:, -1], large[:, 0]) - _agreement(large[:, -1], task)).mean(axis=0)
    late = data.late_representation.sortby("lam")
    ends = np.stack([_limits(data, lam) for lam in late.lam.values])[:, None]
    spread = _spread(late.isel(side=1).values).mean(axis=1)
    order = np.log(spread[-2] / spread[-1]) / np.log(late.lam.values[-1] / late.lam.values[-2])
    right = data.task_vector.values[0]
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
            f"Lazy: Gaussian weights of sd {data.attrs['large']:g} end nearer to their start than to the task: "
            "agreement with the start minus that with the task, mean over draws, lower side",
            lazier.min(),
            0.1,
            source="paper",
        ),
        Claim.at_least(
            "The tangent kernel moves more from small Gaussian weights than from large: ratio of distances",
            moved[0] / moved[1],
            2.0,
            source="paper",
        ),
        Claim.at_most(
            "Large zero-balanced weights end rich: largest gap of training from V S Vᵀ and U S Uᵀ / largest S",
            np.abs(zero[:, -1] - task).max() / targets.max(),
            0.01,
            source="paper",
        ),
        Claim.at_most(
            "Balanced weights end at the closed form for every λ, whatever the draw: largest relative gap",
            (np.abs(late.values - ends) / np.abs(ends).max(axis=(-2, -1), keepdims=True)).max(),
            1e-10,
        ),
        Claim.between(
            "Descent tends to the theory as lr → 0, large zero-balanced: order", float(data.order_in_lr[-1]), 0.9, 1.1
        ),
        Claim.between(
            "Large λ makes W₂W₂ᵀ a multiple of the identity: spread of its eigenvalues ~ λ^−p, p between the largest λ",
            order,
            1.8,
            2.0,
            source="paper",
        ),
        Claim.at_least(
            "… while W₁ᵀW₁ is the task's, V S² Vᵀ: lowest agreement with it at the largest λ",
            _agreement(late.isel(lam=-1, side=0).values, (right * targets**2) @ right.T).min(),
            0.99,
            source="paper",
        ),
        Claim.at_least(
            "Large Gaussian weights are not balanced, the exact theory refuses them: smallest residual (1e-6 allowed)",
            float(data.imbalance.isel(start=1).min()),
            0.1,
        ),
    ]


def figure(result: Result):
    data = result.data
    sheet, axes = new_figure(2, 4, width=3.3, height=3.0)
    ends = {start: data.representation.sel(start=start).isel(seed=0, time=-1) for start in data.start.values}
    ends[f"λ = {float(data.lam[0]):g}"] = data.late_representation.isel(lam=0, seed=0)
    for panel, (title, end) in zip(axes[0], ends.items(), strict=True):
        _draw_similarity(panel, data, end.sel(side="input"), title)
    agreement, kernel, scales, lams = axes[1]
    _draw_learning(agreement, kernel, data)
    _draw_scales(scales, data)
    _draw_lams(lams, data)
    return sheet


def _draw_similarity(panel, data, matrix, title) -> None:
    reach = float(np.abs(matrix).max())
    panel.imshow(matrix, cmap="PuOr", vmin=-reach, vmax=reach)
    panel.set_xticks([])
    panel.set_yticks(range(data.sizes["item"]), list(data.item.values), fontsize=7)
    panel.set_title(f"W₁ᵀW₁ at the end:\n{title}", fontsize=9.5)


def _draw_learning(agreement, kernel, data) -> None:
    task = _limits(data, 0.0)
    for number, start in enumerate(data.start.values):
        colour, seen = COLOURS[number], data.sel(start=start)
        trained(agreement, data.time, _agreement(seen.representation.values, task).mean(axis=-1), colour=colour)
        trained(kernel, data.time, seen.kernel_distance, colour=colour)
        kernel.plot([], [], color=colour, lw=3, label=start)
    colour = COLOURS[data.sizes["start"] - 1]
    predicted(agreement, data.time, _agreement(data.predicted_representation, task).mean(axis=-1), colour=colour)
    predicted(kernel, data.time, data.predicted_kernel_distance, colour=colour)
    for panel in (agreement, kernel):
        panel.set_xscale("symlog", linthresh=1.0)
        panel.set(xlabel=TIME, xlim=(0, float(data.time[-1])))
    agreement.set(ylabel="agreement with the task", title="structure, mean of both sides")
    legend_of_kinds(agreement, loc="lower right")
    kernel.set(ylabel="kernel distance", title="movement of the kernel")
    kernel.legend(loc="upper left", fontsize=8)


def _draw_scales(panel, data) -> None:
    first, last = data.scale_representation.values[:, :, 0], data.scale_representation.values[:, :, 1]
    others = {"with the task": _limits(data, 0.0), "with the start": first}
    for number, (label, other) in enumerate(others.items()):
        mean = _agreement(last, other).mean(axis=(1, 2))
        panel.plot(data.scale, mean, "o-", color=COLOURS[number], ms=4, label=label)
    panel.set(xscale="log", xlabel="sd of Gaussian weights", ylabel="agreement at the end", title="from rich to lazy")
    panel.legend(loc="center left")


def _draw_lams(panel, data) -> None:
    fine = np.linspace(float(data.lam.min()), float(data.lam.max()), 201)
    limits = np.stack([_limits(data, lam) for lam in fine])
    for number, label in enumerate(("W₁ᵀW₁", "W₂W₂ᵀ")):
        late = _spread(data.late_representation.isel(side=number).values).mean(axis=1)
        panel.plot(data.lam, late, "o", color=COLOURS[number], ms=5, label=label)
        predicted(panel, fine, _spread(limits[:, number]), colour=COLOURS[number])
    panel.set(xlabel="balance λ", ylabel="sd of eigenvalues / mean", title="λ shares the task out (8-8-8)")
    panel.legend(loc="center left")
