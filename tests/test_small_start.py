"""The limit of small random weights against the flow: the order of its error, and an estimate that covers it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from sklearn import datasets

import festina as fs

INTEGRATOR = 1e-7  # what a long plateau makes of the tolerance below, relative to the map


def flow(setup):
    """Maps at all times, by an integrator that has nothing to do with the library's."""
    first, last = (np.asarray(w) for w in setup.weights(0))
    target, cov_x = np.asarray(setup.task.cov_yx), np.asarray(setup.task.cov_x)
    # Hidden directions that no layer uses stay empty.
    used = np.linalg.qr(np.concatenate([first, last.T], axis=1))[0]
    first, last = used.T @ first, last @ used
    cut, size = first.size, max(np.abs(first).max(), np.abs(last).max())

    def slope(_, weights):
        below, above = weights[:cut].reshape(first.shape), weights[cut:].reshape(last.shape)
        rest = target - above @ (below @ cov_x)
        return np.concatenate([(above.T @ rest).ravel(), (rest @ below.T).ravel()])

    start, span = np.concatenate([first.ravel(), last.ravel()]), (0.0, setup.times[-1])
    done = solve_ivp(slope, span, start, "DOP853", setup.times, rtol=1e-11, atol=1e-14 * size)
    assert done.success
    return done.y.T[:, cut:].reshape(-1, *last.shape) @ done.y.T[:, :cut].reshape(-1, *first.shape)


def errors(setup):
    """Of the map, relative to the largest map, and of the loss, relative to what there is to learn."""
    predicted, true = fs.solve(setup, "SmallRandomModes", observe="map")["map"], flow(setup)
    target, cov_x = np.asarray(setup.task.cov_yx), np.asarray(setup.task.cov_x)

    def loss(maps):
        return 0.5 * np.einsum("toi,ij,toj->t", maps, cov_x, maps) - np.einsum("toi,oi->t", maps, target)

    best = (target @ np.linalg.pinv(cov_x, hermitian=True))[None]
    size = np.linalg.norm(true, axis=(1, 2)).max()
    off = np.linalg.norm(predicted - true, axis=(1, 2)).max() / size
    return off, np.abs(loss(predicted) - loss(true)).max() / -loss(best)[0]


def stated_error(setup):
    return fs.solve(setup, "SmallRandomModes").provenance["error"]


@pytest.mark.parametrize("variances", [(1.0, 1.0), (1.0, 2.5)], ids=["white", "unequal"])
@pytest.mark.parametrize("ratio", [1 / 3, 1 / 2, 2 / 3, 11 / 15])
def test_the_error_of_the_map_is_of_the_order_of_one_less_the_ratio_of_modes(ratio, variances):
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(4, 2)), rng.normal(size=(2, 4))
    task = fs.tasks.from_moments(np.diag([1.0, ratio]), np.diag(variances))
    scales, true, stated = np.array([1e-5, 1e-6, 1e-7]), [], []
    for scale in scales:
        init = fs.inits.Given([scale * w for w in weights])
        # The error is largest while the first mode is learned.
        setup = fs.Setup(task, fs.nets.DeepLinear(4), init, until=-1.4 * np.log(scale), points=400)
        true.append(errors(setup)[0])
        stated.append(stated_error(setup))
    for values in (true, stated):
        order = np.diff(np.log(values)) / np.diff(np.log(scales))
        np.testing.assert_allclose(order, 1 - ratio, atol=0.01)


def test_no_start_is_small_enough_for_modes_that_are_nearly_equal():
    task = fs.tasks.from_moments(np.diag([1.0, 0.999]), np.eye(2))
    for scale in (1e-4, 1e-30, 1e-70):
        setup = fs.Setup(task, fs.nets.DeepLinear(4), fs.inits.SmallRandom(scale), until=1e3, points=400)
        assert stated_error(setup) > 0.3


SHAPES = [(2, 2, 3), (3, 5, 1), (3, 3, 12), (6, 4, 3), (5, 8, 20)]  # inputs, outputs, hidden


def random_setup(rng, shape):
    """A random task and start: spectra, degenerate or nearly so or of low rank, variances, scales, horizons."""
    d_in, d_out, hidden = shape
    count = min(d_in, d_out)
    values = np.sort(10 ** rng.uniform(-1, 0, count))[::-1]
    near = rng.integers(count - 1)
    kind = rng.choice(["apart", "near", "equal", "low rank"])
    if kind in ("near", "equal"):
        values[near + 1] = values[near] * (1 - (10 ** rng.uniform(-6, -1) if kind == "near" else 0.0))
        values = np.sort(values)[::-1]
    if kind == "low rank":
        values[count - rng.integers(1, count) :] = 0.0
    variances = np.ones(d_in) if rng.random() < 0.4 else 10 ** rng.uniform(-1.5, 1.5, d_in)
    if kind == "equal" and rng.random() < 0.5:
        variances[near + 1] = variances[near]
    left, right = (np.linalg.qr(rng.normal(size=(d, d)))[0] for d in (d_out, d_in))
    task = fs.tasks.from_moments((left[:, :count] * values) @ right[:, :count].T, (right * variances) @ right.T)
    targets = (values / variances[:count])[values > 0]
    size = 10 ** rng.uniform(-8, -1) * np.sqrt(targets.min())
    weights = [size * rng.normal(size=(hidden, d_in)), size * rng.normal(size=(d_out, hidden))]
    slowest = values[values > 0].min() if rng.random() < 0.6 else values[0]
    until = rng.uniform(0.3, 2) * np.log(3 + np.sqrt(targets.max()) / size) / slowest
    return fs.Setup(task, fs.nets.DeepLinear(hidden), fs.inits.Given(weights), until=until, points=200)


def covered(setups):
    """(true, stated) errors of the map of the setups that the theory answers for, and the worst (loss / stated)."""
    pairs = []
    for setup in setups:
        theory = fs.theories.SmallRandomModes()
        if all(assumption.holds or assumption.advisory for assumption in theory.assumptions(setup, 0)):
            off, loss = errors(setup)
            stated = stated_error(setup)
            assert off <= stated + INTEGRATOR, setup.init
            assert loss <= 2 * stated + INTEGRATOR
            pairs.append((off, stated))
    return np.array(pairs)


def test_the_stated_error_covers_that_of_random_draws():
    rng = np.random.default_rng(13)
    pairs = covered(random_setup(rng, shape) for shape in SHAPES for _ in range(20))
    assert len(pairs) > 60
    true, stated = pairs[pairs[:, 0] > 10 * INTEGRATOR].T
    assert np.median((stated / true)[stated <= 0.1]) < 2.5
    # What is kept from being chosen is hardly ever right to a tenth of the bound.
    assert np.mean((stated > 0.1) & (true < 0.01)) < 0.05


def standardised(name):
    data = getattr(datasets, f"load_{name}")()
    return (data.data - data.data.mean(0)) / data.data.std(0), data.target


def test_the_stated_error_covers_that_of_real_data():
    flowers, species = standardised("iris")
    patients, disease = standardised("diabetes")
    kinds = np.eye(3)[species] - np.eye(3)[species].mean(axis=0)
    tasks = [
        fs.tasks.whitened(fs.tasks.from_arrays(flowers, kinds)),
        fs.tasks.whitened(fs.tasks.from_arrays(patients, ((disease - disease.mean()) / disease.std())[:, None])),
        fs.tasks.from_arrays(flowers, flowers),  # reproducing its inputs a net learns their principal components
        fs.tasks.from_arrays(patients, patients),
    ]
    pairs = covered(
        fs.Setup(task, fs.nets.DeepLinear(6), fs.inits.SmallRandom(scale), points=200)
        for task in tasks
        for scale in (3e-2, 1e-3, 1e-6)
    )
    assert len(pairs) >= 8
    true, stated = pairs[pairs[:, 1] <= 0.1].T
    assert np.median(stated / true) < 2.5


def test_modes_of_equal_size_and_unequal_variance_reach_their_own_targets():
    task = fs.tasks.from_moments(np.diag([1.0, 1.0]), np.diag([4.0, 0.5]))
    setup = fs.Setup(task, fs.nets.DeepLinear(4), fs.inits.SmallRandom(1e-4), until=60.0, points=200)
    predicted = fs.solve(setup, "SmallRandomModes")
    np.testing.assert_allclose(predicted["map"][-1], np.diag([0.25, 2.0]), atol=1e-9)
    # No start is small enough for modes that arrive together.
    assert "error: measured" in predicted.provenance["note"]
    with pytest.raises(fs.NoTheory, match="error: measured"):
        fs.solve(setup)


@pytest.mark.parametrize("value", [1e-8, 1e-10])
@pytest.mark.parametrize("lam", [-0.5, 0.0, 0.5])
def test_one_threshold_tells_what_carries_nothing_and_a_note_says_so(value, lam):
    task = fs.tasks.from_moments(np.diag([1.0, value]), np.eye(2))
    setup = fs.Setup(task, fs.nets.DeepLinear(2), fs.inits.Balanced(lam, 0.1), until=40.0, points=9)
    cut = f"taken as nothing: mode 2 (s = {value:.4g}); at most 1e-09 of the largest s"
    remarks = fs.theories.BalancedRiccati().remarks(setup, 0)
    assert (cut in remarks) == (value < 1e-9)
    assert not any("never learned" in remark for remark in remarks)
    lacking = setup.replace(init=fs.inits.Aligned([0.1, 0.0]))
    for name in ("AlignedModes", "UnbalancedModes", "BalancedRiccati", "SmallRandomModes"):
        remarks = getattr(fs.theories, name)().remarks(lacking, 0)
        assert (cut in remarks) == (value < 1e-9), name
        assert any("never learned: mode 2" in remark for remark in remarks) == (value > 1e-9), name
