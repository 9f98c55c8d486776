"""freeze(): find gates in each hidden layer of a recorded network, and train the twin that keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .._foundation import checks
from .._foundation.checks import whole
from .._foundation.errors import BadInput, shown
from .._setup.trajectory import Trajectory
from ..inits.base import Init
from ..nets.gated.builders import TRAININGS
from ..tasks.base import Task
from .clusters import METHODS, Found
from .finding import find
from .frozen_twin import Frozen, checked_init, frozen_twin
from .recording import as_trained, recording


def freeze(
    trained: Trajectory,
    found: Found | Sequence[Found] | None = None,
    task: Task | None = None,
    *,
    clusters: int | Sequence[int] | None = 4,
    method: str = "weighted",
    width: int | Sequence[int] | str = "share",
    sees: Iterable[int] | None = None,
    training: str = "joint",
    init: Init | None = None,
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
    trained = as_trained(trained)
    network = recording(trained, least=2, task=task)
    network.need_rule()
    checks.choice(method, "method", METHODS)
    checks.choice(training, "training", TRAININGS)
    checks.truth_or_none(progress, "progress")
    checked_init(init)
    if found is not None:
        _checked_clusters(clusters, len(network.layers))
    gates = _of_every_layer(trained, found, clusters, method, task)
    return frozen_twin(trained, gates, task, width=width, sees=sees, training=training, init=init, progress=progress)


def _of_every_layer(
    trained: Trajectory, found: object, clusters: object, method: str, task: Task | None
) -> tuple[Found, ...]:
    """The gates of each hidden layer: those that were given, or those that are found now."""
    layers = recording(trained).layers
    if found is None:
        counts = _checked_clusters(clusters, len(layers))
        return tuple(find(trained, k, method, layer=layer, task=task) for k, layer in zip(counts, layers, strict=True))
    gates = (found,) if isinstance(found, Found) else tuple(found) if isinstance(found, (list, tuple)) else ()
    if not gates or not all(isinstance(layer, Found) for layer in gates):
        raise BadInput(
            f"found is {type(found).__name__}" + (f" of {type(gates[0]).__name__}" if gates else ""),
            "what gates.find returns, or one of these for each hidden layer",
            "give gates.find(trained), or clusters=4 by name",
        )
    if [layer.layer for layer in gates] != list(layers):
        raise BadInput(
            f"gates of the hidden layers {[layer.layer for layer in gates]}",
            f"gates of each layer: {list(layers)}",
            "find them one by one: [gates.find(trained, layer=1), gates.find(trained, layer=2)]",
        )
    return gates


def _checked_clusters(clusters: object, layers: int) -> list[int | None]:
    """How many gates to find in each layer; None finds the number itself."""
    if clusters is None or isinstance(clusters, (int, np.integer)):
        return [None if clusters is None else whole(clusters, "clusters")] * layers
    needed, do = f"one number, or one for each of {layers} hidden layers", f"give clusters=4, or {layers} numbers"
    counts = checks.listed(clusters, "clusters", needed, do)
    if len(counts) != layers:
        raise BadInput(f"clusters = {shown(clusters)}", needed, do)
    return [None if count is None else whole(count, "clusters") for count in counts]
