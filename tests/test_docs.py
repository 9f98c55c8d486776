"""The documentation is true: its code runs, its links resolve, every public name has a place."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import festina as fs
from festina import experiments

ROOT = Path(__file__).parents[1]
MADE = ("_build", "gallery")  # folders below docs that the build of the site writes
WRITTEN = [
    page for page in sorted((ROOT / "docs").rglob("*.md")) if page.relative_to(ROOT / "docs").parts[0] not in MADE
]
PAGES = [ROOT / "README.md", *WRITTEN]
TEXTS = [*PAGES, *(ROOT / name for name in ("CONTRIBUTING.md", "VISION.md", "CHANGELOG.md"))]
INSTALL_AND_REPRODUCE = (
    "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/festina reproduce --quick --out reproduction"
)
INSTALL_AND_TEST = 'python3 -m venv .venv && .venv/bin/pip install -e ".[test]" && .venv/bin/python -m pytest -n auto'


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(path: Path, language: str) -> list[tuple[int, str]]:
    """Line number and text of every fenced block of a language."""
    text = path.read_text(encoding="utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, match.start(1)), match.group(1)) for match in found]


def execute(path: Path, line: int, code: str, namespace: dict) -> None:
    # Empty lines in front make tracebacks point at the line of the page.
    exec(compile("\n" * line + code, str(path), "exec"), namespace)


with_code = pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=named)
every_text = pytest.mark.parametrize("page", TEXTS, ids=named)


@with_code
def test_its_code_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict = {"__name__": "__main__"}
    if any("import torch\n" in code for _, code in blocks(page, "python")):
        pytest.importorskip("torch")
    for line, code in blocks(page, "python"):
        execute(page, line, code, namespace)


def anchors(path: Path) -> set[str]:
    """Identifiers of the headings of a page, as GitHub and MyST make them, and its own labels and terms."""
    lines = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", lines, flags=re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return made | set(re.findall(r"^\(([\w-]+)\)=$", lines, flags=re.MULTILINE))


@every_text
def test_its_links_resolve(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), target


@every_text
def test_no_line_is_a_comment_of_myst(page):
    # MyST leaves out a line that begins with %, such as the rest of "16 %" at the end of a line.
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^\s*%.*", text, flags=re.MULTILINE) == []


def public_names() -> set[str]:
    """Public names as they are written behind `festina.`; a noun that is also a name of its kind counts there."""
    kinds = [name for name in fs.__all__ if isinstance(getattr(fs, name), ModuleType)]
    members = {f"{kind}.{name}" for kind in kinds for name in getattr(fs, kind).__all__}
    of_kinds = [getattr(getattr(fs, kind), name) for kind, name in (member.split(".") for member in members)]
    own = {name for name in fs.__all__ if name not in kinds}
    return members | {name for name in own if not any(getattr(fs, name) is value for value in of_kinds)}


def test_every_public_name_is_on_the_api_pages_once():
    shown = []
    texts = [page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "api").glob("*.md"))]
    for module, names in re.findall(r"^```\{api\} (\w+)\n(.*?)^```$", "".join(texts), flags=re.MULTILINE | re.DOTALL):
        prefix = "" if module == "festina" else f"{module}."
        shown += [f"{prefix}{name}" for name in names.split() or getattr(fs, module).__all__]
    assert sorted(shown) == sorted(public_names())


def test_every_test_that_the_docs_name_exists():
    everything = "".join(page.read_text(encoding="utf-8") for page in TEXTS)
    cited = set(re.findall(r"(tests/\w+\.py)::(\w+)", everything))
    assert cited
    for file, name in sorted(cited):
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        written = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert name in written, f"{file}::{name}"


def test_every_claim_that_the_docs_quote_exists():
    written = (ROOT / "src" / "festina" / "experiments").rglob("*.py")
    source = "".join(path.read_text(encoding="utf-8") for path in written)
    for page in WRITTEN:
        quoted = re.findall(r'claim "([^"]+)"', " ".join(page.read_text(encoding="utf-8").split()))
        assert quoted or page.name != "errata.md"
        for text in quoted:
            assert text in source, (named(page), text)


def test_every_theory_is_on_the_pages_about_theories():
    from festina._verbs.covering import members

    for page in ("theories/index.md", "which-theory.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        assert [name for name in members() if name not in text] == []
    for name in members():
        page = "-".join(re.findall(r"[A-Z][a-z]*", name)).lower()
        assert f"# {name}\n" in (ROOT / "docs" / "theories" / f"{page}.md").read_text(encoding="utf-8")


def axes_of_rows(text: str) -> dict[str, tuple[str, ...]]:
    """The names in the first column of tables of observables, and the axes in the second."""
    rows = re.findall(r"^\| `(\w+)` \| ([\w, ]*?) ?\|", text, flags=re.MULTILINE)
    return {name: tuple(axes.split(", ")) if axes else () for name, axes in rows}


def test_every_observable_of_a_probe_is_on_the_page_about_observables():
    from festina.observables import FROM_ACTIVITY
    from festina.probe._measure import DEFAULT, reading

    text = (ROOT / "docs" / "observables.md").read_text(encoding="utf-8")
    section = text.split("\n## Of a probe\n")[1].split("\n## ")[0]
    rows = axes_of_rows(section)
    assert set(rows) == set(FROM_ACTIVITY)
    for name, observable in FROM_ACTIVITY.items():
        assert rows[name] == (reading(name).axes or observable.axes), name
        needs = re.search(rf"^\| `{name}` \|[^|]*\|([^|]*)\|", section, flags=re.MULTILINE)[1]
        assert ("outputs" in needs, "targets" in needs) == (reading(name).needs_outputs, reading(name).needs_targets)
    told = re.search(r"Without `observe` it records (.*?),\s+as far as", section, flags=re.DOTALL)[1]
    assert tuple(re.findall(r"`(\w+)`", told)) == DEFAULT


def test_every_observable_is_on_the_page_about_observables():
    from festina._setup.joined import FORGETTING
    from festina._verbs.covering import members
    from festina.observables import OBSERVABLES

    text = (ROOT / "docs" / "observables.md").read_text(encoding="utf-8")
    training, rest = text.split("\n## Of a probe\n")
    rows = axes_of_rows(training)
    assert set(rows) == {*OBSERVABLES, FORGETTING}
    for name, observable in OBSERVABLES.items():
        assert rows[name] == observable.axes, name
    theories = rest.split("\n## Of theories\n")[1]
    listed = set(re.findall(r"`(\w+)`", theories.split("```")[0]))
    assert {name for member in members().values() for name in member.readouts} <= listed
    assert {name for name, observable in OBSERVABLES.items() if observable.of_map} <= listed


def test_every_experiment_is_in_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in experiments.__all__ if f"`{name}`" not in text] == []


def test_the_readme_has_the_two_commands():
    commands = "".join(code for _, code in blocks(ROOT / "README.md", "console")).splitlines()
    assert INSTALL_AND_REPRODUCE in commands
    assert INSTALL_AND_TEST in commands


def test_continuous_integration_runs_the_command_of_the_readme():
    assert INSTALL_AND_TEST in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@every_text
def test_its_festina_commands_parse(page):
    import typer

    from festina.cli import app

    command = typer.main.get_command(app)
    lines = "".join(code for _, code in blocks(page, "console")).splitlines()
    for line in lines:
        for part in line.partition("#")[0].split("&&"):
            words = shlex.split(part)
            if words and Path(words[0]).name == "festina":
                context = command.make_context("festina", words[1:2], resilient_parsing=True)
                name, chosen, _ = command.resolve_command(context, words[1:])
                chosen.make_context(name, words[2:])


def test_the_citation_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == fs.__version__
    assert f"## [{fs.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
