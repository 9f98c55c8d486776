"""The section of one experiment: finding, figure, claims, and what it was run with."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from .pictures import framed, inline
from .words import as_json, name, number, pairs, paragraphs, preformatted, text

Report = Mapping[str, Any]

# Symbol, words, and what the contents add to the tally. They carry the meaning; colour only repeats it.
MARKS = {
    "holds": ("✓", "holds", ""),
    "known": ("◇", "does not reproduce, as expected", ", as expected"),
    "differs": ("✗", "differs from what is expected", ", differs"),
    "failed": ("!", "did not run", ""),
}
MEANINGS = {
    "holds": "the measured value is as required",
    "known": "a printed claim that does not reproduce, with the reason",
    "differs": "the outcome is not the one that is expected",
}


def section(
    report: Report, figure: str, networks: Mapping[str, str], anchor: str, files: str | None, around: str
) -> str:
    """The section of an experiment. `files` is the address of its folder; `around` are links to its neighbours."""
    prose = paragraphs(report["description"].removeprefix(report["finding"]))
    body = f"""{picture(report, figure, anchor, files)}{prose}
{reference_list(report["reference"])}{claim_tables(report["claims"], anchor)}
{more(report, networks, anchor)}"""
    known = ' data-known=""' if any(status(claim) == "known" for claim in report["claims"]) else ""
    sources = escape(" ".join(entry["key"] for entry in report["reference"]))
    marks = f' data-sources="{sources}"{known}'
    return frame(anchor, report["experiment"], text(report["finding"]), body, around, marks)


def more(report: Report, networks: Mapping[str, str], anchor: str) -> str:
    """What an experiment was run with, and how to run it again."""
    setup = "".join(f"<h3>{escape(k)}</h3>{preformatted(as_json(spec), k)}" for k, spec in report["setup"].items())
    started, seconds = report["time"]["started"], report["time"]["seconds"]
    facts = {"started": started.replace("T", " "), "took": f"{seconds:.3g} s"}
    facts |= {key: report[key] for key in ("seed", "device", "precision", "digest")}
    pictures = "".join(
        f"<h3>{escape(label)}</h3>{framed(inline(svg, f'{anchor}-network-{k}', f'Network: {label}'), label)}"
        for k, (label, svg) in enumerate(networks.items())
    )
    return f"""<div class="more">{details("Networks", pictures, f"{len(networks)} with gates")}
{assumption_tables(report["assumptions"])}
{details("Parameters", pairs(report["parameters"]), report["preset"])}{details("Setup", setup)}
{details("Provenance", pairs(facts) + pairs(report["versions"]))}
<p class="again"><span>Run it again</span> <code>{escape(command(report))}</code></p></div>"""


def frame(anchor: str, title: str, headline: str, body: str, around: str = "", marks: str = "") -> str:
    """The frame of a section, with its name, its headline and the links to its neighbours."""
    back = f'<p class="back">{around}<a href="#contents">Contents ↑</a></p>'
    return f"""<section id="{anchor}" aria-labelledby="{anchor}-title"{marks}><p class="name">{name(title)}</p>
<h2 id="{anchor}-title">{headline}</h2>
{body}{back}</section>\n"""


def picture(report: Report, figure: str, anchor: str, files: str | None) -> str:
    """The figure of an experiment, with its caption and links to its files."""
    if not figure:
        return ""
    label = report.get("alt") or f"Figure: {report['finding']}"
    picture = inline(figure, f"{anchor}-figure", label)
    caption = text(report.get("caption", ""))
    if files is not None:
        here = escape(files + "/" if files else "", quote=True)
        links = (("figure.svg", "SVG"), ("figure.png", "PNG"), ("data.nc", "data (netCDF)"))
        caption += (
            '<span class="files">' + " · ".join(f'<a href="{here}{f}">{word}</a>' for f, word in links) + "</span>"
        )
    return framed(picture, f"Figure of {report['experiment']}", caption)


def claim_tables(claims: Sequence[Report], anchor: str) -> str:
    """The claims of an experiment: those that state the finding before the others."""
    first = [claim for claim in claims if claim.get("headline")]
    rest = [claim for claim in claims if not claim.get("headline")]
    if not first or not rest:
        return _claim_table("Claims", claims, anchor)
    return _claim_table("The finding", first, anchor) + _claim_table("Controls and details", rest, anchor)


def _claim_table(caption: str, claims: Iterable[Report], anchor: str) -> str:
    rows = []
    for claim in claims:
        outcome, note = status(claim), text(claim["reason"])
        if outcome == "differs":
            surprise = "holds; it was expected not to" if claim["holds"] else "was expected to hold"
            note = f"It {surprise}. {note}"
        words = text(claim["text"]) + ' <span class="tag">fitted</span>' * bool(claim["fitted"])
        if claim.get("panel"):
            words += f' <a class="panel" href="#{anchor}-figure">panel {escape(claim["panel"])}</a>'
        values = number(claim["measured"]), number(claim["required"]), escape(claim["source"])
        rows.append((mark(outcome), words + f'<span class="note">{note}</span>' * bool(note), *values))
    return table(caption, ("Outcome", "Claim", "Measured", "Required", "Source"), rows)


def assumption_tables(theories: Sequence[Report]) -> str:
    """What the theories of an experiment assume, each condition with its measured number."""
    body = ""
    for theory in theories:
        rows = []
        for a in theory["assumptions"]:
            outcome = mark("holds") if a["holds"] else mark("known", "does not hold")
            words = f'{name(a["name"])}<span class="note">{text(a["statement"])}</span>'
            rows.append((outcome, words, number(a["measured"]), number(a["needed"])))
        title = (theory["theory"], theory["label"], "exact" if theory["exact"] else "a reduction")
        body += table(", ".join(filter(None, title)), ("Outcome", "Assumption", "Measured", "Needed"), rows)
    return details("What the theory assumes, measured", body, tally(a for t in theories for a in t["assumptions"]))


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose rows become blocks on a phone."""
    # Explicit roles: on a phone the rows become blocks, and browsers then forget that this is a table.
    head = "".join(f'<th role="columnheader" scope="col" class="{h.lower()}">{h}</th>' for h in heads)
    cell = '<td role="cell" class="{}" data-label="{}"><span>{}</span></td>'
    lines = ("".join(cell.format(h.lower(), h, c) for h, c in zip(heads, row, strict=True)) for row in rows)
    body = "".join(f'<tr role="row">{line}</tr>\n' for line in lines)
    return f"""<table role="table"><caption>{escape(caption)}</caption>
<thead role="rowgroup"><tr role="row">{head}</tr></thead><tbody role="rowgroup">\n{body}</tbody></table>\n"""


def command(report: Report) -> str:
    """The command that runs an experiment again."""
    chosen = report["parameters"].items() if report["preset"] == "custom" else ()
    words = [word for option, value in chosen for word in (f"--{option}", _option(value))]
    named = {"full": [], "custom": [], "quick": ["--quick"]}.get(report["preset"], ["--preset", report["preset"]])
    words += [*named, "--seed", str(report["seed"]), "--out", "report"]
    return shlex.join(["festina", "run", report["experiment"], *words])


def _option(value: Any) -> str:
    """A parameter as the command line reads it: lists are joined by commas."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def linked(reference: Report) -> str:
    """A publication, with a link to it where it is known."""
    address, words = reference.get("link", ""), escape(reference["text"])
    if not address.startswith(("https://doi.org/", "https://arxiv.org/", "https://proceedings.")):
        return words
    return f'<a href="{escape(address, quote=True)}">{words}</a>'


def reference_list(references: Iterable[Report]) -> str:
    """The publications of an experiment, each with the place in it."""
    items = [f"<li>{linked(r)} <em>{text(r['where'])}</em></li>" for r in references]
    return f'<ul class="references" aria-label="References">{"".join(items)}</ul>' if items else ""


def details(summary: str, body: str, note: str = "") -> str:
    """A part of a page that is closed until a reader opens it; nothing without a body."""
    summary += f" <small>{escape(note)}</small>" * bool(note)
    return f"<details><summary>{summary}</summary>\n<div>{body}</div></details>" if body else ""


def mark(outcome: str, words: str = "", *, hide: bool = False) -> str:
    """The symbol of an outcome, with its words."""
    said = f'<span class="{"hidden" if hide else "words"}">{words or MARKS[outcome][1]}</span>'
    return f'<span class="mark {outcome}"><b aria-hidden="true">{MARKS[outcome][0]}</b> {said}</span>'


def tally(entries: Iterable[Report]) -> str:
    """How many claims or assumptions hold."""
    holds = [entry["holds"] for entry in entries]
    return f"{sum(holds)} of {len(holds)} hold"


def status(claim: Report) -> str:
    """Which of the marks a claim has."""
    return "differs" if claim["holds"] != claim["expected"] else "holds" if claim["holds"] else "known"


def worst(report: Report) -> str:
    """The mark of an experiment: that of its worst claim."""
    statuses = [status(claim) for claim in report["claims"]] + ["differs"] * (report["outcome"] == "differs")
    return next((outcome for outcome in ("differs", "known") if outcome in statuses), "holds")
