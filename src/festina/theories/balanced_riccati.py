"""The whole of a λ-balanced two-layer linear network on white inputs, in closed form, for every shape.

If W₂ᵀW₂ − W₁W₁ᵀ = λI and Σˣ = κI, then Q = (W₁ᵀ; W₂) obeys a Riccati equation, dQ/dt = F Q − ½ QQᵀQ, where F has
the blocks −λ/2, Σᵀ; Σ, λ/2 (κ = 1), and [saxe_slides, eqs. 13-15] [domine2025, theorem 4.3] [braun2022, theorem 3.1]

    QQᵀ(t) = e^(Ft) Q₀ [1 + Q₀ᵀ Φ Q₀]⁻¹ Q₀ᵀ e^(Ft),      Φ = (e^(2Ft) − 1)/(2F).

Its blocks are the representations W₁ᵀW₁ and W₂W₂ᵀ and the map W₂W₁; the tangent kernel is made of them. λ = 0 may
be rich or lazy, large |λ| is lazy or delayed: see `experiments`. `festina._riccati` says how it is evaluated.

It ends at QQᵀ = Σ 2Λ o oᵀ over the pivots of the start with Λ > 0: the modes that the start can reach. A start
that lacks a direction (a square net with λ = 0 whose determinant has the wrong sign; the reversal of a learned
task) stays at a saddle for ever. Training leaves it all the same, by the error of its steps or by rounding, at a
time that says something about them and nothing about the flow.

Symbols: Σ = Σʸˣ/κ; s, its singular values; Λ = ±√(s² + λ²/4), ±λ/2, the eigenvalues of F, and o its vectors; λ, the
balance: positive if the read-out is the larger layer.

Convention: τ = 1. For Σˣ = κI the same holds with Σʸˣ/κ and κt.

Errata. The slides print the last term of eq. 15 as (e^(λ⊥t) − 1)/λ⊥; it is (e^(2λ⊥t) − 1)/(2λ⊥), which matters
for N_i ≠ N_o. They print H as the root of a difference, which underflows below λ ≈ 1e−8. Published statements ask
for N_h = min(N_i, N_o), full rank and an invertible B; none is needed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _checks, _riccati
from .._balance import balance
from .._errors import NoTheory
from .._linalg import NOTHING, Modes
from .._noun import is_traced, noun, real_array, whole
from .._precision import in_double
from .._setup import Setup, Task
from ..inits import Balanced
from ..nets import DeepLinear
from ._linear import cut_off, horizon_assumption, two_layer_assumptions, unlearnable, weight_readouts
from .base import Approach, Assumption, Readout, Theory, smooth_training

__all__ = ["BalancedRiccati"]


@noun
class RiccatiConstants:
    """A flow, and what the readouts need besides."""

    flow: _riccati.Flow
    variance: Any
    modes: Modes
    weights: Any
    floor: Any
    cov_x: Any
    x: Any


def _map(constants: RiccatiConstants, states: Any) -> Any:
    first, last = _riccati.weights(constants.flow, states)
    return last @ first


def _loss(constants: RiccatiConstants, states: Any) -> Any:
    return constants.floor + 0.5 * constants.variance * jnp.sum(_missing(constants, states) ** 2, axis=(-1, -2))


def _missing(constants: RiccatiConstants, states: Any) -> Any:
    """What the map lacks, in the singular vectors of the target, where that is diagonal: two products less."""
    first, last = _riccati.factors(constants.flow, states)
    seen = jnp.swapaxes(last, -1, -2) @ first
    values = constants.flow.singular_values
    target = jnp.zeros(seen.shape[-2:], seen.dtype).at[jnp.arange(len(values)), jnp.arange(len(values))].set(values)
    return target - seen


def _layers(constants: RiccatiConstants, states: Any) -> tuple[Any, Any]:
    return _riccati.weights(constants.flow, states)


@noun
class BalancedRiccati(Theory):
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
        cov_x, weights = np.asarray(setup.task.cov_x), setup.weights(seed)
        variance = np.trace(cov_x) / len(cov_x)
        lam, residual = balance(weights)
        sizes = [np.linalg.norm(w, 2) ** 2 for w in weights]
        values = np.linalg.norm(setup.task.cov_yx, 2) / variance if variance > 0 else 0.0
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

    def constants(self, setup: Setup, seed: Any) -> RiccatiConstants:
        task, weights = setup.task, setup.weights(seed)
        flow, variance = _flow(task.cov_yx, task.cov_x, weights)
        if not is_traced(flow):
            flow = dataclasses.replace(flow, known_gentle=bool(flow.gentle))
        return RiccatiConstants(flow, variance, setup.modes(seed), weights, task.floor(), task.cov_x, task.x)

    def start(self, constants):
        return _riccati.start(constants.flow)

    def field(self, constants, state):
        return constants.variance * _riccati.field(constants.flow, state)

    def states(self, constants, times):
        return _riccati.states(constants.flow, constants.variance * times)

    def times_together(self, constants):
        return 64 if constants.flow.stairs.shape[0] <= _riccati.NARROW else 1

    def costly(self, constants):
        return constants.flow.stairs.shape[0] > _riccati.NARROW

    def weights(self, constants, states):
        return _layers(constants, states)

    def fastest_growth(self, constants, states):
        # |E| ≤ (tr (EᵀE)⁸)^(1/16), at most a third more than |E| itself for a hundred modes.
        missing = _missing(constants, states)
        size = jnp.sqrt(jnp.sum(missing**2, axis=(-1, -2)))
        unit = missing / jnp.where(size > 0, size, 1.0)[:, None, None]
        turned = jnp.swapaxes(unit, -1, -2)
        power = unit @ turned if unit.shape[1] < unit.shape[2] else turned @ unit
        for _ in range(3):
            power = power @ power
        return constants.variance * size * jnp.trace(power, axis1=-2, axis2=-1) ** (1 / 16)

    def turning(self, constants, state):
        return constants.variance * _riccati.turning(state)

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        flow = self.constants(setup, seed).flow
        values, hidden = flow.singular_values, flow.stairs.shape[0]
        reached = np.isin(np.arange(len(values)), flow.pivots)
        full = flow.pivots.max() if (flow.pivots >= 0).all() else len(flow.rates)
        wanted = (values > NOTHING * max(values.max(), np.finfo(float).tiny)) & ~reached
        lacking, narrow = wanted & (np.arange(len(values)) < full), wanted & (np.arange(len(values)) > full)
        variance = float(np.trace(setup.task.cov_x)) / setup.task.d_in
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
    task: Task,
    hidden: int,
    *,
    lam: Any,
    scale: Any,
    seeds: int = 1,
    times: Any,
    observe: str | Iterable[str] = "loss",
    aligned: bool = False,
) -> Any:
    """The solution for every λ, scale and seed at once, one compiled call; an `xarray.Dataset` with these axes.

    Members start from `inits.Balanced(lam, scale, aligned)`; inputs must be white. `observe` takes any of loss, map,
    input_representation, output_representation and kernel_distance.
    """
    import xarray

    _checks.instance(task, "task", Task, "build one with festina.tasks, such as tasks.regression()")
    lams, scales = (
        np.atleast_1d(
            _checks.matching({name: real_array(value, name, ndim=(0, 1))}, within=(0.0, _checks.LARGEST))[name]
        )
        for name, value in (("lam", lam), ("scale", scale))
    )
    names = _checks.names((observe,) if isinstance(observe, str) else observe, "observe")
    for name in names:
        _checks.choice(name, "observable of a family", FAMILY)
    seeds, aligned = whole(seeds, "seeds"), _checks.truth(aligned, "aligned")
    net, moments = DeepLinear(whole(hidden, "hidden")), task.moments_only()
    for extreme in (lams.min(), lams.max()):  # what one member cannot be, the family cannot
        setup = Setup(moments, net, Balanced(float(extreme), float(scales[0]), aligned), times=times)
        failed = [a for a in BalancedRiccati().assumptions(setup, 0) if not a.holds]
        if failed:
            raise NoTheory(
                "BalancedRiccati does not cover this family:\n    " + "\n    ".join(map(str, failed)),
                "every assumption of BalancedRiccati",
                "whiten the task with tasks.whitened, or shorten the times",
            )
    axes = np.meshgrid(lams, scales, np.arange(seeds), indexing="ij")
    values = in_double(_members)(moments, task.floor(), *map(np.ravel, axes), setup.times, net, names, aligned)
    sizes = (len(lams), len(scales), seeds)
    coordinates = {"lam": lams, "scale": scales, "seed": np.arange(seeds), "time": setup.times}
    dims = ("lam", "scale", "seed", "time")
    return xarray.Dataset(
        {n: ((*dims, *BalancedRiccati.readouts[n].axes), v.reshape(*sizes, *v.shape[1:])) for n, v in values.items()},
        coords=coordinates,
    )


FAMILY = ("loss", "map", "input_representation", "output_representation", "kernel_distance")


@functools.partial(jax.jit, static_argnames=("net", "names", "aligned"))
def _members(task: Any, floor: Any, lams: Any, scales: Any, seeds: Any, times: Any, net: Any, names: Any, aligned: Any):
    variance = jnp.trace(task.cov_x) / task.d_in

    def one(member):
        lam, scale, seed = member
        weights = Balanced(lam, scale, aligned).draw(jax.random.key(seed), net, task)
        flow = _riccati.flow(task.cov_yx / variance, weights, lam)
        constants = RiccatiConstants(flow, variance, None, weights, floor, task.cov_x, None)  # pyright: ignore
        states = _riccati.states(flow, variance * times)
        return {name: BalancedRiccati.readouts[name].read(constants, states) for name in names}

    return jax.lax.map(one, (lams, scales, seeds), batch_size=256 if net.hidden[0] <= _riccati.NARROW else None)


@in_double
@jax.jit
def _flow(cov_yx: Any, cov_x: Any, weights: Any) -> tuple[_riccati.Flow, Any]:
    variance = jnp.trace(cov_x) / cov_x.shape[0]
    return _riccati.flow(cov_yx / variance, weights, balance(weights).lam), variance
