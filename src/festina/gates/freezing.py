"""The frozen twin: a gated linear network with a few gates that stay as they are, trained beside the ReLU network."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np

from .. import _checks
from .._errors import BadInput, shown
from .._noun import whole
from .._setup import Init, Setup, Task
from .._simulate import simulate
from .._trajectory import Trajectory
from ..inits import Given
from ..nets._builders import TRAININGS
from ..nets.gated import Gated
from ._ladder import INPUTS, OUTPUTS, open_edges
from .comparing import compare
from .finding import METHODS, Found, find
from .recording import as_trained, recording, same_samples

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

    def __post_init__(self):
        import xarray

        do = "use gates.freeze(trained)"
        for found in _checks.listed(self.found, "found", "what gates.find returns, for each layer", do):
            _checks.instance(found, "found", Found, do)
        for name, kind in (("setup", Setup), ("trajectory", Trajectory), ("errors", xarray.Dataset)):
            _checks.instance(getattr(self, name), name, kind, do)

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
            f"Frozen({gates}: mean distance of losses {float(table.raw_mean):.3g} of the first loss, "
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
    trained = as_trained(trained)
    seen = recording(trained, least=2, task=task)
    seen.need_rule()
    _checks.choice(method, "method", METHODS)
    _checks.choice(training, "training", TRAININGS)
    _checks.truth_or_none(progress, "progress")
    if init is not None:
        _checks.instance(init, "init", Init, "give init=inits.SmallRandom(1e-3)")
    if found is not None:
        _checked_clusters(clusters, len(seen.layers))
    founds = _of_every_layer(trained, found, clusters, method, task)
    for one in founds:
        if not same_samples(one.task, seen.task):
            raise BadInput(
                f"gates of layer {one.layer} that were found on other samples",
                "gates found on the task of the recording: a gate belongs to a sample",
                "find them in this recording: gates.find(trained)",
            )
    law = seen.setup.init if init is None else init
    if isinstance(law, Given):
        raise BadInput("a network that started from Given weights", "a law for the twin's start", "give init=…")
    net = founds[0].net(width, sees=sees, training=training) if len(founds) == 1 else _layered(founds, width, sees)
    if len(founds) > 1 and training != "joint":
        raise BadInput(
            f"training = {shown(training)} with {len(founds)} hidden layers", '"joint"', "leave training out"
        )
    setup = seen.setup.replace(net=net, init=law)
    try:
        jax.eval_shape(lambda: law.draw(jax.random.key(0), net, setup.for_init))
    except BadInput as misfit:
        if init is not None:
            raise
        do = "give init=…, for example inits.SmallRandom(1e-3)"
        raise BadInput(f"the network's own {law!r} for the twin: {misfit.seen}", misfit.needed, do) from None
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
    n_init: int | None = None,
    seed: int = 0,
    learned: float = 0.99,
    init: Any = None,
    progress: bool | None = None,
) -> Any:
    """How close frozen twins with 1, 2, … gates come to a network of one hidden layer; an `xarray.Dataset`.

    `error` (clusters) is the mean square difference of outputs, `pathways` the number of different gates that are on
    for some sample; where there is none, the twin's outputs are 0. attrs["chosen"] is the smallest number whose error
    is within 25 % of the smallest of all. `n_init`, `seed` and `learned` are those of `find`, `init` that of `freeze`.
    """
    import xarray

    trained = as_trained(trained)
    if len(recording(trained).layers) > 1:
        raise BadInput(
            "an elbow for a network of several hidden layers", "one hidden layer", "choose clusters for each layer"
        )
    needed, do = "several numbers of gates to try", "give clusters=range(1, 8)"
    counts = [whole(count, "clusters") for count in _checks.listed(clusters, "clusters", needed, do)]
    _checks.choice(method, "method", METHODS)
    _checks.truth_or_none(progress, "progress")
    # The network itself need not be trained again for every number of gates.
    reference = _with_outputs(trained, progress)
    errors, pathways = np.zeros(len(counts)), np.zeros(len(counts), int)
    for k, count in enumerate(counts):
        found = find(trained, count, method, layer=layer, n_init=n_init, seed=seed, learned=learned)
        if found.gates.any():
            errors[k] = freeze(reference, found, width=width, sees=sees, init=init, progress=progress).error
            pathways[k] = len(found.pathways())
        else:
            errors[k] = np.mean(reference["outputs"] ** 2)
    table = xarray.Dataset(
        {"error": ("clusters", errors), "pathways": ("clusters", pathways)}, coords={"clusters": counts}
    )
    return table.assign_attrs(chosen=int(counts[int(np.argmax(errors <= CLOSE * errors.min()))]), method=method)


def _of_every_layer(
    trained: Trajectory, found: Any, clusters: Any, method: str, task: Task | None
) -> tuple[Found, ...]:
    layers = recording(trained).layers
    if found is None:
        counts = _checked_clusters(clusters, len(layers))
        return tuple(find(trained, k, method, layer=layer, task=task) for k, layer in zip(counts, layers, strict=True))
    founds = (found,) if isinstance(found, Found) else tuple(found) if isinstance(found, (list, tuple)) else ()
    if not founds or not all(isinstance(one, Found) for one in founds):
        raise BadInput(
            f"found is {type(found).__name__}" + (f" of {type(founds[0]).__name__}" if founds else ""),
            "what gates.find returns, or one of these for each hidden layer",
            "give gates.find(trained), or clusters=4 by name",
        )
    if [one.layer for one in founds] != list(layers):
        raise BadInput(
            f"gates of the hidden layers {[one.layer for one in founds]}",
            f"gates of each layer: {list(layers)}",
            "find them one by one: [gates.find(trained, layer=1), gates.find(trained, layer=2)]",
        )
    return founds


def _checked_clusters(clusters: Any, layers: int) -> list[int | None]:
    """How many gates to find in each layer; None finds the number itself."""
    if clusters is None or isinstance(clusters, (int, np.integer)):
        return [None if clusters is None else whole(clusters, "clusters")] * layers
    needed, do = f"one number, or one for each of {layers} hidden layers", f"give clusters=4, or {layers} numbers"
    counts = _checks.listed(clusters, "clusters", needed, do)
    if len(counts) != layers:
        raise BadInput(f"clusters = {shown(clusters)}", needed, do)
    return [None if count is None else whole(count, "clusters") for count in counts]


def _layered(founds: Sequence[Found], width: Any, sees: Any) -> Gated:
    """Nodes for the gates of every layer, and an edge wherever two of them are on for one sample."""
    columns = None if sees is None else tuple(sees)
    levels = [
        {f"layer {found.layer}: {pathway['name']}": pathway for pathway in found.pathways(width)} for found in founds
    ]
    nodes = {name: pathway for level in levels for name, pathway in level.items()}
    edges = open_edges([{name: pathway["on"] for name, pathway in level.items()} for level in levels])
    if not edges:
        raise BadInput(
            "gates of neighbouring layers that are on for no common sample",
            "a path that is open for some sample",
            "find more gates in each layer",
        )
    live = [name for name in nodes if any(name in edge for edge in edges)]
    return Gated(
        {
            INPUTS: None if columns is None else len(columns),
            **{name: nodes[name]["width"] for name in live},
            OUTPUTS: None,
        },
        edges,
        node_gates={name: nodes[name]["on"] for name in live},
        inputs=None if columns is None else {INPUTS: columns},
    )


def _with_outputs(trained: Trajectory, progress: bool | None) -> Trajectory:
    """The recorded network with all that a twin is compared by; trained again if that was not recorded."""
    missing = [name for name in SEEN if name not in trained]
    if not missing:
        return trained
    if trained.source.startswith("probe"):  # whose loop may have been another than the one that would be run
        raise BadInput(
            f"a probe's record without {', '.join(missing)}",
            "what a twin is compared by, of what leaves the activations",
            f"record it: observe={['gates', *SEEN[1:]]}",
        )
    seeds = [int(seed) for seed in trained.coordinates["seed"]]
    return simulate(recording(trained).setup, seeds, (*SEEN, "gates"), progress=progress)
