"""What this site has beside Sphinx and MyST, one module for each: roles, citations, figures, gallery, API, maths."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

from . import api, citations, drawn, gallery, offline, roles


def setup(app: Sphinx) -> dict[str, Any]:
    for part in (roles, citations, drawn, gallery, api, offline):
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
