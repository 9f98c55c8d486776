"""One web page for a run of experiments: every finding, its figure and its claims, in a single file.

It loads nothing, by its own security policy. Every text of a report passes `escape`, `_text` or `_value`.
"""

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree

Report = Mapping[str, Any]

# Symbol, words, and what the contents add to the tally. They carry the meaning; colour only repeats it.
MARKS = {
    "holds": ("✓", "holds", ""),
    "known": ("◇", "does not reproduce, as expected", ", as expected"),
    "differs": ("✗", "differs from what is expected", ", differs"),
    "failed": ("!", "did not run", ""),
}
SVG_TAGS = re.compile(
    "svg|g|defs|path|use|rect|circle|ellipse|line|polyline|polygon|text|tspan|clipPath|mask|style|image|"
    "linearGradient|radialGradient|stop|pattern|symbol|marker|filter|feColorMatrix|feComposite"
)
SCIENTIFIC = re.compile(r"(?<![\w.])([-+]?[\d.]+)e([-+]?\d+)(?![\w.])", re.IGNORECASE)
DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:\s*)(10\.[^\s,;]*[\w/])", re.IGNORECASE)


def render(
    reports: list[dict],
    figures: dict[str, str],
    *,
    title: str = "festina",
    failures: Mapping[str, str] = {},
    networks: Mapping[str, Mapping[str, str]] = {},
) -> str:
    """The whole page. `figures` holds SVG documents and `failures` error texts, both by experiment name.

    `networks` holds the SVG documents of an experiment's networks, by the label of each.
    """
    names = (*(r["experiment"] for r in reports), *failures)
    slugs = ["run-" + re.sub(r"[^A-Za-z0-9_]+", "-", name) for name in names]
    anchors = [slug if slugs.index(slug) == i else f"{slug}-{i}" for i, slug in enumerate(slugs)]
    figured = [(r, figures.get(r["experiment"], ""), networks.get(r["experiment"], {})) for r in reports]
    sections = [_section(*shown, anchor) for shown, anchor in zip(figured, anchors, strict=False)]
    headline = _mark("failed", "This experiment did not run.")
    for (name, error), anchor in zip(failures.items(), anchors[len(reports) :], strict=True):
        sections.append(_frame(anchor, name, headline, _pre(error, "Error")))
    style, script = (
        files("festina._reporting.page").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><link rel="icon" href="data:,">
<style>{style}</style><script>{script}</script>
<body><a class="skip" href="#main">Skip to the experiments</a><header><button id="theme" hidden>◐</button>
<svg class="emblem" viewBox="0 0 64 24" aria-hidden="true"><path d="M1 22C36 22 28 2 63 2"/></svg>
<h1>{escape(title)}</h1>{_summary(reports, len(failures))}
{_contents(reports, failures, anchors)}</header>
<main id="main" tabindex="-1">{"".join(sections)}</main></body></html>\n"""


def _summary(reports: Sequence[Report], failed: int) -> str:
    def some(number: int, one: str, many: str) -> str:
        return f"{number}&nbsp;{one if number == 1 else many}"

    statuses = [_status(claim) for r in reports for claim in r["claims"]]
    holding, known, differing = map(statuses.count, ("holds", "known", "differs"))
    aside = "; " + some(known, "claim is", "claims are") + " known not to reproduce" if known else ""
    alarm = (some(differing, "claim differs", "claims differ") + " from what is expected. ") * bool(differing)
    alarm += some(failed, "experiment", "experiments") + " did not run." if failed else ""
    calm = "" if alarm or "differs" in map(_worst, reports) else "Nothing differs from what is expected."
    return f"""<p class="lede">{some(len(reports), "experiment", "experiments")},
{some(len(statuses), "claim", "claims")}: {some(holding, "holds", "hold")}{aside}. <b>{alarm}</b>{calm}</p>"""


def _contents(reports: Iterable[Report], failures: Iterable[str], anchors: Iterable[str]) -> str:
    entries = [(_worst(r), _text(r["finding"]), _tally(r["claims"]) + MARKS[_worst(r)][2]) for r in reports]
    entries += [("failed", f"<code>{_name(name)}</code>", "did not run") for name in failures]
    items = ""
    for (status, text, tally), anchor in zip(entries, anchors, strict=True):
        link = f'<a href="#{anchor}">{text}</a> <small>{tally}</small>'
        items += f"<li>{_mark(status, hide=True)}<span>{link}</span></li>\n"
    return f'<nav id="contents" aria-label="Contents"><ol>\n{items}</ol></nav>'


def _section(report: Report, figure: str, networks: Mapping[str, str], anchor: str) -> str:
    prose = _paragraphs(report["description"].removeprefix(report["finding"]))
    setup = "".join(f"<h3>{escape(k)}</h3>{_pre(_json(spec), k)}" for k, spec in report["setup"].items())
    started, seconds = report["time"]["started"], report["time"]["seconds"]
    facts = {"started": started.replace("T", " "), "took": f"{seconds:.3g} s"}
    facts |= {key: report[key] for key in ("seed", "device", "precision", "digest")}
    pictures = "".join(
        f"<h3>{escape(label)}</h3>{_figure(svg, f'{anchor}-network-{k}', f'Network: {label}')}"
        for k, (label, svg) in enumerate(networks.items())
    )
    body = f"""{figure and _figure(figure, f"{anchor}-figure", f"Figure: {report['finding']}")}{prose}
{_references(report["reference"])}{_claims(report["claims"])}
<div class="more">{_details("Networks", pictures, f"{len(networks)} with gates")}
{_assumptions(report["assumptions"])}
{_details("Parameters", _pairs(report["parameters"]), report["preset"])}{_details("Setup", setup)}
{_details("Provenance", _pairs(facts) + _pairs(report["versions"]))}
<p class="again"><span>Run it again</span> <code>{escape(_command(report))}</code></p></div>"""
    return _frame(anchor, report["experiment"], _text(report["finding"]), body)


def _frame(anchor: str, name: str, headline: str, body: str) -> str:
    return f"""<section id="{anchor}" aria-labelledby="{anchor}-title"><p class="name">{_name(name)}</p>
<h2 id="{anchor}-title">{headline}</h2>
{body}<p class="back"><a href="#contents">Contents ↑</a></p></section>\n"""


def _claims(claims: Iterable[Report]) -> str:
    rows = []
    for claim in claims:
        status, note = _status(claim), _text(claim["reason"])
        if status == "differs":
            surprise = "holds; it was expected not to" if claim["holds"] else "was expected to hold"
            note = f"It {surprise}. {note}"
        text = _text(claim["text"]) + ' <span class="tag">fitted</span>' * bool(claim["fitted"])
        values = _value(claim["measured"]), _value(claim["required"]), escape(claim["source"])
        rows.append((_mark(status), text + f'<span class="note">{note}</span>' * bool(note), *values))
    return _table("Claims", ("Outcome", "Claim", "Measured", "Required", "Source"), rows)


def _assumptions(theories: Sequence[Report]) -> str:
    body = ""
    for theory in theories:
        rows = []
        for a in theory["assumptions"]:
            mark = _mark("holds") if a["holds"] else _mark("known", "does not hold")
            text = f'{_name(a["name"])}<span class="note">{_text(a["statement"])}</span>'
            rows.append((mark, text, _value(a["measured"]), _value(a["needed"])))
        title = (theory["theory"], theory["label"], "exact" if theory["exact"] else "a reduction")
        body += _table(", ".join(filter(None, title)), ("Outcome", "Assumption", "Measured", "Needed"), rows)
    tally = _tally(a for theory in theories for a in theory["assumptions"])
    return _details("What the theory assumes, measured", body, tally)


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    # Explicit roles: on a phone the rows become blocks, and browsers then forget that this is a table.
    head = "".join(f'<th role="columnheader" scope="col" class="{h.lower()}">{h}</th>' for h in heads)
    cell = '<td role="cell" class="{}" data-label="{}"><span>{}</span></td>'
    lines = ("".join(cell.format(h.lower(), h, c) for h, c in zip(heads, row, strict=True)) for row in rows)
    body = "".join(f'<tr role="row">{line}</tr>\n' for line in lines)
    return f"""<table role="table"><caption>{escape(caption)}</caption>
<thead role="rowgroup"><tr role="row">{head}</tr></thead><tbody role="rowgroup">\n{body}</tbody></table>\n"""


def _command(report: Report) -> str:
    chosen = report["parameters"].items() if report["preset"] == "custom" else ()
    words = [word for name, value in chosen for word in (f"--{name}", _option(value))]
    named = {"full": [], "custom": [], "quick": ["--quick"]}.get(report["preset"], ["--preset", report["preset"]])
    words += [*named, "--seed", str(report["seed"]), "--out", "report"]
    return shlex.join(["festina", "run", report["experiment"], *words])


def _option(value: Any) -> str:
    """A parameter as the command line reads it: lists are joined by commas."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _references(references: Iterable[Report]) -> str:
    link = r'<a href="https://doi.org/\1">\g<0></a>'
    items = [f"<li>{DOI.sub(link, escape(r['text']))} <em>{_text(r['where'])}</em></li>" for r in references]
    return f'<ul class="references" aria-label="References">{"".join(items)}</ul>' if items else ""


def _details(summary: str, body: str, note: str = "") -> str:
    summary += f" <small>{escape(note)}</small>" * bool(note)
    return f"<details><summary>{summary}</summary>\n<div>{body}</div></details>" if body else ""


def _pairs(pairs: Mapping[str, object]) -> str:
    rows = (f"<div><dt>{_name(k)}</dt><dd>{escape(_json(v))}</dd></div>" for k, v in pairs.items())
    return f"<dl>{''.join(rows)}</dl>" if pairs else ""


def _pre(text: str, label: str) -> str:
    return f'<pre tabindex="0" role="region" aria-label="{escape(label)}">{escape(text)}</pre>'


def _json(value: object) -> str:
    if isinstance(value, str):
        return value
    # A list of plain values goes on one line. No string in JSON holds a line break, so none is changed.
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return re.sub(r"(,?)\n\s*(?=[^][{}]*\])", lambda m: m[1] and ", ", text)


def _figure(svg: str, owner: str, label: str) -> str:
    """A figure inline, its ids prefixed by its own so that figures do not clash, on its own paper (page.css)."""
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        return f'<p class="note">The figure is not SVG that can be read: {escape(str(error))}.</p>'
    width, _ = root.attrib.pop("width", "100%"), root.attrib.pop("height", "")
    _adopt(root, owner)
    label = root.get("aria-label", label)
    root.attrib |= {"id": owner, "role": "img", "aria-label": label, "style": f"--width:{width}"}
    return f"<figure>{ElementTree.tostring(root, 'unicode')}</figure>\n"


def _adopt(node: ElementTree.Element, owner: str) -> None:
    # Inside HTML an SVG needs no namespaces. Unknown elements, handlers and outside addresses are dropped.
    node.tag = node.tag.rpartition("}")[2]
    for name, value in list(node.attrib.items()):
        del node.attrib[name]
        key = name.rpartition("}")[2]
        value = re.sub(r"^()#" if key == "href" else r"(url\([\"']?)#", rf"\1#{owner}-", value)
        if not key.startswith("on") and (key != "href" or value.startswith(("#", "data:image/"))):
            node.set(key, f"{owner}-{value}" if key == "id" else value)
    if node.tag == "style":
        node.text = re.sub(r"([^{}]+)\{", rf"#{owner} \1{{", node.text or "")
    for child in [child for child in node if not SVG_TAGS.fullmatch(child.tag.rpartition("}")[2])]:
        node.remove(child)
    for child in node:
        _adopt(child, owner)


def _value(value: object) -> str:
    """A number to four digits, all of them on hover; in a text, comparisons and powers of ten as printed."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        short = f"{value:.0f}" if 1e4 <= abs(value) < 1e6 else f"{value or 0:.4g}"
        return f'<data value="{value!r}" title="{value!r}">{_value(short)}</data>'
    text = escape(str(value)).replace("&gt;=", "≥").replace("&lt;=", "≤")
    text = text.replace(" ", "&nbsp;") if len(text) < 16 else text
    text = SCIENTIFIC.sub(lambda m: f"{m[1]}&nbsp;×&nbsp;10<sup>{int(m[2])}</sup>", text)
    text = re.sub(r"(?<![\d.])1&nbsp;×&nbsp;(?=10<sup>)", "", text)
    return re.sub(r"(?<![\w.])-(?=[\d.])", "−", text)


def _text(text: str) -> str:
    return re.sub(r"`+([^`]+)`+", r"<code>\1</code>", escape(text))


def _paragraphs(text: str) -> str:
    blocks = [block for block in re.split(r"\n\s*?\n", text.strip("\n")) if block.strip()]
    return "".join(_pre(b, "Formula") if b[0] == " " else f"<p>{_text(b)}</p>\n" for b in blocks)


def _name(name: str) -> str:
    return escape(name).replace("_", "_<wbr>")


def _mark(status: str, words: str = "", *, hide: bool = False) -> str:
    text = f'<span class="{"hidden" if hide else "words"}">{words or MARKS[status][1]}</span>'
    return f'<span class="mark {status}"><b aria-hidden="true">{MARKS[status][0]}</b> {text}</span>'


def _tally(items: Iterable[Report]) -> str:
    holds = [item["holds"] for item in items]
    return f"{sum(holds)} of {len(holds)} hold"


def _status(claim: Report) -> str:
    return "differs" if claim["holds"] != claim["expected"] else "holds" if claim["holds"] else "known"


def _worst(report: Report) -> str:
    statuses = [_status(claim) for claim in report["claims"]] + ["differs"] * (report["outcome"] == "differs")
    return next((status for status in ("differs", "known") if status in statuses), "holds")
