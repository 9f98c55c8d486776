"""Docstrings as MyST: `code`, **strong**, lists, Args and Examples as festina writes them; nothing else is markup.

Code that is a public name, `solve` or `festina.tasks.hierarchy`, becomes a link to it.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator

from .public import target_of

# A code span; strong or emphasised words; or a sign that MyST would take for markup.
INLINE = re.compile(
    r"(?P<code>`+[^`]+`+)"
    r"|(?P<strong>\*\*\S(?:[^*]*\S)?\*\*)"
    r"|(?P<em>(?<![\w*(])\*\w(?:[^*]*\w)?\*(?!\w))"
    r"|(?P<sign>[*$<\\{])",
    re.DOTALL,
)
SECTION = re.compile(r"(Args|Returns|Raises|Attributes|Examples?|Symbols|Convention):")
TITLES = {"Args": "Arguments", "Examples": "Example"}


def to_myst(docstring: str) -> list[str]:
    """The lines of a docstring as MyST."""
    return [line for block in _blocks(docstring) for line in (*block, "")]


def words(value: str) -> str:
    """A text whose only markup is `code`, **strong** and *emphasis*."""
    return INLINE.sub(lambda found: "\\" + found[0] if found["sign"] else found[0], value)


def _linked(value: str) -> str:
    """`words`, with links to public names."""

    def role(found: re.Match[str]) -> str:
        name = re.sub(r"^(fs|festina)\.|\(\)$", "", found[1])
        return f"{{festina}}`{name}`" if target_of(name) else found[0]

    return re.sub(r"(?<!`)`([\w.]+(?:\(\))?)`(?!`)", role, words(value))


def _blocks(docstring: str) -> Iterator[list[str]]:
    lines = docstring.strip().split("\n")
    at = 0
    while at < len(lines):
        end = at + 1
        title = SECTION.fullmatch(lines[at].strip())
        if not lines[at].strip():
            pass
        elif title and lines[at][:1] != " ":
            while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" ")):
                end += 1
            body = textwrap.dedent("\n".join(lines[at + 1 : end])).strip("\n")
            yield [f":::{{rubric}} {TITLES.get(title[1], title[1])}", ":::"]
            yield from [_definitions(body)] if title[1] in ("Args", "Raises", "Attributes") else _blocks(body)
        elif lines[at].lstrip().startswith(">>>"):
            while end < len(lines) and lines[end].strip():
                end += 1
            yield ["```pycon", *textwrap.dedent("\n".join(lines[at:end])).split("\n"), "```"]
        elif lines[at].startswith("    "):
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield _code(textwrap.dedent("\n".join(lines[at:end])).strip("\n"))
        else:
            while end < len(lines) and lines[end].strip():
                end += 1
            yield _linked("\n".join(map(_plain_start, lines[at:end]))).split("\n")
        at = end


def _definitions(body: str) -> list[str]:
    """Names with what each stands for, as a list of definitions."""
    entries = re.split(r"\n(?=\S)", body)
    lines: list[str] = []
    for entry in entries:
        name, _, said = entry.partition(":")
        first, *rest = _linked(textwrap.dedent(" ".join(said.split()))).split("\n")
        lines += [f"`{name}`", f": {first}", *(f"  {line}" for line in rest), ""]
    return lines


def _code(block: str) -> list[str]:
    try:
        ast.parse(block)
        language = "python"
    except SyntaxError:
        language = "text"
    return [f"```{language}", *block.split("\n"), "```"]


def _plain_start(line: str) -> str:
    """A line that begins with a sign of comparison or addition is no quotation and no list."""
    return re.sub(r"^(\s*)([>+#])", r"\1\\\2", line)
