"""{drawn} draws a figure when the site is built: name of a function in docs/figures/essays.py, `:alt:`, caption.

Drawings are kept in docs/_build/figures by the hash of the function and of all in its file that it uses.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import logging
import os
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from docutils import nodes
from docutils.parsers.rst import directives
from matplotlib.figure import Figure
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from festina._figures.style import picture_bytes, styled
from festina._reporting.page.pictures import framed, inline

from .html import raw

DOCS = Path(__file__).parents[2]
KEPT = DOCS / "_build" / "figures"


class Drawn(SphinxDirective):
    """A figure that is drawn by festina, with its caption."""

    required_arguments = 1
    has_content = True
    option_spec = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        name, alt = self.arguments[0], " ".join(self.options.get("alt", "").split())
        source = DOCS / "figures" / "essays.py"
        self.env.note_dependency(str(source))
        if not alt or not self.content:
            raise self.error(f"the figure {name} needs :alt: and a caption")
        function = getattr(figures(source), name, None)
        if not isinstance(function, FunctionType):
            raise self.error(f"{source.name} has no function {name}")
        picture = inline(drawing(function), f"drawn-{name.replace('_', '-')}", alt)
        before, after = framed(picture, f"Figure: {alt}", "\n").split("\n</figcaption>")
        caption = self.parse_content_to_nodes(allow_section_headings=False)
        return [raw(f'<div class="report drawn">{before}'), *caption, raw(f"</figcaption>{after}</div>")]


@functools.cache
def figures(source: Path) -> ModuleType:
    """The module that draws."""
    spec = importlib.util.spec_from_file_location(f"figures_of_{source.stem}", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawing(function: FunctionType) -> str:
    """The figure that a function returns, as SVG; drawn once for the same source."""
    kept = place(function)
    if not kept.is_file():
        with styled():
            keep(function, function())
    return kept.read_text(encoding="utf-8")


def place(function: FunctionType) -> Path:
    """Where the drawing of a function is kept."""
    return KEPT / f"{function.__name__}-{fingerprint(function)}.svg"


def keep(function: FunctionType, figure: Figure) -> None:
    """Keep a drawing, in place of those of other sources of the function."""
    content = picture_bytes(figure, "svg")
    KEPT.mkdir(parents=True, exist_ok=True)
    for old in KEPT.glob(f"{function.__name__}-" + "?" * 16 + ".svg"):
        old.unlink(missing_ok=True)
    written = place(function).with_suffix(f".{os.getpid()}")
    written.write_bytes(content)
    written.replace(place(function))


def fingerprint(function: FunctionType) -> str:
    """A hash of a function with the functions and constants of its file that it uses, and theirs."""
    seen: dict[str, str] = {}

    def visit(name: str, value: object) -> None:
        if name in seen:
            return
        if isinstance(value, FunctionType) and value.__module__ == function.__module__:
            seen[name] = inspect.getsource(value)
            for used in _names(value.__code__):
                if used in value.__globals__:
                    visit(used, value.__globals__[used])
        elif name.isupper():
            seen[name] = repr(value)

    visit(function.__name__, function)
    return hashlib.sha256(repr(sorted(seen.items())).encode()).hexdigest()[:16]


def _names(code: CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def setup(app: Sphinx) -> None:
    logging.getLogger("jax").setLevel(logging.WARNING)  # it tells which devices it does not find
    app.add_directive("drawn", Drawn)
