"""A large balance λ of the slow sign makes a network lazy at first and rich late, after a delay that grows as |λ|.

In a network 3-3-6 with λ ≫ s the read-out starts as √λ times three orthonormal columns. The first layer learns at
once what these columns reach, at rate λ: a good part of the loss is gone while the tangent kernel has hardly moved.
The rest needs the columns to turn. They do so at rates S_λ − λ/2 = s²/(S_λ + λ/2) ≈ s²/λ with S_λ = √(s² + λ²/4), so
that the kernel moves, and the loss falls to zero, after a time of order λ/s². The funnel 6-3-3 is its mirror image,
transposed and with −λ: it is delayed for negative λ. With the other sign the same network is lazy to the end, and
much faster; with λ = 0 the kernel moves from the start.

The exact solution holds throughout. Learning under the frozen kernel describes the first fall, and the whole of the
lazy sign; of the slow sign it leaves the part of the loss that the columns do not reach. The time to learn with the
slow sign depends on how the draw's columns lie, and varies about threefold up and down; with the lazy sign it does
not. Times to 1 % of the loss on record for the slow sign, of one draw each, test little: 17.9 at |λ| = 10 and 60 and 51
at 30 have 0.32, 0.46 and 0.28 of 200 draws below them. Singular values of the task are equally spaced from 2 to 1,
those of the starting map are all `scale`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _kernel, _riccati, inits, nets, rules, tasks
from .._errors import BadInput
from .._noun import positive, whole
from .._plot import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._precision import in_double
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from .._solve import solve

REFERENCE = {"domine2025": "delayed rich learning", "saxe_slides": "slides on lazy, rich and delayed rich regimes"}
QUICK = dict(draws=24, points=160, record=60, lr=0.01)
HIDDEN = 3
STILL = 1e-3  # a kernel distance at which the kernel has hardly moved
RECORDED_LAZY = 0.23  # time to 1 % of the loss that is on record for the lazy sign, |λ| = 10


def run(
    *, sizes=(10.0, 30.0, 80.0, 160.0), scale=0.05, draws=200, until=1e4, points=400, lr=0.005, record=120, seed=0
) -> Result:
    draws, points, record = whole(draws, "draws"), whole(points, "points", least=2), whole(record, "record", least=2)
    scale, until, lr = positive(scale, "scale"), positive(until, "until"), positive(lr, "lr")
    if 10.0 not in sizes:
        raise BadInput(f"sizes = {tuple(sizes)}", "|λ| of 10 among them", "add it: a record exists for this one")
    sizes = np.sort(np.asarray(sizes, float))
    lams = np.concatenate([-sizes[::-1], [0.0], sizes])
    times = np.concatenate([[0.0], np.geomspace(1e-3, until, points)])
    numbers = np.arange(seed, seed + draws)
    task = _task(3, 6)
    loss, distance = _family(task, lams, numbers, scale, times)
    training, setups, theories = _training(task, float(sizes[0]), scale, lr, record, seed)
    import xarray

    axes = ("lam", "seed", "time")
    data = xarray.Dataset(
        {
            "loss": (axes, loss),
            "kernel_distance": (axes, distance),
            "singular_value": ("mode", task.modes().singular_values),
            **training,
        },
        coords={
            "lam": lams,
            "seed": numbers,
            "time": times,
            "regime": list(setups),
        },
        attrs={"scale": scale},
    )
    return Result(data, setups, theories)


def _task(d_in, d_out):
    target = np.zeros((d_out, d_in))
    np.fill_diagonal(target, np.linspace(2, 1, min(d_in, d_out)))
    return tasks.from_moments(target, np.eye(d_in), target @ target.T)


def _family(task, lams, numbers, scale, times):
    """Loss and kernel distance of every λ and draw, in one call of the exact solution; (lam, seed, time) each."""
    net, target, cov_x = nets.DeepLinear(HIDDEN), task.target(), task.cov_x

    def one(lam, number):
        start = inits.Balanced(lam, scale).draw(jax.random.key(number), net, task)
        flow = _riccati.flow(target, start, lam)
        lower, upper = _riccati.weights(flow, _riccati.states(flow, times))
        loss = 0.5 * jnp.sum((upper @ lower - target) ** 2, axis=(1, 2))
        first = _kernel.tangent(start)
        return loss, jax.vmap(lambda *layers: _kernel.distance(first, _kernel.tangent(layers), cov_x))(lower, upper)

    return in_double(jax.jit(jax.vmap(jax.vmap(one, (None, 0)), (0, None))))(lams, numbers)


def _training(task, size, scale, lr, record, seed):
    """Descent, the exact solution and the frozen kernel at λ = size (slow), −size (lazy) and 0."""
    times = np.unique(np.round(np.concatenate([[0.0], np.geomspace(lr, 6 * size, record)]) / lr)) * lr
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
    values["order_in_lr"] = ("halving", np.log2(errors[:-1] / errors[1:]))
    values["mirror_gap"] = ("observable", _mirror_gap(setups["slow sign"], exact["slow sign"], names, seed))
    values["moment_time"] = ("moment", times)
    return values, setups, exact | frozen


def _mirror_gap(setup, seen, names, seed):
    """Largest differences between a network and its transpose."""
    lower, upper = setup.weights(seed)
    mirror = setup.replace(task=_task(setup.task.d_out, setup.task.d_in), init=inits.Given([upper.T, lower.T]))
    other = solve(mirror, "BalancedRiccati", observe=names)
    return np.array([np.abs(other[name] - seen[name]).max() for name in names])


def _time_when(curve, level, times):
    """First time at which each curve passes a level upwards, linear between records; leading axes are kept."""
    above = curve >= level
    after = np.maximum(np.argmax(above, axis=-1), 1)[..., None]
    low, high = (np.take_along_axis(curve, index, axis=-1) for index in (after - 1, after))
    share = ((level - low) / (high - low))[..., 0]
    after = after[..., 0]
    return np.where(above.any(axis=-1), times[after - 1] + share * (times[after] - times[after - 1]), np.inf)


def _learned(data, share):
    """When the loss has fallen to a share of its start: (lam, seed)."""
    relative = np.log(data.loss / data.loss.isel(time=0)).values
    return _time_when(-relative, -np.log(share), data.time.values)


def _half_moved(data):
    """When the kernel has moved half of its final distance: (lam, seed)."""
    relative = (data.kernel_distance / data.kernel_distance.isel(time=-1)).values
    return _time_when(relative, 0.5, data.time.values)


def claims(result: Result) -> list[Claim]:
    data = result.data
    lams, times = data.lam.values, data.time.values
    at = {lam: int(np.argmin(np.abs(lams - lam))) for lam in (-10.0, 0.0, 10.0)}
    learned, half = _learned(data, 0.01), _learned(data, 0.5)
    relative = (data.loss / data.loss.isel(time=0)).values
    still = (data.kernel_distance.values < STILL).argmin(axis=-1)  # the first record at which it has moved
    before = np.take_along_axis(relative, np.maximum(still - 1, 0)[..., None], axis=-1)[..., 0]
    moved = np.median(_half_moved(data), axis=-1)
    at_half = {
        lam: np.median([np.interp(t, times, curve) for t, curve in zip(half[k], data.kernel_distance[k], strict=True)])
        for lam, k in at.items()
    }
    gap = np.abs(data.trained_loss.values[:2] - data.frozen_loss.values) / data.trained_loss.values[:2, :1]
    resting = data.trained_kernel_distance.values[0] < STILL
    return [
        Claim.at_most(
            "Lazy at first: share of the loss left when the kernel has moved by 0.001, largest λ, median of draws",
            np.median(before[-1]),
            0.7,
            source="paper",
        ),
        Claim.at_least(
            "Rich in the end: kernel distance, largest λ, mean of draws",
            data.kernel_distance.isel(time=-1, lam=-1).mean("seed").item(),
            0.3,
            source="paper",
        ),
        Claim.at_most(
            "The other sign is lazy to the end: largest kernel distance at any time, |λ| ≥ 10",
            data.kernel_distance.sel(lam=lams[lams <= -10]).max().item(),
            STILL,
            source="paper",
        ),
        Claim.at_least(
            "λ = 0 is rich from the start: its kernel distance at half of the loss / that of the smallest slow λ",
            at_half[0.0] / at_half[10.0],
            10.0,
            source="paper",
        ),
        Claim.between(
            "The delay grows as |λ|: exponent of the time of half the movement, largest two λ",
            np.log(moved[-1] / moved[-2]) / np.log(lams[-1] / lams[-2]),
            0.97,
            1.03,
        ),
        _rate_claim(data),
        Claim.between(
            "The lazy sign learns at the rate |λ|: time to 1 % of the loss × |λ| / ln 10, largest |λ|",
            learned[0].mean() * -lams[0] / np.log(10),
            0.99,
            1.01,
        ),
        Claim.at_most(
            f"… at |λ| = 10 it takes {learned[at[-10.0]].mean():.4g}: relative gap to the {RECORDED_LAZY:g} on record",
            abs(learned[at[-10.0]].mean() / RECORDED_LAZY - 1),
            0.05,
        ),
        Claim.between(
            "Descent tends to the exact kernel distance, slow sign: order in lr", float(data.order_in_lr[-1]), 0.9, 1.1
        ),
        Claim.at_most(
            "The funnel 6-3-3 with −λ is the mirror image: largest difference of loss and kernel distance",
            float(data.mirror_gap.max()),
            1e-10,
        ),
        Claim.at_most(
            "The frozen kernel describes the lazy sign: largest gap to training / first loss", gap[1].max(), 0.05
        ),
        Claim.at_most("… and the slow sign while the kernel rests: the same gap", gap[0][resting].max(), 0.05),
        Claim.at_least("… but not after: largest gap, slow sign", gap[0].max(), 0.1),
    ]


def _rate_claim(data) -> Claim:
    """The late loss falls as e^(−2rt), r the rate at which the slowest column turns; at every slow λ."""
    lams = data.lam.values
    s, slow = data.singular_value.values.min(), lams > 0
    predicted_rate = 2 * s**2 / (np.hypot(s, lams[slow] / 2) + lams[slow] / 2)
    seen = np.log(1e4) / (_learned(data, 1e-8) - _learned(data, 1e-4))[slow]
    ratio = np.median(seen, axis=-1) / predicted_rate
    return Claim.between(
        "Late loss falls at twice the rate s²/(S_λ + |λ|/2) of the slowest mode: median ratio farthest from 1",
        ratio[np.argmax(np.abs(ratio - 1))],
        0.95,
        1.05,
    )


def figure(result: Result):
    data = result.data
    sheet, ((loss, kernel), (collapse, delays)) = new_figure(2, 2, width=4.8)
    for number, regime in enumerate(data.regime.values):
        colour, one = COLOURS[number], data.sel(regime=regime)
        for panel, name in ((loss, "loss"), (kernel, "kernel_distance")):
            trained(panel, data.moment_time, one[f"trained_{name}"], colour=colour)
            predicted(panel, data.moment_time, one[f"exact_{name}"], colour=colour)
        loss.plot([], [], color=colour, lw=3, label=regime)
    loss.plot(data.moment_time, data.frozen_loss[0], ":", color="0.2", lw=1.3, label="slow sign, frozen kernel")
    for panel in (loss, kernel):
        panel.set_xscale("symlog", linthresh=0.1)
        panel.set(xlabel=TIME, xlim=(0, float(data.moment_time[-1])))
    size = float(data.lam.where(data.lam > 0).min())
    loss.set(ylabel="loss", title=f"3-3-6, |λ| = {size:g}: the loss falls twice")
    loss.legend(loc="upper right", fontsize=8)
    kernel.set(ylabel="kernel distance", title="the kernel moves late")
    legend_of_kinds(kernel, loc="upper left")
    _draw_collapse(collapse, data)
    _draw_delays(delays, data)
    return sheet


def _draw_collapse(panel, data) -> None:
    """Mean kernel distance against time over λ."""
    for number, lam in enumerate(data.lam.values[data.lam.values > 0]):
        mean = data.kernel_distance.sel(lam=lam).mean("seed")
        panel.plot(data.time / lam, mean, color=COLOURS[number], lw=1.5, label=f"λ = {lam:g}")
    panel.set(xscale="log", xlim=(1e-3, 30), xlabel="time / λ (τ)", ylabel="kernel distance, mean of draws")
    panel.set_title("slow sign, 3-3-6: one curve in time / λ")
    panel.legend(loc="upper left")


def _draw_delays(panel, data) -> None:
    """Times to 1 % of the loss for both signs, and of half the kernel's movement, against |λ|."""
    lams = data.lam.values
    learned, moved = _learned(data, 0.01), _half_moved(data)
    lines = (
        (learned, lams > 0, "1 % of the loss, slow sign"),
        (moved, lams > 0, "half of the movement, slow sign"),
        (learned, lams < 0, "1 % of the loss, lazy sign"),
    )
    for number, (seen, kept, label) in enumerate(lines):
        low, middle, high = np.quantile(seen[kept], (0.1, 0.5, 0.9), axis=-1)
        bars = np.abs([middle - low, high - middle])
        panel.errorbar(np.abs(lams[kept]), middle, yerr=bars, fmt="o", ms=5, color=COLOURS[number], label=label)
    size, first = lams[lams > 0], np.median(moved[lams > 0], axis=-1)[0]
    panel.plot(size, first * size / size[0], "--", color="0.3", lw=1, label="∝ |λ|")
    panel.set(
        xscale="log", yscale="log", xlabel="|λ|", ylabel=TIME, title="delays (bars: 80 % of draws)", ylim=(0.005, 1e5)
    )
    panel.legend(loc="upper left", fontsize=8)
