"""The house is in order: listings, references, names, style."""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import festina as fs
from festina import _references

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "festina").rglob("*.py"))
FORBIDDEN = {"utils", "helpers", "common", "misc", "core", "manager", "engine", "config"}


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_listings_are_fresh():
    assert tool("listings").stale() == []


def test_bib_keys_resolve_wherever_they_are_cited():
    for path in SOURCES:
        for key in re.findall(r"\[([a-z]+\d{4}|saxe_slides)[,\]]", path.read_text()):
            assert key in _references.entries(), f"{path.name} cites {key}"
    for key in _references.entries():
        assert _references.formatted(key).endswith(".")


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_modules_are_named_and_sized_by_the_rules(path):
    assert path.stem.strip("_") not in FORBIDDEN
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    assert path.name == "_version.py" or text.startswith('"""'), "every module says what it is"
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)


def test_every_public_name_is_there_and_documented():
    for name in fs.__all__:
        member = getattr(fs, name)
        assert name == "__version__" or member.__doc__, name
    for kind in (fs.tasks, fs.nets, fs.inits, fs.rules, fs.theories):
        for name in kind.__all__:
            assert getattr(kind, name).__doc__, name


def test_dependencies_point_one_way():
    layers = [
        {
            "_errors",
            "_version",
            "_files",
            "_netcdf",
            "_noun",
            "_checks",
            "_precision",
            "_linalg",
            "_chain",
            "_progress",
            "_references",
            "_integrate",
            "_balance",
            "_dense",
            "_riccati",
            "_pair",
            "_two_point",
            "_one_pair",
            "_rotation",
            "_kernel",
            "_graph",
            "_compiled",
            "_parallel",
            "_points",
        },
        {"_task", "_gating"},
        {"_setup"},
        {
            "_bound",
            "_paths",
            "_race",
            "_race_bases",
            "_race_start",
            "tasks",
            "nets",
            "inits",
            "_starts",
            "rules",
            "_objective",
            "_observables",
            "_spec",
            "_trajectory",
            "_run",
            "_saddles",
            "_sequence",
            "_narrow",
            "_thin",
        },
        {"theories"},
        {
            "_solve",
            "_simulate",
            "_compare",
            "_plot",
            "_draw",
            "_claim",
            "_report",
            "_report_files",
            "_contest",
            "_parts",
            "_fit",
            "_fit_rates",
            "_fit_records",
        },
        {"gates", "probe"},
        {"experiments"},
        {"cli", "_page", "_reproduce", "_catalogue", "_parameters"},
    ]
    rank = {name: i for i, names in enumerate(layers) for name in names}
    # Late imports inside functions may look up: conveniences such as Setup.to_json, and the listing of experiments.
    for path in SOURCES:
        room = path.relative_to(ROOT / "src" / "festina").parts[0].removesuffix(".py")
        if room not in rank:
            continue
        dots = r"\.\." if path.parent.name in ("tasks", "nets", "theories", "experiments", "gates", "probe") else r"\."
        for line in re.findall(rf"^from {dots}(\w*)(?:\.\w+)* import (.+)$", path.read_text(), flags=re.MULTILINE):
            names = [line[0]] if line[0] else [n.strip() for n in line[1].strip("()").split(",")]
            for name in names:
                listing = (room, name) in {("_report", "experiments")}
                assert name not in rank or rank[name] <= rank[room] or listing, f"{room} imports {name}"


def test_nothing_names_a_machine_or_a_registry():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    for name in tracked:
        path = ROOT / name
        if (
            path.suffix in (".py", ".md", ".toml", ".yaml", ".yml", ".cff", "")
            and path.is_file()
            and path != Path(__file__)
        ):
            text = path.read_text(errors="ignore")
            assert not re.search(r"/work/|/root/|/tmp/v\b|/opt/pypi|index-url", text), name


def test_extras_and_scripts_are_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(project["optional-dependencies"]) == {"torch", "docs", "test"}
    assert project["scripts"] == {"festina": "festina.cli:main"}
    assert project["requires-python"] == ">=3.11"


@pytest.mark.parametrize("command", [("ruff", "check"), ("ruff", "format", "--check")], ids=" ".join)
def test_style(command):
    done = subprocess.run([sys.executable, "-m", *command, "."], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_types():
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_docstring_examples():
    import doctest

    modules = (
        "festina.nets.deep_linear",
        "festina.nets.gated",
        "festina._gating",
        "festina.tasks.hierarchy",
        "festina.theories.aligned_modes",
        "festina.theories.two_point",
        "festina._fit",
    )
    results = [doctest.testmod(importlib.import_module(name)) for name in modules]
    assert all(result.attempted for result in results)
    assert not any(result.failed for result in results)


def test_compiled_programs_are_forgotten_before_the_system_ends_the_process(monkeypatch, tmp_path):
    import jax

    from festina import _compiled

    compiled = jax.jit(lambda x: x + 1)
    compiled(1.0)
    assert not _compiled.make_room()
    assert compiled._cache_size() == 1
    limit = tmp_path / "limit"
    limit.write_text("10")
    monkeypatch.setattr(_compiled, "LIMIT", limit)
    assert _compiled.make_room()
    assert compiled._cache_size() == 0
    monkeypatch.setattr(_compiled, "LIMIT", tmp_path / "missing")
    assert not _compiled.make_room()
    limit.write_text("1000000")
    monkeypatch.setattr(_compiled, "LIMIT", limit)
    monkeypatch.setattr(_compiled, "MOST", 0)
    monkeypatch.setattr(_compiled._Room, "others", 0)
    monkeypatch.setattr(_compiled._Room, "looked", -_compiled.PAUSE)
    for kept in (0, 1):  # programs took too much memory; and it has just looked
        compiled(1.0)
        _compiled.look_for_room()
        assert compiled._cache_size() == kept
