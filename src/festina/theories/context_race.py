"""Pathways for subsets of contexts compete beside a common pathway; the winner is decided before that one has learned.

n items in C contexts, every context with the same tree of features (`tasks.contextual`, blocks "hierarchy"), N = nC. A
common pathway sees all inputs; each of the C-choose-m others is on in m contexts and sees the items alone. All have two
layers and small initial weights. For an eigenvalue σ² of HᵀH (H is the tree) below the largest, with the item mode v
and u = Hv/σ, the pathways have the singular values and input variances

    common     s_c = σ√(C(C+1))/N,    variance d_c = C/N
    subset     s_raw = σ√(m(m+1))/N on the target,   S_m = σ√(m(C−m)/C)/N on the residual,   D_m = m/N

where the residual is what the common pathway, once it has learned, leaves of the target. The common pathway learns its
modes by [jarvis2025, eq. 7], the item mode at t_c = ln(s_c/(d_c a_c) − 1)/(2s_c). The subsets then learn the residual
together: from equal starts B₀ all have the same strength B [jarvis2025, appendix G]

    dB/dt = 2B(S_m − f_m D_m B),      B(t) = B∞ / (1 − (1 − B∞/B₀) e^(−2 S_m t)),      B∞ = S_m/(f_m D_m)

f_m is the sum over subsets of the overlap of outputs times that of inputs (`gate_overlap`). Until t_c the subsets grow
on the whole target, and while the common pathway learns, the direction in which they grow rotates to that of the
residual. Hence [derived]

    B₀ = a K² exp[2(s_raw − S_m) t_c],     K = cos²(θ/2) [Γ(1+R/2) Γ(1+r/2) / (Γ(1+(R+r+q)/4) Γ(1+(R+r−q)/4))]²

with R = s_raw/s_c, r = S_m/s_c, q² = R² − r², cos θ = r/R. Here a and a_c are effective starts ¼|P⊥(W₁v + W₂ᵀû)|² as
in `small_random_modes`, û along the whole target. K is exact in the limit of small initial weights: with x = W₁v, with
y₁ and y₂ the components of W₂ᵀ along the residual and along the part of the target that the common pathway takes, and
with the share φ = 1/(1 + e^(−2s_c(t−t_c))) that this pathway has learned,

    dx/dt = S_m y₁ + q s_c (1−φ) y₂,    dy₁/dt = S_m x,    dy₂/dt = q s_c (1−φ) x

conserves x² − y₁² − y₂². It is the symmetric square of a system of two equations, which Gauss's hypergeometric function
solves. For an instantaneous rotation K would be cos²(θ/2): 1 to 4 % more, an error that does not vanish for small
initial weights. Let n̂ be orthogonal to û in the plane of û and the residual. The component of W₂ᵀ along n̂ does
not grow until t_c, but contributes from then on: in a, û therefore stands for û + 2(K′/K)e^(−s_raw t_c) n̂ (see
`turning`).

The error of the map vanishes as σ_w^(1−R) with the standard deviation σ_w of the initial weights: y₂ remains, and with
x it enters the outputs of the subsets, where the common pathway has to compensate it. (For small subsets it may vanish
as slowly as that of the common pathway, see `small_random_modes`.) The error of the loss vanishes about as the square
of this. Equal starts of all subsets are part of the limit; where they differ, B follows their mean, with an error of
the loss of second order in their spread.

Corrected: [jarvis2025, appendices F and G] print e^(+2St/τ) and S/(D B₀), which tends to 0, for e^(−2St/τ) and
(C−1)S/(D B₀) = B∞/B₀ of m = C − 1; and overlaps of outputs −1/6, −1/12 of C = 4, 5, for −1/(C−1). B₀ is fitted there.

Symbols: C, contexts; m, contexts in which a subset is on; n, items; B, strength of a subset; a and a_c, effective
starts of a subset and of the common pathway.

Convention: τ = 1 and the loss is ½·mean ‖y − f(x)‖²; moments are means, as in the source. Its figures descend the
summed loss with rate ε: t = Nε × epochs, that is τ = 1/(Nε) epochs, and its losses are N × these.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._formulas import mode_at_depth
from .._foundation.arrays import AnyArray, Numbers
from .._foundation.checks import instance, is_traced, matching, positive, real_array, whole
from .._foundation.errors import BadInput, NoTheory
from .._foundation.nouns import noun
from .._foundation.precision import in_double
from .._setup.setup import Setup
from . import _context_formulas as formulas
from ._context_formulas import ItemMode
from ._context_modes import ContextConstants, losses, maps, split
from ._context_pathways import ContextPathways, context_scale, read_pathways, unlike_trees
from ._context_starts import context_constants, expected_error, spread_of_starts
from ._gated import gated_assumption
from ._rates import fastest_gated_rate
from .base import Approach, Assumption, Limit, Readout, Seed, Times, smooth_training

__all__ = ["ContextRace"]


def item_mode(value: object, *, items: object, contexts: object, size: object) -> ItemMode:
    """s_c, d_c, s_raw, S_m and D_m of a mode with singular value `value` of the tree, for subsets of `size`."""
    number, subset = _checked(contexts, size)
    count = whole(items, "items", least=2)
    return formulas.item_mode(real_array(value, "value"), count, number, subset)


def gate_overlap(contexts: object, size: object) -> float:
    """f_m = C(C, m) (C − m)/(C(C − 1)): how much the subsets of `size` contribute to each other's learning.

    It is Σ_i C(m, i) C(C−m, m−i) i (i − m²/C)/(m²(C−m)/C): a subset shares i contexts with C(m, i) C(C−m, m−i) others,
    where the overlap of the outputs is (i − m²/C)/(m(C−m)/C), and that of the inputs i/m. The sum is the variance of
    the hypergeometric law. f is 1 for m = 1, and 1/(C−1) for m = C − 1, where two different subsets have the overlap
    −1/(C−1) of outputs.
    """
    return formulas.gate_overlap(*_checked(contexts, size))


def output_overlap(contexts: object, size: object, shared: object) -> float:
    """The cosine of what two subsets of `size` contexts, `shared` in common, learn: (i − m²/C)/(m(C−m)/C)."""
    number, subset = _checked(contexts, size)
    common = whole(shared, "shared", least=0, most=subset)
    return (common - subset**2 / number) / (subset * (number - subset) / number)


def residual_strength(
    times: object, *, singular_value: object, variance: object, overlap: object, start: object
) -> Float[np.ndarray, "*shape"]:
    """B(t) = B∞/(1 − (1 − B∞/B₀) e^(−2St)), B∞ = S/(fD): the strength of one subset, all having started alike.

    All arguments are numbers, or arrays that broadcast against each other.
    """
    given = {"times": times, "singular_value": singular_value, "variance": variance, "overlap": overlap, "start": start}
    bounds: dict[str, float] = dict.fromkeys(("times", "variance", "overlap", "start"), 0.0)
    ts, s, d, f, begin = matching(given, least=bounds).values()
    return np.asarray(in_double(mode_at_depth.strength)(ts, s, f * d, begin, 2))


def turning(contexts: object, size: object) -> tuple[float, float]:
    """(K, K′): how much weights of a subset still count after the common pathway has rotated their direction of growth.

    K is the factor of weights that have grown, K′ that of weights at rest, W₂ᵀ along n̂. For an instantaneous rotation
    they are cos²(θ/2) and −½ sin θ.
    """
    return formulas.kept_in_rotation(*_checked(contexts, size))


def arrival(mode: object, common_start: object) -> Numbers:
    """t_c = ln(s_c/(d_c a_c) − 1)/(2 s_c): when the common pathway has learned half of an item mode.

    `mode` is what `item_mode` returns, `common_start` the effective start a_c.
    """
    mode = instance(mode, "mode", ItemMode, "use item_mode(value, items=8, contexts=3, size=2)")
    given = matching({"mode": mode.common, "common_start": common_start}, above={"mode": 0, "common_start": 0})
    return in_double(formulas.arrival)(mode, given["common_start"])


def head_start(
    value: object, start: object, common_start: object, *, items: object, contexts: object, size: object
) -> Numbers:
    """B₀ = a K² exp[2(s_raw − S_m) t_c]: a subset's effective start on the residual, for effective starts a and a_c."""
    numbers = {"value": value, "start": start, "common_start": common_start}
    sigma, a, a_c = matching(numbers, above={"value": 0, "common_start": 0}, least={"start": 0}).values()
    mode, kept = item_mode(sigma, items=items, contexts=contexts, size=size), turning(contexts, size)[0]

    def started(start: Numbers, mode: ItemMode, common: Numbers) -> Numbers:
        return start * (kept * formulas.growth_until_arrival(mode, common)) ** 2

    return in_double(started)(a, mode, a_c)


def race_ranking(contexts: object) -> Float[np.ndarray, " size"]:
    """The time that subsets of 1 … C − 1 contexts need to learn the residual, each size alone with a common pathway.

    To leading order in ln(1/start), in units of N ln(1/start)/(2σ): (1 − (√(m(m+1)) − r)/√(C(C+1)))/r, with
    r = √(m(C−m)/C). The largest subsets win, although those of half the contexts have the larger S_m.
    """
    number = whole(contexts, "contexts", least=2)
    size = np.arange(1, number)
    rest = np.sqrt(size * (number - size) / number)
    return (1 - (np.sqrt(size * (size + 1)) - rest) / math.sqrt(number * (number + 1))) / rest


def _checked(contexts: object, size: object) -> tuple[int, int]:
    number, subset = whole(contexts, "contexts", least=2, most=1000), whole(size, "size")  # of more, C(C, m) overflows
    if subset >= number:
        raise BadInput(f"subsets of {subset} of {number} contexts", f"sizes 1 … {number - 1}", "lower size")
    return number, subset


@noun
class ContextRace(Limit[ContextConstants, Float[AnyArray, " mode"]]):
    """A common pathway and all subsets of one size on equal trees, from small starts; the limit of small weights.

    Effective starts are computed from the initial weights, unless `common_start`, for the modes of the common pathway,
    and `subset_start`, for the item modes of every subset, give them: a positive number, or one for every mode, largest
    s first.
    """

    common_start: object = None
    subset_start: object = None

    reference = {"jarvis2025": "eq. 7, appendices F and G"}
    approach = Approach("scale", (1e-4, 1e-6, 1e-8), order=1 - 1 / math.sqrt(2))
    readouts = {
        "loss": Readout((), losses),
        "map": Readout(("feature", "input"), maps),
        "common_modes": Readout(("mode",), lambda c, a: split(c, a)[0]),
        "residual_modes": Readout(("item_mode",), lambda c, a: split(c, a / c.learned)[1]),
    }

    def __post_init__(self) -> None:
        for name in ("common_start", "subset_start"):
            if getattr(self, name) is not None and not is_traced(getattr(self, name)):
                starts_given = real_array(getattr(self, name), name, ndim=(0, 1))
                positive(float(np.min(starts_given)) if starts_given.size else 0.0, name)

    @classmethod
    def example(cls) -> Setup:
        return cls().example_at(1e-5)

    def example_at(self, value: float) -> Setup:
        from .. import inits, nets, tasks

        # Large context inputs, so that what subsets learn of the contexts is not the larger error.
        task = tasks.contextual(items=2, contexts=3, blocks="hierarchy", context_scale=3.0)
        net = nets.Gated.contexts(subsets=2, contexts=3, items=2, width=8)
        random = Setup(task, net, inits.SmallRandom(value), until=1.0)
        pathways, weights = read_pathways(net, task), list(random.weights(0))
        assert isinstance(pathways, ContextPathways)
        # Equal starts: in the limit the subsets learn together.
        starts = context_constants(pathways, 3.0, weights).starts[:, 0, 0]
        for edges, start in zip(pathways.subsets, starts, strict=True):
            for e in edges:
                weights[e] = weights[e] * value / math.sqrt(start)
        until = -1.3 * math.log(value) / float(item_mode(1.0, items=2, contexts=3, size=2).residual)
        return Setup(task, net, inits.Given(weights), until=until, points=200)

    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        gated = gated_assumption(setup)
        if not gated.holds:
            return (gated,)
        pathways = read_pathways(setup.net, setup.single_task)
        is_race = isinstance(pathways, ContextPathways)
        shape = Assumption.that(
            "race",
            "two-layer pathways: a common one, and one for every subset of one number of contexts, on items alone",
            is_race,
            f"{len(pathways.subsets)} subsets of {pathways.size} of {pathways.contexts} contexts"
            if is_race
            else pathways,
            "a common pathway and all subsets of one size",
        )
        joint = Assumption.that(
            "joint", "all pathways descend one loss", setup.net.training == "joint", setup.net.training, "joint"
        )
        smooth = smooth_training(setup, lambda: fastest_gated_rate(setup, seed))
        if isinstance(pathways, str):
            return gated, shape, joint, *smooth
        trees = Assumption.at_most(
            "equal trees",
            "gated moments are those of one tree in all contexts, relative",
            unlike_trees(pathways, setup),
            1e-9,
        )
        if not trees.holds:
            return gated, shape, joint, *smooth, trees
        return gated, shape, joint, *smooth, trees, *self._of_the_start(pathways, setup, seed)

    def _of_the_start(self, pathways: ContextPathways, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        """Enough hidden units, small weights, a head start of the common pathway, and equal starts of the subsets."""
        weights, constants = setup.weights(seed), self.constants(setup, seed)
        largest = max(float(np.linalg.norm(w, 2)) ** 2 for w in weights)
        short = max(
            pathways.items + pathways.contexts - 1 - weights[pathways.common[0]].shape[0],
            *(pathways.items - 1 - weights[first].shape[0] for first, _ in pathways.subsets),
        )
        return (
            Assumption.at_most("room", "every pathway has as many hidden units as modes: how many it lacks", short, 0),
            Assumption.at_most(
                "small start",
                "the weights are small: |W|² relative to the smallest target",
                largest / float(np.min(constants.learned)),
                0.05,
            ),
            Assumption.at_most(
                "head start",
                "the common pathway learns before the subsets: the expected error of their directions",
                expected_error(pathways, context_scale(pathways, setup.single_task), constants),
                0.3,
                advisory=True,
            ),
            Assumption.at_most(
                "equal starts",
                "subsets start alike: standard deviation of their effective starts, relative to the mean",
                spread_of_starts(constants),
                0.5,
                advisory=True,
            ),
        )

    def constants(self, setup: Setup, seed: Seed) -> ContextConstants:
        pathways = read_pathways(setup.net, setup.single_task)
        if isinstance(pathways, str):
            raise NoTheory(
                f"ContextRace on {pathways}",
                "a common pathway, and one for every subset of one number of contexts, on equal trees",
                "use PathDynamics, which covers every gated network",
            )
        given = self.common_start, self.subset_start
        scale = context_scale(pathways, setup.single_task)

        def find(seed: Seed) -> ContextConstants:
            return context_constants(pathways, scale, setup.weights(seed), *given)

        return setup._remembered("context race", seed, find) if all(start is None for start in given) else find(seed)

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        given = [name for name in ("common_start", "subset_start") if getattr(self, name) is not None]
        return (f"{' and '.join(given)} as given, in the place of those of the weights",) if given else ()

    def start(self, constants: ContextConstants) -> Float[AnyArray, " mode"]:
        return constants.effective

    def field(self, constants: ContextConstants, state: Float[AnyArray, " mode"]) -> Float[AnyArray, " mode"]:
        return mode_at_depth.field(state, constants.rates, constants.variances, 2)

    def states(self, constants: ContextConstants, times: Times) -> Float[AnyArray, "time mode"]:
        numbers = jnp.broadcast_arrays(times[:, None], constants.rates, constants.variances, constants.effective)
        return mode_at_depth.strength(numbers[0], numbers[1], numbers[2], numbers[3], 2)
