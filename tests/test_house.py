"""The house is in order: listings, references, names, style."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tokenize
import tomllib
import weakref
from pathlib import Path

import pytest

import festina as fs
from festina import experiments
from festina._reporting import references

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


# [key2014], [key2014, race], and [any_key, eq. 3] or another place in a publication.
PLACES = r"eqs?\.|appendi|chapter|section|theorem|lemma|table|fig|[A-Z]\.\d|[\"“]"
CITED = re.compile(rf"(?<!\w)\[(?:([a-z]+\d{{4}}|saxe_slides)[,\]]|(\w+),\s+(?:{PLACES}))")


def prose(path):
    """The docstrings and comments of a file."""
    text = path.read_text()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = [ast.get_docstring(node) for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return "\n".join([*filter(None, docstrings), *comments])


def cited(text):
    return {year or other for year, other in CITED.findall(text)}


def test_bib_keys_resolve_wherever_they_are_cited():
    text = '[slides, "Learning"] [a2014, eq. 3] [b1999] [notes, appendices A] [W1, W2]'
    assert cited(text) == {"slides", "a2014", "b1999", "notes"}
    for path in SOURCES:
        unknown = cited(prose(path)) - set(references.entries())
        assert not unknown, f"{path.name} cites {unknown}"
    for key in references.entries():
        assert references.formatted(key).endswith(".")


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_modules_are_named_and_sized_by_the_rules(path):
    assert path.stem.strip("_") not in FORBIDDEN
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    assert text.startswith('"""'), "every module says what it is"
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)


def test_every_public_name_is_there_and_documented():
    for name in fs.__all__:
        member = getattr(fs, name)
        assert name == "__version__" or member.__doc__, name
    for kind in (fs.tasks, fs.nets, fs.inits, fs.rules, fs.theories):
        for name in kind.__all__:
            assert getattr(kind, name).__doc__, name


def linted(folder):
    """The exit status of import-linter over the package in a folder, and what it printed."""
    command = [sys.executable, "-c", "import sys; from importlinter.cli import lint_imports_command as lint; lint()"]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    done = subprocess.run([*command, "--no-cache"], cwd=folder, capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout + done.stderr


def test_doors_are_one_way():
    code, text = linted(ROOT)
    assert code == 0, text


LATE = "def late():\n    "
FORBIDDEN_IMPORTS = [
    ("tasks/ring.py", "from ..theories import AlignedModes", "festina.tasks.ring -> festina.theories"),
    (
        "_formulas/modes.py",
        LATE + "from .._setup.setup import Setup",
        "festina._formulas.modes -> festina._setup.setup",
    ),
    ("_formulas/balance.py", "from .._figures import style", "festina._formulas.balance -> festina._figures.style"),
    ("nets/mlp.py", "from .. import rules", "festina.nets.mlp -> festina.rules"),
    ("_training/marks.py", LATE + "from .._verbs import solve", "festina._training.marks -> festina._verbs.solve"),
    ("_verbs/solve.py", LATE + "from .._training import simulate", "festina._verbs.solve -> festina._training"),
    ("_verbs/fit/search.py", LATE + "from ..._training import loop", "festina._verbs.fit.search -> festina._training"),
    ("_training/layout.py", "from ..theories import AlignedModes", "festina._training.layout -> festina.theories"),
    ("_verbs/compare.py", "from . import race", "festina._verbs.compare -> festina._verbs.race"),
    ("gates/reading.py", "if False:\n    from .. import probe", "festina.gates.reading -> festina.probe"),
    ("theories/aligned_modes.py", "from .. import simulate", "festina.theories.aligned_modes -> festina ("),
    ("inits/__init__.py", "from .. import simulate", "festina.inits -> festina ("),
    (
        "experiments/adam_differs.py",
        LATE + "from . import worlds_have_spectra",
        "festina.experiments.adam_differs -> festina.experiments.worlds_have_spectra",
    ),
    (
        "experiments/_kit/worlds.py",
        "from ..broad_before_fine import run",
        "festina.experiments._kit.worlds -> festina.experiments.broad_before_fine",
    ),
    (
        "experiments/gates_solve_xor.py",
        "from .._reporting import report",
        "festina.experiments.gates_solve_xor -> festina._reporting.report",
    ),
    ("_verbs/unplaced.py", "", "unplaced"),
]


@pytest.fixture(scope="module")
def linted_with_forbidden_imports(tmp_path_factory):
    """What import-linter prints for a copy of the package to which all these imports are added."""
    house = tmp_path_factory.mktemp("house")
    shutil.copytree(ROOT / "src", house / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", house)
    for file, line, _ in FORBIDDEN_IMPORTS:
        path = house / "src" / "festina" / file
        before = path.read_text() if path.exists() else '"""A verb without a place."""'
        path.write_text(f"{before}\n\n{line}\n")
    code, text = linted(house)
    assert code == 1
    return text


@pytest.mark.parametrize("seen", [seen for *_, seen in FORBIDDEN_IMPORTS])
def test_a_forbidden_import_is_found(seen, linted_with_forbidden_imports):
    assert re.search(re.escape(seen), linted_with_forbidden_imports), linted_with_forbidden_imports


EXPERIMENTS = ROOT / "src" / "festina" / "experiments"
OF_REPORTS = {name for name, module in fs._WHERE.items() if module and module.startswith("_reporting.")}


def taken_past_the_doors(file, text):
    """What the text of an experiment, or of the kit, imports of other experiments and of reports.

    The package gives experiments its public names, among which import-linter cannot see those of reports.
    """
    package = ".".join(["festina.experiments", *file.relative_to(EXPERIMENTS).parts[:-1]])
    shut = {f"festina.{name}" for name in (*OF_REPORTS, "_reporting", "cli")}
    shut |= {f"festina.experiments.{name}" for name in experiments.__all__}
    taken = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            source = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names = [f"{source}.{name.name}" for name in node.names]
            taken += [name for name in names if name in ("festina.*", "festina.experiments")]
            taken += [name for name in names if any(f"{name}.".startswith(f"{door}.") for door in shut)]
        elif isinstance(node, ast.Import):  # all public names would be within reach
            taken += [name.name for name in node.names if name.name.partition(".")[0] == "festina"]
    return taken


@pytest.mark.parametrize("file", sorted(EXPERIMENTS.rglob("*.py")), ids=lambda file: file.stem)
def test_it_knows_no_other_experiment_and_no_report(file):
    assert taken_past_the_doors(file, file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("from .. import Setup, run", "festina.run"),
        (LATE + "from .. import Report", "festina.Report"),
        ("from festina import Experiment", "festina.Experiment"),
        ("from .. import *", "festina.*"),
        ("import festina as fs", "festina"),
        ("import festina.tasks", "festina.tasks"),
        ("from .. import experiments", "festina.experiments"),
        ("from .._reporting.reproduce import reproduce", "festina._reporting.reproduce.reproduce"),
        ("from . import adam_differs", "festina.experiments.adam_differs"),
        ("from .adam_differs import run", "festina.experiments.adam_differs.run"),
    ],
)
def test_a_name_past_the_doors_of_experiments_is_found(line, seen):
    assert taken_past_the_doors(EXPERIMENTS / "worlds_have_spectra.py", line) == [seen]
    deeper = line.replace("from .", "from ..")
    assert taken_past_the_doors(EXPERIMENTS / "_kit" / "worlds.py", deeper) == [seen]


def test_no_room_takes_another_by_a_text():
    """An import by name is invisible to import-linter: only the public names and the experiments are found so."""
    by_name = {
        str(path.relative_to(ROOT / "src" / "festina"))
        for path in SOURCES
        if re.search(r"(import_module|__import__|resolve_name)\((name=)?f?[\"'](\.|festina)", path.read_text())
    }
    assert by_name == {"__init__.py", "_reporting/experiment.py"}


def test_every_entry_of_the_package_is_a_room():
    package = ROOT / "src" / "festina"
    entries = {path.name for path in package.iterdir() if path.name != "__pycache__"}
    rooms = entries - {"__init__.py", "cli.py", "py.typed", "references.bib"}
    assert len(rooms) <= 18
    for room in rooms:
        assert (package / room).is_dir(), f"{room} is no room"
        assert len((package / room / "__init__.py").read_text()) > 100, f"{room} does not say what it is"


def test_few_arguments_have_no_type():
    untyped, arguments, untyped_fields, fields = [], 0, [], 0
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                given = node.args
                named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
                own = [argument for argument in named if argument and argument.arg not in ("self", "cls")]
                arguments += len(own)
                untyped += [a.arg for a in own if a.annotation is None or ast.unparse(a.annotation) == "Any"]
            elif isinstance(node, ast.ClassDef):
                own = [field for field in node.body if isinstance(field, ast.AnnAssign)]
                fields += len(own)
                untyped_fields += [
                    f"{node.name}.{ast.unparse(f.target)}" for f in own if ast.unparse(f.annotation) == "Any"
                ]
    assert len(untyped) <= 0.1 * arguments
    assert len(untyped_fields) <= 0.05 * fields
    assert not {name for name in untyped_fields if name.startswith(("Setup.", "Discrete.", "Flow."))}


def test_no_line_escapes_the_formatter():
    mark = re.compile("# fmt: " + "(skip|off)")  # in two parts, or this line would be found
    written = [*SOURCES, *sorted((ROOT / "tests").glob("*.py"))]
    assert [path.name for path in written if mark.search(path.read_text())] == []


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


def test_tests_of_a_group_run_in_one_worker(request):
    """Some pairs of versions of pytest and pytest-xdist run without a word, and without groups."""
    groups = request.config.getoption("loadgroup", False)
    assert request.node.nodeid.endswith("@test_house") == bool(groups)


def test_docstring_examples():
    import doctest

    modules = (
        "festina.nets.deep_linear",
        "festina.nets.gated.net",
        "festina.nets.gated.gates",
        "festina.tasks.hierarchy",
        "festina.theories.aligned_modes",
        "festina._formulas.two_points.functions",
        "festina._verbs.fit.two_points",
    )
    results = [doctest.testmod(importlib.import_module(name)) for name in modules]
    assert all(result.attempted for result in results)
    assert not any(result.failed for result in results)


@pytest.fixture
def programs(monkeypatch, tmp_path):
    """A compiled function of the user, one of festina, and a way to set how many maps the system allows."""
    import jax

    from festina._foundation import program_memory

    limit = tmp_path / "limit"
    monkeypatch.setattr(program_memory, "LIMIT", limit)
    monkeypatch.setattr(program_memory, "_programs", weakref.WeakSet())
    monkeypatch.setattr(program_memory._Maps, "others", program_memory._count())  # of tests before this one
    monkeypatch.setattr(program_memory._Maps, "looked", -program_memory.PAUSE)
    users, own = jax.jit(lambda x: x + 1), program_memory.compiled(lambda x: x + 2)
    users(1.0)
    own(1.0)

    def left():
        return users._cache_size(), own._cache_size()

    return program_memory, limit, left


def test_compiled_programs_are_forgotten_before_the_system_ends_the_process(programs):
    memory, limit, left = programs
    assert not memory.make_room()  # a system without a limit
    limit.write_text("1000000")
    assert not memory.make_room()
    assert left() == (1, 1)
    limit.write_text("10")
    assert memory.make_room()
    assert left() == (0, 0)


@pytest.mark.parametrize("reason", ["maps", "memory"])
def test_library_calls_leave_the_programs_of_the_user_alone(programs, reason, monkeypatch):
    memory, limit, left = programs
    limit.write_text("10" if reason == "maps" else "1000000")
    monkeypatch.setattr(memory, "MOST", 12_000 if reason == "maps" else 0)
    setup = fs.Setup(fs.tasks.hierarchy(1), fs.nets.DeepLinear(2), fs.inits.Aligned(0.1), until=1.0, points=3)
    fs.simulate(setup, observe="loss")
    assert left() == (1, 0)
    memory.make_room_for_programs()
    assert not memory.make_room_for_programs()  # it has just looked
