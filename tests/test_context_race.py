"""The race of subsets of contexts: every number against brute force on the task, and against training."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import festina as fs
from festina.tasks.hierarchy import hierarchy_block
from festina.theories._context_pathways import read_pathways
from festina.theories.context_race import (
    ContextRace,
    gate_overlap,
    head_start,
    item_mode,
    output_overlap,
    race_ranking,
    residual_strength,
    turning,
)

SIZES = [(contexts, size) for contexts in (3, 4, 5) for size in range(1, contexts)]
every_size = pytest.mark.parametrize(("contexts", "size"), SIZES)


def residual(task):
    """What the least squares of all inputs leave of y, (sample, feature)."""
    return task.y - task.x @ np.linalg.pinv(task.x) @ task.y


def gates(task, contexts, size):
    return [np.isin(task.labels["context"], subset) for subset in itertools.combinations(range(contexts), size)]


def race(contexts, size, scale, *, items=8, width=100, epochs=None, points=400, **others):
    """The published setting: rate 1e-3 on the summed loss, times in epochs."""
    count = items * contexts
    task = fs.tasks.contextual(items, contexts, "hierarchy")
    net = fs.nets.Gated.contexts(subsets=size, contexts=contexts, items=items, width=width, **others)
    rule = fs.rules.GradientDescent(1e-3 * count)
    return fs.Setup(task, net, fs.inits.SmallRandom(scale), rule, until=1e-3 * count * (epochs or 100), points=points)


def epochs_to(setup, loss, shares):
    loss = np.ravel(loss)
    assert loss[-1] < min(shares) * loss[0]
    return np.interp(-np.asarray(shares), -loss / loss[0], setup.times) / setup.rule.lr


@every_size
@pytest.mark.parametrize("items", [4, 8])
def test_values_of_item_modes_are_those_of_the_moments(contexts, size, items):
    task = fs.tasks.contextual(items, contexts, "hierarchy")
    count = items * contexts
    tree = np.linalg.svd(hierarchy_block(items), compute_uv=False)[1:]
    mode = item_mode(tree, items=items, contexts=contexts, size=size)
    gate, left = gates(task, contexts, size)[0], residual(task)
    x = task.x[:, :items]
    values = np.linalg.svd((gate[:, None] * left).T @ x / count, compute_uv=False)
    np.testing.assert_allclose(values[: items - 1], mode.residual, atol=1e-14)
    assert values[items - 1] < 1e-14
    np.testing.assert_allclose(x.T @ (gate[:, None] * x) / count, mode.variance * np.eye(items), atol=1e-15)
    raw = np.linalg.svd((gate[:, None] * task.y).T @ x / count, compute_uv=False)
    np.testing.assert_allclose(raw[1:items], mode.raw, atol=1e-14)
    modes = task.modes()
    for value in mode.common:
        near = np.abs(modes.singular_values - value) < 1e-12
        assert near.any()
        np.testing.assert_allclose(modes.variances[near], mode.common_variance, atol=1e-12)


@every_size
def test_the_overlap_of_gates_is_that_of_the_residual(contexts, size):
    task = fs.tasks.contextual(8, contexts, "hierarchy")
    left, x = residual(task), task.x[:, :8]
    subsets = gates(task, contexts, size)
    maps = [(gate[:, None] * left).T @ x for gate in subsets]
    vector = np.linalg.svd(maps[0])[2][0]  # one right vector for all
    outputs = [m @ vector / np.linalg.norm(m @ vector) for m in maps]
    overlaps = [outputs[0] @ out for out in outputs]
    shared = [np.sum(subsets[0] & gate) / np.sum(subsets[0]) for gate in subsets]
    assert gate_overlap(contexts, size) == pytest.approx(np.dot(overlaps, shared), abs=1e-12)
    for overlap, share in zip(overlaps, shared, strict=True):
        assert output_overlap(contexts, size, round(share * size)) == pytest.approx(overlap, abs=1e-12)


def test_printed_overlaps_of_outputs_are_wrong_beyond_three_contexts():
    right = [output_overlap(contexts, contexts - 1, contexts - 2) for contexts in (3, 4, 5)]
    np.testing.assert_allclose(right, [-1 / 2, -1 / 3, -1 / 4])
    for contexts, printed in ((4, -1 / 6), (5, -1 / 12)):
        share = (contexts - 2) / (contexts - 1)
        with_printed = 1 + (contexts - 1) * share * printed
        assert gate_overlap(contexts, contexts - 1) == pytest.approx(1 / (contexts - 1))
        assert with_printed == pytest.approx({4: 2 / 3, 5: 3 / 4}[contexts])
    np.testing.assert_allclose([gate_overlap(contexts, 1) for contexts in (3, 4, 5)], 1)


def pure_residual(contexts, start):
    """Leave-one-out pathways alone on the rest of the target, each along its modes: (setup, tree values)."""
    items = 4
    task = fs.tasks.contextual(items, contexts, "hierarchy")
    rest = residual(task)
    task = fs.tasks.from_arrays(task.x, rest, labels=task.labels)
    net = fs.nets.Gated.contexts(subsets=contexts - 1, contexts=contexts, items=items, width=items - 1, common=False)
    moments = net.moments(task)
    right = np.linalg.svd(hierarchy_block(items))[2][1:].T
    weights: list[Any] = [None] * len(net.edges)
    for path, cov in zip(moments.paths, moments.cov_yx, strict=True):
        left = cov @ right
        left /= np.linalg.norm(left, axis=0)
        weights[path.edges[0]], weights[path.edges[1]] = math.sqrt(start) * right.T, math.sqrt(start) * left
    values = np.linalg.svd(hierarchy_block(items), compute_uv=False)[1:]
    return fs.Setup(task, net, fs.inits.Given(weights), until=150.0, points=61), values


@pytest.mark.parametrize("contexts", [3, 4, 5])
def test_the_strength_of_leave_one_out_pathways_is_the_corrected_form_and_not_the_printed_one(contexts):
    setup, values = pure_residual(contexts, start := 1e-2)
    mode = item_mode(values, items=4, contexts=contexts, size=contexts - 1)
    times = setup.times
    overlap = gate_overlap(contexts, contexts - 1)
    closed = residual_strength(
        times[:, None], singular_value=mode.residual, variance=mode.variance, overlap=overlap, start=start
    )
    target = (contexts - 1) * mode.residual / mode.variance
    np.testing.assert_allclose(target, values * math.sqrt((contexts - 1) / contexts))
    formula = target / (1 - (1 - target / start) * np.exp(-2 * mode.residual * times[:, None]))
    np.testing.assert_allclose(closed, formula, rtol=1e-12)
    errors = []
    for lr in (0.1, 0.05):
        trained = fs.simulate(setup.replace(rule=fs.rules.GradientDescent(lr)), observe=["map"])["map"]
        first = np.reshape(trained, (len(times), -1, contexts * 4))[..., :4]  # the map of one pathway
        strengths = np.linalg.svd(first, compute_uv=False)[:, :3]
        errors.append(np.abs(strengths - closed).max() / target.max())
    assert errors[1] < 0.01
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.1)
    with np.errstate(over="ignore"):
        rate = mode.residual / (mode.variance * start)
        printed = target / (1 - (1 - rate) * np.exp(2 * mode.residual * times[:, None]))
    assert np.all(np.abs(printed[-1]) < 1e-3 * target)


@every_size
def test_turning_is_what_the_flow_through_the_transition_leaves(contexts, size):
    mode = item_mode(1.0, items=2, contexts=contexts, size=size)
    raw, rest = mode.raw / mode.common, mode.residual / mode.common
    taken = math.sqrt(raw**2 - rest**2)
    far = 20.0

    def field(t, state):
        x, y1, y2 = state.reshape(3, -1)
        left = taken / (1 + np.exp(2 * t))
        return np.concatenate([rest * y1 + left * y2, rest * x, left * x])

    initial = np.array([[1, 0], [rest / raw, -taken / raw], [taken / raw, rest / raw]])
    end = solve_ivp(field, (-far, far), initial.ravel(), method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1].reshape(3, 2)
    kept = (end[0] + end[1]) / 2 * np.exp(-rest * far)
    growing, joining = turning(contexts, size)
    assert growing == pytest.approx(kept[0] * np.exp(-raw * far), rel=1e-8)
    assert joining == pytest.approx(kept[1], rel=1e-7)
    assert 1.001 < (1 + rest / raw) / 2 / growing < 1.04  # the sudden turn


def test_the_head_start_with_a_sudden_turn_is_that_of_the_reference():
    """B₀/a₀ of the strongest mode, 100 units of standard deviation 7.14e-6."""
    value = math.sqrt(7)
    for contexts, expected in ((3, 8.5e3), (4, 7.2e4), (5, 3.0e5)):
        for size, ratio in ((contexts - 1, expected), (1, {3: 23, 4: 8, 5: 5}[contexts])):
            mode = item_mode(value, items=8, contexts=contexts, size=size)
            effective = 100 * 7.14e-6**2 / 2
            sudden = (1 + mode.residual / mode.raw) / 2
            start = head_start(value, effective, effective, items=8, contexts=contexts, size=size)
            assert start / effective * (sudden / turning(contexts, size)[0]) ** 2 == pytest.approx(ratio, rel=0.06)


def test_the_ranking_of_sizes():
    np.testing.assert_allclose(race_ranking(3), [1.013, 0.647], atol=6e-4)
    np.testing.assert_allclose(race_ranking(4), [1.013, 0.676, 0.484], atol=6e-4)
    np.testing.assert_allclose(race_ranking(5), [1.012, 0.687, 0.518, 0.388], atol=6e-4)
    half, all_but_one = (item_mode(1.0, items=8, contexts=4, size=size).residual for size in (2, 3))
    assert half > all_but_one  # although it loses


@pytest.mark.parametrize(("contexts", "plateau"), [(3, 17.0), (4, 25.5), (5, 34.0)])
def test_the_loss_starts_and_rests_where_the_task_says(contexts, plateau, double):
    setup = race(contexts, 1, 1e-12, width=20)
    constants = ContextRace().constants(setup, 0)
    count = 8 * contexts
    learned, nothing = np.array(constants.learned), 0 * constants.learned
    half = np.where(np.arange(len(learned)) < 8 + contexts - 1, learned, 0)
    losses = count * np.asarray(ContextRace.readouts["loss"].read(constants, np.stack([nothing, half, learned])))
    np.testing.assert_allclose(losses, [32 * contexts, plateau, 0], atol=1e-9)


def test_predicted_epochs_are_those_of_training():
    """The setting of the reference, 3 contexts, leave-one-out; there: predicted 1030, 3083, 6761."""
    setup = race(3, 2, 7.14e-6, epochs=8000)
    shares = [0.5, 0.1, 0.01]
    predicted = epochs_to(setup, fs.solve(setup, ContextRace)["loss"], shares)
    trained = epochs_to(setup, fs.simulate(setup, observe=["loss"])["loss"], shares)
    np.testing.assert_allclose(predicted, trained, rtol=0.01)
    np.testing.assert_allclose(predicted, [1030, 3083, 6761], rtol=0.02)


@pytest.mark.parametrize(("contexts", "size", "epochs"), [(3, 1, 12000), (4, 3, 9000)])
def test_other_sizes_of_subsets_are_predicted_too(contexts, size, epochs):
    setup = race(contexts, size, 1e-5, items=4, width=40, epochs=epochs)
    shares = [0.5, 0.1, 0.02]
    predicted = epochs_to(setup, fs.solve(setup, ContextRace)["loss"], shares)
    trained = epochs_to(setup, fs.simulate(setup, observe=["loss"])["loss"], shares)
    np.testing.assert_allclose(predicted, trained, rtol=0.05)


def failed(setup):
    return {a.name: a.measured for a in ContextRace().assumptions(setup, 0) if not a.holds}


def test_it_refuses_other_tasks_and_nets_with_what_it_measured():
    setup = race(3, 2, 1e-5, width=20)
    assert not failed(setup)
    other = failed(setup.replace(task=fs.tasks.contextual(8, 3)))
    assert list(other) == ["equal trees"]
    assert 0.05 < float(other["equal trees"]) < 1
    assert "6 pathways on in 1, 2 of 3 groups" in str(failed(race(3, (1, 2), 1e-5, width=20))["race"])
    assert "0 common pathways" in str(failed(race(3, 2, 1e-5, width=20, common=False))["race"])
    assert failed(race(3, 2, 1e-5, width=20, training="sequential"))["joint"] == "sequential"
    assert failed(race(3, 2, 1e-5, width=6))["room"] == 4
    assert float(failed(race(3, 2, 0.1, width=20))["small start"]) > 0.05
    with pytest.raises(fs.NoTheory, match=r"equal trees: measured 0\.\d+"):
        fs.solve(setup.replace(task=fs.tasks.contextual(8, 3)), "ContextRace")


def test_starts_can_be_given():
    setup = ContextRace.example()
    shape = {"items": 2, "contexts": 3, "size": 2}
    read = ContextRace().constants(setup, 0)
    common, subset = read.effective[:-1], float(np.mean(read.starts[:, 0, 0]))
    again = fs.solve(setup, ContextRace(common_start=common, subset_start=subset))
    np.testing.assert_allclose(again["loss"], fs.solve(setup, ContextRace)["loss"], rtol=1e-12)
    # Larger weights of the subsets are a larger start of them.
    weights = list(setup.weights(0))
    for edges in read_pathways(setup.net, setup.task).subsets:
        for e in edges:
            weights[e] = math.sqrt(10) * weights[e]
    ahead = fs.solve(setup, ContextRace(subset_start=10 * subset))
    larger = fs.solve(setup.replace(init=fs.inits.Given(weights)), ContextRace)
    np.testing.assert_allclose(ahead["residual_modes"], larger["residual_modes"], rtol=1e-9)
    # The network starts elsewhere, and the error says by how much.
    assert "error: measured" in ahead.provenance["note"]
    assert ahead.provenance["note"].endswith("subset_start as given, in the place of those of the weights")
    # The law of motion from these starts, integrated: B of the rest from its head start, π of the common pathway.
    common_starts, subset_start = np.array([3e-9, 2e-9, 5e-9, 1e-9]), 4e-9
    given = fs.solve(setup, ContextRace(common_start=common_starts, subset_start=subset_start))
    constants = ContextRace(common_starts, subset_start).constants(setup, 0)
    mode = item_mode(1.0, **shape)
    late = constants.common.singular_values.tolist().index(pytest.approx(mode.common))
    first = [*common_starts, head_start(1.0, subset_start, common_starts[late], **shape)]
    rates, spread = constants.rates, constants.variances

    def law(t, log):
        return 2 * (rates - spread * np.exp(log))

    options = dict(method="DOP853", rtol=1e-12, atol=1e-12, t_eval=setup.times)
    grown = np.exp(solve_ivp(law, (0, setup.times[-1]), np.log(first), **options).y.T)
    np.testing.assert_allclose(given["common_modes"], grown[:, :-1], rtol=1e-8)
    np.testing.assert_allclose(given["residual_modes"][:, 0], grown[:, -1] / constants.learned[-1], rtol=1e-8)


def test_bad_starts_are_refused():
    with pytest.raises(fs.BadInput, match="common_start = 0") as refusal:
        ContextRace(common_start=0)
    assert "common_start > 0" in str(refusal.value)
    with pytest.raises(fs.BadInput, match="2 numbers in common_start") as refusal:
        ContextRace(common_start=[1e-9, 1e-9]).constants(ContextRace.example(), 0)
    assert "one for each of 4 modes" in str(refusal.value)


def test_bad_sizes_are_refused():
    with pytest.raises(fs.BadInput, match="subsets of 3 of 3 contexts") as refusal:
        gate_overlap(3, 3)
    assert "sizes 1 … 2" in str(refusal.value)
    assert "lower size" in str(refusal.value)
