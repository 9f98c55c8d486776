"""Which columns of x the input nodes of a graph read, and which columns of y its output nodes write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from ..._foundation.checks import whole
from ..._foundation.errors import BadInput, shown
from .graph import Graph

Argument = Literal["inputs", "outputs"]
Stated = tuple[tuple[str, tuple[int, ...] | None], ...]  # (node, its columns, None for those that are left)


def stated_names(columns: object, argument: Argument) -> tuple[str, ...] | None:
    """The names of the nodes that `inputs` or `outputs` list."""
    if columns is None:
        return None
    pairs = columns.items() if isinstance(columns, Mapping) else columns
    try:
        return tuple(name for name, _ in pairs)  # pyright: ignore[reportGeneralTypeIssues]
    except (TypeError, ValueError):
        raise BadInput(
            f"{argument} = {shown(columns)}", "{node: columns}", f'give {argument}={{"x": [0, 1, 2]}}'
        ) from None


def stated_columns(stated: object, graph: Graph, argument: Argument) -> Stated | None:
    """`inputs` or `outputs` as a tuple of (node, columns), with columns of the right number."""
    if stated is None:
        return None
    pairs = stated.items() if isinstance(stated, Mapping) else stated
    return tuple((name, _checked(name, columns, graph, argument)) for name, columns in pairs)  # pyright: ignore


def _checked(name: str, columns: object, graph: Graph, argument: Argument) -> tuple[int, ...] | None:
    if columns is None:
        return None
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise BadInput(f"{argument} of node {name!r}: {shown(columns)}", "numbers of columns", "give range(8), or None")
    numbers = tuple(whole(c, f"{argument} of node {name!r}", least=0) for c in columns)  # pyright: ignore
    size = graph.size[name]
    if size is None:
        raise BadInput(
            f"node {name!r} of size None with columns of its own",
            "a size for it, or all columns",
            f"give nodes={{{name!r}: {len(numbers)}, …}}",
        )
    if len(numbers) != size or len(set(numbers)) != len(numbers):
        raise BadInput(
            f"{argument} of node {name!r}: {len(set(numbers))} different columns",
            f"as many as the node has units, {size}",
            "change the size of the node, or its columns",
        )
    return numbers


def dealt_columns(stated: Stated | None, graph: Graph, count: int, argument: Argument) -> dict[str, tuple[int, ...]]:
    """The columns of every input or output node among `count` columns; unless stated they are dealt out by size."""
    names = graph.inputs if argument == "inputs" else graph.outputs
    given, used, dealt = dict(stated or ()), 0, {}
    for name in names:
        size, columns = graph.size[name], given.get(name)
        if columns is None:
            first = 0 if size is None else used
            columns = tuple(range(first, first + (count if size is None else size)))
            used += size or 0
        if max(columns) >= count:
            kind = "x" if argument == "inputs" else "y"
            raise BadInput(
                f"{argument[:-1]} node {name!r} of {len(columns)} units on columns {min(columns)} … {max(columns)}",
                f"columns 0 … {count - 1} of {kind}: the task has {count}",
                f"change the size of the node, or say which columns it has with {argument}={{{name!r}: [0, 1, …]}}",
            )
        dealt[name] = columns
    # Inputs without columns of their own, and none that has them all: the sizes must add up.
    by_size = not any(given.values()) and all(graph.size[name] is not None for name in names)
    if argument == "inputs" and by_size and used < count:
        raise BadInput(
            f"input nodes {', '.join(map(repr, names))} of {used} units in all, and {count} columns of x",
            "as many units as columns",
            "change the sizes, or say which columns each has with inputs={name: columns}",
        )
    return dealt
