"""Activations by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .._errors import UnknownName

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda h: h,
    # max(h, 0) has slope 1/2 at 0 in JAX; networks in this field use slope 0 there.
    "relu": jax.nn.relu,
    "leaky_relu": jax.nn.leaky_relu,
    "elu": jax.nn.elu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "swish": jax.nn.swish,
    "gelu": jax.nn.gelu,
}
OFF_SLOPE = {"relu": 0.0, "leaky_relu": 0.01}  # activations that only switch: their slope where a unit is off


def checked_activation(name: Any) -> None:
    """Refuse what is not the name of an activation."""
    if name not in ACTIVATIONS:
        raise UnknownName.among("activation", name, ACTIVATIONS)
