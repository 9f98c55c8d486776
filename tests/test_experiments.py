"""Every experiment: quick preset, claims, figure, report; and what reproduce promises."""

from __future__ import annotations

import ast
import inspect
import json
import math
import re
import string
from pathlib import Path

import pytest

import festina as fs
from festina import experiments
from festina._figures.style import picture_bytes, styled
from festina._reporting import references
from festina._reporting.experiment import Experiment
from festina._reporting.report_files import FILES
from festina.experiments import base
from festina.experiments.base import THEMES
from figure_checks import problems

every_experiment = pytest.mark.parametrize("name", experiments.__all__)


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
    assert report.to_dict() == facts
    assert report.experiment.module.claims(report.result) == list(report.claims)


@every_experiment
def test_its_data_is_read_by_attribute(name, quick):
    import xarray

    data = quick(name)[0].result.data
    # `data.count` would be xarray's own method, whatever the variable of that name holds.
    assert not {*data.variables, *data.dims, *data.attrs} & set(dir(xarray.Dataset))


@every_experiment
def test_the_figure_is_deterministic_and_drawn_from_the_saved_data(name, quick):
    _, folder = quick(name)
    again = fs.Report.load(folder)
    with styled():
        assert picture_bytes(again.figure(), "svg") == (folder / "figure.svg").read_bytes()


@every_experiment
def test_its_figure_can_be_read_on_the_page(name, quick):
    report, _ = quick(name)
    figure = report.figure()
    assert problems(figure) == []
    letters = {axes.get_label() for axes in figure.axes if len(axes.get_label()) == 1}
    assert letters
    caption = report.experiment.caption
    told = set("".join(re.findall(r"\*\*([a-z](?:, [a-z])*)\*\*", caption)))
    for first, last in re.findall(r"\*\*([a-z])\*\* to \*\*([a-z])\*\*", caption):
        told |= set(string.ascii_lowercase[string.ascii_lowercase.index(first) : string.ascii_lowercase.index(last)])
    assert letters <= told, f"the caption is silent about {letters - told}"
    assert {claim.panel for claim in report.claims} <= letters | {""}
    assert len(report.experiment.alt) > 40


@every_experiment
def test_its_claims_can_be_understood_alone(name, quick):
    report, _ = quick(name)
    assert any(claim.headline for claim in report.claims)
    assert not all(claim.headline for claim in report.claims) or len(report.claims) <= 2
    for claim in report.claims:
        assert not claim.text.startswith("…"), claim.text
        assert "on record" not in claim.text
        assert "independent computation" not in claim.text


@every_experiment
def test_its_file_keeps_the_house_rules(name):
    experiment = Experiment.named(name)
    module = experiment.module
    assert experiment.finding.endswith(".")
    assert experiment.theme in THEMES
    assert len(inspect.getsource(module).splitlines()) <= 230
    assert len(name.split("_")) > 1, "a file is named by its finding, in words"
    assert set(module.REFERENCE) <= set(references.entries())
    parameters = inspect.signature(module.run).parameters
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in parameters.values())
    assert "seed" in parameters
    assert set(module.QUICK) <= set(parameters)
    drawing = [value for key, value in vars(module).items() if key == "figure" or key.startswith("_draw")]
    for function in filter(inspect.isfunction, drawing):
        assert not re.search(r"\b(solve|simulate|race|fit)\(", inspect.getsource(function)), function.__name__


PATHS = sorted(Path(experiments.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_ctrl_c_ends_a_whole_experiment(path):
    """Half an experiment proves nothing: all training is that of the kit, or asks for an end by name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and any(name.name == "simulate" for name in node.names):
            of_the_kit = node.module and node.module.endswith("training")
            assert of_the_kit or path.stem == "training", f"{path.name} trains past Ctrl-C"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "record":
            assert "interrupt" in [word.arg for word in node.keywords], f"{path.name} records past Ctrl-C"


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


def test_claims_are_checked():
    with pytest.raises(fs.BadInput, match="source"):
        fs.Claim("x", 1.0, "<= 2", True, source="me")
    with pytest.raises(fs.BadInput, match="expected to fail"):
        fs.Claim("x", 1.0, "<= 2", True, source="paper", expected=False)
    assert not fs.Claim.at_most("x", float("nan"), 1.0).holds
    assert fs.Claim.between("x", 1.0, 0.9, 1.1).holds


COMPARISONS = {
    name: function
    for name, function in inspect.getmembers(base, inspect.isfunction)
    if inspect.signature(function).return_annotation == "Decision"
}


@pytest.mark.parametrize("compare", COMPARISONS.values(), ids=COMPARISONS)
def test_every_comparison_decides(compare):
    first, *others = inspect.signature(compare).parameters
    assert first == "measured"
    bounds = [1.0] * len(others)
    border = compare(1.0, *bounds)
    assert (border.measured, border.holds) == (1.0, True)
    assert "1" in border.required
    assert not compare(math.nan, *bounds).holds
    assert not all(compare(1.0 + gap, *bounds).holds for gap in (-1e-9, 1e-9, -math.inf, math.inf))
    for k in range(len(bounds)):
        with pytest.raises(fs.BadInput, match=others[k]):
            compare(1.0, *bounds[:k], math.nan, *bounds[k + 1 :])


def test_rows_of_the_settings_that_are_not_printed_are_run_by_name(monkeypatch):
    from festina.experiments import one_law_many_architectures, small_weights_wait
    from festina.experiments._kit import table_of_networks

    monkeypatch.setattr(one_law_many_architectures, "WIDE", 1)
    names = tuple(table_of_networks.NOT_PRINTED)
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
