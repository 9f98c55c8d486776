"""Setup: frozen, a pytree, JSON both ways, and the one time grid."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import festina as fs
from festina.rules.base import rate_of

TASK = fs.tasks.hierarchy(levels=2)
finite = st.floats(1e-6, 1e3)
NETS = st.one_of(
    st.builds(fs.nets.DeepLinear, st.lists(st.integers(1, 9), max_size=3)),
    st.builds(fs.nets.MLP, st.integers(1, 9), st.sampled_from(["relu", "tanh"]), st.booleans()),
)
INITS = st.one_of(st.builds(fs.inits.SmallRandom, finite), st.builds(fs.inits.Orthogonal, finite))
RULES = st.one_of(
    st.builds(fs.rules.GradientFlow, st.floats(1e-12, 1e-3)),
    st.builds(fs.rules.GradientDescent, finite),
    st.builds(fs.rules.SGD, finite, st.integers(1, 4)),
    st.builds(fs.rules.Adam, finite),
)
TIMES = st.lists(st.floats(0, 1e4, allow_subnormal=False), min_size=1, max_size=9, unique=True).map(sorted)


def small(**changes) -> fs.Setup:
    return fs.Setup(TASK, fs.nets.DeepLinear(4), fs.inits.Aligned(0.1), **changes)


@given(net=NETS, init=INITS, rule=RULES, times=TIMES, precision=st.sampled_from(["float64", "float32"]))
def test_json_round_trip_is_exact(net, init, rule, times, precision):
    setup = fs.Setup(TASK, net, init, rule, times=times, precision=precision)
    text = setup.to_json()
    assert fs.Setup.from_json(text) == setup
    assert fs.Setup.from_json(text).to_json() == text
    json.loads(text)


@pytest.mark.parametrize(
    "init",
    [
        fs.inits.Aligned([0.1, 0.2, 0.3, -0.4]),
        fs.inits.Aligned(np.full(4, 0.1)),
        fs.inits.Given([np.eye(4) / 3, np.ones((7, 4)) / 7]),
    ],
)
def test_json_keeps_arrays_exactly(init):
    setup = small().replace(init=init)
    assert fs.Setup.from_json(setup.to_json()) == setup


def test_json_of_own_data_and_moments():
    rng = np.random.default_rng(0)
    own = fs.tasks.from_arrays(rng.normal(size=(9, 3)), rng.normal(size=(9, 2)), features=["a", "b"])
    moments = fs.tasks.from_moments(own.cov_yx, own.cov_x, own.y.T @ own.y / 9)
    for task in (own, moments):
        again = fs.Setup.from_json(small().replace(task=task).to_json()).task
        assert again == task


@pytest.mark.parametrize("text", [5, None, "", "[]", "{}", '{"festina_setup": 1}', '{"festina_setup": 99}', "not json"])
def test_foreign_json_is_refused(text):
    with pytest.raises(fs.BadInput):
        fs.Setup.from_json(text)


def test_json_names_what_it_does_not_know():
    spec = json.loads(small().to_json())
    with pytest.raises(fs.UnknownName, match="DeepLinear"):
        fs.Setup.from_json(json.dumps({**spec, "net": {"DeepLinaer": {}}}))
    with pytest.raises(fs.BadInput, match="net DeepLinear"):
        fs.Setup.from_json(json.dumps({**spec, "net": {"DeepLinear": {"depth": 3}}}))
    with pytest.raises(fs.UnknownName, match="hierarchy"):
        fs.Setup.from_json(json.dumps({**spec, "task": {"hierachy": {}}}))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("times", None),
        ("times", "abc"),
        ("rule", {"GradientDescent": {"lr": "0.1"}}),
        ("init", {"Given": {"weights": "abc"}}),
        ("task", {"moments": {"cov_yx": [[1]], "cov_x": [[1]], "power": "abc"}}),
        ("task", {"moments": {"cov_yx": [[1]], "cov_x": [[1]], "power": -5}}),
        ("net", {"MLP": {"hidden": 4, "bias": "no"}}),
    ],
)
def test_json_with_a_wrong_value_is_refused(part, value):
    spec = json.loads(small().to_json())
    with pytest.raises(fs.BadInput):
        fs.Setup.from_json(json.dumps({**spec, part: value}))


def test_it_is_frozen_equal_by_value_and_a_pytree():
    setup = small()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setup.net = None
    assert setup == small()
    assert setup != small(until=3.0)
    leaves, structure = jax.tree.flatten(setup)
    assert jax.tree.unflatten(structure, leaves) == setup
    assert hash(setup) == hash(small())


def test_numbers_are_leaves_and_structure_is_not():
    rate = fs.rules.GradientDescent(0.1)
    assert jax.tree.leaves(rate) == [0.1]
    assert jax.tree.leaves(fs.nets.DeepLinear(4)) == []
    assert jax.tree.structure(rate) == jax.tree.structure(fs.rules.GradientDescent(0.7))


class TestGrid:
    def test_times_are_taken_as_given_by_a_flow(self):
        assert np.array_equal(small(times=[0.0, 0.3, 7.0]).times, [0.0, 0.3, 7.0])

    def test_linear_and_log(self):
        assert np.array_equal(small(until=2.0, points=5).times, [0, 0.5, 1, 1.5, 2])
        grid = small(until=10.0, points=6, spacing="log").times
        assert grid[0] == 0
        assert grid[-1] == 10
        np.testing.assert_allclose(np.diff(np.log(grid[1:])), np.log(1e4) / 4)

    def test_log_grids_of_steps_have_no_repeats(self):
        grid = small(rule=fs.rules.GradientDescent(0.1), until=100.0, points=50, spacing="log").times
        assert (np.diff(grid) > 0).all()
        np.testing.assert_allclose(grid / 0.1, np.round(grid / 0.1))

    def test_every_k_steps_and_the_last(self):
        setup = small(rule=fs.rules.GradientDescent(0.1), until=1.0, every=4)
        np.testing.assert_allclose(setup.times, [0, 0.4, 0.8, 1.0])

    def test_the_default_reaches_the_end_of_learning(self):
        setup = small()
        assert fs.solve(setup)["loss"][-1] < 1e-3 * fs.solve(setup)["loss"][0]

    def test_theory_and_training_share_it(self):
        setup = small(rule=fs.rules.GradientDescent(0.07), until=3.0, points=10)
        assert np.array_equal(fs.solve(setup).times, fs.simulate(setup).times)

    @pytest.mark.parametrize(
        ("grid", "words"),
        [
            (dict(times=[0.0, 2.0], until=1.0), "outside the run"),
            (dict(times=[-1.0, 2.0]), "begin at -1"),
            (dict(times=[1.0, 1.0]), "do not increase"),
            (dict(times=[2.0, 1.0]), "do not increase"),
            (dict(times=[]), "empty"),
            (dict(times=[0.0, np.nan]), "times has 1 value"),
            (dict(times=[[0.0]]), "times has shape"),
            (dict(until=0.0), "until = 0.0"),
            (dict(until=-2), "until = -2"),
            (dict(until=1.0, points=1), "points = 1"),
            (dict(until=1.0, spacing="lin"), "spacing = 'lin'"),
            (dict(times=[1.0], points=3), "times together with"),
            (dict(until=1.0, every=2), "every = 2 with GradientFlow"),
            (dict(precision="float16"), "precision = 'float16'"),
        ],
    )
    def test_impossible_grids_are_named(self, grid, words):
        with pytest.raises(fs.BadInput) as refusal:
            small(**grid)
        assert words in refusal.value.seen


@pytest.mark.parametrize(("position", "value"), [("task", 3), ("net", "DeepLinear"), ("init", 0.1), ("rule", 0.1)])
def test_parts_of_the_wrong_kind_are_named(position, value):
    parts = dict(task=TASK, net=fs.nets.DeepLinear(3), init=fs.inits.Aligned(0.1), rule=fs.rules.GradientFlow())
    with pytest.raises(fs.BadInput, match=f"{position} is"):
        fs.Setup(**{**parts, position: value})


def memories(*setups):
    """The caches of these setups, none of which may be another's."""
    found = [setup._memory for setup in setups]
    assert len(set(map(id, found))) == len(found)
    return found


@pytest.mark.parametrize("remake", [copy.copy, copy.deepcopy, lambda setup: pickle.loads(pickle.dumps(setup))])
def test_copies_are_equal_and_share_no_memory(remake):
    setup = small(until=3.0)
    setup.modes()
    again = remake(setup)
    assert again == setup
    for one, other in zip(again.weights(), setup.weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    memories(setup, again)


@pytest.mark.parametrize(
    "result",
    [
        lambda setup: setup.modes().left,
        lambda setup: setup.modes().right,
        lambda setup: setup.weights()[0],
        lambda setup: setup.net.moments(setup.task).openings,
        lambda setup: setup.net.moments(setup.task).cov_yx[0],
        lambda setup: setup.net.moments(setup.task).cov_x[0, 0],
        lambda setup: setup.net.lifted(setup.task)[1].cov_x,
    ],
    ids=["left", "right", "weights", "openings", "cov_yx", "cov_x", "lifted"],
)
def test_what_is_remembered_cannot_be_written_to(result):
    x = np.repeat(np.eye(2), 4, axis=1)[:, :8]
    task = fs.tasks.from_arrays(np.eye(8), np.tile(x, (9, 1)).T)  # more outputs than inputs, by far
    net = fs.nets.Gated.pathways([{"width": 3}])
    first, again = (fs.Setup(task, net, fs.inits.SmallRandom(0.1), until=1.0, points=3) for _ in range(2))
    other = first.replace(until=2.0, points=3)
    before = np.array(result(first))
    with pytest.raises(ValueError, match="read-only"):
        result(first)[...] = 7.0
    for setup in (first, again, other):
        np.testing.assert_array_equal(result(setup), before)


def test_arrays_of_the_user_stay_writable():
    weights = [np.ones((4, 4)), np.ones((7, 4))]
    x, y = np.eye(4), np.ones((4, 7))
    net, task = fs.nets.Gated.pathways([{"width": 4}]), fs.tasks.from_arrays(x, y)
    setup = fs.Setup(task, net, fs.inits.Given(weights), until=1.0, points=3)
    setup.weights(), setup.modes(), net.moments(task), net.lifted(task), fs.solve(setup)
    assert all(array.flags.writeable for array in (x, y, *weights))


def test_a_replaced_setup_begins_with_what_is_known_and_shares_no_memory():
    setup = small(until=3.0)
    first = setup.weights(1)
    later, other = setup.replace(until=5.0), setup.replace(init=fs.inits.Aligned(0.2))
    assert later.weights(1) is first
    assert other.weights(1) is not first
    later.modes(2)
    known, learned, fresh = memories(setup, later, other)
    assert set(known._results) < set(learned._results)
    assert ("modes", 2) not in fresh._results


def test_traced_setups_remember_nothing():
    setup = small(until=3.0)
    setup.weights()

    def size(scale):
        traced = setup.replace(init=fs.inits.Aligned(scale))
        return sum((w**2).sum() for w in traced.weights())

    scales = np.array([0.1, 0.2])
    sizes = [float(sum((w**2).sum() for w in setup.replace(init=fs.inits.Aligned(s)).weights())) for s in scales]
    np.testing.assert_allclose(jax.vmap(size)(scales), sizes, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(size)(0.2), sizes[1], rtol=1e-6)
    leaves, structure = jax.tree.flatten(setup)
    memories(setup, jax.tree.unflatten(structure, leaves))


def test_replace_keeps_the_grid_and_refuses_unknown_parts():
    setup = small(times=[0.0, 1.0])
    assert np.array_equal(setup.replace(init=fs.inits.Aligned(0.2)).times, [0.0, 1.0])
    assert setup.replace(until=5.0, points=3).times[-1] == 5.0
    with pytest.raises(fs.UnknownName, match="rule"):
        setup.replace(rul=1)


def test_a_setup_gives_its_single_task_or_refuses_a_sequence_in_words():
    task = fs.tasks.hierarchy(1)
    setup = fs.Setup(task, fs.nets.DeepLinear(2), fs.inits.Aligned(0.1), until=1.0)
    in_turn = setup.replace(task=fs.tasks.sequence([task, fs.tasks.hierarchy(1)], durations=1.0))
    assert setup.single_task is task
    assert setup.first_task is in_turn.first_task is task
    assert in_turn.lifted() is in_turn  # a net that looks at x alone is trained as it is
    with pytest.raises(fs.BadInput) as refused:
        _ = in_turn.single_task
    assert (refused.value.seen, refused.value.needed) == ("a sequence of 2 tasks", "a single task")
    with pytest.raises(fs.BadInput, match="a sequence of 2 tasks"):
        in_turn.modes()


def test_only_rules_that_move_in_steps_have_a_learning_rate():
    assert rate_of(fs.rules.SGD(0.25, batch=2)) == 0.25
    with pytest.raises(fs.BadInput, match="the learning rate of GradientFlow"):
        rate_of(fs.rules.GradientFlow())
