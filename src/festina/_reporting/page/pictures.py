"""Figures in a page: SVG inline, with nothing in it that could act or load, and small pictures of figures."""

from __future__ import annotations

import base64
import io
import re
from html import escape
from pathlib import Path
from xml.etree import ElementTree

SVG_TAGS = re.compile(
    "svg|g|defs|path|use|rect|circle|ellipse|line|polyline|polygon|text|tspan|clipPath|mask|style|image|"
    "linearGradient|radialGradient|stop|pattern|symbol|marker|filter|feColorMatrix|feComposite"
)
THUMBNAIL = 300  # pixels wide


def inline(svg: str, owner: str, label: str) -> str:
    """A figure as SVG inside the page, its ids prefixed by its own so that figures do not clash."""
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        return f'<p class="note">The figure is not SVG that can be read: {escape(str(error))}.</p>'
    width, _ = root.attrib.pop("width", "100%"), root.attrib.pop("height", "")
    _adopt(root, owner)
    label = root.get("aria-label", label)
    root.attrib |= {"id": owner, "role": "img", "aria-label": label, "style": f"--width:{width}"}
    return ElementTree.tostring(root, "unicode")


def framed(picture: str, label: str, caption: str = "") -> str:
    """A picture with its caption, in a frame that a keyboard can scroll where it is wider than the screen."""
    words = f"<figcaption>{caption}</figcaption>" * bool(caption)
    frame = f'<div class="sheet" tabindex="0" role="region" aria-label="{escape(label)}">{picture}</div>'
    return f"<figure>{frame}{words}</figure>\n"


def thumbnail(picture: Path) -> str:
    """A PNG, made small, as the address of an image; empty where there is none."""
    from PIL import Image

    if not picture.is_file():
        return ""
    with Image.open(picture) as image:
        size = THUMBNAIL, round(image.height * THUMBNAIL / image.width)
        small = image.convert("RGB").resize(size, Image.Resampling.LANCZOS).quantize(64)
    content = io.BytesIO()
    small.save(content, "PNG", optimize=True)
    return _address(content.getvalue())


def data_address(picture: Path) -> str:
    """A PNG as the address of an image; empty where there is none."""
    return _address(picture.read_bytes()) if picture.is_file() else ""


def _address(content: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(content).decode()


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
