"""Constants and readouts that theories of deep linear chains share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Float

from .._formulas import tangent_kernel
from .._formulas.aligned_chain import chain_bases
from .._formulas.modes import Modes
from .._foundation.arrays import AnyArray, Layers, Number
from .._foundation.nouns import noun, static
from .._setup.setup import Setup
from ._remarks import lost_from_the_start
from .base import Readout, Seed


@noun
class LinearConstants:
    """The modes of a task, fitted to the initial weights; the initial layers; and what the loss is computed from."""

    modes: Modes
    weights: Layers
    floor: Number  # the lowest loss of a linear map
    cov_x: Float[AnyArray, "in in"]
    x: Float[AnyArray, "sample in"] | None
    depth: int = static()


def linear_constants(setup: Setup, seed: Seed) -> LinearConstants:
    task = setup.single_task
    return LinearConstants(setup.modes(seed), setup.weights(seed), task.floor(), task.cov_x, task.x, setup.net.depth)


@runtime_checkable
class KnowsModes(Protocol):
    """Constants of a theory whose map is diagonal in modes."""

    @property
    def modes(self) -> Modes: ...

    @property
    def floor(self) -> Number: ...

    @property
    def x(self) -> Float[AnyArray, "sample in"] | None: ...


def _loss(constants: KnowsModes, strengths: Float[AnyArray, "time mode"]) -> Float[AnyArray, " time"]:
    # Measured from the floor, so that a vanishing loss keeps its digits.
    gap = strengths - constants.modes.targets()
    return constants.floor + 0.5 * jnp.sum(constants.modes.variances * gap**2, axis=-1)


def _map(constants: KnowsModes, strengths: Float[AnyArray, "time mode"]) -> Float[AnyArray, "time out in"]:
    return constants.modes.matrix(strengths)


# Readouts of the strengths of all modes, (time, mode).
MAP_READOUTS = {
    "loss": Readout((), _loss),
    "map": Readout(("feature", "input"), _map),
    "outputs": Readout(("sample", "feature"), lambda c, a: jnp.einsum("si,toi->tso", c.x, _map(c, a))),
    "modes": Readout(("mode",), lambda constants, strengths: strengths),
}


def grown(
    constants: LinearConstants, layer_strengths: Float[AnyArray, "time layer mode"]
) -> tuple[Float[AnyArray, "time _ _"], ...]:
    """The weights of an aligned chain whose layers have reached these strengths."""
    start, _, bases = chain_bases(constants.modes, constants.weights)
    return tuple(
        w + jnp.einsum("om,tm,im->toi", bases[k + 1], layer_strengths[:, k] - start[k], bases[k])
        for k, w in enumerate(constants.weights)
    )


def growth_along_modes(
    modes: Modes, strengths: Float[AnyArray, "time mode"], weights: Layers
) -> Float[AnyArray, " time"]:
    """A bound on the eigenvalues of −H, the rates at which errors grow: (D − 1) |W|^(D−2) |Σʸˣ − MΣˣ|.

    It holds for two layers, and for more if they are balanced. In deeper chains |W| is bounded by the strengths of the
    modes at that time and by the initial layers, since the part of the layers outside the modes does not change.
    """
    depth = len(weights)
    error = jnp.max(jnp.abs(modes.singular_values - modes.variances * strengths), axis=-1)
    if depth <= 2:
        return (depth - 1) * error
    at_start = jnp.max(jnp.stack([jnp.sqrt(jnp.sum(w**2)) for w in weights]))
    largest = jnp.maximum(jnp.max(jnp.abs(strengths), axis=-1) ** (1 / depth), at_start)
    return (depth - 1) * largest ** (depth - 2) * error


@runtime_checkable
class KnowsTheStart(Protocol):
    """Constants that hold the layers at the start, and Σˣ."""

    @property
    def weights(self) -> Layers: ...

    @property
    def cov_x(self) -> Float[AnyArray, "in in"]: ...


LayersInTime = tuple[Float[AnyArray, "time _ _"], ...]


def kernel_distances(constants: KnowsTheStart, layers: LayersInTime) -> Float[AnyArray, " time"]:
    """Distance of the tangent kernel of `layers` from that of the start."""
    start = tangent_kernel.tangent(constants.weights)

    def distance(*layers: Float[AnyArray, "_ _"]) -> Float[AnyArray, ""]:
        return tangent_kernel.distance(start, tangent_kernel.tangent(layers), constants.cov_x)

    return jax.vmap(distance)(*layers)


def _input_gram(constants: KnowsTheStart, layers: LayersInTime) -> Float[AnyArray, "time in in"]:
    return jnp.einsum("thi,thj->tij", layers[0], layers[0])


def _output_gram(constants: KnowsTheStart, layers: LayersInTime) -> Float[AnyArray, "time out out"]:
    return jnp.einsum("toh,tph->top", layers[-1], layers[-1])


WEIGHT_READOUTS = {
    "input_representation": Readout(("input", "input_"), _input_gram),
    "output_representation": Readout(("feature", "feature_"), _output_gram),
    "kernel_distance": Readout((), kernel_distances),
}


def weight_readouts(layers_of: Callable[[Any, Any], LayersInTime]) -> dict[str, Readout]:
    """Representations and kernel distance, read off the layers that `layers_of(constants, states)` gives."""

    def through(read: Callable[[Any, Any], AnyArray]) -> Callable[[Any, Any], AnyArray]:
        return lambda constants, states: read(constants, layers_of(constants, states))

    return {name: Readout(readout.axes, through(readout.read)) for name, readout in WEIGHT_READOUTS.items()}


def _strengths(layer_strengths: Float[AnyArray, "time layer mode"]) -> Float[AnyArray, "time mode"]:
    return jnp.prod(layer_strengths, axis=-2)


class AlignedLayers:
    """A theory whose state is the strength of every layer in every mode."""

    readouts: ClassVar[Mapping[str, Readout]] = {
        **{
            name: Readout(readout.axes, lambda c, b, read=readout.read: read(c, _strengths(b)))
            for name, readout in MAP_READOUTS.items()
        },
        **weight_readouts(grown),
        "layer_strengths": Readout(("layer", "mode"), lambda constants, states: states),
    }

    def constants(self, setup: Setup, seed: Seed) -> LinearConstants:
        return linear_constants(setup, seed)

    def start(self, constants: LinearConstants) -> Float[AnyArray, "layer mode"]:
        return chain_bases(constants.modes, constants.weights).strengths

    def weights(self, constants: LinearConstants, states: Float[AnyArray, "time layer mode"]) -> LayersInTime:
        return grown(constants, states)

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        return lost_from_the_start(setup, seed)
