"""The exact twin: a gated linear network whose gates are those of a ReLU network, unit by unit, at every time.

A unit of a ReLU network multiplies its input by 1 or by 0 (a leaky one by its slope), so that the network is, at any
time, a gated linear network with a gate for every unit and sample [jarvis2025, definition 3.1]. Trained from the same
initial weights with these gates it has the same gradients, and remains the same network: this is true of every ReLU
network, and says nothing yet about gates that are constant in time, or shared by many units.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from .._foundation import checks
from .._foundation.arrays import AnyArray, RandomKey, Weights
from .._foundation.checks import whole
from .._foundation.errors import BadInput
from .._foundation.nouns import noun
from .._setup.setup import Setup
from .._setup.trajectory import Trajectory
from .._training.simulate import simulate
from ..inits.base import Init
from ..inits.given import Given
from ..nets.base import Net
from ..nets.gated.net import Gated
from ..tasks.base import Task
from ._ladder import INPUTS, OUTPUTS, open_edges
from .recording import Recording, as_trained, recording, slope_of, unpacked

Rows = Float[AnyArray, "sample unit"]
STRAYED = 0.01  # of the first loss; rounding of float32 stays below it but at the end of long plateaus
MOST_NODES = 64  # of a twin drawn as a graph: one for every history of a unit


@dataclasses.dataclass(frozen=True)
class Replay:
    """A trained twin with the gates of the ReLU network at every step.

    `errors` (seed, time) are the largest differences between outputs of the twin and recorded ones, in units of the
    largest output; where outputs were not recorded, those of the network as it was trained again beside its twin.
    `loss_errors` (seed, time) are differences from the recorded loss, in units of the first. `error` is the largest of
    all. `flipped` (seed, time) is the share of recorded gates that differ in the second training: 0 where it repeats
    the first bit for bit; where it does so to rounding, a few gates at their threshold differ.
    """

    trajectory: Trajectory  # of the twin
    errors: np.ndarray
    loss_errors: np.ndarray
    flipped: np.ndarray
    recording: Recording
    strayed: float = 0.0  # largest difference of the loss of the network trained again, in units of the first

    def __post_init__(self):
        do = "use gates.replay(trained)"
        checks.instance(self.trajectory, "trajectory", Trajectory, do)
        checks.instance(self.recording, "recording", Recording, do)
        for name in ("errors", "loss_errors", "flipped"):
            checks.real_array(getattr(self, name), name, ndim=2)
        checks.number(self.strayed, "strayed")

    @property
    def error(self) -> float:
        return float(max(self.errors.max(), self.loss_errors.max()))

    def setup(self, seed: int = 0) -> Setup:
        """The twin of one seed as a setup of its own: a `Gated` net with a node for all units of one history of gates.

        Its gates are a schedule that holds every record until the next: it learns as the ReLU network does where all
        steps have been recorded, and misses what switches in between where they have not. `seed` counts the recorded
        seeds from 0.
        """
        return scheduled_twin(self.recording, seed)

    def __repr__(self) -> str:
        times = self.trajectory.times
        return (
            f"Replay({len(self.errors)} seeds, {len(times)} times {times[0]:g} … {times[-1]:g}: "
            f"largest difference of outputs {self.errors.max():.2g}, of the loss {self.loss_errors.max():.2g}, "
            f"gates that came out otherwise {self.flipped.max():.2g}){self.note and '; '}{self.note}"
        )

    @property
    def note(self) -> str:
        """What is wrong if the network trained again is not the one that was recorded; else empty."""
        if self.strayed <= STRAYED:
            return ""
        return (
            f"trained again, the network strays from the record by {self.strayed:.2g} of the first loss: its loop was "
            f"not {self.recording.setup.rule!r} of ½ mean |y − f|² on all of these samples, or rounding has grown"
        )


def replay(trained: Trajectory, task: Task | None = None, *, progress: bool | None = None) -> Replay:
    """Train the gated linear twin of a recorded ReLU network, with the network's gates at every step.

    The network is trained again from its setup, its twin beside it, under the same rule and from the same weights, and
    the twin is compared with what was recorded. A `task`, if given, must be the one of the recording. The record of a
    probe must be of gradient descent of ½ mean |y − f|² on all its inputs, with its lr; where that is not what the loop
    did, `note` says by how much the network strays from it.
    """
    progress = checks.truth_or_none(progress, "progress")
    trained = as_trained(trained)
    network = recording(trained, least=2, task=task)
    network.need_rule()
    seeds = tuple(int(seed) for seed in network.seeds)
    both = simulate(_with_twin(network.setup), seeds, ("outputs", "gates"), progress=progress, interrupt="raise")
    outputs, twins = np.split(both["outputs"], 2, axis=-1)
    again, loss = (
        0.5 * np.mean(np.sum((f - np.asarray(network.task.y)) ** 2, axis=-1), axis=-1) for f in (outputs, twins)
    )
    flipped = unpacked(both["gates"] ^ network.packed, network.samples).mean(axis=(-2, -1))
    trajectory = Trajectory(
        both.times,
        {"loss": loss, "outputs": twins},
        {"loss": ("seed", "time"), "outputs": ("seed", "time", "sample", "feature")},
        "gates.replay",
        {"setup": trained.provenance["setup"], "note": "the twin of a ReLU network, with its gates at every step"},
        {"seed": network.seeds},
    )
    if "outputs" in trained:
        outputs = trained["outputs"]
    errors = np.abs(twins - outputs).max(axis=(-2, -1)) / np.abs(outputs).max()
    strayed = float((np.abs(again - network.loss) / network.first_loss[:, None]).max())
    return Replay(
        trajectory, errors, np.abs(loss - network.loss) / network.first_loss[:, None], flipped, network, strayed
    )


def _with_twin(setup: Setup) -> Setup:
    """The setup of a ReLU network and its twin, which learn the same answers side by side."""
    task = setup.single_task
    doubled = Task(np.concatenate([task.cov_yx] * 2), task.cov_x, x=task.x, y=np.concatenate([task.y] * 2, axis=1))
    return setup.replace(task=doubled, net=_NetAndTwin(setup.net), init=_Twice(setup.init, setup.net, task))


@noun
class _NetAndTwin(Net):
    """A ReLU network, and behind it a gated linear one that takes its gates; each writes half of the outputs."""

    relu: Net

    @property
    def hidden(self) -> Any:
        return self.relu.hidden

    @property
    def off_slope(self) -> float | None:
        return self.relu.off_slope

    def shapes(self, d_in: int, d_out: int) -> Any:
        return (self.relu.shapes(d_in, d_out // 2),) * 2

    def gates(self, weights: Weights, x: Rows) -> Any:
        return self.relu.gates(weights[0], x)

    def apply(self, weights: Weights, x: Rows) -> Any:
        network, twin = weights
        return jnp.concatenate([self.relu.apply(network, x), self._gated(twin, self.gates(weights, x), x)], axis=1)

    def _gated(self, weights: Weights, on: Bool[AnyArray, "sample unit"], x: Rows) -> Rows:
        """Layer by layer a linear network; which units are on is given, and passes no gradient on."""
        open_for = jnp.where(on, 1.0, jnp.asarray(self.off_slope, x.dtype))
        ends = np.cumsum(self.hidden)[:-1]
        for layer, gate in zip(weights[:-1], jnp.split(jax.lax.stop_gradient(open_for), ends, axis=1), strict=True):
            x = gate * self.relu.layer(layer, x)
        return self.relu.layer(weights[-1], x)


@noun
class _Twice(Init):
    """The same weights for the network and its twin."""

    init: Init
    net: Net
    task: Task

    def draw(self, key: RandomKey, net: Net, task: Task) -> Weights:
        weights = self.init.draw(key, self.net, self.task)
        return (weights, weights)


def scheduled_twin(network: Recording, seed: int) -> Setup:
    """A gated net of one seed's units: all units with the same history of gates form one node, which replays them."""
    if network.setup.net.bias:
        raise BadInput("a twin as a graph of a network with biases", "a network without", "train MLP(…, bias=False)")
    if whole(seed, "seed", least=0) >= len(network.seeds):
        raise BadInput(
            f"seed = {seed}", f"one of the {len(network.seeds)} recorded, counted from 0", "give a lower one"
        )
    levels = [_histories(network.of_layer(layer), layer, seed) for layer in network.layers]
    if (count := sum(map(len, levels))) > MOST_NODES:
        raise BadInput(
            f"{count} different histories of gates",
            f"at most {MOST_NODES}, for a graph of one node each",
            "use Replay.trajectory, which needs no graph, or a smaller network",
        )
    starts = [0.0, *network.times[1:].tolist()]  # before the first record, its gates are the best guess
    weights = network.setup.weights(int(network.seeds[seed]))
    nodes = {node.name: node for level in levels for node in level}
    edges = open_edges([{node.name: node.gates for node in level} for level in levels])
    out_of = dict.fromkeys([INPUTS], weights[0])
    for matrix, level in zip(weights[1:], levels, strict=True):
        out_of |= {node.name: matrix for node in level}

    def block(source: str, target: str) -> np.ndarray:
        # Inputs and outputs are no nodes of units: a layer has all of their rows or columns.
        rows, columns = (nodes[name].units if name in nodes else slice(None) for name in (target, source))
        return np.asarray(out_of[source])[rows][:, columns]

    live = [node for name, node in nodes.items() if any(name in edge for edge in edges)]
    net = Gated(
        {INPUTS: None, **{node.name: len(node.units) for node in live}, OUTPUTS: None},
        edges,
        node_gates={node.name: Gated.schedule(zip(starts, node.gates, strict=True)) for node in live},
    )
    return network.setup.replace(net=net, init=Given([block(*edge) for edge in edges]))


@dataclasses.dataclass(frozen=True)
class _Node:
    """Units of one history; `gates` are (time, sample)."""

    name: str
    units: Int[np.ndarray, " unit"]
    gates: Float[np.ndarray, "time sample"]


def _histories(units: Recording, layer: int, seed: int) -> list[_Node]:
    packed = np.moveaxis(units.packed[seed], 1, 0)  # (unit, time, byte)
    histories, members = np.unique(packed, axis=0, return_inverse=True)
    return [
        _Node(
            f"layer {layer} history {k + 1}",
            np.flatnonzero(members.ravel() == k),
            np.where(unpacked(history, units.samples), 1.0, slope_of(units.setup.net)),
        )
        for k, history in enumerate(histories)
    ]
