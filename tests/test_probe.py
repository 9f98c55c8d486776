"""probe.torch: what it records, against hand computations, and which steps."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import festina as fs
from festina import probe
from festina.observables import FROM_ACTIVITY, compared_points
from probed_models import X, Y, by_hand, nn, plain, seeded, torch, train


def test_every_record_equals_a_hand_computation():
    model, pairs, history = seeded(plain), [(0, 1), (3, 1)], []
    with probe.torch(model, inputs=X, targets=Y, pairs=pairs, observe=list(FROM_ACTIVITY)) as seen:
        train(model, before=lambda: history.append(copy.deepcopy(model)))
    history.append(model)
    got, y = seen.trajectory, Y.double().numpy()
    assert got.times.tolist() == list(range(7))
    first = [by_hand(history[0], n) for n in (2, 4)]
    for k, state in enumerate(history):
        hidden, f = [by_hand(state, n) for n in (2, 4)], by_hand(state, 5)
        for p, (i, j) in enumerate(pairs):
            dy, target = f[j] - f[i], y[j] - y[i]
            for n, h in enumerate(hidden):
                dh, start = h[j] - h[i], first[n][j] - first[n][i]
                np.testing.assert_allclose(got["distance"][k, n, p], dh @ dh, rtol=1e-12)
                cosine = dh @ start / np.linalg.norm(dh) / np.linalg.norm(start)
                np.testing.assert_allclose(got["cosine"][k, n, p], cosine, rtol=1e-12)
            np.testing.assert_allclose(got["output_distance"][k, p], dy @ dy, rtol=1e-12)
            np.testing.assert_allclose(got["output_alignment"][k, p], dy @ dy - dy @ target, rtol=1e-12)
            mean = (f[i] + f[j] - y[i] - y[j]) / 2
            np.testing.assert_allclose(got["mean_gap"][k, p], mean @ mean, rtol=1e-12)
        np.testing.assert_allclose(got["loss"][k], np.mean(np.sum((f - y) ** 2, axis=1)) / 2, rtol=1e-12)
        np.testing.assert_allclose(got["similarity"][k], [h @ h.T for h in hidden], rtol=1e-12)
        np.testing.assert_array_equal(got["outputs"][k], f)
        on = np.unpackbits(got["gates"][k], axis=-1, count=4).astype(bool)
        np.testing.assert_array_equal(on, np.concatenate(hidden, axis=1).T > 0)
    assert np.ptp(got["loss"]) > 0.1  # it has learned, so records differ
    assert np.ptp(got["cosine"]) > 1e-3
    x = X.double().numpy()
    assert got.provenance["input_gap"] == pytest.approx([((x[j] - x[i]) ** 2).sum() for i, j in pairs])
    assert got.provenance["target_gap"] == pytest.approx([((y[j] - y[i]) ** 2).sum() for i, j in pairs])
    assert got.coordinates["layer"].tolist() == ["1", "3"]
    assert got.coordinates["pair"].tolist() == ["0-1", "3-1"]
    assert got.coordinates["unit"][[0, 5, 6, 10]].tolist() == ["1:0", "1:5", "3:0", "3:4"]
    assert got.axes["distance"] == ("time", "layer", "pair")
    assert got.source == "probe.torch"
    assert got.provenance["layers"] == {"1": "Tanh 1", "3": "Tanh 3"}
    assert got.provenance["versions"]["torch"] == torch.__version__


def test_the_loss_of_two_inputs_is_that_of_their_mean_and_their_difference():
    model = seeded(plain)
    names = ["loss", "output_distance", "output_alignment", "mean_gap"]
    with probe.torch(model, inputs=X[:2], targets=Y[:2], observe=names) as seen:
        train(model)
    got = seen.trajectory
    w, p, gap = got["output_alignment"][:, 0], got["output_distance"][:, 0], got.provenance["target_gap"][0]
    np.testing.assert_allclose(got["loss"], got["mean_gap"][:, 0] / 2 + (w + (gap - p) / 2) / 4, rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_convolutions_are_flattened_and_kept_before_they_are_overwritten(dtype):
    layers = [nn.Conv1d(1, 4, 2), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(8, 1)]
    model, x = seeded(lambda: nn.Sequential(*layers).to(dtype)), X[:, None].to(dtype)
    with probe.torch(model, ["0", "1"], inputs=x, observe=["distance", "representation"]) as seen:
        seen.step()
    for n, name in enumerate("01"):
        h = by_hand(model, n + 1, x)
        np.testing.assert_array_equal(seen.representations[name][0], h)
        np.testing.assert_array_equal(seen.trajectory[f"representation of {name}"][0], h)
        assert seen.trajectory["distance"][0, n, 1] == pytest.approx(((h[2] - h[0]) ** 2).sum(), rel=1e-12)
    assert (seen.representations["0"] < 0).any()
    assert (seen.representations["1"] >= 0).all()


def test_a_model_that_overwrites_its_input_sees_the_same_at_every_record():
    class Doubles(nn.Linear):
        def forward(self, x):
            return super().forward(x.mul_(2))

    model = seeded(lambda: nn.Sequential(Doubles(3, 5), nn.Tanh(), nn.Linear(5, 2)))
    given = X.clone()
    with probe.torch(model, inputs=given, observe="representation") as seen:
        seen.step()
        given.zero_()
        seen.step()
    wanted = model[0].weight.detach() @ (2 * X.T) + model[0].bias.detach()[:, None]
    for record in seen.representations["1"]:
        np.testing.assert_allclose(record, wanted.tanh().T.numpy(), rtol=1e-5)


def test_a_unit_that_does_not_tell_inputs_apart_has_no_direction():
    model = seeded(lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)))
    with torch.no_grad():
        model[0].bias.fill_(-100.0)
    with probe.torch(model, inputs=X[:2]) as seen:
        seen.step()
    assert (seen.trajectory["distance"] == 0).all()
    assert np.isnan(seen.trajectory["cosine"]).all()


def test_divergence_is_recorded_and_not_an_error():
    model = seeded(plain)
    with probe.torch(model, inputs=X, targets=Y) as seen:
        seen.step()
        with torch.no_grad():
            model[4].weight.fill_(float("inf"))
    assert np.isfinite(seen.trajectory["loss"]).tolist() == [True, False]


def test_only_the_numbers_are_kept():
    model = seeded(lambda: nn.Sequential(nn.Linear(3, 20_000), nn.ReLU(), nn.Linear(20_000, 1)))
    with probe.torch(model, inputs=X, pairs=[(0, 1)], at=range(30)) as seen:
        for _ in range(30):
            seen.step()
    # A record is three numbers (distance, output, cosine); activities of the first record stay, for the cosine.
    activities = 4 * 20_000 * 8
    assert activities < len(pickle.dumps(seen._record)) < 1.02 * activities


def test_many_inputs_need_no_pairs_if_none_are_compared():
    with probe.torch(plain(), inputs=torch.rand(150, 3), observe=["gates", "outputs"]) as seen:
        seen.step()
    assert seen.trajectory["gates"].shape == (2, 11, 19)
    assert "pair" not in seen.trajectory.coordinates


def test_pairs_in_pieces_are_the_same(monkeypatch):
    found = []
    for numbers in (2**20, 20):
        monkeypatch.setattr(compared_points, "NUMBERS_AT_ONCE", numbers)
        with probe.torch(seeded(plain), inputs=X, targets=Y) as seen:
            seen.step()
        found.append(seen.trajectory)
    for name in found[0]:
        np.testing.assert_array_equal(found[0][name], found[1][name])
    assert found[0]["distance"].shape == (2, 2, 6)


def test_numbers_come_in_the_precision_of_the_model():
    model = seeded(plain).double()
    with probe.torch(model, inputs=X.numpy(), targets=Y.tolist()) as seen:
        seen.step()
    h = by_hand(model, 2, X.double())
    assert seen.trajectory["distance"][0, 0, 0] == pytest.approx(((h[1] - h[0]) ** 2).sum(), rel=1e-14)
    half = seeded(plain).bfloat16()
    with probe.torch(half, inputs=X, pairs=[(0, 1)]) as seen:
        seen.step()
    assert seen.trajectory["distance"][0, 0, 0] == pytest.approx(((h[1] - h[0]) ** 2).sum(), rel=0.1)
    words = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))
    tokens = torch.tensor([[1, 2], [3, 4]])
    assert probe.torch(words, inputs=tokens).layers == ("3",)


def test_what_is_saved_can_be_loaded(tmp_path):
    model = seeded(plain)
    names = ["distance", "loss", "gates", "representation"]
    with probe.torch(model, {"early": "1", "late": "3"}, inputs=X, targets=Y, at=3, observe=names) as seen:
        train(model)
    seen.trajectory.save(tmp_path / "seen.nc")
    loaded = fs.Trajectory.load(tmp_path / "seen.nc")
    assert set(loaded) == {"distance", "loss", "gates", "representation of early", "representation of late"}
    for name in loaded:
        np.testing.assert_array_equal(loaded[name], seen.trajectory[name])
        assert loaded.axes[name] == seen.trajectory.axes[name]
    assert loaded.coordinates["layer"].tolist() == ["early", "late"]
    assert loaded.provenance == seen.trajectory.provenance
    with pytest.raises(fs.BadInput, match=r"a representation of layer 'a/b'\n.*without a slash\n.*rename"):
        probe.torch(model, {"a/b": "1"}, inputs=X, observe="representation")
    assert "closed: 6 pairs, distance, loss, gates, representation; 6 steps, 3 records, the last at step 6" in repr(
        seen
    )


# Counting


def test_automatic_and_manual_counting_agree():
    ends = []
    for by_hand_ in (False, True):
        model = seeded(plain)
        with probe.torch(model, inputs=X, at=2) as seen:
            train(model, before=seen.step if by_hand_ else lambda: None)
        ends.append(seen.trajectory)
    assert ends[0].times.tolist() == ends[1].times.tolist() == [0, 2, 4, 6]
    np.testing.assert_array_equal(ends[0]["distance"], ends[1]["distance"])
    assert [end.provenance["counted"] for end in ends] == ["optimiser steps", "probe.step()"]


@pytest.mark.parametrize(
    ("at", "times"),
    [
        (4, [0, 4]),
        (np.int64(3), [0, 3, 6]),
        (range(1, 6, 2), [1, 3, 5]),
        ([6, 0], [0, 6]),
        (np.geomspace(1, 100, 7), [1, 2, 5]),  # 1, 2.15, 4.64, 10, …
        ((step for step in (2, 2, 50)), [2]),
    ],
)
def test_steps_to_record(at, times):
    model = seeded(plain)
    with probe.torch(model, inputs=X, at=at) as seen:
        train(model, steps=6)
    assert seen.trajectory.times.tolist() == times


def test_only_optimisers_of_the_model_count_and_several_probes_work_at_once():
    one, two = seeded(plain, 1), seeded(plain, 2)
    with (
        probe.torch(one, inputs=X) as of_one,
        probe.torch(two, inputs=X) as of_two,
        probe.torch(one, inputs=X[:2]) as b,
    ):
        train(one, steps=2)
        train(two, steps=3)
        halves = [torch.optim.SGD(one[0].parameters(), 0.1), torch.optim.Adam(one[2].parameters(), 0.1)]
        for half in halves:
            half.step()
    assert (of_one.steps, of_two.steps, b.steps) == (4, 3, 4)
    assert of_one.trajectory.provenance["note"] == "every step of 3 optimisers counts (SGD, SGD, Adam)"
    assert "note" not in of_two.trajectory.provenance


def test_two_ways_to_count_are_refused():
    model = seeded(plain)
    words = r"probe.step\(\) after 1 steps .*\n.*one way to count.*\n.*first thing in every"
    with probe.torch(model, inputs=X) as seen:
        train(model, steps=1)
        with pytest.raises(fs.BadInput, match=words):
            seen.step()


def test_a_loop_that_was_not_seen_is_not_passed_off_as_the_start():
    model = seeded(plain)
    with probe.torch(model, inputs=X) as seen, torch.no_grad():
        model[0].weight.mul_(2)
    with pytest.raises(
        fs.BadInput, match=r"nothing recorded by this closed probe: 0 steps.*\n.*\n.*call probe.step\(\)"
    ):
        _ = seen.trajectory
    with pytest.raises(fs.BadInput, match=r"a step of a closed probe\n.*with.*\n.*with festina.probe.torch"):
        seen.step()
    with pytest.raises(fs.BadInput, match=r"a probe that is closed already\n.*one probe for each"), seen:
        pass
