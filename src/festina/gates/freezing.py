"""The frozen twin: a gated linear network with a few gates that stay as they are, trained beside the ReLU network."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._errors import BadInput
from .._setup import Setup, Task
from .._simulate import simulate
from .._trajectory import Trajectory
from ..inits import Given
from ..nets.gated import Gated
from .comparing import compare
from .finding import Found, find
from .recording import recording

CLOSE = 1.25  # an error within this factor of the smallest counts as small
SEEN = ("loss", "outputs", "similarity")  # what a twin is compared by


@dataclasses.dataclass(frozen=True)
class Frozen:
    """A trained twin with gates that stay, and how far it is from the network that they were found in.

    `errors` is the table of `gates.compare`: distances of losses (`mean`, `raw`, `shift`), of outputs over time
    (`output_gap`, `output_mean_square`) and the agreement of hidden geometries (`geometry`). `error` is the one number
    by which twins are chosen: the mean square difference of outputs over samples, features, times and seeds.
    """

    found: tuple[Found, ...]  # of each hidden layer
    setup: Setup
    trajectory: Trajectory
    errors: Any

    @property
    def error(self) -> float:
        return float(self.errors.output_mean_square.mean())

    @property
    def net(self) -> Gated:
        return self.setup.net

    def __repr__(self) -> str:
        gates = " → ".join(", ".join(found.names) for found in self.found)
        table = self.errors.isel(candidate=0)
        return (
            f"Frozen({gates}: mean distance of losses {float(table['mean']):.3g} of the first loss, "
            f"largest {float(table.raw):.3g}; outputs {float(table.output_gap[-1]):.3g} at the end, "
            f"hidden geometry {float(table.geometry[-1]):.3g})"
        )


def freeze(
    trained: Trajectory,
    found: Found | Sequence[Found] | None = None,
    task: Task | None = None,
    *,
    clusters: int | Sequence[int] | None = 4,
    method: str = "weighted",
    width: Any = "share",
    sees: Any = None,
    training: str = "joint",
    init: Any = None,
    progress: bool | None = None,
) -> Frozen:
    """Train a gated linear network with a few gates that stay, and compare it with the recorded ReLU network.

    Args:
        found: gates from `gates.find`, one `Found` for each hidden layer; None finds `clusters` in each by `method`.
        task: if given, it must be the one of the recording.
        width: units of each pathway: a number, one per pathway, or "share" (as many as the layer has, by share).
        sees: numbers of the columns of x that all pathways see; None: all.
        training: "joint" or, with one hidden layer, "sequential".
        init: the law of the twin's start; None takes that of the network.

    It is trained from the seeds, with the rule and at the times of the recording.
    """
    seen = recording(trained, least=2, task=task)
    founds = _of_every_layer(trained, found, clusters, method)
    law = seen.setup.init if init is None else init
    if isinstance(law, Given):
        raise BadInput("a network that started from Given weights", "a law for the twin's start", "give init=…")
    net = founds[0].net(width, sees=sees, training=training) if len(founds) == 1 else _layered(founds, width, sees)
    if len(founds) > 1 and training != "joint":
        raise BadInput(f"training = {training!r} with {len(founds)} hidden layers", '"joint"', "leave training out")
    setup = seen.setup.replace(net=net, init=law)
    twin = simulate(setup, [int(seed) for seed in seen.seeds], SEEN, progress=progress)
    return Frozen(founds, setup, twin, compare(_with_outputs(trained, progress), {"frozen twin": twin}))


def elbow(
    trained: Trajectory,
    clusters: Iterable[int] = range(1, 8),
    method: str = "weighted",
    *,
    layer: int = 1,
    width: Any = "share",
    sees: Any = None,
    **options: Any,
) -> Any:
    """How close frozen twins with 1, 2, … gates come to a network of one hidden layer; an `xarray.Dataset`.

    `error` (clusters) is the mean square difference of outputs, `pathways` the number of different gates that are on
    for some sample. attrs["chosen"] is the smallest number whose error is within 25 % of the smallest of all. `options`
    are those of `find`.
    """
    import xarray

    if len(recording(trained).layers) > 1:
        raise BadInput(
            "an elbow for a network of several hidden layers", "one hidden layer", "choose clusters for each layer"
        )
    # The network itself need not be trained again for every number of gates.
    reference = _with_outputs(trained, False)
    counts = list(clusters)
    twins = [
        freeze(reference, find(trained, k, method, layer=layer, **options), width=width, sees=sees, progress=False)
        for k in counts
    ]
    errors = np.array([twin.error for twin in twins])
    table = xarray.Dataset(
        {
            "error": ("clusters", errors),
            "pathways": ("clusters", [len(twin.found[0].pathways()) for twin in twins]),
        },
        coords={"clusters": counts},
    )
    return table.assign_attrs(chosen=int(counts[int(np.argmax(errors <= CLOSE * errors.min()))]), method=method)


def _of_every_layer(trained: Trajectory, found: Any, clusters: Any, method: str) -> tuple[Found, ...]:
    layers = recording(trained).layers
    if found is None:
        counts = clusters if isinstance(clusters, Sequence) else [clusters] * len(layers)
        if len(counts) != len(layers):
            raise BadInput(f"clusters = {clusters}", f"one number, or one for each of {len(layers)} layers", "mend it")
        return tuple(find(trained, k, method, layer=layer) for k, layer in zip(counts, layers, strict=True))
    founds = (found,) if isinstance(found, Found) else tuple(found)
    if [one.layer for one in founds] != list(layers):
        raise BadInput(
            f"gates of the hidden layers {[one.layer for one in founds]}",
            f"gates of each layer: {list(layers)}",
            "find them one by one: [gates.find(trained, layer=1), gates.find(trained, layer=2)]",
        )
    return founds


def _layered(founds: Sequence[Found], width: Any, sees: Any) -> Gated:
    """Nodes for the gates of every layer, and an edge wherever two of them are on for one sample."""
    columns = None if sees is None else tuple(sees)
    levels = [
        {f"layer {found.layer}: {pathway['name']}": pathway for pathway in found.pathways(width)} for found in founds
    ]
    nodes = {name: pathway["width"] for level in levels for name, pathway in level.items()}
    gates = {name: pathway["on"] for level in levels for name, pathway in level.items()}
    passes = functools.reduce(np.multiply, [np.any([p["on"] for p in level.values()], axis=0) for level in levels])
    edges = [("inputs", name) for name in levels[0]]
    for before, after in itertools.pairwise(levels):
        edges += [(one, other) for one in before for other in after if np.any(gates[one] * gates[other] * passes)]
    edges += [(name, "outputs") for name in levels[-1]]
    return Gated(
        {"inputs": None if columns is None else len(columns), **nodes, "outputs": None},
        edges,
        node_gates=gates,
        inputs=None if columns is None else {"inputs": columns},
    )


def _with_outputs(trained: Trajectory, progress: bool | None) -> Trajectory:
    """The recorded network with all that a twin is compared by; trained again if that was not recorded."""
    if all(name in trained for name in SEEN):
        return trained
    seeds = [int(seed) for seed in trained.coordinates["seed"]]
    return simulate(trained.setup, seeds, (*SEEN, "gates"), progress=progress)
