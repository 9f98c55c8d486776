"""Gatings of ReLU-like units on items in contexts: which samples and inputs every unit of a layer is open for.

A gating is a list of pathways, each a set of units with the same gates. All gatings are trained as `GatedUnits` of one
shape, and so with one compiled program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from ... import Task, nets, race
from ..._foundation.arrays import AnyArray
from ...theories.aligned_modes import mode
from ...theories.disjoint_pathways import effective_start
from .item_contexts import RATE

CONTEXTS, ITEMS = 3, 8
SAMPLES = CONTEXTS * ITEMS
TWIN, POINTS, MADE, SCATTERED = "two contexts", "single points", "random units", "random samples"
APART, MATCHED = f"{POINTS}, no common", f"{TWIN}, all inputs"


class Gating(NamedTuple):
    """Gates of all pathways, whether they see the context inputs, and whether a common pathway stands beside them."""

    gates: Bool[np.ndarray, "pathway sample"]
    sees_context: bool
    common: bool


def candidates(task: Task, draws: int, seed: int, thorough: bool) -> dict[str, Gating]:
    """Every gating that takes part in the race, by its name; `draws` of them have gates of random units."""
    labels = task.labels or {}
    context, item = (np.asarray(labels[name]) for name in ("context", "item"))
    one = np.array([context == k for k in range(CONTEXTS)])
    items = np.array([item == k for k in range(ITEMS)])
    points = np.eye(SAMPLES, dtype=bool)
    rng = np.random.default_rng(seed)
    gatings = {
        TWIN: Gating(~one, False, True),
        MATCHED: Gating(~one, True, True),
        "one context": Gating(one, False, True),
        "single points, items only": Gating(points, False, True),
        POINTS: Gating(points, True, True),
        "items": Gating(items, True, True),
    }
    if thorough:
        gatings |= {
            "one and two contexts": Gating(np.concatenate([one, ~one]), False, True),
            SCATTERED: Gating(rng.permuted(~one, axis=1), False, True),
        }
    for k in range(draws):
        by_units = task.x @ rng.normal(size=(task.d_in, SAMPLES)) > 0
        gatings[MADE if k == 0 else f"{MADE}, draw {k + 1}"] = Gating(by_units.T[by_units.any(axis=0)], True, True)
    alone = (POINTS, MADE, TWIN, "one context", "items") if thorough else (POINTS, MADE)
    return gatings | {f"{name}, no common": Gating(gatings[name].gates, True, False) for name in alone}


def given_gates(gating: Gating, widths: tuple[int, int]) -> nets.GatedUnits:
    """The layer of units of a gating; `widths` are those of the common pathway and of all others together."""
    gates, sees_context, common = gating
    every = np.concatenate([np.ones((int(common), SAMPLES)), gates])
    units = _widths(gates, common, widths)
    sees = np.ones((len(every), ITEMS + CONTEXTS))
    if not sees_context:
        sees[int(common) :, ITEMS:] = 0
    return nets.GatedUnits(np.repeat(every, units, axis=0).T, np.repeat(sees, units, axis=0))


def _widths(gates: np.ndarray, common: bool, widths: tuple[int, int]) -> list[int]:
    """Units of the common pathway, if there is one, and of every other: as equal as can be."""
    shared = widths[1] if common else sum(widths)
    return [widths[0]] * common + [len(part) for part in np.array_split(np.arange(shared), len(gates))]


def as_pathways(gating: Gating, common: int, others: int) -> list[dict[str, Any]]:
    """A gating with a common pathway as a list for `nets.Gated.pathways`."""
    gates, sees_context, _ = gating
    sees = None if sees_context else tuple(range(ITEMS))
    widths = _widths(gates, True, (common, others))[1:]
    pathways = [{"on": gate.astype(float), "sees": sees, "width": n} for gate, n in zip(gates, widths, strict=True)]
    return [{"name": "common", "width": common}, *pathways]


def least_loss(task: Task, net: nets.GatedUnits) -> float:
    """The least loss of any weights: that of the best linear map of gated inputs."""
    kinds = np.unique(np.concatenate([net.on.T, np.asarray(net.sees)], axis=1), axis=0)
    z = np.concatenate([kind[:SAMPLES, None] * task.x * kind[SAMPLES:] for kind in kinds], axis=1)
    left = task.y - z @ np.linalg.lstsq(z, task.y, rcond=None)[0]
    return 0.5 * float(np.mean(np.sum(left**2, axis=1)))


def one_mode_each(
    task: Task, times: Float[AnyArray, " time"], units: int, scale: float, rate: float
) -> Float[np.ndarray, " time"]:
    """The loss of a network with one pathway per point and no common pathway.

    Each pathway has one mode; steps of finite size lower its s to ln(1 + lr s)/lr.
    """
    x, y = np.linalg.norm(task.x, axis=1), np.linalg.norm(task.y, axis=1)
    s, d = x * y / SAMPLES, x**2 / SAMPLES
    slowed = np.log1p(rate * s) / rate
    learned = mode(times, singular_value=slowed, variance=d * slowed / s, start=effective_start(units, scale)) * d / s
    return 0.5 * np.mean((y * (1 - learned)) ** 2, axis=-1)


def raced_epochs(
    task: Task, chosen: Mapping[str, Gating], common: int, others: int, scale: float, rate: float
) -> dict[str, float]:
    """Epochs until the slowest pathway of each gating has learned its strongest mode, as `race` predicts them."""
    pathways = {name: as_pathways(gating, common, others) for name, gating in chosen.items()}
    # Only the times of single pathways are needed, so the loss curve may end at once.
    times = race(task, pathways, scale=scale, lr=rate, until=rate, check=False)
    of = times.of.values
    return {name: float(times.pathway_time[of == name].max()) / (RATE * SAMPLES) for name in pathways}
