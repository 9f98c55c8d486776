"""Laws of the deep linear chain, against integrators, multi-precision and exact identities."""

import functools
import itertools
import math
import time

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from festina._formulas.mode_at_depth import field, strength, time_to

DEPTHS = (1, 2, 3, 4, 5, 10, 50, math.inf)
SINGULAR_VALUES = (0.0, 1e-17, -1e-17, 1e-3, -1e-3, 1.0, -1.0, 5.0, -5.0)
VARIANCES = (0.0, 0.1, 1.0, 10.0)
STARTS = (0.0, 1e-6, -1e-6, 1e-3, -1e-3, 0.3, 3.0)
TIMES = (0.0, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6, 1e9)
GRID = np.array(list(itertools.product(TIMES, SINGULAR_VALUES, VARIANCES, STARTS))).T
BATCH = GRID.shape[1]

every_depth = pytest.mark.parametrize("depth", DEPTHS)
deep = pytest.mark.parametrize("depth", DEPTHS[2:])
few_examples = settings(max_examples=3, deadline=None, derandomize=True, database=None)


@pytest.fixture(scope="module", autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@functools.cache
def _compiled(depth):
    def curve(t, s, v, start):
        return strength(t, s, v, start, depth)

    return jax.jit(jax.vmap(jax.value_and_grad(curve, argnums=(0, 1, 2, 3))))


@functools.cache
def _on_grid(depth):
    value, gradient = _compiled(depth)(*GRID)
    return np.array(value), np.array(gradient)


def _padded(function, *arguments):
    """Evaluate on one batch size only, so that each depth compiles once."""
    arguments = np.broadcast_arrays(*np.atleast_1d(*arguments))
    size = arguments[0].size
    filled = (np.concatenate([x, np.ones(BATCH - size)]) for x in arguments)
    return jax.tree.map(lambda x: np.array(x)[:size], function(*filled))


def _strengths(depth, *arguments):
    return _padded(_compiled(depth), *arguments)[0]


def _times(depth, *arguments):
    return _padded(lambda *x: time_to(*x, depth), *arguments)


def _constants(depth):
    return (1.0, 1.0) if depth == math.inf else (depth, 1 - 2 / depth)


def _field(a, s, v, depth):
    c, m = _constants(depth)
    return c * np.abs(a) ** (1 + m) * (s - v * a)


def _field_scale(a, s, v, depth):
    """Size of the two terms of the field, to which its rounding error is relative."""
    return _field(np.abs(a), np.abs(s), -v, depth)


def _natural_time(s, v, start, depth):
    return 1 / (_field_scale(start, s, v, depth) / np.abs(start))


cases = st.lists(
    st.tuples(
        st.sampled_from(SINGULAR_VALUES),
        st.sampled_from(VARIANCES),
        st.sampled_from(STARTS[1:]),
        st.sampled_from((1e-3, 0.3, 0.9, 1.0, 1.2, 1.6, 2.9, 5.0, 30.0)),
    ).filter(lambda case: case[0] != 0 or case[1] != 0),
    min_size=20,
    max_size=20,
)


def _integrate(t, s, v, start, depth):
    """DOP853 in log|a|, stopped once the distance to the target is below 1e-10 of it."""
    if depth == 1:
        curve = solve_ivp(lambda _, a: s - v * a, (0, t), [start], method="DOP853", rtol=1e-12, atol=1e-16)
        return curve.y[0, -1]
    sign = np.sign(start)
    c, m = _constants(depth)

    def speed(_, y):
        return c * np.exp(m * y) * (sign * s - v * np.exp(y))

    def arrival(_, y):
        return abs(sign * s - v * np.exp(y[0])) - 1e-10 * abs(s)

    arrival.terminal = True
    curve = solve_ivp(
        speed,
        (0, t),
        [np.log(abs(start))],
        method="DOP853",
        rtol=1e-12,
        atol=1e-13,
        events=arrival,
    )
    assert curve.success
    return sign * np.exp(curve.y[0, -1])


def _explodes(multiple, s, v, start, depth):
    _, m = _constants(depth)
    return v == 0 and s * start > 0 and multiple * m >= 1


@every_depth
@given(batch=cases)
@few_examples
def test_strength_matches_an_integrator(depth, batch):
    s, v, start, multiple = np.array(batch).T
    unit = 1 / (np.abs(s) / np.abs(start) + v) if depth == 1 else _natural_time(s, v, start, depth)
    t = multiple * unit
    answer = _strengths(depth, t, s, v, start)
    for index, case in enumerate(zip(multiple, s, v, start, strict=True)):
        if depth > 1 and _explodes(*case, depth):
            assert answer[index] == np.sign(start[index]) * np.inf
            continue
        expected = _integrate(t[index], *case[1:], depth)
        # The integrator's error is one of relative time: around an escape it is magnified.
        moved = abs(t[index] * _field(expected, s[index], v[index], depth))
        slack = 1e-9 * (abs(expected) if depth > 1 else abs(start[index])) + 1e-10 * moved
        assert abs(answer[index] - expected) <= slack, (case, answer[index], expected)


def _quadrature_time(target, s, v, start, depth):
    """Integral of dt = da / field over log(a), by 300 Gauss panels in extended precision."""
    target, s, v, start = (np.longdouble(x) for x in (target, s, v, start))
    target, s, start = target * np.sign(start), s * np.sign(start), np.abs(start)
    c, m = _constants(depth)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    length = np.log(target / start) / 300
    y = np.log(start) + length * (np.arange(300)[:, None] + (1 + nodes) / 2)
    return float((weights / 2 * np.exp(-m * y) / (c * (s - v * np.exp(y)))).sum() * length)


@pytest.mark.parametrize("depth", DEPTHS[1:])
@given(batch=cases, fraction=st.floats(0.05, 0.95))
@few_examples
def test_time_to_matches_quadrature(depth, batch, fraction):
    s, v, start, multiple = np.array(batch).T
    with np.errstate(divide="ignore", invalid="ignore"):
        end = np.where(s * start <= 0, 1e-6 * start, np.sign(start) * np.abs(s / v))
    end = np.where(np.isfinite(end), end, 1e6 * start)
    shift = np.minimum(multiple, 1.0) * fraction
    target = start * np.abs(end / start) ** shift
    answer = _times(depth, target, s, v, start)
    paths = zip(target, s, v, start, strict=True)
    expected = [_quadrature_time(*path, depth) for path in paths]
    np.testing.assert_allclose(answer, expected, rtol=3e-13)


def _root_sum(target, s, v, start, depth):
    """Time to criterion as the sum over roots of unity, the form of the theory notes."""
    with mpmath.workdps(40):
        target, s, v, start = (mpmath.mpf(x) for x in (target, s, v, start))
        root = mpmath.mpf(1) / depth
        b0, bf, scale = start**root, target**root, (s / v) ** root
        unit = [mpmath.expjpi(mpmath.mpf(2 * j) / depth) for j in range(depth)]
        total = sum(r**2 * mpmath.log((r - bf / scale) / (r - b0 / scale)) for r in unit)
        powers = (b0 ** (2 - depth) - bf ** (2 - depth)) / ((depth - 2) * s)
        return float(mpmath.re(powers - v * scale**2 / (depth * s**2) * total))


@pytest.mark.parametrize("depth", [3, 4, 5, 10, 50])
def test_time_to_is_the_sum_over_roots_of_unity(depth):
    start, target = np.array([(0.01, 1.0), (0.3, 3.9999), (9.0, 4.1), (9.0, 8.9)]).T
    expected = [_root_sum(end, 2.0, 0.5, begin, depth) for begin, end in zip(start, target, strict=True)]
    np.testing.assert_allclose(_times(depth, target, 2.0, 0.5, start), expected, rtol=1e-13)


def test_time_to_at_infinite_depth_is_the_closed_form():
    s, v, start, target = 2.0, 0.5, 0.3, np.array([0.4, 2.0, 3.9])
    ratio = target * (s - v * start) / (start * (s - v * target))
    expected = v / s**2 * np.log(ratio) + (1 / start - 1 / target) / s
    np.testing.assert_allclose(_times(math.inf, target, s, v, start), expected, rtol=1e-13)


@every_depth
def test_time_to_inverts_strength(depth):
    (t, s, v, start), a, _ = _finite_on_grid(depth, (GRID[3] != 0) | (depth == 1))
    back = _times(depth, a, s, v, start)
    speed, scale = np.abs(_field(a, s, v, depth)), _field_scale(a, s, v, depth)
    # A curve that has come to rest has lost its time.
    moves = speed > 1e-6 * scale
    assert moves.sum() > 0.3 * BATCH
    # One rounding of the strength is a time of eps a / speed.
    blur = np.maximum(np.abs(a), np.abs(start) * (depth == 1))[moves] / speed[moves]
    assert np.all(np.abs(back - t)[moves] <= 3e-14 * (t[moves] + blur))


@every_depth
def test_curves_never_give_nan(depth):
    t, s, v, start = GRID
    a, gradient = _on_grid(depth)
    assert not np.isnan(a).any()
    assert np.isfinite(gradient).all()
    assert np.isfinite(a[(v > 0) | (s * start <= 0) | (depth == 1)]).all()
    assert (a[t == 0] == start[t == 0]).all()


def _finite_on_grid(depth, *conditions):
    """Grid, strengths and gradients where the strength is finite and the conditions hold."""
    a, gradient = _on_grid(depth)
    keep = np.logical_and.reduce([np.isfinite(a), *conditions])
    return GRID[:, keep], a[keep], gradient[:, keep]


@every_depth
def test_derivative_in_time_is_the_field(depth):
    (_, s, v, _), a, gradient = _finite_on_grid(depth)
    error = np.abs(gradient[0] - np.array(field(a, s, v, depth)))
    assert np.all(error <= 3e-14 * _field_scale(a, s, v, depth))


@every_depth
def test_gradient_in_the_start_is_the_ratio_of_fields(depth):
    moves = (GRID[3] != 0) & (_field(GRID[3], *GRID[1:3], depth) != 0) if depth > 1 else GRID[3] > 0
    (t, s, v, start), a, gradient = _finite_on_grid(depth, moves)
    if depth == 1:
        np.testing.assert_allclose(gradient[3], np.exp(-v * t), rtol=1e-14)
        return
    ratio = _field(a, s, v, depth) / _field(start, s, v, depth)
    assert np.all(np.abs(gradient[3] - ratio) <= 1e-13 * (np.abs(ratio) + np.abs(a / start)))


@every_depth
def test_gradients_obey_the_scaling_laws(depth):
    """Scaling time with s and v, and strength with 1/v and a0, leaves the flow as it is."""
    (t, s, v, start), a, (by_t, by_s, by_v, by_start) = _finite_on_grid(depth, GRID[3] != 0)
    _, m = _constants(depth)
    of_time = np.stack([s * by_s, v * by_v, -t * by_t])
    of_strength = np.stack([start * by_start, -a, -m * t * by_t, -v * by_v])
    for terms in (of_time, of_strength):
        assert np.all(np.abs(terms.sum(0)) <= 3e-14 * np.abs(terms).sum(0))


@deep
@pytest.mark.parametrize(("s", "v", "axis"), [(0.0, 1.0, 1), (0.7, 0.0, 2), (-0.7, 0.0, 2)])
def test_gradients_are_continuous_where_a_parameter_vanishes(depth, s, v, axis):
    """At s = 0 and at v = 0 the scalings say nothing, so come from the side, at two distances."""
    nudges = np.array([0.0, 1e-4, 2e-4])
    t = 0.4 * _natural_time(s, v, 0.3, depth)
    singular_values, variances = (s + nudges, v) if axis == 1 else (s, v + nudges)
    by_axis = _padded(_compiled(depth), t, singular_values, variances, 0.3)[1][axis]
    assert abs(by_axis[0]) > 1e-3
    np.testing.assert_allclose(2 * by_axis[1] - by_axis[2], by_axis[0], rtol=1e-6)


@deep
def test_at_the_target_the_gradient_in_the_start_decays_exponentially(depth):
    s, v, t = 2.0, 0.5, np.array([0.0, 0.1, 1.0, 3.0])
    c, m = _constants(depth)
    rate = c * v * (s / v) ** (1 + m)
    _, gradient = _padded(_compiled(depth), t / rate, s, v, s / v)
    np.testing.assert_allclose(gradient[3], np.exp(-t), rtol=1e-12)
    np.testing.assert_allclose(gradient[1], (1 - np.exp(-t)) / v, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("depth", [2, 3])
def test_forward_and_second_derivatives(depth):
    def curve(t):
        return strength(t, 1.3, 0.4, 0.2, depth)

    t = 0.7 * _natural_time(1.3, 0.4, 0.2, depth)
    speed, bend = jax.jit(lambda t: jax.jvp(jax.jacfwd(curve), (t,), (1.0,)))(t)
    slope = jax.grad(field)(curve(t), 1.3, 0.4, depth)
    np.testing.assert_allclose(speed, field(curve(t), 1.3, 0.4, depth), rtol=1e-13)
    np.testing.assert_allclose(bend, slope * speed, rtol=1e-12)


@pytest.mark.parametrize("depth", [1, 2, 3, math.inf])
def test_gradient_of_time_to_is_one_over_the_field(depth):
    s, v, start, target = 1.3, 0.4, 0.2, jnp.array([0.2, 0.2001, 0.5, 3.2])
    slope = jax.jit(jax.vmap(jax.grad(lambda *path: time_to(path[0], s, v, path[1], depth), (0, 1))))
    by_target, by_start = slope(target, jnp.full(4, start))
    np.testing.assert_allclose(by_target, 1 / _field(target, s, v, depth), rtol=1e-12)
    np.testing.assert_allclose(by_start, np.full(4, -1 / _field(start, s, v, depth)), rtol=1e-12)


@every_depth
def test_curves_are_odd(depth):
    t, s, v, start = GRID
    keep = np.flatnonzero(start > 0)[::7]
    mirrored = _strengths(depth, t[keep], -s[keep], v[keep], -start[keep])
    assert (mirrored == -_on_grid(depth)[0][keep]).all()


NEVER_REACHED = [
    (2.0, 1.0, 0.5, 0.1),  # at the target
    (3.0, 1.0, 0.5, 0.1),  # beyond it
    (0.05, 1.0, 0.5, 0.1),  # behind the start
    (1.0, 1.0, 0.5, 3.0),  # across the target
    (4.0, 1.0, 0.5, 3.0),  # away from it
    (0.2, -1.0, 0.5, 0.1),  # up against a pull to zero
    (0.2, 0.0, 0.0, 0.1),  # nothing pulls
]


@every_depth
def test_time_to_what_is_never_reached_is_infinite(depth):
    target, s, v, start = np.array(NEVER_REACHED).T
    assert (_times(depth, target, s, v, start) == np.inf).all()
    assert (_times(depth, -target, -s, v, -start) == np.inf).all()


@every_depth
def test_zero_is_a_saddle_for_two_layers_or_more(depth):
    can_leave = depth == 1
    assert (_times(depth, 0.5, 1.0, 1.0, np.array([0.0, -0.1])) < np.inf).all() == can_leave
    assert (_times(depth, 0.0, -1.0, 1.0, 0.1) < np.inf).all() == can_leave
    assert (_strengths(depth, 2.0, 1.0, 1.0, 0.0) > 0).all() == can_leave
    assert _times(depth, 0.0, 1.0, 1.0, 0.0) == 0
    assert _times(depth, 0.7, 1.0, 1.0, 0.7) == 0
    assert _times(depth, 2.0, 1.0, 0.5, 2.0) == 0


@deep
def test_decay_to_the_saddle_is_algebraic(depth):
    """|a| falls as t^(-1/m), that is t^(-D/(D-2)), with a prefactor free of the start."""
    t = np.array([1e8, 1e9])
    c, m = _constants(depth)
    answer = _strengths(depth, t, 0.8, 1.0, -0.3)
    np.testing.assert_allclose(-answer, (m * c * 0.8 * t) ** (-1 / m), rtol=1e-6)


@deep
def test_singular_values_at_rounding_level_act_as_zero(depth):
    t = np.geomspace(1e-3, 1e6, 20)
    c, m = _constants(depth)
    expected = (1e-3 ** -(1 + m) + (1 + m) * c / 8 * t) ** (-1 / (1 + m))
    for s in (1e-17, 0.0, -1e-17):
        np.testing.assert_allclose(_strengths(depth, t, s, 1 / 8, 1e-3), expected, rtol=1e-6)
    np.testing.assert_allclose(_strengths(depth, t, 0.0, 1 / 8, 1e-3), expected, rtol=1e-13)


@deep
def test_without_variance_the_curve_is_a_power_that_blows_up(depth):
    c, m = _constants(depth)
    end = 1 / (m * c * 0.7 * 0.2**m)
    t = end * np.array([0.0, 0.5, 0.99, 1.01, 100.0])
    with np.errstate(invalid="ignore"):
        expected = np.where(t < end, 0.2 * (1 - t / end) ** (-1 / m), np.inf)
    np.testing.assert_allclose(_strengths(depth, t, 0.7, 0.0, 0.2), expected, rtol=1e-12)
    np.testing.assert_allclose(_times(depth, expected[:3], 0.7, 0.0, 0.2), t[:3], rtol=1e-12)


@pytest.mark.parametrize(
    ("depth", "expected"),
    [(3, 11.3), (5, 25.8), (10, 50.5), (30, 80.7), (100, 95.4), (math.inf, 102.6)],
)
def test_half_times_of_the_notes(depth, expected):
    factor = 1 if depth == math.inf else depth
    assert abs(factor * time_to(0.5, 1.0, 1.0, 0.01, depth) - expected) < 0.05


def test_half_time_approaches_infinite_depth_as_one_over_depth():
    limit = time_to(0.5, 2.0, 0.5, 0.3, math.inf)
    depths = np.array([100, 200, 400])
    gaps = np.array([abs(d * time_to(0.5, 2.0, 0.5, 0.3, int(d)) - limit) for d in depths])
    np.testing.assert_allclose(gaps[:-1] / gaps[1:], 2, rtol=0.01)


def test_curve_approaches_infinite_depth_as_the_notes_say():
    t = np.linspace(0, 20, BATCH)
    limit = _strengths(math.inf, t, 2.0, 0.5, 0.3)
    for depth, expected in ((3, 0.275), (5, 0.220), (10, 0.137), (50, 0.033)):
        gap = np.max(np.abs(_strengths(depth, t / depth, 2.0, 0.5, 0.3) - limit)) / 4
        assert abs(gap - expected) < 0.001


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@pytest.mark.parametrize("start", [0.2, -0.2, 1.5])
def test_gradient_descent_on_the_layers_approaches_the_curve_at_first_order(depth, start):
    s, v, horizon = 1.1, 0.8, 1.5

    def descend(steps):
        layers = np.full(depth, abs(start) ** (1 / depth))
        layers[0] *= np.sign(start)
        for _ in range(steps):
            product = np.prod(layers)
            layers = layers + horizon / steps * (s - v * product) * product / layers
        return np.prod(layers)

    exact = _strengths(depth, horizon, s, v, start)[0]
    errors = [abs(descend(steps) - exact) for steps in (2000, 4000)]
    assert errors[0] < 1e-3
    np.testing.assert_allclose(errors[0] / errors[1], 2, rtol=0.02)


@every_depth
def test_a_short_step_is_an_euler_step(depth):
    s, v, start = np.array([1.0, -1.0, 0.0, 1.0]), 0.7, np.array([0.3, 0.3, 0.3, 3.0])
    speed = _field(start, s, v, depth)
    step = 1e-3 / np.abs(speed)
    errors = [np.abs(_strengths(depth, h, s, v, start) - start - h * speed) for h in (step, step / 2)]
    np.testing.assert_allclose(errors[0] / errors[1], 4, rtol=0.02)


def test_single_precision_is_kept():
    (t, s, v, start), expected, _ = _finite_on_grid(10, np.abs(_on_grid(10)[0]) > 1e-30)
    answer = strength(*(jnp.asarray(x, jnp.float32) for x in (t, s, v, start)), 10)
    assert answer.dtype == jnp.float32
    moved = t * np.abs(_field(expected, s, v, 10))
    assert np.all(np.abs(answer - expected) <= 1e-5 * (np.abs(expected) + moved))
    with jax.enable_x64(False):
        assert strength(1, 1, 1, 0.1, 3).dtype == jnp.float32


def test_shapes_broadcast_and_map():
    t = np.linspace(0, 3, 5)[:, None]
    whole = strength(t, np.array([[1.0, 0.5]]), 1.0, 0.1, 3)
    mapped = jax.vmap(lambda s: strength(t[:, 0], s, 1.0, 0.1, 3), out_axes=1)(jnp.array([1.0, 0.5]))
    assert whole.shape == (5, 2)
    np.testing.assert_allclose(whole, mapped, rtol=1e-14)


def test_a_hundred_layers_are_fast():
    t, s = np.broadcast_arrays(np.linspace(0, 3, 1000)[:, None], np.linspace(0.1, 1, 8))
    strength(t, s, 1.0, 0.01, 100).block_until_ready()
    begin = time.perf_counter()
    strength(t, s, 1.0, 0.01, 100).block_until_ready()
    assert time.perf_counter() - begin < 2


def test_a_depth_below_one_is_refused():
    with pytest.raises(ValueError, match="got 0"):
        field(0.1, 1.0, 1.0, 0)
