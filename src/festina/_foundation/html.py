"""What notebooks show of an object: plain HTML tables, in which every text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

CELL = "text-align:left;vertical-align:top;white-space:normal"
GOOD, BAD = "#1c6b58", "#b0231b"


def table(rows: Iterable[Sequence[object]], heads: Sequence[str] = (), caption: str = "") -> str:
    """A table of texts; an entry that is `Html` goes in as it is."""
    head = "".join(f'<th style="{CELL}">{escape(text)}</th>' for text in heads)
    lines = ("".join(f'<td style="{CELL}">{_shown(cell)}</td>' for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    title = f'<caption style="caption-side:top;text-align:left">{escape(caption)}</caption>' if caption else ""
    return f"<table>{title}{f'<thead><tr>{head}</tr></thead>' if heads else ''}<tbody>{body}</tbody></table>"


class Html(str):
    """A text that is HTML already."""


def mark(holds: bool) -> Html:
    """✓ or ✗, in colour."""
    return Html(f'<span style="color:{GOOD if holds else BAD}">{"✓" if holds else "✗"}</span>')


def folded(summary: str, body: str, *, is_open: bool = False) -> str:
    """A part that opens at a click."""
    return f"<details{' open' * is_open}><summary>{summary}</summary>{body}</details>"


def of_lines(text: str) -> str:
    """A text of lines as a table: the first is its caption, the others are split at their first wide gap."""
    caption, *lines = text.splitlines()
    return table([re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in lines], (), caption)


def _shown(cell: object) -> str:
    return cell if isinstance(cell, Html) else escape(str(cell))
