"""What is wrong with a figure as a reader sees it on the page: text that is too small or hidden, axes without words."""

from __future__ import annotations

import itertools

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.table import Table
from matplotlib.text import Text

COLUMN = 850  # pixels of the page's column; a wider figure is shrunk to it
LEAST = 9  # pixels of the smallest text


def problems(figure: Figure) -> list[str]:
    """One line for each thing that is wrong."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    undrawn = _undrawn(figure)
    texts = [text for text in figure.findobj(Text) if _is_seen(text, undrawn)]
    return [
        *_small(figure, texts),
        *_overlapping(texts, renderer),
        *_hidden_data(figure, renderer),
        *_beyond_the_edge(figure, texts, renderer),
        *(f"panel {panel!r} has no {word}" for panel, word in _without_words(figure)),
        *("a table is drawn inside the figure" for _ in figure.findobj(Table)),
    ]


def _is_seen(text: Text, undrawn: set[int]) -> bool:
    owner = text.axes
    hidden = owner is not None and not owner.get_visible()
    return bool(text.get_visible() and text.get_text().strip() and not hidden and id(text) not in undrawn)


def _undrawn(figure: Figure) -> set[int]:
    """Tick labels that are kept but not drawn: those beyond the limits, and all of axes that are switched off."""
    undrawn = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            shown = [axis.label, axis.offsetText] if axes.axison and axes.get_visible() else []
            for tick in axis._update_ticks() if shown else ():
                shown += [label for label in (tick.label1, tick.label2) if label.get_visible()]
            undrawn |= {id(text) for text in axis.findobj(Text)} - {id(text) for text in shown}
    return undrawn


def _name(axes: Axes) -> str:
    return axes.get_title(loc="left") or axes.get_title() or axes.get_ylabel() or "?"


def _small(figure, texts):
    shrunk = min(1.0, COLUMN / (figure.get_figwidth() * 96))
    for text in texts:
        size = text.get_fontsize() * 96 / 72 * shrunk
        if size < LEAST - 0.01:
            yield f"{text.get_text()!r} is {size:.1f} pixels high on the page"


def _boxes(texts, renderer):
    """Texts with their boxes, a little smaller than their line height; the box of slanted text is larger than it."""
    for text in texts:
        if text.get_rotation() % 90 == 0:
            box = text.get_window_extent(renderer)
            yield text, box.shrunk(0.96, 0.8).translated(0.02 * box.width, 0.1 * box.height)


def _overlapping(texts, renderer):
    for (one, box), (other, second) in itertools.combinations(_boxes(texts, renderer), 2):
        if box.overlaps(second):
            yield f"{one.get_text()!r} and {other.get_text()!r} overlap"


def _hidden_data(figure, renderer):
    """Legends that stand on curves or dots."""
    for legend in figure.findobj(Legend):
        box = legend.get_window_extent(renderer)
        for axes in figure.axes:
            for drawn in (*axes.lines, *axes.collections):
                if drawn.get_visible() and _points_inside(drawn, axes, box):
                    yield f"the legend {[t.get_text() for t in legend.get_texts()]} stands on data"
                    break


def _points_inside(drawn, axes, box) -> bool:
    if hasattr(drawn, "get_xydata"):
        if drawn.get_transform() != axes.transData:
            return False
        points = np.asarray(drawn.get_xydata(), float)
    else:
        points = np.asarray(drawn.get_offsets(), float)
        if drawn.get_offset_transform() != axes.transData:
            return False
    points = points[np.isfinite(points).all(axis=1)] if len(points) else points
    if not len(points):
        return False
    seen = axes.transData.transform(points)
    if hasattr(drawn, "get_xydata") and drawn.get_linestyle() not in ("None", "none", "", " "):
        steps = np.linspace(0, 1, 20)[:, None, None]
        seen = (seen[:-1] + steps * (seen[1:] - seen[:-1])).reshape(-1, 2) if len(seen) > 1 else seen
    inside = axes.get_window_extent()
    shown = seen[(seen >= inside.min).all(axis=1) & (seen <= inside.max).all(axis=1)]
    return bool(((shown > box.min) & (shown < box.max)).all(axis=1).any())


def _beyond_the_edge(figure, texts, renderer):
    edge = figure.bbox
    for text, box in _boxes(texts, renderer):
        if box.x0 < edge.x0 - 1 or box.x1 > edge.x1 + 1 or box.y0 < edge.y0 - 1 or box.y1 > edge.y1 + 1:
            yield f"{text.get_text()!r} is cut at the edge of the figure"


def _without_words(figure):
    """Panels with ticks along an axis that has no label; names of entries (ticks of words) speak for themselves."""
    for axes in figure.axes:
        if not axes.axison or not axes.get_visible() or axes.get_label() == "<colorbar>":
            continue
        for word, axis, label in (
            ("x label", axes.xaxis, axes.get_xlabel()),
            ("y label", axes.yaxis, axes.get_ylabel()),
        ):
            ticks = [tick.get_text() for tick in axis.get_ticklabels() if tick.get_visible() and tick.get_text()]
            shared = any(
                other is not axes and other.get_shared_x_axes().joined(axes, other)
                if word[0] == "x"
                else other is not axes and other.get_shared_y_axes().joined(axes, other)
                for other in figure.axes
            )
            are_numbers = any(_is_number(tick) for tick in ticks)
            if ticks and are_numbers and not label and not shared:
                yield _name(axes), word


def _is_number(text: str) -> bool:
    try:
        float(text.replace("−", "-").replace("$\\mathdefault{", "").replace("}$", ""))
    except ValueError:
        return "mathdefault" in text
    return True
