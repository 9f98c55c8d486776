"""Closed forms at extreme numbers, 40 points each, against mpmath: an answer that is right, or an error in words.

Errors are bounded by rounding × condition: MANY units in the last place, times the relative change of the answer with
its arguments. MANY is the number of roundings on the way, not a fitted number.
"""

from __future__ import annotations

import math

import jax
import mpmath as mp
import numpy as np
import pytest

import festina as fs
from festina._formulas import balanced_flow, two_layer_mode
from festina._formulas.two_points import flow
from festina._formulas.two_points.pair import Pair, Start
from festina._foundation.precision import in_double
from festina._verbs.covering import coverage
from festina.theories.aligned_modes import mode, time_to
from festina.theories.context_race import arrival, gate_overlap, item_mode, turning
from festina.theories.disjoint_pathways import effective_start, time_to_loss
from festina.theories.frozen_kernel import _error_integral
from festina.theories.two_point import final_distance, rotating, trajectory

MANY = 64
EPS = np.finfo(float).eps
TINY, HUGE = np.finfo(float).tiny, np.finfo(float).max
POINTS = 40
every_depth = pytest.mark.parametrize("depth", [1, 2, 3, 5, math.inf])


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(60):
        yield


def clock(depth):
    """c and m of da/dt = c a^(1+m) (s − v a)."""
    return (mp.mpf(1), mp.mpf(1)) if depth == math.inf else (mp.mpf(depth), 1 - mp.mpf(2) / depth)


def speed(a, s, v, depth):
    c, m = clock(depth)
    return c * abs(a) ** (1 + m) * (s - v * a)


def primitive(x, sign, m):
    """Integral of x^(−1−m)/(sign − x) dx, by Gauss's function."""
    if m == 0:
        return sign * mp.log(x / abs(sign - x))
    if m == 1:
        return -1 / x + mp.log(x / abs(1 - x)) if sign > 0 else 1 / x - mp.log((1 + x) / x)
    if sign < 0:
        return x**-m / m * mp.hyp2f1(1, -m, 1 - m, -x)
    if x < 1:
        return -(x**-m) / m * mp.hyp2f1(1, -m, 1 - m, x)
    return x ** (-1 - m) / (1 + m) * mp.hyp2f1(1, 1 + m, 2 + m, 1 / x)


def time_between(a, s, v, a0, depth):
    """∫ da/(da/dt) from a0 to a, both on one side of 0 and of the target."""
    if depth == 1:
        return (a - a0) / s if v == 0 else mp.log1p(v * (a - a0) / (s - v * a)) / v
    c, m = clock(depth)
    if v == 0:
        return mp.log(a / a0) / (c * s) if m == 0 else (a0**-m - a**-m) / (m * c * s)
    if s == 0:
        return (a ** (-1 - m) - a0 ** (-1 - m)) / (c * v * (1 + m))
    unit, sign = abs(s) / v, int(mp.sign(s))
    return unit**-m / (c * abs(s)) * (primitive(a / unit, sign, m) - primitive(a0 / unit, sign, m))


def chain_points(depth):
    """(s, v, a0, kind): ordinary ones, tiny starts, v = 0, s = 0, starts at the target, s < 0, other units."""
    rng = np.random.default_rng(int(min(depth, 9)))
    for k in range(POINTS):
        s, v = 10.0 ** rng.uniform(-3, 3, 2)
        a0 = s / v * 10.0 ** rng.uniform(-6, 2)
        kind = ("plain", "tiny start", "v = 0", "s = 0", "at the target", "s < 0", "rates", "strengths")[k % 8]
        unit = 10.0 ** rng.uniform(-140, 140)
        if kind == "tiny start":
            a0 = 10.0 ** rng.uniform(-290, -200)
        elif kind == "v = 0":
            v = 0.0
        elif kind == "s = 0":
            s = 0.0
        elif kind == "at the target":
            a0 = s / v * (1 + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-15, -8))
        elif kind == "s < 0":
            s = -s
        elif kind == "rates":
            s, v = s * unit, v * unit
        elif kind == "strengths":
            a0, v = a0 * unit, v / unit
        yield kind, s, v, a0, rng


def condition(a, s, v, a0, depth):
    """Σ |∂ln a/∂ln argument| at fixed time."""
    h = mp.mpf(10) ** -25
    f, T = speed(a, s, v, depth) / a, time_between(a, s, v, a0, depth)
    moved = [(a, s * (1 + h), v, a0), (a, s, v * (1 + h), a0), (a, s, v, a0 * (1 + h))]
    return 1 + abs(T * f) + sum(abs((time_between(*one, depth) - T) / h * f) for one in moved)


@every_depth
def test_the_strength_of_a_mode(depth):
    points = []
    for k, (kind, s, v, a0, rng) in enumerate(chain_points(depth)):
        rate = abs(speed(*map(mp.mpf, (a0, s, v)), depth)) / abs(mp.mpf(a0))
        share = rng.uniform(0.1, 0.9) if kind == "tiny start" and depth > 2 else 10.0 ** rng.uniform(-3, 1.5)
        points.append((1e12 if k % 5 == 4 else float(share / rate), s, v, a0))
    for t, s, v, a0 in points:
        a = mode([t], singular_value=s, variance=v, start=a0, depth=depth)[0]
        check_strength(a, *map(mp.mpf, (t, s, v, a0)), depth)


def check_strength(a, t, s, v, a0, depth):
    if depth == 1:
        kept, grown = a0 * mp.exp(-v * t), s * (t if v == 0 else -mp.expm1(-v * t) / v)
        bound = MANY * EPS * (abs(kept) * (1 + v * t) + abs(grown) * (1 + v * t * mp.exp(-v * t)))
        assert abs(a - (kept + grown)) <= bound + TINY, (a, t, s, v, a0)
        return
    up = s > v * a0
    target = mp.inf if v == 0 else max(s / v, mp.mpf(0))
    if a == 0 or not np.isfinite(a):  # beyond what float64 holds
        assert time_between(mp.mpf(HUGE if up else TINY), s, v, a0, depth) <= t, (a, t, s, v, a0)
        return
    # Away from the target, where the condition is that of another start.
    near = mp.mpf(10) ** -12
    inside = min(mp.mpf(a), target * (1 - near)) if up else max(mp.mpf(a), target * (1 + near))
    inside = max(inside, a0 * (1 + near)) if up else min(inside, a0 * (1 - near))
    slack = MANY * EPS * condition(inside, s, v, a0, depth) if abs(a0 - target) > 2 * near * target else MANY * EPS * 4

    def reached(strength):
        """When, 0 behind the start and never beyond the target."""
        if (strength <= a0) if up else (strength >= a0):
            return mp.mpf(0)
        return mp.inf if (strength >= target if up else strength <= target) else time_between(strength, s, v, a0, depth)

    before, after = a * (1 - slack), a * (1 + slack)
    first, last = (before, after) if up else (after, before)
    assert reached(first) <= t <= reached(last), (a, t, s, v, a0, float(slack))


@every_depth
def test_the_time_to_a_strength(depth):
    points = []
    for kind, s, v, a0, rng in chain_points(depth):
        share = rng.uniform(0.01, 0.99)
        target = s / v if v else np.inf
        if kind == "v = 0":
            a0 = 10.0 ** rng.uniform(-300, 0)
            a = 10.0 ** rng.uniform(0, 300)
        elif s <= 0:
            a = a0 * 10.0 ** -rng.uniform(0.1, 290 if depth > 1 else 3)
        else:
            a = a0 + share * (target - a0) if a0 > target or rng.integers(2) else a0 * (target / a0) ** share
        points.append((a, s, v, a0))
    answers = time_to(
        *np.array(points).T[:1],
        **dict(zip(("singular_value", "variance", "start"), np.array(points).T[1:], strict=True)),
        depth=depth,
    )
    h = mp.mpf(10) ** -25
    for t, point in zip(answers, points, strict=True):
        a, s, v, a0 = numbers = list(map(mp.mpf, point))
        want = time_between(*numbers, depth)
        if want > HUGE:
            assert t == np.inf
            continue
        moved = [[*numbers[:i], numbers[i] * (1 + h), *numbers[i + 1 :]] for i in range(4)]
        slope = sum(abs(time_between(*one, depth) - want) for one in moved) / h
        # A power of the growth is computed from its logarithm, whose rounding it multiplies.
        growth = 2 * abs(mp.log(a / a0)) * abs(want) if depth > 2 else 0
        assert abs(t - want) <= MANY * EPS * (abs(want) + slope) + EPS * growth, (t, float(want), point)


@pytest.mark.parametrize("function", [mode, time_to])
def test_numbers_that_float64_does_not_hold_are_refused(function):
    for depth in (2, 3, math.inf):
        with pytest.raises(fs.BadInput, match="start = 1e-310") as refusal:
            function(1.0, singular_value=1.0, variance=1.0, start=1e-310, depth=depth)
        assert "0, or at least 2.2" in str(refusal.value)
        assert "smaller unit" in str(refusal.value)
    with pytest.raises(fs.BadInput, match="variance × start = 1e-200 × 1e-200") as refusal:
        function(1.0, singular_value=1.0, variance=1e-200, start=1e-200, depth=3)
    assert "a product that float64 holds" in str(refusal.value)
    assert "other units" in str(refusal.value)
    with pytest.raises(fs.BadInput, match=r"variance × start = 1e\+200 × 1e\+200"):
        function(1.0, singular_value=1.0, variance=1e200, start=1e200, depth=3)
    assert np.isfinite(function(1.0, singular_value=1.0, variance=0.0, start=1e-200, depth=3))
    if function is mode:
        with pytest.raises(fs.BadInput, match="rate × the last time of about 1e5") as refusal:
            mode(1e150, singular_value=1.0, variance=1.0, start=1e300, depth=3)
        assert "which float64 holds" in str(refusal.value)
        assert "earlier times" in str(refusal.value)
    s, v, a0 = (1e300, 1e-300, 1.0) if function is mode else (1e-300, 1e150, 1e150)
    with pytest.raises(fs.BadInput, match="no answer in float64") as refusal:
        function(1e-300, singular_value=s, variance=v, start=a0, depth=5)
    assert f"singular_value = {s:g}, variance = {v:g}, start = {a0:g}" in str(refusal.value)
    assert "whose products float64 holds" in str(refusal.value)
    assert "in other units" in str(refusal.value)


def test_the_time_to_a_loss():
    rng = np.random.default_rng(3)
    s, target, share = 10.0 ** rng.uniform([[-300], [-150], [-150]], [[300], [150], [-1]], (3, POINTS))
    fraction = np.where(
        np.arange(POINTS) % 4 == 3, 1 - 10.0 ** rng.uniform(-12, -6, POINTS), 10.0 ** rng.uniform(-300, -0.1, POINTS)
    )
    start = np.where(np.arange(POINTS) % 4 == 3, 1e-15, 10 * share) * (1 - np.sqrt(fraction)) * target
    answers = time_to_loss(s, target=target, start=start, fraction=fraction)
    for t, *point in zip(answers, s, target, start, fraction, strict=True):
        rate, end, share, left = map(mp.mpf, point)
        share, learned, left = share / end, 1 - mp.sqrt(left), mp.sqrt(left)
        logs = mp.log(learned / share), mp.log((1 - share) / left)
        # Each of the numbers in a logarithm moves it by its relative change, 1 − √fraction by more near 1.
        slope = 4 + left**2 / learned
        assert abs(t - sum(logs) / (2 * rate)) <= MANY * EPS * (sum(logs) + slope) / (2 * rate), (t, point)
    assert effective_start(3, 1e-150) == pytest.approx(1.5e-300, rel=4 * EPS)


def pair_reference(t, s, v, first, last):
    """w₁ and w₂ by the integral of the squared sum of growing and shrinking parts, without care for cancellation."""
    slope = v * (last**2 - first**2) / 2
    rate = mp.sqrt(s**2 + slope**2)
    if rate == 0:
        size = 1 / mp.sqrt(1 + 2 * v * first**2 * t) if v else 1
        return first * size, last * size
    up = mp.matrix([s, rate + slope])
    up = up / mp.norm(up) if mp.norm(up) else mp.matrix([1, 0])
    learned, forgotten = up[0] * first + up[1] * last, up[0] * last - up[1] * first
    grow, fall = mp.exp(rate * t), mp.exp(-rate * t)
    area = learned**2 * (grow**2 - 1) + forgotten**2 * (1 - fall**2)
    size = 1 / mp.sqrt(1 + v * area / (2 * rate))
    one, other = learned * grow * size, forgotten * fall * size
    return up[0] * one - up[1] * other, up[1] * one + up[0] * other


def pair_points():
    rng = np.random.default_rng(4)
    for k in range(POINTS):
        s, v = 10.0 ** rng.uniform(-2, 2, 2)
        first, last = rng.choice([-1, 1], 2) * 10.0 ** rng.uniform(-3, 1, 2)
        t = 10.0 ** rng.uniform(-3, 2) / s
        kind, unit = k % 8, 10.0 ** rng.uniform(-140, 140)
        if kind == 1:
            s = 0.0
        elif kind == 2:
            v = 0.0
            t = min(t, 600 / s)
        elif kind == 3:  # nearly balanced
            last = first * (1 + 10.0 ** rng.uniform(-15, -6))
        elif kind == 4:
            t = 1e12
        elif kind == 5:  # another unit of time
            s, v, t = s * unit, v * unit, t / unit
        elif kind == 6:  # another unit of weights
            s, v, first, last, t = s * 1.0, v / unit, first * math.sqrt(unit), last * math.sqrt(unit), t
        elif kind == 7:
            first, last = 1e-140 * first, 1e-140 * last
        yield t, s, v, first, last


def test_two_layers_of_any_balance():
    points = list(pair_points())
    answers = np.stack(in_double(two_layer_mode.weights)(*np.array(points).T), axis=1)
    with mp.workdps(120):
        for answer, point in zip(answers, points, strict=True):
            numbers = list(map(mp.mpf, point))
            want, h = pair_reference(*numbers), mp.mpf(10) ** -40
            moved = [pair_reference(*numbers[:i], numbers[i] * (1 + h), *numbers[i + 1 :]) for i in range(5)]
            size = mp.hypot(*want)
            slope = sum(mp.hypot(one[0] - want[0], one[1] - want[1]) for one in moved) / h
            error = mp.hypot(answer[0] - want[0], answer[1] - want[1])
            assert error <= MANY * EPS * (size + slope), (answer, [float(one) for one in want], point)


def two_point_reference(t, H, P, w, X, Y, tau_h, tau_y):
    """H, P and w at t: two layers and an idle part, as in `pair_reference`."""
    encoder, decoder, gap = X / (2 * tau_h), 1 / (2 * tau_y), mp.sqrt(Y)
    along = (P - w) / gap
    s, v = mp.sqrt(encoder * decoder * Y), encoder * decoder
    first, last = mp.sqrt(H / encoder), along / mp.sqrt(H * decoder)
    idle = (P - along**2) / (H * decoder)
    slope = v * (last**2 + idle - first**2) / 2
    rate = mp.sqrt(s**2 + slope**2)
    up = mp.matrix([s, rate + slope]) / mp.hypot(s, rate + slope)
    learned, forgotten = up[0] * first + up[1] * last, up[0] * last - up[1] * first
    grow, fall, carry = mp.exp(rate * t), mp.exp(-rate * t), mp.exp(slope * t)
    area = (learned**2 * (grow**2 - 1) + forgotten**2 * (1 - fall**2)) / (2 * rate)
    area += idle * (t if slope == 0 else (carry**2 - 1) / (2 * slope))
    size = 1 / mp.sqrt(1 + v * area)
    one, other = learned * grow * size, forgotten * fall * size
    hidden, decoded = up[0] * one - up[1] * other, up[1] * one + up[0] * other
    H, along = encoder * hidden**2, mp.sqrt(v) * hidden * decoded
    off = H * decoder * idle * (carry * size) ** 2
    return H, along**2 + off, along * (along - gap) + off, along


def two_point_points():
    rng = np.random.default_rng(5)
    for k in range(POINTS):
        H, P, X, Y, tau_h, tau_y = 10.0 ** rng.uniform(-2, 2, 6)
        angle = rng.uniform(-0.95, 0.95)
        kind, unit = k % 5, 10.0 ** rng.uniform(-70, 70)
        if kind == 1:  # other units of inputs, of activity, of outputs
            X *= unit
        elif kind == 2:
            H *= 10.0 ** -rng.uniform(0, 100)
            P *= H
        elif kind == 3:
            P, Y = P * unit, Y * unit
        t = 10.0 ** rng.uniform(-3, 1.5) * tau_y / (H + math.sqrt(X * Y * tau_y / tau_h))
        if kind == 4:
            t = 1e12
        yield t, H, P, P - angle * math.sqrt(P * Y), X, Y, tau_h, tau_y


def test_two_points_and_their_final_distance():
    points = list(two_point_points())
    names = ("distance0", "output0", "alignment0", "input_gap", "target_gap", "tau_h", "tau_y")
    answers, ends = [], []
    for time, *numbers in points:
        named = dict(zip(names, numbers, strict=True))
        answers.append([float(curve[0]) for curve in trajectory(np.array([time]), **named)])
        ends.append(float(final_distance(**named)))
    array = np.array(points).T
    together = in_double(flow.states)(array[0][:, None], Start(*array[1:4]), Pair(*array[4:]))
    with mp.workdps(250):
        for k, (answer, end, point) in enumerate(zip(answers, ends, points, strict=True)):
            numbers, h = list(map(mp.mpf, point)), mp.mpf(10) ** -60
            want = two_point_reference(*numbers)
            moved = [two_point_reference(*numbers[:i], numbers[i] * (1 + h), *numbers[i + 1 :]) for i in range(8)]
            sizes = want[0], want[1], want[1] + abs(want[3]) * mp.sqrt(numbers[5])
            for i, size in enumerate(sizes):
                bound = MANY * EPS * (size + sum(abs(one[i] - want[i]) for one in moved) / h)
                assert abs(answer[i] - want[i]) <= bound, (i, answer, float(want[i]), point)
                assert abs(float(together[i][k, 0]) - want[i]) <= bound, (i, float(want[i]), point)
            _, H, P, _, X, Y, tau_h, tau_y = numbers
            half, scale = (H - tau_y / tau_h * X * P / H) / 2, tau_y / tau_h * X * Y
            wanted = half + mp.sqrt(half**2 + scale)
            # A is a difference: what it loses moves the end by less than its parts.
            slope = (H + tau_y / tau_h * X * P / H) / (2 * mp.sqrt(half**2 + scale))
            assert abs(end - wanted) <= MANY * EPS * wanted * (1 + slope), (end, float(wanted), point)


def riccati_reference(t, lam, *entries):
    """W₂W₁ of 2 → 2 → 2 units: Q Qᵀ = e^(Ft) Q₀ (1 + Q₀ᵀ ∫e^(2Ft) Q₀)⁻¹ Q₀ᵀ e^(Ft), whose lower left block it is."""
    target, first, last = (mp.matrix(2, 2) for _ in range(3))
    for k, entry in enumerate(entries):
        (target, first, last)[k // 4][k % 4 // 2, k % 2] = entry
    field, start = mp.matrix(4, 4), mp.matrix(4, 2)
    for i in range(2):
        field[i, i], field[2 + i, 2 + i] = -lam / 2, lam / 2
        for j in range(2):
            field[i, 2 + j] = field[2 + j, i] = target[j, i]
            start[i, j], start[2 + i, j] = first[j, i], last[i, j]
    rates, vectors = mp.eigsy(field)
    start = vectors.T * start
    grown = mp.diag([mp.exp(rate * t) for rate in rates]) * start
    area = mp.diag([t if rate == 0 else mp.expm1(2 * rate * t) / (2 * rate) for rate in rates])
    gram = vectors * grown * mp.inverse(mp.eye(2) + start.T * area * start) * grown.T * vectors.T
    return gram[2:4, 0:2]


def riccati_points():
    rng = np.random.default_rng(6)
    for k in range(POINTS):
        kind, unit = k % 8, 10.0 ** rng.uniform(-100, 100)
        turns = [np.linalg.qr(rng.normal(size=(2, 2)))[0] for _ in range(2)]
        values = np.array([1.0, rng.uniform(0.1, 0.9)])
        lam, scale = rng.normal(), 10.0 ** rng.uniform(-8, 0)
        if kind == 1:
            values[1] = 1.0
        elif kind == 2:
            values[1] = 1 - 10.0 ** rng.uniform(-15, -10)
        elif kind == 3:
            lam = 0.0
        elif kind == 4:
            lam = rng.choice([-1, 1]) * 10.0 ** rng.uniform(1, 2)
        elif kind == 5:
            scale = 1e-100
        elif kind == 6:
            values[1] = 0.0
        target = turns[0] * values @ turns[1]
        first, last = scale * rng.normal(size=(2, 2, 2))
        t = rng.uniform(0.1, 40 if kind != 4 else 2)
        if kind == 7:  # another unit of time, of which that of the weights is the root
            target, lam, t = target * unit, lam * unit, t / unit
            first, last = first * math.sqrt(unit), last * math.sqrt(unit)
        if k % 10 == 9:
            unit = t / 1e12
            target, lam, t = target * unit, lam * unit, 1e12
            first, last = first * math.sqrt(unit), last * math.sqrt(unit)
        yield t, lam, target, first, last


def test_the_balanced_solution_of_small_matrices():
    points = list(riccati_points())

    def maps(t, lam, target, first, last):
        from_start = balanced_flow.flow(target, (first, last), lam)
        inner, outer = balanced_flow.weights(from_start, balanced_flow.states(from_start, t[None]))
        return outer[0] @ inner[0]

    columns = [np.stack(column) for column in zip(*points, strict=True)]
    answers = in_double(jax.vmap(maps))(*columns)
    with mp.workdps(300):
        for answer, (t, lam, *matrices) in zip(answers, points, strict=True):
            numbers, h = [mp.mpf(n) for n in (t, lam, *np.concatenate(matrices).ravel())], mp.mpf(10) ** -80
            want = riccati_reference(*numbers)
            size = max(abs(entry) for entry in want)
            # Matrices are known to rounding of their largest entry, which is what a decomposition keeps.
            sizes = [abs(numbers[0]), abs(numbers[1])] + [mp.mpf(np.abs(m).max()) for m in matrices for _ in range(4)]
            slope = 0
            for i, scale in enumerate(sizes):
                moved = riccati_reference(*numbers[:i], numbers[i] + h * scale, *numbers[i + 1 :])
                slope += max(abs(entry) for entry in moved - want) / h
            error = max(abs(answer[i, j] - want[i, j]) for i in range(2) for j in range(2))
            assert error <= MANY * EPS * (size + slope), (t, lam, matrices, float(error / size), float(slope / size))


def square_net(scale, until, values=(3.0, 2.0, 1.0)):
    """Three modes, from layers of scale × 1: every mode is a logistic curve."""
    start = fs.inits.Given([scale * np.eye(3), scale * np.eye(3)])
    task = fs.tasks.from_moments(np.diag(values), np.eye(3))
    return fs.Setup(task, fs.nets.DeepLinear(3), start, until=until, points=41), np.array(values)


def logistic(times, s, scale):
    start = mp.mpf(scale) ** 2
    return [float(s / (1 + (s / start - 1) * mp.exp(-2 * mp.mpf(s) * mp.mpf(float(t))))) for t in times]


@pytest.mark.parametrize("scale", [1e-8, 1e-100, 1e-150, 1e-153, 1e-160, 1e-200, 1e-300])
def test_a_start_of_any_size_is_learned_from(scale):
    setup, values = square_net(scale, -1.2 * math.log(scale) + 5)
    answer = fs.solve(setup, observe="map")
    true = np.array([logistic(setup.times, s, scale) for s in values]).T
    assert "never learned" not in answer.provenance["note"]
    np.testing.assert_allclose(answer["map"], true[:, :, None] * np.eye(3), atol=1e-12)
    for name in ("AlignedModes", "UnbalancedModes", "AlignedChains", "SmallRandomModes"):
        failed = {assumption.name for assumption in coverage(setup, name).failed}
        assert ("range" in failed) == (scale < 1e-145), (name, failed)


@pytest.mark.parametrize("scale", [1e-8, 1e-60, 1e-100])
def test_gradient_flow_follows_a_start_of_any_size(scale):
    setup, values = square_net(scale, -1.2 * math.log(scale) + 5)
    trained = fs.simulate(setup, 1, "map", progress=False)["map"][0]
    true = np.array([logistic(setup.times, s, scale) for s in values]).T
    np.testing.assert_allclose(trained, true[:, :, None] * np.eye(3), atol=1e-8)


def test_a_kernel_below_float64_is_not_taken_for_one_that_stays():
    setup = fs.Setup(fs.tasks.xor(1.0), fs.nets.DeepLinear(6), fs.inits.SmallRandom(1e-160), until=1100.0, points=21)
    assert {assumption.name for assumption in coverage(setup, "FrozenKernel").failed} == {"error"}


def rotation_reference(t, H, D, m, X, Y, tau_h, tau_y):
    """H and u·v at t: √β u ± √α v keep their directions and grow by e^(±θ), and e^(2θ) obeys a Riccati equation."""
    encoder, decoder, gap = X / (2 * tau_h), 1 / (2 * tau_y), mp.sqrt(Y)
    k = mp.sqrt(encoder * decoder)
    plus, minus = (decoder * H + encoder * D + sign * 2 * k * m for sign in (1, -1))
    root = mp.sqrt((2 * k * gap) ** 2 + plus * minus)
    high, low = ((2 * k * gap + sign * root) / plus for sign in (1, -1))
    ratio = (1 - high) / (1 - low) * mp.exp(-plus * (high - low) * t / 2)
    grown = (high - low * ratio) / (1 - ratio)
    plus, minus = plus * grown, minus / grown
    return (plus + minus + 2 * (decoder * H - encoder * D)) / (4 * decoder), (plus - minus) / (4 * k)


def rotation_points():
    rng = np.random.default_rng(8)
    for k in range(POINTS):
        H, D, X, Y, tau_h, tau_y = 10.0 ** rng.uniform(-2, 2, 6)
        cosine, kind, unit = rng.uniform(-0.95, 0.95), k % 5, 10.0 ** rng.uniform(-60, 60)
        if kind == 1:  # other units of activity, and a small start
            H, D, tau_h, tau_y = H * unit, D / unit, tau_h * 1.0, tau_y * unit
        elif kind == 2:
            small = 10.0 ** -rng.uniform(0, 100)
            H, D = H * small, D * small
        elif kind == 3:
            Y = 0.0
        rate = math.sqrt(X * Y / (tau_h * tau_y)) + H / tau_y + D * X / tau_h
        t = 1e12 if kind == 4 else 10.0 ** rng.uniform(-3, 1.5) / rate
        yield t, H, D, cosine * math.sqrt(H * D), X, Y, tau_h, tau_y


def test_one_output_and_any_rotation():
    names = ("distance0", "decoder0", "along0", "input_gap", "target_gap", "tau_h", "tau_y")
    with mp.workdps(400):
        for point in rotation_points():
            named = dict(zip(names, point[1:], strict=True))
            curves = rotating(np.array([point[0]]), **named)
            numbers, h = list(map(mp.mpf, point)), mp.mpf(10) ** -150
            H, m = rotation_reference(*numbers)
            gap, moved = mp.sqrt(numbers[5]), []
            for i in range(len(numbers)):
                moved.append(rotation_reference(*numbers[:i], numbers[i] * (1 + h), *numbers[i + 1 :]))
            slopes = [sum(abs(one[j] - (H, m)[j]) for one in moved) / h for j in (0, 1)]
            room = [MANY * EPS * (abs(value) + slope) for value, slope in zip((H, m), slopes, strict=True)]
            assert abs(curves.distance[0] - H) <= room[0], (point, float(H))
            assert abs(curves.output[0] - m**2) <= 2 * abs(m) * room[1] + room[1] ** 2, (point, float(m))
            assert abs(curves.alignment[0] - m * (m - gap)) <= (2 * abs(m) + gap) * room[1] + room[1] ** 2, point


def test_the_race_of_contexts():
    rng = np.random.default_rng(9)
    for contexts in (2, 3, 4, 7, 20, 60, 1000):
        for size in {1, 2, contexts // 2, contexts - 1} & set(range(1, contexts)):
            share = mp.mpf(math.comb(contexts, size)) * (contexts - size) / (contexts * (contexts - 1))
            assert abs(gate_overlap(contexts, size) / share - 1) <= MANY * EPS
            C, m = mp.mpf(contexts), mp.mpf(size)
            grown, rest = mp.sqrt(m * (m + 1) / (C * (C + 1))), mp.sqrt(m * (C - m) / C / (C * (C + 1)))
            taken = mp.sqrt(grown**2 - rest**2)

            def kept(rate, rest=rest, taken=taken):
                ends = mp.gamma(1 + (rate + rest + taken) / 4) * mp.gamma(1 + (rate + rest - taken) / 4)
                return mp.gamma(1 + rate / 2) * mp.gamma(1 + rest / 2) / ends

            want = (1 + rest / grown) / 2 * kept(grown) ** 2, -taken / grown * kept(grown) * kept(-grown) / 2
            np.testing.assert_allclose(turning(contexts, size), [float(one) for one in want], rtol=MANY * EPS)
    for k in range(POINTS):
        value, start = 10.0 ** rng.uniform(-3, 3), 10.0 ** -rng.uniform(3, 280)
        value = value * 10.0 ** rng.uniform(-100, 100) if k % 2 else value
        mode = item_mode(value, items=8, contexts=3, size=2)
        a = max(start * min(value, 1.0), 1e-300)
        ratio = mp.mpf(float(mode.common)) / (mp.mpf(mode.common_variance) * mp.mpf(a))
        want = mp.log(ratio - 1) / (2 * mp.mpf(float(mode.common)))
        # The condition: a relative error of the ratio is an absolute one of its logarithm.
        assert abs(arrival(mode, a) - want) <= MANY * EPS * (abs(want) + 1 / mp.mpf(float(mode.common)))


def test_a_frozen_kernel_at_extreme_rates_and_times():
    rates = np.array([0.0, 1e-300, 1e-20, 1e-3, 1.0, 1e20, 1e300])
    times = np.array([0.0, 1e-300, 1e-12, 1.0, 1e12, 1e300])
    integrals = in_double(jax.jit(_error_integral))(rates, times)
    for states, t in zip(integrals, map(mp.mpf, times), strict=True):
        for state, rate in zip(states, map(mp.mpf, rates), strict=True):
            want = t if rate == 0 else -mp.expm1(-rate * t) / rate
            assert abs(state - want) <= MANY * EPS * want + TINY, (rate, t)


@pytest.mark.parametrize("scale", [1e-8, 1e-100, 1e-200])
def test_paths_of_any_size_begin_where_their_layers_do(scale):
    net = fs.nets.Gated.pathways([{"on": {"item": [item]}, "width": 8} for item in range(4)])
    setup = fs.Setup(fs.tasks.xor(1.0), net, fs.inits.Decoupled(scale), until=1.0)
    strengths = np.abs(fs.theories.NeuralRace().constants(setup, 0).layers.strengths)
    np.testing.assert_allclose(strengths.max(axis=1), scale, rtol=1e-12)
