"""The flow of a λ-balanced two-layer linear network on white inputs, in closed form.

With Q = [W₁ᵀ; W₂], W₂ᵀW₂ − W₁W₁ᵀ = λI and Σˣ = I, gradient flow is dQ/dt = F Q − ½ Q QᵀQ with the constant
F = [[−λ/2, Σᵀ], [Σ, λ/2]]. Hence, in the eigenbasis of F (rates Λ, K = OᵀQ),

    K(t) = e^(Λt) K₀ C(t)^(−ᵀ),      C Cᵀ = 1 + K₀ᵀ Φ K₀,      Φ = (e^(2Λt) − 1)/(2Λ),

up to a rotation of the hidden units, which no observable sees. C is the Cholesky factor; in this gauge

    dK/dt = Λ K − K (½ diag + strictly upper part of KᵀK).

Evaluated as it stands this is lost at Λt ≈ 10. Here the rows of K₀ are sorted by falling Λ and K₀ is
rotated into staircase form once: column j then begins at a pivot row p_j, so that all entries of e^(Λt) K₀
are bounded once column j is divided by e^(Λ_pj t), at every t. A row that depends on the rows above it, up
to rounding, has no pivot: what is zero in exact arithmetic stays zero, and a start that lacks a mode does not
find it by rounding.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._errors import BadInput
from ._linalg import NOTHING, ROUNDING, unit_of
from ._noun import noun, static

STEEP = 1e-3  # a pivot this much smaller than its column makes the squares of Cholesky lose digits
PANEL = 25  # triangles up to this size are left to LAPACK, larger ones cut into blocks
FEW = 6  # hidden units up to which the steps of Gram and Schmidt are written out
NARROW = 16  # hidden units up to which all times are computed together; wider states do not fit in cache


@noun
class Flow:
    """The eigenbasis of F, and a start in it.

    Rows of the eigenbasis: the learned combinations (rate +√(s² + λ²/4), falling), the unpaired inputs or
    outputs (rate ±λ/2), then the forgotten combinations (rate −√(s² + λ²/4)). `stairs` is K₀ᵀ, (hidden, row).
    """

    left: Any  # (out, out), singular vectors of Σ, all of them
    right: Any  # (in, in)
    singular_values: Any  # (mode,)
    smaller: Any  # (mode,): share of W₁ in a learned combination, (G − HG)/√2
    larger: Any  # (mode,): share of W₂, (G + HG)/√2
    rates: Any  # (row,)
    stairs: Any
    pivots: Any  # (hidden,): the row at which each column begins; −1 if the column is empty
    gentle: Any  # no pivot is much smaller than its column
    known_gentle: bool | None = static(default=None)  # the same, where it is known before compilation


@jax.custom_jvp
def _decomposed(target: Float[Array, "out in"]) -> tuple[Any, Any, Any]:
    left, values, right_t = jnp.linalg.svd(target, full_matrices=True)
    return left, values, right_t.T


def _refuse_derivative(primals: Any, tangents: Any) -> Any:
    if isinstance(tangents[0], jax.custom_derivatives.SymbolicZero):
        outputs = _decomposed(*primals)
        return outputs, jax.tree.map(jnp.zeros_like, outputs)
    # That of singular vectors does not exist where levels are equal, and would be wrong in silence.
    raise BadInput(
        "a derivative of the λ-balanced solution with respect to the task",
        "derivatives with respect to the start: weights, lam, scale",
        "take differences, or differentiate training",
    )


_decomposed.defjvp(_refuse_derivative, symbolic_zeros=True)


@jax.jit
def flow(target: Float[Array, "out in"], weights: Any, lam: Any) -> Flow:
    """One singular value decomposition serves all times."""
    d_out, d_in = target.shape
    left, values, right = _decomposed(target)
    # A silent mode does not mix the layers; in this basis its rates are smooth in λ, at 0 too.
    silent = values <= NOTHING * jnp.max(values)
    speed = jnp.where(silent, lam / 2, jnp.hypot(jnp.where(silent, 1.0, values), lam / 2))
    # [saxe_slides] prints H with the square root of a difference, which underflows for small λ.
    tilt = jnp.where(silent, 1.0, lam / 2 / jnp.where(silent, 1.0, speed + values))
    norm = jnp.sqrt(2 * (1 + tilt**2))
    smaller, larger = (1 - tilt) / norm, (1 + tilt) / norm
    unpaired = jnp.full(abs(d_out - d_in), jnp.sign(d_out - d_in) * lam / 2)
    rates = jnp.concatenate([speed, unpaired, -speed])
    first, last = weights
    rows = _rows(right.T @ first.T, left.T @ last, smaller, larger)
    # The staircase goes down the rates; what is stored keeps the order of the modes.
    falling = jnp.argsort(-rates, stable=True)
    stairs, pivots, _ = staircase(rows[falling])
    stairs = jnp.zeros_like(stairs).at[falling].set(stairs)
    pivots = jnp.where(pivots >= 0, falling[pivots], -1)
    at_pivot = jnp.take_along_axis(jnp.abs(stairs), jnp.maximum(pivots, 0)[None], axis=0)[0]
    gentle = jnp.all((pivots < 0) | (at_pivot > STEEP * jnp.max(jnp.abs(stairs), axis=0)))
    return Flow(left, right, values, smaller, larger, rates, stairs.T, pivots, gentle)


def _rows(first: Any, last: Any, smaller: Any, larger: Any) -> Any:
    """[W₁ᵀ; W₂] in the singular vectors of Σ → the eigenbasis of F, (row, hidden)."""
    count = len(smaller)
    learned = smaller[:, None] * first[:count] + larger[:, None] * last[:count]
    forgotten = smaller[:, None] * last[:count] - larger[:, None] * first[:count]
    return jnp.concatenate([learned, first[count:], last[count:], forgotten])


@jax.jit
def staircase(rows: Float[Array, "row hidden"]) -> tuple[Any, Any, Any]:
    """The rows in a hidden basis in which each new direction takes the next column; the pivots; the basis.

    A row that adds no more than rounding to those above it adds no column.
    """
    hidden = rows.shape[1]
    unit = unit_of(jnp.max(jnp.abs(rows)))
    rows = rows / unit
    floor = ROUNDING * jnp.max(jnp.linalg.norm(rows, axis=1))
    columns = jnp.arange(hidden)

    def add(carry, item):
        basis, used, pivots = carry
        index, row = item
        along = basis @ row
        rest = row - along @ basis
        again = basis @ rest  # twice is enough: Gram and Schmidt lose digits the first time
        rest, along = rest - again @ basis, along + again
        size = jnp.sum(rest**2)
        new = (size > floor**2) & (used < hidden)
        length = jnp.sqrt(jnp.where(new, size, 1.0))
        here = (columns == used) & new
        basis = jnp.where(here[:, None], rest / length, basis)
        pivots = jnp.where(here, index, pivots)
        return (basis, used + new, pivots), jnp.where(here, length, along)

    first = (jnp.zeros((hidden, hidden), rows.dtype), 0, jnp.full(hidden, -1))
    (basis, _, pivots), stairs = jax.lax.scan(add, first, (jnp.arange(len(rows)), rows))
    return stairs * unit, pivots, basis


def states(flow: Flow, times: Float[Array, " time"]) -> Float[Array, "time hidden row"]:
    """Kᵀ at every time."""
    if flow.stairs.shape[0] <= NARROW:
        return jax.vmap(lambda time: _orthonormalised(*_lifted(flow, time)))(times)

    def each(factor_inverse):
        return lambda times: jax.lax.map(lambda time: _factored(factor_inverse, *_lifted(flow, time)), times)

    if flow.known_gentle is None:
        return jax.lax.cond(flow.gentle, each(_inverse_factor), each(_inverse_factor_by_qr), times)
    return each(_inverse_factor if flow.known_gentle else _inverse_factor_by_qr)(times)


def _lifted(flow: Flow, time: Any) -> tuple[Any, Any, Any, Any]:
    """e^(growth) K₀ᵀ with columns of unit length; Φ apart from the growth; the 1; and the decay that is left out."""
    rates = flow.rates
    growth = jnp.maximum(rates, 0) * time
    still = rates == 0
    fading = -jnp.expm1(-2 * jnp.abs(rates) * time) / jnp.where(still, 1.0, 2 * jnp.abs(rates))
    root = jnp.where(still, time, fading)  # Φ = root × e^(2 growth)
    reference = jnp.where(flow.pivots >= 0, growth[jnp.maximum(flow.pivots, 0)], 0.0)
    # Rows above the pivot are zero, so no exponent that counts is positive.
    exponent = growth - reference[:, None]
    lifted = flow.stairs * jnp.exp(jnp.where(exponent > 0, 0.0, exponent))
    one = jnp.exp(-reference)
    unit = unit_of(jnp.maximum(one, jnp.max(jnp.abs(lifted), axis=1)))
    lifted, one = lifted / unit[:, None], one / unit
    scale = 1 / jnp.sqrt(one**2 + jnp.sum(lifted**2 * root, axis=1))
    return lifted * scale[:, None], root, one * scale, jnp.exp(jnp.minimum(rates, 0) * time)


def _rooted(lifted: Any, root: Any, one: Any) -> Any:
    """Rows whose inner products are 1 + K₀ᵀΦK₀, scaled."""
    some = root > 0  # at time 0 the root has no slope
    return jnp.concatenate([lifted * jnp.where(some, jnp.sqrt(jnp.where(some, root, 1.0)), 0.0), jnp.diag(one)], axis=1)


def _orthonormalised(lifted: Any, root: Any, one: Any, decay: Any) -> Any:
    """By Gram and Schmidt, in steps that many times share: small factorisations one by one would cost more.

    What makes the rows of the root orthonormal is the inverse of its triangular factor; K₀ᵀ takes the same steps.
    """
    rooted = _rooted(lifted, root, one)
    (hidden, width), rows = rooted.shape, jnp.concatenate([rooted, lifted * decay], axis=1)
    if hidden <= FEW:
        return _orthonormalised_at_once(rows, width)

    def step(j, rows):
        row = rows[j] / jnp.sqrt(jnp.sum(rows[j, :width] ** 2))
        along = jnp.where(jnp.arange(hidden) > j, rows[:, :width] @ row[:width], 0.0)
        return (rows - along[:, None] * row).at[j].set(row)

    return jax.lax.fori_loop(0, hidden, step, rows)[:, width:]


def _orthonormalised_at_once(rows: Any, width: int) -> Any:
    """The same steps written out: half the time for few rows, and longer to compile for many."""
    done = []
    while len(rows):
        row = rows[0] / jnp.sqrt(jnp.sum(rows[0, :width] ** 2))
        done.append(row[width:])
        rows = rows[1:] - jnp.sum(rows[1:, :width] * row[:width], axis=1)[:, None] * row
    return jnp.stack(done)


def _factored(factor_inverse: Any, lifted: Any, root: Any, one: Any, decay: Any) -> Any:
    return factor_inverse(lifted, root, one) @ (lifted * decay)


def _inverse_factor(lifted: Any, root: Any, one: Any) -> Any:
    """The inverse of the Cholesky factor of 1 + K₀ᵀΦK₀, scaled."""
    return _inverse_cholesky((lifted * root) @ lifted.T + jnp.diag(one**2))


def _inverse_cholesky(gram: Float[Array, "n n"]) -> Float[Array, "n n"]:
    # By blocks: LAPACK's threads for one small matrix cost more than the matrix does.
    half = gram.shape[0] // 2
    if gram.shape[0] <= PANEL:
        return _inverse_of_triangle(jax.lax.linalg.cholesky(gram, symmetrize_input=False))
    above = _inverse_cholesky(gram[:half, :half])
    side = gram[half:, :half] @ above.T
    below = _inverse_cholesky(gram[half:, half:] - side @ side.T)
    return _block_triangle(above, -(below @ side) @ above, below)


def _inverse_factor_by_qr(lifted: Any, root: Any, one: Any) -> Any:
    """The same without squares, which lose half of the digits of steep columns."""
    upper = jnp.linalg.qr(_rooted(lifted, root, one).T, mode="r")
    sign = jnp.where(jnp.diagonal(upper) < 0, -1.0, 1.0)
    return _inverse_of_triangle((upper * sign[:, None]).T)


def _inverse_of_triangle(lower: Float[Array, "n n"]) -> Float[Array, "n n"]:
    size = lower.shape[0]
    if size <= PANEL:
        eye = jnp.eye(size, dtype=lower.dtype)
        return jax.lax.linalg.triangular_solve(lower, eye, left_side=True, lower=True)
    half = size // 2
    above, below = _inverse_of_triangle(lower[:half, :half]), _inverse_of_triangle(lower[half:, half:])
    return _block_triangle(above, -(below @ lower[half:, :half]) @ above, below)


def _block_triangle(above: Any, corner: Any, below: Any) -> Any:
    return jnp.block([[above, jnp.zeros((above.shape[0], below.shape[0]), above.dtype)], [corner, below]])


def start(flow: Flow) -> Float[Array, "hidden row"]:
    """Kᵀ at time 0."""
    return flow.stairs


def field(flow: Flow, state: Float[Array, "hidden row"]) -> Float[Array, "hidden row"]:
    """dKᵀ/dt in the gauge of the Cholesky factor."""
    return state * flow.rates - 0.5 * (state @ state.T) @ state + turning(state) @ state


def turning(state: Float[Array, "hidden row"]) -> Float[Array, "hidden hidden"]:
    """The antisymmetric rate at which this gauge turns the hidden units."""
    gram = state @ state.T
    return 0.5 * (jnp.triu(gram, 1) - jnp.tril(gram, -1))


def factors(flow: Flow, states: Float[Array, "*time hidden row"]) -> tuple[Any, Any]:
    """W₁ and W₂ᵀ in the singular vectors of Σ: (…, hidden, in) and (…, hidden, out)."""
    count, d_in, d_out = len(flow.singular_values), flow.right.shape[0], flow.left.shape[0]
    learned = states[..., :count]
    unpaired = states[..., count : states.shape[-1] - count]
    forgotten = states[..., states.shape[-1] - count :]
    first = learned * flow.smaller - forgotten * flow.larger
    last = learned * flow.larger + forgotten * flow.smaller
    if d_in > d_out:
        first = jnp.concatenate([first, unpaired], axis=-1)
    if d_out > d_in:
        last = jnp.concatenate([last, unpaired], axis=-1)
    return first, last


def weights(flow: Flow, states: Float[Array, "*time hidden row"]) -> tuple[Any, Any]:
    """W₁ and W₂ up to a rotation of the hidden units; leading axes are kept."""
    first, last = factors(flow, states)
    return first @ flow.right.T, flow.left @ jnp.swapaxes(last, -1, -2)
