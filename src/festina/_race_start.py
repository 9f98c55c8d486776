"""Where a gated network starts in the bases of its race."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._errors import BadInput
from ._graph import Graph
from ._linalg import FAINT, NOTHING, SAME, unit_of
from ._noun import is_traced, noun
from ._precision import in_double
from ._race import Race, race
from ._riccati import staircase
from ._starts import basis
from ._task import Task

DECOUPLED = 1e-6  # a start that is along the bases but for this share of each mode


@noun
class Layers:
    """The start of a race: b (edge, mode), and the basis of every node on the two sides of every edge."""

    begun: Any
    into: Any  # per edge: basis of the node that it leaves
    out: Any  # per edge: basis of the node that it enters
    defect: Any  # per component: largest part of its layers that is not along the bases
    derived: Any  # per component: whether it starts from what random layers grow from


def layers(found: Race, graph: Graph, weights: Any) -> Layers:
    """Where a start is in the bases of a race.

    A component that is not along its bases, but is one path of two layers, starts from where small random layers
    seem to start: ½|W₁v + W₂ᵀu| in either layer, without what modes of larger S(p) use of the hidden layer.
    """
    xp = jnp if is_traced(weights) else np
    # In units of the largest weight: squares of what is small would be 0.
    unit = unit_of(xp.max(xp.stack([xp.max(xp.abs(w)) for w in weights])), xp)
    weights = [w / unit for w in weights]
    width = found.strengths.shape[1]
    begun = [xp.zeros(width)] * len(weights)
    into, out = ([xp.zeros((w.shape[side], width)) for w in weights] for side in (1, 0))
    defects, derived = [], []
    for number, members in found.components.items():
        own = tuple(dict.fromkeys(k for p in members for k in found.moments.paths[p].edges))
        ends = {node: basis for (at, node), basis in found.nodes.items() if at == number}
        at_nodes, strengths, defect = _along(xp, graph, own, ends, weights)
        bases = [(at_nodes[graph.edges[k][0]], at_nodes[graph.edges[k][1]]) for k in own]
        off = defect > DECOUPLED
        random = len(members) == 1 and len(own) == 2
        if random and (is_traced(off) or off):
            hidden, sizes = effective_layers(xp, found, members[0], weights)
            middle = xp.where(off, hidden, bases[0][1])
            bases = [(bases[0][0], middle), (middle, bases[1][1])]
            strengths = [xp.where(off, sizes, b) for b in strengths]
        for k, b, (below, above) in zip(own, strengths, bases, strict=True):
            begun[k], into[k], out[k] = b, below, above
        defects.append(defect)
        derived.append(off if random else False)
    return Layers(unit * xp.stack(begun), tuple(into), tuple(out), xp.stack(defects), xp.asarray(derived))


def _along(
    xp: Any, graph: Graph, edges: Sequence[int], ends: dict[str, Any], weights: Sequence[Any]
) -> tuple[dict[str, Any], list[Any], Any]:
    """Bases at all nodes of a component, strengths of its edges, and what its layers have besides, relative.

    The basis of a hidden node is where the strongest edge below carries each mode, or else what edges above read.
    """
    order = [node for node in graph.order if any(node in graph.edges[k] for k in edges)]
    below, above = dict(ends), dict(ends)
    for node in order:
        if node not in ends:
            below[node] = _strongest(
                xp, [weights[k] @ below[graph.edges[k][0]] for k in edges if graph.edges[k][1] == node]
            )
    for node in reversed(order):
        if node not in ends:
            above[node] = _strongest(
                xp, [weights[k].T @ above[graph.edges[k][1]] for k in edges if graph.edges[k][0] == node]
            )
    at_nodes = {node: xp.where(xp.any(below[node] != 0, axis=0), below[node], above[node]) for node in order}
    strengths, rests = [], []
    for k in edges:
        into, out = (at_nodes[node] for node in graph.edges[k])
        b = xp.einsum("om,oi,im->m", out, weights[k], into)
        size = xp.linalg.norm(weights[k])
        # A mode that can pass is measured against itself, since it grows.
        passes = xp.any(into != 0, axis=0) & xp.any(out != 0, axis=0)
        scale = xp.maximum(xp.abs(b), xp.where(size > 0, xp.where(passes, FAINT, 1.0) * size, 1.0))
        rests += [
            xp.max(xp.linalg.norm(rest, axis=0) / scale)
            for rest in (weights[k] @ into - out * b, weights[k].T @ out - into * b)
        ]
        strengths.append(b)
    # Hidden directions of different modes must not overlap.
    hidden = [basis for node, basis in at_nodes.items() if node not in ends]
    rests += [xp.max(xp.abs(xp.triu(basis.T @ basis, 1))) for basis in hidden]
    return at_nodes, strengths, xp.max(xp.stack(rests))


def _strongest(xp: Any, candidates: Sequence[Any]) -> Any:
    """Of several (size, mode), the longest column of each mode, at unit length; 0 where all are rounding."""
    stacked = xp.stack(candidates)
    squares = xp.sum(stacked**2, axis=1)
    best = xp.argmax(squares, axis=0)
    columns = xp.take_along_axis(stacked, best[None, None, :], axis=0)[0]
    square = xp.max(squares, axis=0)
    live = square > 1e-28 * xp.max(square)
    return xp.where(live, columns / xp.sqrt(xp.where(live, square, 1.0)), 0.0)


_staircase = in_double(staircase)


def effective_layers(xp: Any, found: Race, p: int, weights: Any) -> tuple[Any, Any]:
    """Hidden directions (hidden, mode) and strengths (mode) from which two small random layers seem to start."""
    first, last = (weights[k] for k in found.moments.paths[p].edges)
    values = found.strengths[p]
    order = np.argsort(-values, kind="stable")
    rows = (first @ found.right[p] + last.T @ found.left[p]).T[order]
    stairs, pivots, basis = _staircase(rows)
    drops = -np.diff(values[order]) > SAME * np.max(values)
    level = xp.asarray(np.concatenate([[0], np.cumsum(drops)]))
    own = xp.where((pivots >= 0) & (level[:, None] <= level[xp.maximum(pivots, 0)]), stairs, 0.0)
    carries = values[order] > NOTHING * np.max(values)  # others never grow
    square = xp.where(carries, xp.sum(own**2, axis=1), 0.0)
    live = square > 0
    length = xp.sqrt(xp.where(live, square, 1.0))
    back = np.argsort(order)
    hidden = xp.where(live[:, None], (own @ basis) / length[:, None], 0.0)[back].T
    return hidden, xp.where(live, length / 2, 0.0)[back]


def decoupled(key: Any, net: Any, task: Task, strength: Any) -> tuple[Any, ...]:
    """Weights of a gated net along the bases of its race, with `strength` for every edge or for each."""
    if not hasattr(net, "moments"):
        raise BadInput(
            f"init Decoupled with {net!r}",
            "a gated network, whose paths have moments",
            "use nets.Gated, or inits.Aligned with a deep linear network",
        )
    shapes, graph = net.shapes(task.d_in, task.d_out), net.graph
    if strength.ndim == 1 and strength.shape[0] != len(shapes):
        raise BadInput(
            f"strength has {strength.shape[0]} values",
            f"one number, or one for each of the {len(shapes)} edges of the net",
            "match the number of edges: len(net.edges)",
        )
    found = race(net, task)
    count, component = found.strengths.shape[1], {}
    for p in found.open:
        component |= dict.fromkeys(found.moments.paths[p].edges, found.component[p])
    keys = jax.random.split(key, len(graph.hidden) + 1)
    hidden = {node: basis(k, graph.size[node], count) for k, node in zip(keys, graph.hidden, strict=False)}
    sizes = jnp.broadcast_to(strength, (len(shapes),))
    weights = []
    for k, (source, target) in enumerate(graph.edges):
        if k in component:
            into, out = (hidden.get(n, found.nodes.get((component[k], n))) for n in (source, target))
            weights.append(sizes[k] * (out @ into.T))
        else:
            weights.append(jnp.zeros(shapes[k]))
    return tuple(weights)


def drawn(setup: Any, seed: Any) -> Any:
    """The start; where the numbers of the init alone are traced, drawn from the concrete task and net.

    A gated net is bound to a concrete task, and `Setup.weights` hands a traced init a traced task.
    """
    if is_traced(setup.init) and not is_traced(setup.task, setup.net, seed):
        return setup.init.draw(jax.random.key(seed), setup.net, setup.for_init)
    return setup.weights(seed)
