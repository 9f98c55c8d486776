"""probe.torch records under the names and at the times of simulate and solve."""

from __future__ import annotations

import numpy as np
import pytest

import festina as fs
from festina import probe
from probed_models import X, Y, nn, plain, seeded, torch, train


def on_two_points(lr, names=("distance", "output_distance", "output_alignment", "mean_gap", "loss", "outputs")):
    """A two-layer linear network on x and −x: as torch trains it, as simulate does, and as the theory says."""
    x, y = np.array([[-0.6, 0.3], [0.6, -0.3]]), np.array([[-0.8], [0.8]])
    rng = np.random.default_rng(0)
    weights = [0.1 * rng.normal(size=(5, 2)), 0.1 * rng.normal(size=(1, 5))]
    setup = fs.Setup(
        fs.tasks.from_arrays(x, y),
        fs.nets.DeepLinear(hidden=5),
        fs.inits.Given(weights),
        fs.rules.GradientDescent(lr),
        until=8.0,
        points=9,
    )
    model = nn.Sequential(nn.Linear(2, 5, bias=False), nn.Linear(5, 1, bias=False)).double()
    with torch.no_grad():
        for layer, start in zip(model, weights, strict=True):
            layer.weight.copy_(torch.tensor(start))
    x, y, optimizer = torch.tensor(x), torch.tensor(y), torch.optim.SGD(model.parameters(), lr=lr)
    with probe.torch(model, inputs=x, targets=y, observe=names, at=setup.rule.steps(setup.times), lr=lr) as seen:
        for _ in range(int(setup.rule.steps(setup.times[-1]))):
            optimizer.zero_grad()
            (0.5 * ((model(x) - y) ** 2).sum(1).mean()).backward()
            optimizer.step()
    solved = fs.solve(setup, "TwoPoint", observe=list(names))
    return seen.trajectory, fs.simulate(setup, 1, list(names), progress=False), solved


def test_a_probe_compares_with_simulate_to_rounding_and_with_the_theory_at_first_order():
    errors = []
    for lr in (0.08, 0.04, 0.02):
        seen, trained, solved = on_two_points(lr)
        assert set(fs.compare(trained, seen).names) == set(seen)
        for same in (fs.compare(trained, seen), fs.compare(seen, trained)):
            assert max(same.errors().values()) < 1e-12
        known = fs.compare(solved, seen).errors()
        assert known.keys() >= {"distance", "output_distance", "output_alignment", "loss"}
        errors.append([known[name] for name in ("distance", "output_distance", "output_alignment", "loss")])
        assert seen.provenance["lr"] == lr
    ratios = np.array(errors)[:-1] / np.array(errors)[1:]
    assert np.all((ratios > 1.8) & (ratios < 2.2)), ratios
    assert np.max(errors[-1]) < 0.01


def test_times_are_steps_unless_the_rate_is_known():
    model = seeded(plain)
    with probe.torch(model, inputs=X, at=2, lr=0.1) as seen:
        train(model)
    assert seen.trajectory.times.tolist() == [0, 2 * 0.1, 4 * 0.1, 6 * 0.1]
    assert "the last at time 0.6" in repr(seen)
    with pytest.raises(fs.BadInput, match=r"lr = 0\n.*lr > 0"):
        probe.torch(model, inputs=X, lr=0)


def test_comparisons_of_probes_are_drawn_and_other_pairs_refused():
    def seen(seed, pairs=None):
        model = seeded(plain, seed)
        with probe.torch(model, inputs=X, targets=Y, pairs=pairs) as one:
            train(model)
        return one.trajectory

    first, second = seen(0), seen(1)
    figure = fs.compare(first, second).plot()
    panels = {panel.get_ylabel(): panel for panel in figure.axes if panel.get_ylabel()}
    assert list(panels) == ["distance", "output_distance", "output_alignment", "loss", "cosine"]
    # Two layers and four of six pairs, in two colours; then all six pairs.
    assert [len(panels[name].lines) for name in ("distance", "output_distance", "loss")] == [16, 12, 2]
    assert panels["distance"].get_title("left") == "distance: probe.torch, 4 of 6 pairs"
    assert [text.get_text() for text in panels["distance"].get_legend().get_texts()] == ["1", "3"]
    assert panels["loss"].get_xlabel() == "steps"
    np.testing.assert_array_equal(panels["distance"].lines[1].get_ydata(), second["distance"][:, 0, 1])
    np.testing.assert_array_equal(panels["distance"].lines[12].get_ydata(), first["distance"][:, 1, 0])
    with pytest.raises(fs.BadInput, match=r"pairs 0-1, … in theory, and 0-2, … in training\n.*same order\n.*pairs="):
        fs.compare(seen(0, [(0, 1)]), seen(0, [(0, 2)]))
    assert fs.compare(seen(0, [(0, 1)]), seen(0, [(1, 0)])).error("distance") == 0


def test_a_name_with_other_axes_is_no_shared_name():
    """simulate records the similarity of the last hidden layer, a probe that of every layer."""
    seen, trained, _ = on_two_points(0.05, ("loss", "outputs", "similarity"))
    both = fs.compare(trained, seen)
    assert set(both.names) == {"loss", "outputs"}
    with pytest.raises(fs.UnknownName, match="unknown observable of this comparison 'similarity'"):
        both["similarity"]
