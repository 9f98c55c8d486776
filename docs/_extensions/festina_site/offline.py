"""What pages load comes from the site itself: MathJax from its package, and the style of the report page."""

from __future__ import annotations

import importlib.util
import re
import shutil
from importlib.resources import files
from pathlib import Path

from sphinx.application import Sphinx

PACKAGE = "sphinx-mathjax-offline"  # holds MathJax; its name is no identifier, so it is found and not imported


def mathjax(file: str) -> Path:
    """A file of MathJax as it was installed."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"{PACKAGE} is not installed; needed: MathJax; to do: pip install festina[docs]")
    return Path(spec.origin).parent / "static" / "mathjax" / file


def style() -> str:
    """The style of the report page, for what stands in a frame of class `report`."""
    written = files("festina._reporting.page").joinpath("page.css").read_text("utf-8")
    return f".report {{\n{re.sub(r'^', '  ', written, flags=re.MULTILINE)}\n}}\n"


def copy(app: Sphinx, error: Exception | None) -> None:
    if error is not None:
        return
    place = Path(app.outdir) / "_static"
    script = place / app.config.mathjax_path
    script.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(mathjax(script.name), script)
    (place / "report.css").write_text(style(), encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.connect("build-finished", copy)
