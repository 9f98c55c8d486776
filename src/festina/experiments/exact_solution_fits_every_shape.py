"""One closed form describes a λ-balanced two-layer linear network on white inputs at every moment, whatever its shape.

The map W₂W₁ of networks with as many, more or fewer inputs than outputs, with a bottleneck, and wide ones, is
compared with gradient descent: the gap closes at first order in the learning rate. Published statements ask for
N_h = min(N_i, N_o); this is not needed. The gap grows with the product of the rate and |λ|, since large layers are
fast layers. White inputs of any size κ are the same solution at another speed.

What does not reproduce is the last term of eq. 15 of the slides, (e^(λ⊥t) − 1)/λ⊥: it is (e^(2λ⊥t) − 1)/(2λ⊥). This
is harmless for N_i = N_o and for λ = 0. Where the larger layer must turn, sgn λ = sgn(N_o − N_i), the printed map is
wrong by as much as the task itself; for the other sign the term is small.

A balanced square network (λ = 0) cannot change the sign of the determinant of its map. With the wrong sign the flow
ends at a saddle and gives up the weakest mode. Descent is not quite balanced, by an amount in proportion to its
rate, and so it escapes: later by ln 2 / s for every halving of the rate, where s is that mode's singular value.
"""

from __future__ import annotations

import numpy as np

from .. import inits, nets, rules, tasks
from .._errors import BadInput
from .._noun import positive, real_array, whole
from .._plot import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from .._solve import solve

REFERENCE = {
    "saxe_slides": "eqs. 13-15",
    "domine2025": "theorem 4.3",
    "braun2022": "theorem 3.1 and figure 2",
}
QUICK = dict(shapes=((4, 4, 4), (6, 3, 3)), lr=0.02, points=120)
HALVINGS = 3  # rates lr, lr/2, lr/4
LONGER = 4  # how much longer the network with the wrong sign is followed
LARGE = 8.0  # eqs. 13-15 as they stand lose their digits where the largest exponent is beyond


def run(
    *,
    shapes=((4, 4, 4), (6, 3, 3), (3, 3, 6), (5, 4, 5), (4, 2, 4), (3, 5, 6), (4, 6, 4)),
    lams=(-5.0, 0.0, 5.0),
    steep=(2.5, 5.0, 10.0, 20.0),
    kappa=0.5,
    strongest=2.0,
    weakest=1.0,
    scale=0.2,
    until=12.0,
    lr=0.01,
    points=300,
    seed=0,
) -> Result:
    points = whole(points, "points", least=20)
    lr, until, kappa, scale = (
        positive(v, n) for v, n in ((lr, "lr"), (until, "until"), (kappa, "kappa"), (scale, "scale"))
    )
    shapes = [tuple(whole(width, "width") for width in shape) for shape in shapes]
    square = next((shape for shape in shapes if len(set(shape)) == 1), None)
    uneven = next((shape for shape in shapes if shape[0] != shape[2] and shape[1] == min(shape)), None)
    if square is None or uneven is None:
        raise BadInput(
            f"shapes = {shapes}",
            "a square shape, and one with N_h = N_o < N_i or N_h = N_i < N_o",
            "add the missing one",
        )
    lams = real_array(lams, "lams", ndim=1).tolist()
    if min(lams) >= 0 or max(lams) <= 0:
        raise BadInput(f"lams = {lams}", "one below 0 and one above", "add the missing one")
    spectrum = (positive(strongest, "strongest"), positive(weakest, "weakest"))
    # Whole steps of the slowest rate, dense at the start, where large layers move.
    grid = np.concatenate([np.geomspace(lr, until, points // 2), np.linspace(0, until, points - points // 2)])
    times = np.unique(np.round(grid / lr)) * lr

    def fitted(shape, lam, variance=1.0, wrong_sign=False):
        task, weights = _task(shape, variance, spectrum, seed), _start(shape, lam, scale, wrong_sign, seed)
        finest = rules.GradientDescent(lr / 2 ** (HALVINGS - 1))
        return Setup(task, nets.DeepLinear(shape[1]), inits.Given(weights), finest, times=times)

    runs = [(shape, lam) for shape in shapes for lam in lams if _possible(shape, lam)]
    setups, theories, found = {}, {}, {"label": [], "theory": [], "trained": [], "gap": [], "printed": [], "mended": []}
    for shape, lam in runs:
        setup = fitted(shape, lam)
        theory, seen, gaps = _compared(setup, lr)
        found["label"].append(f"{_name(shape)}, λ = {lam:g}")
        found["theory"].append(_loss(setup, theory["map"]))
        found["trained"].append(_loss(setup, seen))
        found["gap"].append(gaps)
        found["printed"].append(_gap(as_printed(setup, times, lam, printed=True), seen))
        found["mended"].append(_gap(as_printed(setup, times, lam, printed=False), theory["map"]))
        setups[_name(shape)], theories[_name(shape)] = setup, theory  # one of each shape, with its last λ
    delayed = max(lams, key=lambda lam: lam * np.sign(uneven[2] - uneven[0]))
    shown = fitted(uneven, delayed)
    label = f"{_name(uneven)}, λ = {delayed:g}, κ = {kappa:g}"
    setups[label] = fitted(uneven, delayed, kappa)
    theories[label], _, scaled_gaps = _compared(setups[label], lr)
    sweep = [_compared(fitted(square, lam), lr)[2] for lam in steep]
    import xarray

    data = xarray.Dataset(
        {
            "loss_theory": (("run", "time"), np.array(found["theory"])),
            "loss_training": (("run", "time"), np.array(found["trained"])),
            "gap": (("run", "rate"), np.array(found["gap"])),
            "printed_gap": ("run", np.array(found["printed"])),
            "mended_gap": ("run", np.array(found["mended"])),
            "inputs": ("run", [shape[0] for shape, _ in runs]),
            "hidden_units": ("run", [shape[1] for shape, _ in runs]),
            "outputs": ("run", [shape[2] for shape, _ in runs]),
            "lam": ("run", [lam for _, lam in runs]),
            "scaled_gap": ("rate", np.array(scaled_gaps)),
            "steep_gap": (("balance", "rate"), np.array(sweep)),
            "eq15_printed": ("time", _loss(shown, as_printed(shown, times, delayed, printed=True))),
            "eq15_mended": ("time", _loss(shown, as_printed(shown, times, delayed, printed=False))),
            **_obstruction(fitted, square, lr, setups, theories),
        },
        coords={
            "run": found["label"],
            "time": times,
            "rate": lr / 2.0 ** np.arange(HALVINGS),
            "balance": list(steep),
        },
        attrs={
            "weakest": spectrum[1],
            "printed_run": f"{_name(uneven)}, λ = {delayed:g}",
            "kappa": kappa,
            "scale_of_map": spectrum[0],
        },
    )
    return Result(data, setups, theories)


def _name(shape) -> str:
    return "-".join(map(str, shape))


def _possible(shape, lam) -> bool:
    """Whether layers of these widths can be balanced at lam."""
    return lam == 0 or shape[1] <= (shape[2] if lam > 0 else shape[0])


def _task(shape, variance, spectrum, seed):
    """Evenly spaced singular values, and random vectors of positive determinant."""
    count = min(shape[0], shape[2])
    left, right = _frames(np.random.default_rng([seed, 0, *shape]), shape[2], shape[0])
    strongest, weakest = spectrum
    target = left[:, :count] * np.linspace(strongest, weakest, count) @ right[:, :count].T
    return tasks.from_moments(variance * target, variance * np.eye(shape[0]), variance * target @ target.T)


def _start(shape, lam, scale, wrong_sign, seed):
    """Layers with W₂ᵀW₂ − W₁W₁ᵀ = lam·I, as inits.Balanced draws them, whose determinants have a chosen sign."""
    inputs, hidden, outputs = shape
    left, right, middle = _frames(np.random.default_rng([seed, 1, *shape]), outputs, inputs, hidden)
    if wrong_sign:
        left[:, 0] *= -1
    count = min(shape)
    used = np.where(np.arange(hidden) < count, 1.0, 0.0)
    half = np.hypot(lam / 2, scale * used)
    # Hidden directions without a part in the map belong to the larger layer.
    first, last = np.sqrt(np.maximum(half - lam / 2, 0)), np.sqrt(np.maximum(half + lam / 2, 0))
    into, out = min(inputs, hidden), min(outputs, hidden)
    return [middle[:, :into] * first[:into] @ right[:, :into].T, left[:, :out] * last[:out] @ middle[:, :out].T]


def _frames(rng, *widths):
    """Random orthogonal matrices of determinant +1."""
    frames = [np.linalg.qr(rng.normal(size=(width, width)))[0] for width in widths]
    for frame in frames:
        frame[:, 0] *= np.linalg.slogdet(frame)[0]
    return frames


def _compared(setup, lr):
    """Theory, the map in training at the finest rate, and the largest gap relative to the map at every rate."""
    theory = solve(setup, "BalancedRiccati")
    gaps = []
    for halving in range(HALVINGS):
        slower = setup.replace(rule=rules.GradientDescent(lr / 2**halving))
        seen = simulate(slower, [0], "map")["map"][0]
        gaps.append(_gap(theory["map"], seen))
    return theory, seen, gaps


def _gap(one, other) -> float:
    """Largest entry of the difference, where both are known."""
    return float(np.nanmax(np.abs(one - other)))


def _loss(setup, maps):
    target, variance = setup.task.target(), setup.task.cov_x[0, 0]
    return 0.5 * variance * np.sum((maps - target) ** 2, axis=(1, 2))


def as_printed(setup, times, lam, printed):
    """The map by eqs. 13-15 of the slides, evaluated as they stand; NaN where float64 cannot hold them.

    B, C and D are not printed; they are W₂ᵀU(G + HG) + W₁V(G − HG), W₂ᵀU(G − HG) − W₁V(G + HG) and W₂ᵀU⊥ + W₁V⊥
    at the start. With `printed` false the last term of eq. 15 is the right one.
    """
    first, last = setup.weights()
    left, values, right = np.linalg.svd(setup.task.target())
    count, surplus = len(values), right.shape[0] - left.shape[0]
    speed = np.hypot(values, lam / 2)
    tilt = np.sign(lam) * np.sqrt((speed - values) / (speed + values))
    small, big = (1 - tilt) / np.sqrt(1 + tilt**2), (1 + tilt) / np.sqrt(1 + tilt**2)
    u, v = left[:, :count], right[:count].T
    grow, fade = last.T @ u * big + first @ v * small, last.T @ u * small - first @ v * big
    apart = first @ right[count:].T if surplus > 0 else last.T @ left[:, count:]
    rate = -np.sign(surplus) * lam / 2
    maps = np.full((len(times), len(left), len(right)), np.nan)
    for number, time in enumerate(times):
        if speed.max() * time > LARGE:
            break
        up, down = np.exp(speed * time), np.exp(-speed * time)
        inner = 0.5 * (v * small * up) @ grow.T - 0.5 * (v * big * down) @ fade.T
        outer = 0.5 * (u * big * up) @ grow.T + 0.5 * (u * small * down) @ fade.T
        if surplus > 0:
            inner += np.exp(rate * time) * right[count:].T @ apart.T
        elif surplus < 0:
            outer += np.exp(rate * time) * left[:, count:] @ apart.T
        power = rate if printed else 2 * rate
        rest = np.expm1(power * time) / power if power else time
        middle = np.eye(len(first)) + rest * apart @ apart.T
        middle += grow * np.expm1(2 * speed * time) / (4 * speed) @ grow.T
        middle -= fade * np.expm1(-2 * speed * time) / (4 * speed) @ fade.T
        maps[number] = outer @ np.linalg.solve(middle, inner.T)
    return maps


def _obstruction(fitted, square, lr, setups, theories):
    """The square network with the wrong sign: stuck where λ = 0, and free with λ of either sign."""
    setup = fitted(square, 0.0, wrong_sign=True)
    setup = setup.replace(times=LONGER * setup.times)
    label = f"{_name(square)}, λ = 0, wrong sign"
    theory = solve(setup, "BalancedRiccati")
    setups[label], theories[label] = setup, theory
    slower = [setup.replace(rule=rules.GradientDescent(lr / 2**halving)) for halving in range(HALVINGS)]
    free = [fitted(square, lam, wrong_sign=True) for lam in (-5.0, 5.0)]
    return {
        "stuck_theory": ("long_time", _loss(setup, theory["map"])),
        "stuck_training": (
            ("rate", "long_time"),
            np.array([_loss(setup, simulate(each, [0], "map")["map"][0]) for each in slower]),
        ),
        "free_loss": ("sign", [_loss(each, solve(each, "BalancedRiccati")["map"])[-1] for each in free]),
        "long_time": setup.times,
    }


def claims(result: Result) -> list[Claim]:
    data = result.data
    order = np.log2(data.gap.values[:, :-1] / data.gap.values[:, 1:])
    scaled = np.log2(data.scaled_gap.values[:-1] / data.scaled_gap.values[1:])
    even = (data.inputs == data.outputs).values
    imbalanced = data.lam.values != 0
    saddle = data.attrs["weakest"] ** 2 / 2
    escapes = np.array([_falls_below(data.long_time.values, loss, saddle / 2) for loss in data.stuck_training.values])
    delay = np.diff(escapes) / (np.log(2) / data.attrs["weakest"])
    steep = data.steep_gap.values
    return [
        Claim.at_most(
            "The closed form is the map in training, every shape and λ: largest gap at the finest rate / map",
            float(data.gap.isel(rate=-1).max()) / data.attrs["scale_of_map"],
            0.02,
            source="paper",
        ),
        Claim.at_least("Descent tends to it as lr → 0: lowest order over shapes and λ", order[:, -1].min(), 0.9),
        Claim.at_most("… and highest order", order[:, -1].max(), 1.1),
        Claim.between(f"… and for white inputs of variance {data.attrs['kappa']:g}: order", scaled[-1], 0.9, 1.1),
        Claim.at_most(
            "Eq. 15 as printed fits training for N_i ≠ N_o and λ ≠ 0: largest gap / map",
            float(data.printed_gap.values[~even & imbalanced].max()) / data.attrs["scale_of_map"],
            0.02,
            source="paper",
            expected=False,
            reason="its last term (e^(λ⊥t) − 1)/λ⊥ must be (e^(2λ⊥t) − 1)/(2λ⊥)",
        ),
        Claim.at_most(
            "Eq. 15 as printed fits training for N_i = N_o or λ = 0: largest gap / map",
            float(data.printed_gap.values[even | ~imbalanced].max()) / data.attrs["scale_of_map"],
            0.02,
            source="paper",
        ),
        Claim.at_most(
            "Eqs. 13-15 with the right last term are the library's solution: largest gap",
            float(data.mended_gap.max()),
            1e-8,
        ),
        Claim.at_most(
            "λ = 0 and the wrong sign of the determinant: the flow ends at loss s²/2 of the weakest mode, relative gap",
            abs(float(data.stuck_theory[-1]) / saddle - 1),
            1e-4,
        ),
        Claim.between(
            "… and descent escapes later for every halving of lr: delay / (ln 2 / s)", float(delay[-1]), 0.85, 1.15
        ),
        Claim.at_most(
            "… and λ = ±5 is not stuck: largest final loss / (s²/2)", float(data.free_loss.max()) / saddle, 1e-4
        ),
        Claim.between(
            "The gap grows in proportion to |λ|: order, the two largest λ at the finest rate",
            np.log(steep[-1, -1] / steep[-2, -1]) / np.log(data.balance.values[-1] / data.balance.values[-2]),
            0.8,
            1.2,
        ),
    ]


def _falls_below(times, loss, level) -> float:
    """The last time at which a loss passes a level downwards, linear between records; ∞ if it is above at the end."""
    after = len(loss) - int(np.argmax((loss > level)[::-1]))
    if after >= len(loss):
        return np.inf
    share = (loss[after - 1] - level) / (loss[after - 1] - loss[after])
    return float(times[after - 1] + share * (times[after] - times[after - 1]))


def figure(result: Result):
    data = result.data
    sheet, ((curves, rates, lams), (printed, stuck, rest)) = new_figure(2, 3, width=4.4, height=3.4)
    _draw_losses(curves, data)
    for number in range(data.sizes["run"]):
        colour = COLOURS[_shape_number(data, number) % len(COLOURS)]
        rates.loglog(data.rate, data.gap[number], "o-", color=colour, lw=1, ms=3)
    rates.loglog(data.rate, data.gap.values.max() * data.rate / data.rate[0], color="0.5", lw=1, ls=":", label="∝ lr")
    rates.set(xlabel="learning rate", ylabel="largest gap of the map", title="descent tends to the closed form")
    rates.set_xticks(data.rate.values, [f"{rate:g}" for rate in data.rate.values])
    rates.legend(loc="lower right")
    for number, rate in enumerate(data.rate.values):
        lams.loglog(
            data.balance * rate, data.steep_gap[:, number], "o-", color=COLOURS[number], ms=4, label=f"lr = {rate:g}"
        )
    lams.set(xlabel="lr × λ", ylabel="largest gap of the map", title="… and the gap is that of lr × λ")
    lams.legend(loc="lower right")
    for axis in (rates.xaxis, rates.yaxis, lams.xaxis, lams.yaxis):
        axis.set_minor_formatter("")
    run = data.sel(run=data.attrs["printed_run"])
    trained(printed, data.time, run.loss_training, colour=COLOURS[0])
    predicted(printed, data.time, run.loss_theory, colour=COLOURS[0])
    printed.plot(data.time, data.eq15_mended, ":", color=COLOURS[2], lw=2.5, label="eqs. 13-15, last term mended")
    printed.plot(data.time, data.eq15_printed, color=COLOURS[1], lw=1.5, label="eqs. 13-15 as printed")
    top = 1.25 * float(run.loss_training.max())
    last = float(data.time[np.isfinite(data.eq15_mended.values)].max())
    printed.set(
        xlabel=TIME, ylabel="loss", title=f"{data.attrs['printed_run']}: eq. 15", ylim=(0, top), xlim=(0, 2 * last)
    )
    printed.legend(loc="upper right", fontsize=8)
    for number, rate in enumerate(data.rate.values):
        trained(
            stuck, data.long_time, data.stuck_training[number], colour=COLOURS[number], label=f"training, lr = {rate:g}"
        )
    predicted(stuck, data.long_time, data.stuck_theory, colour="#000000", label="theory")
    stuck.axhline(data.attrs["weakest"] ** 2 / 2, color="0.6", lw=0.8, zorder=0)
    low = data.attrs["weakest"] ** 2 / 2 * 1e-3
    over = data.long_time[(data.stuck_training < low).any("rate").values]
    last = 1.3 * float(over[0]) if len(over) else float(data.long_time[-1])
    stuck.set(xlabel=TIME, ylabel="loss", title="λ = 0, wrong sign of the determinant", yscale="log")
    stuck.set(xlim=(0, last), ylim=(low, 2 * float(data.stuck_theory[0])))
    stuck.legend(loc="lower left", fontsize=8)
    _draw_gaps(rest, data)
    return sheet


def _shape_number(data, number) -> int:
    """Which of the shapes a run has, in the order of first appearance."""
    shapes = [str(label).split(",")[0] for label in data.run.values]
    return list(dict.fromkeys(shapes)).index(shapes[number])


def _draw_losses(axes, data) -> None:
    """Loss of every run, relative to its start; one colour per shape."""
    seen = set()
    for number, label in enumerate(data.run.values):
        shape, colour = str(label).split(",")[0], COLOURS[_shape_number(data, number) % len(COLOURS)]
        start = float(data.loss_training[number, 0])
        trained(axes, data.time[1:], data.loss_training[number, 1:] / start, colour=colour)
        predicted(axes, data.time[1:], data.loss_theory[number, 1:] / start, colour=colour)
        if shape not in seen:
            axes.plot([], [], color=colour, lw=3, label=shape)
        seen.add(shape)
    axes.set(xlabel=TIME, ylabel="loss / loss at the start", title="every shape and λ", xscale="log")
    axes.add_artist(axes.legend(loc="upper right", fontsize=7.5, title="N_i-N_h-N_o", title_fontsize=7.5))
    legend_of_kinds(axes, loc="lower left", fontsize=8)


def _draw_gaps(axes, data) -> None:
    """How far eq. 15 as printed and as mended are off, run by run."""
    place = np.arange(data.sizes["run"])
    floor = 1e-16
    axes.plot(np.maximum(data.printed_gap, floor), place, "s", color=COLOURS[1], ms=5, label="as printed, to training")
    axes.plot(
        np.maximum(data.gap[:, -1], floor), place, "o", color=COLOURS[0], ms=5, mfc="none", label="theory, to training"
    )
    axes.plot(np.maximum(data.mended_gap, floor), place, "^", color=COLOURS[2], ms=5, label="mended, to theory")
    axes.set_yticks(place, [str(label) for label in data.run.values], fontsize=7)
    axes.set(xscale="log", xlabel="largest gap of the map", title="eq. 15, run by run")
    axes.invert_yaxis()
    axes.legend(loc="center", bbox_to_anchor=(0.45, 0.5), fontsize=7)
