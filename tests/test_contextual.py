"""Tasks for networks with gates: exclusive or, items in contexts, routing between domains."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import festina as fs
from festina.tasks.contextual import cross_block, ring_block
from festina.tasks.hierarchy import hierarchy_block

# Tables of [jarvis2025], recomputed: Σʸˣ and Σˣ are means over samples, losses are ½ Σ over all samples.
ORACLES = {
    "three, different": (
        {},
        105.623,
        16.508433,
        [1.1427, 0.6104, 0.4564, 0.3797, 0.2581, 0.2320, 0.1555, 0.1502, 0.1440, 0.1382, 0],
        [0.4546, 0.3368, 0.3333, 0.1253, *[0.125] * 6, 0],
    ),
    "three, same": (
        {"blocks": "hierarchy"},
        96,
        17,
        [1.0704, 0.4564, 0.4564, 0.3819, 0.25, 0.25, *[0.1443] * 4, 0],
        [0.4583, 0.3333, 0.3333, *[0.125] * 7, 0],
    ),
    "four, same": (
        {"contexts": 4, "blocks": "hierarchy", "context_scale": 1.1},
        128,
        25.5,
        [1.001, *[0.3766] * 3, 0.3698, 0.2421, 0.2421, *[0.1398] * 4, 0],
        [0.4275, *[0.3025] * 3, *[0.125] * 7, 0],
    ),
    "five, same": (
        {"contexts": 5, "blocks": "hierarchy", "context_scale": 1.35},
        160,
        34,
        [1.0495, *[0.3697] * 4, 0.3623, 0.2372, 0.2372, *[0.1369] * 4, 0],
        [0.4895, *[0.3645] * 4, *[0.125] * 7, 0],
    ),
}
MATRICES = {"hierarchy": hierarchy_block, "ring": ring_block, "cross": cross_block}


@pytest.mark.parametrize("name", ORACLES)
def test_contextual_tasks_are_those_of_the_tables(name):
    arguments, start, plateau, values, variances = ORACLES[name]
    task = fs.tasks.contextual(**arguments)
    modes, contexts = task.modes(), arguments.get("contexts", 3)
    assert (task.d_in, task.d_out, task.samples) == (8 + contexts, 15 * (contexts + 1), 8 * contexts)
    np.testing.assert_allclose(task.samples * task.power / 2, start, atol=5e-4)
    np.testing.assert_allclose(task.samples * task.floor(), plateau, atol=5e-7)
    np.testing.assert_allclose(modes.singular_values, values, atol=6e-5)
    np.testing.assert_allclose(modes.variances, variances, atol=6e-5)


def test_different_contexts_do_not_share_modes_with_their_inputs():
    task = fs.tasks.contextual()
    products = task.samples * np.linalg.svd(task.cov_yx, compute_uv=False)
    printed = [27.425, 14.650, 10.954, 9.113, 6.193, 5.568, 3.731, 3.606, 3.456, 3.317, 0]
    np.testing.assert_allclose(products, printed, atol=6e-4)
    np.testing.assert_allclose(
        np.linalg.eigvalsh(task.cov_x)[::-1], [0.4583, 0.3333, 0.3333, *[0.125] * 7, 0], atol=6e-5
    )
    square = task.cov_yx.T @ task.cov_yx @ task.cov_x
    assert np.linalg.norm(square - square.T) / np.linalg.norm(square) == pytest.approx(0.047, abs=5e-4)
    right = task.modes().right
    in_modes = right.T @ task.cov_x @ right
    off = in_modes - np.diag(np.diag(in_modes))
    assert np.linalg.norm(off) / np.linalg.norm(in_modes) == pytest.approx(0.044, abs=5e-4)
    assert np.abs(off).max() == pytest.approx(0.0214, abs=5e-5)
    assert task.stated_spectrum is None


@pytest.mark.parametrize("items", [2, 4, 8, 16])
@pytest.mark.parametrize("contexts", [2, 3, 5])
@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0, 1.35])
def test_the_spectrum_of_equal_trees_is_the_stated_one(items, contexts, scale):
    task = fs.tasks.contextual(items, contexts, "hierarchy", scale)
    np.testing.assert_allclose(task.stated_spectrum, np.linalg.svd(task.cov_yx, compute_uv=False), atol=1e-12)
    levels = items.bit_length()
    assert task.samples * task.power / 2 == pytest.approx(items * contexts * levels)
    if scale:
        plateau = (contexts - 1) * (items * levels - (2 * items - 1)) / 2
        assert task.samples * task.floor() == pytest.approx(plateau, abs=1e-10)


def test_large_values_need_not_go_with_large_variances():
    modes = fs.tasks.contextual(contexts=4, blocks="hierarchy").modes()
    np.testing.assert_allclose(modes.singular_values[1:5], [0.3698, *[0.3423] * 3], atol=6e-5)
    np.testing.assert_allclose(modes.variances[1:5], [0.125, *[0.25] * 3], atol=1e-12)


def test_every_sample_has_the_features_of_its_item_in_its_context():
    names = ("cross", "hierarchy", "ring", "ring")
    task = fs.tasks.contextual(items=16, contexts=4, blocks=names, context_scale=0.7)
    features = task.y.reshape(task.samples, 5, 31)
    for sample in range(task.samples):
        context, item = divmod(sample, 16)
        assert (task.labels["context"][sample], task.labels["item"][sample]) == (context, item)
        assert task.items[sample] == f"item {item} in context {context + 1}"
        assert {n: v for n, v in zip(task.inputs, task.x[sample], strict=True) if v} == {
            f"item {item}": 1.0,
            f"context {context + 1}": 0.7,
        }
        expected = np.zeros((5, 31))
        expected[0] = hierarchy_block(16)[:, item]
        expected[1 + context] = MATRICES[names[context]](16)[:, item]
        np.testing.assert_array_equal(features[sample], expected)
    assert task.features[:2] == ("common feature 0", "common feature 1")
    assert task.features[31 * 4 + 2] == "context 4 feature 2"


def test_blocks_are_those_of_the_source():
    groups = [list(np.flatnonzero(row)) for row in cross_block(8)]
    assert groups[:3] == [[*range(8)], [0, 1, 2, 3], [4, 5, 6, 7]]
    assert groups[3:] == [[0, 2], [1, 3], [4, 6], [5, 7], *([i] for i in range(8))]
    assert [list(np.flatnonzero(row)) for row in cross_block(16)[3:5]] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    np.testing.assert_array_equal(cross_block(4), hierarchy_block(4))
    ring, bump = ring_block(8), [0, 0.33, 0.66, 1, 1, 0.66, 0.33, 0]
    np.testing.assert_array_equal(ring[0], np.ones(8))
    for k in range(1, 15):
        np.testing.assert_array_equal(ring[k], [bump[(i + k - 1) % 8] for i in range(8)])
    np.testing.assert_array_equal(ring[9:], ring[1:7])
    np.testing.assert_array_equal(ring_block(4)[1], [0, 1, 1, 0])
    np.testing.assert_array_equal(ring_block(16)[1, :8], [0, 0.14, 0.28, 0.42, 0.57, 0.71, 0.85, 1])
    for make in MATRICES.values():
        assert make(16).shape == (31, 16)


def test_one_name_serves_all_contexts_and_the_default_three_go_round():
    make = fs.tasks.contextual
    np.testing.assert_array_equal(make(8, 2, ("ring",)).y, make(8, 2, ("ring", "ring")).y)
    np.testing.assert_array_equal(make(8, 2, "cross").y, make(8, 2, ["cross"]).y)
    np.testing.assert_array_equal(make(8, 2).y, make(8, 2, ("hierarchy", "ring")).y)
    np.testing.assert_array_equal(make(8, 4).y, make(8, 4, ("hierarchy", "ring", "cross", "hierarchy")).y)


@pytest.mark.parametrize("margin", [0.0, 0.5, 2.0])
def test_exclusive_or_with_a_margin(margin):
    task = fs.tasks.xor(margin)
    rows = [[-1, 1, -1, 1], [-1, -1, 1, 1], [-margin, margin, margin, -margin]]
    np.testing.assert_array_equal(task.x, np.transpose(rows))
    np.testing.assert_array_equal(task.y, np.transpose([[-1, 1, 1, -1]]))
    np.testing.assert_array_equal(task.labels["sign"], task.y[:, 0])
    np.testing.assert_array_equal(task.labels["item"], range(4))
    np.testing.assert_allclose(task.stated_spectrum, np.linalg.svd(task.cov_yx, compute_uv=False), atol=1e-15)
    np.testing.assert_allclose(task.modes().variances, [margin**2 if margin else 1], atol=1e-15)
    assert task.floor() == pytest.approx(0 if margin else 0.5)
    # One path for each sign, and one path for each item, as in the table of the source.
    for sign in (-1, 1):
        gate = task.labels["sign"] == sign
        np.testing.assert_allclose(np.linalg.norm(task.y[gate].T @ task.x[gate] / 4), margin / 2, atol=1e-15)
    for item in range(4):
        gate = task.labels["item"] == item
        path = task.y[gate].T @ task.x[gate] / 4
        np.testing.assert_allclose(np.linalg.norm(path), np.sqrt(2 + margin**2) / 4, atol=1e-15)
        along = path / np.linalg.norm(path)
        variance = (along @ task.x[gate].T @ task.x[gate] @ along.T).item() / 4
        assert variance == pytest.approx((2 + margin**2) / 4)


TREE = np.array([[6, 6, 6, 6], [4, 4, 0, 0], [0, 0, 4, 4], *(3 * np.eye(4))])


ROUTINGS = [
    (domains, trained, pairs)
    for domains, trained, pairs in itertools.product([1, 2, 5, 7], [1, 2, 4, 5, 7], ["trained", "untrained", "all"])
    if trained < domains or (trained == domains and pairs != "untrained")  # where all are trained, none is untrained
]


@pytest.mark.parametrize(("domains", "trained", "pairs"), ROUTINGS)
def test_routing_pairs_are_those_of_the_slides(domains, trained, pairs):
    shifts = range(-((trained - 1) // 2), trained // 2 + 1)
    chosen = {(i, (i + j) % domains) for i in range(domains) for j in shifts}
    everything = {(i, o) for i in range(domains) for o in range(domains)}
    wanted = {"trained": chosen, "untrained": everything - chosen, "all": everything}[pairs]
    assert len(chosen) == domains * trained
    task = fs.tasks.routing(domains, trained, pairs)
    labels = {name: values.astype(int) for name, values in task.labels.items()}
    assert set(zip(labels["source"], labels["target"], strict=True)) == wanted
    assert task.samples == 4 * len(wanted) == len(set(zip(*labels.values(), strict=True)))
    assert (task.d_in, task.d_out) == (4 * domains, 7 * domains)
    for sample in range(task.samples):
        source, target, item = (labels[name][sample] for name in ("source", "target", "item"))
        x, y = np.zeros((domains, 4)), np.zeros((domains, 7))
        x[source, item], y[target] = 1, TREE[:, item]
        np.testing.assert_array_equal(task.x[sample], x.ravel())
        np.testing.assert_array_equal(task.y[sample], y.ravel())
    np.testing.assert_allclose(task.stated_spectrum, np.linalg.svd(task.cov_yx, compute_uv=False), atol=1e-12)


def test_routing_by_default_is_that_of_the_slides():
    task = fs.tasks.routing()
    assert len(set(zip(task.labels["source"], task.labels["target"], strict=True))) == 28
    assert set(task.labels["target"][task.labels["source"] == 3]) == {2, 3, 4, 5}
    np.testing.assert_allclose(
        fs.tasks.routing(1, 1).stated_spectrum * 4, [np.sqrt(185), np.sqrt(41), 3, 3], rtol=1e-14
    )
    assert task.items[-1] == "item 3, domain 7 to 7"
    assert (task.inputs[5], task.features[8]) == ("item 1 of domain 2", "feature 1 of domain 2")


@pytest.mark.parametrize("levels", [(2.0,), (0.5, -1.0), (1.0, 0.0, 3.0, 2.0)])
def test_routing_takes_any_tree(levels):
    task = fs.tasks.routing(3, 2, levels=levels)
    assert task.d_in == 3 * 2 ** (len(levels) - 1)
    np.testing.assert_allclose(task.stated_spectrum, np.linalg.svd(task.cov_yx, compute_uv=False), atol=1e-12)
    first = task.y[0].reshape(3, -1)[int(task.labels["target"][0])]
    assert tuple(first[first != 0]) == tuple(level for level in levels if level)


@pytest.mark.parametrize(("domains", "trained"), [(7, 4), (5, 2), (3, 3)])
def test_the_loss_of_the_slides_in_units_of_the_house(domains, trained):
    rng = np.random.default_rng(0)
    task = fs.tasks.routing(domains, trained)
    encoders, decoders = rng.normal(size=(domains, 6, 4)), rng.normal(size=(domains, 7, 6))
    shared = rng.normal(size=(6, 6))
    pairs = sorted(set(zip(task.labels["source"].astype(int), task.labels["target"].astype(int), strict=True)))
    theirs = sum(np.mean((TREE - decoders[o] @ shared @ encoders[i]) ** 2) for i, o in pairs)
    outputs = np.zeros((task.samples, domains, 7))
    for sample in range(task.samples):
        source, target, item = (int(task.labels[name][sample]) for name in ("source", "target", "item"))
        outputs[sample, target] = (decoders[target] @ shared @ encoders[source])[:, item]
    ours = 0.5 * np.mean(np.sum((task.y - outputs.reshape(task.samples, -1)) ** 2, axis=1))
    assert theirs == pytest.approx(2 * domains * trained / 7 * ours)
    assert 2 * domains * trained / 7 * task.power / 2 == pytest.approx(domains * trained * 244 / 28)


@pytest.mark.parametrize(
    ("make", "words", "needed"),
    [
        (lambda: fs.tasks.xor(-1), "margin = -1", "margin >= 0"),
        (lambda: fs.tasks.xor("wide"), "margin is str", "real numbers"),
        (lambda: fs.tasks.contextual(items=6), "items = 6", "a power of two"),
        (lambda: fs.tasks.contextual(items=1), "items = 1", ">= 2"),
        (lambda: fs.tasks.contextual(items=2), "items = 2 with the block 'ring'", "at least 4 items"),
        (lambda: fs.tasks.contextual(items=2, blocks="cross"), "items = 2 with the block 'cross'", "at least 4 items"),
        (lambda: fs.tasks.contextual(contexts=1), "contexts = 1", ">= 2"),
        (lambda: fs.tasks.contextual(context_scale=-1), "context_scale = -1", ">= 0"),
        (lambda: fs.tasks.contextual(blocks="rings"), "unknown block 'rings'", "hierarchy"),
        (lambda: fs.tasks.contextual(blocks=("ring", "ring")), "('ring', 'ring') for 3 contexts", "one for each"),
        (lambda: fs.tasks.contextual(8, 2, ("ring", "cross", "ring")), "for 2 contexts", "one for each"),
        (lambda: fs.tasks.contextual(blocks=()), "blocks = ()", "names of blocks"),
        (lambda: fs.tasks.contextual(blocks=3), "blocks = 3", "names of blocks"),
        (lambda: fs.tasks.routing(domains=0), "domains = 0", ">= 1"),
        (lambda: fs.tasks.routing(trained=0), "trained = 0", ">= 1"),
        (lambda: fs.tasks.routing(3, 4), "trained = 4 of 3 domains", "trained <= domains"),
        (lambda: fs.tasks.routing(pairs="some"), "unknown pairs 'some'", "untrained"),
        (lambda: fs.tasks.routing(3, 3, "untrained"), "trained = 3 of 3 domains", "not trained"),
        (lambda: fs.tasks.routing(levels=()), "levels is empty", "each level"),
        (lambda: fs.tasks.routing(levels=3.0), "levels has shape ()", "1 dimension"),
    ],
)
def test_impossible_tasks_are_refused_in_three_parts(make, words, needed):
    with pytest.raises(fs.BadInput) as refusal:
        make()
    assert words in refusal.value.seen
    assert needed in refusal.value.needed
    assert refusal.value.do
