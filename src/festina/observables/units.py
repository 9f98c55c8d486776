"""Single hidden units: how large they are, and for which samples they are on."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, UInt8

from .._foundation.arrays import AnyArray, Weights
from .._setup.setup import Setup
from .base import FromActivity, Observable, RecordedActivity, View
from .lacking import no_chain_of_layers, no_hidden_activity
from .layers import INPUTS


def _unit_sizes(view: View, weights: Weights) -> Float[AnyArray, " unit"]:
    """|incoming| |outgoing| of every hidden unit, its bias counted among the incoming weights."""
    layers = [layer if isinstance(layer, tuple) else (layer,) for layer in weights]
    incoming = [sum(jnp.sum(part.reshape(len(part), -1) ** 2, axis=1) for part in layer) for layer in layers[:-1]]
    outgoing = [jnp.sum(layer[0] ** 2, axis=0) for layer in layers[1:]]
    return jnp.concatenate([jnp.sqrt(i * o) for i, o in zip(incoming, outgoing, strict=True)])


def _gates(view: View, weights: Weights) -> UInt8[AnyArray, "unit byte"]:
    return jnp.packbits(view.net.gates(weights, view[INPUTS]).T, axis=-1)


def _gates_of_activity(activity: RecordedActivity) -> UInt8[np.ndarray, "unit byte"]:
    return np.packbits(np.concatenate([h.T > 0 for h in activity.hidden]), axis=-1)


def _no_switches(setup: Setup) -> str:
    """Require samples, and units that only switch between on and off, as ReLU and leaky ReLU units do."""
    net = setup.net
    if net.off_slope is None:
        if net.skip or net.noisy:
            return "of a net with skips or dropout, gates do not say all: it is no chain of gated layers"
        kind = type(net).__name__ if net.activation is None else f"{type(net).__name__} with {net.activation}"
        return f"the units of {kind} do not switch between on and off, as those of relu and leaky_relu do"
    return no_hidden_activity(setup)


OBSERVABLES = {
    "unit_size": Observable(("unit",), _unit_sizes, no_chain_of_layers),
    "gates": Observable(
        ("unit", "byte"),
        _gates,
        _no_switches,
        (INPUTS,),
        recorded_with=("loss", "unit_size"),
        from_activity=FromActivity(_gates_of_activity),
    ),
}
