"""The files to copy in CONTRIBUTING.md and the docs: each is a member once it is moved in, and obeys every law."""

from __future__ import annotations

import ast
import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import festina as fs
from festina import experiments
from festina.nets.gated import gates
from test_docs import ROOT, blocks, execute

CONTRIBUTING, OBSERVABLES = ROOT / "CONTRIBUTING.md", ROOT / "docs/observables.md"
EXTEND = ROOT / "docs/how-to/adding-parts.md"


@dataclasses.dataclass(frozen=True)
class Laws:
    """What a member of a kind must pass: how its tests are called, and what marks a law over all members."""

    name: str  # of the skeleton, in the identifiers of its tests
    file: str
    everyone: str  # the decorator of the laws that hold for every member


LAWS = {
    "theories": Laws("TwoLayerModes", "test_theories.py", "every_theory|every_closed_form|every_theory_of_.*"),
    "docs": Laws("ShallowMap", "test_theories.py", "every_theory|every_closed_form"),
    "tasks": Laws("opposites", "test_tasks.py", "every_task|every_task_with_samples"),
    "nets": Laws("Quadratic", "test_networks.py", "every_net"),
    "inits": Laws("Uniform", "test_networks.py", "every_init"),
    "rules": Laws("SignDescent", "test_networks.py", "every_rule"),
    "observables": Laws("dimension", "test_observables.py", "every_observable"),
    "experiments": Laws("larger_starts_learn_sooner", "test_experiments.py", "every_experiment"),
}
# Tests that take every member of several kinds, or see all of them at once.
FOR_ALL = {
    "test_bad_input.py": "valid_call or tasks.opposites or nets.Quadratic or inits.Uniform or rules.SignDescent",
    "test_theories.py": "rule_of_choice",
}


def skeletons() -> dict[str, tuple[int, str]]:
    """The files to copy, by the path in their first line."""
    written = [*blocks(CONTRIBUTING, "python"), *blocks(OBSERVABLES, "text"), *blocks(CONTRIBUTING, "text")]
    first = {code.split("\n", 1)[0]: (line, code) for line, code in written}
    return {path.removeprefix("# "): found for path, found in first.items() if path.startswith("# src/festina/")}


def grown(folder: str, monkeypatch) -> types.ModuleType:
    """The skeleton of a folder, as the module that it is once it is copied."""
    path = next(path for path in skeletons() if path.startswith(f"src/festina/{folder}/"))
    line, code = skeletons()[path]
    assert not (ROOT / path).exists()
    name = f"festina.{folder}.{Path(path).stem}"
    module = types.ModuleType(name)
    module.__package__ = f"festina.{folder}"
    monkeypatch.setitem(sys.modules, name, module)
    execute(CONTRIBUTING, line, code, vars(module))
    # The comment with the path stands in front of the docstring, which stays the first statement.
    assert module.__doc__
    return module


@pytest.fixture(scope="module")
def laws(tmp_path_factory):
    """How many tests of the laws passed for each skeleton, in a copy of the package into which all are moved."""
    house = tmp_path_factory.mktemp("house")
    for path in ("src/festina", "tests", "tools", "docs", "pyproject.toml", "README.md"):
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, house / path, ignore=shutil.ignore_patterns("_build", "__pycache__"))
        else:
            shutil.copy(ROOT / path, house / path)
    for path, (_, code) in skeletons().items():
        if path.endswith(".py"):
            (house / path).write_text(code, encoding="utf-8")
    shallow = next(code for _, code in blocks(EXTEND, "python") if "class ShallowMap" in code)
    (house / "src/festina/theories/shallow_map.py").write_text(shallow, encoding="utf-8")
    subprocess.run([sys.executable, "tools/listings.py"], cwd=house, check=True, capture_output=True)
    files = sorted({f"tests/{law.file}" for law in LAWS.values()} | {f"tests/{file}" for file in FOR_ALL})
    wanted = " or ".join([*(law.name for law in LAWS.values()), *FOR_ALL.values()])
    command = [*shlex.split("-m pytest -v -p no:cacheprovider -o addopts="), "-k", wanted, *files]
    environment = {**os.environ, "PYTHONPATH": str(house / "src")}
    done = subprocess.run([sys.executable, *command], cwd=house, env=environment, capture_output=True, text=True)
    passed = re.findall(r"^(\S+::.*?) PASSED", done.stdout, flags=re.MULTILINE)
    failed = re.findall(r"^(\S+::.*?) (?:FAILED|ERROR)", done.stdout, flags=re.MULTILINE)
    return passed, failed, done.stdout + done.stderr


def test_nothing_fails_once_all_are_moved_in(laws):
    passed, failed, text = laws
    assert failed == [], text
    assert len([test for test in passed if "test_bad_input" in test]) >= 5, text


@pytest.mark.parametrize("law", LAWS.values(), ids=lambda law: law.name)
def test_it_obeys_every_law_once_it_is_moved_in(law, laws):
    source = (ROOT / "tests" / law.file).read_text(encoding="utf-8")
    for_everyone = re.findall(rf"^@(?:{law.everyone})\n(@.*\n)*def (\w+)", source, flags=re.MULTILINE)
    wanted = {name for more, name in for_everyone if "slow" not in more}
    assert wanted
    obeyed = {test.split("::")[1].split("[")[0] for test in laws[0] if law.name in test}
    assert wanted <= obeyed, f"{law.name} does not pass {wanted - obeyed}\n{laws[2]}"


@pytest.mark.parametrize("path", skeletons())
def test_what_is_to_be_copied_has_types(path):
    tree = ast.parse(skeletons()[path][1])
    of_classes = [node for kind in tree.body if isinstance(kind, ast.ClassDef) for node in kind.body]
    for node in [*tree.body, *of_classes]:
        if isinstance(node, ast.FunctionDef):
            given = [*node.args.args, *node.args.kwonlyargs]
            typed = [a.annotation for a in given if a.arg not in ("self", "cls")] + [node.returns]
            assert "Any" not in [written and ast.unparse(written) for written in typed], node.name
            assert None not in typed or node.name == "__post_init__", node.name


def test_the_theory_to_copy_is_a_theory(monkeypatch):
    theory = grown("theories", monkeypatch).TwoLayerModes()
    setup = theory.example()
    assert [a.name for a in theory.assumptions(setup, 0) if not a.holds] == []
    known = fs.solve(setup, "AlignedModes")
    for name, values in fs.solve(setup, theory).items():
        np.testing.assert_allclose(values, known[name], atol=1e-12)
    for broken in (fs.nets.DeepLinear((5, 5)), fs.nets.DeepLinear(())):
        with pytest.raises(fs.NoTheory, match="two layers"):
            fs.solve(setup.replace(net=broken), theory)
    with pytest.raises(fs.NoTheory, match="positive start"):
        fs.solve(setup.replace(init=fs.inits.Aligned(-0.1)), theory)


def test_the_task_to_copy_is_a_task(monkeypatch):
    module = grown("tasks", monkeypatch)
    task = module.opposites(pairs=3)
    np.testing.assert_allclose(task.modes().singular_values, task.stated_spectrum, rtol=1e-12)
    np.testing.assert_allclose(task.y.T @ task.x / task.samples, task.cov_yx, rtol=1e-12)
    assert task.recipe == ("opposites", '{"pairs": 3}')


def test_the_experiment_to_copy_is_an_experiment(monkeypatch, tmp_path):
    name = "larger_starts_learn_sooner"
    module = grown("experiments", monkeypatch)
    assert module.__name__ == f"festina.experiments.{name}"
    monkeypatch.setattr(experiments, "__all__", [name])
    report = fs.run(name, quick=True, out=tmp_path)
    assert report.as_expected, report
    assert fs.Report.load(tmp_path).claims == report.claims


def test_the_kind_of_gate_to_copy_is_a_gate(monkeypatch):
    line, code = skeletons()["src/festina/nets/gated/gates.py, before KINDS"]
    execute(CONTRIBUTING, line, code, vars(gates))
    added = vars(gates).pop("Except")
    monkeypatch.setattr(gates, "KINDS", (added, *gates.KINDS))
    task = fs.tasks.contextual(items=4, contexts=3)
    net = fs.nets.Gated.pathways([{"width": 6}, {"on": "not context 1", "width": 6}])
    by_hand = fs.nets.Gated.pathways([{"width": 6}, {"on": {"context": [0, 2]}, "width": 6}])
    setup = fs.Setup(task, net, fs.inits.SmallRandom(0.1), until=4.0, points=5)
    expected = fs.simulate(setup.replace(net=by_hand), observe="loss")["loss"]
    np.testing.assert_array_equal(fs.simulate(setup, observe="loss")["loss"], expected)
    again = fs.Setup.from_json(setup.to_json())
    assert again.net == net
    assert dataclasses.astuple(gates.read_gate("not context 1", "here")) == ("context", 1.0)
    absent = fs.nets.Gated.pathways([{"width": 6}, {"on": "not context 3", "width": 6}])
    with pytest.raises(fs.BadInput, match="reads whether the label 'context' is 3, which no sample has"):
        setup.replace(net=absent)


def test_the_probe_backend_to_copy_is_a_backend(monkeypatch):
    module = grown("probe", monkeypatch)
    hidden = np.random.default_rng(0).normal(size=(3, 5, 4))
    taken = [(10 * k, {"middle": layer}) for k, layer in enumerate(hidden)]
    probed = module.snapshots(taken, observe="distance")
    known = fs.probe.arrays([0, 10, 20], {"middle": hidden}, observe="distance")
    np.testing.assert_array_equal(probed["distance"], known["distance"])
    assert probed.source == "probe.snapshots"
    assert probed.provenance["clock"] == "steps"
