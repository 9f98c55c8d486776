"""The API pages: {api} shows public names with their signatures, docstrings and members.

    ```{api} tasks
    ```

shows every name of `festina.tasks`; with names as its content it shows these. Every public name stands on these pages
exactly once, or the build warns.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from .docstrings import to_myst
from .public import kinds, places, public_names, value_of

log = logging.getLogger(__name__)


class Api(SphinxDirective):
    """Public names of a module; `festina` is the package itself."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        module = self.arguments[0]
        names = [line.strip() for line in self.content if line.strip()] or list(kinds()[module].__all__)
        prefix = "" if module == "festina" else f"{module}."
        shown = self.env.festina_shown = getattr(self.env, "festina_shown", {})
        lines = [f":::{{py:module}} festina.{module}", ":::"] if prefix else []
        for name in names:
            if f"{prefix}{name}" not in public_names():
                raise self.error(f"{prefix}{name} is no public name of festina")
            shown.setdefault(f"{prefix}{name}", []).append(self.env.docname)
            lines += documented(value_of(f"{prefix}{name}"), name, "festina" + f".{module}" * bool(prefix))
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=False)


def documented(value: Any, name: str, module: str) -> list[str]:
    """A function, class or constant as a directive of Sphinx's Python domain, in MyST."""
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, BaseException) else "class"
        head = f"{name}{signature(value)}" if _own_signature(value) else name
        body = [*to_myst(inspect.getdoc(value) or ""), *_members(value)]
    elif callable(value):
        kind, head, body = "function", f"{name}{signature(value)}", to_myst(inspect.getdoc(value) or "")
    else:
        kind, head, body = "data", name, [f"`{value!r}`"]
    return [f"::::::{{py:{kind}}} {head}", f":module: {module}", "", *body, "::::::", ""]


def signature(value: Any) -> str:
    """A signature with the types as they are written in the source."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "()"
    written = [_parameter(p) for p in found.parameters.values() if p.name not in ("self", "cls")]
    order = [p for p in found.parameters.values() if p.name not in ("self", "cls")]
    for k, parameter in enumerate(order):
        starred = any(p.kind is p.VAR_POSITIONAL for p in order)
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            written.insert(k, "*")
            break
    positional = [k for k, p in enumerate(order) if p.kind is p.POSITIONAL_ONLY]
    if positional:
        written.insert(positional[-1] + 1, "/")
    returned = "" if inspect.isclass(value) else _annotation(found.return_annotation, " -> ")
    return f"({', '.join(written)}){returned}"


def _parameter(parameter: inspect.Parameter) -> str:
    star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    typed = _annotation(parameter.annotation, ": ")
    default = "" if parameter.default is parameter.empty else f"{' = ' if typed else '='}{_shown(parameter.default)}"
    return f"{star}{parameter.name}{typed}{default}"


def _annotation(annotation: Any, before: str) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    written = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return before + " ".join(written.split())


def _shown(default: Any) -> str:
    written = repr(default)
    return "..." if written.startswith("<") else written


def _own_signature(value: type) -> bool:
    return value.__init__ is not object.__init__ and not issubclass(value, BaseException)


def _members(owner: type) -> Iterator[str]:
    """Public methods and properties with words of their own; those of private bases count as the class's own."""
    seen: set[str] = set()
    for base in owner.__mro__:
        if base is not owner and (base.__name__ in places() or not base.__module__.startswith("festina")):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            yield from _member(name, member)


def _member(name: str, member: Any) -> list[str]:
    bare = member.__func__ if isinstance(member, staticmethod | classmethod) else member
    is_property = isinstance(bare, property) or type(bare).__name__ == "cached_property"
    getter = (bare.fget if isinstance(bare, property) else bare.func) if is_property else bare
    # Words that are inherited stand at the contract.
    words = inspect.cleandoc(getter.__doc__ or "") if is_property or inspect.isfunction(bare) else ""
    if not words:
        return []
    if is_property:
        typed = _annotation(inspect.signature(getter).return_annotation, "")
        return [
            f":::::{{py:property}} {name}",
            *([f":type: {typed}"] if typed else []),
            "",
            *to_myst(words),
            ":::::",
            "",
        ]
    options = [f":{kind.__name__}:" for kind in (staticmethod, classmethod) if isinstance(member, kind)]
    return [f":::::{{py:method}} {name}{signature(bare)}", *options, "", *to_myst(words), ":::::", ""]


def link_types(app: Sphinx, env: BuildEnvironment, node: nodes.Element, content: nodes.Node) -> nodes.Node | None:
    """Types in signatures link to the public names that they are."""
    target = places().get(node.get("reftarget", "").rpartition(".")[2])
    if node.get("refdomain") != "py" or target is None or target == node["reftarget"]:
        return None
    return env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, content)


def check_names(app: Sphinx, env: BuildEnvironment) -> None:
    """Every public name stands on the API pages once."""
    shown = getattr(env, "festina_shown", {})
    for name in sorted(public_names()):
        if len(pages := shown.get(name, ())) != 1:
            where = f"twice or more: {', '.join(pages)}" if pages else "on no page"
            log.warning("the public name festina.%s is %s; docs/api/ shows each once", name, where)


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    shown = getattr(env, "festina_shown", {})
    env.festina_shown = {name: rest for name, pages in shown.items() if (rest := [p for p in pages if p != docname])}


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    shown = env.festina_shown = getattr(env, "festina_shown", {})
    for name, pages in getattr(other, "festina_shown", {}).items():
        shown.setdefault(name, []).extend(page for page in pages if page in docnames)


def setup(app: Sphinx) -> None:
    app.add_directive("api", Api)
    app.connect("missing-reference", link_types)
    app.connect("env-check-consistency", check_names)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
