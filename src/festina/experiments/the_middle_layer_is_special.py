"""In a deep network only the middle layer ends at the distance of the two-point theory; others follow a law of depth.

The two-point theory splits a network into an encoder and a decoder, and gives the same final distance whatever the
layer: √(κXY), X and Y being the squared distances of two inputs and of their targets. In a balanced chain of L
matrices, l of them in the encoder, the distance tends to

    H∞ = X^(1 − l/L) Y^(l/L)

in place of it; the two agree at l = L/2. So does the law that the theory conserves, a straight line of P/H against H:
it holds half way up, and elsewhere P/H is a power (L − l)/l of H. The law of depth has no free number. It is exact for
balanced chains; from random weights it is reached as they become small, with an error that falls as their square. In
networks with biases, and of points that are not opposite, it is a good guide to which layer keeps the inputs' distances
and which the targets', and no more: a network that also has to learn its mean output is not a balanced chain.

**What does not reproduce.** That the final distance of the theory holds for a layer as for any other: measured as
exponents of |dx| and |dy|, which it predicts to be 1 and 1, it fails everywhere but near the middle.
"""

from __future__ import annotations

import numpy as np

from .. import inits, nets, rules, tasks
from .._noun import positive, whole
from .._plot import COLOURS, new_figure
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from ..theories.two_point import depth_law
from . import _pairs
from ._two_points import row

REFERENCE = {"vanrossem2024": "sections 4.1 and 5, equations 10 and 24"}
QUICK = dict(
    depth=6, layers=5, gain=0.6, lr=0.03, epochs=3000, shallow_units=50, shallow_lr=0.03, shallow_epochs=4000, draws=4
)
OPPOSITE = dict(X=1.0, Y=0.5)  # squared distances of the opposite points
SHORT, WIDTH = 4, 16  # matrices and hidden units of the chains that start at random
SCALES = (0.1, 0.05, 0.025, 0.0125)
GAPS = {"dx": (0.5, 1.0, 1.5), "dy": (0.4, 0.7, 1.0)}
LEVELS = 200
LEARNED = 1e-3  # the loss below which a trial counts
NETWORKS = ("linear", "leaky ReLU")


def run(
    *, depth=8, begin=0.3, draws=8, layers=20, units=50, gain=0.85, lr=0.005, epochs=4000, shallow_units=500,
    shallow_lr=0.02, shallow_epochs=6000, seed=0,
) -> Result:  # fmt: skip
    """`depth` is that of a balanced chain whose weights begin at `begin`; `draws` random chains at every scale.

    `layers`, `units`, `gain` and `lr` are of a deep linear network with biases; the leaky ReLU network of two hidden
    layers has `shallow_units`, and a rate of its own.
    """
    depth, draws, layers = whole(depth, "depth", least=4), whole(draws, "draws"), whole(layers, "layers", least=3)
    epochs, shallow_epochs = whole(epochs, "epochs"), whole(shallow_epochs, "shallow_epochs")
    units, shallow_units = whole(units, "units"), whole(shallow_units, "shallow_units")
    begin, gain = positive(begin, "begin"), positive(gain, "gain")
    lr, shallow_lr = positive(lr, "lr"), positive(shallow_lr, "shallow_lr")
    pair = _opposite(**OPPOSITE)
    seeds = list(range(seed, seed + draws))
    chain = Setup(
        pair,
        nets.DeepLinear((1,) * (depth - 1)),
        inits.Aligned(begin**depth),
        rules.GradientDescent(0.05),
        until=3 / begin ** (depth - 2),
        every=5,
    )
    balanced = simulate(chain, [seed], ["distance", "output_distance"])
    random = {
        scale: Setup(
            pair, nets.DeepLinear((WIDTH,) * (SHORT - 1)), inits.SmallRandom(scale), rules.GradientDescent(0.1),
            times=[60 + 0.5 / scale**2],
        )
        for scale in SCALES
    }  # fmt: skip
    ends = np.stack([simulate(each, seeds, "distance")["distance"][:, -1, :, 0] for each in random.values()])
    shallow = row("shallow", units=shallow_units)
    trained = {
        "linear": (nets.MLP((units,) * layers, "linear", bias=True), gain, lr, epochs),
        "leaky ReLU": (shallow.net(), shallow.gain, shallow_lr, shallow_epochs),
    }
    setups = {"balanced chain": chain, "random chain": random[SCALES[0]]}
    grids = {}
    for name, how in trained.items():
        grids[name] = _grid(how, seed)
        setups[f"{name} network"] = _on_two_points(how, 1.0, 1.0)
    return Result(_labelled(balanced, ends, grids, depth, begin), setups)


def _opposite(X, Y):
    x, y = X**0.5 / 2, Y**0.5 / 2
    return tasks.from_arrays([[-x], [x]], [[-y], [y]])


def _on_two_points(how, dx, dy) -> Setup:
    net, gain, lr, epochs = how
    return _pairs.evenly_recorded(tasks.two_point(dx, dy), net, gain, rules.GradientDescent(lr), epochs, 1)


def _grid(how, seed):
    """Final distances (dx, dy, layer), NaN where a trial has not learned."""
    found = []
    for dx in GAPS["dx"]:
        for dy in GAPS["dy"]:
            # One seed for all: what differs is the task.
            end = simulate(_on_two_points(how, dx, dy), [seed], ["loss", "distance"])
            learned = end["loss"][0, -1] < LEARNED
            found.append(np.where(learned, end["distance"][0, -1, :, 0].astype(float), np.nan))
    return np.reshape(found, (len(GAPS["dx"]), len(GAPS["dy"]), -1))


def _exponents(ends):
    """Slopes of ln H against ln dx and ln dy, (layer, 2), by least squares over the trials that have learned."""
    dx, dy = (grid.ravel() for grid in np.meshgrid(GAPS["dx"], GAPS["dy"], indexing="ij"))
    ends = ends.reshape(len(dx), -1)
    known = np.isfinite(ends).all(axis=1)
    logs = np.stack([np.ones_like(dx), np.log(dx), np.log(dy)], axis=1)[known]
    # In the order in which it is stored, so that sums of what is read back are the same to the last digit.
    return np.ascontiguousarray(np.linalg.lstsq(logs, np.log(ends[known]), rcond=None)[0][1:].T)


def _at_levels(H, P):
    """H (level, layer) and P (level,) at equal steps of the chain's weight P^(1/2L).

    Between records in logarithms: the transition is short.
    """
    weight = P ** (1 / (2 * (H.shape[1] + 1)))
    levels = np.log(np.linspace(weight[0], weight[-1], LEVELS))
    at = lambda values: np.exp(np.interp(levels, np.log(weight), np.log(values)))  # noqa: E731
    return np.stack([at(curve) for curve in H.T], axis=1), at(P)


def _labelled(balanced, ends, grids, depth, begin):
    import xarray

    H, P = _at_levels(balanced["distance"][0, :, :, 0], balanced["output_distance"][0, :, 0])
    chain_law = depth_law(OPPOSITE["X"], OPPOSITE["Y"], np.arange(depth - 1), depth)
    random_law = depth_law(OPPOSITE["X"], OPPOSITE["Y"], np.arange(SHORT - 1), SHORT)
    # From nothing to 1, in equal steps of the weight: the moments of powers of it are known.
    up = np.arange(1, depth)
    both, powers = 1 / (2 * depth + 1), [2 * up, 2 * (depth - up)]
    spread = [1 / (2 * power + 1) - 1 / (power + 1) ** 2 for power in powers]
    from_nothing = (both - 1 / ((powers[0] + 1) * (powers[1] + 1))) ** 2 / (spread[0] * spread[1])
    data = xarray.Dataset(
        {
            "distance": (("level", "chain_layer"), H),
            "output": ("level", P),
            "law": ("chain_layer", chain_law),
            "straightness": ("chain_layer", [_pairs.correlation(curve, P / curve) ** 2 for curve in H.T]),
            "straightness_from_nothing": ("chain_layer", from_nothing),
            "error": (("scale", "seed"), np.abs(ends / random_law - 1).max(axis=2)),
        },
        coords={"chain_layer": np.arange(depth - 1), "scale": list(SCALES), **{k: list(v) for k, v in GAPS.items()}},
        attrs={"depth": depth, "begin": begin, "input_gap": OPPOSITE["X"], "target_gap": OPPOSITE["Y"]},
    )
    for key, name in zip(("linear", "leaky"), NETWORKS, strict=True):
        grid = grids[name]
        axis, size = f"{key}_layer", grid.shape[2] + 1
        share = np.arange(1, size) / size
        data[f"{key}_end"] = (("dx", "dy", axis), grid)
        data[f"{key}_exponent"] = ((axis, "gap"), _exponents(grid))
        data[f"{key}_law"] = ((axis, "gap"), 2 * np.stack([1 - share, share], axis=1))
        data = data.assign_coords({axis: np.arange(size - 1)})
    return data.assign_coords(gap=["dx", "dy"])


def _off(data, key, expected) -> float:
    """Root of the mean squared deviation of measured exponents."""
    return float(np.sqrt(((data[f"{key}_exponent"] - expected) ** 2).mean()))


def claims(result: Result) -> list[Claim]:
    data = result.data
    error = data.error.median("seed").values
    orders = np.log2(error[:-1] / error[1:])
    straight, middle = data.straightness.values, data.attrs["depth"] // 2 - 1
    linear, leaky = (data[f"{key}_exponent"] for key in ("linear", "leaky"))
    learned = min(float(np.isfinite(data[f"{key}_end"]).mean()) for key in ("linear", "leaky"))
    return [
        Claim.at_most(
            "A balanced chain ends at X^(1−l/L) Y^(l/L) in every layer: largest relative gap",
            float(np.abs(data.distance[-1] / data.law - 1).max()), 1e-6,
        ),
        Claim.between(
            "From random weights the law holds as they become small: order of its error in their scale",
            float(orders[-1]), 1.8, 2.2,
        ),
        Claim.at_most(f"… relative error at a scale of {SCALES[-1]:g}", float(error[-1]), 0.01),
        Claim.at_least(
            "P/H is a straight line of H half way up: R² in the middle layer of a chain",
            float(straight[middle]), 0.999, source="paper",
        ),
        Claim.at_least(
            "… and as much so in every layer: least R²", float(straight.min()), 0.99, source="paper",
            expected=False, reason="off the middle P/H is another power of H",
        ),
        Claim.at_most(
            "Exponents of |dx| and |dy| in layers of a linear network: mean deviation from the law of depth",
            _off(data, "linear", data.linear_law), 0.4,
        ),
        Claim.at_least(
            "… the mean deviation from 1 and 1 is larger: by a factor",
            _off(data, "linear", 1.0) / _off(data, "linear", data.linear_law), 1.3,
        ),
        Claim.at_most(
            "The final distance goes as |dx||dy| in every layer: largest deviation of an exponent from 1, linear",
            float(np.abs(linear - 1).max()), 0.3, source="paper",
            expected=False, reason="lower layers keep the distances of inputs, upper ones have those of targets",
        ),
        Claim.at_most(
            "… and in both layers of a leaky ReLU network",
            float(np.abs(leaky - 1).max()), 0.3, source="paper",
            expected=False, reason="of three matrices, one or two are in the encoder: no layer is half way",
        ),
        Claim.at_least(
            "From a layer to the next the exponent of |dy| grows and that of |dx| falls: least step, leaky ReLU",
            float(min(leaky[1, 1] - leaky[0, 1], leaky[0, 0] - leaky[1, 0])), 0.2,
        ),
        Claim.at_least("Share of trials that have learned", learned, 0.75),
    ]  # fmt: skip


def figure(result: Result):
    data = result.data
    depth = data.attrs["depth"]
    sheet, ((ends, lines, straight), (errors, linear, leaky)) = new_figure(2, 3)
    share = (data.chain_layer + 1) / depth
    ends.plot(share, data.distance[-1], "o", color=COLOURS[0], ms=7, mfc="none", label="balanced chain, trained")
    ends.plot(share, data.law, color=COLOURS[0], lw=1.3, ls="--", label="X$^{1-l/L}$ Y$^{l/L}$")
    rich = float(np.sqrt(data.attrs["input_gap"] * data.attrs["target_gap"]))
    ends.axhline(rich, color=COLOURS[1], lw=1.3, ls=":", label="√(XY), equation 10 with κ = 1")
    ends.set(xlabel="l / L", ylabel="final squared distance H", title=f"a chain of {depth} matrices, every layer")
    ends.legend(loc="upper right")
    shown = [0, depth // 2 - 1, depth - 2]
    for number, layer in enumerate(shown):
        H = data.distance[:, layer]
        top = float(data.output[-1] / H[-1])
        lines.plot(H / H[-1], data.output / H / top, color=COLOURS[number], lw=1.5, label=f"l = {layer + 1}")
    lines.set(xlabel="H / its end", ylabel="P/H / its end", title="only half way up P/H is linear in H")
    lines.legend(loc="upper left")
    straight.plot(share, data.straightness, "o-", color=COLOURS[0], label=f"from weights of {data.attrs['begin']:g}")
    straight.plot(share, data.straightness_from_nothing, "--", color="0.3", lw=1.3, label="from nothing, derived")
    straight.set(xlabel="l / L", ylabel="R² of P/H against H", title="how straight", ylim=(0, 1.05))
    straight.legend(loc="lower center")
    errors.plot(data.scale, data.error, "o", color=COLOURS[0], ms=3, mec="none", alpha=0.6)
    middle = data.error.median("seed")
    errors.plot(data.scale, middle, color=COLOURS[0], lw=1.5, label="median")
    errors.plot(data.scale, middle[0] * (data.scale / data.scale[0]) ** 2, "--", color="0.3", lw=1.3, label="scale²")
    errors.set(
        xscale="log", yscale="log", xlabel="scale of random weights", ylabel="largest relative error",
        title="small weights obey the law of depth",
    )  # fmt: skip
    errors.set_xticks(data.scale.values, [f"{scale:g}" for scale in data.scale.values])
    errors.minorticks_off()
    errors.legend(loc="upper left")
    for axes, key, name in ((linear, "linear", "linear"), (leaky, "leaky", "leaky ReLU, two hidden layers")):
        for number, gap in enumerate(data.gap.values):
            found, law = (data[f"{key}_{kind}"].sel(gap=gap) for kind in ("exponent", "law"))
            axes.plot(data[f"{key}_layer"], found, "o", color=COLOURS[number], label=f"of |{gap}|")
            axes.plot(data[f"{key}_layer"], law, "--", color=COLOURS[number], lw=1.3)
        axes.axhline(1.0, color="0.5", lw=1.2, ls=":")
        axes.plot([], [], "--", color="0.3", lw=1.3, label="law of depth")
        axes.plot([], [], ":", color="0.5", lw=1.2, label="equation 10")
        axes.set(xlabel="hidden layer", ylabel="exponent in the final H", title=f"network, {name}")
        axes.set_ylim(min(-0.4, float(data[f"{key}_exponent"].min()) - 0.1), 2.9)
        axes.legend(loc="upper center", ncols=2)
    leaky.set_xticks(data.leaky_layer.values)
    return sheet
