"""The bibliography: keys to readable entries."""

from __future__ import annotations

import functools
import re
from importlib import resources

from .._foundation.errors import UnknownName


@functools.cache
def entries() -> dict[str, dict[str, str]]:
    """All fields of all entries of references.bib, by key."""
    text = resources.files("festina").joinpath("references.bib").read_text(encoding="utf-8")
    entries_as_text = re.findall(r"@\w+\{(\w+),(.*?)\n\}", text, flags=re.DOTALL)
    return {
        key: {k: v.replace("{", "").replace("}", "") for k, v in re.findall(r"(\w+) = \{(.*)\}", body)}
        for key, body in entries_as_text
    }


def formatted(key: str) -> str:
    """One line for a person: authors, year, title, where."""
    if key not in entries():
        raise UnknownName.among("reference", key, entries())
    entry = entries()[key]
    authors = ", ".join(name.split(",")[0] for name in entry["author"].split(" and "))
    where = next((entry[k] for k in ("journal", "booktitle", "howpublished") if k in entry), "")
    return f"{authors} ({entry['year']}). {entry['title']}. {where}."


def link(key: str) -> str:
    """The address of a publication, by its DOI, its number at arXiv or its page; empty if it has none."""
    entry = entries()[key]
    if "doi" in entry:
        return f"https://doi.org/{entry['doi']}"
    return f"https://arxiv.org/abs/{entry['eprint']}" if "eprint" in entry else entry.get("url", "")
