"""The page: no text of a report becomes markup, nothing is loaded, every outcome is said in words."""

import copy
import html
import re
from html.parser import HTMLParser

import pytest

from festina._reporting.page.render import render
from festina._reporting.page.words import formula, number, text

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&"

SVG = """<?xml version="1.0" encoding="utf-8" standalone="no"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns:xlink="http://www.w3.org/1999/xlink" width="90pt" height="60pt" viewBox="0 0 90 60"
     xmlns="http://www.w3.org/2000/svg" version="1.1">
 <metadata><a href="http://example.org">x</a></metadata>
 <defs><style type="text/css">*{stroke-linejoin: round}</style>
 <path id="m1" d="M 0 0"/><clipPath id="p1"><rect width="9" height="9"/></clipPath></defs>
 <g id="figure_1" clip-path="url(#p1)" onload="alert(3)">
 <use xlink:href="#m1" style="clip-path: url('#p1')"/></g>
 <image xlink:href="https://example.org/x.png"/><script>alert(4)</script>
</svg>"""

CLAIM = {
    "text": "strong modes rise first",
    "measured": 0.99834,
    "required": ">= 0.9",
    "holds": True,
    "source": "paper",
    "expected": True,
    "reason": "",
    "fitted": False,
}
REPORT = {
    "experiment": "depth_makes_learning_sigmoidal",
    "finding": "Depth makes learning sigmoidal.",
    "description": "Depth makes learning sigmoidal.\n\nA mode of strength `s`:\n\n    da/dt = 2 a (s - a)",
    "reference": [
        {"key": "saxe2019", "where": "eq. 7", "text": "Saxe et al.", "link": "https://doi.org/10.1073/pnas.1820226116"}
    ],
    "preset": "quick",
    "parameters": {"hidden": 32, "depths": [1, 2]},
    "seed": 7,
    "time": {"started": "2026-11-15T08:00:00+00:00", "seconds": 3.2134},
    "outcome": "as expected",
    "claims": [CLAIM],
    "assumptions": [
        {
            "theory": "AlignedModes",
            "label": "depth 2",
            "exact": True,
            "assumptions": [
                {"name": "aligned", "statement": "one", "measured": 1e-16, "needed": "<= 1e-6", "holds": True}
            ],
        }
    ],
    "setup": {"depth 2": {"net": {"kind": "DeepLinear", "hidden": [32, 32]}}},
    "versions": {"festina": "0.1.0"},
    "device": "cpu",
    "precision": "float64",
    "digest": "sha256:9f86",
}


class Tags(HTMLParser):
    """Every start tag of a page, as (name, attributes); tags inside text would show up here."""

    def __init__(self, page: str):
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.found if attributes.get("id")]


def report(**changes) -> dict:
    return copy.deepcopy(REPORT) | changes


def with_claim(**changes) -> dict:
    return report(claims=[CLAIM | changes])


def words(page: str) -> str:
    body = page[page.index("<body>") :]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def poison(value):
    if isinstance(value, dict):
        return {key + HOSTILE: poison(item) for key, item in value.items()}
    if isinstance(value, list):
        return [poison(item) for item in value]
    return HOSTILE


def poisoned_report() -> dict:
    assumption = dict.fromkeys(("name", "statement", "measured", "needed"), HOSTILE) | {"holds": False}
    theory = {"theory": HOSTILE, "label": HOSTILE, "exact": False, "assumptions": [assumption]}
    claim = dict.fromkeys(("text", "measured", "required", "source", "reason"), HOSTILE)
    texts = ("experiment", "finding", "preset", "outcome", "device", "precision", "digest")
    return report(
        **dict.fromkeys(texts, HOSTILE),
        description=f"one {HOSTILE}\n\n    two {HOSTILE}",
        reference=[{"key": HOSTILE, "where": HOSTILE, "text": HOSTILE, "link": f"https://doi.org/{HOSTILE}"}],
        **dict.fromkeys(("theme", "caption", "alt"), HOSTILE),
        claims=[CLAIM | claim, CLAIM | claim | {"holds": False}],
        assumptions=[theory],
        **{key: poison(REPORT[key]) for key in ("parameters", "setup", "versions")},
    )


def test_hostile_text_stays_text():
    benign = Tags(render([report()], {REPORT["experiment"]: SVG}, failures={"broken": "error"}))
    page = render([poisoned_report()], {HOSTILE: SVG}, title=HOSTILE, failures={HOSTILE: HOSTILE})
    tags = Tags(page).found
    assert "&lt;script&gt;alert(1)" in page
    assert [name for name, _ in tags].count("script") == 1
    assert {name for name, _ in tags} - {name for name, _ in benign.found} <= {"em", "figcaption"}
    assert not any(key.startswith("on") for _, attributes in tags for key in attributes)


def test_hostile_parameters_stay_one_word_of_the_command():
    page = render([report(preset="custom", parameters={"name": "x; rm -rf ~"})], {})
    assert """--name 'x; rm -rf ~' --seed 7""" in words(page)


def test_ids_are_unique_and_every_reference_inside_the_page_resolves():
    page = render([report(), report(), report(experiment="two")], {REPORT["experiment"]: SVG, "two": SVG})
    tags = Tags(page)
    targets = re.findall(r'href="#([^"]+)"', page) + re.findall(r"url\([\"']?#([\w-]+)", page)
    assert page.count("<figure>") == 3
    assert len(tags.ids()) == len(set(tags.ids()))
    assert set(targets) <= set(tags.ids())


def test_a_figure_keeps_its_role_and_label_and_loses_what_runs_or_loads():
    page = render([report()], {REPORT["experiment"]: SVG})
    figure = page[page.index("<figure>") : page.index("</figure>")]
    assert 'role="img"' in figure
    assert 'aria-label="Figure: Depth makes learning sigmoidal."' in figure
    assert not re.search(r"script|onload|metadata|http|<\?xml|DOCTYPE", figure)
    assert "-figure *{stroke-linejoin: round}" in figure  # a figure's style stays inside the figure
    named = SVG.replace("<svg ", '<svg aria-label="four modes" ')
    assert 'aria-label="four modes"' in render([report()], {REPORT["experiment"]: named})


def test_a_figure_that_is_not_svg_is_said_to_be_so():
    page = render([report()], {REPORT["experiment"]: "<svg><b>"})
    assert "The figure is not SVG that can be read" in words(page)


def test_matplotlib_figures_share_a_page():
    matplotlib = pytest.importorskip("matplotlib")
    figure_module = pytest.importorskip("matplotlib.figure")
    import io

    def draw() -> str:
        figure, text = figure_module.Figure(), io.StringIO()
        figure.subplots().plot([0, 1], label="a < b")
        figure.savefig(text, format="svg")
        return text.getvalue()

    with matplotlib.rc_context({"svg.hashsalt": "same"}):
        page = render([report(), report(experiment="two")], {REPORT["experiment"]: draw(), "two": draw()})
    ids = Tags(page).ids()
    assert len(ids) > 50
    assert len(ids) == len(set(ids))


def test_nothing_is_loaded():
    page = render([report()], {REPORT["experiment"]: SVG}, failures={"broken": "see https://example.org"})
    loads = [
        (tag, attributes)
        for tag, attributes in Tags(page).found
        for key in ("src", "href", "srcset", "data")
        if (attributes.get(key) or "").startswith(("http", "//")) and tag != "a"
    ]
    assert not loads
    assert not re.search(r"@import|url\((?![\"']?#)", page)
    assert "default-src 'none'" in page
    assert set(re.findall(r'href="(http[^"]+)"', page)) == {"https://doi.org/10.1073/pnas.1820226116"}


def test_both_colour_schemes_and_print_are_there():
    page = render([], {})
    assert "prefers-color-scheme: dark" in page
    assert '[data-theme="dark"]' in page
    assert ':not([data-theme="light"])' in page
    assert "@media print" in page
    assert 'id="theme"' in page


@pytest.mark.parametrize(
    ("holds", "expected", "status", "said"),
    [
        (True, True, "holds", "✓ holds"),
        (False, False, "known", "◇ does not reproduce, as expected"),
        (False, True, "differs", "✗ differs from what is expected"),
        (True, False, "differs", "✗ differs from what is expected"),
    ],
)
def test_an_outcome_is_said_in_symbol_and_words(holds, expected, status, said):
    page = render([with_claim(holds=holds, expected=expected, reason="other units")], {})
    claims = page[page.index("<caption>Claims") :]
    table = claims[: claims.index("</table>")]
    assert f'class="mark {status}"' in table
    assert said in words(page)
    assert "other units" in words(page)
    assert ("Nothing differs" in words(page)) == (status != "differs")


def test_the_summary_counts():
    claims = [CLAIM, CLAIM, CLAIM | {"holds": False, "expected": False}, CLAIM | {"holds": False}]
    page = words(render([report(claims=claims)], {}, failures={"broken": "x"}))
    assert "1 experiment, 4 claims: 2 hold; 1 claim is known not to reproduce." in page
    assert "1 claim differs from what is expected. 1 experiment did not run." in page


def test_a_report_that_differs_is_never_called_calm():
    page = words(render([report(outcome="differs")], {}))
    assert "Nothing differs" not in page
    assert "1 of 1 hold, differs" in page


def test_failures_have_their_own_section():
    page = render([], {}, failures={"broken_one": "Diverged: loss passed 1e6"})
    assert '<section id="run-broken_one"' in page
    assert "This experiment did not run." in words(page)
    assert "Diverged: loss passed 1e6" in words(page)


def test_a_section_says_how_to_run_it_again_and_what_it_ran_on():
    page = words(render([report()], {}))
    assert "festina run depth_makes_learning_sigmoidal --quick --seed 7 --out report" in page
    for fact in ("2026-11-15 08:00:00+00:00", "3.21 s", "float64", "sha256:9f86", "[32, 32]", "[1, 2]"):
        assert fact in page


def test_a_fitted_claim_says_so():
    plain, fitted = (render([with_claim(fitted=which)], {}) for which in (False, True))
    assert plain.count('class="tag"') == 1  # the legend of the marks
    assert fitted.count('class="tag"') == 2


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("**What does not reproduce.** It", "<strong>What does not reproduce.</strong> It"),
        ("*per pathway*, a*b and 2 * 3", "<em>per pathway</em>, a*b and 2 * 3"),
        (r"Δy\* of `a*b*`", "Δy* of <code>a*b*</code>"),
        ("**<b>**", "<strong>&lt;b&gt;</strong>"),
        ("**a** One. **b** Two.", "<strong>a</strong> One. <strong>b</strong> Two."),
    ],
)
def test_markdown_of_captions_and_docstrings_is_rendered(written, shown):
    assert text(written) == shown


def test_formulas_are_typeset():
    shown = formula("    da/dt = 2 |a|^(2−2/D) (s − λ a),      a_0 > 0      [saxe2014, eq. 12]")
    assert "d<i>a</i>/d<i>t</i> = 2 |<i>a</i>|<sup>2−2/<i>D</i></sup> (<i>s</i> − <i>λ</i> <i>a</i>)" in shown
    assert "<i>a</i><sub>0</sub> &gt; 0" in shown
    assert "<small>[saxe2014, eq. 12]</small>" in shown
    assert 'aria-label="da/dt = 2 |a|^(2−2/D)' in shown


def test_the_headline_is_apart_from_controls_and_points_to_its_panel():
    page = render([report(claims=[CLAIM | {"headline": True, "panel": "b"}, CLAIM])], {REPORT["experiment"]: SVG})
    assert page.index("The finding") < page.index("panel b") < page.index("Controls and details")


def test_what_does_not_reproduce_is_in_one_table():
    claim = {"holds": False, "expected": False, "reason": "another lr", "required": ">= 0.9", "measured": 0.5}
    page = words(render([report(), report(experiment="two", claims=[CLAIM | claim])], {}))
    table = page[page.index("What does not reproduce Claims of the sources") :]
    assert "strong modes rise first two ≥ 0.9 0.5 another lr" in table


def test_experiments_stand_under_their_themes_with_links_to_neighbours():
    page = render([report(theme="modes"), report(experiment="two", theme="gates")], {})
    assert page.index("Modes and depth") < page.index("Gated networks and the race of pathways")
    assert 'rel="next"' in page
    assert 'rel="prev"' in page


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.998342, "0.9983"),
        (3.42e-9, "3.42 × 10^−9"),
        (2.1e-7, "2.1 × 10^−7"),
        (-0.00012345, "−0.0001234"),
        (48211, "48211"),
        (48211.4, "48211"),
        (3.2e7, "3.2 × 10^7"),
        (-0.0, "0"),
        (float("nan"), "nan"),
        ("<= 1e-06", "≤ 10^−6"),
        (">= 0.9", "≥ 0.9"),
        ("all 64 seeds", "all 64 seeds"),
        ("mode-3 of 2019-20", "mode-3 of 2019-20"),
    ],
)
def test_numbers_are_printed_as_in_a_paper(value, shown):
    text = re.sub(r"<[^>]+>", "", number(value).replace("<sup>", "^"))
    assert html.unescape(text).replace("\xa0", " ") == shown
