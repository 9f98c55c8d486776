"""The figures of the essays: each is drawn, can be read on its page, and is kept for the build of the site."""

from __future__ import annotations

import ast
import re
import sys

import pytest

from festina._figures.style import styled
from figure_checks import problems
from test_docs import ROOT, WRITTEN

sys.path.insert(0, str(ROOT / "docs" / "_extensions"))

SOURCE = ROOT / "docs" / "figures" / "essays.py"
TEXT = "".join(page.read_text(encoding="utf-8") for page in WRITTEN)
DRAWN = dict(re.findall(r"^```\{drawn\} (\w+)\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL))
NAMES = [node.name for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)]


def test_every_figure_is_on_a_page():
    assert DRAWN
    assert set(DRAWN) == {name for name in NAMES if not name.startswith("_")}


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_its_figure_can_be_read_and_its_caption_names_the_panels(name):
    from festina_site import drawn

    function = getattr(drawn.figures(SOURCE), name)
    with styled():
        figure = function()
        drawn.keep(function, figure)
        letters = {axes.get_label() for axes in figure.axes if len(axes.get_label()) == 1}
        # A figure without panels is a picture of a network, as `net.draw` makes it.
        assert problems(figure) == [] or not letters
    assert letters <= set("".join(re.findall(r"\*\*([a-z](?:, [a-z])*)\*\*", DRAWN[name]))) or len(letters) == 1
