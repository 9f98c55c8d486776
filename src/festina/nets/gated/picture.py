"""Pictures of gated networks: layers from left to right, and by each gate the samples for which it is open."""

from __future__ import annotations

import dataclasses
import itertools
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from jaxtyping import Float

from ..._figures.style import COLOURS, GREY, INK, new_figure, styled
from ..._foundation.checks import instance
from ...tasks.base import Task
from .gates import Gate
from .picture_layout import Point, Spot, places_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .net import Gated

Kind: TypeAlias = Literal["node", "edge"]
OFF = "0.9"
ON = {"node": COLOURS[0], "edge": COLOURS[1]}
BOX = (1.5, 0.52)  # width and height of a node
STRIP = 0.13  # height of a gate's strip
LETTERS = 17  # of a line in a node


@dataclasses.dataclass(frozen=True)
class Canvas:
    """The axes, where the nodes lie, and what the gates are drawn for."""

    axes: Axes
    places: Mapping[Spot, Point]
    task: Task | None


def draw_graph(net: Gated, task: Task | None = None, ax: Axes | None = None) -> Figure:
    """The graph of a gated net on `ax` (a new figure's if None); returns the figure.

    With a task, the strip at a node or edge shows its gate for all samples in their order: dark where it is open,
    pale where it is closed, in shades between if it is real-valued, crossed if it is negative. A gate that changes in
    time has a strip for each of its gates, the first at the top. Without a task, words describe the gates.
    """
    if ax is not None:
        from matplotlib.axes import Axes

        instance(ax, "ax", Axes, "give one of matplotlib.pyplot.subplots(), or leave ax out")
    graph = net.graph
    places = places_of(graph)
    across, up = (np.ptp([place[k] for place in places.values()]) for k in (0, 1))
    with styled():
        width, height = max(3.6, 1.25 + 0.78 * across), max(2.2, 1.2 + 0.62 * up)
        axes = new_figure(width=width, height=height)[1][0, 0] if ax is None else ax
        canvas = Canvas(axes, places, task)
        for number in range(len(graph.edges)):
            _draw_edge(canvas, net, number)
        for name, size in graph.sizes:
            _draw_node(canvas, net, name, size)
        _finish(canvas, net)
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def _draw_node(canvas: Canvas, net: Gated, name: str, size: int | None) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y = canvas.places[name]
    width, height = BOX
    ends = name in (*net.graph.inputs, *net.graph.outputs)
    corner, shape = (x - width / 2, y - height / 2), "round,pad=0.02,rounding_size=0.2"
    fill = "0.96" if ends else "white"
    canvas.axes.add_patch(FancyBboxPatch(corner, width, height, boxstyle=shape, fc=fill, ec=INK, lw=1.0, zorder=3))
    units = "all columns" if size is None else f"{size} unit{'' if size == 1 else 's'}"
    label = textwrap.shorten(name, LETTERS, placeholder="…")
    canvas.axes.text(x, y + 0.1, label, ha="center", va="center", fontsize=8.5, color=INK, zorder=4)
    canvas.axes.text(x, y - 0.14, units, ha="center", va="center", fontsize=6.5, color=GREY, zorder=4)
    gate = net.gates_at.get(name)
    if gate is not None:
        _draw_gate(canvas, gate, net.where(name), (x, y - height / 2 - 0.02), width, "node")


def _draw_edge(canvas: Canvas, net: Gated, number: int) -> None:
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
    arrow = FancyArrowPatch(path=curve, arrowstyle="-|>", mutation_scale=8, lw=0.9, color=GREY, zorder=1)
    canvas.axes.add_patch(arrow)
    gate = net.gates_at.get(number)
    if gate is None:
        return
    if passed:
        x, y = passed[len(passed) // 2]
    else:
        # Edges that share an end part early: strips lie where they are apart.
        share = 0.6 if len(net.graph.into(target)) <= len(net.graph.out_of(source)) else 0.4
        weights = np.array([(1 - share) ** 3, 3 * share * (1 - share) ** 2, 3 * share**2 * (1 - share), share**3])
        x, y = weights @ pieces[0]
    _draw_gate(canvas, gate, net.where(number), (x, y + STRIP / 2 + 0.03), 0.6 * BOX[0], "edge")


def _level_curve(begin: Point, end: Point, bow: float) -> Float[np.ndarray, "4 2"]:
    """A cubic that leaves and arrives level; at its middle it is `bow` above the straight line."""
    (x0, y0), (x1, y1) = begin, end
    pull = 0.45 * (x1 - x0)
    return np.array([begin, (x0 + pull, y0 + bow / 0.75), (x1 - pull, y1 + bow / 0.75), end])


def _draw_gate(canvas: Canvas, gate: Gate, where: str, top: Point, width: float, kind: Kind) -> None:
    """Strips below the point `top`, one for each gate of a schedule; words without a task."""
    if canvas.task is None:
        words = textwrap.fill(str(gate), LETTERS + 7)
        # Words of an edge lie on it, those of a node below it; neither covers a node.
        y, align = (top[1], "center") if kind == "edge" else (top[1] - 0.03, "top")
        style = {"fontsize": 6.5, "color": ON[kind], "zorder": 2, "linespacing": 0.95}
        box = {"fc": "white", "ec": "none", "pad": 0.6}
        canvas.axes.text(top[0], y, words, va=align, ha="center", bbox=box, **style)
        return
    for row, (time, piece) in enumerate(gate.pieces):
        values = piece.values(canvas.task, where)
        y = top[1] - STRIP * (row + 1) - 0.03 * (row + 1)
        _draw_strip(canvas, np.broadcast_to(values, (canvas.task.samples or 1,)), (top[0] - width / 2, y), width, kind)
        if len(gate.pieces) > 1:
            # Beside the strips: right of a node's, left of an edge's, whose target may be near on the right.
            side, align = (1, "left") if kind == "node" else (-1, "right")
            x = top[0] + side * (width / 2 + 0.04)
            note = f"{'from ' if row else ''}{time:g}"
            canvas.axes.text(x, y + STRIP / 2, note, fontsize=5.5, ha=align, va="center", color=GREY, zorder=5)


def _draw_strip(canvas: Canvas, values: Float[np.ndarray, " sample"], corner: Point, width: float, kind: Kind) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    on, off = np.array(to_rgb(ON[kind])), np.array(to_rgb(OFF))
    shades = np.abs(values) / max(1.0, np.abs(values).max())
    (x, y), step = corner, width / len(values)
    edges = np.flatnonzero(np.diff(values)) + 1  # one rectangle for a run of equal samples: files stay small
    for begin, end in zip([0, *edges], [*edges, len(values)], strict=True):
        fill, hatch = tuple(off + shades[begin] * (on - off)), "xxxxxx" if values[begin] < 0 else None
        run = (x + step * begin, y), step * (end - begin), STRIP
        canvas.axes.add_patch(Rectangle(*run, fc=fill, ec="none", hatch=hatch, hatch_linewidth=0.4, zorder=5))
    canvas.axes.add_patch(Rectangle((x, y), width, STRIP, fc="none", ec="white", lw=1.6, zorder=4.9))
    canvas.axes.add_patch(Rectangle((x, y), width, STRIP, fc="none", ec=GREY, lw=0.4, zorder=6))


def _finish(canvas: Canvas, net: Gated) -> None:
    """Limits, and a line that says how to read the strips."""
    spots = np.array(list(canvas.places.values()))
    (left, low), (right, high) = spots.min(axis=0), spots.max(axis=0)
    canvas.axes.set(
        xlim=(left - BOX[0] / 2 - 0.15, right + BOX[0] / 2 + 0.15), ylim=(low - 0.85, high + 0.45), aspect="equal"
    )
    canvas.axes.set_axis_off()
    words = textwrap.fill(_caption(canvas.task, net), max(40, int(13 * (right - left + BOX[0]))))
    canvas.axes.text(0.0, -0.01, words, transform=canvas.axes.transAxes, fontsize=7.5, color=GREY, va="top")


def _caption(task: Task | None, net: Gated) -> str:
    """How to read the gates."""
    gates = net.gates_at.values()
    parts = [] if net.ranks is None else ["trained in sequence"]
    if gates and task is None:
        parts.insert(0, "a gate is open where it says; without words it is always open")
    elif gates:
        order = f", by {', '.join(task.labels)}" if task is not None and task.labels else ""
        parts.insert(0, f"strips: dark for the samples that a gate lets through, in their order{order}")
        numbers = {number for gate in gates for _, piece in gate.pieces for number in piece.numbers}
        if numbers - {0.0, 1.0}:
            parts.insert(1, "shades between" + (", crossed if negative" if min(numbers) < 0 else ""))
    return "; ".join(parts)
