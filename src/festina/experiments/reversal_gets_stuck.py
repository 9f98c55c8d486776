"""Under gradient flow a balanced two-layer linear network that has learned a task never learns the reverse of it.

The task Σ turns into −Σ. A shallow network relearns at once. With two balanced layers the learned weights have no
part in the reversed modes: each mode decays as −s e^(−2st)/(2 − e^(−2st)) to the saddle at zero, and the flow stays
there for ever. Anything that is not in this statement frees the network, after a time that grows with the logarithm
of how small it is:

- noise ε on the weights, at ln(1/ε)/s for the mode s;
- a finite learning rate, since descent breaks the balance a little while it learns the first task: at ln(1/lr)/s,
  in float32 as in float64. This, and not rounding, is what frees simulations like that of the paper;
- learning the first task for a finite time T only. What is then left of the other solution frees mode k after
  T (s_k + s_(N+1−k))/s_k for large T, and the closed form predicts it exactly;
- λ ≠ 0, exactly as well;
- rounding, if the first task has been learned to the end: the time depends on the precision and predicts nothing.
"""

from __future__ import annotations

import numpy as np

from .. import inits, nets, rules, tasks
from .._errors import BadInput
from .._noun import positive, whole
from .._plot import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._report import Claim, Result
from .._setup import Setup
from .._simulate import simulate
from .._solve import solve

REFERENCE = {"braun2022": "figure 6: reversal learning", "saxe_slides": "“Reversal learning”"}
QUICK = dict(hidden=4, starts=2, points=401, noises=(1e-2, 1e-4, 1e-6))
PRECISIONS = ("float64", "float32")
HALVINGS = (1, 2, 4)
RECORDS = 20  # of the first task
SHORT = 0.5  # T in units of 1/s of the slowest mode, so short that its trace is far above that of the learning rate


def run(
    *,
    singular_values=(1.4, 1.0, 0.75, 0.45),
    hidden=6,
    samples=16,
    scale=0.25,
    lr=0.05,
    until=80.0,
    points=801,
    noises=(1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6),
    rates=(0.1, 0.05, 0.025, 0.0125, 0.00625),
    lams=(0.01, 0.1, 1.0),
    learned_for=(6.0, 8.0, 10.0, 12.0),
    starts=4,
    seed=0,
) -> Result:
    hidden, points, starts = whole(hidden, "hidden"), whole(points, "points", least=10), whole(starts, "starts")
    lr, until = positive(lr, "lr"), positive(until, "until")
    values = np.sort(np.array([positive(s, "singular_values") for s in singular_values]))[::-1]
    if hidden < len(values):
        raise BadInput(f"hidden = {hidden}", f"at least {len(values)}, one for each mode", "widen the net")
    net, random = nets.DeepLinear(hidden), inits.ZeroBalanced(positive(scale, "scale"))
    tasks_ = _Reversal(values, samples, net, random, seed)
    times = np.unique(np.round(np.linspace(0, until, points) / lr)) * lr

    def reversed_from(weights, net=net, rate=lr):
        return Setup(tasks_.after, net, inits.Given(weights), rules.GradientDescent(rate), times=times)

    def in_turn(span, rate):
        """The first task for a while, then its reverse; as many records of the first one whatever the time."""
        total = max(round(span / rate), RECORDS)
        steps = np.round(np.linspace(0, total, RECORDS + 1))[:-1]
        sequence = tasks.sequence([tasks_.before, tasks_.after], [total * rate, until])
        grid = np.concatenate([steps * rate, total * rate + times])
        return Setup(sequence, net, random, rules.GradientDescent(rate), times=grid)

    learned = [tasks_.learned(net, seed + k) for k in range(starts)]
    stuck = reversed_from(learned[0])
    theory = solve(stuck, "BalancedRiccati", observe="map")
    rounding = [[_trained(reversed_from(w).replace(precision=p), seed) for w in learned] for p in PRECISIONS]
    shallow = reversed_from([tasks_.before.target()], net=nets.DeepLinear(()))
    generator = np.random.default_rng(seed)
    direction = [generator.normal(size=w.shape) for w in learned[0]]
    noisy = [reversed_from([w + e * d for w, d in zip(learned[0], direction, strict=True)]) for e in noises]
    square = nets.DeepLinear(len(values))
    unbalanced = {lam: reversed_from(tasks_.learned(square, seed, lam), net=square) for lam in lams}
    exact_lams = {lam: solve(setup, "BalancedRiccati", observe="map") for lam, setup in unbalanced.items()}
    halved = [unbalanced[lams[0]].replace(rule=rules.GradientDescent(lr / k)) for k in HALVINGS]
    short = SHORT / values[-1]
    briefly = [in_turn(short, lr / 4).replace(rule=rules.GradientDescent(lr / 4 / k)) for k in HALVINGS]
    exact_briefly = solve(briefly[0], "BalancedRiccati", seed=seed)
    spans = [solve(in_turn(span, lr), "BalancedRiccati", seed=seed) for span in learned_for]
    by_rate = [[in_turn(20 / values[-1], rate).replace(precision=p) for rate in rates] for p in PRECISIONS]
    lam_runs = [_trained(setup, seed)["loss"][0] for setup in unbalanced.values()]
    brief_maps = exact_briefly["map"]
    early = exact_briefly.times < briefly[0].task.starts[1]
    brief_loss = np.where(early, tasks_.loss(brief_maps, tasks_.before), tasks_.loss(brief_maps))
    brief_runs = [_trained(setup, seed) for setup in briefly]
    import xarray

    def relearned(trajectory, begins=0.0):
        maps = trajectory["map"] if trajectory["map"].ndim == 3 else trajectory["map"][0]
        after = trajectory.times >= begins - 1e-9
        strengths = tasks_.strengths(maps[after])
        return _crossing(trajectory.times[after] - begins, strengths, values / 2)

    def half_loss(trajectory):
        return _crossing(trajectory.times, -trajectory["loss"][0][:, None], [-tasks_.saddle_loss / 2])[0]

    data = xarray.Dataset(
        {
            "stuck_modes": (("time", "mode"), tasks_.strengths(theory["map"])),
            "stuck_loss": ("time", tasks_.loss(theory["map"])),
            "rounding_loss": (
                ("precision", "start", "time"),
                np.stack([[run["loss"][0] for run in runs] for runs in rounding]),
            ),
            "rounding_escape": (
                ("precision", "start"),
                np.array([[half_loss(run) for run in runs] for runs in rounding]),
            ),
            "shallow_loss": ("time", simulate(shallow, [seed], ["loss", "map"])["loss"][0]),
            "noise_escape": (("noise", "mode"), np.stack([relearned(_trained(setup, seed)) for setup in noisy])),
            "rate_escape": (
                ("precision", "rate", "mode"),
                np.stack([[relearned(_trained(s, seed), s.task.starts[1]) for s in made] for made in by_rate]),
            ),
            "span_escape": (
                ("span", "mode"),
                np.stack([relearned(t, s) for t, s in zip(spans, learned_for, strict=True)]),
            ),
            "lam_theory": (("lam", "time"), np.stack([tasks_.loss(t["map"]) for t in exact_lams.values()])),
            "lam_training": (("lam", "time"), np.stack(lam_runs)),
            "lam_error": (
                "halving",
                [np.abs(_trained(s, seed)["map"][0] - exact_lams[lams[0]]["map"]).max() / values[0] for s in halved],
            ),
            "brief_theory": ("brief_time", brief_loss),
            "brief_training": ("brief_time", brief_runs[0]["loss"][0]),
            "brief_error": (
                "halving",
                [np.abs(run["map"][0] - brief_maps).max() / values[0] for run in brief_runs],
            ),
            "singular_value": ("mode", values),
        },
        coords={
            "time": times,
            "precision": list(PRECISIONS),
            "noise": list(noises),
            "rate": list(rates),
            "lam": list(lams),
            "span": list(learned_for),
            "brief_time": exact_briefly.times,
        },
        attrs={
            "note": theory.provenance["note"],
            "saddle_loss": tasks_.saddle_loss,
            "brief": float(briefly[0].task.starts[1]),
        },
    )
    setups = {
        "reversed from the learned weights": stuck,
        "shallow": shallow,
        f"λ = {lams[0]:g}": unbalanced[lams[0]],
        "learned briefly": briefly[0],
    }
    theories = {
        "reversed from the learned weights": theory,
        f"λ = {lams[0]:g}": exact_lams[lams[0]],
        "learned briefly": exact_briefly,
    }
    return Result(data, setups, theories)


class _Reversal:
    """A random task of given singular values that the start can learn, and the same with all signs turned."""

    def __init__(self, values, samples, net, init, seed):
        generator = np.random.default_rng(seed)
        size = len(values)
        self.values = values
        self.left, self.right = (np.linalg.qr(generator.normal(size=(size, size)))[0] for _ in range(2))
        x = tasks.regression(d_in=size, d_out=size, samples=samples, seed=seed).x
        first, last = Setup(self._task(x, 1), net, init, times=[0.0]).weights(seed)
        # A balanced start of as many directions as there are modes keeps the sign of its determinant.
        if np.linalg.det(last @ first) * np.linalg.det(self.left) * np.linalg.det(self.right) < 0:
            self.left[:, -1] *= -1
        self.before, self.after = self._task(x, 1), self._task(x, -1)
        self.saddle_loss = float(np.sum(values**2) / 2)

    def _task(self, x, sign):
        return tasks.from_arrays(x, sign * x @ (self.left * self.values @ self.right.T).T)

    def learned(self, net, seed, lam=0.0):
        """Weights that have learned the first task, in a random hidden basis."""
        init = inits.Balanced(lam, self.values, aligned=True) if lam else inits.Aligned(self.values)
        return Setup(self.before, net, init, times=[0.0]).weights(seed)

    def strengths(self, maps):
        """Of the reversed task's modes; (time, mode)."""
        return -np.einsum("om,toi,im->tm", self.left, maps, self.right)

    def loss(self, maps, task=None):
        """Of a task, the reversed one unless told otherwise; (time,)."""
        return np.sum((maps - (task or self.after).target()) ** 2, axis=(1, 2)) / 2


def _trained(setup, seed):
    return simulate(setup, [seed], ["loss", "map"])


def _crossing(times, curves, levels) -> np.ndarray:
    """First time at which each curve passes its level, linear between records; (curve,)."""
    above = curves >= np.asarray(levels)
    after = np.maximum(np.argmax(above, axis=0), 1)
    each = np.arange(curves.shape[1])
    low, high = curves[after - 1, each], curves[after, each]
    share = np.divide(levels - low, high - low, out=np.zeros_like(low), where=high != low)
    return np.where(above.any(axis=0), times[after - 1] + share * (times[after] - times[after - 1]), np.inf)


def claims(result: Result) -> list[Claim]:
    data = result.data
    values, times = data.singular_value.values, data.time.values
    faded = np.exp(-2 * np.outer(times, values))
    shallow = _crossing(times, -data.shallow_loss.values[:, None], [-data.saddle_loss / 2])[0]
    double, single = (data.rounding_escape.sel(precision=p).values for p in PRECISIONS)
    # Steps between neighbours: the smallest perturbations are nearest to the limit.
    by_noise = _last_slope(np.log(1 / data.noise.values), data.noise_escape.values) * values
    by_rate = _last_slope(np.log(1 / data.rate.values), data.rate_escape.values[0])[0] * values[0]
    by_span = _last_slope(data.span.values, data.span_escape.values) * values / (values + values[::-1])
    orders = {name: np.log2(float(data[name][-2]) / float(data[name][-1])) for name in ("lam_error", "brief_error")}
    same = np.abs(data.rate_escape[1] / data.rate_escape[0] - 1).values[:, 0]
    return [
        Claim.at_least(
            f"Modes of {len(values)} that theory says are never learned",
            data.attrs["note"].count("(s = "),
            len(values),
            source="paper",
        ),
        Claim.at_most(
            "Exact flow ends at the saddle: |loss − ½ Σ s²| at the last time",
            abs(float(data.stuck_loss[-1]) - data.saddle_loss),
            1e-9,
            source="paper",
        ),
        Claim.at_most(
            "… along −s e^(−2st)/(2 − e^(−2st)): largest gap",
            np.abs(data.stuck_modes.values + values * faded / (2 - faded)).max(),
            1e-10,
        ),
        Claim.between(
            "Shallow control: time to half the saddle's loss / (½ ln 8), its closed form",
            shallow / (0.5 * np.log(8)),
            0.9,
            1.1,
            source="paper",
        ),
        Claim.at_least(
            "Rounding is no prediction: escape time in float64 / in float32, smallest", (double / single).min(), 1.5
        ),
        Claim.at_most(
            "Noise ε: escape of mode s at ln(1/ε)/s; largest |slope · s − 1|", np.abs(by_noise - 1).max(), 0.1
        ),
        Claim.between("Learning rate: escape of the first mode at ln(1/lr)/s; slope · s", by_rate, 0.8, 1.2),
        Claim.at_most("… and not by rounding: largest relative difference of float32 and float64", same.max(), 0.02),
        Claim.between("λ ≠ 0 relearns, as predicted: order in lr of the gap to descent", orders["lam_error"], 0.9, 1.1),
        Claim.between(
            "Learned briefly: order in lr of the gap to descent, across the reversal", orders["brief_error"], 0.9, 1.1
        ),
        Claim.at_most(
            "Learned for T: closed form escapes at T (s_k + s_(N+1−k))/s_k; relative gap of the slope, slowest mode",
            abs(by_span[-1] - 1),
            0.02,
        ),
    ]


def _last_slope(x, y) -> np.ndarray:
    return (y[-1] - y[-2]) / (x[-1] - x[-2])


def figure(result: Result):
    data = result.data
    sheet, axes = new_figure(2, 3)
    (stuck, noise, rate), (brief, span, lam) = axes
    _draw_stuck(stuck, data)
    values = data.singular_value.values
    for k, s in enumerate(values):
        colour, label = COLOURS[k % len(COLOURS)], f"s = {s:g}"
        _draw_law(noise, data.noise, data.noise_escape[:, k], -1 / s, colour, label, log=True)
        _draw_law(rate, data.rate, data.rate_escape[0, :, k], -1 / s, colour, label, log=True)
        rate.plot(data.rate, data.rate_escape[1, :, k], "x", color=colour, ms=7)
        _draw_law(span, data.span, data.span_escape[:, k], (s + values[::-1][k]) / s, colour, label)
    noise.set(xlabel="noise ε on the weights", ylabel="mode relearned at (τ)", title="freed by noise: ln(1/ε)/s")
    rate.set(
        xlabel="learning rate (○ float64, × float32)",
        ylabel="mode relearned at (τ)",
        title="freed by descent: ln(1/lr)/s",
    )
    span.set(
        xlabel="first task learned for T (τ)",
        ylabel="mode relearned at (τ)",
        title="freed by its past: closed form (○), law (–)",
    )
    for panel in (noise, rate, span):
        panel.set_ylim(0, 1.4 * panel.get_ylim()[1])
        panel.legend(loc="upper center", ncols=2)
    trained(brief, data.brief_time, data.brief_training, colour=COLOURS[0])
    predicted(brief, data.brief_time, data.brief_theory, colour=COLOURS[0])
    brief.axvline(data.brief, color="0.85", lw=0.8, zorder=0)
    brief.set(xlabel=TIME, ylabel="loss", title=f"reversed after T = {data.brief:g}")
    brief.set_xlim(0, 6 / values[-1])
    legend_of_kinds(brief)
    for k, value in enumerate(data.lam.values):
        trained(lam, data.time, data.lam_training[k], colour=COLOURS[k], label=f"λ = {value:g}")
        predicted(lam, data.time, data.lam_theory[k], colour=COLOURS[k])
    lam.set(xlabel=TIME, ylabel="loss", title="freed by λ ≠ 0")
    lam.set_xlim(0, 6 / values[-1])
    lam.legend()
    return sheet


def _draw_law(axes, x, y, slope, colour, label, log=False) -> None:
    """Escape times, and a line of the slope that the law gives through the last of them."""
    axes.plot(x, y, "o", color=colour, ms=5, mfc="none", label=label)
    scale = np.log(x) if log else x
    axes.plot(x, float(y[-1]) + slope * (scale - scale[-1]), color=colour, lw=1)
    if log:
        axes.set_xscale("log")


def _draw_stuck(axes, data) -> None:
    for k, name in enumerate(PRECISIONS):
        trained(axes, data.time, data.rounding_loss[k], colour=COLOURS[k], label=f"trained in {name}")
    trained(axes, data.time, data.shallow_loss, colour=COLOURS[2], label="shallow, trained")
    predicted(axes, data.time, data.stuck_loss, colour=COLOURS[0], label="exact flow")
    axes.set(xlabel=TIME, ylabel="loss of the reversed task", title="learned to the end, then reversed")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right")
