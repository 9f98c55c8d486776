"""The two-point theory against integration, training and draws that share no code with it; and its fit."""

from __future__ import annotations

import itertools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import festina as fs
from festina._formulas import two_layer_mode
from festina._formulas.two_points import ends, flow, rotation, single_pair
from festina._formulas.two_points.pair import Curves, Pair, Start, TurningStart, Vectors
from festina._verbs.fit.two_points import fit_two_point
from festina.theories.two_point import final_distance, trajectory

NAMES = ("distance0", "output0", "alignment0", "input_gap", "target_gap", "tau_h", "tau_y")
FEW = np.linspace(0, 1, 9)


def integrated(speed, start, times):
    """By SciPy, from time to time: between its own steps it interpolates with a lower order."""
    states = [np.asarray(start, float)]
    for begin, end in itertools.pairwise(times):
        states.append(solve_ivp(speed, (begin, end), states[-1], method="DOP853", rtol=1e-12, atol=1e-15).y[:, -1])
    return np.stack(states)


KINDS = ("any", "backward", "decoder larger", "equal targets", "balanced", "one output", "touching", "equal, balanced")


def cases(count=64, seed=0):
    """Constants and (r, v∥, v⊥) of `count` pairs of points, an eighth of every kind."""
    rng = np.random.default_rng(seed)
    X, Y, tau_h, tau_y = np.exp(rng.uniform(-1.5, 1.5, (4, count)))
    r = np.exp(rng.uniform(-3, 1, count))
    v = rng.normal(size=(2, count)) * np.exp(rng.uniform(-4, 2, count))
    kind = np.array(KINDS)[np.arange(count) % len(KINDS)]
    v[0] = np.where(kind == "backward", -np.abs(v[0]), v[0])
    v = np.where(kind == "decoder larger", v * 5 * r * np.sqrt(tau_h / tau_y / X) / np.linalg.norm(v, axis=0), v)
    Y = np.where(np.isin(kind, ("equal targets", "equal, balanced")), 0.0, Y)
    even = np.isin(kind, ("balanced", "equal, balanced"))
    v = np.where(even, v * r * np.sqrt(tau_h / tau_y / X) / np.linalg.norm(v, axis=0), v)
    v[1] = np.where(np.isin(kind, ("one output", "touching")), 0.0, v[1])
    v[0] = np.where(kind == "touching", -3 * r * np.sqrt(tau_h / tau_y / X), v[0])
    return kind, r, v, (X, Y, tau_h, tau_y)


def regular(r, along, off, X, Y, tau_h, tau_y):
    """dr/dt, dv∥/dt and dv⊥/dt, as on the page."""
    error = r * along - np.sqrt(Y)
    return np.stack(
        [-X / (2 * tau_h) * (along * error + r * off**2), -r * error / (2 * tau_y), -(r**2) * off / (2 * tau_y)]
    )


def curves_of(r, along, off, Y):
    H, p, q = r**2, r * along, (r * off) ** 2
    return H, p**2 + q, p**2 + q - p * np.sqrt(Y)


def keywords(r, v, constants):
    H, P, w = curves_of(r, *v, constants[1])
    return dict(zip(NAMES, (H, P, w, *constants), strict=True))


@pytest.fixture(scope="module")
def world():
    """64 pairs, integrated in the regular form, all in units of their own time."""
    kind, r, v, constants = cases()
    X, Y, tau_h, tau_y = constants
    unit = 1 / np.sqrt(X * np.maximum(Y, 0.2) / tau_h / tau_y)

    def speed(_, flat):
        return (unit * regular(*flat.reshape(3, -1), *constants)).ravel()

    states = integrated(speed, np.stack([r, *v]).ravel(), 12 * FEW).reshape(len(FEW), 3, -1)
    return kind, keywords(r, v, constants), np.moveaxis(states, 0, -1), 12 * FEW * unit[:, None]


@pytest.fixture(scope="module")
def predicted(world):
    """The closed form at the times of `world`, which differ from pair to pair."""
    with jax.enable_x64(True):
        numbers = [*world[1].values()]
        found = jax.jit(flow.states)(world[3], Start(*numbers[:3]), Pair(*numbers[3:]))
        return Curves(*map(np.asarray, found))


@pytest.mark.parametrize("kind", KINDS)
def test_the_closed_form_is_the_integral(world, predicted, kind):
    mine, numbers, states, _ = world
    true = curves_of(*states, numbers["target_gap"][:, None])
    some = mine == kind
    assert some.sum() == 8
    for name, found, wanted in zip(predicted._fields, predicted, true, strict=True):
        gap = np.abs(found - wanted)[some].max(axis=1) / np.abs(wanted)[some].max(axis=1)
        assert gap.max() < 5e-10, name
    if kind == "touching":
        assert np.all(states[0][some][:, -1] < 0)  # r went through zero


def test_the_contract_is_the_same_function(world, predicted):
    numbers, times = world[1], world[3]
    for index in (0, 3):
        one = {name: value[index] for name, value in numbers.items()}
        found = trajectory(times[index], **one)
        assert all(curve.dtype == np.float64 and isinstance(curve, np.ndarray) for curve in found)
        for mine, all_of_them in zip(found, predicted, strict=True):
            np.testing.assert_allclose(mine, all_of_them[index], rtol=1e-11, atol=1e-14)
    assert trajectory(FEW, **numbers).distance.shape == (64, 9)
    assert trajectory(2.0, **numbers).output.shape == (64,)
    grid = {**one, "tau_h": np.ones((4, 1)), "tau_y": np.ones(3)}
    assert trajectory(FEW, **grid).alignment.shape == (4, 3, 9)
    assert final_distance(**grid).shape == (4, 3)


def matrix_flow(encoder, decoder, dx, target, tau_h, tau_y, times):
    """H, P and w along the flow of both Jacobians, nothing assumed."""
    shapes, cut = (encoder.shape, decoder.shape), encoder.size

    def speed(_, flat):
        D_h, D_y = (part.reshape(shape) for part, shape in zip(np.split(flat, [cut]), shapes, strict=True))
        error = D_y @ D_h @ dx - target
        first = -np.outer(D_y.T @ error, dx) / (2 * tau_h)
        return np.concatenate([first.ravel(), -np.outer(error, D_h @ dx).ravel() / (2 * tau_y)])

    found = []
    for flat in integrated(speed, np.concatenate([encoder.ravel(), decoder.ravel()]), times):
        dh = flat[:cut].reshape(shapes[0]) @ dx
        dy = flat[cut:].reshape(shapes[1]) @ dh
        found.append((dh @ dh, dy @ dy, dy @ dy - dy @ target))
    return np.array(found).T


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_flow_of_both_jacobians_if_nothing_rotates(seed):
    rng = np.random.default_rng(seed)
    dx, target = rng.normal(size=3), rng.normal(size=4)
    encoder = rng.normal(size=(5, 3))
    dh = encoder @ dx
    decoder = np.outer(rng.normal(size=4), dh) / (dh @ dh)
    times = 4 * FEW
    true = matrix_flow(encoder, decoder, dx, target, 1.3, 0.6, times)
    start = dict(zip(NAMES, (*true[:, 0], dx @ dx, target @ target, 1.3, 0.6), strict=True))
    np.testing.assert_allclose(trajectory(times, **start), true, rtol=1e-8, atol=1e-9)


ROTATIONS = ("any", "decoder larger", "encoder larger", "backward", "equal targets", "parallel", "stuck", "still")


@pytest.mark.parametrize("kind", ROTATIONS)
def test_one_output_is_solved_with_any_rotation(kind, double):
    rng = np.random.default_rng(20 + ROTATIONS.index(kind))
    encoder, decoder = rng.normal(size=(4, 2)), rng.normal(size=(1, 4))
    dx, target = rng.normal(size=2), np.abs(rng.normal(size=1))
    tau_h, tau_y, times = 0.8, 1.7, 6 * FEW
    if kind in ("decoder larger", "encoder larger"):
        encoder, decoder = (encoder, 3 * decoder) if kind == "decoder larger" else (3 * encoder, 0.1 * decoder)
    if kind in ("equal targets", "still"):
        target = np.zeros(1)
    if kind in ("parallel", "stuck", "still"):
        u = encoder @ dx
        size = {"parallel": -0.2, "stuck": -1.0, "still": 1.0}[kind] * np.sqrt(tau_h / tau_y / (dx @ dx))
        decoder = size * u[None]  # as long as the encoder, and against it: the saddle
        times = times / 3  # from the saddle rounding grows
    if kind == "backward":
        decoder = -np.sign(decoder @ encoder @ dx)[:, None] * decoder
    u, v = encoder @ dx, decoder[0]
    true = matrix_flow(encoder, decoder, dx, target, tau_h, tau_y, times)
    constants = Pair(dx @ dx, target @ target, tau_h, tau_y)
    turning = TurningStart(u @ u, v @ v, u @ v)
    found = rotation.rotating(times, turning, constants)
    np.testing.assert_allclose(found, true, rtol=1e-8, atol=1e-8)
    late = rotation.rotating(np.array([1e3, 1e6]), turning, constants)
    assert all(np.all(np.isfinite(curve)) for curve in late)
    if kind != "stuck":
        end = rotation.rotated_final_distance(turning, constants)
        np.testing.assert_allclose(late.distance[1], end, rtol=1e-9, atol=1e-5 if kind == "still" else 1e-12)
    if kind == "any":
        # The theory without rotation is not the flow of this net.
        start = dict(zip(NAMES, (*true[:, 0], *constants), strict=True))
        assert abs(final_distance(**start) / end - 1) > 0.01
    if kind in ("parallel", "stuck", "still"):
        plain = flow.states(times, Start(*true[:, 0]), constants)
        np.testing.assert_allclose(plain, found, rtol=1e-9, atol=1e-12)


def test_the_end_is_the_final_distance(world):
    _, numbers, _, _ = world
    end = final_distance(**numbers)
    late = trajectory(np.array([1e4, 1e7, 1e12]), **numbers)
    slow = numbers["target_gap"] == 0  # 1/t at A = 0
    np.testing.assert_allclose(late.distance[~slow, 2], end[~slow], rtol=1e-9)
    np.testing.assert_allclose(late.distance[slow, 2], end[slow], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(late.output[:, 2], numbers["target_gap"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(late.alignment[:, 2], 0, atol=1e-9)
    assert all(np.all(np.isfinite(curve)) for curve in late)


def test_extreme_starts_keep_their_digits(double):
    """The final distance for A ≪ 0, and the output for A ≫ 0, are small differences of large numbers."""
    task = (1.0, 1.0, 1.0, 1.0)
    far = dict(zip(NAMES, (1e-3, 1e3, 1e3 + np.sqrt(1e3) * 0.6, *task), strict=True))
    constant = 1e-3 - 1e6
    np.testing.assert_allclose(final_distance(**far), 1 / -constant, rtol=1e-10)
    np.testing.assert_allclose(trajectory(1e9, **far).distance, final_distance(**far), rtol=1e-10)
    lazy = dict(zip(NAMES, (1e8, 0.0, 0.0, *task), strict=True))
    np.testing.assert_allclose(trajectory(1.0, **lazy).output, 1.0, rtol=1e-12)
    np.testing.assert_allclose(ends.settled(-3.0, 2.0), 2 * np.exp(np.arcsinh(-3 / 4)), rtol=1e-14)
    assert ends.settled(0.0, 0.0) == 0
    assert ends.lazy_limit(-2.0) == 0


def test_between_passing_through_zero_and_turning_before_it_a_start_ends_at_the_saddle():
    balanced = dict(zip(NAMES, (1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0), strict=True))
    np.testing.assert_allclose(trajectory([50.0, 1e9], **balanced).distance, 0, atol=1e-20)
    assert final_distance(**balanced) == 0
    # With a part off the target that grows for a while: (s + g) r√β = k√Y |v∥|√α, in numbers without rounding.
    off = dict(zip(NAMES, (1.0, 2.5, 3.0, 1.0, 1.0, 1.0, 1.0), strict=True))
    late = trajectory([60.0, 200.0, 1e9], **off)
    np.testing.assert_allclose(late, 0, atol=1e-12)
    assert final_distance(**off) == 0
    for shift in (1e-6, -1e-6):
        near = {**balanced, "distance0": 1 + shift}
        assert trajectory(200.0, **near).distance == pytest.approx(final_distance(**near), rel=1e-9)
        assert final_distance(**near) == pytest.approx(1.0, abs=1e-5)


def test_the_slope_of_the_closed_form_is_the_field(world, double):
    _, numbers, _, times = world
    start, constants = Start(*(numbers[name] for name in NAMES[:3])), Pair(*(numbers[name] for name in NAMES[3:]))
    vectors = flow.vectors_of(start, constants.target_gap)
    moments = times[:, [0, 2, 5]]

    @jax.jit
    def both(shift):
        def moved(t):
            return flow.vectors(moments + t, vectors, constants)

        return *jax.jvp(moved, (shift,), (1.0,)), flow.states(moments, start, constants)

    state, slope, curves = both(0.0)
    wide = Pair(*(number[:, None] for number in constants))
    for mine, wanted in zip(slope, flow.field(state, wide), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-8, atol=1e-9 * np.abs(wanted).max())
    np.testing.assert_allclose(flow.field(state, wide), regular(*map(np.asarray, state), *wide), rtol=1e-9)
    for mine, wanted in zip(flow.read(state, wide.target_gap), curves, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-9, atol=1e-12)


def test_the_field_is_the_printed_system_where_that_is_regular(double):
    rng = np.random.default_rng(1)
    r, along, off, X, Y, tau_h, tau_y = np.exp(rng.normal(size=(7, 20)))
    state = Vectors(r, along, off)
    H, P, w = flow.read(state, Y)
    slope = jax.jvp(lambda s: flow.read(s, Y), (state,), (flow.field(state, Pair(X, Y, tau_h, tau_y)),))[1]
    printed = (
        -X / tau_h * w,
        -w * (H / tau_y + X * P / (tau_h * H)),
        -(3 * w - P + Y) * H / (2 * tau_y) - X * (P + w) * w / (2 * tau_h * H),
    )
    np.testing.assert_allclose(slope, printed, rtol=1e-10)


def test_derivatives_in_the_rates_are_those_of_differences(world, double):
    _, numbers, _, times = world
    numbers = {name: value[:16] for name, value in numbers.items()}
    # The closed form has branches at balance, among them, and on the saddle, whose derivative is only finite.
    numbers = {k: np.append(v, e) for (k, v), e in zip(numbers.items(), (1.0, 1, 2, 1, 1, 1, 1), strict=True)}
    times = np.concatenate([times[:16], [FEW]])

    @jax.jit
    def end(logs):
        tau_h, tau_y = jnp.exp(logs)
        H, P, w, X, Y = [*numbers.values()][:5]
        return flow.states(times, Start(H, P, w), Pair(X, Y, tau_h, tau_y))

    @jax.jit
    def forward_and_back(logs, ways):
        ahead = jax.vmap(lambda way: jax.jvp(end, (logs,), (way,))[1])(ways)
        return ahead, jax.grad(lambda logs: sum(map(jnp.sum, end(logs))))(logs)

    logs = np.log([numbers["tau_h"], numbers["tau_y"]])
    ways = np.eye(2)[:, :, None] * np.ones(17)
    slopes, backward = forward_and_back(logs, ways)
    for axis, way in enumerate(ways):
        ahead, behind = end(logs + 1e-5 * way), end(logs - 1e-5 * way)
        for mine, more, less in zip(slopes, ahead, behind, strict=True):
            assert np.all(np.isfinite(mine))
            gap = np.abs(mine[axis] - (more - less) / 2e-5)[:16].max(axis=1)
            size = np.abs(mine[axis])[:16].max(axis=1) + np.abs(more)[:16].max(axis=1)
            assert np.max(gap / size) < 1e-7
    np.testing.assert_allclose(backward[:, :16], np.sum(slopes, axis=(0, 3))[:, :16], rtol=1e-7, atol=1e-9)
    assert np.all(np.isfinite(backward))


def test_one_pair_in_plain_numbers_is_the_same_or_is_left_to_the_whole_form(double):
    rng = np.random.default_rng(3)
    times = np.concatenate([[0.0], np.logspace(-6, 4, 60), [1e25]])
    X, Y, tau_h, tau_y = np.exp(rng.uniform(-3, 3, (4, 600)))
    H, P = np.exp(rng.uniform(-12, 25, (2, 600)))
    P[::2] *= H[::2] ** 2 / P[::2] / np.exp(rng.uniform(-4, 4, 300))  # many that are balanced, at every size
    angle = np.where(np.arange(600) % 3, rng.uniform(-1, 1, 600), rng.choice([-1.0, 1.0], 600))
    numbers = np.stack([H, P, P - angle * np.sqrt(P * Y), X, Y, tau_h, tau_y], axis=1)
    # Large starts that end small, and tiny outputs; exact balance, the saddle, and products that are no numbers.
    numbers = np.concatenate([numbers, [(2.0**27, 2.0**56, 2.0**56 - 2.0**28, 1, 1, 1, 1), (1, 1e-24, 0, 1, 1, 1, 1)]])
    special = [
        (1.0, 1, 0.5, 1, 1, 1, 1),
        (1.0, 1, 2, 1, 1, 1, 1),
        (1e-40, 1, 1, 1, 1, 1, 1),
        (1.0, 1, 0, 1, 1, 1, 1e80),
    ]
    numbers = np.concatenate([numbers, special])
    start, pair = Start(*numbers.T[:3]), Pair(*numbers.T[3:])
    whole = np.stack(flow.states(times, start, pair), axis=1)
    found = [single_pair.curves(times, Start(*row[:3]), Pair(*row[3:])) for row in numbers.tolist()]
    assert 0.2 < np.mean([one is not None for one in found]) < 0.8
    assert [one is None for one in found[-6:]] == [False, False, True, True, True, True]
    finals = ends.final_distance(start, pair)
    for one, exact, row, end in zip(found, whole, numbers, finals, strict=True):
        if one is not None:
            # The whole form has lost digits of an output that is small beside the layer.
            beside = row[0] / np.sqrt(row[1] * row[3] * row[6] / row[5])
            H, P, w = np.abs(exact).max(axis=1)
            gap = np.abs(np.stack(one) - exact).max(axis=1) / (H, P, max(P, w))
            assert gap.max() < 1e-12 + 1e-14 * beside
            np.testing.assert_allclose([one.distance[0], one.output[0]], row[:2], rtol=1e-13)
            np.testing.assert_allclose([one.distance[-1], one.output[-1]], [end, row[4]], rtol=1e-12)
    # Those that it leaves are answered all the same, and all in one way.
    for which in (next(k for k, one in enumerate(found) if (one is None) is left) for left in (True, False)):
        given = dict(zip(NAMES, map(float, numbers[which]), strict=True))
        with np.errstate(all="raise"):
            answer = trajectory(times, **given)
        np.testing.assert_allclose(answer, whole[which], rtol=1e-9, atol=1e-14)
        assert not answer.output.flags.writeable


def test_plain_times_and_numbers_of_every_kind_have_one_answer():
    start = dict(zip(NAMES, (1, 2, 1, 1, 1, 2, 1), strict=True))
    exact = trajectory(np.arange(4.0), **{name: np.array([value]) for name, value in start.items()})
    exact = [curve[0] for curve in exact]
    for ts in (range(4), [0, 1, 2, 3], np.arange(4), np.arange(4, dtype="f"), jnp.arange(4)):
        for kind in (int, float, np.float64, np.float32, np.int64):
            answer = trajectory(ts, **{name: kind(value) for name, value in start.items()})
            np.testing.assert_allclose(answer, exact, rtol=1e-12)
    assert [len(curve) for curve in trajectory([], **start)] == [0, 0, 0]
    traced = jax.jit(lambda one: trajectory(np.arange(4.0), **start).distance * one)(1.0)
    np.testing.assert_allclose(traced, exact[0], rtol=1e-6)
    with pytest.raises(fs.BadInput, match="tau_h"):
        trajectory([1.0], **{**start, "tau_h": 10**400})


def test_the_mean_of_a_decay_keeps_its_digits_and_those_of_its_slope(double):
    x = np.concatenate(
        [np.logspace(-3, 1, 401), two_layer_mode.NEAR + np.array([-1e-9, 1e-9]), -np.logspace(-3, 0, 50)]
    )
    series = lambda k: np.sum([(-x) ** n / math.prod((n + 1, *range(1, n + 1))) * k(n) for n in range(80)], axis=0)  # noqa: E731
    value, slope = jax.vmap(jax.value_and_grad(two_layer_mode.mean_decay))(x)
    np.testing.assert_allclose(value, -np.expm1(-x) / x, rtol=1e-15)
    np.testing.assert_allclose(slope, series(lambda n: n) / x, rtol=1e-11)  # of terms up to 2000 at x = 10
    value, slope = jax.vmap(jax.value_and_grad(two_layer_mode.mean_decay))(
        np.array([0.0, 1e-300, 1e-160, -1e-150, 1e-30])
    )
    np.testing.assert_allclose([value, slope], [[1.0] * 5, [-0.5] * 5], rtol=1e-15)


def test_it_works_inside_transformations_and_in_single_precision():
    start = dict(zip(NAMES, (0.1, 0.02, -0.05, 1.0, 0.5, 2.0, 1.0), strict=True))
    exact = trajectory(10 * FEW, **start)
    single = jax.jit(lambda tau: trajectory(10 * FEW, **{**start, "tau_h": tau}))(2.0)
    assert single.distance.dtype == jnp.float32
    np.testing.assert_allclose(single, exact, rtol=1e-4, atol=1e-5)
    mapped = jax.vmap(lambda tau: final_distance(**{**start, "tau_h": tau}))(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(mapped, final_distance(**{**start, "tau_h": np.array([1.0, 2.0])}), rtol=1e-5)


def antisymmetric_pair(hidden, d_out, lr=None, seed=0):
    """A two-layer linear network on x and −x, and its constants."""
    rng = np.random.default_rng(seed)
    half, target = rng.normal(size=3), rng.normal(size=d_out)
    weights = [0.3 * rng.normal(size=(hidden, 3)), 0.3 * rng.normal(size=(d_out, hidden))]
    task = fs.tasks.from_arrays(np.stack([-half, half]), np.stack([-target, target]))
    rule = fs.rules.GradientFlow() if lr is None else fs.rules.GradientDescent(lr)
    times = 0.04 * np.arange(0, 101, 10)
    setup = fs.Setup(task, fs.nets.DeepLinear(hidden), fs.inits.Given(weights), rule, times=times)
    return setup, 2 * half, 2 * target, weights


def recorded(trajectory, target):
    similarity, outputs = (np.asarray(trajectory[name])[0] for name in ("similarity", "outputs"))
    H = similarity[:, 0, 0] + similarity[:, 1, 1] - 2 * similarity[:, 0, 1]
    dy = outputs[:, 1] - outputs[:, 0]
    P = np.sum(dy**2, axis=1)
    return np.stack([H, P, P - dy @ target])


def test_a_network_with_one_hidden_unit_obeys_it_without_a_free_parameter():
    """At order 1 in the learning rate with τ = 2/lr steps, and not at all with τ = 1/lr."""
    errors = []
    for lr in (0.04, 0.02, 0.01):
        setup, dx, target, _ = antisymmetric_pair(1, 2, lr)
        true = recorded(fs.simulate(setup, observe=["similarity", "outputs"]), target)
        numbers = dict(zip(NAMES[:5], (*true[:, 0], dx @ dx, target @ target), strict=True))
        steps = setup.times / lr
        found = trajectory(steps, **numbers, tau_h=2 / lr, tau_y=2 / lr)
        errors.append(np.abs(found - true).max() / np.abs(true).max())
        wrong = trajectory(steps, **numbers, tau_h=1 / lr, tau_y=1 / lr)
        assert np.abs(wrong - true).max() / np.abs(true).max() > 0.1
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 1, atol=0.1)
    assert errors[-1] < 1e-3


def test_it_is_the_theory_of_unbalanced_modes():
    setup, dx, target, _ = antisymmetric_pair(1, 1)
    # Along the mode, as that theory needs.
    weights = [0.3 * dx[None] / np.linalg.norm(dx), np.array([[-0.7]])]
    setup = setup.replace(init=fs.inits.Given(weights))
    modes = fs.solve(setup, "UnbalancedModes")["map"]
    first = weights[0] @ dx
    dy = weights[1][0] * first
    start = (first @ first, dy @ dy, dy @ dy - dy @ target, dx @ dx, target @ target, 2.0, 2.0)
    found = trajectory(setup.times, **dict(zip(NAMES, start, strict=True)))
    outputs = np.asarray(modes).reshape(-1, 1, 3)[:, 0] @ dx
    np.testing.assert_allclose(found.output, outputs**2, rtol=1e-10, atol=1e-13)


def test_what_is_conserved(world, predicted, double):
    _, numbers, _, _ = world
    wide = {name: number[:, None] for name, number in numbers.items()}
    tasks = [wide[name] for name in ("input_gap", "tau_h", "tau_y")]
    alive = predicted.distance > 1e-3
    now = ends.invariant(predicted.distance, predicted.output, *tasks)
    then = ends.invariant(wide["distance0"], wide["output0"], *tasks)
    size = predicted.distance + np.abs(then)
    assert np.max((np.abs(now - then) / size)[alive]) < 1e-9


def test_the_rates_of_approach_are_eigenvalues(double):
    H, P, X, Y, tau_h, tau_y = 0.3, 2.0, 1.5, 0.8, 0.7, 1.9
    pair = Pair(X, Y, tau_h, tau_y)
    off_rate, along_rate = ends.fixed_point_rates(H, P, pair)
    end = ends.settled(ends.invariant(H, P, X, tau_h, tau_y), ends.rich_distance(pair))

    def printed(state):
        H, P, w = state
        return np.array(
            [
                -X / tau_h * w,
                -w * (H / tau_y + X * P / (tau_h * H)),
                -(3 * w - P + Y) * H / (2 * tau_y) - X * (P + w) * w / (2 * tau_h * H),
            ]
        )

    def eigenvalues(speed, point):
        steps = 1e-6 * np.eye(3)
        return np.sort(
            np.linalg.eigvals(np.stack([(speed(point + s) - speed(point - s)) / 2e-6 for s in steps], axis=1)).real
        )

    rates = [-off_rate, -along_rate]
    np.testing.assert_allclose(eigenvalues(printed, np.array([end, Y, 0.0])), np.sort([*rates, 0]), atol=1e-7)
    vectors = np.array([np.sqrt(end), np.sqrt(Y / end), 0.0])
    found = eigenvalues(lambda s: regular(*s, X, Y, tau_h, tau_y), vectors)
    np.testing.assert_allclose(found, np.sort([rates[0] / 2, rates[1], 0]), atol=1e-7)


@pytest.mark.parametrize("tau_y", [1.0, 3.0])
def test_the_law_of_the_final_distance_is_that_of_draws(tau_y, double):
    X, Y, mean = 1.3, 0.7, 0.9
    rng = np.random.default_rng(0)
    starts, decoders = rng.normal(mean, mean, (2, 400_000))
    A, B = X * starts - tau_y * X * decoders, np.sqrt(tau_y * X * Y)
    finals = A / 2 + np.sqrt(A**2 / 4 + B**2)
    pair = Pair(X, Y, 1.0, tau_y)
    law = ends.law_of_final_distance(mean, pair)
    shares = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    np.testing.assert_allclose(law.cdf(np.quantile(finals, shares)), shares, atol=0.003)
    np.testing.assert_allclose(law.cdf(law.quantile(shares)), shares, rtol=1e-10)
    np.testing.assert_allclose(law.quantile(0.5), B * np.exp(np.arcsinh(np.median(A) / (2 * B))), rtol=0.01)
    narrow = ends.law_of_final_distance(mean, pair, spread=1e-6)
    np.testing.assert_allclose(narrow.quantile(0.9), narrow.quantile(0.1), rtol=1e-4)


def test_equal_targets_and_balance_have_the_known_curves():
    """[vanrossem2024, eqs. 37 to 40] with 1/τ_y in the exponent, and the sigmoid."""
    H0, P0, X, tau_h, tau_y = 0.4, 0.9, 1.2, 0.8, 1.7
    A = H0 - tau_y / tau_h * X * P0 / H0
    times = 5 * FEW
    found = trajectory(times, **dict(zip(NAMES, (H0, P0, P0, X, 0.0, tau_h, tau_y), strict=True)))
    np.testing.assert_allclose(found.distance, A / (1 + (A / H0 - 1) * np.exp(-A * times / tau_y)), rtol=1e-11)
    np.testing.assert_allclose(found.output, found.alignment, rtol=1e-12)
    Y, p0 = 0.6, 1e-4
    D, H0 = np.sqrt(Y), np.sqrt(tau_y / tau_h * X) * p0
    rate = np.sqrt(X * Y / tau_h / tau_y)
    times = 30 * FEW
    found = trajectory(times, **dict(zip(NAMES, (H0, p0**2, p0**2 - p0 * D, X, Y, tau_h, tau_y), strict=True)))
    p = D / (1 + (D / p0 - 1) * np.exp(-rate * times))
    np.testing.assert_allclose(found.output, p**2, rtol=1e-9)
    np.testing.assert_allclose(found.distance, np.sqrt(tau_y / tau_h * X) * p, rtol=1e-9)


def test_the_loss_is_that_of_the_two_outputs(double):
    rng = np.random.default_rng(0)
    outputs, targets = rng.normal(size=(2, 2, 5))
    dy, wanted = outputs[1] - outputs[0], targets[1] - targets[0]
    P = dy @ dy
    curves = Curves(*(np.array([n]) for n in (1.0, P, P - dy @ wanted)))
    mean = np.sum((outputs.mean(axis=0) - targets.mean(axis=0)) ** 2)
    found = flow.loss(np.zeros(1), curves, wanted @ wanted, mean, 3.0)
    np.testing.assert_allclose(found, [np.mean(np.sum((outputs - targets) ** 2, axis=1)) / 2], rtol=1e-12)
    later = flow.loss(np.full(1, 3.0), curves, wanted @ wanted, mean, 3.0)
    np.testing.assert_allclose(found - later, mean / 2 * (1 - np.exp(-2)), rtol=1e-12)


def test_large_decoders_rest_at_a_plateau(double):
    """They turn their scale at once and their direction late."""
    G, theta = 1e3, 1.0
    P0 = 0.02 * G
    start, pair = Start(0.01, P0, P0 - np.sqrt(P0) * np.cos(theta)), Pair(1.0, 1.0, 1.0, 1.0)
    level = ends.plateau(*start[1:3], 1.0)
    np.testing.assert_allclose(level, np.sin(theta) ** 2 / 8, rtol=1e-12)
    constant = start[0] - P0 / start[0]
    assert ends.regime(start.distance, P0, pair) == pytest.approx(-constant)
    times = np.array([0.01, 0.03]) * -constant
    np.testing.assert_allclose(flow.loss(times, flow.states(times, start, pair), 1.0), level, rtol=0.1)
    assert ends.plateau(0.0, 0.0, 0.8) == pytest.approx(0.1)


def test_off_the_middle_of_a_chain_the_final_distance_follows_the_depth_law(double):
    X, Y, depth = 2.0, 0.3, 5

    def speed(_, layers):
        # Scalars: d/dt of each is the product of the others times the error of the map.
        others = np.array([np.prod(np.delete(layers, i)) for i in range(depth)])
        return others * (np.sqrt(Y / X) - np.prod(layers))

    layers = integrated(speed, np.full(depth, 0.4), [0, 200.0])[-1]
    for layer in range(depth - 1):
        true = X * np.prod(layers[: layer + 1]) ** 2
        np.testing.assert_allclose(ends.depth_law(X, Y, layer, depth), true, rtol=1e-8)
    np.testing.assert_allclose(ends.depth_law(X, Y, 1, 4), ends.rich_distance(Pair(X, Y, 1.0, 1.0)), rtol=1e-12)


class TestFit:
    """Rates from curves."""

    times = np.arange(0.0, 4000.0, 20.0)
    truth = dict(tau_h=1 / 6e-4, tau_y=1 / 0.04)
    pair = dict(distance0=1.2e-3, output0=1e-4, alignment0=1e-4 - 0.009 * math.sqrt(0.5), input_gap=1.0, target_gap=0.5)

    def curves(self, **changed):
        return trajectory(self.times, **{**self.pair, **self.truth, **changed})

    def noisy(self, seed, size=0.01):
        """All but the start, which the fit takes as known."""
        rng = np.random.default_rng(seed)
        later = np.arange(len(self.times)) > 0
        H, P, w = (c + size * later * rng.normal(size=len(c)) for c in self.curves())
        return np.maximum(H, 0), np.maximum(P, 0), w

    def test_noise_of_one_percent_leaves_one_percent(self):
        swing = np.ptp(self.curves(), axis=1)
        for seed in range(3):
            noise = 0.01 * swing[:, None] * np.random.default_rng(seed).normal(size=(3, len(self.times)))
            noise[:, 0] = 0
            H, P, w = self.curves() + noise
            fit = fit_two_point(self.times, np.abs(H), np.abs(P), w, 1.0, 0.5)
            np.testing.assert_allclose(fit.rates, [6e-4, 0.04], rtol=0.01)
            assert fit.applies

    def test_without_noise_the_rates_come_back(self):
        fit = fit_two_point(self.times, *self.curves(), 1.0, 0.5)
        np.testing.assert_allclose(fit.rates, [6e-4, 0.04], rtol=1e-10)
        np.testing.assert_allclose([fit.tau_h, fit.tau_y, fit.kappa], [1 / 6e-4, 25.0, 0.015], rtol=1e-10)
        np.testing.assert_allclose(fit.predicted, self.curves(), rtol=1e-9, atol=1e-12)
        assert fit.converged
        assert bool(fit.applies) is True
        assert fit.applies.reasons == fit.applies.advice == ()
        assert min(fit.r2) > 1 - 1e-12
        assert fit.sse < 1e-20
        assert 1 < fit.condition < 100
        for words in ("fitted", "η_h = 0.0006", "η_y = 0.04", "applies  yes"):
            assert words in repr(fit)

    @pytest.mark.parametrize("unit", [1e-4, 30.0])
    def test_the_unit_of_time_does_not_matter(self, unit):
        fit = fit_two_point(unit * self.times, *self.curves(), 1.0, 0.5)
        np.testing.assert_allclose(unit * np.array(fit.rates), [6e-4, 0.04], rtol=1e-10)

    @pytest.mark.parametrize("seed", range(6))
    def test_rates_far_from_each_other_and_vector_outputs_come_back(self, seed):
        rng = np.random.default_rng(seed)
        X, Y = np.exp(rng.uniform(-2, 2, 2))
        ratio = np.exp(rng.uniform(-5, 5))
        rate = 15 / 4000 / np.sqrt(X * Y)
        tau_h, tau_y = 1 / (rate * np.sqrt(ratio)), np.sqrt(ratio) / rate
        P0 = 1e-3 * Y
        start = (0.02 * np.sqrt(ratio * X * Y), P0, P0 - np.sqrt(P0 * Y) * rng.uniform(-0.5, 1), X, Y, tau_h, tau_y)
        curves = trajectory(self.times, **dict(zip(NAMES, start, strict=True)))
        fit = fit_two_point(self.times, *curves, X, Y)
        np.testing.assert_allclose([fit.tau_h, fit.tau_y], [tau_h, tau_y], rtol=1e-8)

    def test_equal_targets_can_be_fitted(self):
        start = dict(distance0=0.09, output0=0.5, alignment0=0.5, target_gap=0.0, tau_h=1e3, tau_y=15.0)
        curves = self.curves(**start)
        fit = fit_two_point(self.times, *curves, 1.0, 0.0)
        np.testing.assert_allclose([fit.tau_h, fit.tau_y], [1e3, 15.0], rtol=1e-8)
        assert fit.applies

    def test_with_noise_the_covariance_is_the_spread(self):
        fits = [fit_two_point(self.times, *self.noisy(seed), 1.0, 0.5) for seed in range(60)]
        logs = np.log([fit.rates for fit in fits]) - np.log([6e-4, 0.04])
        assert np.abs(logs).max() < 0.05
        expected = np.mean([fit.log_covariance for fit in fits], axis=0)
        # The spread of 60 draws is known to 9 %.
        np.testing.assert_allclose(np.std(logs, axis=0), np.sqrt(np.diag(expected)), rtol=0.3)
        assert np.corrcoef(logs.T)[0, 1] == pytest.approx(
            expected[0, 1] / np.sqrt(expected[0, 0] * expected[1, 1]), abs=0.3
        )
        natural = np.mean([fit.covariance for fit in fits], axis=0)
        np.testing.assert_allclose(np.std([fit.rates for fit in fits], axis=0), np.sqrt(np.diag(natural)), rtol=0.3)
        assert np.all(np.abs(np.array(fits[0].r2) - 1) < 0.2)

    def test_a_start_that_does_not_fit_can_be_freed_or_left_out(self):
        """While the mean is learned, H does not follow w: here w jumps at record 10."""
        late = self.curves(output0=4e-4, alignment0=4e-4 - 0.018 * math.sqrt(0.5))
        early = self.curves()
        bent = [np.where(np.arange(200) < 1, one, two) for one, two in zip(early, late, strict=True)]
        plain = fit_two_point(self.times, *bent, 1.0, 0.5)
        freed = fit_two_point(self.times, *bent, 1.0, 0.5, free_gap=True)
        later = fit_two_point(self.times, *bent, 1.0, 0.5, start=1)
        assert freed.free_gap
        assert freed.sse < 0.05 * plain.sse
        np.testing.assert_allclose(freed.along0, 0.018, rtol=0.02)
        np.testing.assert_allclose(freed.rates, [6e-4, 0.04], rtol=0.01)
        units = np.array([*freed.rates, 1.0])  # p0/√Y is no logarithm
        np.testing.assert_allclose(freed.covariance, freed.log_covariance * np.outer(units, units), rtol=1e-12)
        np.testing.assert_allclose(later.rates, [6e-4, 0.04], rtol=1e-8)
        assert later.start == 1
        assert len(later.times) == len(later.predicted.output) == 199

    def test_a_search_that_runs_away_has_numbers_and_leaves_others_alone(self):
        times = np.arange(0, 420.0, 20.0)
        H, P, w = 0.02 + 1e-3 * times / 400, 1e-4 * (1 + times / 400), 0.001 + 0.002 * times / 400
        good = self.curves()
        record = dict(output_distance=P, output_alignment=w, input_gap=1.0, target_gap=0.5)
        fit = fs.fit("TwoPoint", fs.probe.curves(times, distance=H, **record))
        assert not fit.applies
        assert not fit.converged
        assert min(fit.rates) > 0
        assert np.isfinite([fit.kappa, fit.tau_h, fit.tau_y]).all()
        assert repr(fit)
        record = dict(output_distance=good.output, output_alignment=good.alignment, input_gap=1.0, target_gap=0.5)
        layers = {"stuck": np.linspace(0.02, 0.021, 200), "good": good.distance}
        found = fs.probe.scan(fs.probe.curves(self.times, distance=layers, **record))
        assert found.applies.values.ravel().tolist() == [False, True]

    def test_noise_of_the_first_record_is_no_error(self):
        H, P, w = self.curves(output0=1e-4, alignment0=1e-4 - np.sqrt(1e-4 * 0.5))  # all of it along the target
        rng = np.random.default_rng(0)
        refused = 0
        for _ in range(6):
            noisy = [curve * (1 + 0.01 * rng.normal(size=200)) for curve in (H, P, w)]
            refused += abs(noisy[1][0] - noisy[2][0]) > np.sqrt(noisy[1][0] * 0.5)
            record = dict(zip(("distance", "output_distance", "output_alignment"), noisy, strict=True))
            fit = fs.fit("TwoPoint", fs.probe.curves(self.times, **record, input_gap=1.0, target_gap=0.5))
            assert min(fit.r2) > 0.99
        assert refused

    def test_a_run_that_is_not_over_is_named(self):
        fit = fit_two_point(self.times[:40], *(curve[:40] for curve in self.curves()), 1.0, 0.5)
        assert not fit.applies
        assert any("learning is not over" in reason for reason in fit.applies.reasons)
        assert "applies  no: learning is not over" in repr(fit)
        assert "\n  try      train for longer" in repr(fit)

    def test_curves_that_do_not_change_are_named(self):
        fit = fit_two_point(self.times, *(np.full(200, curve[0]) for curve in self.curves()), 1.0, 0.5)
        assert not fit.applies
        assert not fit.converged
        assert "do not change" in fit.applies.reasons[0]
        assert "a run that learns" in fit.applies.advice[0]

    def test_a_large_start_a_long_plateau_and_a_poor_fit_are_named(self):
        large = fit_two_point(self.times, *self.curves(distance0=0.3), 1.0, 0.5)
        end = final_distance(**{**self.pair, **self.truth, "distance0": 0.3})
        assert [reason[:28] for reason in large.applies.reasons] == [f"H starts at {0.3 / end:.2g} of its end,"]
        step = self.times > 3000
        sudden = [np.where(step, end, start) for start, end in ((1e-3, 0.09), (1e-4, 0.5), (-0.006, 0.0))]
        assert [advice[:24] for advice in large.applies.advice] == ["smaller starting weights"]
        verdict = fit_two_point(self.times, *sudden, 1.0, 0.5).applies
        assert "the plateau is 151 times as long" in str(verdict)
        assert any("larger starting weights" in advice for advice in verdict.advice)
        H, P, w = self.curves()
        verdict = fit_two_point(self.times, H, P, w * np.cos(self.times), 1.0, 0.5).applies
        assert "R² of w is" in str(verdict)
        assert any("another layer: probe.scan" in advice for advice in verdict.advice)

    @pytest.mark.parametrize("disturbed", ["H", "P"])
    def test_every_curve_that_changes_is_judged(self, disturbed):
        curves = dict(zip(("H", "P", "w"), self.curves(), strict=True))
        curves[disturbed] = curves[disturbed] * (1 + 0.8 * np.sin(40 * self.times))
        fit = fit_two_point(self.times, **curves, X=1.0, Y=0.5)
        assert any(re.search(rf"R² of .*{disturbed} is", reason) for reason in fit.applies.reasons), fit

    def test_the_noise_of_a_curve_that_hardly_changes_is_not_judged(self):
        """A merging pair in a layer that learns slowly: R² of H is that of its noise."""
        start = dict(distance0=0.09, output0=0.5, alignment0=0.5, target_gap=0.0, tau_h=1e5, tau_y=15.0)
        H, P, w = self.curves(**start)
        noise = 0.005 * 0.09 * np.random.default_rng(0).normal(size=200) * (self.times > 0)
        fit = fit_two_point(self.times, H + noise, P, w, 1.0, 0.0)
        assert fit.r2.distance < 0.9
        assert fit.applies

    @pytest.mark.parametrize("factor", [1e-6, 1e-4, 0.04, 5.0, 1e4])
    @pytest.mark.parametrize("distance0", [1.2e-3, 0.02, 0.05, 0.3])
    def test_no_unit_changes_the_verdict(self, factor, distance0):
        """X → cX with τ_h → cτ_h is the same run; so is a layer of another scale, H → c²H."""
        curves = self.curves(distance0=distance0)
        plain = fit_two_point(self.times, *curves, 1.0, 0.5)
        assert bool(plain.applies) is (distance0 < 0.03)
        inputs = fit_two_point(self.times, *curves, factor, 0.5)
        layer = fit_two_point(self.times, factor * curves.distance, *curves[1:], 1.0, 0.5)
        assert inputs.applies.reasons == layer.applies.reasons == plain.applies.reasons
        np.testing.assert_allclose(np.divide(inputs.rates, plain.rates), [1 / factor, 1.0], rtol=1e-6)
        np.testing.assert_allclose(np.divide(layer.rates, plain.rates), [factor, 1 / factor], rtol=1e-6)
        noise = 0.01 * np.ptp(curves, axis=1)[:, None] * np.random.default_rng(0).normal(size=(3, 200))
        H, P, w = curves + noise * (self.times > 0)
        for scale, X in ((1.0, 1.0), (1.0, factor), (factor, 1.0)):
            noisy = fit_two_point(self.times, scale * np.abs(H), np.abs(P), w, X, 0.5)
            assert bool(noisy.applies) is (distance0 < 0.03), noisy

    @pytest.mark.parametrize(("half", "target"), [(14.0, 0.7), (10.0, 0.1)])
    def test_a_wide_network_that_starts_near_its_end_is_named(self, half, target):
        """H0/X is small here and both fits are nearly perfect, with a rate of the decoder that is not ½."""
        task = fs.tasks.from_arrays([[-half], [half]], [[-target], [target]])
        setup = fs.Setup(task, fs.nets.DeepLinear(hidden=100), fs.inits.Xavier(0.2), until=2.0, points=200)
        names = ["distance", "output_distance", "output_alignment"]
        run = fs.simulate(setup, 1, names, progress=False)
        fit = fs.fit("TwoPoint", run)
        assert not fit.applies
        assert run["distance"].ravel()[0] < 0.1 * (2 * half) ** 2
        assert min(fit.r2) > 0.999
        assert fit.rates.eta_y > 0.7
        H, P, w = (np.ravel(run[name]) for name in names)
        for scale, X in ((1.0, 1.0), (1.0, 1e-3), (1.0, 1e3), (1e-2, 1.0), (1e2, 1.0)):
            fit = fit_two_point(run.times, scale * H, P, w, X * (2 * half) ** 2, (2 * target) ** 2)
            assert [reason[:12] for reason in fit.applies.reasons] == ["H starts at "], fit

    def test_rates_that_leave_no_trace_are_named(self):
        """A layer that does not move says nothing of its own rate."""
        H0, P0 = 1.0, 0.01
        curves = self.curves(distance0=H0, output0=P0, alignment0=P0 - 0.05, tau_h=1e13, tau_y=100.0)
        flat = (np.full(200, H0), *curves[1:])
        fit = fit_two_point(self.times, *flat, 1.0, 0.5)
        assert any("not identified" in reason for reason in fit.applies.reasons), fit
        np.testing.assert_allclose(fit.tau_y, 100.0, rtol=1e-5)

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            (dict(H=np.ones(5)), "records of different lengths: times 200, H 5"),
            (dict(start=198), "2 records from start = 198 on"),
            (dict(start=-1), "start = -1"),
            (dict(start=1.5), "start = 1.5"),
            (dict(times=np.zeros(200)), "times that do not increase"),
            (dict(P=np.full(200, -1.0)), "P down to -1"),
            (dict(H=np.zeros(200)), r"H\[0\] = 0"),
            (dict(w=np.full(200, 3.0)), r"w\[0\] = 3 with P\[0\] = 0.0001 and Y = 0.5"),
            (dict(X=0.0), "X = 0"),
            (dict(Y=-1.0), "Y = -1"),
            (dict(X=np.ones(2)), "X of shape"),
            (dict(H=np.full(200, np.nan)), "H has 200 value"),
        ],
    )
    def test_records_that_cannot_be_used(self, changed, words):
        record = dict(zip(("H", "P", "w"), self.curves(), strict=True), times=self.times, X=1.0, Y=0.5)
        with pytest.raises(fs.BadInput, match=words):
            fit_two_point(**{**record, **changed})

    def test_equal_targets_have_no_direction_to_free(self):
        curves = self.curves(alignment0=1e-4, target_gap=0.0)
        with pytest.raises(fs.BadInput, match="free_gap = True with Y = 0"):
            fit_two_point(self.times, *curves, 1.0, 0.0, free_gap=True)


class TestBadInput:
    """What a user may get wrong, and the words."""

    good = dict(zip(NAMES, (0.1, 0.02, -0.05, 1.0, 0.5, 2.0, 1.0), strict=True))

    @pytest.mark.parametrize(
        ("changed", "seen", "do"),
        [
            (dict(alignment0=1.0), r"alignment0 = 1 with output0 = 0.02 and target_gap = 0.5", "squared distances"),
            (dict(target_gap=0.0), "alignment0 = -0.05 with output0 = 0.02 and target_gap = 0", "any two vectors"),
            (dict(input_gap=0.0), "input_gap = 0", "identical inputs have no two-point theory"),
            (dict(distance0=0.0), "distance0 = 0", "must differ in the layer"),
            (dict(distance0=-1.0), "distance0 = -1", "distance0 > 0"),
            (dict(output0=-0.1), "output0 = -0.1", "output0 >= 0"),
            (dict(target_gap=-0.5), "target_gap = -0.5", "target_gap >= 0"),
            (dict(tau_h=0.0), "tau_h = 0", "tau_h > 0"),
            (dict(tau_y=-1.0), "tau_y = -1", r"2/\(learning rate\)"),
            (dict(tau_h=np.inf), "tau_h has 1 value", "finite"),
            (dict(distance0="x"), "distance0 is str", "real numbers"),
            (dict(tau_h=np.ones(3), tau_y=np.ones(2)), r"tau_h \(3,\), tau_y \(2,\)", "broadcast"),
            (dict(output0=np.array([0.02, 1e-6])), "output0 = 1e-06", "any two vectors"),
        ],
    )
    def test_starts_and_constants(self, changed, seen, do):
        for call in (final_distance, lambda **numbers: trajectory([0.0, 1.0], **numbers)):
            with pytest.raises(fs.BadInput, match=seen) as error:
                call(**{**self.good, **changed})
            assert re.search(do, str(error.value))

    @pytest.mark.parametrize(
        ("ts", "words"),
        [([0.0, np.nan], "ts has 1 value"), ([-1.0], "ts down to -1"), (np.ones((2, 2)), "ts has shape")],
    )
    def test_times(self, ts, words):
        with pytest.raises(fs.BadInput, match=words):
            trajectory(ts, **self.good)

    def test_rounding_of_single_precision_is_no_error(self):
        P = np.float32(0.37)
        for sign in (-1, 1):
            w = np.float32(P + sign * np.sqrt(P * np.float32(0.5)))
            start = {**self.good, "output0": P, "alignment0": w}
            np.testing.assert_allclose(trajectory(0.0, **start).output, P, rtol=1e-5)


def probed(rates=(500.0, 100.0), layers=3):
    """A trajectory as probes make them, whose middle layer follows the theory."""
    ts = np.arange(0, 4000, 20.0)
    start = {"distance0": 1e-3, "output0": 1e-4, "alignment0": -0.0069}
    curves = trajectory(ts, **start, input_gap=1.0, target_gap=0.5, tau_h=rates[0], tau_y=rates[1])
    distance = np.stack([(1 + abs(k - layers // 2)) * curves.distance for k in range(layers)], axis=1)[:, :, None]
    values = [distance, curves.output[:, None], curves.alignment[:, None]]
    axes = [("time", "layer", "pair"), ("time", "pair"), ("time", "pair")]
    observed = ("distance", "output_distance", "output_alignment")
    facts = {"input_gap": [1.0], "target_gap": [0.5]}
    names = {"layer": [f"layer {k}" for k in range(layers)], "pair": ["0-1"]}
    values, axes = (dict(zip(observed, what, strict=True)) for what in (values, axes))
    return fs.Trajectory(ts, values, axes, "probe.arrays", facts, names)


def test_fit_reads_the_middle_layer_of_a_probe():
    found = fs.fit("TwoPoint", probed())
    np.testing.assert_allclose([found.tau_h, found.tau_y], [500, 100], rtol=1e-6)
    assert found.applies
    by_name = fs.fit("TwoPoint", probed(), layer="layer 1", pair="0-1")
    assert by_name.rates == found.rates
    for theory in (fs.theories.TwoPoint, fs.theories.TwoPoint()):
        assert fs.fit(theory, probed()).rates == found.rates
    for pair in ((0, 1), (1, 0), [np.int64(0), 1]):
        assert fs.fit("TwoPoint", probed(), pair=pair).rates == found.rates
    assert (found.layer, found.pair, found.seed) == ("layer 1", "0-1", None)
    assert repr(found).startswith("TwoPointFit, layer layer 1, pair 0-1, fitted to 200 records")
    # Distances twice as large learn at twice the rate: the fit of another layer is another one.
    np.testing.assert_allclose(fs.fit("TwoPoint", probed(), layer=0).rates.eta_h, 2 * found.rates.eta_h, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "seen"),
    [
        (lambda: fs.fit("TwoPont", probed()), "TwoPont"),
        (lambda: fs.fit(fs.theories.UnbalancedModes, probed()), "UnbalancedModes"),
        (lambda: fs.fit(probed(), "TwoPoint"), "unknown theory with something to fit 'Trajectory'"),
        (lambda: fs.fit("TwoPoint", 3), "to int"),
        (lambda: fs.fit("TwoPoint", {"H": np.ones(5)}), "to dict"),
        (lambda: fs.fit("TwoPoint", probed(), pair=(0, 2)), "0-2"),
        (lambda: fs.fit("TwoPoint", probed(), pair=(0, 1, 2)), "pair = (0, 1, 2)"),
        (lambda: fs.fit("TwoPoint", probed(), pair=(0, 1.5)), "1.5"),
        (lambda: fs.fit("TwoPoint", fs.Trajectory([0.0], {"loss": np.ones(1)}, {"loss": ("time",)}, "x")), "to loss"),
        (lambda: fs.fit("TwoPoint", probed(), layer="layer 9"), "layer 9"),
        (lambda: fs.fit("TwoPoint", probed(), layer=5), "layer = 5"),
        (lambda: fs.fit("TwoPoint", probed(), pair="0-2"), "0-2"),
    ],
)
def test_fits_of_other_things_are_refused(call, seen):
    with pytest.raises(fs.BadInput) as refusal:
        call()
    assert seen in refusal.value.seen
    assert refusal.value.do
