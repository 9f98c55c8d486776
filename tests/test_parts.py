"""Long simulations in parts: what has been trained survives an interruption."""

import sys
import types

import numpy as np
import pytest

import festina as fs
from festina._reporting import report
from festina._training import loop, resumable
from festina._training.resumable import Parts, simulate_in_parts

SETUP = fs.Setup(
    fs.tasks.xor(0.5), fs.nets.MLP(3), fs.inits.SmallRandom(0.5), fs.rules.GradientDescent(0.1), times=[0.0, 0.5]
)
NAMES = ("loss", "gates")


@pytest.fixture
def trained(monkeypatch):
    """The seeds of every simulation that was really run."""
    calls = []

    def counted(setup, seeds, names, **options):
        calls.append(list(seeds))
        return fs.simulate(setup, seeds, names, **options)

    monkeypatch.setattr(resumable, "simulate", counted)
    return calls


def test_parts_together_are_the_whole():
    whole = fs.simulate(SETUP, [4, 5, 6], NAMES)
    parts = simulate_in_parts(SETUP, [4, 5, 6], NAMES, size=2)
    for name in whole:
        np.testing.assert_array_equal(parts[name], whole[name])
    np.testing.assert_array_equal(parts.coordinates["seed"], [4, 5, 6])
    assert parts.setup.net == SETUP.net


def test_finished_parts_are_found_again(tmp_path, trained):
    parts = Parts(tmp_path / "parts", "code")
    simulate_in_parts(SETUP, [0, 1], NAMES, parts=parts, size=1)
    first = simulate_in_parts(SETUP, [0, 1, 2], NAMES, parts=parts, size=1)
    assert trained == [[0], [1], [2]]
    again = simulate_in_parts(SETUP, [0, 1, 2], NAMES, parts=Parts(tmp_path / "parts", "code"), size=1)
    assert len(trained) == 3
    simulate_in_parts(SETUP.replace(times=[0.0, 0.6]), [0], NAMES, parts=parts, size=1)  # other work
    assert len(trained) == 4
    simulate_in_parts(SETUP, [0], NAMES, parts=Parts(tmp_path / "parts", "other code"), size=1)
    assert len(trained) == 5
    np.testing.assert_array_equal(again["gates"], first["gates"])


def test_a_part_that_is_not_whole_is_trained_again(tmp_path, trained):
    parts = Parts(tmp_path, "code")
    simulate_in_parts(SETUP, [0], NAMES, parts=parts, size=1)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:100])
    simulate_in_parts(SETUP, [0], NAMES, parts=parts, size=1)
    assert trained == [[0], [0]]


@pytest.mark.parametrize("folder", [None, "parts"])
def test_an_interrupted_part_is_not_kept(tmp_path, folder, monkeypatch):
    def interrupted(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(loop.Run, "block", interrupted)
    parts = None if folder is None else Parts(tmp_path / folder, "code")
    with pytest.raises(KeyboardInterrupt):
        simulate_in_parts(SETUP, [0], NAMES, parts=parts)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_broke_off_goes_on_and_clears_up(tmp_path, trained, monkeypatch):
    name = "networks_learn_mode_by_mode"
    real = sys.modules.get(f"festina.experiments.{name}") or report.Experiment.named(name).module
    broken = [True]

    def run(*, seed=0, parts=None):
        simulate_in_parts(SETUP, [0], NAMES, parts=parts, size=1)
        if broken:
            raise KeyboardInterrupt
        simulate_in_parts(SETUP, [1], NAMES, parts=parts, size=1)
        return real.run(**real.QUICK)

    parts = {
        key: getattr(real, key)
        for key in ("__doc__", "THEME", "PLACE", "CAPTION", "ALT", "REFERENCE", "claims", "figure")
    }
    fake = types.ModuleType(name)
    vars(fake).update(parts, run=run, QUICK={})
    monkeypatch.setattr(report.Experiment, "named", classmethod(lambda cls, name: cls(name, fake)))
    with pytest.raises(KeyboardInterrupt):
        fs.run(name, out=tmp_path)
    assert len(list((tmp_path / "parts").iterdir())) == 1
    broken.clear()
    fs.run(name, out=tmp_path)
    assert trained == [[0], [1]]
    assert not (tmp_path / "parts").exists()


def test_parts_are_no_parameter_of_an_experiment():
    assert "parts" not in fs.Experiment.named("deeper_networks_vary").parameters()
    with pytest.raises(fs.UnknownName, match="parts"):
        fs.run("deeper_networks_vary", parts=None)


def test_presets_are_settings_of_a_source():
    experiment = fs.Experiment.named("deeper_networks_vary")
    assert experiment.parameters(preset="hand_switched")["twins"] == ("hand_switched",)
    assert experiment.parameters(preset="hand_switched")["hidden"] == experiment.parameters()["hidden"]
    with pytest.raises(fs.UnknownName, match="hand_switched"):
        fs.run("deeper_networks_vary", preset="hand_swiched")
