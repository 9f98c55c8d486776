"""Pictures of gated networks: layers from left to right, and by each gate the samples for which it is open."""

from __future__ import annotations

import dataclasses
import itertools
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _gating
from ._checks import instance
from ._graph import Graph
from ._plot import COLOURS, new_figure, styled
from ._task import Task

INK, QUIET, OFF = "0.15", "0.5", "0.9"
ON = {"node": COLOURS[0], "edge": COLOURS[1]}
APART = 3.4  # between layers; one row is 1
BOX = (1.5, 0.52)  # width and height of a node
STRIP = 0.13  # height of a gate's strip
LETTERS = 17  # of a line in a node


@dataclasses.dataclass(frozen=True)
class Canvas:
    """The axes, where the nodes lie, and what the gates are drawn for."""

    axes: Any
    places: Mapping[Any, tuple[float, float]]  # of nodes, and of edges in the layers that they skip
    task: Task | None


def draw_graph(net: Any, task: Task | None = None, ax: Any = None) -> Any:
    """The graph of a gated net on `ax` (a new figure's if None); returns the Axes.

    With a task, the strip at a node or edge shows its gate for all samples in their order: dark where it is open,
    pale where it is closed, in shades between if it is real-valued, crossed if it is negative. A gate that changes in
    time has a strip for each of its stretches, the first at the top. Without a task, gates are said in words.
    """
    if ax is not None:
        from matplotlib.axes import Axes

        instance(ax, "ax", Axes, "give one of matplotlib.pyplot.subplots(), or leave ax out")
    graph = net.graph
    places = _places(graph)
    across, up = (np.ptp([place[k] for place in places.values()]) for k in (0, 1))
    with styled():
        if ax is None:
            ax = new_figure(width=max(3.6, 1.25 + 0.78 * across), height=max(2.2, 1.2 + 0.62 * up))[1][0, 0]
        canvas = Canvas(ax, places, task)
        for number in range(len(graph.edges)):
            _draw_edge(canvas, net, number)
        for name, size in graph.sizes:
            _draw_node(canvas, net, name, size)
        _finish(canvas, net)
    return ax


def _places(graph: Graph) -> dict[Any, tuple[float, float]]:
    """Layers by the longest way from an input, outputs last; in a layer, near the mean height of the neighbours.

    An edge that skips layers has a place in each of them, (number, layer), so that it passes between the nodes.
    """
    step = dict(graph.steps)
    step |= {name: graph.depth for name in graph.outputs if not graph.out_of(name)}
    layers: list[list[Any]] = [[name for name, _ in graph.sizes if step[name] == k] for k in range(graph.depth + 1)]
    near: dict[Any, list[Any]] = {name: [] for name in step}
    for number, (source, target) in enumerate(graph.edges):
        passed = [(number, layer) for layer in range(step[source] + 1, step[target])]
        near |= {spot: [] for spot in passed}
        for spot in passed:
            layers[spot[1]].append(spot)
        for one, other in itertools.pairwise([source, *passed, target]):
            near[one].append(other)
            near[other].append(one)
    height = {spot: place for layer in layers for spot, place in _stacked(layer).items()}
    for sweep in range(8):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            # Python's sort keeps the order of the listing where means are equal.
            layer.sort(key=lambda spot: -np.mean([height[other] for other in near[spot]]))
            height |= _stacked(layer)
    tallest = max(height[layer[0]] for layer in layers)
    place = {}
    for number, layer in enumerate(layers):
        # Short layers spread over the height, so that edges run level.
        stretch = min(1.6, (tallest + 0.5) / (height[layer[0]] + 0.5))
        place |= {spot: (APART * number, stretch * height[spot]) for spot in layer}
    return place


def _stacked(layer: list[Any]) -> dict[Any, float]:
    """Heights around 0 of what lies in a layer, first on top; nodes need a row, edges half of one."""
    rows = [1.0 if isinstance(spot, str) else 0.5 for spot in layer]
    ends = np.cumsum(rows)
    return {spot: float(ends[-1] / 2 - end + row / 2) for spot, end, row in zip(layer, ends, rows, strict=True)}


def _draw_node(canvas: Canvas, net: Any, name: str, size: Any) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y = canvas.places[name]
    width, height = BOX
    ends = name in (*net.graph.inputs, *net.graph.outputs)
    box = FancyBboxPatch(
        (x - width / 2, y - height / 2), width, height, boxstyle="round,pad=0.02,rounding_size=0.2",
        fc="0.96" if ends else "white", ec=INK, lw=1.0, zorder=3,
    )  # fmt: skip
    canvas.axes.add_patch(box)
    units = _units(net, name, size)
    label = textwrap.shorten(name, LETTERS, placeholder="…")
    canvas.axes.text(x, y + 0.1, label, ha="center", va="center", fontsize=8.5, color=INK, zorder=4)
    canvas.axes.text(x, y - 0.14, units, ha="center", va="center", fontsize=6.5, color=QUIET, zorder=4)
    gate = net.node_gates.get(name)
    if gate is not None:
        _draw_gate(canvas, gate, f"node {name!r}", (x, y - height / 2 - 0.02), width, "node")


def _units(net: Any, name: str, size: Any) -> str:
    if size is None:
        return "all columns"
    return f"{size} unit{'' if size == 1 else 's'}"


def _draw_edge(canvas: Canvas, net: Any, number: int) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    source, target = net.edges[number]
    ends = [canvas.places[source], canvas.places[target]]
    ends = [(ends[0][0] + BOX[0] / 2 + 0.03, ends[0][1]), (ends[1][0] - BOX[0] / 2 - 0.05, ends[1][1])]
    passed = sorted(place for spot, place in canvas.places.items() if isinstance(spot, tuple) and spot[0] == number)
    same = [k for k, edge in enumerate(net.edges) if edge == net.edges[number]]
    # Parallel edges between neighbouring layers bow to both sides; others have places of their own.
    bow = 0.0 if passed else 0.6 * (same.index(number) - (len(same) - 1) / 2)
    pieces = [_level_curve(a, b, bow) for a, b in itertools.pairwise([ends[0], *passed, ends[1]])]
    points = np.concatenate([pieces[0][:1], *(piece[1:] for piece in pieces)])
    curve = Path(points, [Path.MOVETO, *[Path.CURVE4] * (len(points) - 1)])
    arrow = FancyArrowPatch(path=curve, arrowstyle="-|>", mutation_scale=8, lw=0.9, color=QUIET, zorder=1)
    canvas.axes.add_patch(arrow)
    gate = net.edge_gates[number]
    if gate is None:
        return
    if passed:
        x, y = passed[len(passed) // 2]
    else:
        # Edges that share an end part early: strips lie where they are apart.
        share = 0.6 if len(net.graph.into(target)) <= len(net.graph.out_of(source)) else 0.4
        weights = np.array([(1 - share) ** 3, 3 * share * (1 - share) ** 2, 3 * share**2 * (1 - share), share**3])
        x, y = weights @ pieces[0]
    _draw_gate(canvas, gate, f"edge {net.graph.edge_name(number)}", (x, y + STRIP / 2 + 0.03), 0.6 * BOX[0], "edge")


def _level_curve(begin: tuple[float, float], end: tuple[float, float], bow: float) -> np.ndarray:
    """A cubic that leaves and arrives level; at its middle it is `bow` above the straight line."""
    (x0, y0), (x1, y1) = begin, end
    pull = 0.45 * (x1 - x0)
    return np.array([begin, (x0 + pull, y0 + bow / 0.75), (x1 - pull, y1 + bow / 0.75), end])


def _draw_gate(canvas: Canvas, gate: Any, where: str, top: tuple[float, float], width: float, kind: str) -> None:
    """Strips below the point `top`, one per stretch of time; words without a task."""
    if canvas.task is None:
        words = textwrap.fill(_gating.described(gate), LETTERS + 7)
        # Words of an edge lie on it, those of a node below it; neither covers a node.
        place = {"va": "center", "y": top[1]} if kind == "edge" else {"va": "top", "y": top[1] - 0.03}
        canvas.axes.text(
            top[0], s=words, **place, ha="center", fontsize=6.5, color=ON[kind], zorder=2, linespacing=0.95,
            bbox={"fc": "white", "ec": "none", "pad": 0.6},
        )  # fmt: skip
        return
    times = (0.0, *_gating.switch_times([gate]))
    for row, time in enumerate(times):
        values = _gating.values(_gating.at_time(gate, time), canvas.task, where)
        y = top[1] - STRIP * (row + 1) - 0.03 * (row + 1)
        _draw_strip(canvas, np.broadcast_to(values, (canvas.task.samples or 1,)), (top[0] - width / 2, y), width, kind)
        if len(times) > 1:
            # Beside the strips: right of a node's, left of an edge's, whose target may be near on the right.
            side, align = (1, "left") if kind == "node" else (-1, "right")
            x = top[0] + side * (width / 2 + 0.04)
            note = f"{'from ' if row else ''}{time:g}"
            canvas.axes.text(x, y + STRIP / 2, note, fontsize=5.5, ha=align, va="center", color=QUIET, zorder=5)


def _draw_strip(canvas: Canvas, values: np.ndarray, corner: tuple[float, float], width: float, kind: str) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    on, off = np.array(to_rgb(ON[kind])), np.array(to_rgb(OFF))
    shades = np.abs(values) / max(1.0, np.abs(values).max())
    (x, y), each = corner, width / len(values)
    edges = np.flatnonzero(np.diff(values)) + 1  # one rectangle for a run of equal samples: files stay small
    for begin, end in zip([0, *edges], [*edges, len(values)], strict=True):
        shade, negative = shades[begin], values[begin] < 0
        canvas.axes.add_patch(
            Rectangle(
                (x + each * begin, y), each * (end - begin), STRIP, fc=tuple(off + shade * (on - off)), ec="none",
                hatch="xxxxxx" if negative else None, hatch_linewidth=0.4, zorder=5,
            )
        )  # fmt: skip
    canvas.axes.add_patch(Rectangle((x, y), width, STRIP, fc="none", ec="white", lw=1.6, zorder=4.9))
    canvas.axes.add_patch(Rectangle((x, y), width, STRIP, fc="none", ec=QUIET, lw=0.4, zorder=6))


def _finish(canvas: Canvas, net: Any) -> None:
    """Limits, and a line that says how to read the strips."""
    spots = np.array(list(canvas.places.values()))
    (left, low), (right, high) = spots.min(axis=0), spots.max(axis=0)
    canvas.axes.set(
        xlim=(left - BOX[0] / 2 - 0.15, right + BOX[0] / 2 + 0.15), ylim=(low - 0.85, high + 0.45), aspect="equal"
    )
    canvas.axes.set_axis_off()
    words = textwrap.fill(_caption(canvas.task, net), max(40, int(13 * (right - left + BOX[0]))))
    canvas.axes.text(0.0, -0.01, words, transform=canvas.axes.transAxes, fontsize=7.5, color=QUIET, va="top")


def _caption(task: Task | None, net: Any) -> str:
    gates = [*net.node_gates.values(), *(gate for gate in net.edge_gates if gate is not None)]
    said = [] if net.ranks is None else ["trained in sequence"]
    if gates and task is None:
        said.insert(0, "a gate is open where it says; without words it is always open")
    elif gates:
        order = f", by {', '.join(task.labels)}" if task is not None and task.labels else ""
        said.insert(0, f"strips: dark for the samples that a gate lets through, in their order{order}")
        parts = [part for gate in gates for part in (gate["gates"] if _gating.is_schedule(gate) else (gate,))]
        numbers = {value for part in parts if not isinstance(part, Mapping) for value in np.ravel(part).tolist()}
        if numbers - {0.0, 1.0}:
            said.insert(1, "shades between" + (", crossed if negative" if min(numbers) < 0 else ""))
    return "; ".join(said)
