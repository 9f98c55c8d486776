"""Full-batch descent of wide layers on very few samples, with updates held as thin factors.

The gradient of a layer is δᵀh, of the samples' errors δ and inputs h: its rank is at most the number N of samples.
Within a block of K steps the wide matrices W are therefore left as they are, and their updates are two thin factors: a
layer gives h Wᵀ + (h Vᵀ) U, with U of shape (K·N, out) and V of shape (K·N, in). At the end of the block W ← W + UᵀV.
A step then reads W twice and writes no array of its size, whereas plain descent also forms the gradient and adds it.
This matters if W does not fit into the cache: training is then limited by memory bandwidth. Nothing is approximated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ClassVar, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from .._foundation.arrays import AnyArray, Number, RandomKey, Weights
from .._foundation.nouns import noun, static
from .._foundation.stacks import unstacked
from .._setup.loss import Moments, Samples, next_key
from ..nets._activations import ACTIVATIONS
from ..nets.base import Net, widths
from ..rules.base import Rule
from ..rules.gradient_descent import GradientDescent
from .base import Amount, Carry, Descent
from .layout import Held, Layout

# On a CPU plain descent is faster with 16 samples, and with 20 layers of 32 units; the bounds lie between.
MOST_SAMPLES = 4
FEWEST_WEIGHTS = 2**20
STEPS = 12  # per block; from 6 to 24 the cost is the same: longer factors, or more folding

State: TypeAlias = PyTree  # (count, …, Learned, loss, noise) of a loop over steps
Layer: TypeAlias = Float[AnyArray, "_ _"] | tuple[Float[AnyArray, "_ _"], Float[AnyArray, " _"]]  # W, or (W, b)
Activities: TypeAlias = tuple[Float[AnyArray, "sample width"], Float[AnyArray, "sample width"]]  # of two layers
Wide: TypeAlias = Float[Array, "layer width width"]
Factor: TypeAlias = Float[Array, "layer row width"]  # a row for every sample of every step in the block


class Learned(NamedTuple):
    """What is updated at every step: the first and the last layer, and the biases between, (layer, unit)."""

    first: Layer
    biases: Float[AnyArray, "layer width"] | None
    last: Layer


@noun
class ThinFactors(Descent[Net, Samples, GradientDescent]):
    """Gradient descent on all of few samples, of a net that `steps_by_layer`, with large hidden layers of one width."""

    layout: Layout = static()
    block_length: ClassVar[int] = STEPS  # cuts elsewhere would end blocks elsewhere, and change the rounding

    @classmethod
    def applies(cls, net: Net, evidence: Moments | Samples, rule: Rule) -> bool:
        if not net.steps_by_layer or type(rule) is not GradientDescent or not isinstance(evidence, Samples):
            return False
        hidden = widths(net.hidden)
        is_small = evidence.x.shape[0] <= MOST_SAMPLES and jax.devices()[0].platform == "cpu"
        return is_small and len(set(hidden)) == 1 and (len(hidden) - 1) * hidden[0] ** 2 >= FEWEST_WEIGHTS

    @classmethod
    def hold(cls, net: Net, weights: Weights) -> tuple[ThinFactors, Held]:
        parts = 2 if net.bias else 1
        all_wide = tuple(range(parts, parts * len(widths(net.hidden)), parts))
        layout = Layout.of((all_wide,), weights)
        return cls(layout), layout.hold(weights)

    def start(self, rule: GradientDescent, held: Held, samples: int | None, key: RandomKey) -> PyTree:
        return rule.start(held, samples, key)

    def advance(self, net: Net, evidence: Samples, rule: GradientDescent, carry: Carry, amount: Amount) -> Carry:
        wide, learned = self._parted(net, carry.held)

        def while_within(most: Amount, advance: Callable[[State], State], start: State) -> State:
            """The state after up to `most` calls of `advance`, ended early if the loss exceeds its limit."""

            def goes_on(state: State):
                return (state[0] < most) & (state[-2] <= carry.limit)  # NaN stops it, too

            return jax.lax.while_loop(goes_on, advance, start)

        def block(state: State) -> State:
            count, wide, *rest = state
            blank = jnp.zeros((len(wide), STEPS * evidence.x.shape[0], wide.shape[1]), wide.dtype)
            step = functools.partial(_step, net, evidence, rule.lr, wide)
            start = (jnp.zeros_like(count), (blank, blank), *rest)
            # Blocks end at multiples of STEPS in the whole run, so that cuts at these change nothing.
            length = jnp.minimum(amount - count, STEPS - (carry.done + count) % STEPS)
            taken, (out, into), *rest = while_within(length, step, start)

            def fold(k: Int[Array, ""], wide: Wide) -> Wide:
                return wide.at[k].set(wide[k] + out[k].T @ into[k])

            # Matrix after matrix, each in its place: all at once would need as much memory again.
            return count + taken, jax.lax.fori_loop(0, len(wide), fold, wide), *rest

        start = (jnp.zeros_like(amount), wide, learned, carry.loss, carry.noise)
        count, wide, learned, loss, noise = while_within(amount, block, start)
        return carry._replace(held=self._joined(wide, learned), loss=loss, noise=noise, done=carry.done + count)

    def _parted(self, net: Net, held: Held) -> tuple[Wide, Learned]:
        """The stack of wide matrices, and what is updated at every step."""
        wide, *others = self.layout.transposed(held)
        if net.bias:
            learned = Learned((others[0], others[1]), jnp.stack(others[2:-2]), (others[-2], others[-1]))
        else:
            learned = Learned(others[0], None, others[-1])
        return jnp.asarray(wide[None] if wide.ndim == 2 else wide), learned

    def _joined(self, wide: Wide, learned: Learned) -> Held:
        """The inverse of `_parted`."""
        biases = [] if learned.biases is None else unstacked(learned.biases)
        first, last = jax.tree.leaves(learned.first), jax.tree.leaves(learned.last)
        return self.layout.transposed([wide[0] if len(wide) == 1 else wide, *first, *biases, *last])


def _step(net: Net, evidence: Samples, lr: Number, wide: Wide, state: State) -> State:
    """One step: the wide matrices stay, and the factors of their updates get a row more for every sample."""
    count, (out, into), learned, _, noise = state
    noise, key = next_key(noise)
    samples, (depth, width, _) = evidence.x.shape[0], wide.shape

    def loss(ends: tuple[Layer, Layer], offsets: Float[Array, "layer sample width"]):
        first, last = ends
        h = activation(net.layer(first, net.thinned(evidence.x, key, 0)))

        def through(state: Activities, layer: tuple[AnyArray, ...]) -> tuple[Activities, AnyArray]:
            h, before = state
            number, matrix, out, into, offset = layer
            h_in = net.thinned(h, key, number)
            after = activation(_product(matrix, h_in) + _product(into, h_in) @ out + offset)
            return (after + before if net.skip else after, h), h_in

        layers = (jnp.arange(1, depth + 1), wide, out, into, offsets)
        (h, _), inputs = jax.lax.scan(through, (h, jnp.zeros_like(h)), layers)
        error = net.layer(last, net.thinned(h, key, depth + 1)) - evidence.y
        return 0.5 * jnp.sum(error * error) / samples, inputs

    activation = ACTIVATIONS[str(net.activation)]
    offsets = jnp.zeros((depth, samples, width), wide.dtype)
    offsets = offsets if learned.biases is None else offsets + learned.biases[:, None]
    # The gradient in what is added to a layer is its error δ.
    gradient = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)
    (value, inputs), ((first, last), errors) = gradient((learned.first, learned.last), offsets)
    slope = Learned(first, None if learned.biases is None else errors.sum(axis=1), last)
    learned = jax.tree.map(lambda w, g: w - lr * g, learned, slope)
    put = functools.partial(jax.lax.dynamic_update_slice_in_dim, start_index=count * samples, axis=1)
    return count + 1, (put(out, -lr * errors), put(into, inputs)), learned, value, noise


@jax.custom_vjp
def _product(matrix: Float[AnyArray, "out in"], h: Float[AnyArray, "sample in"]) -> Float[Array, "sample out"]:
    """h Mᵀ, row by row: for two rows that is faster than a product of matrices in XLA on a CPU.

    The gradient in `matrix` is left out: its factors are known.
    """
    return jnp.stack([matrix @ row for row in h])


_product.defvjp(lambda matrix, h: (_product(matrix, h), matrix), lambda matrix, error: (None, error @ matrix))
