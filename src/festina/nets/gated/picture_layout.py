"""Where the nodes of a gated network lie in its picture, and its edges in the layers that they skip."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from .graph import Graph

Spot: TypeAlias = str | tuple[int, int]  # a node, or (edge, layer) of an edge that skips the layer
Point: TypeAlias = tuple[float, float]
APART = 3.4  # between layers; one row is 1


def places_of(graph: Graph) -> dict[Spot, Point]:
    """Layers by the longest way from an input, outputs last; in a layer, near the mean height of its neighbours.

    An edge that skips layers has a place in each of them, (number, layer), so that it passes between the nodes.
    """
    step = dict(graph.steps)
    step |= {name: graph.depth for name in graph.outputs if not graph.out_of(name)}
    layers: list[list[Spot]] = [[name for name, _ in graph.sizes if step[name] == k] for k in range(graph.depth + 1)]
    neighbours: dict[Spot, list[Spot]] = {name: [] for name in step}
    for number, (source, target) in enumerate(graph.edges):
        passed = [(number, layer) for layer in range(step[source] + 1, step[target])]
        neighbours |= {spot: [] for spot in passed}
        for spot in passed:
            layers[spot[1]].append(spot)
        for before, after in itertools.pairwise([source, *passed, target]):
            neighbours[before].append(after)
            neighbours[after].append(before)
    height = {spot: place for layer in layers for spot, place in _stacked(layer).items()}
    for sweep in range(8):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            # Python's sort keeps the order of the listing where means are equal.
            layer.sort(key=lambda spot: -np.mean([height[other] for other in neighbours[spot]]))
            height |= _stacked(layer)
    tallest = max(height[layer[0]] for layer in layers)
    place: dict[Spot, Point] = {}
    for number, layer in enumerate(layers):
        # Short layers spread over the height, so that edges run level.
        stretch = min(1.6, (tallest + 0.5) / (height[layer[0]] + 0.5))
        place |= {spot: (APART * number, stretch * height[spot]) for spot in layer}
    return place


def _stacked(layer: Sequence[Spot]) -> dict[Spot, float]:
    """Heights around 0 of what lies in a layer, first on top; nodes need a row, edges half of one."""
    rows = [1.0 if isinstance(spot, str) else 0.5 for spot in layer]
    ends = np.cumsum(rows)
    return {spot: float(ends[-1] / 2 - end + row / 2) for spot, end, row in zip(layer, ends, rows, strict=True)}
