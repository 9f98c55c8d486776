"""Predictions for every pathway of a candidate before training, from second moments alone.

The strength of a mode of two balanced layers grows at the rate 2s until the mode is learned. A pathway in parallel with
one that is always open grows on the raw target until that one has learned the mode with similar inputs, and on the
residual target after that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ..._formulas.modes import NOTHING
from ..._foundation.arrays import AnyArray
from ...nets.base import Net
from ...nets.gated.paths import PathMoments
from ...tasks.base import Task

Vector = Float[np.ndarray, " column"]


class Phase(NamedTuple):
    """A part of learning: s of the mode that ends it, s at which the pathway grows meanwhile, and how long it lasts."""

    ending: float
    growing: float
    duration: float


@dataclasses.dataclass(frozen=True)
class Pathway:
    """A pathway of a candidate: its mode, and when it is learned."""

    candidate: str
    name: str
    always_open: bool
    s_raw: float
    s_residual: float  # on what pathways that are always open leave; NaN without any
    variance: float
    head_start: float
    pathway_time: float
    phases: tuple[Phase, ...]


class _Neighbours(NamedTuple):
    """A pathway p with the moments of its candidate, the always-open pathways in parallel with it, and its start."""

    moments: PathMoments
    p: int
    competitors: Sequence[int]
    start: float
    columns: Mapping[str, tuple[int, ...]]  # the columns of the inputs that each source reads


def pathways_of(candidate: str, net: Net, task: Task, scale: float) -> list[Pathway]:
    """All pathways that some sample opens, from layers of this standard deviation."""
    moments, columns = net.moments(task), net.columns(task.d_in, task.d_out)[0]
    assert net.graph is not None  # a candidate has paths
    size = net.graph.size
    always = [p for p in range(len(moments.paths)) if np.all(moments.openings[p] == 1)]
    pathways = []
    for p, path in enumerate(moments.paths):
        if not moments.openings[p].any():
            continue
        start = scale**2 * size[path.nodes[1]] / 2 if len(path.edges) == 2 else np.nan
        competitors = [a for a in always if moments.paths[a].target == path.target and p not in always]
        neighbours = _Neighbours(moments, p, competitors, start, columns)
        pathway = _with_competitors(neighbours) if competitors else _alone(neighbours)
        pathways.append(dataclasses.replace(pathway, candidate=candidate, name=str(path), always_open=p in always))
    return pathways


def _alone(here: _Neighbours) -> Pathway:
    """A pathway that no always-open pathway competes with."""
    _, s, right = _strongest(here.moments.cov_yx[here.p])
    variance = float(right @ here.moments.cov_x[here.p, here.p] @ right)
    time = _half_time(s, variance, here.start)
    return Pathway("", "", False, s, np.nan, variance, 0.0, time, (Phase(s, s, time),))


def _with_competitors(here: _Neighbours) -> Pathway:
    """A pathway in parallel with always-open ones: it grows on the raw target first, and on the residual later."""
    (moments, p, competitors), start = here[:3], here.start
    raw, cov_x = moments.cov_yx[p], moments.cov_x
    explained = np.hstack([moments.cov_yx[a] for a in competitors])
    shared = np.block([[cov_x[a, b] for b in competitors] for a in competitors])
    residual = raw - explained @ np.linalg.pinv(shared, hermitian=True) @ np.vstack([cov_x[a, p] for a in competitors])
    direction, s, right = _strongest(residual)
    pull = raw @ right
    s_on_raw = float(np.linalg.norm(pull))
    cosine = float(direction @ pull / s_on_raw) if s_on_raw > 0 else 0.0
    variance = float(right @ cov_x[p, p] @ right)
    learned, faster = _learned_by_others(right, here)
    head = 2 * (s_on_raw - s) * learned + 2 * np.log(max((1 + cosine) / 2, 1e-300))
    learns = s > NOTHING * s_on_raw and variance > 0 and start > 0
    time = learned + max(0.0, np.log(s / variance / start) - head) / (2 * s) if learns else np.inf
    phases = Phase(faster, s_on_raw, learned), Phase(s, s, np.inf)
    return Pathway("", "", False, _strongest(raw)[1], s, variance, head, time, phases)


def _learned_by_others(right: Vector, here: _Neighbours) -> tuple[float, float]:
    """When an always-open pathway has learned its mode with inputs most similar to those of p; s of that mode."""
    moments = here.moments
    columns = list(here.columns[moments.paths[here.p].source])
    highest_likeness, when, strength = 0.0, 0.0, 0.0
    for a in here.competitors:
        source = list(here.columns[moments.paths[a].source])
        _, values, modes = np.linalg.svd(moments.cov_yx[a], full_matrices=False)
        spread = np.zeros(1 + max([*source, *columns]))
        spread[columns] = right
        likeness = np.abs(modes @ spread[source])
        k = int(np.argmax(likeness))
        if likeness[k] > highest_likeness and values[k] > 0:
            highest_likeness, strength = float(likeness[k]), float(values[k])
            when = _half_time(strength, modes[k] @ moments.cov_x[a, a] @ modes[k], here.start)
    return when, strength


def _half_time(s: float, variance: float, start: float) -> float:
    """When a mode of two balanced layers reaches half of its target s/variance. [jarvis2025, eq. 7]"""
    if not (s > 0 and start > 0):
        return np.inf
    return float(np.log(max(s / (variance * start) - 1, 1.0)) / (2 * s))


def _strongest(matrix: Float[AnyArray, "row column"]) -> tuple[Vector, float, Vector]:
    """The strongest mode of moments: its left vector, s and its right vector."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return left[:, 0], float(values[0]), right[0]


def in_steps(time: float, phases: Sequence[Phase], lr: float) -> float:
    """A time of gradient flow in steps of gradient descent, each of which grows a mode by ln(1 + lr s), not by lr s.

    Every phase therefore lasts longer in steps. If the pathway grows more or less in it than under the flow, the next
    phase makes up for the difference.
    """
    if not np.isfinite(time):
        return np.inf
    steps, missing = 0.0, 0.0
    for ending, growing, duration in phases:
        spent = min(time, duration)
        longer = spent * ending * lr / np.log1p(lr * ending) if ending > 0 else spent
        longer += missing * lr / np.log1p(lr * growing) if growing > 0 else 0.0
        missing = growing * spent - np.log1p(lr * growing) / lr * longer
        steps, time = steps + longer / lr, time - spent
        if time <= 0:
            break
    return float(steps)
