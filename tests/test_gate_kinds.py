"""The laws of every kind of gate."""

from __future__ import annotations

import numpy as np
import pytest

import festina as fs
from festina.nets.gated import gates

TASK = fs.tasks.contextual(items=2, contexts=3, blocks="hierarchy")
# What a user writes for each kind; a new kind brings its own.
WRITTEN = {
    gates.Always: [None],
    gates.Schedule: [fs.nets.Gated.schedule([(0, {"context": 1}), (2, 0.5), (3, None)])],
    gates.OnLabels: [{"context": [0, 2]}, {"context": 1, "item": [0, 1]}],
    gates.Constant: [0, 1, 0.25, np.float32(0.5)],
    gates.PerSample: [[1, 0, 1, 0, 1, 0], np.linspace(-1, 1, 6)],
}
every_gate = pytest.mark.parametrize(
    ("kind", "written"),
    [(kind, written) for kind, several in WRITTEN.items() for written in several],
    ids=lambda value: getattr(value, "__name__", str(value)),
)


def on_samples(gate):
    """The values of a gate on every sample, from every time at which it changes."""
    return [np.broadcast_to(piece.values(TASK, "here"), TASK.samples) for _, piece in gate.pieces]


def test_every_kind_is_written_here():
    assert set(WRITTEN) == set(gates.KINDS)


@every_gate
def test_every_kind_of_gate_round_trips(kind, written):
    gate = gates.read_gate(written, "here")
    assert type(gate) is kind
    again = gates.read_gate(gate.plain, "here")
    assert type(again) is kind
    np.testing.assert_equal(again.plain, gate.plain)
    np.testing.assert_array_equal(on_samples(again), on_samples(gate))
    assert str(again) == str(gate)

    net = fs.nets.Gated.pathways([{"width": 3}, {"width": 3, "on": written}])
    setup = fs.Setup(TASK, net, fs.inits.SmallRandom(0.3), until=4.0, points=3)
    read = fs.Setup.from_json(setup.to_json())
    assert read.net == net
    for time in (0.0, 2.5, 4.0):
        kept, wanted = (one.at_time(time).on(TASK) for one in (read.net, net))
        assert kept == wanted
        weights = setup.weights(0)
        np.testing.assert_array_equal(kept.apply(weights, TASK.x), wanted.apply(weights, TASK.x))


@every_gate
def test_every_kind_of_gate_is_read_sample_by_sample(kind, written):
    """A gate and its values as an array are one net."""
    gate = gates.read_gate(written, "here")
    for (time, _), values in zip(gate.pieces, on_samples(gate), strict=True):
        given, listed = (
            fs.nets.Gated.pathways([{"width": 3}, {"width": 3, "on": on}]) for on in (written, np.array(values))
        )
        weights = fs.Setup(TASK, listed, fs.inits.SmallRandom(0.3), until=1.0).weights(0)
        outputs = [net.at_time(time).on(TASK).apply(weights, TASK.x) for net in (given, listed)]
        np.testing.assert_array_equal(*outputs)


@every_gate
def test_every_value_that_a_gate_mentions_must_occur(kind, written):
    gate = gates.read_gate(written, "here")
    for _, piece in gate.pieces:
        for label in piece.labels:
            few = fs.tasks.from_arrays(TASK.x, TASK.y, labels={**TASK.labels, label: np.full(TASK.samples, 9)})
            net = fs.nets.Gated.pathways([{"width": 3}, {"width": 3, "on": written}])
            with pytest.raises(fs.BadInput, match=f"the label '{label}' is .*, which no sample has"):
                fs.Setup(few, net, fs.inits.SmallRandom(0.3), until=1.0)
