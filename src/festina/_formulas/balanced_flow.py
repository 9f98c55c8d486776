"""The flow of a λ-balanced two-layer linear network on white inputs, in closed form.

With Q = (W₁ᵀ; W₂), W₂ᵀW₂ − W₁W₁ᵀ = λI and Σˣ = I, gradient flow is dQ/dt = F Q − ½ QQᵀQ, where F has the blocks −λ/2,
Σᵀ; Σ, λ/2. With the eigenvectors O of F and its eigenvalues Λ, K = OᵀQ is

    K(t) = e^(Λt) K₀ C(t)^(−ᵀ),      C Cᵀ = 1 + K₀ᵀ Φ K₀,      Φ = (e^(2Λt) − 1)/(2Λ),

up to a rotation of the hidden units, which no observable depends on. C is the Cholesky factor; with this choice of the
rotation

    dK/dt = Λ K − K (½ diag + strictly upper part of KᵀK).

Evaluated naively this formula loses all digits at Λt ≈ 10. Here the rows of K₀ are sorted by decreasing Λ, and the
columns are rotated once into echelon form (a staircase): column j then begins at a pivot row p_j, so that at every t
all entries of e^(Λt) K₀ are bounded once column j is divided by e^(Λ_pj t). A row that depends linearly on the rows
above it, up to rounding, has no pivot: what is zero in exact arithmetic stays zero, and an initialisation that lacks
a mode does not acquire it by rounding.

Symbols: Σ = Σʸˣ, with singular values s; λ, the balance (`lam`); Λ = ±√(s² + λ²/4), ±λ/2; Q, both layers stacked; K, Q
in the eigenbasis of F.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from .._foundation.arrays import AnyArray, Layers, Number
from .._foundation.errors import BadInput
from .._foundation.nouns import noun, static
from .._foundation.program_memory import compiled
from .modes import NOTHING, unit_of
from .staircase import staircase

STEEP = 1e-3  # a pivot this much smaller than its column makes the squares of Cholesky lose digits
PANEL = 25  # triangles up to this size are left to LAPACK, larger ones cut into blocks
FEW = 6  # hidden units up to which the steps of Gram and Schmidt are written out
NARROW = 16  # hidden units up to which all times are computed together; wider states do not fit in cache


@noun
class EigenFlow:
    """The eigenbasis of F, and the initial layers expressed in it.

    The rows are, in this order, the learned combinations of W₁ and W₂, which grow at the rates +√(s² + λ²/4), largest
    first; the unpaired inputs or outputs (rate ±λ/2); and the forgotten combinations (rates −√(s² + λ²/4)).
    """

    left: Float[AnyArray, "out out"]  # singular vectors of Σ, all of them
    right: Float[AnyArray, "in in"]
    singular_values: Float[AnyArray, " mode"]
    smaller: Float[AnyArray, " mode"]  # share of W₁ in a learned combination
    larger: Float[AnyArray, " mode"]  # share of W₂ in a learned combination
    rates: Float[AnyArray, " row"]  # Λ
    stairs: Float[AnyArray, "hidden row"]  # K₀ᵀ
    pivots: Int[AnyArray, " hidden"]  # the row at which each column of K₀ begins; −1 if the column is empty
    gentle: Bool[AnyArray, ""]  # no pivot is much smaller than its column
    known_gentle: bool | None = static(default=None)  # the same, where it is known before compilation


Decomposition: TypeAlias = tuple[Float[AnyArray, "out out"], Float[AnyArray, " mode"], Float[AnyArray, "in in"]]


@jax.custom_jvp
def _decomposed(target: Float[AnyArray, "out in"]) -> Decomposition:
    left, values, right_t = jnp.linalg.svd(target, full_matrices=True)
    return left, values, right_t.T


def _refuse_derivative(
    primals: tuple[Float[AnyArray, "out in"]], tangents: tuple[object]
) -> tuple[Decomposition, Decomposition]:
    if isinstance(tangents[0], jax.custom_derivatives.SymbolicZero):
        outputs = _decomposed(*primals)
        return outputs, jax.tree.map(jnp.zeros_like, outputs)
    # Singular vectors have no derivative where singular values are equal; the result would be silently wrong.
    raise BadInput(
        "a derivative of the λ-balanced solution with respect to the task",
        "derivatives with respect to the start: weights, lam, scale",
        "take differences, or differentiate training",
    )


_decomposed.defjvp(_refuse_derivative, symbolic_zeros=True)


@compiled
def flow(target: Float[AnyArray, "out in"], weights: Layers, lam: Number) -> EigenFlow:
    """Prepare the flow towards Σ = `target` from two layers of balance `lam`; one SVD serves all times."""
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
    # The echelon form is computed with rows in order of decreasing rate, and stored in the order of the modes.
    falling = jnp.argsort(-rates, stable=True)
    stairs, pivots, _ = staircase(rows[falling])
    stairs = jnp.zeros_like(stairs).at[falling].set(stairs)
    pivots = jnp.where(pivots >= 0, falling[pivots], -1)
    at_pivot = jnp.take_along_axis(jnp.abs(stairs), jnp.maximum(pivots, 0)[None], axis=0)[0]
    gentle = jnp.all((pivots < 0) | (at_pivot > STEEP * jnp.max(jnp.abs(stairs), axis=0)))
    return EigenFlow(left, right, values, smaller, larger, rates, stairs.T, pivots, gentle)


def _rows(
    first: Float[AnyArray, "in hidden"],
    last: Float[AnyArray, "out hidden"],
    smaller: Float[AnyArray, " mode"],
    larger: Float[AnyArray, " mode"],
) -> Float[AnyArray, "row hidden"]:
    """(W₁ᵀ; W₂) in the singular vectors of Σ → the eigenbasis of F."""
    count = len(smaller)
    learned = smaller[:, None] * first[:count] + larger[:, None] * last[:count]
    forgotten = smaller[:, None] * last[:count] - larger[:, None] * first[:count]
    return jnp.concatenate([learned, first[count:], last[count:], forgotten])


def states(flow: EigenFlow, times: Float[AnyArray, " time"]) -> Float[AnyArray, "time hidden row"]:
    """Kᵀ at every time."""
    if flow.stairs.shape[0] <= NARROW:
        return jax.vmap(lambda time: orthonormalised(grown_start(flow, time)))(times)

    def each(inverse: Inverse) -> Callable[[Float[AnyArray, " time"]], Float[AnyArray, "time hidden row"]]:
        return lambda times: jax.lax.map(lambda time: factored(inverse, grown_start(flow, time)), times)

    if flow.known_gentle is None:
        return jax.lax.cond(flow.gentle, each(inverse_factor), each(inverse_factor_by_qr), times)
    return each(inverse_factor if flow.known_gentle else inverse_factor_by_qr)(times)


class GrownStart(NamedTuple):
    """e^(Λt) K₀ᵀ with every row scaled to a size of 1, in the factors from which the state at t is computed."""

    rows: Float[AnyArray, "hidden row"]  # e^(growth) K₀ᵀ, scaled; the growth is Λt where Λ > 0, else 0
    root: Float[AnyArray, " row"]  # Φ/e^(2 growth)
    one: Float[AnyArray, " hidden"]  # the 1 in 1 + K₀ᵀΦK₀, scaled in the same way
    decay: Float[AnyArray, " row"]  # e^(Λt − growth)


Inverse: TypeAlias = Callable[[GrownStart], Float[AnyArray, "hidden hidden"]]


def grown_start(flow: EigenFlow, time: Number) -> GrownStart:
    """The factors of e^(Λt) K₀ᵀ at `time`, computed without positive exponents, so that nothing overflows."""
    rates = flow.rates
    growth = jnp.maximum(rates, 0) * time
    still = rates == 0
    fading = -jnp.expm1(-2 * jnp.abs(rates) * time) / jnp.where(still, 1.0, 2 * jnp.abs(rates))
    root = jnp.where(still, time, fading)
    reference = jnp.where(flow.pivots >= 0, growth[jnp.maximum(flow.pivots, 0)], 0.0)
    # Rows above the pivot are zero, so no exponent that counts is positive.
    exponent = growth - reference[:, None]
    rows = flow.stairs * jnp.exp(jnp.where(exponent > 0, 0.0, exponent))
    one = jnp.exp(-reference)
    unit = unit_of(jnp.maximum(one, jnp.max(jnp.abs(rows), axis=1)))
    rows, one = rows / unit[:, None], one / unit
    scale = 1 / jnp.sqrt(one**2 + jnp.sum(rows**2 * root, axis=1))
    return GrownStart(rows * scale[:, None], root, one * scale, jnp.exp(jnp.minimum(rates, 0) * time))


def _rooted(grown: GrownStart) -> Float[AnyArray, "hidden both"]:
    """Rows whose inner products are 1 + K₀ᵀΦK₀, scaled."""
    some = grown.root > 0  # at time 0 the root has no slope
    roots = jnp.where(some, jnp.sqrt(jnp.where(some, grown.root, 1.0)), 0.0)
    return jnp.concatenate([grown.rows * roots, jnp.diag(grown.one)], axis=1)


def orthonormalised(grown: GrownStart) -> Float[AnyArray, "hidden row"]:
    """The state by Gram-Schmidt, in steps computed for many times at once: separate small factorisations cost more.

    Making the rows of `_rooted` orthonormal means multiplying them by the inverse of their triangular factor; the same
    steps are applied to K₀ᵀ.
    """
    rooted = _rooted(grown)
    (hidden, width), rows = rooted.shape, jnp.concatenate([rooted, grown.rows * grown.decay], axis=1)
    if hidden <= FEW:
        return _orthonormalised_at_once(rows, width)

    def step(j, rows):
        row = rows[j] / jnp.sqrt(jnp.sum(rows[j, :width] ** 2))
        along = jnp.where(jnp.arange(hidden) > j, rows[:, :width] @ row[:width], 0.0)
        return (rows - along[:, None] * row).at[j].set(row)

    return jax.lax.fori_loop(0, hidden, step, rows)[:, width:]


def _orthonormalised_at_once(rows: Float[AnyArray, "hidden all"], width: int) -> Float[AnyArray, "hidden row"]:
    """The same steps written out: half the time for few rows, and longer to compile for many."""
    done = []
    while len(rows):
        row = rows[0] / jnp.sqrt(jnp.sum(rows[0, :width] ** 2))
        done.append(row[width:])
        rows = rows[1:] - jnp.sum(rows[1:, :width] * row[:width], axis=1)[:, None] * row
    return jnp.stack(done)


def factored(inverse: Inverse, grown: GrownStart) -> Float[AnyArray, "hidden row"]:
    """The state by the inverse of the triangular factor of 1 + K₀ᵀΦK₀."""
    return inverse(grown) @ (grown.rows * grown.decay)


def inverse_factor(grown: GrownStart) -> Float[AnyArray, "hidden hidden"]:
    """The inverse of the Cholesky factor of 1 + K₀ᵀΦK₀, scaled."""
    return _inverse_cholesky((grown.rows * grown.root) @ grown.rows.T + jnp.diag(grown.one**2))


def _inverse_cholesky(gram: Float[AnyArray, "n n"]) -> Float[AnyArray, "n n"]:
    # By blocks: LAPACK's threads for one small matrix cost more than the matrix does.
    half = gram.shape[0] // 2
    if gram.shape[0] <= PANEL:
        return _inverse_of_triangle(jax.lax.linalg.cholesky(jnp.asarray(gram), symmetrize_input=False))
    above = _inverse_cholesky(gram[:half, :half])
    side = gram[half:, :half] @ above.T
    below = _inverse_cholesky(gram[half:, half:] - side @ side.T)
    return _block_triangle(above, -(below @ side) @ above, below)


def inverse_factor_by_qr(grown: GrownStart) -> Float[AnyArray, "hidden hidden"]:
    """The same by a QR decomposition: forming squares loses half of the digits of columns with a small pivot."""
    upper = jnp.linalg.qr(_rooted(grown).T, mode="r")
    sign = jnp.where(jnp.diagonal(upper) < 0, -1.0, 1.0)
    return _inverse_of_triangle((upper * sign[:, None]).T)


def _inverse_of_triangle(lower: Float[AnyArray, "n n"]) -> Float[AnyArray, "n n"]:
    size = lower.shape[0]
    if size <= PANEL:
        eye = jnp.eye(size, dtype=lower.dtype)
        return jax.lax.linalg.triangular_solve(lower, eye, left_side=True, lower=True)
    half = size // 2
    above, below = _inverse_of_triangle(lower[:half, :half]), _inverse_of_triangle(lower[half:, half:])
    return _block_triangle(above, -(below @ lower[half:, :half]) @ above, below)


def _block_triangle(
    above: Float[AnyArray, "top top"], corner: Float[AnyArray, "bottom top"], below: Float[AnyArray, "bottom bottom"]
) -> Float[AnyArray, "n n"]:
    return jnp.block([[above, jnp.zeros((above.shape[0], below.shape[0]), above.dtype)], [corner, below]])


def start(flow: EigenFlow) -> Float[AnyArray, "hidden row"]:
    """Kᵀ at time 0."""
    return flow.stairs


def field(flow: EigenFlow, state: Float[AnyArray, "hidden row"]) -> Float[AnyArray, "hidden row"]:
    """dKᵀ/dt with the rotation of the hidden units that the Cholesky factor chooses."""
    return state * flow.rates - 0.5 * (state @ state.T) @ state + rotation_rate(state) @ state


def rotation_rate(state: Float[AnyArray, "hidden row"]) -> Float[AnyArray, "hidden hidden"]:
    """The antisymmetric generator of the rotation of hidden units that the choice of the Cholesky factor implies."""
    gram = state @ state.T
    return 0.5 * (jnp.triu(gram, 1) - jnp.tril(gram, -1))


def factors(
    flow: EigenFlow, states: Float[AnyArray, "*time hidden row"]
) -> tuple[Float[AnyArray, "*time hidden in"], Float[AnyArray, "*time hidden out"]]:
    """W₁ and W₂ᵀ in the singular vectors of Σ."""
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


def weights(
    flow: EigenFlow, states: Float[AnyArray, "*time hidden row"]
) -> tuple[Float[AnyArray, "*time hidden in"], Float[AnyArray, "*time out hidden"]]:
    """W₁ and W₂ up to a rotation of the hidden units."""
    first, last = factors(flow, states)
    return first @ flow.right.T, flow.left @ jnp.swapaxes(last, -1, -2)


def final_representations(
    right: Float[AnyArray, "in mode"],
    singular_values: Float[AnyArray, " mode"],
    left: Float[AnyArray, "out mode"],
    lam: Number,
) -> tuple[Float[AnyArray, "in in"], Float[AnyArray, "out out"]]:
    """W₁ᵀW₁ and W₂W₂ᵀ after learning, V (√(λ² + 4S²) − λ)/2 Vᵀ and U (√(λ² + 4S²) + λ)/2 Uᵀ with Σ = U S Vᵀ.

    They do not depend on the initial weights if all modes are learned and there are as many hidden units as modes.
    """
    root = (lam**2 + 4 * singular_values**2) ** 0.5
    return (right * (root - lam) / 2) @ right.T, (left * (root + lam) / 2) @ left.T
