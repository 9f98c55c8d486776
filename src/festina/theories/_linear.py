"""What theories of deep linear chains share: constants, readouts, assumptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from .. import _kernel
from .._linalg import NOTHING, ROUNDING, Modes, chain_bases, input_defect
from .._noun import noun, static
from .._setup import Setup
from ..nets import DeepLinear
from .base import Assumption, Readout, smooth_training

MOST_SPANS = 2e5  # fastest time constants that a reduction is integrated over: some seconds
LEAST_EXPONENT = -290.0  # of 10: numbers above 1e-308 with all their digits, and room for products with rates


@noun
class LinearConstants:
    """The task's modes at a start, the start itself, and how a loss is read off the strengths."""

    modes: Modes
    weights: Any
    floor: Any
    cov_x: Any
    x: Any
    depth: int = static()


def linear_constants(setup: Setup, seed: Any) -> LinearConstants:
    task = setup.task
    return LinearConstants(setup.modes(seed), setup.weights(seed), task.floor(), task.cov_x, task.x, setup.net.depth)


def _loss(constants: LinearConstants, strengths: Any) -> Any:
    # Measured from the floor, so that a vanishing loss keeps its digits.
    gap = strengths - constants.modes.targets()
    return constants.floor + 0.5 * jnp.sum(constants.modes.variances * gap**2, axis=-1)


def _map(constants: LinearConstants, strengths: Any) -> Any:
    return constants.modes.matrix(strengths)


# Readouts of the strengths of all modes, axes (time, mode).
MAP_READOUTS = {
    "loss": Readout((), _loss),
    "map": Readout(("feature", "input"), _map),
    "outputs": Readout(("sample", "feature"), lambda c, a: jnp.einsum("si,toi->tso", c.x, _map(c, a))),
    "modes": Readout(("mode",), lambda constants, strengths: strengths),
}


def grown(constants: LinearConstants, layer_strengths: Any) -> tuple[Any, ...]:
    """Weights of an aligned chain whose layers have reached `layer_strengths`, (time, layer, mode)."""
    begun, _, bases = chain_bases(constants.modes, constants.weights)
    return tuple(
        w + jnp.einsum("om,tm,im->toi", bases[k + 1], layer_strengths[:, k] - begun[k], bases[k])
        for k, w in enumerate(constants.weights)
    )


def growth_along_modes(modes: Modes, strengths: Any, weights: Any) -> Any:
    """A bound on −H of balanced layers (any two layers), time first: (D − 1) |W|^(D−2) |Σʸˣ − MΣˣ|.

    Of deeper chains |W| is bounded by the modes now and by the layers of the start: what is beside the modes stays.
    """
    depth = len(weights)
    error = jnp.max(jnp.abs(modes.singular_values - modes.variances * strengths), axis=-1)
    if depth <= 2:
        return (depth - 1) * error
    begun = jnp.max(jnp.stack([jnp.sqrt(jnp.sum(w**2)) for w in weights]))
    largest = jnp.maximum(jnp.max(jnp.abs(strengths), axis=-1) ** (1 / depth), begun)
    return (depth - 1) * largest ** (depth - 2) * error


def kernel_distances(constants: Any, layers: Any) -> Any:
    """Distance of the tangent kernel of `layers`, time first, from that of the start, `constants.weights`."""
    begun = _kernel.tangent(constants.weights)
    each = lambda *layers: _kernel.distance(begun, _kernel.tangent(layers), constants.cov_x)  # noqa: E731
    return jax.vmap(each)(*layers)


def _input_gram(constants: Any, layers: Any) -> Any:
    return jnp.einsum("thi,thj->tij", layers[0], layers[0])


def _output_gram(constants: Any, layers: Any) -> Any:
    return jnp.einsum("toh,tph->top", layers[-1], layers[-1])


WEIGHT_READOUTS = {
    "input_representation": Readout(("input", "input_"), _input_gram),
    "output_representation": Readout(("feature", "feature_"), _output_gram),
    "kernel_distance": Readout((), kernel_distances),
}


def weight_readouts(layers_of: Callable[[Any, Any], Any]) -> dict[str, Readout]:
    """Representations and kernel distance, read off the layers that `layers_of(constants, states)` gives."""

    def through(read):
        return lambda constants, states: read(constants, layers_of(constants, states))

    return {name: Readout(readout.axes, through(readout.read)) for name, readout in WEIGHT_READOUTS.items()}


def _strengths(layer_strengths: Any) -> Any:
    return jnp.prod(layer_strengths, axis=-2)


class AlignedLayers:
    """A theory whose state is the strength of every layer in every mode, (layer, mode)."""

    readouts: ClassVar[Mapping[str, Readout]] = {
        **{
            name: Readout(readout.axes, lambda c, b, read=readout.read: read(c, _strengths(b)))
            for name, readout in MAP_READOUTS.items()
        },
        **weight_readouts(grown),
        "layer_strengths": Readout(("layer", "mode"), lambda constants, states: states),
    }

    def constants(self, setup: Setup, seed: Any) -> LinearConstants:
        return linear_constants(setup, seed)

    def start(self, constants: LinearConstants) -> Any:
        return chain_bases(constants.modes, constants.weights)[0]

    def weights(self, constants: LinearConstants, states: Any) -> Any:
        return grown(constants, states)

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        return lost_from_the_start(setup, seed)


def chain_assumption(setup: Setup) -> Assumption:
    """That the network is a deep linear chain; without it nothing else can be measured."""
    return Assumption.that(
        "linear chain",
        "the network is a chain of linear layers",
        isinstance(setup.net, DeepLinear),
        type(setup.net).__name__,
        "DeepLinear",
    )


def two_layer_assumptions(setup: Setup) -> tuple[Assumption, ...]:
    """That the network is a linear chain, and of two layers; nothing else can be measured unless all hold."""
    chain = chain_assumption(setup)
    if not chain.holds:
        return (chain,)
    layers = len(setup.net.hidden) + 1
    two = Assumption.that("two layers", "the chain has one hidden layer", layers == 2, f"{layers} layers", "2 layers")
    return chain, two


def linear_assumptions(setup: Setup, modes: Modes, fastest_rate: Callable[[], float]) -> tuple[Assumption, ...]:
    """What every theory of modes needs besides the chain: a smooth rule, and inputs that share the modes."""
    shared = Assumption.at_most(
        "shared modes",
        "Σˣ is diagonal in the right singular vectors of Σʸˣ",
        input_defect(modes, setup.task.cov_x),
        1e-6,
        defect=True,
    )
    return (*smooth_training(setup, fastest_rate), shared)


def aligned_assumption(defect: float) -> Assumption:
    return Assumption.at_most(
        "aligned", "each layer is diagonal between bases shared with its neighbours", defect, 1e-6, defect=True
    )


def range_assumption(*chains: Any) -> Assumption:
    """That products of the strengths of a mode's layers, (layer, mode), are in float64: at 0 none would be learned."""
    smallest = 0.0
    for size in map(np.abs, chains):
        exponents = np.sum(np.log10(np.where(size > 0, size, 1.0)), axis=0)
        smallest = float(np.min(exponents[np.all(size > 0, axis=0)], initial=smallest))
    return Assumption.that(
        "range",
        "the strengths of a mode's layers have a product that float64 holds, or one of them is 0",
        smallest >= LEAST_EXPONENT,
        f"10^{smallest:.3g}",
        f">= 10^{LEAST_EXPONENT:g}",
    )


def horizon_assumption(setup: Setup, fastest_rate: float) -> Assumption:
    """That the exponents of the last time still have digits in float64."""
    blur = float(np.finfo(float).eps * fastest_rate * np.max(setup.times))
    return Assumption.at_most(
        "horizon", "rounding of rate × time is small, so that float64 means something", blur, 1e-6
    )


def integration_assumption(setup: Setup, fastest_rate: float) -> Assumption:
    """That a law is integrated in a number of explicit steps that can be waited for; it grows as rate × time."""
    return Assumption.at_most(
        "integration",
        "fastest rate × last time, and so the number of steps in which the law is integrated",
        fastest_rate * float(np.max(setup.times)),
        MOST_SPANS,
    )


def unlearnable(silent: Any, values: Any, why: str) -> tuple[str, ...]:
    """A remark on the modes that a start can never learn, counted from 1."""
    modes = [f"{k + 1} (s = {value:.4g})" for k, value in enumerate(values) if silent[k]]
    return (f"never learned: mode {', '.join(modes)}; {why}",) if modes else ()


def cut_off(values: Any) -> tuple[str, ...]:
    """A remark on singular values that are no rounding, but so small that theories take them for 0."""
    largest = np.max(values, initial=0.0)
    cut = (values > ROUNDING * largest) & (values <= NOTHING * largest)
    modes = [f"{k + 1} (s = {value:.4g})" for k, value in enumerate(values) if cut[k]]
    return (f"taken as nothing: mode {', '.join(modes)}; at most {NOTHING:g} of the largest s",) if modes else ()


def lost_from_the_start(setup: Setup, seed: int) -> tuple[str, ...]:
    """A remark on aligned modes that start where nothing grows; one layer alone has no such place."""
    modes = setup.modes(seed)
    layer_strengths = chain_bases(modes, setup.weights(seed))[0]
    if len(layer_strengths) == 1:
        return ()
    size = np.abs(layer_strengths)
    product = np.prod(layer_strengths, axis=0)
    balanced = np.ptp(size, axis=0) <= 1e-13 * size.max(axis=0)
    # One layer that is not zero feeds the other; of three, two must not be.
    dead = (product <= 0) & (balanced | (np.sum(size > 0, axis=0) < len(size) - 1))
    wanted = modes.singular_values > NOTHING * modes.singular_values[0]
    why = "it starts at zero, or balanced with the opposite sign"
    return (*unlearnable(dead & wanted, modes.singular_values, why), *cut_off(modes.singular_values))
