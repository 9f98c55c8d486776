"""Roles: {experiment}`name`, {festina}`dotted.name` and {proved}`tests/test_x.py::test_y`."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

from festina import experiments

from .public import target_of

ROOT = Path(__file__).parents[3]


class ExperimentRole(SphinxRole):
    """A link to the page of an experiment in the gallery."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        if self.text not in experiments.__all__:
            return _unknown(self, "experiment")
        label = nodes.literal(self.rawtext, self.text, classes=["experiment"])
        link = addnodes.pending_xref(
            "", label, refdomain="std", reftype="doc", reftarget=f"/gallery/{self.text}", refexplicit=True,
            refdoc=self.env.docname, refwarn=True,
        )  # fmt: skip
        return [link], []


class PublicNameRole(SphinxRole):
    """A link to a public name in the API, as it is written after `festina.`: solve, theories.AlignedModes."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        target = target_of(self.text.removesuffix("()"))
        if target is None:
            return _unknown(self, "public name of festina")
        label = nodes.literal(self.rawtext, self.text, classes=["py"])
        link = addnodes.pending_xref(
            "", label, refdomain="py", reftype="obj", reftarget=target, refexplicit=True,
            refdoc=self.env.docname, refwarn=True,
        )  # fmt: skip
        return [link], []


class ProvedRole(SphinxRole):
    """A tick for the test that proves what stands before it, with the words of its name."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        file, _, test = self.text.partition("::")
        if test not in tests_in(file):
            return _unknown(self, "test")
        tick = nodes.abbreviation("", "✓", explanation=self.text, classes=["proved"])
        words = test.removeprefix("test_").replace("_", " ")
        return [tick, nodes.inline("", f"\N{NO-BREAK SPACE}{words}", classes=["proved-by"])], []


@functools.cache
def tests_in(file: str) -> frozenset[str]:
    """The names of the functions in a file of tests."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _unknown(role: SphinxRole, kind: str) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    message = role.inliner.reporter.warning(f"{role.text!r} is no {kind}", line=role.lineno)
    return [role.inliner.problematic(role.rawtext, role.rawtext, message)], [message]


def setup(app: Sphinx) -> None:
    app.add_role("experiment", ExperimentRole())
    app.add_role("festina", PublicNameRole())
    app.add_role("proved", ProvedRole())
