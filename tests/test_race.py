"""Bases of paths, the race of their modes, and pathways that never meet."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.optimize import brentq

import festina as fs
from festina.nets.gated.path_bases import bases_of_paths
from festina.tasks.base import Task
from festina.theories.disjoint_pathways import effective_start, time_to_loss

LIVE = 1e-9


def two_domains(noise=0.0):
    """Inputs of 5 and 4 dimensions, correlated mode by mode, two outputs; all moments diagonal unless `noise`."""
    rng = np.random.default_rng(0)
    va, vb, ua, ub = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (5, 4, 4, 3))
    turn = rng.normal(size=(5, 5))
    seen = va @ expm(noise * (turn - turn.T))
    variances, others = np.array([1.4, 1.1, 0.9, 0.7, 0.5]), np.array([0.6, 0.9, 1.2, 0.8])
    shared = 0.5 * np.sqrt(variances[:4] * others)
    cov_x = np.block(
        [
            [seen * variances @ seen.T, seen[:, :4] * shared @ vb.T],
            [vb * shared @ seen[:, :4].T, vb * others @ vb.T],
        ]
    )
    cov_yx = np.block(
        [
            [ua * [2.0, 1.5, 1.0, 0.6] @ va[:, :4].T, ua * [0.9, 1.2, 0.4, 0.7] @ vb.T],
            [ub * [1.0, 0.8, 1.3] @ va[:, :3].T, ub * [0.5, -0.7, 1.1] @ vb[:, :3].T],
        ]
    )
    return Task(cov_yx=cov_yx, cov_x=cov_x)


SHARED = fs.nets.Gated(
    {"a": 5, "b": 4, "low": 6, "high": 7, "y": 4, "z": 3},
    [("a", "low"), ("b", "low"), ("low", "high"), ("high", "y"), ("high", "z")],
)
STRENGTHS = [0.3, 0.4, 0.5, 0.35, 0.45]


def integrated(task, weights, times):
    """The map of the net of SHARED, all weights integrated by SciPy from the matrix form of the gradient."""
    shapes = [w.shape for w in weights]
    ends = np.cumsum([0, *(w.size for w in weights)])

    def layers(flat):
        a, b, middle, y, z = (flat[i:j].reshape(s) for i, j, s in zip(ends[:-1], ends[1:], shapes, strict=True))
        return np.hstack([a, b]), middle, np.vstack([y, z])

    def field(_, flat):
        first, middle, last = layers(flat)
        missing = task.cov_yx - last @ middle @ first @ task.cov_x
        into, out = (last @ middle).T @ missing, missing @ (middle @ first).T
        slopes = [into[:, :5], into[:, 5:], last.T @ missing @ first.T, out[:4], out[4:]]
        return np.concatenate([slope.ravel() for slope in slopes])

    flat = np.concatenate([np.ravel(w) for w in weights])
    found = solve_ivp(field, (0, times[-1]), flat, "DOP853", times, rtol=1e-11, atol=1e-13)
    return np.array([last @ middle @ first for first, middle, last in map(layers, found.y.T)])


def shared_setup(noise=0.0):
    return fs.Setup(two_domains(noise), SHARED, fs.inits.Decoupled(STRENGTHS), times=np.linspace(0, 8, 9))


def test_the_race_is_the_flow_of_all_weights_where_paths_share_an_edge():
    setup = shared_setup()
    assert fs.solve(setup).source == "NeuralRace"
    predicted = fs.solve(setup, "NeuralRace")
    truth = integrated(setup.task, setup.weights(0), setup.times)
    np.testing.assert_allclose(predicted["map"], truth, atol=1e-8)
    # One numbering of the modes for all paths; a sign that no choice of vectors removes stays in one of them.
    seen = bases_of_paths(SHARED, setup.task).strengths
    order = np.argsort(-seen[0])
    wanted = [[2.0, 1.5, 1.0, 0.6, 0], [1.0, 0.8, 1.3, 0, 0], [0.9, 1.2, 0.4, 0.7, 0], [0.5, 0.7, 1.1, 0, 0]]
    np.testing.assert_allclose(np.abs(seen[:, order]), wanted, atol=1e-12)
    signs = np.prod(seen[:, order[:3]], axis=0)
    np.testing.assert_array_equal(np.sign(signs), [1, -1, 1])


def test_a_rotated_input_basis_has_a_measured_defect_and_an_error_that_grows_with_it():
    defects, errors = [], []
    for noise in (0.02, 0.1, 0.3):
        setup = shared_setup(noise)
        with pytest.raises(fs.NoTheory, match="diagonal moments: measured"):
            fs.solve(setup, "NeuralRace")
        wrong = fs.solve(setup, "NeuralRace", strict=False)
        truth = integrated(setup.task, setup.weights(0), setup.times)
        errors.append(np.linalg.norm(wrong["map"] - truth, axis=(1, 2)).max() / np.linalg.norm(truth[-1]))
        defects.append(bases_of_paths(SHARED, setup.task).defects()["defect"].max())
    assert np.all(np.diff(defects) > 0)
    assert np.all(np.diff(errors) > 0)
    # The page has 0.038, 0.176 and 0.538 for another draw: the same orders of magnitude.
    assert np.all(np.abs(np.log(np.array(errors) / [0.038, 0.176, 0.538])) < np.log(3))


def test_the_defect_of_a_single_path_is_that_of_its_singular_vectors():
    task = fs.tasks.contextual(items=8, contexts=3)
    found = bases_of_paths(fs.nets.Gated.contexts(subsets=2), task)
    defects = found.defects()
    assert abs(defects["defect"][0] - 0.044) < 5e-4
    assert abs(defects["commutator"][0] - 0.047) < 5e-4
    own = found.variances[0, 0]
    assert np.abs(own - np.diag(np.diag(own))).max() == pytest.approx(0.0214, rel=5e-3)
    right = np.linalg.svd(task.cov_yx)[2]
    turned = right @ task.cov_x @ right.T
    off = np.linalg.norm(turned - np.diag(np.diag(turned))) / np.linalg.norm(turned)
    assert defects["defect"][0] == pytest.approx(off, rel=1e-9)
    same = bases_of_paths(
        fs.nets.Gated.contexts(subsets=2), fs.tasks.contextual(items=8, contexts=3, blocks="hierarchy")
    )
    assert max(np.max(values) for values in same.defects().values()) < 1e-12


@pytest.mark.parametrize(("contexts", "plateau", "sorted_plateau"), [(4, 25.5, 37.37), (5, 34.0, 39.65)])
def test_variances_belong_to_singular_vectors_and_not_to_an_order(contexts, plateau, sorted_plateau):
    task = fs.tasks.contextual(items=8, contexts=contexts, blocks="hierarchy")
    found = bases_of_paths(fs.nets.Gated.pathways([{"width": 8}]), task)
    values, variances = found.strengths[0], np.diag(found.variances[0, 0])
    live, total = values > LIVE, 0.5 * np.sum(task.y**2)
    assert total - task.samples * np.sum(values[live] ** 2 / (2 * variances[live])) == pytest.approx(plateau, abs=1e-9)
    learned = values[live] / np.sort(variances)[::-1][live]  # where modes would end with variances paired by order
    wrong = total - task.samples * np.sum(values[live] * learned - variances[live] * learned**2 / 2)
    assert wrong == pytest.approx(sorted_plateau, abs=5e-3)


def residual(contexts, items=8):
    """The contextual task with equal hierarchies, minus what a linear map of all inputs learns."""
    task = fs.tasks.contextual(items=items, contexts=contexts, blocks="hierarchy")
    return fs.tasks.from_arrays(task.x, task.y - task.x @ task.target().T, labels=task.labels)


@pytest.mark.parametrize("contexts", [3, 4, 5])
@pytest.mark.parametrize("size", ["single", "two", "all but one"])
def test_overlaps_of_subsets_of_contexts_are_computed(contexts, size):
    m = {"single": 1, "two": 2, "all but one": contexts - 1}[size]
    task = residual(contexts)
    found = bases_of_paths(fs.nets.Gated.contexts(subsets=m, contexts=contexts, common=False, width=8), task)
    live = found.strengths[0] > LIVE
    assert live.sum() == 7
    overlaps = found.overlaps[0][:, live][:, :, live]
    diagonal = np.einsum("jaa->ja", overlaps)
    assert np.abs(overlaps - diagonal[:, :, None] * np.eye(7)).max() < 1e-12
    if m == contexts - 1:
        np.testing.assert_allclose(diagonal[1:], -1 / (contexts - 1), atol=1e-12)
    common = np.arange(m + 1)  # contexts that another subset shares with this one
    subsets = np.array([math.comb(m, i) * math.comb(contexts - m, m - i) for i in common])
    factor = np.sum(subsets * common * (common - m**2 / contexts)) / (m**2 * (contexts - m) / contexts)
    if m == contexts - 1:
        assert factor == pytest.approx(1 / m)
    slowing = np.einsum("ajb->ab", found.couplings[0][live][:, :, live])
    np.testing.assert_allclose(slowing, factor * m / task.samples * np.eye(7), atol=1e-12)


def test_leave_one_out_paths_on_the_residual_follow_the_closed_form():
    contexts, begun = 3, 0.04
    task = residual(contexts, items=4)
    net = fs.nets.Gated.contexts(subsets=2, contexts=contexts, items=4, width=5, common=False)
    setup = fs.Setup(task, net, fs.inits.Decoupled(math.sqrt(begun)), times=np.linspace(0, 60, 13))
    predicted = fs.solve(setup)
    assert predicted.source == "NeuralRace"
    found = bases_of_paths(net, task)
    sigma = np.sqrt([3.0, 1.0, 1.0])  # of the hierarchy without its mean
    s, d = sigma * math.sqrt(2 * 1 / 3) / 12, 2 / 12
    np.testing.assert_allclose(found.strengths[:, :3], np.tile(s, (3, 1)), atol=1e-12)
    last = 2 * s / d
    np.testing.assert_allclose(last, sigma * math.sqrt(2 / 3))
    expected = last / (1 - (1 - last / begun) * np.exp(-2 * s * setup.times[:, None]))
    np.testing.assert_allclose(predicted["path_modes"][:, 1, :3], expected, atol=1e-9)


def test_contexts_that_start_alike_race_exactly_and_others_do_not():
    net = fs.nets.Gated.contexts(subsets=2, items=4, width=5, common=False)
    setup = fs.Setup(residual(3, items=4), net, fs.inits.Decoupled(0.2), times=np.linspace(0, 30, 4))
    predicted, truth = fs.solve(setup, "NeuralRace"), fs.solve(setup, "PathDynamics")
    np.testing.assert_allclose(predicted["map"], truth["map"], atol=1e-8)
    np.testing.assert_allclose(predicted["outputs"], truth["outputs"], atol=1e-8)
    with pytest.raises(fs.NoTheory, match="diagonal couplings: measured"):
        fs.solve(setup.replace(init=fs.inits.Decoupled([0.3, 0.3, 0.2, 0.2, 0.2, 0.2])), "NeuralRace")


def test_a_path_that_turns_the_vectors_of_others_is_refused_although_all_modes_stay_apart():
    task = fs.tasks.contextual(items=4, contexts=3, blocks="hierarchy")
    net = fs.nets.Gated.contexts(subsets=2, items=4, width=8)
    setup = fs.Setup(task, net, fs.inits.Decoupled(0.2), times=np.linspace(0, 30, 4))
    with pytest.raises(fs.NoTheory, match="diagonal couplings: measured"):
        fs.solve(setup, "NeuralRace")
    wrong, truth = fs.solve(setup, "NeuralRace", strict=False), fs.solve(setup, "PathDynamics")
    assert np.abs(wrong["map"] - truth["map"]).max() > 0.1


def test_in_sequential_training_later_paths_are_not_seen_by_earlier_ones():
    net = fs.nets.Gated(dict(SHARED.nodes), SHARED.edges, ranks=[0, 1, 0, 0, 0])
    setup = shared_setup().replace(net=net)
    predicted, truth = fs.solve(setup, "NeuralRace"), fs.solve(setup, "PathDynamics")
    np.testing.assert_allclose(predicted["map"], truth["map"], atol=1e-8)
    assert np.abs(fs.solve(shared_setup(), "NeuralRace")["map"] - predicted["map"]).max() > 1e-2
    found = bases_of_paths(net, setup.task)
    assert found.ranks == (0, 0, 1, 1)
    assert np.all(found.couplings[0, :, 2:] == 0)
    assert np.any(found.couplings[2, :, 0] != 0)


def test_the_routing_network_has_the_published_losses_and_conserves_its_imbalance():
    domains, trained, begun = 7, 4, 0.08
    unit = 2 * domains * trained / 7  # the slides' loss in units of ours, and their rate
    task, net = fs.tasks.routing(domains, trained), fs.nets.Gated.routing(hidden=8)
    setup = fs.Setup(task, net, fs.inits.Decoupled(begun), times=0.02 * unit * np.array([0, 100, 200, 500.0]))
    predicted = fs.solve(setup)
    assert predicted.source == "NeuralRace"
    np.testing.assert_allclose(unit * predicted["loss"][:3], [243.973, 58.845, 17.905], atol=6e-3)
    b = predicted["edge_strengths"]
    kept = domains * b[:, 0] ** 2 - b[:, 7] ** 2
    np.testing.assert_allclose(kept, (domains - 1) * begun**2, atol=1e-9)
    np.testing.assert_allclose(b[:, 0], b[:, 8], atol=1e-9)
    # Pairs that were never trained share the edges of those that were.
    found = bases_of_paths(net, task)
    closed = [p for p in range(49) if p not in found.open]
    assert len(closed) == 21
    wanted = np.tile([185**0.5, 41**0.5, 3, 3], (21, 1))
    np.testing.assert_allclose(predicted["path_modes"][-1, closed], wanted, rtol=2e-2)


@pytest.mark.parametrize(("domains", "half_time"), [(1, 624.97), (2, 490.70), (4, 377.39)])
def test_domains_that_no_moment_links_share_the_modes_of_the_shared_edge(domains, half_time):
    task, net = fs.tasks.routing(domains, 1), fs.nets.Gated.routing(domains, domains, 1, hidden=4)
    unit = 0.02 * 2 * domains / 7  # an epoch of the slides
    epochs = np.floor(half_time) + np.arange(2)
    setup = fs.Setup(task, net, fs.inits.Decoupled(0.08), times=unit * np.array([0, *epochs, 3000]))
    predicted = fs.solve(setup, "NeuralRace")
    found = bases_of_paths(net, task)
    modes = predicted["path_modes"][:, found.open]
    np.testing.assert_allclose(modes[0], 0.08**3, rtol=1e-12)
    np.testing.assert_allclose(modes[-1, :, :2], np.tile([185**0.5, 41**0.5], (domains, 1)), rtol=1e-4)
    before, after = modes[1:3, :, 0]
    reached = epochs[0] + (185**0.5 / 2 - before) / (after - before)
    np.testing.assert_allclose(reached, half_time, atol=0.02)
    if domains == 2:
        np.testing.assert_allclose(predicted["map"], fs.solve(setup, "PathDynamics")["map"], atol=1e-7)


def test_domains_whose_cross_paths_are_open_keep_modes_of_their_own_and_silent_ones_come_last():
    # Shared numbers would start a → z and b → y, which have nothing to learn, at 0.09; and only two modes fit.
    cov_yx = np.zeros((3, 7))
    cov_yx[0, 0], cov_yx[1, 5], cov_yx[2, 6] = 3.0, 2.0, 1.0
    edges = [("a", "h"), ("b", "h"), ("h", "y"), ("h", "z")]
    net = fs.nets.Gated({"a": 4, "b": 3, "h": 2, "y": 1, "z": 2}, edges)
    setup = fs.Setup(Task(cov_yx=cov_yx, cov_x=np.eye(7)), net, fs.inits.Decoupled(0.3), times=[0, 1.0, 20.0])
    predicted, truth = fs.solve(setup, "NeuralRace"), fs.solve(setup, "PathDynamics")
    np.testing.assert_allclose(predicted["map"], truth["map"], atol=1e-8)
    learned = np.zeros((3, 7))
    learned[0, 0], learned[1, 5] = 3.0, 2.0
    np.testing.assert_allclose(predicted["map"][-1], learned, atol=1e-8)


@pytest.mark.parametrize("spread", [(0.6, 1.3, 0.4, 0.9), (1.0, 1.0, 0.5, 0.8)])
def test_a_rival_that_reads_other_columns_picks_the_basis_of_degenerate_modes(spread):
    x = math.sqrt(8) * np.hstack([np.eye(4), np.diag(spread)])
    task = fs.tasks.from_arrays(x, math.sqrt(8) * np.eye(4))
    net = fs.nets.Gated.pathways([{"width": 4, "sees": range(4)}, {"width": 4, "sees": range(4, 8)}])
    found = bases_of_paths(net, task)
    variances = found.right[0].T @ np.diag(np.square(spread)) @ found.right[0]
    np.testing.assert_allclose(variances, np.diag(np.diag(variances)), atol=1e-12)
    setup = fs.Setup(task, net, fs.inits.Decoupled([0.1, 0.1, 0.3, 0.3]), times=np.linspace(0, 6, 7))
    predicted, truth = fs.solve(setup, "NeuralRace"), fs.solve(setup, "PathDynamics")
    np.testing.assert_allclose(predicted["map"], truth["map"], atol=1e-8)


def test_a_rival_is_heard_of_through_another():
    # The first path shares rows with the second only, which the third, of distinct variances, tells its modes.
    inputs = np.hstack([np.eye(4), 0.7 * np.eye(4), np.diag([0.6, 1.3, 0.4, 0.9])])
    task = fs.tasks.from_arrays(inputs, np.hstack([np.eye(4), np.eye(4)]))
    paths = [(range(4), range(4)), (range(4, 8), range(8)), (range(8, 12), range(4, 8))]
    found = bases_of_paths(
        fs.nets.Gated.pathways([{"width": 4, "sees": sees, "writes": rows} for sees, rows in paths]), task
    )
    for right in found.right:
        np.testing.assert_allclose(np.sort(np.abs(right), axis=0), np.tile([[0], [0], [0], [1]], (1, 4)), atol=1e-9)


def linear_gates(width):
    return fs.nets.Gated.pathways([{"on": {"sign": [sign]}, "width": width} for sign in (-1, 1)])


def xor_gates(width):
    return fs.nets.Gated.pathways([{"on": {"item": [item]}, "width": width} for item in range(4)])


@pytest.mark.parametrize("margin", [0.0, 0.7, 2.0])
def test_exclusive_or_has_the_corrected_numbers(margin):
    task = fs.tasks.xor(margin)
    found = bases_of_paths(xor_gates(3), task)
    np.testing.assert_allclose(found.strengths[:, 0], math.sqrt(2 + margin**2) / 4, rtol=1e-12)
    np.testing.assert_allclose(np.einsum("ppaa->pa", found.variances)[:, 0], 0.5 + margin**2 / 4, rtol=1e-12)
    found = bases_of_paths(linear_gates(3), task)
    np.testing.assert_allclose(found.strengths[:, 0], margin / 2, atol=1e-12)
    if margin:
        np.testing.assert_allclose(np.einsum("ppaa->pa", found.variances)[:, 0], margin**2 / 2, rtol=1e-12)


@pytest.mark.parametrize("gates", [xor_gates, linear_gates])
def test_pathways_that_never_meet_are_solved_exactly(gates):
    margin, begun = 0.7, 1e-3
    setup = fs.Setup(fs.tasks.xor(margin), gates(3), fs.inits.Decoupled(math.sqrt(begun)), times=[0, 5, 10.0, 20, 40])
    predicted = fs.solve(setup)
    assert predicted.source == "DisjointPathways"
    size = math.sqrt(2 + margin**2)
    s, target = (margin / 2, 1 / margin) if gates is linear_gates else (size / 4, 1 / size)
    grown = begun / (np.exp(-2 * s * setup.times) + begun / target * (1 - np.exp(-2 * s * setup.times)))
    np.testing.assert_allclose(predicted["path_modes"][:, 0, 0], grown, rtol=1e-10)
    np.testing.assert_allclose(predicted["loss"], 0.5 * (1 - grown / target) ** 2, atol=1e-12)
    when = time_to_loss(s, target=target, start=begun, fraction=0.4)
    there = fs.solve(setup.replace(times=[when]))["loss"][0]
    assert there == pytest.approx(0.2, abs=1e-12)


def test_deeper_pathways_and_their_weights_agree_with_all_weights():
    example = fs.theories.DisjointPathways.example()  # two and three layers
    predicted, truth = fs.solve(example), fs.solve(example, "PathDynamics")
    np.testing.assert_allclose(predicted["map"], truth["map"], atol=1e-9)
    for layer, wanted in zip(predicted.weights, truth.weights, strict=True):
        np.testing.assert_allclose(layer, wanted, atol=1e-9)


def test_times_of_exclusive_or_in_flow_and_in_large_steps():
    lr, scale = 0.4, math.sqrt(4e-8 / 128)
    xor = dict(target=2**-0.5, start=effective_start(32, scale), fraction=0.4)
    linear = dict(target=0.5, start=effective_start(64, scale), fraction=0.4)
    steps = [
        time_to_loss(2**0.5 / 4, **xor) / lr,
        time_to_loss(2**0.5 / 4, **xor, lr=lr) / lr,
        time_to_loss(1.0, **linear) / lr,
        time_to_loss(1.0, **linear, lr=lr) / lr,
    ]
    np.testing.assert_allclose(steps, [64.4, 68.9, 21.5, 25.5], atol=0.06)


@pytest.mark.parametrize(("start", "crossing"), [(1e-10, 0.8499), (1e-6, 0.8729), (1e-2, 1.0048), (0.05, 1.1735)])
def test_which_gates_are_faster_by_time_depends_on_the_start(start, crossing):
    def ahead(margin, linear_start=start):
        size = math.sqrt(2 + margin**2)
        return time_to_loss(margin / 2, target=1 / margin, start=linear_start, fraction=0.4) - time_to_loss(
            size / 4, target=1 / size, start=start, fraction=0.4
        )

    assert brentq(ahead, 0.3, 3.0) == pytest.approx(crossing, abs=6e-5)
    # As many hidden units in all: two paths have twice the units of four, and the crossing is where s is equal.
    assert ahead(math.sqrt(2 / 3), linear_start=2 * start) == pytest.approx(0, abs=1e-9)


def test_small_random_layers_race_from_a_start_that_is_derived():
    setup = fs.Setup(fs.tasks.xor(0.7), xor_gates(32), fs.inits.SmallRandom(1e-3), times=np.linspace(0, 60, 61))
    assert fs.solve(setup).source == "PathDynamics"
    predicted = fs.solve(setup, "NeuralRace")
    assert "decoupled: measured" in predicted.provenance["note"]
    assert "4 of 4 components do not start along the modes" in predicted.provenance["note"]
    truth = fs.solve(setup, "PathDynamics")
    assert np.abs(predicted["loss"] - truth["loss"]).max() < 1e-4
    begun = [fs.theories.NeuralRace().constants(setup, seed).layers.strengths[:, 0] for seed in range(12)]
    starts = np.prod(np.reshape(begun, (12, 4, 2)), axis=2)
    assert np.mean(starts) == pytest.approx(effective_start(32, 1e-3), rel=0.15)
    with pytest.raises(fs.NoTheory, match="small start: measured"):
        fs.solve(setup.replace(init=fs.inits.SmallRandom(0.2)), "NeuralRace")


def test_random_layers_of_paths_that_share_edges_are_refused():
    setup = shared_setup().replace(init=fs.inits.SmallRandom(1e-3))
    with pytest.raises(fs.NoTheory) as refusal:
        fs.solve(setup, "NeuralRace")
    assert "every edge starts diagonal between the bases of its nodes" in str(refusal.value)


def test_pathways_that_meet_are_refused_with_numbers():
    net = fs.nets.Gated.contexts(2, items=4, width=8)
    setup = fs.Setup(fs.tasks.contextual(4, 3), net, fs.inits.Decoupled(0.1), until=5.0)
    failed = {a.name: a.measured for a in fs.covering(setup)["DisjointPathways"].failed}
    assert float(failed["never together"]) > 0.3
    setup = shared_setup()
    failed = {a.name: a.measured for a in fs.covering(setup)["DisjointPathways"].failed}
    assert failed["own edges"] == 7


def test_decoupled_says_what_it_needs():
    task = fs.tasks.xor(1.0)
    with pytest.raises(fs.BadInput) as error:
        fs.Setup(task, fs.nets.MLP(4), fs.inits.Decoupled(0.1), until=1.0).weights(0)
    for words in ("init Decoupled with MLP", "a gated network", "inits.Aligned"):
        assert words in str(error.value)
    with pytest.raises(fs.BadInput) as error:
        fs.Setup(task, xor_gates(3), fs.inits.Decoupled([0.1, 0.2]), until=1.0).weights(0)
    assert "strength has 2 values" in str(error.value)
    assert "one for each of the 8 edges" in str(error.value)


def test_modes_that_do_not_fit_start_at_zero():
    task = fs.tasks.contextual(4, 3, blocks="hierarchy")
    narrow = fs.Setup(task, fs.nets.Gated.pathways([{"width": 3}]), fs.inits.Decoupled(0.5), until=5.0)
    begun = fs.solve(narrow, "NeuralRace")["path_modes"][0, 0]
    np.testing.assert_allclose(begun, [0.25] * 3 + [0] * 4, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fraction": 1.0}, "below 1"),
        ({"start": 0.0}, "start > 0"),
        ({"lr": -0.1}, "lr > 0"),
        ({"target": -1.0}, "target > 0"),
    ],
)
def test_times_to_a_loss_refuse_what_has_none(change, words):
    with pytest.raises(fs.BadInput, match=words):
        time_to_loss(1.0, **({"target": 1.0, "start": 1e-3, "fraction": 0.4} | change))


def test_too_many_paths_are_refused_before_they_are_listed():
    nodes = {"x": 2} | {f"h{k}": 2 for k in range(11)} | {"y": 2}
    names = list(nodes)
    net = fs.nets.Gated(nodes, [pair for pair in itertools.pairwise(names) for _ in range(2)])
    setup = fs.Setup(fs.tasks.from_arrays(np.eye(2), np.eye(2)), net, fs.inits.SmallRandom(0.1), until=1.0)
    for theory in (fs.theories.NeuralRace(), fs.theories.DisjointPathways()):
        failed = [a for a in theory.assumptions(setup, 0) if not a.holds]
        assert [(a.name, a.measured) for a in failed] == [("few paths", 2.0**12)]
