"""Under gradient flow a balanced two-layer linear network that has learned a task never learns the reverse of it.

The task Σ turns into −Σ. A shallow network relearns at once. With two balanced layers the learned weights have no
component along the reversed modes: each mode decays as −s e^(−2st)/(2 − e^(−2st)) to the saddle at zero, and the flow
stays there for ever. Any departure from these conditions frees the network, after a time that grows with the logarithm
of how small the departure is:

- Noise ε on the weights frees mode s at ln(1/ε)/s.
- A finite learning rate frees it at ln(1/lr)/s, in float32 as in float64, since descent breaks the balance a little
  while it learns the first task. This, and not rounding, frees simulations like that of the paper.
- Learning the first task for a finite time T only leaves a trace of the other solution. The trace frees mode k after
  T (s_k + s_(N+1−k))/s_k for large T, and the closed form predicts it exactly.
- λ ≠ 0 frees the network, and the closed form predicts this exactly as well.
- Rounding frees it if the first task has been learned to the end. The time depends on the precision and predicts
  nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from .. import Setup, Trajectory, inits, nets, rules, solve, tasks
from .._figures.style import COLOURS, TIME, legend_of_kinds, new_figure, predicted, trained
from .._formulas.curves import crossing
from .._foundation.arrays import Weights
from .._foundation.checks import positive, whole
from .._foundation.errors import BadInput
from ._kit import time_grids
from ._kit.reversal_panels import PRECISIONS, draw_law, draw_stuck
from ._kit.reversed_task import ReversedTask
from ._kit.training import simulate
from .base import Claim, Result, at_least, at_most, between, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEME, PLACE = "sequences", 2
REFERENCE = {"braun2022": "figure 6: reversal learning", "saxe_slides": "“Reversal learning”"}
QUICK = dict(hidden=4, starts=2, points=401, noises=(1e-2, 1e-4, 1e-6))
HALVINGS = (1, 2, 4)
RECORDS = 20  # of the first task
# The time T of brief learning in units of 1/s of the slowest mode. It is so short that what it leaves undone is far
# larger than the imbalance that the learning rate makes.
SHORT = 0.5


def run(
    *,
    singular_values: Sequence[float] = (1.4, 1.0, 0.75, 0.45),
    hidden: int = 6,
    samples: int = 16,
    scale: float = 0.25,
    lr: float = 0.05,
    until: float = 80.0,
    points: int = 801,
    noises: Sequence[float] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6),
    rates: Sequence[float] = (0.1, 0.05, 0.025, 0.0125, 0.00625),
    lams: Sequence[float] = (0.01, 0.1, 1.0),
    learned_for: Sequence[float] = (6.0, 8.0, 10.0, 12.0),
    starts: int = 4,
    seed: int = 0,
) -> Result:
    """`starts`: how many learned weights are reversed; `noises`, `rates`, `lams` and `learned_for`: what frees them."""
    hidden, points, starts = whole(hidden, "hidden"), whole(points, "points", least=10), whole(starts, "starts")
    lr, until = positive(lr, "lr"), positive(until, "until")
    values = np.sort(np.array([positive(s, "singular_values") for s in singular_values]))[::-1]
    if hidden < len(values):
        raise BadInput(f"hidden = {hidden}", f"at least {len(values)}, one for each mode", "widen the net")
    net, random = nets.DeepLinear(hidden), inits.ZeroBalanced(positive(scale, "scale"))
    reversal = ReversedTask(values, samples, net, random, seed)
    times = time_grids.even(until, points, lr)

    def reversed_from(weights: Weights, net: nets.DeepLinear = net, rate: float = lr) -> Setup:
        return Setup(reversal.after, net, inits.Given(weights), rules.GradientDescent(rate), times=times)

    def in_turn(span: float, rate: float) -> Setup:
        """The first task for a time `span`, then its reverse; the first task has as many records for every span."""
        total = max(round(span / rate), RECORDS)
        steps = np.round(np.linspace(0, total, RECORDS + 1))[:-1]
        sequence = tasks.sequence([reversal.before, reversal.after], [total * rate, until])
        grid = np.concatenate([steps * rate, total * rate + times])
        return Setup(sequence, net, random, rules.GradientDescent(rate), times=grid)

    learned = [reversal.learned(net, seed + k) for k in range(starts)]
    stuck = reversed_from(learned[0])
    theory = solve(stuck, "BalancedRiccati", observe="map")
    rounding = [[_trained(reversed_from(w).replace(precision=p), seed) for w in learned] for p in PRECISIONS]
    shallow = reversed_from([reversal.before.target()], net=nets.DeepLinear(()))
    generator = np.random.default_rng(seed)
    direction = [generator.normal(size=w.shape) for w in learned[0]]
    noisy = [reversed_from([w + e * d for w, d in zip(learned[0], direction, strict=True)]) for e in noises]
    square = nets.DeepLinear(len(values))
    unbalanced = {lam: reversed_from(reversal.learned(square, seed, lam), net=square) for lam in lams}
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
    brief_loss = np.where(early, reversal.loss(brief_maps, reversal.before), reversal.loss(brief_maps))
    brief_runs = [_trained(setup, seed) for setup in briefly]
    import xarray

    def relearned(trajectory: Trajectory, begins: float = 0.0) -> Float[np.ndarray, " mode"]:
        """When each reversed mode reaches half of its target, counted from `begins`."""
        maps = trajectory["map"] if trajectory["map"].ndim == 3 else trajectory["map"][0]
        after = trajectory.times >= begins - 1e-9
        strengths = reversal.strengths(maps[after])
        return crossing(trajectory.times[after] - begins, strengths, values / 2, axis=0)

    data = xarray.Dataset(
        {
            "stuck_modes": (("time", "mode"), reversal.strengths(theory["map"])),
            "stuck_loss": ("time", reversal.loss(theory["map"])),
            "rounding_loss": (
                ("precision", "start", "time"),
                np.stack([[run["loss"][0] for run in runs] for runs in rounding]),
            ),
            "rounding_escape": (
                ("precision", "start"),
                np.array([[_time_below(run, reversal.saddle_loss / 2) for run in runs] for runs in rounding]),
            ),
            "shallow_loss": ("time", simulate(shallow, [seed], ["loss", "map"])["loss"][0]),
            "noise_escape": (("noise", "mode"), np.stack([relearned(_trained(setup, seed)) for setup in noisy])),
            "rate_escape": (
                ("precision", "rate", "mode"),
                np.stack(
                    [[relearned(_trained(s, seed), s.task.starts[1]) for s in setups_of] for setups_of in by_rate]
                ),
            ),
            "span_escape": (
                ("span", "mode"),
                np.stack([relearned(t, s) for t, s in zip(spans, learned_for, strict=True)]),
            ),
            "lam_theory": (("lam", "time"), np.stack([reversal.loss(t["map"]) for t in exact_lams.values()])),
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
            "saddle_loss": reversal.saddle_loss,
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


def _trained(setup: Setup, seed: int) -> Trajectory:
    return simulate(setup, [seed], ["loss", "map"])


def _time_below(trajectory: Trajectory, level: float) -> float:
    """When the loss has fallen to a level, linear between records in the precision of the training."""
    loss, level = trajectory["loss"][0], np.float64(level)
    below = np.flatnonzero(loss <= level)
    if not len(below):
        return np.inf
    after = max(int(below[0]), 1)
    share = loss.dtype.type((loss[after - 1] - level) / (loss[after - 1] - loss[after]))
    return float(trajectory.times[after - 1] + share * (trajectory.times[after] - trajectory.times[after - 1]))


def claims(result: Result) -> list[Claim]:
    data = result.data
    values, times = data.singular_value.values, data.time.values
    faded = np.exp(-2 * np.outer(times, values))
    shallow = float(crossing(times, -data.shallow_loss.values, -data.saddle_loss / 2))
    double, single = (data.rounding_escape.sel(precision=p).values for p in PRECISIONS)
    # Slopes are taken between the two smallest perturbations, which are nearest to the limit.
    by_noise = _last_slope(np.log(1 / data.noise.values), data.noise_escape.values) * values
    by_rate = _last_slope(np.log(1 / data.rate.values), data.rate_escape.values[0])[0] * values[0]
    by_span = _last_slope(data.span.values, data.span_escape.values) * values / (values + values[::-1])
    orders = {name: np.log2(float(data[name][-2]) / float(data[name][-1])) for name in ("lam_error", "brief_error")}
    same = np.abs(data.rate_escape[1] / data.rate_escape[0] - 1).values[:, 0]
    return [
        paper(
            f"Number of the {len(values)} modes that theory says are never learned",
            at_least(data.attrs["note"].count("(s = "), len(values)),
        ),
        paper(
            "The exact flow ends at the saddle: |loss − ½ Σ s²| at the last time",
            at_most(abs(float(data.stuck_loss[-1]) - data.saddle_loss), 1e-9),
        ),
        ours(
            "… along −s e^(−2st)/(2 − e^(−2st)) in every mode: largest gap",
            at_most(np.abs(data.stuck_modes.values + values * faded / (2 - faded)).max(), 1e-10),
        ),
        paper(
            "Shallow network as a control: time to half of the saddle's loss / its closed form, ½ ln 8",
            between(shallow / (0.5 * np.log(8)), 0.9, 1.1),
        ),
        ours(
            "Escape by rounding depends on the precision: smallest ratio of escape times, float64 / float32",
            at_least((double / single).min(), 1.5),
        ),
        ours("Noise ε frees mode s at ln(1/ε)/s: largest |slope · s − 1|", at_most(np.abs(by_noise - 1).max(), 0.1)),
        ours("A learning rate lr frees the first mode at ln(1/lr)/s: slope · s", between(by_rate, 0.8, 1.2)),
        ours(
            "… and rounding does not: largest relative difference of these times, float32 and float64",
            at_most(same.max(), 0.02),
        ),
        ours(
            "With λ ≠ 0 the network relearns as predicted: order in lr of the gap to descent",
            between(orders["lam_error"], 0.9, 1.1),
        ),
        ours(
            "After brief learning the closed form holds across the reversal: order in lr of the gap to descent",
            between(orders["brief_error"], 0.9, 1.1),
        ),
        ours(
            "After learning for T the closed form escapes at T (s_k + s_(N+1−k))/s_k: "
            "relative gap of the slope, slowest mode",
            at_most(abs(by_span[-1] - 1), 0.02),
        ),
    ]


def _last_slope(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The slope between the last two entries of the first axis."""
    return (y[-1] - y[-2]) / (x[-1] - x[-2])


def figure(result: Result) -> Figure:
    data = result.data
    sheet, axes = new_figure(2, 3)
    (stuck, noise, rate), (brief, span, lam) = axes
    draw_stuck(stuck, data)
    values = data.singular_value.values
    for k, s in enumerate(values):
        colour, label = COLOURS[k % len(COLOURS)], f"s = {s:g}"
        draw_law(noise, data.noise, data.noise_escape[:, k], -1 / s, colour, label, log=True)
        draw_law(rate, data.rate, data.rate_escape[0, :, k], -1 / s, colour, label, log=True)
        rate.plot(data.rate, data.rate_escape[1, :, k], "x", color=colour, ms=7)
        draw_law(span, data.span, data.span_escape[:, k], (s + values[::-1][k]) / s, colour, label)
    when = "time to relearn a mode (τ)"
    noise.set(xlabel="noise ε on the weights", ylabel=when, title="freed by noise: ln(1/ε)/s")
    rate.set(xlabel="learning rate (○ float64, × float32)", ylabel=when, title="freed by the learning rate: ln(1/lr)/s")
    span.set(
        xlabel="first task learned for T (τ)", ylabel=when, title="freed by brief learning: closed form (○), law (–)"
    )
    for panel in (noise, rate, span):
        panel.set_ylim(0, 1.4 * panel.get_ylim()[1])
        panel.legend(loc="upper center", ncols=2)
    trained(brief, data.brief_time, data.brief_training, colour=COLOURS[0])
    predicted(brief, data.brief_time, data.brief_theory, colour=COLOURS[0])
    brief.axvline(data.brief, color="0.85", lw=0.8, zorder=0)
    brief.set(xlabel=TIME, ylabel="loss", title=f"learned for T = {data.brief:.3g}, then reversed")
    brief.set_xlim(0, 6 / values[-1])
    legend_of_kinds(brief)
    for k, value in enumerate(data.lam.values):
        trained(lam, data.time, data.lam_training[k], colour=COLOURS[k], label=f"λ = {value:g}")
        predicted(lam, data.time, data.lam_theory[k], colour=COLOURS[k])
    lam.set(xlabel=TIME, ylabel="loss", title="freed by λ ≠ 0")
    lam.set_xlim(0, 6 / values[-1])
    lam.legend()
    return sheet
