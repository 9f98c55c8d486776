"""One closed form describes a λ-balanced two-layer linear network on white inputs at every moment, whatever its shape.

The map W₂W₁ is compared with gradient descent in networks with as many, more or fewer inputs than outputs, with a
bottleneck, and with a wide hidden layer: the gap closes at first order in the learning rate. Published statements ask
for N_h = min(N_i, N_o), which is not needed. The gap grows with the product of the rate and |λ|, since large layers
learn fast. White inputs of any variance κ have the same solution at another speed.

What does not reproduce is the last term of eq. 15 of the slides, (e^(λ⊥t) − 1)/λ⊥: it must be (e^(2λ⊥t) − 1)/(2λ⊥). The
error is harmless for N_i = N_o and for λ = 0. Where the larger layer must turn, sgn λ = sgn(N_o − N_i), the printed map
is wrong by as much as the task itself; for the other sign of λ the term is small.

A balanced square network (λ = 0) cannot change the sign of the determinant of its map. With the wrong sign the flow
ends at a saddle and never learns the weakest mode. Descent with finite steps is not quite balanced, by an amount in
proportion to its rate, and so it escapes: later by ln 2 / s for every halving of the rate, where s is the singular
value of that mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import BadInput, Setup, inits, nets, rules, solve
from .._figures.style import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._formulas.curves import crossing, order
from .._foundation.checks import positive, real_array, whole
from ._kit import balanced_starts, printed_formulas
from ._kit.time_grids import dense_at_start
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

    from .. import Trajectory

THEME, PLACE = "regimes", 2
REFERENCE = {
    "saxe_slides": "eqs. 13-15",
    "domine2025": "theorem 4.3",
    "braun2022": "theorem 3.1 and figure 2",
}
QUICK = dict(shapes=((4, 4, 4), (6, 3, 3)), lr=0.02, points=120)
HALVINGS = 3  # rates lr, lr/2, lr/4
LONGER = 4  # how much longer the network with the wrong sign is followed


def run(
    *,
    shapes: Sequence[tuple[int, int, int]] = (
        (4, 4, 4),
        (6, 3, 3),
        (3, 3, 6),
        (5, 4, 5),
        (4, 2, 4),
        (3, 5, 6),
        (4, 6, 4),
    ),
    lams: Sequence[float] = (-5.0, 0.0, 5.0),
    steep: Sequence[float] = (2.5, 5.0, 10.0, 20.0),
    kappa: float = 0.5,
    strongest: float = 2.0,
    weakest: float = 1.0,
    scale: float = 0.2,
    until: float = 12.0,
    lr: float = 0.01,
    points: int = 300,
    seed: int = 0,
) -> Result:
    """Networks of all `shapes`, (inputs, hidden units, outputs), at all `lams`; a square one at the `steep` λ, too.

    Singular values of the target are spaced evenly from `strongest` to `weakest`; `kappa` is the variance of inputs in
    one further run.
    """
    points = whole(points, "points", least=20)
    lr, until, kappa, scale = (
        positive(v, n) for v, n in ((lr, "lr"), (until, "until"), (kappa, "kappa"), (scale, "scale"))
    )
    widths = [tuple(whole(width, "width") for width in shape) for shape in shapes]
    square = next((shape for shape in widths if len(set(shape)) == 1), None)
    uneven = next((shape for shape in widths if shape[0] != shape[2] and shape[1] == min(shape)), None)
    if square is None or uneven is None:
        needed = "a square shape, and one with N_h = N_o < N_i or N_h = N_i < N_o"
        raise BadInput(f"shapes = {widths}", needed, "add the missing one")
    lams = real_array(lams, "lams", ndim=1).tolist()
    if min(lams) >= 0 or max(lams) <= 0:
        raise BadInput(f"lams = {lams}", "one below 0 and one above", "add the missing one")
    spectrum = (positive(strongest, "strongest"), positive(weakest, "weakest"))
    times = dense_at_start(until, points, lr)

    def balanced(shape: Sequence[int], lam: float, variance: float = 1.0, wrong_sign: bool = False) -> Setup:
        task = balanced_starts.spaced_task(shape, variance, spectrum, seed)
        init = inits.Given(balanced_starts.start(shape, lam, scale, wrong_sign, seed))
        finest = rules.GradientDescent(lr / 2 ** (HALVINGS - 1))
        return Setup(task, nets.DeepLinear(shape[1]), init, finest, times=times)

    runs = [(shape, lam) for shape in widths for lam in lams if balanced_starts.possible(shape, lam)]
    setups, theories = {}, {}
    values: dict[str, list] = {"loss_theory": [], "loss_training": [], "gap": [], "printed_gap": [], "mended_gap": []}
    for shape, lam in runs:
        setup = balanced(shape, lam)
        theory, trained_map, gaps = _compared(setup, lr)
        printed, mended = (printed_formulas.balanced_map(setup, times, lam, mended=mended) for mended in (False, True))
        values["loss_theory"].append(_loss(setup, theory["map"]))
        values["loss_training"].append(_loss(setup, trained_map))
        values["gap"].append(gaps)
        values["printed_gap"].append(_gap(printed, trained_map))
        values["mended_gap"].append(_gap(mended, theory["map"]))
        setups[_name(shape)], theories[_name(shape)] = setup, theory  # one of each shape, with its last λ
    delayed = max(lams, key=lambda lam: lam * np.sign(uneven[2] - uneven[0]))
    shown = balanced(uneven, delayed)
    label = f"{_name(uneven)}, λ = {delayed:g}, κ = {kappa:g}"
    setups[label] = balanced(uneven, delayed, kappa)
    theories[label], _, scaled_gaps = _compared(setups[label], lr)
    steep_gaps = [_compared(balanced(square, lam), lr)[2] for lam in steep]
    eq15 = {
        f"eq15_{name}": ("time", _loss(shown, printed_formulas.balanced_map(shown, times, delayed, mended=mended)))
        for name, mended in (("printed", False), ("mended", True))
    }
    stuck_label = f"{_name(square)}, λ = 0, wrong sign"
    setups[stuck_label], theories[stuck_label], stuck = _wrong_sign(balanced, square, lr)
    import xarray

    axes = dict.fromkeys(("loss_theory", "loss_training"), ("run", "time")) | {"gap": ("run", "rate")}
    data = xarray.Dataset(
        {
            **{name: (axes.get(name, "run"), np.array(numbers)) for name, numbers in values.items()},
            "inputs": ("run", [shape[0] for shape, _ in runs]),
            "hidden_units": ("run", [shape[1] for shape, _ in runs]),
            "outputs": ("run", [shape[2] for shape, _ in runs]),
            "lam": ("run", [lam for _, lam in runs]),
            "scaled_gap": ("rate", np.array(scaled_gaps)),
            "steep_gap": (("balance", "rate"), np.array(steep_gaps)),
            **eq15,
            **stuck,
        },
        coords={
            "run": [f"{_name(shape)}, λ = {lam:g}" for shape, lam in runs],
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


def _name(shape: Sequence[int]) -> str:
    return "-".join(map(str, shape))


def _compared(setup: Setup, lr: float) -> tuple[Trajectory, np.ndarray, list[float]]:
    """The theory, the map in training at the finest rate, and the largest gap between the two at every rate."""
    theory = solve(setup, "BalancedRiccati")
    descents = [setup.replace(rule=rules.GradientDescent(lr / 2**halving)) for halving in range(HALVINGS)]
    maps = [simulate(descent, [0], "map")["map"][0] for descent in descents]
    return theory, maps[-1], [_gap(theory["map"], trained_map) for trained_map in maps]


def _gap(first: np.ndarray, second: np.ndarray) -> float:
    """Largest entry of the difference, where both are known."""
    return float(np.nanmax(np.abs(first - second)))


def _loss(setup: Setup, maps: np.ndarray) -> np.ndarray:
    target, variance = setup.task.target(), setup.task.cov_x[0, 0]
    return 0.5 * variance * np.sum((maps - target) ** 2, axis=(1, 2))


def _wrong_sign(
    balanced: Callable[..., Setup], square: Sequence[int], lr: float
) -> tuple[Setup, Trajectory, dict[str, Any]]:
    """The square network with the wrong sign of the determinant, stuck for λ = 0 and free for λ of either sign.

    Returned are its setup and theory for λ = 0, and variables of the data.
    """
    setup = balanced(square, 0.0, wrong_sign=True)
    setup = setup.replace(times=LONGER * setup.times)
    theory = solve(setup, "BalancedRiccati")
    slower = [setup.replace(rule=rules.GradientDescent(lr / 2**halving)) for halving in range(HALVINGS)]
    losses = [_loss(setup, simulate(descent, [0], "map")["map"][0]) for descent in slower]
    free = [balanced(square, lam, wrong_sign=True) for lam in (-5.0, 5.0)]
    variables = {
        "stuck_theory": ("long_time", _loss(setup, theory["map"])),
        "stuck_training": (("rate", "long_time"), np.array(losses)),
        "free_loss": ("sign", [_loss(other, solve(other, "BalancedRiccati")["map"])[-1] for other in free]),
        "long_time": setup.times,
    }
    return setup, theory, variables


def claims(result: Result) -> list[Claim]:
    data = result.data
    orders = order(data.gap.values)[:, -1]
    scale = data.attrs["scale_of_map"]
    even = (data.inputs == data.outputs).values
    imbalanced = data.lam.values != 0
    saddle = data.attrs["weakest"] ** 2 / 2
    escapes = crossing(data.long_time.values, -data.stuck_training.values, -saddle / 2)
    delay = np.diff(escapes) / (np.log(2) / data.attrs["weakest"])
    steep, lams = data.steep_gap.values[:, -1], data.balance.values
    growth = np.log(steep[-1] / steep[-2]) / np.log(lams[-1] / lams[-2])
    return [
        paper(
            "The closed form is the map in training for every shape and λ: largest gap at the finest rate / map",
            at_most(data.gap.isel(rate=-1).max() / scale, 0.02),
        ),
        ours("Descent tends to the closed form as lr → 0: lowest order over shapes and λ", at_least(orders.min(), 0.9)),
        ours("… and highest order", at_most(orders.max(), 1.1)),
        ours(
            f"… and for white inputs of variance {data.attrs['kappa']:g}: order",
            between(order(data.scaled_gap.values)[-1], 0.9, 1.1),
        ),
        paper(
            "Eq. 15 as printed fits training for N_i ≠ N_o and λ ≠ 0: largest gap / map",
            at_most(data.printed_gap.values[~even & imbalanced].max() / scale, 0.02),
            fails="its last term (e^(λ⊥t) − 1)/λ⊥ must be (e^(2λ⊥t) − 1)/(2λ⊥)",
        ),
        paper(
            "Eq. 15 as printed fits training for N_i = N_o or λ = 0: largest gap / map",
            at_most(data.printed_gap.values[even | ~imbalanced].max() / scale, 0.02),
        ),
        ours(
            "Eqs. 13-15 with the right last term are the library's solution: largest gap",
            at_most(data.mended_gap.max(), 1e-8),
        ),
        ours(
            "λ = 0 and the wrong sign of the determinant: the flow ends at loss s²/2 of the weakest mode, relative gap",
            at_most(abs(data.stuck_theory[-1] / saddle - 1), 1e-4),
        ),
        ours(
            "… and descent escapes later for every halving of lr: delay / (ln 2 / s)",
            between(delay[-1], 0.85, 1.15),
        ),
        ours(
            "… and networks with λ = ±5 do not stay there: largest final loss / (s²/2)",
            at_most(data.free_loss.max() / saddle, 1e-4),
        ),
        ours(
            "The gap grows in proportion to |λ|: exponent between the two largest λ, at the finest rate",
            between(growth, 0.8, 1.2),
        ),
    ]


def figure(result: Result) -> Figure:
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
        colour, label = COLOURS[number], f"lr = {rate:g}"
        lams.loglog(data.balance * rate, data.steep_gap[:, number], "o-", color=colour, ms=4, label=label)
    lams.set(xlabel="lr × λ", ylabel="largest gap of the map", title="the gap depends on lr × λ")
    lams.legend(loc="lower right")
    for axis in (rates.xaxis, rates.yaxis, lams.xaxis, lams.yaxis):
        axis.set_minor_formatter("")
    _draw_printed(printed, data)
    _draw_stuck(stuck, data)
    _draw_gaps(rest, data)
    return sheet


def _draw_printed(axes: Axes, data: Dataset) -> None:
    """The loss of the run for which eq. 15 as printed is most wrong."""
    run = data.sel(run=data.attrs["printed_run"])
    trained(axes, data.time, run.loss_training, colour=COLOURS[0])
    predicted(axes, data.time, run.loss_theory, colour=COLOURS[0])
    axes.plot(data.time, data.eq15_mended, ":", color=COLOURS[2], lw=2.5, label="eqs. 13-15, last term corrected")
    axes.plot(data.time, data.eq15_printed, color=COLOURS[1], lw=1.5, label="eqs. 13-15 as printed")
    last = float(data.time[np.isfinite(data.eq15_mended.values)].max())
    axes.set(xlabel=TIME, ylabel="loss", title=f"{data.attrs['printed_run']}: eq. 15")
    axes.set(xlim=(0, 2 * last), ylim=(0, 1.25 * float(run.loss_training.max())))
    axes.legend(loc="upper right", fontsize=8)


def _draw_stuck(axes: Axes, data: Dataset) -> None:
    """The square network that starts with the wrong sign of the determinant: descent escapes from the saddle."""
    for number, rate in enumerate(data.rate.values):
        colour, label = COLOURS[number], f"training, lr = {rate:g}"
        trained(axes, data.long_time, data.stuck_training[number], colour=colour, label=label)
    predicted(axes, data.long_time, data.stuck_theory, colour="#000000", label="theory")
    saddle = data.attrs["weakest"] ** 2 / 2
    axes.axhline(saddle, color="0.6", lw=0.8, zorder=0)
    low = saddle * 1e-3
    over = data.long_time[(data.stuck_training < low).any("rate").values]
    last = 1.3 * float(over[0]) if len(over) else float(data.long_time[-1])
    axes.set(xlabel=TIME, ylabel="loss", title="λ = 0, wrong sign of the determinant", yscale="log")
    axes.set(xlim=(0, last), ylim=(low, 2 * float(data.stuck_theory[0])))
    axes.legend(loc="lower left", fontsize=8)


def _shape_number(data: Dataset, number: int) -> int:
    """Which of the shapes a run has, in the order of first appearance."""
    shapes = [str(label).split(",")[0] for label in data.run.values]
    return list(dict.fromkeys(shapes)).index(shapes[number])


def _draw_losses(axes: Axes, data: Dataset) -> None:
    """Loss of every run, relative to its start; one colour per shape."""
    labelled = set()
    for number, label in enumerate(data.run.values):
        shape, colour = str(label).split(",")[0], COLOURS[_shape_number(data, number) % len(COLOURS)]
        first = float(data.loss_training[number, 0])
        trained(axes, data.time[1:], data.loss_training[number, 1:] / first, colour=colour)
        predicted(axes, data.time[1:], data.loss_theory[number, 1:] / first, colour=colour)
        if shape not in labelled:
            axes.plot([], [], color=colour, lw=3, label=shape)
        labelled.add(shape)
    axes.set(xlabel=TIME, ylabel="loss / first loss", title="every shape and λ", xscale="log")
    axes.add_artist(axes.legend(loc="upper right", fontsize=7.5, title="N_i-N_h-N_o", title_fontsize=7.5))
    legend_of_kinds(axes, loc="lower left", fontsize=8)


def _draw_gaps(axes: Axes, data: Dataset) -> None:
    """How far eq. 15, as printed and as mended, is off, run by run."""
    place, floor = np.arange(data.sizes["run"]), 1e-16
    for values, marker, colour, label in (
        (data.printed_gap, "s", COLOURS[1], "as printed − training"),
        (data.gap[:, -1], "o", COLOURS[0], "theory − training"),
        (data.mended_gap, "^", COLOURS[2], "corrected − theory"),
    ):
        face = "none" if marker == "o" else colour
        axes.plot(np.maximum(values, floor), place, marker, color=colour, ms=5, mfc=face, label=label)
    axes.set_yticks(place, [str(label) for label in data.run.values], fontsize=7)
    axes.set(xscale="log", xlabel="largest gap of the map", title="eq. 15, run by run")
    axes.invert_yaxis()
    axes.legend(loc="center", bbox_to_anchor=(0.45, 0.5), fontsize=7)
