"""Two points of a network are pulled apart or together by an encoder and a decoder that learn at rates of their own.

With the squared distances H in a layer, P in the output, X of the inputs, Y of the targets, and w = P − dy·Δy*
[vanrossem2024, eq. 7],

    dH/dt = −(X/τ_h) w,
    dP/dt = −w (H/τ_y + X P/(τ_h H)),
    dw/dt = −(3w − P + Y) H/(2τ_y) − X (P + w) w/(2τ_h H).

With α = X/(2τ_h), β = 1/(2τ_y), k = √(αβ), D = √Y, p = (P − w)/D, q = P − p²,

    A = H₀ − (τ_y/τ_h) X P₀/H₀,  B = √(τ_y X Y/τ_h),  g = βA/2,  s = √(g² + k²Y),  φ = atan2(kD, g)/2,  E = e^(−2st),
    ρ₀ = √(H₀/α),  n₀ = p₀/√(H₀β),  m₀² = q₀/(H₀β),  a = ρ₀ cos φ + n₀ sin φ,  b = n₀ cos φ − ρ₀ sin φ,
    N = E + k² [(a² + b² E)(1 − E)/(2s) + m₀² E (1 − e^(−2gt))/(2g)],
    ρ = (a cos φ − b sin φ E)/√N,  n = (a sin φ + b cos φ E)/√N,  m = m₀ e^(−(s+g)t)/√N,
    H = αρ²,  p = kρn,  q = k²ρ²m²,  P = p² + q,  w = P − pD,

and H → A/2 + √(A²/4 + B²) [vanrossem2024, eq. 10]. This is a two-layer linear network with one hidden unit, and
shares its integral with `UnbalancedModes`. It is the flow of a two-layer linear network of any width on x and −x,
with dh = W₁(x₂ − x₁) = u and D_y = W₂, if u does not rotate: R = W₂ − dy uᵀ/H is constant, and the part of du/dt
orthogonal to u is −αRᵀ(dy − Δy*), so that Rᵀdy = RᵀΔy* = 0 is needed. With one output u may rotate: with v = W₂ᵀ,
u/√α ± v/√β keep their directions and grow by e^(±θ), and S ± 2km = α|v|² + β|u|² ± 2k u·v ∝ e^(±2θ) obey
Riccati equations of one variable.

Symbols: H, P, X, Y, squared distances, and w, above; dh = u and dy, differences of the two points in the layer and in
the output; Δy* = y₂ − y₁; D_y, the decoder; p and q, the output along the target, and the square of the rest; τ_h, τ_y,
time constants of encoder and decoder; A, conserved [vanrossem2024, eq. 24]; B, the final distance of small starts.

Convention: τ_h and τ_y are those of eq. 7. Gradient descent with rate lr has τ_h = τ_y = 2/lr per step, 2 in units of
t = lr × steps, and 1 there for the mean of the outputs: [vanrossem2024, eq. 17] forgets the average over two points.
If the mean of the two inputs is not 0, difference and mean of the outputs share weights; neither has a closed equation.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._formulas.modes import Modes
from .._formulas.two_points import flow, functions, rotation
from .._formulas.two_points.pair import Pair, TurningStart, Vectors, root
from .._foundation.arrays import AnyArray, Number, Weights
from .._foundation.nouns import noun
from .._foundation.precision import in_double
from .._setup.setup import Setup
from ._fitting.two_point import FITTING
from ._linear import weight_readouts
from ._linear_assumptions import horizon_assumption, two_layer_assumptions
from ._remarks import unlearnable
from .base import Approach, Assumption, Readout, Seed, Theory, Times, smooth_training

__all__ = ["TwoPoint"]

# The formulas as public functions of numbers or arrays.
trajectory = functions.trajectory
final_distance = functions.final_distance
rotating = functions.rotating
rotated_final_distance = functions.rotated_final_distance
invariant = functions.invariant
rich_distance = functions.rich_distance
regime = functions.regime
lazy_limit = functions.lazy_limit
fixed_point_rates = functions.fixed_point_rates
loss = functions.loss
plateau = functions.plateau
depth_law = functions.depth_law
law_of_final_distance = functions.law_of_final_distance

TAU = 2.0  # of both layers, in units of t = lr × steps


Difference: TypeAlias = Float[AnyArray, " feature"]


class PairLayers(NamedTuple):
    """The part of two layers that learns from two opposite points: u = W₁(x₂ − x₁), and W₂; time is the first axis."""

    hidden: Float[AnyArray, "*time hidden"]
    decoder: Float[AnyArray, "*time feature hidden"]


@noun
class PairConstants:
    """Two points, and the network that starts on them."""

    input_difference: Float[AnyArray, " input"]
    target_difference: Float[AnyArray, " feature"]
    weights: Weights
    modes: Modes
    floor: Number
    cov_x: Float[AnyArray, "input input"]
    x: Float[AnyArray, "sample input"]

    @property
    def pair(self) -> Pair:
        """X, Y, τ_h and τ_y."""
        return Pair(jnp.sum(self.input_difference**2), jnp.sum(self.target_difference**2), TAU, TAU)


def _direction(
    vector: Float[AnyArray, " axis"], otherwise: Number | Float[AnyArray, " axis"]
) -> Float[AnyArray, " axis"]:
    """The unit vector along a vector, or `otherwise` where that is 0."""
    size = jnp.linalg.norm(jnp.where(jnp.any(vector != 0), vector, 1.0))
    return jnp.where(jnp.any(vector != 0), vector / size, otherwise)


def _output(states: PairLayers) -> Float[AnyArray, "time feature"]:
    """dy."""
    return jnp.einsum("toh,th->to", states.decoder, states.hidden)


def _layers(constants: PairConstants, states: PairLayers) -> tuple[AnyArray, AnyArray]:
    dx, (first, _) = constants.input_difference, constants.weights
    change = (states.hidden - first @ dx) / jnp.sum(dx**2)
    return first + change[:, :, None] * dx, states.decoder


def _map(constants: PairConstants, states: PairLayers) -> Float[AnyArray, "time feature input"]:
    first, last = _layers(constants, states)
    return last @ first


def _loss(constants: PairConstants, states: PairLayers) -> Float[AnyArray, " time"]:
    # The mean output stays at 0; what the mean target costs is the floor.
    return constants.floor + jnp.sum((_output(states) - constants.target_difference) ** 2, axis=1) / 8


def _alignment(constants: PairConstants, states: PairLayers) -> Float[AnyArray, "time 1"]:
    output = _output(states)
    return jnp.sum(output * (output - constants.target_difference), axis=1)[:, None]


@noun
class TwoPoint(Theory[PairConstants, PairLayers]):
    """Two opposite points in a two-layer linear network: one hidden direction, or one output; exact."""

    reference = {"vanrossem2024": "eq. 7, eq. 10 and eq. 24"}
    fitting = FITTING
    approach = Approach("lr", (0.04, 0.02, 0.01), order=1)
    readouts = {
        "loss": Readout((), _loss),
        "map": Readout(("feature", "input"), _map),
        "modes": Readout(("mode",), lambda c, s: c.modes.strengths(_map(c, s))),
        "outputs": Readout(("sample", "feature"), lambda c, s: jnp.einsum("si,toi->tso", c.x, _map(c, s))),
        "distance": Readout(("layer", "pair"), lambda c, s: jnp.sum(s.hidden**2, axis=1)[:, None, None]),
        "output_distance": Readout(("pair",), lambda c, s: jnp.sum(_output(s) ** 2, axis=1)[:, None]),
        "output_alignment": Readout(("pair",), _alignment),
        **weight_readouts(_layers),
    }

    @classmethod
    def example(cls) -> Setup:
        from .. import inits, nets, tasks

        rng = np.random.default_rng(0)
        half, target, mean, off = rng.normal(size=(4, 3))
        hidden = 0.3 * rng.normal(size=4)
        # One hidden direction; a decoder that is off the target, so that it has to turn.
        weights = [np.outer(hidden, half) / (half @ half), np.outer(target + off, hidden)]
        task = tasks.from_arrays(np.stack([-half, half]), np.stack([mean - target, mean + target]))
        return Setup(task, nets.DeepLinear(hidden=4), inits.Given(weights), until=6.0, points=31)

    def assumptions(self, setup: Setup, seed: int) -> tuple[Assumption, ...]:
        net = two_layer_assumptions(setup)
        if not all(assumption.holds for assumption in net):
            return net
        count = setup.single_task.samples
        two = Assumption.that(
            "two samples",
            "the task has two samples",
            count == 2,
            "moments only" if count is None else f"{count} samples",
            "2 samples",
        )
        if not two.holds:
            return (*net, two)
        x, y = np.asarray(setup.single_task.x), np.asarray(setup.single_task.y)
        centred = Assumption.at_most(
            "opposite points",
            "the mean of the two inputs is zero, relative to their difference",
            _ratio(np.linalg.norm(x.mean(axis=0)), np.linalg.norm(x[1] - x[0])),
            1e-9,
        )
        if not centred.holds:
            return (*net, two, centred)
        first, last = map(np.asarray, setup.weights(seed))
        rotation, fastest = _rotation_speed(first, last, x[1] - x[0], y[1] - y[0])
        return (
            *net,
            two,
            *smooth_training(setup, lambda: fastest),
            centred,
            _no_rotation(rotation, setup.single_task.d_out),
            horizon_assumption(setup, fastest),
        )

    def constants(self, setup: Setup, seed: Seed) -> PairConstants:
        task = setup.single_task
        return PairConstants(
            input_difference=task.x[1] - task.x[0],
            target_difference=task.y[1] - task.y[0],
            weights=setup.weights(seed),
            modes=setup.modes(seed),
            floor=task.floor(),
            cov_x=task.cov_x,
            x=task.x,
        )

    def start(self, constants: PairConstants) -> PairLayers:
        first, last = constants.weights
        return PairLayers(first @ constants.input_difference, last)

    def field(self, constants: PairConstants, state: PairLayers) -> PairLayers:
        error = state.decoder @ state.hidden - constants.target_difference
        encoder = constants.pair.input_gap / (2 * TAU)
        return PairLayers(-encoder * error @ state.decoder, -jnp.outer(error, jnp.asarray(state.hidden)) / (2 * TAU))

    def states(self, constants: PairConstants, times: Times) -> PairLayers:
        start, target = self.start(constants), constants.target_difference
        if len(target) == 1:
            return _with_one_output(start, target, constants.pair, times)
        return _in_one_direction(start, target, constants.pair, times)

    def weights(self, constants: PairConstants, states: PairLayers) -> Weights:
        return _layers(constants, states)

    def remarks(self, setup: Setup, seed: int) -> tuple[str, ...]:
        constants = self.constants(setup, seed)
        late = in_double(lambda c: _output(self.states(c, jnp.full(1, 1e12))))(constants)[0]
        missing = np.linalg.norm(late - constants.target_difference)
        stuck = missing > 0.5 * np.linalg.norm(constants.target_difference)
        values = np.atleast_1d(setup.single_task.spectrum())[:1]
        return unlearnable([bool(stuck)], values, "the two points merge in the layer and stay there, at the saddle")


def _with_one_output(start: PairLayers, target: Difference, pair: Pair, times: Times) -> PairLayers:
    """One output: a hyperbolic rotation of u and v, whatever their angle."""
    sign = jnp.where(target < 0, -1.0, 1.0)
    u, v = start.hidden, sign * start.decoder[0]
    even, odd = (part[:, None] for part in rotation.growth_factors(times, TurningStart(u @ u, v @ v, u @ v), pair))
    ratio = jnp.sqrt(pair.input_gap * pair.tau_y / pair.tau_h)
    return PairLayers(even * u + odd * ratio * v, (sign * (even * v + odd / ratio * u))[:, None])


def _in_one_direction(start: PairLayers, target: Difference, pair: Pair, times: Times) -> PairLayers:
    """One hidden direction e: u = r e and D_y e = v move, the rest of D_y stays."""
    to_target = _direction(target, 0.0)
    pulled = start.decoder.T @ target
    e = _direction(start.hidden, _direction(pulled, 0.0))
    v = start.decoder @ e
    along = to_target @ v
    off = v - along * to_target
    size = root(off @ off)
    r, along, left = flow.vectors(times, Vectors(start.hidden @ e, along, size), pair)
    later = along[:, None] * to_target + (left / jnp.where(size > 0, size, 1.0))[:, None] * off
    return PairLayers(r[:, None] * e, start.decoder + (later - v)[:, :, None] * e)


def _ratio(part: Number, whole: Number) -> float:
    return float(part / whole) if whole > 0 else np.inf


def _rotation_speed(
    first: Float[np.ndarray, "hidden input"],
    last: Float[np.ndarray, "feature hidden"],
    dx: Float[np.ndarray, " input"],
    target: Float[np.ndarray, " feature"],
) -> tuple[float, float]:
    """The speed of rotation of the hidden difference, relative to the fastest rate; and that rate.

    u rotates at the rate −αRᵀ(dy − Δy*)/|u|. If both parts vanish at time 0, it never does, since R and its products
    with v and Δy* then stay constant.
    """
    u, encoder, decoder = first @ dx, dx @ dx / (2 * TAU), 1 / (2 * TAU)
    total = encoder * np.sum(last**2) + decoder * (u @ u)
    dy = last @ u
    square = total**2 + 4 * encoder * decoder * (target @ target - dy @ dy)
    fastest = float(max(total, np.sqrt(max(square, 0.0))))
    size = np.linalg.norm(u)
    pulled = last.T @ target
    e = u / size if size > 0 else pulled / max(np.linalg.norm(pulled), np.finfo(float).tiny)
    rest = last - np.outer(last @ e, e)
    parts = np.linalg.norm(rest.T @ (last @ e)), np.linalg.norm(rest.T @ target)
    # What is rounding of R counts as nothing: a small u would make it large.
    rounding = 8 * np.finfo(float).eps * np.linalg.norm(last) * np.linalg.norm(target)
    pulling = 0.0 if parts[1] <= rounding else parts[1] / size if size > 0 else np.inf
    speed = encoder * (parts[0] + pulling)
    return (0.0 if speed == 0 else float(speed / fastest)), fastest


def _no_rotation(rotation: float, outputs: int) -> Assumption:
    name, bound = "no rotation", 1e-6
    statement = (
        "the hidden difference keeps its direction: speed of turning over the fastest rate; or there is one output"
    )
    if outputs == 1:
        return Assumption.that(name, statement, True, "one output", f"<= {bound:g}, or one output")
    return Assumption.at_most(name, statement, rotation, bound)
