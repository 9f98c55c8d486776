"""What this site has beside Sphinx and MyST: roles, citations, equations, figures, gallery and API, a module each."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

from . import api, citations, drawn, equations, gallery, offline, roles


def setup(app: Sphinx) -> dict[str, Any]:
    for part in (roles, citations, equations, drawn, gallery, api, offline):
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
