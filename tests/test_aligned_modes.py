"""AlignedModes against an integration of the weights that shares no code with it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import festina as fs
from festina._verbs.covering import coverage
from festina.theories.aligned_modes import mode, time_to

D_IN, D_OUT, WIDTH = 4, 3, 5
numbers = st.integers(0, 2**32 - 1)


def world(seed: int, *, rank: int = D_OUT) -> tuple[fs.Task, np.ndarray, np.ndarray]:
    """A task with shared modes, unequal variances, and its vectors."""
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.normal(size=(D_OUT, D_OUT)))[0]
    right = np.linalg.qr(rng.normal(size=(D_IN, D_IN)))[0]
    variances = rng.uniform(0.2, 2.0, D_IN)
    values = np.where(np.arange(D_OUT) < rank, np.sort(rng.uniform(0.2, 2.0, D_OUT))[::-1], 0.0)
    cov_yx = left @ np.diag(values) @ right[:, :D_OUT].T
    cov_y = cov_yx @ np.linalg.inv(right @ np.diag(variances) @ right.T) @ cov_yx.T + 0.1 * np.eye(D_OUT)
    return fs.tasks.from_moments(cov_yx, right @ np.diag(variances) @ right.T, cov_y), left, right[:, :D_OUT]


def aligned_weights(
    depth: int, strengths: np.ndarray, left: np.ndarray, right: np.ndarray, seed: int
) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    bases = [right, *(np.linalg.qr(rng.normal(size=(WIDTH, D_OUT)))[0] for _ in range(depth - 1)), left]
    layer = np.abs(strengths) ** (1 / depth)
    weights = [out * layer @ into.T for into, out in itertools.pairwise(bases)]
    weights[-1] = left * (layer * np.sign(strengths)) @ bases[-2].T
    return weights


def integrated(task: fs.Task, weights: list[np.ndarray], times: np.ndarray) -> np.ndarray:
    """The map along gradient flow of the loss, by SciPy on all weights at once."""
    sizes, shapes = np.cumsum([w.size for w in weights])[:-1], [w.shape for w in weights]

    def unpack(flat):
        return [part.reshape(shape) for part, shape in zip(np.split(flat, sizes), shapes, strict=True)]

    def product(layers, size):
        total = np.eye(size)
        for layer in layers:
            total = layer @ total
        return total

    def speed(_, flat):
        layers = unpack(flat)
        error = task.cov_yx - product(layers, task.d_in) @ task.cov_x
        slopes = [
            product(layers[i + 1 :], layers[i].shape[0]).T @ error @ product(layers[:i], task.d_in).T
            for i in range(len(layers))
        ]
        return np.concatenate([s.ravel() for s in slopes])

    # From time to time, because between its steps SciPy interpolates with a lower order.
    states = [np.concatenate([w.ravel() for w in weights])]
    for begin, end in itertools.pairwise(times):
        states.append(solve_ivp(speed, (begin, end), states[-1], method="DOP853", rtol=1e-11, atol=1e-14).y[:, -1])
    return np.stack([product(unpack(flat), task.d_in) for flat in states])


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@settings(max_examples=10)
@given(
    seed=numbers, start=st.sampled_from([1e-3, 0.1, 1.0, 4.0]), signs=st.tuples(*[st.sampled_from([1, 1, -1])] * D_OUT)
)
def test_it_is_the_gradient_flow_of_the_weights(depth, seed, start, signs):
    task, left, right = world(seed)
    strengths = start * np.array(signs) * np.array([1.0, 0.7, 1.3])
    weights = aligned_weights(depth, strengths, left, right, seed)
    times = np.linspace(0, 6, 7)
    setup = fs.Setup(task, fs.nets.DeepLinear((WIDTH,) * (depth - 1)), fs.inits.Given(weights), times=times)
    predicted = fs.solve(setup, "AlignedModes")
    true = integrated(task, weights, times)
    # Modes decaying towards the saddle amplify the integrator's rounding off the modes.
    np.testing.assert_allclose(predicted["map"], true, atol=1e-7 * np.abs(true).max())


@pytest.mark.parametrize("depth", [1, 2, 3])
@settings(max_examples=5)
@given(seed=numbers)
def test_rank_deficient_tasks_and_silent_modes(depth, seed):
    task, left, right = world(seed, rank=1)
    weights = aligned_weights(depth, np.array([0.1, 0.4, 0.2]), left, right, seed)
    times = np.linspace(0, 6, 7)
    setup = fs.Setup(task, fs.nets.DeepLinear((WIDTH,) * (depth - 1)), fs.inits.Given(weights), times=times)
    np.testing.assert_allclose(fs.solve(setup, "AlignedModes")["map"], integrated(task, weights, times), atol=1e-7)


def test_unequal_starts_inside_a_degenerate_level_are_recognised():
    # All singular values equal: any basis is a basis of modes, and the start picks one.
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    task = fs.tasks.from_moments(np.eye(4), np.eye(4), np.eye(4))
    weights = aligned_weights_square(basis, np.array([0.3, 0.1, 0.02, 0.5]))
    times = np.linspace(0, 5, 6)
    setup = fs.Setup(task, fs.nets.DeepLinear(4), fs.inits.Given(weights), times=times)
    predicted, trained = fs.solve(setup, "AlignedModes"), fs.simulate(setup, observe=["map", "modes"])
    np.testing.assert_allclose(trained["map"][0], predicted["map"], atol=1e-8)
    np.testing.assert_allclose(trained["modes"][0], predicted["modes"], atol=1e-8)


def aligned_weights_square(basis, strengths):
    return [np.diag(np.sqrt(strengths)) @ basis.T, basis @ np.diag(np.sqrt(strengths))]


def block(large, small):
    """A matrix with one large entry and a small block."""
    whole = np.zeros((len(small) + 1,) * 2)
    whole[0, 0], whole[1:, 1:] = large, small
    return whole


def test_a_large_mode_does_not_hide_small_weights_off_the_modes():
    rng = np.random.default_rng(0)
    task = fs.tasks.from_moments(np.diag([1.0, 0.9, 0.8]), np.eye(3))
    weights = [block(1.0, 1e-4 * rng.normal(size=(2, 2))) for _ in range(2)]
    setup = fs.Setup(task, fs.nets.DeepLinear(3), fs.inits.Given(weights), until=20.0)
    for theory in ("AlignedModes", "AlignedChains"):
        with pytest.raises(fs.NoTheory, match="aligned: measured"):
            fs.solve(setup, theory)


def test_a_large_mode_does_not_hide_imbalance_of_a_small_one():
    task = fs.tasks.from_moments(np.diag([1.0, 0.9]), np.eye(2))
    weights = [np.diag([1.0, 1e-3]), np.diag([1.0, 1e-5])]
    setup = fs.Setup(task, fs.nets.DeepLinear(2), fs.inits.Given(weights), until=20.0)
    with pytest.raises(fs.NoTheory, match=r"balanced: measured 0\.99"):
        fs.solve(setup, "AlignedModes")
    assert fs.solve(setup).source == "UnbalancedModes"


def test_a_large_variance_does_not_hide_small_inputs_that_share_no_modes():
    small = 1e-7 * np.array([[2.0, 1.0], [1.0, 2.0]])
    task = fs.tasks.from_moments(block(1.0, 1e-7 * np.diag([1.0, 0.5])), block(1.0, small))
    setup = fs.Setup(task, fs.nets.DeepLinear(3), fs.inits.Aligned(0.1), until=1e8)
    with pytest.raises(fs.NoTheory, match="shared modes: measured"):
        fs.solve(setup, "AlignedModes")


@given(scale=st.sampled_from([1e-12, 1e-6, 1.0, 1e6]), size=st.sampled_from([1e-6, 1.0, 1e3]))
def test_assumptions_do_not_depend_on_units(scale, size):
    task = fs.tasks.from_moments(size * np.diag([1.0, 0.5]), size * np.eye(2))
    setup = fs.Setup(task, fs.nets.DeepLinear(3), fs.inits.Aligned(scale), until=1.0)
    assert coverage(setup, "AlignedModes").holds
    bent = [w + 0.01 * np.sqrt(scale) * np.random.default_rng(0).normal(size=w.shape) for w in setup.weights(0)]
    assert not coverage(setup.replace(init=fs.inits.Given(bent)), "AlignedModes").holds


def test_a_mode_far_below_the_others_is_still_learned():
    task = fs.tasks.from_moments(np.diag([1.0, 0.9]), np.eye(2))
    setup = fs.Setup(task, fs.nets.DeepLinear(2), fs.inits.Aligned([1.0, 1e-26]), times=[20.0, 60.0])
    predicted = fs.solve(setup, "AlignedModes")["modes"][:, 1]
    np.testing.assert_allclose(predicted, mode([20.0, 60.0], singular_value=0.9, variance=1.0, start=1e-26), rtol=1e-2)
    assert predicted[1] > 0.89


def test_a_bottleneck_learns_the_modes_that_fit():
    setup = fs.Setup(fs.tasks.hierarchy(levels=2), fs.nets.DeepLinear(2), fs.inits.Aligned(1e-2), until=200, points=5)
    final = fs.solve(setup, "AlignedModes")["modes"][-1]
    np.testing.assert_allclose(final, [math.sqrt(7), math.sqrt(3), 0, 0], atol=1e-9)
    np.testing.assert_allclose(fs.simulate(setup)["modes"][0, -1], final, atol=1e-9)


def test_the_loss_counts_what_no_linear_map_can_explain():
    rng = np.random.default_rng(1)
    x, noise = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    task = fs.tasks.from_arrays(x, x @ rng.normal(size=(3, 2)) + noise)
    residual = task.y - x @ np.linalg.lstsq(x, task.y, rcond=None)[0]
    np.testing.assert_allclose(task.floor(), 0.5 * np.mean(np.sum(residual**2, axis=1)), rtol=1e-12)


class TestMode:
    """The functions that a user calls on plain numbers."""

    def test_shapes_are_times_first(self):
        times = np.linspace(0, 3, 7)
        assert mode(times, singular_value=1.0, variance=1.0, start=0.1, depth=2).shape == (7,)
        assert mode(times, singular_value=np.ones(4), variance=1.0, start=0.1, depth=3).shape == (7, 4)
        assert mode(2.0, singular_value=np.ones((4, 1)), variance=np.ones(3), start=0.1, depth=1).shape == (4, 3)

    def test_answers_are_float64_without_any_setting(self):
        for depth in (1, 2, 3, math.inf):
            value = mode([1.0], singular_value=1.0, variance=1.0, start=0.1, depth=depth)
            assert isinstance(value, np.ndarray)
            assert value.dtype == np.float64

    @pytest.mark.parametrize("depth", [1, 2, 3, 7, math.inf])
    def test_time_to_inverts_mode(self, depth):
        target = np.array([0.2, 1.0, 1.9, 1.9999])
        when = time_to(target, singular_value=1.0, variance=0.5, start=0.1, depth=depth)
        np.testing.assert_allclose(
            np.diag(mode(when, singular_value=np.ones(4), variance=0.5, start=0.1, depth=depth)), target, rtol=1e-12
        )

    def test_unreachable_strengths_take_for_ever(self):
        assert time_to(3.0, singular_value=1.0, variance=0.5, start=0.1, depth=2) == np.inf
        assert time_to(0.05, singular_value=1.0, variance=0.5, start=0.1, depth=2) == np.inf
        assert time_to(0.5, singular_value=1.0, variance=0.5, start=0.0, depth=3) == np.inf
        assert time_to(0.5, singular_value=1.0, variance=0.5, start=-0.1, depth=2) == np.inf
        assert np.isfinite(time_to(0.5, singular_value=1.0, variance=0.5, start=-0.1, depth=1))

    def test_negative_times_are_refused(self):
        with pytest.raises(fs.BadInput, match="times down to -1"):
            mode([0.0, -1.0], singular_value=1.0, start=0.1)

    @pytest.mark.parametrize("depth", [0, -1, 1.5, True, "2", -math.inf])
    def test_impossible_depths(self, depth):
        with pytest.raises(fs.BadInput, match="depth"):
            mode([1.0], singular_value=1.0, start=0.1, depth=depth)

    @pytest.mark.parametrize(
        "bad", [dict(variance=-1.0), dict(start=np.nan), dict(singular_value=np.inf), dict(singular_value="x")]
    )
    def test_impossible_numbers_are_named(self, bad):
        with pytest.raises(fs.BadInput, match=next(iter(bad))):
            mode([1.0], **{**dict(singular_value=1.0, variance=1.0, start=0.1), **bad})
