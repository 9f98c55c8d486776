"""Citations: the key in [saxe2014, eq. 12] is a link to the page whose {bibliography} lists references.bib."""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from festina._reporting.references import entries, formatted, link

log = logging.getLogger(__name__)
PAGE = "bibliography"
# What stands alone or before a comma behind a bracket; a word without a year is a key if it is known.
CITED = re.compile(r"(?<=\[)([a-z]+(?:_[a-z]+)*(?:\d{4}[a-z]?)?)(?=[,\]])")
LITERAL = (nodes.literal, nodes.literal_block, nodes.reference, addnodes.pending_xref, nodes.math, nodes.math_block)


def is_citation(key: str) -> bool:
    """Whether a word in brackets is meant as a key."""
    return key in entries() or re.search(r"\d{4}", key) is not None


def anchor(key: str) -> str:
    return f"bib-{key.replace('_', '-')}"


class Citations(SphinxTransform):
    """Keys in texts become links."""

    default_priority = 760

    def apply(self, **options: object) -> None:
        for node in list(self.document.findall(nodes.Text)):
            if any(isinstance(parent, LITERAL) for parent in _parents(node)):
                continue
            pieces = CITED.split(str(node))
            if len(pieces) == 1 or not any(map(is_citation, pieces[1::2])):
                continue
            new: list[nodes.Node] = []
            for k, piece in enumerate(pieces):
                if k % 2 == 0 or not is_citation(piece):
                    new.append(nodes.Text(piece))
                elif piece not in entries():
                    log.warning("%r is no key of references.bib", piece, location=node.parent)
                else:
                    new.append(self._link(piece))
            node.parent.replace(node, [one for one in new if one.astext()])

    def _link(self, key: str) -> nodes.Node:
        label = nodes.inline("", key, classes=["cited"])
        return addnodes.pending_xref(
            "", label, refdomain="std", reftype="ref", reftarget=anchor(key), refexplicit=True,
            refdoc=self.env.docname, refwarn=True,
        )  # fmt: skip


class Bibliography(SphinxDirective):
    """All publications of references.bib, by key, each with a link to where it is published."""

    def run(self) -> list[nodes.Node]:
        found = nodes.definition_list(classes=["bibliography"])
        labels = self.env.domains["std"]
        for key in sorted(entries()):
            item = nodes.definition_list_item(ids=[anchor(key)])
            labels.labels[anchor(key)] = (self.env.docname, anchor(key), key)
            labels.anonlabels[anchor(key)] = (self.env.docname, anchor(key))
            words = nodes.paragraph("", "", nodes.Text(formatted(key)))
            if address := link(key):
                shown = address.removeprefix("https://").removeprefix("doi.org/")
                words += [nodes.Text(" "), nodes.reference("", shown, refuri=address, internal=False)]
            item += [nodes.term("", "", nodes.literal("", key)), nodes.definition("", words)]
            found += item
        return [found]


def linked_keys(html: str, address: str) -> str:
    """HTML with its citations linked; `address` is that of the bibliography."""

    def linked(found: re.Match[str]) -> str:
        key = found[1]
        return f'<a href="{address}#{anchor(key)}">{key}</a>' if key in entries() else key

    return CITED.sub(linked, html)


def _parents(node: nodes.Node) -> Iterator[nodes.Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def setup(app: Sphinx) -> None:
    app.add_transform(Citations)
    app.add_directive("bibliography", Bibliography)
