"""race(): predictions against training, the table, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import festina as fs
from festina._formulas.curves import time_to_fraction

GATINGS = {
    "linear": [{"item": [1, 2]}, {"item": [0, 3]}],
    "xor": [{"item": [k]} for k in range(4)],
}


@pytest.mark.parametrize(("margin", "winner"), [(0.4, "xor"), (1.4, "linear")])
def test_the_predicted_winner_is_the_one_that_a_relu_network_follows(margin, winner):
    table = fs.race(fs.tasks.xor(margin), GATINGS, hidden=128, scale=2e-5, lr=0.1, until=70, fraction=0.4, seeds=2)
    assert table.attrs["winner"] == table.attrs["followed"] == winner
    assert table["order"].sel(candidate=winner) == 1
    assert list(table["theory"].values) == ["DisjointPathways"] * 2
    # The law of the mean start, against training from single draws.
    trained = table["trained_time"].mean("seed") / table["predicted_time"]
    np.testing.assert_allclose(trained, 1, atol=0.03)
    np.testing.assert_allclose(table["relu_time"] / table["predicted_time"].sel(candidate=winner), 1, atol=0.08)


def test_large_steps_are_corrected_for():
    task, scale = fs.tasks.xor(0.0), np.sqrt(4e-8 / 128)
    table = fs.race(task, {"xor": GATINGS["xor"]}, hidden=128, scale=scale, lr=0.4, until=40, fraction=0.4, check=False)
    # 64.4 steps by the flow, 68.9 corrected, 68.6 trained.
    steps = float(table["predicted_steps"][0])
    plain = float(table["predicted_time"][0]) / 0.4
    s = 2**0.5 / 4
    assert steps / plain == pytest.approx(0.4 * s / np.log1p(0.4 * s), rel=1e-12)
    start = 32 * scale**2 / 2
    learned = 1 - np.sqrt(0.4)
    law = np.log(learned * (1 - start * 2**0.5) / (start * 2**0.5 * (1 - learned))) / (2 * np.log1p(0.4 * s))
    # Read off the loss at every step, with its logarithm taken as straight between them.
    assert steps == pytest.approx(law, rel=1e-3)


def test_contexts_are_enumerated_and_ties_on_the_residual_are_broken_by_the_raw_phase():
    table = fs.race(fs.tasks.contextual(items=4, contexts=3, blocks="hierarchy"), hidden=120, scale=1e-5, check=False)
    assert list(table["candidate"].values) == ["1 of 3 contexts", "2 of 3 contexts"]
    assert table.attrs["winner"] == "2 of 3 contexts"
    contextual = table.isel(pathway=~table["always_open"].values)
    single, double = (contextual.isel(pathway=contextual["of"].values == of) for of in table["candidate"].values)
    np.testing.assert_allclose(single["s_residual"], double["s_residual"][0], rtol=1e-10)
    assert np.all(double["s_raw"].values > single["s_raw"].values)
    assert np.all(double["head_start"].values > single["head_start"].values)
    assert np.all(double["pathway_time"].values < single["pathway_time"].values)


def test_residual_moments_are_those_of_least_squares_on_samples():
    task = fs.tasks.contextual()
    table = fs.race(task, {"doubles": fs.nets.Gated.contexts(subsets=2)}, until=1.0, check=False)
    left = task.y - task.x @ np.linalg.lstsq(task.x, task.y, rcond=None)[0]
    for subset, row in zip([(0, 1), (0, 2), (1, 2)], table["s_residual"].values[1:], strict=True):
        on = np.isin(task.labels["context"], subset)
        direct = np.linalg.norm((on[:, None] * left).T @ task.x[:, :8] / 24, 2)
        assert row == pytest.approx(direct, rel=1e-10)


def test_time_to_a_share_of_the_loss():
    times = np.linspace(0, 5, 11)
    assert time_to_fraction(times, np.exp(-times), 0.3) == pytest.approx(-np.log(0.3), rel=1e-12)
    assert time_to_fraction(times, 1 + 0 * times, 0.3) == np.inf


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"candidates": None}, "the label 'context'"),
        ({"candidates": {}}, "{name: Gated or list of pathways}"),
        ({"candidates": {"a": 3}}, "a Gated net or a list of pathways"),
        ({"candidates": GATINGS, "fraction": 1.5}, "below 1"),
        ({"candidates": GATINGS, "scale": -1.0}, "scale > 0"),
        ({"candidates": {"a": [{"colour": [1]}]}}, "label"),
    ],
)
def test_what_cannot_be_raced_is_refused_in_words(arguments, words):
    with pytest.raises(fs.FestinaError, match=words):
        fs.race(fs.tasks.xor(1.0), **arguments, check=False)


def test_a_task_without_samples_is_refused():
    with pytest.raises(fs.BadInput, match="without samples"):
        fs.race(fs.tasks.from_moments([[1.0]], [[1.0]]), GATINGS)


def test_nobody_wins_a_race_that_ends_too_early():
    table = fs.race(fs.tasks.xor(1.4), GATINGS, until=1.0, check=False)
    assert table.attrs["winner"] == ""
    assert list(table["order"].values) == [0, 0]
    assert np.all(np.isinf(table["predicted_steps"]))


def test_the_last_time_is_long_enough_for_every_candidate_that_can_learn():
    table = fs.race(fs.tasks.xor(0.0), GATINGS, fraction=1e-3, check=False)
    assert list(table["order"].values) == [0, 1]  # at no margin the linear gating has nothing to learn from
    assert table["time"][-1] > table["predicted_time"].sel(candidate="xor")
    deep = {"deep": [{"on": {"item": [k]}, "width": (6, 6)} for k in range(4)]}
    assert np.isfinite(fs.race(fs.tasks.xor(1.0), deep, scale=0.1, check=False)["predicted_time"]).all()


def test_steps_of_a_candidate_with_two_time_scales_are_those_of_training():
    task = fs.tasks.contextual(items=4, contexts=3, blocks="hierarchy")
    doubles = {"doubles": fs.nets.Gated.contexts(subsets=2, items=4, width=100)}
    table = fs.race(task, doubles, hidden=400, scale=1e-4, lr=0.3, fraction=0.05)
    flow, trained = table["predicted_time"] / 0.3, table["trained_time"].mean("seed") / 0.3
    assert abs(table["predicted_steps"] / trained - 1).item() < 0.01
    assert abs(table["predicted_steps"] / trained - 1).item() < abs(flow / trained - 1).item()
    assert table["units"].item() == 400


@pytest.mark.parametrize(
    ("task", "candidates", "words"),
    [
        ("xor", GATINGS, "a Task"),
        (fs.tasks.xor(0.0), {"linear": GATINGS["linear"]}, "no correlation"),
        (fs.tasks.xor(1.0), {"late": [{"on": {"item": [0]}, "begins": 2.0}]}, "gates that stay"),
    ],
)
def test_candidates_that_cannot_start_are_refused(task, candidates, words):
    with pytest.raises(fs.BadInput, match=words):
        fs.race(task, candidates, check=False)


def test_a_rule_is_told_from_a_pathway_by_the_labels_of_the_task():
    task = fs.tasks.from_arrays(np.eye(4), np.eye(4), labels={"rank": [0, 0, 1, 1]})
    table = fs.race(task, {"halves": [{"rank": [0]}, {"rank": [1]}]}, check=False)
    assert len(table["pathway"]) == 2
