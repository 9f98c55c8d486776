"""The built site: no warning, nothing fetched, nothing left of the markup, every equation typeset, nothing cut off."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from festina import experiments
from test_browser import BROWSER, FLAGS, browse
from test_docs import ROOT, WRITTEN

DOCS = ROOT / "docs"
STEMS = [page.relative_to(DOCS).with_suffix("").as_posix() for page in WRITTEN]
SEEN = (
    "index",
    "gallery",
    "gallery/networks_learn_mode_by_mode",
    "essays/why-stages",
    "theories/two-point",
    "api/nets",
)
WIDTHS = (1280, 400)
INLINE = {"a", "abbr", "b", "code", "data", "em", "i", "small", "span", "strong", "sub", "sup", "wbr"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}

# In each page: what sticks out of it, how its equations are set, and what tables cannot show.
MEASURE = """<script>addEventListener('load', async () => {
  if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
  const article = document.querySelector('article'), right = document.documentElement.clientWidth;
  const scrolls = (node) => {
    for (; node && node !== article; node = node.parentElement)
      if (/auto|scroll|hidden/.test(getComputedStyle(node).overflowX)) return true;
    return false;
  };
  const parts = [...article.querySelectorAll('*')].filter((node) =>
    node.getBoundingClientRect().right > right + 1 && !node.closest('svg, mjx-assistive-mml') && !scrolls(node));
  const tables = [...article.querySelectorAll('table')].filter((node) => {
    const frame = node.closest('.table-wrapper') || node.parentElement;
    return frame.scrollWidth > frame.clientWidth + 1;
  });
  parent.postMessage({
    page: location.href, inner: innerWidth, column: article.clientWidth,
    outline: document.querySelector('.toc-drawer .toc-tree')?.getBoundingClientRect().toJSON(),
    wide: document.documentElement.scrollWidth - right,
    parts: parts.map((node) => node.outerHTML.slice(0, 90)),
    tables: tables.map((node) => node.textContent.slice(0, 90)),
    formulas: article.querySelectorAll('.math').length,
    typeset: article.querySelectorAll('mjx-container').length,
    wrong: [...article.querySelectorAll('[data-mml-node="merror"], [fill="red"]')].map((node) => node.textContent),
  }, '*');
})</script></body>"""
LISTEN = """<script>
const seen = [], wanted = document.querySelectorAll('iframe').length;
addEventListener('message', (event) => {
  seen.push(event.data);
  document.body.dataset.measured = JSON.stringify(seen);
});
</script>"""


class Page(HTMLParser):
    """What a page loads, its text outside of code and formulas, and each emphasis with what stands around it."""

    def __init__(self, source: str):
        super().__init__()
        self.loads, self.links, self.text, self.formulas = [], [], "", []
        self.opened, self.emphases, self.stack = [], [], []
        self.feed(source)
        self.spans = [(self.text[:a][-1:], self.text[a:b], self.text[b : b + 1]) for a, b in self.emphases]

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        classes = (given.get("class") or "").split()
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed", "input"):
            self.loads += [given[key] for key in ("src", "srcset") if given.get(key)]
        if tag == "link" and given.get("rel") not in ("index", "search", "next", "prev", "canonical", "author"):
            self.loads.append(given["href"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("em", "strong"):
            self.opened.append(len(self.text))
        if tag not in INLINE:
            self.text += "\n"
        silent = tag in ("code", "pre", "script", "style", "svg", "title") or "math" in classes or "sig" in classes
        if "math" in classes:
            self.formulas.append("")
        if tag not in VOID:
            self.stack.append((tag, silent, "number" if "eqno" in classes else "math" if "math" in classes else ""))

    def handle_endtag(self, tag):
        if tag in ("em", "strong") and self.opened:
            self.emphases.append((self.opened.pop(), len(self.text)))
        while self.stack and self.stack.pop()[0] != tag:
            pass

    def handle_data(self, data):
        kinds = {kind for *_, kind in self.stack}
        if "math" in kinds and "number" not in kinds:
            self.formulas[-1] += data
        if not any(silent for _, silent, _ in self.stack):
            self.text += data


@pytest.fixture(scope="module")
def site(quick, tmp_path_factory):
    """The site, built once, with the reports that the tests of experiments have made."""
    folders = [quick(name)[1] for name in experiments.__all__]
    built = tmp_path_factory.mktemp("site")
    words = ["--fresh", "--out", str(built), "--reports", str(folders[0].parent)]
    done = subprocess.run([sys.executable, DOCS / "build.py", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.strip().endswith(str(built / "index.html"))
    return built


@pytest.fixture(scope="module")
def pages(site) -> dict[str, Page]:
    """Every page of the site, by its address."""
    every = {path.relative_to(site).as_posix(): path for path in sorted(site.rglob("*.html"))}
    assert set(every) >= {f"{stem}.html" for stem in STEMS}
    return {name: Page(_article(path.read_text(encoding="utf-8"))) for name, path in every.items()}


def _article(source: str) -> str:
    """A page without the side bars, which repeat titles."""
    return re.sub(r'<aside class="(?:sidebar|toc)-drawer".*?</aside>', "", source, flags=re.DOTALL)


def test_nothing_is_loaded_from_another_host(site, pages):
    for name, page in pages.items():
        outside = [address for address in page.loads if re.match(r"(?:\w+:)?//", address)]
        assert outside == [], name
    for path in site.rglob("*.css"):
        style = path.read_text(encoding="utf-8")
        assert not re.search(r"@import\s|url\(\s*[\"']?(?:\w+:)?//", style), path.name


def test_what_is_loaded_is_there(site, pages):
    for name, page in pages.items():
        for address in [*page.loads, *page.links]:
            file = re.split(r"[?#]", address)[0]
            if file and not re.match(r"\w+:", address):
                assert (site / name).parent.joinpath(file).exists(), (name, address)


def test_no_markup_is_left(pages):
    for name, page in pages.items():
        for sign in (r"(?<![\w(])\*\*\S", r"\$", "`", r"\{[a-z-]+\}(?=\S)", ":::", r"\]\(", r"\\[(\[*]"):
            found = re.search(rf".{{0,30}}{sign}.{{0,30}}", page.text)
            assert not found, (name, found and found[0])


def test_the_stars_that_are_printed_are_those_that_are_escaped(pages):
    for stem, path in zip(STEMS, WRITTEN, strict=True):
        source = re.sub(r"^```.*?^```$|`[^`\n]+`", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        if not stem.startswith("api/"):  # whose stars are those of signatures
            source = re.sub(r"\$\$.*?\$\$|\$[^$]+\$", "", source, flags=re.DOTALL)
            assert pages[f"{stem}.html"].text.count("*") == source.count(r"\*"), stem


def test_what_is_emphasised_is_words(pages):
    for name, page in pages.items():
        for before, words, after in page.spans:
            assert not re.match(r"\w", before), (name, before, words)
            assert not re.match(r"\w", after), (name, words, after)
            assert not re.search(r"[√∂∫²]", words), (name, words)


def test_every_experiment_has_its_page_its_claims_and_its_neighbours(site, quick):
    from festina._reporting.experiment import in_story_order

    order = in_story_order(experiments.__all__)
    gallery = (site / "gallery.html").read_text(encoding="utf-8")
    assert [gallery.index(f'<a href="gallery/{name}.html">') for name in order] == sorted(
        gallery.index(f'<a href="gallery/{name}.html">') for name in order
    )
    for k, name in enumerate(order):
        page = (site / "gallery" / f"{name}.html").read_text(encoding="utf-8")
        report, _ = quick(name)
        assert page.count('<td role="cell" class="outcome"') >= len(report.claims)
        assert 'role="img"' in page
        assert report.experiment.alt in html.unescape(page)
        for neighbour, side in ((k - 1, "prev"), (k + 1, "next")):
            if 0 <= neighbour < len(order):
                assert f'class="{side}-page" href="{order[neighbour]}.html"' in page


def test_examples_in_docstrings_are_set_as_code(site):
    page = (site / "api" / "nets.html").read_text(encoding="utf-8")
    assert "highlight-pycon" in page
    assert "&gt;&gt;&gt; " in page
    assert "<blockquote>" not in page


def test_signatures_have_types_that_link_to_their_nouns(site):
    page = (site / "api" / "verbs.html").read_text(encoding="utf-8")
    solve = page[page.index('id="festina.solve"') : page.index('id="festina.covering"')]
    assert 'href="nouns.html#festina.Setup"' in solve
    assert 'href="nouns.html#festina.Trajectory"' in solve
    assert "strict" in solve


def test_the_search_knows_the_words_of_figures_and_pages(site):
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "plateau" in index
    assert '"festina.theories"' in index


@pytest.fixture(scope="module")
def seen(site, tmp_path_factory) -> tuple[dict[tuple[str, int], dict], str]:
    """What pages are like in frames of two widths, all in one browser; and what it wrote to its console."""
    frames = ""
    for stem in SEEN:
        path = site / f"{stem}.html"
        measured = path.with_suffix(".measured.html")
        measured.write_text(path.read_text(encoding="utf-8").replace("</body>", MEASURE), encoding="utf-8")
        for width in WIDTHS:
            frames += f'<iframe width="{width}" height="900" style="border:0" src="{measured.as_uri()}"></iframe>'
    dom, console = looked_at(tmp_path_factory.mktemp("seen"), f"<!doctype html><body>{LISTEN}{frames}")
    for path in site.rglob("*.measured.html"):
        path.unlink()
    found = json.loads(html.unescape(re.search(r'data-measured="([^"]*)"', dom)[1]))
    name = {(site / f"{stem}.measured.html").as_uri(): stem for stem in SEEN}
    return {(name[one["page"]], one["inner"]): one for one in found}, console


def looked_at(folder: Path, page: str) -> tuple[str, str]:
    """A page as the browser has it after its scripts, and what it wrote to its console."""
    if BROWSER is None:
        browse(folder, page)  # skips, or fails where a browser must be
    (folder / "index.html").write_text(page, encoding="utf-8")
    flags = [*FLAGS, "--virtual-time-budget=30000", f"--user-data-dir={folder / 'profile'}", "--window-size=1400,1000"]
    flags += ["--enable-logging=stderr", "--allow-file-access-from-files", "--dump-dom"]
    address = (folder / "index.html").as_uri()
    done = subprocess.run([BROWSER, *flags, address], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout, "".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("stem", SEEN)
def test_nothing_is_cut_off(stem, width, seen):
    one = seen[0][stem, width]
    assert one["wide"] <= 0
    assert one["parts"] == []
    if width == max(WIDTHS):
        assert one["tables"] == []
    assert one["typeset"] == one["formulas"]
    assert one["wrong"] == []


@pytest.mark.parametrize("stem", ["essays/why-stages", "theories/two-point"])
def test_a_figure_and_the_outline_stand_side_by_side(stem, seen):
    wide, narrow = (seen[0][stem, width] for width in WIDTHS)
    assert wide["column"] >= 845
    assert 150 < wide["outline"]["width"] <= wide["inner"] - wide["outline"]["left"]
    assert narrow["outline"]["left"] > narrow["column"]  # opened by a button


def test_the_side_bar_groups_experiments_by_theme(site):
    from festina.experiments.base import THEMES

    for page in ("index", "gallery", "gallery/networks_learn_mode_by_mode"):
        bar = re.search(r'<div class="sidebar-tree">.*?</aside>', (site / f"{page}.html").read_text(), re.DOTALL)[0]
        assert re.findall(r'<li class="theme">(.*?)</li>', bar) == [html.escape(title) for title in THEMES.values()]
        for words in ("Gates solve XoR", "Two digits of MNIST", "A ReLU network has a gated twin"):
            assert f">{words}</a>" in bar


def test_files_to_copy_are_shown_as_in_contributing(site):
    page = (site / "how-to" / "adding-parts.html").read_text(encoding="utf-8")
    for kind in ("theory", "task", "net", "init", "rule", "observable", "experiment", "kind-of-gate", "probe-backend"):
        assert f'id="a{"n" * (kind[0] in "aeiou")}-{kind}"' in page
    text = re.sub(r"<[^>]+>", "", page)
    for name in ("TwoLayerModes", "Quadratic", "Uniform", "SignDescent", "Except"):
        assert f"class {name}(" in text
    for name in ("opposites", "snapshots"):
        assert f"def {name}(" in text


def test_the_console_is_silent(seen):
    assert seen[1] == ""


def test_every_equation_is_typeset(site, pages, tmp_path):
    formulas = sorted({formula for page in pages.values() for formula in page.formulas if formula.strip()})
    assert len(formulas) > 100
    assert all(re.fullmatch(r"\\[(\[].*\\[)\]]", formula.strip(), re.DOTALL) for formula in formulas)
    script = (site / "_static/mathjax/tex-svg-full.js").as_uri()
    setup = f"<script>{configuration(site)}</script><script src='{script}'></script>"
    body = "".join(f'<div class="math">{html.escape(formula)}</div>' for formula in formulas)
    dom, _ = looked_at(tmp_path, f"<!doctype html><head>{setup}</head><body>{body}</body>")
    assert dom.count("<mjx-container") >= len(formulas)
    equations = dom.split('<div class="math">')[1:]
    assert [formula for formula, equation in zip(formulas, equations, strict=True) if is_wrong(equation)] == []


def is_wrong(equation: str) -> bool:
    """Whether MathJax found an error, or a command that it does not know and sets in red."""
    return "merror" in equation or 'fill="red"' in equation or "<mjx-container" not in equation


def configuration(site: Path) -> str:
    """The settings of MathJax that pages with equations have."""
    page = (site / "theories" / "two-point.html").read_text(encoding="utf-8")
    return re.search(r"<script>(window\.MathJax = .*?)</script>", page)[1]


WRONG = {
    "{experiment}`nothing_learns`": "'nothing_learns' is no experiment",
    "{festina}`theories.Nothing`": "'theories.Nothing' is no public name",
    "{proved}`tests/test_chain.py::test_nothing`": "'tests/test_chain.py::test_nothing' is no test",
    "As [nobody1999, eq. 1] shows.": "'nobody1999' is no key of references.bib",
}


def test_what_does_not_exist_is_a_warning(tmp_path):
    of_the_site = f"__file__ = {str(DOCS / 'conf.py')!r}\nexec(open(__file__).read())\nhtml_static_path = []\n"
    (tmp_path / "conf.py").write_text(of_the_site, encoding="utf-8")
    (tmp_path / "index.md").write_text("# Wrong\n\n" + "\n\n".join(WRONG), encoding="utf-8")
    command = ["-m", "sphinx", "-q", "-D", "festina_partial=1", str(tmp_path), str(tmp_path / "built")]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    for message in WRONG.values():
        assert message in done.stderr
