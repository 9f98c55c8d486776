"""The pages as they are built: no warning, no star of an equation lost, examples set as code."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WRITTEN = [path for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "api.md"]  # the other is docstrings
EMPHASIS = ("em", "strong")


class Prose(HTMLParser):
    """The text of a page outside code, and every emphasis with what stands before and after it."""

    def __init__(self, page: str):
        super().__init__()
        self.text, self.opened, self.emphases, self.code = "", [], [], 0
        self.feed(page)
        self.spans = [(self.text[:a][-1:], self.text[a:b], self.text[b : b + 1]) for a, b in self.emphases]

    def handle_starttag(self, tag, attrs):
        self.code += tag in ("code", "pre", "script", "style")
        if tag in EMPHASIS:
            self.opened.append(len(self.text))

    def handle_endtag(self, tag):
        self.code -= tag in ("code", "pre", "script", "style")
        if tag in EMPHASIS:
            self.emphases.append((self.opened.pop(), len(self.text)))

    def handle_data(self, data):
        if not self.code:
            self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    built = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(built)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return built


def built_page(site: Path, stem: str) -> str:
    return (site / "index.html" if stem == "index" else site / stem / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_the_stars_that_are_printed_are_those_that_are_escaped(page, site):
    source = re.sub(r"^```.*?^```$|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    # A plain star would be printed too, until a second one comes into its paragraph: none is left to chance.
    assert Prose(built_page(site, page.stem)).text.count("*") == source.count(r"\*")


@pytest.mark.parametrize("stem", [*(page.stem for page in WRITTEN), "api"])
def test_what_is_emphasised_is_words(stem, site):
    for before, words, after in Prose(built_page(site, stem)).spans:
        assert not re.match(r"\w", before), (before, words)
        assert not re.match(r"\w", after), (words, after)
        assert not re.search(r"[=√∂∫²]", words), words


def test_examples_in_docstrings_are_set_as_code(site):
    page = built_page(site, "api")
    assert "<blockquote>" not in page  # what Markdown makes of >>> in plain text
    assert "DeepLinear(hidden=(64, 64)).depth" in re.sub(r"<[^>]+>", "", page)
