"""Saddles of two-layer linear networks: against gradients and Hessians by autodiff, and against gradient flow."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

import festina as fs
from festina._setup import loss as _objective

# s, λ of the modes, λ of the other inputs, d_out, hidden
CASES = {
    "white": ([3, 2, 1], [1, 1, 1], [], 3, 3),
    "shared modes": ([3, 2, 1], [4, 0.5, 0.1], [0.7], 3, 3),
    "bottleneck": ([3, 2, 1], [4, 0.5, 0.1], [], 4, 2),
    "one unit": ([2, 1.5, 1], [4, 0.5, 1], [2], 3, 1),
    "more outputs": ([2, 1], [1, 3], [], 4, 3),
    "more inputs": ([2, 1], [1, 3], [2, 0.5], 2, 3),
    "equal s": ([2, 2, 1], [1, 1, 1], [], 3, 2),
    "equal s, unequal variance": ([2, 2, 1], [1, 3, 1], [], 3, 2),
    "equal gain, unequal s": ([2, 1, 0.8], [4, 1, 0.3], [], 3, 3),
    "all equal": ([1, 1, 1], [1, 1, 1], [], 4, 2),
    "silent mode": ([2, 1], [1, 2], [0.5, 1], 4, 4),
    "silent input": ([2, 1], [1, 2], [0], 2, 3),
}
every_case = pytest.mark.parametrize("name", CASES)


def rotation(size, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


def world(s, variances, others, d_out, noise=0.5, seed=0):
    """A task with these modes in random bases; `noise` adds to ⟨y yᵀ⟩ what no input explains."""
    s, every = np.asarray(s, float), np.concatenate([variances, others])
    left, right = rotation(d_out, seed)[:, : len(s)], rotation(len(every), seed + 1)
    signal = right[:, : len(s)]
    cov_y = (left * (s**2 / variances)) @ left.T + noise * np.eye(d_out)
    return fs.tasks.from_moments((left * s) @ signal.T, (right * every) @ right.T, cov_y)


def case(name):
    *spectrum, hidden = CASES[name]
    task = world(*spectrum)
    return task, hidden, fs.saddles(task, hidden)


def landscape(task, net, points):
    """Losses, gradients and Hessians of the loss at points in the space of weights."""
    vectors = np.array([np.concatenate([layer.ravel() for layer in weights]) for weights in points])
    return map(np.asarray, _landscape(net, _objective.evidence_of(net, task), vectors, (task.d_in, task.d_out)))


@functools.partial(jax.jit, static_argnames=("net", "sizes"))
def _landscape(net, seen, vectors, sizes):
    unravel = ravel_pytree([jnp.zeros(shape) for shape in net.shapes(*sizes)])[1]

    def loss(vector):
        return _objective.loss(net, seen, unravel(vector))

    return tuple(jax.vmap(function)(vectors) for function in (loss, jax.grad(loss), jax.hessian(loss)))


def index_of(hessian):
    """Negative eigenvalues, with a wide gap between them and rounding."""
    values = np.linalg.eigvalsh(hessian) / np.abs(hessian).max()
    assert not np.any((np.abs(values) > 1e-11) & (np.abs(values) < 1e-3)), values
    return int(np.sum(values < -1e-6))


@every_case
@pytest.mark.usefixtures("double")
def test_every_saddle_is_critical_and_its_loss_and_index_are_right(name):
    task, hidden, found = case(name)
    points = [found.weights(position, hidden_basis_seed=position) for position in range(len(found))]
    for (lower, upper), function in zip(points, found.maps, strict=True):
        assert (lower.shape, upper.shape) == ((hidden, task.d_in), (task.d_out, hidden))
        np.testing.assert_allclose(upper.T @ upper, lower @ lower.T, atol=1e-13)
        np.testing.assert_allclose(upper @ lower, function, atol=1e-13)
    losses, gradients, hessians = landscape(task, fs.nets.DeepLinear(hidden), points)
    np.testing.assert_allclose(gradients, 0, atol=1e-13)
    np.testing.assert_allclose(losses, found.losses, rtol=1e-12)
    assert [index_of(hessian) for hessian in hessians] == found.indices.tolist()


@pytest.mark.usefixtures("double")
def test_the_index_is_that_of_the_whole_manifold():
    task, hidden, found = case("shared modes")
    mix = rotation(hidden, 1) * [0.5, 1, 2]
    balanced = [found.weights(position) for position in range(len(found))]
    points = [(mix @ lower, upper @ np.linalg.inv(mix)) for lower, upper in balanced]
    _, gradients, hessians = landscape(task, fs.nets.DeepLinear(hidden), points)
    np.testing.assert_allclose(gradients, 0, atol=1e-12)
    assert [index_of(hessian) for hessian in hessians] == found.indices.tolist()


@pytest.mark.parametrize("name", ["equal s", "equal gain, unequal s", "all equal"])
@pytest.mark.usefixtures("double")
def test_a_family_shares_loss_and_index(name):
    task, hidden, found = case(name)
    gains = found.modes.singular_values**2 / found.modes.variances
    points = []
    for position in np.flatnonzero(found.family):
        subset = found.subsets[position]
        inside, outside = next(
            (i, j) for i in subset for j in range(len(gains)) if j not in subset and np.isclose(gains[i], gains[j])
        )
        # The output direction of mode `inside` is turned halfway towards the mode of equal gain; the
        # critical function is the best map projected onto these output directions [baldi1989, fact 4].
        upper = np.zeros((task.d_out, hidden))
        upper[:, : len(subset)] = found.modes.left[:, list(subset)]
        upper[:, subset.index(inside)] = (found.modes.left[:, inside] + found.modes.left[:, outside]) / np.sqrt(2)
        points.append((upper.T @ task.target(), upper))
        assert np.linalg.norm(upper @ points[-1][0] - found.maps[position]) > 0.1
    assert points
    losses, gradients, hessians = landscape(task, fs.nets.DeepLinear(hidden), points)
    np.testing.assert_allclose(gradients, 0, atol=1e-13)
    np.testing.assert_allclose(losses, found.losses[found.family], rtol=1e-12)
    assert [index_of(hessian) for hessian in hessians] == found.indices[found.family].tolist()


def test_families_are_told_from_single_functions():
    def families(name):
        found = case(name)[2]
        return {subset for subset, family in zip(found.subsets, found.family, strict=True) if family}

    assert families("equal s") == {(0,), (1,), (0, 2), (1, 2)}
    assert families("equal s, unequal variance") == set()
    assert families("equal gain, unequal s") == {(0,), (1,), (0, 2), (1, 2)}
    assert families("white") == set()


@pytest.mark.parametrize("name", ["white", "bottleneck"])
def test_no_critical_value_is_missing(name):
    task, hidden, found = case(name)
    shapes = [(hidden, task.d_in), (task.d_out, hidden)]
    cut = hidden * task.d_in

    def gradient(vector):
        lower, upper = vector[:cut].reshape(shapes[0]), vector[cut:].reshape(shapes[1])
        error = upper @ lower @ task.cov_x - task.cov_yx
        return np.concatenate([(upper.T @ error).ravel(), (error @ lower.T).ravel()])

    rng, seen = np.random.default_rng(0), set()
    for _ in range(60):
        end = least_squares(gradient, rng.normal(size=cut + hidden * task.d_out), xtol=1e-15, ftol=1e-15, gtol=1e-15)
        if np.abs(end.fun).max() > 1e-9:
            continue
        lower, upper = end.x[:cut].reshape(shapes[0]), end.x[cut:].reshape(shapes[1])
        error = upper @ lower - task.target()
        gap = np.abs(task.floor() + 0.5 * np.sum((error @ task.cov_x) * error) - found.losses)
        assert gap.min() < 1e-7, "a critical point whose loss is not listed"
        seen.add(int(gap.argmin()))
    assert len(seen) >= len(found) - 2  # not vacuous: nearly all are met from random weights


def test_the_table_of_the_theory_page():
    found = fs.saddles(world([3, 2, 1], [1, 1, 1], [], 3, noise=0), 3)
    table = dict(zip(found.subsets, found.indices.tolist(), strict=True))
    assert table == {(): 9, (0,): 4, (1,): 5, (2,): 6, (0, 1): 1, (0, 2): 2, (1, 2): 3, (0, 1, 2): 0}
    assert found.subsets == ((), (2,), (1,), (1, 2), (0,), (0, 2), (0, 1), (0, 1, 2))
    np.testing.assert_allclose(found.losses[found.nested()], [7, 2.5, 0.5, 0], atol=1e-14)
    assert found.minimum == len(found) - 1


@pytest.mark.parametrize("hidden", [1, 2, 3, 4, 7])
def test_counts(hidden):
    task = world([4, 3, 2, 1], [1, 2, 0.1, 3], [], 5)
    found = fs.saddles(task, hidden)
    assert len(found) == len(set(found.subsets)) == sum(math.comb(4, k) for k in range(min(hidden, 4) + 1))
    assert np.sum(found.indices == 0) == 1
    assert found.minimum == np.argmin(found.losses)
    assert np.all(np.diff(found.losses) < 0)
    assert [len(found.subsets[p]) for p in found.nested()] == list(range(min(hidden, 4) + 1))
    assert fs.saddles(task, fs.nets.DeepLinear(hidden)) == found


def test_equal_losses_are_sorted_by_size_and_then_by_mode_whatever_their_rounding():
    # Gains 9, 4, 4, 5 in inputs that are not along the axes: 9 = 4 + 5 ties sizes, 4 = 4 ties modes.
    found = fs.saddles(world([3, math.sqrt(5), 2, 2], [1, 1, 1, 1], [], 4, seed=5), 4)
    lost = [round(2 * (x - found.losses[-1])) for x in found.losses]
    assert lost == sorted(lost, reverse=True)
    assert list(found.subsets) == sorted(
        found.subsets, key=lambda subset: (sum([9, 5, 4, 4][k] for k in subset), len(subset), subset)
    )


def flow(task, hidden, size, until, seed=0):
    """Maps along gradient flow from small random weights, integrated by SciPy."""
    shapes = [(hidden, task.d_in), (task.d_out, hidden)]
    cut = hidden * task.d_in

    def velocity(_, vector):
        lower, upper = vector[:cut].reshape(shapes[0]), vector[cut:].reshape(shapes[1])
        error = task.cov_yx - upper @ lower @ task.cov_x
        return np.concatenate([(upper.T @ error).ravel(), (error @ lower.T).ravel()])

    start = size * np.random.default_rng(seed).normal(size=cut + hidden * task.d_out)
    end = solve_ivp(velocity, (0, until), start, "DOP853", np.linspace(0, until, 2000), rtol=1e-9, atol=1e-14)
    return np.array([v[cut:].reshape(shapes[1]) @ v[:cut].reshape(shapes[0]) for v in end.y.T])


def visited(found, maps, near):
    """Positions of the saddles that a path comes near to, in the order of closest approach."""
    distance = found.distance(maps)
    close = np.flatnonzero(distance.min(axis=0) < near)
    return [found.subsets[p] for p in close[np.argsort(distance.argmin(axis=0)[close])]]


def test_modes_are_learned_by_s_but_ranked_by_gain_under_a_bottleneck():
    task = world([2, 1], [4, 0.2], [], 2)  # gains 1 and 5
    narrow = fs.saddles(task, 1)
    assert narrow.subsets[narrow.minimum] == (1,)
    assert [narrow.subsets[p] for p in narrow.nested()] == [(), (0,)]
    assert narrow.indices[narrow.nested()].tolist() == [2, 1]
    assert visited(narrow, flow(task, 1, 1e-6, 60), near=0.02) == [(), (0,), (1,)]
    wide = fs.saddles(task, 3)
    path = visited(wide, flow(task, 3, 1e-6, 60), near=0.02)
    assert path == [wide.subsets[p] for p in wide.nested()] == [(), (0,), (0, 1)]


def test_distance_is_the_frobenius_distance():
    task, _, found = case("shared modes")
    rng = np.random.default_rng(2)
    maps = rng.normal(size=(2, 5, task.d_out, task.d_in))
    direct = np.linalg.norm(maps[:, :, None] - found.maps, axis=(-2, -1))
    np.testing.assert_allclose(found.distance(maps), direct, rtol=1e-13)
    assert found.distance(maps[0, 0]).shape == (len(found),)
    # Near a saddle the digits of the distance are those of the map itself.
    step = rng.normal(size=maps.shape[-2:])
    for position, saddle in enumerate(found.maps):
        near = found.distance(saddle + 1e-12 * step)[position]
        np.testing.assert_allclose(near, 1e-12 * np.linalg.norm(step), rtol=2e-3)


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.usefixtures("double")
def test_zero_is_a_strict_saddle_of_two_layers_only(depth):
    task, hidden, found = case("white")
    net = fs.nets.DeepLinear((hidden,) * (depth - 1))
    zero = [[np.zeros(shape) for shape in net.shapes(task.d_in, task.d_out)]]
    _, gradients, hessians = landscape(task, net, zero)
    np.testing.assert_array_equal(gradients, 0)
    if depth == 2:
        assert index_of(hessians[0]) == found.indices[0]
    else:
        np.testing.assert_array_equal(hessians, 0)


def test_nothing_to_learn_leaves_one_minimum():
    found = fs.saddles(fs.tasks.from_moments(np.zeros((2, 3)), np.eye(3)), 2)
    assert (found.subsets, found.indices.tolist(), found.minimum) == (((),), [0], 0)
    np.testing.assert_allclose(found.distance(np.ones((2, 3))), [math.sqrt(6)])
    assert not found.weights(0)[0].any()


def test_table_and_dataset():
    task = fs.tasks.from_moments(
        np.diag([3.0, 2]), np.eye(2), np.diag([9.0, 4]), inputs=["p", "q"], features=["u", "v"]
    )
    found = fs.saddles(task, 2)
    lines = repr(found).splitlines()
    assert lines[0] == "Saddles(critical values: 4, modes: 2, hidden: 2)"
    assert [line.split() for line in lines[1:]] == [
        ["subset", "loss", "index", "kind"],
        ["{}", "6.5", "4", "strict", "saddle"],
        ["{1}", "4.5", "2", "strict", "saddle"],
        ["{0}", "2", "1", "strict", "saddle"],
        ["{0,", "1}", "0", "0", "minimum"],
    ]
    data = found.to_xarray()
    assert data["subset"].values.tolist() == ["{}", "{1}", "{0}", "{0, 1}"]
    assert data["map"].sel(feature="u", input="p").values.tolist() == [0, 0, 3, 3]
    assert data["member"].values.tolist() == [[False, False], [False, True], [True, False], [True, True]]
    long = repr(fs.saddles(fs.tasks.from_moments(np.diag(np.arange(1.0, 9)), np.eye(8)), 8))
    assert "… 232 more" in long
    assert len(long.splitlines()) == 2 + 24 + 1


def test_bad_input_says_what_to_do():
    task = world([3, 2, 1], [1, 1, 1], [], 3)
    with pytest.raises(fs.BadInput, match=r"task is Setup\(.*\n.*a Task\n.*give setup\.task"):
        fs.saddles(fs.Setup(task, fs.nets.DeepLinear(3), fs.inits.Aligned(1e-3)), 3)  # pyright: ignore
    with pytest.raises(fs.BadInput, match=r"hidden = 0\n.*whole number >= 1"):
        fs.saddles(task, 0)
    with pytest.raises(fs.BadInput, match=r"hidden = MLP"):
        fs.saddles(task, fs.nets.MLP(3))  # pyright: ignore
    with pytest.raises(
        fs.BadInput, match=r"hidden = DeepLinear\(hidden=\(3, 3\)\)\n.*one hidden layer(.*\n)*.*give the width alone"
    ):
        fs.saddles(task, fs.nets.DeepLinear((3, 3)))
    with pytest.raises(fs.BadInput, match=r"traced task\n.*concrete numbers\n.*outside jit"):
        jax.jit(lambda scale: fs.saddles(fs.tasks.from_moments(scale * np.eye(2), np.eye(2)), 2).losses)(2.0)
    with pytest.raises(fs.BadInput, match=r"17 modes and 20 hidden units have 131072 .*\n.*65536.*\n.*lower hidden"):
        fs.saddles(fs.tasks.from_moments(np.diag(np.arange(1.0, 18)), np.eye(17)), 20)
    with pytest.raises(fs.BadInput, match=r"input variance 1e-11, 1e-11 of the largest(.*\n)*.*drop the inputs"):
        fs.saddles(fs.tasks.from_moments(np.diag([1.0, 1e-6]), np.diag([1.0, 1e-11])), 2)
    found = fs.saddles(task, 3)
    with pytest.raises(fs.BadInput, match=r"position = 8\n.*from 0 to 7\n.*saddles\.subsets"):
        found.weights(8)
    with pytest.raises(fs.BadInput, match=r"position = -1\n"):
        found.weights(-1)
    with pytest.raises(fs.BadInput, match=r"maps has shape \(3, 4\)\n.*\(…, 3, 3\)"):
        found.distance(np.ones((3, 4)))


@pytest.mark.usefixtures("double")
def test_inputs_that_do_not_share_the_modes_are_refused_with_the_defect_and_whitening_helps():
    task = fs.tasks.from_moments(np.diag([2.0, 1.0]), [[1.0, 0.3], [0.3, 1.0]])
    with pytest.raises(
        fs.BadInput, match=r"outside is 0\.3 of a mode's variance\n.*share the modes.*\n.*whitened\(task"
    ):
        fs.saddles(task, 2)
    found = fs.saddles(fs.tasks.whitened(task), 2)
    values, vectors = np.linalg.eigh(task.cov_x)
    whitening = (vectors / np.sqrt(values)) @ vectors.T
    points = [(lower @ whitening, upper) for lower, upper in map(found.weights, range(len(found)))]
    losses, gradients, hessians = landscape(task, fs.nets.DeepLinear(2), points)
    np.testing.assert_allclose(gradients, 0, atol=1e-13)
    np.testing.assert_allclose(losses, found.losses, atol=1e-13)
    assert [index_of(hessian) for hessian in hessians] == found.indices.tolist()
