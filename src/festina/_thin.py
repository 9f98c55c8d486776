"""Full-batch descent of wide layers on very few samples, with updates held as thin factors.

The gradient of a layer is δᵀh, of the samples' errors δ and inputs h: its rank is at most the number N of samples.
Within a block of K steps the wide matrices W are therefore left as they are, and their updates are two thin factors: a
layer gives h Wᵀ + (h Vᵀ) U, with U of shape (K·N, out) and V of shape (K·N, in). At the end of the block W ← W + UᵀV.
A step then reads W twice and writes nothing of its size, where plain descent also makes a gradient and adds it. That
matters if W does not fit into the cache: then training is bound by memory. Nothing is approximated.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ._objective import Samples, next_key
from ._parallel import apart
from .nets._activations import ACTIVATIONS
from .nets.mlp import MLP
from .rules import GradientDescent

# On a CPU plain descent is faster with 16 samples, and with 20 layers of 32 units; the bounds lie between.
MOST_SAMPLES = 4
FEWEST_WEIGHTS = 2**20
STEPS = 12  # per block; from 6 to 24 the cost is the same: longer factors, or more folding


class Learned(NamedTuple):
    """What is updated at every step: the first and the last layer, and the biases between, (layer, unit)."""

    first: Any
    biases: Any
    last: Any


def pays(net: Any, seen: Any, rule: Any) -> bool:
    """Whether thin factors serve this training: few samples, and large layers of one width between hidden layers."""
    if type(net) is not MLP or type(rule) is not GradientDescent or not isinstance(seen, Samples):
        return False
    hidden: Any = net.hidden
    few = seen.x.shape[0] <= MOST_SAMPLES and jax.devices()[0].platform == "cpu"
    return few and len(set(hidden)) == 1 and (len(hidden) - 1) * hidden[0] ** 2 >= FEWEST_WEIGHTS


def grain(net: Any, seen: Any, rule: Any) -> int:
    """What numbers of steps a run may be cut at: results must not depend on where the clock cuts it."""
    return STEPS if pays(net, seen, rule) else 1


def alike(net: Any, seen: Any, rule: Any) -> Any:
    """Groups of numbers of weights that a run holds as one; here, of all wide matrices."""
    if not pays(net, seen, rule):
        return net.alike
    step = 2 if net.bias else 1
    return (tuple(range(step, step * len(net.hidden), step)),)


def travel(view: Any, rule: GradientDescent, carry: Any, amount: Any, layout: Any) -> Any:
    """`amount` steps, or fewer if the loss leaves its limit; carries and layouts are those of a run."""
    net, seen = view.net, view.seen
    wide, *others = layout.turned(carry.weights)
    first, last = (others[:2], others[-2:]) if net.bias else (others[0], others[-1])
    learned = Learned(first, jnp.stack(others[2:-2]) if net.bias else None, last)

    def while_within(most, advance, start):
        """Advance (count, …, Learned, loss, noise) while there are steps to take and the loss is within its limit."""
        going = lambda state: (state[0] < most) & (state[-2] <= carry.limit)  # noqa: E731, NaN stops it, too
        return jax.lax.while_loop(going, advance, start)

    def block(state):
        count, wide, *rest = state
        blank = jnp.zeros((len(wide), STEPS * seen.x.shape[0], wide.shape[1]), wide.dtype)
        step = functools.partial(_step, net, seen, rule.lr, wide)
        start = (jnp.zeros_like(count), (blank, blank), *rest)
        # Blocks end at multiples of STEPS in the whole run, so that cuts at these change nothing.
        length = jnp.minimum(amount - count, STEPS - (carry.done + count) % STEPS)
        taken, (out, into), *rest = while_within(length, step, start)
        # Matrix after matrix, each in its place: all at once would need as much memory again.
        fold = lambda k, now: now.at[k].set(now[k] + out[k].T @ into[k])  # noqa: E731
        wide = jax.lax.fori_loop(0, len(wide), fold, wide)
        return count + taken, wide, *rest

    single = wide.ndim == 2
    start = (jnp.zeros_like(amount), wide[None] if single else wide, learned, carry.loss, carry.noise)
    count, wide, learned, loss, noise = while_within(amount, block, start)
    biases = apart(learned.biases) if net.bias else []
    ends = jax.tree.leaves(learned.first), jax.tree.leaves(learned.last)
    held = layout.turned([wide[0] if single else wide, *ends[0], *biases, *ends[1]])
    return carry._replace(weights=held, loss=loss, noise=noise, done=carry.done + count)


def _step(net: MLP, seen: Samples, lr: Any, wide: Any, state: Any) -> Any:
    """One step: `wide` stays, and the factors of its update get N rows more."""
    count, (out, into), learned, _, noise = state
    noise, key = next_key(noise)
    samples, (depth, width, _) = seen.x.shape[0], wide.shape

    def loss(ends, offsets):
        first, last = ends
        h = activation(net.layer(first, net.thinned(seen.x, key, 0)))

        def through(state, layer):
            h, before = state
            number, matrix, out, into, offset = layer
            h_in = net.thinned(h, key, number)
            after = activation(_product(matrix, h_in) + _product(into, h_in) @ out + offset)
            return (after + before if net.skip else after, h), h_in

        layers = (jnp.arange(1, depth + 1), wide, out, into, offsets)
        (h, _), inputs = jax.lax.scan(through, (h, jnp.zeros_like(h)), layers)
        error = net.layer(last, net.thinned(h, key, depth + 1)) - seen.y
        return 0.5 * jnp.sum(error * error) / samples, inputs

    activation = ACTIVATIONS[net.activation]
    offsets = jnp.zeros((depth, samples, width), wide.dtype)
    offsets = offsets if learned.biases is None else offsets + learned.biases[:, None]
    # The slope in what is added to a layer is its error δ.
    slopes = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)
    (value, inputs), (slope, errors) = slopes((learned.first, learned.last), offsets)
    slope = Learned(slope[0], None if learned.biases is None else errors.sum(axis=1), slope[1])
    learned = jax.tree.map(lambda w, g: w - lr * g, learned, slope)
    put = functools.partial(jax.lax.dynamic_update_slice_in_dim, start_index=count * samples, axis=1)
    return count + 1, (put(out, -lr * errors), put(into, inputs)), learned, value, noise


@jax.custom_vjp
def _product(matrix: Any, h: Any) -> Any:
    """h Mᵀ, row by row: for two rows that is faster than a product of matrices in XLA on a CPU.

    The slope in `matrix` is left out: its factors are known.
    """
    return jnp.stack([matrix @ row for row in h])


_product.defvjp(lambda matrix, h: (_product(matrix, h), matrix), lambda matrix, error: (None, error @ matrix))
