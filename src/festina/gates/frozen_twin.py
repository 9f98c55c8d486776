"""The frozen twin of gates that were found: a gated linear network, trained and compared with the ReLU network."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import jax

from .._foundation import checks
from .._foundation.errors import BadInput, shown
from .._setup.setup import Setup
from .._setup.trajectory import Trajectory
from .._training.simulate import simulate
from ..inits.base import Init
from ..nets.gated.net import Gated
from ..tasks.base import Task
from ._ladder import INPUTS, OUTPUTS, open_edges
from .clusters import Found
from .comparing import compare
from .recording import recording, same_samples

if TYPE_CHECKING:
    import xarray

COMPARED = ("loss", "outputs", "similarity")  # what a twin is compared by


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
    errors: xarray.Dataset

    def __post_init__(self):
        import xarray

        do = "use gates.freeze(trained)"
        for found in checks.listed(self.found, "found", "what gates.find returns, for each layer", do):
            checks.instance(found, "found", Found, do)
        for name, kind in (("setup", Setup), ("trajectory", Trajectory), ("errors", xarray.Dataset)):
            checks.instance(getattr(self, name), name, kind, do)

    @property
    def error(self) -> float:
        return float(self.errors.output_mean_square.mean())

    @property
    def net(self) -> Gated:
        assert isinstance(self.setup.net, Gated)  # `frozen_twin` made it
        return self.setup.net

    def __repr__(self) -> str:
        gates = " → ".join(", ".join(found.names) for found in self.found)
        table = self.errors.isel(candidate=0)
        return (
            f"Frozen({gates}: mean distance of losses {float(table.raw_mean):.3g} of the first loss, "
            f"largest {float(table.raw):.3g}; outputs {float(table.output_gap[-1]):.3g} at the end, "
            f"hidden geometry {float(table.geometry[-1]):.3g})"
        )


def checked_init(init: object) -> None:
    """Refuse what is neither a law of initial weights nor None."""
    if init is not None:
        checks.instance(init, "init", Init, "give init=inits.SmallRandom(1e-3)")


def frozen_twin(
    trained: Trajectory,
    gates: tuple[Found, ...],
    task: Task | None = None,
    *,
    width: int | Sequence[int] | str = "share",
    sees: Iterable[int] | None = None,
    training: str = "joint",
    init: Init | None = None,
    progress: bool | None = None,
) -> Frozen:
    """The twin with these gates, those of each hidden layer; arguments as for `freeze`."""
    network = recording(trained, least=2, task=task)
    network.need_rule()
    checked_init(init)
    for layer in gates:
        if not same_samples(layer.task, network.task):
            raise BadInput(
                f"gates of layer {layer.layer} that were found on other samples",
                "gates found on the task of the recording: a gate belongs to a sample",
                "find them in this recording: gates.find(trained)",
            )
    law = network.setup.init if init is None else init
    if not law.fits_any_width:
        raise BadInput("a network that started from Given weights", "a law for the twin's start", "give init=…")
    net = gates[0].net(width, sees=sees, training=training) if len(gates) == 1 else _layered(gates, width, sees)
    if len(gates) > 1 and training != "joint":
        raise BadInput(f"training = {shown(training)} with {len(gates)} hidden layers", '"joint"', "leave training out")
    setup = network.setup.replace(net=net, init=law)
    try:
        jax.eval_shape(lambda: law.draw(jax.random.key(0), net, setup.for_init))
    except BadInput as misfit:
        if init is not None:
            raise
        do = "give init=…, for example inits.SmallRandom(1e-3)"
        raise BadInput(f"the network's own {law!r} for the twin: {misfit.seen}", misfit.needed, do) from None
    seeds = [int(seed) for seed in network.seeds]
    twin = simulate(setup, seeds, COMPARED, progress=progress, interrupt="raise")
    return Frozen(gates, setup, twin, compare(with_outputs(trained, progress), {"frozen twin": twin}))


def _layered(gates: Sequence[Found], width: int | Sequence[int] | str, sees: Iterable[int] | None) -> Gated:
    """Nodes for the gates of every layer, and an edge wherever two of them are on for one sample."""
    columns = None if sees is None else tuple(sees)
    levels = [
        {f"layer {layer.layer}: {pathway['name']}": pathway for pathway in layer.pathways(width)} for layer in gates
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


def with_outputs(trained: Trajectory, progress: bool | None) -> Trajectory:
    """The recorded network with every observable that the comparison needs; retrained if some are missing."""
    missing = [name for name in COMPARED if name not in trained]
    if not missing:
        return trained
    if trained.is_recorded:  # whose loop may have been another than the one that would be run
        raise BadInput(
            f"a probe's record without {', '.join(missing)}",
            "what a twin is compared by, of what leaves the activations",
            f"record it: observe={['gates', *COMPARED[1:]]}",
        )
    seeds = [int(seed) for seed in trained.coordinates["seed"]]
    return simulate(recording(trained).setup, seeds, (*COMPARED, "gates"), progress=progress, interrupt="raise")
