"""Texts, numbers and formulas of a report as HTML; every text of a report passes here, and becomes no markup."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape

SCIENTIFIC = re.compile(r"(?<![\w.])([-+]?[\d.]+)e([-+]?\d+)(?![\w.])", re.IGNORECASE)
# Markdown as docstrings and captions use it: `code`, **strong**, *emphasis*; an escaped star is a star.
MARKDOWN = re.compile(
    r"`+(?P<code>[^`]+)`+|\*\*(?P<strong>\S(?:.*?\S)??)\*\*|(?<![\w*])\*(?P<em>\S(?:[^*]*\S)?)\*(?![\w*])|\\(?P<star>\*)",
    re.DOTALL,
)


def text(value: str) -> str:
    """A text with its Markdown rendered."""
    html, end = "", 0
    for found in MARKDOWN.finditer(value):
        html += escape(value[end : found.start()])
        kind = str(found.lastgroup)
        inside = found[kind]
        html += inside if kind == "star" else f"<{kind}>{escape(inside) if kind == 'code' else text(inside)}</{kind}>"
        end = found.end()
    return html + escape(value[end:])


def paragraphs(value: str) -> str:
    """Paragraphs, and indented blocks, which are formulas."""
    blocks = [block for block in re.split(r"\n\s*?\n", value.strip("\n")) if block.strip()]
    return "".join(formula(block) if block[0] == " " else f"<p>{text(block)}</p>\n" for block in blocks)


def number(value: object) -> str:
    """A number to four digits, all of them on hover; in a text, comparisons and powers of ten as printed."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        short = f"{value:.0f}" if 1e4 <= abs(value) < 1e6 else f"{value or 0:.4g}"
        return f'<data value="{value!r}" title="{value!r}">{number(short)}</data>'
    html = escape(str(value)).replace("&gt;=", "≥").replace("&lt;=", "≤")
    html = html.replace(" ", "&nbsp;") if len(html) < 16 else html
    html = SCIENTIFIC.sub(lambda m: f"{m[1]}&nbsp;×&nbsp;10<sup>{int(m[2])}</sup>", html)
    html = re.sub(r"(?<![\d.])1&nbsp;×&nbsp;(?=10<sup>)", "", html)
    return re.sub(r"(?<![\w.])-(?=[\d.])", "−", html)


def name(value: str) -> str:
    """A name of code, which may be broken after its underscores."""
    return escape(value).replace("_", "_<wbr>")


def pairs(facts: Mapping[str, object]) -> str:
    """Facts by name, as a list of definitions."""
    rows = (f"<div><dt>{name(k)}</dt><dd>{escape(as_json(v))}</dd></div>" for k, v in facts.items())
    return f"<dl>{''.join(rows)}</dl>" if facts else ""


def as_json(value: object) -> str:
    """A value as JSON, with lists of plain values on one line; a text as it is."""
    if isinstance(value, str):
        return value
    # No string in JSON holds a line break, so none is changed.
    lines = json.dumps(value, indent=2, ensure_ascii=False)
    return re.sub(r"(,?)\n\s*(?=[^][{}]*\])", lambda m: m[1] and ", ", lines)


def preformatted(value: str, label: str) -> str:
    """A text whose line breaks count, in a region that a keyboard can scroll."""
    return f'<pre tabindex="0" role="region" aria-label="{escape(label)}">{escape(value)}</pre>'


# One symbol of a formula: a power or an index (in brackets or not), d before a variable, a word, or anything else.
SYMBOL = re.compile(
    r"(?P<raised>[\^_])(?P<group>[({])|(?P<level>[\^_])(?P<index>[-−+]?\w+|[*′†ᵀ]+)"
    r"|(?P<source>\[[a-z_]+\d{4}[^\]]*\])|\bd(?P<of>[A-Za-zα-ωΑ-Ω])(?![a-zα-ω])|(?P<word>[^\W\d_]+)|(?P<other>.)",
    re.DOTALL,
)


def formula(block: str) -> str:
    """An indented block of formulas, typeset: variables slanted, powers raised, indices lowered; long lines wrap."""
    lines = [line.strip() for line in block.strip("\n").split("\n")]
    body = "".join(f'<span class="line">{typeset(line)}</span>' for line in lines)
    return f'<p class="formula" role="math" aria-label="{escape("; ".join(lines))}">{body}</p>\n'


def typeset(line: str) -> str:
    """One line of a formula."""
    html, at = "", 0
    while at < len(line):
        token = SYMBOL.match(line, at)
        assert token is not None  # `other` is any character
        at = token.end()
        if token["raised"]:
            inside, at = _balanced(line, at, token["group"])
            html += _leveled(token["raised"], typeset(inside))
        elif token["level"]:
            html += _leveled(token["level"], typeset(token["index"]))
        elif token["source"]:
            html += f"<small>{escape(token['source'])}</small>"
        elif token["of"]:
            html += f"d<i>{escape(token['of'])}</i>"
        elif token["word"]:
            html += _word(token["word"])
        else:
            html += escape(token["other"].replace("-", "−"))
    return re.sub(r" {3,}", '<span class="gap"> </span>', html)


def _word(word: str) -> str:
    """A single letter is a variable, with its accents and raised letters; a longer word is a name or prose."""
    letters = re.sub(r"[^A-Za-zα-ωΑ-Ω]", "", word)
    return f"<i>{escape(word)}</i>" if len(letters) == 1 else escape(word)


def _leveled(mark: str, html: str) -> str:
    return f"<sup>{html}</sup>" if mark == "^" else f"<sub>{html}</sub>"


def _balanced(line: str, at: int, opening: str) -> tuple[str, int]:
    """The text up to the bracket that closes the one before `at`, and the position behind that bracket."""
    closing, depth = {"(": ")", "{": "}"}[opening], 1
    for end in range(at, len(line)):
        depth += (line[end] == opening) - (line[end] == closing)
        if depth == 0:
            return line[at:end], end + 1
    return line[at:], len(line)
