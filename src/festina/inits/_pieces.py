"""Building blocks of initial weights: layer shapes, random bases, and how two layers share the size of a product."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._foundation.arrays import AnyArray, Number, RandomKey, Weights
from .._foundation.checks import is_traced, real_array
from .._foundation.errors import BadInput
from .._foundation.program_memory import compiled
from ..nets.base import Net
from ..nets.deep_linear import DeepLinear
from ..tasks.base import Task
from ..tasks.hierarchy import hierarchy
from .base import Init

AnyInit = TypeVar("AnyInit", bound=Init)
Shape: TypeAlias = tuple[int, ...]
Numbers: TypeAlias = Number | Float[AnyArray, " entry"]  # one number, or several


def example_with(init: AnyInit) -> tuple[Task, Net, AnyInit]:
    """The example of an init for a linear network of two layers, with weights of shapes (6, 8) and (15, 6)."""
    return hierarchy(levels=3), DeepLinear(6), init


def is_shape(node: object) -> bool:
    """True for a leaf of `Net.shapes`."""
    return isinstance(node, tuple) and len(node) > 0 and all(isinstance(n, int) for n in node)


def map_layers(key: RandomKey, net: Net, task: Task, matrix: Callable[[RandomKey, Shape], Array]) -> Weights:
    """The weights of a net, every matrix or kernel as `matrix(key, shape)`; biases zero."""
    shapes, structure = jax.tree.flatten(net.shapes(task.d_in, task.d_out), is_leaf=is_shape)
    # As in `normal`: keys of a longer list begin with those of a shorter one.
    keys = jax.random.split(key, 1 << (len(shapes) - 1).bit_length())
    # With a number that is no constant, one compiled program takes any of the keys.
    of_leaf = [jax.lax.dynamic_index_in_dim(keys, np.asarray(i), keepdims=False) for i in range(len(shapes))]
    leaves = [matrix(k, s) if len(s) > 1 else jnp.zeros(s) for k, s in zip(of_leaf, shapes, strict=True)]
    return jax.tree.unflatten(structure, leaves)


def chain_shapes(init: Init, net: Net, task: Task) -> tuple[tuple[int, int], ...]:
    """Shapes of the layers of a deep linear network; other nets are refused."""
    if not net.is_linear_chain:
        raise BadInput(
            f"init {type(init).__name__} with {net!r}",
            "a deep linear network, whose layers multiply to one map",
            "use nets.DeepLinear, or inits.SmallRandom with this net",
        )
    return net.shapes(task.d_in, task.d_out)


def two_layer_width(init: Init, net: Net, task: Task) -> int:
    """The hidden width of a linear network of two layers; other nets are refused."""
    shapes = chain_shapes(init, net, task)
    if len(shapes) != 2:
        raise BadInput(
            f"init {type(init).__name__} with {len(shapes)} layer(s)",
            "two layers: one hidden layer whose sides can differ by lam·I",
            "use nets.DeepLinear(hidden=8), or inits.ZeroBalanced at other depths",
        )
    return shapes[0][0]


def shapes_around_hidden(init: Init, net: Net, task: Task) -> list[tuple[int, int]]:
    """Shapes of the matrices into and out of the only hidden layer."""
    shapes = jax.tree.leaves(net.shapes(task.d_in, task.d_out), is_leaf=is_shape)
    matrices = [shape for shape in shapes if len(shape) == 2]
    ends = [(rows, columns) for columns, rows in itertools.pairwise([task.d_in, matrices[0][0], task.d_out])]
    if matrices != ends or any(len(shape) > 2 for shape in shapes):
        raise BadInput(
            f"init {type(init).__name__} with {net!r}",
            "a network with one hidden layer, whose units have incoming and outgoing weights",
            "use nets.DeepLinear(hidden=8) or nets.MLP(hidden=8)",
        )
    return matrices


def around_hidden(net: Net, task: Task, incoming: Array, outgoing: Array) -> Weights:
    """The weights of a net with one hidden layer; biases zero."""
    shapes, structure = jax.tree.flatten(net.shapes(task.d_in, task.d_out), is_leaf=is_shape)
    leaves = [jnp.zeros(shape) for shape in shapes]
    first, last = (k for k, shape in enumerate(shapes) if len(shape) == 2)
    leaves[first], leaves[last] = incoming, outgoing
    return jax.tree.unflatten(structure, leaves)


def one_or_several(value: object, argument: str) -> Numbers:
    """A float, or an array with one axis; traced values pass."""
    numbers = real_array(value, argument, ndim=(0, 1))
    return float(numbers) if np.shape(numbers) == () and not is_traced(numbers) else numbers


def one_for_each(value: Numbers, argument: str, count: int, entries: str, do: str) -> Float[AnyArray, " entry"]:
    """`one_or_several` as one number for each of `count` entries; `entries` says in a message what these are."""
    xp = jnp if is_traced(value) else np
    numbers = xp.asarray(value)
    if numbers.ndim == 1 and numbers.shape[0] != count:
        needed = f"one number, or one for each of the {count} {entries}"
        raise BadInput(f"{argument} has {numbers.shape[0]} values", needed, do)
    return xp.broadcast_to(numbers, (count,))


def basis(key: RandomKey, width: int, count: int) -> Float[Array, "width count"]:
    """Random orthonormal columns, padded with zeros where the layer is too narrow."""
    kept = min(width, count)
    return jnp.pad(orthogonal(key, width)[:, :kept], ((0, 0), (0, count - kept)))


def normal(key: RandomKey, shape: Shape) -> Float[Array, ...]:
    """Gaussian numbers of variance 1, those of `jax.random.normal`.

    Each depends on its position alone, so a longer draw begins with the same numbers; lengths that are powers of two
    share compiled code, where every new shape would take half a second.
    """
    count = math.prod(shape)
    return _normal(key, 1 << max(count - 1, 0).bit_length())[:count].reshape(shape)


@compiled(effort="little", static_argnames="count")
def _normal(key: RandomKey, count: int) -> Float[Array, " count"]:
    return jax.random.normal(key, (count,))


@compiled(effort="little", static_argnames="width")
def orthogonal(key: RandomKey, width: int) -> Float[Array, "width width"]:
    """A random rotation or reflection, uniform over all of them."""
    return jax.random.orthogonal(key, width)


def completed(key: RandomKey, columns: Float[AnyArray, "row column"]) -> Float[Array, "row row"]:
    """Orthonormal columns and a random orthonormal basis of what is orthogonal to them."""
    columns = jnp.asarray(columns)
    rows, count = columns.shape
    rest, upper = jnp.linalg.qr(jnp.concatenate([columns, normal(key, (rows, rows - count))], axis=1))
    # QR chooses the signs of its columns by a rule of its own; with a positive diagonal they are the random ones.
    return jnp.concatenate([columns, (rest * jnp.where(jnp.diag(upper) < 0, -1.0, 1.0))[:, count:]], axis=1)


def shared_out(product: Numbers, difference: Number) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Sizes (last, first) >= 0 with last·first = product and last² − first² = difference."""
    difference = jnp.asarray(difference)
    # Slope +1 at 0, unlike that of abs: then both sizes have the right slope there, too.
    size = jnp.where(difference >= 0, difference, -difference)
    square = 0.5 * (jnp.hypot(difference, 2 * product) + size)
    live = square > 0
    larger = jnp.where(live, jnp.sqrt(jnp.where(live, square, 1.0)), 0.0)
    # The difference √(lam² + 4s²) − |lam| would lose the digits of the smaller one.
    smaller = jnp.where(live, product / jnp.where(live, larger, 1.0), 0.0)
    return jnp.where(difference >= 0, larger, smaller), jnp.where(difference >= 0, smaller, larger)


def balanced_sizes(
    scale: Float[AnyArray, " entry"], lam: Number, d_in: int, hidden: int, d_out: int
) -> tuple[Float[Array, " hidden"], Float[Array, " hidden"]]:
    """Sizes (last, first) of all hidden directions of balanced layers; NaN where lam is impossible.

    The directions that the map uses come first. All others have the size √|lam| in the larger layer, which the shape
    allows for one sign of lam only.
    """
    lam, count = jnp.asarray(lam), len(scale)
    last, first = shared_out(scale, lam)
    if hidden == count:
        return last, first
    none = jnp.zeros(hidden - count)
    if hidden > max(d_in, d_out):
        return jnp.append(jnp.where(lam == 0, last, jnp.nan), none), jnp.append(first, none)
    if hidden <= d_out:
        return jnp.append(last, none + jnp.sqrt(lam)), jnp.append(first, none)
    return jnp.append(last, none), jnp.append(first, none + jnp.sqrt(-lam))


def refuse_impossible_balance(lam: float, d_in: int, hidden: int, d_out: int) -> None:
    """Refuse a lam that two layers of these widths cannot have."""
    larger, ends, side = ("W2ᵀW2", d_out, "outputs") if lam > 0 else ("W1W1ᵀ", d_in, "inputs")
    if lam != 0 and hidden > ends:
        other = d_in if lam > 0 else d_out
        raise BadInput(
            f"lam = {lam:g} in a network {d_in}-{hidden}-{d_out}",
            f"hidden <= {ends}: {larger} is at least |lam| in all {hidden} hidden directions, "
            f"and {ends} {side} reach {ends} of them",
            f"use hidden <= {ends}, or lam = 0" + (f", or lam {'<' if lam > 0 else '>'} 0" if hidden <= other else ""),
        )
