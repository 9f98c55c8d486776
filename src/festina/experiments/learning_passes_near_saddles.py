"""A two-layer network that starts small passes near one saddle of its loss after another, and only near nested ones.

Every subset J of the modes of a task is a critical value of the loss: the network has learned J and nothing else. The
number of directions in which the loss falls there has a formula, checked here against the Hessian of automatic
differentiation. From a small start a the network visits {}, {1}, {1, 2}, … in turn and no other saddle. Its plateaus
are the losses of these, and it comes as near to the k-th as

    distance ~ a^((s_k − s_{k+1})/(s_k + s_{k+1})),

measured over fourteen decades of a on exact solutions, from aligned and from random balanced weights. A random balanced
start is turned so that its determinant has the sign of the target's; otherwise it never finds the last mode.
A shallow network has one critical point, its minimum: its gradient falls all the time, and it passes near none.
"""

from __future__ import annotations

import numpy as np

from .. import _riccati, inits, nets, rules, tasks
from .._errors import BadInput
from .._noun import positive, real_array, whole
from .._plot import COLOURS, TIME, new_figure, predicted, trained
from .._precision import in_double
from .._report import Claim, Result
from .._saddles import saddles
from .._setup import Setup
from .._simulate import simulate
from ..theories.aligned_modes import mode

REFERENCE = {"saxe_slides": "“Depth introduces a hierarchy of saddles”", "baldi1989": "fact 4"}
QUICK = dict(starts=(1e-2, 1e-4, 1e-8), lr=0.01, points=200, fine_points=2000, seeds=2)
SMALL = 1e-8  # exponents are read off at starts up to this one


def run(
    *,
    singular_values=(3.0, 2.0, 1.0),
    hidden=3,
    starts=(1e-2, 1e-4, 1e-6, 1e-8),
    smallest=1e-16,
    until=18.0,
    lr=0.005,
    points=600,
    fine_points=6000,
    seeds=8,
    seed=0,
) -> Result:
    values = real_array(singular_values, "singular_values", ndim=1)
    if len(values) < 2 or np.any(np.diff(values) >= 0) or values[-1] <= 0:
        raise BadInput(f"singular_values = {tuple(values)}", "two or more, falling and positive", "sort them")
    hidden = whole(hidden, "hidden", least=len(values))
    points, fine_points = whole(points, "points", least=2), whole(fine_points, "fine_points", least=2)
    lr, until, smallest = positive(lr, "lr"), positive(until, "until"), positive(smallest, "smallest")
    seeds = whole(seeds, "seeds")
    starts = sorted((positive(start, "starts") for start in starts), reverse=True)
    if smallest > SMALL / 100:
        raise BadInput(f"smallest = {smallest:g}", f"at most {SMALL / 100:g}, for an exponent", "lower it")
    task = tasks.from_moments(np.diag(values), np.eye(len(values)), np.diag(values**2))
    table = saddles(task, hidden)
    times = np.unique(np.round(np.linspace(0, until, points) / lr)) * lr
    aligned = Setup(
        task, nets.DeepLinear(hidden), _along_modes(starts[-1], values, hidden), rules.GradientDescent(lr), times=times
    )
    seen = ["loss", "map", "gradient_norm"]
    draws = list(range(seed, seed + seeds))  # aligned starts are all alike, but one shape is compiled once
    each = [simulate(aligned.replace(init=_along_modes(start, values, hidden)), draws, seen) for start in starts]
    deviation = np.sqrt(2 * starts[-1] / hidden)  # weights of this deviation act like a start of `starts[-1]`
    random = aligned.replace(init=inits.SmallRandom(deviation))
    drawn = simulate(random, draws, seen)
    shallow = aligned.replace(net=nets.DeepLinear(()), init=inits.Given([np.zeros_like(task.cov_x)]))
    flat = simulate(shallow, [seed], seen)
    decades = 10.0 ** -np.arange(2, np.floor(-np.log10(smallest)) + 1)
    fine_times = np.linspace(0, 1.2 * np.log(values[-1] / decades[-1]) / values[-1], fine_points)
    import xarray

    data = xarray.Dataset(
        {
            "saddle_loss": ("saddle", table.losses),
            "saddle_index": ("saddle", table.indices),
            "counted_index": ("saddle", _counted(task, table)),
            "member": (("saddle", "mode"), table.members.astype(int)),
            "nested": ("stage", table.nested()),
            "loss": (("start", "time"), np.stack([run["loss"][0] for run in each])),
            "gradient_norm": (("start", "time"), np.stack([run["gradient_norm"][0] for run in each])),
            "distance": (("start", "time", "saddle"), np.stack([table.distance(run["map"][0]) for run in each])),
            "stated_distance": (
                ("start", "time", "saddle"),
                np.stack([table.distance(_aligned_maps(values, start, times)) for start in starts]),
            ),
            "stated_loss": (
                "time",
                0.5 * np.sum((mode(times, singular_value=values, start=starts[-1]) - values) ** 2, axis=1),
            ),
            "random_loss": (("seed", "time"), drawn["loss"]),
            "random_distance": (("seed", "time", "saddle"), table.distance(drawn["map"])),
            "shallow_loss": ("time", flat["loss"][0]),
            "shallow_gradient_norm": ("time", flat["gradient_norm"][0]),
            "shallow_distance": (("time", "saddle"), table.distance(flat["map"][0])),
            "closest": (
                ("decade", "saddle"),
                np.stack([table.distance(_aligned_maps(values, a, fine_times)).min(axis=0) for a in decades]),
            ),
            "closest_random": (
                ("decade", "saddle"),
                _closest_of_random(task, table, decades, fine_times, seed),
            ),
            "singular_value": ("mode", values),
        },
        coords={"start": starts, "time": times, "decade": decades, "seed": draws},
    )
    setups = {"aligned": aligned, "small random": random, "shallow": shallow}
    return Result(data, setups)


def _along_modes(start, values, hidden):
    """Balanced layers along the modes of a diagonal task; each mode of their product has strength `start`."""
    return inits.Given([np.sqrt(start) * np.eye(hidden, len(values)), np.sqrt(start) * np.eye(len(values), hidden)])


def _aligned_maps(values, start, times):
    """Maps of the exact solution of a diagonal task from an aligned start, (time, feature, input)."""
    return mode(times, singular_value=values, start=start)[:, :, None] * np.eye(len(values))


def _closest_of_random(task, table, decades, times, seed):
    """Closest approach of exact solutions from one random balanced start at many sizes, (decade, saddle)."""
    import jax
    import jax.numpy as jnp

    # Orthonormal columns on both sides of one hidden basis: W₂ᵀW₂ = W₁W₁ᵀ, and every size of it is balanced too.
    rng = np.random.default_rng(seed)
    left, basis, right = (
        np.linalg.qr(rng.normal(size=(n, task.d_in)))[0] for n in (task.d_in, table.hidden, task.d_in)
    )
    if np.linalg.det(left @ right.T) * np.linalg.det(task.cov_yx) < 0:
        left[:, 0] *= -1
    first, last = basis @ right.T, left @ basis.T

    @in_double
    @jax.jit
    def maps(sizes, times, cov_yx, first, last):
        def of(size):
            flow = _riccati.flow(cov_yx, (jnp.sqrt(size) * first, jnp.sqrt(size) * last), 0.0)
            lower, upper = _riccati.weights(flow, _riccati.states(flow, times))
            return upper @ lower

        return jax.vmap(of)(sizes)

    return table.distance(maps(decades, times, task.cov_yx, first, last)).min(axis=1)


def _counted(task, table):
    """Negative eigenvalues of the Hessian of the loss at each saddle, by automatic differentiation."""
    import jax
    import jax.numpy as jnp

    cov_yx = task.cov_yx
    shapes = [w.shape for w in table.weights(0)]
    border = int(np.prod(shapes[0]))

    @in_double
    @jax.jit
    def hessian(flat):
        def loss(flat):
            first, last = flat[:border].reshape(shapes[0]), flat[border:].reshape(shapes[1])
            return 0.5 * jnp.sum((last @ first - cov_yx) ** 2)

        return jax.hessian(loss)(flat)

    points = [np.concatenate([w.ravel() for w in table.weights(k)]) for k in range(len(table))]
    # Flat directions, along the manifold of weights with one function, have curvature 0 up to rounding.
    return [int(np.sum(np.linalg.eigvalsh(hessian(point)) < -1e-9)) for point in points]


def _waits(norms):
    """Records at which the gradient is locally smallest, ends excepted."""
    inner = norms[1:-1]
    return 1 + np.flatnonzero((inner < norms[:-2]) & (inner <= norms[2:]))


def _others(data):
    return np.setdiff1d(np.arange(data.sizes["saddle"]), data.nested.values)


def _passed(data):
    """Positions of the saddles on the way: nested, neither the origin nor the minimum."""
    return data.nested.values[1:-1]


def _exponents(data, name):
    """Slope of log closest approach in log start, for each saddle on the way."""
    small = data.where(data.decade <= SMALL * (1 + 1e-9), drop=True)
    return np.polyfit(np.log(small.decade), np.log(small[name].values[:, _passed(data)]), 1)[0]


def _stated_exponents(data):
    values = data.singular_value.values
    return (values[:-1] - values[1:]) / (values[:-1] + values[1:])


def claims(result: Result) -> list[Claim]:
    data = result.data
    nested, others, passed = data.nested.values, _others(data), _passed(data)
    levels = data.saddle_loss.values[passed]
    smallest = data.isel(start=-1)
    waits = _waits(smallest.gradient_norm.values)
    plateaus = smallest.loss.values[waits]
    # As many plateaus as saddles on the way, or no number at all.
    gap = np.abs(plateaus - levels).max() / data.saddle_loss.max() if len(waits) == len(passed) else np.inf
    seen, stated = (smallest[name].isel(saddle=passed).min("time").values for name in ("distance", "stated_distance"))
    expected = _stated_exponents(data)
    off = {name: np.abs(_exponents(data, name) / expected - 1).max() for name in ("closest", "closest_random")}
    return [
        Claim.at_most(
            "The index of every saddle is the number of falling directions of its Hessian: largest gap",
            float(np.abs(data.saddle_index - data.counted_index).max()),
            0,
        ),
        Claim.at_least(
            "Depth introduces a hierarchy of saddles: smallest fall of the index from nested saddle to nested saddle",
            float(-np.diff(data.counted_index.values[nested]).max()),
            1,
            source="paper",
        ),
        Claim.between(
            "Learning waits at each on its way, smallest start: minima of the gradient, less saddles passed",
            len(waits) - len(passed),
            0,
            0,
            source="paper",
        ),
        Claim.at_most("… at its loss: largest gap / loss of the origin", float(gap), 0.03, source="paper"),
        Claim.at_least(
            "No other saddle is visited, any start: closest approach / smallest singular value",
            float(
                min(data.distance.isel(saddle=others).min(), data.random_distance.isel(saddle=others).min())
                / data.singular_value.min()
            ),
            0.9,
        ),
        Claim.at_most(
            "… while small random weights come near to all nested ones: largest closest approach / same",
            float(data.random_distance.isel(saddle=nested).min("time").max() / data.singular_value.min()),
            0.2,
        ),
        Claim.at_most(
            "Closest approaches of training are those of the closed form: largest relative gap, smallest start",
            float(np.abs(seen / stated - 1).max()),
            0.1,
        ),
        Claim.at_most(
            "Closest approach ~ a^((s_k − s_{k+1})/(s_k + s_{k+1})), aligned: largest relative gap of an exponent",
            float(off["closest"]),
            0.03,
        ),
        Claim.at_most(
            "… and from random balanced weights: largest relative gap of an exponent",
            float(off["closest_random"]),
            0.03,
        ),
        Claim.at_least(
            "A shallow network passes near none of them: closest approach / smallest singular value",
            float(data.shallow_distance.isel(saddle=passed).min() / data.singular_value.min()),
            0.9,
            source="paper",
        ),
        Claim.at_most(
            "… and does not wait: minima of its gradient before the end",
            len(_waits(data.shallow_gradient_norm.values)),
            0,
        ),
    ]


def _names(data):
    """Subsets as texts, modes counted from 1."""
    return ["{" + ", ".join(str(k + 1) for k in np.flatnonzero(row)) + "}" for row in data.member.values]


def figure(result: Result):
    data = result.data
    sheet, ((loss, distance), (scaling, order)) = new_figure(2, 2, width=5.0, height=3.5)
    _draw_losses(loss, data)
    _draw_distances(distance, data)
    _draw_scaling(scaling, data)
    _draw_order(order, data)
    return sheet


def _draw_losses(axes, data):
    for number, start in enumerate(data.start.values):
        trained(axes, data.time, data.loss.isel(start=number), colour=COLOURS[number], label=f"a = {start:g}")
    axes.plot(data.time, data.shallow_loss, color="0.1", lw=1.5, label="shallow")
    predicted(axes, data.time, data.stated_loss, colour=COLOURS[data.sizes["start"] - 1], label="theory")
    names = _names(data)
    for position in data.nested.values:
        axes.axhline(float(data.saddle_loss[position]), color="0.6", lw=0.8, ls=":", zorder=0)
        axes.annotate(
            names[position],
            (1.0, float(data.saddle_loss[position])),
            xycoords=("axes fraction", "data"),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set(xlabel=TIME, ylabel="loss", title="plateaus are losses of saddles")
    axes.legend(loc="upper right")


def _draw_distances(axes, data):
    smallest, names = data.isel(start=-1), _names(data)
    for position in _others(data):
        axes.plot(data.time, smallest.distance.isel(saddle=position), color="0.8", lw=1.5)
    axes.plot([], [], color="0.8", lw=1.5, label="all others")
    for colour, position in zip(COLOURS, data.nested.values, strict=False):
        trained(axes, data.time, smallest.distance.isel(saddle=position), colour=colour, label=names[position])
        predicted(axes, data.time, smallest.stated_distance.isel(saddle=position), colour=colour)
    axes.set(
        xlabel=TIME,
        ylabel="distance of the map",
        yscale="log",
        title=f"one after another, a = {float(smallest.start):g}",
        ylim=(1e-4, 2 * float(smallest.distance.max())),
    )
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))  # beside: curves reach every corner


def _draw_scaling(axes, data):
    names = _names(data)
    for colour, position, exponent in zip(COLOURS[1:], _passed(data), _stated_exponents(data), strict=False):
        axes.plot(
            data.decade,
            data.closest.isel(saddle=position),
            "o",
            color=colour,
            ms=5,
            label=f"{names[position]}, aligned",
        )
        axes.plot(
            data.decade, data.closest_random.isel(saddle=position), "s", mfc="none", color=colour, ms=5, label="random"
        )
        axes.plot(data.start, data.distance.isel(saddle=position).min("time"), "x", color="0.1", ms=7, zorder=4)
        line = float(data.closest.isel(saddle=position, decade=-1)) * (data.decade / data.decade[-1]) ** exponent
        predicted(axes, data.decade, line, colour=colour, label=f"a^{exponent:.3g}")
    axes.plot([], [], "x", color="0.1", ms=7, label="training")
    axes.set(
        xlabel="start a", ylabel="closest approach", xscale="log", yscale="log", title="smaller starts come nearer"
    )
    axes.legend(loc="lower right", fontsize=7.5)


def _draw_order(axes, data):
    names, nested = _names(data), data.nested.values
    axes.plot(data.saddle_index, data.saddle_loss, "o", color="0.6", ms=5)
    axes.plot(data.saddle_index[nested], data.saddle_loss[nested], "o-", color=COLOURS[0], ms=6, label="visited")
    for position, name in enumerate(names):
        where = float(data.saddle_index[position]), float(data.saddle_loss[position])
        # Beside the path of the visited ones, above the others.
        shift, side = ((9, -9), "left") if position in nested else ((0, 7), "center")
        axes.annotate(name, where, shift, textcoords="offset points", ha=side, fontsize=8)
    axes.margins(0.12, 0.15)
    axes.set(xlabel="index (falling directions)", ylabel="loss", title="all critical values")
    axes.legend(loc="upper left")
