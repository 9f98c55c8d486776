"""TwoPoint in `solve`: against training that knows nothing of it; where it holds and where it is refused."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import festina as fs
from festina.theories import two_point
from festina.theories.two_point import rotated_final_distance, rotating, trajectory

PAIR = ("distance", "output_distance", "output_alignment")


def pair(weights, half, target, mean=0.0, **options):
    """A two-layer linear network on x and −x."""
    task = fs.tasks.from_arrays(np.stack([-half, half]), np.stack([mean - target, mean + target]))
    net = fs.nets.DeepLinear(hidden=len(weights[0]))
    return fs.Setup(task, net, fs.inits.Given(weights), **{"times": np.linspace(0, 4, 11), **options})


def random_pair(d_out, hidden=4, seed=0, scale=0.6, **options):
    rng = np.random.default_rng(seed)
    half, target = rng.normal(size=3), rng.normal(size=d_out)
    weights = [scale * rng.normal(size=(hidden, 3)), scale * rng.normal(size=(d_out, hidden))]
    return pair(weights, half, target, rng.normal(size=d_out), **options)


def curves(trajectory, task):
    """H, P and w of recorded similarities and outputs."""
    similarity, outputs = (
        np.asarray(trajectory[name]).reshape(-1, 2, *np.shape(trajectory[name])[-1:])
        for name in ("similarity", "outputs")
    )
    H = similarity[:, 0, 0] + similarity[:, 1, 1] - 2 * similarity[:, 0, 1]
    dy = outputs[:, 1] - outputs[:, 0]
    P = np.sum(dy**2, axis=1)
    return H, P, P - dy @ (task.y[1] - task.y[0])


def readouts(predicted):
    return tuple(np.asarray(predicted[name]).reshape(len(predicted.times)) for name in PAIR)


@pytest.mark.parametrize("seed", range(3))
def test_with_one_output_the_whole_network_turns_as_predicted(seed):
    """Random weights, a sign of the target that differs from seed to seed, nothing assumed about the angle."""
    setup = random_pair(1, seed=seed)
    assert fs.covering(setup)["TwoPoint"].holds
    predicted = fs.solve(setup, "TwoPoint")
    flow = setup.replace(rule=fs.rules.GradientFlow(rtol=1e-11, atol=1e-13))
    trained = fs.simulate(flow, observe=["map", "loss", "similarity", "outputs", "input_representation"])
    for name in ("map", "loss", "input_representation"):
        np.testing.assert_allclose(predicted[name], trained[name][0], rtol=1e-7, atol=1e-9)
    for mine, true in zip(readouts(predicted), curves(trained, setup.task), strict=True):
        np.testing.assert_allclose(mine, true, rtol=1e-7, atol=1e-9)
    first = setup.weights(0)[0] @ (setup.task.x[1] - setup.task.x[0])
    last = fs.simulate(flow, observe="representation")["representation"][0, -1]
    last = last[1] - last[0]
    assert first @ last / np.linalg.norm(first) / np.linalg.norm(last) < 0.999  # it did turn


def test_training_with_one_output_approaches_it_at_order_one():
    errors = []
    for lr in (0.04, 0.02, 0.01):
        setup = random_pair(1, rule=fs.rules.GradientDescent(lr), times=0.04 * np.arange(0, 101, 10))
        predicted, trained = fs.solve(setup, "TwoPoint"), fs.simulate(setup, observe=["similarity", "outputs"])
        seen = curves(trained, setup.task)
        errors.append(max(np.abs(a - b).max() for a, b in zip(readouts(predicted), seen, strict=True)))
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 1, atol=0.1)


def straight_weights(rng, half, target, *, kind):
    """Layers of 4 hidden units whose difference on the pair does not turn."""
    u = rng.normal(size=4)
    first = np.outer(u, half) / (2 * half @ half) + rng.normal(size=(4, 3)) @ (
        np.eye(3) - np.outer(half, half) / (half @ half)
    )
    n = u / np.linalg.norm(u)
    away = np.eye(4) - np.outer(n, n)
    if kind == "one direction":
        return [first, np.outer(rng.normal(size=3), n)]
    blind = np.cross(target, rng.normal(size=3))
    if kind == "along the target":  # R may be anything that does not see the target
        return [first, 0.4 * np.outer(target, n) + np.outer(blind, away @ rng.normal(size=4))]
    # R sees neither the target nor dy, which are not parallel.
    v = rng.normal(size=3)
    return [first, np.outer(v, n) + np.outer(np.cross(target, v), away @ rng.normal(size=4))]


@pytest.mark.parametrize("kind", ["one direction", "along the target", "blind to both"])
def test_several_outputs_and_no_rotation(kind):
    rng = np.random.default_rng(7)
    half, target, mean = rng.normal(size=(3, 3))
    setup = pair(straight_weights(rng, half, target, kind=kind), half, target, mean)
    entry = fs.covering(setup)["TwoPoint"]
    assert entry.holds, entry.failed
    predicted = fs.solve(setup, "TwoPoint")
    flow = setup.replace(rule=fs.rules.GradientFlow(rtol=1e-11, atol=1e-13))
    trained = fs.simulate(flow, observe=["map", "loss", "similarity", "outputs", "kernel_distance"])
    for name in ("map", "loss", "outputs", "kernel_distance"):
        np.testing.assert_allclose(predicted[name], trained[name][0], rtol=1e-6, atol=1e-9)
    seen = curves(trained, setup.task)
    for mine, true in zip(readouts(predicted), seen, strict=True):
        np.testing.assert_allclose(mine, true, rtol=1e-7, atol=1e-9)
    # The contract with τ = 2 is the same curve.
    X, Y = 4 * half @ half, 4 * target @ target
    start = dict(zip(("distance0", "output0", "alignment0"), (curve[0] for curve in seen), strict=True))
    plain = trajectory(setup.times, **start, input_gap=X, target_gap=Y, tau_h=2.0, tau_y=2.0)
    np.testing.assert_allclose(plain, readouts(predicted), rtol=1e-9, atol=1e-12)


def test_a_turning_network_is_refused_with_the_speed_of_turning():
    setup = random_pair(2)
    entry = fs.covering(setup)["TwoPoint"]
    assert [a.name for a in entry.failed] == ["no rotation"]
    measured = entry.failed[0].measured
    assert measured > 0.01
    with pytest.raises(fs.NoTheory, match=f"no rotation: measured {measured:.3g}, needed <= 1e-06"):
        fs.solve(setup, "TwoPoint")
    # It is the angular speed of u under the flow, where one of the two parts vanishes.
    first, last = setup.weights(0)
    dx, target = (setup.task.x[1] - setup.task.x[0]), (setup.task.y[1] - setup.task.y[0])
    last = last - np.outer(last @ first @ dx, first @ dx) / np.sum((first @ dx) ** 2)
    setup = setup.replace(init=fs.inits.Given([first, last]))
    measured = fs.covering(setup)["TwoPoint"].failed[0].measured
    u, step = first @ dx, 1e-5
    speed = -(last.T @ (last @ u - target)) * (dx @ dx) / 4
    later = u + step * speed
    angle = np.arccos(u @ later / np.linalg.norm(u) / np.linalg.norm(later)) / step
    fastest = max(
        (dx @ dx * np.sum(last**2) + u @ u) / 4,
        np.sqrt(((dx @ dx * np.sum(last**2) + u @ u) / 4) ** 2 + 4 * (dx @ dx) / 16 * (target @ target)),
    )
    np.testing.assert_allclose(measured, angle / fastest, rtol=1e-3)


def test_its_error_vanishes_with_the_speed_of_turning():
    """Order 1: the number that is measured is the size of what is neglected."""
    rng = np.random.default_rng(3)
    half, target, mean = rng.normal(size=(3, 3))
    weights, bump = straight_weights(rng, half, target, kind="one direction"), rng.normal(size=(3, 4))
    errors, measured = [], []
    for size in (1e-3, 1e-4, 1e-5):
        setup = pair([weights[0], weights[1] + size * bump], half, target, mean)
        measured.append(fs.covering(setup)["TwoPoint"].failed[0].measured)
        flow = setup.replace(rule=fs.rules.GradientFlow(rtol=1e-11, atol=1e-13))
        predicted = fs.solve(setup, "TwoPoint", strict=False)
        errors.append(np.abs(predicted["map"] - fs.simulate(flow, observe="map")["map"][0]).max())
    np.testing.assert_allclose(np.diff(np.log10(measured)), -1, atol=0.05)
    assert np.diff(np.log10(errors))[-1] == pytest.approx(-1, abs=0.05)


def test_what_else_is_refused_says_what_was_found():
    setup = random_pair(1)
    x, y = setup.task.x, setup.task.y
    cases = {
        "opposite points": fs.tasks.from_arrays(x + 0.3, y),
        "two samples": fs.tasks.from_arrays(np.concatenate([x, x]), np.concatenate([y, y])),
    }
    for name, task in cases.items():
        failed = fs.covering(setup.replace(task=task))["TwoPoint"].failed
        assert [a.name for a in failed] == [name]
    assert failed[0].measured == "4 samples"
    moved = fs.covering(setup.replace(task=cases["opposite points"]))["TwoPoint"].failed[0]
    assert moved.measured == pytest.approx(np.sqrt(3) * 0.3 / np.linalg.norm(x[1] - x[0]))
    moments = fs.covering(setup.replace(task=setup.task.moments_only()))["TwoPoint"].failed
    assert [a.measured for a in moments] == ["moments only"]
    same = fs.tasks.from_arrays(0 * x, y)
    assumptions = fs.theories.TwoPoint().assumptions(setup.replace(task=same), 0)
    assert assumptions[-1].measured == np.inf


def test_a_mean_of_the_inputs_couples_the_two_parts():
    """Why it is refused: the law is missed by as much as the mean is large."""
    setup = random_pair(1)
    gaps = []
    for shift in (1e-2, 1e-3):
        moved = setup.replace(task=fs.tasks.from_arrays(setup.task.x + shift, setup.task.y))
        flow = moved.replace(rule=fs.rules.GradientFlow(rtol=1e-10, atol=1e-13))
        predicted, trained = fs.solve(moved, "TwoPoint", strict=False), fs.simulate(flow, observe=["outputs"])
        seen, told = trained["outputs"][0], predicted["outputs"]
        gaps.append(np.abs((seen[:, 1] - seen[:, 0]) - (told[:, 1] - told[:, 0])).max())
    assert 0.8 < np.log10(gaps[0] / gaps[1]) < 2.2
    assert gaps[1] > 1e-6


@pytest.mark.parametrize("d_out", [1, 2])
def test_a_start_at_the_saddle_is_named(d_out):
    half, target = np.array([1.0, 0.0]), np.eye(d_out)[0]
    weights = [np.array([[1.0, 0.0]]), -np.eye(d_out)[:, :1]]
    setup = pair(weights, half, target, times=[0.0, 1.0, 1e3])
    predicted = fs.solve(setup, "TwoPoint")
    assert "never learned: mode 1 (s = 1)" in predicted.provenance["note"]
    np.testing.assert_allclose(predicted["distance"][-1], 0, atol=1e-12)
    free = setup.replace(init=fs.inits.Given([weights[0], 0.5 * weights[1]]))
    assert fs.solve(free, "TwoPoint").provenance["note"] == ""


@pytest.mark.parametrize("d_out", [1, 3])
def test_one_layer_may_start_at_zero(d_out):
    rng = np.random.default_rng(1)
    half, target = rng.normal(size=2), rng.normal(size=d_out)
    for weights in ([np.zeros((1, 2)), rng.normal(size=(d_out, 1))], [rng.normal(size=(1, 2)), np.zeros((d_out, 1))]):
        setup = pair(weights, half, target)
        assert fs.covering(setup)["TwoPoint"].holds
        flow = setup.replace(rule=fs.rules.GradientFlow(rtol=1e-11, atol=1e-13))
        trained = fs.simulate(flow, observe="map")["map"][0]
        np.testing.assert_allclose(fs.solve(setup, "TwoPoint")["map"], trained, rtol=1e-7, atol=1e-9)


def test_it_is_chosen_where_it_says_more_and_agrees_with_what_it_displaces():
    rng = np.random.default_rng(2)
    half, hidden, target = rng.normal(size=2), rng.normal(size=3), rng.normal(size=2)
    weights = [0.3 * np.outer(hidden, half), 0.2 * np.outer(target, hidden)]
    setup = pair(weights, half, target)
    held = {entry.name for entry in fs.covering(setup) if entry.holds}
    assert {"TwoPoint", "UnbalancedModes"} <= held
    chosen, other = fs.solve(setup), fs.solve(setup, "UnbalancedModes")
    assert chosen.source == "TwoPoint"
    assert set(other) - set(chosen) == {"layer_strengths"}
    for name in set(other) & set(chosen):
        np.testing.assert_allclose(chosen[name], other[name], rtol=1e-9, atol=1e-12, err_msg=name)
    # A random network with one output has no other theory that is exact.
    lone = random_pair(1)
    assert fs.solve(lone).source == "TwoPoint"
    assert [e.name for e in fs.covering(lone) if e.holds and e.theory.exact] == ["TwoPoint"]


def test_a_fit_to_its_curves_finds_two_for_both_time_constants():
    predicted = fs.solve(random_pair(3, hidden=1, scale=0.1, times=np.linspace(0, 12, 61)), observe=PAIR)
    fitted = fs.fit("TwoPoint", predicted)
    np.testing.assert_allclose([fitted.tau_h, fitted.tau_y], 2.0, rtol=1e-8)


def test_layers_are_handed_on_in_a_sequence_of_tasks():
    setup = random_pair(1)
    second = fs.tasks.from_arrays(setup.task.x, -setup.task.y)
    both = setup.replace(task=fs.tasks.sequence([setup.task, second], 2.0), times=[0.0, 1.0, 2.0, 4.0])
    flow = both.replace(rule=fs.rules.GradientFlow(rtol=1e-11, atol=1e-13))
    trained = fs.simulate(flow, observe=["task_loss"])["task_loss"][0]
    np.testing.assert_allclose(fs.solve(both, observe="task_loss")["task_loss"], trained, rtol=1e-6, atol=1e-9)


START = dict(distance0=0.3, decoder0=0.8, along0=-0.2)
TASK = dict(input_gap=1.5, target_gap=0.7, tau_h=0.9, tau_y=2.1)


class TestFormulas:
    """The functions of `festina.theories.two_point`: in double, on plain numbers, checked."""

    calls = {
        "rotating": ([0.0, 2.0], START, TASK),
        "rotated_final_distance": (START, TASK),
        "invariant": (dict(distance=0.3, output=0.2, input_gap=1.5, tau_h=0.9, tau_y=2.1),),
        "rich_distance": (TASK,),
        "regime": (dict(distance=0.3, output=0.2), TASK),
        "lazy_limit": (dict(constant=-0.3),),
        "fixed_point_rates": (dict(distance=0.3, output=0.2), TASK),
        "plateau": (dict(output0=0.2, alignment0=0.1, target_gap=0.7),),
        "depth_law": (dict(input_gap=1.5, target_gap=0.7, layer=1, depth=4),),
        "law_of_final_distance": (dict(mean=0.4), TASK),
    }

    def call(self, name, **changes):
        times = [part for part in self.calls[name] if isinstance(part, list)]
        numbers = {key: value for part in self.calls[name] if isinstance(part, dict) for key, value in part.items()}
        return getattr(two_point, name)(*times, **{**numbers, **changes})

    @pytest.mark.parametrize("name", calls)
    def test_it_answers_in_float64_and_says_what_it_is(self, name):
        assert getattr(two_point, name).__doc__
        for leaf in jax.tree.leaves(self.call(name)):
            assert np.asarray(leaf).dtype == np.float64
            assert np.all(np.isfinite(leaf))
        assert not jax.config.jax_enable_x64

    def test_they_are_the_numbers_of_the_page(self):
        X, Y, kappa = 1.5, 0.7, 2.1 / 0.9
        A, B = 0.3 - kappa * X * 0.2 / 0.3, np.sqrt(kappa * X * Y)
        end = A / 2 + np.sqrt(A**2 / 4 + B**2)
        np.testing.assert_allclose(self.call("invariant"), A, rtol=1e-14)
        np.testing.assert_allclose(self.call("rich_distance"), B, rtol=1e-14)
        np.testing.assert_allclose(self.call("regime"), abs(A) / B, rtol=1e-14)
        rates = self.call("fixed_point_rates")
        np.testing.assert_allclose(rates, [end / 2.1, np.sqrt(A**2 + 4 * B**2) / 4.2], rtol=1e-13)
        np.testing.assert_allclose(self.call("depth_law"), np.sqrt(X * Y), rtol=1e-14)
        turned = 0.3 - kappa * X * 0.8
        apart = kappa * X * (0.3 * 0.8 - 0.04)
        wanted = turned / 2 + np.sqrt(turned**2 / 4 + B**2 + apart)
        np.testing.assert_allclose(self.call("rotated_final_distance"), wanted, rtol=1e-13)
        p = 0.1 / np.sqrt(Y)
        np.testing.assert_allclose(self.call("plateau"), Y / 8 * (1 - p**2 / 0.2), rtol=1e-13)

    def test_the_law_of_ends_keeps_its_digits_outside_of_double(self):
        law = self.call("law_of_final_distance")
        share = np.array([1e-9, 0.5, 1 - 1e-9])
        np.testing.assert_allclose(law.cdf(law.quantile(share)), share, rtol=1e-7)
        assert law.quantile(0.5).dtype == np.float64

    def test_the_law_of_ends_has_the_right_limits(self):
        law = self.call("law_of_final_distance")
        np.testing.assert_array_equal(law.cdf([-1.0, 0.0, 1e-300, 1e300, np.inf]), [0, 0, 0, 1, 1])
        np.testing.assert_array_equal(law.quantile([0.0, 1.0]), [0, np.inf])
        for share in (-0.1, 1.5):
            with pytest.raises(fs.BadInput, match=f"(?s)share = {share}.*0 <= share <= 1.*share of the draws"):
                law.quantile([0.5, share])
        slope = jax.grad(lambda distance: law.cdf(distance))
        assert slope(-1.0) == 0
        step = 1e-4
        near = (law.cdf(0.8 + step) - law.cdf(0.8 - step)) / (2 * step)
        np.testing.assert_allclose(slope(0.8), near, rtol=1e-4)

    def test_turning_is_seen_at_one_time_and_at_many(self):
        many = self.call("rotating")
        assert many.distance.shape == (2,)
        one = rotating(2.0, **START, **TASK)
        np.testing.assert_allclose(list(one), [curve[1] for curve in many], rtol=1e-14)
        assert rotating([0.0, 1.0], **{**START, "along0": np.zeros(3)}, **TASK).output.shape == (3, 2)
        late = rotating(1e6, **START, **TASK)
        np.testing.assert_allclose(late.distance, rotated_final_distance(**START, **TASK), rtol=1e-10)

    def test_the_loss_has_a_rate_of_its_own_for_the_mean(self):
        ts = np.linspace(0, 3, 4)
        start = dict(distance0=0.3, output0=0.2, alignment0=0.1)
        found = trajectory(ts, **start, **TASK)
        value = two_point.loss(ts, found, 0.7, mean_gap0=0.5, tau_mean=1.3)
        gap = np.asarray(found.output) - 2 * (np.asarray(found.output) - np.asarray(found.alignment)) + 0.7
        np.testing.assert_allclose(value, gap / 8 + 0.25 * np.exp(-2 * ts / 1.3), rtol=1e-12)

    @pytest.mark.parametrize("others", [4, 1])
    def test_a_loss_needs_the_times_of_its_curves(self, others):
        found = trajectory(np.linspace(0, 3, 5), distance0=0.3, output0=0.2, alignment0=0.1, **TASK)
        words = rf"(?s)curves.distance of shape \(5,\), and {others} times in ts.*last axis.*were computed"
        with pytest.raises(fs.BadInput, match=words):
            two_point.loss(np.linspace(0, 3, others), found, 0.7)

    @pytest.mark.parametrize(
        ("name", "changes", "words"),
        [
            ("rotating", dict(along0=0.6), r"along0 = 0.6 .*\|along0\| <= √\(distance0 decoder0\) = 0.489898"),
            ("rotating", dict(decoder0=-1.0), "decoder0 = -1.*decoder0 >= 0.*squared norm of the decoder"),
            ("rich_distance", dict(input_gap=0.0), "input_gap = 0.*input_gap > 0.*identical inputs"),
            ("invariant", dict(distance=0.0), "distance = 0.*distance > 0.*points differ in the layer"),
            ("fixed_point_rates", dict(tau_y=-2.0), "tau_y = -2.*tau_y > 0.*time constant"),
            ("plateau", dict(alignment0=3.0), r"alignment0 = 3 .*\|output0 − alignment0\|"),
            ("law_of_final_distance", dict(spread=-1.0), "spread = -1.*spread > 0.*standard deviation"),
            ("law_of_final_distance", dict(mean=-0.4), "mean = -0.4.*mean > 0.*ratio of squared distances"),
            ("depth_law", dict(layer=-1), "layer = -1.*layer >= 0.*count hidden layers from 0"),
            ("depth_law", dict(layer=7, depth=3), "layer = 7 with depth = 3.*layer <= depth − 2.*hidden layers \\+ 1"),
            ("depth_law", dict(layer=np.arange(4)), "layer = 3 with depth = 4.*layer <= depth − 2"),
            ("depth_law", dict(layer=0.5), "layer = 0.5.*whole number for layer.*count hidden layers from 0"),
            ("depth_law", dict(depth=3.5), "depth = 3.5.*whole number for depth.*number of matrices"),
        ],
    )
    def test_impossible_numbers_are_refused(self, name, changes, words):
        with pytest.raises(fs.BadInput, match=f"(?s){words}"):
            self.call(name, **changes)

    def test_times_before_the_start_are_refused(self):
        with pytest.raises(fs.BadInput, match=r"(?s)ts down to -1.*ts >= 0.*time 0"):
            rotating([-1.0, 0.0], **START, **TASK)

    def test_they_stay_inside_transformations(self):
        slope = jax.grad(lambda tau: rotated_final_distance(**START, **{**TASK, "tau_h": tau}))(0.9)
        step = 1e-6
        ends = [rotated_final_distance(**START, **{**TASK, "tau_h": 0.9 + sign * step}) for sign in (1, -1)]
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-4)


def test_pairs_that_are_asked_for_are_read_off_the_layers():
    setup = fs.theories.TwoPoint.example()
    names = ["distance", "output_distance", "output_alignment", "mean_gap"]
    own, both = (fs.solve(setup, "TwoPoint", observe=names, pairs=pairs) for pairs in (None, [(0, 1), (1, 0)]))
    assert both.to_xarray().sizes["pair"] == 2
    for name in names:
        for pair in (0, 1):
            np.testing.assert_allclose(both[name][..., pair], own[name][..., 0], rtol=1e-9, atol=1e-12, err_msg=name)
