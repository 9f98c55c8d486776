"""A network whose tangent kernel does not change learns like a linear regression: the lazy limit, for any net.

With outputs f on all samples, their Jacobian J with respect to the weights at initialisation, and K = J Jᵀ/P,

    d(y − f)/dt = −K (y − f),      f(t) = y − e^(−Kt) (y − f₀),      Δw = Jᵀ z/P,  z = K⁻¹(1 − e^(−Kt))(y − f₀)

[jacot2018, eq. 2] [chizat2019, eq. 3]. For a linear net Σˣ takes the place of the samples, and the map moves by the
same law. Training tends to this as the kernel changes less and less: as the initial weights grow while the initial
output does not, or as the layers become very unequal in a net whose large layer already spans all directions that are
needed. An actual run lies between this theory and one of the rich limit.

Symbols: K, tangent kernel at the start; f₀, outputs there; P, number of samples; z, time integral of the error.

Convention: τ = 1 and the loss is ½·mean ‖y − f(x)‖². The representations that make up the kernel are frozen with it,
so they are those of the start, and the kernel distance is 0.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._formulas import tangent_kernel, two_layer_mode
from .._formulas.modes import Modes
from .._foundation.arrays import AnyArray, Layers, Number, Weights
from .._foundation.nouns import noun, static
from .._foundation.precision import in_double
from .._foundation.program_memory import compiled
from .._setup.setup import Setup
from ..nets.base import Net
from ..nets.gated.paths import product
from ._rates import fastest_rate
from .base import Approach, Assumption, Limit, Readout, Seed, Times, smooth_training

__all__ = ["FrozenKernel"]

LARGEST = 4096  # outputs × samples: the kernel is a matrix of this size, and its eigenvectors are needed
QUICK = 400  # up to this size, how lazy a setup is, is measured whenever theories are compared

States = Float[AnyArray, "time vector"]


@noun
class KernelConstants:
    """The kernel's eigenvalues, the initial error in its eigenbasis, and how outputs and weights follow its integral.

    For a linear chain the map takes the place of the outputs on all samples.
    """

    rates: Float[AnyArray, " vector"]
    error: Float[AnyArray, " vector"]
    outputs: Float[AnyArray, "row column"]  # at the start
    moves: Float[AnyArray, "row column vector"]  # of the outputs
    floor: Number
    weights: Weights
    weight_moves: Weights  # per weight: (…shape, vector)
    modes: Modes | None
    x: Float[AnyArray, "sample in"] | None
    linear: bool = static()


Kernel = tuple[
    Float[AnyArray, " vector"],
    Float[AnyArray, " vector"],
    Float[AnyArray, "row column"],
    Float[AnyArray, "row column vector"],
    Weights,
]


@in_double
@compiled(effort="little")
def _of_map(weights: Layers, target: Float[AnyArray, "out in"], cov_x: Float[AnyArray, "in in"]) -> Kernel:
    """The kernel of a linear chain, from its blocks: the root of Σˣ takes the place of the samples."""
    values, vectors = jnp.linalg.eigh(cov_x)
    root = (vectors * jnp.sqrt(jnp.maximum(values, 0))) @ vectors.T
    blocks = tangent_kernel.tangent(weights)
    matrix = _product(weights)
    size = matrix.size
    kernel = jnp.einsum("lop,lij->oipj", blocks.outer, root @ blocks.inner @ root).reshape(size, size)
    rates, basis = jnp.linalg.eigh(kernel)
    error = ((target - matrix) @ root).reshape(size) @ basis
    along = basis.reshape(*matrix.shape, size)
    moves = jnp.einsum("lop,lij,pjk->oik", blocks.outer, blocks.inner @ root, along)

    def pull(direction: Float[AnyArray, "out in"]) -> Layers:
        """The change of every weight per unit of one eigenvector, by a vector-Jacobian product."""
        return jax.vjp(_product, weights)[1](direction @ root)[0]

    weight_moves = jax.vmap(pull, in_axes=2, out_axes=-1)(along)
    return jnp.maximum(rates, 0), error, matrix, moves, weight_moves


def _product(weights: Layers) -> Float[AnyArray, "out in"]:
    return product(weights, range(len(weights)))


@in_double
def _of_samples(
    net: Net, weights: Weights, x: Float[AnyArray, "sample in"], y: Float[AnyArray, "sample out"]
) -> Kernel:
    """The kernel of any net, from the slopes of its outputs."""
    count = x.shape[0]
    outputs = net.apply(weights, x)
    slopes = jax.jacrev(lambda w: net.apply(w, x).reshape(-1) / jnp.sqrt(count))(weights)
    flat = jnp.concatenate([leaf.reshape(outputs.size, -1) for leaf in jax.tree.leaves(slopes)], axis=1)
    rates, basis = jnp.linalg.eigh(flat @ flat.T)
    error = ((y - outputs) / jnp.sqrt(count)).reshape(-1) @ basis
    moves = (jnp.sqrt(count) * basis * jnp.maximum(rates, 0)).reshape(*outputs.shape, -1)
    weight_moves = jax.tree.map(lambda leaf: jnp.tensordot(leaf, basis, ((0,), (0,))), slopes)
    return jnp.maximum(rates, 0), error, outputs, moves, weight_moves


def _moved(constants: KernelConstants, states: States) -> Float[AnyArray, "time row column"]:
    return constants.outputs + jnp.einsum("...k,tk->t...", constants.moves, states)


def _loss(constants: KernelConstants, states: States) -> Float[AnyArray, " time"]:
    return constants.floor + 0.5 * jnp.sum((constants.error - constants.rates * states) ** 2, axis=-1)


def _outputs(constants: KernelConstants, states: States) -> Float[AnyArray, "time sample out"]:
    moved = _moved(constants, states)
    return jnp.einsum("si,toi->tso", constants.x, moved) if constants.linear else moved


def _still(value: Float[AnyArray, "row column"], states: States) -> Float[AnyArray, "time row column"]:
    return jnp.broadcast_to(value, (len(states), *value.shape))


def _error_integral(rates: Float[AnyArray, " vector"], times: Times) -> States:
    """(1 − e^(−rate t))/rate, the time integral of an error that starts at 1; also at rate = 0."""
    times = times[:, None]
    exponents = rates * times
    early = exponents < 1  # where a rate is 0, or its product with the time
    late = -jnp.expm1(-exponents) / jnp.where(early, 1.0, rates)
    return jnp.where(early, times * two_layer_mode.mean_decay(exponents), late)


@noun
class FrozenKernel(Limit[KernelConstants, Float[AnyArray, " vector"]]):
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
        return cls().example_at(0.1)

    def example_at(self, value: float) -> Setup:
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
            "quick kernel",
            "the kernel is small enough to be formed whenever theories are compared",
            size,
            QUICK,
            advisory=True,
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

    def constants(self, setup: Setup, seed: Seed) -> KernelConstants:
        lifted, weights = setup.lifted(), setup.weights(seed)
        task, net = lifted.single_task, lifted.net
        chain = net.is_linear_chain
        if chain:
            kernel = _of_map(weights, task.target(), task.cov_x)
        else:
            kernel = _of_samples(net, weights, task.x, task.y)
        rates, error, outputs, moves, weight_moves = kernel
        floor = task.floor() if chain else 0.0
        modes = setup.modes(seed) if chain else None
        return KernelConstants(rates, error, outputs, moves, floor, weights, weight_moves, modes, task.x, chain)

    def start(self, constants: KernelConstants) -> Float[AnyArray, " vector"]:
        return jnp.zeros_like(constants.rates)

    def field(self, constants: KernelConstants, state: Float[AnyArray, " vector"]) -> Float[AnyArray, " vector"]:
        return constants.error - constants.rates * state

    def states(self, constants: KernelConstants, times: Times) -> States:
        return constants.error * _error_integral(constants.rates, times)

    def followed_weights(self, constants: KernelConstants, states: States) -> Weights:
        return jax.tree.map(
            lambda w, moves: w + jnp.einsum("...k,tk->t...", moves, states), constants.weights, constants.weight_moves
        )

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        movement = _movement(setup, self.constants(setup, seed))
        return (
            f"the kernel is held still; at the end of this path it would have changed by {movement:.3g} of its size",
        )


def _kernel_size(setup: Setup) -> int | None:
    if setup.net.is_linear_chain:
        return setup.single_task.d_in * setup.single_task.d_out
    return None if setup.single_task.samples is None else setup.single_task.samples * setup.single_task.d_out


def _movement(setup: Setup, constants: KernelConstants) -> float:
    """Relative change of the kernel from the start to the weights at which the frozen path ends."""
    last = np.asarray(setup.times)[-1:]
    lifted = setup.lifted()
    if constants.linear:
        return float(_movement_of_chain(lifted.single_task.cov_x, constants, last))
    return float(_movement_of_samples(lifted.net, lifted.single_task.x, constants, last))


@in_double
def _movement_of_chain(cov_x: Float[AnyArray, "in in"], constants: KernelConstants, last: Times) -> Float[AnyArray, ""]:
    before, after = tangent_kernel.tangent(constants.weights), tangent_kernel.tangent(_end(constants, last))
    return tangent_kernel.relative_change(before, after, cov_x)


@in_double
def _movement_of_samples(
    net: Net, x: Float[AnyArray, "sample columns"], constants: KernelConstants, last: Times
) -> Float[AnyArray, ""]:
    def kernel(weights: Weights) -> Float[AnyArray, "output output"]:
        slopes = jax.tree.leaves(jax.jacrev(lambda w: net.apply(w, x).reshape(-1))(weights))
        flat = [leaf.reshape(leaf.shape[0], -1) for leaf in slopes]
        return sum((slope @ slope.T for slope in flat), jnp.zeros(()))

    before, after = kernel(constants.weights), kernel(_end(constants, last))
    return jnp.linalg.norm(after - before) / jnp.linalg.norm(before)


def _end(constants: KernelConstants, last: Times) -> Weights:
    theory = FrozenKernel()
    path = theory.followed_weights(constants, theory.states(constants, jnp.asarray(last)))
    return jax.tree.map(lambda leaf: leaf[0], path)
