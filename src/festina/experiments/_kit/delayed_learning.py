"""Learning from a large balance λ: many draws by the exact solution, training, measures of delay, and panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ... import Setup, Task, Trajectory, inits, nets, rules, solve, tasks
from ..._figures.style import COLOURS, TIME
from ..._formulas import balanced_flow, tangent_kernel
from ..._formulas.curves import crossing, order
from ..._foundation.arrays import AnyArray, Number
from ..._foundation.precision import in_double
from ..._foundation.program_memory import compiled
from . import time_grids
from .training import simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

HIDDEN = 3


def diagonal_task(d_in: int, d_out: int) -> Task:
    """White inputs and a diagonal map whose singular values are equally spaced from 2 to 1."""
    target = np.zeros((d_out, d_in))
    np.fill_diagonal(target, np.linspace(2, 1, min(d_in, d_out)))
    return tasks.from_moments(target, np.eye(d_in), target @ target.T)


def family_of_draws(
    task: Task,
    lams: Float[np.ndarray, " lam"],
    numbers: Int[np.ndarray, " seed"],
    scale: float,
    times: Float[np.ndarray, " time"],
) -> tuple[Float[np.ndarray, "lam seed time"], Float[np.ndarray, "lam seed time"]]:
    """Loss and kernel distance of every λ and draw, in one call of the exact solution."""
    net, target, cov_x = nets.DeepLinear(HIDDEN), task.target(), task.cov_x

    def one(lam: Number, number: Number) -> tuple[Float[AnyArray, " time"], Float[AnyArray, " time"]]:
        start = inits.Balanced(lam, scale).draw(jax.random.key(number), net, task)
        flow = balanced_flow.flow(target, start, lam)
        lower, upper = balanced_flow.weights(flow, balanced_flow.states(flow, times))
        loss = 0.5 * jnp.sum((upper @ lower - target) ** 2, axis=(1, 2))
        first = tangent_kernel.tangent(start)

        def moved(*layers: AnyArray) -> Float[AnyArray, ""]:
            return tangent_kernel.distance(first, tangent_kernel.tangent(layers), cov_x)

        return loss, jax.vmap(moved)(lower, upper)

    return in_double(compiled(jax.vmap(jax.vmap(one, (None, 0)), (0, None))))(lams, numbers)


def trained_at_three(
    task: Task, size: float, scale: float, lr: float, record: int, seed: int
) -> tuple[dict[str, Any], dict[str, Setup], dict[str, Trajectory]]:
    """Gradient descent, the exact solution and the frozen kernel at λ = size (slow), −size (lazy) and 0."""
    times = time_grids.on_steps(np.concatenate([[0.0], np.geomspace(lr, 6 * size, record)]), lr)
    names = ("loss", "kernel_distance")
    setups = {
        label: Setup(task, nets.DeepLinear(HIDDEN), inits.Balanced(lam, scale), rules.GradientDescent(lr), times=times)
        for label, lam in (("slow sign", size), ("lazy sign", -size), ("λ = 0", 0.0))
    }
    exact = {label: solve(setup, "BalancedRiccati", observe=names, seed=seed) for label, setup in setups.items()}
    frozen = {
        f"{label}, frozen kernel": solve(setups[label], "FrozenKernel", observe="loss", seed=seed)
        for label in list(setups)[:2]
    }
    rates = (lr, lr / 2, lr / 4)
    slow = [simulate(setups["slow sign"].replace(rule=rules.GradientDescent(r)), [seed], names) for r in rates]
    others = [simulate(setups[label], [seed], names) for label in list(setups)[1:]]
    errors = np.array([np.abs(t["kernel_distance"][0] - exact["slow sign"]["kernel_distance"]).max() for t in slow])
    values: dict[str, Any] = {
        f"trained_{name}": (("regime", "moment"), np.stack([t[name][0] for t in (slow[0], *others)])) for name in names
    }
    values |= {f"exact_{name}": (("regime", "moment"), np.stack([t[name] for t in exact.values()])) for name in names}
    values["frozen_loss"] = (("frozen", "moment"), np.stack([t["loss"] for t in frozen.values()]))
    values["order_in_lr"] = ("halving", order(errors))
    values["mirror_gap"] = ("observable", mirror_gap(setups["slow sign"], exact["slow sign"], names, seed))
    values["moment_time"] = ("moment", times)
    return values, setups, exact | frozen


def mirror_gap(setup: Setup, trajectory: Trajectory, names: Sequence[str], seed: int) -> Float[np.ndarray, " name"]:
    """Largest differences between a network, whose trajectory is given, and its transpose."""
    lower, upper = setup.weights(seed)
    mirror = setup.replace(task=diagonal_task(setup.task.d_out, setup.task.d_in), init=inits.Given([upper.T, lower.T]))
    other = solve(mirror, "BalancedRiccati", observe=names)
    return np.array([np.abs(other[name] - trajectory[name]).max() for name in names])


def time_to_learn(data: Dataset, share: float) -> Float[np.ndarray, "lam seed"]:
    """The time at which the loss has fallen to a share of its initial value; log loss is interpolated linearly."""
    relative = np.log(data.loss / data.loss.isel(time=0)).values
    return crossing(data.time.values, -relative, -np.log(share))


def time_to_half_moved(data: Dataset) -> Float[np.ndarray, "lam seed"]:
    """When the kernel has moved half of its final distance."""
    relative = (data.kernel_distance / data.kernel_distance.isel(time=-1)).values
    return crossing(data.time.values, relative, 0.5)


def draw_collapse(panel: Axes, data: Dataset) -> None:
    """Mean kernel distance against time over λ."""
    for number, lam in enumerate(data.lam.values[data.lam.values > 0]):
        mean = data.kernel_distance.sel(lam=lam).mean("seed")
        panel.plot(data.time / lam, mean, color=COLOURS[number], lw=1.5, label=f"λ = {lam:g}")
    panel.set(xscale="log", xlim=(1e-3, 30), xlabel="time / λ (τ)", ylabel="kernel distance, mean over draws")
    panel.set_title("slow sign, 3-3-6: one curve in time / λ")
    panel.legend(loc="upper left")


def draw_delays(panel: Axes, data: Dataset) -> None:
    """Times to 1 % of the loss for both signs, and of half the kernel's movement, against |λ|."""
    lams = data.lam.values
    learned, moved = time_to_learn(data, 0.01), time_to_half_moved(data)
    lines = (
        (learned, lams > 0, "1 % of the loss, slow sign"),
        (moved, lams > 0, "half of the kernel's movement, slow sign"),
        (learned, lams < 0, "1 % of the loss, lazy sign"),
    )
    for number, (delays, kept, label) in enumerate(lines):
        low, middle, high = np.quantile(delays[kept], (0.1, 0.5, 0.9), axis=-1)
        bars = np.abs([middle - low, high - middle])
        panel.errorbar(np.abs(lams[kept]), middle, yerr=bars, fmt="o", ms=5, color=COLOURS[number], label=label)
    size, first = lams[lams > 0], np.median(moved[lams > 0], axis=-1)[0]
    panel.plot(size, first * size / size[0], "--", color="0.3", lw=1, label="∝ |λ|")
    panel.set(
        xscale="log", yscale="log", xlabel="|λ|", ylabel=TIME, title="delays (bars: 80 % of draws)", ylim=(0.005, 1e5)
    )
    panel.legend(loc="upper left", fontsize=8)
