"""Float64 where it is asked for, without touching JAX's global settings."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import PyTree

from .arrays import Weights
from .program_effort import is_tracing

F = TypeVar("F", bound=Callable[..., Any])


def in_double(function: F) -> F:
    """Run in float64 and return NumPy; inside a JAX transformation, stay traced.

    A float64 JAX array that leaves its `enable_x64` block is cut to float32 by the next
    JAX operation, so results leave as NumPy arrays.
    """

    @functools.wraps(function)
    def wrapped(*args: object, **kwargs: object):
        leaves, form = jax.tree.flatten((args, kwargs))
        if any(isinstance(leaf, Tracer) for leaf in leaves):
            args, kwargs = form.unflatten(map(_in_present_dtype, leaves))
            return function(*args, **kwargs)
        with jax.enable_x64(True), at_once():
            args, kwargs = form.unflatten(map(_unmet, leaves))
            return to_numpy(function(*args, **kwargs))

    return wrapped  # pyright: ignore[reportReturnType]


def as_its_weights(method: F) -> F:
    """Run a method of a net in float64 if its weights are float64; inside a JAX transformation, stay traced.

    Without this, JAX would silently round float64 weights to float32.
    """

    @functools.wraps(method)
    def wrapped(net: object, weights: Weights, *inputs: object, **named: object):
        try:
            leaves = jax.tree.leaves((weights, inputs, named))
        except (RecursionError, SystemError):  # lists in lists, deeper than any weights: the method refuses them
            leaves = []
        is_double = any(getattr(leaf, "dtype", None) == np.float64 for leaf in leaves)
        traced = any(isinstance(leaf, Tracer) for leaf in leaves)
        if traced or not is_double or jnp.result_type(float) == np.float64:
            return method(net, weights, *inputs, **named)
        return in_double(functools.partial(method, net))(weights, *inputs, **named)

    return wrapped  # pyright: ignore[reportReturnType]


def _in_present_dtype(leaf: object) -> object:
    """Float64 arrays in the dtype that JAX uses now, stated by name.

    JAX remembers what it made of a NumPy array: one that it met in float32 mode stays float32 in
    float64 mode, unless the dtype is asked for.
    """
    is_double = isinstance(leaf, (np.ndarray, jax.Array)) and leaf.dtype == np.float64
    return jnp.asarray(leaf, jnp.result_type(float)) if is_double else leaf


def _unmet(leaf: object) -> object:
    """A copy that JAX has not met in float32 mode; much cheaper than a conversion by name."""
    return leaf.copy() if isinstance(leaf, np.ndarray) and leaf.dtype in (np.float64, np.int64) else leaf


def at_once() -> contextlib.AbstractContextManager[None]:
    """Evaluate concrete numbers at once, even while a caller's own function is being traced."""
    return jax.ensure_compile_time_eval() if is_tracing() else contextlib.nullcontext()


def to_numpy(tree: PyTree) -> PyTree:
    """The same tree with NumPy leaves."""
    leaves, form = jax.tree.flatten(tree)
    return form.unflatten([np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf for leaf in leaves])
