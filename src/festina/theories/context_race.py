"""Pathways for subsets of contexts race behind a common one: who wins is settled before the common one has learned.

n items in C contexts, every context with the same tree of features (`tasks.contextual`, blocks "hierarchy"), N = nC. A
common pathway sees everything; each of the C-choose-m others is on in m contexts and sees the items alone. All have two
layers and start small. With σ² an eigenvalue of the tree HᵀH below the largest, v the item mode and u = Hv/σ, pathways
see it as

    common     s_c = σ√(C(C+1))/N,    variance d_c = C/N
    subset     s_raw = σ√(m(m+1))/N on the target,   S_m = σ√(m(C−m)/C)/N on what the common one leaves,   D_m = m/N

The common pathway learns its modes by [jarvis2025, eq. 7], the item mode at t_c = ln(s_c/(d_c a_c) − 1)/(2s_c). The
subsets then share the rest: with a common start B₀ all have the strength [jarvis2025, appendix G]

    dB/dt = 2B(S_m − f_m D_m B),      B(t) = B∞ / (1 − (1 − B∞/B₀) e^(−2 S_m t)),      B∞ = S_m/(f_m D_m)

f_m is the sum over subsets of the overlap of outputs times that of inputs (`gate_overlap`). Until t_c they have grown
on the whole target, and while the common pathway learns, the direction in which they grow turns. Hence [derived]

    B₀ = a K² exp[2(s_raw − S_m) t_c],     K = cos²(θ/2) [Γ(1+R/2) Γ(1+r/2) / (Γ(1+(R+r+q)/4) Γ(1+(R+r−q)/4))]²

with R = s_raw/s_c, r = S_m/s_c, q² = R² − r², cos θ = r/R. Here a and a_c are effective starts ¼|P⊥(W₁v + W₂ᵀû)|² as
in `small_random_modes`, û along the whole target. K is exact as the start goes to 0: with x = W₁v and (y₁, y₂) = W₂ᵀ
along the rest and along what the common pathway takes, φ = 1/(1 + e^(−2s_c(t−t_c))) learned,

    dx/dt = S_m y₁ + q s_c (1−φ) y₂,    dy₁/dt = S_m x,    dy₂/dt = q s_c (1−φ) x

keeps x² − y₁² − y₂² and is the square of a system of two components, which Gauss's hypergeometric function solves.
A sudden turn has K = cos²(θ/2): 1 to 4 % more, an error that does not vanish with the start. W₂ᵀ across û in the plane
of û and the rest, n̂, does not grow until t_c, but then joins: û in a stands for û + 2(K′/K)e^(−s_raw t_c) n̂ (see
`turning`).

The error of the map vanishes as σ_w^(1−R) with the standard deviation σ_w of the start: y₂ stays, and goes with x into
the outputs of the subsets, where the common pathway has to take it back (small subsets: or as slowly as that of the
common pathway, see `small_random_modes`); that of the loss vanishes about as its square. Subsets of equal starts are
part of the limit; where they differ, B follows their mean, with an error in the loss of second order in the spread.

Corrected: [jarvis2025, appendices F and G] print e^(+2St/τ) and S/(D B₀), which tends to 0, for e^(−2St/τ) and
(C−1)S/(D B₀) = B∞/B₀ of m = C − 1; and overlaps of outputs −1/6, −1/12 of C = 4, 5, for −1/(C−1). B₀ is fitted there.

Symbols: C, contexts; m, contexts in which a subset is on; n, items; π, strengths of the common pathway; B, of a subset.

Convention: τ = 1 and the loss is ½·mean ‖y − f(x)‖²; moments are means, as in the source. Its figures descend the
summed loss with rate ε: t = Nε × epochs, that is τ = 1/(Nε) epochs, and its losses are N × these.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.special import gamma

from .. import _chain
from .._checks import instance, matching
from .._errors import BadInput, NoTheory
from .._linalg import Modes, eigenvectors_within
from .._noun import is_traced, noun, positive, real_array, whole
from .._precision import in_double
from .._setup import Setup
from ..tasks.hierarchy import hierarchy_block
from . import _context_pathways
from ._context_pathways import (
    ContextConstants,
    ContextPathways,
    common_modes,
    directions,
    given_starts,
    in_blocks,
    losses,
    maps,
    split,
    starts,
)
from ._gated import fastest_gated_rate, gated_assumption
from .base import Approach, Assumption, Limit, Readout, smooth_training

__all__ = ["ContextRace"]


class ItemMode(NamedTuple):
    """What an item mode is to each pathway: singular values of the common one and of a subset, and input variances."""

    common: Any
    common_variance: Any
    raw: Any
    residual: Any
    variance: Any


def item_mode(value: Any, *, items: int, contexts: int, size: int) -> ItemMode:
    """s_c, d_c, s_raw, S_m and D_m of a mode with singular value `value` of the tree, for subsets of `size`."""
    contexts, size = _checked(contexts, size)
    count = whole(items, "items", least=2) * contexts
    unit = real_array(value, "value") / count
    return ItemMode(
        unit * math.sqrt(contexts * (contexts + 1)),
        contexts / count,
        unit * math.sqrt(size * (size + 1)),
        unit * math.sqrt(size * (contexts - size) / contexts),
        size / count,
    )


def gate_overlap(contexts: int, size: int) -> float:
    """f_m = C(C, m) (C − m)/(C(C − 1)): how much the subsets of `size` do for each other.

    It is Σ_i C(m, i) C(C−m, m−i) i (i − m²/C)/(m²(C−m)/C): a subset shares i contexts with C(m, i) C(C−m, m−i) others,
    where the overlap of the outputs is (i − m²/C)/(m(C−m)/C), and that of the inputs i/m. The sum is the variance of
    the hypergeometric law. f is 1 for m = 1, and 1/(C−1) for m = C − 1, where two different subsets have the overlap
    −1/(C−1) of outputs.
    """
    contexts, size = _checked(contexts, size)
    return math.comb(contexts, size) * (contexts - size) / (contexts * (contexts - 1))


def output_overlap(contexts: int, size: int, shared: int) -> float:
    """The cosine of what two subsets of `size` contexts, `shared` in common, learn: (i − m²/C)/(m(C−m)/C)."""
    shared = whole(shared, "shared", least=0, most=_checked(contexts, size)[1])
    return (shared - size**2 / contexts) / (size * (contexts - size) / contexts)


def residual_strength(times: Any, *, singular_value: Any, variance: Any, overlap: float, start: Any) -> Any:
    """B(t) = B∞/(1 − (1 − B∞/B₀) e^(−2St)), B∞ = S/(fD): the strength of one subset, all having started alike."""
    given = {"times": times, "singular_value": singular_value, "variance": variance, "overlap": overlap, "start": start}
    bounds: dict[str, float] = dict.fromkeys(("times", "variance", "overlap", "start"), 0.0)
    times, singular_value, variance, overlap, start = matching(given, least=bounds).values()
    return np.asarray(in_double(_chain.strength)(times, singular_value, overlap * variance, start, 2))


def turning(contexts: int, size: int) -> tuple[float, float]:
    """(K, K′): what is left of the weights of a subset, since the common pathway takes their direction of growth away.

    K is of those that have grown, K′ of those at rest, W₂ᵀ along n̂; where a turn is sudden, cos²(θ/2) and −½ sin θ.
    """
    mode = item_mode(1.0, items=2, contexts=contexts, size=size)
    grown, rest = mode.raw / mode.common, mode.residual / mode.common
    taken = math.sqrt(grown**2 - rest**2)

    def kept(rate):
        ends = gamma(1 + (rate + rest + taken) / 4) * gamma(1 + (rate + rest - taken) / 4)
        return gamma(1 + rate / 2) * gamma(1 + rest / 2) / ends

    growing = (1 + rest / grown) / 2 * kept(grown) ** 2
    return float(growing), float(-0.5 * taken / grown * kept(grown) * kept(-grown))


def arrival(mode: ItemMode, common_start: Any) -> Any:
    """t_c = ln(s_c/(d_c a_c) − 1)/(2 s_c): when the common pathway has learned half of an item mode."""
    instance(mode, "mode", ItemMode, "use item_mode(value, items=8, contexts=3, size=2)")
    given = matching({"mode": mode.common, "common_start": common_start}, above={"mode": 0, "common_start": 0})
    return in_double(_arrival)(mode, given["common_start"])


def _arrival(mode: ItemMode, common_start: Any) -> Any:
    # ln(e^r − 1): the quotient itself may be beyond float64.
    r = jnp.log(mode.common) - jnp.log(mode.common_variance) - jnp.log(common_start)
    begins_below = r > 0
    left = r + jnp.log1p(-jnp.exp(-jnp.where(begins_below, r, 1.0)))
    return jnp.where(begins_below, left, math.log(np.finfo(float).tiny)) / (2 * mode.common)


def head_start(value: Any, start: Any, common_start: Any, *, items: int, contexts: int, size: int) -> Any:
    """B₀ = a K² exp[2(s_raw − S_m) t_c]: where a subset seems to start on the rest, from effective starts a and a_c."""
    numbers = {"value": value, "start": start, "common_start": common_start}
    value, start, common = matching(numbers, above={"value": 0, "common_start": 0}, least={"start": 0}).values()
    mode, grown = item_mode(value, items=items, contexts=contexts, size=size), turning(contexts, size)[0]
    return in_double(lambda start, *of_mode: start * (grown * _gained(*of_mode)) ** 2)(start, mode, common)


def _gained(mode: ItemMode, common_start: Any) -> Any:
    """e^((s_raw − S_m) t_c): how much larger weights are after t_c than if they had always grown on the rest."""
    return jnp.exp((mode.raw - mode.residual) * _arrival(mode, common_start))


def race_ranking(contexts: int) -> np.ndarray:
    """Time to learn the rest by subsets of 1 … C − 1 contexts, each size alone beside the common pathway.

    To leading order in ln(1/start), in units of N ln(1/start)/(2σ): (1 − (√(m(m+1)) − r)/√(C(C+1)))/r, with
    r = √(m(C−m)/C). The largest subsets win, although those of half the contexts have the larger S_m.
    """
    size = np.arange(1, contexts := whole(contexts, "contexts", least=2))
    rest = np.sqrt(size * (contexts - size) / contexts)
    return (1 - (np.sqrt(size * (size + 1)) - rest) / math.sqrt(contexts * (contexts + 1))) / rest


def _checked(contexts: int, size: int) -> tuple[int, int]:
    contexts, size = whole(contexts, "contexts", least=2, most=1000), whole(size, "size")  # of more, C(C, m) overflows
    if size >= contexts:
        raise BadInput(f"subsets of {size} of {contexts} contexts", f"sizes 1 … {contexts - 1}", "lower size")
    return contexts, size


@in_double
def _constants(
    race: ContextPathways, scale: float, weights: Any, common_start: Any = None, subset_start: Any = None
) -> ContextConstants:
    n, contexts = race.items, race.contexts
    tree_left, values, tree_right = np.linalg.svd(hierarchy_block(n), full_matrices=False)
    tree_level = _context_pathways.tree_levels(n)
    mode = item_mode(values[1:], items=n, contexts=contexts, size=race.size)
    common, level, of_items = common_modes(race, scale, tree_left, values, tree_right)
    start = starts([jnp.asarray(weights[e]) for e in race.common], common.left, common.right, level)
    turn = eigenvectors_within(jnp.asarray(level), start)
    common = Modes(common.left @ turn, common.right @ turn, common.singular_values, common.variances)
    begun = jnp.einsum("km,kl,lm->m", turn, start, turn)
    if common_start is not None:
        begun = given_starts(common_start, "common_start", len(begun))
    item_turn = turn[of_items][:, of_items]
    # Item modes, turned as the common pathway has learned them, grow in all subsets at once.
    left, right = tree_left[:, 1:] @ item_turn, tree_right[1:].T @ item_turn
    raw, rest, resting = directions(race)
    growing, joins = turning(contexts, race.size)
    late = 2 * joins / growing * jnp.exp(-mode.raw * _arrival(mode, begun[of_items]))
    each = jnp.stack([
        starts(
            [jnp.asarray(weights[e]) for e in edges],
            in_blocks(raw[k], left) + in_blocks(resting[k], left) * late,
            right,
            tree_level[1:],
        )
        for k, edges in enumerate(race.subsets)
    ])  # fmt: skip
    if subset_start is not None:
        each = jnp.broadcast_to(jnp.diag(given_starts(subset_start, "subset_start", n - 1)), each.shape)
    factor = growing * _gained(mode, begun[of_items])
    heads = factor[:, None] * jnp.mean(each, axis=0) * factor
    second = eigenvectors_within(jnp.asarray(tree_level[1:]), heads)
    overlap = gate_overlap(contexts, race.size)
    return ContextConstants(
        common,
        jnp.stack([in_blocks(blocks, left @ second) for blocks in rest]),
        right @ second,
        jnp.concatenate([common.singular_values, mode.residual]),
        jnp.concatenate([common.variances, jnp.full(n - 1, overlap * mode.variance)]),
        jnp.concatenate([begun, jnp.einsum("km,kl,lm->m", second, heads, second)]),
        jnp.asarray(values[1:]),
        each,
        float(contexts),
        race.order,
    )


@noun
class ContextRace(Limit):
    """A common pathway and all subsets of one size on equal trees, from small starts; the limit of small weights.

    Effective starts are those of the weights. `common_start`, of the modes of the common pathway, and `subset_start`,
    of the item modes of every subset, take their place: a positive number each, or one for every mode, largest s first.
    """

    common_start: Any = None
    subset_start: Any = None

    reference = {"jarvis2025": "eq. 7, appendices F and G"}
    approach = Approach("scale", (1e-4, 1e-6, 1e-8), order=1 - 1 / math.sqrt(2))
    readouts = {
        "loss": Readout((), losses),
        "map": Readout(("feature", "input"), maps),
        "common_modes": Readout(("mode",), lambda c, a: split(c, a)[0]),
        "residual_modes": Readout(("item_mode",), lambda c, a: split(c, a / c.learned)[1]),
    }

    def __post_init__(self):
        for name in ("common_start", "subset_start"):
            if getattr(self, name) is not None and not is_traced(getattr(self, name)):
                starts_given = real_array(getattr(self, name), name, ndim=(0, 1))
                positive(float(np.min(starts_given)) if starts_given.size else 0.0, name)

    @classmethod
    def example(cls) -> Setup:
        return cls().turned(1e-5)

    def turned(self, value: float) -> Setup:
        from .. import inits, nets, tasks

        # Large context inputs, so that what subsets learn of the contexts is not the larger error.
        task = tasks.contextual(items=2, contexts=3, blocks="hierarchy", context_scale=3.0)
        net = nets.Gated.contexts(subsets=2, contexts=3, items=2, width=8)
        drawn = Setup(task, net, inits.SmallRandom(value), until=1.0)
        race, weights = _context_pathways.read_race(drawn.net, drawn.task), list(drawn.weights(0))
        assert isinstance(race, ContextPathways)
        # Equal starts: in the limit the subsets arrive together.
        for edges, start in zip(race.subsets, _constants(race, 3.0, weights).starts[:, 0, 0], strict=True):
            for e in edges:
                weights[e] = weights[e] * value / math.sqrt(start)
        until = -1.3 * math.log(value) / item_mode(1.0, items=2, contexts=3, size=2).residual
        return Setup(task, net, inits.Given(weights), until=until, points=200)

    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        gated = gated_assumption(setup)
        if not gated.holds:
            return (gated,)
        race = _context_pathways.read_race(setup.net, setup.task)
        shape = Assumption.that(
            "race",
            "two-layer pathways: a common one, and one for every subset of one number of contexts, on items alone",
            isinstance(race, ContextPathways),
            race
            if isinstance(race, str)
            else f"{len(race.subsets)} subsets of {race.size} of {race.contexts} contexts",
            "a common pathway and all subsets of one size",
        )
        joint = Assumption.that(
            "joint", "all pathways descend one loss", setup.net.training == "joint", setup.net.training, "joint"
        )
        smooth = smooth_training(setup, lambda: fastest_gated_rate(setup, seed))
        if isinstance(race, str):
            return gated, shape, joint, *smooth
        unlike = _context_pathways.unlike_trees(race, setup)
        trees = Assumption.at_most(
            "equal trees", "gated moments are those of one tree in all contexts, relative", unlike, 1e-9
        )
        if not trees.holds:
            return gated, shape, joint, *smooth, trees
        weights = setup.weights(seed)
        scale = _context_pathways.context_scale(race, setup.task)
        found = self.constants(setup, seed)
        largest = max(float(np.linalg.norm(w, 2)) ** 2 for w in weights)
        short = max(
            race.items + race.contexts - 1 - weights[race.common[0]].shape[0],
            *(race.items - 1 - weights[first].shape[0] for first, _ in race.subsets),
        )
        return (
            gated, shape, joint, *smooth, trees,
            Assumption.at_most("room", "every pathway has as many hidden units as modes: how many it lacks", short, 0),
            Assumption.at_most(
                "small start",
                "the weights are small: |W|² relative to the smallest target",
                largest / float(np.min(found.learned)),
                0.05,
            ),
            Assumption.at_most(
                "head start",
                "the common pathway learns before the subsets: the expected error of their directions",
                _expected_error(race, scale, found),
                0.3,
                advisory=True,
            ),
            Assumption.at_most(
                "equal starts",
                "subsets start alike: standard deviation of their effective starts, relative to the mean",
                _spread(found),
                0.5,
                advisory=True,
            ),
        )  # fmt: skip

    def constants(self, setup: Setup, seed: Any) -> ContextConstants:
        race = _context_pathways.read_race(setup.net, setup.task)
        if isinstance(race, str):
            raise NoTheory(
                f"ContextRace on {race}",
                "a common pathway, and one for every subset of one number of contexts, on equal trees",
                "use PathDynamics, which covers every gated network",
            )
        given = self.common_start, self.subset_start
        scale = _context_pathways.context_scale(race, setup.task)
        find = lambda seed: _constants(race, scale, setup.weights(seed), *given)  # noqa: E731
        return setup._remembered("context race", seed, find) if all(one is None for one in given) else find(seed)

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        given = [name for name in ("common_start", "subset_start") if getattr(self, name) is not None]
        return (f"{' and '.join(given)} as given, in the place of those of the weights",) if given else ()

    def start(self, constants):
        return constants.effective

    def field(self, constants, state):
        return _chain.field(state, constants.rates, constants.variances, 2)

    def states(self, constants, times):
        numbers = jnp.broadcast_arrays(times[:, None], constants.rates, constants.variances, constants.effective)
        return _chain.strength(numbers[0], numbers[1], numbers[2], numbers[3], 2)


def _spread(constants: ContextConstants) -> float:
    each = np.diagonal(constants.starts, axis1=1, axis2=2)
    return float(np.max(np.std(each, axis=0) / np.mean(each, axis=0)))


def _expected_error(race: ContextPathways, scale: float, constants: ContextConstants) -> float:
    """(start/target)^((1−R)/2), or ^(1−γ) if larger: γ is how far subsets come with the modes of mean and contexts.

    They grow on the mean until the common pathway has learned it, then on the rest until it has learned contexts.
    """
    shape = {"items": race.items, "contexts": race.contexts, "size": race.size}
    mode, mean = item_mode(1.0, **shape), item_mode(math.sqrt(2 * race.items - 1), **shape)
    weight = race.contexts + race.items * scale**2
    first = math.sqrt((2 * race.items - 1) * (race.contexts + 1) * weight) / (race.items * race.contexts)
    second = scale * math.sqrt(race.items * (2 * race.items - 1)) / (race.items * race.contexts)
    far = mean.raw / first + mean.residual * (1 / second - 1 / first)
    start = float(np.max(split(constants, constants.effective / constants.learned)[0]))
    return max(start ** ((1 - mode.raw / mode.common) / 2), start ** max(1 - far, 0.0))
