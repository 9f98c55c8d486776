"""Activations by name."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Float

from .._foundation.arrays import AnyArray
from .._foundation.checks import choice

ACTIVATIONS: dict[str, Callable[[Float[AnyArray, ...]], Float[AnyArray, ...]]] = {
    "linear": lambda h: h,
    # A unit at exactly 0 is off: networks of this field come from libraries in which it is, and an input of 0 with
    # biases of 0 puts every unit there. (max(h, 0) has slope ½ at 0 in JAX, and its leaky ReLU slope 1.)
    "relu": jax.nn.relu,
    "leaky_relu": lambda h: jnp.where(h > 0, h, OFF_SLOPE["leaky_relu"] * h),
    "elu": jax.nn.elu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "swish": jax.nn.swish,
    "gelu": functools.partial(jax.nn.gelu, approximate=False),  # h Φ(h); JAX's own is a tanh that is near it
}
# The slope of a unit that is off, for the activations whose units only switch between on and off.
OFF_SLOPE = {"relu": 0.0, "leaky_relu": 0.01}


def checked_activation(name: object) -> None:
    """Refuse what is not the name of an activation."""
    choice(name, "activation", ACTIVATIONS)
