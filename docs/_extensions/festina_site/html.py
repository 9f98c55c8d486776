"""HTML of the report page inside a page of the site."""

from __future__ import annotations

from docutils import nodes


def raw(html: str) -> nodes.raw:
    return nodes.raw("", html, format="html")


def of_report(html: str) -> nodes.raw:
    """Parts of the report page, which have its style inside of this frame."""
    return raw(f'<div class="report">{html}</div>')
