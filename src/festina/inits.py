"""Inits: laws of the initial weights."""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from . import _checks
from ._errors import BadInput, shown
from ._linalg import NOTHING
from ._noun import is_traced, noun, positive, real_array, settle, static
from ._race_start import decoupled
from ._setup import Init, Net, Task
from ._starts import (
    around_hidden,
    balanced_sizes,
    basis,
    chain_shapes,
    completed,
    is_shape,
    map_layers,
    normal,
    one_or_several,
    refuse_impossible_balance,
    shapes_around_hidden,
    shared_out,
    two_layer_width,
)

__all__ = [
    "Aligned",
    "Balanced",
    "Decoupled",
    "Given",
    "Mirrored",
    "Orthogonal",
    "SingleNeuron",
    "SmallRandom",
    "Xavier",
    "ZeroBalanced",
]


@noun
class Aligned(Init):
    """Balanced layers along the task's own modes: the map starts as Σ_k a_k u_k v_kᵀ.

    `strength` is the a_k of the whole map, one number or one per mode (largest singular value
    first); each of the D layers has |a_k|^(1/D), a negative sign sits in the last one. The hidden
    basis is random. Modes that do not fit through the narrowest layer start, and stay, at zero.
    """

    strength: Any

    def __post_init__(self):
        object.__setattr__(self, "strength", one_or_several(self.strength, "strength"))

    def draw(self, key, net, task):
        shapes = chain_shapes(self, net, task)
        modes = task.modes()
        count = modes.singular_values.shape[0]
        strength = jnp.asarray(self.strength)
        if strength.ndim == 1 and strength.shape[0] != count:
            raise BadInput(
                f"strength has {strength.shape[0]} values",
                f"one number, or one for each of the {count} modes of the task",
                "match the number of modes: min(d_in, d_out)",
            )
        narrowest = min([count, *(rows for rows, _ in shapes[:-1])])
        strength = jnp.where(jnp.arange(count) < narrowest, jnp.broadcast_to(strength, (count,)), 0.0)
        # |0|^(1/D) has an infinite slope; hold zeros out of the power.
        live = strength != 0
        layer = jnp.where(live, jnp.abs(jnp.where(live, strength, 1.0)) ** (1 / len(shapes)), 0.0)
        keys = jax.random.split(key, len(shapes))
        bases = [modes.right, *(basis(k, s[0], count) for k, s in zip(keys, shapes[:-1], strict=False)), modes.left]
        weights = [(out * layer) @ into.T for into, out in itertools.pairwise(bases)]
        return (*weights[:-1], (modes.left * layer * jnp.where(strength < 0, -1.0, 1.0)) @ bases[-2].T)


@noun
class Balanced(Init):
    """Two linear layers with W2ᵀW2 − W1W1ᵀ = lam·I; positive `lam` makes the read-out layer the larger one.

    `scale` are the singular values of the starting map W2W1: one number, or one for each of the min(d_in,
    hidden, d_out). Its singular vectors are random, or with `aligned` those of the task's modes, in their order;
    the hidden basis is random. Hidden directions that the map does not use have √|lam| in the larger layer.
    lam > 0 needs hidden ≤ d_out and lam < 0 needs hidden ≤ d_in; where `lam` is traced, values that the
    shape does not allow give NaN. [domine2025, λ-balanced weights]
    """

    lam: Any
    scale: Any
    aligned: bool = static(default=False)

    def __post_init__(self):
        lam = real_array(self.lam, "lam", ndim=0)
        object.__setattr__(self, "lam", lam if is_traced(lam) else float(lam))
        scale = one_or_several(self.scale, "scale")
        if not is_traced(scale) and np.any(np.asarray(scale) < 0):
            raise BadInput(
                f"scale = {np.min(scale):g}", "singular values >= 0", "give sizes; the signs are in the random vectors"
            )
        object.__setattr__(self, "scale", scale)
        settle(self, aligned=_checks.truth(self.aligned, "aligned", "say whether to use the task's modes"))

    def draw(self, key, net, task):
        hidden = two_layer_width(self, net, task)
        d_in, d_out = task.d_in, task.d_out
        if not is_traced(self.lam):
            refuse_impossible_balance(self.lam, d_in, hidden, d_out)
        count = min(d_in, hidden, d_out)
        scale = jnp.asarray(self.scale)
        if scale.ndim == 1 and scale.shape[0] != count:
            raise BadInput(
                f"scale has {scale.shape[0]} values",
                f"one number, or one for each of the {count} singular values of the map {d_in}-{hidden}-{d_out}",
                "match the number of singular values: min(d_in, hidden, d_out)",
            )
        last, first = balanced_sizes(scale, self.lam, d_in, hidden, d_out)
        for_left, for_right, for_hidden = jax.random.split(key, 3)
        if self.aligned:
            modes = task.modes()
            left, right = completed(for_left, modes.left), completed(for_right, modes.right)
        else:
            left, right = jax.random.orthogonal(for_left, d_out), jax.random.orthogonal(for_right, d_in)
        middle = jax.random.orthogonal(for_hidden, hidden)
        into, out = min(d_in, hidden), min(d_out, hidden)
        return (
            (middle[:, :into] * first[:into]) @ right[:, :into].T,
            (left[:, :out] * last[:out]) @ middle[:, :out].T,
        )


@noun
class ZeroBalanced(Init):
    """The map of independent Gaussian layers of standard deviation `scale`, refactored into balanced layers.

    With the SVD U S Vᵀ of the product, each of the D layers has S^(1/D); hidden bases are random. The map is
    that of `SmallRandom` with the same seed. [braun2022, published code], without the factor 1.15 that it has in
    both layers.
    """

    scale: Any

    def __post_init__(self):
        settle(self, scale=positive(self.scale, "scale"))

    def draw(self, key, net, task):
        shapes = chain_shapes(self, net, task)
        layers = SmallRandom(1.0).draw(key, net, task)
        left, values, right = jnp.linalg.svd(net.map(layers), full_matrices=False)
        # A bottleneck leaves singular values that are rounding, and their roots would not be small.
        count = min(min(shape) for shape in shapes)
        layer = self.scale * values[:count] ** (1 / len(shapes))
        keys = jax.random.split(jax.random.fold_in(key, len(shapes)), len(shapes))  # the layers have key 0 … D − 1
        hidden = [basis(k, s[0], count) for k, s in zip(keys, shapes[:-1], strict=False)]
        bases = [right[:count].T, *hidden, left[:, :count]]
        return tuple((out * layer) @ into.T for into, out in itertools.pairwise(bases))


@noun
class SmallRandom(Init):
    """Independent Gaussian weights of standard deviation `scale`, one for all or one for each matrix; biases zero."""

    scale: Any

    def __post_init__(self):
        object.__setattr__(self, "scale", one_or_several(self.scale, "scale"))
        for scale in () if is_traced(self.scale) else np.atleast_1d(self.scale):
            positive(scale, "scale")

    def draw(self, key, net, task):
        drawn = map_layers(key, net, task, normal)
        matrices = [leaf for leaf in jax.tree.leaves(drawn) if leaf.ndim > 1]
        scales = self.scale if is_traced(self.scale) else np.asarray(self.scale)
        if np.ndim(scales) and scales.shape[0] != len(matrices):
            raise BadInput(
                f"scale has {scales.shape[0]} values",
                f"one, or one for each of the {len(matrices)} matrices of the net",
                "match the number of layers or edges",
            )
        each = iter(scales if np.ndim(scales) else [scales] * len(matrices))
        return jax.tree.map(lambda leaf: next(each) * leaf if leaf.ndim > 1 else leaf, drawn)


@noun
class Xavier(Init):
    """Independent weights of variance gain²·2/(fan_in + fan_out), Gaussian or "uniform"; biases zero [glorot2010].

    The fans of a matrix are its sides; those of a kernel are its channels times its length.
    """

    gain: Any = 1.0
    law: str = static(default="normal")

    def __post_init__(self):
        settle(self, gain=positive(self.gain, "gain"), law=_checks.choice(self.law, "law", ("normal", "uniform")))

    def draw(self, key, net, task):
        def layer(k, shape):
            fans = (shape[0] + shape[1]) * math.prod(shape[2:])
            # A uniform number on [−1, 1] has variance 1/3.
            drawn = normal(k, shape) if self.law == "normal" else 3**0.5 * jax.random.uniform(k, shape, minval=-1)
            return self.gain * (2 / fans) ** 0.5 * drawn

        return map_layers(key, net, task, layer)


@noun
class Orthogonal(Init):
    """Every layer is `gain` times a random matrix with orthonormal rows or columns; biases zero.

    With `determinant` "same" or "opposite" the map's determinant has the sign of the target's, or the other one:
    balanced square layers cannot change it, so that with the other one they never learn everything.
    """

    gain: Any = 1.0
    determinant: str | None = static(default=None)

    def __post_init__(self):
        settle(self, gain=positive(self.gain, "gain"))
        if self.determinant is not None and not (
            isinstance(self.determinant, str) and self.determinant in ("same", "opposite")
        ):
            raise BadInput(
                f"determinant = {shown(self.determinant)}",
                "None, 'same' or 'opposite'",
                "say how the sign of the map's determinant compares with that of the target",
            )

    def draw(self, key, net, task):
        def layer(k, shape):
            rows, columns = shape[0], math.prod(shape[1:])
            square = jax.random.orthogonal(k, max(rows, columns))
            return self.gain * square[:rows, :columns].reshape(shape)

        weights = map_layers(key, net, task, layer)
        if self.determinant is None:
            return weights
        wanted = _target_sign(self, net, task) * (1 if self.determinant == "same" else -1)
        for w in weights:
            wanted = wanted * jnp.linalg.slogdet(w)[0]
        return (weights[0].at[:, 0].multiply(jnp.where(wanted < 0, -1.0, 1.0)), *weights[1:])


def _target_sign(init: Orthogonal, net: Net, task: Task) -> Any:
    """The sign of the determinant of the task's target, where both it and the layers have one."""
    shapes = chain_shapes(init, net, task)
    if len({size for shape in shapes for size in shape}) > 1:
        sizes = "-".join(str(size) for size in (task.d_in, *(rows for rows, _ in shapes)))
        raise BadInput(
            f"determinant = {init.determinant!r} in a network {sizes}",
            "square layers, all of one width: others have no determinant",
            f"use hidden widths {task.d_in} in a task with as many outputs as inputs, or determinant=None",
        )
    target = task.target()
    if not is_traced(target):
        values = np.linalg.svd(target, compute_uv=False)
        if values[-1] <= NOTHING * values[0]:
            raise BadInput(
                f"determinant = {init.determinant!r} and a singular target: "
                f"singular values from {values[0]:.3g} to {values[-1]:.3g}",
                "a target of full rank: the determinant of this one has no sign",
                "use a task of full rank, or determinant=None",
            )
    return jnp.linalg.slogdet(jnp.asarray(target))[0]


@noun
class SingleNeuron(Init):
    """One hidden layer whose units all have |a|² − |w|² = `delta` and |a||w| = `scale`²; biases zero.

    w are the incoming and a the outgoing weights of a unit: |w| = scale·α and |a| = scale/α with
    α² = (√(4 + (delta/scale²)²) − delta/scale²)/2. Directions are uniform on spheres, for one output a random
    sign. One unit is the single neuron of [kunin2024, minimal model].
    """

    scale: Any
    delta: Any

    def __post_init__(self):
        settle(self, scale=positive(self.scale, "scale"), delta=_checks.number(self.delta, "delta"))

    def draw(self, key, net, task):
        incoming, outgoing = shapes_around_hidden(self, net, task)
        to_size, from_size = shared_out(jnp.asarray(self.scale) ** 2, self.delta)
        for_incoming, for_outgoing = jax.random.split(key)
        w, a = normal(for_incoming, incoming), normal(for_outgoing, outgoing)
        w = from_size * w / jnp.linalg.norm(w, axis=1, keepdims=True)
        a = to_size * a / jnp.linalg.norm(a, axis=0, keepdims=True)
        return around_hidden(net, task, w, a)


@noun
class Mirrored(Init):
    """One hidden layer in two halves that cancel: the output starts at zero; biases zero.

    Gaussian weights of standard deviation `first` into and `last` out of the first half of the units; the others
    are copies with negated outgoing weights. The tangent kernel is twice that of one half.
    """

    first: Any
    last: Any

    def __post_init__(self):
        settle(self, first=positive(self.first, "first"), last=positive(self.last, "last"))

    def draw(self, key, net, task):
        (hidden, d_in), (d_out, _) = shapes_around_hidden(self, net, task)
        if hidden % 2:
            raise BadInput(
                f"Mirrored with hidden width {hidden}",
                "an even width: every unit has a copy of opposite sign",
                f"use hidden={hidden + 1}",
            )
        for_incoming, for_outgoing = jax.random.split(key)
        w = self.first * normal(for_incoming, (hidden // 2, d_in))
        a = self.last * normal(for_outgoing, (d_out, hidden // 2))
        return around_hidden(net, task, jnp.concatenate([w, w]), jnp.concatenate([a, -a], axis=1))


@noun
class Decoupled(Init):
    """Every edge of a gated net along the modes of its paths: W = R diag(b) Rᵀ between the bases of its two nodes.

    `strength` is the b of all modes, one number or one for each edge. Inputs and outputs have the bases in which the
    moments of the paths are diagonal (`festina._race`), hidden nodes random ones; modes that do not fit through a
    hidden node start, and stay, at zero. An edge that no sample opens is zero.
    """

    strength: Any
    sees_samples: ClassVar[bool] = True

    def __post_init__(self):
        object.__setattr__(self, "strength", one_or_several(self.strength, "strength"))

    def draw(self, key, net, task):
        return decoupled(key, net, task, jnp.asarray(self.strength))


@noun
class Given(Init):
    """These weights, (out, in) each, whatever the seed."""

    weights: Any
    random: ClassVar[bool] = False

    def __post_init__(self):
        if not isinstance(self.weights, (list, tuple)) or not self.weights:
            raise BadInput(
                f"weights is {type(self.weights).__name__}", "a list of layers", "give [W1, W2, …], (out, in) each"
            )
        object.__setattr__(self, "weights", tuple(_layer(w, f"weights[{i}]") for i, w in enumerate(self.weights)))

    def draw(self, key, net, task):
        wanted = net.shapes(task.d_in, task.d_out)
        self._refuse_biases(net, wanted)
        leaves = jax.tree.leaves(self.weights)
        shapes = jax.tree.leaves(wanted, is_leaf=is_shape)
        seen = [tuple(leaf.shape) for leaf in leaves]
        if seen != shapes:
            raise BadInput(
                f"Given weights of shapes {seen}",
                f"{shapes}: (out, in) of each layer of {net!r} from {task.d_in} to {task.d_out}",
                "transpose or resize the weights, or change the net",
            )
        structure = jax.tree.structure(wanted, is_leaf=is_shape)
        return jax.tree.unflatten(structure, leaves)

    def _refuse_biases(self, net: Net, wanted: Any) -> None:
        """Refuse a pair (W, b) where the net has W alone."""
        for k, (layer, shape) in enumerate(zip(self.weights, wanted, strict=False)):
            if isinstance(layer, tuple) and is_shape(shape):
                graph = getattr(net, "graph", None)
                raise BadInput(
                    f"{f'layer {k}' if graph is None else f'edge {graph.edge_name(k)}'} has a bias",
                    f"weights alone: {type(net).__name__} has no biases here",
                    "give [W1, W2, …] without biases",
                )


def _layer(layer: Any, argument: str) -> Any:
    """One W or kernel, or a pair of it and b."""
    if isinstance(layer, (list, tuple)) and len(layer) == 2 and np.ndim(layer[0]) > 1 and np.ndim(layer[1]) == 1:
        return real_array(layer[0], argument, ndim=(2, 3)), real_array(layer[1], argument, ndim=1)
    return real_array(layer, argument, ndim=(2, 3))
