"""Inits: laws of the initial weights."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._errors import BadInput
from ._noun import is_traced, noun, positive, real_array
from ._setup import Init, Net, Task

__all__ = ["Aligned", "Given", "Orthogonal", "SmallRandom"]


@noun
class Aligned(Init):
    """Balanced layers along the task's own modes: the map starts as Σ_k a_k u_k v_kᵀ.

    `strength` is the a_k of the whole map, one number or one per mode (largest singular value
    first); each of the D layers has |a_k|^(1/D), a negative sign sits in the last one. The hidden
    basis is random. Modes that do not fit through the narrowest layer start, and stay, at zero.
    """

    strength: Any

    def __post_init__(self):
        strength = real_array(self.strength, "strength", ndim=(0, 1))
        object.__setattr__(
            self, "strength", float(strength) if np.shape(strength) == () and not is_traced(strength) else strength
        )

    def draw(self, key, net, task):
        shapes = _chain_shapes(self, net, task)
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
        bases = [modes.right, *(_basis(k, s[0], count) for k, s in zip(keys, shapes[:-1], strict=False)), modes.left]
        weights = [(out * layer) @ into.T for into, out in itertools.pairwise(bases)]
        return (*weights[:-1], (modes.left * layer * jnp.where(strength < 0, -1.0, 1.0)) @ bases[-2].T)


def _basis(key: Any, width: int, count: int) -> Any:
    """Random orthonormal columns, padded with zeros where the layer is too narrow."""
    kept = min(width, count)
    return jnp.pad(jax.random.orthogonal(key, width)[:, :kept], ((0, 0), (0, count - kept)))


@noun
class SmallRandom(Init):
    """Independent Gaussian weights of standard deviation `scale`; biases start at zero."""

    scale: Any

    def __post_init__(self):
        positive(self.scale, "scale")

    def draw(self, key, net, task):
        return _map_layers(key, net, task, lambda k, shape: self.scale * jax.random.normal(k, shape))


@noun
class Orthogonal(Init):
    """Every layer is `gain` times a random matrix with orthonormal rows or columns; biases zero."""

    gain: Any = 1.0

    def __post_init__(self):
        positive(self.gain, "gain")

    def draw(self, key, net, task):
        def layer(k, shape):
            square = jax.random.orthogonal(k, max(shape))
            return self.gain * square[: shape[0], : shape[1]]

        return _map_layers(key, net, task, layer)


@noun
class Given(Init):
    """These weights, (out, in) each, whatever the seed."""

    weights: Any

    def __post_init__(self):
        if not isinstance(self.weights, (list, tuple)):
            raise BadInput(
                f"weights is {type(self.weights).__name__}", "a list of layers", "give [W1, W2, …], (out, in) each"
            )
        object.__setattr__(self, "weights", tuple(_layer(w, f"weights[{i}]") for i, w in enumerate(self.weights)))

    def draw(self, key, net, task):
        wanted = net.shapes(task.d_in, task.d_out)
        leaves = jax.tree.leaves(self.weights)
        shapes = jax.tree.leaves(wanted, is_leaf=_is_shape)
        seen = [tuple(leaf.shape) for leaf in leaves]
        if seen != shapes:
            raise BadInput(
                f"Given weights of shapes {seen}",
                f"{shapes}: (out, in) of each layer of {net!r} from {task.d_in} to {task.d_out}",
                "transpose or resize the weights, or change the net",
            )
        structure = jax.tree.structure(wanted, is_leaf=_is_shape)
        return jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in leaves])


def _layer(layer: Any, argument: str) -> Any:
    """One W, or a pair (W, b)."""
    if isinstance(layer, (list, tuple)) and len(layer) == 2 and np.ndim(layer[0]) == 2 and np.ndim(layer[1]) == 1:
        return real_array(layer[0], argument, ndim=2), real_array(layer[1], argument, ndim=1)
    return real_array(layer, argument, ndim=2)


def _is_shape(node: Any) -> bool:
    return isinstance(node, tuple) and len(node) > 0 and all(isinstance(n, int) for n in node)


def _map_layers(key: Any, net: Net, task: Task, matrix: Any) -> Any:
    shapes, structure = jax.tree.flatten(net.shapes(task.d_in, task.d_out), is_leaf=_is_shape)
    keys = jax.random.split(key, len(shapes))
    drawn = [matrix(k, s) if len(s) == 2 else jnp.zeros(s) for k, s in zip(keys, shapes, strict=True)]
    return jax.tree.unflatten(structure, drawn)


def _chain_shapes(init: Init, net: Net, task: Task) -> tuple[tuple[int, int], ...]:
    if not net.linear or not hasattr(net, "depth"):
        raise BadInput(
            f"init {type(init).__name__} with {net!r}",
            "a deep linear network, whose layers can share the task's modes",
            "use nets.DeepLinear, or inits.SmallRandom with this net",
        )
    return net.shapes(task.d_in, task.d_out)
