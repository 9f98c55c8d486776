"""The initial weights of a gated network in the bases of its paths.

Inputs and outputs have the bases of `race_bases`; hidden nodes get the vectors along which the layers carry their
modes. Every edge e then has a strength b_e for each mode, W_e ≈ Σ_a b_e,a u_a v_aᵀ, and `defect` measures the part of
the layer that is not of this form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from ..._formulas.modes import FAINT, NOTHING, SAME, unit_of
from ..._formulas.staircase import staircase
from ..._foundation.arrays import AnyArray, Number, Weights
from ..._foundation.checks import is_traced
from ..._foundation.nouns import noun
from ..._foundation.precision import in_double
from .graph import Graph
from .path_bases import PathBases

Basis: TypeAlias = Float[AnyArray, "unit mode"]
Modes: TypeAlias = Float[AnyArray, " mode"]
Layer: TypeAlias = Float[AnyArray, "out in"]
DECOUPLED = 1e-6  # a start is along the bases if no more than this share of any mode is not


@noun
class StartInBases:
    """The start of a race: the strengths of all edges, and the bases on their two sides."""

    strengths: Float[AnyArray, "edge mode"]  # b
    into: tuple[Basis, ...]  # per edge: basis of the node that it leaves
    out: tuple[Basis, ...]  # per edge: basis of the node that it enters
    defect: Float[AnyArray, " component"]  # largest part of its layers that is not along the bases
    derived: Bool[AnyArray, " component"]  # whether its start is the effective one of small random layers


def layers_in_bases(of_paths: PathBases, graph: Graph, weights: Weights) -> StartInBases:
    """The start of a race from these weights.

    A component that is not along its bases, but consists of one path of two layers, gets the effective start of small
    random layers: ½|W₁v + W₂ᵀu| in either layer, without the hidden directions that modes of larger S(p) use.
    """
    xp = jnp if is_traced(weights) else np
    # In units of the largest weight: squares of what is small would be 0.
    unit = unit_of(xp.max(xp.stack([xp.max(xp.abs(w)) for w in weights])), xp)
    weights = [w / unit for w in weights]
    width = of_paths.strengths.shape[1]
    strengths: list[Modes] = [xp.zeros(width)] * len(weights)
    into, out = ([xp.zeros((w.shape[side], width)) for w in weights] for side in (1, 0))
    defects, derived = [], []
    for number, members in of_paths.components.items():
        edges = tuple(dict.fromkeys(k for p in members for k in of_paths.moments.paths[p].edges))
        ends = {node: basis for (at, node), basis in of_paths.nodes.items() if at == number}
        at_nodes, sizes, defect = _along(xp, graph, edges, ends, weights)
        bases = [(at_nodes[graph.edges[k][0]], at_nodes[graph.edges[k][1]]) for k in edges]
        off = defect > DECOUPLED
        random = len(members) == 1 and len(edges) == 2
        if random and (is_traced(off) or off):
            hidden, grown = effective_layers(xp, of_paths, members[0], weights)
            middle = xp.where(off, hidden, bases[0][1])
            bases = [(bases[0][0], middle), (middle, bases[1][1])]
            sizes = [xp.where(off, grown, b) for b in sizes]
        for k, b, (below, above) in zip(edges, sizes, bases, strict=True):
            strengths[k], into[k], out[k] = b, below, above
        defects.append(defect)
        derived.append(off if random else False)
    return StartInBases(unit * xp.stack(strengths), tuple(into), tuple(out), xp.stack(defects), xp.asarray(derived))


def _along(
    xp: ModuleType, graph: Graph, edges: Sequence[int], ends: Mapping[str, Basis], weights: Sequence[Layer]
) -> tuple[dict[str, Basis], list[Modes], Number]:
    """Bases at all nodes of a component, strengths of its edges, and the relative size of what these leave out.

    The basis of a hidden node is the image of each mode under the strongest edge below; a mode that no edge below
    carries gets the direction that the strongest edge above reads.
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


def _strongest(xp: ModuleType, candidates: Sequence[Basis]) -> Basis:
    """For each mode the longest of several vectors, (size, mode) each, at unit length; 0 where all are rounding."""
    stacked = xp.stack(candidates)
    squares = xp.sum(stacked**2, axis=1)
    best = xp.argmax(squares, axis=0)
    columns = xp.take_along_axis(stacked, best[None, None, :], axis=0)[0]
    square = xp.max(squares, axis=0)
    live = square > 1e-28 * xp.max(square)
    return xp.where(live, columns / xp.sqrt(xp.where(live, square, 1.0)), 0.0)


_staircase = in_double(staircase)


def effective_layers(xp: ModuleType, of_paths: PathBases, p: int, weights: Sequence[Layer]) -> tuple[Basis, Modes]:
    """The hidden directions and effective initial strengths of the two small random layers of a path."""
    first, last = (weights[k] for k in of_paths.moments.paths[p].edges)
    values = of_paths.strengths[p]
    order = np.argsort(-values, kind="stable")
    rows = (first @ of_paths.right[p] + last.T @ of_paths.left[p]).T[order]
    stairs, pivots, basis = _staircase(rows)
    drops = -np.diff(values[order]) > SAME * np.max(values)
    level = xp.asarray(np.concatenate([[0], np.cumsum(drops)]))
    steps = xp.where((pivots >= 0) & (level[:, None] <= level[xp.maximum(pivots, 0)]), stairs, 0.0)
    carries = values[order] > NOTHING * np.max(values)  # others never grow
    square = xp.where(carries, xp.sum(steps**2, axis=1), 0.0)
    live = square > 0
    length = xp.sqrt(xp.where(live, square, 1.0))
    back = np.argsort(order)
    hidden = xp.where(live[:, None], (steps @ basis) / length[:, None], 0.0)[back].T
    return hidden, xp.where(live, length / 2, 0.0)[back]
