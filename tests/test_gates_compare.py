"""compare() and what it is made of: known curves, shifts, turns and layouts, and loops over pairs of samples."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import xarray
from scipy.spatial.distance import pdist
from scipy.spatial.transform import Rotation

import festina as fs
from festina._setup.spec import to_spec
from festina.gates.comparing import (
    aligned,
    compare,
    geometry,
    largest_distance,
    learning_times,
    mean_distance,
    scaling,
    shifted_distance,
    times_to,
)

TIMES = np.linspace(0, 40, 401)
TAILS = {
    "loss": (),
    "outputs": ("sample", "feature"),
    "representation": ("sample", "hidden"),
    "similarity": ("sample", "sample_"),
}


def task(seed=0):
    rng = np.random.default_rng(seed)
    return fs.tasks.from_arrays(rng.standard_normal((6, 4)), rng.standard_normal((6, 2)))


def trajectory(times=TIMES, seeds=(0, 1), of=None, **values):
    """A trajectory with these values (seed, time, …); without seeds (time, …), as a theory has."""
    setup = fs.Setup(
        of or task(), fs.nets.MLP(8), fs.inits.SmallRandom(1e-3), fs.rules.GradientFlow(), times=np.arange(2.0)
    )
    lead = ("seed", "time") if seeds else ("time",)
    axes = {name: (*lead, *TAILS[name]) for name in values}
    made = {"setup": functools.partial(to_spec, setup)}
    return fs.Trajectory(times, values, axes, "simulate", made, {"seed": seeds} if seeds else {})


def drop(at, times=TIMES):
    """A loss that falls from 1 around a time, by a half within one unit of it, (seed, time)."""
    return 1 / (1 + np.exp(2 * (times - np.atleast_1d(at)[:, None])))


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def test_distances_of_losses_are_those_of_loops():
    own, other = 1 + random(3, 5) ** 2, 2 + random(3, 5, seed=1) ** 2
    gaps = [[abs(own[s, t] - other[s, t]) / other[s, 0] for t in range(5)] for s in range(3)]
    assert largest_distance(own, other) == pytest.approx(np.mean([max(row) for row in gaps]), rel=1e-14)
    assert mean_distance(own, other) == pytest.approx(np.mean(gaps), rel=1e-14)


def test_times_to_a_fraction_are_those_of_an_exponential():
    losses = np.exp(-np.array([[0.5], [1.0], [0.01]]) * TIMES)
    np.testing.assert_allclose(times_to(TIMES, losses, 0.1), [np.log(10) / 0.5, np.log(10), np.inf], rtol=1e-12)
    table = learning_times(
        {"fast": trajectory(loss=losses[1:2], seeds=(0,)), "slow": trajectory(loss=losses)}, [0.5, 0.1]
    )
    np.testing.assert_allclose(table.time_to[0], np.log([2, 10]), rtol=1e-12)
    assert np.isinf(table.time_to[1]).all()
    np.testing.assert_allclose(table.reached, [[1, 1], [2 / 3, 2 / 3]])
    assert table.candidate.values.tolist() == ["fast", "slow"]


@pytest.mark.parametrize("late", [3.0, 0.37, 0.0, -8.25])
def test_a_known_shift_is_found(late):
    """Of smooth curves, straight between times to 2·10⁻³, and of a jump, where only the shift itself helps."""
    shift, left = shifted_distance(TIMES, drop([15 + late, 16 + late]), drop([15, 16]))
    assert shift == pytest.approx(-late, abs=5e-3)
    assert left < 2e-3
    at = np.round(late, 1)
    sharp = [(1.0 - 0.9 * (when < TIMES)) * np.exp(-TIMES / 100) for when in (15 + at, 15)]
    assert shifted_distance(TIMES, *sharp)[0] == pytest.approx(-at, abs=0.1)


def test_the_best_shift_lies_between_those_of_two_drops():
    """One of them late by 1 and one by 3.4: between them, at the least of all shifts on a fine grid."""
    own, other = drop(12) + 1.2 * drop(29.4), drop(11) + 1.2 * drop(26)
    shift, left = shifted_distance(TIMES, own, other)
    fine = np.linspace(-5, 1, 3001)
    losses = [largest_distance(np.interp(TIMES - each, TIMES, own[0])[None], other) for each in fine]
    assert -3 < shift < -1.5
    assert shift == pytest.approx(fine[np.argmin(losses)], abs=0.05)
    assert left == pytest.approx(min(losses), rel=0.02)


def test_the_best_of_given_shifts_is_taken_as_it_is():
    best, left = shifted_distance(TIMES, drop([18.0]), drop([15.0]), range(-5, 6))
    assert best == -3
    assert isinstance(best, int)
    moved = np.interp(TIMES + 3, TIMES, drop([18.0])[0])
    assert left == pytest.approx(np.abs(moved - drop([15.0])[0]).max() / drop([15.0])[0, 0], rel=1e-12)


def test_twins_are_compared_seed_by_seed():
    reference = trajectory(loss=drop([15, 20]), outputs=random(2, 401, 6, 2), representation=random(2, 401, 6, 8))
    late = trajectory(loss=drop([17, 22]), outputs=random(2, 401, 6, 2, seed=1), representation=random(2, 401, 6, 9))
    theory = trajectory(loss=drop([15])[0], seeds=())
    found = compare(reference, {"late": late, "theory": theory}, fractions=(0.5, 1e-3), at=[0.0, 10.04, 40.0])
    assert found.candidate.values.tolist() == ["late", "theory"]
    np.testing.assert_allclose(found.time, [0, 10, 40])
    np.testing.assert_allclose(found.time_shift[0], -2, atol=5e-3)
    assert found.raw_after_shift[0] < 2e-3
    np.testing.assert_allclose(found.raw, [largest(17, 15), largest(15, 20) / 2], rtol=1e-4)
    np.testing.assert_allclose(
        found.raw_mean[1], np.mean([np.abs(drop(15) - drop(at))[0].mean() / drop(at)[0, 0] for at in (15, 20)])
    )
    np.testing.assert_allclose(found.reference_time_to, 17.5 + np.array([0, np.log(999) / 2]), atol=1e-3)
    np.testing.assert_allclose(found.time_to.sel(candidate="late") - found.reference_time_to, 2, atol=1e-3)
    np.testing.assert_allclose(found.time_to.sel(candidate="theory", fraction=0.5), 15, atol=1e-3)
    for k, t in enumerate((0, 100, 400)):
        own, other = late["outputs"][:, t], reference["outputs"][:, t]
        gaps = [np.linalg.norm(own[s] - other[s]) / np.linalg.norm(other[s]) for s in range(2)]
        assert float(found.output_gap[0, k]) == pytest.approx(np.mean(gaps), rel=1e-13)
        assert float(found.output_mean_square[0, k]) == pytest.approx(np.mean((own - other) ** 2), rel=1e-13)
        hidden = [geometry(late["representation"][s, t], reference["representation"][s, t]) for s in range(2)]
        assert float(found.geometry[0, k]) == pytest.approx(np.mean(hidden), rel=1e-13)
    assert not {*found.variables, *found.dims} & set(dir(xarray.Dataset)), "read by attribute"
    assert np.isnan(found.geometry[1]).all()
    assert np.isnan(found.output_gap[1]).all()
    alone = compare(reference, theory)
    assert alone.candidate.values.tolist() == ["candidate"]
    assert "output_gap" not in alone
    assert "geometry" not in alone


def largest(at, other):
    return np.abs(drop(at) - drop(other)).max()


def test_similarity_serves_where_it_is_recorded():
    hidden = [random(1, 401, 6, units, seed=units) for units in (5, 7)]
    pair = [trajectory(loss=drop(15), seeds=(0,), similarity=h @ h.swapaxes(-1, -2), representation=h) for h in hidden]
    found = compare(*pair, at=[4.0])
    assert float(found.geometry[0, 0]) == pytest.approx(geometry(*(h[0, 40] for h in hidden)), rel=1e-12)


def test_a_trained_net_is_its_own_twin():
    setup = fs.Setup(
        task(), fs.nets.MLP(8), fs.inits.SmallRandom(0.1), fs.rules.GradientDescent(0.1), until=20, points=11
    )
    trained = fs.simulate(setup, 2, ["loss", "outputs", "representation"])
    found = compare(trained, {"itself": trained}, fractions=0.9)
    for name in ("raw", "raw_mean", "time_shift", "raw_after_shift", "output_gap", "output_mean_square"):
        assert (found[name] == 0).all(), name
    np.testing.assert_allclose(found.geometry, 1, rtol=1e-12)


def test_geometry_is_the_correlation_of_distances():
    h, other = random(2, 3, 7, 5), random(2, 3, 7, 9, seed=1)
    expected = [[np.corrcoef(pdist(h[i, j]), pdist(other[i, j]))[0, 1] for j in range(3)] for i in range(2)]
    np.testing.assert_allclose(geometry(h, other), expected, rtol=1e-11)
    np.testing.assert_allclose(
        geometry(h @ h.swapaxes(-1, -2), other @ other.swapaxes(-1, -2), similarity=True), expected, rtol=1e-11
    )
    turned = 3 * h[0, 0] @ np.linalg.qr(random(5, 5))[0] + random(5)
    assert geometry(h[0, 0], turned) == pytest.approx(1, abs=1e-12)
    assert isinstance(geometry(h[0, 0], turned), float)
    assert np.isnan(geometry(np.eye(7), h[0, 0])), "all samples equally far apart"
    assert np.isnan(geometry(np.zeros((7, 3)), h[0, 0]))


@pytest.mark.parametrize("similarity", [False, True])
def test_scaling_recovers_points_of_a_plane(similarity):
    plane = random(4, 9, 2)
    turn = Rotation.random(4, random_state=0).as_matrix()[:, :2]  # into three dimensions
    h = plane @ turn + random(3)
    points = scaling(h @ h.swapaxes(-1, -2) if similarity else h, similarity=similarity)
    assert points.shape == (4, 9, 2)
    np.testing.assert_allclose([pdist(each) for each in points], [pdist(each) for each in plane], atol=1e-12)
    np.testing.assert_allclose(aligned(points, plane), plane, atol=1e-12)
    np.testing.assert_allclose(points[2], scaling(h[2]), atol=1e-12)
    third = scaling(h, 3)
    np.testing.assert_allclose(third[..., :2], points, atol=1e-12)
    np.testing.assert_array_equal(third[..., 2], 0)


def test_scaling_has_fixed_signs():
    h = random(5, 8, 3)
    points = scaling(h)
    at = np.abs(points).argmax(axis=-2)
    assert (np.take_along_axis(points, at[:, None], axis=-2) > 0).all()
    np.testing.assert_allclose(scaling(-h), points, atol=1e-12)
    opposite = np.array([[2.0, 0], [-2, 0], [0, 1], [0, -1]])  # of two equal entries the first counts
    np.testing.assert_allclose(scaling(-opposite), opposite, atol=1e-15)
    for turn in Rotation.random(20, random_state=0).as_matrix():  # to rounding
        np.testing.assert_allclose(scaling(opposite @ turn[:2]), opposite, atol=1e-14)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("mirror", [1.0, -1.0])
def test_alignment_undoes_a_known_turn(scale, mirror):
    onto = random(6, 3)
    turns = Rotation.random(4, random_state=1).as_matrix() @ np.diag([1, 1, mirror])
    factor = 2.5 if scale else 1.0
    points = factor * onto @ turns + random(4, 1, 3, seed=2)
    np.testing.assert_allclose(aligned(points, onto, scale=scale), np.broadcast_to(onto, points.shape), atol=1e-12)
    np.testing.assert_allclose(aligned(points[0], onto, scale=scale), onto, atol=1e-12)
    other = random(6, 3, seed=5)
    left = np.sum((aligned(other, onto, scale=scale) - onto) ** 2)
    moved = (aligned(other, onto, scale=scale) @ Rotation.random(random_state=k).as_matrix() for k in range(20))
    assert all(left < np.sum((points - onto) ** 2) for points in moved), "no turn of it is nearer"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: compare(fine(), fine(times=TIMES[:-1])), ("times differ", "400 times 0 … 39.9", "same times=")),
        (lambda: compare(fine(), fine(times=TIMES + 1e-3)), ("times differ", "one time grid")),
        (lambda: compare(fine(), {"a": fine(seeds=(0, 2))}), ("seeds differ", "'a' has [0, 2]", "seeds=[0, 1]")),
        (lambda: compare(fine(), {"a": fine(of=task(1))}), ("'a' has learned", "other samples", "reference.setup")),
        (lambda: compare(fine(), {}), ("candidates are empty", "by name")),
        (lambda: compare(fine(), [fine()]), ("candidates are list", "by name")),
        (lambda: compare(fine(), {"a": 3}), ("'a' is int", "a Trajectory with the loss")),
        (lambda: compare(3, {"a": fine()}), ("'reference' is int", "a Trajectory with the loss")),
        (lambda: compare(trajectory(outputs=random(2, 401, 6, 2)), fine()), ("'reference' has outputs", "the loss")),
        (lambda: compare(fine(), fine(), at=50.0), ("at = 50", "between 0 and 40")),
        (lambda: compare(fine(), fine(), fractions=(0.5, 1.0)), ("fractions = (0.5, 1.0)", "between 0 and 1")),
        (lambda: learning_times({"a": fine()}, []), ("fractions = []", "between 0 and 1")),
        (lambda: geometry(random(3), random(3)), ("h has shape (3,)", "(…, sample, unit)", "representation")),
        (lambda: geometry(random(3, 2), random(4, 2)), ("shapes (3, 2) and (4, 2)", "the same samples")),
        (lambda: scaling(random(3, 2), similarity=True), ("h has shape (3, 2)", "(…, sample, sample)", "similarity")),
        (lambda: scaling(random(3, 9), 4), ("dimensions = 4 for 3 samples", "no more dimensions")),
        (lambda: aligned(random(4, 2), random(4, 3)), ("shape (4, 2)", "shape (4, 3)", "as many samples")),
    ],
)
def test_bad_input_is_refused_in_words(make, words):
    with pytest.raises(fs.BadInput) as error:
        make()
    for word in words:
        assert word in str(error.value)


def fine(times=TIMES, **others):
    return trajectory(times, loss=drop([15, 16], times), **others)
