"""Learning from a large balance λ: many draws by the exact solution, three trained networks, and measures of delay."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray
from jaxtyping import Float, Int

from ... import Setup, Task, Trajectory, inits, nets, rules, solve, tasks
from ..._formulas import balanced_flow, tangent_kernel
from ..._formulas.curves import order
from ..._foundation.arrays import AnyArray, Number
from ..._foundation.precision import in_double
from ..._foundation.program_memory import compiled
from . import time_grids
from .labelled import labelled, stack, table, time_at
from .training import simulate

HIDDEN = 3
OBSERVED = ("loss", "kernel_distance")
REGIMES = ("delayed", "lazy", "λ = 0")


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
) -> xarray.Dataset:
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

    values = in_double(compiled(jax.vmap(jax.vmap(one, (None, 0)), (0, None))))(lams, numbers)
    curves = {name: table(array, "lam", "seed", "time") for name, array in zip(OBSERVED, values, strict=True)}
    return xarray.Dataset(curves, coords={"lam": lams, "seed": numbers, "time": times})


def trained_at_three(
    task: Task, size: float, scale: float, lr: float, record: int, seed: int
) -> tuple[xarray.Dataset, dict[str, Setup], dict[str, Trajectory]]:
    """Gradient descent, the exact solution and the frozen kernel at λ = size (delayed), −size (lazy) and 0."""
    times = time_grids.on_steps(np.concatenate([[0.0], np.geomspace(lr, 6 * size, record)]), lr)
    net, descent = nets.DeepLinear(HIDDEN), rules.GradientDescent(lr)
    setups = {
        regime: Setup(task, net, inits.Balanced(lam, scale), descent, times=times)
        for regime, lam in zip(REGIMES, (size, -size, 0.0), strict=True)
    }
    exact = {name: solve(setup, "BalancedRiccati", observe=OBSERVED, seed=seed) for name, setup in setups.items()}
    frozen = {
        name: solve(setups[name], "FrozenKernel", observe="loss", seed=seed) for name in REGIMES if name != "λ = 0"
    }
    runs = {name: simulate(setup, [seed], OBSERVED) for name, setup in setups.items()}
    delayed = setups["delayed"]
    finer = [simulate(delayed.replace(rule=rules.GradientDescent(lr / 2**k)), [seed], OBSERVED) for k in (1, 2)]
    gaps = [
        float(np.abs(run["kernel_distance"][0] - exact["delayed"]["kernel_distance"]).max())
        for run in (runs["delayed"], *finer)
    ]
    values = {f"trained_{n}": stack({k: labelled(t, n, seed=0) for k, t in runs.items()}, "regime") for n in OBSERVED}
    values |= {f"exact_{n}": stack({k: labelled(t, n) for k, t in exact.items()}, "regime") for n in OBSERVED}
    values["frozen_loss"] = stack({name: labelled(theory, "loss") for name, theory in frozen.items()}, "frozen")
    data = xarray.Dataset(values).rename(time="moment_time")
    data["order_in_lr"] = table(order(np.array(gaps)), "halving")
    data["mirror_gap"] = table(_mirror_gap(delayed, exact["delayed"], seed), "observable")
    return data, setups, exact | {f"{name}, frozen kernel": theory for name, theory in frozen.items()}


def _mirror_gap(setup: Setup, trajectory: Trajectory, seed: int) -> list[float]:
    """Largest differences between a network, whose trajectory is given, and its transpose."""
    lower, upper = setup.weights(seed)
    mirror = setup.replace(task=diagonal_task(setup.task.d_out, setup.task.d_in), init=inits.Given([upper.T, lower.T]))
    other = solve(mirror, "BalancedRiccati", observe=OBSERVED)
    return [float(np.abs(other[name] - trajectory[name]).max()) for name in OBSERVED]


def time_to_learn(loss: xarray.DataArray, share: float) -> xarray.DataArray:
    """The time at which the loss has fallen to a share of its initial value; log loss is interpolated linearly."""
    return time_at(xarray.apply_ufunc(np.log, loss / loss.isel(time=0)), float(np.log(share)), falling=True)


def time_to_half_moved(distance: xarray.DataArray) -> xarray.DataArray:
    """When the kernel has moved half of its final distance."""
    return time_at(distance / distance.isel(time=-1), 0.5)
