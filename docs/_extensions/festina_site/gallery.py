"""The gallery: one page for every experiment, made of its report with the parts of the report page.

Pages are written into docs/gallery/, from the list of experiments alone; what they show is read from the folder of
reports, the option `festina_reports`. An experiment without a report is a warning, unless `festina_partial` is set.
"""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from festina import experiments
from festina._reporting.experiment import Experiment, in_story_order
from festina._reporting.page import sections
from festina._reporting.page.pictures import thumbnail
from festina._reporting.page.render import Entry, by_theme, card, legend, table_of_not_reproduced
from festina._reporting.page.words import paragraphs
from festina._reporting.report_files import read_report
from festina.experiments.base import THEMES

from .citations import PAGE as BIBLIOGRAPHY
from .citations import linked_keys
from .docstrings import words
from .html import of_report

log = logging.getLogger(__name__)
FILES = ("figure.svg", "figure.png", "data.nc")
NAMES = {"adam": "Adam", "mnist": "MNIST", "relu": "ReLU", "xor": "XoR"}  # in the names of experiments


def title_of(name: str) -> str:
    """The name of an experiment in words."""
    said = " ".join(NAMES.get(word, word) for word in name.split("_"))
    return said[0].upper() + said[1:]


@functools.cache
def in_order() -> list[str]:
    return in_story_order(experiments.__all__)


@functools.cache
def first_of_themes() -> dict[str, str]:
    """The first experiment of every theme, by the title of the theme."""
    return {THEMES[Experiment.named(name).theme]: name for name in reversed(in_order())}


@functools.cache
def read(folder: Path) -> dict[str, Any] | None:
    """The report in a folder; None if there is none."""
    return read_report(folder / "report.json") if (folder / "report.json").is_file() else None


def page(name: str) -> str:
    """The source of an experiment's page."""
    part = "```{{experiment}} {name}\n:part: {part}\n```\n"
    parts = {part_: part.format(name=name, part=part_) for part_ in Part.parts}
    return f"""# {words(Experiment.named(name).finding)}

{parts["figure"]}
{parts["story"]}
## Claims

{parts["claims"]}
## References

{parts["references"]}
## How it was run

{parts["run"]}"""


def write_pages(app: Sphinx) -> None:
    """Write the page of every experiment, and remove those of experiments that are gone."""
    folder = Path(app.srcdir) / "gallery"
    folder.mkdir(exist_ok=True)
    for name in in_order():
        path = folder / f"{name}.md"
        if not path.is_file() or path.read_text(encoding="utf-8") != page(name):
            path.write_text(page(name), encoding="utf-8")
        if read(_folder(app, name)) is None and not app.config.festina_partial:
            log.warning("the experiment %s has no report in %s", name, app.config.festina_reports)
    for path in folder.glob("*.md"):
        if path.stem not in in_order():
            path.unlink()


def copy_files(app: Sphinx, error: Exception | None) -> None:
    """The files of every report, beside its page."""
    for name in in_order() if error is None else ():
        here = _folder(app, name)
        if read(here) is not None:
            there = Path(app.outdir) / "gallery" / name
            there.mkdir(parents=True, exist_ok=True)
            for file in FILES:
                shutil.copyfile(here / file, there / file)


class Part(SphinxDirective):
    """One part of an experiment's report."""

    required_arguments = 1
    parts = ("figure", "story", "claims", "references", "run")
    option_spec = {"part": lambda value: directives.choice(value, Part.parts)}

    def run(self) -> list[nodes.Node]:
        name, part = self.arguments[0], self.options["part"]
        if name not in in_order():
            raise self.error(f"{name!r} is no experiment")
        folder = _folder(self.env.app, name)
        report = read(folder)
        if report is None:
            return [of_report('<p class="note">Its report has not been made.</p>')] if part == "figure" else []
        self.env.note_dependency(str(folder / "report.json"))
        anchor = "experiment"
        if part == "figure":
            svg = (folder / "figure.svg").read_text(encoding="utf-8")
            html = f'<p class="name">{escape(name)}</p>' + sections.picture(report, svg, anchor, name)
        elif part == "story":
            html = paragraphs(report["description"].removeprefix(report["finding"]))
        elif part == "claims":
            html = sections.claim_tables(report["claims"], anchor)
        elif part == "references":
            html = sections.reference_list(report["reference"])
        else:
            networks = report.get("networks", {}).items()
            pictures = {", ".join(labels): (folder / file).read_text("utf-8") for file, labels in networks}
            html = sections.more(report, pictures, anchor)
        return [of_report(linked_keys(html, f"../{BIBLIOGRAPHY}.html"))]


class Gallery(SphinxDirective):
    """All experiments by theme, each with a small picture of its figure, and the links of the side bar."""

    def run(self) -> list[nodes.Node]:
        found: list[nodes.Node] = []
        for theme, members in by_theme(_entries(self.env)).items():
            lines = [f"{title_of(entry.name)} <gallery/{entry.name}>" for entry in members]
            tree = "\n".join([":::{toctree}", ":hidden:", f":caption: {theme}", "", *lines, ":::"])
            found += self.parse_text_to_nodes(tree)
            cards = "".join(
                card(entry, thumbnail(_folder(self.env.app, entry.name) / "figure.png")) for entry in members
            )
            section = nodes.section("", nodes.title("", theme), ids=[nodes.make_id(theme)], names=[theme.lower()])
            self.state.document.note_implicit_target(section)
            section += of_report(f'<nav aria-label="{escape(theme)}"><ol>{cards}</ol></nav>')
            found.append(section)
        return found


class NotReproduced(SphinxDirective):
    """Printed claims that do not reproduce, of all experiments."""

    def run(self) -> list[nodes.Node]:
        return [of_report(linked_keys(table_of_not_reproduced(_entries(self.env)), f"{BIBLIOGRAPHY}.html"))]


class Marks(SphinxDirective):
    """What the marks of outcomes mean."""

    def run(self) -> list[nodes.Node]:
        return [of_report(legend())]


def _entries(env: BuildEnvironment) -> Iterator[Entry]:
    for name in in_order():
        path = _folder(env.app, name)
        report = read(path)
        env.note_dependency(str(path / "report.json"))
        if report is None:
            experiment = Experiment.named(name)
            report = {"finding": experiment.finding, "theme": experiment.theme, "claims": [], "outcome": "as expected"}
        yield Entry(name, "", report, page=f"gallery/{name}.html")


def _folder(app: Sphinx, name: str) -> Path:
    return Path(app.config.festina_reports) / name


def caption_themes(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Put the title of every theme above its experiments in the side bar: Sphinx leaves captions of inner trees out."""
    tree = context.get("furo_navigation_tree", "")
    for theme, name in first_of_themes().items():
        address = re.escape(context["pathto"](f"gallery/{name}"))
        first = re.compile(rf'<li class="toctree-l2[^"]*"><a class="[^"]*" href="{address}">')
        tree = first.sub(lambda found, theme=theme: f'<li class="theme">{escape(theme)}</li>{found[0]}', tree, count=1)
    context["furo_navigation_tree"] = tree


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", caption_themes, priority=900)  # after the theme has made the tree
    app.add_config_value("festina_reports", "", "env", str)
    app.add_config_value("festina_partial", False, "env", bool)
    app.add_directive("experiment", Part)
    app.add_directive("gallery", Gallery)
    app.add_directive("not-reproduced", NotReproduced)
    app.add_directive("marks", Marks)
    app.connect("builder-inited", write_pages)
    app.connect("build-finished", copy_files)
