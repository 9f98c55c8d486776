"""Every experiment: quick preset, claims, figure, report; and what reproduce promises."""

from __future__ import annotations

import inspect
import json
import re

import numpy as np
import pytest

import festina as fs
from festina import _references, experiments
from festina._report import Experiment, digest
from festina._report_files import FILES, is_done
from festina._reproduce import reproduce

every_experiment = pytest.mark.parametrize("name", experiments.__all__)


@pytest.fixture(scope="module")
def quick(request, tmp_path_factory):
    """Quick reports by name, each run once for all tests of this file."""
    kept = {}

    def get(name):
        if name not in kept:
            folder = tmp_path_factory.mktemp(name)
            kept[name] = (fs.run(name, quick=True, out=folder), folder)
        return kept[name]

    return get


@every_experiment
def test_every_outcome_is_as_expected(name, quick):
    report, _ = quick(name)
    assert report.claims
    for claim in report.claims:
        assert claim.as_expected, f"{claim.text}: measured {claim.measured}, required {claim.required}"
    assert report.facts["outcome"] == "as expected"


@every_experiment
def test_the_report_is_whole_and_round_trips(name, quick):
    report, folder = quick(name)
    assert sorted(p.name for p in folder.iterdir()) == sorted([*FILES, *report.facts["networks"]])
    facts = json.loads((folder / "report.json").read_text())
    assert facts["experiment"] == name
    for key in ("setup", "versions", "seed", "time", "claims", "parameters", "reference", "assumptions", "digest"):
        assert key in facts
    for claim in facts["claims"]:
        assert {"text", "measured", "required", "holds", "source", "expected"} <= set(claim)
        assert claim["source"] in ("paper", "festina")
        assert claim["expected"] or (claim["reason"] and claim["source"] == "paper")
    for spec in facts["setup"].values():
        fs.Setup.from_json(json.dumps(spec))
    again = fs.Report.load(folder)
    assert again.to_dict() == facts
    assert again.experiment.module.claims(again.result) == list(report.claims)


@every_experiment
def test_its_data_is_read_by_attribute(name, quick):
    import xarray

    data = quick(name)[0].result.data
    # `data.count` would be xarray's own method, whatever the variable of that name holds.
    assert not {*data.variables, *data.dims, *data.attrs} & set(dir(xarray.Dataset))


@every_experiment
def test_the_figure_is_deterministic_and_drawn_from_the_saved_data(name, quick, tmp_path):
    _, folder = quick(name)
    again = fs.Report.load(folder)
    again.save(tmp_path)
    assert (tmp_path / "figure.svg").read_text() == (folder / "figure.svg").read_text()


@every_experiment
def test_its_file_keeps_the_house_rules(name):
    experiment = Experiment.named(name)
    module = experiment.module
    assert experiment.finding.endswith(".")
    assert "_" in name
    assert set(module.REFERENCE) <= set(_references.entries())
    parameters = inspect.signature(module.run).parameters
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in parameters.values())
    assert "seed" in parameters
    assert set(module.QUICK) <= set(parameters)
    assert not re.search(r"\b(solve|simulate)\(", inspect.getsource(module.figure))


@every_experiment
@pytest.mark.slow
def test_the_full_preset(name, tmp_path):
    assert fs.run(name, out=tmp_path).as_expected


def test_other_seeds_and_parameters():
    report = fs.run("networks_learn_mode_by_mode", quick=True, seed=3, hidden=8)
    assert report.facts["preset"] == "custom"
    assert report.facts["parameters"]["hidden"] == 8
    assert report.facts["seed"] == 3
    with pytest.raises(fs.UnknownName, match="hidden"):
        fs.run("networks_learn_mode_by_mode", hiden=8)
    with pytest.raises(fs.UnknownName, match="networks_learn_mode_by_mode"):
        fs.run("networks_learn_mode_by_mod")


def tiny(monkeypatch, broken=()):
    """Make runs instant: reproduce is about folders and pages here, not about science."""
    import xarray

    from festina._plot import new_figure
    from festina._report import Claim, Result

    calls = []
    for name in experiments.__all__:
        module = Experiment.named(name).module

        def run(*, _name=name, seed=0, **parameters):
            calls.append(_name)
            if _name in broken:
                raise RuntimeError("something broke")
            return Result(xarray.Dataset({"a": ("time", np.arange(3.0))}))

        monkeypatch.setattr(module, "run", run)
        monkeypatch.setattr(module, "QUICK", {})
        monkeypatch.setattr(module, "claims", lambda result: [Claim.at_most("a", 1.0, 2.0)])
        monkeypatch.setattr(module, "figure", lambda result: new_figure()[0])
        monkeypatch.setattr(Experiment, "parameters", lambda self, quick=False, preset=None: {})
    return calls


def test_reproduce_keeps_what_is_done_and_survives_a_failure(monkeypatch, tmp_path):
    broken = experiments.__all__[0]
    calls = tiny(monkeypatch, broken={broken})
    first = reproduce((), quick=True, out=tmp_path)
    assert list(first.failures) == [broken]
    assert first.done == experiments.__all__[1:]
    assert not first.as_expected
    page = (tmp_path / "index.html").read_text()
    assert "something broke" in page
    assert experiments.__all__[1] in page

    calls.clear()
    tiny_again = tiny(monkeypatch)
    second = reproduce((), quick=True, out=tmp_path)
    assert tiny_again == [broken]
    assert second.kept == experiments.__all__[1:]
    assert second.as_expected


def test_a_report_with_other_inputs_or_missing_files_is_run_again(monkeypatch, tmp_path):
    calls = tiny(monkeypatch)
    name = experiments.__all__[0]
    reproduce([name], quick=True, out=tmp_path)
    reproduce([name], quick=True, out=tmp_path, seed=1)
    (tmp_path / name / "figure.png").unlink()
    reproduce([name], quick=True, out=tmp_path, seed=1)
    (tmp_path / name / "report.json").write_text("{ broken")
    reproduce([name], quick=True, out=tmp_path, seed=1)
    assert calls == [name] * 4
    assert is_done(tmp_path / name, digest(name, {}, 1))


def test_an_interrupted_save_leaves_the_report_that_was_there(monkeypatch, tmp_path):
    calls = tiny(monkeypatch)
    name = experiments.__all__[0]
    reproduce([name], quick=True, out=tmp_path)
    kept = fs.Report.load(tmp_path / name)

    def interrupted(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fs.Report, "figure", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kept.save(tmp_path / name)
    reproduce([name], quick=True, out=tmp_path)
    assert calls == [name]


def test_claims_are_checked():
    with pytest.raises(fs.BadInput, match="source"):
        fs.Claim("x", 1.0, "<= 2", True, source="me")
    with pytest.raises(fs.BadInput, match="expected to fail"):
        fs.Claim("x", 1.0, "<= 2", True, source="paper", expected=False)
    assert not fs.Claim.at_most("x", float("nan"), 1.0).holds
    assert fs.Claim.between("x", 1.0, 0.9, 1.1).holds


def test_rows_of_the_settings_that_are_not_printed_are_run_by_name(monkeypatch):
    from festina.experiments import _two_points, one_law_many_architectures, small_weights_wait

    monkeypatch.setattr(one_law_many_architectures, "WIDE", 1)
    names = tuple(_two_points.NOT_PRINTED)
    result = one_law_many_architectures.run(networks=names, units=8, epochs=200, seeds=1)
    told = " ".join(claim.text for claim in one_law_many_architectures.claims(result))
    assert all(f"{name}, not printed" in told for name in names)
    assert one_law_many_architectures.figure(result).axes
    with pytest.raises(fs.UnknownName, match=r"gain 1\.2"):
        small_weights_wait.run(more="gain 1.3", units=8)


def test_digits_under_adam_at_a_rate_that_is_too_large_are_reported_not_raised():
    from festina.experiments import mnist_structure

    small = {**mnist_structure.QUICK, "epochs": 10, "trials": 2}
    result = mnist_structure.run(**{**small, "rule": "Adam", "lr": 3.0})
    learned = mnist_structure.claims(result)[-1]
    assert "until the loss of one of them blows up" in learned.text
    assert 0 < learned.measured < 10
    assert not learned.holds
    assert not learned.expected
    assert mnist_structure.figure(result).axes
    with pytest.raises(fs.Diverged):
        mnist_structure.run(**{**small, "lr": 30.0})
