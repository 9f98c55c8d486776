"""The full dynamics of a λ-balanced two-layer linear network on white inputs, in closed form, for every shape.

If W₂ᵀW₂ − W₁W₁ᵀ = λI and Σˣ = κI, then Q = (W₁ᵀ; W₂) obeys a Riccati equation, dQ/dt = F Q − ½ QQᵀQ, where F has
the blocks −λ/2, Σᵀ; Σ, λ/2 (κ = 1), and [saxe_slides, eqs. 13-15] [domine2025, theorem 4.3] [braun2022, theorem 3.1]

    QQᵀ(t) = e^(Ft) Q₀ [1 + Q₀ᵀ Φ Q₀]⁻¹ Q₀ᵀ e^(Ft),      Φ = (e^(2Ft) − 1)/(2F).

Its blocks are the representations W₁ᵀW₁ and W₂W₂ᵀ and the map W₂W₁; the tangent kernel is made of them. λ = 0 may
be rich or lazy, large |λ| is lazy or delayed: see `experiments`. `festina._formulas.balanced_flow` says how the
solution is evaluated.

The flow ends at QQᵀ = Σ 2Λ o oᵀ, summed over the eigenvectors o of F with Λ > 0 that the initial weights can reach. An
initialisation that lacks a direction (a square net with λ = 0 whose determinant has the wrong sign; the reversal of a
learned task) ends at a saddle and stays there. Actual training leaves the saddle all the same, by the error of its
steps or by rounding, at a time that depends on these errors and not on the flow.

Symbols: Σ = Σʸˣ/κ; s, its singular values; Λ = ±√(s² + λ²/4), ±λ/2, the eigenvalues of F, and o its eigenvectors; λ,
the balance (`lam` in the code): positive if the read-out is the larger layer; κ, input variance; Q, both layers.

Convention: τ = 1. For Σˣ = κI the same holds with Σʸˣ/κ and κt.

Errata. The slides print the last term of eq. 15 as (e^(λ⊥t) − 1)/λ⊥; it is (e^(2λ⊥t) − 1)/(2λ⊥), which matters
for N_i ≠ N_o. They print H as the root of a difference, which underflows below λ ≈ 1e−8. Published statements ask
for N_h = min(N_i, N_o), full rank and an invertible B; none is needed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from .._formulas import balanced_flow
from .._formulas.balance import balance
from .._formulas.modes import NOTHING, Modes
from .._foundation import checks
from .._foundation.arrays import AnyArray, Layers, Number
from .._foundation.checks import is_traced, real_array, whole
from .._foundation.errors import NoTheory
from .._foundation.nouns import noun
from .._foundation.precision import in_double
from .._foundation.program_memory import compiled
from .._setup.setup import Setup
from ..inits.balanced import Balanced
from ..nets import DeepLinear
from ..tasks.base import Task
from ._linear import LayersInTime, weight_readouts
from ._linear_assumptions import horizon_assumption, two_layer_assumptions
from ._remarks import cut_off, unlearnable
from .base import Approach, Assumption, Readout, Seed, Theory, Times, smooth_training

if TYPE_CHECKING:
    import xarray


__all__ = ["BalancedRiccati"]

State: TypeAlias = Float[AnyArray, "hidden row"]
States: TypeAlias = Float[AnyArray, "time hidden row"]


@noun
class RiccatiConstants:
    """A flow, and what the readouts need besides."""

    flow: balanced_flow.EigenFlow
    variance: Number  # κ
    modes: Modes | None  # None in a family, which has no readout of modes
    weights: Layers
    floor: Number
    cov_x: Float[AnyArray, "in in"]
    x: Float[AnyArray, "sample in"] | None


def _map(constants: RiccatiConstants, states: States) -> Float[AnyArray, "time out in"]:
    first, last = balanced_flow.weights(constants.flow, states)
    return last @ first


def _loss(constants: RiccatiConstants, states: States) -> Float[AnyArray, " time"]:
    return constants.floor + 0.5 * constants.variance * jnp.sum(_missing(constants, states) ** 2, axis=(-1, -2))


def _missing(constants: RiccatiConstants, states: States) -> Float[AnyArray, "time out in"]:
    """Target minus map in the basis of the target's singular vectors, where the target is diagonal."""
    first, last = balanced_flow.factors(constants.flow, states)
    reached = jnp.swapaxes(last, -1, -2) @ first
    values = constants.flow.singular_values
    diagonal = jnp.arange(len(values))
    target = jnp.zeros(reached.shape[-2:], reached.dtype).at[diagonal, diagonal].set(values)
    return target - reached


def _layers(constants: RiccatiConstants, states: States) -> LayersInTime:
    return balanced_flow.weights(constants.flow, states)


@noun
class BalancedRiccati(Theory[RiccatiConstants, State]):
    """Map, representations and tangent kernel of a λ-balanced two-layer linear network on white inputs; exact."""

    reference = {"saxe_slides": "eq. 13, eq. 14 and eq. 15", "domine2025": "theorem 4.3", "braun2022": "theorem 3.1"}
    approach = Approach("lr", (0.04, 0.02, 0.01), order=1)
    readouts = {
        "loss": Readout((), _loss),
        "map": Readout(("feature", "input"), _map),
        "modes": Readout(("mode",), lambda c, k: c.modes.strengths(_map(c, k))),
        "outputs": Readout(("sample", "feature"), lambda c, k: jnp.einsum("si,toi->tso", c.x, _map(c, k))),
        **weight_readouts(_layers),
    }

    @classmethod
    def example(cls) -> Setup:
        from .. import inits, nets, tasks

        task = tasks.regression(d_in=5, d_out=3, samples=12, seed=1)
        return Setup(task, nets.DeepLinear(hidden=4), inits.Balanced(-0.7, 0.3), until=12.0, points=31)

    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        net = two_layer_assumptions(setup)
        if not all(assumption.holds for assumption in net):
            return net
        cov_x, weights = np.asarray(setup.single_task.cov_x), setup.weights(seed)
        variance = np.trace(cov_x) / len(cov_x)
        lam, residual = balance(weights)
        sizes = [np.linalg.norm(w, 2) ** 2 for w in weights]
        values = np.linalg.norm(setup.single_task.cov_yx, 2) / variance if variance > 0 else 0.0
        fastest = float(variance * max(sum(sizes), np.hypot(lam, 2 * values)))
        white = float(np.linalg.norm(cov_x - variance * np.eye(len(cov_x))) / np.linalg.norm(cov_x))
        return (
            *net,
            *smooth_training(setup, lambda: fastest),
            Assumption.at_most("white input", f"Σˣ = κI (nearest κ = {variance:.4g})", white, 1e-9, defect=True),
            Assumption.at_most(
                "balanced",
                f"W₂ᵀW₂ − W₁W₁ᵀ = λI (fitted λ = {lam:.4g}), residual relative to the layers",
                residual / max(sum(sizes), np.finfo(float).tiny),
                1e-9,
                defect=True,
            ),
            horizon_assumption(setup, fastest),
        )

    def constants(self, setup: Setup, seed: Seed) -> RiccatiConstants:
        task, weights = setup.single_task, setup.weights(seed)
        flow, variance = _flow(task.cov_yx, task.cov_x, weights)
        if not is_traced(flow):
            flow = dataclasses.replace(flow, known_gentle=bool(flow.gentle))
        return RiccatiConstants(flow, variance, setup.modes(seed), weights, task.floor(), task.cov_x, task.x)

    def start(self, constants: RiccatiConstants) -> State:
        return balanced_flow.start(constants.flow)

    def field(self, constants: RiccatiConstants, state: State) -> State:
        return constants.variance * balanced_flow.field(constants.flow, state)

    def states(self, constants: RiccatiConstants, times: Times) -> States:
        return balanced_flow.states(constants.flow, constants.variance * times)

    def times_together(self, constants: RiccatiConstants) -> int:
        return 64 if constants.flow.stairs.shape[0] <= balanced_flow.NARROW else 1

    def costly(self, constants: RiccatiConstants) -> bool:
        return constants.flow.stairs.shape[0] > balanced_flow.NARROW

    def weights(self, constants: RiccatiConstants, states: States) -> LayersInTime:
        return _layers(constants, states)

    def fastest_growth(self, constants: RiccatiConstants, states: States) -> Float[AnyArray, " time"]:
        # The spectral norm |E| ≤ (tr (EᵀE)⁸)^(1/16), at most a third more than |E| itself for a hundred modes.
        missing = _missing(constants, states)
        size = jnp.sqrt(jnp.sum(missing**2, axis=(-1, -2)))
        unit = missing / jnp.where(size > 0, size, 1.0)[:, None, None]
        transposed = jnp.swapaxes(unit, -1, -2)
        power = unit @ transposed if unit.shape[1] < unit.shape[2] else transposed @ unit
        for _ in range(3):
            power = power @ power
        return constants.variance * size * jnp.trace(power, axis1=-2, axis2=-1) ** (1 / 16)

    def rotation_rate(self, constants: RiccatiConstants, state: State) -> Float[AnyArray, "hidden hidden"]:
        return constants.variance * balanced_flow.rotation_rate(state)

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        flow = self.constants(setup, seed).flow
        values, hidden = flow.singular_values, flow.stairs.shape[0]
        reached = np.isin(np.arange(len(values)), flow.pivots)
        full = flow.pivots.max() if (flow.pivots >= 0).all() else len(flow.rates)
        wanted = (values > NOTHING * max(values.max(), np.finfo(float).tiny)) & ~reached
        lacking, narrow = wanted & (np.arange(len(values)) < full), wanted & (np.arange(len(values)) > full)
        variance = float(np.trace(setup.single_task.cov_x)) / setup.single_task.d_in
        fastest = float(np.max(flow.rates)) * variance
        escape = -np.log(np.finfo(float).eps) / fastest if fastest > 0 else np.inf
        return (
            *unlearnable(
                lacking,
                variance * values,
                "the start has no part in it, above rounding, that faster modes do not use, so that the flow stays at "
                "a saddle; what leaves it in training is the error of finite steps, or rounding, which in float64 has "
                f"grown to order 1 by t ≈ {escape:.3g}: beyond, no simulation can follow the flow",
            ),
            *unlearnable(narrow, variance * values, f"only {hidden} modes fit through {hidden} hidden units"),
            *cut_off(variance * np.asarray(values)),
        )


def family(
    task: object,
    hidden: object,
    *,
    lam: object,
    scale: object,
    seeds: object = 1,
    times: object,
    observe: object = "loss",
    aligned: object = False,
) -> xarray.Dataset:
    """The solution for every λ, scale and seed, in one compiled call; a dataset with these axes.

    The networks have `hidden` hidden units and start from `inits.Balanced(lam, scale, aligned)`; inputs must be white.
    `lam` and `scale` are a number or several, `seeds` is a count. `observe` takes any of loss, map,
    input_representation, output_representation and kernel_distance.
    """
    import xarray

    task = checks.instance(task, "task", Task, "build one with festina.tasks, such as tasks.regression()")
    lams, scales = (
        np.atleast_1d(checks.matching({name: real_array(value, name, ndim=(0, 1))}, within=(0.0, checks.LARGEST))[name])
        for name, value in (("lam", lam), ("scale", scale))
    )
    names = checks.names((observe,) if isinstance(observe, str) else observe, "observe")
    for name in names:
        checks.choice(name, "observable of a family", FAMILY)
    count, along = whole(seeds, "seeds"), checks.truth(aligned, "aligned")
    width, moments = whole(hidden, "hidden"), task.moments_only()
    net, batch = DeepLinear(width), 256 if width <= balanced_flow.NARROW else None
    for extreme in (lams.min(), lams.max()):  # the family is refused if one of its extreme members is
        start = Balanced(float(extreme), float(scales[0]), along)
        setup = Setup(moments, net, start, times=cast(Any, times))  # which checks them
        failed = [a for a in BalancedRiccati().assumptions(setup, 0) if not a.holds]
        if failed:
            raise NoTheory(
                "BalancedRiccati does not cover this family:\n    " + "\n    ".join(map(str, failed)),
                "every assumption of BalancedRiccati",
                "whiten the task with tasks.whitened, or shorten the times",
            )
    axes = np.meshgrid(lams, scales, np.arange(count), indexing="ij")
    values = in_double(_members)(moments, task.floor(), *map(np.ravel, axes), setup.times, net, names, along, batch)
    sizes = (len(lams), len(scales), count)
    coordinates = {"lam": lams, "scale": scales, "seed": np.arange(count), "time": setup.times}
    dims = ("lam", "scale", "seed", "time")
    return xarray.Dataset(
        {n: ((*dims, *BalancedRiccati.readouts[n].axes), v.reshape(*sizes, *v.shape[1:])) for n, v in values.items()},
        coords=coordinates,
    )


FAMILY = ("loss", "map", "input_representation", "output_representation", "kernel_distance")


@compiled(static_argnames=("net", "names", "aligned", "batch"))
def _members(
    task: Task,
    floor: Number,
    lams: Float[AnyArray, " member"],
    scales: Float[AnyArray, " member"],
    seeds: Int[AnyArray, " member"],
    times: Times,
    net: DeepLinear,
    names: Sequence[str],
    aligned: bool,
    batch: int | None,
) -> dict[str, Float[AnyArray, "member time ..."]]:
    variance = jnp.trace(task.cov_x) / task.d_in

    def readouts(member: tuple[Number, Number, Int[AnyArray, ""]]) -> dict[str, Float[AnyArray, "time ..."]]:
        lam, scale, seed = member
        weights = Balanced(lam, scale, aligned).draw(jax.random.key(seed), net, task)
        flow = balanced_flow.flow(task.cov_yx / variance, weights, lam)
        constants = RiccatiConstants(flow, variance, None, weights, floor, task.cov_x, None)
        states = balanced_flow.states(flow, variance * times)
        return {name: BalancedRiccati.readouts[name].read(constants, states) for name in names}

    return jax.lax.map(readouts, (lams, scales, seeds), batch_size=batch)


@in_double
@compiled
def _flow(
    cov_yx: Float[AnyArray, "out in"], cov_x: Float[AnyArray, "in in"], weights: Layers
) -> tuple[balanced_flow.EigenFlow, Number]:
    variance = jnp.trace(cov_x) / cov_x.shape[0]
    return balanced_flow.flow(cov_yx / variance, weights, balance(weights).lam), variance
