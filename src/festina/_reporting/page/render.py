"""One web page for a run of experiments: every finding, its figure and its claims, in a single file.

It loads nothing, by its own security policy. Every text of a report passes through `words`.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple

from ...experiments.base import THEMES
from .sections import MARKS, MEANINGS, Report, frame, linked, mark, section, status, table, tally, worst
from .words import name, number, preformatted, text

ABOUT = """festina predicts how neural networks learn, trains the same networks, and puts the two side by side. Every
experiment on this page states one finding of the theory of learning, draws it, and checks each claim by a number."""


class Entry(NamedTuple):
    """A report or a failure, with its place on the page."""

    name: str
    anchor: str
    report: Report | None
    error: str = ""
    page: str = ""  # the page it is on, if it is another one

    @property
    def address(self) -> str:
        return self.page or f"#{self.anchor}"

    @property
    def theme(self) -> str:
        return THEMES.get((self.report or {}).get("theme", ""), "Other experiments" if self.report else "Did not run")

    @property
    def outcome(self) -> str:
        return worst(self.report) if self.report else "failed"

    @property
    def title(self) -> str:
        return text(self.report["finding"]) if self.report else f"<code>{name(self.name)}</code>"


def render(
    reports: list[dict],
    figures: Mapping[str, str],
    *,
    title: str = "festina",
    failures: Mapping[str, str] = {},
    networks: Mapping[str, Mapping[str, str]] = {},
    thumbnails: Mapping[str, str] = {},
    folders: Mapping[str, str] = {},
) -> str:
    """The whole page, reports in the order in which they are given.

    Args:
        figures: SVG documents by experiment name.
        failures: error texts by experiment name.
        networks: the SVG documents of an experiment's networks, by the label of each.
        thumbnails: addresses of small pictures of figures, as data.
        folders: the addresses of the folders with the files of experiments, relative to the page.
    """
    names = (*(r["experiment"] for r in reports), *failures)
    slugs = ["run-" + re.sub(r"[^A-Za-z0-9_]+", "-", one) for one in names]
    anchors = [slug if slugs.index(slug) == i else f"{slug}-{i}" for i, slug in enumerate(slugs)]
    entries = [Entry(r["experiment"], anchor, r) for r, anchor in zip(reports, anchors, strict=False)]
    entries += [
        Entry(one, anchor, None, error)
        for (one, error), anchor in zip(failures.items(), anchors[len(reports) :], strict=True)
    ]
    sections = []
    for k, entry in enumerate(entries):
        around = _around(entries, k)
        if entry.report is None:
            headline = mark("failed", "This experiment did not run.")
            sections.append(frame(entry.anchor, entry.name, headline, preformatted(entry.error, "Error"), around))
        else:
            pictures = figures.get(entry.name, ""), networks.get(entry.name, {})
            sections.append(section(entry.report, *pictures, entry.anchor, folders.get(entry.name), around))
    style, script = (
        files("festina._reporting.page").joinpath(file).read_text("utf-8") for file in ("page.css", "page.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    many = len(entries) > 1
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><link rel="icon" href="data:,">
<style>{style}</style><script>{script}</script>
<body><a class="skip" href="#main">Skip to the experiments</a>
{_side(entries) if many else ""}<div class="page"><header><button id="theme" hidden>◐</button>
<svg class="emblem" viewBox="0 0 64 24" aria-hidden="true"><path d="M1 22C36 22 28 2 63 2"/></svg>
<h1>{escape(title)}</h1><p class="lede">{ABOUT}</p>{_summary(reports, len(failures))}
{_facts(reports)}{_first_picture(entries, thumbnails) if many else ""}{legend()}{_sources(reports) if many else ""}
{_contents(entries, thumbnails)}</header>
<main id="main" tabindex="-1">{_not_reproduced(entries)}{"".join(sections)}</main></div></body></html>\n"""


def _some(count: int, one: str, many: str) -> str:
    return f"{count}&nbsp;{one if count == 1 else many}"


def _summary(reports: Sequence[Report], failed: int) -> str:
    statuses = [status(claim) for r in reports for claim in r["claims"]]
    holding, known, differing = map(statuses.count, ("holds", "known", "differs"))
    aside = "; " + _some(known, "claim is", "claims are") + " known not to reproduce" if known else ""
    alarm = (_some(differing, "claim differs", "claims differ") + " from what is expected. ") * bool(differing)
    alarm += _some(failed, "experiment", "experiments") + " did not run." if failed else ""
    calm = "" if alarm or "differs" in map(worst, reports) else "Nothing differs from what is expected."
    return f"""<p class="tally">{_some(len(reports), "experiment", "experiments")},
{_some(len(statuses), "claim", "claims")}: {_some(holding, "holds", "hold")}{aside}. <b>{alarm}</b>{calm}</p>"""


def _facts(reports: Sequence[Report]) -> str:
    """Which preset, which data and when."""
    if not reports:
        return ""
    presets = sorted({report["preset"] for report in reports})
    sizes = {"quick": "quick (small sizes)", "full": "full (the papers' own sizes)"}
    started = sorted(report["time"]["started"] for report in reports)
    days = list(dict.fromkeys(escape(moment[:10]) for moment in (started[0], started[-1])))
    shown = ", ".join(sizes[preset] if preset in sizes else str(preset) for preset in presets)
    facts = [f"Preset: {escape(shown)}."]
    facts += [f"Run on {' to '.join(days)}, {escape(str(reports[0]['device']))}."]
    if any("stand-in" in f"{report['finding']} {report.get('caption', '')}" for report in reports):
        facts.append("Images of digits are a synthetic stand-in where the caption says so.")
    return f'<p class="facts">{" ".join(facts)}</p>'


def _first_picture(entries: Sequence[Entry], thumbnails: Mapping[str, str]) -> str:
    """The figure that the story begins with, with its one idea."""
    entry = next((entry for entry in entries if entry.report and thumbnails.get(f"{entry.name}:first")), None)
    if entry is None:
        return ""
    picture = escape(thumbnails[f"{entry.name}:first"], quote=True)
    alt = escape((entry.report or {}).get("alt", ""), quote=True)
    link = f'<a href="#{entry.anchor}"><img class="paper" src="{picture}" alt="{alt}"></a>'
    idea = f"{entry.title} Thick and pale: training. Thin and dashed: theory."
    frame = f'<div class="sheet" tabindex="0" role="region" aria-label="The first figure">{link}</div>'
    return f'<figure class="first">{frame}<figcaption>{idea}</figcaption></figure>'


def legend() -> str:
    """What the marks of outcomes mean."""
    items = (f"<li>{mark(outcome, f'{MARKS[outcome][1]}: {meaning}')}</li>" for outcome, meaning in MEANINGS.items())
    fitted = '<li><span class="tag">fitted</span> a number that was fitted, not predicted</li>'
    return f'<details class="legend"><summary>What the marks mean</summary><ul>{"".join(items)}{fitted}</ul></details>'


def _sources(reports: Sequence[Report]) -> str:
    named = {entry["key"]: entry for report in reports for entry in report["reference"]}
    items = "".join(f"<li>{linked(named[key])}</li>" for key in sorted(named))
    count = _some(len(named), "source", "sources")
    return f'<details class="legend"><summary>{count}</summary><ul class="references">{items}</ul></details>'


def by_theme(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Experiments under the titles of their themes, in the order in which they are given."""
    themes: dict[str, list[Entry]] = {}
    for entry in entries:
        themes.setdefault(entry.theme, []).append(entry)
    return themes


def _contents(entries: Sequence[Entry], thumbnails: Mapping[str, str]) -> str:
    body = ""
    for theme, members in by_theme(entries).items():
        cards = "".join(card(entry, thumbnails.get(entry.name, "")) for entry in members)
        body += f"<h3>{escape(theme)}</h3><ol>{cards}</ol>"
    keys = sorted({ref["key"] for entry in entries if entry.report for ref in entry.report["reference"]})
    options = "".join(f'<option value="{escape(key, quote=True)}">{escape(key)}</option>' for key in keys)
    filters = f"""<p id="filters" hidden><label>Source
<select id="source"><option value="">all</option>{options}</select></label>
<label><input type="checkbox" id="known"> only with claims that do not reproduce</label></p>"""
    return f'<nav id="contents" aria-label="Contents">{filters if len(entries) > 1 else ""}{body}</nav>'


def card(entry: Entry, thumbnail: str) -> str:
    """An entry of the contents: a small picture, the finding, and how many claims hold."""
    picture = f'<img class="paper" src="{escape(thumbnail, quote=True)}" alt="" loading="lazy">' if thumbnail else ""
    report = entry.report
    said = tally(report["claims"]) + MARKS[entry.outcome][2] if report else "did not run"
    link = f'<a href="{entry.address}">{picture}<span>{entry.title}</span></a>'
    return f'<li data-of="{entry.anchor}">{link}<small>{mark(entry.outcome, hide=True)} {said}</small></li>\n'


def _side(entries: Sequence[Entry]) -> str:
    body = ""
    for theme, members in by_theme(entries).items():
        links = "".join(
            f'<li data-of="{entry.anchor}"><a href="#{entry.anchor}">{name(entry.name)}</a></li>' for entry in members
        )
        body += f"<p>{escape(theme)}</p><ul>{links}</ul>"
    return f'<nav class="side" aria-label="Experiments">{body}</nav>'


def _around(entries: Sequence[Entry], k: int) -> str:
    """Links to the experiments before and after one."""
    links = ""
    if k > 0:
        links += f'<a rel="prev" href="#{entries[k - 1].anchor}">← {name(entries[k - 1].name)}</a>'
    if k + 1 < len(entries):
        links += f'<a rel="next" href="#{entries[k + 1].anchor}">{name(entries[k + 1].name)} →</a>'
    return links


def _not_reproduced(entries: Iterable[Entry]) -> str:
    body = table_of_not_reproduced(entries)
    if not body:
        return ""
    return f"""<section id="not-reproduced" aria-labelledby="not-reproduced-title">
<h2 id="not-reproduced-title">What does not reproduce</h2>
<p>Claims of the sources that were measured and found otherwise. Each is expected to fail, for the reason given.</p>
{body}<p class="back"><a href="#contents">Contents ↑</a></p></section>\n"""


def table_of_not_reproduced(entries: Iterable[Entry]) -> str:
    """One table of all printed claims that do not reproduce: printed, measured, why; nothing if all do."""
    rows = [
        (
            f'{text(claim["text"])}<span class="note"><a href="{entry.address}">{name(entry.name)}</a></span>',
            number(claim["required"]),
            number(claim["measured"]),
            text(claim["reason"]),
        )
        for entry in entries
        if entry.report
        for claim in entry.report["claims"]
        if status(claim) == "known"
    ]
    return table("Printed claims, and what was measured", ("Claim", "Printed", "Measured", "Why"), rows) if rows else ""
