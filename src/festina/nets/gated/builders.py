"""Graphs of common gated networks: pathways side by side, contexts, routing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

import numpy as np

from ..._foundation import checks
from ..._foundation.checks import choice, truth, whole
from ..._foundation.errors import BadInput, UnknownName, shown
from ..base import widths
from .gates import read_gate

TRAININGS = ("joint", "sequential")
PARTS = ("on", "width", "sees", "writes", "begins", "rank", "name")


def pathways_as_graph(pathways: Iterable[Any], training: str) -> dict[str, Any]:
    """The arguments of Gated for chains of layers side by side; see `Gated.pathways`."""
    choice(training, "training", TRAININGS)
    do = 'give [{"on": {"context": [0]}, "width": 8}]'
    given = checks.listed(pathways, "pathways", "a list of pathways", do)
    nodes: dict[str, Any] = {}
    columns: dict[str, dict[str, Any]] = {"inputs": {}, "outputs": {}}
    edges, node_gates, edge_gates, ranks = [], {}, {}, []
    for number, pathway in enumerate(given):
        part = _checked_pathway(pathway, number)
        name = part["name"]
        source = _end(nodes, columns["inputs"], part["sees"], "x", "inputs")
        target = _end(nodes, columns["outputs"], part["writes"], "y", "outputs")
        layers = part["width"]
        hidden = [name if len(layers) == 1 else f"{name} {k + 1}" for k in range(len(layers))]
        if twice := [node for node in hidden if node in nodes]:
            raise BadInput(f"two pathways with a node {twice[0]!r}", "a name for each pathway", "give another name=")
        nodes |= dict(zip(hidden, layers, strict=True))
        chain = [source, *hidden, target]
        gate = read_gate(part["on"], f"pathway {name!r}").delayed(part["begins"]).plain
        # One gate opens or closes the whole pathway: at its first hidden layer, or on its only edge.
        if hidden:
            node_gates[hidden[0]] = gate
        else:
            edge_gates[len(edges)] = gate
        edges += list(itertools.pairwise(chain))
        ranks += [part["rank"]] * (len(chain) - 1)
    return {
        "nodes": nodes,
        "edges": edges,
        "node_gates": node_gates,
        "edge_gates": edge_gates,
        **columns,
        "ranks": ranks if training == "sequential" else None,
    }


def _checked_pathway(pathway: object, number: int) -> dict[str, Any]:
    if isinstance(pathway, np.ndarray):
        pathway = {"on": pathway}
    if not isinstance(pathway, Mapping):
        raise BadInput(
            f"pathway {number} is {shown(pathway)}",
            "a dict",
            'give {"on": {"context": [0]}, "width": 8} for each pathway',
        )
    for key in pathway:
        if key not in PARTS:
            raise UnknownName.among("part of a pathway", key, PARTS)
    defaults = {"on": None, "width": 32, "sees": None, "writes": None, "begins": 0.0, "rank": min(number, 1)}
    given: dict[str, Any] = {**defaults, **pathway}
    return given | {
        "name": str(given.get("name") or f"pathway {number + 1}"),
        "width": widths(given["width"], "width"),
        "rank": whole(given["rank"], "rank", least=0),
    }


def _end(
    nodes: dict[str, int | None], known: dict[str, Any], columns: Iterable[int] | None, letter: str, argument: str
) -> str:
    """The input or output node that stands for these columns; pathways with the same columns share it."""
    if columns is None:
        nodes.setdefault(letter, None)
        known.setdefault(letter, None)
        return letter
    try:
        numbers = tuple(whole(column, f"{argument} of a pathway", least=0) for column in columns)
    except TypeError:
        numbers = ()
    if not numbers:
        raise BadInput(
            f"a pathway on columns {shown(columns)} of {letter}", "numbers of columns", "give range(8), or None"
        )
    for name, others in known.items():
        if others == numbers:
            return name
    run = numbers == tuple(range(numbers[0], numbers[0] + len(numbers)))
    name = f"{letter}[{numbers[0]}:{numbers[-1] + 1}]" if run else f"{letter}[{','.join(map(str, numbers))}]"
    nodes[name], known[name] = len(numbers), numbers
    return name


def context_pathways(
    subsets: object, contexts: int, items: int, width: object, common: bool, sees_context: bool, begins: float
) -> list[dict[str, Any]]:
    """The pathways of `Gated.contexts`."""
    contexts, items = whole(contexts, "contexts", least=2), whole(items, "items")
    common, sees_context = truth(common, "common"), truth(sees_context, "sees_context")
    pair = tuple(width) if isinstance(width, (tuple, list)) else (width, width)
    if len(pair) != 2:
        raise BadInput(f"width = {shown(width)}", "one width, or (common, others)", "give width=100 or (350, 117)")
    sees = None if sees_context else tuple(range(items))
    pathways: list[dict[str, Any]] = [{"name": "common", "width": pair[0]}] if common else []
    others = {"sees": sees, "width": pair[1], "begins": begins, "rank": 1}
    for subset in _subsets_of_contexts(subsets, contexts):
        name = f"context {'+'.join(map(str, subset))}"
        pathways.append({"name": name, "on": {"context": subset}, **others})
    return pathways


def _subsets_of_contexts(subsets: object, contexts: int) -> list[tuple[int, ...]]:
    """All subsets of the given sizes, and those that are listed one by one."""
    given: object = subsets.tolist() if hasattr(subsets, "tolist") else subsets  # pyright: ignore[reportAttributeAccessIssue]
    several = _is_list(given)
    chosen: list[tuple[int, ...]] = []
    for entry in given if several else [given]:
        if _is_list(entry):
            chosen.append(_checked_subset(tuple(entry), contexts))
        elif _is_whole(entry) and 1 <= entry <= contexts:
            chosen += itertools.combinations(range(contexts), int(entry))
        else:
            text = f"subsets = {shown(subsets)}" + (f", with {shown(entry)} among them" if several else "")
            needed = f"sizes from 1 to {contexts}, the number of contexts, or a list of subsets"
            raise BadInput(text, needed, "give subsets=2, (1, 2) or [(0, 1)]")
    if not chosen:
        raise BadInput(
            f"subsets = {shown(subsets)}", f"sizes from 1 to {contexts}", "give subsets=2, (1, 2) or [(0, 1)]"
        )
    return chosen


def _checked_subset(subset: tuple[Any, ...], contexts: int) -> tuple[int, ...]:
    known = all(_is_whole(context) and 0 <= context < contexts for context in subset)
    if not subset or not known or len(set(subset)) != len(subset):
        needed = f"different contexts among 0 … {contexts - 1}"
        raise BadInput(f"subset {shown(subset)} of {contexts} contexts", needed, "change subsets=, or raise contexts=")
    return tuple(sorted(int(context) for context in subset))


def _is_list(value: object) -> TypeGuard[Iterable[Any]]:
    """Whether a value is iterable, and neither a text nor a dict."""
    return isinstance(value, Iterable) and not isinstance(value, (str, Mapping))


def _is_whole(number: object) -> TypeGuard[int]:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)


def routing_graph(inputs: int, outputs: int, trained: int, items: int, features: int, hidden: int) -> dict[str, Any]:
    """The arguments of Gated for encoders, a shared layer and decoders; see `Gated.routing`."""
    inputs, outputs = whole(inputs, "inputs"), whole(outputs, "outputs")
    items, features, hidden = whole(items, "items"), whole(features, "features"), whole(hidden, "hidden")
    if whole(trained, "trained") > outputs:
        raise BadInput(f"trained = {trained} of {outputs} output domains", f"at most {outputs}", "lower trained")
    ins, outs = [f"in {i + 1}" for i in range(inputs)], [f"out {o + 1}" for o in range(outputs)]
    return {
        "nodes": dict.fromkeys(ins, items) | {"encoded": hidden, "shared": hidden} | dict.fromkeys(outs, features),
        "edges": [*((name, "encoded") for name in ins), ("encoded", "shared"), *(("shared", name) for name in outs)],
        "node_gates": {name: {"source": (i,)} for i, name in enumerate(ins)}
        | {name: {"target": (o,)} for o, name in enumerate(outs)},
    }
