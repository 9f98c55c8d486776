"""Other gates than those of the twin of a ReLU network learn faster than it, and faster than the network.

A common pathway beside ones for two contexts each has nearly the loss of a ReLU network on items in contexts (see
`context_dependent_processing`). Here it races other gatings of equally many units, from the same law of weights and at
the same rate: pathways for one context, for one and two, for single points, for items, for random samples, with gates
that units with random weights make (see `which_gates_can_a_unit_make`), and without a common pathway. Those by context
see the items only, as in the source; the others, like ReLU units, see all inputs.

Speed is not one number. What the common pathway leaves has for two contexts the largest singular value, and the least;
single points have nearly equal ones:

    time to learn a mode ~ 1/s:    two contexts are earlier at a tenth of the loss, single points at a hundredth

Without a common pathway single points learn nothing for long and then all at once, by the closed form of one mode for
each, with nothing fitted, and are the first of all to a hundredth. That taking inputs, outputs or (where all numbers
are positive) samples away cannot raise the first singular value is right; it decides the first mode only.

Pathways are trained as one layer of units with given gates, compiled once for all gatings; from the same weights it is
the same network as `nets.Gated`.

**What does not reproduce.** Proposition 4.2 says that pathways for two contexts have a lower loss than all other gates,
at all times. Single points, which lemma 4.1 leaves open, are earlier at 1 % of the loss if they see all inputs (and not
if they see the items only). 24 gates of random units, which see all inputs, are earlier at 10 and 1 % than two contexts
that see them too (at 50 % about as early), and than the ReLU network, which so does not find the fastest gates. The
proof compares first singular values, and where samples are taken away needs positive numbers: what the common pathway
leaves has both signs. Nor can gates by item be ruled out: with context inputs they solve the task. `race` tells the
order of the strongest modes, which is that at 10 % and not that at 1 %.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import inits, nets, rules, tasks
from .._contest import race
from .._noun import noun, positive, static, whole
from .._plot import COLOURS, new_figure, predicted, trained
from .._report import Claim, Result
from .._setup import Net, Setup, Task
from .._simulate import simulate
from ..gates.comparing import compare, largest_distance, times_to
from ..gates.feasible import implementable
from ..theories.aligned_modes import mode
from ..theories.disjoint_pathways import effective_start
from . import _contexts
from ._contexts import EPOCHS, RATE

REFERENCE = {"jarvis2025": "proposition 4.2, appendix E"}
QUICK = dict(lr=0.01, epochs=9000, every=50, seeds=1, draws=1, thorough=False)
CONTEXTS, ITEMS = 3, 8
SAMPLES = CONTEXTS * ITEMS
TWIN, POINTS, MADE, SCATTERED = "two contexts", "single points", "random units", "random samples"
APART, MATCHED = f"{POINTS}, no common", f"{TWIN}, all inputs"
FRACTIONS = (0.5, 0.1, 0.01)
TAKEN = ("an input", "an output", "a sample,\npositive data", "a sample,\nsigned data")
TRIALS, SHAPE = 2000, (20, 8, 12)  # samples, inputs and outputs of random data


@noun
class _Switched(Net):
    """Two linear layers whose units have given gates (sample, unit), and see given inputs (unit, input)."""

    on: Any
    sees: Any
    units: int = static()

    @property
    def hidden(self) -> tuple[int, ...]:
        return (self.units,)

    def shapes(self, d_in, d_out):
        return (self.units, d_in), (d_out, self.units)

    def apply(self, weights, x):
        return (self.on * (x @ (self.sees * weights[0]).T)) @ weights[1].T


def run(
    *, common=100, others=300, hidden=700, scale=0.005 / 700, small=1e-6, lr=RATE, epochs=12000, every=20, seeds=2,
    draws=3, thorough=True, seed=0,
) -> Result:  # fmt: skip
    """`common`: units of the common pathway; `others`: those of all others together; without a common one these have
    all. `draws`: of random units. `thorough`: with all gatings, and with predictions by `race`."""
    common, others, every = whole(common, "common"), whole(others, "others", least=SAMPLES), whole(every, "every")
    seeds, draws = whole(seeds, "seeds"), whole(draws, "draws")
    task, starts = tasks.contextual(ITEMS, CONTEXTS), list(range(seed, seed + seeds))
    rate = positive(lr, "lr") * SAMPLES
    shown = np.arange(0, whole(epochs, "epochs", least=every) + 1, every)
    listed = _candidates(task, draws, seed, thorough)

    def setup(net, sd=scale):
        return Setup(task, net, inits.SmallRandom(sd), rules.GradientDescent(rate), times=shown * RATE * SAMPLES)

    made = {name: _switched(*parts, (common, others)) for name, parts in listed.items()}
    relu = setup(nets.MLP(hidden))
    free = simulate(relu, starts, "loss")
    seen = {name: simulate(setup(net), starts, "loss") for name, net in made.items()}
    later = {name: simulate(setup(made[name], small), starts, "loss") for name in (TWIN, POINTS)}
    gated = setup(nets.Gated.pathways(_pathways(listed[TWIN], common, others)))
    graph = simulate(gated.replace(init=_as_graph(setup(made[TWIN]).weights(seed), gated.net)), [seed], "loss")
    near = compare(free, seen, fractions=FRACTIONS)
    residual = _contexts.left_by_linear(task)
    gates = np.unique(np.concatenate([parts[0] for name, parts in listed.items() if name != SCATTERED]), axis=0)
    import xarray

    data = xarray.Dataset(
        {
            "loss": (("candidate", "seed", "time"), np.stack([one["loss"] for one in seen.values()])),
            "relu_loss": (("seed", "time"), free["loss"]),
            "small_loss": (("raced", "seed", "time"), np.stack([one["loss"] for one in later.values()])),
            "graph_loss": ("time", graph["loss"][0]),
            "floor": ("candidate", [_floor(task, net) / free["loss"][0, 0] for net in made.values()]),
            "epochs_to": near.time_to / (RATE * SAMPLES),
            "relu_epochs_to": near.reference_time_to / (RATE * SAMPLES),
            "distance": near.raw_mean,
            "two_contexts": (("subset", "mode"), _contexts.strengths(residual, 2, CONTEXTS, ITEMS)),
            "points": ("sample", np.linalg.norm(residual.y, axis=1) * np.linalg.norm(task.x, axis=1) / SAMPLES),
            "predicted_loss": ("time", _one_mode_each(task, relu.times, (common + others) // SAMPLES, scale, rate)),
            "raised": ("taken", _raised(np.random.default_rng(seed))),
            "impossible": ((), sum(not implementable(gate, task) for gate in gates)),
        },
        coords={
            "candidate": list(listed), "seed": starts, "time": relu.times, "epoch": ("time", shown),
            "raced": list(later), "taken": list(TAKEN), "fraction": list(FRACTIONS),
        },
        attrs={"scale": scale, "small": small, "common": common, "others": others, "hidden": hidden},
    )  # fmt: skip
    if thorough:
        pathways = {name: _pathways(listed[name], common, others) for name in (TWIN, "one context", POINTS)}
        # The times of single pathways need no curve: it may end at once.
        table = race(task, pathways, scale=scale, lr=rate, until=rate, check=False)
        slowest = [float(table.pathway_time[table.of.values == name].max()) for name in pathways]
        data["predicted_epochs"] = ("foretold", np.array(slowest) / (RATE * SAMPLES))
        data.coords["foretold"] = list(pathways)
    return Result(data, {"ReLU": relu, f"common and {TWIN}": gated})


def _candidates(task: Task, draws: int, seed: int, thorough: bool) -> dict[str, tuple[np.ndarray, bool, bool]]:
    """Gates (pathway, sample) of every gating, whether they see all inputs, and whether a common pathway is there."""
    context, item = (np.asarray(task.labels[name]) for name in ("context", "item"))
    one = np.array([context == k for k in range(CONTEXTS)])
    items = np.array([item == k for k in range(ITEMS)])
    points = np.eye(SAMPLES, dtype=bool)
    rng = np.random.default_rng(seed)
    found = {
        TWIN: (~one, False, True),
        MATCHED: (~one, True, True),
        "one context": (one, False, True),
        "single points, items only": (points, False, True),
        POINTS: (points, True, True),
        "items": (items, True, True),
    }
    if thorough:
        found |= {
            "one and two contexts": (np.concatenate([one, ~one]), False, True),
            SCATTERED: (rng.permuted(~one, axis=1), False, True),
        }
    for k in range(draws):
        by_units = task.x @ rng.normal(size=(task.d_in, SAMPLES)) > 0
        found[MADE if k == 0 else f"{MADE}, draw {k + 1}"] = (by_units.T[by_units.any(axis=0)], True, True)
    alone = {name: (found[name][0], True, False) for name in (POINTS, MADE)}
    if thorough:
        alone |= {name: (found[name][0], True, False) for name in (TWIN, "one context", "items")}
    return found | {f"{name}, no common": parts for name, parts in alone.items()}


def _widths(gates: np.ndarray, common: bool, widths: tuple[int, int]) -> list[int]:
    """Units of the common pathway, if there is one, and of every other: as equal as can be."""
    shared = widths[1] if common else sum(widths)
    return [widths[0]] * common + [len(part) for part in np.array_split(np.arange(shared), len(gates))]


def _switched(gates: np.ndarray, sees_context: bool, common: bool, widths: tuple[int, int]) -> _Switched:
    every = np.concatenate([np.ones((int(common), SAMPLES)), gates])
    units = _widths(gates, common, widths)
    sees = np.ones((len(every), ITEMS + CONTEXTS))
    if not sees_context:
        sees[int(common) :, ITEMS:] = 0
    return _Switched(np.repeat(every, units, axis=0).T, np.repeat(sees, units, axis=0), sum(widths))


def _pathways(parts: tuple[np.ndarray, bool, bool], common: int, others: int) -> list[dict[str, Any]]:
    """The same as a list for `nets.Gated.pathways`, with a common pathway."""
    gates, sees_context, _ = parts
    sees = None if sees_context else tuple(range(ITEMS))
    widths = _widths(gates, True, (common, others))[1:]
    listed = [{"on": gate.astype(float), "sees": sees, "width": n} for gate, n in zip(gates, widths, strict=True)]
    return [{"name": "common", "width": common}, *listed]


def _as_graph(weights: Any, net: nets.Gated) -> inits.Given:
    """Weights of a common pathway and of others that see the items, edge by edge, in the order of `nets.Gated`."""
    ends = np.cumsum(net.hidden)[:-1]
    into, out = np.split(np.asarray(weights[0]), ends), np.split(np.asarray(weights[1]), ends, axis=1)
    into[1:] = [layer[:, :ITEMS] for layer in into[1:]]
    return inits.Given([layer for pair in zip(into, out, strict=True) for layer in pair])


def _floor(task: Task, net: _Switched) -> float:
    """The least loss of any weights: that of the best linear map of gated inputs."""
    kinds = np.unique(np.concatenate([net.on.T, net.sees], axis=1), axis=0)
    z = np.concatenate([kind[:SAMPLES, None] * task.x * kind[SAMPLES:] for kind in kinds], axis=1)
    left = task.y - z @ np.linalg.lstsq(z, task.y, rcond=None)[0]
    return 0.5 * float(np.mean(np.sum(left**2, axis=1)))


def _one_mode_each(task: Task, times: Any, units: int, scale: float, rate: float) -> np.ndarray:
    """The loss of a pathway for each point and nothing else: each has one mode; a step slows s to ln(1 + lr s)/lr."""
    x, y = np.linalg.norm(task.x, axis=1), np.linalg.norm(task.y, axis=1)
    s, d = x * y / SAMPLES, x**2 / SAMPLES
    slowed = np.log1p(rate * s) / rate
    learned = mode(times, singular_value=slowed, variance=d * slowed / s, start=effective_start(units, scale)) * d / s
    return 0.5 * np.mean((y * (1 - learned)) ** 2, axis=-1)


def _raised(rng: np.random.Generator) -> np.ndarray:
    """How often Σʸˣ of random data has a larger first singular value once an input, output or sample is taken away."""
    n, d_in, d_out = SHAPE
    x, y = rng.normal(size=(TRIALS, n, d_in)), rng.normal(size=(TRIALS, n, d_out))

    def first(x, y):
        return np.linalg.svd(np.swapaxes(y, 1, 2) @ x, compute_uv=False)[:, 0]

    def more(x, y, *less):
        return np.mean(first(*less) > first(x, y) * (1 + 1e-12))

    size = np.abs(x), np.abs(y)
    return np.array([
        more(x, y, x[..., 1:], y),
        more(x, y, x, y[..., 1:]),
        more(*size, *(part[:, 1:] for part in size)),
        more(x, y, x[:, 1:], y[:, 1:]),
    ])  # fmt: skip


def claims(result: Result) -> list[Claim]:
    data = result.data
    epochs, first = data.epoch.values, data.relu_loss[:, 0].mean().item()
    rows = zip(data.candidate.values, data.epochs_to.values, strict=True)
    when = {str(name): dict(zip(FRACTIONS, row, strict=True)) for name, row in rows}
    relu = dict(zip(FRACTIONS, data.relu_epochs_to.values, strict=True))
    ahead = (data.loss.sel(candidate=TWIN) - data.loss).mean("seed").max("time").drop_sel(candidate=TWIN) / first
    leader, earlier = str(ahead.candidate.values[np.argmax(ahead.values)]), int((ahead > 1e-3).sum())
    late = {name: times_to(epochs, data.small_loss.sel(raced=name).values, 0.01).mean() for name in (TWIN, POINTS)}
    made = [name for name in when if name.startswith(MADE) and "no common" not in name]
    twin_of_relu = float(data.distance.sel(candidate=TWIN))
    others = [name for name in when if name not in (TWIN, MATCHED)]
    made_over = {f: [when[name][f] / when[MATCHED][f] for name in made] for f in FRACTIONS}
    closer = sum(float(data.distance.sel(candidate=name)) < twin_of_relu for name in others)
    live = data.two_contexts.values[data.two_contexts.values > 1e-9]
    foretold = times_to(epochs, data.predicted_loss.values, 0.01)
    winner = min(when, key=lambda name: when[name][0.01])
    found = [
        Claim.at_most(
            f"Pathways for two contexts have a lower loss than all others at all times (proposition 4.2): largest lead "
            f"of another / first loss ({leader}; {earlier} of {ahead.size} lead by more than 0.1 % at some time)",
            float(ahead.max()), 0.0, source="paper",
            expected=False, reason="the proof compares first singular values; the losses of most gatings cross",
        ),
        Claim.at_most(
            f"A pathway for each point is earlier at 1 %: epochs ({when[POINTS][0.01]:.0f}) over those of two contexts "
            f"({when[TWIN][0.01]:.0f}, with all inputs {when[MATCHED][0.01]:.0f}; ReLU {relu[0.01]:.0f})",
            when[POINTS][0.01] / min(when[TWIN][0.01], when[MATCHED][0.01]), 0.9,
        ),
        Claim.at_least(
            f"… though later at 10 %: epochs ({when[POINTS][0.1]:.0f}) over those of two contexts "
            f"({when[TWIN][0.1]:.0f})", when[POINTS][0.1] / when[TWIN][0.1], 1.3,
        ),
        Claim.at_most(
            f"… and also from starts of {data.attrs['small']:.1g}: epochs to 1 % ({late[POINTS]:.0f}) over those of "
            f"two contexts ({late[TWIN]:.0f})", late[POINTS] / late[TWIN], 0.9,
        ),
        Claim.at_least(
            "… not if it sees items only: ratio at 1 %", when[f"{POINTS}, items only"][0.01] / when[TWIN][0.01], 1.1,
        ),
        Claim.at_most(
            "Gates of random units are earlier at 10 and 1 % than two contexts that also see all inputs: largest ratio "
            f"of epochs ({when[MATCHED][0.1]:.0f} and {when[MATCHED][0.01]:.0f})",
            max(made_over[0.1] + made_over[0.01]), 0.9,
        ),
        Claim.at_most(
            f"… and at 50 % ({when[MATCHED][0.5]:.0f}) both are about as early: largest difference, relative",
            max(abs(ratio - 1) for ratio in made_over[0.5]), 0.15,
        ),
        Claim.at_least(
            "The ReLU network finds the gates that win the race: fewest epochs to 1 % of all gatings over its own "
            f"({winner})", when[winner][0.01] / relu[0.01], 0.97, source="paper",
            expected=False, reason="several gatings are earlier; networks take what is fastest at first",
        ),
        Claim.at_least(
            "… those of random units beside a common pathway are: epochs of ReLU over theirs, least at 10 and 1 %",
            min(relu[f] / when[name][f] for name in made for f in (0.1, 0.01)), 1.1,
        ),
        Claim.at_most(
            f"Two contexts come nearest to the loss of ReLU, {twin_of_relu:.3f} of the first in the mean over time: of "
            f"{len(others)} gatings with other gates than two contexts, which with all inputs have "
            f"{float(data.distance.sel(candidate=MATCHED)):.3f}, how many are nearer", closer, 0, source="paper",
        ),
        Claim.at_most(
            "Single points alone learn by one mode each, with nothing fitted: relative gap of epochs to 1 %",
            abs(foretold / when[APART][0.01] - 1), 0.03,
        ),
        Claim(
            "On what the common pathway leaves, two contexts have the largest singular value and the least: "
            "least … largest", f"{live.min():.4f} … {live.max():.4f}",
            f"outside {float(data.points.min()):.4f} … {float(data.points.max()):.4f} of single points",
            bool(live.min() < data.points.min() and live.max() > data.points.max()),
        ),
        Claim.at_most(
            "Gates by item with context inputs solve the task: least loss possible / first",
            float(data.floor.sel(candidate="items")), 1e-12,
        ),
        Claim.at_most(
            f"Taking an input or an output away never raises s₁: cases in {TRIALS} (random data)",
            float(data.raised[:2].max()) * TRIALS, 0, source="paper",
        ),
        Claim.at_most(
            "… nor does taking a sample away if all numbers are positive: cases",
            float(data.raised[2]) * TRIALS, 0, source="paper",
        ),
        Claim.between("… but with both signs it does: share of cases", float(data.raised[3]), 0.25, 0.45),
        Claim.at_most(
            "All gates but random samples are such as one unit can make: how many are not", int(data.impossible), 0,
        ),
        Claim.at_most(
            "One layer of gated units trains as nets.Gated: largest distance / first loss",
            largest_distance(data.loss.sel(candidate=TWIN)[:1].values, data.graph_loss.values[None]), 1e-9,
        ),
    ]  # fmt: skip
    return found + (_foretold_claims(data, when) if "predicted_epochs" in data else [])


def _foretold_claims(data, when) -> list[Claim]:
    """Order of candidates by the slowest pathway's strongest mode, as `race` has it, and as trained."""
    names = [str(name) for name in data.foretold.values]
    order = [names[k] for k in np.argsort(data.predicted_epochs.values)]
    seen = {f: sorted(names, key=lambda name: when[name][f]) for f in (0.1, 0.01)}
    return [
        Claim(
            "`race` foretells who is first to 10 %: order as trained", " < ".join(seen[0.1]), " < ".join(order),
            seen[0.1] == order,
        ),
        Claim(
            "… and not to 1 %, which the weakest modes decide: order as trained", " < ".join(seen[0.01]),
            "not " + " < ".join(order), seen[0.01] != order,
        ),
    ]  # fmt: skip


def figure(result: Result):
    data = result.data
    sheet, ((losses, times), (values, taken)) = new_figure(2, 2, width=5.6, height=3.7)
    one, first = data.isel(seed=0), float(data.relu_loss[0, 0])
    trained(losses, data.epoch, one.relu_loss / first, colour="0.5", label=f"ReLU, {data.attrs['hidden']} units")
    drawn = {TWIN: COLOURS[1], "one context": COLOURS[2], POINTS: COLOURS[0], MADE: COLOURS[3], APART: COLOURS[4]}
    for name, colour in drawn.items():
        losses.plot(data.epoch, one.loss.sel(candidate=name) / first, color=colour, lw=1.6, label=name)
    predicted(losses, data.epoch, data.predicted_loss / first, colour=COLOURS[4], label="… one mode each (theory)")
    losses.set(xlabel=EPOCHS, ylabel="loss / first loss", yscale="log", ylim=(1e-3, 1.5), xlim=(0, 9000))
    losses.set_title("losses of gatings cross")
    losses.legend(loc="upper right", fontsize=8)
    _draw_times(times, data, drawn)
    _draw_values(values, data)
    share = 100 * data.raised.values
    taken.bar(data.taken.values, share, color=[COLOURS[5]] * 3 + [COLOURS[1]], width=0.6)
    for k, high in enumerate(share):
        taken.annotate(f"{high:.3g} %", (k, high), ha="center", va="bottom")
    taken.set(ylabel="raised the first singular value (%)", ylim=(0, 1.2 * share.max()))
    taken.set_title(f"taking away from random data, {TRIALS} cases each")
    return sheet


def _draw_times(axes, data, drawn) -> None:
    """Epochs to each fraction of the loss, one row for each gating, in the order of the last."""
    when = data.epochs_to.values
    order = np.lexsort([when[:, 1], when[:, 2]])[::-1]
    markers = dict(zip(FRACTIONS, ("|", "x", "o"), strict=True))
    for k, (fraction, marker) in enumerate(markers.items()):
        for row, which in enumerate(order):
            colour = drawn.get(str(data.candidate.values[which]), "0.45")
            axes.plot(when[which, k], row, marker, color=colour, ms=5, mew=1.5, ls="none")
        axes.plot([], [], marker, color="0.3", ms=5, mew=1.5, ls="none", label=f"{100 * fraction:g} %")
        axes.axvline(float(data.relu_epochs_to[k]), color="0.75", lw=3, zorder=0)
    axes.set_yticks(range(len(order)), [str(data.candidate.values[which]) for which in order], fontsize=8)
    axes.set(xlabel=EPOCHS, xlim=(0, None))
    axes.set_title("epochs to a share of the loss (grey: ReLU)")
    axes.legend(loc="upper right", handletextpad=0.2, frameon=True, framealpha=0.9)


def _draw_values(axes, data) -> None:
    """Singular values on what the common pathway leaves, largest first."""
    groups = {TWIN: (data.two_contexts.values.ravel(), COLOURS[1]), POINTS: (data.points.values, COLOURS[0])}
    for name, (given, colour) in groups.items():
        live = np.sort(given[given > 1e-9])[::-1]
        axes.plot(np.arange(len(live)) + 1, live, "o-", color=colour, ms=4, lw=1, label=name)
    axes.set(xlabel="mode of all pathways, strongest first", ylabel="singular value", ylim=(0, None))
    axes.set_title("what the common pathway leaves")
    axes.legend(loc="upper right")
