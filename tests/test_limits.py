"""Theories of a limit: small random starts, and the frozen kernel."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import festina as fs
from festina.theories.small_random_modes import effective_starts


def test_the_mean_effective_start_of_the_first_mode():
    hidden, scale = 40, 1e-3
    one = fs.Setup(fs.tasks.contrasts(), fs.nets.DeepLinear(hidden), fs.inits.SmallRandom(scale), until=1.0)
    starts = [effective_starts(one.modes(seed), one.weights(seed))[1] for seed in range(200)]
    mean = np.mean(starts, axis=0) / (hidden * scale**2 / 2)
    error = 4 * np.sqrt(2 / hidden / 200)  # four standard errors of a mean of χ²
    assert abs(mean[0] - 1) < error
    # Each further mode has one hidden direction less.
    np.testing.assert_allclose(mean, 1 - np.arange(8) / hidden, atol=error)


@pytest.mark.parametrize("task", [fs.tasks.hierarchy(2), fs.tasks.tree((2, 2), 0.2)], ids=repr)
def test_it_predicts_the_times_of_training_from_random_weights(task):
    one = fs.Setup(task, fs.nets.DeepLinear(12), fs.inits.SmallRandom(1e-5), points=400)
    seen = fs.simulate(one, observe=["modes", "loss"])
    predicted = fs.solve(one, "SmallRandomModes")
    targets = task.modes().targets()
    half = lambda modes: np.array(  # noqa: E731
        [np.interp(0.5, modes[:, k] / targets[k], one.times) for k in range(len(targets)) if targets[k] > 1e-9]
    )
    true = half(seen["modes"][0])
    # The naive start, the top singular value of the map, is off by whole time constants.
    np.testing.assert_allclose(half(predicted["modes"]), true, rtol=0.02)
    top = np.linalg.norm(one.net.map(one.weights(0)), 2)
    naive = fs.theories.aligned_modes.time_to(
        targets[0] / 2, singular_value=task.spectrum()[0], variance=task.modes().variances[0], start=top
    )
    assert abs(naive - true[0]) > 3 * abs(half(predicted["modes"])[0] - true[0])


def test_modes_of_equal_size_find_their_own_basis():
    task = fs.tasks.from_moments(np.diag([2.0, 2.0, 0.2]), np.eye(3))
    errors = []
    for scale in (1e-2, 1e-3, 1e-4):
        one = fs.Setup(task, fs.nets.DeepLinear(6), fs.inits.SmallRandom(scale), until=60.0, points=300, spacing="log")
        errors.append(fs.compare(fs.solve(one, "SmallRandomModes"), fs.simulate(one, observe="map")).error("map"))
    order = np.diff(np.log10(errors))
    assert (order < -0.8).all(), errors


def test_a_narrow_net_learns_the_first_modes_and_says_so():
    task = fs.tasks.from_moments(np.diag([3.0, 2.0, 1.0]), np.eye(3))
    one = fs.Setup(task, fs.nets.DeepLinear(2), fs.inits.SmallRandom(1e-6), until=40.0)
    predicted = fs.solve(one, "SmallRandomModes")
    np.testing.assert_allclose(predicted["modes"][-1], [3, 2, 0], atol=1e-9)
    assert "never learned: mode 3 (s = 1); only 2 modes fit" in predicted.provenance["note"]
    np.testing.assert_allclose(fs.simulate(one, observe="modes")["modes"][0, -1], [3, 2, 0], atol=1e-3)


def test_a_narrow_net_that_gives_a_mode_up_is_refused():
    # Learned in order of s, kept in order of s²/λ: 1 and 4.5.
    task = fs.tasks.from_moments(np.diag([2.0, 1.5]), np.diag([4.0, 0.5]))
    one = fs.Setup(task, fs.nets.DeepLinear(1), fs.inits.SmallRandom(1e-4), until=60.0)
    np.testing.assert_allclose(fs.simulate(one, observe="modes")["modes"][0, -1], [0, 3], atol=1e-3)
    with pytest.raises(fs.NoTheory, match="room: measured 1"):
        fs.solve(one, "SmallRandomModes")
    assert fs.solve(one.replace(net=fs.nets.DeepLinear(2)), "SmallRandomModes").source == "SmallRandomModes"


def test_a_start_without_a_direction_loses_that_mode_alone():
    rng = np.random.default_rng(0)
    first, last = 1e-4 * rng.normal(size=(2, 3)), 1e-4 * rng.normal(size=(3, 2))
    first[:, 0] = last[0] = 0
    task = fs.tasks.from_moments(np.diag([3.0, 1.0, 0.2]), np.eye(3))
    one = fs.Setup(task, fs.nets.DeepLinear(2), fs.inits.Given([first, last]), until=200.0)
    predicted = fs.solve(one, "SmallRandomModes")
    np.testing.assert_allclose(predicted["modes"][-1], [0, 1, 0.2], atol=1e-9)
    assert "never learned: mode 1 (s = 3)" in predicted.provenance["note"]
    assert fs.compare(predicted, fs.simulate(one, observe="modes")).error("modes") < 1e-3


def test_the_kernel_moves_from_that_of_the_start_to_that_of_the_modes():
    theory = fs.theories.SmallRandomModes()
    errors = []
    for scale in theory.approach.values:
        one = theory.example_at(scale)
        predicted, seen = (
            fs.solve(one, theory)["kernel_distance"],
            fs.simulate(one, observe="kernel_distance")["kernel_distance"][0],
        )
        assert predicted[0] < 1e-14
        errors.append(abs(predicted[-1] - seen[-1]))
    # At the end; while all is small, the decay of what does not grow is left out.
    assert errors[-1] < 0.3 * errors[0], errors


def test_modes_that_are_hardly_apart_are_predicted_with_a_warning():
    one = fs.Setup(fs.tasks.contrasts(), fs.nets.DeepLinear(12), fs.inits.SmallRandom(1e-5))
    assert "error: measured" in fs.solve(one, "SmallRandomModes").provenance["note"]
    with pytest.raises(fs.NoTheory, match="error: measured"):
        fs.solve(one)


def test_large_weights_are_refused():
    one = fs.Setup(fs.tasks.hierarchy(2), fs.nets.DeepLinear(8), fs.inits.SmallRandom(0.5))
    with pytest.raises(fs.NoTheory, match="small start: measured"):
        fs.solve(one, "SmallRandomModes")


NETS = [
    (fs.nets.DeepLinear((6, 5)), fs.inits.SmallRandom(0.5)),
    (fs.nets.MLP(7, "tanh"), fs.inits.SmallRandom(0.7)),
    (fs.nets.MLP((6, 4), "relu", bias=True), fs.inits.SmallRandom(0.7)),
]


@pytest.mark.parametrize(("net", "init"), NETS, ids=repr)
def test_the_frozen_kernel_is_the_flow_of_the_linearised_network(net, init, double):
    task = fs.tasks.regression(3, 2, samples=7, seed=4, whiten=False)
    one = fs.Setup(task, net, init, times=[0.0, 0.3, 2.0])
    predicted = fs.solve(one, "FrozenKernel")
    weights = one.weights(0)

    def linearised(moved):
        outputs, slope = jax.jvp(lambda w: net.apply(w, task.x), (weights,), (moved,))
        return outputs + slope

    def slope(moved):
        return jax.grad(lambda m: 0.5 * ((linearised(m) - task.y) ** 2).sum() / 7)(moved)

    from scipy.integrate import solve_ivp

    flat, unflatten = jax.flatten_util.ravel_pytree(jax.tree.map(np.zeros_like, weights))
    field = jax.jit(lambda f: -jax.flatten_util.ravel_pytree(slope(unflatten(f)))[0])
    done = solve_ivp(lambda t, f: np.asarray(field(f)), (0, 2), flat, "DOP853", one.times, rtol=1e-11, atol=1e-13)
    true = np.stack([np.asarray(linearised(unflatten(f))) for f in done.y.T])
    np.testing.assert_allclose(predicted["outputs"], true, atol=1e-8)
    losses = 0.5 * np.mean(np.sum((true - task.y) ** 2, axis=2), axis=1)
    np.testing.assert_allclose(predicted["loss"], losses, atol=1e-8)
    if isinstance(net, fs.nets.DeepLinear):
        # A linear map is its outputs at the unit inputs, whatever inputs it is trained on.
        maps = [jax.jvp(net.map, (weights,), (unflatten(f),)) for f in done.y.T]
        np.testing.assert_allclose(predicted["map"], np.stack([start + moved for start, moved in maps]), atol=1e-8)


def test_the_frozen_kernel_is_not_chosen_where_the_kernel_moves():
    task = fs.tasks.contrasts()
    one = fs.Setup(task, fs.nets.DeepLinear(8), fs.inits.Balanced(0.0, 0.3), until=60.0)
    frozen = fs.solve(one, "FrozenKernel", observe=["loss", "kernel_distance", "input_representation"])
    assert (frozen["kernel_distance"] == 0).all()
    true = fs.solve(one, "BalancedRiccati")
    assert frozen["loss"][0] == pytest.approx(true["loss"][0])
    # It says by how much the kernel would have moved.
    assert fs.solve(one).source == "BalancedRiccati"
    lazy = fs.covering(one)["FrozenKernel"].assumptions[-1]
    assert lazy.name == "lazy"
    assert not lazy.holds
    assert lazy.advisory
    assert "lazy: measured" in frozen.provenance["note"]


@pytest.mark.parametrize("seed", range(3))
def test_lazy_and_rich_limits_bracket_the_half_time_from_large_weights_only(seed):
    def half_times(scale):
        """Of the frozen kernel and of the small start, over that of training."""
        times = np.concatenate([[0.0], np.geomspace(1e-3, 80, 800)])
        one = fs.Setup(fs.tasks.hierarchy(2), fs.nets.DeepLinear(12), fs.inits.SmallRandom(scale), times=times)
        losses = [
            fs.solve(one, theory, seed=seed, strict=False, observe="loss")["loss"]
            for theory in ("FrozenKernel", "SmallRandomModes")
        ]
        frozen, small, true = (
            np.interp(0.5, 1 - loss / loss[0], times) for loss in (*losses, fs.simulate(one, [seed], "loss")["loss"][0])
        )
        return frozen / true, small / true

    # Large weights learn before their modes could grow, and their kernel moves too: twelve hidden units are few.
    frozen, small = half_times(1.0)
    assert 0.8 < frozen < 1
    assert small > 1.5
    # From small weights the modes are right; a kernel that does not grow with them is far too slow.
    frozen, small = half_times(0.01)
    assert small == pytest.approx(1, abs=0.01)
    assert frozen > 5
    # Between them both are late.
    frozen, small = half_times(0.2)
    assert frozen > 1
    assert small > 1.05


def test_a_kernel_too_large_to_hold_is_refused():
    task = fs.tasks.from_arrays(np.ones((3000, 2)), np.ones((3000, 2)))
    one = fs.Setup(task, fs.nets.MLP(3), fs.inits.SmallRandom(0.1), times=[1.0])
    with pytest.raises(fs.NoTheory, match="kernel: measured 6e"):
        fs.solve(one, "FrozenKernel")
