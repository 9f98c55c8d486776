"""A network whose tangent kernel does not move learns like a linear regression: the lazy limit, for any net.

With outputs f on all samples, their slopes J in the weights at the start and the kernel K = J Jᵀ/P there,

    d(y − f)/dt = −K (y − f),      f(t) = y − e^(−Kt) (y − f₀),      Δw = Jᵀ z/P,  z = K⁻¹(1 − e^(−Kt))(y − f₀)

[jacot2018, eq. 2] [chizat2019, eq. 3]. For a linear net Σˣ takes the place of the samples, and the map moves by the
same law. Training tends to this as its kernel moves less and less: as the weights grow while the output at the
start does not, or as layers become very unequal in a net whose large layer spans all that is needed. Together with
a theory of the rich limit it brackets a run.

Symbols: K, tangent kernel at the start; f₀, outputs there; P, number of samples; z, time integral of the error.

Convention: τ = 1 and the loss is ½·mean ‖y − f(x)‖². The representations that make up the kernel are frozen with it,
so they are those of the start, and the kernel distance is 0.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _kernel, _pair
from .._checks import instance
from .._noun import noun, static
from .._paths import product
from .._precision import in_double
from .._setup import Setup
from ..nets import DeepLinear
from .base import Approach, Assumption, Limit, Readout, smooth_training

__all__ = ["FrozenKernel"]

LARGEST = 4096  # outputs × samples: the kernel is a matrix of this size, and its eigenvectors are needed
QUICK = 400  # up to this size, how lazy a setup is, is measured whenever theories are compared


@noun
class KernelConstants:
    """The kernel's rates, the first error along its vectors, and how its integral moves outputs, map and weights."""

    rates: Any  # (vector,)
    error: Any  # (vector,)
    begun: Any  # the outputs, or the map of a linear net, at the start
    moves: Any  # (…shape of begun, vector)
    floor: Any
    weights: Any
    weight_moves: Any  # per weight: (…shape, vector)
    modes: Any
    x: Any
    linear: bool = static()


@in_double
@jax.jit
def _of_map(weights: Any, target: Any, cov_x: Any) -> Any:
    """A linear chain by its blocks: the samples' place is taken by the root of Σˣ."""
    values, vectors = jnp.linalg.eigh(cov_x)
    root = (vectors * jnp.sqrt(jnp.maximum(values, 0))) @ vectors.T
    blocks = _kernel.tangent(weights)
    matrix = _product(weights)
    size = matrix.size
    kernel = jnp.einsum("lop,lij->oipj", blocks.outer, root @ blocks.inner @ root).reshape(size, size)
    rates, basis = jnp.linalg.eigh(kernel)
    error = ((target - matrix) @ root).reshape(size) @ basis
    along = basis.reshape(*matrix.shape, size)
    moves = jnp.einsum("lop,lij,pjk->oik", blocks.outer, blocks.inner @ root, along)
    # The slope of every weight, pulled back from each vector.
    pull = lambda direction: jax.vjp(_product, weights)[1](direction @ root)[0]  # noqa: E731
    weight_moves = jax.vmap(pull, in_axes=2, out_axes=-1)(along)
    return jnp.maximum(rates, 0), error, matrix, moves, weight_moves


def _product(weights: Any) -> Any:
    return product(weights, range(len(weights)))


@in_double
def _of_samples(net: Any, weights: Any, x: Any, y: Any) -> Any:
    """Any net by the slopes of its outputs."""
    count = x.shape[0]
    outputs = net.apply(weights, x)
    slopes = jax.jacrev(lambda w: net.apply(w, x).reshape(-1) / jnp.sqrt(count))(weights)
    flat = jnp.concatenate([leaf.reshape(outputs.size, -1) for leaf in jax.tree.leaves(slopes)], axis=1)
    rates, basis = jnp.linalg.eigh(flat @ flat.T)
    error = ((y - outputs) / jnp.sqrt(count)).reshape(-1) @ basis
    moves = (jnp.sqrt(count) * basis * jnp.maximum(rates, 0)).reshape(*outputs.shape, -1)
    weight_moves = jax.tree.map(lambda leaf: jnp.tensordot(leaf, basis, ((0,), (0,))), slopes)
    return jnp.maximum(rates, 0), error, outputs, moves, weight_moves


def _moved(constants: KernelConstants, states: Any) -> Any:
    return constants.begun + jnp.einsum("...k,tk->t...", constants.moves, states)


def _loss(constants: KernelConstants, states: Any) -> Any:
    return constants.floor + 0.5 * jnp.sum((constants.error - constants.rates * states) ** 2, axis=-1)


def _outputs(constants: KernelConstants, states: Any) -> Any:
    moved = _moved(constants, states)
    return jnp.einsum("si,toi->tso", constants.x, moved) if constants.linear else moved


def _still(value: Any, states: Any) -> Any:
    return jnp.broadcast_to(value, (len(states), *value.shape))


@noun
class FrozenKernel(Limit):
    """Learning under the tangent kernel of the start, for any net; the limit of lazy training."""

    reference = {"jacot2018": "eq. 2", "chizat2019": "eq. 3"}
    approach = Approach("inverse square of the weights' scale", (0.4, 0.2, 0.1), order=2)
    readouts = {
        "loss": Readout((), _loss),
        "outputs": Readout(("sample", "feature"), _outputs),
        "map": Readout(("feature", "input"), _moved),
        "modes": Readout(("mode",), lambda c, z: c.modes.strengths(_moved(c, z))),
        "input_representation": Readout(("input", "input_"), lambda c, z: _still(c.weights[0].T @ c.weights[0], z)),
        "output_representation": Readout(
            ("feature", "feature_"), lambda c, z: _still(c.weights[-1] @ c.weights[-1].T, z)
        ),
        "kernel_distance": Readout((), lambda c, z: jnp.zeros(len(z))),
    }

    @classmethod
    def example(cls) -> Setup:
        return cls().turned(0.1)

    def turned(self, value: float) -> Setup:
        from .. import inits, nets, tasks

        # Mirrored units: the weights grow, the output at the start stays zero.
        scale = value**-0.5
        white = tasks.regression(d_in=3, d_out=2, samples=9, seed=3)
        task = tasks.from_arrays(0.1 * white.x, 0.1 * white.y)
        init = inits.Mirrored(scale, scale)
        return Setup(task, nets.DeepLinear(hidden=8), init, until=200.0 * value, points=21)

    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        size = _kernel_size(setup)
        if size is None:
            return (Assumption.that("samples", "a net that is not linear needs samples", False, "moments", "samples"),)
        hard = Assumption.at_most("kernel", "outputs × samples (inputs, for a linear net)", size, LARGEST)
        soft = Assumption.at_most(
            "quick kernel", "the kernel is small enough to be compared in passing", size, QUICK, advisory=True
        )
        if not soft.holds:
            return (hard, soft, *smooth_training(setup, lambda: fastest_rate(setup, seed)))
        constants = self.constants(setup, seed)
        fastest = float(np.max(constants.rates))
        lazy = Assumption.at_most(
            "lazy",
            "the kernel stays: ‖K₁ − K₀‖/‖K₀‖ between the start and the end of the frozen path",
            _movement(setup, constants),
            0.2,
            advisory=True,
        )
        return (hard, soft, *smooth_training(setup, lambda: fastest), lazy)

    def constants(self, setup: Setup, seed: Any) -> KernelConstants:
        bound, weights = setup.bound(), setup.weights(seed)
        task, net = bound.task, bound.net
        chain = isinstance(net, DeepLinear)
        if chain:
            parts = _of_map(weights, task.target(), task.cov_x)
        else:
            parts = _of_samples(net, weights, task.x, task.y)
        rates, error, begun, moves, weight_moves = parts
        floor = task.floor() if chain else 0.0
        modes = setup.modes(seed) if chain else None
        return KernelConstants(rates, error, begun, moves, floor, weights, weight_moves, modes, task.x, chain)

    def start(self, constants):
        return jnp.zeros_like(constants.rates)

    def field(self, constants, state):
        return constants.error - constants.rates * state

    def states(self, constants, times):
        rates, times = constants.rates, times[:, None]
        turns = rates * times
        early = turns < 1  # where a rate is 0, or its product with the time
        late = -jnp.expm1(-turns) / jnp.where(early, 1.0, rates)
        return constants.error * jnp.where(early, times * _pair.mean_decay(turns), late)

    def path(self, constants, states):
        return jax.tree.map(
            lambda w, moves: w + jnp.einsum("...k,tk->t...", moves, states), constants.weights, constants.weight_moves
        )

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        movement = _movement(setup, self.constants(setup, seed))
        return (
            f"the kernel is held still; at the end of this path it would have changed by {movement:.3g} of its size",
        )


def fastest_rate(setup: Setup, seed: int) -> float:
    """The largest eigenvalue of the kernel by power iteration; the kernel is not formed."""
    instance(setup, "setup", Setup, "build one with festina.Setup(task, net, init)")
    bound, weights = setup.bound(), setup.weights(seed)
    net, task = bound.net, bound.task
    if net.linear:
        values, vectors = np.linalg.eigh(task.cov_x)
        root = (vectors * np.sqrt(np.maximum(values, 0))).T
        return float(_largest_eigenvalue(net, weights, root))
    return float(_largest_eigenvalue(net, weights, task.x)) / task.samples


@in_double
@jax.jit
def _largest_eigenvalue(net: Any, weights: Any, x: Any) -> Any:
    def apply(w):
        return x @ net.map(w).T if net.linear else net.apply(w, x)

    outputs, pull = jax.vjp(apply, weights)

    def improve(_, state):
        direction = state[0] / jnp.linalg.norm(state[0])
        moved = jax.jvp(apply, (weights,), pull(direction))[1]
        return moved, jnp.sum(direction * moved)

    first = jax.random.normal(jax.random.key(0), outputs.shape, outputs.dtype)
    return jax.lax.fori_loop(0, 50, improve, (first, jnp.zeros((), outputs.dtype)))[1]


def _kernel_size(setup: Setup) -> int | None:
    if isinstance(setup.net, DeepLinear):
        return setup.task.d_in * setup.task.d_out
    return None if setup.task.samples is None else setup.task.samples * setup.task.d_out


def _movement(setup: Setup, constants: KernelConstants) -> float:
    """Relative change of the kernel from the start to the weights at which the frozen path ends."""
    last = np.asarray(setup.times)[-1:]
    bound = setup.bound()
    return float(_kernel_movement(bound.net, bound.task.x, bound.task.cov_x, constants, last))


@in_double
def _kernel_movement(net: Any, x: Any, cov_x: Any, constants: KernelConstants, last: Any) -> Any:
    theory = FrozenKernel()
    path = theory.path(constants, theory.states(constants, jnp.asarray(last)))
    ended = jax.tree.map(lambda leaf: leaf[0], path)
    if constants.linear:
        return _kernel.relative_change(_kernel.tangent(constants.weights), _kernel.tangent(ended), cov_x)

    def kernel(weights):
        slopes = jax.tree.leaves(jax.jacrev(lambda w: net.apply(w, x).reshape(-1))(weights))
        return sum(leaf.reshape(leaf.shape[0], -1) @ leaf.reshape(leaf.shape[0], -1).T for leaf in slopes)

    begun = kernel(constants.weights)
    return jnp.linalg.norm(kernel(ended) - begun) / jnp.linalg.norm(begun)
