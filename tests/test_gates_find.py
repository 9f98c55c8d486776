"""Gates found in recorded patterns, and which patterns one unit can make, against counting and other algorithms."""

from __future__ import annotations

import functools
import itertools
import re
import tracemalloc
import types
from collections import Counter

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.cluster import KMeans

import festina as fs
from festina._setup.spec import to_spec
from festina.gates._patterns import distinct, k_means
from festina.gates.clusters import Found, _dealt
from festina.gates.feasible import implementable, implementable_patterns, witness
from festina.gates.finding import find
from festina.nets import MLP

TASK = fs.tasks.contextual(items=4, contexts=3, blocks="hierarchy")
ON = {name: np.repeat([digit == "1" for digit in name], 4) for name in ("000", "111", "110", "011", "101")}
SPLIT = np.r_[1, 1, 1, 0, np.ones(4), np.zeros(4)].astype(bool)


def hand_made(on, size=None, loss=None, task=TASK, **net):
    """A recording with these patterns (seed, time, unit, sample), sizes (seed, time, unit) and losses (seed, time)."""
    on = np.asarray(on, bool)
    seeds, times, units, _ = on.shape
    silent = 0.5 * np.mean(np.sum(np.asarray(task.y) ** 2, axis=1))
    setup = fs.Setup(task, MLP(net.pop("hidden", units), **net), fs.inits.SmallRandom(1e-3), times=np.arange(times))
    values = {
        "gates": np.packbits(on, axis=-1),
        "unit_size": np.ones((seeds, times, units)) if size is None else np.asarray(size, float),
        "loss": np.full((seeds, times), silent / 2) if loss is None else silent * np.asarray(loss, float),
    }
    axes = {"gates": ("seed", "time", "unit", "byte"), "unit_size": ("seed", "time", "unit"), "loss": ("seed", "time")}
    provenance = {"setup": functools.partial(to_spec, setup)}
    return fs.Trajectory(setup.times, values, axes, "simulate", provenance, {"seed": np.arange(seeds)})


def units(*names, times=1, seeds=1):
    """The same units at all times of all seeds."""
    row = np.array([ON[name] if isinstance(name, str) else name for name in names])
    return np.broadcast_to(row, (seeds, times, *row.shape))


def noisy(seed=0, shape=(2, 5, 30)):
    """Random patterns, some of them dead, with random sizes and a falling loss that has not left its start at first."""
    rng = np.random.default_rng(seed)
    on = rng.random((*shape, TASK.samples)) < rng.choice([0.0, 0.5, 0.9], size=(*shape, 1))
    return on, rng.random(shape), np.linspace(1.0, 0.2, shape[1]) * np.array([[1.0], [0.9]])


def test_distinct_counts_what_a_counter_counts():
    rng = np.random.default_rng(0)
    on = rng.random((400, 13)) < rng.choice([0.02, 0.98], size=13)
    weights = rng.random(400)
    known = distinct(np.packbits(on, axis=1), weights, 13)
    counted = Counter(map(bytes, on))
    assert {bytes(row): count for row, count in zip(known.on, known.counts, strict=True)} == counted
    for row, weight in zip(known.on, known.weight, strict=True):
        assert weight == pytest.approx(weights[(on == row).all(axis=1)].sum())
    assert np.array_equal(distinct(np.packbits(on, axis=1), None, 13).weight, known.counts)


def test_k_means_of_counted_patterns_is_that_of_all_rows():
    rng = np.random.default_rng(1)
    centres = rng.random((3, 40)) < 0.5
    on = centres[rng.choice(3, p=[0.7, 0.2, 0.1], size=900)] ^ (rng.random((900, 40)) < 0.02)
    known = distinct(np.packbits(on, axis=1), None, 40)
    assert len(known.counts) < 700
    centroids, member = k_means(known, 3, "count", 10, 0)
    all_rows = KMeans(3, n_init=10, random_state=5).fit(on.astype(float))
    ours, theirs = (array[np.lexsort(array.T)] for array in (centroids, all_rows.cluster_centers_))
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    inertia = np.sum(known.counts * np.sum((known.on - centroids[member]) ** 2, axis=1))
    assert inertia == pytest.approx(all_rows.inertia_)
    assert np.array_equal(k_means(known, 3, "count", 10, 0)[0], centroids)


def test_one_cluster_is_the_mean_that_each_method_states():
    """With one cluster the centroid is a mean: over all rows, or by size over live units after the start."""
    on, size, loss = noisy()
    trained = hand_made(on, size, loss)
    printed = find(trained, 1, "as_printed")
    np.testing.assert_allclose(printed.centroids[0], on.reshape(-1, TASK.samples).mean(axis=0))
    assert printed.rows == on[..., 0].size
    total, snapshots, kept = np.zeros(TASK.samples), 0, []
    for seed, time in itertools.product(range(2), range(5)):
        if loss[seed, time] > 0.99:
            continue
        live = [u for u in range(on.shape[2]) if on[seed, time, u].any()]
        weight = size[seed, time, live] / size[seed, time, live].sum()
        total, snapshots = total + weight @ on[seed, time, live], snapshots + 1
        kept += [bytes(on[seed, time, u]) for u in live]
    weighted = find(trained, 1)
    assert snapshots == 9
    np.testing.assert_allclose(weighted.centroids[0], total / snapshots)
    assert (weighted.rows, weighted.distinct) == (len(kept), len(set(kept)))
    assert find(trained, 1, learned=0.85).rows < weighted.rows


def test_weights_decide_which_gates_are_found():
    """Four large units and many small ones with patterns between: printed rows are drawn away, weighted ones not."""
    names = ["111", "110", "011", "101"]
    small = np.random.default_rng(3).random((60, 12)) < 0.5
    on = np.concatenate([units(*names), small[None, None]], axis=2)
    size = np.r_[[4.0, 3.0, 2.0, 1.0], np.full(60, 1e-6)][None, None]
    found = find(hand_made(on, size), 4)
    assert found.names == ("111", "110", "011", "101")
    np.testing.assert_allclose(found.share, [0.4, 0.3, 0.2, 0.1], atol=1e-4)
    assert found.ambiguity.max() < 1e-4
    printed = find(hand_made(on, size), 4, "as_printed", n_init=10)
    assert printed.ambiguity.min() > 0.1
    assert np.sum(printed.share) == pytest.approx(1)


def test_a_dead_gate_is_found_as_printed_and_not_by_weight():
    trained = hand_made(units("111", "000", "110", "000", "000", times=3))
    printed = find(trained, 3, "as_printed")
    assert printed.names == ("000", "111", "110")
    np.testing.assert_allclose(printed.share, [0.6, 0.2, 0.2])
    assert find(trained, 2).names == ("111", "110")
    with pytest.raises(fs.BadInput, match="2 distinct patterns"):
        find(trained, 3)


def test_layers_are_counted_from_one():
    trained = hand_made(units("111", "110", "011"), hidden=(2, 1))
    assert find(trained, 2).names == ("111", "110")
    second = find(trained, 1, layer=2)
    assert second.names == ("011",)
    assert second.layer == 2


def test_found_is_a_sequence_of_gates():
    found = find(hand_made(units("111", "111", "110", SPLIT, SPLIT, SPLIT)), 3)
    assert found.names == ("x10", "111", "110")
    assert np.array_equal(np.asarray(found), [SPLIT, ON["111"], ON["110"]])
    assert np.asarray(found, dtype=bool).dtype == bool
    assert len(found) == 3
    assert all(np.array_equal(a, b) for a, b in zip(found, found.gates, strict=True))
    assert np.array_equal(found[-1], ON["110"])
    assert ON["111"].astype(float) in found
    assert ON["101"].astype(float) not in found
    assert repr(found).splitlines() == [
        "3 gates of layer 1 (weighted): 6 rows, 3 distinct",
        "  gate  samples on  share  ambiguity",
        "  x10      7 of 12   0.50       0.00",
        "  111     12 of 12   0.33       0.00",
        "  110      8 of 12   0.17       0.00",
    ]


def test_names_are_unique_and_plain_without_contexts():
    other = SPLIT[[3, 2, 1, 0, *range(4, 12)]]
    assert find(hand_made(units(SPLIT, other, other)), 2).names == ("x10", "x10 (2)")
    task = fs.tasks.from_arrays(TASK.x, TASK.y)
    found = find(hand_made(units("111", "110", "110"), task=task), 2)
    assert found.names == ("gate 1", "gate 2")
    one_context = fs.tasks.from_arrays(TASK.x, TASK.y, labels={"context": np.zeros(12)})
    found = find(hand_made(units(SPLIT, "110", "110"), task=one_context), 2)
    assert [part["name"] for part in found.pathways()] == ["gate 1", "gate 2"]


def test_gates_that_are_off_are_left_out_and_equal_ones_become_one():
    setup = hand_made(units("111"), hidden=32).setup
    centroids = np.array([ON["011"], ON["111"], 0.9 * ON["111"], 0.1 * ON["111"]])
    found = Found(centroids, np.array([0.4, 0.3, 0.2, 0.1]), "as_printed", 1, 4, 10, setup)
    assert found.names == ("011", "111", "111 (2)", "000")
    np.testing.assert_allclose(found.ambiguity, [0, 0, 0.1, 0.1])
    parts = found.pathways(width=[5, 3], sees=range(4))
    assert [(part["name"], part["width"], part["sees"]) for part in parts] == [
        ("111", 5, [0, 1, 2, 3]),
        ("011", 3, [0, 1, 2, 3]),
    ]
    assert [part["width"] for part in found.pathways("share")] == [18, 14]  # 32 units at 5 : 4 are 17.8 : 14.2
    net = found.net(width=6, training="sequential")
    assert net.hidden == (6, 6)
    assert net.training == "sequential"


def test_units_are_dealt_by_largest_remainder():
    assert _dealt(7, np.array([0.5, 0.3, 0.2])) == [4, 2, 1]
    assert _dealt(10, np.array([0.98, 0.01, 0.01])) == [8, 1, 1]
    assert _dealt(700, np.array([0.29, 0.57, 0.14])) == [203, 399, 98]


def test_a_leaky_unit_that_is_off_passes_its_slope():
    found = find(hand_made(units("110"), activation="leaky_relu"), 1)
    assert np.array_equal(found.gates[0], ON["110"])
    assert np.array_equal(found.pathways()[0]["on"], np.where(ON["110"], 1.0, 0.01))


def test_what_is_found_in_a_trained_net_trains_as_a_gated_net():
    setup = fs.Setup(
        TASK, MLP(16), fs.inits.SmallRandom(1e-2), fs.rules.GradientDescent(0.05), times=np.linspace(0, 20, 6)
    )
    trained = fs.simulate(setup, 2, ["gates"])
    found = find(trained, 3)
    assert found.share.sum() == pytest.approx(1)
    assert np.all(np.diff(found.share) <= 0)
    twin = fs.simulate(setup.replace(net=found.net(width="share")), 1, ["loss"])
    assert twin["loss"][0, -1] < 0.7 * twin["loss"][0, 0]


def test_the_number_of_clusters_is_asked_of_the_elbow(monkeypatch):
    asked = {}

    def elbow(trained, counts, method, **options):
        asked.update(options, counts=list(counts), method=method)
        return types.SimpleNamespace(attrs={"chosen": 2})

    monkeypatch.setattr("festina.gates.finding.elbow", elbow)
    found = find(hand_made(units("111", "110", "011")), None, n_init=3, seed=7)
    assert len(found) == 2
    assert asked == {"counts": [1, 2, 3], "method": "weighted", "layer": 1, "n_init": 3, "seed": 7, "learned": 0.99}


def finding(*names, **options):
    return lambda: find(hand_made(units(*names)), **options)


def all_of(*names, **parts):
    """A gate for each of these patterns."""
    return find(hand_made(units(*names), **parts), len(set(names)), "as_printed")


ROWS = ("111", "110", "011")
BAD = {
    "too many clusters": (
        finding(*ROWS, clusters=4),
        "clusters = 4, and 3 distinct patterns among 3 rows",
        "at most 3 clusters",
        "lower clusters, or record more times and seeds",
    ),
    "one pattern": (finding("111", clusters=2), "1 distinct pattern among 1 rows", "at most 1", "lower clusters"),
    "no clusters": (finding(*ROWS, clusters=0), "clusters = 0", "a whole number >= 1 for clusters", "as an int"),
    "half clusters": (finding(*ROWS, clusters=1.5), "clusters = 1.5", "a whole number", "as an int"),
    "method": (
        finding(*ROWS, method="weigthed"),
        "unknown method 'weigthed'",
        "one of: weighted, as_printed",
        "did you mean 'weighted'",
    ),
    "n_init": (finding(*ROWS, clusters=1, n_init=0), "n_init = 0", "a whole number >= 1", "give n_init"),
    "seed": (finding(*ROWS, clusters=1, seed=-1), "seed = -1", "a whole number >= 0", "give seed"),
    "learned": (
        finding(*ROWS, clusters=1, learned=99),
        "learned = 99",
        "a share of the first loss, at most 1",
        "0.99",
    ),
    "layer": (finding(*ROWS, clusters=1, layer=2), "layer = 2", "a hidden layer, 1 to 1", "from 1"),
    "before learning": (
        lambda: find(hand_made(units(*ROWS, times=3), loss=[[1.0, 0.999, 0.995]]), 2),
        "gates recorded at too few times: at 3 times, all with a loss above learned = 0.99 of the first",
        "patterns from after learning has begun",
        "train longer, record later times",
    ),
    "dead": (
        finding("000", "000", clusters=1),
        "no unit of layer 1 that is on for any sample",
        "units that are on",
        'take method="as_printed"',
    ),
    "bias": (
        lambda: all_of(*ROWS, bias=True).net(),
        "gates of a net with biases",
        "gated nets have no biases",
        "bias=False",
    ),
    "all off": (
        lambda: all_of("000").net(),
        "1 gate(s), all off for every sample",
        "a gate that is on",
        "raise clusters",
    ),
    "widths": (
        lambda: all_of(*ROWS, "000").net([8, 8, 8, 8]),
        "4 widths for 3 pathways",
        "one per pathway",
        "3 numbers",
    ),
    "width": (lambda: all_of(*ROWS).net(0), "width = 0", "a whole number >= 1 for width", "give width"),
    "width in words": (lambda: all_of(*ROWS).net("shares"), "unknown width 'shares'", "share", "'share'"),
    "too few units": (
        lambda: _dealt(2, np.full(3, 1 / 3)),
        "2 units of the layer for 3 pathways",
        "a unit for each",
        "find fewer gates",
    ),
    "pattern too long": (
        lambda: implementable(np.ones(13), TASK),
        "a pattern of 13 values",
        "each of the 12 samples",
        "0 or 1 per",
    ),
    "pattern between": (
        lambda: implementable(np.full(12, 0.5), TASK),
        "a pattern with the value 0.5",
        "0 or 1",
        "pattern > 0.5",
    ),
    "patterns": (
        lambda: witness(np.ones((2, 12)), TASK),
        "pattern has shape (2, 12)",
        "1 dimension",
        "reshape pattern",
    ),
    "words": (lambda: implementable("110", TASK), "pattern is str", "real numbers", "convert"),
    "no samples": (
        lambda: implementable([1, 0], TASK.moments_only()),
        "moments only), without samples",
        "a task with samples",
        "tasks.from_arrays",
    ),
    "no task": (lambda: implementable_patterns("xor"), "'xor', without samples", "a task", "tasks.from_arrays"),
    "too many patterns": (
        lambda: implementable_patterns(one_hots(3, 3), most=100),
        "one unit can make at least",
        "at most 100",
        "take fewer samples",
    ),
    "1100 samples": (
        lambda: implementable_patterns(drawn((1100, 20)), most=1000),
        "one unit can make at least",
        "at most 1000",
        "take fewer samples",
    ),
    "bias in words": (
        lambda: implementable(ON["110"], TASK, bias="no"),
        "bias = 'no'",
        "True or False",
        "the unit has a bias",
    ),
    "bias of patterns": (lambda: implementable_patterns(TASK, bias=1), "bias = 1", "True or False", "has a bias"),
    "just too many patterns": (
        lambda: implementable_patterns(one_hots(3, 3), most=229),
        "one unit can make",
        "at most 229",
        "raise most=",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_three_parts(case):
    make, seen, needed, do = BAD[case]
    with pytest.raises(fs.BadInput) as error:
        make()
    for words, part in ((seen, error.value.seen), (needed, error.value.needed), (do, error.value.do)):
        assert re.search(re.escape(words), part), f"{words!r} not in {part!r}"


def one_hots(items, contexts):
    x = [np.r_[np.eye(items)[i], np.eye(contexts)[c]] for c in range(contexts) for i in range(items)]
    return fs.tasks.from_arrays(x, x)


def drawn(shape, seed=0, offset=0.0):
    return fs.tasks.from_arrays(offset + np.random.default_rng(seed).normal(size=shape), np.ones((shape[0], 1)))


def random_task(seed):
    """Six samples in whole numbers, with a zero sample, an opposite pair or a repeated one among them."""
    x = np.random.default_rng(seed).integers(-3, 4, size=(6, 2 + seed % 2))
    x[5] = [np.zeros_like(x[0]), -x[0], x[0], x[5]][seed % 4]
    return fs.tasks.from_arrays(x, x)


def excluded(pattern, x):
    """Farkas: no unit makes the pattern iff λ, μ ≥ 0 with Σ_on λ x = Σ_off μ x and Σ λ = 1 exist."""
    on = np.asarray(pattern, bool)
    sides = np.concatenate([x[on], -x[~on]]).T
    system = np.vstack([sides, np.r_[np.ones(on.sum()), np.zeros((~on).sum())]])
    return nnls(system, np.r_[np.zeros(x.shape[1]), 1.0])[1] < 1e-9


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_patterns_are_those_that_no_certificate_excludes(seed, bias):
    task = random_task(seed)
    x = np.column_stack([task.x, np.ones(6)]) if bias else np.asarray(task.x)
    every = np.array(list(itertools.product([False, True], repeat=6)))
    possible = every[[not excluded(pattern, x) for pattern in every]]
    assert np.array_equal(implementable_patterns(task, bias=bias), possible)
    for pattern in every:
        weights = witness(pattern, task, bias=bias)
        assert (weights is None) == excluded(pattern, x)
        assert weights is None or np.array_equal(x @ weights > 0, pattern)


@pytest.mark.parametrize("bias", [False, True])
def test_random_units_make_only_listed_patterns(bias):
    rng = np.random.default_rng(0)
    task = fs.tasks.from_arrays(rng.normal(size=(8, 3)) * 10.0 ** rng.uniform(-4, 4, size=(8, 1)), np.ones((8, 1)))
    x = np.column_stack([task.x, np.ones(8)]) if bias else task.x
    made = np.unique(rng.normal(size=(50_000, x.shape[1])) * 10.0 ** rng.uniform(-4, 4, (50_000, 1)) @ x.T > 0, axis=0)
    listed = {bytes(row) for row in implementable_patterns(task, bias=bias)}
    assert {bytes(row) for row in made} <= listed
    # Vectors in general position: 2 Σ_{k<d} C(7, k) half-space patterns, and all off at w = 0.
    assert bias or len(listed - {bytes(np.zeros(8, bool))}) == 2 * (1 + 7 + 21) - ((~made).all(1).any())


@pytest.mark.parametrize(("items", "contexts", "count"), [(2, 2, 14), (3, 2, 46), (3, 3, 230)])
def test_counts_of_item_and_context_inputs(items, contexts, count):
    """The counts are those of the acyclic orientations of a complete bipartite graph, poly-Bernoulli numbers."""
    listed = implementable_patterns(one_hots(items, contexts))
    assert len(listed) == count == len(np.unique(listed, axis=0))


@pytest.mark.parametrize("along", ["all", "inputs", "samples"])
@pytest.mark.parametrize("power", [-6, 6])
def test_scales_leave_the_counts_of_patterns(power, along):
    x = np.asarray(one_hots(3, 2).x)
    scales = {"all": 10.0**power, "inputs": np.logspace(0, power, 5), "samples": np.logspace(0, power, 6)[:, None]}
    assert len(implementable_patterns(fs.tasks.from_arrays(x * scales[along], x))) == 46


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6, 1e10])
def test_an_offset_leaves_the_patterns_of_a_unit_with_a_bias(offset, seed):
    """On a line those of thresholds, both ways: 2 n. In a plane 2 (1 + 5 + 10) for 6 samples in general position."""
    task = drawn((6, 1), seed, offset)
    x = np.asarray(task.x)[:, 0]
    thresholds = {bytes(side) for edge in [-np.inf, *x] for side in (x > edge, x <= edge)}
    listed = implementable_patterns(task, bias=True)
    assert {bytes(row) for row in listed} == thresholds
    assert len(listed) == 12
    for pattern in listed:
        weights = witness(pattern, task, bias=True)
        assert weights is not None
        assert np.array_equal(x * weights[0] + weights[1] > 0, pattern)
    by_hand = fs.tasks.from_arrays(np.column_stack([x, np.ones(6)]), np.ones((6, 1)))
    assert np.array_equal(implementable_patterns(by_hand), listed)
    assert len(implementable_patterns(drawn((6, 2), seed, offset), bias=True)) == 32


def test_a_count_far_from_zero_is_split_anywhere():
    task = fs.tasks.from_arrays(1e7 + np.arange(4.0)[:, None], np.ones((4, 1)))
    assert implementable([0, 1, 1, 1], task, bias=True)
    assert not implementable([0, 1, 0, 1], task, bias=True)
    assert len(implementable_patterns(task, bias=True)) == 8


@pytest.mark.parametrize("apart", [1e-3, 1e-7, 1e-9])
def test_samples_that_nearly_agree_are_told_apart_by_a_witness(apart):
    task = fs.tasks.from_arrays([[1, 0], [1, apart], [1, 1]], np.ones((3, 1)))
    weights = witness([1, 0, 0], task)
    assert weights is not None
    assert np.array_equal(np.asarray(task.x) @ weights > 0, [1, 0, 0])
    between = fs.tasks.from_arrays([[1, 0], [1, apart], [1, 2 * apart]], np.ones((3, 1)))
    assert not implementable([1, 0, 1], between)


@pytest.mark.parametrize("apart", [1e-12, 1e-16, 1e-20])
def test_a_possible_pattern_is_never_called_impossible(apart):
    """The weights (1, -2 / apart) make it; a program that does not find them has to say so."""
    task = fs.tasks.from_arrays([[1, 0], [1, apart], [1, 1]], np.ones((3, 1)))
    assert np.array_equal(np.asarray(task.x) @ [1, -2 / apart] > 0, [1, 0, 0])
    try:
        assert implementable([1, 0, 0], task)
    except fs.BadInput as error:
        assert "rounding leaves open" in error.seen  # noqa: PT017


@pytest.mark.parametrize("bias", [False, True])
def test_entries_of_all_sizes_leave_the_count_of_patterns(bias):
    """Eight samples in general position: 2 Σ_{k<d} C(7, k) patterns, all off among them or one more at w = 0."""
    rng = np.random.default_rng(0)
    task = fs.tasks.from_arrays(rng.normal(size=(8, 3)) * 10.0 ** rng.uniform(-6, 6, size=(8, 3)), np.ones((8, 1)))
    assert len(implementable_patterns(task, bias=bias)) in ({128} if bias else {58, 59})


def test_patterns_of_samples_that_depend_on_each_other_up_to_rounding():
    """Seven samples of rank 2 in five inputs: 14 half-plane patterns, and all off."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(7, 2)) @ rng.normal(size=(2, 5))
    assert len(implementable_patterns(fs.tasks.from_arrays(x, x))) in {14, 15}


def test_a_large_pattern_is_decided_against_a_certificate():
    rng = np.random.default_rng(0)
    task = drawn((80, 40))
    patterns = rng.random((12, 80)) < 0.5
    answers = [implementable(pattern, task) for pattern in patterns]
    assert answers == [not excluded(pattern, np.asarray(task.x)) for pattern in patterns]
    assert set(answers) == {True, False}


def test_many_samples_take_little_memory_before_too_many_patterns_are_refused():
    task = drawn((1000, 20))
    tracemalloc.start()
    try:
        with pytest.raises(fs.BadInput, match="at least"):
            implementable_patterns(task)
        assert tracemalloc.get_traced_memory()[1] < 250e6
    finally:
        tracemalloc.stop()


def test_exclusive_or_of_item_and_context_is_no_units_pattern():
    task = one_hots(2, 2)
    assert not implementable([1, 0, 0, 1], task)
    assert implementable([False, True, True, True], task)
    assert implementable(np.array([0, 0, 0, 0]), task)
    assert implementable([1, 0, 0, 0], fs.tasks.xor(margin=1.0))
    assert implementable([0, 1, 1, 0], fs.tasks.xor(margin=1.0))


def test_what_rounding_leaves_open_is_said():
    """Opposite samples that are both off force w·x = 0, which no weights reach exactly."""
    pair = np.random.default_rng(0).normal(size=(2, 3))
    task = fs.tasks.from_arrays(np.concatenate([pair, -pair[:1]]), np.ones((3, 1)))
    with pytest.raises(fs.BadInput, match="rounding leaves open") as error:
        implementable([0, 1, 0], task)
    assert "on the border" in error.value.needed
    assert "small whole numbers" in error.value.do
