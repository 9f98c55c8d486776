"""The integral of the two-point theory: H, P and w at all times, for every pair, start and number of outputs.

With the target along one axis and a hidden difference of fixed direction, dh = r e and D_y e = v = (v∥, v⊥), gradient
flow on both Jacobians is [vanrossem2024, eq. 7], in variables that are regular where the points meet in the layer:

    dr/dt = −α v·(r v − Δy*),      dv/dt = −β r (r v − Δy*).

ρ = r/√α, n = v∥/√β and m = v⊥/√β obey `two_layer_mode`, two scalar layers and an idle component, with singular value kD
and input variance k²; the solution is elementary, although [vanrossem2024, A.3] says that there is none.

The symbols are those of this package. Numbers of pairs broadcast against each other; time is the last axis of every
quantity that depends on it.
"""

from __future__ import annotations

import jax.numpy as jnp

from ..._foundation.arrays import Numbers
from .. import two_layer_mode
from .pair import Curves, Floats, Pair, Start, Vectors, root

SHARP = 32  # units of rounding below which the output has no part off the target


def states(ts: Numbers, start: Start, pair: Pair) -> Curves:
    """H, P and w at `ts` for every rate, start and number of outputs; exact, and without overflow."""
    along0, off0 = components(start.output, start.alignment, pair.target_gap)
    return from_components(ts, start.distance, along0, off0, pair)


def components(output: Numbers, alignment: Numbers, target_gap: Numbers) -> tuple[Floats, Floats]:
    """p and q: the output along the target, and the squared part orthogonal to it (all of it if targets are equal)."""
    output, gap = jnp.asarray(output, float), root(target_gap)
    bound = root(output)
    along = jnp.where(gap > 0, (output - alignment) / jnp.where(gap > 0, gap, 1.0), 0.0)
    along = jnp.clip(along, -bound, bound)
    rest = output - along**2
    return along, jnp.where(rest > SHARP * jnp.finfo(rest.dtype).eps * output, rest, 0.0)


def from_components(ts: Numbers, distance0: Numbers, along0: Numbers, off0: Numbers, pair: Pair) -> Curves:
    """`states` from H, p and q at time 0."""
    hidden0 = jnp.sqrt(jnp.asarray(distance0, float))
    hidden, along, kept = _flow(ts, hidden0, along0 / hidden0, off0 / distance0, pair)
    rest = jnp.expand_dims(off0 / distance0, -1) * kept**2
    return _curves(hidden, along, rest, jnp.expand_dims(root(pair.target_gap), -1))


def vectors(ts: Numbers, start: Vectors, pair: Pair) -> Vectors:
    """r, v∥ and v⊥ at `ts`, from those at time 0."""
    hidden0, along0, off0 = map(jnp.asarray, start)
    hidden, along, kept = _flow(ts, hidden0, along0, off0**2, pair)
    return Vectors(hidden, along, jnp.expand_dims(off0, -1) * kept)


def _flow(ts: Numbers, hidden0: Numbers, along0: Numbers, off0: Numbers, pair: Pair) -> tuple[Floats, Floats, Numbers]:
    """r, v∥ and v⊥/v⊥(0), from r, v∥ and v⊥² at time 0."""
    (unit_h, unit_y), numbers = layers(hidden0, along0, off0, pair)
    first, last, kept = two_layer_mode.beside_idle(ts, *(jnp.expand_dims(number, -1) for number in numbers))
    return first * jnp.expand_dims(unit_h, -1), last * jnp.expand_dims(unit_y, -1), kept


def layers(
    hidden: Numbers, along: Numbers, off: Numbers, pair: Pair
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats, Floats, Floats, Floats]]:
    """√α and √β; and what `two_layer_mode` is given: kD, k², ρ, n and m², from r, v∥ and v⊥²."""
    encoder, decoder = jnp.asarray(pair.input_gap) / (2 * pair.tau_h), 1 / (2 * jnp.asarray(pair.tau_y))
    units = jnp.sqrt(encoder), jnp.sqrt(decoder)
    pull = units[0] * units[1] * root(pair.target_gap)
    return units, (pull, encoder * decoder, hidden / units[0], along / units[1], off / decoder)


def vectors_of(start: Start, target_gap: Numbers) -> Vectors:
    """r, v∥ and v⊥ of a start with r > 0."""
    along, off = components(start.output, start.alignment, target_gap)
    hidden = jnp.sqrt(jnp.asarray(start.distance, float))
    return Vectors(hidden, along / hidden, root(off) / hidden)


def read(state: Vectors, target_gap: Numbers) -> Curves:
    """H, P and w of r, v∥ and v⊥."""
    return _curves(state.hidden, state.along, state.off**2, root(target_gap))


def _curves(hidden: Floats, along: Floats, rest: Floats, gap: Floats) -> Curves:
    """H, P and w of r, v∥, v⊥² and D."""
    distance, along = hidden**2, hidden * along
    off = distance * rest
    return Curves(distance, along**2 + off, along * (along - gap) + off)


def field(state: Vectors, pair: Pair) -> Vectors:
    """dr/dt, dv∥/dt and dv⊥/dt; [vanrossem2024, eq. 7] is singular at H = 0, this is not."""
    hidden, along, off = state
    error = hidden * along - root(pair.target_gap)
    encoder, decoder = pair.input_gap / (2 * pair.tau_h), 1 / (2 * pair.tau_y)
    return Vectors(-encoder * (along * error + hidden * off**2), -decoder * hidden * error, -decoder * hidden**2 * off)


def loss(ts: Numbers, curves: Curves, target_gap: Numbers, mean_gap0: Numbers = 0.0, tau_mean: Numbers = 1.0) -> Floats:
    """½|ȳ − ȳ*|² + ⅛|dy − Δy*|², where the mean output is learned with its own τ.

    `mean_gap0` is |ȳ − ȳ*|² at time 0. [vanrossem2024, eqs. 9 and 22] print τ_y for the mean.
    """
    mean_gap0, tau_mean, target_gap = (jnp.expand_dims(number, -1) for number in (mean_gap0, tau_mean, target_gap))
    apart = jnp.maximum(2 * curves.alignment + target_gap - curves.output, 0.0)
    return mean_gap0 * jnp.exp(-2 * jnp.asarray(ts) / tau_mean) / 2 + apart / 8
