"""Structured worlds: their similarities, spectra and what is learned first."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import circulant

import festina as fs

# Each world in its limit of infinitely many features, with its similarity matrix made without the formula.
WORLDS = {
    "tree": (fs.tasks.tree, {"branching": (3, 1, 2), "flip": 0.2}),
    "partition": (fs.tasks.partition, {"sizes": (2, 3, 1), "within": 0.7, "noise": 0.1}),
    "ring": (fs.tasks.ring, {"items": 7, "spread": 1.5}),
    "even ring": (fs.tasks.ring, {"items": 6}),
    "ring by correlation": (fs.tasks.ring, {"items": 6, "correlation": (1.0, 0.5, 0.2, 0.1, 0.2, 0.5)}),
    "grid": (fs.tasks.grid, {"rows": 3, "columns": 2, "spread": 0.8}),
}
every_world = pytest.mark.parametrize("world", WORLDS)


def tree_similarity(branching, flip):
    """By the least common ancestor: two leaves differ by the flips on the way up and down again."""
    paths = list(np.ndindex(*branching))
    shared = [[np.sum(np.cumprod(np.equal(p, q))) for q in paths] for p in paths]
    return (1 - 2 * flip) ** (2.0 * (len(branching) - np.array(shared)))


def markov_similarity(edges, count, spread):
    """The covariance of the density ∝ exp(−½ Σ_edges (y_i − y_j)² − ½ Σ_i y_i²/spread²)."""
    precision = np.eye(count) / spread**2
    for i, j in edges:
        precision[np.ix_([i, j], [i, j])] += [[1, -1], [-1, 1]]
    return np.linalg.inv(precision)


def ring_edges(count):
    return [(i, (i + 1) % count) for i in range(count)]


SIMILARITY = {
    "tree": lambda: tree_similarity((3, 1, 2), 0.2),
    "partition": lambda: 0.7 * (np.subtract.outer([0, 0, 1, 1, 1, 2], [0, 0, 1, 1, 1, 2]) == 0) + 0.1 * np.eye(6),
    "ring": lambda: markov_similarity(ring_edges(7), 7, 1.5),
    "even ring": lambda: markov_similarity(ring_edges(6), 6, 1.0),
    "ring by correlation": lambda: circulant([1.0, 0.5, 0.2, 0.1, 0.2, 0.5]),
    "grid": lambda: markov_similarity([(0, 1), (2, 3), (4, 5), (0, 2), (2, 4), (1, 3), (3, 5)], 6, 0.8),
}


@every_world
def test_a_world_has_the_similarity_that_it_names(world):
    make, arguments = WORLDS[world]
    task = make(**arguments)
    similarity, vectors = SIMILARITY[world](), task.vectors()
    np.testing.assert_allclose(task.y @ task.y.T, similarity, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(task.d_in), atol=1e-13)
    np.testing.assert_allclose(similarity @ vectors, vectors * (task.d_in * task.stated_spectrum) ** 2, atol=1e-12)
    np.testing.assert_array_equal(task.x, np.eye(6 if world != "ring" else 7))


@every_world
def test_sampled_features_have_the_similarity_on_average(world):
    # The mean of 40 000 products has a standard error of at most √2/200 of the largest entry: five of them are allowed.
    make, arguments = WORLDS[world]
    task = make(**arguments, features=40_000, seed=3)
    similarity = SIMILARITY[world]()
    np.testing.assert_allclose(task.y @ task.y.T, similarity, atol=5 * 2**0.5 / 200 * similarity.max())
    assert task.stated_spectrum is None
    assert task.stated_vectors is None
    if world == "tree":
        np.testing.assert_allclose(np.abs(task.y), 1 / 200)


@pytest.mark.parametrize("make", [fs.tasks.tree, fs.tasks.partition, fs.tasks.ring, fs.tasks.grid])
def test_sampled_spectra_tend_to_the_stated_one_at_rate_one_half(make):
    numbers, seeds = (100, 1000, 10_000, 100_000), range(24)
    stated = (make().stated_spectrum * make().d_in) ** 2
    errors = []
    for number in numbers:
        drawn = [make(features=number, seed=seed).y for seed in seeds]
        errors.append(np.sqrt(np.mean([np.sum((np.linalg.eigvalsh(y @ y.T)[::-1] - stated) ** 2) for y in drawn])))
    # The root mean square over 24 seeds is known to 10 to 15 per cent: ±0.05 on an exponent over three decades.
    order = -np.polyfit(np.log(numbers), np.log(errors), 1)[0]
    assert abs(order - 0.5) < 0.05, errors


def test_the_known_numbers_of_the_tree():
    def eigenvalues(**arguments):
        return (fs.tasks.tree(**arguments).spectrum() * 8) ** 2

    np.testing.assert_allclose(
        eigenvalues(flip=0.1), [3.507776, 1.410624, 0.8208, 0.8208, 0.36, 0.36, 0.36, 0.36], atol=1e-12
    )
    np.testing.assert_allclose(
        np.sqrt(eigenvalues(flip=0.15)), [1.5623, 1.2246, 1.0049, 1.0049, *4 * [0.7141]], atol=6e-5
    )
    np.testing.assert_allclose(eigenvalues(flip=0), [8, 0, 0, 0, 0, 0, 0, 0], atol=1e-14)
    assert np.linalg.matrix_rank(fs.tasks.tree(flip=0).y) == 1
    np.testing.assert_allclose(eigenvalues(flip=0.5), 1, atol=1e-14)


def half_times(task, start):
    """Of a two-layer mode: t = ln(target/start − 1)/(2s)."""
    targets = task.d_in * task.spectrum()
    return np.log(targets / start - 1) / (2 * task.spectrum())


@pytest.mark.parametrize("flip", [0.02, 0.1, 0.3, 0.45])
def test_broad_distinctions_are_learned_before_fine_ones(flip):
    task = fs.tasks.tree(flip=flip)
    times = half_times(task, 1e-5)[[0, 1, 2, 4]]
    assert np.all(np.diff(times) > 0)
    if flip == 0.1:  # known for features that are ten times as large and start ten times as large
        np.testing.assert_allclose(times / 10, [2.59, 3.94, 5.04, 7.33], atol=6e-3)
    setup = fs.Setup(task, fs.nets.DeepLinear(8), fs.inits.Aligned(1e-5), times=times)
    trained = fs.simulate(setup)["modes"][0]
    np.testing.assert_allclose(trained[range(4), [0, 1, 2, 4]], 4 * task.spectrum()[[0, 1, 2, 4]], rtol=1e-8)


def test_the_contrasts_of_eight_items():
    tree = fs.tasks.contrasts()
    names = dict(zip(tree.features, tree.y.T, strict=True))
    items = np.array(tree.items)
    assert set(items[names["halves"] > 0]) == {"canary", "robin", "salmon", "sunfish"}
    assert set(items[names["second half"] < 0]) == {"rose", "daisy"}
    assert set(items[names["pair 4"] != 0]) == {"rose", "daisy"}
    np.testing.assert_array_equal(np.unique(np.sign(tree.y)), [-1, 0, 1])
    for i, column in enumerate(tree.y.T, start=1):
        np.testing.assert_allclose(np.abs(column[column != 0]), 1 + 0.1 / i, rtol=1e-15)
    lengths = np.sqrt([8, 8, 4, 4, 2, 2, 2, 2]) * (1 + 0.1 / np.arange(1, 9))
    for variant in ("tree", "colour", "reversed", "revised"):
        task = fs.tasks.contrasts(variant)
        np.testing.assert_allclose(task.spectrum(), lengths / 8, rtol=1e-14)
        np.testing.assert_allclose(np.linalg.svd(task.cov_yx, compute_uv=False), lengths / 8, rtol=1e-14)
        np.testing.assert_allclose(task.y @ task.y.T @ task.vectors(), task.vectors() * lengths**2, atol=1e-13)


def test_the_variants_of_the_contrasts():
    tree = fs.tasks.contrasts().y
    np.testing.assert_array_equal(fs.tasks.contrasts("reversed").y, -tree)
    np.testing.assert_array_equal(fs.tasks.contrasts("revised").y, tree * [1, 1, 1, 1, 1, 1, 1, -1])
    colour = fs.tasks.contrasts("colour")
    assert {tuple(row) for row in colour.y} == {tuple(row) for row in tree}
    halves = dict(zip(colour.items, colour.y[:, 1] > 0, strict=True))
    assert {item for item, first in halves.items() if first} == {"canary", "salmon", "oak", "rose"}
    # No split of the tree below its root is one of the colours.
    assert np.abs(tree[:, 1] @ colour.y[:, 1]) < 1e-12


@every_world
def test_a_world_comes_back_from_json_by_its_recipe(world):
    from festina._setup.spec import to_spec

    make, arguments = WORLDS[world]
    for features in (None, 5):
        task = make(**arguments, features=features, seed=2)
        setup = fs.Setup(task, fs.nets.DeepLinear(3), fs.inits.SmallRandom(0.1), until=1.0)
        assert list(to_spec(setup)["task"]) == [make.__name__]
        assert fs.Setup.from_json(setup.to_json()) == setup


def test_one_number_is_a_list_of_one():
    assert np.array_equal(fs.tasks.tree(3, flip=0.2).y, fs.tasks.tree([3], flip=0.2).y)
    assert np.array_equal(fs.tasks.partition(3).y, fs.tasks.partition((3,)).y)
    assert fs.tasks.tree([]).d_in == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fs.tasks.tree(flip=0.6), "flip = 0.6"),
        (lambda: fs.tasks.tree(flip=-0.1), "flip = -0.1"),
        (lambda: fs.tasks.tree(branching="22"), "branching = '22'"),
        (lambda: fs.tasks.tree(branching=(2, 0)), "branching = 0"),
        (lambda: fs.tasks.tree(features=0), "features = 0"),
        (lambda: fs.tasks.tree(seed=-1), "seed = -1"),
        (lambda: fs.tasks.partition(sizes=()), "sizes is empty"),
        (lambda: fs.tasks.partition(sizes=2.5), "sizes = 2.5"),
        (lambda: fs.tasks.partition(within=-0.1), "within = -0.1"),
        (lambda: fs.tasks.partition(noise=-0.1), "noise = -0.1"),
        (lambda: fs.tasks.ring(items=2), "items = 2"),
        (lambda: fs.tasks.ring(spread=0), "spread = 0"),
        (lambda: fs.tasks.ring(3, spread=1.0, correlation=[1.0, 0.5, 0.5]), "spread together with correlation"),
        (lambda: fs.tasks.ring(4, correlation=[1.0, 0.5, 0.5]), "correlation has 3 numbers"),
        (lambda: fs.tasks.ring(4, correlation=[1.0, 0.5, 0.2, 0.1]), "correlation is not symmetric"),
        (lambda: fs.tasks.ring(4, correlation=[1.0, 0.9, 0.0, 0.9]), "correlation has a negative eigenvalue, -0.8"),
        (lambda: fs.tasks.grid(rows=0), "rows = 0"),
        (lambda: fs.tasks.grid(spread=-1.0), "spread = -1.0"),
        (lambda: fs.tasks.contrasts("color"), "unknown variant 'color'"),
    ],
)
def test_impossible_worlds_are_refused_in_three_parts(make, words):
    with pytest.raises(fs.BadInput) as refusal:
        make()
    assert words in refusal.value.seen
    assert refusal.value.needed
    assert refusal.value.do
